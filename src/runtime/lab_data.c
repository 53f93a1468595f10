/* SPDX-License-Identifier: Apache-2.0 */
/* lab.h: data sets. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/set.h"
#include "octet/lab.h"
#include "runtime/log.h"
#include "runtime/model.h"
#include "runtime/options.h"

struct octet_lab_set {
    oct_set *set;
    char fingerprint[OCT_SHA256_HEX];
};

struct octet_lab_held {
    octet_lab_sample sample;
    oct_sample *read;
    octet_lab_truth *truths;
};

static octet_status open_set(octet_lab_set *made, const char *place, const octet_lab_set_options *options) {
    oct_set_options inner = {0};
    if (options->model != NULL) {
        bool boxes = oct_set_names_boxes(place), detects = options->model->facts.task == OCT_TASK_DETECTION;
        if (oct_file_exists(place) && boxes != detects)
            return oct_fail(OCTET_MISMATCH, "%s: expected %s, as the model is for %s", place,
                            detects ? "COCO instances (.json)" : "pictures with labels",
                            detects ? "detection" : "classification");
        inner.names = options->model->labels.names;
        inner.name_count = options->model->labels.count;
    }
    oct_labels list = {0};
    if (options->classes_file != NULL) {
        const oct_document no_config = {0};
        if (options->model == NULL)
            return oct_fail(OCTET_INVALID_ARGUMENT, "data set: a list of classes goes with a model");
        OCT_TRY(oct_labels_read(&list, &no_config, options->classes_file, inner.name_count));
        inner.names = list.names;
        inner.names_decide = true;
    }
    inner.facts_only = options->facts_only != 0;
    inner.numbers = options->numbers;
    inner.number_count = options->number_count;
    octet_status status = oct_set_open(&made->set, place, &inner);
    oct_labels_free(&list);
    return status;
}

octet_status octet_lab_set_open(const char *place, const octet_lab_set_options *options, octet_lab_set **set) {
    octet_lab_set_options own = OCTET_LAB_SET_OPTIONS_DEFAULT;
    if (set == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "set: expected an address, found NULL");
    *set = NULL;
    if (place == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "data set: expected a place, found NULL");
    if (options != NULL) OCT_TRY(oct_options_take(&own, sizeof own, options, "octet_lab_set_options"));
    octet_lab_set *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    octet_status status = open_set(made, place, &own);
    if (status != OCTET_OK) {
        octet_lab_set_close(&made);
        return status;
    }
    const char *warning;
    for (size_t i = 0; (warning = oct_set_warning(made->set, i)) != NULL; i++) oct_log("%s", warning);
    *set = made;
    return OCTET_OK;
}

void octet_lab_set_close(octet_lab_set **set) {
    if (set == NULL || *set == NULL) return;
    oct_set_close((*set)->set);
    oct_free(*set);
    *set = NULL;
}

octet_task octet_lab_set_task(const octet_lab_set *set) {
    return oct_set_has_boxes(set->set) ? OCTET_DETECTION : OCTET_CLASSIFICATION;
}

int64_t octet_lab_set_count(const octet_lab_set *set) {
    return oct_set_count(set->set);
}

const char *octet_lab_set_order(const octet_lab_set *set) {
    return oct_set_order(set->set);
}

const int64_t *octet_lab_set_categories(const octet_lab_set *set, size_t *count) {
    return oct_set_categories(set->set, count);
}

const char *octet_lab_set_fingerprint(octet_lab_set *set) {
    oct_set_fingerprint(set->set, set->fingerprint);
    return set->fingerprint;
}

/* ---- samples */

static octet_status give(oct_sample *read, octet_lab_sample **sample) {
    struct octet_lab_held *held = oct_calloc(1, sizeof *held);
    octet_lab_truth *truths = oct_calloc(read->truth_count, sizeof *truths);
    if (held == NULL || truths == NULL) {
        oct_free(held);
        oct_free(truths);
        return oct_fail_memory();
    }
    for (size_t i = 0; i < read->truth_count; i++) {
        const oct_truth *from = &read->truths[i];
        truths[i] = (octet_lab_truth){.id = from->id, .label = from->label, .area = from->area, .crowd = from->crowd};
        memcpy(truths[i].box, from->box, sizeof truths[i].box);
    }
    held->read = read;
    held->truths = truths;
    held->sample = (octet_lab_sample){.name = read->name,
                                      .path = read->path,
                                      .data = read->data,
                                      .size = read->size,
                                      .label = read->label,
                                      .image_id = read->image_id,
                                      .width = read->width,
                                      .height = read->height,
                                      .truths = truths,
                                      .truth_count = read->truth_count};
    *sample = &held->sample;
    return OCTET_OK;
}

octet_status octet_lab_set_next(octet_lab_set *set, octet_lab_sample **sample) {
    *sample = NULL;
    oct_sample *read;
    OCT_TRY(oct_set_next(set->set, &read));
    if (read == NULL) return OCTET_OK;
    octet_status status = give(read, sample);
    if (status != OCTET_OK) oct_sample_free(read);
    return status;
}

void octet_lab_sample_free(octet_lab_sample **sample) {
    if (sample == NULL || *sample == NULL) return;
    struct octet_lab_held *held = (struct octet_lab_held *)(void *)*sample; /* its first member */
    oct_sample_free(held->read);
    oct_free(held->truths);
    oct_free(held);
    *sample = NULL;
}
