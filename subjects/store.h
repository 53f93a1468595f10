/* SPDX-License-Identifier: Apache-2.0 */
/* Files for drawn pictures. Every function prints what went wrong on standard error and returns false. */
#ifndef SUBJECTS_STORE_H
#define SUBJECTS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "draw.h"

bool store_ppm(const char *path, const uint8_t *rgb, int width, int height);

/* Baseline, 4:2:0, quality 90. */
bool store_jpeg(const char *path, const uint8_t *rgb, int width, int height);

/* What is known of one stored picture. */
struct record {
    int width, height;
    struct subject_scene scene;
};

/* `labels.txt` in directory: a line a picture, name and class index. */
bool store_labels(const char *directory, const char *suffix, uint64_t first, uint64_t count,
                  const struct record *records);

/* `classes.txt` in directory: a name a line. */
bool store_classes(const char *directory, int classes);

/* `instances.json` in directory, in COCO's layout; ids from 1. */
bool store_coco(const char *directory, const char *suffix, uint64_t first, uint64_t count,
                const struct record *records);

#endif
