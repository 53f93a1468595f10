/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request after the other over one kept connection (inside the hub room).
 *
 * Redirects are followed here, not by libcurl: the token goes only where scheme, host and port are the endpoint's, from
 * https never to http, and the answer of the hub itself (its X-Linked-* headers) is kept when it sends us to another
 * host. */
#ifndef OCT_HUB_REQUEST_H
#define OCT_HUB_REQUEST_H

#include "base/text.h"
#include "hub/hub.h"
#include "hub/library.h"

#define OCT_HUB_ETAG 160 /* bytes of an entity tag kept, its zero included */

typedef struct oct_hub_client {
    const oct_curl *curl;
    CURL *handle;
    char *endpoint;      /* without a slash at its end */
    char *authorization; /* "Authorization: Bearer ...", or NULL */
    unsigned timeout, attempts, backoff_ms;
    oct_hub_progress progress;
    void *user;
    char note[512];      /* the event's */
    oct_hub_event event; /* what progress is told; the one who works on a file fills it */
} oct_hub_client;

octet_status oct_hub_client_open(oct_hub_client *client, const oct_hub_options *options);
void oct_hub_client_close(oct_hub_client *client);
/* Tells progress; CANCELLED if it says so. */
octet_status oct_hub_tell(oct_hub_client *client, oct_hub_state state, const char *note);
/* Sleeps, telling progress that nothing happens. */
octet_status oct_hub_sleep(oct_hub_client *client, unsigned milliseconds);

typedef struct oct_hub_response {
    long status;                             /* 0: no answer */
    char origin[256];                        /* who answered: "https://host:port" */
    bool of_hub;                             /* that is the endpoint */
    char etag[OCT_HUB_ETAG];                 /* as sent: "..." or W/"..." */
    char linked_etag[OCT_HUB_ETAG];          /* X-Linked-Etag, of the hub */
    char commit[64];                         /* X-Repo-Commit, of the hub */
    int64_t linked_size;                     /* X-Linked-Size, of the hub; -1: none */
    int64_t length;                          /* Content-Length; -1: none */
    int64_t range_first, range_total;        /* Content-Range; -1: none */
    bool encoded;                            /* a Content-Encoding other than identity */
    char error_code[64], error_message[256]; /* X-Error-Code, X-Error-Message */
    long retry_after;                        /* seconds; 0: none */
    size_t header_bytes;
    bool transient; /* of a failure: trying again may help */
} oct_hub_response;

typedef struct oct_hub_request {
    const char *url;
    bool head;            /* stop at the hub's answer: a redirect to another host is one */
    uint64_t first;       /* from this byte on */
    const char *if_range; /* a strong entity tag, said to if_range_origin only; NULL: none */
    const char *if_range_origin;
    /* Takes the body of a 200 or 206 in pieces; `response` is complete but for the body. */
    octet_status (*sink)(void *user, const oct_hub_response *response, const void *data, size_t size);
    void *user;
} oct_hub_request;

/* One attempt. OK means an answer of status 200 or 206 (or, of `head`, a redirect to another host) and a body taken
 * whole. A failure's text says who answered what; texts about the repository are oct_hub_explain's. */
octet_status oct_hub_attempt(oct_hub_client *client, const oct_hub_request *request, oct_hub_response *response);
/* After a failed attempt, number `attempt` (1 = the first): waits and is OK if another may help, else that failure. */
octet_status oct_hub_again(oct_hub_client *client, const oct_hub_response *response, unsigned attempt);
/* Attempts until one is OK, at most client->attempts. `restart` (may be NULL) forgets what the sink has. */
octet_status oct_hub_ask(oct_hub_client *client, const oct_hub_request *request, void (*restart)(void *user),
                         oct_hub_response *response);

/* The part "scheme://host:port" of a URL, in bytes. */
size_t oct_hub_origin(const char *url);
/* Appends `text` percent-encoded; slashes stay if `path`. */
void oct_hub_put_escaped(oct_text *out, const char *text, bool path);

#endif
