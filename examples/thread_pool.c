/* SPDX-License-Identifier: Apache-2.0 */
/* Many pictures, many threads: one model that all share, a session for each thread.
 *
 *     cc thread_pool.c -o thread_pool $(pkg-config --cflags --libs octet) -pthread
 *     ./thread_pool MODEL THREADS PICTURE...
 *
 * A model never changes once it is open, so its weights are in memory once. A session holds what one run at a time
 * needs. As there are threads enough here, each session is told to use the thread it is called from and start no more.
 * Which thread runs which picture differs from time to time; what is printed does not. */
#include <octet/octet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct work {
    octet_model *model;
    char **pictures;
    octet_result **results; /* a place a picture: no two threads write one */
    size_t count;
    pthread_mutex_t lock; /* guards what follows */
    size_t next;
    int failed;
} work;

static size_t take_next(work *all) {
    pthread_mutex_lock(&all->lock);
    size_t index = all->next < all->count ? all->next++ : all->count;
    pthread_mutex_unlock(&all->lock);
    return index;
}

/* The text of a failure belongs to the thread that met it: it is printed there. */
static void report(work *all) {
    pthread_mutex_lock(&all->lock);
    fprintf(stderr, "%s\n", octet_error_text());
    all->failed = 1;
    pthread_mutex_unlock(&all->lock);
}

static void *run_worker(void *argument) {
    work *all = argument;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_session *session = NULL;
    options.threads = 1;
    if (octet_session_new(all->model, &options, &session) != OCTET_OK) {
        report(all);
        return NULL;
    }
    /* A picture that cannot be read fails alone: the session goes on with the next. */
    for (size_t i = take_next(all); i < all->count; i = take_next(all)) {
        if (octet_session_run_file(session, all->pictures[i], &all->results[i]) != OCTET_OK) report(all);
    }
    octet_session_free(&session);
    return NULL;
}

static void run_threads(work *all, long count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    long started = 0;
    while (threads != NULL && started < count && pthread_create(&threads[started], NULL, run_worker, all) == 0)
        started++;
    if (started == 0) run_worker(all); /* no thread to be had: this one does it */
    for (long i = 0; i < started; i++) pthread_join(threads[i], NULL);
    free(threads);
}

static void print_result(const char *path, const octet_result *result) {
    octet_class best;
    if (result == NULL)
        printf("%s  failed\n", path);
    else if (octet_result_top(result, &best, 1) == 1)
        printf("%s  %.6f  %s\n", path, (double)best.probability, best.label);
    else
        printf("%s  %zu found\n", path, octet_result_detections(result, 0.5f, NULL, 0));
}

int main(int argc, char **argv) {
    work all = {.pictures = argv + 3};
    long threads = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    if (threads < 1 || threads > 1024) {
        fprintf(stderr, "usage: %s MODEL THREADS PICTURE...\n", argv[0]);
        return 2;
    }
    all.count = (size_t)argc - 3;
    all.results = calloc(all.count, sizeof(octet_result *));
    pthread_mutex_init(&all.lock, NULL);
    if (all.results == NULL || octet_model_open(argv[1], NULL, &all.model) != OCTET_OK) {
        fprintf(stderr, "%s\n", all.results == NULL ? "out of memory" : octet_error_text());
        all.failed = 1;
    } else {
        run_threads(&all, threads);
        octet_model_close(&all.model); /* before its results: they keep what they need */
        for (size_t i = 0; i < all.count; i++) {
            print_result(all.pictures[i], all.results[i]);
            octet_result_free(&all.results[i]);
        }
    }
    pthread_mutex_destroy(&all.lock);
    free(all.results);
    return all.failed;
}
