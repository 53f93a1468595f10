/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#    include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

static const char *const names[OCT_ISA_COUNT] = {"c", "avx2", "avx512", "vnni"};

const char *oct_isa_name(oct_isa isa) {
    return (unsigned)isa < OCT_ISA_COUNT ? names[isa] : "unknown";
}

#if defined(__x86_64__)
/* clang 14 knows no __builtin_cpu_supports("f16c"); its registers are AVX's, which AVX2 vouches for. Asked once: in a
 * virtual machine each CPUID leaves the guest. */
static bool has_f16c(void) {
    static atomic_int known; /* 0: not asked yet, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        unsigned a, b, c, d;
        answer = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}
#endif

bool oct_isa_present(oct_isa isa) {
    switch (isa) {
    case OCT_ISA_C:
        return true;
#if defined(__x86_64__)
    case OCT_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case OCT_ISA_AVX512:
        return oct_isa_present(OCT_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    case OCT_ISA_VNNI:
        return oct_isa_present(OCT_ISA_AVX512) && __builtin_cpu_supports("avx512vnni");
#endif
    default:
        return false;
    }
}

static oct_isa best(void) {
    oct_isa isa = OCT_ISA_C;
    for (int i = 0; i < OCT_ISA_COUNT; i++)
        if (oct_isa_present((oct_isa)i)) isa = (oct_isa)i;
    return isa;
}

octet_status oct_isa_limit(const char *forced, oct_isa *isa) {
    const char *source = "instruction set";
    if (forced == NULL || forced[0] == 0) {
        forced = getenv("OCTET_CPU");
        source = "OCTET_CPU";
    }
    *isa = best();
    if (forced == NULL || forced[0] == 0) return OCTET_OK;
    for (int i = 0; i < OCT_ISA_COUNT; i++) {
        if (strcmp(forced, names[i]) != 0) continue;
        if (!oct_isa_present((oct_isa)i))
            return oct_fail(OCTET_UNSUPPORTED, "%s %s: this machine has %s at best", source, forced, names[*isa]);
        *isa = (oct_isa)i;
        return OCTET_OK;
    }
    return oct_fail(OCTET_INVALID_ARGUMENT, "%s %s: expected c, avx2, avx512 or vnni (this machine has %s at best)",
                    source, forced, names[*isa]);
}
