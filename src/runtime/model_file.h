/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON sections of a bundle (bundle.h): "model" (facts and preprocessing), "labels", "provenance". */
#ifndef OCT_RUNTIME_MODEL_FILE_H
#define OCT_RUNTIME_MODEL_FILE_H

#include "runtime/model.h"

#define OCT_MODEL_SECTION_LIMIT ((size_t)1 << 20)
#define OCT_LABELS_SECTION_LIMIT ((size_t)16 << 20)

/* {"family", "architecture", "task": "classification" or "detection", "classes", "tokens", "height", "width",
 *  "preprocess": {"fit", "height", "width", "crop_pct", "shortest_edge", "longest_edge", "size_multiple", "filter",
 * "resize", "rescale", "normalize", "pad", "divide", "pad_height", "pad_width", "rescale_factor", "mean", "std"}} */
void oct_preprocess_write(const oct_preprocess *preprocess, oct_text *out); /* the map "preprocess" alone */
void oct_model_section_write(const octet_model *model, oct_text *out);
/* Fills family, facts, preprocess, height, width and follows_picture; every field checked. */
octet_status oct_model_section_read(octet_model *model, const char *name, const char *text, size_t length);

void oct_labels_section_write(const octet_model *model, oct_text *out);
octet_status oct_labels_section_read(octet_model *model, const char *name, const char *text, size_t length);

/* Takes the checkpoint's fingerprint, where there is one; the rest is for people. */
octet_status oct_provenance_section_read(octet_model *model, const char *name, const char *text, size_t length);

#endif
