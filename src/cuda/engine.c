/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/engine.h"

#include "base/alloc.h"

/* A plan's steps as parts, each a tactic that fits. */
static octet_status make_parts(oct_cuda_engine *engine) {
    const oct_plan *plan = engine->plan;
    engine->parts = oct_calloc(plan->step_count, sizeof *engine->parts);
    if (engine->parts == NULL) return oct_fail_memory();
    for (size_t s = 0; s < plan->step_count;) {
        const oct_cuda_site site = {plan, engine->weights, s};
        const oct_cuda_tactic *tactic = oct_cuda_tactic_of(&site);
        if (tactic == NULL) return oct_error_status();
        oct_cuda_part *part = &engine->parts[engine->part_count++];
        *part = (oct_cuda_part){.step = s, .tactic = tactic, .packed = engine->packed_size};
        engine->packed_size += oct_cuda_round_up(tactic->packed(tactic, &site), 256);
        s += tactic->span;
    }
    return OCTET_OK;
}

/* Whether the device has what the plan's kernels need. */
static octet_status check_device(const oct_cuda_engine *engine) {
    oct_device_facts facts = {.name = ""};
    oct_device_error error = {{0}};
    OCT_TRY(oct_cuda_fail(engine->api->facts(engine->ordinal, &facts, &error), "GPU", &error));
    for (size_t i = 0; i < engine->part_count && facts.major < 9; i++) {
        if (engine->parts[i].tactic->generic) continue;
        oct_fail(OCTET_MISMATCH, "kernel %s needs compute capability 9.0 or newer, found %d.%d (%s)",
                 engine->parts[i].tactic->name, (int)facts.major, (int)facts.minor, facts.name);
        return oct_hint("plan with OCTET_CUDA=generic for this card");
    }
    return OCTET_OK;
}

static octet_status check_constants(const oct_cuda_engine *engine) {
    const oct_plan *plan = engine->plan;
    for (size_t s = 0; s < plan->step_count; s++)
        for (int i = 0; i < plan->steps[s].input_count; i++) {
            const oct_operand operand = plan->steps[s].inputs[i];
            if (operand.kind != OCT_OPERAND_CONSTANT) continue;
            const oct_constant *constant = &engine->weights->items[operand.index];
            if (constant->data == NULL && constant->codes == NULL)
                return oct_fail(OCTET_INVALID_ARGUMENT, "%s: the neutral weights of %s were released",
                                plan->steps[s].name, constant->name);
        }
    return OCTET_OK;
}

static octet_status copy_weights(oct_cuda_engine *engine, const uint8_t *image) {
    const oct_device_api *api = engine->api;
    oct_device_error error = {{0}};
    oct_stream *stream = NULL;
    void *memory = NULL;
    OCT_TRY(oct_cuda_fail(api->allocate(engine->ordinal, engine->packed_size, &memory, &error), "weights", &error));
    engine->packed = memory;
    OCT_TRY(oct_cuda_fail(api->stream_new(engine->ordinal, &stream, &error), "weights", &error));
    int status = api->upload(stream, engine->packed, image, engine->packed_size, &error);
    if (status == OCT_DEVICE_OK) status = api->wait(stream, &error);
    api->stream_free(stream);
    return oct_cuda_fail(status, "weights", &error);
}

static octet_status pack(oct_cuda_engine *engine) {
    engine->packed_size += engine->packed_size == 0 ? 256 : 0;
    uint8_t *image = oct_calloc(1, engine->packed_size);
    if (image == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < engine->part_count && status == OCTET_OK; i++) {
        const oct_cuda_part *part = &engine->parts[i];
        const oct_cuda_site site = {engine->plan, engine->weights, part->step};
        if (part->tactic != NULL) status = part->tactic->pack(part->tactic, &site, image + part->packed);
    }
    if (status == OCTET_OK) status = copy_weights(engine, image);
    oct_free(image);
    return status;
}

octet_status oct_cuda_engine_open(oct_cuda_engine **out, const oct_plan *plan, const oct_weights *weights,
                                  const oct_device_api *api, int ordinal) {
    *out = NULL;
    oct_cuda_engine *engine = oct_calloc(1, sizeof *engine);
    if (engine == NULL) return oct_fail_memory();
    *engine = (oct_cuda_engine){.plan = plan, .weights = weights, .api = api, .ordinal = ordinal};
    octet_status status = check_constants(engine);
    if (status == OCTET_OK) status = make_parts(engine);
    if (status == OCTET_OK) status = check_device(engine);
    if (status == OCTET_OK) status = oct_cuda_place_tensors(engine);
    if (status == OCTET_OK) status = pack(engine);
    if (status != OCTET_OK) {
        oct_cuda_engine_free(engine);
        return status;
    }
    *out = engine;
    return OCTET_OK;
}

void oct_cuda_engine_free(oct_cuda_engine *engine) {
    if (engine == NULL) return;
    if (engine->packed != NULL) engine->api->release(engine->packed);
    oct_free(engine->parts);
    oct_free(engine->places);
    oct_free(engine);
}

uint64_t oct_cuda_engine_weight_bytes(const oct_cuda_engine *engine) {
    return engine->packed_size;
}

uint64_t oct_cuda_engine_arena_bytes(const oct_cuda_engine *engine) {
    return engine->arena_size;
}

size_t oct_cuda_engine_launches(const oct_cuda_engine *engine) {
    return engine->part_count;
}

void oct_cuda_engine_launch(const oct_cuda_engine *engine, size_t launch, size_t *step, size_t *steps) {
    *step = engine->parts[launch].step;
    *steps = engine->parts[launch].tactic != NULL ? engine->parts[launch].tactic->span : 1;
}
