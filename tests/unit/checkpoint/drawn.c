/* SPDX-License-Identifier: Apache-2.0 */
/* tools/draw_weights.c against the reference: names, shapes and configuration of every listed architecture
 * (tests/golden/params_NAME.json), and the drawn bytes of those that are small (tests/golden/drawn.json). */
#define main draw_weights_main
#include "../../../tools/draw_weights.c"
#undef main

#include "unit/checkpoint/files.h"

#include "base/document.h"

#define MAX_HASHED_ELEMENTS 8000000 /* larger ones take seconds and say nothing new */

static const char *golden(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s", OCTET_SOURCE_DIR, name);
    return path;
}

static void read_golden(oct_document *document, const char *name) {
    if (oct_document_read(document, golden(name), OCT_DOCUMENT_LIMIT) != OCTET_OK) fail_msg("%s", oct_error_text());
}

/* The options that give the architecture of a list; false: the tool does not draw it. */
static bool options_of(const char *name, const oct_node *config, options *o) {
    static char architecture[64];
    *o = (options){.prefix = "",
                   .height = -1,
                   .width = -1,
                   .classes = -1,
                   .hidden = -1,
                   .layers = -1,
                   .heads = -1,
                   .tokens = -1,
                   .mlp = -1,
                   .mid = -1,
                   .qkv_bias = true,
                   .dtype = OCT_DTYPE_F32};
    snprintf(architecture, sizeof architecture, "%s", name);
    o->architecture = architecture;
    if (strcmp(name, "vit_small_patch8_224") == 0) return false; /* a feature extractor without classes */
    if (!oct_starts_with(name, "yolos_")) return true;
    char *size = strchr(architecture, '_') + 1;
    size[strcspn(size, "_")] = '\0';
    o->height = oct_node_get(config, "image_size")->items[0]->integer;
    o->width = oct_node_get(config, "image_size")->items[1]->integer;
    o->tokens = oct_node_get(config, "num_detection_tokens")->integer;
    o->classes = (int64_t)oct_node_get(config, "id2label")->count;
    o->mid = oct_node_get(config, "use_mid_position_embeddings")->boolean;
    o->qkv_bias = oct_node_get(config, "qkv_bias")->boolean;
    return true;
}

/* Two documents say the same; integers and reals by value. */
static bool same_node(const oct_node *a, const oct_node *b) {
    bool numbers =
        (a->kind == OCT_NODE_INT || a->kind == OCT_NODE_REAL) && (b->kind == OCT_NODE_INT || b->kind == OCT_NODE_REAL);
    if (numbers) return a->real == b->real;
    if (a->kind != b->kind || a->count != b->count) return false;
    if (a->kind == OCT_NODE_STRING) return strcmp(a->string, b->string) == 0;
    if (a->kind == OCT_NODE_BOOL) return a->boolean == b->boolean;
    for (size_t i = 0; i < a->count; i++) {
        const oct_node *other = a->kind == OCT_NODE_MAP ? oct_node_get(b, a->keys[i]) : b->items[i];
        if (other == NULL || !same_node(a->items[i], other)) return false;
    }
    return true;
}

/* Everything our config.json says, the reference's says too. */
static void check_config(const char *name, const drawing *d, const oct_node *config) {
    oct_document own_config;
    assert_int_equal(oct_document_parse_json(&own_config, name, d->config.data, d->config.length), OCTET_OK);
    for (size_t i = 0; i < own_config.root->count; i++) {
        const char *key = own_config.root->keys[i];
        const oct_node *ours = own_config.root->items[i], *reference = oct_node_get(config, key);
        if (reference == NULL) fail_msg("%s: config.json: %s is not in the reference", name, key);
        if (strcmp(key, "pretrained_cfg") == 0) {
            for (size_t j = 0; j < ours->count; j++) {
                const oct_node *inner = oct_node_get(reference, ours->keys[j]);
                if (inner == NULL || !same_node(ours->items[j], inner)) fail_msg("%s: %s.%s", name, key, ours->keys[j]);
            }
        } else if (!same_node(ours, reference)) {
            fail_msg("%s: config.json: %s differs", name, key);
        }
    }
    oct_document_free(&own_config);
}

static const oct_tensor_source *find(const drawing *d, const char *name) {
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->tensors[i].name, name) == 0) return &d->tensors[i];
    return NULL;
}

static void hash_tensor(oct_sha256 *hash, const oct_tensor_source *tensor) {
    static uint8_t piece[1 << 16];
    uint64_t count = 1;
    for (int i = 0; i < tensor->rank; i++) count *= (uint64_t)tensor->shape[i];
    for (uint64_t done = 0; done < count;) {
        size_t some = count - done < sizeof piece / 4 ? (size_t)(count - done) : sizeof piece / 4;
        assert_int_equal(tensor->produce(tensor, done, some, piece), OCTET_OK);
        assert_int_equal(oct_sha256_update(hash, piece, 4 * some), OCTET_OK);
        done += some;
    }
}

static void check_tensors(const char *name, const drawing *d, const oct_node *list, bool hashed,
                          char hex[OCT_SHA256_HEX]) {
    oct_sha256 hash;
    uint8_t digest[OCT_SHA256_SIZE];
    size_t drawn = 0;
    assert_int_equal(oct_sha256_begin(&hash), OCTET_OK);
    for (size_t i = 0; i < list->count; i++) {
        const char *tensor_name = oct_node_get(list->items[i], "name")->string;
        const oct_node *shape = oct_node_get(list->items[i], "shape");
        if (oct_ends_with(tensor_name, "num_batches_tracked")) continue;
        const oct_tensor_source *tensor = find(d, tensor_name);
        if (tensor == NULL) fail_msg("%s: %s is not drawn", name, tensor_name);
        assert_int_equal(tensor->rank, shape->count);
        for (size_t j = 0; j < shape->count; j++)
            if (tensor->shape[j] != shape->items[j]->integer)
                fail_msg("%s: %s: dimension %zu differs", name, tensor_name, j);
        if (hashed) hash_tensor(&hash, tensor);
        drawn++;
    }
    assert_int_equal(drawn, d->count);
    assert_int_equal(oct_sha256_end(&hash, digest), OCTET_OK);
    oct_sha256_hex(digest, hex);
}

static void test_every_list(void **state) {
    (void)state;
    oct_document index;
    read_golden(&index, "drawn.json");
    const oct_node *models = oct_node_get(index.root, "models");
    assert_true(models->count > 10);
    for (size_t i = 0; i < models->count; i++) {
        const oct_node *model = models->items[i];
        const char *name = oct_node_get(model, "name")->string;
        char file[128], hex[OCT_SHA256_HEX];
        snprintf(file, sizeof file, "params_%s.json", name);
        oct_document list;
        read_golden(&list, file);
        const oct_node *config = oct_node_get(list.root, "config");
        options o;
        if (options_of(name, config, &o)) {
            drawing d = {.options = &o};
            bool hashed = oct_node_get(model, "elements")->integer <= MAX_HASHED_ELEMENTS;
            if (build(&d) != OCTET_OK) fail_msg("%s", oct_error_text());
            check_config(name, &d, config);
            check_tensors(name, &d, oct_node_get(list.root, "tensors"), hashed, hex);
            if (hashed) assert_string_equal(hex, oct_node_get(model, "sha256")->string);
            drop(&d);
        }
        oct_document_free(&list);
    }
    oct_document_free(&index);
}

/* The whole program: what it writes opens, prefixed or not, in any dtype. */
static void test_program(void **state) {
    (void)state;
    char *root = support_temporary_directory(), *directory = strdup(support_join(root, "a/b"));
    assert_non_null(directory);
    char *plain[] = {"draw_weights", "yolos_small", directory,  "--hidden", "16",       "--layers", "2",
                     "--heads",      "2",           "--tokens", "5",        "--height", "32",       "--width",
                     "48",           "--classes",   "3"};
    char *variant[] = {"draw_weights", "yolos_small", directory,  "--hidden", "16",       "--layers", "2",
                       "--heads",      "2",           "--tokens", "5",        "--height", "32",       "--width",
                       "48",           "--classes",   "3",        "--dtype",  "BF16",     "--prefix", "module.",
                       "--hub-names",  "--seed",      "7"};
    assert_int_equal(draw_weights_main(sizeof plain / sizeof *plain, plain), 0);
    oct_checkpoint *checkpoint = files_open(directory);
    const oct_tensor *mid = oct_checkpoint_find(checkpoint, MID_POSITIONS);
    assert_non_null(mid);
    assert_int_equal(mid->count, 1 * (2 * 3 + 1 + 5) * 16);
    assert_non_null(oct_checkpoint_preprocessor(checkpoint));
    size_t count = oct_checkpoint_tensor_count(checkpoint);
    oct_checkpoint_close(checkpoint);
    assert_int_equal(draw_weights_main(sizeof variant / sizeof *variant, variant), 0);
    checkpoint = files_open(directory);
    assert_int_equal(oct_checkpoint_tensor_count(checkpoint), count);
    assert_non_null(oct_checkpoint_find(checkpoint, MID_POSITIONS_HUB));
    assert_int_equal(oct_checkpoint_tensor(checkpoint, 0)->dtype, OCT_DTYPE_BF16);
    oct_checkpoint_close(checkpoint);
    free(directory);
    files_drop(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_list), cmocka_unit_test(test_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
