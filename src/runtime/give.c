/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/give.h"

octet_status oct_give_text(oct_text *text, char **out) {
    if (text->data == NULL) oct_text_puts(text, "");
    if (text->failed || text->data == NULL) {
        oct_text_free(text);
        return oct_fail_memory();
    }
    *out = text->data;
    return OCTET_OK;
}
