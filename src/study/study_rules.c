/* SPDX-License-Identifier: Apache-2.0 */
/* What decides: figures, rules, and when to look again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "study/study_read.h"

/* ---- figures */

static const study_figure figures[] = {
#define X(name, kind, source, words) {#name, FIGURE_##kind, FROM_##source, words},
#include "study/figures.def"
#undef X
};
#define FIGURES (sizeof figures / sizeof figures[0])

int64_t study_figure_number(const char *name) {
    size_t length = strlen(name), digits = 0;
    int64_t number = 0;
    while (digits < length && name[length - 1 - digits] >= '0' && name[length - 1 - digits] <= '9') digits++;
    if (digits == 0 || digits == length || name[length - 1 - digits] != '_') return 0;
    return oct_parse_int(name + length - digits, 1, INT32_MAX, &number) ? number : 0;
}

const study_figure *study_find_figure(const char *name) {
    for (size_t i = 0; i < FIGURES; i++) {
        size_t length = strlen(figures[i].name);
        if (strcmp(figures[i].name, name) == 0 && figures[i].name[length - 1] != '_') return &figures[i];
        if (figures[i].name[length - 1] == '_' && strncmp(figures[i].name, name, length) == 0 &&
            study_figure_number(name) > 0 && strspn(name + length, "0123456789") == strlen(name + length))
            return &figures[i];
    }
    return NULL;
}

static octet_status check_figure(const study_reader *reader, int line, const char *key, const char *name) {
    const study_figure *figure = study_find_figure(name);
    const char *names[FIGURES];
    char what[96];
    for (size_t i = 0; i < FIGURES; i++) names[i] = figures[i].name;
    (void)snprintf(what, sizeof what, "%.64s: a figure", key);
    if (figure == NULL) return study_unknown(reader, line, what, name, names, FIGURES);
    const study_file *study = reader->study;
    const char *needed = NULL;
    if (figure->source == FROM_TIMES && !study->timing.is_set) needed = "timing";
    if (figure->source == FROM_STRESS && !study->stress) needed = "stress: true";
    if (figure->source == FROM_PREMERGE && study->premerge_count == 0) needed = "premerge";
    if (needed == NULL) return OCTET_OK;
    return study_fail_line(reader, line, "%s: %s is measured where there is a key \"%s\"", key, name, needed);
}

/* ---- rules */

static octet_status read_bound(study_reader *reader, const char *rule, const oct_node *map, study_bound *out) {
    static const char *const keys[] = {"figure", "at_most", "at_least", NULL};
    if (map->kind != OCT_NODE_MAP)
        return oct_node_fail(reader->document, map, "%s: expected {figure, at_most or at_least}, found %s", rule,
                             oct_node_kind_name(map->kind));
    OCT_TRY(oct_node_known_keys(reader->document, map, keys));
    OCT_TRY(oct_node_string(reader->document, map, "figure", true, &out->figure));
    OCT_TRY(check_figure(reader, map->line, rule, out->figure));
    bool most = oct_node_get(map, "at_most") != NULL, least = oct_node_get(map, "at_least") != NULL;
    if (most == least)
        return oct_node_fail(reader->document, map, "%s: expected one of at_most and at_least, found %s", rule,
                             most ? "both" : "none");
    out->at_most = most;
    out->line = map->line;
    return oct_node_real(reader->document, map, most ? "at_most" : "at_least", true, &out->limit);
}

static octet_status check_batch(const study_reader *reader, const char *rule, const study_bound *bound) {
    const study_timing *timing = &reader->study->timing;
    int64_t batch = study_figure_number(bound->figure);
    if (study_find_figure(bound->figure)->kind != FIGURE_RATIO) return OCTET_OK;
    for (size_t i = 0; i < timing->batch_count; i++)
        if (timing->batches[i] == batch) return OCTET_OK;
    return study_fail_line(reader, bound->line, "%s: batch %lld is not among timing's batches", rule, (long long)batch);
}

static octet_status read_rule(study_reader *reader, const char *name, int line, const oct_node *list,
                              study_rule *rule) {
    *rule = (study_rule){.name = name, .line = line};
    OCT_TRY(study_check_name(reader, line, "rules", name));
    if (list->kind != OCT_NODE_LIST || list->count == 0 || list->count > STUDY_NAMES)
        return oct_node_fail(reader->document, list, "%s: expected a list of bounds, found %s", name,
                             oct_node_kind_name(list->kind));
    rule->bounds = study_array(reader, list->count, sizeof *rule->bounds);
    if (rule->bounds == NULL) return oct_fail_memory();
    for (; rule->bound_count < list->count; rule->bound_count++) {
        study_bound *bound = &rule->bounds[rule->bound_count];
        OCT_TRY(read_bound(reader, name, list->items[rule->bound_count], bound));
        OCT_TRY(check_batch(reader, name, bound));
    }
    return OCTET_OK;
}

static octet_status adopt(study_reader *reader, const oct_node *root) {
    study_file *study = reader->study;
    const char **adopted;
    size_t count;
    int line;
    OCT_TRY(study_texts(reader, root, "adopt", true, &adopted, &count, &line));
    const char **names = study_array(reader, study->rule_count, sizeof *names);
    if (names == NULL) return oct_fail_memory();
    for (size_t r = 0; r < study->rule_count; r++) names[r] = study->rules[r].name;
    for (size_t i = 0; i < count; i++) {
        study_rule *rule = NULL;
        for (size_t r = 0; r < study->rule_count; r++)
            if (strcmp(study->rules[r].name, adopted[i]) == 0) rule = &study->rules[r];
        if (rule == NULL) return study_unknown(reader, line, "adopt: a rule", adopted[i], names, study->rule_count);
        rule->adopted = true;
    }
    return OCTET_OK;
}

/* ---- revisit: "[VARIANT] FIGURE < NUMBER" */

static const char *const relations[] = {"<", "<=", ">", ">="};

const char *study_relation_text(study_relation relation) {
    return relations[relation];
}

static octet_status parse_predicate(study_reader *reader, study_revisit *out) {
    char *words[5], *rest = NULL, *copy = oct_arena_strdup(&reader->document->arena, out->text);
    size_t count = 0;
    if (copy == NULL) return oct_fail_memory();
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && count < 5; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    if (count != 3 && count != 4)
        return study_fail_line(reader, out->line, "when: expected \"[VARIANT] FIGURE < NUMBER\", found \"%.128s\"",
                               out->text);
    char **last = words + count - 3;
    if (count == 4) out->variant = words[0];
    out->figure = last[0];
    size_t relation = 0;
    while (relation < 4 && strcmp(relations[relation], last[1]) != 0) relation++;
    if (relation == 4)
        return study_fail_line(reader, out->line, "when: expected <, <=, > or >=, found \"%.64s\"", last[1]);
    out->relation = (study_relation)relation;
    if (!oct_parse_double(last[2], &out->number))
        return study_fail_line(reader, out->line, "when: expected a number, found \"%.64s\"", last[2]);
    if (out->variant != NULL && study_find_variant(reader->study, out->variant) == NULL)
        return study_fail_line(reader, out->line, "when: expected a variant, found \"%.64s\"", out->variant);
    if (study_find_figure(out->figure) == NULL) return check_figure(reader, out->line, "when", out->figure);
    return OCTET_OK; /* of a figure that is not measured yet, too: then it is not known */
}

static octet_status read_revisits(study_reader *reader, const oct_node *root) {
    static const char *const keys[] = {"when", "because", NULL};
    const oct_node *list;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "revisit", OCT_NODE_LIST, false, &list));
    if (list == NULL) return OCTET_OK;
    study->revisits = study_array(reader, list->count, sizeof *study->revisits);
    if (study->revisits == NULL) return oct_fail_memory();
    for (; study->revisit_count < list->count; study->revisit_count++) {
        const oct_node *map = list->items[study->revisit_count];
        study_revisit *out = &study->revisits[study->revisit_count];
        if (map->kind != OCT_NODE_MAP) return oct_node_fail(reader->document, map, "revisit: expected {when, because}");
        OCT_TRY(oct_node_known_keys(reader->document, map, keys));
        OCT_TRY(oct_node_string(reader->document, map, "when", true, &out->text));
        OCT_TRY(oct_node_string(reader->document, map, "because", true, &out->because));
        out->line = map->line;
        OCT_TRY(parse_predicate(reader, out));
    }
    return OCTET_OK;
}

static octet_status read_missing(study_reader *reader, const oct_node *root) {
    static const char *const keys[] = {"what", "why", NULL};
    const oct_node *list;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "not_measured", OCT_NODE_LIST, false, &list));
    if (list == NULL) return OCTET_OK;
    study->missing = study_array(reader, list->count, sizeof *study->missing);
    if (study->missing == NULL) return oct_fail_memory();
    for (; study->missing_count < list->count; study->missing_count++) {
        const oct_node *map = list->items[study->missing_count];
        study_missing *out = &study->missing[study->missing_count];
        if (map->kind != OCT_NODE_MAP)
            return oct_node_fail(reader->document, map, "not_measured: expected {what, why}");
        OCT_TRY(oct_node_known_keys(reader->document, map, keys));
        OCT_TRY(oct_node_string(reader->document, map, "what", true, &out->what));
        OCT_TRY(oct_node_string(reader->document, map, "why", true, &out->why));
    }
    return OCTET_OK;
}

octet_status study_read_rules(study_reader *reader, const oct_node *root) {
    const oct_node *map;
    study_file *study = reader->study;
    OCT_TRY(study_items(reader, root, "rules", OCT_NODE_MAP, true, &map));
    study->rules = study_array(reader, map->count, sizeof *study->rules);
    if (study->rules == NULL) return oct_fail_memory();
    for (; study->rule_count < map->count; study->rule_count++) {
        size_t i = study->rule_count;
        OCT_TRY(read_rule(reader, map->keys[i], map->key_lines[i], map->items[i], &study->rules[i]));
    }
    OCT_TRY(adopt(reader, root));
    OCT_TRY(read_revisits(reader, root));
    return read_missing(reader, root);
}
