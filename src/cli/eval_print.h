/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of eval_report for people. */
#ifndef OCT_CLI_EVAL_PRINT_H
#define OCT_CLI_EVAL_PRINT_H

#include <jansson.h>

void print_figures(const json_t *figures);

#endif
