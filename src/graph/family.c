/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/family.h"

/* The node that names the model: timm's architecture, else transformers' model_type. */
static const oct_node *model_name(const oct_document *config, const char **key) {
    static const char *const keys[] = {"architecture", "model_type"};
    for (size_t i = 0; i < 2; i++) {
        const oct_node *node = oct_node_get(config->root, keys[i]);
        if (node == NULL || node->kind != OCT_NODE_STRING) continue;
        *key = keys[i];
        return node;
    }
    return NULL;
}

octet_status oct_family_find(const oct_family_entry *list, const oct_checkpoint *checkpoint,
                             const oct_family **family) {
    *family = NULL;
    const oct_document *config = oct_checkpoint_config(checkpoint);
    oct_text supported = {0};
    for (const oct_family_entry *entry = list; entry->family != NULL; entry++) {
        if (entry->family->claims(config)) {
            *family = entry->family;
            oct_text_free(&supported);
            return OCTET_OK;
        }
        for (size_t i = 0; entry->family->architectures[i] != NULL; i++) {
            oct_text_printf(&supported, "%s%s", supported.length > 0 ? ", " : "", entry->family->architectures[i]);
        }
    }
    const char *key = NULL;
    const oct_node *node = model_name(config, &key);
    octet_status status;
    if (supported.failed) {
        status = oct_fail_memory();
    } else {
        if (node == NULL) {
            oct_fail(OCTET_UNSUPPORTED, "%s: expected architecture (timm) or model_type (transformers), found neither",
                     config->path);
        } else {
            oct_fail(OCTET_UNSUPPORTED, "%s:%d: %s: %s is not supported", config->path, node->line, key, node->string);
        }
        status = oct_detail("supported: %s", supported.length > 0 ? supported.data : "nothing: no family was built in");
    }
    oct_text_free(&supported);
    return status;
}
