/* SPDX-License-Identifier: Apache-2.0 */
/* The scale file: what calibration found, and what it was found with. JSON, read without trust, written whole or not at
 * all; the same scales give the same bytes.
 *
 *     {"octet_scales": 1,
 *      "model": "yolos", "configuration": HASH, "weights": HASH, "preprocessing": HASH, "data": HASH,
 *      "pictures": 500, "recipe": "published",
 *      "scales": [{"op": "vit.encoder.layer.0.intermediate.dense",   the op whose input this is
 *                  "format": "e4m3", "granularity": "tensor",         or "channel"
 *                  "calibrator": "percentile", "percentile": 99.99,   percentile: only with that calibrator
 *                  "scale": [0.0123], "zero_point": 0,                one, or one a channel; zero_point: only of uint8
 *                  "amax": 7.5, "threshold": 5.5,                     largest magnitude seen, and what was kept of it
 *                  "p9999": 4.5,                                      optional: 99.99th percentile of the magnitudes
 *                  "channels": [7.5, ...],                            optional: largest magnitude of each channel
 *                  "values": 123456, "not_finite": 0}],               how many were seen, and how many left out
 *      "smoothing": [{"op": OP, "values": [...]}],    optional: what each channel of the op's input is multiplied with
 *      "bias": [{"op": OP, "values": [...]}],         optional: what is added to each channel of the op's bias
 *      "weights_rounded": [{"op": OP,                 optional: weights rounded with calibration's help
 *                           "format": "e4m3", "granularity": "channel", "scale": [...],
 *                           "codes": BASE64}]}        a byte a weight, in the weight's own order
 *
 * Of attention there are three inputs, OP.q, OP.k and OP.v, of an addition two, OP.0 and OP.1. An input whose scale is
 * found from its values has granularity "row" or "block" and no scale; so has mxfp8; nvfp4 has "block" and the scale of
 * the tensor. A scale is positive and finite, always. The five keys say what the scales are of; a use with any other is
 * refused by oct_scale_file_check, which names the key. Recipe and pictures are provenance. */
#ifndef OCT_QUANT_SCALES_H
#define OCT_QUANT_SCALES_H

#include "base/document.h"
#include "graph/graph.h"
#include "quant/calibrate.h"

#define OCT_SCALES_VERSION 1
#define OCT_SCALES_TENSORS 8192
#define OCT_SCALES_CHANNELS (1 << 20)
#define OCT_SCALES_WEIGHTS ((size_t)1 << 28) /* of one op */
#define OCT_FACTOR_LEAST 0x1p-40f            /* of smoothing */
#define OCT_FACTOR_MOST 0x1p40f

typedef struct oct_scale_keys {
    const char *model;         /* architecture */
    const char *configuration; /* SHA-256, 64 hex digits: of config.json's text */
    const char *weights;       /* the checkpoint's fingerprint */
    const char *preprocessing; /* of what is done to a picture before the network */
    const char *data;          /* of the calibration set */
} oct_scale_keys;

typedef struct oct_scale {
    const char *op;
    oct_format format;
    oct_granularity granularity;
    oct_calibrator calibrator;
    double percentile;
    const float *scales;
    size_t count; /* of scales: 1, channels, or 0: found from the values */
    uint8_t zero_point;
    float amax, threshold;
    bool has_p9999;
    float p9999;
    const float *channels; /* NULL: not known */
    size_t channel_count;
    uint64_t values, not_finite;
} oct_scale;

/* A number a channel of an op. */
typedef struct oct_op_vector {
    const char *op;
    const float *values;
    size_t count;
} oct_op_vector;

typedef struct oct_op_weight {
    const char *op;
    oct_format format;           /* e4m3, e5m2, int8 */
    oct_granularity granularity; /* OCT_PER_TENSOR, OCT_PER_CHANNEL */
    const float *scales;
    size_t scale_count;
    const uint8_t *codes;
    size_t count;
} oct_op_weight;

typedef struct oct_scale_file {
    oct_scale_keys keys;
    int64_t pictures;
    const char *recipe;
    const oct_scale *scales;
    size_t count;
    const oct_op_vector *smoothing, *bias;
    size_t smoothing_count, bias_count;
    const oct_op_weight *rounded;
    size_t rounded_count;
    oct_document document; /* of a file that was read: owns all of the above; else empty */
} oct_scale_file;

/* On failure *file is empty and nothing is owed. `name` stands in errors. */
octet_status oct_scale_file_read(oct_scale_file *file, const char *path);
octet_status oct_scale_file_parse(oct_scale_file *file, const char *name, const char *text, size_t length);
void oct_scale_file_free(oct_scale_file *file);
/* A file that this could not read again (a scale that is 0, an op twice, a key that is no hash) is refused. */
octet_status oct_scale_file_write(const oct_scale_file *file, const char *path);

/* What is added to a file, as a calibration learns it; copies all it is given. */
typedef struct oct_scale_draft {
    oct_scale_file file; /* keys, pictures and recipe are the caller's to set */
    oct_arena arena;
    size_t capacities[4];
} oct_scale_draft;                                                                /* all zero: empty */
octet_status oct_scale_draft_add(oct_scale_draft *draft, const oct_scale *scale); /* replaces one of the same op */
octet_status oct_scale_draft_smoothing(oct_scale_draft *draft, const oct_op_vector *factors);
octet_status oct_scale_draft_bias(oct_scale_draft *draft, const oct_op_vector *bias);
octet_status oct_scale_draft_weight(oct_scale_draft *draft, const oct_op_weight *weight);
void oct_scale_draft_free(oct_scale_draft *draft);

/* MISMATCH, naming the first key that differs, expected and found. A NULL in `expected` is not asked for. */
octet_status oct_scale_file_check(const oct_scale_file *file, const oct_scale_keys *expected);
/* NULL: none; `file` may be NULL. */
const oct_scale *oct_scale_file_find(const oct_scale_file *file, const char *op);
const oct_op_vector *oct_scale_file_smoothing(const oct_scale_file *file, const char *op);
const oct_op_vector *oct_scale_file_bias(const oct_scale_file *file, const char *op);
const oct_op_weight *oct_scale_file_weight(const oct_scale_file *file, const char *op);

#endif
