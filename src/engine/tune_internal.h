/* SPDX-License-Identifier: Apache-2.0 */
/* What tune.c asks of timing_cache.c. */
#ifndef OCT_ENGINE_TUNE_INTERNAL_H
#define OCT_ENGINE_TUNE_INTERNAL_H

#include "engine/tune.h"

const oct_timing_entry *oct_timing_cache_find(const oct_timing_cache *cache, const char *signature); /* NULL: none */
/* Takes the place of an entry of the same signature. */
octet_status oct_timing_cache_put(oct_timing_cache *cache, const char *signature, const char *tactic,
                                  const char *times);

#endif
