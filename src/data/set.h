/* SPDX-License-Identifier: Apache-2.0 */
/* A SET: pictures with what is true of them, read one at a time. What a place is, is told by what lies there:
 *
 *     a directory with labels.txt        a line a picture: name, space, class index from 0; the last space splits
 *     another directory                  an image folder: a directory a class (folder.c says what counts)
 *     *.tar, *.tar.gz, a list of them    WebDataset shards (shards.c says what a sample is); a list is parted by
 * commas, or (or a directory that holds them)   written with braces: train-{00..63}.tar, {a,b}.tar
 *     *.json[:PICTURES]                  COCO instances: boxes. PICTURES is by default the JSON's folder, else the
 * folder of its name without "instances_"
 *
 * Samples come in one order, always: of lines, of names directory by directory in byte order, of members, of the list
 * "images". Memory is bounded by the largest picture and, but for shards, by the list of names. */
#ifndef OCT_DATA_SET_H
#define OCT_DATA_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"

#define OCT_SET_PICTURE_LIMIT ((size_t)256 << 20) /* bytes of an encoded picture */

typedef enum oct_set_kind { OCT_SET_LABEL_LIST, OCT_SET_IMAGE_FOLDER, OCT_SET_SHARDS, OCT_SET_COCO } oct_set_kind;

typedef struct oct_set oct_set;

/* One box that is there. */
typedef struct oct_truth {
    int64_t id;    /* of the annotation */
    int32_t label; /* class index */
    double box[4]; /* x, y, width, height in pixels */
    double area;   /* as the file says, else width * height */
    bool crowd;    /* a region of many: neither found nor missed */
} oct_truth;

typedef struct oct_sample {
    char *name;    /* unique in the set: relative path, or SHARD/KEY */
    char *path;    /* of its file; NULL: from a shard */
    uint8_t *data; /* the encoded picture */
    size_t size;
    int32_t label;           /* class index; -1 where there are boxes */
    int64_t image_id;        /* COCO's, else the sample's number from 0 */
    int32_t width, height;   /* as the JSON says; 0: it does not */
    const oct_truth *truths; /* live as long as the set */
    size_t truth_count;
} oct_sample;

typedef struct oct_set_options {
    const char *const *names; /* the model's class names, by index; NULL: indices are not held against a model */
    size_t name_count;
    bool names_decide; /* the user gave the list: each class directory must be named in it */
    bool facts_only;   /* pictures are neither looked for nor read; not for shards */
    /* A part: the samples of these numbers, from 0 and rising, are the set; the others are passed over. NULL: all. */
    const int64_t *numbers;
    size_t number_count;
} oct_set_options;

/* Opens and checks what can be checked without reading pictures: every line, every annotation, that each picture is
 * there. `options` may be NULL. Caller closes. */
octet_status oct_set_open(oct_set **set, const char *place, const oct_set_options *options);
void oct_set_close(oct_set *set); /* NULL is fine */

/* Whether a place, by its name, would be a set of boxes. */
bool oct_set_names_boxes(const char *place);
oct_set_kind oct_set_kind_of(const oct_set *set);
bool oct_set_has_boxes(const oct_set *set);
int64_t oct_set_count(const oct_set *set); /* samples in all; -1: unknown before the end */
/* How class indices came about: "labels.txt", "class directories by name", "class directories in byte order", "cls",
 * "categories by name", "categories by id". */
const char *oct_set_order(const oct_set *set);
/* COCO's category ids: of a set opened without names, label i is the i-th. */
const int64_t *oct_set_categories(const oct_set *set, size_t *count);
/* Things a person should know (files left out, an annotation with id 0); NULL past the last. */
const char *oct_set_warning(const oct_set *set, size_t index);

/* The next sample, the caller's to free; NULL with OCTET_OK: there are no more. After a failure the set stays failed.
 */
octet_status oct_set_next(oct_set *set, oct_sample **sample);
void oct_sample_free(oct_sample *sample); /* NULL is fine */

/* The fingerprint of the samples passed so far, as 64 digits: f(0) = SHA-256("octet set 1"), and for each sample in
 * order f(n) = SHA-256(f(n-1), SHA-256(name, 0 byte, label, truths), SHA-256(the encoded picture)) label is an int64; a
 * truth is id, label, 4 of box, area, crowd: 2 int64, 5 doubles, 1 int64; all little-endian. */
void oct_set_fingerprint(const oct_set *set, char hex[OCT_SHA256_HEX]);

#endif
