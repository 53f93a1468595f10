/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/search_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/search.h"

#define RIDGE 1e-3 /* of the kernel's diagonal: evaluations are repeatable, the features not all there are */
#define FIGURES 2  /* loss, time */

struct search_model {
    size_t ops, capacity, added, count; /* count: of the finite */
    uint8_t *assignments;               /* count * ops */
    double *points[FIGURES];            /* count each */
    double *rest[FIGURES];              /* what the kernels of a new assignment are weighted with */
    double *factor;                     /* Cholesky, lower, row i at i (i + 1) / 2 */
    double base[FIGURES];
    double *effects[FIGURES]; /* ops * SEARCH_CHOICES */
    uint8_t *here;            /* where search_model_stand was told to stand */
    size_t *shared;           /* choices, other than 0, that it shares with each point */
    double here_sum[FIGURES]; /* of single effects */
};

search_model *search_model_new(size_t ops, size_t capacity) {
    search_model *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->ops = ops;
    m->capacity = capacity;
    m->assignments = malloc(capacity * ops);
    m->factor = malloc(capacity * (capacity + 1) / 2 * sizeof(double));
    m->here = calloc(ops, 1);
    m->shared = calloc(capacity, sizeof *m->shared);
    bool good = m->assignments != NULL && m->factor != NULL && m->here != NULL && m->shared != NULL;
    for (int f = 0; f < FIGURES; f++) {
        m->points[f] = malloc(capacity * sizeof(double));
        m->rest[f] = malloc(capacity * sizeof(double));
        m->effects[f] = calloc(ops * SEARCH_CHOICES, sizeof(double));
        good = good && m->points[f] != NULL && m->rest[f] != NULL && m->effects[f] != NULL;
    }
    if (good) return m;
    search_model_free(m);
    return NULL;
}

void search_model_free(search_model *m) {
    if (m == NULL) return;
    for (int f = 0; f < FIGURES; f++) {
        free(m->points[f]);
        free(m->rest[f]);
        free(m->effects[f]);
    }
    free(m->shared);
    free(m->here);
    free(m->factor);
    free(m->assignments);
    free(m);
}

size_t search_model_count(const search_model *m) {
    return m->added;
}

static size_t shared_of(const uint8_t *a, const uint8_t *b, size_t ops) {
    size_t shared = 0;
    for (size_t i = 0; i < ops; i++) shared += (a[i] == b[i]) & (a[i] != 0);
    return shared;
}

static double kernel_of(size_t shared) {
    const double m = (double)shared;
    return m * (1.0 + (m - 1.0) * (0.5 + (m - 2.0) / 6.0));
}

static double kernel(const uint8_t *a, const uint8_t *b, size_t ops) {
    return kernel_of(shared_of(a, b, ops));
}

/* The row of a new assignment below the factor so far. */
static void factor_row(search_model *m, const uint8_t *assignment) {
    double *row = m->factor + m->count * (m->count + 1) / 2, left;
    const double own = kernel(assignment, assignment, m->ops), ridge = RIDGE * (own + 1.0);
    left = own + ridge;
    for (size_t i = 0; i < m->count; i++) {
        const double *above = m->factor + i * (i + 1) / 2;
        double sum = kernel(assignment, m->assignments + i * m->ops, m->ops);
        for (size_t k = 0; k < i; k++) sum -= row[k] * above[k];
        row[i] = sum / above[i];
        left -= row[i] * row[i];
    }
    row[m->count] = sqrt(fmax(left, ridge * 0.5));
}

/* The single effect that a point shows, if it differs from the first in one op. */
static void take_effect(search_model *m, const uint8_t *assignment, const double *figures) {
    size_t differ = 0, op = 0;
    for (size_t i = 0; i < m->ops; i++) {
        if (assignment[i] == 0) continue;
        differ++;
        op = i;
    }
    for (int f = 0; f < FIGURES; f++) {
        if (differ == 0) m->base[f] = figures[f];
        if (differ == 1) m->effects[f][op * SEARCH_CHOICES + assignment[op]] = figures[f] - m->base[f];
    }
}

bool search_model_add(search_model *m, const uint8_t *assignment, trade point) {
    const double figures[FIGURES] = {point.loss, point.time};
    if (m->added >= m->capacity) return false;
    m->added++;
    if (!isfinite(point.loss) || !isfinite(point.time)) return true;
    factor_row(m, assignment);
    memcpy(m->assignments + m->count * m->ops, assignment, m->ops);
    for (int f = 0; f < FIGURES; f++) m->points[f][m->count] = figures[f];
    take_effect(m, assignment, figures);
    m->count++;
    return true;
}

static double sum_of_effects(const search_model *m, const uint8_t *assignment, int f) {
    double sum = m->base[f];
    for (size_t i = 0; i < m->ops; i++) sum += m->effects[f][i * SEARCH_CHOICES + assignment[i]];
    return sum;
}

void search_model_fit(search_model *m) {
    for (int f = 0; f < FIGURES; f++) {
        double *x = m->rest[f];
        for (size_t i = 0; i < m->count; i++) {
            const double *row = m->factor + i * (i + 1) / 2;
            x[i] = m->points[f][i] - sum_of_effects(m, m->assignments + i * m->ops, f);
            for (size_t k = 0; k < i; k++) x[i] -= row[k] * x[k];
            x[i] /= row[i];
        }
        for (size_t i = m->count; i-- > 0;) {
            const double *row = m->factor + i * (i + 1) / 2;
            x[i] /= row[i];
            for (size_t k = 0; k < i; k++) x[k] -= row[k] * x[i];
        }
    }
}

trade search_model_predict(const search_model *m, const uint8_t *assignment) {
    trade out = {sum_of_effects(m, assignment, 0), sum_of_effects(m, assignment, 1)};
    for (size_t i = 0; i < m->count; i++) {
        const double k = kernel(assignment, m->assignments + i * m->ops, m->ops);
        out.loss += k * m->rest[0][i];
        out.time += k * m->rest[1][i];
    }
    return out;
}

void search_model_stand(search_model *m, const uint8_t *assignment) {
    memcpy(m->here, assignment, m->ops);
    for (size_t i = 0; i < m->count; i++) m->shared[i] = shared_of(assignment, m->assignments + i * m->ops, m->ops);
    for (int f = 0; f < FIGURES; f++) m->here_sum[f] = sum_of_effects(m, assignment, f);
}

trade search_model_predict_change(const search_model *m, size_t op, uint8_t choice) {
    const uint8_t before = m->here[op];
    double out[FIGURES];
    for (int f = 0; f < FIGURES; f++) {
        const double *effects = m->effects[f] + op * SEARCH_CHOICES;
        out[f] = m->here_sum[f] - effects[before] + effects[choice];
    }
    for (size_t i = 0; i < m->count; i++) {
        const uint8_t other = m->assignments[i * m->ops + op];
        const size_t lost = before != 0 && before == other, won = choice != 0 && choice == other;
        const double k = kernel_of(m->shared[i] + won - lost);
        out[0] += k * m->rest[0][i];
        out[1] += k * m->rest[1][i];
    }
    return (trade){out[0], out[1]};
}
