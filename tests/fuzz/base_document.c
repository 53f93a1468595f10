/* SPDX-License-Identifier: Apache-2.0 */
/* Documents from any bytes. The first byte chooses the reader: an odd one YAML, an even one JSON; the rest is the text.
 * What is read is asked for by every kind of question, and aborts if the tree is not sound. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/document.h"

static void require(int condition) {
    if (!condition) abort();
}

/* The tree, each shared node as often as it is written: the reader's limits bound this walk. */
static void walk(const oct_document *document, const oct_node *node, size_t depth, size_t *left) {
    require(node != NULL && depth <= OCT_DOCUMENT_DEPTH && node->line >= 1 && *left > 0);
    --*left;
    if (node->kind == OCT_NODE_STRING) require(node->string != NULL);
    if (node->kind != OCT_NODE_LIST && node->kind != OCT_NODE_MAP) return;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == OCT_NODE_MAP) require(node->keys[i] != NULL && node->key_lines[i] >= 1);
        if (node->kind == OCT_NODE_MAP && i < 8) {
            const char *key = node->keys[i];
            int64_t integer = 0;
            double reals[2] = {0};
            const char *string = NULL;
            bool flag = false;
            (void)oct_node_int(document, node, key, true, -5, 5, &integer);
            require(integer >= -5 && integer <= 5);
            (void)oct_node_real(document, node, key, false, reals);
            (void)oct_node_reals(document, node, key, false, reals, 2);
            (void)oct_node_string(document, node, key, true, &string);
            (void)oct_node_bool(document, node, key, false, &flag);
        }
        walk(document, node->items[i], depth + 1, left);
    }
    static const char *const known[] = {"format", "scale", "a", NULL};
    (void)oct_node_known_keys(document, node, known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    int64_t live = oct_alloc_live();
    oct_document document;
    octet_status status = (data[0] & 1) != 0 ? oct_document_parse_yaml(&document, "fuzz", text, size - 1)
                                             : oct_document_parse_json(&document, "fuzz", text, size - 1);
    if (status == OCTET_OK) {
        size_t left = OCT_DOCUMENT_NODES;
        walk(&document, document.root, 0, &left);
    } else {
        require(document.root == NULL && strncmp(oct_error_fact(), "fuzz:", 5) == 0);
    }
    oct_document_free(&document);
    require(oct_alloc_live() == live);
    return 0;
}
