/* SPDX-License-Identifier: Apache-2.0 */
/* families/NAME/manifest.yaml: what a family is tested with and claims to support, combination by combination.
 *
 *     family: NAME                       the folder's name
 *     models:
 *       - architecture: mobilenetv2_100  one of the family's
 *         id: timm/mobilenetv2_100.ra_in1k   absent: the hub has no weights; the architecture stands for it
 *         revision: 5afa12513b04..       a commit of 40 hex digits, or unpinned
 *         sizes: [[224, 224]]            height, width in pixels
 *     batches: [1, 8]
 *     precisions: [fp32]                 fp32, fp16, bf16, int8, fp8
 *     devices: [cpu]                     cpu, cuda
 *
 * A combination is one model, size, batch, precision and device; all of them are listed. Errors name file and line. */
#ifndef OCT_GRAPH_MANIFEST_H
#define OCT_GRAPH_MANIFEST_H

#include "base/document.h"
#include "graph/family.h"

typedef struct oct_manifest_size {
    int height, width;
} oct_manifest_size;

typedef struct oct_manifest_model {
    const char *architecture, *id, *revision;
    const oct_manifest_size *sizes;
    size_t size_count;
    int line;
} oct_manifest_model;

typedef struct oct_manifest {
    const char *family;
    const oct_manifest_model *models;
    const int64_t *batches;
    const char *const *precisions, *const *devices;
    size_t model_count, batch_count, precision_count, device_count;
    oct_document document; /* owns all of the above */
} oct_manifest;

typedef struct oct_combination {
    const char *id;
    int height, width;
    int64_t batch;
    const char *precision, *device;
} oct_combination;

/* `name` stands in errors. On failure *manifest is empty and nothing is owed. */
octet_status oct_manifest_parse(oct_manifest *manifest, const char *name, const char *text, size_t length);
void oct_manifest_free(oct_manifest *manifest);
/* The manifest is this family's: its name, only its architectures, all of them. */
octet_status oct_manifest_check(const oct_manifest *manifest, const oct_family *family);

size_t oct_manifest_count(const oct_manifest *manifest); /* combinations */
/* Number `index`; devices change fastest, models slowest. */
oct_combination oct_manifest_combination(const oct_manifest *manifest, size_t index);
/* OK if listed; else UNSUPPORTED: the first part that is not, and what is listed for it. */
octet_status oct_manifest_lists(const oct_manifest *manifest, const oct_combination *combination);

#endif
