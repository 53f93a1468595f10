/* SPDX-License-Identifier: Apache-2.0 */
/* Finding liboctet_cuda.so: $OCTET_CUDA_LIBRARY, else beside liboctet, else where the system looks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cuda/cuda.h"

#define LIBRARY "liboctet_cuda.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const oct_device_api *loaded; /* never unloaded: the driver keeps threads of its own */

octet_status oct_cuda_fail(int status, const char *what, const oct_device_error *error) {
    const char *text = error != NULL && error->text[0] != 0 ? error->text : "no reason given";
    switch (status) {
    case OCT_DEVICE_OK:
        return OCTET_OK;
    case OCT_DEVICE_NONE:
        return oct_fail(OCTET_NO_DEVICE, "%s: no CUDA device can be used: %s", what, text);
    case OCT_DEVICE_MEMORY:
        return oct_fail(OCTET_OUT_OF_MEMORY, "%s: out of device memory: %s", what, text);
    case OCT_DEVICE_LOST:
        oct_fail(OCTET_NO_DEVICE, "%s: the CUDA device was lost: %s", what, text);
        return oct_hint("this process cannot use the device any more; free its sessions and start another");
    default:
        return oct_fail(OCTET_INTERNAL, "%s: %s", what, text);
    }
}

/* The path beside the file that this code is in. */
static char *beside(void) {
    Dl_info info;
    if (dladdr((void *)&lock, &info) == 0 || info.dli_fname == NULL) return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    return slash == NULL ? NULL : oct_sprintf("%.*s" LIBRARY, (int)(slash + 1 - info.dli_fname), info.dli_fname);
}

static void *open_library(oct_text *tried) {
    char *near = beside();
    const char *const asked = getenv("OCTET_CUDA_LIBRARY");
    const char *places[] = {asked != NULL ? asked : near, LIBRARY};
    void *library = NULL;
    for (size_t i = 0; i < (asked != NULL ? 1u : 2u) && library == NULL; i++) {
        if (places[i] == NULL) continue;
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) oct_text_printf(tried, "%s%s", tried->length > 0 ? "; " : "", dlerror());
    }
    oct_free(near);
    return library;
}

static octet_status load(void) {
    oct_text tried = {0};
    void *library = open_library(&tried);
    if (library == NULL) {
        oct_fail(OCTET_NO_DEVICE, "CUDA was not compiled, or %s is not installed", LIBRARY);
        oct_detail("%s", tried.data != NULL ? tried.data : "");
        oct_text_free(&tried);
        return oct_hint("build octet where a CUDA toolkit is installed, or set OCTET_CUDA_LIBRARY");
    }
    oct_text_free(&tried);
    oct_cuda_entry_function entry = NULL;
    *(void **)&entry = dlsym(library, "oct_cuda_entry");
    const oct_device_api *api = entry != NULL ? entry() : NULL;
    if (api == NULL || api->version != OCT_DEVICE_VERSION || api->launch_size != sizeof(oct_launch)) {
        dlclose(library);
        return oct_fail(OCTET_NO_DEVICE, "%s is of another version of octet", LIBRARY);
    }
    loaded = api;
    return OCTET_OK;
}

octet_status oct_cuda_find(int ordinal, const oct_device_api **api, oct_device_facts *facts) {
    pthread_mutex_lock(&lock);
    const octet_status status = loaded != NULL ? OCTET_OK : load();
    pthread_mutex_unlock(&lock);
    if (status != OCTET_OK) return status;
    oct_device_facts found = {.name = ""};
    oct_device_error error = {{0}};
    OCT_TRY(oct_cuda_fail(loaded->facts(ordinal, &found, &error), "GPU", &error));
    if (found.major < 8)
        return oct_fail(OCTET_NO_DEVICE, "%s: expected compute capability 8.0 or newer, found %d.%d", found.name,
                        (int)found.major, (int)found.minor);
    *api = loaded;
    if (facts != NULL) *facts = found;
    return OCTET_OK;
}
