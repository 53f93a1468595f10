/* SPDX-License-Identifier: Apache-2.0 */
/* octet run: what a model says of pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

typedef struct run_options {
    common_options common;
    int64_t top, batch, height, width;
    double threshold;
    int orientation; /* index into "upright|stored" */
    const char *draw, *dump, *classes, *recipe, *scales;
    bool logits, trace;
} run_options;

typedef struct run_state {
    const run_options *options;
    octet_model *model;
    octet_session *session;
    const char *file; /* the picture that passes now */
    bool failed;      /* something could not be written */
} run_state;

/* ---- JSON */

static json_t *json_floats(const float *values, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, json_float((double)values[i]));
    return list;
}

/* One row as a list, several as a list of lists. */
static json_t *json_rows(const float *values, size_t rows, size_t columns, bool nested) {
    if (!nested) return json_floats(values, columns);
    json_t *list = json_array();
    for (size_t i = 0; i < rows; i++) json_array_append_new(list, json_floats(values + i * columns, columns));
    return list;
}

static json_t *json_top(const octet_class *classes, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "index", json_integer(classes[i].index));
        json_object_set_new(entry, "label", json_text(classes[i].label));
        json_object_set_new(entry, "probability", json_float((double)classes[i].probability));
        json_object_set_new(entry, "logit", json_float((double)classes[i].logit));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *json_detections(const octet_detection *detections, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "index", json_integer(detections[i].index));
        json_object_set_new(entry, "label", json_text(detections[i].label));
        json_object_set_new(entry, "score", json_float((double)detections[i].score));
        json_object_set_new(entry, "box", json_floats(detections[i].box, 4));
        json_array_append_new(list, entry);
    }
    return list;
}

/* ---- printing one result */

static bool print_classes(const run_state *state, const octet_result *result, json_t *object) {
    size_t wanted = (size_t)state->options->top, classes = octet_model_class_count(state->model);
    octet_class *top = calloc(wanted < classes ? wanted : classes, sizeof *top);
    if (top == NULL) return false;
    size_t count = octet_result_top(result, top, wanted < classes ? wanted : classes);
    if (object != NULL) {
        json_object_set_new(object, "top", json_top(top, count));
    } else {
        for (size_t i = 0; i < count; i++) {
            printf("  %6.2f%%  %s  (class %d, logit %.4f)\n", 100.0 * (double)top[i].probability, top[i].label,
                   top[i].index, (double)top[i].logit);
        }
    }
    free(top);
    return true;
}

static bool print_detections(const run_state *state, const octet_result *result, json_t *object) {
    float threshold = (float)state->options->threshold;
    size_t count = octet_result_detections(result, threshold, NULL, 0);
    octet_detection *detections = calloc(count + 1, sizeof *detections);
    if (detections == NULL) return false;
    octet_result_detections(result, threshold, detections, count);
    if (object != NULL) {
        json_object_set_new(object, "detections", json_detections(detections, count));
    } else {
        printf("  %zu detections above %.2f\n", count, state->options->threshold);
        for (size_t i = 0; i < count; i++) {
            const float *box = detections[i].box;
            printf("  %6.2f%%  %-16s [%.1f, %.1f, %.1f, %.1f]\n", 100.0 * (double)detections[i].score,
                   detections[i].label, (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
        }
    }
    free(detections);
    return true;
}

static bool print_result(const run_state *state, const octet_result *result) {
    bool classification = octet_result_task(result) == OCTET_CLASSIFICATION;
    int32_t width, height;
    size_t rows, columns;
    octet_result_picture_size(result, &width, &height);
    json_t *object = NULL;
    if (state->options->common.json) {
        object = json_object();
        json_object_set_new(object, "file", json_text(state->file));
        json_object_set_new(object, "task", json_string(classification ? "classification" : "detection"));
        json_object_set_new(object, "width", json_integer(width));
        json_object_set_new(object, "height", json_integer(height));
    } else {
        printf("%s  %d x %d\n", state->file, width, height);
    }
    if (!(classification ? print_classes(state, result, object) : print_detections(state, result, object))) {
        json_decref(object);
        return false;
    }
    const float *logits = octet_result_logits(result, &rows, &columns);
    if (object != NULL && state->options->logits) {
        json_object_set_new(object, "logits", json_rows(logits, rows, columns, !classification));
        const float *boxes = octet_result_boxes(result, &rows);
        if (boxes != NULL) json_object_set_new(object, "boxes", json_rows(boxes, rows, 4, true));
    } else if (state->options->logits) {
        for (size_t i = 0; i < rows * columns; i++) {
            printf("%s%.9g%s", i % columns == 0 ? "  logits " : " ", (double)logits[i],
                   (i + 1) % columns == 0 ? "\n" : "");
        }
    }
    return object == NULL || print_json(object);
}

/* ---- watching: --trace and --dump */

static size_t element_size(const octet_lab_event *event) {
    return strcmp(event->format, "uint8") == 0 ? 1 : 4;
}

static size_t event_bytes(const octet_lab_event *event) {
    size_t size = event->data != NULL ? element_size(event) : 0;
    for (int i = 0; i < event->rank; i++) size *= (size_t)event->shape[i];
    return size;
}

static void trace_event(const run_state *state, const octet_lab_event *event) {
    FILE *stream = state->options->common.json ? stderr : stdout;
    char shape[96] = "";
    int length = 0;
    for (int i = 0; i < event->rank; i++) {
        length += snprintf(shape + length, sizeof shape - (size_t)length, "%s%lld", i > 0 ? " x " : "",
                           (long long)event->shape[i]);
    }
    fprintf(stream, "%-10s %-32s %-30s %-18s %-6s", event->room, event->source, event->what, shape, event->format);
    if (event->data != NULL) {
        fprintf(stream, " %016llx", (unsigned long long)octet_lab_checksum(event->data, event_bytes(event)));
    } else {
        fprintf(stream, " %16s", "");
    }
    fprintf(stream, " %9.3f ms\n", event->milliseconds);
}

/* The arrays that --dump keeps, by what passes. */
static const char *dump_suffix(const octet_lab_event *event) {
    static const struct {
        const char *what, *suffix;
    } kept[] = {{"decoded pixels", ".pixels.npy"},
                {"resized pixels", ".resized.npy"},
                {"input", ".input.npy"},
                {"output logits", ".logits.npy"},
                {"output boxes", ".boxes.npy"}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (strcmp(event->what, kept[i].what) == 0) return kept[i].suffix;
    }
    return NULL;
}

static void dump_event(run_state *state, const octet_lab_event *event) {
    const char *suffix = dump_suffix(event);
    if (suffix == NULL || event->data == NULL || state->file == NULL) return;
    char *path = output_path(state->options->dump, state->file, suffix);
    bool bytes = element_size(event) == 1;
    if (path == NULL ||
        !write_npy(path, bytes ? "|u1" : "<f4", bytes ? 1 : 4, event->rank, event->shape, event->data)) {
        state->failed = true;
    }
    free(path);
}

static void watch(void *user, const octet_lab_event *event) {
    run_state *state = user;
    if (state->options->trace) trace_event(state, event);
    if (state->options->dump != NULL) dump_event(state, event);
}

/* ---- the pictures */

static bool has_extension(const char *file, const char *extension) {
    size_t length = strlen(file), tail = strlen(extension);
    return length > tail && strcmp(file + length - tail, extension) == 0;
}

static bool draw(const run_state *state, const octet_result *result) {
    bool keeps =
        has_extension(state->file, ".jpg") || has_extension(state->file, ".jpeg") || has_extension(state->file, ".png");
    char *path = output_path(state->options->draw, state->file, keeps ? "" : ".png");
    if (path == NULL) return false;
    octet_orientation orientation = state->options->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    octet_status status = octet_draw(result, state->file, orientation, (float)state->options->threshold, path);
    if (status != OCTET_OK) print_failure("run");
    if (status == OCTET_OK && !state->options->common.json) printf("  drawn: %s\n", path);
    free(path);
    return status == OCTET_OK;
}

static bool run_picture(run_state *state) {
    octet_result *result;
    state->failed = false;
    if (octet_session_run_file(state->session, state->file, &result) != OCTET_OK) {
        print_failure("run");
        return false;
    }
    bool good = print_result(state, result) && !state->failed;
    if (good && state->options->draw != NULL) good = draw(state, result);
    octet_result_free(&result);
    return good;
}

/* Files whose names would land on one drawn or dumped file are refused before anything runs. */
static const char *repeated_name(int count, char **files) {
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(files[i], '/'), *name = slash != NULL ? slash + 1 : files[i];
        for (int j = 0; j < i; j++) {
            const char *other = strrchr(files[j], '/');
            if (strcmp(name, other != NULL ? other + 1 : files[j]) == 0) return name;
        }
    }
    return NULL;
}

static int run_pictures(run_state *state, int count, char **files) {
    int code = EXIT_DONE;
    progress_line shown = progress_start("run", (size_t)count, state->options->common.quiet);
    for (int i = 0; i < count; i++) {
        state->file = files[i];
        if (!run_picture(state)) code = EXIT_BAD;
        progress_update(&shown, (size_t)i + 1);
    }
    progress_end(&shown);
    return code;
}

static bool open_model(run_state *state, const char *place) {
    const run_options *options = state->options;
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    open.threads = (uint32_t)options->common.threads;
    open.height = (int32_t)options->height;
    open.width = (int32_t)options->width;
    open.classes_file = options->classes;
    open.recipe = options->recipe;
    open.scales = options->scales;
    octet_session_options session = OCTET_SESSION_OPTIONS_DEFAULT;
    session.threads = (uint32_t)options->common.threads;
    session.orientation = options->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    return octet_model_open(place, &open, &state->model) == OCTET_OK &&
           octet_session_new(state->model, &session, &state->session) == OCTET_OK;
}

static int run_run(int count, char **words) {
    run_options options = {.top = 5, .threshold = 0.5};
    const option_row rows[] = {
        OPTION_RECIPE(options.recipe, options.scales),
        {OPTION_INT, "--top", "N", "classes to print (default 5)", &options.top, 1, 1000000},
        {OPTION_REAL, "--threshold", "SCORE", "print detections above it (default 0.5)", &options.threshold, 0, 0},
        {OPTION_CHOICE, "--orientation", "upright|stored", "apply EXIF orientation (default) or not",
         &options.orientation, 0, 0},
        {OPTION_TEXT, "--draw", "DIR", "write the pictures with boxes, or classes, drawn on them", &options.draw, 0, 0},
        {OPTION_TEXT, "--dump", "DIR", "write pixels, input and outputs as .npy", &options.dump, 0, 0},
        {OPTION_FLAG, "--logits", NULL, "print the raw outputs too", &options.logits, 0, 0},
        {OPTION_FLAG, "--trace", NULL, "a line a room and step that a picture passes", &options.trace, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_INT, "--height", "PIXELS", "build for this input height (with --width)", &options.height, 0, 1 << 16},
        {OPTION_INT, "--width", "PIXELS", "build for this input width (with --height)", &options.width, 0, 1 << 16},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_run, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left < 2) return usage_error(&verb_run, "expected MODEL and at least one PICTURE, found %d words", left);
    const char *twice = options.draw != NULL || options.dump != NULL ? repeated_name(left - 1, words + 1) : NULL;
    if (twice != NULL) return usage_error(&verb_run, "--draw and --dump: two pictures are called %s", twice);
    if (options.draw != NULL && !make_directory(options.draw)) return EXIT_BAD;
    if (options.dump != NULL && !make_directory(options.dump)) return EXIT_BAD;
    run_state state = {.options = &options};
    if (options.trace || options.dump != NULL) octet_lab_set_watch(watch, &state, options.trace);
    int code = open_model(&state, words[0]) ? run_pictures(&state, left - 1, words + 1) : print_failure("run");
    octet_session_free(&state.session);
    octet_model_close(&state.model);
    return code;
}

const verb_row verb_run = {"run", "MODEL PICTURE...", "classes or boxes of pictures", run_run};
