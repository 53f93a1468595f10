/* SPDX-License-Identifier: Apache-2.0 */
#include "study/report_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/evidence.h"

/* ---- escaping */

/* U+200E, U+200F, U+202A .. U+202E, U+2066 .. U+2069 make text look other than it is, U+FEFF and U+200B hide. */
static bool is_hidden(const uint8_t *s, size_t length) {
    if (length == 3 && s[0] == 0xE2 && s[1] == 0x80)
        return (s[2] >= 0x8B && s[2] <= 0x8F) || (s[2] >= 0xA8 && s[2] <= 0xAE);
    if (length == 3 && s[0] == 0xE2 && s[1] == 0x81) return s[2] >= 0xA0 && s[2] <= 0xAF;
    return length == 3 && s[0] == 0xEF && s[1] == 0xBB && s[2] == 0xBF;
}

static void escape(oct_text *out, const char *text, void (*character)(oct_text *out, const char *s, size_t length)) {
    const uint8_t *s = (const uint8_t *)text;
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = oct_utf8_sequence(s, left);
        if (length == 1 && (*s == '\n' || *s == '\t' || *s == '\r'))
            oct_text_puts(out, " ");
        else if (length == 0 || is_hidden(s, length) || (length == 1 && (*s < ' ' || *s == 0x7F)))
            oct_text_puts(out, "\xEF\xBF\xBD");
        else
            character(out, (const char *)s, length);
        length = length > 0 ? length : 1;
        s += length;
        left -= length;
    }
}

static void html_character(oct_text *out, const char *s, size_t length) {
    const char *entity = *s == '&'    ? "&amp;"
                         : *s == '<'  ? "&lt;"
                         : *s == '>'  ? "&gt;"
                         : *s == '"'  ? "&quot;"
                         : *s == '\'' ? "&#39;"
                                      : NULL;
    if (entity != NULL)
        oct_text_puts(out, entity);
    else
        oct_text_append(out, s, length);
}

static void markdown_character(oct_text *out, const char *s, size_t length) {
    const char *entity = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
    if (entity != NULL) {
        oct_text_puts(out, entity);
        return;
    }
    if (strchr("\\`*_[]|~#", *s) != NULL && *s != '\0') oct_text_puts(out, "\\");
    oct_text_append(out, s, length);
}

static void code_character(oct_text *out, const char *s, size_t length) {
    if (*s == '|') oct_text_puts(out, "\\"); /* ends a cell otherwise, in code too */
    oct_text_append(out, *s == '`' ? "'" : s, length);
}

void page_escape_html(oct_text *out, const char *text) {
    escape(out, text, html_character);
}

void page_escape_markdown(oct_text *out, const char *text) {
    escape(out, text, markdown_character);
}

static char *formatted(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL) (void)vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

/* Both sides' text of a format; failed if there is no memory. */
#define FORMATTED(text)                                                                                                \
    va_list arguments;                                                                                                 \
    va_start(arguments, format);                                                                                       \
    char *text = formatted(format, arguments);                                                                         \
    va_end(arguments);                                                                                                 \
    if (text == NULL) {                                                                                                \
        page->html.failed = true;                                                                                      \
        return;                                                                                                        \
    }

/* ---- the whole */

/* Two colours a role, by the reader's own preference; tables scroll by themselves on a narrow screen. */
static const char *const style =
    ":root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#fcfcfa;--line:#d9dde3;--wash:#f1f3f5;"
    "--blue:#2463a8;--red:#b3352b;--green:#24734a;--amber:#8a5a00}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa6b5;--paper:#14181e;--line:#333c48;"
    "--wash:#1d232b;--blue:#7db4ee;--red:#f08a80;--green:#6fcf9b;--amber:#e2b05a}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:66rem;padding:1.5rem 1rem 4rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.55 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem}"
    "h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-top:.8rem;border-top:1px solid var(--line)}"
    "h3{font-size:1.02rem;margin:1.4rem 0 .4rem}"
    "p,ul{margin:.6rem 0}ul{padding-left:1.3rem}li{margin:.25rem 0}"
    ".verdict{padding:.8rem 1rem;border-left:.35rem solid var(--amber);background:var(--wash);font-size:1.08rem}"
    ".verdict.ship{border-color:var(--green)}.verdict.not{border-color:var(--red)}"
    ".wide{overflow-x:auto;margin:.8rem 0}"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}"
    "th,td{padding:.35rem .7rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}"
    "th{color:var(--soft);font-weight:600;border-bottom-width:2px}td data{white-space:nowrap}td{min-width:3.5rem}"
    "code{font:.9em ui-monospace,\"DejaVu Sans Mono\",monospace;background:var(--wash);padding:.05em .3em;"
    "border-radius:.2em}td code,h3 code{white-space:nowrap}"
    "data[data-id]{text-decoration:underline dotted var(--line) 1px;text-underline-offset:.2em}"
    "figure{margin:1.2rem 0}figcaption{color:var(--soft);font-size:.88rem}"
    "svg{width:100%;height:auto;max-width:44rem;display:block}"
    "svg text{font:13px system-ui,\"DejaVu Sans\",sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}"
    "svg .axis{stroke:var(--line);stroke-width:1}svg .mark{fill:var(--blue)}svg .other{fill:var(--amber)}"
    "svg .bad{fill:var(--red)}svg .span{stroke:var(--ink);stroke-width:1.5}"
    "footer{margin-top:3rem;color:var(--soft);font-size:.85rem}";

void page_start(report_page *page, const char *title) {
    oct_text_puts(&page->html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                               "'unsafe-inline'; img-src data:\">\n<title>");
    page_escape_html(&page->html, title);
    oct_text_printf(&page->html, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n", style);
}

void page_finish(report_page *page) {
    oct_text_puts(&page->html, "</main>\n</body>\n</html>\n");
}

void page_free(report_page *page) {
    oct_text_free(&page->markdown);
    oct_text_free(&page->html);
}

void page_heading(report_page *page, int level, const char *format, ...) {
    FORMATTED(text)
    oct_text_printf(&page->html, "<h%d>", level);
    page_escape_html(&page->html, text);
    oct_text_printf(&page->html, "</h%d>\n", level);
    oct_text_printf(&page->markdown, "\n%.*s ", level + 1, "######"); /* a README's title is above */
    page_escape_markdown(&page->markdown, text);
    oct_text_puts(&page->markdown, "\n");
    free(text);
}

/* ---- blocks */

void page_begin(report_page *page, page_block block) {
    page->block = block;
    oct_text_puts(&page->html, block == PAGE_LIST ? "<ul>" : "<p>");
    oct_text_puts(&page->markdown, "\n");
}

void page_begin_verdict(report_page *page, const char *kind) {
    page->block = PAGE_PARAGRAPH;
    oct_text_printf(&page->html, "<p class=\"verdict %s\">", kind);
    oct_text_puts(&page->markdown, "\n> ");
}

void page_item(report_page *page) {
    oct_text_puts(&page->html, "\n<li>");
    oct_text_puts(&page->markdown, page->markdown.data[page->markdown.length - 1] == '\n' ? "- " : "\n- ");
}

void page_end(report_page *page) {
    static const char *const ends[] = {"</p>\n", "\n</ul>\n", "</tbody></table></div>\n"};
    oct_text_puts(&page->html, ends[page->block]);
    if (page->block != PAGE_TABLE) oct_text_puts(&page->markdown, "\n");
}

void page_table(report_page *page, const char *const *heads, int columns) {
    page->block = PAGE_TABLE;
    page->columns = columns;
    oct_text_puts(&page->html, "<div class=\"wide\"><table><thead><tr>");
    oct_text_puts(&page->markdown, "\n|");
    for (int i = 0; i < columns; i++) {
        oct_text_puts(&page->html, "<th>");
        page_escape_html(&page->html, heads[i]);
        oct_text_puts(&page->html, "</th>");
        oct_text_puts(&page->markdown, " ");
        page_escape_markdown(&page->markdown, heads[i]);
        oct_text_puts(&page->markdown, " |");
    }
    oct_text_puts(&page->html, "</tr></thead><tbody>\n");
    oct_text_puts(&page->markdown, "\n|");
    for (int i = 0; i < columns; i++) oct_text_puts(&page->markdown, " --- |");
    oct_text_puts(&page->markdown, "\n");
}

void page_row(report_page *page) {
    oct_text_puts(&page->html, "<tr>");
    oct_text_puts(&page->markdown, "|");
}

void page_cell(report_page *page) {
    oct_text_puts(&page->html, "<td>");
    oct_text_puts(&page->markdown, page->markdown.data[page->markdown.length - 1] == '|' ? " " : " | ");
}

void page_row_end(report_page *page) {
    oct_text_puts(&page->html, "</tr>\n");
    oct_text_puts(&page->markdown, " |\n");
}

/* ---- inside */

void page_words(report_page *page, const char *format, ...) {
    FORMATTED(text)
    page_escape_html(&page->html, text);
    page_escape_markdown(&page->markdown, text);
    free(text);
}

void page_strong(report_page *page, const char *format, ...) {
    FORMATTED(text)
    oct_text_puts(&page->html, "<strong>");
    page_escape_html(&page->html, text);
    oct_text_puts(&page->html, "</strong>");
    oct_text_puts(&page->markdown, "**");
    page_escape_markdown(&page->markdown, text);
    oct_text_puts(&page->markdown, "**");
    free(text);
}

void page_code(report_page *page, const char *text) {
    oct_text_puts(&page->html, "<code>");
    page_escape_html(&page->html, text);
    oct_text_puts(&page->html, "</code>");
    oct_text_puts(&page->markdown, "`");
    escape(&page->markdown, text[0] != '\0' ? text : " ", code_character);
    oct_text_puts(&page->markdown, "`");
}

/* In a cell a number breaks before its interval and nowhere else. */
static void html_number(oct_text *out, const char *text) {
    const char *bracket = strchr(text, '[');
    if (bracket != NULL && bracket > text) {
        char *before = strndup(text, (size_t)(bracket - text));
        out->failed = out->failed || before == NULL;
        page_escape_html(out, before != NULL ? before : "");
        oct_text_puts(out, "<wbr>");
        free(before);
        text = bracket;
    }
    page_escape_html(out, text);
}

void page_number(report_page *page, const char *id, const char *format, ...) {
    FORMATTED(text)
    oct_text_printf(&page->html, "<data value=\"");
    page_escape_html(&page->html, text);
    oct_text_printf(&page->html, "\" data-id=\"%.*s\" title=\"evidence %.*s\">", PAGE_ID, id, PAGE_ID, id);
    html_number(&page->html, text);
    oct_text_puts(&page->html, "</data>");
    page_escape_markdown(&page->markdown, text);
    oct_text_printf(&page->markdown, "<!-- %.*s -->", PAGE_ID, id);
    free(text);
}

void page_drawing(report_page *page, const char *svg, const char *caption) {
    oct_text_puts(&page->html, "<figure>");
    oct_text_puts(&page->html, svg);
    oct_text_puts(&page->html, "<figcaption>");
    page_escape_html(&page->html, caption);
    oct_text_puts(&page->html, "</figcaption></figure>\n");
}
