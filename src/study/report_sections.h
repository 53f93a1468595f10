/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a report, each written onto a page: what report.c puts together. */
#ifndef OCT_STUDY_REPORT_SECTIONS_H
#define OCT_STUDY_REPORT_SECTIONS_H

#include "study/report_page.h"
#include "study/report_source.h"

/* report_verdict.c */
void report_verdict(report_page *page, const report_source *source);
void report_summary(report_page *page, const report_source *source);
void report_bounds(report_page *page, const report_source *source);
void report_revisits(report_page *page, const report_source *source);
/* report_figures.c */
void report_quality(report_page *page, const report_source *source);
void report_speed(report_page *page, const report_source *source);
void report_size(report_page *page, const report_source *source);
void report_reasons(report_page *page, const report_source *source);
void report_attribution(report_page *page, const report_source *source);
/* report_pictures.c: the candidates' answers, picture by picture */
octet_status report_pictures(report_page *page, const report_source *source);
/* report_limits.c */
void report_limits(report_page *page, const report_source *source);
void report_missing(report_page *page, const report_source *source);
void report_costs(report_page *page, const report_source *source);
void report_origins(report_page *page, const report_source *source);

/* A figure with its interval, as its kind is read; "not measured" where `figure` is NULL. */
void report_put(report_page *page, const evidence_row *figure);
/* "cpu (Intel ...)" of an environment. */
void report_put_environment(report_page *page, const evidence_row *environment);
/* The figure that plots and comparisons look at first: KL; and what an accuracy is. */
const char *report_accuracy(const report_source *source);

#endif
