/* SPDX-License-Identifier: Apache-2.0 */
#include "study/words.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

/* ---- what predicates share */

/* Names with commas between them. */
static void add_name(oct_text *about, const char *name) {
    if (about->length > 0) oct_text_puts(about, ", ");
    oct_text_puts(about, name);
}

static bool any_figure(const report_source *s, const char *name) {
    for (size_t i = 0; i < s->figures.count; i++)
        if (strcmp(evidence_text(&s->figures.items[i], "name"), name) == 0) return true;
    return false;
}

static bool is_speedup(const evidence_row *figure) {
    return oct_starts_with(evidence_text(figure, "name"), "speedup_batch_");
}

static void add_speedup(oct_text *about, const evidence_row *figure) {
    add_name(about, evidence_text(figure, "variant"));
    oct_text_printf(about, " at batch %lld", (long long)study_figure_number(evidence_text(figure, "name")));
}

/* Decisions' bounds with an outcome, named. */
static bool any_outcome(const report_source *s, bound_outcome outcome, bool inconclusive_only, oct_text *about) {
    for (size_t d = 0; d < s->decision_count; d++) {
        const decision *made = &s->decisions[d].decided;
        if (inconclusive_only && made->word != DECISION_INCONCLUSIVE) continue;
        for (size_t b = 0; b < made->bound_count; b++) {
            if (made->bounds[b].outcome != outcome) continue;
            add_name(about, made->bounds[b].bound->figure);
            oct_text_printf(about, " of %s", made->variant);
        }
    }
    return about->length > 0;
}

static bool is_candidate(const study_file *study, const char *name) {
    for (size_t i = 0; i < study->candidate_count; i++)
        if (strcmp(study->candidates[i], name) == 0) return true;
    return false;
}

/* ---- the verdict */

static bool recipe_changed(const report_source *s, oct_text *about) {
    for (size_t c = 0; c < s->study->candidate_count; c++)
        for (size_t d = 0; d < s->decision_count; d++)
            if (strcmp(s->decisions[d].decided.variant, s->study->candidates[c]) == 0 &&
                s->decisions[d].decided.earlier_openings > 0) {
                add_name(about, s->study->candidates[c]);
                break;
            }
    return about->length > 0;
}

static bool unfinished(const report_source *s, oct_text *about) {
    if (s->done >= s->tasks) return false;
    oct_text_printf(about, "%zu of %zu are done", s->done, s->tasks);
    return true;
}

static bool none_ships(const report_source *s, oct_text *about) {
    (void)about;
    for (size_t d = 0; d < s->decision_count; d++)
        if (s->decisions[d].decided.word == DECISION_SHIP) return false;
    return s->decision_count > 0;
}

static bool lack_of_power(const report_source *s, oct_text *about) {
    return any_outcome(s, BOUND_OPEN, true, about);
}

static bool bound_not_measured(const report_source *s, oct_text *about) {
    return any_outcome(s, BOUND_NOT_MEASURED, false, about);
}

static bool select_only(const report_source *s, oct_text *about) {
    for (size_t v = 0; v < s->study->variant_count; v++) {
        const char *name = s->study->variants[v].name;
        bool seen = false, judged = is_candidate(s->study, name);
        for (size_t e = 0; e < s->environments.count; e++) {
            seen = seen || report_run(s, &s->environments.items[e], "evaluate", name, "select") != NULL;
            judged = judged || report_run(s, &s->environments.items[e], "evaluate", name, "verdict") != NULL;
        }
        if (seen && !judged) add_name(about, name);
    }
    return about->length > 0;
}

/* ---- quality */

static bool unmatched(const report_source *s, oct_text *about) {
    (void)about;
    return any_figure(s, "unmatched_tested") || any_figure(s, "unmatched_reference");
}

static bool floor_measured(const report_source *s) {
    const char *floor = s->study->floor;
    for (size_t e = 0; floor != NULL && e < s->environments.count; e++)
        if (report_run(s, &s->environments.items[e], "evaluate", floor, "verdict") != NULL) return true;
    return false;
}

static bool no_floor(const report_source *s, oct_text *about) {
    (void)about;
    return !floor_measured(s);
}

static bool floor_is_context(const report_source *s, oct_text *about) {
    if (floor_measured(s)) add_name(about, s->study->floor);
    return about->length > 0;
}

static bool not_finite(const report_source *s, oct_text *about) {
    static const char *const names[] = {"nonfinite", "stress_nan", "stress_infinite"};
    for (size_t i = 0; i < s->figures.count; i++) {
        const evidence_row *f = &s->figures.items[i];
        for (size_t n = 0; n < 3; n++)
            if (strcmp(evidence_text(f, "name"), names[n]) == 0 && !(evidence_number(f, "value") <= 0.0)) {
                add_name(about, names[n]);
                oct_text_printf(about, " of %s", evidence_text(f, "variant"));
            }
    }
    return about->length > 0;
}

static bool no_stress(const report_source *s, oct_text *about) {
    (void)about;
    return !any_figure(s, "stress_nan");
}

static bool no_premerge(const report_source *s, oct_text *about) {
    (void)about;
    return !any_figure(s, "premerge_drift");
}

/* ---- attribution */

/* Candidates that make both narrow, where the variant with one side alone is missing. */
static bool not_apart(const report_source *s, bool weights, oct_text *about) {
    for (size_t c = 0; c < s->study->candidate_count; c++) {
        const report_recipe *recipe = report_recipe_of(s, s->study->candidates[c]);
        if (recipe != NULL && (!recipe->known || (recipe->weights && recipe->activations)) &&
            report_variant_apart(s, s->study->candidates[c], weights) == NULL)
            add_name(about, s->study->candidates[c]);
    }
    return about->length > 0;
}

static bool activations_alone(const report_source *s, oct_text *about) {
    return not_apart(s, true, about);
}

static bool weights_alone(const report_source *s, oct_text *about) {
    return not_apart(s, false, about);
}

static bool on_cpu(const report_source *s) {
    for (size_t e = 0; e < s->environments.count; e++)
        if (strcmp(evidence_text(&s->environments.items[e], "device"), "cpu") == 0) return true;
    return false;
}

static bool emulated(const report_source *s, oct_text *about) {
    for (size_t v = 0; on_cpu(s) && v < s->study->variant_count; v++)
        if (s->recipes[v].beyond_int8 && report_measured(s, NULL, s->study->variants[v].name))
            add_name(about, s->study->variants[v].name);
    return about->length > 0;
}

/* ---- speed */

static bool no_times(const report_source *s, oct_text *about) {
    (void)about;
    return s->timings.count == 0;
}

static bool spans_one(const report_source *s, oct_text *about) {
    for (size_t i = 0; i < s->figures.count; i++) {
        const evidence_row *f = &s->figures.items[i];
        if (is_speedup(f) && evidence_number(f, "low") <= 1.0 && evidence_number(f, "high") >= 1.0)
            add_speedup(about, f);
    }
    return about->length > 0;
}

static bool unclear_times(const report_source *s, oct_text *about) {
    for (size_t i = 0; i < s->figures.count; i++) {
        const evidence_row *f = &s->figures.items[i];
        if (is_speedup(f) && strcmp(evidence_text(f, "verdict"), "unclear") == 0) add_speedup(about, f);
    }
    return about->length > 0;
}

static bool throttled(const report_source *s, oct_text *about) {
    for (size_t i = 0; i < s->timings.count; i++) {
        const evidence_row *t = &s->timings.items[i];
        if (!json_is_true(json_object_get(t->body, "throttled")) && evidence_text(t, "unfinished")[0] == '\0') continue;
        add_name(about, evidence_text(t, "variant"));
        oct_text_printf(about, " at batch %lld", (long long)evidence_integer(t, "batch"));
    }
    return about->length > 0;
}

static bool not_held(const report_source *s, oct_text *about) {
    for (size_t i = 0; i < s->timings.count; i++)
        if (!json_is_true(json_object_get(s->timings.items[i].body, "held")))
            add_name(about, evidence_text(&s->timings.items[i], "variant"));
    return about->length > 0;
}

static bool modelled(const report_source *s, oct_text *about) {
    for (size_t i = 0; i < s->figures.count; i++)
        if (oct_starts_with(evidence_text(&s->figures.items[i], "name"), "modelled_"))
            add_name(about, evidence_text(&s->figures.items[i], "variant"));
    return about->length > 0;
}

static bool no_groups(const report_source *s, oct_text *about) {
    (void)about;
    return s->timings.count > 0 && !any_figure(s, "group_ms");
}

static bool scope_graph(const report_source *s, oct_text *about) {
    (void)about;
    for (size_t i = 0; i < s->timings.count; i++)
        if (strcmp(evidence_text(&s->timings.items[i], "scope"), "graph") == 0) return true;
    return false;
}

/* ---- what it holds for */

static bool cpu_only(const report_source *s, oct_text *about) {
    (void)about;
    for (size_t e = 0; e < s->environments.count; e++)
        if (strcmp(evidence_text(&s->environments.items[e], "device"), "cpu") != 0) return false;
    return s->environments.count > 0;
}

static bool own_subject(const report_source *s, oct_text *about) {
    (void)about;
    return strstr(s->study->model, "subjects/") != NULL || oct_starts_with(s->study->name, "subject");
}

static const char *model_revision(const report_source *s) {
    const evidence_row *model = report_artifact_named(s, "model", NULL);
    return model != NULL ? evidence_text(model, "revision") : "";
}

static bool no_revision(const report_source *s, oct_text *about) {
    (void)about;
    return s->study->revision == NULL;
}

static bool revision_not_checked(const report_source *s, oct_text *about) {
    (void)about;
    return s->study->revision != NULL && model_revision(s)[0] == '\0';
}

static bool other_weights(const report_source *s, oct_text *about) {
    const char *found = model_revision(s);
    if (s->study->revision == NULL || found[0] == '\0' || strcmp(found, s->study->revision) == 0) return false;
    oct_text_printf(about, "expected %s, found %s", s->study->revision, found);
    return true;
}

static bool several_machines(const report_source *s, oct_text *about) {
    (void)about;
    return s->environments.count > 1;
}

static bool gaps(const report_source *s, oct_text *about) {
    (void)about;
    return s->study->missing_count > 0;
}

/* ---- the table */

typedef struct situation {
    const char *name, *sentence, *forbidden;
    bool (*holds)(const report_source *source, oct_text *about);
} situation;
static const situation situations[] = {
#define X(name, sentence, forbidden) {#name, sentence, forbidden, name},
#include "study/words.def"
#undef X
};

const char *words_name(words_situation which) {
    return situations[which].name;
}

const char *words_sentence(words_situation which) {
    return situations[which].sentence;
}

const char *words_forbidden(words_situation which) {
    return situations[which].forbidden;
}

bool words_hold(const report_source *source, words_situation which, oct_text *about) {
    return situations[which].holds(source, about);
}

/* ---- checking */

char *words_plain(const char *markdown) {
    char *out = malloc(strlen(markdown) + 1);
    size_t n = 0;
    if (out == NULL) return NULL;
    for (const char *s = markdown; *s != '\0'; s++) {
        const char *end = strncmp(s, "<!--", 4) == 0 ? strstr(s, "-->") : NULL;
        if (end != NULL) {
            s = end + 2;
            continue;
        }
        if (*s == '\\' && ispunct((unsigned char)s[1])) s++;
        bool blank = *s == '\n' || *s == ' ';
        if (blank && (n == 0 || out[n - 1] == ' ')) continue;
        out[n++] = *s;
        if (blank) out[n - 1] = ' ';
    }
    out[n] = '\0';
    return out;
}

static const char *find_phrase(const char *text, const char *phrase, size_t length) {
    for (; *text != '\0'; text++)
        if (strncasecmp(text, phrase, length) == 0) return text;
    return NULL;
}

static octet_status check_forbidden(const situation *s, const char *text) {
    for (const char *phrase = s->forbidden; *phrase != '\0';) {
        size_t length = strcspn(phrase, "|");
        const char *found = find_phrase(text, phrase, length);
        if (found != NULL) {
            const char *from = found - text > 40 ? found - 40 : text;
            (void)oct_fail(OCTET_VERIFICATION, "the report says \"%.*s\", which the evidence does not (%s)",
                           (int)length, found, s->name);
            return oct_detail("in \"...%.120s...\"", from);
        }
        phrase += length + (phrase[length] == '|');
    }
    return OCTET_OK;
}

octet_status words_check(const report_source *source, const char *text) {
    for (size_t i = 0; i < WORDS_COUNT; i++) {
        oct_text about = {0};
        bool holds = situations[i].holds(source, &about), failed = about.failed;
        oct_text_free(&about);
        if (failed) return oct_fail_memory();
        if (!holds) continue;
        if (strstr(text, situations[i].sentence) == NULL)
            return oct_fail(OCTET_VERIFICATION, "the report lacks \"%s\", which the evidence makes it say (%s)",
                            situations[i].sentence, situations[i].name);
        OCT_TRY(check_forbidden(&situations[i], text));
    }
    return OCTET_OK;
}
