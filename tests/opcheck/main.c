/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opcheck/opcheck.h"

static const char usage[] =
    "opcheck [--list | --missing | --bench | --bench-int8] [--kernel GLOB] [--op NAME] [--isa c|avx2|avx512|vnni|amx]\n"
    "        [--seed N] [--rounds N] [--shapes MODEL[:HEIGHTxWIDTH]]\n"
    "\n"
    "Checks kernels against their op's reference body and the plain C kernel, for drawn shapes or a model's.\n"
    "  --list      the kernels, best to plainest, and whether this machine has them\n"
    "  --missing   ops and instruction sets without a kernel\n"
    "  --bench     times instead: plain, chosen, ratio, GFLOP/s, floor\n"
    "  --bench-int8  a model's products in int8 beside themselves in float32 (with --shapes, --isa)\n"
    "  --kernel    only kernels whose name matches, as in 'conv2d_dw*'\n"
    "  --isa       only kernels of this instruction set (with --bench: the best to choose from)\n"
    "  --shapes    a checkpoint directory, or a parameter list of tests/golden: mobilenetv2_100, yolos_tiny:480x640\n"
    "\n"
    "Exit: 0 good, 1 a check failed, 2 usage.\n";

static int list(const options *o) {
    for (size_t i = 0; i < oct_kernel_count; i++)
        if (kernel_wanted(o, &oct_kernels[i]))
            printf("%-12s %-30s %-7s%s\n", oct_op_rows[oct_kernels[i].op].name, oct_kernels[i].name,
                   oct_isa_name(oct_kernels[i].isa), oct_isa_present(oct_kernels[i].isa) ? "" : " not on this machine");
    return 0;
}

/* Ops with no kernel at all are failures; a set without one is only told. */
static int missing(void) {
    int failures = 0;
    for (int op = 0; op < OCT_OP_COUNT; op++) {
        bool has[OCT_ISA_COUNT] = {false};
        for (size_t i = 0; i < oct_kernel_count; i++)
            if (oct_kernels[i].op == (oct_op)op) has[oct_kernels[i].isa] = true;
        for (int isa = 0; isa < OCT_ISA_COUNT; isa++)
            if (!has[isa]) printf("%-12s no %s kernel\n", oct_op_rows[op].name, oct_isa_name((oct_isa)isa));
        failures += !has[OCT_ISA_C];
    }
    return failures > 0;
}

static int wrong(const char *what) {
    fprintf(stderr, "opcheck: %s\n%s", what, usage);
    return 2;
}

static bool parse_isa(const char *text, oct_isa *isa) {
    for (int i = 0; i < OCT_ISA_COUNT; i++)
        if (strcmp(text, oct_isa_name((oct_isa)i)) == 0) {
            *isa = (oct_isa)i;
            return true;
        }
    return false;
}

int main(int count, char **arguments) {
    options o = {.seed = (uint64_t)time(NULL), .rounds = 60};
    bool do_list = false, do_missing = false, do_int8 = false;
    int64_t number;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (oct_isa_limit(NULL, &o.isa) != OCTET_OK) return wrong(oct_error_fact());
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(name, "--help") == 0) return printf("%s", usage) < 0;
        if (strcmp(name, "--list") == 0 || strcmp(name, "--missing") == 0 || strcmp(name, "--bench") == 0) {
            do_list = do_list || name[2] == 'l';
            do_missing = do_missing || name[2] == 'm';
            o.bench = o.bench || name[2] == 'b';
            continue;
        }
        if (strcmp(name, "--bench-int8") == 0) {
            do_int8 = true;
            continue;
        }
        if (value == NULL) return wrong("an option without its value, or unknown");
        i++;
        if (strcmp(name, "--kernel") == 0) {
            o.kernel = value;
        } else if (strcmp(name, "--op") == 0) {
            if (oct_op_by_name(value) < 0) return wrong("no such op");
            o.op = value;
        } else if (strcmp(name, "--shapes") == 0) {
            o.shapes = value;
        } else if (strcmp(name, "--isa") == 0) {
            if (!parse_isa(value, &o.isa)) return wrong("--isa: expected c, avx2, avx512, vnni or amx");
            o.only_isa = true;
        } else if (strcmp(name, "--seed") == 0) {
            if (!oct_parse_int(value, 0, INT64_MAX, &number)) return wrong("--seed: expected a number");
            o.seed = (uint64_t)number;
        } else if (strcmp(name, "--rounds") == 0) {
            if (!oct_parse_int(value, 1, 1000000, &number)) return wrong("--rounds: expected a number");
            o.rounds = (int)number;
        } else {
            return wrong("unknown option");
        }
    }
    if (do_list) return list(&o);
    if (do_missing) return missing();
    if (!oct_isa_present(o.isa)) {
        printf("skipped: this machine has no %s\n", oct_isa_name(o.isa));
        return 0;
    }
    if (do_int8) return o.shapes == NULL ? wrong("--bench-int8: expected --shapes") : bench_int8(&o) > 0;
    if (o.bench) {
        o.only_isa = false;
        return bench_all(&o) > 0;
    }
    printf("seed %llu\n", (unsigned long long)o.seed);
    return check_all(&o) > 0;
}
