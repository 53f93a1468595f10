/* SPDX-License-Identifier: Apache-2.0 */
/* Study files from any bytes: what is read names only what is there, and its sets can be resolved without harm. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "study/decision.h"
#include "study/evidence.h"
#include "study/study_file.h"

#define PICTURES 40

static void require(int condition) {
    if (!condition) abort();
}

static const char *const names[PICTURES] = {"a/0", "a/1", "a/2", "a/3", "a/4", "b/0", "b/1", "b/2", "c", "d"};

static void check_sets(const study_file *study) {
    const char *const **all = calloc(study->data_count, sizeof *all);
    size_t *counts = calloc(study->data_count, sizeof *counts);
    require(all != NULL && counts != NULL);
    for (size_t i = 0; i < study->data_count; i++) {
        all[i] = names;
        counts[i] = 10;
    }
    for (size_t i = 0; i < study->set_count && i < 8; i++) {
        study_pictures out;
        require(study_find_set(study, study->sets[i].name) == &study->sets[i]);
        if (study_resolve(study, &study->sets[i], all, counts, &out) != OCTET_OK) continue;
        require(out.count > 0 && out.count <= 10);
        for (size_t k = 0; k < out.count; k++) require(out.numbers[k] >= 0 && out.numbers[k] < 10);
        study_pictures_free(&out);
    }
    free(all);
    free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    study_file study;
    if (study_file_parse(&study, "fuzz", (const char *)data, size) != OCTET_OK) {
        require(study.memory == NULL && study_error_text()[0] != '\0');
        return 0;
    }
    require(study_find_variant(&study, study.reference) != NULL && study_find_set(&study, "verdict") != NULL);
    for (size_t i = 0; i < study.candidate_count; i++) require(study_find_variant(&study, study.candidates[i]) != NULL);
    for (size_t r = 0; r < study.rule_count; r++)
        for (size_t b = 0; b < study.rules[r].bound_count; b++)
            require(study_find_figure(study.rules[r].bounds[b].figure) != NULL);
    check_sets(&study);
    (void)decision_check_power(&study, 10);
    study_file_free(&study);
    return 0;
}
