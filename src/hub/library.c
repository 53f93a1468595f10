/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static oct_curl loaded;
static char refused[512]; /* why it could not be loaded; "" if it was */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    /* either is libcurl 7 or 8; the second is the same with another TLS library */
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    static const struct {
        const char *name;
        void *slot;
    } functions[] = {{"curl_global_init", &loaded.global_init},   {"curl_easy_init", &loaded.easy_init},
                     {"curl_easy_cleanup", &loaded.easy_cleanup}, {"curl_easy_reset", &loaded.easy_reset},
                     {"curl_easy_setopt", &loaded.easy_setopt},   {"curl_easy_perform", &loaded.easy_perform},
                     {"curl_easy_getinfo", &loaded.easy_getinfo}, {"curl_easy_strerror", &loaded.easy_strerror},
                     {"curl_slist_append", &loaded.slist_append}, {"curl_slist_free_all", &loaded.slist_free_all}};
    void *library = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files && library == NULL; i++) {
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL && i == 0) {
            const char *why = dlerror();
            (void)snprintf(refused, sizeof refused, "%s", why != NULL ? why : "libcurl.so.4: could not be loaded");
        }
    }
    if (library == NULL) return;
    refused[0] = '\0';
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL) {
            (void)snprintf(refused, sizeof refused, "it has no %s", functions[i].name);
            return;
        }
        memcpy(functions[i].slot, &function, sizeof function);
    }
    if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        (void)snprintf(refused, sizeof refused, "curl_global_init failed");
}

octet_status oct_curl_load(const oct_curl **curl) {
    *curl = NULL;
    (void)pthread_once(&once, load);
    if (refused[0] != '\0') {
        oct_fail(OCTET_UNSUPPORTED, "cannot use libcurl, which pulling needs");
        oct_detail("%s", refused);
        return oct_hint("install libcurl: Debian's and Ubuntu's package is libcurl4");
    }
    *curl = &loaded;
    return OCTET_OK;
}
