/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#    include <cpuid.h>
#    if defined(__linux__)
#        include <sys/syscall.h>
#        include <unistd.h>
#    endif
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

static const char *const names[OCT_ISA_COUNT] = {"c", "avx2", "avx512", "vnni", "amx"};

const char *oct_isa_name(oct_isa isa) {
    return (unsigned)isa < OCT_ISA_COUNT ? names[isa] : "unknown";
}

#if defined(__x86_64__)
/* Asked once: in a virtual machine each CPUID leaves the guest. `known`: 0 not asked yet, 1 no, 2 yes. */
static bool asked_once(atomic_int *known, bool (*ask)(void)) {
    int answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer == 0) {
        answer = ask() ? 2 : 1;
        atomic_store_explicit(known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

/* clang 14 knows no __builtin_cpu_supports("f16c"); its registers are AVX's, which AVX2 vouches for. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* Tiles and their int8 products, and the system's leave to use them. The registers are large, so Linux saves them for
 * those processes only that have asked. */
static bool has_amx(void) {
#    if defined(__linux__) && defined(SYS_arch_prctl)
    enum { TILE = 1u << 24, INT8 = 1u << 25, REQUEST = 0x1023, ASK = 0x1022, TILE_DATA = 18 };
    unsigned a, b, c, d;
    unsigned long granted = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & TILE) == 0 || (d & INT8) == 0) return false;
    if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) != 0) return false;
    return syscall(SYS_arch_prctl, ASK, &granted) == 0 && (granted >> TILE_DATA & 1) != 0;
#    else
    return false;
#    endif
}
#endif

bool oct_isa_present(oct_isa isa) {
#if defined(__x86_64__)
    static atomic_int known_f16c, known_amx;
#endif
    switch (isa) {
    case OCT_ISA_C:
        return true;
#if defined(__x86_64__)
    case OCT_ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && asked_once(&known_f16c, has_f16c);
    case OCT_ISA_AVX512:
        return oct_isa_present(OCT_ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    case OCT_ISA_VNNI:
        return oct_isa_present(OCT_ISA_AVX512) && __builtin_cpu_supports("avx512vnni");
    case OCT_ISA_AMX:
        return oct_isa_present(OCT_ISA_VNNI) && asked_once(&known_amx, has_amx);
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
    return oct_fail(OCTET_INVALID_ARGUMENT,
                    "%s %s: expected c, avx2, avx512, vnni or amx (this machine has %s at best)", source, forced,
                    names[*isa]);
}
