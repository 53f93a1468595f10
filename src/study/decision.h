/* SPDX-License-Identifier: Apache-2.0 */
/* The decision: the rules that a study adopted, held against the evidence by the ends of intervals, never by points.
 *
 * A bound passes if the whole interval lies on its good side, fails if the whole interval lies on the other, and is
 * open otherwise. Ship: every bound passes. Do not ship: one fails. Else inconclusive. n pictures of which none shows
 * an event still leave room for a rate of 1 - 0.025^(1/n) (two-sided 95%, exact binomial): the interval of a rate
 * reaches at least that far from its value, so nothing seen among few pictures is no proof.
 */
#ifndef OCT_STUDY_DECISION_H
#define OCT_STUDY_DECISION_H

#include "study/evidence.h"
#include "study/study_file.h"

typedef enum decision_word { DECISION_SHIP, DECISION_DO_NOT_SHIP, DECISION_INCONCLUSIVE } decision_word;
const char *decision_word_text(decision_word word); /* "ship", "do not ship", "inconclusive" */

typedef enum bound_outcome { BOUND_PASSES, BOUND_FAILS, BOUND_OPEN, BOUND_NOT_MEASURED } bound_outcome;
const char *bound_outcome_text(bound_outcome outcome); /* "passes", "fails", "open", "not measured" */

/* One bound of one adopted rule. */
typedef struct decided_bound {
    const study_rule *rule;
    const study_bound *bound;
    bound_outcome outcome;
    double value, low, high;  /* as the decision read them; NaN where there is no such figure */
    int64_t n;                /* pictures, or rounds; 0: unknown */
    char figure[EVIDENCE_ID]; /* the figure's id; "" if not measured */
    char text[256];           /* "kl of int8 on verdict: upper end 0.0212 <= 0.025: passes" */
} decided_bound;

/* One revisit predicate today. */
typedef struct decided_revisit {
    const study_revisit *revisit;
    bool known, holds; /* known: its figure was measured */
    double value;
    char figure[EVIDENCE_ID];
} decided_revisit;

typedef struct decision {
    const char *variant; /* whom it is about; the study's own text */
    char environment[EVIDENCE_ID];
    decision_word word;
    decided_bound *bounds; /* of the adopted rules, in the study file's order */
    size_t bound_count;
    decided_revisit *revisits;
    size_t revisit_count;
    /* The verdict set was opened for an earlier form of this variant's recipe: it has been judged before. */
    size_t earlier_openings;
} decision;

/* Of one candidate, by the figures of one environment (NULL: any; times are of one environment always). The caller's
 * to free; it points into `study`. */
octet_status decision_make(const study_file *study, evidence_file *evidence, const char *variant,
                           const char *environment, decision *out);
void decision_free(decision *decided);

/* Refuses a study with an adopted rule that its sets can never pass, before anything is measured: LIMIT, naming the
 * rule, its line and the pictures (or rounds) needed. `verdict_pictures`: how many the verdict set has. */
octet_status decision_check_power(const study_file *study, size_t verdict_pictures);
/* The rate that n pictures without an event leave room for; and the least n for which that is at most `rate` (0..1). */
double decision_room(double n);
int64_t decision_pictures_needed(double rate);

#endif
