/* SPDX-License-Identifier: Apache-2.0 */
#include "study/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "study/report.h"

#define TOLD 20 /* lines of a report that are told one by one */
#define SCALES_BYTES ((size_t)1 << 30)

typedef struct verifying {
    const study_file *study;
    const verify_files *files;
    evidence_file *evidence;
    evidence_problem problem;
    void *user;
    size_t problems;
} verifying;

static void tell(verifying *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(verifying *v, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    v->problems++;
    if (v->problem != NULL) v->problem(v->user, text);
}

/* ---- lines */

typedef struct span {
    const char *data;
    size_t length;
} span;

static span take_line(span *rest) {
    const char *end = memchr(rest->data, '\n', rest->length);
    span line = {rest->data, end != NULL ? (size_t)(end - rest->data) : rest->length};
    size_t used = line.length + (end != NULL);
    rest->data += used;
    rest->length -= used;
    return line;
}

#define AROUND 50 /* bytes of a longer word at each side */

/* The word around offset `at`: what blanks, quotes and tags end. */
static span word_at(span line, size_t at) {
    static const char ends[] = " \t<>\"";
    size_t from = at < line.length ? at : line.length, to = from;
    while (from > 0 && to - from < AROUND && strchr(ends, line.data[from - 1]) == NULL) from--;
    while (to < line.length && to < at + AROUND && strchr(ends, line.data[to]) == NULL) to++;
    return (span){line.data + from, to - from};
}

/* The id that stands nearest: behind the place in Markdown (a comment), before it in HTML (data-id). */
static span id_near(span line, size_t at) {
    static const char comment[] = "<!-- ", attribute[] = "data-id=\"";
    span found = {"", 0};
    for (size_t i = 0; i + sizeof attribute < line.length; i++) {
        bool behind = i + 24 >= at && memcmp(line.data + i, comment, sizeof comment - 1) == 0;
        bool before = memcmp(line.data + i, attribute, sizeof attribute - 1) == 0;
        size_t from = i + (behind ? sizeof comment : sizeof attribute) - 1, length = 0;
        if (!behind && !before) continue;
        while (from + length < line.length && strchr("0123456789abcdef", line.data[from + length]) != NULL &&
               line.data[from + length] != '\0')
            length++;
        if (behind || i <= at || found.length == 0) found = (span){line.data + from, length};
        if (behind || i > at) break;
    }
    return found;
}

static void tell_line(const char *name, size_t number, span expected, span found, evidence_problem problem,
                      void *user) {
    char text[640];
    size_t at = 0;
    while (at < expected.length && at < found.length && expected.data[at] == found.data[at]) at++;
    span wanted = word_at(expected, at), word = word_at(found, at), id = id_near(expected, at);
    (void)snprintf(text, sizeof text, "%s:%zu: expected \"%.*s\", found \"%.*s\"%s%.*s", name, number,
                   (int)wanted.length, wanted.data, (int)word.length, word.data, id.length > 0 ? ", evidence " : "",
                   (int)(id.length < 64 ? id.length : 64), id.data);
    if (problem != NULL) problem(user, text);
}

size_t verify_lines(const char *name, size_t line, const char *expected, size_t expected_length, const char *found,
                    size_t found_length, evidence_problem problem, void *user) {
    span wanted = {expected, expected_length}, have = {found, found_length};
    size_t problems = 0;
    if (expected_length == found_length && memcmp(expected, found, found_length) == 0) return 0;
    for (; wanted.length > 0 || have.length > 0; line++) {
        span a = take_line(&wanted), b = take_line(&have);
        if (a.length == b.length && memcmp(a.data, b.data, a.length) == 0) continue;
        if (++problems <= TOLD) tell_line(name, line, a, b, problem, user);
    }
    return problems > 0 ? problems : 1; /* a line end too few or too many */
}

/* ---- the report */

static void check_text(verifying *v, const char *name, size_t line, const char *expected, const char *found,
                       size_t length) {
    size_t problems = verify_lines(name, line, expected, strlen(expected), found, length, v->problem, v->user);
    v->problems += problems;
    if (problems > TOLD && v->problem != NULL) {
        char text[320];
        (void)snprintf(text, sizeof text, "%.200s: %zu more lines differ", name, problems - TOLD);
        v->problem(v->user, text);
    }
}

static octet_status check_readme(verifying *v, const char *expected) {
    const char *path = v->files->readme;
    uint8_t *data = NULL;
    size_t length, from = 0, to = 0, line = 1;
    OCT_TRY(oct_file_read(path, REPORT_BYTES, &data, &length));
    octet_status status = report_find(path, (const char *)data, length, &from, &to);
    for (size_t i = 0; i < from; i++) line += data[i] == '\n';
    if (status == OCTET_OK) check_text(v, path, line, expected, (const char *)data + from, to - from);
    oct_free(data);
    if (status != OCTET_NOT_FOUND) return status;
    oct_error_clear(); /* no marks: it holds no report */
    return OCTET_OK;
}

static octet_status check_html(verifying *v, const char *expected) {
    uint8_t *data = NULL;
    size_t length;
    OCT_TRY(oct_file_read(v->files->html, REPORT_BYTES, &data, &length));
    check_text(v, v->files->html, 1, expected, (const char *)data, length);
    oct_free(data);
    return OCTET_OK;
}

static octet_status check_report(verifying *v) {
    report_text made;
    if (v->files->readme == NULL && v->files->html == NULL) return OCTET_OK;
    OCT_TRY(report_make(v->study, v->evidence, &made));
    octet_status status = v->files->readme != NULL ? check_readme(v, made.markdown) : OCTET_OK;
    if (status == OCTET_OK && v->files->html != NULL) status = check_html(v, made.html);
    report_text_free(&made);
    return status;
}

/* ---- files by hash */

/* The evidence has an artifact of this kind (and, unless NULL, name) with this hash. */
static octet_status has_artifact(verifying *v, const char *kind, const char *name, const char *sha256, bool *has,
                                 char last[EVIDENCE_ID]) {
    evidence_rows rows;
    *has = false;
    last[0] = '\0';
    OCT_TRY(evidence_list(v->evidence, EVIDENCE_ARTIFACT, &(evidence_query){.kind = kind, .name = name}, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        memcpy(last, rows.items[i].id, EVIDENCE_ID);
        *has = *has || strcmp(evidence_text(&rows.items[i], "sha256"), sha256) == 0;
    }
    evidence_rows_free(&rows);
    return OCTET_OK;
}

static octet_status check_hash(verifying *v, const char *path, const char *kind, const char *name, const void *data,
                               size_t size) {
    uint8_t digest[OCT_SHA256_SIZE];
    char hex[OCT_SHA256_HEX], last[EVIDENCE_ID];
    bool has;
    OCT_TRY(oct_sha256_of(data, size, digest));
    oct_sha256_hex(digest, hex);
    OCT_TRY(has_artifact(v, kind, name, hex, &has, last));
    if (!has && last[0] == '\0')
        tell(v, "%s: the evidence knows no such %s", path, kind);
    else if (!has)
        tell(v, "%s: its hash is %.12s, which is no %s of the evidence (there is %.12s)", path, hex, kind, last);
    return OCTET_OK;
}

static octet_status check_file(verifying *v, const char *path, const char *kind, const char *name, size_t limit) {
    uint8_t *data = NULL;
    size_t size;
    OCT_TRY(oct_file_read(path, limit, &data, &size));
    octet_status status = check_hash(v, path, kind, name, data, size);
    oct_free(data);
    return status;
}

static octet_status check_variant(verifying *v, const study_variant *variant) {
    if (variant->recipe_path != NULL) OCT_TRY(check_file(v, variant->recipe_path, "recipe", NULL, STUDY_BYTES));
    if (v->files->scales == NULL) return OCTET_OK;
    char *path = oct_sprintf("%s/%s.json", v->files->scales, variant->name);
    if (path == NULL) return oct_fail_memory();
    octet_status status = oct_file_exists(path) ? check_file(v, path, "scales", variant->name, SCALES_BYTES) : OCTET_OK;
    oct_free(path);
    return status;
}

static octet_status check_all(verifying *v) {
    octet_status status = evidence_verify(v->evidence, v->problem, v->user);
    if (status == OCTET_VERIFICATION) v->problems++;
    if (status != OCTET_OK) return status; /* what is made of changed rows says nothing */
    OCT_TRY(check_hash(v, v->study->path, "study", NULL, v->study->text, v->study->length));
    for (size_t i = 0; i < v->study->variant_count; i++) OCT_TRY(check_variant(v, &v->study->variants[i]));
    return check_report(v);
}

octet_status verify_study(const study_file *study, const verify_files *files, evidence_problem problem, void *user) {
    verifying v = {.study = study, .files = files, .problem = problem, .user = user};
    OCT_TRY(evidence_open(files->evidence, EVIDENCE_READ, &v.evidence));
    octet_status status = check_all(&v);
    evidence_close(&v.evidence);
    if (status != OCTET_OK || v.problems == 0) return status;
    return oct_fail(OCTET_VERIFICATION, "%s: %zu things are not as the evidence has them", study->path, v.problems);
}
