/* SPDX-License-Identifier: Apache-2.0 */
/* Inside data: what the readers share. */
#ifndef OCT_DATA_READ_H
#define OCT_DATA_READ_H

#include "base/arena.h"
#include "base/text.h"
#include "data/set.h"

/* A sample whose picture is a file. */
typedef struct oct_row {
    const char *name, *path; /* in the set's arena */
    int32_t label, width, height;
    int64_t image_id;
    size_t first_truth, truth_count;
    int line;
} oct_row;

typedef struct oct_shards oct_shards;

struct oct_set {
    oct_set_kind kind;
    oct_set_options options; /* names are the caller's while opening; in the arena for shards */
    oct_arena arena;
    const char *order;
    oct_row *rows;
    size_t row_count, row_capacity;
    oct_truth *truths;
    size_t truth_count;
    int64_t *categories; /* ids, rising; in the arena */
    size_t category_count;
    oct_shards *shards;
    int64_t *numbers; /* shards: of the samples to give, in the arena; NULL: all */
    size_t number_count, chosen;
    int64_t read; /* shards: samples read, whether given or passed over */
    size_t passed;
    octet_status failed;
    uint8_t chain[OCT_SHA256_SIZE];
    char **warnings;
    size_t warning_count, warning_capacity;
};

octet_status oct_set_warn(oct_set *set, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A new row, zeroed, label -1; NULL: no memory. */
oct_row *oct_set_add_row(oct_set *set);
/* Whether an index is one of the model's; the caller puts file and line before the fact. */
octet_status oct_set_check_label(const oct_set *set, int64_t label);
/* Whether a name stays inside its folder: not empty, not absolute, no "..". */
bool oct_name_is_inside(const char *name);
/* By its extension, in any case: what is taken for a picture in folders and shards. */
bool oct_is_picture_extension(const char *extension);
const char *oct_extension(const char *name); /* after the last dot of the last part; "" if none */

/* The failure, with the command that converts. */
octet_status oct_refuse_parquet(const char *place);

/* The readers: from a place to rows. */
octet_status oct_labels_open(oct_set *set, const char *directory, const char *file);
octet_status oct_labels_parse(oct_set *set, const char *directory, const char *file, char *text, size_t size);
octet_status oct_folder_open(oct_set *set, const char *directory);
octet_status oct_coco_open(oct_set *set, const char *place);
/* `text` is changed; pictures are looked for in `pictures` or, if the first is there, in `other` (may be NULL); not at
 * all if `pictures` is NULL. */
octet_status oct_coco_parse(oct_set *set, const char *file, const char *pictures, const char *other, char *text,
                            size_t size);
/* Blanks the values of "segmentation" in a JSON text, lines kept, so that masks take no memory. */
void oct_coco_blank_masks(char *text, size_t size);

/* Shards: names first, then a stream. */
bool oct_is_shard_name(const char *name);
octet_status oct_shard_names(oct_set *set, const char *place, const char ***names, size_t *count);
octet_status oct_shard_directory(oct_set *set, const char *directory, const char ***names, size_t *count);
octet_status oct_shards_open(oct_set *set, const char **names, size_t count);
octet_status oct_shards_next(oct_set *set, oct_sample **sample);
void oct_shards_close(oct_shards *shards);

#endif
