/* SPDX-License-Identifier: Apache-2.0 */
/* What config.json says in the layouts of the hub, read for families: fields common to all timm models, refusals by
 * line. */
#ifndef OCT_GRAPH_LAYOUTS_H
#define OCT_GRAPH_LAYOUTS_H

#include "graph/family.h"

/* Whether the string at `key` is one of `names` (NULL-ended). */
bool oct_config_is_one_of(const oct_document *config, const char *key, const char *const *names);
/* "FILE:LINE: " + format (node NULL: no line), status UNSUPPORTED: the checkpoint may be right, octet does not do this.
 */
octet_status oct_config_unsupported(const oct_document *config, const oct_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a `key` that is there and neither null nor `only`. */
octet_status oct_config_only_string(const oct_document *config, const oct_node *map, const char *key, const char *only);
octet_status oct_config_only_bool(const oct_document *config, const oct_node *map, const char *key, bool only);

/* A picture's size: one number, or [height, width], each in low .. high. Absent: left as it was. */
octet_status oct_config_size(const oct_document *config, const oct_node *map, const char *key, int low, int high,
                             int *height, int *width);

/* timm: architecture, num_classes (the top-level one counts), pretrained_cfg's input_size and fixed_input_size;
 * model_args (what the model was made with beside its name) are refused but for those in `known_arguments`. The pooling
 * must be `pool`. No classes is an error. */
octet_status oct_timm_describe(const oct_document *config, const char *pool, const char *const *known_arguments,
                               oct_model *model);

/* "height x width": not one that can be built, with what can. */
octet_status oct_model_check_size(const oct_model *model, int height, int width);

#endif
