/* SPDX-License-Identifier: Apache-2.0 */
/* An engine for tests of studies: pictures, records and times made of seeds, with a delay a picture and a fault. */
#ifndef OCT_TESTS_FAKE_ENGINE_H
#define OCT_TESTS_FAKE_ENGINE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/json.h"
#include "eval/random.h"
#include "study/engine.h"
#include "support/support.h"

typedef struct fake_engine {
    octet_task task;
    int pictures;          /* of every data set */
    useconds_t delay;      /* a picture, in microseconds */
    int calls[6];          /* list, calibrate, pictures evaluated, races, stress, premerge */
    int same;              /* pictures that two data sets share */
    bool changed_scales;   /* calibration gives something else now */
    double speed;          /* of every variant but the base's */
    uint64_t salt;         /* of what pictures give */
    const char *recipe_of; /* a variant with another recipe text; NULL: none */
} fake_engine;
enum { FAKE_LIST, FAKE_CALIBRATE, FAKE_PICTURES, FAKE_RACES, FAKE_STRESS, FAKE_PREMERGE };

static uint64_t fake_seed(const char *a, const char *b) {
    uint64_t h = 1469598103934665603u;
    for (; *a != '\0'; a++) h = (h ^ (unsigned char)*a) * 1099511628211u;
    for (; *b != '\0'; b++) h = (h ^ (unsigned char)*b) * 1099511628211u;
    return h;
}

static double fake_unit(uint64_t *seed) {
    return (double)(next_random(seed) >> 11) * 0x1p-53;
}

static octet_status fake_environment(void *user, json_t **body) {
    (void)user;
    *body = json_pack("{s:s, s:s, s:{s:s}}", "octet", "0.1.0", "device", "cpu", "machine", "cpu", "fake");
    return OCTET_OK;
}

static octet_status fake_model(void *user, json_t **body, octet_task *task) {
    *task = ((fake_engine *)user)->task;
    *body = json_pack("{s:s, s:s, s:s}", "kind", "model", "name", "fake", "sha256", "ab");
    return OCTET_OK;
}

static octet_status fake_recipe(void *user, const study_variant *variant, char **text, bool *needs_scales) {
    const fake_engine *fake = user;
    bool other = fake->recipe_of != NULL && strcmp(fake->recipe_of, variant->name) == 0;
    char line[128];
    (void)snprintf(line, sizeof line, "recipe: %s%s\n", variant->recipe, other ? " # changed" : "");
    *text = strdup(line);
    *needs_scales = strncmp(variant->recipe, "int8", 4) == 0;
    return OCTET_OK;
}

static octet_status fake_list(void *user, const char *place, study_listing *out) {
    fake_engine *fake = user;
    fake->calls[FAKE_LIST]++;
    for (int i = 0; i < fake->pictures; i++) {
        char name[32], hash[65];
        uint64_t seed = fake_seed(i < fake->same ? "" : place, "") + (uint64_t)i;
        (void)snprintf(name, sizeof name, "%05d.jpg", i);
        for (int k = 0; k < 4; k++)
            (void)snprintf(hash + 16 * k, 17, "%016llx", (unsigned long long)next_random(&seed));
        if (!study_listing_add(out, name, hash, i % 5)) return OCTET_OUT_OF_MEMORY;
    }
    return OCTET_OK;
}

static octet_status fake_calibrate(void *user, const study_variant *variant, const study_part *part, const char *output,
                                   bool (*stop)(void *), void *stop_user) {
    fake_engine *fake = user;
    char text[128];
    (void)stop;
    (void)stop_user;
    fake->calls[FAKE_CALIBRATE]++;
    usleep(fake->delay);
    (void)snprintf(text, sizeof text, "{\"scales\": \"%s\", \"pictures\": %zu, \"changed\": %d}\n", variant->name,
                   part->count, fake->changed_scales);
    support_write_text(output, text);
    return OCTET_OK;
}

static json_t *fake_classified(uint64_t seed, int label, bool reference) {
    int best = fake_unit(&seed) < 0.8 ? label : (label + 1) % 5;
    uint64_t own = seed;
    int changed = !reference && fake_unit(&own) < 0.02;
    double ce = 2.0 * fake_unit(&own);
    return json_pack("{s:i, s:i, s:b, s:b, s:b, s:o, s:i, s:b, s:b, s:o, s:o}", "label", label, "best",
                     changed ? (best + 1) % 5 : best, "top1", changed ? 0 : best == label, "top5", 1, "finite", 1, "ce",
                     json_float(ce), "rbest", best, "rtop1", best == label, "rfinite", 1, "rce",
                     json_float(ce + 0.01 * fake_unit(&own)), "kl",
                     json_float(reference ? 0.0 : 0.01 * fake_unit(&own)));
}

static json_t *fake_detected(uint64_t seed, int64_t number, bool reference) {
    json_t *truths = json_array(), *tokens = json_array();
    for (int i = 0; i < 3; i++) {
        double x = 50 * fake_unit(&seed), y = 50 * fake_unit(&seed), w = 10 + 20 * fake_unit(&seed);
        json_array_append_new(truths, json_pack("[i,i,i,f,f,f,f,f]", i, 0, 0, x, y, w, w, w * w));
        json_array_append_new(tokens, json_pack("[i,f,f,f,f,f]", i, 0.4 + 0.6 * fake_unit(&seed), x + 1, y, w, w));
    }
    double matched = reference || fake_unit(&seed) < 0.9 ? 3.0 : 2.0;
    return json_pack("{s:I, s:b, s:o, s:o, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "image_id", (json_int_t)number,
                     "finite", 1, "truths", truths, "tokens", tokens, "rfinite", 1, "tested", 3.0, "wanted", 3.0,
                     "matched", matched, "iou", 0.95 * matched, "drift", 0.01 * matched, "near", 0.0, "kl",
                     0.001 * fake_unit(&seed));
}

static octet_status fake_evaluate(void *user, const study_evaluation *e) {
    fake_engine *fake = user;
    json_t *records[64];
    for (size_t i = 0; i < e->part.count; i++) {
        int64_t number = e->part.numbers[i];
        for (size_t s = 0; s < e->tested_count; s++) {
            bool reference = strcmp(e->tested[s].variant->name, e->reference->variant->name) == 0;
            uint64_t seed =
                fake_seed(e->part.place, e->tested[s].variant->name) + (uint64_t)number * 7919u + fake->salt;
            records[s] = fake->task == OCTET_CLASSIFICATION ? fake_classified(seed, (int)(number % 5), reference)
                                                            : fake_detected(seed, number, reference);
        }
        fake->calls[FAKE_PICTURES]++;
        usleep(fake->delay);
        if (!e->picture(e->user, records)) return OCTET_CANCELLED;
    }
    return OCTET_OK;
}

static octet_status fake_race(void *user, const study_race *race, json_t **timings) {
    fake_engine *fake = user;
    uint64_t seed = (uint64_t)getpid() * 977u + (uint64_t)fake->calls[FAKE_RACES]++; /* times never come again */
    *timings = json_array();
    for (size_t i = 0; i < race->count; i++) {
        json_t *seconds = json_array();
        for (int64_t k = 0; k < race->rounds; k++)
            json_array_append_new(seconds,
                                  json_real((i == 0 ? 0.01 : 0.01 / fake->speed) * (1.0 + 0.02 * fake_unit(&seed))));
        json_array_append_new(*timings,
                              json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:b, s:o}", "scope", "graph", "batch",
                                        (json_int_t)race->batch, "threads", (json_int_t)race->threads, "warm_up",
                                        (json_int_t)race->warm_up, "start", "a", "end", "b", "synchronize", "none",
                                        "inside", "engine", "held", 1, "seconds", seconds));
    }
    usleep(fake->delay);
    return OCTET_OK;
}

static octet_status fake_stress(void *user, const study_subject *subject, json_t **counts) {
    (void)subject;
    ((fake_engine *)user)->calls[FAKE_STRESS]++;
    *counts = json_pack("{s:i, s:i, s:i}", "stress_nan", 0, "stress_infinite", 0, "inputs", 39);
    return OCTET_OK;
}

static octet_status fake_premerge(void *user, const study_subject *subject, const study_subject *reference,
                                  const char *picture, double threshold, double *drift) {
    (void)subject;
    (void)reference;
    (void)picture;
    (void)threshold;
    ((fake_engine *)user)->calls[FAKE_PREMERGE]++;
    *drift = 0.01;
    return OCTET_OK;
}

static octet_status fake_size(void *user, const study_subject *subject, json_t **sizes) {
    (void)user;
    bool wide = strcmp(subject->variant->recipe, "fp32") == 0;
    *sizes = json_pack("{s:i, s:i}", "packed_bytes", wide ? 4000 : 1000, "unfused_quantize", 0);
    return OCTET_OK;
}

static study_engine fake_functions(fake_engine *fake) {
    return (study_engine){.user = fake,
                          .environment = fake_environment,
                          .model = fake_model,
                          .recipe = fake_recipe,
                          .list = fake_list,
                          .calibrate = fake_calibrate,
                          .evaluate = fake_evaluate,
                          .race = fake_race,
                          .stress = fake_stress,
                          .premerge = fake_premerge,
                          .size = fake_size};
}

#endif
