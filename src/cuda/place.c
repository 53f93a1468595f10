/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of a session. Unlike the plan's own, it counts lifetimes in launches (a fused block reads its input until
 * its last write), pads rows and keeps formats as they are. */
#include "base/alloc.h"
#include "cuda/engine.h"
#include "engine/internal.h"

typedef struct placing {
    oct_cuda_engine *engine;
    int32_t *part_of; /* step -> launch */
    int32_t *root;    /* tensor -> the tensor whose memory it shows */
    oct_memory_block *blocks;
    int32_t *slots; /* tensor -> block */
} placing;

static void size_of(const oct_plan_tensor *tensor, oct_cuda_place *place) {
    const uint64_t element = oct_format_bits(tensor->form.format) / 8, rows = (uint64_t)oct_cuda_rows(&tensor->shape);
    const uint64_t channels = (uint64_t)oct_cuda_channels(&tensor->shape);
    /* float32 rows stay dense: they are copied to and from the host; a narrow pixel takes four elements */
    const uint64_t unit = tensor->form.format == OCT_FORMAT_FP32 ? element : channels <= 4 ? 4 * element : 16;
    const uint64_t row = oct_cuda_round_up(channels * element, unit);
    place->stride = (int32_t)(row / element);
    place->scales = oct_cuda_round_up(rows * row, 256);
    place->size = place->scales;
    if (tensor->form.granularity == OCT_PER_ROW) place->size += oct_cuda_round_up(rows * sizeof(float), 256);
}

static bool same_memory(const oct_plan *plan, const oct_cuda_place *places, int32_t a, int32_t b) {
    const oct_plan_tensor *x = &plan->tensors[a], *y = &plan->tensors[b];
    return x->form.format == y->form.format && x->form.granularity == OCT_PER_TENSOR &&
           y->form.granularity == OCT_PER_TENSOR && x->form.scale == y->form.scale &&
           places[a].stride == oct_cuda_channels(&x->shape) && places[b].stride == oct_cuda_channels(&y->shape);
}

/* RESHAPE of dense rows shows its input. Its part is emptied. */
static void join_views(placing *p) {
    oct_cuda_engine *engine = p->engine;
    for (size_t i = 0; i < engine->part_count; i++) {
        const oct_plan_step *step = &engine->plan->steps[engine->parts[i].step];
        if (step->op != OCT_OP_RESHAPE || step->has_second || step->inputs[0].kind != OCT_OPERAND_TENSOR) continue;
        const int32_t in = step->inputs[0].index;
        if (!same_memory(engine->plan, engine->places, in, step->output)) continue;
        p->root[step->output] = p->root[in];
        engine->parts[i].tactic = NULL;
    }
}

static void live(placing *p, int32_t tensor, int32_t part) {
    oct_memory_block *block = &p->blocks[p->root[tensor]];
    if (block->first > part) block->first = part;
    if (block->last < part) block->last = part;
}

static void find_lifetimes(placing *p) {
    const oct_plan *plan = p->engine->plan;
    const int32_t end = (int32_t)p->engine->part_count;
    for (size_t t = 0; t < plan->tensor_count; t++) p->blocks[t] = (oct_memory_block){.first = end + 1, .last = -2};
    for (size_t s = 0; s < plan->step_count; s++) {
        const oct_plan_step *step = &plan->steps[s];
        for (int i = 0; i < step->input_count; i++)
            if (step->inputs[i].kind == OCT_OPERAND_TENSOR) live(p, step->inputs[i].index, p->part_of[s]);
        live(p, step->output, p->part_of[s]);
        if (step->has_second) live(p, step->second, p->part_of[s]);
    }
    live(p, plan->input, -1);
    live(p, plan->input, end);
    for (size_t i = 0; i < plan->output_count; i++) live(p, plan->outputs[i], end);
}

/* A tensor that one part makes and nobody else reads, inside a span: it needs no memory. */
static bool stays_inside(const placing *p, int32_t tensor) {
    const oct_cuda_engine *engine = p->engine;
    const oct_memory_block *block = &p->blocks[p->root[tensor]];
    if (block->first != block->last || block->first < 0 || block->first >= (int32_t)engine->part_count) return false;
    const oct_cuda_part *part = &engine->parts[block->first];
    if (part->tactic == NULL || part->tactic->span < 2) return false;
    const oct_plan_step *last = &engine->plan->steps[part->step + part->tactic->span - 1];
    return last->output != tensor && !(last->has_second && last->second == tensor);
}

static octet_status place(placing *p) {
    oct_cuda_engine *engine = p->engine;
    const oct_plan *plan = engine->plan;
    for (size_t i = 0; i < engine->part_count; i++)
        for (size_t s = 0; s < engine->parts[i].tactic->span; s++) p->part_of[engine->parts[i].step + s] = (int32_t)i;
    for (size_t t = 0; t < plan->tensor_count; t++) {
        p->root[t] = (int32_t)t;
        size_of(&plan->tensors[t], &engine->places[t]);
    }
    join_views(p);
    find_lifetimes(p);
    size_t count = 0;
    oct_memory_block *blocks = p->blocks + plan->tensor_count; /* those that are placed */
    for (size_t t = 0; t < plan->tensor_count; t++) {
        engine->places[t].placed = !stays_inside(p, (int32_t)t);
        if (p->root[t] != (int32_t)t || !engine->places[t].placed) continue;
        p->slots[t] = (int32_t)count;
        blocks[count] = p->blocks[t];
        blocks[count++].size = engine->places[t].size;
    }
    OCT_TRY(oct_memory_place(blocks, count, &engine->arena_size));
    for (size_t t = 0; t < plan->tensor_count; t++) {
        oct_cuda_place *at = &engine->places[t];
        if (!at->placed) continue;
        at->offset = blocks[p->slots[p->root[t]]].offset;
        at->scales += at->offset;
    }
    return OCTET_OK;
}

octet_status oct_cuda_place_tensors(oct_cuda_engine *engine) {
    const oct_plan *plan = engine->plan;
    placing p = {.engine = engine};
    engine->places = oct_calloc(plan->tensor_count, sizeof *engine->places);
    p.part_of = oct_calloc(plan->step_count, sizeof *p.part_of);
    p.root = oct_calloc(plan->tensor_count, sizeof *p.root);
    p.slots = oct_calloc(plan->tensor_count, sizeof *p.slots);
    p.blocks = oct_calloc(2 * plan->tensor_count, sizeof *p.blocks);
    octet_status status = OCTET_OK;
    if (engine->places == NULL || p.part_of == NULL || p.root == NULL || p.slots == NULL || p.blocks == NULL)
        status = oct_fail_memory();
    else
        status = place(&p);
    oct_free(p.part_of);
    oct_free(p.root);
    oct_free(p.slots);
    oct_free(p.blocks);
    if (status != OCTET_OK) return status;
    /* the input as the host gives it lies behind everything */
    engine->input_staging = oct_cuda_round_up(engine->arena_size, 256);
    engine->arena_size =
        engine->input_staging + (uint64_t)oct_shape_count(&plan->tensors[plan->input].shape) * sizeof(float);
    return OCTET_OK;
}
