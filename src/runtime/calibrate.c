/* SPDX-License-Identifier: Apache-2.0 */
/* octet_lab_calibrate: the float32 engine over pictures, taps on what the recipe's ops read (quant/learn.h says which
 * and in how many passes), and at the end the scale file.
 *
 * What a pass has seen is kept in OUTPUT.part (ranges.h) every few seconds and when the caller stops; what earlier
 * passes learnt in OUTPUT.learnt, a scale file whose key of data is the calibration's own. A pass that keeps rows
 * begins anew when it was stopped. */
#include "runtime/calibrate.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "runtime/log.h"
#include "runtime/options.h"
#include "runtime/watch.h"

#define KEEP_MILLISECONDS 5000.0

/* ---- opening */

static octet_status open_set(calibration *c) {
    octet_lab_set_options set = OCTET_LAB_SET_OPTIONS_DEFAULT;
    octet_lab_set_close(&c->set);
    set.model = c->model;
    set.classes_file = c->options->classes_file;
    set.numbers = c->options->numbers;
    set.number_count = c->options->number_count;
    return octet_lab_set_open(c->options->data, &set, &c->set);
}

static octet_status open_all(calibration *c, const char *place) {
    octet_open_options open = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options session = OCTET_SESSION_OPTIONS_DEFAULT;
    open.threads = session.threads = c->options->threads;
    open.classes_file = c->options->classes_file;
    session.orientation = c->options->orientation;
    OCT_TRY(octet_model_open(place, &open, &c->model));
    if (c->model->checkpoint == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: expected a checkpoint, found a bundle", place);
    OCT_TRY(oct_model_recipe_open(c->model, c->options->recipe, NULL, NULL, &c->recipe));
    if (c->recipe == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "recipe fp32 needs no pictures");
    OCT_TRY(octet_session_new(c->model, &session, &c->session));
    c->session->tap = oct_calibration_tap;
    c->session->tap_user = c;
    c->part = oct_sprintf("%s.part", c->output);
    c->learnt = oct_sprintf("%s.learnt", c->output);
    return c->part == NULL || c->learnt == NULL ? oct_fail_memory() : OCTET_OK;
}

/* Whether the files can be written is known before the first picture. */
static octet_status try_writing(const calibration *c) {
    oct_writer *writer;
    OCT_TRY(oct_writer_open(&writer, c->part));
    oct_writer_abort(writer);
    return OCTET_OK;
}

/* ---- what decides a calibration, as one hash */

static void put_text(oct_text *text, const char *what) {
    oct_text_append(text, what, strlen(what) + 1);
}

static octet_status make_key(calibration *c) {
    oct_text text = {0};
    OCT_TRY(oct_model_keys_of(c->model, &c->keys));
    put_text(&text, c->keys.configuration);
    put_text(&text, c->keys.weights);
    put_text(&text, c->keys.preprocessing);
    put_text(&text, c->recipe->text_hash);
    put_text(&text, c->options->data);
    oct_text_printf(&text, "%d %" PRId64 " %zu", (int)c->options->orientation, c->options->limit,
                    c->options->number_count);
    for (size_t i = 0; i < c->options->number_count; i++) oct_text_printf(&text, " %" PRId64, c->options->numbers[i]);
    octet_status status = text.failed ? oct_fail_memory() : oct_sha256_of(text.data, text.length, c->key);
    oct_text_free(&text);
    oct_sha256_hex(c->key, c->key_hex);
    return status;
}

/* A pass has a key of its own. */
static octet_status pass_key(const calibration *c, uint8_t key[OCT_SHA256_SIZE]) {
    uint8_t joined[OCT_SHA256_SIZE + 1];
    memcpy(joined, c->key, OCT_SHA256_SIZE);
    joined[OCT_SHA256_SIZE] = (uint8_t)c->list.pass;
    return oct_sha256_of(joined, sizeof joined, key);
}

/* ---- what earlier passes learnt */

static octet_status copy_learnt(calibration *c, const oct_scale_file *from) {
    for (size_t i = 0; i < from->count; i++) OCT_TRY(oct_scale_draft_add(&c->draft, &from->scales[i]));
    for (size_t i = 0; i < from->smoothing_count; i++)
        OCT_TRY(oct_scale_draft_smoothing(&c->draft, &from->smoothing[i]));
    for (size_t i = 0; i < from->bias_count; i++) OCT_TRY(oct_scale_draft_bias(&c->draft, &from->bias[i]));
    for (size_t i = 0; i < from->rounded_count; i++) OCT_TRY(oct_scale_draft_weight(&c->draft, &from->rounded[i]));
    return OCTET_OK;
}

static void set_draft_keys(calibration *c) {
    c->draft.file.keys = c->keys.keys;
    c->draft.file.keys.data = c->key_hex;
    c->draft.file.recipe = c->recipe->recipe.name;
}

static octet_status read_learnt(calibration *c) {
    oct_scale_file file;
    set_draft_keys(c);
    if (!oct_file_exists(c->learnt)) return OCTET_OK;
    octet_status status = oct_scale_file_read(&file, c->learnt);
    if (status == OCTET_OK) status = oct_scale_file_check(&file, &c->draft.file.keys);
    if (status == OCTET_OK) status = copy_learnt(c, &file);
    oct_scale_file_free(&file);
    if (status == OCTET_OK || status == OCTET_OUT_OF_MEMORY) return status;
    oct_log("%s; beginning anew", oct_error_fact());
    return OCTET_OK;
}

/* ---- the state of a pass that is not finished */

static octet_status keep(calibration *c) {
    oct_text text = {0};
    c->kept = oct_watch_now();
    if (c->keeps_rows) return OCTET_OK;
    memcpy(c->ranges.data, octet_lab_set_fingerprint(c->set), OCT_SHA256_HEX);
    oct_ranges_write(&c->ranges, &text);
    octet_status status = text.failed ? oct_fail_memory() : oct_file_write(c->part, text.data, text.length);
    oct_text_free(&text);
    return status;
}

/* Pictures that an earlier run saw are read again, since they are part of the data's fingerprint, but not run. */
static octet_status pass_over(calibration *c) {
    for (uint64_t i = 0; i < c->ranges.pictures; i++) {
        octet_lab_sample *sample;
        OCT_TRY(octet_lab_set_next(c->set, &sample));
        if (sample == NULL) break;
        octet_lab_sample_free(&sample);
    }
    if (strcmp(octet_lab_set_fingerprint(c->set), c->ranges.data) == 0) return OCTET_OK;
    oct_fail(OCTET_MISMATCH, "%s: its %" PRIu64 " pictures are not those of %s any more", c->part, c->ranges.pictures,
             c->options->data);
    return oct_hint("remove %s to begin anew", c->part);
}

static octet_status resume(calibration *c) {
    uint8_t *data;
    size_t size;
    if (c->keeps_rows || !oct_file_exists(c->part)) return OCTET_OK;
    OCT_TRY(oct_file_read(c->part, OCT_RANGES_LIMIT, &data, &size));
    octet_status status = oct_ranges_read(&c->ranges, c->part, data, size);
    oct_free(data);
    if (status == OCTET_OK) {
        c->event.resumed = c->ranges.pictures;
        return pass_over(c);
    }
    if (status == OCTET_OUT_OF_MEMORY) return status;
    oct_log("%s; beginning anew", oct_error_fact());
    return OCTET_OK;
}

/* ---- pictures */

static octet_status run_sample(calibration *c, const octet_lab_sample *sample) {
    octet_result *result;
    c->failed = OCTET_OK;
    octet_status status = octet_session_run_memory(c->session, sample->data, sample->size, &result);
    octet_result_free(&result);
    if (status == OCTET_OK) status = c->failed;
    return status == OCTET_OK ? OCTET_OK : oct_error_prefix("%s", sample->name);
}

static octet_status tell(calibration *c) {
    octet_lab_calibrate_event *event = &c->event;
    event->done = c->ranges.pictures;
    event->values = oct_ranges_values(&c->ranges);
    if (c->progress == NULL || c->progress(c->user, event) == 0) return OCTET_OK;
    OCT_TRY(keep(c));
    oct_fail(OCTET_CANCELLED, "calibration stopped after %" PRIu64 " pictures of pass %d of %d", event->done,
             event->pass, event->passes);
    return oct_hint("the same command goes on from there");
}

static bool more(const calibration *c) {
    return c->options->limit == 0 || c->ranges.pictures < (uint64_t)c->options->limit;
}

static octet_status run_pictures(calibration *c) {
    const int64_t count = octet_lab_set_count(c->set), limit = c->options->limit;
    c->event.pictures = (uint64_t)(count < 0 || (limit > 0 && limit < count) ? limit : count);
    c->kept = oct_watch_now();
    while (more(c)) {
        octet_lab_sample *sample;
        OCT_TRY(octet_lab_set_next(c->set, &sample));
        if (sample == NULL) break;
        octet_status status = run_sample(c, sample);
        octet_lab_sample_free(&sample);
        OCT_TRY(status);
        c->ranges.pictures++;
        OCT_TRY(tell(c));
        if (oct_watch_now() - c->kept > KEEP_MILLISECONDS) OCT_TRY(keep(c));
    }
    if (c->ranges.pictures > 0) return OCTET_OK;
    return oct_fail(OCTET_INVALID_ARGUMENT, "%s: no pictures in it", c->options->data);
}

/* ---- passes */

static octet_status begin_pass(calibration *c) {
    c->keeps_rows = false;
    for (size_t i = 0; i < c->list.watch_count; i++) {
        const oct_quant_watch *watch = &c->list.watches[i];
        size_t index;
        OCT_TRY(oct_ranges_add(&c->ranges, watch->name, watch->channel_ranges ? watch->channels : 0, &index));
        if (index != i) return oct_fail(OCTET_INTERNAL, "calibration: tensor %s is watched twice", watch->name);
        c->keeps_rows |= watch->rows;
    }
    c->event.passes = c->event.pass + c->list.passes;
    c->event.pass++;
    c->event.tensors = c->ranges.count;
    c->event.memory = oct_ranges_memory(&c->ranges) + c->list.memory;
    c->event.resumed = 0;
    return pass_key(c, c->ranges.key);
}

static octet_status learn(calibration *c) {
    oct_quant_seen *seen = oct_calloc(c->list.watch_count, sizeof *seen);
    if (seen == NULL) return oct_fail_memory();
    for (size_t i = 0; i < c->list.watch_count; i++) {
        const oct_quant_watch *watch = &c->list.watches[i];
        if (watch->histogram) seen[i].histogram = c->ranges.items[i].histogram;
        if (watch->channel_ranges) seen[i].channels = &c->ranges.items[i].channels;
    }
    octet_status status = oct_quant_learn(&c->list, seen, &c->draft);
    oct_free(seen);
    return status;
}

/* One pass with its list; *done: nothing is left to learn. */
static octet_status run_pass(calibration *c, bool *done) {
    OCT_TRY(oct_quant_needs(&c->recipe->recipe, &c->graph, &c->decisions, &c->draft.file, &c->list));
    *done = c->list.pass == OCT_PASS_NONE;
    if (*done) return OCTET_OK;
    OCT_TRY(begin_pass(c));
    OCT_TRY(open_set(c));
    OCT_TRY(resume(c));
    OCT_TRY(run_pictures(c));
    OCT_TRY(learn(c));
    c->draft.file.pictures = (int64_t)c->ranges.pictures;
    c->event.done = c->ranges.pictures;
    OCT_TRY(oct_scale_file_write(&c->draft.file, c->learnt));
    (void)unlink(c->part);
    return OCTET_OK;
}

static octet_status run_passes(calibration *c) {
    for (bool done = false; !done;) {
        OCT_TRY(oct_model_graph(c->model, c->model->height, c->model->width, &c->graph));
        octet_status status = oct_recipe_apply(&c->recipe->recipe, &c->graph, &c->decisions);
        if (status == OCTET_OK) status = run_pass(c, &done);
        oct_quant_watch_list_free(&c->list);
        oct_decisions_free(&c->decisions);
        oct_graph_free(&c->graph);
        oct_ranges_free(&c->ranges);
        oct_calibration_forget_plan(c);
        OCT_TRY(status);
    }
    return OCTET_OK;
}

/* What a person should know of the inputs that were watched. */
static void warn(const calibration *c) {
    const oct_scale_file *file = &c->draft.file;
    for (size_t i = 0; i < file->count; i++) {
        const oct_scale *scale = &file->scales[i];
        if (scale->values > 0 && !(scale->amax > 0.0f))
            oct_log("%s: its input was zero in all pictures: scale 1", scale->op);
        if (scale->not_finite > 0)
            oct_log("%s: %" PRIu64 " of %" PRIu64 " values of its input were not finite, and were left out", scale->op,
                    scale->not_finite, scale->values);
    }
}

/* All was learnt by an earlier run that was stopped between its last pass and the file: the pictures are read again for
 * their fingerprint. */
static octet_status write_scales(calibration *c) {
    if (c->set == NULL) {
        if (c->draft.file.pictures == 0)
            return oct_fail(OCTET_INVALID_ARGUMENT, "recipe %s needs no pictures", c->recipe->recipe.name);
        OCT_TRY(open_set(c));
        for (int64_t i = 0; i < c->draft.file.pictures; i++) {
            octet_lab_sample *sample;
            OCT_TRY(octet_lab_set_next(c->set, &sample));
            octet_lab_sample_free(&sample);
        }
    }
    c->draft.file.keys.data = octet_lab_set_fingerprint(c->set);
    warn(c);
    OCT_TRY(oct_scale_file_write(&c->draft.file, c->output));
    (void)unlink(c->learnt);
    return OCTET_OK;
}

static octet_status calibrate(calibration *c, const char *place) {
    OCT_TRY(open_all(c, place));
    OCT_TRY(try_writing(c));
    OCT_TRY(make_key(c));
    OCT_TRY(read_learnt(c));
    OCT_TRY(run_passes(c));
    return write_scales(c);
}

octet_status octet_lab_calibrate(const char *place, const octet_lab_calibrate_options *options,
                                 octet_lab_calibrate_progress progress, void *user, const char *output) {
    octet_lab_calibrate_options own = OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT;
    if (place == NULL || options == NULL || output == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "calibrate: expected a place, options and an output, found NULL");
    OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_lab_calibrate_options"));
    if (own.recipe == NULL || own.data == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "calibrate: expected a recipe and data, found NULL");
    if (own.limit < 0)
        return oct_fail(OCTET_INVALID_ARGUMENT, "calibrate: limit: expected 0 or more, found %" PRId64, own.limit);
    calibration c = {.options = &own,
                     .progress = progress,
                     .user = user,
                     .output = output,
                     .event = {.struct_size = sizeof(octet_lab_calibrate_event)}};
    octet_status status = calibrate(&c, place);
    oct_scale_draft_free(&c.draft);
    octet_lab_set_close(&c.set);
    octet_session_free(&c.session);
    oct_model_recipe_free(c.recipe);
    octet_model_close(&c.model);
    oct_calibration_forget_plan(&c);
    oct_free(c.scaled);
    oct_free(c.learnt);
    oct_free(c.part);
    return status;
}
