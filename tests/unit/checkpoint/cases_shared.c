/* SPDX-License-Identifier: Apache-2.0 */
/* Cases 16 and 21 of the shared collection, as far as names and values decide: variants of a real checkpoint made by
 * their recipes, tensor by tensor. Shapes and configurations are the families' to judge. */
#include "unit/checkpoint/files.h"

#include <math.h>

#define SINGLE "model.safetensors"

typedef struct variant {
    oct_checkpoint *from;
    oct_tensor_source *sources;
    char (*names)[256];
    size_t count;
    char *directory;
} variant;

static octet_status copy_elements(const oct_tensor_source *source, uint64_t first, size_t count, void *bytes) {
    const variant *v = source->user;
    const oct_tensor *tensor = oct_checkpoint_tensor(v->from, (size_t)(source - v->sources));
    size_t element = oct_dtype_size(tensor->dtype);
    uint8_t *whole = malloc((size_t)tensor->size + 1);
    octet_status status = oct_checkpoint_read_raw(v->from, tensor, whole);
    if (status == OCTET_OK) memcpy(bytes, whole + first * element, count * element);
    free(whole);
    return status;
}

static octet_status copy_with_nan(const oct_tensor_source *source, uint64_t first, size_t count, void *bytes) {
    OCT_TRY(copy_elements(source, first, count, bytes));
    float nan = NAN;
    if (first <= 5 && 5 < first + count) memcpy((uint8_t *)bytes + (5 - first) * sizeof nan, &nan, sizeof nan);
    return OCTET_OK;
}

/* A variant that is still the original: same names, same bytes. False: there is no such checkpoint here. */
static bool begin(variant *v) {
    const char *path = support_shared("data/checkpoints/mobilenetv2_100");
    if (path == NULL) return false;
    v->from = files_open(path);
    v->count = oct_checkpoint_tensor_count(v->from);
    v->sources = calloc(v->count + 1, sizeof *v->sources);
    v->names = calloc(v->count + 1, sizeof *v->names);
    v->directory = files_directory();
    assert_non_null(v->sources);
    assert_non_null(v->names);
    for (size_t i = 0; i < v->count; i++) {
        const oct_tensor *tensor = oct_checkpoint_tensor(v->from, i);
        snprintf(v->names[i], sizeof *v->names, "%s", tensor->name);
        v->sources[i] = (oct_tensor_source){.name = v->names[i], .dtype = tensor->dtype, .rank = tensor->rank};
        memcpy(v->sources[i].shape, tensor->shape, sizeof tensor->shape);
        v->sources[i].produce = copy_elements;
        v->sources[i].user = v;
    }
    return true;
}

static void put_before(variant *v, size_t index, const char *prefix) {
    snprintf(v->names[index], sizeof *v->names, "%s%s", prefix, oct_checkpoint_tensor(v->from, index)->name);
}

static oct_checkpoint *write_and_open(variant *v) {
    if (oct_safetensors_write(support_join(v->directory, SINGLE), v->sources, v->count) != OCTET_OK)
        fail_msg("%s", oct_error_text());
    return files_open(v->directory);
}

static void end(variant *v) {
    oct_checkpoint_close(v->from);
    files_drop(v->directory);
    free(v->sources);
    free(v->names);
}

#define BEGIN(v)                                                                                                       \
    variant v = {0};                                                                                                   \
    (void)state;                                                                                                       \
    if (!begin(&v)) SUPPORT_SKIP("shared data/checkpoints is not here")

static void test_common_prefixes(void **state) {
    static const char *const prefixes[] = {"module.", "model.", "_orig_mod."};
    BEGIN(v);
    char first[OCT_SHA256_HEX], found[OCT_SHA256_HEX];
    assert_int_equal(oct_checkpoint_fingerprint(v.from, first), OCTET_OK);
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        for (size_t i = 0; i < v.count; i++) put_before(&v, i, prefixes[p]);
        oct_checkpoint *checkpoint = write_and_open(&v);
        for (size_t i = 0; i < v.count; i++)
            assert_string_equal(oct_checkpoint_tensor(checkpoint, i)->name, oct_checkpoint_tensor(v.from, i)->name);
        assert_int_equal(oct_checkpoint_fingerprint(checkpoint, found), OCTET_OK);
        assert_string_equal(first, found);
        oct_checkpoint_close(checkpoint);
    }
    end(&v);
}

/* Every other name prefixed: nothing is stripped, so that a family's error names what it lacks. */
static void test_mixed_prefix(void **state) {
    BEGIN(v);
    for (size_t i = 1; i < v.count; i += 2) put_before(&v, i, "module.");
    oct_checkpoint *checkpoint = write_and_open(&v);
    for (size_t i = 0; i < v.count; i++) {
        const oct_tensor *tensor = oct_checkpoint_find(checkpoint, v.names[i]);
        assert_non_null(tensor);
        assert_string_equal(tensor->name, tensor->stored_name);
    }
    assert_null(oct_checkpoint_find(checkpoint, oct_checkpoint_tensor(v.from, 1)->name));
    oct_checkpoint_close(checkpoint);
    end(&v);
}

static void test_extra_and_missing(void **state) {
    BEGIN(v);
    static const float decay = 0.9f;
    v.sources[v.count++] =
        (oct_tensor_source){.name = "ema_decay", .dtype = OCT_DTYPE_F32, .rank = 1, .shape = {1}, .data = &decay};
    oct_checkpoint *checkpoint = write_and_open(&v);
    for (size_t i = 0; i < v.count; i++) {
        oct_tensor *tensor = oct_checkpoint_tensor(checkpoint, i);
        if (strcmp(tensor->name, "ema_decay") != 0 && strstr(tensor->name, "num_batches_tracked") == NULL)
            tensor->used = true;
    }
    assert_int_equal(oct_checkpoint_all_used(checkpoint), OCTET_MISMATCH);
    assert_string_equal(files_fact(v.directory), SINGLE ": tensor ema_decay has no place in this architecture");
    oct_checkpoint_close(checkpoint);

    v.count--;
    for (size_t i = 0; i < v.count; i++)
        if (strcmp(v.names[i], "blocks.3.1.bn2.running_var") == 0) snprintf(v.names[i], sizeof *v.names, "z");
    checkpoint = write_and_open(&v);
    assert_null(oct_checkpoint_find(checkpoint, "blocks.3.1.bn2.running_var"));
    oct_checkpoint_close(checkpoint);
    end(&v);
}

static void test_nan_weight(void **state) {
    BEGIN(v);
    for (size_t i = 0; i < v.count; i++)
        if (strcmp(v.names[i], "conv_stem.weight") == 0) v.sources[i].produce = copy_with_nan;
    oct_checkpoint *checkpoint = write_and_open(&v);
    const oct_tensor *tensor = oct_checkpoint_find(checkpoint, "conv_stem.weight");
    float values[32 * 3 * 3 * 3];
    assert_int_equal(tensor->count, sizeof values / sizeof *values);
    assert_int_equal(oct_checkpoint_read(checkpoint, tensor, values), OCTET_BAD_FORMAT);
    assert_string_equal(files_fact(v.directory),
                        SINGLE ": tensor conv_stem.weight: element 5 ([0, 0, 1, 2]) is nan, expected a finite number");
    oct_checkpoint_close(checkpoint);
    end(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common_prefixes),
        cmocka_unit_test(test_mixed_prefix),
        cmocka_unit_test(test_extra_and_missing),
        cmocka_unit_test(test_nan_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
