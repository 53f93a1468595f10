/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "runtime/options.h"
#include "runtime/watch.h"

#define THREADS_LIMIT 1024

static void drop_context(octet_session *session) {
    oct_context_free(session->context);
    oct_engine_release(session->engine);
    session->context = NULL;
    session->engine = NULL;
}

octet_status oct_session_prepare(octet_session *session, int height, int width) {
    if (session->context != NULL && session->height == height && session->width == width) return OCTET_OK;
    drop_context(session); /* first: one arena at a time */
    OCT_TRY(oct_model_engine(session->model, height, width, session->pool, &session->engine, NULL));
    octet_status status = oct_context_new(&session->context, session->engine, session->pool);
    if (status != OCTET_OK) {
        drop_context(session);
        return status;
    }
    session->height = height;
    session->width = width;
    return OCTET_OK;
}

static octet_status check_options(const octet_session_options *options) {
    if (options->threads > THREADS_LIMIT) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "threads: expected 0 to %d, found %u", THREADS_LIMIT, options->threads);
    }
    if (options->orientation != OCTET_UPRIGHT && options->orientation != OCTET_STORED) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "orientation: unknown %d", (int)options->orientation);
    }
    return OCTET_OK;
}

static octet_status make_pool(octet_session *session, const octet_session_options *options) {
    if (options->parallel_for != NULL) {
        return oct_pool_new_custom(&session->pool, options->threads, options->parallel_for, options->parallel_for_user);
    }
    return oct_pool_new(&session->pool, options->threads);
}

octet_status octet_session_new(octet_model *model, const octet_session_options *options, octet_session **session) {
    if (session == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "session: expected an address, found NULL");
    *session = NULL;
    if (model == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "model: expected an open model, found NULL");
    octet_session_options own = OCTET_SESSION_OPTIONS_DEFAULT;
    if (options != NULL) OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_session_options"));
    OCT_TRY(check_options(&own));
    octet_session *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->model = oct_model_retain(model);
    made->orientation = own.orientation == OCTET_STORED ? OCT_ORIENTATION_STORED : OCT_ORIENTATION_UPRIGHT;
    octet_status status = make_pool(made, &own);
    if (status == OCTET_OK && !model->follows_picture) status = oct_session_prepare(made, model->height, model->width);
    if (status != OCTET_OK) {
        octet_session_free(&made);
        return status;
    }
    *session = made;
    return OCTET_OK;
}

void octet_session_free(octet_session **session) {
    if (session == NULL || *session == NULL) return;
    drop_context(*session);
    oct_pool_free((*session)->pool);
    oct_model_release((*session)->model);
    oct_free(*session);
    *session = NULL;
}

/* ---- running: pictures of equal input size gather in a group of at most the model's batch */

typedef struct group {
    octet_session *session;
    octet_result **results; /* of the group's first picture */
    size_t count;
    int32_t *picture_sizes; /* width, height a picture */
} group;

/* The numbers a step stored; without memory for them, an event without an array. */
static void watch_step(void *user, const oct_plan *plan, size_t step, const void *output, double seconds) {
    (void)user;
    const oct_plan_step *row = &plan->steps[step];
    const oct_plan_tensor *tensor = &plan->tensors[row->output];
    float *numbers = oct_alloc((size_t)oct_shape_count(&tensor->shape) * sizeof *numbers);
    if (numbers != NULL) oct_tensor_read(tensor, output, numbers);
    oct_watch_emit("cpu", row->tactic, row->name, oct_format_name(tensor->form.format), tensor->shape.rank,
                   tensor->shape.dims, numbers, seconds * 1e3);
    oct_free(numbers);
}

/* The output called `name`; a plan has it, or the family is wrong. */
static octet_status find_output(const octet_session *session, const char *name, const float **data,
                                const oct_shape **shape) {
    const oct_plan *plan = oct_engine_plan(session->engine);
    for (size_t i = 0; i < plan->output_count; i++) {
        if (strcmp(plan->tensors[plan->outputs[i]].name, name) != 0) continue;
        *data = oct_context_output(session->context, i, shape);
        return OCTET_OK;
    }
    return oct_fail(OCTET_INTERNAL, "engine of %s: no output \"%s\"", session->model->facts.architecture, name);
}

static octet_status take_result(const group *pictures, size_t index) {
    const octet_session *session = pictures->session;
    octet_model *model = session->model;
    const float *logits = NULL, *boxes = NULL;
    const oct_shape *shape = NULL, *box_shape = NULL;
    OCT_TRY(find_output(session, "logits", &logits, &shape));
    bool detection = model->facts.task == OCT_TASK_DETECTION;
    if (detection) OCT_TRY(find_output(session, "boxes", &boxes, &box_shape));
    size_t rows = detection ? (size_t)shape->dims[1] : 1, columns = (size_t)shape->dims[shape->rank - 1];
    octet_result **result = &pictures->results[index];
    OCT_TRY(oct_result_new(result, model, pictures->picture_sizes[2 * index], pictures->picture_sizes[2 * index + 1],
                           rows, columns));
    memcpy((*result)->logits, logits + index * rows * columns, rows * columns * sizeof(float));
    if (detection) memcpy((*result)->boxes, boxes + index * rows * 4, rows * 4 * sizeof(float));
    if (oct_watch_on()) {
        int64_t dims[2] = {(int64_t)rows, (int64_t)columns};
        oct_watch_emit("runtime", "src/runtime/result.c", "output logits", "fp32", 2, dims, (*result)->logits, 0.0);
        dims[1] = 4;
        if (detection)
            oct_watch_emit("runtime", "src/runtime/result.c", "output boxes", "fp32", 2, dims, (*result)->boxes, 0.0);
    }
    return OCTET_OK;
}

static size_t input_floats(const octet_session *session, int *stride) {
    oct_context_input(session->context, stride);
    return (size_t)session->height * (size_t)session->width * (size_t)*stride;
}

/* Runs what has gathered; places left in the batch are zeros, so that a result never depends on what ran before. */
static octet_status run_group(group *pictures) {
    if (pictures->count == 0) return OCTET_OK;
    octet_session *session = pictures->session;
    int stride;
    size_t each = input_floats(session, &stride), batch = (size_t)session->model->batch;
    float *input = oct_context_input(session->context, &stride);
    memset(input + pictures->count * each, 0, (batch - pictures->count) * each * sizeof(float));
    double start = oct_watch_now();
    if (session->tap != NULL)
        oct_context_set_tap(session->context, session->tap, session->tap_user);
    else
        oct_context_set_tap(session->context, oct_watch_steps() ? watch_step : NULL, session);
    OCT_TRY(oct_context_run(session->context));
    if (oct_watch_on()) {
        int64_t steps = (int64_t)oct_engine_plan(session->engine)->step_count;
        oct_watch_emit("cpu", "src/cpu/cpu.c", "steps run", "", 1, &steps, NULL, oct_watch_now() - start);
    }
    for (size_t i = 0; i < pictures->count; i++) OCT_TRY(take_result(pictures, i));
    pictures->results += pictures->count;
    pictures->count = 0;
    return OCTET_OK;
}

/* A place in the group for an input of the given size; runs the group first if it is full or of another size. */
static octet_status take_place(group *pictures, int height, int width, const int32_t picture_size[2], float **input,
                               int *stride) {
    octet_session *session = pictures->session;
    bool fits = session->context != NULL && session->height == height && session->width == width;
    if (pictures->count == (size_t)session->model->batch || !fits) OCT_TRY(run_group(pictures));
    OCT_TRY(oct_session_prepare(session, height, width));
    size_t each = input_floats(session, stride);
    *input = oct_context_input(session->context, stride) + pictures->count * each;
    memcpy(&pictures->picture_sizes[2 * pictures->count], picture_size, 2 * sizeof *picture_size);
    pictures->count++;
    return OCTET_OK;
}

/* octet_lab_set_jitter: `count` pixels of three numbers, `stride` apart. */
static void move_input(octet_session *session, float *input, int64_t count, int stride) {
    if (session->jitter == 0.0) return;
    for (int64_t i = 0; i < count; i++) {
        for (int c = 0; c < 3; c++) {
            float *x = &input[i * stride + c];
            *x = (float)((double)*x * (1.0 + session->jitter * (double)oct_random_signed(&session->jitter_state)));
        }
    }
}

static octet_status add_image(group *pictures, const oct_image *image) {
    const oct_preprocess *preprocess = &pictures->session->model->preprocess;
    double start = oct_watch_now();
    oct_image pixels = {0};
    int height, width, stride;
    float *input;
    OCT_TRY(oct_preprocess_size(preprocess, image->width, image->height, &height, &width));
    OCT_TRY(oct_preprocess_pixels(preprocess, image, &pixels));
    int32_t size[2] = {image->width, image->height};
    octet_status status = take_place(pictures, height, width, size, &input, &stride);
    if (status == OCTET_OK) {
        oct_preprocess_normalize(preprocess, &pixels, input, stride);
        move_input(pictures->session, input, (int64_t)height * width, stride);
        int64_t resized[3] = {pixels.height, pixels.width, 3}, dims[3] = {height, width, 3};
        oct_watch_emit("image", "src/image/resize.c", "resized pixels", "uint8", 3, resized, pixels.rgb,
                       oct_watch_now() - start);
        oct_watch_emit("image", "src/image/preprocess.c", "input", "fp32", 3, dims, stride == 3 ? input : NULL,
                       oct_watch_now() - start);
    }
    oct_image_free(&pixels);
    return status;
}

static octet_status add_encoded(group *pictures, const octet_picture *picture) {
    oct_image image = {0};
    double start = oct_watch_now();
    oct_orientation orientation = pictures->session->orientation;
    if (picture->kind == OCTET_PICTURE_FILE) {
        if (picture->path == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "picture: expected a path, found NULL");
        OCT_TRY(oct_image_read(&image, picture->path, orientation));
    } else {
        if (picture->data == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "picture: expected data, found NULL");
        OCT_TRY(oct_image_decode(&image, "picture in memory", picture->data, picture->size, orientation));
    }
    int64_t dims[3] = {image.height, image.width, 3};
    oct_watch_emit("image", "src/image/image.c", "decoded pixels", "uint8", 3, dims, image.rgb,
                   oct_watch_now() - start);
    octet_status status = add_image(pictures, &image);
    oct_image_free(&image);
    return status;
}

/* Bytes between neighbours in a caller's buffer, defaults filled in. */
typedef struct strides {
    int64_t row, pixel, channel;
} strides;

static octet_status read_strides(const octet_picture *picture, int64_t element, strides *out) {
    if (picture->data == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "picture: expected data, found NULL");
    if (picture->width < 1 || picture->height < 1 ||
        (int64_t)picture->width * picture->height > OCT_IMAGE_PIXEL_LIMIT) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "picture: expected 1 to %u pixels, found %d x %d",
                        OCT_IMAGE_PIXEL_LIMIT, (int)picture->width, (int)picture->height);
    }
    out->channel = picture->channel_stride != 0 ? picture->channel_stride : element;
    out->pixel = picture->pixel_stride != 0 ? picture->pixel_stride : 3 * element;
    out->row = picture->row_stride != 0 ? picture->row_stride : picture->width * out->pixel;
    return OCTET_OK;
}

static octet_status add_rgb8(group *pictures, const octet_picture *picture) {
    strides step = {0};
    OCT_TRY(read_strides(picture, 1, &step));
    oct_image image = {.width = picture->width, .height = picture->height};
    image.rgb = oct_alloc((size_t)image.width * (size_t)image.height * 3);
    if (image.rgb == NULL) return oct_fail_memory();
    uint8_t *to = image.rgb;
    for (int64_t y = 0; y < image.height; y++) {
        for (int64_t x = 0; x < image.width; x++) {
            const uint8_t *from = (const uint8_t *)picture->data + y * step.row + x * step.pixel;
            for (int c = 0; c < 3; c++) *to++ = from[c * step.channel];
        }
    }
    octet_status status = add_image(pictures, &image);
    oct_image_free(&image);
    return status;
}

static octet_status add_input(group *pictures, const octet_picture *picture) {
    const octet_model *model = pictures->session->model;
    strides step = {0};
    OCT_TRY(read_strides(picture, (int64_t)sizeof(float), &step));
    if (!model->follows_picture && (picture->height != model->height || picture->width != model->width)) {
        return oct_fail(OCTET_MISMATCH, "input: expected height %d and width %d, found %d and %d", model->height,
                        model->width, (int)picture->height, (int)picture->width);
    }
    int32_t size[2] = {picture->width, picture->height};
    float *input;
    int stride;
    OCT_TRY(take_place(pictures, picture->height, picture->width, size, &input, &stride));
    float *first = input;
    for (int64_t y = 0; y < picture->height; y++) {
        for (int64_t x = 0; x < picture->width; x++, input += stride) {
            const uint8_t *from = (const uint8_t *)picture->data + y * step.row + x * step.pixel;
            memset(input, 0, (size_t)stride * sizeof(float));
            for (int c = 0; c < 3; c++) memcpy(&input[c], from + c * step.channel, sizeof(float));
        }
    }
    move_input(pictures->session, first, (int64_t)picture->height * picture->width, stride);
    return OCTET_OK;
}

static octet_status add_picture(group *pictures, const octet_picture *picture) {
    switch (picture->kind) {
    case OCTET_PICTURE_FILE:
    case OCTET_PICTURE_MEMORY:
        return add_encoded(pictures, picture);
    case OCTET_PICTURE_RGB8:
        return add_rgb8(pictures, picture);
    case OCTET_PICTURE_INPUT:
        return add_input(pictures, picture);
    }
    return oct_fail(OCTET_INVALID_ARGUMENT, "picture: unknown kind %d", (int)picture->kind);
}

/* Picture `index` of a caller's array, whose elements are as large as its header said: struct_size of the first. */
static octet_status read_picture(const octet_picture *pictures, size_t index, octet_picture *own) {
    size_t stride = pictures->struct_size, size;
    const unsigned char *given = (const unsigned char *)pictures + index * stride;
    memcpy(&size, given, sizeof size);
    *own = (octet_picture)OCTET_PICTURE_DEFAULT;
    if (size != stride) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "octet_picture.struct_size: expected %zu as the first's, found %zu",
                        stride, size);
    }
    return oct_options_take(own, sizeof *own, given, "octet_picture");
}

octet_status octet_session_run(octet_session *session, const octet_picture *pictures, size_t count,
                               octet_result **results) {
    if (session == NULL || pictures == NULL || results == NULL || count == 0) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "run: expected a session, at least one picture and room for results");
    }
    memset(results, 0, count * sizeof *results);
    group gathering = {.session = session, .results = results};
    gathering.picture_sizes = oct_calloc((size_t)session->model->batch, 2 * sizeof(int32_t));
    octet_status status = gathering.picture_sizes == NULL ? oct_fail_memory() : OCTET_OK;
    for (size_t i = 0; i < count && status == OCTET_OK; i++) {
        octet_picture picture;
        status = read_picture(pictures, i, &picture);
        bool by_path = status == OCTET_OK && picture.kind == OCTET_PICTURE_FILE;
        if (status == OCTET_OK) status = add_picture(&gathering, &picture);
        if (status != OCTET_OK && count > 1 && !by_path) oct_error_prefix("picture %zu", i);
    }
    if (status == OCTET_OK) status = run_group(&gathering);
    oct_free(gathering.picture_sizes);
    if (status != OCTET_OK) {
        for (size_t i = 0; i < count; i++) octet_result_free(&results[i]);
    }
    return status;
}

octet_status octet_lab_set_jitter(octet_session *session, double relative, uint64_t seed) {
    if (session == NULL || !(relative >= 0.0 && relative < 1.0))
        return oct_fail(OCTET_INVALID_ARGUMENT, "jitter: expected a session and a share of 0 to 1, found %g", relative);
    session->jitter = relative;
    session->jitter_state = seed;
    return OCTET_OK;
}

octet_status octet_session_run_file(octet_session *session, const char *path, octet_result **result) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    picture.path = path;
    return octet_session_run(session, &picture, 1, result);
}

octet_status octet_session_run_memory(octet_session *session, const void *data, size_t size, octet_result **result) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    picture.kind = OCTET_PICTURE_MEMORY;
    picture.data = data;
    picture.size = size;
    return octet_session_run(session, &picture, 1, result);
}
