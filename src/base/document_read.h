/* SPDX-License-Identifier: Apache-2.0 */
/* Inside base: what the JSON and the YAML reader share. */
#ifndef OCT_BASE_DOCUMENT_READ_H
#define OCT_BASE_DOCUMENT_READ_H

#include "base/document.h"

/* Makes *document empty but for its path; checks that the text is UTF-8 without a zero byte and passes a byte order
 * mark. On failure the document is empty. */
octet_status oct_document_begin(oct_document *document, const char *name, const char **text, size_t *length);
/* Frees what was read if `status` is a failure; returns it. */
octet_status oct_document_end(oct_document *document, octet_status status);

/* The kind and value of a plain scalar in YAML's core schema, from node->string; strings stay as they are. */
void oct_yaml_resolve(oct_node *node, size_t length);

#endif
