/* SPDX-License-Identifier: Apache-2.0 */
#include "study/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "study/report_sections.h"
#include "study/words.h"

/* ---- making */

static octet_status write_page(report_page *page, const report_source *source) {
    const study_file *study = source->study;
    const char *title = study->title != NULL && study->title[0] != '\0' ? study->title : study->name;
    page_start(page, title);
    page_heading(page, 1, "%s", title);
    report_verdict(page, source);
    report_summary(page, source);
    report_bounds(page, source);
    report_quality(page, source);
    report_speed(page, source);
    report_size(page, source);
    report_reasons(page, source);
    report_attribution(page, source);
    OCT_TRY(report_pictures(page, source));
    report_limits(page, source);
    report_missing(page, source);
    report_revisits(page, source);
    report_costs(page, source);
    report_origins(page, source);
    page_finish(page);
    return page->markdown.failed || page->html.failed ? oct_fail_memory() : OCTET_OK;
}

static octet_status check_words(const report_source *source, const char *markdown) {
    char *plain = words_plain(markdown);
    octet_status status = plain != NULL ? words_check(source, plain) : oct_fail_memory();
    free(plain);
    if (status == OCTET_VERIFICATION) (void)oct_error_prefix("%s", source->study->path);
    return status;
}

octet_status report_make(const study_file *study, evidence_file *evidence, report_text *out) {
    report_source source;
    report_page page = {0};
    *out = (report_text){0};
    OCT_TRY(report_source_load(&source, study, evidence));
    octet_status status = write_page(&page, &source);
    if (status == OCTET_OK) status = check_words(&source, page.markdown.data);
    if (status == OCTET_OK) {
        out->markdown = strdup(page.markdown.data);
        out->html = strdup(page.html.data);
        if (out->markdown == NULL || out->html == NULL) status = oct_fail_memory();
    }
    if (status != OCTET_OK) report_text_free(out);
    page_free(&page);
    report_source_free(&source);
    return status;
}

void report_text_free(report_text *text) {
    free(text->markdown);
    free(text->html);
    *text = (report_text){0};
}

/* ---- the README */

/* The only place of a mark, or NULL; *count says how many there are. */
static const char *find_mark(const char *text, size_t length, const char *mark, size_t *count) {
    const char *found = NULL, *from = text;
    *count = 0;
    while ((from = memmem(from, length - (size_t)(from - text), mark, strlen(mark))) != NULL) {
        if (found == NULL) found = from;
        from += strlen(mark);
        ++*count;
    }
    return found;
}

octet_status report_find(const char *name, const char *readme, size_t length, size_t *from, size_t *to) {
    size_t begins, ends;
    const char *begin = find_mark(readme, length, REPORT_BEGIN, &begins);
    const char *end = find_mark(readme, length, REPORT_END, &ends);
    if (begins == 0 && ends == 0) {
        (void)oct_fail(OCTET_NOT_FOUND, "%s: expected %s and %s, found neither", name, REPORT_BEGIN, REPORT_END);
        return oct_hint("put both on lines of their own where the report is to stand");
    }
    if (begins != 1 || ends != 1 || begin > end)
        return oct_fail(OCTET_BAD_FORMAT, "%s: expected one %s before one %s, found %zu and %zu%s", name, REPORT_BEGIN,
                        REPORT_END, begins, ends, begins == 1 && ends == 1 ? " the other way round" : "");
    *from = (size_t)(begin - readme) + strlen(REPORT_BEGIN);
    *to = (size_t)(end - readme);
    return OCTET_OK;
}

octet_status report_place(const char *name, const char *readme, size_t length, const char *markdown, char **out,
                          size_t *size) {
    size_t from, to, inside = strlen(markdown);
    *out = NULL;
    OCT_TRY(report_find(name, readme, length, &from, &to));
    *size = from + inside + (length - to);
    *out = malloc(*size + 1);
    if (*out == NULL) return oct_fail_memory();
    memcpy(*out, readme, from);
    memcpy(*out + from, markdown, inside);
    memcpy(*out + from + inside, readme + to, length - to);
    (*out)[*size] = '\0';
    return OCTET_OK;
}

static octet_status write_readme(const char *path, const char *markdown) {
    uint8_t *data = NULL;
    char *out = NULL;
    size_t length, size = 0;
    OCT_TRY(oct_file_read(path, REPORT_BYTES, &data, &length));
    octet_status status = report_place(path, (const char *)data, length, markdown, &out, &size);
    if (status == OCTET_OK) status = oct_file_write(path, out, size);
    free(out);
    oct_free(data);
    return status;
}

octet_status report_write(const report_text *text, const char *readme, const char *html) {
    if (readme != NULL) OCT_TRY(write_readme(readme, text->markdown));
    return html != NULL ? oct_file_write(html, text->html, strlen(text->html)) : OCTET_OK;
}
