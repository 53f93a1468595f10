/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that other tools quantized: what they say becomes a recipe and scales, and their weights what the codes
 * stand for.
 *
 *     hf_quant_config.json       {"quantization": {"quant_algo": ..., "exclude_modules": [...]}}, as ModelOpt writes it
 *     config.json                {"quantization_config": {"quant_method": ..., ...}}, as transformers reads it
 *
 *     method              algorithm, or what else is asked     weights              activations
 *     modelopt            FP8                                  e4m3 tensor          e4m3 tensor, static
 *                         FP8_PER_CHANNEL_PER_TOKEN            e4m3 channel         e4m3 row
 *                         W8A8_SQ_PER_CHANNEL                  int8 channel         int8 tensor, static
 *     fp8                 no weight_block_size                 e4m3 tensor          e4m3 tensor, static, or row
 *     fbgemm_fp8                                               e4m3 channel         e4m3 row
 *     compressed-tensors  one group, 8 bits, symmetric         tensor, channel      tensor, static, or row, or none
 *
 * All else is refused by name. Which modules are quantized is told by their tensors: MODULE.weight in F8_E4M3 or I8,
 * with MODULE.weight_scale (or weight_scale_inv), for static activations MODULE.input_scale (or activation_scale), and
 * perhaps MODULE.pre_quant_scale, what the input is multiplied with. A module must be an op of its own in the graph. */
#ifndef OCT_QUANT_IMPORT_H
#define OCT_QUANT_IMPORT_H

#include "checkpoint/checkpoint.h"
#include "quant/recipe.h"
#include "quant/scales.h"

/* What a configuration says. */
typedef struct oct_import_scheme {
    bool found; /* false: nothing of quantization */
    const char *method, *algorithm;
    oct_format format; /* e4m3 or int8, of weights and activations */
    oct_granularity weights;
    bool activations, dynamic; /* narrow; a scale a row */
} oct_import_scheme;

typedef struct oct_import_op {
    const char *name;
    const float *scales; /* of the weight */
    size_t scale_count;
    float input_scale;    /* 0: none */
    const float *factors; /* NULL, or what the input is multiplied with */
    size_t factor_count;
} oct_import_op;

typedef struct oct_import {
    oct_import_scheme scheme;
    oct_import_op *ops;
    size_t count;
    oct_text recipe;       /* YAML */
    oct_scale_draft draft; /* scales and factors; rounded weights once oct_import_weights has run. No keys */
    size_t clipped;        /* int8 codes of -128 that became -127, in the last graph */
    oct_arena arena;
} oct_import;

/* `config` is config.json, `own` hf_quant_config.json or NULL. The texts in *scheme are the documents'. */
octet_status oct_import_parse(const oct_document *config, const oct_document *own, oct_import_scheme *scheme);
/* Marks the tensors of scales as used. Nothing found: OCTET_OK, scheme.found false, and nothing owed. On failure
 * *import is empty. */
octet_status oct_import_read(oct_checkpoint *checkpoint, oct_import *import);
/* A graph as a family built it, before the passes: each quantized weight becomes what its codes stand for, and the
 * draft gets its codes. A module that is no convolution or linear of its own, or whose batch norm would be folded, is
 * refused. */
octet_status oct_import_weights(oct_import *import, oct_graph *graph);
void oct_import_free(oct_import *import);

#endif
