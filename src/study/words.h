/* SPDX-License-Identifier: Apache-2.0 */
/* Words follow from evidence: which sentences a report must hold, and which phrases it must not (words.def). */
#ifndef OCT_STUDY_WORDS_H
#define OCT_STUDY_WORDS_H

#include "base/text.h"
#include "study/report_source.h"

typedef enum words_situation {
#define X(name, sentence, forbidden) WORDS_##name,
#include "study/words.def"
#undef X
    WORDS_COUNT
} words_situation;

const char *words_name(words_situation situation);      /* "none_ships" */
const char *words_sentence(words_situation situation);  /* without a full stop */
const char *words_forbidden(words_situation situation); /* phrases with "|" between them */

/* Whether the evidence is in this situation; what it is about (variants, figures) is appended to `about`. */
bool words_hold(const report_source *source, words_situation situation, oct_text *about);

/* Holds a report's words (without marks) against all situations. VERIFICATION: a sentence that is missing, or a
 * forbidden phrase, named with its situation. */
octet_status words_check(const report_source *source, const char *text);
/* A page's words: Markdown without comments and the backslashes of escapes, line ends as blanks, one blank between
 * words; heap, NULL: no memory. */
char *words_plain(const char *markdown);

#endif
