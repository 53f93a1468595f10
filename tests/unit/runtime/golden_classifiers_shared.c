/* SPDX-License-Identifier: Apache-2.0 */
/* Classifiers end to end against timm and Pillow (tests/golden/README.md): resized pixels by hash, logits within 1e-4
 * of the largest, the order of the top five. Without OCTET_LONG a part of the 1,100 pictures: all with every logit, and
 * some of the others. */
#include "models.h"

#define ROWS 1100
#define VAL_ROWS 1000
#define FULL_ROWS 16 /* of each set */
#define TOP 5
#define SOME 32
#define CLASSES 1000
#define TOLERANCE 1e-4

typedef struct golden {
    models_lines pictures;
    support_array index, logit, largest, some, full;
} golden;

static void read_array(support_array *array, const char *name, const char *suffix) {
    char path[512];
    (void)snprintf(path, sizeof path, GOLDEN "%s.%s.npy", name, suffix);
    assert_true(support_npy_read(path, array));
    assert_int_equal(array->shape[0], strcmp(suffix, "full") == 0 ? 2 * FULL_ROWS : ROWS);
}

static golden read_golden(const char *name) {
    golden g = {0};
    char path[512];
    (void)snprintf(path, sizeof path, GOLDEN "%s.pictures.jsonl", name);
    g.pictures = models_read_lines(path);
    assert_int_equal(g.pictures.count, ROWS);
    read_array(&g.index, name, "top_index");
    read_array(&g.logit, name, "top_logit");
    read_array(&g.largest, name, "max_abs");
    read_array(&g.some, name, "some");
    read_array(&g.full, name, "full");
    return g;
}

static void free_golden(golden *g) {
    models_free_lines(&g->pictures);
    support_array_free(&g->index);
    support_array_free(&g->logit);
    support_array_free(&g->largest);
    support_array_free(&g->some);
    support_array_free(&g->full);
}

/* The row in `full`, or -1. */
static int full_row(int row) {
    if (row < FULL_ROWS) return row;
    return row >= VAL_ROWS && row < VAL_ROWS + FULL_ROWS ? row - VAL_ROWS + FULL_ROWS : -1;
}

static bool wanted(int row) {
    if (models_long() || full_row(row) >= 0) return true;
    return row < VAL_ROWS ? row % 9 == 0 : row % 10 == 0;
}

/* Place i holds the class it should, or one whose logit is a near tie with a neighbour's there. */
static void check_top(const octet_result *result, const golden *g, int row, double scale) {
    const int32_t *index = support_ints(&g->index) + (ptrdiff_t)row * (TOP + 1);
    const float *logit = support_floats(&g->logit) + (ptrdiff_t)row * (TOP + 1);
    octet_class found[TOP];
    assert_int_equal(octet_result_top(result, found, TOP), TOP);
    for (int i = 0; i < TOP; i++) {
        if (found[i].index == index[i]) continue;
        bool tie = (i > 0 && (double)(logit[i - 1] - logit[i]) <= 2 * TOLERANCE * scale) ||
                   (double)(logit[i] - logit[i + 1]) <= 2 * TOLERANCE * scale;
        if (!tie) fail_msg("row %d: place %d: expected class %d, found %d", row, i, index[i], found[i].index);
    }
}

static double check_logits(const octet_result *result, const golden *g, int row, double scale) {
    size_t rows = 0, columns = 0;
    const float *logits = octet_result_logits(result, &rows, &columns);
    double worst = 0.0;
    assert_int_equal(rows, 1);
    assert_int_equal(columns, CLASSES);
    for (int k = 0; k < SOME; k++) {
        int index = (31 * k + 7) % CLASSES;
        double off = fabs((double)logits[index] - (double)support_floats(&g->some)[(ptrdiff_t)row * SOME + k]) / scale;
        if (!(off <= TOLERANCE)) fail_msg("row %d, class %d: off by %g of the largest logit", row, index, off);
        worst = fmax(worst, off);
    }
    for (int i = 0; full_row(row) >= 0 && i < CLASSES; i++) {
        double off =
            fabs((double)logits[i] - (double)support_floats(&g->full)[(ptrdiff_t)full_row(row) * CLASSES + i]) / scale;
        if (!(off <= TOLERANCE)) fail_msg("row %d, class %d: off by %g of the largest logit", row, i, off);
        worst = fmax(worst, off);
    }
    return worst;
}

static double check_row(octet_session *session, const golden *g, int row) {
    const oct_node *line = g->pictures.items[row].root;
    char path[512];
    (void)snprintf(path, sizeof path, "data/imagenet/%s/%s", models_text(line, "set"), models_text(line, "name"));
    const char *file = support_shared(path);
    if (file == NULL) fail_msg("%s is not there", path);
    models_watch seen = {0};
    octet_result *result = NULL;
    octet_lab_set_watch(models_watch_event, &seen, 0);
    octet_status status = octet_session_run_file(session, file, &result);
    octet_lab_set_watch(NULL, NULL, 0);
    RUNS_OK(status);
    assert_int_equal(seen.width, models_get(line, "width")->integer);
    assert_int_equal(seen.height, models_get(line, "height")->integer);
    assert_string_equal(seen.resized, models_text(line, "sha256"));
    double scale = (double)support_floats(&g->largest)[row], worst = check_logits(result, g, row, scale);
    check_top(result, g, row, scale);
    octet_result_free(&result);
    return worst;
}

static void check_model(const char *name) {
    char place[128];
    (void)snprintf(place, sizeof place, "data/checkpoints/%s", name);
    const char *checkpoint = support_shared(place);
    if (checkpoint == NULL) SUPPORT_SKIP("shared %s is not here", place);
    golden g = read_golden(name);
    octet_model *model = models_open(checkpoint, 1);
    octet_session_options options = OCTET_SESSION_OPTIONS_DEFAULT;
    octet_session *session = NULL;
    options.threads = 1;
    options.orientation = OCTET_STORED; /* timm's reader */
    RUNS_OK(octet_session_new(model, &options, &session));
    double worst = 0.0;
    int count = 0;
    for (int row = 0; row < ROWS; row++) {
        if (!wanted(row)) continue;
        worst = fmax(worst, check_row(session, &g, row));
        count++;
    }
    print_message("%s: %d pictures, logits off by at most %.2g of the largest\n", name, count, worst);
    octet_session_free(&session);
    octet_model_close(&model);
    free_golden(&g);
}

static void test_mobilenetv2(void **state) {
    (void)state;
    check_model("mobilenetv2_100");
}

static void test_vit(void **state) {
    (void)state;
    check_model("vit_tiny_patch16_224");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mobilenetv2), cmocka_unit_test(test_vit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
