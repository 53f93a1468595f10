/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/compensate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define DAMPING 0.01 /* of the mean diagonal; ten times as much after each matrix that is not positive */
#define DAMPINGS 4
#define TILE 16 /* columns of a tile of sums, made HIGH x WIDE at a time */
#define HIGH 4
#define WIDE 8
#define SLICE 128  /* rows summed in float32 */
#define TOGETHER 8 /* outputs rounded side by side, so that a row of U is read once for all */

/* ---- sums */

static size_t triangle(size_t columns) {
    return columns * (columns + 1) / 2;
}

/* Where row i of a triangle begins, as if it had its first i columns, too. */
static size_t row_of(size_t columns, size_t i) {
    return i * columns - i * (i + 1) / 2;
}

size_t oct_gram_bytes(size_t columns) {
    return triangle(columns) * sizeof(double);
}

octet_status oct_gram_new(oct_gram *gram, size_t columns) {
    *gram = (oct_gram){.columns = columns};
    if (columns > OCT_COMPENSATED_DEPTH)
        return oct_fail(OCTET_UNSUPPORTED, "compensated rounding: expected at most %d inputs of an output, found %zu",
                        OCT_COMPENSATED_DEPTH, columns);
    gram->sums = oct_calloc(triangle(columns) + 1, sizeof *gram->sums);
    return gram->sums != NULL ? OCTET_OK : oct_fail_memory();
}

void oct_gram_free(oct_gram *gram) {
    oct_free(gram->sums);
    *gram = (oct_gram){0};
}

/* Sums of products of columns i .. i + TILE - 1 with j .. j + TILE - 1, in float32, so many at a time that compilers
 * keep them in registers. */
static void full_tile(const float *rows, size_t count, size_t stride, size_t i, size_t j, float tile[TILE][TILE]) {
    for (size_t p = 0; p < TILE; p += HIGH) {
        for (size_t q = 0; q < TILE; q += WIDE) {
            float sums[HIGH][WIDE] = {{0}};
            for (size_t r = 0; r < count; r++) {
                const float *restrict a = rows + r * stride + i + p, *restrict b = rows + r * stride + j + q;
                for (size_t y = 0; y < HIGH; y++)
                    for (size_t x = 0; x < WIDE; x++) sums[y][x] += a[y] * b[x];
            }
            for (size_t y = 0; y < HIGH; y++) memcpy(&tile[p + y][q], sums[y], sizeof sums[y]);
        }
    }
}

static void edge_tile(const float *rows, size_t count, size_t stride, size_t i, size_t height, size_t j, size_t width,
                      float tile[TILE][TILE]) {
    memset(tile, 0, sizeof(float[TILE][TILE]));
    for (size_t r = 0; r < count; r++) {
        const float *a = rows + r * stride + i, *b = rows + r * stride + j;
        for (size_t p = 0; p < height; p++)
            for (size_t q = 0; q < width; q++) tile[p][q] += a[p] * b[q];
    }
}

static void add_slice(oct_gram *gram, const float *rows, size_t count, size_t stride) {
    const size_t n = gram->columns;
    float tile[TILE][TILE];
    for (size_t i = 0; i < n; i += TILE) {
        const size_t height = n - i < TILE ? n - i : TILE;
        for (size_t j = i; j < n; j += TILE) {
            const size_t width = n - j < TILE ? n - j : TILE;
            if (height == TILE && width == TILE)
                full_tile(rows, count, stride, i, j, tile);
            else
                edge_tile(rows, count, stride, i, height, j, width, tile);
            for (size_t p = 0; p < height; p++) {
                double *sums = gram->sums + row_of(n, i + p);
                for (size_t q = i + p > j ? i + p - j : 0; q < width; q++) sums[j + q] += (double)tile[p][q];
            }
        }
    }
}

void oct_gram_add(oct_gram *gram, const float *rows, size_t count, size_t stride) {
    for (size_t r = 0; r < count; r += SLICE)
        add_slice(gram, rows + r * stride, count - r < SLICE ? count - r : SLICE, stride);
    gram->rows += count;
}

/* ---- the matrix */

typedef struct ranked {
    double diagonal;
    size_t column;
} ranked;

static int by_falling_diagonal(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->diagonal != y->diagonal) return x->diagonal > y->diagonal ? -1 : 1;
    return x->column < y->column ? -1 : 1;
}

/* The damped sums with columns in their order, its upper triangle, as a square. A column without inputs stands alone:
 * nothing is passed on to it or from it. */
static void fill_square(const oct_gram *gram, const ranked *order, double damping, double *square) {
    const size_t n = gram->columns;
    for (size_t i = 0; i < n; i++) {
        const size_t a = order[i].column;
        for (size_t j = i; j < n; j++) {
            const size_t b = order[j].column;
            square[i * n + j] = a < b ? gram->sums[row_of(n, a) + b] : gram->sums[row_of(n, b) + a];
        }
        square[i * n + i] += order[i].diagonal > 0 ? damping : 1;
    }
}

static double dot(const double *a, const double *b, size_t count) {
    double sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t l = 0; l < 8; l++) sums[l] += a[i + l] * b[i + l];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

/* The upper triangle of H becomes R with H = R R', from the last column to the first. False: H is not positive. */
static bool factor(double *square, size_t n) {
    for (size_t j = n; j-- > 0;) {
        const size_t after = n - j - 1;
        const double *last = square + j * n + j + 1;
        const double pivot = square[j * n + j] - dot(last, last, after);
        if (!(pivot > 0)) return false;
        const double root = sqrt(pivot);
        square[j * n + j] = root;
        for (size_t i = 0; i < j; i++) {
            double *at = square + i * n + j;
            *at = (*at - dot(at + 1, last, after)) / root;
        }
    }
    return true;
}

/* U = R^-1: then H^-1 = U' U. Row by row: row i of U solves u R = e[i]. */
static void invert(const double *r, size_t n, double *u) {
    memset(u, 0, n * n * sizeof *u);
    for (size_t i = 0; i < n; i++) {
        double *restrict row = u + i * n;
        row[i] = 1;
        for (size_t j = i; j < n; j++) {
            const double value = row[j] / r[j * n + j];
            const double *restrict from = r + j * n;
            row[j] = value;
            for (size_t k = j + 1; k < n; k++) row[k] -= value * from[k];
        }
    }
}

/* ---- rounding */

static uint8_t encode(oct_format format, float value, float scale) {
    uint8_t code = 0;
    (void)oct_scaled_encode(format, &value, 1, 1, 1, &scale, &code);
    return code;
}

static float decode(oct_format format, uint8_t code, float scale) {
    float value = 0;
    oct_scaled_decode(format, &code, 1, 1, 1, &scale, &value);
    return value;
}

/* Some outputs side by side; `work` holds their weights in double, a row of `n` each, columns in order. */
static void round_outputs(oct_format format, const double *u, const ranked *order, size_t n, double *work, size_t some,
                          const float *scales, uint8_t *codes) {
    for (size_t j = 0; j < n; j++) {
        const double *restrict from = u + j * n;
        for (size_t o = 0; o < some; o++) {
            double *restrict w = work + o * n;
            const uint8_t code = encode(format, (float)w[j], scales[o]);
            const double error = (w[j] - (double)decode(format, code, scales[o])) / from[j];
            codes[o * n + order[j].column] = code;
            for (size_t k = j + 1; k < n; k++) w[k] -= error * from[k];
        }
    }
}

static octet_status find_factor(const char *name, const oct_gram *gram, const ranked *order, double *square,
                                double *u) {
    const size_t n = gram->columns;
    double trace = 0;
    for (size_t i = 0; i < n; i++) trace += order[i].diagonal;
    if (!isfinite(trace)) return oct_fail(OCTET_MISMATCH, "%s: inputs that are not finite", name);
    double damping = DAMPING * trace / (double)n;
    for (int i = 0; i < DAMPINGS; i++, damping *= 10) {
        fill_square(gram, order, damping, square);
        if (!factor(square, n)) continue;
        invert(square, n, u);
        return OCTET_OK;
    }
    return oct_fail(OCTET_MISMATCH, "%s: the second moments of its inputs are not positive", name);
}

octet_status oct_compensate(oct_format format, const char *name, const oct_gram *gram, const float *weight,
                            size_t outputs, const float *scales, uint8_t *codes) {
    const size_t n = gram->columns;
    ranked *order = oct_calloc(n + 1, sizeof *order);
    double *square = oct_calloc(n * n + 1, sizeof *square), *u = oct_calloc(n * n + 1, sizeof *u);
    double *work = oct_calloc(n * TOGETHER + 1, sizeof *work);
    octet_status status = OCTET_OK;
    if (order == NULL || square == NULL || u == NULL || work == NULL) {
        status = oct_fail_memory();
    } else {
        for (size_t i = 0; i < n; i++) order[i] = (ranked){gram->sums[row_of(n, i) + i], i};
        qsort(order, n, sizeof *order, by_falling_diagonal);
        status = find_factor(name, gram, order, square, u);
    }
    for (size_t o = 0; o < outputs && status == OCTET_OK; o += TOGETHER) {
        const size_t some = outputs - o < TOGETHER ? outputs - o : TOGETHER;
        for (size_t s = 0; s < some; s++)
            for (size_t j = 0; j < n; j++) work[s * n + j] = (double)weight[(o + s) * n + order[j].column];
        round_outputs(format, u, order, n, work, some, scales + o, codes + o * n);
    }
    oct_free(work);
    oct_free(u);
    oct_free(square);
    oct_free(order);
    return status;
}
