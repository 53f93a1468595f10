/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"

#define REDIRECTS 8
#define DROPPED_LIMIT ((size_t)256 << 10) /* bytes read of a body nobody wants, so that the connection can be kept */
#define URL_LIMIT ((size_t)16 << 10)
#define BUFFER (256L << 10)
#define LONGEST_BACKOFF_MS 8000
#define TICK_MS 50
#define TOO_LARGE 100 /* CURLE_TOO_LARGE, of later versions than the headers may be of */

/* One hop of an attempt, for libcurl's callbacks. */
typedef struct hop {
    oct_hub_client *client;
    const oct_hub_request *request;
    oct_hub_response *response;
    size_t dropped;
    bool cut;     /* enough was dropped: the rest does not matter */
    double heard; /* when something came last */
    bool stalled;
    octet_status status; /* of a callback */
} hop;

/* ---- text */

size_t oct_hub_origin(const char *url) {
    const char *authority = strstr(url, "://");
    if (authority == NULL) return 0;
    authority += 3;
    return (size_t)(authority - url) + strcspn(authority, "/?#\\");
}

static bool same_origin(const char *a, const char *b) {
    size_t length = oct_hub_origin(a);
    return length > 0 && length == oct_hub_origin(b) && strncasecmp(a, b, length) == 0;
}

static const char *host_of(const oct_hub_response *response) {
    const char *host = strstr(response->origin, "://"), *at;
    if (host == NULL) return response->origin;
    at = strrchr(host, '@'); /* a password is nobody's to print */
    return at != NULL ? at + 1 : host + 3;
}

void oct_hub_put_escaped(oct_text *out, const char *text, bool path) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL || (path && *text == '/')) {
            oct_text_append(out, text, 1);
        } else {
            oct_text_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
        }
    }
}

/* ---- progress */

octet_status oct_hub_tell(oct_hub_client *client, oct_hub_state state, const char *note) {
    client->event.state = state;
    if (note != client->note) (void)snprintf(client->note, sizeof client->note, "%s", note != NULL ? note : "");
    client->event.note = client->note;
    if (client->progress == NULL || client->progress(client->user, &client->event)) return OCTET_OK;
    oct_fail(OCTET_CANCELLED, "cancelled");
    return oct_hint("what has come is kept: the same pull goes on from there");
}

octet_status oct_hub_sleep(oct_hub_client *client, unsigned milliseconds) {
    for (unsigned left = milliseconds; left > 0;) {
        unsigned now = left < TICK_MS ? left : TICK_MS;
        const struct timespec time = {.tv_nsec = (long)now * 1000000};
        (void)nanosleep(&time, NULL);
        left -= now;
        OCT_TRY(oct_hub_tell(client, OCT_HUB_WAITING, client->note));
    }
    return OCTET_OK;
}

static double seconds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Called about once a second when nothing comes. libcurl's own low-speed limit looks back over five seconds, which is
 * more than a short timeout. */
static int on_tick(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    (void)a, (void)b, (void)c, (void)d;
    hop *now = user;
    if (now->status == OCTET_OK) now->status = oct_hub_tell(now->client, now->client->event.state, now->client->note);
    now->stalled = seconds_now() - now->heard >= (double)now->client->timeout;
    return now->status != OCTET_OK || now->stalled;
}

/* ---- headers */

static void copy(char *to, size_t capacity, const char *value, size_t length) {
    if (length >= capacity) length = 0; /* longer than it can be: as if it were not there */
    memcpy(to, value, length);
    to[length] = '\0';
}

static int64_t number(const char *value, size_t length) {
    char text[24];
    int64_t parsed;
    copy(text, sizeof text, value, length);
    return oct_parse_int(text, 0, INT64_MAX, &parsed) ? parsed : -1;
}

/* "bytes 5-9/10" */
static void read_range(oct_hub_response *response, const char *value, size_t length) {
    const char *end = value + length, *dash = memchr(value, '-', length), *slash = memchr(value, '/', length);
    if (length < 6 || strncasecmp(value, "bytes ", 6) != 0 || dash == NULL || slash == NULL || dash > slash) return;
    response->range_first = number(value + 6, (size_t)(dash - value - 6));
    response->range_total = number(slash + 1, (size_t)(end - slash - 1));
}

static void read_header(hop *now, const char *name, size_t name_length, const char *value, size_t length) {
    oct_hub_response *response = now->response;
#define IS(text) (name_length == sizeof(text) - 1 && strncasecmp(name, text, name_length) == 0)
    if (IS("etag")) copy(response->etag, sizeof response->etag, value, length);
    if (IS("content-length")) response->length = number(value, length);
    if (IS("content-range")) read_range(response, value, length);
    if (IS("content-encoding")) response->encoded = length != 8 || strncasecmp(value, "identity", 8) != 0;
    if (!now->response->of_hub) return;
    if (IS("x-repo-commit")) copy(response->commit, sizeof response->commit, value, length);
    if (IS("x-linked-etag")) copy(response->linked_etag, sizeof response->linked_etag, value, length);
    if (IS("x-linked-size")) response->linked_size = number(value, length);
    if (IS("x-error-code")) copy(response->error_code, sizeof response->error_code, value, length);
    if (IS("x-error-message")) {
        size_t most = sizeof response->error_message - 1;
        copy(response->error_message, sizeof response->error_message, value, length < most ? length : most);
    }
#undef IS
}

/* What belongs to one answer of one hop; what the hub said in an earlier hop stays. */
static void begin_answer(oct_hub_response *response) {
    response->etag[0] = response->error_code[0] = response->error_message[0] = '\0';
    response->length = response->range_first = response->range_total = -1;
    response->encoded = false;
    response->header_bytes = 0;
}

static size_t on_header(char *line, size_t element, size_t count, void *user) {
    hop *now = user;
    size_t size = element * count, length = size;
    now->heard = seconds_now();
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) begin_answer(now->response);
    now->response->header_bytes += size;
    if (now->response->header_bytes > OCT_HUB_HEADERS_LIMIT) {
        now->status = oct_fail(OCTET_LIMIT, "%s: sends headers of more than %zu bytes", host_of(now->response),
                               OCT_HUB_HEADERS_LIMIT);
        return 0;
    }
    const char *colon = memchr(line, ':', length);
    if (colon == NULL) return size;
    const char *value = colon + 1;
    while (length > 0 && strchr(" \t\r\n", line[length - 1]) != NULL) length--;
    while (value < line + length && (*value == ' ' || *value == '\t')) value++;
    size_t left = value < line + length ? (size_t)(line + length - value) : 0;
    read_header(now, line, (size_t)(colon - line), value, left);
    return size;
}

/* ---- the body */

static size_t on_body(char *data, size_t element, size_t count, void *user) {
    hop *now = user;
    size_t size = element * count;
    now->heard = seconds_now();
    if (now->response->status == 0)
        (void)now->client->curl->easy_getinfo(now->client->handle, CURLINFO_RESPONSE_CODE, &now->response->status);
    long status = now->response->status;
    if (status != 200 && status != 206) {
        now->dropped += size;
        now->cut = now->dropped > DROPPED_LIMIT;
        return now->cut ? size + 1 : size;
    }
    if (now->response->encoded) {
        now->status =
            oct_fail(OCTET_BAD_FORMAT, "%s: sends a content encoding that was not asked for", host_of(now->response));
    } else if (now->request->sink != NULL) {
        now->status = now->request->sink(now->request->user, now->response, data, size);
    }
    return now->status == OCTET_OK ? size : size + 1;
}

/* ---- one hop */

static octet_status fail_transfer(hop *now, CURLcode code, const char *why) {
    const char *host = host_of(now->response);
    const char *text = why[0] != '\0' ? why : now->client->curl->easy_strerror(code);
    now->response->transient = false;
    if ((int)code == TOO_LARGE) return oct_fail(OCTET_LIMIT, "%s: sends a header line that is too long", host);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        oct_fail(OCTET_IO, "%s: could not find this host's address", host);
        oct_detail("%s", text);
        return oct_hint("check the network, HF_ENDPOINT and the proxy's variables");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        oct_fail(OCTET_IO, "%s: could not make a TLS connection", host);
        oct_detail("%s", text);
        return oct_hint("certificates come from package ca-certificates, or the file that SSL_CERT_FILE names");
    case CURLE_OUT_OF_MEMORY:
        return oct_fail_memory();
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        oct_fail(OCTET_INVALID_ARGUMENT, "%s: not an address that can be asked", host);
        return oct_detail("%s", text);
    case CURLE_OPERATION_TIMEDOUT:
        now->response->transient = true;
        oct_fail(OCTET_IO, "%s: nothing came for %u s", host, now->client->timeout);
        return oct_hint("--timeout waits longer");
    default:
        now->response->transient = true;
        oct_fail(OCTET_IO, "%s: the connection failed", host);
        return oct_detail("%s", text);
    }
}

static struct curl_slist *add(const oct_curl *curl, struct curl_slist *list, const char *line, bool *failed) {
    struct curl_slist *longer = *failed ? NULL : curl->slist_append(list, line);
    *failed = longer == NULL;
    return longer != NULL ? longer : list;
}

static struct curl_slist *headers_of(const hop *now, bool *failed) {
    const oct_curl *curl = now->client->curl;
    const oct_hub_request *request = now->request;
    struct curl_slist *list = add(curl, NULL, "Accept-Encoding: identity", failed);
    if (now->response->of_hub && now->client->authorization != NULL)
        list = add(curl, list, now->client->authorization, failed);
    if (request->first > 0) {
        char line[OCT_HUB_ETAG + 16];
        (void)snprintf(line, sizeof line, "Range: bytes=%llu-", (unsigned long long)request->first);
        list = add(curl, list, line, failed);
        if (request->if_range != NULL && strcmp(request->if_range_origin, now->response->origin) == 0) {
            (void)snprintf(line, sizeof line, "If-Range: %s", request->if_range);
            list = add(curl, list, line, failed);
        }
    }
    return list;
}

static const char *certificates(void) {
    static const char *const variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *file = getenv(variables[i]);
        if (file != NULL && file[0] != '\0') return file;
    }
    return NULL;
}

static void set_options(hop *now, const char *url, const struct curl_slist *headers, char *why) {
    CURL *handle = now->client->handle;
    __typeof__(curl_easy_setopt) *set = now->client->curl->easy_setopt;
    now->client->curl->easy_reset(handle);
    (void)set(handle, CURLOPT_URL, url);
    (void)set(handle, CURLOPT_NOSIGNAL, 1L);
    (void)set(handle, CURLOPT_NOBODY, now->request->head ? 1L : 0L);
    (void)set(handle, CURLOPT_HTTPHEADER, headers);
    (void)set(handle, CURLOPT_USERAGENT, "octet");
    (void)set(handle, CURLOPT_ERRORBUFFER, why);
    (void)set(handle, CURLOPT_CONNECTTIMEOUT, (long)now->client->timeout);
    (void)set(handle, CURLOPT_BUFFERSIZE, BUFFER);
    (void)set(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)set(handle, CURLOPT_HEADERFUNCTION, on_header);
    (void)set(handle, CURLOPT_HEADERDATA, now);
    (void)set(handle, CURLOPT_WRITEFUNCTION, on_body);
    (void)set(handle, CURLOPT_WRITEDATA, now);
    (void)set(handle, CURLOPT_NOPROGRESS, 0L);
    (void)set(handle, CURLOPT_XFERINFOFUNCTION, on_tick);
    (void)set(handle, CURLOPT_XFERINFODATA, now);
    const char *file = certificates();
    if (file != NULL) (void)set(handle, CURLOPT_CAINFO, file);
}

static octet_status make_hop(hop *now, const char *url) {
    oct_hub_response *response = now->response;
    const oct_curl *curl = now->client->curl;
    char why[CURL_ERROR_SIZE] = "";
    bool failed = false;
    now->response->of_hub = same_origin(url, now->client->endpoint);
    copy(response->origin, sizeof response->origin, url, oct_hub_origin(url));
    response->status = 0;
    begin_answer(response);
    struct curl_slist *headers = headers_of(now, &failed);
    if (failed) {
        curl->slist_free_all(headers);
        return oct_fail_memory();
    }
    set_options(now, url, headers, why);
    now->heard = seconds_now();
    CURLcode code = curl->easy_perform(now->client->handle);
    if (now->stalled && code == CURLE_ABORTED_BY_CALLBACK) code = CURLE_OPERATION_TIMEDOUT;
    (void)curl->easy_getinfo(now->client->handle, CURLINFO_RESPONSE_CODE, &response->status);
    curl_off_t wait = 0;
    (void)curl->easy_getinfo(now->client->handle, CURLINFO_RETRY_AFTER, &wait);
    response->retry_after = wait > 0 && wait < INT32_MAX ? (long)wait : 0;
    (void)curl->easy_setopt(now->client->handle, CURLOPT_HTTPHEADER, NULL);
    (void)curl->easy_setopt(now->client->handle, CURLOPT_ERRORBUFFER, NULL);
    curl->slist_free_all(headers);
    if (now->status != OCTET_OK) return now->status;
    if (code != CURLE_OK && !now->cut) return fail_transfer(now, code, why);
    return OCTET_OK;
}

/* ---- one attempt */

static octet_status fail_status(oct_hub_response *response) {
    long status = response->status;
    response->transient = status == 408 || status == 429 || status >= 500;
    octet_status kind = status == 404 || status == 410 ? OCTET_NOT_FOUND : OCTET_IO;
    oct_fail(kind, "%s: answers with HTTP status %ld", host_of(response), status);
    if (response->error_message[0] != '\0') oct_detail("%s", response->error_message);
    return kind;
}

/* Where a redirect leads: *url becomes it. */
static octet_status follow(const hop *now, char **url) {
    const char *target = NULL;
    (void)now->client->curl->easy_getinfo(now->client->handle, CURLINFO_REDIRECT_URL, &target);
    if (target == NULL || target[0] == '\0')
        return oct_fail(OCTET_BAD_FORMAT, "%s: redirects to nowhere", host_of(now->response));
    bool secure = strncasecmp(target, "https://", 8) == 0;
    if (!secure && strncasecmp(target, "http://", 7) != 0)
        return oct_fail(OCTET_BAD_FORMAT, "%s: redirects to what is not http", host_of(now->response));
    if (!secure && strncasecmp(*url, "https://", 8) == 0)
        return oct_fail(OCTET_BAD_FORMAT, "%s: redirects from https to http", host_of(now->response));
    size_t origin = oct_hub_origin(target);
    if (strlen(target) > URL_LIMIT || origin >= sizeof now->response->origin)
        return oct_fail(OCTET_LIMIT, "%s: redirects to an address of %zu bytes", host_of(now->response),
                        strlen(target));
    char *next = oct_strdup(target);
    if (next == NULL) return oct_fail_memory();
    oct_free(*url);
    *url = next;
    return OCTET_OK;
}

static bool is_redirect(long status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static octet_status hops(hop *now, char **url) {
    for (int left = REDIRECTS;; left--) {
        OCT_TRY(make_hop(now, *url));
        oct_hub_response *response = now->response;
        if (response->status == 200 || response->status == 206) return OCTET_OK;
        if (!is_redirect(response->status)) return fail_status(response);
        if (left == 0) return oct_fail(OCTET_BAD_FORMAT, "%s: redirects without end", host_of(response));
        bool was_of_hub = now->response->of_hub;
        OCT_TRY(follow(now, url));
        if (now->request->head && was_of_hub && !same_origin(*url, now->client->endpoint)) return OCTET_OK;
        now->dropped = 0;
        now->cut = false;
    }
}

octet_status oct_hub_attempt(oct_hub_client *client, const oct_hub_request *request, oct_hub_response *response) {
    *response = (oct_hub_response){.linked_size = -1};
    begin_answer(response);
    hop now = {.client = client, .request = request, .response = response};
    char *url = oct_strdup(request->url);
    if (url == NULL) return oct_fail_memory();
    octet_status status = hops(&now, &url);
    oct_free(url);
    return status;
}

/* ---- several attempts */

octet_status oct_hub_again(oct_hub_client *client, const oct_hub_response *response, unsigned attempt) {
    octet_status status = oct_error_status();
    if (!response->transient) return status;
    if (attempt >= client->attempts) return oct_detail("after %u attempts", attempt);
    if (response->retry_after > OCT_HUB_LONGEST_WAIT)
        return oct_detail("it asks to wait %ld s; at most %d s are waited", response->retry_after,
                          OCT_HUB_LONGEST_WAIT);
    uint64_t wait = (uint64_t)client->backoff_ms << (attempt < 16 ? attempt - 1 : 15);
    if (wait > LONGEST_BACKOFF_MS) wait = LONGEST_BACKOFF_MS;
    if (response->retry_after > 0) wait = (uint64_t)response->retry_after * 1000;
    OCT_TRY(oct_hub_tell(client, OCT_HUB_RETRYING, oct_error_fact()));
    return oct_hub_sleep(client, (unsigned)wait);
}

octet_status oct_hub_ask(oct_hub_client *client, const oct_hub_request *request, void (*restart)(void *user),
                         oct_hub_response *response) {
    for (unsigned attempt = 1;; attempt++) {
        OCT_TRY(oct_hub_tell(client, OCT_HUB_ASKING, NULL));
        octet_status status = oct_hub_attempt(client, request, response);
        if (status == OCTET_OK) return OCTET_OK;
        OCT_TRY(oct_hub_again(client, response, attempt));
        if (restart != NULL) restart(request->user);
    }
}
