/* SPDX-License-Identifier: Apache-2.0 */
#include "study/decision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "study/plan.h"

#define TAIL 0.025 /* of a two-sided 95% interval */
#define ROUNDS_WANTED 10
#define LARGEST_SET 1000000000 /* pictures; more are as good as never */

const char *decision_word_text(decision_word word) {
    static const char *const words[] = {"ship", "do not ship", "inconclusive"};
    return words[word];
}

const char *bound_outcome_text(bound_outcome outcome) {
    static const char *const words[] = {"passes", "fails", "open", "not measured"};
    return words[outcome];
}

/* ---- what n pictures can say */

double decision_room(double n) {
    return n >= 1.0 ? -expm1(log(TAIL) / n) : 1.0;
}

int64_t decision_pictures_needed(double rate) {
    if (!(rate > 0.0)) return LARGEST_SET;
    if (rate >= 1.0) return 1;
    double least = ceil(log(TAIL) / log1p(-rate) - 1e-9);
    if (!(least < LARGEST_SET)) return LARGEST_SET;
    int64_t n = least >= 1.0 ? (int64_t)least : 1;
    while (n < LARGEST_SET && decision_room((double)n) > rate) n++;
    return n;
}

static bool is_rate(study_figure_kind kind) {
    return kind == FIGURE_PROPORTION || kind == FIGURE_RATE || kind == FIGURE_CHANGE;
}

/* How far from its best value a rate may lie and still pass: 0.99 at least leaves 0.01, a change of -0.01 at least too.
 * 1 or more: any. */
static double margin_of(const study_bound *bound, study_figure_kind kind) {
    double best = kind == FIGURE_CHANGE ? 0.0 : bound->at_most ? 0.0 : 1.0;
    return bound->at_most ? bound->limit - best : best - bound->limit;
}

static octet_status refuse(const study_file *study, const study_rule *rule, const study_bound *bound, long long needed,
                           const char *what, long long found) {
    (void)oct_fail(OCTET_LIMIT, "%s:%d: rule %s: %s %s %g can never pass: expected at least %lld %s, found %lld",
                   study->path, bound->line, rule->name, bound->figure, bound->at_most ? "at most" : "at least",
                   bound->limit, needed, what, found);
    return OCTET_LIMIT;
}

static octet_status check_bound(const study_file *study, const study_rule *rule, const study_bound *bound,
                                size_t pictures) {
    study_figure_kind kind = study_find_figure(bound->figure)->kind;
    if (kind == FIGURE_RATIO && study->timing.rounds < ROUNDS_WANTED)
        return refuse(study, rule, bound, ROUNDS_WANTED, "rounds of timing", (long long)study->timing.rounds);
    if (kind == FIGURE_MEAN && pictures < 2) return refuse(study, rule, bound, 2, "pictures", (long long)pictures);
    if (!is_rate(kind)) return OCTET_OK;
    double margin = margin_of(bound, kind);
    if (margin >= 1.0 || decision_room((double)pictures) <= margin) return OCTET_OK;
    int64_t needed = decision_pictures_needed(margin);
    if (needed < LARGEST_SET) {
        (void)refuse(study, rule, bound, needed, "pictures", (long long)pictures);
        return oct_hint("even without a single event, %zu pictures leave room for a rate of %.4f (95%%); take more "
                        "pictures or a wider bound",
                        pictures, decision_room((double)pictures));
    }
    return oct_fail(OCTET_LIMIT, "%s:%d: rule %s: %s %s %g can never pass, however many pictures", study->path,
                    bound->line, rule->name, bound->figure, bound->at_most ? "at most" : "at least", bound->limit);
}

octet_status decision_check_power(const study_file *study, size_t verdict_pictures) {
    for (size_t r = 0; r < study->rule_count; r++) {
        const study_rule *rule = &study->rules[r];
        for (size_t b = 0; rule->adopted && b < rule->bound_count; b++)
            OCT_TRY(check_bound(study, rule, &rule->bounds[b], verdict_pictures));
    }
    return OCTET_OK;
}

/* ---- figures */

/* What a decision is made of. */
typedef struct deciding {
    const study_file *study;
    evidence_file *evidence;
    const char *environment; /* NULL: any */
    study_plans plans;
} deciding;

/* Whether the run of a figure is the study's, and was made in the environment. */
static octet_status is_ours(const deciding *d, const char *run, bool *right) {
    evidence_rows rows;
    *right = study_plans_have(&d->plans, run);
    if (!*right || d->environment == NULL) return OCTET_OK;
    OCT_TRY(evidence_find(d->evidence, run, &rows));
    *right = strcmp(evidence_text(&rows.items[0], "environment"), d->environment) == 0;
    evidence_rows_free(&rows);
    return OCTET_OK;
}

/* Figures of the verdict set, or of none (times, stress, sizes): not those of select, which chose the candidate. */
static bool counts(const evidence_row *figure) {
    const char *set = evidence_text(figure, "set");
    return set[0] == '\0' || strcmp(set, "verdict") == 0;
}

static octet_status find_figure(const deciding *d, const char *variant, const char *name, evidence_rows *rows,
                                const evidence_row **found) {
    *found = NULL;
    OCT_TRY(evidence_list(d->evidence, EVIDENCE_FIGURE, &(evidence_query){.variant = variant, .name = name}, rows));
    for (size_t i = 0; i < rows->count && *found == NULL; i++) {
        bool right = false;
        octet_status status = is_ours(d, evidence_text(&rows->items[i], "run"), &right);
        if (status != OCTET_OK) {
            evidence_rows_free(rows);
            return status;
        }
        if (right && counts(&rows->items[i])) *found = &rows->items[i];
    }
    return OCTET_OK;
}

/* The interval as the decision reads it. */
static void read_interval(const evidence_row *figure, study_figure_kind kind, decided_bound *out) {
    out->value = evidence_number(figure, "value");
    out->low = evidence_number(figure, "low");
    out->high = evidence_number(figure, "high");
    out->n = evidence_integer(figure, "n");
    if (kind == FIGURE_COUNT || kind == FIGURE_SIZE) out->low = out->high = out->value;
    if (is_rate(kind) && isfinite(out->value)) {
        double room = decision_room((double)out->n), least = kind == FIGURE_CHANGE ? -1.0 : 0.0;
        out->low = fmin(out->low, fmax(out->value - room, least));
        out->high = fmax(out->high, fmin(out->value + room, 1.0));
    }
}

/* A NaN at an end decides nothing; a NaN as the value fails, since nothing right gives it. */
static bound_outcome judge(const study_bound *bound, const decided_bound *read) {
    if (isnan(read->value)) return BOUND_FAILS;
    if (isnan(read->low) || isnan(read->high)) return BOUND_OPEN;
    if (bound->at_most)
        return read->high <= bound->limit ? BOUND_PASSES : read->low > bound->limit ? BOUND_FAILS : BOUND_OPEN;
    return read->low >= bound->limit ? BOUND_PASSES : read->high < bound->limit ? BOUND_FAILS : BOUND_OPEN;
}

static void say(const char *variant, decided_bound *out) {
    const study_bound *bound = out->bound;
    bool most = bound->at_most, fails = out->outcome == BOUND_FAILS;
    if (out->outcome == BOUND_NOT_MEASURED) {
        (void)snprintf(out->text, sizeof out->text, "%s of %s: not measured", bound->figure, variant);
        return;
    }
    /* The end that decided: of what passes the bad one, of what fails the good one. */
    double end = most == fails ? out->low : out->high;
    if (out->outcome == BOUND_OPEN) end = most ? out->high : out->low;
    (void)snprintf(out->text, sizeof out->text, "%s of %s: %.6g [%.6g, %.6g], %s end %.6g, wanted %s %g: %s",
                   bound->figure, variant, out->value, out->low, out->high, end == out->low ? "lower" : "upper", end,
                   most ? "at most" : "at least", bound->limit, bound_outcome_text(out->outcome));
}

static octet_status decide_bound(const deciding *d, const char *variant, decided_bound *out) {
    evidence_rows rows;
    const evidence_row *figure;
    out->value = out->low = out->high = NAN;
    out->outcome = BOUND_NOT_MEASURED;
    OCT_TRY(find_figure(d, variant, out->bound->figure, &rows, &figure));
    if (figure != NULL) {
        memcpy(out->figure, figure->id, sizeof out->figure);
        read_interval(figure, study_find_figure(out->bound->figure)->kind, out);
        out->outcome = judge(out->bound, out);
    }
    evidence_rows_free(&rows);
    say(variant, out);
    return OCTET_OK;
}

/* ---- revisit */

static bool relates(double value, study_relation relation, double number) {
    switch (relation) {
    case RELATION_BELOW:
        return value < number;
    case RELATION_AT_MOST:
        return value <= number;
    case RELATION_ABOVE:
        return value > number;
    default:
        return value >= number;
    }
}

static octet_status decide_revisit(const deciding *d, const char *candidate, decided_revisit *out) {
    evidence_rows rows;
    const evidence_row *figure;
    const char *variant = out->revisit->variant != NULL ? out->revisit->variant : candidate;
    out->value = NAN;
    OCT_TRY(find_figure(d, variant, out->revisit->figure, &rows, &figure));
    if (figure != NULL) {
        memcpy(out->figure, figure->id, sizeof out->figure);
        out->value = evidence_number(figure, "value");
        out->known = true;
        out->holds = relates(out->value, out->revisit->relation, out->revisit->number);
    }
    evidence_rows_free(&rows);
    return OCTET_OK;
}

/* ---- the whole */

/* Recipes (with their scales) of this variant that the verdict set was opened for, less the present one. */
static octet_status count_openings(evidence_file *evidence, const char *variant, size_t *earlier) {
    evidence_rows rows;
    size_t recipes = 0;
    OCT_TRY(evidence_list(evidence, EVIDENCE_OPENING, &(evidence_query){.variant = variant}, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        bool fresh = true;
        for (size_t k = 0; k < i && fresh; k++)
            fresh = strcmp(evidence_text(&rows.items[i], "recipe"), evidence_text(&rows.items[k], "recipe")) != 0 ||
                    strcmp(evidence_text(&rows.items[i], "scales"), evidence_text(&rows.items[k], "scales")) != 0;
        recipes += fresh;
    }
    *earlier = recipes > 0 ? recipes - 1 : 0;
    evidence_rows_free(&rows);
    return OCTET_OK;
}

static octet_status reserve(const study_file *study, decision *out) {
    size_t bounds = 0;
    for (size_t r = 0; r < study->rule_count; r++)
        if (study->rules[r].adopted) bounds += study->rules[r].bound_count;
    out->bounds = calloc(bounds + 1, sizeof *out->bounds);
    out->revisits = calloc(study->revisit_count + 1, sizeof *out->revisits);
    return out->bounds != NULL && out->revisits != NULL ? OCTET_OK : oct_fail_memory();
}

static octet_status decide(const deciding *d, decision *out) {
    const study_file *study = d->study;
    OCT_TRY(reserve(study, out));
    bool all = true, any_fails = false;
    for (size_t r = 0; r < study->rule_count; r++) {
        const study_rule *rule = &study->rules[r];
        for (size_t b = 0; rule->adopted && b < rule->bound_count; b++) {
            decided_bound *bound = &out->bounds[out->bound_count++];
            *bound = (decided_bound){.rule = rule, .bound = &rule->bounds[b]};
            OCT_TRY(decide_bound(d, out->variant, bound));
            all = all && bound->outcome == BOUND_PASSES;
            any_fails = any_fails || bound->outcome == BOUND_FAILS;
        }
    }
    for (size_t i = 0; i < study->revisit_count; i++) {
        out->revisits[out->revisit_count++] = (decided_revisit){.revisit = &study->revisits[i]};
        OCT_TRY(decide_revisit(d, out->variant, &out->revisits[i]));
    }
    out->word = any_fails ? DECISION_DO_NOT_SHIP : all && out->bound_count > 0 ? DECISION_SHIP : DECISION_INCONCLUSIVE;
    return count_openings(d->evidence, out->variant, &out->earlier_openings);
}

octet_status decision_make(const study_file *study, evidence_file *evidence, const char *variant,
                           const char *environment, decision *out) {
    *out = (decision){.word = DECISION_INCONCLUSIVE};
    const study_variant *found = study_find_variant(study, variant);
    if (found == NULL) return oct_fail(OCTET_INVALID_ARGUMENT, "%s: has no variant \"%.64s\"", study->path, variant);
    out->variant = found->name;
    if (environment != NULL) (void)snprintf(out->environment, sizeof out->environment, "%s", environment);
    deciding d = {.study = study, .evidence = evidence, .environment = environment};
    OCT_TRY(study_plans_load(evidence, study, &d.plans));
    octet_status status = decide(&d, out);
    study_plans_free(&d.plans);
    if (status != OCTET_OK) decision_free(out);
    return status;
}

void decision_free(decision *decided) {
    free(decided->bounds);
    free(decided->revisits);
    *decided = (decision){.word = DECISION_INCONCLUSIVE};
}
