/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says of the hub: where it is, and who asks. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/place.h"
#include "hub/request.h"

#define TOKEN_LIMIT 4096

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static octet_status read_endpoint(char **endpoint) {
    const char *value = environment("HF_ENDPOINT");
    if (value == NULL) value = "https://huggingface.co";
    size_t length = strlen(value), origin = oct_hub_origin(value);
    while (length > 0 && value[length - 1] == '/') length--;
    bool known = oct_starts_with(value, "https://") || oct_starts_with(value, "http://");
    for (size_t i = 0; i < length; i++) known = known && value[i] > 0x20 && value[i] < 0x7f;
    if (!known || length < origin || origin > 250 || length > 1000 || value[origin - 1] == '/')
        return oct_fail(OCTET_INVALID_ARGUMENT, "HF_ENDPOINT: expected an address such as https://huggingface.co");
    *endpoint = oct_strndup(value, length);
    return *endpoint != NULL ? OCTET_OK : oct_fail_memory();
}

/* Keeps the token without the blanks around it. */
static octet_status keep_token(const char *token, size_t length, const char *from, char **authorization) {
    while (length > 0 && strchr(" \t\r\n", token[length - 1]) != NULL) length--;
    while (length > 0 && strchr(" \t\r\n", token[0]) != NULL) token++, length--;
    if (length == 0) return OCTET_OK;
    for (size_t i = 0; i < length; i++) {
        if (token[i] <= 0x20 || token[i] >= 0x7f || length > TOKEN_LIMIT)
            return oct_fail(OCTET_INVALID_ARGUMENT, "%s: holds what cannot be a token", from);
    }
    *authorization = oct_sprintf("Authorization: Bearer %.*s", (int)length, token);
    return *authorization != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status read_token(char **authorization) {
    static const char *const variables[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *token = environment(variables[i]);
        if (token != NULL) OCT_TRY(keep_token(token, strlen(token), variables[i], authorization));
        if (*authorization != NULL) return OCTET_OK;
    }
    char *path = NULL;
    octet_status status = oct_place_token_file(&path);
    if (status == OCTET_NOT_FOUND) return OCTET_OK; /* no home: no token */
    if (status == OCTET_OK && oct_file_exists(path)) {
        uint8_t *text = NULL;
        size_t size = 0;
        status = oct_file_read(path, TOKEN_LIMIT, &text, &size);
        if (status == OCTET_OK) status = keep_token((const char *)text, size, path, authorization);
        oct_free(text);
    }
    oct_free(path);
    return status;
}

static bool is_yes(const char *value) {
    static const char *const words[] = {"1", "ON", "on", "YES", "yes", "TRUE", "true", "True"};
    for (size_t i = 0; value != NULL && i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) return true;
    }
    return false;
}

octet_status oct_hub_client_open(oct_hub_client *client, const oct_hub_options *options) {
    *client = (oct_hub_client){
        .timeout = options->timeout > 0 ? options->timeout : OCT_HUB_TIMEOUT,
        .attempts = options->attempts > 0 ? options->attempts : OCT_HUB_ATTEMPTS,
        .backoff_ms = options->backoff_ms > 0 ? options->backoff_ms : OCT_HUB_BACKOFF_MS,
        .progress = options->progress,
        .user = options->user,
        .event = {.file = "", .note = "", .sha256 = ""},
    };
    if (is_yes(environment("HF_HUB_OFFLINE")))
        return oct_fail(OCTET_INVALID_ARGUMENT, "HF_HUB_OFFLINE is set: nothing is pulled");
    octet_status status = read_endpoint(&client->endpoint);
    if (status == OCTET_OK) status = read_token(&client->authorization);
    if (status == OCTET_OK) status = oct_curl_load(&client->curl);
    if (status == OCTET_OK && (client->handle = client->curl->easy_init()) == NULL) status = oct_fail_memory();
    if (status != OCTET_OK) oct_hub_client_close(client);
    return status;
}

void oct_hub_client_close(oct_hub_client *client) {
    if (client->handle != NULL) client->curl->easy_cleanup(client->handle);
    oct_free(client->endpoint);
    oct_free(client->authorization);
    *client = (oct_hub_client){0};
}
