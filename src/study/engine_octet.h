/* SPDX-License-Identifier: Apache-2.0 */
/* What engine_octet.c and engine_time.c share. */
#ifndef OCT_STUDY_ENGINE_OCTET_H
#define OCT_STUDY_ENGINE_OCTET_H

#include "base/error.h"
#include "octet/lab.h"
#include "study/engine.h"

typedef struct engine_side {
    octet_model *model;
    octet_session *session;
} engine_side;
/* All zero on failure. */
octet_status engine_open(const study_octet *octet, const study_subject *subject, int64_t batch, uint32_t threads,
                         engine_side *side);
void engine_close(engine_side *side);
/* The library's last failure as the study's own. */
octet_status engine_fail(octet_status status);

octet_status engine_race(void *user, const study_race *race, json_t **timings);

#endif
