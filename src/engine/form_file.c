/* SPDX-License-Identifier: Apache-2.0 */
/* A stored form as bytes: plan_file.h. Files from before there was more to say are read as they were. */
#include "engine/plan_file.h"

#define GRANULARITY 3u
#define HELD_WIDE 4u
#define MORE 8u

static bool says_more(const oct_form *form) {
    return form->factors != OCT_NONE || form->block != 0 || form->zero_point != 0 || form->scale_rule != OCT_E8M0_FLOOR;
}

void oct_form_put(oct_text *out, const oct_form *form) {
    const bool more = says_more(form);
    oct_put_u8(out, (uint8_t)((unsigned)form->granularity | (form->held_wide ? HELD_WIDE : 0) | (more ? MORE : 0)));
    oct_put_f32(out, form->scale);
    oct_put_i32(out, form->scales);
    if (!more) return;
    oct_put_i32(out, form->factors);
    oct_put_i32(out, form->block);
    oct_put_u8(out, form->zero_point);
    oct_put_u8(out, (uint8_t)form->scale_rule);
}

oct_form oct_form_get(oct_bytes *bytes, oct_format format) {
    oct_form form = oct_form_of(format);
    const unsigned bits = oct_get_u8(bytes);
    if (bits > (GRANULARITY | HELD_WIDE | MORE)) bytes->failed = true;
    form.granularity = (oct_granularity)(bits & GRANULARITY);
    form.held_wide = (bits & HELD_WIDE) != 0;
    form.scale = oct_get_f32(bytes);
    form.scales = oct_get_i32(bytes);
    if ((bits & MORE) == 0) return form;
    form.factors = oct_get_i32(bytes);
    form.block = oct_get_i32(bytes);
    form.zero_point = oct_get_u8(bytes);
    const unsigned rule = oct_get_u8(bytes);
    if (rule > OCT_E8M0_CEIL) bytes->failed = true;
    form.scale_rule = rule == OCT_E8M0_CEIL ? OCT_E8M0_CEIL : OCT_E8M0_FLOOR;
    if (!says_more(&form)) bytes->failed = true; /* one way to write a form */
    return form;
}
