/* SPDX-License-Identifier: Apache-2.0 */
/* What a repository holds, as the hub says, and which of it is wanted. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/document.h"
#include "hub/repository.h"

#define PART_LIMIT 255 /* bytes of one name in a path */

/* ---- names */

octet_status oct_hub_check_name(const char *name) {
    size_t length = strlen(name), part = 0;
    const char *wrong = NULL;
    if (length == 0) wrong = "it is empty";
    if (length > OCT_HUB_NAME_LIMIT) wrong = "it is too long";
    if (name[0] == '/') wrong = "it is absolute";
    for (size_t i = 0; i <= length && wrong == NULL; i++) {
        unsigned char c = (unsigned char)name[i], next = i < length ? (unsigned char)name[i + 1] : 0;
        if (c == '/' || c == '\0') {
            const char *start = name + i - part;
            if (part == 0) wrong = "it has an empty part";
            if ((part == 1 && start[0] == '.') || (part == 2 && start[0] == '.' && start[1] == '.'))
                wrong = "it leaves its folder";
            if (part > PART_LIMIT) wrong = "it is too long";
            part = 0;
            continue;
        }
        if (c == '\\') wrong = "it holds a backslash";
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && next < 0xa0)) wrong = "it holds a control character";
        part++;
    }
    if (wrong == NULL) return OCTET_OK;
    oct_fail(OCTET_BAD_FORMAT, "the hub lists a file named \"%.200s\"", name);
    return oct_detail("refused, for %s", wrong);
}

/* What octet reads of a model: the weights and the two configurations, none of them in a folder. */
static bool is_wanted(const oct_hub_options *options, const char *name) {
    if (options->include != NULL) return oct_glob_match(options->include, name);
    if (options->dataset) return true;
    if (strchr(name, '/') != NULL) return false;
    return strcmp(name, "config.json") == 0 || strcmp(name, "preprocessor_config.json") == 0 ||
           oct_ends_with(name, ".safetensors") || oct_ends_with(name, ".safetensors.index.json");
}

static bool is_hex(const char *text, size_t length) {
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* ---- errors of answers */

octet_status oct_hub_explain(const oct_hub_repository *repository, const oct_hub_client *client,
                             const oct_hub_response *response, const char *file) {
    const char *id = repository->id, *revision = repository->revision,
               *kind = repository->dataset ? "data set" : "model";
    const char *code = response->error_code;
    octet_status status = oct_error_status();
    long http = response->status;
    if (!response->of_hub || (http != 401 && http != 403 && http != 404 && http != 410)) {
        if (status == OCTET_CANCELLED) return status;
        return file != NULL ? oct_error_prefix("%s: %s", id, file) : oct_error_prefix("%s@%s", id, revision);
    }
    if (http == 401 && client->authorization != NULL) {
        oct_fail(OCTET_IO, "%s: the hub does not take this token (HTTP status 401)", id);
        oct_hint("check HF_TOKEN, or the token file");
    } else if (http == 401) {
        oct_fail(OCTET_IO, "%s: the hub shows it to nobody without a token (HTTP status 401)", id);
        oct_hint("there is no such %s, or it is private or gated: then set HF_TOKEN", kind);
    } else if (http == 403) {
        oct_fail(OCTET_IO, "%s: this may not be read%s (HTTP status 403)", id,
                 client->authorization != NULL ? " with this token" : " without a token");
        oct_hint("accept the %s's terms at %s/%s%s, and set HF_TOKEN to a token of that account", kind,
                 client->endpoint, repository->dataset ? "datasets/" : "", id);
    } else if (file != NULL) {
        oct_fail(OCTET_NOT_FOUND, "%s@%s: the hub lists %s but has no such file (HTTP status %ld)", id, revision, file,
                 http);
    } else if (strcmp(code, "RevisionNotFound") == 0) {
        oct_fail(OCTET_NOT_FOUND, "%s: the hub has no revision %s of it (HTTP status %ld)", id, revision, http);
    } else {
        oct_fail(OCTET_NOT_FOUND, "%s@%s: the hub has no such %s or revision (HTTP status %ld)", id, revision, kind,
                 http);
        if (!repository->dataset) oct_hint("a data set is pulled with --dataset");
    }
    if (response->error_message[0] != '\0') oct_detail("%s", response->error_message);
    return oct_error_status();
}

/* ---- the listing */

static octet_status keep_text(void *user, const oct_hub_response *response, const void *data, size_t size) {
    oct_text *text = user;
    (void)response;
    if (size > OCT_HUB_JSON_LIMIT - text->length)
        return oct_fail(OCTET_LIMIT, "the hub's listing is longer than %zu bytes", OCT_HUB_JSON_LIMIT);
    oct_text_append(text, data, size);
    return text->failed ? oct_fail_memory() : OCTET_OK;
}

static void forget_text(void *user) {
    oct_text_free(user);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const oct_hub_file *)a)->name, ((const oct_hub_file *)b)->name);
}

static octet_status read_sibling(oct_hub_repository *repository, const oct_hub_options *options,
                                 const oct_document *document, const oct_node *sibling) {
    const char *name = NULL;
    int64_t size = -1;
    OCT_TRY(oct_node_string(document, sibling, "rfilename", true, &name));
    OCT_TRY(oct_hub_check_name(name));
    if (!is_wanted(options, name)) return OCTET_OK;
    OCT_TRY(oct_node_int(document, sibling, "size", false, 0, (int64_t)OCT_HUB_FILE_LIMIT, &size));
    oct_hub_file *file = &repository->files[repository->count];
    file->name = oct_strdup(name);
    if (file->name == NULL) return oct_fail_memory();
    file->size_known = size >= 0;
    file->size = size >= 0 ? (uint64_t)size : 0;
    repository->count++;
    return OCTET_OK;
}

/* Nothing wanted: why. */
static octet_status fail_empty(const oct_hub_repository *repository, const oct_hub_options *options, size_t listed) {
    oct_fail(OCTET_NOT_FOUND, "%s@%s: holds no file that is wanted", repository->id, repository->revision);
    oct_detail("%zu files listed", listed);
    if (options->include != NULL) return oct_hint("--include %s matches none; * matches slashes too", options->include);
    if (options->dataset) return oct_error_status();
    return oct_hint("octet reads config.json and *.safetensors");
}

static octet_status read_listing(oct_hub_repository *repository, const oct_hub_options *options,
                                 const oct_document *document) {
    const char *commit = NULL;
    OCT_TRY(oct_node_string(document, document->root, "sha", true, &commit));
    if (!is_hex(commit, 40)) return oct_node_fail(document, document->root, "sha: expected a commit of 40 hex digits");
    if (is_hex(repository->revision, 40) && strcmp(commit, repository->revision) != 0)
        return oct_fail(OCTET_MISMATCH, "asked for commit %s, the hub answers with %s", repository->revision, commit);
    memcpy(repository->commit, commit, sizeof repository->commit);
    const oct_node *siblings = oct_node_get(document->root, "siblings");
    if (siblings == NULL || siblings->kind != OCT_NODE_LIST)
        return oct_node_fail(document, document->root, "siblings: expected a list of files");
    if (siblings->count > OCT_HUB_FILES_LIMIT)
        return oct_fail(OCTET_LIMIT, "the hub lists %zu files, more than %zu", siblings->count, OCT_HUB_FILES_LIMIT);
    repository->files = oct_calloc(siblings->count, sizeof *repository->files);
    if (repository->files == NULL) return oct_fail_memory();
    for (size_t i = 0; i < siblings->count; i++)
        OCT_TRY(read_sibling(repository, options, document, siblings->items[i]));
    if (repository->count == 0) return fail_empty(repository, options, siblings->count);
    qsort(repository->files, repository->count, sizeof *repository->files, by_name);
    for (size_t i = 1; i < repository->count; i++) {
        if (strcmp(repository->files[i - 1].name, repository->files[i].name) == 0)
            return oct_fail(OCTET_BAD_FORMAT, "the hub lists %s twice", repository->files[i].name);
    }
    return OCTET_OK;
}

static char *listing_url(const oct_hub_repository *repository, const oct_hub_client *client) {
    oct_text url = {0};
    oct_text_printf(&url, "%s/api/%s/%s/revision/", client->endpoint, repository->dataset ? "datasets" : "models",
                    repository->id);
    oct_hub_put_escaped(&url, repository->revision, false);
    oct_text_puts(&url, "?blobs=true"); /* sizes too, where the hub knows how */
    if (url.failed) oct_text_free(&url);
    return url.data;
}

octet_status oct_hub_list(oct_hub_repository *repository, oct_hub_client *client, const oct_hub_options *options) {
    oct_text text = {0};
    oct_hub_response response = {0};
    oct_hub_request request = {.url = listing_url(repository, client), .sink = keep_text, .user = &text};
    if (request.url == NULL) return oct_fail_memory();
    octet_status status = oct_hub_ask(client, &request, forget_text, &response);
    oct_free((char *)request.url);
    if (status != OCTET_OK) {
        status = oct_hub_explain(repository, client, &response, NULL);
    } else {
        oct_document document = {0};
        const char *body = text.data != NULL ? text.data : "";
        status = oct_document_parse_json(&document, "the hub's listing", body, text.length);
        if (status == OCTET_OK) status = read_listing(repository, options, &document);
        if (status != OCTET_OK) oct_error_prefix("%s@%s", repository->id, repository->revision);
        oct_document_free(&document);
    }
    oct_text_free(&text);
    return status;
}

char *oct_hub_file_url(const oct_hub_repository *repository, const oct_hub_client *client, const char *name) {
    oct_text url = {0};
    oct_text_printf(&url, "%s/%s%s/resolve/%s/", client->endpoint, repository->dataset ? "datasets/" : "",
                    repository->id, repository->commit);
    oct_hub_put_escaped(&url, name, true);
    if (url.failed) oct_text_free(&url);
    return url.data;
}
