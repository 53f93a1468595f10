/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend. Its kernels are the rows of kernels/kernels.def: for each step the first row that the machine and
 * the step support runs it. OCTET_CPU=c, avx2, avx512, vnni or amx in the environment keeps to that instruction set
 * and plainer ones. */
#ifndef OCT_CPU_CPU_H
#define OCT_CPU_CPU_H

#include "engine/backend.h"

const oct_backend *oct_cpu_backend(void);

/* Instruction sets, plainest first. */
typedef enum oct_isa { OCT_ISA_C, OCT_ISA_AVX2, OCT_ISA_AVX512, OCT_ISA_VNNI, OCT_ISA_AMX, OCT_ISA_COUNT } oct_isa;
const char *oct_isa_name(oct_isa isa); /* "c", "avx2", "avx512", "vnni" (AVX-512 with it), "amx" (VNNI with its int8) */
/* On this machine, as far as the system lets it be used: Linux lets a process use AMX when it asks, which the first
 * call does. */
bool oct_isa_present(oct_isa isa);
/* What `forced` names, else OCTET_CPU, else the best present. An unknown name, or one the machine lacks, is an error
 * that says what there is. */
octet_status oct_isa_limit(const char *forced, oct_isa *isa);

/* The kernels by op and instruction set, as a Markdown table. */
void oct_cpu_support(oct_text *text);
/* One line that differs wherever times cannot be compared: processor, cores, instruction set, list of kernels. */
void oct_cpu_timing_key(oct_text *text);
/* {"cpu", "cores", "present", "kernels"}: JSON object text. */
void oct_cpu_machine(oct_text *text);

#endif
