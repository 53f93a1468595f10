/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a checkpoint with a recipe on one input and writes all that passes, each stored form of each value and each
 * weight as stored: what reference/quantized_compare.py holds step by step against an independent reference.
 *
 *     steps CHECKPOINT RECIPE SCALES|- INPUT DIRECTORY
 *
 *     RECIPE      a recipe of the family, fp16, or a YAML file
 *     INPUT       the network's input, float32 as this machine writes them, [height, width, 3] at the model's own size
 *     DIRECTORY   gets numbers.bin, float32 behind one another, and steps.jsonl, an object a line:
 *                 {"constant": i, "name", "shape", "format", "at"}        "at": the first number in numbers.bin
 *                 {"tensor": i, "name", "shape", "format", "granularity", "block", "scale", "zero_point", "at"}
 *                 {"step": i, "name", "op", "tactic", "inputs": ["t3", "c5"], "outputs": [4, 5]}
 *
 * Tensors are the numbers that their codes stand for; a tensor has a line when it has been made, before its step's. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "graph/ops.h"
#include "runtime/model.h"

typedef struct writing {
    const oct_weights *weights;
    FILE *numbers;
    oct_text lines;
    int64_t at;
    octet_status status;
} writing;

static octet_status write_numbers(writing *w, const float *numbers, int64_t count) {
    if (fwrite(numbers, sizeof *numbers, (size_t)count, w->numbers) != (size_t)count)
        return oct_fail(OCTET_IO, "numbers.bin could not be written");
    w->at += count;
    return OCTET_OK;
}

static void print_shape(const oct_shape *shape, oct_text *text) {
    oct_text_puts(text, "\"shape\": ");
    oct_shape_print(shape, text);
}

/* ---- constants */

static octet_status write_constant(writing *w, size_t index) {
    const oct_constant *constant = &w->weights->items[index];
    const int64_t count = oct_shape_count(&constant->shape), rows = constant->shape.dims[0];
    oct_text_printf(&w->lines, "{\"constant\": %zu, \"name\": \"%s\", ", index, constant->name);
    print_shape(&constant->shape, &w->lines);
    oct_text_printf(&w->lines, ", \"format\": \"%s\", \"at\": %lld}\n", oct_format_name(constant->form.format),
                    (long long)w->at);
    if (constant->data != NULL) return write_numbers(w, constant->data, count);
    const bool channel = constant->form.granularity == OCT_PER_CHANNEL;
    const float *scales = channel ? w->weights->items[constant->form.scales].data : &constant->form.scale;
    float *numbers = oct_alloc((size_t)count * sizeof *numbers);
    if (numbers == NULL) return oct_fail_memory();
    const size_t groups = channel ? (size_t)rows : 1, columns = (size_t)count / groups;
    oct_scaled_decode(constant->form.format, constant->codes, groups, columns, columns, scales, numbers);
    octet_status status = write_numbers(w, numbers, count);
    oct_free(numbers);
    return status;
}

/* ---- activations */

static octet_status write_tensor(writing *w, const oct_plan *plan, int32_t index, const uint8_t *arena) {
    static const char *const granularities[] = {"tensor", "channel", "row", "block"};
    const oct_plan_tensor *tensor = &plan->tensors[index];
    const int64_t count = oct_shape_count(&tensor->shape);
    float *numbers = oct_alloc((size_t)count * sizeof *numbers);
    if (numbers == NULL) return oct_fail_memory();
    oct_tensor_read(tensor, arena + tensor->offset, numbers);
    oct_text_printf(&w->lines, "{\"tensor\": %d, \"name\": \"%s\", ", (int)index, tensor->name);
    print_shape(&tensor->shape, &w->lines);
    oct_text_printf(&w->lines,
                    ", \"format\": \"%s\", \"granularity\": \"%s\", \"block\": %d, \"scale\": %.9g, \"zero_point\": "
                    "%d, \"at\": %lld}\n",
                    oct_format_name(tensor->form.format), granularities[tensor->form.granularity],
                    (int)tensor->form.block, (double)tensor->form.scale, (int)tensor->form.zero_point,
                    (long long)w->at);
    octet_status status = write_numbers(w, numbers, count);
    oct_free(numbers);
    return status;
}

static octet_status write_step(writing *w, const oct_plan *plan, size_t index, const uint8_t *arena) {
    const oct_plan_step *step = &plan->steps[index];
    if (index == 0) OCT_TRY(write_tensor(w, plan, plan->input, arena));
    OCT_TRY(write_tensor(w, plan, step->output, arena));
    if (step->has_second) OCT_TRY(write_tensor(w, plan, step->second, arena));
    oct_text_printf(&w->lines, "{\"step\": %zu, \"name\": \"%s\", \"op\": \"%s\", \"tactic\": \"%s\", \"inputs\": [",
                    index, step->name, oct_op_rows[step->op].name, step->tactic);
    for (int i = 0; i < step->input_count; i++)
        oct_text_printf(&w->lines, "%s\"%c%d\"", i > 0 ? ", " : "",
                        step->inputs[i].kind == OCT_OPERAND_TENSOR ? 't' : 'c', (int)step->inputs[i].index);
    oct_text_printf(&w->lines, "], \"outputs\": [%d", (int)step->output);
    if (step->has_second) oct_text_printf(&w->lines, ", %d", (int)step->second);
    oct_text_puts(&w->lines, "]}\n");
    return OCTET_OK;
}

static void tap(void *user, const oct_plan *plan, size_t step, const void *output, double seconds) {
    (void)seconds;
    writing *w = user;
    const uint8_t *arena = (const uint8_t *)output - plan->tensors[plan->steps[step].output].offset;
    if (w->status == OCTET_OK) w->status = write_step(w, plan, step, arena);
}

/* ---- running */

/* Reads the picture into the context's input. */
static octet_status fill(oct_context *context, const oct_plan *plan, const char *path) {
    const oct_shape *shape = &plan->tensors[plan->input].shape;
    const size_t channels = (size_t)shape->dims[3], pixels = (size_t)oct_shape_count(shape) / channels;
    uint8_t *bytes;
    size_t size;
    int stride;
    OCT_TRY(oct_file_read(path, (size_t)1 << 30, &bytes, &size));
    octet_status status = OCTET_OK;
    if (size != pixels * channels * sizeof(float))
        status = oct_fail(OCTET_MISMATCH, "%s: expected %zu bytes of float32, found %zu", path,
                          pixels * channels * sizeof(float), size);
    float *input = oct_context_input(context, &stride);
    for (size_t i = 0; status == OCTET_OK && i < pixels; i++)
        memcpy(input + i * (size_t)stride, bytes + i * channels * sizeof(float), channels * sizeof(float));
    oct_free(bytes);
    return status;
}

static octet_status run(oct_engine *engine, writing *w, const char *input) {
    oct_context *context;
    OCT_TRY(oct_context_new(&context, engine, NULL));
    octet_status status = fill(context, oct_engine_plan(engine), input);
    oct_context_set_tap(context, tap, w);
    if (status == OCTET_OK) status = oct_context_run(context);
    oct_context_free(context);
    return status == OCTET_OK ? w->status : status;
}

static octet_status compile(octet_model *model, oct_engine **engine, oct_weights **weights) {
    oct_graph graph;
    oct_plan *plan = NULL;
    const oct_plan_options options = {.batch = 1};
    *weights = NULL;
    OCT_TRY(oct_model_graph(model, model->height, model->width, &graph));
    octet_status status = oct_weights_from_graph(weights, &graph);
    if (status == OCTET_OK) status = oct_plan_make(&plan, &graph, *weights, oct_cpu_backend(), &options);
    oct_graph_free(&graph);
    return status == OCTET_OK ? oct_engine_open(engine, plan, *weights, oct_cpu_backend(), NULL, false) : status;
}

static octet_status steps(octet_model *model, writing *w, const char *input) {
    oct_engine *engine = NULL;
    oct_weights *weights = NULL;
    octet_status status = compile(model, &engine, &weights);
    w->weights = weights;
    for (size_t i = 0; status == OCTET_OK && i < weights->count; i++) status = write_constant(w, i);
    if (status == OCTET_OK) status = run(engine, w, input);
    oct_engine_release(engine);
    oct_weights_release(weights);
    return status;
}

static octet_status write_lines(const writing *w, const char *path) {
    if (w->lines.failed) return oct_fail_memory();
    FILE *file = fopen(path, "w");
    const bool whole = file != NULL && fputs(w->lines.data, file) >= 0;
    if (file != NULL && fclose(file) == 0 && whole) return OCTET_OK;
    return oct_fail(OCTET_IO, "%s could not be written", path);
}

static octet_status all(char **argument) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    options.recipe = argument[2];
    options.scales = strcmp(argument[3], "-") == 0 ? NULL : argument[3];
    char numbers[4096], lines[4096];
    const int length = snprintf(numbers, sizeof numbers, "%s/numbers.bin", argument[5]);
    if (length < 0 || (size_t)length >= sizeof numbers) return oct_fail(OCTET_INVALID_ARGUMENT, "a name too long");
    (void)snprintf(lines, sizeof lines, "%s/steps.jsonl", argument[5]);
    octet_model *model;
    OCT_TRY(octet_model_open(argument[1], &options, &model));
    writing w = {.numbers = fopen(numbers, "wb")};
    octet_status status = w.numbers != NULL ? OCTET_OK : oct_fail(OCTET_IO, "%s could not be written", numbers);
    if (status == OCTET_OK) status = steps(model, &w, argument[4]);
    if (w.numbers != NULL && fclose(w.numbers) != 0 && status == OCTET_OK)
        status = oct_fail(OCTET_IO, "%s could not be written", numbers);
    if (status == OCTET_OK) status = write_lines(&w, lines);
    oct_text_free(&w.lines);
    octet_model_close(&model);
    return status;
}

int main(int count, char **argument) {
    if (count != 6) {
        (void)fprintf(stderr, "steps CHECKPOINT RECIPE SCALES|- INPUT DIRECTORY\n");
        return 2;
    }
    if (all(argument) == OCTET_OK) return 0;
    (void)fprintf(stderr, "steps: %s\n", octet_error_text());
    return 1;
}
