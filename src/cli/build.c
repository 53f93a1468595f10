/* SPDX-License-Identifier: Apache-2.0 */
/* octet build: from a checkpoint to a bundle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "octet/lab.h"
#include "options.h"
#include "output.h"

#define BATCHES 16
#define SIZES 16

typedef struct build_options {
    common_options common;
    const char *output, *recipe, *scales, *batch, *size, *classes, *timing_cache;
    int64_t effort;
} build_options;

/* "512x864,480x640" (height x width); returns how many pairs, 0 if it is not such a list. */
static int parse_sizes(const char *text, int32_t *sizes) {
    int count = 0;
    for (const char *at = text; count < SIZES; at++) {
        char *end;
        long height = strtol(at, &end, 10), width = 0;
        if (end == at || *end != 'x') return 0;
        at = end + 1;
        width = strtol(at, &end, 10);
        if (end == at || height < 1 || width < 1 || height > 1 << 16 || width > 1 << 16) return 0;
        sizes[2 * count] = (int32_t)height;
        sizes[2 * count + 1] = (int32_t)width;
        count++;
        if (*end == '\0') return count;
        if (*end != ',') return 0;
        at = end;
    }
    return 0;
}

/* The command as typed, without the output's path: that is where, not what. Heap. */
static char *command_line(const build_options *options) {
    size_t size =
        strlen(options->batch) + strlen(options->recipe) + (options->size != NULL ? strlen(options->size) : 0) + 128;
    char *text = malloc(size);
    if (text == NULL) return NULL;
    snprintf(text, size, "octet build CHECKPOINT -o BUNDLE --recipe %s --batch %s --effort %d%s%s", options->recipe,
             options->batch, (int)options->effort, options->size != NULL ? " --size " : "",
             options->size != NULL ? options->size : "");
    return text;
}

static int build(const char *place, const build_options *options, octet_lab_build_options *lab) {
    char identity[65];
    char *command = command_line(options);
    if (command == NULL) return EXIT_BAD;
    lab->command = command;
    double start = seconds_now();
    octet_status status = octet_lab_build(place, lab, options->output, identity);
    free(command);
    if (status != OCTET_OK) return print_failure("build");
    if (options->common.json) {
        return print_json(json_pack("{s:s, s:s, s:s}", "bundle", options->output, "identity", identity, "recipe",
                                    options->recipe))
                   ? EXIT_DONE
                   : EXIT_BAD;
    }
    printf("%s  identity %s  %.2f s\nnext: octet inspect %s; octet run %s PICTURE\n", options->output, identity,
           seconds_now() - start, options->output, options->output);
    return EXIT_DONE;
}

static int run_build(int count, char **words) {
    build_options options = {.recipe = "fp32", .batch = "1", .effort = 1};
    int64_t batches[BATCHES];
    int32_t sizes[2 * SIZES];
    int size_count = 0;
    const option_row rows[] = {
        {OPTION_TEXT, "-o", "BUNDLE", "where to write it (.octet)", &options.output, 0, 0},
        OPTION_RECIPE(options.recipe, options.scales),
        {OPTION_TEXT, "--batch", "N,...", "an engine for each (default 1)", &options.batch, 0, 0},
        {OPTION_TEXT, "--size", "HxW,...", "an engine for each input size (default: the checkpoint's)", &options.size,
         0, 0},
        {OPTION_INT, "--effort", "1|2|3", "1 static choice of kernels (default), 2 timed, 3 searched", &options.effort,
         1, 3},
        {OPTION_TEXT, "--timing-cache", "FILE",
         "keep the times of efforts 2 and 3: the same file gives the same bundle", &options.timing_cache, 0, 0},
        {OPTION_TEXT, "--classes", "FILE", "class names, one a line", &options.classes, 0, 0},
        {OPTION_END, NULL, NULL, NULL, NULL, 0, 0},
    };
    int left = options_read(&verb_build, rows, &options.common, count, words);
    if (left < 0) return left == -2 ? EXIT_DONE : EXIT_USAGE;
    if (left != 1 || options.output == NULL) return usage_error(&verb_build, "expected one CHECKPOINT and -o BUNDLE");
    int batch_count = parse_batches(options.batch, batches, BATCHES);
    if (batch_count == 0)
        return usage_error(&verb_build, "--batch: expected up to %d numbers of 1 to 1024, found \"%s\"", BATCHES,
                           options.batch);
    if (options.size != NULL && (size_count = parse_sizes(options.size, sizes)) == 0) {
        return usage_error(&verb_build, "--size: expected HEIGHTxWIDTH, up to %d by commas, found \"%s\"", SIZES,
                           options.size);
    }
    if (options.timing_cache != NULL && options.effort == 1)
        return usage_error(&verb_build, "--timing-cache goes with --effort 2 or 3");
    octet_lab_build_options lab = {.struct_size = sizeof lab,
                                   .recipe = options.recipe,
                                   .scales = options.scales,
                                   .batches = batches,
                                   .batch_count = (size_t)batch_count,
                                   .sizes = sizes,
                                   .size_count = (size_t)size_count,
                                   .effort = (uint32_t)options.effort,
                                   .threads = (uint32_t)options.common.threads,
                                   .classes_file = options.classes,
                                   .timing_cache = options.timing_cache};
    return build(words[0], &options, &lab);
}

const verb_row verb_build = {"build", "CHECKPOINT -o BUNDLE",
                             "a bundle: engines, weights, labels, provenance in one file", run_build};
