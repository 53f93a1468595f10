/* SPDX-License-Identifier: Apache-2.0 */
/* Many models, one after another, beside one reference on the same pictures: the pictures, as files, and what the
 * reference said of them are kept in memory. */
#ifndef OCT_EVAL_BESIDE_H
#define OCT_EVAL_BESIDE_H

#include "eval/evaluate.h"

#define BESIDE_BYTES ((size_t)2 << 30) /* kept at most */

typedef struct beside {
    octet_task task;
    octet_lab_sample **samples; /* count */
    octet_result **reference;   /* count */
    size_t count, bytes;
    char data[65];    /* the set's fingerprint */
    char failed[256]; /* of the last call: the picture it failed at, or "" */
} beside;

/* After each picture, may be NULL; false: stop. */
typedef bool (*beside_tick)(void *user, size_t done);

/* Takes the first `limit` pictures of `set` (0: all), each once through `reference`; both stay the caller's. Of more
 * than BESIDE_BYTES, EVALUATE_NO_MEMORY with `bytes` above it. *out is to be closed in any case. */
evaluate_end beside_open(octet_lab_set *set, octet_session *reference, size_t limit, beside_tick tick, void *user,
                         beside *out);
void beside_close(beside *b);
/* All pictures through `session`, into `figures`, begun by the caller with_reference. */
evaluate_end beside_measure(beside *b, octet_session *session, beside_tick tick, void *user, eval_figures *figures);
/* KL(reference || tested) of picture i, in nats; of detection the mean over tokens; INFINITY where it is no number. */
double beside_kl(const eval_figures *figures, size_t i);

#endif
