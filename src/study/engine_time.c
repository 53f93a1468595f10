/* SPDX-License-Identifier: Apache-2.0 */
/* Times of several variants, taken in turns in one process, each run between two readings of one clock. */
#include <stdlib.h>
#include <time.h>

#include "study/engine_octet.h"

#define MOST_ROUNDS 100000

typedef struct runner {
    engine_side side;
    double *seconds;   /* a round each */
    uint64_t checksum; /* of the outputs of the last run that was not timed */
} runner;

static double seconds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static octet_status start_runner(const study_octet *octet, const study_race *race, const study_subject *subject,
                                 runner *r) {
    double *unused = calloc((size_t)race->warm_up, sizeof *unused);
    r->seconds = calloc(MOST_ROUNDS, sizeof *r->seconds);
    octet_status status = unused != NULL && r->seconds != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK) status = engine_open(octet, subject, race->batch, (uint32_t)race->threads, &r->side);
    if (status == OCTET_OK) {
        status = octet_lab_time_engine(r->side.session, (size_t)race->warm_up, unused);
        if (status == OCTET_OK) status = octet_lab_output_checksum(r->side.session, &r->checksum);
        if (status != OCTET_OK) status = engine_fail(status);
    }
    free(unused);
    return status;
}

/* Rounds until there are enough of them and enough time was spent; the first to run changes with each. */
static octet_status run_rounds(const study_race *race, runner *runners, size_t *rounds) {
    double start = seconds_now();
    *rounds = 0;
    while (*rounds < MOST_ROUNDS &&
           (*rounds < (size_t)race->rounds || seconds_now() - start < race->seconds * (double)race->count)) {
        for (size_t i = 0; i < race->count; i++) {
            runner *r = &runners[(i + *rounds) % race->count];
            octet_status status = octet_lab_time_engine(r->side.session, 1, &r->seconds[*rounds]);
            if (status != OCTET_OK) return engine_fail(status);
        }
        ++*rounds;
        if (race->stop != NULL && race->stop(race->user)) return oct_fail(OCTET_CANCELLED, "stopped while timing");
    }
    return OCTET_OK;
}

static octet_status describe(const study_race *race, runner *r, size_t rounds, json_t *timings) {
    uint64_t checksum;
    octet_status status = octet_lab_output_checksum(r->side.session, &checksum);
    if (status != OCTET_OK) return engine_fail(status);
    json_t *seconds = json_array();
    for (size_t i = 0; i < rounds; i++) json_array_append_new(seconds, json_real(r->seconds[i]));
    json_t *timing =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:b, s:o}", "scope", "graph", "device", "cpu", "batch",
                  (json_int_t)race->batch, "threads", (json_int_t)race->threads, "warm_up", (json_int_t)race->warm_up,
                  "start", "monotonic clock before the first step", "end", "monotonic clock after the last step",
                  "synchronize", "none: the call returns when the last step is done", "inside",
                  "all steps, on an input that is there", "held", checksum == r->checksum, "seconds", seconds);
    return timing != NULL && json_array_append_new(timings, timing) == 0 ? OCTET_OK : oct_fail_memory();
}

octet_status engine_race(void *user, const study_race *race, json_t **timings) {
    runner *runners = calloc(race->count, sizeof *runners);
    size_t rounds = 0;
    *timings = json_array();
    octet_status status = runners != NULL && *timings != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t i = 0; status == OCTET_OK && i < race->count; i++)
        status = start_runner(user, race, &race->subjects[i], &runners[i]);
    if (status == OCTET_OK) status = run_rounds(race, runners, &rounds);
    for (size_t i = 0; status == OCTET_OK && i < race->count; i++)
        status = describe(race, &runners[i], rounds, *timings);
    for (size_t i = 0; runners != NULL && i < race->count; i++) {
        engine_close(&runners[i].side);
        free(runners[i].seconds);
    }
    free(runners);
    if (status == OCTET_OK) return OCTET_OK;
    json_decref(*timings);
    *timings = NULL;
    return status;
}
