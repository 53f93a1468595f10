/* SPDX-License-Identifier: Apache-2.0 */
/* The state file of a search: lines of another's making. */
#include <stdlib.h>
#include <string.h>

#include "eval/mixing_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t choices[] = {3, 2, 16};
    size_t used;
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    mixing m = {.state = "state", .choices = choices};
    m.groups = json_pack("{s:[s], s:[s], s:[s, s]}", "a", "a", "b", "b", "c", "c.0", "c.1");
    json_t *header = json_pack("{s:i, s:s}", "octet_search", 1, "data", "d");
    const bool good = mixing_state_take(&m, text, size, header, &used);
    for (size_t i = 0; i < m.made; i++)
        if (strlen(m.points_made[i].assignment) != 3 || !(m.points_made[i].seconds > 0.0)) abort();
    if (good ? used > size : m.failed[0] == '\0' && m.end != EVALUATE_NO_MEMORY) abort();
    json_decref(header);
    free(text);
    m.choices = NULL; /* the stack's */
    mixing_close(&m);
    return 0;
}
