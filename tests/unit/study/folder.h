/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of studies share: a folder of a test's own, and statuses that were expected. Include cmocka.h before. */
#ifndef OCT_TESTS_UNIT_STUDY_FOLDER_H
#define OCT_TESTS_UNIT_STUDY_FOLDER_H

#include <stdlib.h>
#include <string.h>

#include "study/evidence.h"
#include "support/support.h"

static char *folder;

static inline int make_folder(void **state) {
    (void)state;
    folder = support_temporary_directory();
    return 0;
}

static inline int remove_folder(void **state) {
    (void)state;
    support_remove_tree(folder);
    free(folder);
    return 0;
}

static inline void good(octet_status status) {
    if (status != OCTET_OK) fail_msg("%s", study_error_text());
}

static inline void refused(octet_status status, octet_status expected, const char *says) {
    if (status != expected || strstr(study_error_text(), says) == NULL)
        fail_msg("expected status %d saying \"%s\", found %d: %s", expected, says, status, study_error_text());
}

static inline evidence_file *open_evidence(const char *path, evidence_mode mode) {
    evidence_file *evidence;
    good(evidence_open(path, mode, &evidence));
    return evidence;
}

#endif
