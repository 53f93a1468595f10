/* SPDX-License-Identifier: Apache-2.0 */
/* octet eval --stress: a line an input. */
#ifndef OCT_CLI_STRESS_H
#define OCT_CLI_STRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "octet/octet.h"

/* `reference` may be NULL. Returns the exit code. */
int eval_stress(octet_model *model, octet_model *reference, uint32_t threads, bool json);

#endif
