/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when first needed: whoever only runs models neither needs it nor waits for it. */
#ifndef OCT_HUB_LIBRARY_H
#define OCT_HUB_LIBRARY_H

#include <curl/curl.h>

#include "base/error.h"

/* Named like curl's functions without "curl_". setopt takes a long where curl says so: write 1L. */
typedef struct oct_curl {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
} oct_curl;

/* Thread-safe; stays loaded. UNSUPPORTED with the package's name if it is not there. */
octet_status oct_curl_load(const oct_curl **curl);

#endif
