/* SPDX-License-Identifier: Apache-2.0 */
/* A calibration at work: calibrate.c runs it, calibrate_tap.c sees what the steps make. */
#ifndef OCT_RUNTIME_CALIBRATE_H
#define OCT_RUNTIME_CALIBRATE_H

#include "octet/lab.h"
#include "quant/learn.h"
#include "runtime/ranges.h"
#include "runtime/recipes.h"
#include "runtime/session.h"

typedef struct calibration {
    const octet_lab_calibrate_options *options;
    octet_lab_calibrate_progress progress;
    void *user;
    const char *output;
    char *part, *learnt; /* OUTPUT.part, OUTPUT.learnt */
    octet_model *model;  /* float32 */
    octet_session *session;
    octet_lab_set *set;
    oct_model_recipe *recipe;
    oct_model_keys keys;
    uint8_t key[OCT_SHA256_SIZE];
    char key_hex[OCT_SHA256_HEX];
    oct_scale_draft draft;
    octet_lab_calibrate_event event;
    double kept; /* when the state was written last */
    /* of the pass that runs */
    oct_graph graph;
    oct_decisions decisions;
    oct_quant_watch_list list;
    oct_ranges ranges; /* one for each watch */
    bool keeps_rows;
    /* the tap's: which watches look at what a step of the plan at hand makes, as lists through `next`; OCT_NONE ends */
    const oct_plan *plan;
    int32_t *of_step, *next;
    int32_t of_input;
    float *scaled; /* a tensor's numbers, dense, times factors */
    size_t scaled_count;
    octet_status failed; /* of the tap, in the picture that runs */
} calibration;

/* An oct_step_tap, `user` is the calibration. */
void oct_calibration_tap(void *user, const oct_plan *plan, size_t step, const void *output, double seconds);
void oct_calibration_forget_plan(calibration *c);

#endif
