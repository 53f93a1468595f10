/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a study but the evaluations: scales, sizes, stress inputs, premerge cases, times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "eval/json.h"
#include "eval/statistics.h"
#include "study/run_internal.h"

#define SCALES_LIMIT ((size_t)1 << 30)
#define DRAWS 10000
#define SEED 1

/* ---- results */

static const char *kind_words(study_figure_kind kind) {
    static const char *const words[] = {"proportion", "rate", "change", "mean", "count", "size", "ratio"};
    return words[kind];
}

octet_status running_figure(running *r, const study_task *task, const char *variant, const char *name, double value,
                            json_t *extra) {
    const study_figure *known = study_find_figure(name);
    json_t *body = json_pack("{s:s, s:s, s:s, s:o, s:s}", "run", task->run, "variant", variant, "name", name, "value",
                             json_float(value), "kind", known != NULL ? kind_words(known->kind) : "statistic");
    if (body == NULL) {
        json_decref(extra);
        return oct_fail_memory();
    }
    json_t *set = json_object_get(task->body, "set");
    if (set != NULL) json_object_set(body, "set", set);
    if (extra != NULL) json_object_update(body, extra);
    json_decref(extra);
    return evidence_add(r->evidence, EVIDENCE_FIGURE, body, NULL);
}

octet_status running_begin_result(running *r, const study_task *task) {
    OCT_TRY(evidence_begin(r->evidence));
    return evidence_add(r->evidence, EVIDENCE_RUN, json_incref(task->body), NULL);
}

octet_status running_end_result(running *r, study_task *task, octet_status status) {
    if (status == OCTET_OK) status = evidence_drop_kept(r->evidence, task->run);
    if (status == OCTET_OK) status = evidence_commit(r->evidence);
    if (status != OCTET_OK) evidence_rollback(r->evidence);
    task->done = status == OCTET_OK;
    return status;
}

/* ---- scales */

static octet_status hash_file(const char *path, char hex[OCT_SHA256_HEX], size_t *size) {
    uint8_t *data = NULL, digest[OCT_SHA256_SIZE];
    OCT_TRY(oct_file_read(path, SCALES_LIMIT, &data, size));
    octet_status status = oct_sha256_of(data, *size, digest);
    oct_free(data);
    if (status == OCTET_OK) oct_sha256_hex(digest, hex);
    return status;
}

static octet_status make_scales(running *r, size_t variant) {
    const running_variant *v = &r->variants[variant];
    OCT_TRY(oct_make_directories(r->options->scales));
    return r->engine->calibrate(r->engine->user, v->variant, &r->sets[ROLE_CALIBRATE].part, v->scales_path,
                                r->options->stop, r->options->user);
}

static octet_status scales_artifact(const running_variant *v, json_t **body) {
    char hex[OCT_SHA256_HEX];
    size_t size;
    OCT_TRY(hash_file(v->scales_path, hex, &size));
    *body = json_pack("{s:s, s:s, s:s, s:I}", "kind", "scales", "name", v->variant->name, "sha256", hex, "bytes",
                      (json_int_t)size);
    return *body != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status do_calibrate(running *r, study_task *task) {
    running_variant *v = &r->variants[task->variant];
    json_t *artifact;
    running_show(r, task, v->variant->name, 0, 0);
    OCT_TRY(make_scales(r, task->variant));
    OCT_TRY(scales_artifact(v, &artifact));
    double size = (double)json_integer_value(json_object_get(artifact, "bytes"));
    octet_status status = running_begin_result(r, task);
    if (status == OCTET_OK)
        status = evidence_add(r->evidence, EVIDENCE_ARTIFACT, artifact, v->scales);
    else
        json_decref(artifact);
    if (status == OCTET_OK)
        status =
            running_figure(r, task, v->variant->name, "scales_bytes", size, json_pack("{s:s}", "scales", v->scales));
    return running_end_result(r, task, status);
}

/* The artifact that a calibration made, by its figure. */
static octet_status find_scales(running *r, const running_variant *v, char id[EVIDENCE_ID]) {
    evidence_rows rows;
    id[0] = '\0';
    OCT_TRY(evidence_list(r->evidence, EVIDENCE_FIGURE,
                          &(evidence_query){.run = v->calibration, .name = "scales_bytes"}, &rows));
    if (rows.count > 0) (void)snprintf(id, EVIDENCE_ID, "%s", evidence_text(&rows.items[0], "scales"));
    evidence_rows_free(&rows);
    if (id[0] != '\0') return OCTET_OK;
    return oct_fail(OCTET_INTERNAL, "%s: variant %s was not calibrated", r->study->path, v->variant->name);
}

/* Whether the scale file is what evidence says it is. */
static octet_status scales_fit(const running_variant *v, const char *id, bool *fit) {
    char found[EVIDENCE_ID];
    json_t *artifact;
    *fit = false;
    if (!oct_file_exists(v->scales_path)) return OCTET_OK;
    OCT_TRY(scales_artifact(v, &artifact));
    OCT_TRY(evidence_id(EVIDENCE_ARTIFACT, artifact, found));
    *fit = strcmp(found, id) == 0;
    return OCTET_OK;
}

octet_status running_scales(running *r, size_t variant, const char **path) {
    running_variant *v = &r->variants[variant];
    char id[EVIDENCE_ID];
    bool fit;
    *path = v->needs_scales ? v->scales_path : NULL;
    if (!v->needs_scales || v->scales[0] != '\0') return OCTET_OK; /* made or checked by this process */
    OCT_TRY(find_scales(r, v, id));
    OCT_TRY(scales_fit(v, id, &fit));
    if (!fit) { /* the evidence came without its files, or somebody changed one */
        OCT_TRY(make_scales(r, variant));
        OCT_TRY(scales_fit(v, id, &fit));
    }
    if (!fit)
        return oct_fail(OCTET_VERIFICATION, "%s: made again, the scales of %s are not those that the evidence names",
                        v->scales_path, v->variant->name);
    memcpy(v->scales, id, sizeof v->scales);
    return OCTET_OK;
}

static octet_status subject_of(running *r, size_t variant, study_subject *out) {
    out->variant = r->variants[variant].variant;
    return running_scales(r, variant, &out->scales);
}

/* ---- sizes and stress: an object of numbers, each a figure */

static octet_status put_numbers(running *r, const study_task *task, const char *variant, const json_t *numbers) {
    const char *name;
    json_t *value;
    octet_status status = OCTET_OK;
    json_object_foreach((json_t *)(uintptr_t)numbers, name, value) {
        if (status == OCTET_OK && json_is_number(value))
            status = running_figure(r, task, variant, name, json_number_value(value), NULL);
    }
    return status;
}

/* The packed bytes of the base, which was done before. */
static octet_status base_bytes(running *r, double *bytes) {
    const study_file *study = r->study;
    const char *base = study->timing.is_set ? study->timing.base : study->reference;
    *bytes = NAN;
    for (size_t i = 0; i < r->task_count; i++) {
        evidence_rows rows;
        if (r->tasks[i].kind != TASK_SIZE || r->tasks[i].variant != running_variant_index(r, base)) continue;
        OCT_TRY(evidence_list(r->evidence, EVIDENCE_FIGURE,
                              &(evidence_query){.run = r->tasks[i].run, .name = "packed_bytes"}, &rows));
        if (rows.count > 0) *bytes = evidence_number(&rows.items[0], "value");
        evidence_rows_free(&rows);
    }
    return OCTET_OK;
}

static octet_status do_numbers(running *r, study_task *task) {
    const char *variant = r->study->variants[task->variant].name;
    study_subject subject;
    json_t *numbers = NULL;
    double bytes;
    running_show(r, task, variant, 0, 0);
    OCT_TRY(subject_of(r, task->variant, &subject));
    OCT_TRY((task->kind == TASK_SIZE ? r->engine->size : r->engine->stress)(r->engine->user, &subject, &numbers));
    octet_status status = running_begin_result(r, task);
    if (status == OCTET_OK) status = put_numbers(r, task, variant, numbers);
    if (status == OCTET_OK) status = base_bytes(r, &bytes);
    if (status == OCTET_OK && task->kind == TASK_SIZE) {
        double own = json_number_value(json_object_get(numbers, "packed_bytes"));
        status = running_figure(r, task, variant, "weight_ratio", bytes / own, NULL);
    }
    json_decref(numbers);
    return running_end_result(r, task, status);
}

/* ---- premerge cases */

static octet_status do_premerge(running *r, study_task *task) {
    const study_file *study = r->study;
    const char *variant = study->variants[task->variant].name;
    study_subject subject, reference;
    double worst = 0.0;
    double *drifts = calloc(study->premerge_count, sizeof *drifts);
    octet_status status = drifts != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) status = subject_of(r, task->variant, &subject);
    if (status == OCTET_OK) status = subject_of(r, running_variant_index(r, study->reference), &reference);
    for (size_t i = 0; status == OCTET_OK && i < study->premerge_count; i++) {
        running_show(r, task, variant, i, study->premerge_count);
        status = r->engine->premerge(r->engine->user, &subject, &reference, study->premerge[i].picture,
                                     study->threshold, &drifts[i]);
        double share = drifts[i] / study->premerge[i].tolerance;
        if (!(share <= worst)) worst = share; /* a NaN stays */
    }
    if (status == OCTET_OK) {
        status = running_begin_result(r, task);
        for (size_t i = 0; status == OCTET_OK && i < study->premerge_count; i++) {
            const study_premerge *c = &study->premerge[i];
            status = running_figure(r, task, variant, "premerge_case", drifts[i],
                                    json_pack("{s:s, s:f}", "case", c->name, "tolerance", c->tolerance));
        }
        if (status == OCTET_OK) status = running_figure(r, task, variant, "premerge_drift", worst, NULL);
        status = running_end_result(r, task, status);
    }
    free(drifts);
    return status;
}

/* ---- times */

/* What must be equal on both sides of a ratio. */
static const char *const scope_keys[] = {"scope", "batch", "threads",     "warm_up",
                                         "start", "end",   "synchronize", "inside"};

static octet_status check_scopes(const running *r, const json_t *timings) {
    const json_t *base = json_array_get(timings, 0);
    for (size_t i = 0; i < json_array_size(timings); i++) {
        const json_t *other = json_array_get(timings, i);
        for (size_t k = 0; k < sizeof scope_keys / sizeof scope_keys[0]; k++)
            if (!json_equal(json_object_get(base, scope_keys[k]), json_object_get(other, scope_keys[k])))
                return oct_fail(OCTET_MISMATCH, "%s: times with another %s are not compared", r->study->path,
                                scope_keys[k]);
        if (!json_is_true(json_object_get(other, "held")))
            return oct_fail(OCTET_VERIFICATION, "%s: a last timed run gave other outputs than an untimed one",
                            r->study->path);
        if (json_array_size(json_object_get(other, "seconds")) != json_array_size(json_object_get(base, "seconds")))
            return oct_fail(OCTET_INTERNAL, "%s: times are not in pairs", r->study->path);
    }
    return OCTET_OK;
}

static double *seconds_of(const json_t *timing, size_t rounds) {
    double *out = calloc(rounds + 1, sizeof *out);
    const json_t *list = json_object_get(timing, "seconds");
    for (size_t i = 0; out != NULL && i < rounds; i++) out[i] = json_number_value(json_array_get(list, i));
    return out;
}

static octet_status put_ratio(running *r, const study_task *task, const char *variant, const double *base,
                              const double *own, size_t rounds) {
    char name[48];
    ratio_interval ratio;
    if (!bootstrap_median_ratio(base, own, rounds, DRAWS, SEED, &ratio)) return oct_fail_memory();
    (void)snprintf(name, sizeof name, "speedup_batch_%lld", (long long)task->batch);
    return running_figure(r, task, variant, name, ratio.ratio,
                          json_pack("{s:o, s:o, s:I, s:s, s:s}", "low", json_float(ratio.low), "high",
                                    json_float(ratio.high), "n", (json_int_t)rounds, "base",
                                    r->study->variants[task->variant].name, "verdict",
                                    comparison_word(compare_times(&ratio, rounds))));
}

static octet_status put_median(running *r, const study_task *task, const char *variant, double *seconds,
                               size_t rounds) {
    char name[48];
    (void)snprintf(name, sizeof name, "median_ms_batch_%lld", (long long)task->batch);
    double p25 = 1e3 * quantile(seconds, rounds, 0.25), p75 = 1e3 * quantile(seconds, rounds, 0.75);
    return running_figure(
        r, task, variant, name, 1e3 * quantile(seconds, rounds, 0.5),
        json_pack("{s:o, s:o, s:I}", "p25", json_float(p25), "p75", json_float(p75), "n", (json_int_t)rounds));
}

static octet_status put_times(running *r, study_task *task, const study_subject *subjects, json_t *timings) {
    size_t count = json_array_size(timings);
    size_t rounds = json_array_size(json_object_get(json_array_get(timings, 0), "seconds"));
    double *base = seconds_of(json_array_get(timings, 0), rounds);
    octet_status status = base != NULL ? check_scopes(r, timings) : oct_fail_memory();
    if (status == OCTET_OK) status = running_begin_result(r, task);
    for (size_t i = 0; status == OCTET_OK && i < count; i++) {
        const char *variant = subjects[i].variant->name;
        json_t *timing = json_copy(json_array_get(timings, i));
        double *own = seconds_of(timing, rounds);
        json_object_set_new(timing, "run", json_string(task->run));
        json_object_set_new(timing, "variant", json_string(variant));
        json_object_set_new(timing, "name", json_string("race"));
        status = evidence_add(r->evidence, EVIDENCE_TIMING, timing, NULL);
        if (own == NULL) status = oct_fail_memory();
        if (status == OCTET_OK && i > 0) status = put_ratio(r, task, variant, base, own, rounds);
        if (status == OCTET_OK) status = put_median(r, task, variant, own, rounds); /* sorts */
        free(own);
    }
    free(base);
    return running_end_result(r, task, status);
}

static octet_status do_time(running *r, study_task *task) {
    const study_timing *timing = &r->study->timing;
    study_subject *subjects = calloc(timing->variant_count + 1, sizeof *subjects);
    json_t *timings = NULL;
    size_t count = 1;
    octet_status status = subjects != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) status = subject_of(r, task->variant, &subjects[0]);
    for (size_t i = 0; status == OCTET_OK && i < timing->variant_count; i++) {
        size_t variant = running_variant_index(r, timing->variants[i]);
        if (variant != task->variant) status = subject_of(r, variant, &subjects[count++]);
    }
    running_show(r, task, r->study->variants[task->variant].name, 0, 0);
    const study_race race = {.subjects = subjects,
                             .count = count,
                             .batch = task->batch,
                             .rounds = timing->rounds,
                             .threads = timing->threads,
                             .warm_up = timing->warm_up,
                             .seconds = timing->seconds,
                             .stop = r->options->stop,
                             .user = r->options->user};
    if (status == OCTET_OK) status = r->engine->race(r->engine->user, &race, &timings);
    if (status == OCTET_OK) status = put_times(r, task, subjects, timings);
    json_decref(timings);
    free(subjects);
    return status;
}

octet_status running_do(running *r, study_task *task) {
    switch (task->kind) {
    case TASK_CALIBRATE:
        return do_calibrate(r, task);
    case TASK_EVALUATE:
        return running_evaluate(r, task);
    case TASK_PREMERGE:
        return do_premerge(r, task);
    case TASK_TIME:
        return do_time(r, task);
    default:
        return do_numbers(r, task);
    }
}
