/* SPDX-License-Identifier: Apache-2.0 */
/* A page written twice at once: as Markdown for a README and as HTML that needs no script, no other host and no wide
 * screen. Text that is put in is escaped for each; a number carries the id of the evidence it comes from: in HTML as
 * data-id, in Markdown as a comment right behind it, which is not shown. */
#ifndef OCT_STUDY_REPORT_PAGE_H
#define OCT_STUDY_REPORT_PAGE_H

#include "base/text.h"

typedef enum page_block { PAGE_PARAGRAPH, PAGE_LIST, PAGE_TABLE } page_block;
typedef struct report_page {
    oct_text markdown, html;
    page_block block;
    int columns; /* of the open table */
} report_page;   /* all zero: empty */

#define PAGE_ID 12 /* digits of an id that are written */

/* The head with its style sheet, and the end. */
void page_start(report_page *page, const char *title);
void page_finish(report_page *page);
void page_free(report_page *page);

void page_heading(report_page *page, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A paragraph, or a list of page_item. */
void page_begin(report_page *page, page_block block);
void page_begin_verdict(report_page *page, const char *kind); /* a paragraph that stands out; kind: ship, not, open */
void page_item(report_page *page);
void page_end(report_page *page);
/* A table with these columns; page_row and as many page_cell fill it; page_end ends it. */
void page_table(report_page *page, const char *const *heads, int columns);
void page_row(report_page *page);
void page_cell(report_page *page);
void page_row_end(report_page *page);

/* Inside a block. */
void page_words(report_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_strong(report_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_code(report_page *page, const char *text);
/* A number, or several that come from one row of evidence. */
void page_number(report_page *page, const char *id, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* In HTML only: a drawing (report_plot.h). `caption` is escaped. */
void page_drawing(report_page *page, const char *svg, const char *caption);

/* Text as HTML wants it; bytes that are not UTF-8, controls and marks that turn the direction become U+FFFD. */
void page_escape_html(oct_text *out, const char *text);
void page_escape_markdown(oct_text *out, const char *text);

#endif
