/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/mixing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/mixing_state.h"
#include "eval/modelled.h"

#define DRAWS 2000 /* of each evaluation's interval */
#define DIGITS 17

static const char digits[] = "0123456789abcdef";
static const uint8_t all_base[SEARCH_OPS];

static bool failed(mixing *m, evaluate_end end, const char *what, const char *why) {
    snprintf(m->failed, sizeof m->failed, "%s%s%s", what, what[0] != '\0' && why[0] != '\0' ? ": " : "", why);
    m->end = end;
    m->told = why[0] != '\0';
    return false;
}

static bool no_memory(mixing *m) {
    return failed(m, EVALUATE_NO_MEMORY, "", "");
}

size_t mixing_ops(const mixing *m) {
    return json_object_size(m->groups);
}

/* ---- groups and choices */

static bool narrow_in(const variant_recipe *recipe, const char *name) {
    json_t *op;
    size_t i;
    json_array_foreach(recipe->ops, i, op) {
        if (strcmp(variant_op_name(op), name) == 0) return variant_op_narrow(op);
    }
    return false;
}

/* Ops that any recipe makes narrow, in the graph's order. */
static json_t *narrow_in_any(const mixing *m) {
    json_t *ops = json_array(), *op;
    size_t i;
    json_array_foreach(m->recipes[0].ops, i, op) {
        bool any = false;
        for (size_t r = 0; !any && r < m->count; r++) any = narrow_in(&m->recipes[r], variant_op_name(op));
        if (any) json_array_append(ops, op);
    }
    return ops;
}

static bool always(const json_t *op) {
    (void)op;
    return true;
}

static bool any_narrow(const variant_recipe *recipe, const json_t *names) {
    json_t *name;
    size_t i;
    json_array_foreach(names, i, name) {
        if (narrow_in(recipe, json_string_value(name))) return true;
    }
    return false;
}

static bool make_choices(mixing *m) {
    json_t *ops = narrow_in_any(m), *names;
    const char *key;
    size_t g = 0;
    m->groups = variant_groups(ops, m->group, always);
    json_decref(ops);
    const size_t count = mixing_ops(m);
    if (count == 0 || count > SEARCH_OPS)
        return failed(m, EVALUATE_FAILED, "",
                      count == 0 ? "no recipe makes any op narrower than its base"
                                 : "more ops than a search can have; --by kind or block");
    m->choices = calloc(count, 1);
    m->recipe_of = calloc(count, sizeof *m->recipe_of);
    if (m->choices == NULL || m->recipe_of == NULL) return no_memory(m);
    json_object_foreach(m->groups, key, names) {
        m->choices[g] = 1;
        for (size_t r = 0; r < m->count; r++)
            if (any_narrow(&m->recipes[r], names)) m->recipe_of[g][m->choices[g]++] = r;
        g++;
    }
    return true;
}

/* For each recipe the ops that an assignment gives to it: `count` lists to json_decref. */
static void names_of(const mixing *m, const uint8_t *assignment, json_t **names) {
    const char *key;
    json_t *list;
    size_t g = 0;
    for (size_t r = 0; r < m->count; r++) names[r] = json_array();
    json_object_foreach(m->groups, key, list) {
        if (assignment[g] > 0) json_array_extend(names[m->recipe_of[g][assignment[g]]], list);
        g++;
    }
}

char *mixing_recipe(const mixing *m, const uint8_t *assignment, const char *title, json_t **scales) {
    json_t *names[SEARCH_CHOICES], *files[SEARCH_CHOICES], *own[SEARCH_CHOICES];
    size_t count = 0;
    names_of(m, assignment, names);
    char *text = variant_mix(&m->mixer, names, title);
    for (size_t r = 0; r < m->count; r++) {
        if (m->scale_files[r] == NULL) continue;
        files[count] = m->scale_files[r];
        own[count++] = names[r];
    }
    *scales = text != NULL && count > 0 ? variant_mix_scales(files, own, count) : NULL;
    for (size_t r = 0; r < m->count; r++) json_decref(names[r]);
    return text;
}

/* ---- opening */

/* One model's, calibrated alike: what is taken from several is said to be of the first. */
static bool same_keys(mixing *m, size_t first, size_t r) {
    static const char *const keys[] = {"octet_scales", "model", "configuration", "weights", "preprocessing", "data"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (json_equal(json_object_get(m->scale_files[first], keys[k]), json_object_get(m->scale_files[r], keys[k])))
            continue;
        char why[256];
        snprintf(why, sizeof why, "%s differs from that of %.150s", keys[k], m->scales[first]);
        return failed(m, EVALUATE_FAILED, m->scales[r], why);
    }
    return true;
}

/* A recipe without a scale file must not need one: said here, by its name. */
static bool check_needs(mixing *m, size_t r) {
    char *text = json_dumps(m->recipes[r].recipe, JSON_REAL_PRECISION(DIGITS));
    int needs = 0;
    if (text == NULL) return no_memory(m);
    const octet_status status = octet_lab_recipe_needs_pictures(m->model, m->recipes[r].name, text, &needs);
    free(text);
    if (status != OCTET_OK) return failed(m, EVALUATE_FAILED, "", "");
    return needs == 0 || failed(m, EVALUATE_FAILED, m->recipes[r].name,
                                "the recipe has static scales; expected --scales from octet calibrate, found none");
}

static bool read_scales(mixing *m) {
    size_t first = m->count;
    m->scale_files = calloc(m->count, sizeof(json_t *));
    if (m->scale_files == NULL) return no_memory(m);
    for (size_t r = 0; r < m->count; r++) {
        json_error_t error;
        if (m->scales[r] == NULL && !check_needs(m, r)) return false;
        if (m->scales[r] == NULL) continue;
        m->scale_files[r] = json_load_file(m->scales[r], JSON_REJECT_DUPLICATES, &error);
        if (m->scale_files[r] == NULL) return failed(m, EVALUATE_FAILED, m->scales[r], error.text);
        if (first == m->count) first = r;
        if (!same_keys(m, first, r)) return false;
    }
    return true;
}

/* AP of float32 itself, to tell what is lost. */
static bool judge_reference(mixing *m) {
    const beside *b = m->pictures;
    eval_figures figures = {.task = b->task, .threshold = 0.5};
    bool good = true;
    if (!m->points || b->task == OCTET_CLASSIFICATION) return true;
    for (size_t i = 0; good && i < b->count; i++) good = eval_add(&figures, b->samples[i], b->reference[i], NULL, NULL);
    json_t *report = good ? eval_report(&figures) : NULL;
    m->reference_quality = json_number_value(json_object_get(report, "ap"));
    good = report != NULL;
    json_decref(report);
    eval_figures_free(&figures);
    return good || no_memory(m);
}

bool mixing_open(mixing *m) {
    char why[256];
    m->end = EVALUATE_DONE;
    m->failed[0] = m->scales_path[0] = '\0';
    if (m->count == 0 || m->count >= SEARCH_CHOICES) return failed(m, EVALUATE_FAILED, "", "expected 1 to 15 recipes");
    if (!read_scales(m) || !make_choices(m)) return false;
    if (!variant_mixer_open(m->model, m->recipes, m->count, &m->mixer, why)) return failed(m, EVALUATE_FAILED, "", why);
    if (!judge_reference(m) || !mixing_state_open(m)) return false;
    const mixing_point *base = mixing_find(m, all_base);
    if (base != NULL) m->base_seconds = base->seconds; /* times of now and of then are of one scale */
    return true;
}

void mixing_close(mixing *m) {
    for (size_t i = 0; i < m->made; i++) free(m->points_made[i].assignment);
    free(m->points_made);
    if (m->file != NULL) (void)fclose(m->file);
    octet_session_free(&m->base);
    octet_model_close(&m->base_model);
    for (size_t r = 0; m->scale_files != NULL && r < m->count; r++) json_decref(m->scale_files[r]);
    free(m->scale_files);
    variant_mixer_close(&m->mixer);
    free(m->recipe_of);
    free(m->choices);
    json_decref(m->groups);
}

/* ---- evaluating */

static void write_digits(const uint8_t *assignment, size_t count, char *out) {
    for (size_t i = 0; i < count; i++) out[i] = digits[assignment[i]];
    out[count] = '\0';
}

const mixing_point *mixing_find(const mixing *m, const uint8_t *assignment) {
    char text[SEARCH_OPS + 1];
    write_digits(assignment, mixing_ops(m), text);
    for (size_t i = 0; i < m->made; i++)
        if (strcmp(m->points_made[i].assignment, text) == 0) return &m->points_made[i];
    return NULL;
}

/* The scales of this assignment as a file, where other programs keep theirs; removed once the engine is open. */
static bool write_scales(mixing *m, const json_t *scales) {
    const char *directory = getenv("TMPDIR");
    const int length = snprintf(m->scales_path, sizeof m->scales_path, "%s/octet-search-XXXXXX",
                                directory != NULL && strlen(directory) < 40 ? directory : "/tmp");
    const int file = length > 0 ? mkstemp(m->scales_path) : -1;
    if (file < 0) {
        failed(m, EVALUATE_FAILED, m->scales_path, strerror(errno));
        m->scales_path[0] = '\0';
        return false;
    }
    const bool written = json_dumpfd(scales, file, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) == 0;
    if (close(file) == 0 && written) return true;
    failed(m, EVALUATE_FAILED, m->scales_path, strerror(errno));
    (void)unlink(m->scales_path);
    return false;
}

static bool open_engine(mixing *m, const uint8_t *assignment, octet_model **model, octet_session **session) {
    json_t *scales = NULL;
    octet_open_options open = *m->open;
    char *text = mixing_recipe(m, assignment, "searched", &scales);
    bool good = text != NULL || no_memory(m);
    if (good && scales != NULL) good = write_scales(m, scales);
    if (good && scales != NULL) open.scales = m->scales_path;
    if (good && (octet_lab_open_recipe(m->place, &open, "searched", text, model) != OCTET_OK ||
                 octet_session_new(*model, m->session, session) != OCTET_OK))
        good = failed(m, EVALUATE_FAILED, "", "");
    if (open.scales == m->scales_path) (void)unlink(m->scales_path);
    json_decref(scales);
    free(text);
    return good;
}

static bool time_once(mixing *m, octet_session *session, double *seconds) {
    return octet_lab_time_engine(session, 1, seconds) == OCTET_OK || failed(m, EVALUATE_FAILED, "", "");
}

/* In turns with the base's engine: the ratio of medians, times what the base took the first time. A machine that is
 * slower for a while is so for both. */
static bool time_engine(mixing *m, octet_session *session, double *out) {
    double *own = malloc(2 * m->runs * sizeof *own), *base = own + m->runs, warm;
    if (own == NULL) return no_memory(m);
    bool good = m->base != NULL || open_engine(m, all_base, &m->base_model, &m->base);
    good = good && time_once(m, session, &warm) && time_once(m, m->base, &warm);
    for (size_t i = 0; good && i < m->runs; i++)
        good = time_once(m, session, &own[i]) && time_once(m, m->base, &base[i]);
    if (good) {
        const double median = quantile(base, m->runs, 0.5);
        if (m->base_seconds == 0.0) m->base_seconds = median; /* the search asks for the base first */
        *out = quantile(own, m->runs, 0.5) / median * m->base_seconds;
    }
    free(own);
    return good;
}

/* Of all ops: the narrow as assigned, the others as the base. */
static bool model_time(mixing *m, const uint8_t *assignment, double *out) {
    json_t *scales = NULL;
    char *text = mixing_recipe(m, assignment, "searched", &scales), *told = NULL;
    json_decref(scales);
    if (text == NULL) return no_memory(m);
    const octet_status status = octet_lab_recipe_describe(m->model, "searched", text, 1, &told);
    free(text);
    if (status != OCTET_OK) return failed(m, EVALUATE_FAILED, "", "");
    json_t *ops = json_loads(told, 0, NULL);
    octet_free(told);
    if (ops == NULL) return no_memory(m);
    *out = modelled_seconds(ops, variant_base(&m->recipes[0]));
    json_decref(ops);
    return true;
}

static void take_points(const mixing *m, const json_t *report, mixing_point *out) {
    if (m->pictures->task == OCTET_CLASSIFICATION) {
        const json_t *interval = json_object_get(report, "top1_change_interval");
        out->points = -100.0 * json_number_value(json_object_get(report, "top1_change"));
        out->points_high = interval != NULL ? -100.0 * json_number_value(json_array_get(interval, 0)) : NAN;
    } else {
        out->points = 100.0 * (m->reference_quality - json_number_value(json_object_get(report, "ap")));
        out->points_high = out->points; /* no paired interval of AP is made here */
    }
}

static bool take_figures(mixing *m, eval_figures *figures, mixing_point *out) {
    const size_t n = m->pictures->count;
    double *kl = malloc(n * sizeof *kl), sum = 0.0;
    const double *over = kl, *none = NULL;
    figure_interval interval = {NAN, NAN};
    if (kl == NULL) return no_memory(m);
    for (size_t i = 0; i < n; i++) sum += kl[i] = beside_kl(figures, i);
    bool good = !isfinite(sum) || bootstrap_ratios(&over, &none, 1, n, DRAWS, EVAL_SEED, &interval);
    free(kl);
    out->kl = sum / (double)n;
    out->low = isfinite(sum) ? interval.low : INFINITY;
    out->high = isfinite(sum) ? interval.high : INFINITY;
    json_t *report = good && m->points ? eval_report(figures) : NULL;
    if (report != NULL) take_points(m, report, out);
    good = good && (report != NULL || !m->points);
    json_decref(report);
    return good || no_memory(m);
}

static bool on_picture(void *user, size_t done) {
    const mixing *m = user;
    return m->tick == NULL || m->tick(m->user, m->made, done);
}

static bool measure(mixing *m, const uint8_t *assignment, mixing_point *out) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    eval_figures figures = {
        .task = m->pictures->task, .with_reference = true, .threshold = 0.5, .draws = m->points ? DRAWS : 0};
    bool good = open_engine(m, assignment, &model, &session);
    if (good) {
        const evaluate_end end = beside_measure(m->pictures, session, on_picture, m, &figures);
        good = end == EVALUATE_DONE || failed(m, end, m->pictures->failed, "");
    }
    good = good && take_figures(m, &figures, out);
    good = good && (m->modelled ? model_time(m, assignment, &out->seconds) : time_engine(m, session, &out->seconds));
    eval_figures_free(&figures);
    octet_session_free(&session);
    octet_model_close(&model);
    return good;
}

bool mixing_evaluate(void *user, const uint8_t *assignment, trade *out) {
    mixing *m = user;
    const size_t count = mixing_ops(m);
    const mixing_point *known = mixing_find(m, assignment);
    if (known == NULL) {
        mixing_point made = {.points = NAN, .points_high = NAN};
        if (!measure(m, assignment, &made)) return false;
        made.assignment = malloc(count + 1);
        if (made.assignment == NULL) return no_memory(m);
        write_digits(assignment, count, made.assignment);
        if (!mixing_state_add(m, made)) return false;
        known = &m->points_made[m->made - 1];
        if (memcmp(assignment, all_base, count) == 0) m->base_seconds = known->seconds;
    }
    *out = (trade){known->kl, known->seconds};
    return true;
}
