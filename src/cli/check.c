/* SPDX-License-Identifier: Apache-2.0 */
/* octet check: whether files are what they should be. Exit 3: one is not. */
#include <stdio.h>
#include <string.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

typedef struct check_options {
    common_options common;
    const char *model;
} check_options;

/* A recipe by itself; with a model, on its graph too. */
static octet_status check_recipe(const char *path, octet_model *model) {
    char *text = NULL, *told = NULL;
    if (octet_lab_recipe_check(path) != OCTET_OK) return OCTET_BAD_FORMAT;
    if (model == NULL) return OCTET_OK;
    octet_status status = octet_lab_recipe_text(model, path, &text);
    if (status == OCTET_OK) status = octet_lab_recipe_describe(model, path, text, 0, &told);
    octet_free(told);
    octet_free(text);
    return status;
}

static bool tell(const check_options *options, const char *path, bool right) {
    const char *why = right ? "" : octet_error_text();
    if (options->common.json)
        return print_json(json_pack("{s:o, s:b, s:o}", "file", json_text(path), "right", right, "why",
                                    right ? json_null() : json_text(why)));
    if (right)
        printf("%s: right\n", path);
    else
        printf("%s\n", why);
    return true;
}

static int run_check(int count, char **words) {
    check_options options = {0};
    const option_row rows[] = {
        {OPTION_TEXT, "--model", "CHECKPOINT", "check recipes against this model's ops too", &options.model, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_check, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left < 1) return usage_error(&verb_check, "expected at least one RECIPE");
    octet_model *model = NULL;
    if (options.model != NULL && octet_model_open(options.model, NULL, &model) != OCTET_OK)
        return print_failure("check");
    int code = EXIT_DONE;
    for (int i = 0; i < left && code != EXIT_BAD; i++) {
        bool right = check_recipe(words[i], model) == OCTET_OK;
        if (!right) code = EXIT_WRONG;
        if (!tell(&options, words[i], right)) code = EXIT_BAD;
    }
    octet_model_close(&model);
    return code;
}

const verb_row verb_check = {"check", "RECIPE...", "whether recipes are right: the line and what was expected",
                             run_check};
