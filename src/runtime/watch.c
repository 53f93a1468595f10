/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/watch.h"

#include <string.h>
#include <time.h>

#include "base/hash.h"

static _Thread_local struct {
    octet_lab_watch watch;
    void *user;
    bool steps;
} current;

void octet_lab_set_watch(octet_lab_watch watch, void *user, int steps) {
    current.watch = watch;
    current.user = user;
    current.steps = steps != 0;
}

bool oct_watch_on(void) {
    return current.watch != NULL;
}

bool oct_watch_steps(void) {
    return current.watch != NULL && current.steps;
}

double oct_watch_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void oct_watch_emit(const char *room, const char *source, const char *what, const char *format, int rank,
                    const int64_t *shape, const void *data, double milliseconds) {
    if (current.watch == NULL) return;
    octet_lab_event event = {.struct_size = sizeof event,
                             .room = room,
                             .source = source,
                             .what = what,
                             .format = format,
                             .rank = rank,
                             .data = data,
                             .milliseconds = milliseconds};
    for (int i = 0; i < rank && i < 4; i++) event.shape[i] = shape[i];
    current.watch(current.user, &event);
}

uint64_t octet_lab_checksum(const void *data, size_t size) {
    return oct_fnv1a(data, size);
}
