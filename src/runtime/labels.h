/* SPDX-License-Identifier: Apache-2.0 */
/* Class names: id2label of config.json, else its label_names, else a file with a name a line, else the index as text.
 */
#ifndef OCT_RUNTIME_LABELS_H
#define OCT_RUNTIME_LABELS_H

#include "base/document.h"

typedef struct oct_labels {
    const char **names; /* `count` of them, in the arena */
    size_t count;
    const char *source; /* "id2label", "label_names", the file's path, "index" */
    oct_arena arena;
} oct_labels;

/* Exactly `classes` names, or an error ("3 labels for 1000 classes") with its line. `classes_file` may be NULL. */
octet_status oct_labels_read(oct_labels *labels, const oct_document *config, const char *classes_file, size_t classes);
/* From a list of strings, a bundle's. `what` names it in errors and as source (kept, not copied). */
octet_status oct_labels_from_list(oct_labels *labels, const oct_document *document, const oct_node *list,
                                  const char *what, size_t classes);
void oct_labels_free(oct_labels *labels);

#endif
