/* SPDX-License-Identifier: Apache-2.0 */
/* A study's engine over octet's public API: what comes of models, pictures and recipes. Times are in engine_time.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "eval/evaluate.h"
#include "eval/keep.h"
#include "eval/stress.h"
#include "study/engine_octet.h"

#define RECIPE_BYTES ((size_t)1 << 20)

octet_status engine_fail(octet_status status) {
    return oct_fail(status, "%s", octet_error_text());
}

octet_orientation engine_orientation(const study_octet *octet) {
    return strcmp(octet->study->orientation, "stored") == 0 ? OCTET_STORED : OCTET_UPRIGHT;
}

/* ---- models */

octet_status engine_open(const study_octet *octet, const study_subject *subject, int64_t batch, uint32_t threads,
                         engine_side *side) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options session = OCTET_SESSION_OPTIONS_DEFAULT;
    *side = (engine_side){0};
    open.threads = session.threads = threads;
    open.batch = batch;
    open.classes_file = octet->study->classes;
    open.scales = subject->scales;
    const study_variant *v = subject->variant;
    open.recipe = v->recipe_path != NULL ? v->recipe_path : v->recipe;
    session.orientation = engine_orientation(octet);
    octet_status status = octet_model_open(octet->study->model, &open, &side->model);
    if (status == OCTET_OK) status = octet_session_new(side->model, &session, &side->session);
    if (status == OCTET_OK) return OCTET_OK;
    engine_close(side);
    (void)engine_fail(status);
    return oct_error_prefix("variant %s", v->name);
}

void engine_close(engine_side *side) {
    octet_session_free(&side->session);
    octet_model_close(&side->model);
}

/* The model in float32, for what does not depend on a recipe. */
static octet_status base_model(study_octet *octet) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    if (octet->model != NULL) return OCTET_OK;
    open.threads = octet->threads;
    open.classes_file = octet->study->classes;
    octet_status status = octet_model_open(octet->study->model, &open, &octet->model);
    return status == OCTET_OK ? OCTET_OK : engine_fail(status);
}

void study_octet_close(study_octet *octet) {
    octet_model_close(&octet->model);
}

static octet_status get_environment(void *user, json_t **body) {
    (void)user;
    struct utsname system;
    char *machine = NULL;
    *body = NULL;
    octet_status status = octet_lab_machine(&machine);
    if (status != OCTET_OK) return engine_fail(status);
    json_t *object = json_loads(machine, 0, NULL);
    octet_free(machine);
    if (object == NULL || uname(&system) != 0) {
        json_decref(object);
        return oct_fail(OCTET_INTERNAL, "the machine cannot be described");
    }
    *body = json_pack("{s:s, s:s, s:o, s:s, s:s}", "octet", octet_version(), "device", "cpu", "machine", object,
                      "system", system.sysname, "release", system.release);
    return *body != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status get_model(void *user, json_t **body, octet_task *task) {
    study_octet *octet = user;
    *body = NULL;
    OCT_TRY(base_model(octet));
    *task = octet_model_task(octet->model);
    *body = json_pack("{s:s, s:s, s:s}", "kind", "model", "name", octet_model_name(octet->model), "sha256",
                      octet_model_fingerprint(octet->model));
    return *body != NULL ? OCTET_OK : oct_fail_memory();
}

/* A file's text, or a built-in recipe's. */
static octet_status recipe_text(study_octet *octet, const study_variant *variant, char **text) {
    *text = NULL;
    if (variant->recipe_path != NULL) {
        uint8_t *data;
        size_t size;
        OCT_TRY(oct_file_read(variant->recipe_path, RECIPE_BYTES, &data, &size));
        *text = strdup((const char *)data);
        oct_free(data);
    } else {
        char *own;
        octet_status status = octet_lab_recipe_text(octet->model, variant->recipe, &own);
        if (status != OCTET_OK) return engine_fail(status);
        *text = strdup(own);
        octet_free(own);
    }
    return *text != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status get_recipe(void *user, const study_variant *variant, char **text, bool *needs_scales) {
    study_octet *octet = user;
    int needs = 0;
    OCT_TRY(base_model(octet));
    OCT_TRY(recipe_text(octet, variant, text));
    octet_status status = octet_lab_recipe_needs_pictures(octet->model, variant->recipe, *text, &needs);
    *needs_scales = needs != 0;
    if (status == OCTET_OK) return OCTET_OK;
    free(*text);
    *text = NULL;
    return engine_fail(status);
}

/* ---- pictures */

static octet_status open_set(study_octet *octet, const char *place, const study_part *part, octet_lab_set **set) {
    octet_lab_set_options options = OCTET_LAB_SET_OPTIONS_DEFAULT;
    OCT_TRY(base_model(octet));
    options.model = octet->model;
    options.classes_file = octet->study->classes;
    if (part != NULL) {
        options.numbers = part->numbers;
        options.number_count = part->count;
    }
    octet_status status = octet_lab_set_open(place, &options, set);
    if (status != OCTET_OK) return engine_fail(status);
    if (octet_lab_set_task(*set) == octet_model_task(octet->model)) return OCTET_OK;
    octet_lab_set_close(set);
    return oct_fail(OCTET_MISMATCH, "%s: is of another task than the model", place);
}

static octet_status list_picture(const octet_lab_sample *sample, study_listing *out) {
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX];
    OCT_TRY(oct_sha256_of(sample->data, sample->size, digest));
    oct_sha256_hex(digest, hex);
    return study_listing_add(out, sample->name, hex, sample->label) ? OCTET_OK : oct_fail_memory();
}

static octet_status list_pictures(void *user, const char *place, study_listing *out) {
    octet_lab_set *set;
    octet_lab_sample *sample = NULL;
    *out = (study_listing){0};
    OCT_TRY(open_set(user, place, NULL, &set));
    octet_status status = OCTET_OK;
    do {
        status = octet_lab_set_next(set, &sample);
        if (status != OCTET_OK)
            status = engine_fail(status);
        else if (sample != NULL)
            status = list_picture(sample, out);
        if (sample == NULL) break;
        octet_lab_sample_free(&sample);
    } while (status == OCTET_OK);
    if (status == OCTET_OK)
        (void)snprintf(out->fingerprint, sizeof out->fingerprint, "%s", octet_lab_set_fingerprint(set));
    octet_lab_set_close(&set);
    if (status != OCTET_OK) study_listing_free(out);
    return status;
}

typedef struct stopper {
    bool (*stop)(void *user);
    void *user;
} stopper;

static int on_calibrated(void *user, const octet_lab_calibrate_event *event) {
    const stopper *s = user;
    (void)event;
    return s->stop != NULL && s->stop(s->user);
}

static octet_status calibrate(void *user, const study_variant *variant, const study_part *part, const char *output,
                              bool (*stop)(void *), void *stop_user) {
    study_octet *octet = user;
    octet_lab_calibrate_options options = OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT;
    stopper s = {stop, stop_user};
    options.recipe = variant->recipe_path != NULL ? variant->recipe_path : variant->recipe;
    options.data = part->place;
    options.threads = octet->threads;
    options.orientation = engine_orientation(octet);
    options.classes_file = octet->study->classes;
    options.numbers = part->numbers;
    options.number_count = part->count;
    octet_status status = octet_lab_calibrate(octet->study->model, &options, on_calibrated, &s, output);
    return status == OCTET_OK ? OCTET_OK : engine_fail(status);
}

/* ---- evaluation */

typedef struct evaluating {
    const study_evaluation *wanted;
    evaluate_side *sides;
    json_t **records;
} evaluating;

static bool on_picture(void *user, const octet_lab_sample *sample, json_t **lines) {
    evaluating *e = user;
    (void)sample;
    (void)lines;
    for (size_t s = 0; s < e->wanted->tested_count; s++) e->records[s] = eval_keep(&e->sides[s].figures);
    return e->wanted->picture(e->wanted->user, e->records);
}

static octet_status end_status(evaluate_end end, const evaluation *e) {
    switch (end) {
    case EVALUATE_DONE:
        return OCTET_OK;
    case EVALUATE_STOPPED:
        return oct_fail(OCTET_CANCELLED, "stopped");
    case EVALUATE_NO_MEMORY:
        return oct_fail_memory();
    default:
        break;
    }
    (void)oct_fail(OCTET_BAD_FORMAT, "%s", octet_error_text());
    return e->failed[0] != '\0' ? oct_error_prefix("%s", e->failed) : OCTET_BAD_FORMAT;
}

static octet_status run_evaluation(study_octet *octet, const study_evaluation *wanted, engine_side *models,
                                   evaluating *state) {
    evaluation e = {.sides = state->sides,
                    .side_count = wanted->tested_count,
                    .batch = (size_t)wanted->batch,
                    .after = on_picture,
                    .user = state};
    engine_side reference;
    OCT_TRY(engine_open(octet, wanted->reference, wanted->batch, octet->threads, &reference));
    octet_status status = OCTET_OK;
    for (size_t s = 0; status == OCTET_OK && s < wanted->tested_count; s++) {
        status = engine_open(octet, &wanted->tested[s], wanted->batch, octet->threads, &models[s]);
        state->sides[s].session = models[s].session;
        state->sides[s].figures = (eval_figures){
            .task = octet_model_task(reference.model), .with_reference = true, .threshold = wanted->threshold};
    }
    if (status == OCTET_OK) status = open_set(octet, wanted->part.place, &wanted->part, &e.set);
    if (status == OCTET_OK) {
        e.reference = reference.session;
        status = end_status(evaluate(&e), &e);
    }
    octet_lab_set_close(&e.set);
    engine_close(&reference);
    return status;
}

static octet_status evaluate_part(void *user, const study_evaluation *wanted) {
    engine_side *models = calloc(wanted->tested_count, sizeof *models);
    evaluating state = {.wanted = wanted,
                        .sides = calloc(wanted->tested_count, sizeof *state.sides),
                        .records = calloc(wanted->tested_count, sizeof(json_t *))};
    octet_status status = models != NULL && state.sides != NULL && state.records != NULL
                              ? run_evaluation(user, wanted, models, &state)
                              : oct_fail_memory();
    for (size_t s = 0; s < wanted->tested_count; s++) {
        if (models != NULL) engine_close(&models[s]);
        if (state.sides != NULL) eval_figures_free(&state.sides[s].figures);
    }
    free(models);
    free(state.sides);
    free(state.records);
    return status;
}

/* ---- stress inputs, sizes */

static octet_status run_stress(void *user, const study_subject *subject, json_t **counts) {
    study_octet *octet = user;
    engine_side side;
    int32_t height, width;
    int nans = 0, infinities = 0, beyond = 0; /* beyond: what fp16 cannot hold gave something that is not finite */
    *counts = NULL;
    OCT_TRY(engine_open(octet, subject, 1, octet->threads, &side));
    octet_model_input_size(side.model, &height, &width);
    float *buffer = malloc((size_t)height * (size_t)width * 3 * sizeof *buffer);
    octet_status status = buffer != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t i = 0; status == OCTET_OK && i < stress_count(); i++) {
        stress_outcome outcome;
        status = stress_run(side.session, i, buffer, height, width, &outcome);
        if (status != OCTET_OK) status = engine_fail(status);
        const bool outside = stress_is_beyond_fp16(i), odd = outcome.nans > 0 || outcome.infinities > 0;
        nans += outcome.nans > 0 && !outside;
        infinities += outcome.infinities > 0 && !outside;
        beyond += odd && outside;
    }
    free(buffer);
    engine_close(&side);
    if (status != OCTET_OK) return status;
    *counts = json_pack("{s:i, s:i, s:i, s:i}", "stress_nan", nans, "stress_infinite", infinities, "stress_beyond_fp16",
                        beyond, "stress_inputs", (int)stress_count());
    return *counts != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status get_size(void *user, const study_subject *subject, json_t **sizes) {
    study_octet *octet = user;
    engine_side side;
    octet_lab_figures f = {.struct_size = sizeof f};
    *sizes = NULL;
    OCT_TRY(engine_open(octet, subject, 1, octet->threads, &side));
    octet_status status = octet_lab_get_figures(side.model, &f);
    if (status != OCTET_OK) status = engine_fail(status);
    engine_close(&side);
    if (status != OCTET_OK) return status;
    *sizes = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "parameters", (json_int_t)f.parameters, "weight_bytes",
                       (json_int_t)f.weight_bytes, "packed_bytes", (json_int_t)f.packed_bytes, "arena_bytes",
                       (json_int_t)f.arena_bytes, "flops", (json_int_t)f.flops, "steps", (json_int_t)f.steps,
                       "unfused_quantize", (json_int_t)f.unfused_quantize);
    return *sizes != NULL ? OCTET_OK : oct_fail_memory();
}

/* ---- premerge cases */

static octet_status run_picture(study_octet *octet, const study_subject *subject, const char *picture,
                                engine_side *side, octet_result **result) {
    *result = NULL;
    OCT_TRY(engine_open(octet, subject, 1, octet->threads, side));
    octet_status status = octet_session_run_file(side->session, picture, result);
    return status == OCTET_OK ? OCTET_OK : engine_fail(status);
}

/* Of the probability of the reference's best class. */
static double class_drift(const octet_result *tested, const octet_result *reference) {
    octet_class best, found = {.probability = NAN};
    size_t rows, classes;
    if (octet_result_logits(tested, &rows, &classes) == NULL || octet_result_top(reference, &best, 1) == 0) return NAN;
    octet_class *all = calloc(classes, sizeof *all);
    size_t count = all != NULL ? octet_result_top(tested, all, classes) : 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].index == best.index) found = all[i];
    free(all);
    return fabs((double)found.probability - (double)best.probability);
}

static void to_size(const octet_detection *detection, double box[4]) {
    for (int i = 0; i < 2; i++) {
        box[i] = (double)detection->box[i];
        box[2 + i] = (double)detection->box[2 + i] - box[i];
    }
}

/* The score's change of the best match of one detection; 1 if it has none. */
static double match_drift(const octet_detection *one, const octet_detection *others, size_t count) {
    double own[4], other[4], best = AGREE_IOU, drift = 1.0;
    to_size(one, own);
    for (size_t i = 0; i < count; i++) {
        if (others[i].index != one->index) continue;
        to_size(&others[i], other);
        double iou = box_iou(own, other, false);
        if (!(iou >= best)) continue;
        best = iou;
        drift = fabs((double)others[i].score - (double)one->score);
    }
    return drift;
}

/* The largest, of both sides' detections. */
static double detection_drift(const octet_result *tested, const octet_result *reference, float threshold) {
    size_t n = octet_result_detections(tested, threshold, NULL, 0);
    size_t m = octet_result_detections(reference, threshold, NULL, 0);
    octet_detection *a = calloc(n + 1, sizeof *a), *b = calloc(m + 1, sizeof *b);
    double worst = a != NULL && b != NULL ? 0.0 : NAN;
    if (a != NULL && b != NULL) {
        octet_result_detections(tested, threshold, a, n);
        octet_result_detections(reference, threshold, b, m);
        for (size_t i = 0; i < n; i++) worst = fmax(worst, match_drift(&a[i], b, m));
        for (size_t i = 0; i < m; i++) worst = fmax(worst, match_drift(&b[i], a, n));
    }
    free(a);
    free(b);
    return worst;
}

static octet_status run_premerge(void *user, const study_subject *subject, const study_subject *reference,
                                 const char *picture, double threshold, double *drift) {
    engine_side sides[2] = {{0}};
    octet_result *tested = NULL, *wanted = NULL;
    octet_status status = run_picture(user, subject, picture, &sides[0], &tested);
    if (status == OCTET_OK) status = run_picture(user, reference, picture, &sides[1], &wanted);
    if (status == OCTET_OK)
        *drift = octet_result_task(tested) == OCTET_CLASSIFICATION ? class_drift(tested, wanted)
                                                                   : detection_drift(tested, wanted, (float)threshold);
    octet_result_free(&tested);
    octet_result_free(&wanted);
    engine_close(&sides[0]);
    engine_close(&sides[1]);
    return status;
}

study_engine study_engine_octet(study_octet *octet) {
    return (study_engine){.user = octet,
                          .environment = get_environment,
                          .model = get_model,
                          .recipe = get_recipe,
                          .list = list_pictures,
                          .calibrate = calibrate,
                          .evaluate = evaluate_part,
                          .race = engine_race,
                          .stress = run_stress,
                          .premerge = run_premerge,
                          .size = get_size};
}
