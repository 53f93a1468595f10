/* SPDX-License-Identifier: Apache-2.0 */
/* A graph run by the reference bodies. A value lives until its last reader has run. */
#include <string.h>

#include "base/alloc.h"
#include "graph/exact.h"
#include "graph/ops.h"
#include "graph/stored.h"

size_t oct_graph_output_count(const oct_graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->value_count; i++) count += graph->values[i].is_output;
    return count;
}

/* A value as stored in each of its forms, owned unless the input's or a constant's own. */
typedef struct evaluation {
    oct_stored (*stored)[2];
    size_t *uses; /* readers still to run, plus one if an output */
    size_t count;
    bool exact; /* products of e4m3 as the tensor cores sum them */
} evaluation;

static bool is_input(const oct_graph *graph, size_t value) {
    const oct_value *v = &graph->values[value];
    return v->producer == OCT_NONE && v->data == NULL && v->codes == NULL;
}

static bool is_owned(const oct_graph *graph, size_t value) {
    const oct_value *v = &graph->values[value];
    return v->producer != OCT_NONE || (is_input(graph, value) && v->forms[0].format != OCT_FORMAT_FP32);
}

static void forget(const oct_graph *graph, evaluation *run, size_t id) {
    const oct_value *value = &graph->values[id];
    for (int f = 0; f < 2; f++) {
        oct_stored *stored = &run->stored[id][f];
        if (is_owned(graph, id) || value->codes != NULL) oct_free(stored->array.data);
        if (is_owned(graph, id)) {
            oct_free(stored->codes);
            oct_free((void *)(uintptr_t)stored->scales);
        }
        stored->array.data = NULL;
        stored->codes = NULL;
        stored->scales = NULL;
    }
}

static void run_end(const oct_graph *graph, evaluation *run) {
    for (size_t i = 0; run->stored != NULL && i < run->count; i++) forget(graph, run, i);
    oct_free(run->stored);
    oct_free(run->uses);
}

/* A constant in eight bits: what its codes stand for. */
static octet_status decode_constant(const oct_graph *graph, const oct_value *value, oct_stored *stored) {
    const oct_form *form = &value->forms[0];
    const size_t count = (size_t)oct_shape_count(&value->shape);
    const size_t channels = form->granularity == OCT_PER_CHANNEL ? (size_t)value->shape.dims[0] : 1;
    const float *scales = form->granularity == OCT_PER_CHANNEL ? graph->values[form->scales].data : &form->scale;
    stored->array.data = oct_alloc(count * sizeof(float));
    if (stored->array.data == NULL) return oct_fail_memory();
    oct_scaled_decode(form->format, value->codes, channels, count / channels, count / channels, scales,
                      stored->array.data);
    if (form->format == OCT_FORMAT_INT8) stored->codes = (int8_t *)value->codes;
    if (form->granularity == OCT_PER_CHANNEL) stored->scales = scales;
    return OCTET_OK;
}

/* Rounds what the node made to each form of its value; the first takes the numbers over. */
static octet_status store(const oct_graph *graph, const oct_value *value, float *made, oct_stored stored[2]) {
    const int64_t count = oct_shape_count(&value->shape), channels = value->shape.dims[value->shape.rank - 1];
    for (int f = value->form_count - 1; f >= 0; f--) {
        const oct_form *form = &value->forms[f];
        const oct_rounding rounding = oct_graph_rounding(graph, form);
        oct_stored *s = &stored[f];
        const bool coded = form->format == OCT_FORMAT_INT8 && !form->held_wide, rows = form->granularity == OCT_PER_ROW;
        s->array.data = f == 0 ? made : oct_alloc((size_t)count * sizeof *made);
        if (coded) s->codes = oct_alloc((size_t)count);
        float *scales = rows ? oct_alloc((size_t)(count / channels) * sizeof *made) : NULL;
        s->scales = scales;
        if (s->array.data == NULL || (coded && s->codes == NULL) || (rows && scales == NULL)) {
            if (f > 0) oct_free(made);
            return oct_fail_memory();
        }
        if (form->format != OCT_FORMAT_FP32 || f > 0)
            oct_stored_round(&rounding, count / channels, channels, made, s->array.data, s->codes, scales);
    }
    return OCTET_OK;
}

/* The picture as stored. A copy, where that rounds it. */
static octet_status store_input(const oct_graph *graph, const float *input, oct_stored *stored) {
    const oct_value *value = &graph->values[graph->input];
    stored->array.data = (float *)(uintptr_t)input; /* bodies only read their inputs */
    if (value->forms[0].format == OCT_FORMAT_FP32) return OCTET_OK;
    const size_t size = (size_t)oct_shape_count(&value->shape) * sizeof(float);
    float *copy = oct_alloc(size);
    stored->array.data = copy;
    if (copy == NULL) return oct_fail_memory();
    memcpy(copy, input, size);
    return store(graph, value, copy, stored);
}

static octet_status run_begin(const oct_graph *graph, const float *input, evaluation *run) {
    *run = (evaluation){.count = graph->value_count};
    run->stored = oct_calloc(run->count, sizeof *run->stored);
    run->uses = oct_calloc(run->count, sizeof *run->uses);
    if (run->stored == NULL || run->uses == NULL) return oct_fail_memory();
    for (size_t i = 0; i < run->count; i++) {
        const oct_value *value = &graph->values[i];
        for (int f = 0; f < 2; f++)
            run->stored[i][f] = (oct_stored){.array.shape = value->shape, .form = &value->forms[f]};
        run->uses[i] = value->is_output;
        if (value->data != NULL) run->stored[i][0].array.data = value->data;
        if (value->codes != NULL) OCT_TRY(decode_constant(graph, value, &run->stored[i][0]));
    }
    if (run->count > 0 && is_input(graph, (size_t)graph->input))
        OCT_TRY(store_input(graph, input, &run->stored[graph->input][0]));
    for (size_t i = 0; i < graph->node_count; i++) {
        for (int j = 0; j < graph->nodes[i].input_count; j++) run->uses[graph->nodes[i].inputs[j]]++;
    }
    return OCTET_OK;
}

static octet_status run_node(const oct_graph *graph, evaluation *run, const oct_graph_node *node, oct_graph_tap tap,
                             void *user) {
    oct_stored inputs[OCT_NODE_INPUTS];
    for (int j = 0; j < node->input_count; j++) inputs[j] = run->stored[node->inputs[j]][node->forms[j]];
    const oct_value *value = &graph->values[node->output];
    oct_array made = {value->shape, oct_alloc((size_t)oct_shape_count(&value->shape) * sizeof(float))};
    if (made.data == NULL) return oct_fail_memory();
    octet_status status = OCTET_OK;
    if (run->exact && oct_exact_is_product(node->op, &node->attributes, inputs))
        status = oct_exact_product(node->op, &node->attributes, inputs, 0, &made);
    else
        oct_stored_reference(node->op, &node->attributes, inputs, node->input_count, &made);
    if (status != OCTET_OK) {
        oct_free(made.data);
        return status;
    }
    oct_stored *stored = run->stored[node->output];
    OCT_TRY(store(graph, value, made.data, stored));
    if (tap != NULL) tap(user, node, &stored[0].array);
    for (int j = 0; j < node->input_count; j++) {
        size_t id = (size_t)node->inputs[j];
        if (--run->uses[id] == 0 && is_owned(graph, id)) forget(graph, run, id);
    }
    return OCTET_OK;
}

/* Hands the outputs over; one that is the input or a constant itself is copied. */
static octet_status take_outputs(const oct_graph *graph, evaluation *run, oct_array *outputs, size_t output_count) {
    size_t taken = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (!graph->values[i].is_output) continue;
        oct_array array = run->stored[i][0].array;
        if (is_owned(graph, i)) {
            run->stored[i][0].array.data = NULL;
        } else {
            size_t size = (size_t)oct_shape_count(&array.shape) * sizeof(float);
            array.data = oct_alloc(size);
            if (array.data != NULL) memcpy(array.data, run->stored[i][0].array.data, size);
        }
        outputs[taken++] = array;
        if (array.data == NULL) {
            for (size_t j = 0; j < output_count; j++) {
                if (j < taken) oct_free(outputs[j].data);
                outputs[j] = (oct_array){0};
            }
            return oct_fail_memory();
        }
    }
    return OCTET_OK;
}

static octet_status evaluate(const oct_graph *graph, const float *input, bool exact, oct_array *outputs,
                             size_t output_count, oct_graph_tap tap, void *user) {
    for (size_t i = 0; i < output_count; i++) outputs[i] = (oct_array){0};
    size_t count = oct_graph_output_count(graph);
    if (output_count != count) {
        return oct_fail(OCTET_INVALID_ARGUMENT, "the graph has %zu outputs, room was given for %zu", count,
                        output_count);
    }
    evaluation run;
    octet_status status = run_begin(graph, input, &run);
    run.exact = exact;
    for (size_t i = 0; i < graph->node_count && status == OCTET_OK; i++) {
        status = run_node(graph, &run, &graph->nodes[i], tap, user);
    }
    if (status == OCTET_OK) status = take_outputs(graph, &run, outputs, output_count);
    run_end(graph, &run);
    return status;
}

octet_status oct_graph_evaluate(const oct_graph *graph, const float *input, oct_array *outputs, size_t output_count,
                                oct_graph_tap tap, void *user) {
    return evaluate(graph, input, false, outputs, output_count, tap, user);
}

octet_status oct_graph_evaluate_exact(const oct_graph *graph, const float *input, oct_array *outputs,
                                      size_t output_count, oct_graph_tap tap, void *user) {
    return evaluate(graph, input, true, outputs, output_count, tap, user);
}
