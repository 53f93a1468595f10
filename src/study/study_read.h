/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a study file: what its parts share. */
#ifndef OCT_STUDY_STUDY_READ_H
#define OCT_STUDY_STUDY_READ_H

#include "base/document.h"
#include "study/study_file.h"

typedef struct study_reader {
    oct_document *document; /* whose arena holds all of the study */
    study_file *study;
} study_reader;

/* A zeroed array of the study's own; NULL: no memory. */
void *study_array(study_reader *reader, size_t count, size_t size);
/* "FILE:LINE: expected WHAT, found "NAME"", with a near one of `known` as the hint. */
octet_status study_unknown(const study_reader *reader, int line, const char *what, const char *found,
                           const char *const *known, size_t count);
octet_status study_fail_line(const study_reader *reader, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The list or map at `key`, of at most STUDY_NAMES items; *node NULL if absent and not `required`. */
octet_status study_items(const study_reader *reader, const oct_node *map, const char *key, oct_node_kind kind,
                         bool required, const oct_node **node);
/* A list of texts. */
octet_status study_texts(study_reader *reader, const oct_node *map, const char *key, bool required, const char ***texts,
                         size_t *count, int *line);
/* A name that is used as a name: letters, digits, "_", "-" and ".", at most 64. */
octet_status study_check_name(const study_reader *reader, int line, const char *what, const char *name);

octet_status study_read_sets(study_reader *reader, const oct_node *root);  /* data, sets */
octet_status study_read_rules(study_reader *reader, const oct_node *root); /* rules, adopt, revisit, not_measured */

#endif
