/* SPDX-License-Identifier: Apache-2.0 */
#include "data/set.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/file.h"
#include "data/read.h"

/* ---- what the readers share */

octet_status oct_set_warn(oct_set *set, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!oct_grow((void **)&set->warnings, sizeof *set->warnings, set->warning_count + 1, &set->warning_capacity))
        return oct_fail_memory();
    char *kept = oct_arena_strdup(&set->arena, text);
    if (kept == NULL) return oct_fail_memory();
    set->warnings[set->warning_count++] = kept;
    return OCTET_OK;
}

oct_row *oct_set_add_row(oct_set *set) {
    if (!oct_grow((void **)&set->rows, sizeof *set->rows, set->row_count + 1, &set->row_capacity)) return NULL;
    oct_row *row = &set->rows[set->row_count];
    *row = (oct_row){.label = -1, .image_id = (int64_t)set->row_count};
    set->row_count++;
    return row;
}

octet_status oct_set_check_label(const oct_set *set, int64_t label) {
    int64_t classes = set->options.names != NULL ? (int64_t)set->options.name_count : (int64_t)INT32_MAX;
    if (label >= 0 && label < classes) return OCTET_OK;
    return oct_fail(OCTET_MISMATCH, "expected a class index of 0 to %lld, found %lld", (long long)classes - 1,
                    (long long)label);
}

bool oct_name_is_inside(const char *name) {
    if (name[0] == '\0' || name[0] == '/') return false;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return false;
    }
    return true;
}

const char *oct_extension(const char *name) {
    const char *base = oct_path_base(name), *dot = strrchr(base, '.');
    return dot != NULL && dot != base ? dot + 1 : "";
}

/* What octet decodes, and TIFF: data sets hold it, and a set without those pictures would be another set, so reading
 * one fails by name. */
bool oct_is_picture_extension(const char *extension) {
    static const char *const known[] = {"jpg", "jpeg", "png", "webp", "bmp", "dib",
                                        "ppm", "pgm",  "pbm", "pnm",  "tif", "tiff"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(extension, known[i]) == 0) return true;
    return false;
}

/* ---- opening */

octet_status oct_refuse_parquet(const char *place) {
    oct_fail(OCTET_UNSUPPORTED, "%s: Parquet is not read", place);
    oct_detail(
        "this makes it a directory of pictures with labels.txt: mkdir -p SET && python3 -c \"import sys, "
        "pyarrow.parquet as q; [(open(f'SET/{i}.jpg', 'wb').write(r['image']['bytes']), print(f'{i}.jpg', "
        "r['label'])) for i, r in enumerate(q.read_table(sys.argv[1:]).to_pylist())]\" FILE.parquet >SET/labels.txt");
    return oct_hint("columns may be called other than image and label: see the data set's page");
}

static bool is_json(const char *place) {
    return oct_ends_with(place, ".json") || strstr(place, ".json:") != NULL;
}

static octet_status open_directory(oct_set *set, const char *place) {
    char *list = oct_path_join(place, "labels.txt");
    if (list == NULL) return oct_fail_memory();
    bool listed = oct_file_exists(list);
    octet_status status = listed ? oct_labels_open(set, place, list) : OCTET_OK;
    oct_free(list);
    if (listed) return status;
    const char **names;
    size_t count;
    OCT_TRY(oct_shard_directory(set, place, &names, &count));
    return count > 0 ? oct_shards_open(set, names, count) : oct_folder_open(set, place);
}

bool oct_set_names_boxes(const char *place) {
    return !oct_file_is_directory(place) && is_json(place);
}

static octet_status open_place(oct_set *set, const char *place) {
    if (oct_file_is_directory(place)) return open_directory(set, place);
    if (oct_ends_with(place, ".parquet")) return oct_refuse_parquet(place);
    if (oct_set_names_boxes(place)) return oct_coco_open(set, place);
    if (oct_is_shard_name(place)) {
        const char **names;
        size_t count;
        OCT_TRY(oct_shard_names(set, place, &names, &count));
        return oct_shards_open(set, names, count);
    }
    if (!oct_file_exists(place)) return oct_fail(OCTET_NOT_FOUND, "%s: no such data set", place);
    oct_fail(OCTET_UNSUPPORTED, "%s: not a data set that octet knows", place);
    return oct_hint(
        "a directory with labels.txt, a directory of class directories, .tar shards, or COCO's instances.json");
}

/* ---- a part of a set */

static octet_status check_numbers(const oct_set_options *options, const char *place, int64_t end) {
    for (size_t i = 0; i < options->number_count; i++) {
        const int64_t number = options->numbers[i], least = i > 0 ? options->numbers[i - 1] + 1 : 0;
        if (number < least || number >= end)
            return oct_fail(OCTET_INVALID_ARGUMENT,
                            "%s: part of a set: expected sample numbers that rise, %lld to %lld here, found %lld",
                            place, (long long)least, (long long)end - 1, (long long)number);
    }
    return OCTET_OK;
}

/* Rows are picked now, samples of shards as they come. */
static octet_status take_part(oct_set *set, const char *place) {
    const oct_set_options *options = &set->options;
    if (options->numbers == NULL) return OCTET_OK;
    const bool stream = set->kind == OCT_SET_SHARDS;
    OCT_TRY(check_numbers(options, place, stream ? INT64_MAX : (int64_t)set->row_count));
    if (stream) {
        set->numbers = oct_arena_alloc(&set->arena, (options->number_count + 1) * sizeof *set->numbers);
        if (set->numbers == NULL) return oct_fail_memory();
        memcpy(set->numbers, options->numbers, options->number_count * sizeof *set->numbers);
        set->number_count = options->number_count;
        return OCTET_OK;
    }
    for (size_t i = 0; i < options->number_count; i++) set->rows[i] = set->rows[options->numbers[i]];
    set->row_count = options->number_count;
    return OCTET_OK;
}

static octet_status next_of_shards(oct_set *set, oct_sample **sample) {
    if (set->numbers == NULL) return oct_shards_next(set, sample);
    if (set->chosen == set->number_count) return OCTET_OK;
    for (;;) {
        OCT_TRY(oct_shards_next(set, sample));
        if (*sample == NULL)
            return oct_fail(OCTET_INVALID_ARGUMENT, "part of a set: expected sample %lld, found %lld samples",
                            (long long)set->numbers[set->chosen], (long long)set->read);
        if (set->read++ == set->numbers[set->chosen]) break;
        oct_sample_free(*sample);
        *sample = NULL;
    }
    set->chosen++;
    return OCTET_OK;
}

octet_status oct_set_open(oct_set **set, const char *place, const oct_set_options *options) {
    *set = NULL;
    oct_set *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    if (options != NULL) made->options = *options;
    octet_status status = oct_sha256_of("octet set 1", strlen("octet set 1"), made->chain);
    if (status == OCTET_OK) status = open_place(made, place);
    if (status == OCTET_OK && made->kind != OCT_SET_SHARDS && made->row_count == 0)
        status = oct_fail(OCTET_INVALID_ARGUMENT, "%s: no pictures in it", place);
    if (status == OCTET_OK) status = take_part(made, place);
    if (status != OCTET_OK) {
        oct_set_close(made);
        return status;
    }
    made->options.names = NULL; /* the caller's; shards keep the count */
    made->options.numbers = NULL;
    *set = made;
    return OCTET_OK;
}

void oct_set_close(oct_set *set) {
    if (set == NULL) return;
    oct_shards_close(set->shards);
    oct_free(set->rows);
    oct_free(set->truths);
    oct_free(set->warnings);
    oct_arena_free(&set->arena);
    oct_free(set);
}

/* ---- facts */

oct_set_kind oct_set_kind_of(const oct_set *set) {
    return set->kind;
}

bool oct_set_has_boxes(const oct_set *set) {
    return set->kind == OCT_SET_COCO;
}

int64_t oct_set_count(const oct_set *set) {
    if (set->kind != OCT_SET_SHARDS) return (int64_t)set->row_count;
    return set->numbers != NULL ? (int64_t)set->number_count : -1;
}

const char *oct_set_order(const oct_set *set) {
    return set->order;
}

const int64_t *oct_set_categories(const oct_set *set, size_t *count) {
    *count = set->category_count;
    return set->categories;
}

const char *oct_set_warning(const oct_set *set, size_t index) {
    return index < set->warning_count ? set->warnings[index] : NULL;
}

void oct_set_fingerprint(const oct_set *set, char hex[OCT_SHA256_HEX]) {
    oct_sha256_hex(set->chain, hex);
}

/* ---- samples */

void oct_sample_free(oct_sample *sample) {
    if (sample == NULL) return;
    oct_free(sample->name);
    oct_free(sample->path);
    oct_free(sample->data);
    oct_free(sample);
}

static octet_status next_row(oct_set *set, oct_sample **sample) {
    if (set->passed == set->row_count) return OCTET_OK;
    const oct_row *row = &set->rows[set->passed];
    oct_sample *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->name = oct_strdup(row->name);
    made->path = oct_strdup(row->path);
    made->label = row->label;
    made->image_id = row->image_id;
    made->width = row->width;
    made->height = row->height;
    made->truths = set->truths != NULL ? set->truths + row->first_truth : NULL;
    made->truth_count = row->truth_count;
    octet_status status = made->name == NULL || made->path == NULL ? oct_fail_memory() : OCTET_OK;
    if (status == OCTET_OK && !set->options.facts_only)
        status = oct_file_read(row->path, OCT_SET_PICTURE_LIMIT, &made->data, &made->size);
    if (status != OCTET_OK) {
        oct_sample_free(made);
        return status;
    }
    *sample = made;
    return OCTET_OK;
}

static octet_status extend_chain(oct_set *set, const oct_sample *sample) {
    oct_text facts = {0};
    uint8_t joined[3 * OCT_SHA256_SIZE];
    memcpy(joined, set->chain, OCT_SHA256_SIZE);
    oct_text_append(&facts, sample->name, strlen(sample->name) + 1);
    oct_put_i64(&facts, sample->label);
    for (size_t i = 0; i < sample->truth_count; i++) {
        const oct_truth *truth = &sample->truths[i];
        oct_put_i64(&facts, truth->id);
        oct_put_i64(&facts, truth->label);
        for (int k = 0; k < 4; k++) oct_put_f64(&facts, truth->box[k]);
        oct_put_f64(&facts, truth->area);
        oct_put_i64(&facts, truth->crowd);
    }
    octet_status status =
        facts.failed ? oct_fail_memory() : oct_sha256_of(facts.data, facts.length, joined + OCT_SHA256_SIZE);
    oct_text_free(&facts);
    OCT_TRY(status);
    OCT_TRY(oct_sha256_of(sample->data, sample->size, joined + 2 * OCT_SHA256_SIZE));
    return oct_sha256_of(joined, sizeof joined, set->chain);
}

octet_status oct_set_next(oct_set *set, oct_sample **sample) {
    *sample = NULL;
    if (set->failed != OCTET_OK) return oct_fail(set->failed, "the data set could not be read any further");
    octet_status status = set->kind == OCT_SET_SHARDS ? next_of_shards(set, sample) : next_row(set, sample);
    if (status == OCTET_OK && *sample != NULL) {
        status = extend_chain(set, *sample);
        set->passed++;
    }
    if (status == OCTET_OK) return OCTET_OK;
    oct_sample_free(*sample);
    *sample = NULL;
    set->failed = status;
    return status;
}
