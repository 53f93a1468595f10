/* SPDX-License-Identifier: Apache-2.0 */
/* Stored forms: what there is, and as text. */
#include "graph/graph.h"

bool oct_format_is_stored(oct_format format) {
    return (unsigned)format < OCT_FORMAT_COUNT && format != OCT_FORMAT_E2M1 && format != OCT_FORMAT_E8M0;
}

bool oct_format_is_weight(oct_format format) {
    return oct_format_is_stored(format) && format != OCT_FORMAT_UINT8;
}

bool oct_format_is_coded(oct_format format) {
    return format == OCT_FORMAT_E4M3 || format == OCT_FORMAT_INT8;
}

oct_form oct_form_of(oct_format format) {
    return (oct_form){.format = format, .scale = 1.0f, .scales = OCT_NONE, .factors = OCT_NONE};
}

unsigned oct_form_bits(const oct_form *form) {
    return form->held_wide ? oct_format_bits(OCT_FORMAT_FP32) : oct_format_bits(form->format);
}

void oct_form_print(const oct_form *form, oct_text *text) {
    static const char *const names[] = {"tensor", "channel", "row", "block"};
    oct_text_puts(text, oct_format_name(form->format));
    if (oct_format_has_scale(form->format) || form->format == OCT_FORMAT_UINT8) {
        oct_text_printf(text, " %s", names[form->granularity]);
        if (form->granularity == OCT_PER_BLOCK) oct_text_printf(text, " %d", (int)form->block);
    }
    if (form->factors != OCT_NONE) oct_text_puts(text, " smoothed");
}
