/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph to a plan: a step a node, a place for every activation, a tactic for every step. */
#include "base/alloc.h"
#include "engine/internal.h"
#include "graph/ops.h"

/* What the making holds besides the plan. Freed in oct_plan_make whatever happens. */
typedef struct maker {
    oct_plan *plan;
    oct_graph *graph;
    int32_t (*places)[2];     /* value id -> tensor of each form; or constant */
    int32_t *groups;          /* tensor -> the first tensor of those that share its memory */
    oct_memory_block *blocks; /* a tensor's; valid for the first of a group */
} maker;

void oct_plan_free(oct_plan *plan) {
    if (plan == NULL) return;
    oct_free(plan->outputs);
    oct_free(plan->tensors);
    oct_free(plan->steps);
    oct_arena_free(&plan->arena);
    oct_free(plan);
}

static const char *copy_name(oct_plan *plan, const char *name) {
    return oct_arena_strdup(&plan->arena, name != NULL ? name : "");
}

/* The tensor of form `f` of a value. A second one is named for its format too. */
static octet_status make_tensor(oct_plan *plan, const oct_value *value, int f) {
    oct_plan_tensor *tensor = &plan->tensors[plan->tensor_count++];
    tensor->form = value->forms[f];
    if (f == 0) {
        tensor->name = copy_name(plan, value->name);
    } else {
        char *name = oct_sprintf("%s.%s", value->name, oct_format_name(tensor->form.format));
        tensor->name = name != NULL ? copy_name(plan, name) : NULL;
        oct_free(name);
    }
    if (tensor->name == NULL) return oct_fail_memory();
    tensor->shape = value->shape;
    tensor->is_output = value->is_output && f == 0;
    const int64_t channels = value->shape.dims[value->shape.rank - 1];
    if (channels > INT32_MAX) return oct_fail(OCTET_LIMIT, "%s: %lld channels", tensor->name, (long long)channels);
    if (tensor->form.channel_stride < channels) tensor->form.channel_stride = (int32_t)channels;
    if (!oct_tensor_bytes(&tensor->shape, &tensor->form, &tensor->size))
        return oct_fail(OCTET_LIMIT, "%s: tensor is too large", tensor->name);
    return OCTET_OK;
}

/* A tensor a form of an activation, in order of value id. */
static octet_status make_tensors(maker *m) {
    oct_plan *plan = m->plan;
    const oct_graph *graph = m->graph;
    int32_t constants = 0;
    size_t outputs = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        const oct_value *value = &graph->values[i];
        if (oct_value_is_constant(graph, (int32_t)i)) {
            m->places[i][0] = constants++;
            continue;
        }
        for (int f = 0; f < value->form_count; f++) {
            m->places[i][f] = (int32_t)plan->tensor_count;
            OCT_TRY(make_tensor(plan, value, f));
        }
        outputs += value->is_output;
    }
    for (size_t i = 0; i < plan->tensor_count; i++) {
        oct_form *form = &plan->tensors[i].form;
        if (form->scales != OCT_NONE) form->scales = m->places[form->scales][0];
        if (form->factors != OCT_NONE) form->factors = m->places[form->factors][0];
    }
    plan->outputs = oct_calloc(outputs, sizeof *plan->outputs);
    if (plan->outputs == NULL) return oct_fail_memory();
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].is_output && !oct_value_is_constant(graph, (int32_t)i))
            plan->outputs[plan->output_count++] = m->places[i][0];
    plan->input = m->places[graph->input][0];
    return OCTET_OK;
}

static octet_status make_steps(maker *m) {
    oct_plan *plan = m->plan;
    const oct_graph *graph = m->graph;
    for (size_t i = 0; i < graph->node_count; i++) {
        const oct_graph_node *node = &graph->nodes[i];
        oct_plan_step *step = &plan->steps[plan->step_count++];
        step->op = node->op;
        step->attributes = node->attributes;
        step->name = copy_name(plan, node->name);
        if (step->name == NULL) return oct_fail_memory();
        step->input_count = node->input_count;
        for (int j = 0; j < node->input_count; j++) {
            const bool constant = oct_value_is_constant(graph, node->inputs[j]);
            step->inputs[j].kind = constant ? OCT_OPERAND_CONSTANT : OCT_OPERAND_TENSOR;
            step->inputs[j].index = m->places[node->inputs[j]][constant ? 0 : node->forms[j]];
        }
        step->output = m->places[node->output][0];
        step->has_second = graph->values[node->output].form_count > 1;
        step->second = step->has_second ? m->places[node->output][1] : OCT_NONE;
        step->flops = (uint64_t)oct_node_flops(graph, node);
        step->bytes = (uint64_t)oct_node_bytes(graph, node);
    }
    return OCTET_OK;
}

static void make_lifetimes(oct_plan *plan) {
    const int32_t end = (int32_t)plan->step_count;
    for (size_t i = 0; i < plan->tensor_count; i++) plan->tensors[i].first = plan->tensors[i].last = -1;
    for (int32_t s = 0; s < end; s++) {
        const oct_plan_step *step = &plan->steps[s];
        for (int j = 0; j < step->input_count; j++)
            if (step->inputs[j].kind == OCT_OPERAND_TENSOR) plan->tensors[step->inputs[j].index].last = s;
        plan->tensors[step->output].first = plan->tensors[step->output].last = s;
        if (step->has_second) plan->tensors[step->second].first = plan->tensors[step->second].last = s;
    }
    /* The input is kept too: running again without filling it anew gives the same outputs. */
    plan->tensors[plan->input].last = end;
    for (size_t i = 0; i < plan->output_count; i++) plan->tensors[plan->outputs[i]].last = end;
}

static int32_t group_of(const maker *m, int32_t tensor) {
    while (m->groups[tensor] != tensor) tensor = m->groups[tensor];
    return tensor;
}

static void join(maker *m, int32_t into, int32_t tensor) {
    const int32_t root = group_of(m, into);
    m->groups[tensor] = root;
    oct_memory_block *block = &m->blocks[root], *own = &m->blocks[tensor];
    if (block->last < own->last) block->last = own->last;
    if (block->size < own->size) block->size = own->size;
}

static bool dense(const oct_plan_tensor *tensor) {
    return tensor->form.channel_stride == tensor->shape.dims[tensor->shape.rank - 1];
}

static bool same_layout(const oct_plan_tensor *a, const oct_plan_tensor *b) {
    return oct_shape_equal(&a->shape, &b->shape) && oct_form_is_float(&a->form) && oct_form_is_float(&b->form) &&
           a->form.channel_stride == b->form.channel_stride;
}

/* The tensor whose memory the step's output may take over, or OCT_NONE: one nobody reads afterwards. */
static int32_t dying_input(const maker *m, int32_t s) {
    const oct_plan *plan = m->plan;
    const oct_plan_step *step = &plan->steps[s];
    for (int j = 0; j < step->input_count; j++) {
        const oct_operand operand = step->inputs[j];
        if (operand.kind != OCT_OPERAND_TENSOR || !oct_step_in_place(step, j)) continue;
        const int32_t root = group_of(m, operand.index);
        if (m->blocks[root].last != s) continue;
        if (!same_layout(&plan->tensors[operand.index], &plan->tensors[step->output])) continue;
        bool alone = true;
        for (int k = 0; k < step->input_count; k++)
            if (k != j && step->inputs[k].kind == OCT_OPERAND_TENSOR && group_of(m, step->inputs[k].index) == root)
                alone = false;
        if (alone) return operand.index;
    }
    return OCT_NONE;
}

/* Views and steps in place share memory; every other tensor is a block of its own. */
static void make_groups(maker *m) {
    const oct_plan *plan = m->plan;
    for (size_t i = 0; i < plan->tensor_count; i++) {
        const oct_plan_tensor *tensor = &plan->tensors[i];
        m->groups[i] = (int32_t)i;
        m->blocks[i] = (oct_memory_block){.size = tensor->size, .first = tensor->first, .last = tensor->last};
    }
    for (int32_t s = 0; s < (int32_t)plan->step_count; s++) {
        const oct_plan_step *step = &plan->steps[s];
        int32_t host = OCT_NONE;
        if (step->op == OCT_OP_RESHAPE) {
            const oct_operand in = step->inputs[0];
            if (in.kind == OCT_OPERAND_TENSOR && dense(&plan->tensors[in.index]) &&
                dense(&plan->tensors[step->output]) && oct_form_is_float(&plan->tensors[in.index].form) &&
                oct_form_is_float(&plan->tensors[step->output].form))
                host = in.index;
        } else {
            host = dying_input(m, s);
        }
        if (host != OCT_NONE) join(m, host, step->output);
    }
}

static octet_status make_memory(maker *m) {
    oct_plan *plan = m->plan;
    m->groups = oct_calloc(plan->tensor_count, sizeof *m->groups);
    m->blocks = oct_calloc(plan->tensor_count, sizeof *m->blocks);
    oct_memory_block *roots = oct_calloc(plan->tensor_count, sizeof *roots);
    int32_t *slots = oct_calloc(plan->tensor_count, sizeof *slots);
    octet_status status = OCTET_OK;
    if (m->groups == NULL || m->blocks == NULL || roots == NULL || slots == NULL) {
        status = oct_fail_memory();
    } else {
        make_lifetimes(plan);
        make_groups(m);
        size_t count = 0;
        for (size_t i = 0; i < plan->tensor_count; i++) {
            if (m->groups[i] != (int32_t)i) continue;
            slots[i] = (int32_t)count;
            roots[count++] = m->blocks[i];
        }
        status = oct_memory_place(roots, count, &plan->arena_size);
        for (size_t i = 0; i < plan->tensor_count && status == OCTET_OK; i++)
            plan->tensors[i].offset = roots[slots[group_of(m, (int32_t)i)]].offset;
    }
    oct_free(roots);
    oct_free(slots);
    return status;
}

static octet_status make(maker *m, const oct_weights *weights, const oct_backend *backend,
                         const oct_plan_options *options) {
    oct_plan *plan = m->plan;
    const oct_graph *graph = m->graph;
    plan->batch = options->batch;
    plan->backend = copy_name(plan, backend->name);
    plan->tensors = oct_calloc(2 * graph->value_count, sizeof *plan->tensors);
    plan->steps = oct_calloc(graph->node_count, sizeof *plan->steps);
    m->places = oct_calloc(graph->value_count, sizeof *m->places);
    if (plan->backend == NULL || plan->tensors == NULL || plan->steps == NULL || m->places == NULL)
        return oct_fail_memory();
    OCT_TRY(make_tensors(m));
    OCT_TRY(make_steps(m));
    if (plan->output_count == 0) return oct_fail(OCTET_INVALID_ARGUMENT, "the graph has no output");
    OCT_TRY(make_memory(m));
    for (size_t i = 0; i < plan->step_count; i++) {
        oct_tactic_choice choice;
        OCT_TRY(backend->choose(plan, weights, i, options->force_isa, NULL, &choice, NULL));
        plan->steps[i].tactic = choice.tactic;
    }
    return OCTET_OK;
}

octet_status oct_plan_make(oct_plan **out, oct_graph *graph, const oct_weights *weights, const oct_backend *backend,
                           const oct_plan_options *options) {
    *out = NULL;
    if (options->batch < 1)
        return oct_fail(OCTET_INVALID_ARGUMENT, "batch %lld is not positive", (long long)options->batch);
    OCT_TRY(oct_graph_infer(graph, options->batch));
    maker m = {.graph = graph, .plan = oct_calloc(1, sizeof(oct_plan))};
    if (m.plan == NULL) return oct_fail_memory();
    const octet_status status = make(&m, weights, backend, options);
    oct_free(m.places);
    oct_free(m.groups);
    oct_free(m.blocks);
    if (status != OCTET_OK) {
        oct_plan_free(m.plan);
        return status;
    }
    *out = m.plan;
    return OCTET_OK;
}
