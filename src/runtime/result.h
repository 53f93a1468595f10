/* SPDX-License-Identifier: Apache-2.0 */
/* Results: the outputs of one picture and the rules that read them. */
#ifndef OCT_RUNTIME_RESULT_H
#define OCT_RUNTIME_RESULT_H

#include "runtime/model.h"

struct octet_result {
    octet_model *model; /* retained: labels */
    octet_task task;
    int32_t width, height; /* of the picture */
    size_t rows, columns;  /* of logits */
    float *logits;         /* rows * columns, then boxes: rows * 4; one block */
    float *boxes;          /* NULL for classification */
};

/* Room for `rows` x `columns` logits, and boxes for a detection. */
octet_status oct_result_new(octet_result **result, octet_model *model, int width, int height, size_t rows,
                            size_t columns);

#endif
