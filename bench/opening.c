/* SPDX-License-Identifier: Apache-2.0 */
/* What opening a bundle costs, beside what it cannot do without: reading the file once while hashing it, and packing
 * the weights. And what the first answer costs.
 *
 *     bench_opening BUNDLE PICTURE [RUNS]
 *
 * Everything is measured RUNS (21) times in turns, file cache warm, one thread; medians, in milliseconds of processor
 * time, which other programs do not touch as long as they leave the caches alone. Exit status 3 where opening takes
 * more than 1.2 x (hash + packing), or the first answer more than opening + two inferences. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "octet/lab.h"

#define RUNS_MOST 1001

enum { HASH, OPENING, PACKING, FIRST, RUN, COUNT };
static const char *const names[COUNT] = {"hash of the file", "opening", "of it packing", "first answer", "inference"};
static double samples[COUNT][RUNS_MOST];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Read in pieces that stay in the cache, hashed as they come. */
static int hash_file(const char *path, double *milliseconds) {
    static unsigned char piece[1 << 18];
    unsigned char digest[EVP_MAX_MD_SIZE];
    double start = now();
    int descriptor = open(path, O_RDONLY);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int good = descriptor >= 0 && context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    ssize_t got = 0;
    while (good && (got = read(descriptor, piece, sizeof piece)) > 0)
        good = EVP_DigestUpdate(context, piece, (size_t)got) == 1;
    good = good && got == 0 && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (descriptor >= 0) (void)close(descriptor);
    *milliseconds = now() - start;
    return good;
}

/* Packing follows on reading: from the end of the one to its own. */
static void watch(void *user, const octet_lab_event *event) {
    static double read;
    if (strcmp(event->what, "sections") == 0) read = now();
    if (strcmp(event->what, "steps, weights packed") == 0) *(double *)user = now() - read;
}

/* From nothing to an answer, then a second answer. */
static octet_status measure(const char *bundle, const char *picture, int run) {
    octet_open_options open_options = OCTET_OPEN_OPTIONS_DEFAULT;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_model *model = NULL;
    octet_session *session = NULL;
    octet_result *result = NULL;
    open_options.threads = options.threads = 1;
    octet_lab_set_watch(watch, &samples[PACKING][run], 0);
    double start = now();
    octet_status status = octet_model_open(bundle, &open_options, &model);
    samples[OPENING][run] = now() - start;
    octet_lab_set_watch(NULL, NULL, 0);
    if (status == OCTET_OK) status = octet_session_new(model, &options, &session);
    if (status == OCTET_OK) status = octet_session_run_file(session, picture, &result);
    samples[FIRST][run] = now() - start;
    octet_result_free(&result);
    start = now();
    if (status == OCTET_OK) status = octet_session_run_file(session, picture, &result);
    samples[RUN][run] = now() - start;
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    return status;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int what, int runs) {
    qsort(samples[what], (size_t)runs, sizeof(double), compare);
    return samples[what][runs / 2];
}

/* The bound and whether it is met. */
static int judge(const char *what, double found, double bound) {
    int met = found <= bound;
    printf("%-44s %9.3f of %9.3f  %s\n", what, found, bound, met ? "met" : "MISSED");
    return met;
}

int main(int argc, char **argv) {
    int runs = argc == 4 ? atoi(argv[3]) : 21;
    double middle[COUNT];
    char *machine = NULL;
    if (argc < 3 || argc > 4 || runs < 1 || runs > RUNS_MOST) {
        fprintf(stderr, "usage: %s BUNDLE PICTURE [RUNS of 1 to %d]\n", argv[0], RUNS_MOST);
        return 2;
    }
    if (octet_lab_machine(&machine) == OCTET_OK) printf("machine  %s\nbundle   %s, %d runs\n", machine, argv[1], runs);
    octet_free(machine);
    for (int i = 0; i < runs; i++) {
        if (!hash_file(argv[1], &samples[HASH][i])) {
            fprintf(stderr, "%s: could not be read\n", argv[1]);
            return 1;
        }
        if (measure(argv[1], argv[2], i) != OCTET_OK) {
            fprintf(stderr, "%s\n", octet_error_text());
            return 1;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        middle[i] = median(i, runs);
        printf("%-20s %9.3f ms  (%.3f to %.3f)\n", names[i], middle[i], samples[i][runs / 4], samples[i][runs * 3 / 4]);
    }
    int met = judge("opening within 1.2 x (hash + packing)", middle[OPENING], 1.2 * (middle[HASH] + middle[PACKING]));
    met &= judge("first answer within opening + 2 inferences", middle[FIRST], middle[OPENING] + 2 * middle[RUN]);
    return met ? 0 : 3;
}
