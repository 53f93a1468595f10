/* SPDX-License-Identifier: Apache-2.0 */
/* Running through the public header: every kind of picture, any strides, batch and threads give the same bits. */
#include "models.h"

#include <pthread.h>

#include "base/random.h"

/* ---- kinds of picture and batches */

#define KINDS 6

/* Pictures 0 .. 5: a file, memory, dense pixels, pixels with odd strides, pixels bottom up, a channel-first input. */
typedef struct pictures {
    octet_picture items[KINDS];
    char *directory;
    void *owned[KINDS];
} pictures;

/* As the network takes them: what the preprocessing would give is of no matter here. */
static float *input_planes(int height, int width) {
    size_t count = (size_t)height * (size_t)width * 3;
    float *planes = malloc(count * sizeof *planes);
    assert_non_null(planes);
    for (size_t i = 0; i < count; i++) planes[i] = (float)((int)(i * 37 % 255) - 127) / 64.0f;
    return planes;
}

static void put_strided(octet_picture *picture, void **owned, int width, int height, int number, bool bottom_up) {
    const int64_t pixel = 5, row = 5 * width + 11;
    uint8_t *buffer = malloc((size_t)(row * height) + 8);
    assert_non_null(buffer);
    memset(buffer, 0xa5, (size_t)(row * height) + 8);
    for (int y = 0; y < height; y++) {
        int64_t at = row * (bottom_up ? height - 1 - y : y);
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < 3; c++) buffer[at + pixel * x + 2 * c] = models_level(x, y, c, number);
        }
    }
    *picture = models_picture(OCTET_PICTURE_RGB8);
    picture->data = bottom_up ? buffer + row * (height - 1) : buffer;
    picture->width = width;
    picture->height = height;
    picture->row_stride = bottom_up ? -row : row;
    picture->pixel_stride = pixel;
    picture->channel_stride = 2;
    *owned = buffer;
}

static pictures make_pictures(int input_height, int input_width) {
    pictures made = {.directory = support_temporary_directory()};
    size_t size = 0;
    for (int i = 0; i < 2; i++) {
        uint8_t *file = models_ppm(40 + i, 30, i, &size);
        made.owned[i] = file;
        made.items[i] = models_picture(i == 0 ? OCTET_PICTURE_FILE : OCTET_PICTURE_MEMORY);
        made.items[i].data = file;
        made.items[i].size = size;
        if (i == 0) {
            char *path = strdup(support_join(made.directory, "a b.ppm"));
            support_write_file(path, file, size);
            free(file);
            made.items[0].path = made.owned[0] = path;
            made.items[0].data = NULL;
        }
    }
    made.items[2] = models_picture(OCTET_PICTURE_RGB8);
    made.items[2].data = made.owned[2] = models_rgb(33, 50, 2);
    made.items[2].width = 33;
    made.items[2].height = 50;
    put_strided(&made.items[3], &made.owned[3], 33, 50, 2, false);
    put_strided(&made.items[4], &made.owned[4], 33, 50, 2, true);
    made.items[5] = models_picture(OCTET_PICTURE_INPUT);
    made.items[5].data = made.owned[5] = input_planes(input_height, input_width);
    made.items[5].width = input_width;
    made.items[5].height = input_height;
    made.items[5].row_stride = input_width * (int64_t)sizeof(float);
    made.items[5].pixel_stride = (int64_t)sizeof(float);
    made.items[5].channel_stride = (int64_t)input_width * input_height * (int64_t)sizeof(float);
    return made;
}

static void free_pictures(pictures *made) {
    for (int i = 0; i < KINDS; i++) free(made->owned[i]);
    models_drop(made->directory);
}

static void free_results(octet_result **results, size_t count) {
    for (size_t i = 0; i < count; i++) octet_result_free(&results[i]);
}

/* Alone, and in every batch of 1 to 5, in two orders: the same bits. */
static void check_batches(const char *directory) {
    octet_result *alone[KINDS] = {NULL}, *together[2 * KINDS] = {NULL};
    int32_t height = 0, width = 0;
    octet_model *model = models_open(directory, 1);
    octet_model_input_size(model, &height, &width);
    pictures made = make_pictures(height, width);
    octet_session *session = models_session(model, 1);
    for (int i = 0; i < KINDS; i++) RUNS_OK(octet_session_run(session, &made.items[i], 1, &alone[i]));
    models_same(alone[2], alone[3]);
    models_same(alone[2], alone[4]);
    octet_session_free(&session);
    octet_model_close(&model); /* results keep what they need */
    for (int64_t batch = 1; batch <= 5; batch++) {
        model = models_open(directory, batch);
        assert_int_equal(octet_model_batch(model), batch);
        session = models_session(model, 1 + (uint32_t)batch % 2);
        octet_picture list[2 * KINDS];
        for (int i = 0; i < KINDS; i++) list[i] = list[2 * KINDS - 1 - i] = made.items[i];
        for (size_t count = 1; count <= 2 * KINDS; count += 1 + count / 3) {
            RUNS_OK(octet_session_run(session, list, count, together));
            for (size_t i = 0; i < count; i++) models_same(alone[i < KINDS ? i : 2 * KINDS - 1 - i], together[i]);
            free_results(together, count);
        }
        octet_session_free(&session);
        octet_model_close(&model);
    }
    free_results(alone, KINDS);
    free_pictures(&made);
}

static void test_batches_detector(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    check_batches(directory);
    models_drop(directory);
}

/* Sizes follow the pictures, so groups break where they change. */
static void test_batches_by_edges(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_EDGES);
    check_batches(directory);
    models_drop(directory);
}

static void test_batches_classifier(void **state) {
    (void)state;
    char *directory = models_write_mobilenet("");
    check_batches(directory);
    models_drop(directory);
}

/* An input that the preprocessing made, given as an input, answers as the picture does. */
static void keep_input(void *user, const octet_lab_event *event) {
    octet_picture *input = user;
    if (strcmp(event->what, "input") != 0 || event->data == NULL) return;
    size_t size = (size_t)(event->shape[0] * event->shape[1] * 3) * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, event->data, size);
    *input = models_picture(OCTET_PICTURE_INPUT);
    input->data = copy;
    input->height = (int32_t)event->shape[0];
    input->width = (int32_t)event->shape[1];
}

static void test_input_is_what_preprocessing_made(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_EDGES);
    octet_model *model = models_open(directory, 1);
    octet_session *session = models_session(model, 1);
    octet_picture picture = models_picture(OCTET_PICTURE_RGB8), input = OCTET_PICTURE_DEFAULT;
    uint8_t *rgb = models_rgb(70, 40, 3);
    octet_result *expected = NULL, *found = NULL;
    size_t rows = 0, columns = 0;
    picture.data = rgb;
    picture.width = 70;
    picture.height = 40;
    octet_lab_set_watch(keep_input, &input, 0);
    RUNS_OK(octet_session_run(session, &picture, 1, &expected));
    octet_lab_set_watch(NULL, NULL, 0);
    assert_non_null(input.data);
    RUNS_OK(octet_session_run(session, &input, 1, &found));
    const float *a = octet_result_logits(expected, &rows, &columns), *b = octet_result_logits(found, &rows, &columns);
    assert_memory_equal(a, b, rows * columns * sizeof *a);
    free((void *)(uintptr_t)input.data);
    octet_result_free(&expected);
    octet_result_free(&found);
    octet_session_free(&session);
    octet_model_close(&model);
    free(rgb);
    models_drop(directory);
}

/* ---- threads */

static void backwards(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    *(size_t *)user += count;
    for (size_t i = count; i-- > 0;) task(argument, i);
}

typedef struct share {
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t first, step, count;
} share;

static void *run_share(void *user) {
    const share *s = user;
    for (size_t i = s->first; i < s->count; i += s->step) s->task(s->argument, i);
    return NULL;
}

/* A new thread for each share: as unlike a pool as can be. */
static void three_threads(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    pthread_t threads[3];
    share shares[3];
    *(size_t *)user += count;
    for (size_t i = 0; i < 3; i++) {
        shares[i] = (share){task, argument, i, 3, count};
        assert_int_equal(pthread_create(&threads[i], NULL, run_share, &shares[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) (void)pthread_join(threads[i], NULL);
}

static void test_same_bits_with_any_threads(void **state) {
    (void)state;
    /* our own subjects: steps of a tiny model are too small for more than one thread */
    const char *directories[2] = {OCTET_SOURCE_DIR "/subjects/yolos", OCTET_SOURCE_DIR "/subjects/mobilenetv2_035"};
    size_t size = 0;
    uint8_t *file = models_ppm(90, 70, 4, &size);
    for (int m = 0; m < 2; m++) {
        octet_model *model = models_open(directories[m], 1);
        octet_result *expected = NULL, *found = NULL;
        octet_session *session = models_session(model, 1);
        RUNS_OK(octet_session_run_memory(session, file, size, &expected));
        octet_session_free(&session);
        for (uint32_t threads = 0; threads <= 8; threads++) {
            session = models_session(model, threads);
            RUNS_OK(octet_session_run_memory(session, file, size, &found));
            models_same(expected, found);
            octet_result_free(&found);
            octet_session_free(&session);
        }
        octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
        size_t tasks = 0;
        options.parallel_for_user = &tasks;
        for (uint32_t threads = 1; threads <= 5; threads += 2) {
            options.threads = threads;
            options.parallel_for = threads == 3 ? three_threads : backwards;
            RUNS_OK(octet_session_new(model, &options, &session));
            RUNS_OK(octet_session_run_memory(session, file, size, &found));
            models_same(expected, found);
            octet_result_free(&found);
            octet_session_free(&session);
        }
        assert_true(tasks > 0);
        octet_result_free(&expected);
        octet_model_close(&model);
    }
    free(file);
}

/* Sixteen threads with a session each on one model, sizes of input changing under the engines' cache (four sizes are
 * kept, six are used), the model closed before they end. */
#define WORKERS 16
#define SIZES 6

typedef struct worker {
    octet_session *session;
    octet_result *const *expected;
    int number;
    const char *failure;
} worker;

static const int sizes[SIZES][2] = {{48, 32}, {32, 32}, {32, 48}, {90, 40}, {40, 100}, {200, 50}};

static octet_status run_size(octet_session *session, int index, octet_result **result) {
    octet_picture picture = models_picture(OCTET_PICTURE_RGB8);
    uint8_t *rgb = models_rgb(sizes[index][0], sizes[index][1], index);
    picture.data = rgb;
    picture.width = sizes[index][0];
    picture.height = sizes[index][1];
    octet_status status = octet_session_run(session, &picture, 1, result);
    free(rgb);
    return status;
}

static void *run_worker(void *user) {
    worker *w = user;
    for (int i = 0; i < 12 && w->failure == NULL; i++) {
        int index = (i + w->number) % SIZES;
        octet_result *found = NULL;
        size_t rows = 0, columns = 0;
        if (run_size(w->session, index, &found) != OCTET_OK) {
            w->failure = "a run failed";
            break;
        }
        const float *a = octet_result_logits(w->expected[index], &rows, &columns);
        const float *b = octet_result_logits(found, &rows, &columns);
        if (memcmp(a, b, rows * columns * sizeof *a) != 0) w->failure = "other logits";
        octet_result_free(&found);
    }
    octet_session_free(&w->session);
    return NULL;
}

static void test_sixteen_threads_on_one_model(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_EDGES);
    octet_model *model = models_open(directory, 1);
    octet_result *expected[SIZES] = {NULL};
    octet_session *session = models_session(model, 1);
    for (int i = 0; i < SIZES; i++) RUNS_OK(run_size(session, i, &expected[i]));
    octet_session_free(&session);
    worker workers[WORKERS];
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){models_session(model, 1 + (uint32_t)i % 2), expected, i, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    octet_model_close(&model);
    for (int i = 0; i < WORKERS; i++) (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].failure != NULL) fail_msg("thread %d: %s", i, workers[i].failure);
    }
    free_results(expected, SIZES);
    models_drop(directory);
}

/* ---- results */

/* A NaN among the inputs reaches the logits: the order of classes stays total, nothing is "detected". */
static void test_logits_that_are_not_numbers(void **state) {
    (void)state;
    char *directories[2] = {models_write_mobilenet(""), models_write_yolos(TINY_FIXED)};
    for (int m = 0; m < 2; m++) {
        octet_model *model = models_open(directories[m], 1);
        octet_session *session = models_session(model, 1);
        octet_picture input = models_picture(OCTET_PICTURE_INPUT);
        octet_result *result = NULL;
        int32_t height = 0, width = 0;
        octet_model_input_size(model, &height, &width);
        size_t count = (size_t)height * (size_t)width * 3, rows = 0, columns = 0;
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        for (size_t i = 0; i < count; i++) values[i] = NAN;
        input.data = values;
        input.width = width;
        input.height = height;
        RUNS_OK(octet_session_run(session, &input, 1, &result));
        const float *logits = octet_result_logits(result, &rows, &columns);
        if (m == 0) {
            octet_class top[8];
            assert_int_equal(octet_result_top(result, top, 8), SMALL_CLASSES);
            for (int i = 0; i < SMALL_CLASSES; i++) {
                if (isnan(logits[i])) assert_true(isnan(top[0].probability));
                assert_in_range(top[i].index, 0, SMALL_CLASSES - 1);
                for (int j = 0; j < i; j++) assert_int_not_equal(top[i].index, top[j].index);
                if (i > 0 && isnan(top[i].logit) && isnan(top[i - 1].logit))
                    assert_true(top[i].index > top[i - 1].index);
            }
            assert_int_equal(octet_result_top(result, top, 0), 0);
            assert_int_equal(octet_result_detections(result, 0.0f, NULL, 0), 0);
            size_t boxes = 9;
            assert_null(octet_result_boxes(result, &boxes));
            assert_int_equal(boxes, 0);
        } else {
            for (size_t i = 0; i < rows * columns; i++) assert_true(isnan(logits[i]));
            assert_int_equal(octet_result_detections(result, 0.0f, NULL, 0), 0);
            assert_int_equal(octet_result_detections(result, -INFINITY, NULL, 0), 0);
            octet_class top[2];
            assert_int_equal(octet_result_top(result, top, 2), 0);
        }
        octet_result_free(&result);
        free(values);
        octet_session_free(&session);
        octet_model_close(&model);
        models_drop(directories[m]);
    }
}

static void test_top_and_detections(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    octet_model *model = models_open(directory, 1);
    octet_session *session = models_session(model, 1);
    octet_result *result = NULL;
    size_t size = 0, rows = 0, columns = 0;
    uint8_t *file = models_ppm(100, 60, 9, &size);
    RUNS_OK(octet_session_run_memory(session, file, size, &result));
    assert_int_equal(octet_result_task(result), OCTET_DETECTION);
    const float *logits = octet_result_logits(result, &rows, &columns), *boxes = octet_result_boxes(result, &rows);
    assert_int_equal(rows, TINY_TOKENS);
    assert_int_equal(columns, TINY_CLASSES + 1);
    octet_detection all[TINY_TOKENS + 1];
    memset(all, 0x5a, sizeof all);
    assert_int_equal(octet_result_detections(result, 0.0f, NULL, 0), TINY_TOKENS);
    assert_int_equal(octet_result_detections(result, 0.0f, all, 2), TINY_TOKENS);
    assert_int_equal(all[2].token, 0x5a5a5a5a); /* not more than asked for */
    assert_int_equal(octet_result_detections(result, 0.0f, all, TINY_TOKENS), TINY_TOKENS);
    for (size_t t = 0; t < rows; t++) {
        double total = 0.0, best = -1.0;
        int index = -1;
        for (size_t c = 0; c < columns; c++) total += exp((double)logits[t * columns + c]);
        for (size_t c = 0; c + 1 < columns; c++) {
            double part = exp((double)logits[t * columns + c]) / total;
            if (part > best) index = (int)c;
            best = fmax(best, part);
        }
        assert_int_equal(all[t].token, t);
        assert_int_equal(all[t].index, index);
        assert_string_equal(all[t].label, octet_model_label(model, (size_t)index));
        models_near((double)all[t].score, best, 1e-6, "score", t);
        const float *b = boxes + 4 * t;
        const double expected[4] = {100.0 * (double)(b[0] - b[2] / 2), 60.0 * (double)(b[1] - b[3] / 2),
                                    100.0 * (double)(b[0] + b[2] / 2), 60.0 * (double)(b[1] + b[3] / 2)};
        for (int i = 0; i < 4; i++) models_near((double)all[t].box[i], expected[i], 1e-3, "box", t);
        /* the threshold itself is not above the threshold */
        size_t above = 0;
        for (size_t u = 0; u < rows; u++) above += all[u].score > all[t].score;
        assert_int_equal(octet_result_detections(result, all[t].score, NULL, 0), above);
    }
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    free(file);
    models_drop(directory);
}

/* ---- memory and warnings through the caller's own */

typedef struct counted {
    size_t allocated, released, misaligned;
    pthread_mutex_t lock;
} counted;

static void *count_allocate(void *user, size_t size, size_t alignment) {
    counted *c = user;
    void *memory = NULL;
    pthread_mutex_lock(&c->lock);
    c->allocated++;
    c->misaligned += alignment != 64;
    pthread_mutex_unlock(&c->lock);
    return posix_memalign(&memory, alignment, size > 0 ? size : 1) == 0 ? memory : NULL;
}

static void count_release(void *user, void *memory) {
    counted *c = user;
    pthread_mutex_lock(&c->lock);
    c->released += memory != NULL;
    pthread_mutex_unlock(&c->lock);
    free(memory);
}

static void test_own_allocator(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    counted counts = {.lock = PTHREAD_MUTEX_INITIALIZER};
    octet_allocator allocator = {count_allocate, count_release, &counts};
    octet_set_allocator(&allocator);
    octet_model *model = models_open(directory, 1);
    octet_session *session = models_session(model, 2);
    octet_result *result = NULL;
    char *text = NULL;
    size_t size = 0;
    uint8_t *file = models_ppm(20, 20, 1, &size);
    RUNS_OK(octet_session_run_memory(session, file, size, &result));
    RUNS_OK(octet_lab_describe(model, OCTET_LAB_SUMMARY, &text));
    octet_free(text);
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    octet_set_allocator(NULL);
    assert_true(counts.allocated > 20);
    assert_int_equal(counts.allocated, counts.released);
    assert_int_equal(counts.misaligned, 0);
    free(file);
    models_drop(directory);
}

typedef struct kept_lines {
    char text[4096];
    int count;
} kept_lines;

static void keep_line(void *user, const char *line) {
    kept_lines *lines = user;
    size_t used = strlen(lines->text);
    (void)snprintf(lines->text + used, sizeof lines->text - used, "%s\n", line);
    lines->count++;
}

static void test_warnings(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_FIXED);
    kept_lines lines = {{0}, 0};
    support_write_text(support_join(directory, "model.safetensors.index.json"), "{\"weight_map\": {}}");
    octet_set_log(keep_line, &lines);
    octet_model *model = models_open(directory, 1);
    octet_model_close(&model);
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.text, "model.safetensors"));
    assert_int_equal(strcspn(lines.text, "\n"), strlen(lines.text) - 1);
    octet_set_log(NULL, NULL);
    model = models_open(directory, 1);
    octet_model_close(&model);
    assert_int_equal(lines.count, 1);
    models_drop(directory);
}

/* The engines of six input sizes pass through a cache of four: memory does not grow with the sizes seen. */
static void test_engines_do_not_pile_up(void **state) {
    (void)state;
    char *directory = models_write_yolos(TINY_EDGES);
    octet_model *model = models_open(directory, 1);
    octet_session *session = models_session(model, 1);
    octet_result *result = NULL;
    int64_t live[3];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++) {
            RUNS_OK(run_size(session, i, &result));
            octet_result_free(&result);
        }
        live[round] = oct_alloc_live();
    }
    assert_int_equal(live[1], live[2]);
    octet_session_free(&session);
    octet_model_close(&model);
    models_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_detector),
        cmocka_unit_test(test_batches_by_edges),
        cmocka_unit_test(test_batches_classifier),
        cmocka_unit_test(test_input_is_what_preprocessing_made),
        cmocka_unit_test(test_same_bits_with_any_threads),
        cmocka_unit_test(test_sixteen_threads_on_one_model),
        cmocka_unit_test(test_logits_that_are_not_numbers),
        cmocka_unit_test(test_top_and_detections),
        cmocka_unit_test(test_own_allocator),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_engines_do_not_pile_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
