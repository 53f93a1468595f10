/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of octet.h that concern no model. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "octet/octet.h"
#include "runtime/log.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static octet_log log_line;
static void *log_user;

const char *octet_version(void) {
    return OCTET_VERSION;
}

const char *octet_status_name(octet_status status) {
    return oct_status_name(status);
}

const char *octet_status_text(octet_status status) {
    return oct_status_text(status);
}

const char *octet_error_text(void) {
    return oct_error_text();
}

void octet_free(void *memory) {
    oct_free(memory);
}

void octet_set_allocator(const octet_allocator *allocator) {
    if (allocator == NULL || allocator->allocate == NULL || allocator->release == NULL) {
        oct_allocator_set(NULL);
        return;
    }
    oct_allocator own = {allocator->allocate, allocator->release, allocator->user};
    oct_allocator_set(&own);
}

void octet_set_log(octet_log log, void *user) {
    pthread_mutex_lock(&log_lock);
    log_line = log;
    log_user = user;
    pthread_mutex_unlock(&log_lock);
}

void oct_log(const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&log_lock);
    if (log_line != NULL) log_line(log_user, line);
    pthread_mutex_unlock(&log_lock);
}
