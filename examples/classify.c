/* SPDX-License-Identifier: Apache-2.0 */
/* What is on a picture: the shortest whole program.
 *
 *     cc classify.c -o classify $(pkg-config --cflags --libs octet)
 *     ./classify MODEL PICTURE
 *
 * MODEL is a bundle (`octet build`), a checkpoint directory, or a hub id that was pulled. */
#include <octet/octet.h>
#include <stdio.h>

static int print_classes(const octet_result *result) {
    octet_class best[5];
    size_t count = octet_result_top(result, best, 5);
    if (count == 0) {
        fprintf(stderr, "the model detects; it does not classify\n");
        return 1;
    }
    for (size_t i = 0; i < count; i++) printf("%6.2f%%  %s\n", 100.0 * (double)best[i].probability, best[i].label);
    return 0;
}

int main(int argc, char **argv) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    octet_result *result = NULL;
    int status = 1;
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL PICTURE\n", argv[0]);
        return 2;
    }
    /* NULL options are the defaults: the CPU, the model's own size, a thread a core. Each call that fails leaves its
     * output NULL, so the calls chain, and what was made can be freed below whichever of them failed. */
    if (octet_model_open(argv[1], NULL, &model) == OCTET_OK && octet_session_new(model, NULL, &session) == OCTET_OK &&
        octet_session_run_file(session, argv[2], &result) == OCTET_OK)
        status = print_classes(result);
    else
        fprintf(stderr, "%s\n", octet_error_text()); /* says which file, what was expected, what was found */
    octet_result_free(&result);
    octet_session_free(&session);
    octet_model_close(&model);
    return status;
}
