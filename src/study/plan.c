/* SPDX-License-Identifier: Apache-2.0 */
#include "study/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Removes row i. */
static void drop(evidence_rows *rows, size_t i) {
    json_decref(rows->items[i].body);
    memmove(&rows->items[i], &rows->items[i + 1], (rows->count - i - 1) * sizeof *rows->items);
    rows->count--;
}

static bool later_there(const evidence_rows *rows, const evidence_row *row) {
    for (size_t i = 0; i < rows->count; i++) {
        const evidence_row *other = &rows->items[i];
        if (strcmp(evidence_text(other, "environment"), evidence_text(row, "environment")) == 0 &&
            evidence_integer(other, "number") > evidence_integer(row, "number"))
            return true;
    }
    return false;
}

octet_status study_plans_load(evidence_file *evidence, const study_file *study, study_plans *out) {
    *out = (study_plans){0};
    OCT_TRY(evidence_list(evidence, EVIDENCE_ARTIFACT, &(evidence_query){.kind = "plan"}, &out->rows));
    for (size_t i = 0; i < out->rows.count;) {
        const evidence_row *row = &out->rows.items[i];
        if (strcmp(evidence_text(row, "sha256"), study->sha256) != 0 || later_there(&out->rows, row))
            drop(&out->rows, i);
        else
            i++;
    }
    return OCTET_OK;
}

void study_plans_free(study_plans *plans) {
    evidence_rows_free(&plans->rows);
}

bool study_plans_have(const study_plans *plans, const char *run) {
    for (size_t i = 0; i < plans->rows.count; i++) {
        const json_t *tasks = json_object_get(plans->rows.items[i].body, "tasks");
        for (size_t k = 0; k < json_array_size(tasks); k++) {
            const char *id = json_string_value(json_object_get(json_array_get(tasks, k), "run"));
            if (id != NULL && strcmp(id, run) == 0) return true;
        }
    }
    return plans->rows.count == 0;
}

octet_status study_plan_write(evidence_file *evidence, const study_file *study, const char *environment,
                              json_t *tasks) {
    study_plans plans;
    int64_t number = 0;
    bool same = false;
    octet_status status = study_plans_load(evidence, study, &plans);
    for (size_t i = 0; status == OCTET_OK && i < plans.rows.count; i++) {
        const evidence_row *row = &plans.rows.items[i];
        if (strcmp(evidence_text(row, "environment"), environment) != 0) continue;
        number = evidence_integer(row, "number") + 1;
        same = json_equal(json_object_get(row->body, "tasks"), tasks) != 0;
    }
    if (status == OCTET_OK) study_plans_free(&plans);
    if (status != OCTET_OK || same) {
        json_decref(tasks);
        return status;
    }
    return evidence_add(evidence, EVIDENCE_ARTIFACT,
                        json_pack("{s:s, s:s, s:s, s:s, s:I, s:o}", "kind", "plan", "name", study->name, "sha256",
                                  study->sha256, "environment", environment, "number", (json_int_t)number, "tasks",
                                  tasks),
                        NULL);
}
