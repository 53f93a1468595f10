/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a picture, then the way to a network's input: timm's crop and YOLOS's edges, small. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "image/preprocess.h"

static void require(int condition) {
    if (!condition) abort();
}

static void prepare(const oct_preprocess *preprocess, const oct_image *picture) {
    oct_image pixels;
    int height, width;
    if (oct_preprocess_size(preprocess, picture->width, picture->height, &height, &width) != OCTET_OK) return;
    require(height > 0 && width > 0);
    if (oct_preprocess_pixels(preprocess, picture, &pixels) != OCTET_OK) {
        require(pixels.rgb == NULL);
        return;
    }
    require(pixels.height <= height && pixels.width <= width);
    float *input = oct_alloc((size_t)height * (size_t)width * 4 * sizeof *input);
    require(input != NULL);
    oct_preprocess_normalize(preprocess, &pixels, input, 4);
    for (size_t i = 0; i < (size_t)height * (size_t)width * 4; i++) require(input[i] == input[i]);
    oct_free(input);
    oct_image_free(&pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    oct_preprocess crop = {.fit = OCT_FIT_CROP,
                           .height = 32,
                           .width = 24,
                           .crop_pct = 0.875,
                           .filter = OCT_FILTER_BICUBIC,
                           .resize = true,
                           .rescale = true,
                           .normalize = true,
                           .divide = true,
                           .std = {1, 1, 1}};
    oct_preprocess edges = {.fit = OCT_FIT_EDGES,
                            .shortest_edge = 32,
                            .longest_edge = 64,
                            .size_multiple = 16,
                            .filter = OCT_FILTER_LANCZOS,
                            .resize = true,
                            .rescale = true,
                            .rescale_factor = 0.5,
                            .pad = true,
                            .pad_height = 64,
                            .pad_width = 64};
    int64_t live = oct_alloc_live();
    oct_image image;
    octet_status status = oct_image_decode(&image, "fuzz", data, size, OCT_ORIENTATION_UPRIGHT);
    if (status == OCTET_OK) {
        require(image.rgb != NULL && image.width > 0 && image.height > 0);
        crop.fit = size % 2 == 0 ? OCT_FIT_CROP : OCT_FIT_BORDER;
        if ((int64_t)image.width * image.height < 4000000) { /* larger ones cost time and show nothing new */
            prepare(&crop, &image);
            prepare(&edges, &image);
        }
    } else {
        require(image.rgb == NULL && oct_error_fact()[0] != 0);
    }
    oct_image_free(&image);
    require(oct_alloc_live() == live);
    return 0;
}
