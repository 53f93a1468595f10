/* SPDX-License-Identifier: Apache-2.0 */
/* From a picture to a network's input, as the checkpoint's configuration says: timm's evaluation transform
 * (timm.data.create_transform, is_training False) and transformers' YolosImageProcessorPil. */
#ifndef OCT_IMAGE_PREPROCESS_H
#define OCT_IMAGE_PREPROCESS_H

#include <stdbool.h>

#include "base/document.h"
#include "base/text.h"
#include "image/image.h"

typedef enum oct_fit {
    OCT_FIT_CROP,   /* timm crop_mode center: shortest side to floor(size / crop_pct), centre crop */
    OCT_FIT_SQUASH, /* timm crop_mode squash: both sides to size / crop_pct, centre crop */
    OCT_FIT_BORDER, /* timm crop_mode border: longest side fits, padded with the mean colour as timm does */
    OCT_FIT_FIXED,  /* YOLOS {"height", "width"} */
    OCT_FIT_EDGES,  /* YOLOS {"shortest_edge", "longest_edge"}: size follows the picture */
    OCT_FIT_INSIDE  /* YOLOS {"max_height", "max_width"}: as large as fits in, size follows the picture */
} oct_fit;

typedef struct oct_preprocess {
    oct_fit fit;
    int height, width; /* the network's input; OCT_FIT_INSIDE: its bounds; OCT_FIT_EDGES: 0 */
    double crop_pct;
    int shortest_edge, longest_edge; /* OCT_FIT_EDGES */
    int size_multiple;               /* OCT_FIT_EDGES: sides are cut to a multiple of this, as the processor does */
    oct_filter filter;
    bool resize, rescale, normalize, pad;
    bool divide;               /* timm: level / 255 in float32; else level * rescale_factor in double, then float32 */
    int pad_height, pad_width; /* with pad: zeros right and below up to this size; 0: none (a single picture) */
    double rescale_factor;     /* 1/255 */
    double mean[3], std[3];
    oct_orientation orientation; /* the reader's default is upright; run --orientation sets it */
} oct_preprocess;

/* From timm's config.json (its pretrained_cfg) and from a preprocessor_config.json. Every key that would change pixels
 * is either followed or refused with its line; unknown image_processor_type or crop_mode is refused by name. */
octet_status oct_preprocess_from_timm(oct_preprocess *preprocess, const oct_document *config);
/* `stem`: the image processor's class is STEM + "ImageProcessor", or its older and newer names; the family says it. */
octet_status oct_preprocess_from_transformers(oct_preprocess *preprocess, const oct_document *config, const char *stem);
/* One line for people ("shortest side to 256 bilinear, centre crop 224 x 224, mean ... std ..."). */
void oct_preprocess_describe(const oct_preprocess *preprocess, oct_text *text);

/* Whether the input's size follows the picture (OCT_FIT_EDGES, OCT_FIT_INSIDE, no resize). */
static inline bool oct_preprocess_follows(const oct_preprocess *preprocess) {
    return preprocess->fit == OCT_FIT_EDGES || preprocess->fit == OCT_FIT_INSIDE || !preprocess->resize;
}

/* The input's height and width for a picture of the given size: the model's own, or by the picture (OCT_FIT_EDGES,
 * OCT_FIT_INSIDE, no resize), with padding. */
octet_status oct_preprocess_size(const oct_preprocess *preprocess, int picture_width, int picture_height, int *height,
                                 int *width);
/* The resized and cropped 8-bit picture, before padding. */
octet_status oct_preprocess_pixels(const oct_preprocess *preprocess, const oct_image *picture, oct_image *pixels);
/* Pixels to float32 NHWC of oct_preprocess_size's height and width, channel `channel_stride` >= 3 floats apart a pixel,
 * padding lanes zero; the same float32 values as the reference's arithmetic (each of 256 levels a channel is computed
 * once, in its order of operations). */
void oct_preprocess_normalize(const oct_preprocess *preprocess, const oct_image *pixels, float *input,
                              int channel_stride);

#endif
