/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and the support table, for people and reports. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/threads.h"
#include "cpu/kernel.h"
#include "graph/ops.h"

/* A kernel for `op` of an instruction set: its name's formats, or "". */
static void put_kernels(oct_text *text, oct_op op, oct_isa isa) {
    bool any = false;
    oct_text_puts(text, " |");
    for (size_t i = 0; i < oct_kernel_count; i++) {
        if (oct_kernels[i].op != op || oct_kernels[i].isa != isa) continue;
        oct_text_printf(text, "%s %s", any ? "," : "", oct_kernels[i].name);
        any = true;
    }
}

void oct_cpu_support(oct_text *text) {
    oct_text_puts(text, "| op | C | AVX2 | AVX-512 | VNNI | AMX |\n|---|---|---|---|---|---|\n");
    for (int op = 0; op < OCT_OP_COUNT; op++) {
        oct_text_printf(text, "| %s", oct_op_rows[op].name);
        for (int isa = 0; isa < OCT_ISA_COUNT; isa++) put_kernels(text, (oct_op)op, (oct_isa)isa);
        oct_text_puts(text, " |\n");
    }
}

/* "model name" of /proc/cpuinfo, or "unknown". */
static void cpu_name(char *name, size_t size) {
    char line[512];
    snprintf(name, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (!oct_starts_with(line, "model name") || colon == NULL) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(name, size, "%s", colon + 2);
        break;
    }
    fclose(file);
}

void oct_cpu_machine(oct_text *text) {
    char name[256];
    oct_isa limit = OCT_ISA_C;
    cpu_name(name, sizeof name);
    oct_text_puts(text, "{\"cpu\": ");
    oct_text_json(text, name);
    oct_text_printf(text, ", \"cores\": %u, \"present\": [", oct_cores());
    bool any = false;
    for (int isa = 0; isa < OCT_ISA_COUNT; isa++) {
        if (!oct_isa_present((oct_isa)isa)) continue;
        oct_text_printf(text, "%s\"%s\"", any ? ", " : "", oct_isa_name((oct_isa)isa));
        any = true;
    }
    oct_text_printf(text, "], \"kernels\": \"%s\"}",
                    oct_isa_limit(NULL, &limit) == OCTET_OK ? oct_isa_name(limit) : "none");
}

void oct_cpu_timing_key(oct_text *text) {
    char name[256];
    oct_isa limit = OCT_ISA_C;
    uint64_t kernels = 0;
    cpu_name(name, sizeof name);
    for (size_t i = 0; i < oct_kernel_count; i++) kernels = kernels * 31 + oct_fnv1a_text(oct_kernels[i].name);
    const char *isa = oct_isa_limit(NULL, &limit) == OCTET_OK ? oct_isa_name(limit) : "none";
    oct_text_printf(text, "%s, %u cores, %s, kernels %016llx", name, oct_cores(), isa, (unsigned long long)kernels);
}
