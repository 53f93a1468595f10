/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/mixing_state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/modelled.h"

#define STATE_VERSION 1
#define STATE_BYTES ((long)64 << 20)
#define DIGITS 17 /* give every double back */

static bool failed(mixing *m, const char *what, const char *why) {
    snprintf(m->failed, sizeof m->failed, "%s: %s", what, why);
    m->end = EVALUATE_FAILED;
    m->told = true;
    return false;
}

static bool no_memory(mixing *m) {
    m->end = EVALUATE_NO_MEMORY;
    return false;
}

/* ---- what the evaluations are of */

static void put_hash(json_t *list, const json_t *value) {
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL, hash[17] = "none";
    if (text != NULL) snprintf(hash, sizeof hash, "%016" PRIx64, octet_lab_checksum(text, strlen(text)));
    free(text);
    json_array_append_new(list, json_string(hash));
}

static json_t *header_of(const mixing *m) {
    json_t *recipes = json_array(), *scales = json_array();
    for (size_t r = 0; r < m->count; r++) {
        put_hash(recipes, m->recipes[r].recipe);
        put_hash(scales, m->scale_files[r]);
    }
    return json_pack("{s:i, s:s, s:s, s:I, s:o, s:o, s:O, s:s, s:b, s:i, s:i}", "octet_search", STATE_VERSION,
                     "weights", octet_model_fingerprint(m->model), "data", m->pictures->data, "pictures",
                     (json_int_t)m->pictures->count, "recipes", recipes, "scales", scales, "groups", m->groups, "time",
                     m->modelled ? MODELLED_NAME : "measured", "points", m->points, "orientation",
                     (int)m->session->orientation, "threads", (int)m->session->threads);
}

/* The first key that differs. */
static bool same_header(mixing *m, const json_t *wanted, const json_t *found) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)wanted, key, value) {
        if (json_equal(value, json_object_get(found, key))) continue;
        char why[256];
        snprintf(why, sizeof why, "line 1: this search has other %s than the one that the file is of", key);
        return failed(m, m->state, why);
    }
    return true;
}

/* ---- points */

static double real(const json_t *line, const char *key, double absent) {
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : absent;
}

static bool is_assignment(const mixing *m, const char *text) {
    if (text == NULL || strlen(text) != mixing_ops(m)) return false;
    for (size_t i = 0; text[i] != '\0'; i++) {
        const char *digit = strchr("0123456789abcdef", text[i]);
        if (digit == NULL || digit - "0123456789abcdef" >= m->choices[i]) return false;
    }
    return true;
}

static bool keep(mixing *m, mixing_point point) {
    if (m->made == m->capacity) {
        const size_t wanted = m->capacity < 64 ? 64 : 2 * m->capacity;
        mixing_point *grown = realloc(m->points_made, wanted * sizeof *grown);
        if (grown == NULL) {
            free(point.assignment);
            return no_memory(m);
        }
        m->points_made = grown;
        m->capacity = wanted;
    }
    m->points_made[m->made++] = point;
    return true;
}

static bool take_line(mixing *m, const char *text, size_t length, size_t number) {
    char why[256];
    json_error_t error;
    json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    const char *assignment = json_string_value(json_object_get(line, "assignment"));
    const double seconds = real(line, "seconds", NAN);
    if (!is_assignment(m, assignment) || !(seconds > 0.0)) {
        snprintf(why, sizeof why, "line %zu: expected an assignment of this search and its figures, found \"%.60s\"",
                 number, text);
        json_decref(line);
        return failed(m, m->state, why);
    }
    const mixing_point point = {.assignment = strdup(assignment),
                                .kl = real(line, "kl", INFINITY),
                                .low = real(line, "low", INFINITY),
                                .high = real(line, "high", INFINITY),
                                .points = real(line, "points", NAN),
                                .points_high = real(line, "points_high", NAN),
                                .seconds = seconds};
    json_decref(line);
    return point.assignment != NULL ? keep(m, point) : no_memory(m);
}

static bool write_line(mixing *m, json_t *line) {
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(line);
    if (text == NULL) return no_memory(m);
    const bool written = fprintf(m->file, "%s\n", text) > 0 && fflush(m->file) == 0;
    free(text);
    return written || failed(m, m->state, strerror(errno));
}

bool mixing_state_add(mixing *m, mixing_point point) {
    json_t *line = NULL;
    if (m->file != NULL)
        line = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "assignment", point.assignment, "kl",
                         json_float(point.kl), "low", json_float(point.low), "high", json_float(point.high), "seconds",
                         json_float(point.seconds), "points", json_float(point.points), "points_high",
                         json_float(point.points_high));
    if (!keep(m, point)) {
        json_decref(line);
        return false;
    }
    return m->file == NULL || write_line(m, line);
}

/* ---- the file */

/* The whole text, a zero after it; NULL: no memory, not readable, or too long. */
static char *read_all(FILE *file, size_t *length) {
    if (fseek(file, 0, SEEK_END) != 0) return NULL;
    const long size = ftell(file);
    if (size < 0 || size > STATE_BYTES || fseek(file, 0, SEEK_SET) != 0) return NULL;
    char *text = malloc((size_t)size + 1);
    if (text == NULL) return NULL;
    *length = fread(text, 1, (size_t)size, file);
    text[*length] = '\0';
    return text;
}

static bool take_header(mixing *m, const char *text, const json_t *header) {
    json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const bool is_state = json_object_get(found, "octet_search") != NULL;
    const bool same =
        is_state ? same_header(m, header, found) : failed(m, m->state, "line 1: expected the state of a search");
    json_decref(found);
    return same;
}

bool mixing_state_take(mixing *m, char *text, size_t length, const json_t *header, size_t *used) {
    size_t number = 0;
    char *end;
    *used = 0;
    if (strlen(text) != length) return failed(m, m->state, "expected text, found a zero byte");
    for (char *at = text; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        number++;
        if (!(number == 1 ? take_header(m, at, header) : take_line(m, at, (size_t)(end - at), number))) return false;
        *used = (size_t)(end + 1 - text);
    }
    /* what has no end may be another's file: only a header begun is dropped */
    if (*used > 0 || length == 0 || strncmp(text, "{\"octet_search\"", length < 15 ? length : 15) == 0) return true;
    return failed(m, m->state, "line 1: expected the state of a search");
}

static bool open_file(mixing *m, json_t *header) {
    size_t length = 0, used = 0;
    m->file = fopen(m->state, "a+");
    char *text = m->file != NULL ? read_all(m->file, &length) : NULL;
    if (text == NULL) return failed(m, m->state, errno != 0 ? strerror(errno) : "too long for the state of a search");
    const bool good = mixing_state_take(m, text, length, header, &used);
    free(text);
    if (!good) return false;
    if (used < length && ftruncate(fileno(m->file), (off_t)used) != 0) return failed(m, m->state, strerror(errno));
    m->resumed = m->made;
    return used > 0 || write_line(m, json_incref(header));
}

bool mixing_state_open(mixing *m) {
    if (m->state == NULL) return true;
    json_t *wanted = header_of(m);
    errno = 0;
    const bool good = wanted != NULL ? open_file(m, wanted) : no_memory(m);
    json_decref(wanted);
    return good;
}
