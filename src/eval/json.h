/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values of what C may hold and JSON may not. */
#ifndef OCT_EVAL_JSON_H
#define OCT_EVAL_JSON_H

#include <jansson.h>

json_t *json_text(const char *bytes); /* bytes that are not UTF-8 become U+FFFD */
json_t *json_float(double value);     /* null for what JSON cannot say */

#endif
