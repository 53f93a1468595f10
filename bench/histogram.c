/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds a value that calibration adds to a histogram, and milliseconds a calibrator takes. One thread; values in
 * memory, 2^18 of them, 40 rounds; minimum and median. build/release/bin/bench_histogram */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "quant/calibrate.h"

#define VALUES ((size_t)1 << 18)
#define ROUNDS 40

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float normal(uint64_t *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += oct_random_unit(random);
    return (float)sum;
}

int main(void) {
    static const char *const kinds[] = {"normal", "relu6", "all zero", "one value", "log-uniform"};
    float *values = malloc(VALUES * sizeof *values);
    if (values == NULL) return 1;
    for (int kind = 0; kind < 5; kind++) {
        uint64_t random = 1;
        for (size_t i = 0; i < VALUES; i++) {
            const float x = normal(&random);
            values[i] = kind == 0   ? x
                        : kind == 1 ? fminf(fmaxf(4 * x, 0), 6)
                        : kind == 2 ? 0
                        : kind == 3 ? 2.5f
                                    : expf(20 * x);
        }
        oct_histogram *histogram = NULL;
        if (oct_histogram_new(&histogram) != OCTET_OK) return 1;
        double times[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            const double begin = now();
            oct_histogram_add(histogram, values, VALUES);
            times[round] = (now() - begin) / (double)VALUES * 1e9;
        }
        qsort(times, ROUNDS, sizeof *times, by_value);
        printf("%-12s %.2f ns a value (median %.2f)", kinds[kind], times[0], times[ROUNDS / 2]);
        for (int c = 0; c < OCT_CALIBRATOR_COUNT; c++) {
            oct_calibration calibration;
            const double begin = now();
            if (oct_calibrate(histogram, kinds[kind], (oct_calibrator)c, 99.99, OCT_FORMAT_INT8, &calibration) !=
                OCTET_OK)
                return 1;
            printf("; %s %.2f ms: %g", oct_calibrator_name((oct_calibrator)c), (now() - begin) * 1e3,
                   (double)calibration.threshold);
        }
        printf("\n");
        oct_histogram_free(histogram);
    }
    printf("%zu bytes a tensor\n", sizeof(oct_histogram));
    free(values);
    return 0;
}
