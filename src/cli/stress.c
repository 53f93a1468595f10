/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress.h"

#include "eval/stress.h"
#include "options.h"
#include "output.h"

typedef struct stress_state {
    octet_session *session, *reference; /* reference: NULL if none */
    float *buffer;
    int height, width;
    bool json;
    size_t nan_inputs, infinite_inputs, lost_inputs; /* lost: the reference's numbers were finite */
    size_t beyond_inputs;                            /* of those with NaN or infinity: not to be had in fp16 */
} stress_state;

static bool finite(const stress_outcome *outcome) {
    return outcome->nans == 0 && outcome->infinities == 0;
}

static bool print_input(const stress_state *state, size_t i, const stress_outcome *own, const stress_outcome *other) {
    if (!state->json) {
        printf("  %-18s %6zu NaN %6zu infinite   largest %-11.5g", stress_name(i), own->nans, own->infinities,
               (double)own->largest);
        if (other != NULL)
            printf(" reference %6zu NaN %6zu infinite %-11.5g", other->nans, other->infinities, (double)other->largest);
        printf("  %s\n", stress_words(i));
        return true;
    }
    json_t *line = json_pack("{s:s, s:s, s:b, s:I, s:I, s:f}", "input", stress_name(i), "what", stress_words(i),
                             "beyond_fp16", stress_is_beyond_fp16(i), "nan", (json_int_t)own->nans, "infinite",
                             (json_int_t)own->infinities, "largest", (double)own->largest);
    if (line != NULL && other != NULL) {
        json_object_set_new(line, "reference_nan", json_integer((json_int_t)other->nans));
        json_object_set_new(line, "reference_infinite", json_integer((json_int_t)other->infinities));
        json_object_set_new(line, "reference_largest", json_real((double)other->largest));
    }
    return print_json(line);
}

static int run_inputs(stress_state *state) {
    for (size_t i = 0; i < stress_count(); i++) {
        stress_outcome own, other = {0};
        if (stress_run(state->session, i, state->buffer, state->height, state->width, &own) != OCTET_OK ||
            (state->reference != NULL &&
             stress_run(state->reference, i, state->buffer, state->height, state->width, &other) != OCTET_OK))
            return print_failure("eval");
        state->nan_inputs += own.nans > 0;
        state->infinite_inputs += own.infinities > 0;
        state->beyond_inputs += !finite(&own) && stress_is_beyond_fp16(i);
        state->lost_inputs += state->reference != NULL && finite(&other) && !finite(&own);
        if (!print_input(state, i, &own, state->reference != NULL ? &other : NULL)) return EXIT_BAD;
    }
    if (!state->json) {
        printf("%zu inputs: NaN came out of %zu, infinities of %zu; %zu of these hold what fp16 cannot", stress_count(),
               state->nan_inputs, state->infinite_inputs, state->beyond_inputs);
        if (state->reference != NULL) printf("; %zu gave finite numbers in the reference only", state->lost_inputs);
        printf("\n");
    }
    return EXIT_DONE;
}

int eval_stress(octet_model *model, octet_model *reference, uint32_t threads, bool json) {
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    stress_state state = {.json = json};
    int code = EXIT_BAD;
    options.threads = threads;
    octet_model_input_size(model, &state.height, &state.width);
    state.buffer = malloc((size_t)state.height * (size_t)state.width * 3 * sizeof *state.buffer);
    if (state.buffer == NULL)
        fprintf(stderr, "octet eval: out of memory\n");
    else if (octet_session_new(model, &options, &state.session) != OCTET_OK ||
             (reference != NULL && octet_session_new(reference, &options, &state.reference) != OCTET_OK))
        print_failure("eval");
    else
        code = run_inputs(&state);
    octet_session_free(&state.session);
    octet_session_free(&state.reference);
    free(state.buffer);
    return code;
}
