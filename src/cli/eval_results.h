/* SPDX-License-Identifier: Apache-2.0 */
/* octet eval DETECTIONS.json: average precision of detections that another program found, in COCO's results format:
 * [{"image_id", "category_id", "bbox": [x, y, width, height], "score"}, ...]. */
#ifndef OCT_CLI_EVAL_RESULTS_H
#define OCT_CLI_EVAL_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

bool is_results_file(const char *place); /* a regular file whose name ends in .json */
/* Prints; returns the exit code. */
int eval_results(const char *file, const char *data, size_t draws, bool json);

#endif
