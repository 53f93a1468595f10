/* SPDX-License-Identifier: Apache-2.0 */
#include "eval_results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/figures.h"
#include "eval_print.h"
#include "output.h"
#include "options.h"

typedef struct image_place {
    int64_t id;
    size_t picture;
} image_place;

typedef struct results_state {
    const char *file;
    octet_lab_set *set;
    eval_figures figures;
    image_place *images; /* by rising id */
    size_t strangers;    /* detections of categories that the set has not */
} results_state;

bool is_results_file(const char *place) {
    struct stat facts;
    size_t length = strlen(place);
    return length > 5 && strcmp(place + length - 5, ".json") == 0 && stat(place, &facts) == 0 && S_ISREG(facts.st_mode);
}

static bool no_memory(void) {
    fprintf(stderr, "octet eval: out of memory\n");
    return false;
}

static int by_id(const void *a, const void *b) {
    const image_place *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool read_truths(results_state *state, const char *data) {
    octet_lab_set_options options = OCTET_LAB_SET_OPTIONS_DEFAULT;
    octet_lab_sample *sample = NULL;
    octet_status status;
    options.facts_only = 1;
    if (octet_lab_set_open(data, &options, &state->set) != OCTET_OK) return print_failure("eval") == EXIT_DONE;
    if (octet_lab_set_task(state->set) != OCTET_DETECTION) {
        fprintf(stderr, "octet eval: %s: expected COCO instances beside detections\n", data);
        return false;
    }
    while ((status = octet_lab_set_next(state->set, &sample)) == OCTET_OK && sample != NULL) {
        bool added = eval_add_picture(&state->figures, sample);
        octet_lab_sample_free(&sample);
        if (!added) return no_memory();
    }
    if (status != OCTET_OK) return print_failure("eval") == EXIT_DONE;
    state->images = calloc(state->figures.n, sizeof *state->images);
    if (state->images == NULL) return no_memory();
    for (size_t i = 0; i < state->figures.n; i++)
        state->images[i] = (image_place){state->figures.pictures[i].image_id, i};
    qsort(state->images, state->figures.n, sizeof *state->images, by_id);
    return true;
}

/* ---- detections */

static bool refuse(const results_state *state, size_t index, const char *key, const char *expected,
                   const json_t *found) {
    char *text = found != NULL ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    fprintf(stderr, "octet eval: %s: detection %zu: %s: expected %s, found %.60s\n", state->file, index, key, expected,
            text != NULL ? text : "nothing");
    free(text);
    return false;
}

/* 1.0 is 1. */
static bool read_id(const json_t *value, int64_t *id) {
    if (json_is_integer(value)) {
        *id = json_integer_value(value);
        return true;
    }
    double real = json_is_real(value) ? json_real_value(value) : NAN;
    if (!(fabs(real) <= 0x1p53) || real != floor(real)) return false;
    *id = (int64_t)real;
    return true;
}

static bool read_box(const json_t *value, double box[4]) {
    if (json_array_size(value) != 4) return false;
    for (size_t k = 0; k < 4; k++) {
        const json_t *side = json_array_get(value, k);
        if (!json_is_number(side)) return false;
        box[k] = json_number_value(side);
    }
    return box[2] >= 0 && box[3] >= 0;
}

/* The set's label of a category id; -1: it has none. */
static int32_t label_of(const results_state *state, int64_t id) {
    size_t count;
    const int64_t *ids = octet_lab_set_categories(state->set, &count);
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return (int32_t)i;
    return -1;
}

static bool add_entry(results_state *state, size_t index, const json_t *entry) {
    const json_t *image = json_object_get(entry, "image_id"), *category = json_object_get(entry, "category_id");
    const json_t *box = json_object_get(entry, "bbox"), *score = json_object_get(entry, "score");
    coco_detection made = {0};
    int64_t category_id;
    image_place key = {0, 0};
    if (!json_is_object(entry)) return refuse(state, index, "entry", "a map", entry);
    if (!read_id(image, &key.id)) return refuse(state, index, "image_id", "a whole number", image);
    if (!read_id(category, &category_id)) return refuse(state, index, "category_id", "a whole number", category);
    if (!read_box(box, made.box)) return refuse(state, index, "bbox", "x, y, width, height", box);
    if (!json_is_number(score)) return refuse(state, index, "score", "a number", score);
    const image_place *place = bsearch(&key, state->images, state->figures.n, sizeof key, by_id);
    if (place == NULL) return refuse(state, index, "image_id", "an image of the set", image);
    made.picture = place->picture;
    made.score = json_number_value(score);
    made.label = label_of(state, category_id);
    if (made.label < 0) {
        state->strangers++; /* counts nowhere, as in pycocotools */
        return true;
    }
    return eval_add_detection(&state->figures, &made) || no_memory();
}

static bool read_detections(results_state *state) {
    json_error_t error;
    json_t *all = json_load_file(state->file, JSON_REJECT_DUPLICATES, &error);
    if (all == NULL) {
        fprintf(stderr, "octet eval: %s:%d: %s\n", state->file, error.line, error.text);
        return false;
    }
    bool good = json_is_array(all);
    if (!good) fprintf(stderr, "octet eval: %s: expected a list of detections\n", state->file);
    for (size_t i = 0; good && i < json_array_size(all); i++) good = add_entry(state, i, json_array_get(all, i));
    json_decref(all);
    if (good && state->strangers > 0)
        fprintf(stderr, "octet: warning: %s: %zu detections of categories that the set does not have count nowhere\n",
                state->file, state->strangers);
    return good;
}

int eval_results(const char *file, const char *data, size_t draws, bool json) {
    results_state state = {.file = file, .figures = {.task = OCTET_DETECTION, .draws = draws}};
    bool good = read_truths(&state, data) && read_detections(&state);
    if (good && !json) printf("%s on %s\n", file, data);
    json_t *out = good ? eval_report(&state.figures) : NULL;
    if (good && out == NULL) good = no_memory();
    if (good && !json) print_figures(out);
    if (good && json) {
        json_object_set_new(out, "detections", json_string(file));
        json_object_set_new(out, "data", json_string(data));
        good = print_json(out);
    } else {
        json_decref(out);
    }
    free(state.images);
    eval_figures_free(&state.figures);
    octet_lab_set_close(&state.set);
    return good ? EXIT_DONE : EXIT_BAD;
}
