/* SPDX-License-Identifier: Apache-2.0 */
/* A model family: from a checkpoint to a graph. A folder families/NAME with family.c (which defines
 * `const oct_family oct_family_NAME`) and manifest.yaml is found by the build; nothing else names it. */
#ifndef OCT_GRAPH_FAMILY_H
#define OCT_GRAPH_FAMILY_H

#include "checkpoint/checkpoint.h"
#include "graph/graph.h"

typedef enum oct_model_task { OCT_TASK_CLASSIFICATION, OCT_TASK_DETECTION } oct_model_task;

/* What the family knows of a checkpoint before building. */
typedef struct oct_model {
    oct_model_task task;
    char architecture[64];  /* "mobilenetv2_100", "yolos" */
    int height, width;      /* the checkpoint's own input, pixels */
    int size_multiple;      /* inputs must be multiples of this; 1: any size */
    int min_size, max_size; /* sides that can be built, pixels */
    bool fixed_size;        /* only height x width can be built */
    int classes;            /* without no-object */
    int tokens;             /* detection tokens, else 0 */
} oct_model;

typedef struct oct_family {
    const char *name;
    /* "timm" or "transformers": how the checkpoint is laid out, so how preprocessing is read */
    const char *layout;
    /* transformers: the image processor's class is this + "ImageProcessor" ("Detr"); timm: NULL */
    const char *processor;
    /* the checkpoint's architecture (timm) or model_type (transformers) is this family's, whatever its other fields */
    bool (*claims)(const oct_document *config);
    /* Names it supports, NULL-ended, for errors: "architecture X is not supported; supported: ..." */
    const char *const *architectures;
    octet_status (*describe)(const oct_checkpoint *checkpoint, oct_model *model);
    /* Builds for a picture of height x width, batch 1, with batch norms and activations as nodes of their own; passes
     * come after. Outputs: "logits" [n, classes] or "logits" [n, tokens, classes + 1] and "boxes" [n, tokens, 4]
     * (centre x, centre y, width, height, 0..1). Takes every tensor it needs (shapes checked, "NAME: expected [10,
     * 1280], found [1000, 1280]"). */
    octet_status (*build)(oct_checkpoint *checkpoint, const oct_model *model, int height, int width, oct_graph *graph);
} oct_family;

typedef struct oct_family_recipe {
    const char *name; /* of the file, without .yaml */
    const char *text;
} oct_family_recipe;
typedef struct oct_family_entry {
    const oct_family *family;
    const char *manifest;             /* text of manifest.yaml */
    const oct_family_recipe *recipes; /* of recipes/, by name; ends with a NULL name */
} oct_family_entry;
extern const oct_family_entry oct_family_list[]; /* ends with a NULL family; made by the build */

/* The family of a checkpoint, from `list`; an error names the architecture and the supported ones. */
octet_status oct_family_find(const oct_family_entry *list, const oct_checkpoint *checkpoint, const oct_family **family);

/* ---- for builders (src/graph/blocks/weights.c): a checkpoint's tensor as a constant, marked used, shape checked to
 * the letter (no broadcasting, no transposition). OCT_NONE with the error text on failure. */
int32_t oct_weight(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int rank, const int64_t *dims);
/* The same for a convolution's weight stored [o, c, kh, kw], given as [o, kh, kw, c]. */
int32_t oct_weight_conv(oct_graph *graph, oct_checkpoint *checkpoint, const char *name, int64_t o, int64_t c,
                        int64_t kh, int64_t kw);

#endif
