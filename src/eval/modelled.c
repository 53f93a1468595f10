/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/modelled.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define BYTES_A_SECOND 4.8e12 /* NVIDIA H200 SXM, data sheet; rates without sparsity */

/* Of a format that the tensor cores do not multiply (mxfp8, nvfp4), the rate of what it is widened to: fp16. */
static const struct {
    const char *format;
    double bits; /* a number, its share of a block's scale counted in */
    double rate; /* operations a second, two a multiply-add */
} formats[] = {
    {"fp32", 32.0, 67e12},   {"fp16", 16.0, 989e12},  {"bf16", 16.0, 989e12},
    {"e4m3", 8.0, 1979e12},  {"e5m2", 8.0, 1979e12},  {"int8", 8.0, 1979e12},
    {"uint8", 8.0, 1979e12}, {"mxfp8", 8.25, 989e12}, {"nvfp4", 4.5, 989e12},
};
#define FORMATS (sizeof formats / sizeof *formats)

/* By the first word of "e4m3 channel max"; unknown: as fp32. */
static size_t format_of(const char *words) {
    const size_t length = words != NULL ? strcspn(words, " ") : 0;
    for (size_t i = 0; i < FORMATS; i++)
        if (strlen(formats[i].format) == length && memcmp(formats[i].format, words, length) == 0) return i;
    return 0;
}

static double number(const json_t *op, const char *key) {
    return json_number_value(json_object_get(op, key));
}

static double seconds_of(const json_t *op, const char *base) {
    const size_t weight = format_of(json_string_value(json_object_get(op, "weight")));
    const size_t activation = format_of(json_string_value(json_object_get(op, "activation")));
    double writes = 1.0;
    json_t *side;
    size_t i;
    json_array_foreach(json_object_get(op, "shape"), i, side) writes *= json_number_value(side);
    const double bits = number(op, "weights") * formats[weight].bits + number(op, "reads") * formats[activation].bits +
                        writes * formats[format_of(base)].bits;
    /* a product runs in the slower of its two formats */
    const double rate =
        number(op, "weights") > 0.0 ? fmin(formats[weight].rate, formats[activation].rate) : formats[activation].rate;
    return fmax(number(op, "flops") / rate, bits / 8.0 / BYTES_A_SECOND);
}

double modelled_seconds(const json_t *ops, const char *base) {
    double sum = 0.0;
    json_t *op;
    size_t i;
    json_array_foreach(ops, i, op) sum += seconds_of(op, base);
    return sum;
}
