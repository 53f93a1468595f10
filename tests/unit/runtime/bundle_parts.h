/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle taken apart into what it says, so that a test may change one thing and put it together again with right
 * checksums. */
#ifndef OCT_TESTS_BUNDLE_PARTS_H
#define OCT_TESTS_BUNDLE_PARTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "engine/plan_file.h"
#include "octet/lab.h"
#include "runtime/bundle.h"
#include "support/support.h"

/* Frozen: written by the first version of the format, never made again. Two engines (batch 1 and 2) of a tiny detector:
 * 32 x 48, 3 tokens, 2 classes, one layer. */
#define FIXTURE OCTET_SOURCE_DIR "/tests/golden/bundle_v1.octet"

typedef struct bundle_parts {
    char *model, *labels, *provenance; /* text */
    oct_weights *weights;
    oct_plan *plan; /* of batch 1 */
    char plan_name[33];
    bool without_weights, without_plan, plan_twice, garbage_plan, unknown_kind;
    size_t plan_cut; /* bytes cut off the plan's end */
} bundle_parts;

static inline char *part_text(const oct_bundle *bundle, const char *kind) {
    uint8_t *data;
    assert_int_equal(oct_bundle_read(bundle, oct_bundle_find(bundle, kind, NULL), 1 << 20, &data), OCTET_OK);
    char *text = strdup((const char *)data);
    oct_free(data);
    return text;
}

static inline void parts_take(bundle_parts *parts, const char *path) {
    oct_bundle bundle;
    oct_section_reader reader;
    uint8_t *data;
    memset(parts, 0, sizeof *parts);
    assert_int_equal(oct_bundle_open(&bundle, path), OCTET_OK);
    parts->model = part_text(&bundle, "model");
    parts->labels = part_text(&bundle, "labels");
    parts->provenance = part_text(&bundle, "provenance");
    const oct_section *weights = oct_bundle_find(&bundle, "weights", NULL),
                      *plan = oct_bundle_find(&bundle, "plan", NULL);
    assert_int_equal(oct_section_begin(&reader, &bundle, weights), OCTET_OK);
    assert_int_equal(oct_weights_read(&parts->weights, "weights", weights->size, oct_section_read, &reader), OCTET_OK);
    assert_int_equal(oct_section_end(&reader), OCTET_OK);
    assert_int_equal(oct_bundle_read(&bundle, plan, 1 << 20, &data), OCTET_OK);
    assert_int_equal(oct_plan_read(&parts->plan, "plan", data, (size_t)plan->size), OCTET_OK);
    snprintf(parts->plan_name, sizeof parts->plan_name, "%s", plan->name);
    oct_free(data);
    oct_bundle_close(&bundle);
}

static inline void parts_free(bundle_parts *parts) {
    free(parts->model);
    free(parts->labels);
    free(parts->provenance);
    oct_weights_release(parts->weights);
    oct_plan_free(parts->plan);
}

static inline void add_part(oct_bundle_writer *writer, const char *kind, const char *name, const void *data,
                            size_t size) {
    assert_int_equal(oct_bundle_writer_add(writer, kind, name, strcmp(kind, "provenance") != 0, data, size), OCTET_OK);
}

static inline void parts_write(const bundle_parts *parts, const char *path) {
    oct_bundle_writer *writer;
    uint8_t identity[OCT_SHA256_SIZE];
    oct_text plan = {0};
    assert_int_equal(oct_bundle_writer_open(&writer, path), OCTET_OK);
    add_part(writer, "model", "", parts->model, strlen(parts->model));
    add_part(writer, "labels", "", parts->labels, strlen(parts->labels));
    if (!parts->without_weights) {
        assert_int_equal(oct_bundle_writer_begin(writer, "weights", "", OCT_BUNDLE_IDENTITY), OCTET_OK);
        assert_int_equal(oct_weights_write(parts->weights, oct_bundle_writer_write, writer), OCTET_OK);
        assert_int_equal(oct_bundle_writer_end(writer), OCTET_OK);
    }
    oct_plan_write(parts->plan, &plan);
    if (parts->garbage_plan) memset(plan.data, 0xff, plan.length);
    if (!parts->without_plan) add_part(writer, "plan", parts->plan_name, plan.data, plan.length - parts->plan_cut);
    if (parts->plan_twice) add_part(writer, "plan", parts->plan_name, plan.data, plan.length);
    if (parts->unknown_kind) add_part(writer, "script", "", "echo", 4);
    add_part(writer, "provenance", "", parts->provenance, strlen(parts->provenance));
    oct_text_free(&plan);
    assert_int_equal(oct_bundle_writer_commit(writer, identity), OCTET_OK);
}

/* `text` with the first `from` replaced; the old text is freed. */
static inline char *replaced(char *text, const char *from, const char *to) {
    char *at = strstr(text, from);
    assert_non_null(at);
    char *made = malloc(strlen(text) + strlen(to) + 1);
    snprintf(made, strlen(text) + strlen(to) + 1, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return made;
}

#endif
