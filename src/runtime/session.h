/* SPDX-License-Identifier: Apache-2.0 */
/* The session behind octet_session: a pool, an engine's context, and the group of pictures being filled. */
#ifndef OCT_RUNTIME_SESSION_H
#define OCT_RUNTIME_SESSION_H

#include "runtime/result.h"

struct octet_session {
    octet_model *model; /* retained */
    oct_pool *pool;
    oct_orientation orientation;
    oct_engine *engine; /* retained; NULL before the first picture of a model whose input follows the picture */
    oct_context *context;
    int height, width; /* of `engine` */
    oct_step_tap tap;  /* called after each step instead of the watch; NULL: none */
    void *tap_user;
    double jitter; /* each number of the input is moved by up to this share of itself */
    uint64_t jitter_state;
};

/* Makes the session's context fit an input size. */
octet_status oct_session_prepare(octet_session *session, int height, int width);

#endif
