/* SPDX-License-Identifier: Apache-2.0 */
/* Handing a finished text to the library's caller. */
#ifndef OCT_RUNTIME_GIVE_H
#define OCT_RUNTIME_GIVE_H

#include "base/error.h"
#include "base/text.h"

/* The text's memory becomes the caller's to octet_free; an empty text is "". On failure it is freed. */
octet_status oct_give_text(oct_text *text, char **out);

#endif
