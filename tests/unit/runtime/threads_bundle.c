/* SPDX-License-Identifier: Apache-2.0 */
/* Our own trained models: a bundle answers as its checkpoint does, to the bit, in batches of 1 and 3 and on every
 * instruction set; and one model shared by 1 to 64 threads answers each of them as it answers one. */
#include "models.h"

#include <pthread.h>

#define PICTURES 4

/* Without optimisation or with sanitizers everything takes ten times longer. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SLOW_BUILD true
#else
#    define SLOW_BUILD false
#endif

static const struct {
    const char *name, *pictures;
} subjects[] = {{"mobilenetv2_035", "classify"}, {"yolos", "detect"}};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

typedef struct subject {
    char checkpoint[512], bundle[512], paths[PICTURES][512];
    octet_picture pictures[PICTURES];
} subject;

static char *folder;

static void find_subject(subject *s, size_t index) {
    memset(s, 0, sizeof *s);
    (void)snprintf(s->checkpoint, sizeof s->checkpoint, "%s/subjects/%s", OCTET_SOURCE_DIR, subjects[index].name);
    (void)snprintf(s->bundle, sizeof s->bundle, "%s/%s.octet", folder, subjects[index].name);
    for (int i = 0; i < PICTURES; i++) {
        (void)snprintf(s->paths[i], sizeof s->paths[i], "%s/subjects/pictures/%s/00000%d.jpg", OCTET_SOURCE_DIR,
                       subjects[index].pictures, i);
        s->pictures[i] = models_picture(OCTET_PICTURE_FILE);
        s->pictures[i].path = s->paths[i];
    }
}

static void build(const subject *s) {
    static const int64_t batches[] = {1, 3};
    char identity[65];
    octet_lab_build_options options = {.struct_size = sizeof options};
    options.recipe = "fp32";
    options.batches = batches;
    options.batch_count = 2;
    options.effort = 1;
    options.threads = 1;
    RUNS_OK(octet_lab_build(s->checkpoint, &options, s->bundle, identity));
}

/* The first `count` pictures; four of them leave a batch of three not full. */
static void run_all(const subject *s, const char *place, int64_t batch, size_t count, octet_result **results) {
    octet_model *model = models_open(place, batch);
    octet_session *session = models_session(model, 1);
    assert_int_equal(octet_model_batch(model), batch);
    RUNS_OK(octet_session_run(session, s->pictures, count, results));
    octet_session_free(&session);
    octet_model_close(&model);
}

static void run_and_compare(const subject *s, const char *place, int64_t batch, size_t count,
                            octet_result *const *expected) {
    octet_result *found[PICTURES];
    run_all(s, place, batch, count, found);
    for (size_t i = 0; i < count; i++) {
        models_same(expected[i], found[i]);
        octet_result_free(&found[i]);
    }
}

static bool has(const char *set, const char *place) {
    octet_model *model = NULL;
    (void)setenv("OCTET_CPU", set, 1);
    octet_status status = octet_model_open(place, NULL, &model);
    octet_model_close(&model);
    if (status != OCTET_UNSUPPORTED) return true;
    print_message("%s\n", octet_error_text());
    return false;
}

/* The checkpoint at batch 1 on the best set is the measure for all others. A bundle made with one set runs on all.
 * Plain C takes a hundred times longer for the detector, which therefore does little there but in the long tests. */
static void test_bundle_is_checkpoint(void **state) {
    (void)state;
    static const char *const sets[] = {"c", "avx2", "avx512"};
    for (size_t m = 0; m < SUBJECTS; m++) {
        subject s;
        octet_result *expected[PICTURES];
        find_subject(&s, m);
        (void)unsetenv("OCTET_CPU");
        build(&s);
        run_all(&s, s.checkpoint, 1, PICTURES, expected);
        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
            bool slow = i == 0 && !models_long();
            size_t count = slow ? 1 : PICTURES;
            if (slow && SLOW_BUILD && m == 1) continue;
            if (!has(sets[i], s.checkpoint)) continue;
            for (int64_t batch = 1; batch <= (slow && m == 1 ? 1 : 3); batch += 2) {
                run_and_compare(&s, s.bundle, batch, count, expected);
                if (!slow || m == 0) run_and_compare(&s, s.checkpoint, batch, count, expected);
            }
            build(&s); /* with this set, then run on the best */
            (void)unsetenv("OCTET_CPU");
            run_and_compare(&s, s.bundle, 1, PICTURES, expected);
        }
        for (int i = 0; i < PICTURES; i++) octet_result_free(&expected[i]);
    }
}

/* ---- threads */

#define THREADS 64

typedef struct worker {
    octet_model *model;
    const subject *s;
    octet_result *const *expected;
    int number, runs;
    const char *failure;
} worker;

static bool equal(const octet_result *a, const octet_result *b) {
    size_t rows = 0, columns = 0, boxes = 0;
    const float *x = octet_result_logits(a, &rows, &columns), *y = octet_result_logits(b, NULL, NULL);
    if (memcmp(x, y, rows * columns * sizeof *x) != 0) return false;
    x = octet_result_boxes(a, &boxes);
    y = octet_result_boxes(b, NULL);
    return boxes == 0 || memcmp(x, y, boxes * 4 * sizeof *x) == 0;
}

/* A session is made, used and freed in the thread; picture and threads differ from worker to worker. */
static void *run_worker(void *user) {
    worker *w = user;
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_session *session = NULL;
    options.threads = 1 + (uint32_t)(w->number % 8 == 0);
    if (octet_session_new(w->model, &options, &session) != OCTET_OK) {
        w->failure = "no session";
        return NULL;
    }
    for (int i = 0; i < w->runs && w->failure == NULL; i++) {
        int index = (w->number + i) % PICTURES;
        octet_result *found = NULL;
        if (octet_session_run(session, &w->s->pictures[index], 1, &found) != OCTET_OK)
            w->failure = "a run failed";
        else if (!equal(w->expected[index], found))
            w->failure = "other outputs";
        octet_result_free(&found);
    }
    octet_session_free(&session);
    return NULL;
}

static void run_threads(const subject *s, octet_result *const *expected, int count) {
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    octet_model *model = models_open(s->bundle, 1);
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){model, s, expected, i, count == THREADS || SLOW_BUILD ? 1 : 2, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) (void)pthread_join(threads[i], NULL);
    octet_model_close(&model);
    for (int i = 0; i < count; i++) {
        if (workers[i].failure != NULL) fail_msg("thread %d of %d: %s", i, count, workers[i].failure);
    }
}

static void test_threads_on_one_bundle(void **state) {
    (void)state;
    for (size_t m = 0; m < SUBJECTS; m++) {
        subject s;
        octet_result *expected[PICTURES];
        find_subject(&s, m);
        build(&s);
        run_all(&s, s.bundle, 1, PICTURES, expected);
        for (int count = 1; count <= THREADS; count *= SLOW_BUILD ? 8 : 4) run_threads(&s, expected, count);
        for (int i = 0; i < PICTURES; i++) octet_result_free(&expected[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundle_is_checkpoint),
        cmocka_unit_test(test_threads_on_one_bundle),
    };
    folder = support_temporary_directory();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    models_drop(folder);
    return failed;
}
