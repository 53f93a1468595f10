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

/* "architecture X is not supported", with all that are. */
static octet_status refuse(const oct_family_entry *list, const oct_document *config) {
    oct_text supported = {0};
    for (const oct_family_entry *entry = list; entry->family != NULL; entry++) {
        for (size_t i = 0; entry->family->architectures[i] != NULL; i++) {
            oct_text_printf(&supported, "%s%s", supported.length > 0 ? ", " : "", entry->family->architectures[i]);
        }
    }
    if (supported.failed) {
        oct_text_free(&supported);
        return oct_fail_memory();
    }
    const char *key = NULL;
    const oct_node *node = model_name(config, &key);
    if (node == NULL) {
        oct_fail(OCTET_UNSUPPORTED, "%s: expected architecture (timm) or model_type (transformers), found neither",
                 config->path);
    } else {
        oct_fail(OCTET_UNSUPPORTED, "%s:%d: %s: %s is not supported", config->path, node->line, key, node->string);
    }
    octet_status status =
        oct_detail("supported: %s", supported.length > 0 ? supported.data : "nothing: no family was built in");
    oct_text_free(&supported);
    return status;
}

octet_status oct_family_find(const oct_family_entry *list, const oct_checkpoint *checkpoint,
                             const oct_family **family) {
    const oct_document *config = oct_checkpoint_config(checkpoint);
    for (const oct_family_entry *entry = list; entry->family != NULL; entry++) {
        if (!entry->family->claims(config)) continue;
        *family = entry->family;
        return OCTET_OK;
    }
    *family = NULL;
    return refuse(list, config);
}
