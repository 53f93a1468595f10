/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "cuda/engine.h"
#include "graph/stored.h"

/* The graphs of a stream. */
enum { SLOT_ALL, SLOT_INPUT, SLOT_ONE };

struct oct_cuda_session {
    oct_cuda_engine *engine;
    oct_stream *stream;
    uint8_t *arena;          /* on the device */
    float *input, **outputs; /* host memory that the device copies from and to */
    oct_launch *launches;    /* all parts' launches in order; the last one makes the input of its staging */
    size_t launch_count;     /* without that one */
    size_t *first;           /* part -> its first launch; part_count + 1 of them */
    bool made;               /* the graphs are */
};

static octet_status host_memory(oct_cuda_session *session, int64_t count, float **memory) {
    oct_device_error error = {{0}};
    void *found = NULL;
    const int status = session->engine->api->allocate_host((uint64_t)count * sizeof(float), &found, &error);
    *memory = found;
    return oct_cuda_fail(status, "session", &error);
}

/* The input's staging to its stored form. */
static void lower_input(const oct_cuda_session *session, oct_launch *launch) {
    const oct_cuda_engine *engine = session->engine;
    const oct_plan *plan = engine->plan;
    const oct_cuda_site site = {plan, engine->weights, 0};
    const oct_cuda_memory memory = {.arena = session->arena, .places = engine->places};
    const oct_shape *shape = &plan->tensors[plan->input].shape;
    oct_rows_launch *l = &launch->u.rows;
    *launch = (oct_launch){.kind = OCT_LAUNCH_ROWS, .step = -1};
    *l = (oct_rows_launch){.kind = OCT_ROW_COPY, .rows = oct_cuda_rows(shape), .out_count = 1};
    l->group = l->rows;
    l->out[0] = oct_cuda_view(&site, &memory, plan->input);
    l->x = (oct_view){.data = session->arena + engine->input_staging,
                      .format = OCT_FORMAT_FP32,
                      .channels = oct_cuda_channels(shape),
                      .stride = oct_cuda_channels(shape),
                      .scale = 1.0f,
                      .inverse = 1.0f,
                      .rows = l->rows};
}

static octet_status lower(oct_cuda_session *session) {
    const oct_cuda_engine *engine = session->engine;
    session->launches = oct_calloc(engine->part_count * OCT_NODE_INPUTS + 1, sizeof *session->launches);
    session->first = oct_calloc(engine->part_count + 1, sizeof *session->first);
    if (session->launches == NULL || session->first == NULL) return oct_fail_memory();
    for (size_t i = 0; i < engine->part_count; i++) {
        const oct_cuda_part *part = &engine->parts[i];
        const oct_cuda_site site = {engine->plan, engine->weights, part->step};
        const oct_cuda_memory memory = {session->arena, engine->packed + part->packed, engine->places};
        oct_launch *at = session->launches + session->launch_count;
        session->first[i] = session->launch_count;
        const size_t count = part->tactic != NULL ? part->tactic->lower(part->tactic, &site, &memory, at) : 0;
        for (size_t j = 0; j < count; j++) at[j].step = (int32_t)part->step;
        session->launch_count += count;
    }
    session->first[engine->part_count] = session->launch_count;
    lower_input(session, &session->launches[session->launch_count]);
    return OCTET_OK;
}

static octet_status make(oct_cuda_session *session) {
    const oct_cuda_engine *engine = session->engine;
    const oct_plan *plan = engine->plan;
    oct_device_error error = {{0}};
    void *arena = NULL;
    OCT_TRY(oct_cuda_fail(engine->api->stream_new(engine->ordinal, &session->stream, &error), "session", &error));
    const int status = engine->api->allocate(engine->ordinal, engine->arena_size, &arena, &error);
    session->arena = arena;
    OCT_TRY(oct_cuda_fail(status, "session", &error));
    OCT_TRY(oct_cuda_fail(engine->api->fill(session->stream, arena, 0, engine->arena_size, &error), "session", &error));
    OCT_TRY(host_memory(session, oct_shape_count(&plan->tensors[plan->input].shape), &session->input));
    session->outputs = oct_calloc(plan->output_count, sizeof *session->outputs);
    if (session->outputs == NULL) return oct_fail_memory();
    for (size_t i = 0; i < plan->output_count; i++) {
        const oct_plan_tensor *output = &plan->tensors[plan->outputs[i]];
        if (output->form.format != OCT_FORMAT_FP32)
            return oct_fail(OCTET_UNSUPPORTED, "%s: expected an output stored as fp32, found %s", output->name,
                            oct_format_name(output->form.format));
        OCT_TRY(host_memory(session, oct_shape_count(&output->shape), &session->outputs[i]));
    }
    return lower(session);
}

octet_status oct_cuda_session_new(oct_cuda_session **out, oct_cuda_engine *engine) {
    *out = NULL;
    oct_cuda_session *session = oct_calloc(1, sizeof *session);
    if (session == NULL) return oct_fail_memory();
    session->engine = engine;
    const octet_status status = make(session);
    if (status != OCTET_OK) {
        oct_cuda_session_free(session);
        return status;
    }
    *out = session;
    return OCTET_OK;
}

void oct_cuda_session_free(oct_cuda_session *session) {
    if (session == NULL) return;
    const oct_device_api *api = session->engine->api;
    if (session->stream != NULL) api->stream_free(session->stream);
    if (session->arena != NULL) api->release(session->arena);
    if (session->input != NULL) api->release_host(session->input);
    for (size_t i = 0; session->outputs != NULL && i < session->engine->plan->output_count; i++)
        if (session->outputs[i] != NULL) api->release_host(session->outputs[i]);
    oct_free(session->outputs);
    oct_free(session->launches);
    oct_free(session->first);
    oct_free(session);
}

float *oct_cuda_session_input(oct_cuda_session *session) {
    return session->input;
}

static int make_graphs(oct_cuda_session *session, oct_device_error *error) {
    const oct_device_api *api = session->engine->api;
    int status = api->graph_make(session->stream, SLOT_ALL, session->launches, session->launch_count, error);
    if (status == OCT_DEVICE_OK)
        status = api->graph_make(session->stream, SLOT_INPUT, session->launches + session->launch_count, 1, error);
    session->made = status == OCT_DEVICE_OK;
    return status;
}

static int run(oct_cuda_session *session, oct_device_error *error) {
    const oct_cuda_engine *engine = session->engine;
    const oct_device_api *api = engine->api;
    const oct_plan *plan = engine->plan;
    const uint64_t bytes = (uint64_t)oct_shape_count(&plan->tensors[plan->input].shape) * sizeof(float);
    int status = session->made ? OCT_DEVICE_OK : make_graphs(session, error);
    if (status == OCT_DEVICE_OK)
        status = api->upload(session->stream, session->arena + engine->input_staging, session->input, bytes, error);
    if (status == OCT_DEVICE_OK) status = api->graph_run(session->stream, SLOT_INPUT, error);
    if (status == OCT_DEVICE_OK) status = api->graph_run(session->stream, SLOT_ALL, error);
    for (size_t i = 0; i < plan->output_count && status == OCT_DEVICE_OK; i++) {
        const int32_t index = plan->outputs[i];
        status = api->download(session->stream, session->outputs[i], session->arena + engine->places[index].offset,
                               (uint64_t)oct_shape_count(&plan->tensors[index].shape) * sizeof(float), error);
    }
    return status == OCT_DEVICE_OK ? api->wait(session->stream, error) : status;
}

octet_status oct_cuda_session_run(oct_cuda_session *session) {
    oct_device_error error = {{0}};
    return oct_cuda_fail(run(session, &error), "CUDA engine", &error);
}

const float *oct_cuda_session_output(const oct_cuda_session *session, size_t index, const oct_shape **shape) {
    const oct_plan *plan = session->engine->plan;
    if (shape != NULL) *shape = &plan->tensors[plan->outputs[index]].shape;
    return session->outputs[index];
}

/* A launch alone is made this often into one graph: launching a graph takes longer than many a kernel. */
#define REPEATS 20

static octet_status make_repeated(oct_cuda_session *session, const oct_launch *launches, size_t count) {
    oct_device_error error = {{0}};
    oct_launch *repeated = oct_calloc(count * REPEATS, sizeof *repeated);
    if (repeated == NULL) return oct_fail_memory();
    for (size_t i = 0; i < count * REPEATS; i++) repeated[i] = launches[i % count];
    const int status = session->engine->api->graph_make(session->stream, SLOT_ONE, repeated, count * REPEATS, &error);
    oct_free(repeated);
    return oct_cuda_fail(status, "timing", &error);
}

octet_status oct_cuda_session_time(oct_cuda_session *session, int launch, int runs, float *milliseconds) {
    const oct_device_api *api = session->engine->api;
    oct_device_error error = {{0}};
    *milliseconds = 0;
    if (!session->made) return oct_fail(OCTET_INVALID_ARGUMENT, "a session is timed after its first run");
    if (launch < 0)
        return oct_cuda_fail(api->graph_time(session->stream, SLOT_ALL, runs, milliseconds, &error), "timing", &error);
    const size_t first = session->first[launch], count = session->first[launch + 1] - first;
    if (count == 0) return OCTET_OK;
    OCT_TRY(make_repeated(session, session->launches + first, count));
    const int status = api->graph_time(session->stream, SLOT_ONE, runs, milliseconds, &error);
    *milliseconds /= REPEATS;
    return oct_cuda_fail(status, "timing", &error);
}

/* ---- one step at a time */

octet_status oct_cuda_session_poison(oct_cuda_session *session) {
    oct_device_error error = {{0}};
    return oct_cuda_fail(
        session->engine->api->fill(session->stream, session->arena, 0xff, session->engine->arena_size, &error),
        "poison", &error);
}

static octet_status check_placed(const oct_cuda_session *session, size_t tensor) {
    if (session->engine->places[tensor].placed) return OCTET_OK;
    return oct_fail(OCTET_UNSUPPORTED, "%s stays inside a fused kernel", session->engine->plan->tensors[tensor].name);
}

/* One number as a code of the format, at element `at`. */
static void put(oct_format format, uint8_t *bytes, int64_t at, float x, float inverse) {
    uint16_t half;
    switch (format) {
    case OCT_FORMAT_FP16:
    case OCT_FORMAT_BF16:
        half = format == OCT_FORMAT_FP16 ? oct_fp16_encode(x) : oct_bf16_encode(x);
        memcpy(bytes + at * 2, &half, sizeof half);
        break;
    case OCT_FORMAT_E4M3:
        bytes[at] = oct_e4m3_encode(x * inverse);
        break;
    case OCT_FORMAT_INT8:
        bytes[at] = (uint8_t)oct_stored_int8(x, inverse);
        break;
    default:
        memcpy(bytes + at * 4, &x, sizeof x);
    }
}

static float get(oct_format format, const uint8_t *bytes, int64_t at, float scale) {
    uint16_t half;
    float x;
    switch (format) {
    case OCT_FORMAT_FP16:
    case OCT_FORMAT_BF16:
        memcpy(&half, bytes + at * 2, sizeof half);
        return format == OCT_FORMAT_FP16 ? oct_fp16_decode(half) : oct_bf16_decode(half);
    case OCT_FORMAT_E4M3:
        return oct_e4m3_decode(bytes[at]) * scale;
    case OCT_FORMAT_INT8:
        return (float)(int8_t)bytes[at] * scale;
    default:
        memcpy(&x, bytes + at * 4, sizeof x);
        return x;
    }
}

static uint64_t tensor_bytes(const oct_cuda_session *session, size_t tensor) {
    return session->engine->places[tensor].size;
}

octet_status oct_cuda_session_write(oct_cuda_session *session, size_t tensor, const float *numbers) {
    const oct_cuda_engine *engine = session->engine;
    const oct_plan_tensor *t = &engine->plan->tensors[tensor];
    const oct_cuda_place *place = &engine->places[tensor];
    const int64_t channels = oct_cuda_channels(&t->shape), rows = oct_cuda_rows(&t->shape);
    OCT_TRY(check_placed(session, tensor));
    uint8_t *bytes = oct_alloc(tensor_bytes(session, tensor));
    if (bytes == NULL) return oct_fail_memory();
    memset(bytes, 0xff, tensor_bytes(session, tensor)); /* padding holds anything */
    for (int64_t r = 0; r < rows; r++) {
        float scale = t->form.scale;
        if (t->form.granularity == OCT_PER_ROW) {
            scale = oct_stored_row_scale(t->form.format, numbers + r * channels, channels);
            memcpy(bytes + (place->scales - place->offset) + (uint64_t)r * sizeof scale, &scale, sizeof scale);
        }
        for (int64_t c = 0; c < channels; c++)
            put(t->form.format, bytes, r * place->stride + c, numbers[r * channels + c], 1.0f / scale);
    }
    oct_device_error error = {{0}};
    int status = engine->api->upload(session->stream, session->arena + place->offset, bytes, place->size, &error);
    if (status == OCT_DEVICE_OK) status = engine->api->wait(session->stream, &error);
    oct_free(bytes);
    return oct_cuda_fail(status, "write", &error);
}

octet_status oct_cuda_session_read(oct_cuda_session *session, size_t tensor, float *numbers) {
    const oct_cuda_engine *engine = session->engine;
    const oct_plan_tensor *t = &engine->plan->tensors[tensor];
    const oct_cuda_place *place = &engine->places[tensor];
    const int64_t channels = oct_cuda_channels(&t->shape), rows = oct_cuda_rows(&t->shape);
    OCT_TRY(check_placed(session, tensor));
    uint8_t *bytes = oct_alloc(tensor_bytes(session, tensor));
    if (bytes == NULL) return oct_fail_memory();
    oct_device_error error = {{0}};
    int status = engine->api->download(session->stream, bytes, session->arena + place->offset, place->size, &error);
    if (status == OCT_DEVICE_OK) status = engine->api->wait(session->stream, &error);
    for (int64_t r = 0; r < rows && status == OCT_DEVICE_OK; r++) {
        float scale = t->form.scale;
        if (t->form.granularity == OCT_PER_ROW)
            memcpy(&scale, bytes + (place->scales - place->offset) + (uint64_t)r * sizeof scale, sizeof scale);
        for (int64_t c = 0; c < channels; c++)
            numbers[r * channels + c] = get(t->form.format, bytes, r * place->stride + c, scale);
    }
    oct_free(bytes);
    return oct_cuda_fail(status, "read", &error);
}

octet_status oct_cuda_session_step(oct_cuda_session *session, size_t launch) {
    const size_t first = session->first[launch], count = session->first[launch + 1] - first;
    oct_device_error error = {{0}};
    int status = session->engine->api->launch(session->stream, session->launches + first, count, &error);
    if (status == OCT_DEVICE_OK) status = session->engine->api->wait(session->stream, &error);
    return oct_cuda_fail(status, "step", &error);
}
