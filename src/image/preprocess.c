/* SPDX-License-Identifier: Apache-2.0 */
#include "image/preprocess.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Where the network's pixels lie: the whole picture resized to full_*, and the window of it that is kept. */
typedef struct placing {
    int full_height, full_width, height, width, top, left;
} placing;

/* Python's int(): towards zero; and 0 for what no picture could have. */
static int whole(double value) {
    return value >= 0 && value < 2147483648.0 ? (int)value : 0;
}

/* torchvision's center_crop along one axis: halves to even where the picture is larger, down where it is padded. */
static int centred(int picture, int crop) {
    if (crop > picture) return -((crop - picture) / 2);
    return (int)nearbyint((picture - crop) / 2.0);
}

/* torchvision's Resize of the shortest side. */
static void fit_shortest(placing *p, int size, int height, int width) {
    int shorter = width <= height ? width : height, longer = width <= height ? height : width;
    int other = whole((double)((int64_t)size * longer) / shorter);
    p->full_width = width <= height ? size : other;
    p->full_height = width <= height ? other : size;
}

/* timm's ResizeKeepRatio; longest 1: the longest side fits, 0: the shortest. */
static void fit_ratio(placing *p, const int target[2], double longest, int height, int width) {
    double ratio_h = (double)height / target[0], ratio_w = (double)width / target[1];
    double ratio = fmax(ratio_h, ratio_w) * longest + fmin(ratio_h, ratio_w) * (1.0 - longest);
    p->full_height = whole(nearbyint(height * 1.0 / ratio));
    p->full_width = whole(nearbyint(width * 1.0 / ratio));
}

/* YOLOS: the shortest side to its size unless the longest would pass its bound; both cut to a multiple. */
static void fit_edges(placing *p, const oct_preprocess *preprocess, int height, int width) {
    double size = preprocess->shortest_edge, bound = preprocess->longest_edge;
    double shorter = height < width ? height : width, longer = height < width ? width : height;
    bool bounded = longer / shorter * size > bound;
    double raw = bounded ? bound * shorter / longer : size; /* the long side is reckoned from the unrounded short one */
    if (bounded) size = nearbyint(raw);
    if (width < height) {
        p->full_width = whole(size);
        p->full_height = whole(raw * height / width);
    } else if ((height <= width && height == size) || (width <= height && width == size)) {
        p->full_height = height;
        p->full_width = width;
    } else {
        p->full_height = whole(size);
        p->full_width = whole(raw * width / height);
    }
    p->full_height -= p->full_height % preprocess->size_multiple;
    p->full_width -= p->full_width % preprocess->size_multiple;
}

static void fit_inside(placing *p, const oct_preprocess *preprocess, int height, int width) {
    double scale = fmin((double)preprocess->height / height, (double)preprocess->width / width);
    p->full_height = whole(height * scale);
    p->full_width = whole(width * scale);
}

static bool is_cropped(oct_fit fit) {
    return fit == OCT_FIT_CROP || fit == OCT_FIT_SQUASH || fit == OCT_FIT_BORDER;
}

static octet_status place(const oct_preprocess *preprocess, int height, int width, placing *p) {
    *p = (placing){.full_height = height, .full_width = width};
    int target[2] = {preprocess->height, preprocess->width};
    if (is_cropped(preprocess->fit)) {
        target[0] = whole(floor(preprocess->height / preprocess->crop_pct));
        target[1] = whole(floor(preprocess->width / preprocess->crop_pct));
    }
    if (preprocess->resize) {
        switch (preprocess->fit) {
        case OCT_FIT_CROP:
            if (target[0] == target[1])
                fit_shortest(p, target[0], height, width);
            else
                fit_ratio(p, target, 0.0, height, width);
            break;
        case OCT_FIT_BORDER:
            fit_ratio(p, target, 1.0, height, width);
            break;
        case OCT_FIT_SQUASH:
        case OCT_FIT_FIXED:
            p->full_height = target[0];
            p->full_width = target[1];
            break;
        case OCT_FIT_EDGES:
            fit_edges(p, preprocess, height, width);
            break;
        case OCT_FIT_INSIDE:
            fit_inside(p, preprocess, height, width);
            break;
        }
    }
    if (p->full_height < 1 || p->full_width < 1)
        return oct_fail(OCTET_UNSUPPORTED, "a picture of %d x %d pixels would be resized to %d x %d", width, height,
                        p->full_width, p->full_height);
    p->height = p->full_height;
    p->width = p->full_width;
    if (is_cropped(preprocess->fit)) {
        p->height = preprocess->height;
        p->width = preprocess->width;
        p->top = centred(p->full_height, p->height);
        p->left = centred(p->full_width, p->width);
    }
    return OCTET_OK;
}

static bool is_padded(const oct_preprocess *preprocess) {
    return preprocess->pad && preprocess->pad_height > 0 && preprocess->pad_width > 0;
}

octet_status oct_preprocess_size(const oct_preprocess *preprocess, int picture_width, int picture_height, int *height,
                                 int *width) {
    placing p;
    OCT_TRY(place(preprocess, picture_height, picture_width, &p));
    *height = p.height;
    *width = p.width;
    if (!is_padded(preprocess)) return OCTET_OK;
    if (preprocess->pad_height < p.height || preprocess->pad_width < p.width)
        return oct_fail(OCTET_MISMATCH, "a picture resized to %d x %d pixels is larger than its padded size %d x %d",
                        p.width, p.height, preprocess->pad_width, preprocess->pad_height);
    *height = preprocess->pad_height;
    *width = preprocess->pad_width;
    return OCTET_OK;
}

/* timm's border: the mean colour round a picture that does not fill its window. */
static void fill_border(const oct_preprocess *preprocess, const placing *p, oct_image *pixels) {
    uint8_t fill[3];
    for (int c = 0; c < 3; c++) fill[c] = (uint8_t)fmin(fmax(nearbyint(255 * preprocess->mean[c]), 0.0), 255.0);
    for (int y = 0; y < pixels->height; y++) {
        uint8_t *row = pixels->rgb + (size_t)y * (size_t)pixels->width * 3;
        bool outside = y + p->top < 0 || y + p->top >= p->full_height;
        for (int x = 0; x < pixels->width; x++) {
            if (outside || x + p->left < 0 || x + p->left >= p->full_width) memcpy(row + x * 3, fill, 3);
        }
    }
}

octet_status oct_preprocess_pixels(const oct_preprocess *preprocess, const oct_image *picture, oct_image *pixels) {
    *pixels = (oct_image){0};
    int height, width;
    placing p;
    OCT_TRY(oct_preprocess_size(preprocess, picture->width, picture->height, &height, &width));
    OCT_TRY(place(preprocess, picture->height, picture->width, &p));
    oct_resize resize = {.full_width = p.full_width,
                         .full_height = p.full_height,
                         .left = p.left,
                         .top = p.top,
                         .filter = preprocess->filter};
    pixels->width = p.width;
    pixels->height = p.height;
    OCT_TRY(oct_image_resize(picture, &resize, pixels));
    if (preprocess->fit == OCT_FIT_BORDER) fill_border(preprocess, &p, pixels);
    return OCTET_OK;
}

/* One level of one channel, in the reference's order and widths. */
static float level_of(const oct_preprocess *preprocess, int level, int channel) {
    float value = (float)level;
    if (preprocess->rescale)
        value = preprocess->divide ? value / 255.0f : (float)((double)level * preprocess->rescale_factor);
    if (preprocess->normalize) {
        value = value - (float)preprocess->mean[channel];
        value = value / (float)preprocess->std[channel];
    }
    return value;
}

void oct_preprocess_normalize(const oct_preprocess *preprocess, const oct_image *pixels, float *input,
                              int channel_stride) {
    float table[3][256];
    for (int c = 0; c < 3; c++) {
        for (int level = 0; level < 256; level++) table[c][level] = level_of(preprocess, level, c);
    }
    size_t stride = (size_t)channel_stride;
    size_t width = (size_t)(is_padded(preprocess) ? preprocess->pad_width : pixels->width);
    size_t height = (size_t)(is_padded(preprocess) ? preprocess->pad_height : pixels->height);
    const uint8_t *rgb = pixels->rgb;
    for (size_t y = 0; y < (size_t)pixels->height; y++) {
        float *out = input + y * width * stride;
        for (size_t x = 0; x < (size_t)pixels->width; x++, rgb += 3, out += stride) {
            out[0] = table[0][rgb[0]];
            out[1] = table[1][rgb[1]];
            out[2] = table[2][rgb[2]];
            for (size_t c = 3; c < stride; c++) out[c] = 0.0f;
        }
        memset(out, 0, (width - (size_t)pixels->width) * stride * sizeof *out);
    }
    size_t done = (size_t)pixels->height;
    memset(input + done * width * stride, 0, (height - done) * width * stride * sizeof *input);
}

void oct_preprocess_describe(const oct_preprocess *preprocess, oct_text *text) {
    const char *filter = oct_filter_name(preprocess->filter);
    if (!preprocess->resize) {
        oct_text_puts(text, "size as it is");
    } else if (preprocess->fit == OCT_FIT_EDGES) {
        oct_text_printf(text, "shortest side to %d, longest at most %d, multiples of %d, %s", preprocess->shortest_edge,
                        preprocess->longest_edge, preprocess->size_multiple, filter);
    } else if (preprocess->fit == OCT_FIT_INSIDE) {
        oct_text_printf(text, "to fit into %d x %d %s", preprocess->width, preprocess->height, filter);
    } else if (preprocess->fit == OCT_FIT_FIXED) {
        oct_text_printf(text, "to %d x %d %s", preprocess->width, preprocess->height, filter);
    } else {
        int height = whole(floor(preprocess->height / preprocess->crop_pct));
        int width = whole(floor(preprocess->width / preprocess->crop_pct));
        const char *what = preprocess->fit == OCT_FIT_CROP     ? "shortest side"
                           : preprocess->fit == OCT_FIT_BORDER ? "longest side"
                                                               : "both sides";
        if (height == width)
            oct_text_printf(text, "%s to %d %s", what, height, filter);
        else
            oct_text_printf(text, "%s to %d x %d %s", what, width, height, filter);
        oct_text_printf(text, ", centre crop %d x %d", preprocess->width, preprocess->height);
    }
    if (is_padded(preprocess))
        oct_text_printf(text, ", padded to %d x %d", preprocess->pad_width, preprocess->pad_height);
    char numbers[7][32];
    if (preprocess->rescale && !preprocess->divide)
        oct_text_printf(text, ", times %s", oct_format_double(preprocess->rescale_factor, numbers[6]));
    else if (preprocess->rescale)
        oct_text_puts(text, ", by 255");
    if (preprocess->normalize) {
        const char *shown[6];
        for (int i = 0; i < 6; i++)
            shown[i] = oct_format_double(i < 3 ? preprocess->mean[i] : preprocess->std[i - 3], numbers[i]);
        oct_text_printf(text, ", mean %s %s %s, std %s %s %s", shown[0], shown[1], shown[2], shown[3], shown[4],
                        shown[5]);
    }
}
