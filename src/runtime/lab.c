/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h: texts about a model, its figures, and timing of the engine alone. */
#include "octet/lab.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "graph/manifest.h"
#include "graph/ops.h"
#include "runtime/give.h"
#include "runtime/model_file.h"
#include "runtime/options.h"
#include "runtime/session.h"
#include "runtime/watch.h"

/* ---- describing */

/* Where it came from, for people: a checkpoint's place, or a bundle's own words. */
static octet_status origin(octet_model *model, oct_text *text) {
    char identity[OCT_SHA256_HEX];
    if (model->checkpoint != NULL) {
        const char *id = oct_checkpoint_id(model->checkpoint);
        oct_text_printf(text, "checkpoint     %s\n", oct_checkpoint_directory(model->checkpoint));
        oct_text_printf(text, "hub id         %s%s%s\n", id[0] != '\0' ? id : "unpinned", id[0] != '\0' ? "@" : "",
                        oct_checkpoint_revision(model->checkpoint));
        oct_text_printf(text, "fingerprint    %s\n", octet_model_fingerprint(model));
        return OCTET_OK;
    }
    oct_sha256_hex(model->bundle->identity, identity);
    oct_text_printf(text, "bundle         %s (version %u)\nidentity       %s\n", model->bundle->file.path,
                    model->bundle->version, identity);
    for (size_t i = 0; i < model->bundle->section_count; i++) {
        const oct_section *section = &model->bundle->sections[i];
        char hash[OCT_SHA256_HEX];
        oct_sha256_hex(section->sha256, hash);
        oct_text_printf(text, "section        %-10s %-28s %10" PRIu64 " bytes  %.16s%s\n", section->kind, section->name,
                        section->size, hash, (section->flags & OCT_BUNDLE_DETACHABLE) != 0 ? "  detachable" : "");
    }
    const oct_section *provenance = oct_bundle_find(model->bundle, "provenance", "");
    uint8_t *data;
    if (provenance == NULL) return OCTET_OK;
    OCT_TRY(oct_bundle_read(model->bundle, provenance, OCT_MODEL_SECTION_LIMIT, &data));
    oct_text_printf(text, "provenance     %s", (const char *)data);
    oct_free(data);
    return OCTET_OK;
}

static octet_status summary(octet_model *model, oct_text *text) {
    const oct_model *facts = &model->facts;
    oct_text_printf(text, "model          %s (family %s)\n", facts->architecture, model->family_name);
    oct_text_printf(text, "task           %s\n",
                    facts->task == OCT_TASK_CLASSIFICATION ? "image classification" : "object detection");
    OCT_TRY(origin(model, text));
    oct_text_printf(text, "weights        %" PRIu64 "\n", model->parameters);
    oct_text_printf(text, "input          %d x %d (height x width)%s, batch %" PRId64 "\n", model->height, model->width,
                    model->follows_picture ? ", follows the picture" : "", model->batch);
    oct_text_puts(text, "preprocessing  ");
    oct_preprocess_describe(&model->preprocess, text);
    oct_text_printf(text, "\nclasses        %zu (names: %s)\n", model->labels.count, model->labels.source);
    if (facts->tokens > 0) oct_text_printf(text, "detections     %d tokens\n", facts->tokens);
    return OCTET_OK;
}

static void checkpoint_shapes(octet_model *model, oct_text *text) {
    for (size_t i = 0; i < oct_checkpoint_tensor_count(model->checkpoint); i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(model->checkpoint, i);
        oct_text_printf(text, "%-60s %-8s [", tensor->name, oct_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->rank; d++) oct_text_printf(text, "%s%" PRId64, d > 0 ? ", " : "", tensor->shape[d]);
        oct_text_puts(text, "]\n");
    }
}

/* A bundle's constants: folded, so not the checkpoint's tensors. */
static octet_status shapes(octet_model *model, oct_text *text) {
    oct_engine *engine;
    oct_weights *weights;
    if (model->checkpoint != NULL) {
        checkpoint_shapes(model, text);
        return OCTET_OK;
    }
    OCT_TRY(oct_model_engine(model, model->height, model->width, NULL, &engine, &weights));
    for (size_t i = 0; i < weights->count; i++) {
        oct_text_printf(text, "%-60s %-8s ", weights->items[i].name, oct_format_name(weights->items[i].form.format));
        oct_shape_print(&weights->items[i].shape, text);
        oct_text_puts(text, "\n");
    }
    oct_weights_release(weights);
    oct_engine_release(engine);
    return OCTET_OK;
}

static octet_status describe_graph(octet_model *model, octet_lab_view view, oct_text *text) {
    oct_graph graph;
    OCT_TRY(oct_model_graph(model, model->height, model->width, &graph));
    octet_status status = oct_graph_infer(&graph, model->batch);
    if (status == OCTET_OK && view == OCTET_LAB_DOT) oct_graph_dot(&graph, text);
    if (status == OCTET_OK && view == OCTET_LAB_GRAPH) oct_graph_dump(&graph, text);
    oct_graph_free(&graph);
    return status;
}

static octet_status describe_engine(octet_model *model, octet_lab_view view, oct_text *text) {
    oct_engine *engine;
    oct_weights *weights;
    octet_status status = OCTET_OK;
    OCT_TRY(oct_model_engine(model, model->height, model->width, NULL, &engine, &weights));
    const oct_plan *plan = oct_engine_plan(engine);
    if (view == OCTET_LAB_STEPS) oct_plan_dump(plan, text);
    if (view == OCTET_LAB_MEMORY) oct_plan_memory(plan, text);
    if (view == OCTET_LAB_TACTICS) status = oct_plan_tactics(plan, weights, oct_cpu_backend(), text);
    oct_weights_release(weights);
    oct_engine_release(engine);
    return status;
}

octet_status octet_lab_describe(octet_model *model, octet_lab_view view, char **text) {
    oct_text out = {0};
    octet_status status = OCTET_OK;
    if (model == NULL || text == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "describe: expected a model and an address, found NULL");
    *text = NULL;
    switch (view) {
    case OCTET_LAB_SUMMARY:
        status = summary(model, &out);
        break;
    case OCTET_LAB_SHAPES:
        status = shapes(model, &out);
        break;
    case OCTET_LAB_GRAPH:
    case OCTET_LAB_DOT:
        status = describe_graph(model, view, &out);
        break;
    case OCTET_LAB_STEPS:
    case OCTET_LAB_TACTICS:
    case OCTET_LAB_MEMORY:
        status = describe_engine(model, view, &out);
        break;
    default:
        status = oct_fail(OCTET_INVALID_ARGUMENT, "unknown view %d", (int)view);
    }
    if (status != OCTET_OK) {
        oct_text_free(&out);
        return status;
    }
    return oct_give_text(&out, text);
}

octet_status octet_lab_get_figures(octet_model *model, octet_lab_figures *figures) {
    oct_engine *engine;
    if (model == NULL || figures == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "figures: expected a model and room for them, found NULL");
    OCT_TRY(oct_model_engine(model, model->height, model->width, NULL, &engine, NULL));
    const oct_plan *plan = oct_engine_plan(engine);
    octet_lab_figures own = {.parameters = model->parameters,
                             .weight_bytes = model->parameters * sizeof(float),
                             .packed_bytes = oct_engine_packed_bytes(engine),
                             .arena_bytes = plan->arena_size,
                             .steps = plan->step_count};
    for (size_t i = 0; i < plan->step_count; i++) {
        own.flops += plan->steps[i].flops;
        own.unfused_quantize += plan->steps[i].op == OCT_OP_QUANTIZE;
    }
    oct_engine_release(engine);
    return oct_options_give(figures, &own, sizeof own, "octet_lab_figures");
}

/* ---- what is supported */

octet_status octet_lab_support(char **text) {
    oct_text out = {0};
    if (text == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "support: expected an address, found NULL");
    *text = NULL;
    oct_text_puts(&out, "| family | layout | architectures |\n|---|---|---|\n");
    for (const oct_family_entry *entry = oct_family_list; entry->family != NULL; entry++) {
        oct_text_printf(&out, "| %s | %s |", entry->family->name, entry->family->layout);
        for (const char *const *name = entry->family->architectures; *name != NULL; name++) {
            oct_text_printf(&out, "%s %s", name == entry->family->architectures ? "" : ",", *name);
        }
        oct_text_puts(&out, " |\n");
    }
    oct_text_puts(&out, "\n");
    oct_cpu_support(&out);
    return oct_give_text(&out, text);
}

octet_status octet_lab_machine(char **json) {
    oct_text out = {0};
    if (json == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "machine: expected an address, found NULL");
    *json = NULL;
    oct_cpu_machine(&out);
    return oct_give_text(&out, json);
}

/* ---- timing */

static octet_status fill_random(octet_session *session) {
    int stride;
    OCT_TRY(oct_session_prepare(session, session->model->height, session->model->width));
    float *input = oct_context_input(session->context, &stride);
    size_t pixels = (size_t)session->model->batch * (size_t)session->height * (size_t)session->width;
    uint64_t state = 1;
    for (size_t i = 0; i < pixels; i++) {
        for (int c = 0; c < stride; c++)
            input[i * (size_t)stride + (size_t)c] = c < 3 ? 2.0f * oct_random_signed(&state) : 0.0f;
    }
    return OCTET_OK;
}

octet_status octet_lab_time_engine(octet_session *session, size_t count, double *seconds) {
    if (session == NULL || (seconds == NULL && count > 0))
        return oct_fail(OCTET_INVALID_ARGUMENT, "time: expected a session and room for the times, found NULL");
    if (session->context == NULL) OCT_TRY(fill_random(session));
    oct_context_set_tap(session->context, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        double start = oct_watch_now();
        OCT_TRY(oct_context_run(session->context));
        seconds[i] = (oct_watch_now() - start) * 1e-3;
    }
    return OCTET_OK;
}

octet_status octet_lab_output_checksum(octet_session *session, uint64_t *checksum) {
    if (session == NULL || checksum == NULL)
        return oct_fail(OCTET_INVALID_ARGUMENT, "output checksum: expected a session and room for it, found NULL");
    if (session->context == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "output checksum: nothing was run yet");
    const oct_plan *plan = oct_engine_plan(session->engine);
    uint64_t sums[OCT_NODE_INPUTS] = {0};
    for (size_t i = 0; i < plan->output_count && i < OCT_NODE_INPUTS; i++) {
        const oct_shape *shape;
        const float *data = oct_context_output(session->context, i, &shape);
        sums[i] = oct_fnv1a(data, (size_t)oct_shape_count(shape) * sizeof *data);
    }
    *checksum = oct_fnv1a(sums, sizeof sums);
    return OCTET_OK;
}

int octet_lab_is_bundle(const octet_model *model) {
    return model->bundle != NULL;
}
