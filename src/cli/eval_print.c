/* SPDX-License-Identifier: Apache-2.0 */
#include "eval_print.h"

#include <stdio.h>
#include <string.h>

#include "eval/agree.h"

/* A line a row, in this order, of those that the figures have. */
typedef struct figure_row {
    const char *key, *title;
    const char *interval; /* key; NULL: none */
} figure_row;

static const figure_row rows[] = {
    {"n", "pictures", NULL},
    {"top1", "top-1", "top1_interval"},
    {"top5", "top-5", "top5_interval"},
    {"cross_entropy", "cross-entropy", NULL},
    {"ap", "AP", "ap_interval"},
    {"ap50", "AP50", "ap50_interval"},
    {"ap75", "AP75", "ap75_interval"},
    {"ap_small", "AP small", NULL},
    {"ap_medium", "AP medium", NULL},
    {"ap_large", "AP large", NULL},
    {"ar1", "AR1", NULL},
    {"ar10", "AR10", NULL},
    {"ar100", "AR100", NULL},
    {"ar_small", "AR small", NULL},
    {"ar_medium", "AR medium", NULL},
    {"ar_large", "AR large", NULL},
    {"truths", "boxes there are", NULL},
    {"nonfinite", "not finite", NULL},
    {"reference_top1", "reference's top-1", NULL},
    {"top1_change", "top-1 change", "top1_change_interval"},
    {"agreement", "agreement", "agreement_interval"},
    {"changed", "changed pictures", NULL},
    {"mcnemar_p", "McNemar's exact p", NULL},
    {"precision", "precision", "precision_interval"},
    {"recall", "recall", "recall_interval"},
    {"matched_iou", "matched IoU", "matched_iou_interval"},
    {"score_drift", "score drift", "score_drift_interval"},
    {"kl", "KL, nats", "kl_interval"},
    {"kl_se", "KL, standard error", NULL},
    {"kl_p95", "KL, 95% of pictures", NULL},
    {"kl_p99", "KL, 99% of pictures", NULL},
    {"cross_entropy_change", "cross-entropy change", "cross_entropy_change_interval"},
    {"tested_detections", "detections", NULL},
    {"reference_nonfinite", "reference not finite", NULL},
};

static long long whole(const json_t *figures, const char *key) {
    return (long long)json_integer_value(json_object_get(figures, key));
}

static void print_row(const json_t *figures, const figure_row *row) {
    const json_t *value = json_object_get(figures, row->key);
    const json_t *range = row->interval != NULL ? json_object_get(figures, row->interval) : NULL;
    printf("  %-24s ", row->title);
    if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else if (json_is_number(value))
        printf("%.6f", json_number_value(value));
    else
        printf("none");
    if (range != NULL)
        printf("   95%%: %.6f to %.6f", json_number_value(json_array_get(range, 0)),
               json_number_value(json_array_get(range, 1)));
    printf("\n");
}

static void print_changed(const json_t *figures, const char *title) {
    printf("  %-24s %lld, of which right to wrong %lld, wrong to right %lld\n", title, whole(figures, "changed"),
           whole(figures, "lost"), whole(figures, "gained"));
}

static void print_matched(const json_t *figures, const char *title) {
    printf("  %-24s %lld and the reference's %lld: %lld matched; of the others %lld within %.2f of the threshold\n",
           title, whole(figures, "tested_detections"), whole(figures, "reference_detections"),
           whole(figures, "matched_detections"), whole(figures, "unmatched_near_threshold"), AGREE_NEAR);
}

static void print_scatter(const json_t *figures, const json_t *scatter) {
    printf("  scatter of %lld equally right evaluations\n", whole(scatter, "runs"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *s = json_object_get(scatter, rows[i].key);
        if (rows[i].interval == NULL || s == NULL || json_object_get(figures, rows[i].key) == NULL) continue;
        printf("    %-22s sd %.6f   %.6f to %.6f\n", rows[i].title, json_number_value(json_object_get(s, "sd")),
               json_number_value(json_object_get(s, "min")), json_number_value(json_object_get(s, "max")));
    }
}

static void print_floor(const json_t *figures, const json_t *floor) {
    printf("  floor: the same of recipe %s\n", json_string_value(json_object_get(floor, "recipe")));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].interval != NULL && json_object_get(figures, rows[i].key) != NULL) print_row(floor, &rows[i]);
}

void print_figures(const json_t *figures) {
    const struct {
        const char *key;
        void (*print)(const json_t *figures, const char *title);
    } own[] = {{"changed", print_changed}, {"tested_detections", print_matched}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void (*print)(const json_t *, const char *) = NULL;
        if (json_object_get(figures, rows[i].key) == NULL) continue;
        for (size_t j = 0; j < sizeof own / sizeof *own; j++)
            if (strcmp(rows[i].key, own[j].key) == 0) print = own[j].print;
        if (print != NULL)
            print(figures, rows[i].title);
        else
            print_row(figures, &rows[i]);
    }
    const json_t *floor = json_object_get(figures, "floor"), *scatter = json_object_get(figures, "scatter");
    if (floor != NULL) print_floor(figures, floor);
    if (scatter != NULL) print_scatter(figures, scatter);
}
