/* SPDX-License-Identifier: Apache-2.0 */
/* A hub of our own on 127.0.0.1, with a second port that plays the CDN, and that misbehaves on demand.
 *
 * It is a process of its own (fork), a thread a connection; what it serves, what it does wrong and what it was asked
 * lie in memory shared with the test:
 *
 *     server *hub = server_start();
 *     server_add(hub, "config.json", "{}", 2, false);               a git file: served by the hub itself
 *     server_add(hub, "model.safetensors", bytes, size, true);      an LFS file: the hub redirects to the CDN
 *     server_fault(hub, FAULT_TRUNCATE, "GET", "/cdn/", 1, 1000);   the next such request ends after 1000 bytes
 *     ... pull from server_endpoint(hub) ... server_count(hub, "GET", "/cdn/") ...
 *     server_stop(hub); */
#ifndef OCT_TESTS_HUB_SERVER_H
#define OCT_TESTS_HUB_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#define SERVER_COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SERVER_FILES 8
#define SERVER_FAULTS 8
#define SERVER_LOG 256
#define SERVER_ROOM ((size_t)16 << 20)

typedef enum server_fault_kind {
    FAULT_STATUS,       /* answers with `value` */
    FAULT_RETRY_AFTER,  /* 429, Retry-After: `value` */
    FAULT_TRUNCATE,     /* closes after `value` bytes of the body */
    FAULT_STALL,        /* sends `value` bytes of the body, then nothing */
    FAULT_SIZE,         /* X-Linked-Size, or Content-Length of a HEAD, is `value` */
    FAULT_LENGTH,       /* Content-Length is `value` */
    FAULT_WRONG,        /* one bit of byte `value` differs */
    FAULT_NO_RANGE,     /* answers a Range with the whole file */
    FAULT_NEW_TAG,      /* another entity tag, and other bytes */
    FAULT_CHUNKED,      /* no length, in chunks */
    FAULT_ENDLESS,      /* chunks without end */
    FAULT_MANY_HEADERS, /* a thousand of them */
    FAULT_LONG_HEADER,  /* one of `value` bytes */
    FAULT_TAG,          /* entity tag is server->text */
    FAULT_COMMIT,       /* X-Repo-Commit is server->text */
    FAULT_REDIRECT,     /* 302, Location: server->text */
    FAULT_BODY,         /* 200 with server->text as its body */
    FAULT_ENCODED,      /* Content-Encoding: gzip */
    FAULT_GATED         /* 403 with X-Error-Message: server->text */
} server_fault_kind;

typedef struct server_file {
    char name[128], etag[65];
    size_t at, size; /* in `bytes` */
    bool lfs;
} server_file;

typedef struct server_rule {
    server_fault_kind kind;
    char method[8], part[128]; /* "" any */
    atomic_int left;           /* times; -1: always */
    long long value;
} server_rule;

typedef struct server_line {
    char method[8], path[300], token[64];
    long long first; /* of a Range; -1: none */
    bool cdn, if_range;
} server_line;

typedef struct server {
    int port, cdn_port;
    pid_t process;
    char text[1024];
    bool siblings_without_size;
    int listeners[2];
    size_t files, faults, used;
    server_file file[SERVER_FILES];
    server_rule rule[SERVER_FAULTS];
    atomic_uint lines;
    server_line line[SERVER_LOG];
    unsigned char bytes[SERVER_ROOM];
} server;

typedef struct server_peer {
    server *hub;
    int socket;
    bool cdn;
} server_peer;

/* ---- what the test says and asks */

static inline void server_hash(const void *data, size_t size, bool lfs, char hex[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    char header[32];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_DigestInit_ex(context, lfs ? EVP_sha256() : EVP_sha1(), NULL);
    if (!lfs) EVP_DigestUpdate(context, header, (size_t)snprintf(header, sizeof header, "blob %zu", size) + 1);
    EVP_DigestUpdate(context, data, size);
    EVP_DigestFinal_ex(context, digest, &length);
    EVP_MD_CTX_free(context);
    for (unsigned i = 0; i < length; i++) snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
}

static inline server_file *server_add(server *hub, const char *name, const void *data, size_t size, bool lfs) {
    server_file *file = &hub->file[hub->files++];
    snprintf(file->name, sizeof file->name, "%s", name);
    file->at = hub->used;
    file->size = size;
    file->lfs = lfs;
    if (size > 0) memcpy(hub->bytes + hub->used, data, size);
    hub->used += size;
    server_hash(hub->bytes + file->at, size, lfs, file->etag);
    return file;
}

static inline void server_fault(server *hub, server_fault_kind kind, const char *method, const char *part, int times,
                                long long value) {
    server_rule *rule = &hub->rule[hub->faults++];
    rule->kind = kind;
    rule->value = value;
    snprintf(rule->method, sizeof rule->method, "%s", method);
    snprintf(rule->part, sizeof rule->part, "%s", part);
    atomic_store(&rule->left, times);
}

static inline size_t server_lines(const server *hub) {
    size_t lines = atomic_load(&((server *)(uintptr_t)hub)->lines);
    return lines < SERVER_LOG ? lines : SERVER_LOG;
}

static inline size_t server_count(const server *hub, const char *method, const char *part) {
    size_t count = 0;
    for (size_t i = 0; i < server_lines(hub); i++)
        count += strcmp(hub->line[i].method, method) == 0 && strstr(hub->line[i].path, part) != NULL;
    return count;
}

/* The last such request, or NULL. */
static inline const server_line *server_last(const server *hub, const char *method, const char *part) {
    for (size_t i = server_lines(hub); i-- > 0;) {
        if (strcmp(hub->line[i].method, method) == 0 && strstr(hub->line[i].path, part) != NULL) return &hub->line[i];
    }
    return NULL;
}

/* Forgets faults and requests; the files stay. */
static inline void server_behave(server *hub) {
    hub->faults = 0;
    atomic_store(&hub->lines, 0);
}

static inline const char *server_endpoint(const server *hub) {
    static char text[64];
    snprintf(text, sizeof text, "http://127.0.0.1:%d", hub->port);
    return text;
}

/* ---- sending */

static inline bool server_send(int out, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(out, at, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

__attribute__((format(printf, 2, 3))) static inline bool server_print(int out, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return length >= 0 && server_send(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* Takes one of the rules that meet this request, of the kinds asked for. */
static inline const server_rule *server_take(server *hub, const server_line *line, server_fault_kind low,
                                             server_fault_kind high) {
    for (size_t i = 0; i < hub->faults; i++) {
        server_rule *rule = &hub->rule[i];
        if (rule->kind < low || rule->kind > high || strstr(line->path, rule->part) == NULL) continue;
        if (rule->method[0] != '\0' && strcmp(rule->method, line->method) != 0) continue;
        int left = atomic_load(&rule->left);
        if (left == 0) continue;
        if (left > 0) atomic_fetch_sub(&rule->left, 1);
        return rule;
    }
    return NULL;
}

/* A short answer with a body of text. False closes the connection. */
static inline bool server_answer(int out, const server_line *line, int status, const char *headers, const char *body) {
    bool sent = server_print(out, "HTTP/1.1 %d Said\r\nContent-Length: %zu\r\n%s\r\n", status, strlen(body), headers);
    return sent && (strcmp(line->method, "HEAD") == 0 || server_send(out, body, strlen(body)));
}

static inline bool server_listing(const server_peer *peer, const server_line *line) {
    const server *hub = peer->hub;
    char body[4096];
    size_t length = (size_t)snprintf(body, sizeof body, "{\"sha\": \"%s\", \"siblings\": [", SERVER_COMMIT);
    for (size_t i = 0; i < hub->files; i++) {
        const server_file *file = &hub->file[i];
        length += (size_t)snprintf(body + length, sizeof body - length, "%s{\"rfilename\": \"%s\"", i > 0 ? ", " : "",
                                   file->name);
        if (!hub->siblings_without_size)
            length += (size_t)snprintf(body + length, sizeof body - length, ", \"size\": %zu", file->size);
        length += (size_t)snprintf(body + length, sizeof body - length, "}");
    }
    snprintf(body + length, sizeof body - length, "]}");
    return server_answer(peer->socket, line, 200, "Content-Type: application/json\r\n", body);
}

static inline const server_file *server_find(const server *hub, const char *path) {
    char plain[300];
    size_t length = 0;
    for (; *path != '\0' && length + 1 < sizeof plain; path++) {
        unsigned byte = (unsigned char)*path;
        if (*path == '%' && sscanf(path + 1, "%2x", &byte) == 1) path += 2;
        plain[length++] = (char)byte;
    }
    plain[length] = '\0';
    for (size_t i = 0; i < hub->files; i++) {
        size_t name = strlen(hub->file[i].name);
        if (length > name && strcmp(plain + length - name, hub->file[i].name) == 0 && plain[length - name - 1] == '/')
            return &hub->file[i];
    }
    return NULL;
}

static inline void server_wait_for_close(int in) {
    struct pollfd poll_in = {.fd = in, .events = POLLIN};
    char byte;
    while (poll(&poll_in, 1, 5000) > 0 && recv(in, &byte, 1, 0) > 0) continue;
}

static inline bool server_chunks(int out, const unsigned char *data, size_t size, bool endless) {
    size_t chunk = 1000;
    for (size_t at = 0; at < size || endless; at += chunk) {
        size_t now = endless || size - at > chunk ? chunk : size - at;
        if (!server_print(out, "%zx\r\n", now) || !server_send(out, data + (endless ? 0 : at), now) ||
            !server_print(out, "\r\n"))
            return false;
    }
    return server_print(out, "0\r\n\r\n");
}

/* The bytes of a file: what the CDN does, and the hub for git files. */
static inline bool server_bytes(const server_peer *peer, const server_line *line, const server_file *file) {
    server *hub = peer->hub;
    int out = peer->socket;
    const server_rule *rule = server_take(hub, line, FAULT_TRUNCATE, FAULT_ENCODED);
    int kind = rule != NULL ? (int)rule->kind : -1;
    size_t first = 0, value = rule != NULL ? (size_t)rule->value : 0;
    bool head = strcmp(line->method, "HEAD") == 0;
    unsigned char *data = malloc(file->size + 4096);
    if (data == NULL) return false;
    memcpy(data, hub->bytes + file->at, file->size);
    if (kind == FAULT_WRONG) data[value] ^= 1;
    if (kind == FAULT_NEW_TAG) memset(data, 'n', file->size);
    char etag[128];
    snprintf(etag, sizeof etag, "\"%s%s\"", peer->cdn ? "cdn-" : "", file->etag);
    if (kind == FAULT_NEW_TAG) snprintf(etag, sizeof etag, "\"another\"");
    if (kind == FAULT_TAG) snprintf(etag, sizeof etag, "%.100s", hub->text);
    if (line->first > 0 && kind != FAULT_NO_RANGE) first = (size_t)line->first;
    bool sent;
    if (first >= file->size && first > 0) {
        free(data);
        return server_answer(out, line, 416, "", "");
    }
    if (first > 0) {
        sent = server_print(out, "HTTP/1.1 206 Part\r\nContent-Range: bytes %zu-%zu/%zu\r\n", first, file->size - 1,
                            file->size);
    } else {
        sent = server_print(out, "HTTP/1.1 200 Fine\r\n");
    }
    if (!peer->cdn)
        sent = sent && server_print(out, "X-Repo-Commit: %s\r\n", kind == FAULT_COMMIT ? hub->text : SERVER_COMMIT);
    sent = sent && server_print(out, "ETag: %s\r\n", etag);
    if (kind == FAULT_ENCODED) sent = sent && server_print(out, "Content-Encoding: gzip\r\n");
    size_t left = file->size - first;
    if (!head && (kind == FAULT_CHUNKED || kind == FAULT_ENDLESS)) {
        sent = sent && server_print(out, "Transfer-Encoding: chunked\r\n\r\n") &&
               server_chunks(out, data + first, left, kind == FAULT_ENDLESS);
    } else {
        bool lies = kind == FAULT_LENGTH || (head && kind == FAULT_SIZE);
        sent = sent && server_print(out, "Content-Length: %zu\r\n\r\n", lies ? value : left);
        bool cut = kind == FAULT_TRUNCATE || kind == FAULT_STALL;
        if (!head) sent = sent && server_send(out, data + first, cut && value < left ? value : left);
        if (kind == FAULT_STALL) server_wait_for_close(out);
        if (cut || lies) sent = false;
    }
    free(data);
    return sent;
}

/* The hub's answer about an LFS file: where it is, how large, and its hash. */
static inline bool server_redirect(const server_peer *peer, const server_line *line, const server_file *file) {
    server *hub = peer->hub;
    char headers[4096];
    const server_rule *rule = server_take(hub, line, FAULT_SIZE, FAULT_COMMIT);
    int kind = rule != NULL ? (int)rule->kind : -1;
    char etag[200];
    snprintf(etag, sizeof etag, "\"%s\"", file->etag);
    snprintf(headers, sizeof headers,
             "X-Repo-Commit: %.100s\r\nX-Linked-Size: %lld\r\nX-Linked-Etag: %.100s\r\n"
             "Location: http://127.0.0.1:%d/cdn%s\r\n",
             kind == FAULT_COMMIT ? hub->text : SERVER_COMMIT, kind == FAULT_SIZE ? rule->value : (long long)file->size,
             kind == FAULT_TAG ? hub->text : etag, hub->cdn_port, line->path);
    return server_answer(peer->socket, line, 302, headers, "Found");
}

static inline bool server_misbehave(const server_peer *peer, const server_line *line, bool *sent) {
    server *hub = peer->hub;
    char headers[2048];
    const server_rule *rule = server_take(hub, line, FAULT_STATUS, FAULT_RETRY_AFTER);
    if (rule == NULL) rule = server_take(hub, line, FAULT_MANY_HEADERS, FAULT_LONG_HEADER);
    if (rule == NULL) rule = server_take(hub, line, FAULT_REDIRECT, FAULT_BODY);
    if (rule == NULL) rule = server_take(hub, line, FAULT_GATED, FAULT_GATED);
    if (rule == NULL) return false;
    switch ((int)rule->kind) {
    case FAULT_STATUS:
        *sent = server_answer(peer->socket, line, (int)rule->value, "", "sorry");
        break;
    case FAULT_RETRY_AFTER:
        snprintf(headers, sizeof headers, "Retry-After: %lld\r\n", rule->value);
        *sent = server_answer(peer->socket, line, 429, headers, "slower");
        break;
    case FAULT_MANY_HEADERS:
        *sent = server_print(peer->socket, "HTTP/1.1 200 Fine\r\n");
        for (int i = 0; i < 1000 && *sent; i++) *sent = server_print(peer->socket, "X-Many: %0100d\r\n", i);
        *sent = false;
        break;
    case FAULT_LONG_HEADER:
        *sent = server_print(peer->socket, "HTTP/1.1 200 Fine\r\nX-Long: ");
        for (long long i = 0; i < rule->value && *sent; i += 1000) *sent = server_print(peer->socket, "%01000d", 0);
        *sent = false;
        break;
    case FAULT_REDIRECT:
        snprintf(headers, sizeof headers, "Location: %.1000s\r\n", hub->text);
        *sent = server_answer(peer->socket, line, 302, headers, "");
        break;
    case FAULT_GATED:
        snprintf(headers, sizeof headers, "X-Error-Code: GatedRepo\r\nX-Error-Message: %.1000s\r\n", hub->text);
        *sent = server_answer(peer->socket, line, 403, headers, "");
        break;
    default:
        *sent = server_answer(peer->socket, line, 200, "", hub->text);
    }
    return true;
}

static inline bool server_respond(const server_peer *peer, const server_line *line) {
    bool sent = false;
    if (server_misbehave(peer, line, &sent)) return sent;
    if (strncmp(line->path, "/api/", 5) == 0) return server_listing(peer, line);
    const server_file *file = server_find(peer->hub, line->path);
    if (file == NULL) return server_answer(peer->socket, line, 404, "", "no such file");
    if (file->lfs && !peer->cdn) return server_redirect(peer, line, file);
    return server_bytes(peer, line, file);
}

/* ---- receiving */

static inline bool server_receive(const server_peer *peer, server_line *line) {
    char text[16384];
    size_t length = 0;
    memset(line, 0, sizeof *line);
    line->first = -1;
    line->cdn = peer->cdn;
    do {
        ssize_t got = recv(peer->socket, text + length, 1, 0);
        if (got <= 0 || length + 2 > sizeof text || text[0] < 'A' || text[0] > 'Z') return false; /* TLS, say */
        text[++length] = '\0';
    } while (length < 4 || strcmp(text + length - 4, "\r\n\r\n") != 0);
    if (sscanf(text, "%7s %299s", line->method, line->path) != 2) return false;
    for (char *at = strstr(text, "\r\n"); at != NULL; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, "range: bytes=", 13) == 0) line->first = atoll(at + 13);
        if (strncasecmp(at, "if-range:", 9) == 0) line->if_range = true;
        if (strncasecmp(at, "authorization: ", 15) == 0) sscanf(at + 15, "%63[^\r\n]", line->token);
    }
    unsigned number = atomic_fetch_add(&peer->hub->lines, 1);
    if (number < SERVER_LOG) peer->hub->line[number] = *line;
    return true;
}

static inline void *server_talk(void *argument) {
    server_peer peer = *(server_peer *)argument;
    server_line line;
    free(argument);
    while (server_receive(&peer, &line) && server_respond(&peer, &line)) continue;
    close(peer.socket);
    return NULL;
}

static inline int server_listen(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || bind(made, (struct sockaddr *)&address, size) != 0 || listen(made, 64) != 0 ||
        getsockname(made, (struct sockaddr *)&address, &size) != 0) {
        perror("tests/unit/hub/server.h");
        exit(99);
    }
    *port = ntohs(address.sin_port);
    return made;
}

static inline void server_serve(server *hub) {
    struct pollfd in[2] = {{.fd = hub->listeners[0], .events = POLLIN}, {.fd = hub->listeners[1], .events = POLLIN}};
    while (poll(in, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            if ((in[i].revents & POLLIN) == 0) continue;
            server_peer *peer = malloc(sizeof *peer);
            pthread_t thread;
            if (peer == NULL) _exit(99);
            *peer = (server_peer){.hub = hub, .socket = accept(in[i].fd, NULL, NULL), .cdn = i == 1};
            int at_once = 1; /* small pieces are not held back */
            (void)setsockopt(peer->socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
            if (peer->socket < 0 || pthread_create(&thread, NULL, server_talk, peer) != 0) _exit(99);
            pthread_detach(thread);
        }
    }
    _exit(0);
}

static inline server *server_start(void) {
    server *hub = mmap(NULL, sizeof *hub, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hub == MAP_FAILED) exit(99);
    hub->listeners[0] = server_listen(&hub->port);
    hub->listeners[1] = server_listen(&hub->cdn_port);
    pid_t process = fork();
    if (process < 0) exit(99);
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        server_serve(hub);
    }
    hub->process = process;
    close(hub->listeners[0]);
    close(hub->listeners[1]);
    return hub;
}

static inline void server_stop(server *hub) {
    kill(hub->process, SIGKILL);
    waitpid(hub->process, NULL, 0);
    munmap(hub, sizeof *hub);
}

#endif
