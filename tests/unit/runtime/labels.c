/* SPDX-License-Identifier: Apache-2.0 */
/* Where labels come from, in which order, and every way in which they can be wrong: nothing is shifted or made up. */
#include "models.h"

/* The tiny YOLOS (three classes) with this in place of its labels. */
static char *with_labels(const char *labels) {
    drawn_model drawn;
    char *directory = support_temporary_directory();
    models_tiny_yolos(&drawn);
    drawn_config(&drawn, "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}", labels);
    drawn_write(&drawn, directory);
    models_write_preprocessor(directory, TINY_FIXED);
    drawn_free(&drawn);
    return directory;
}

static octet_status open_with(const char *directory, const char *classes, octet_model **model) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT;
    options.classes_file = classes;
    options.threads = 1;
    return octet_model_open(directory, &options, model);
}

static void expect_labels(const char *labels, const char *a, const char *b, const char *c) {
    char *directory = with_labels(labels);
    octet_model *model = NULL;
    RUNS_OK(open_with(directory, NULL, &model));
    assert_int_equal(octet_model_class_count(model), 3);
    assert_string_equal(octet_model_label(model, 0), a);
    assert_string_equal(octet_model_label(model, 1), b);
    assert_string_equal(octet_model_label(model, 2), c);
    assert_null(octet_model_label(model, 3)); /* no-object has no label */
    assert_null(octet_model_label(model, SIZE_MAX));
    octet_model_close(&model);
    models_drop(directory);
}

static void expect_refused(const char *labels, const char *words) {
    char *directory = with_labels(labels);
    octet_model *model = NULL;
    octet_status status = open_with(directory, NULL, &model);
    if (status == OCTET_OK) fail_msg("%s: opened", labels);
    assert_null(model);
    if (strstr(octet_error_text(), words) == NULL)
        fail_msg("%s: expected \"%s\": %s", labels, words, octet_error_text());
    if (strstr(octet_error_text(), "config.json") == NULL) fail_msg("%s: no file: %s", labels, octet_error_text());
    models_drop(directory);
}

static void test_id2label(void **state) {
    (void)state;
    expect_labels("\"id2label\": {\"2\": \"c\", \"0\": \"a\", \"1\": \"b\"}", "a", "b", "c");
    expect_labels("\"id2label\": {\"0\": \"N/A\", \"1\": \"\", \"2\": \"N/A\"}", "N/A", "", "N/A");
    expect_labels("\"id2label\": {\"0\": \"\\u00e9\\u4e2d\", \"1\": \"a\\nb\", \"2\": \"\\\"\"}",
                  "\xc3\xa9\xe4\xb8\xad", "a\nb", "\"");
    expect_labels("\"id2label\": {\"0\": \"i\", \"1\": \"j\", \"2\": \"k\"}, \"label_names\": [\"x\"]", "i", "j", "k");
}

static void test_id2label_refused(void **state) {
    (void)state;
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"3\": \"c\"}", "\"3\"");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"-1\": \"c\"}", "\"-1\"");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"x\": \"c\"}", "\"x\"");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"\": \"c\"}", "\"\"");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"99999999999999999999\": \"c\"}",
                   "99999999999999999999");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"01\": \"c\"}", "index 1 stands twice");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"1\": \"c\"}", "\"1\"");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": 7}", "expected a string");
    expect_refused("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": null}", "expected a string");
    expect_refused("\"id2label\": [\"a\", \"b\", \"c\"]", "id2label: expected a map");
    expect_refused("\"id2label\": {}", "no classes");
    expect_refused("\"id2label\": \"a\"", "id2label");
}

/* The number of classes comes from id2label in such a config; with more labels than the head has rows, the head is what
 * is wrong. */
static void test_more_labels_than_classes(void **state) {
    (void)state;
    char *directory = with_labels("\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\", \"3\": \"d\"}");
    octet_model *model = NULL;
    FAILS(open_with(directory, NULL, &model), OCTET_MISMATCH, "class_labels_classifier.layers.2");
    models_drop(directory);
}

/* ---- label_names and class files, of a classifier of five classes */

static void test_label_names(void **state) {
    (void)state;
    char *directory = models_write_mobilenet("{\"label_names\": [\"v\", \"w\", \"x\", \"y\", \"z\"], ");
    octet_model *model = NULL;
    support_write_text(support_join(directory, "classes.txt"), "1\n2\n3\n4\n5\n");
    RUNS_OK(open_with(directory, support_join(directory, "classes.txt"), &model)); /* the model's own count more */
    assert_string_equal(octet_model_label(model, 0), "v");
    assert_string_equal(octet_model_label(model, 4), "z");
    octet_model_close(&model);
    models_drop(directory);
    directory = models_write_mobilenet("{\"label_names\": [\"only\", \"three\", \"names\"], ");
    FAILS(open_with(directory, NULL, &model), OCTET_BAD_FORMAT, "3 labels for 5 classes");
    models_drop(directory);
    directory = models_write_mobilenet("{\"label_names\": [\"a\", \"b\", \"c\", \"d\", 5], ");
    FAILS(open_with(directory, NULL, &model), OCTET_BAD_FORMAT, "label_names: expected a string");
    models_drop(directory);
    directory = models_write_mobilenet("{\"label_names\": null, ");
    RUNS_OK(open_with(directory, NULL, &model));
    assert_string_equal(octet_model_label(model, 3), "3"); /* the index as text */
    octet_model_close(&model);
    models_drop(directory);
}

typedef struct class_file {
    const char *text;
    size_t size;         /* 0: strlen */
    const char *refused; /* NULL: opens, with these two labels */
    const char *first, *last;
} class_file;

static void test_class_files(void **state) {
    (void)state;
    static const class_file files[] = {
        {"one\ntwo\nthree\nfour\nfive\n", 0, NULL, "one", "five"},
        {"one\ntwo\nthree\nfour\nfive", 0, NULL, "one", "five"},
        {"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n", 0, NULL, "one", "five"},
        {" n01 one, two \n\n\n\n\xff\xfe x\n", 0, NULL, " n01 one, two ", "\xff\xfe x"},
        {"one\ntwo\nthree\nfour\nfive\n\n", 0, "6 labels for 5 classes", NULL, NULL},
        {"one\ntwo\nthree\nfour\n", 0, "4 labels for 5 classes", NULL, NULL},
        {"", 0, "0 labels for 5 classes", NULL, NULL},
        {"one\ntwo\nth\0ree\nfour\nfive\n", 25, ":3: a zero byte in a class name", NULL, NULL},
    };
    char *directory = models_write_mobilenet("");
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/classes.txt", directory);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        octet_model *model = NULL;
        const class_file *file = &files[i];
        support_write_file(path, file->text, file->size > 0 ? file->size : strlen(file->text));
        octet_status status = open_with(directory, path, &model);
        if (file->refused != NULL) {
            if (status == OCTET_OK || strstr(octet_error_text(), file->refused) == NULL ||
                strstr(octet_error_text(), path) == NULL)
                fail_msg("file %zu: expected \"%s\", found %s", i, file->refused, octet_error_text());
            continue;
        }
        RUNS_OK(status);
        assert_string_equal(octet_model_label(model, 0), file->first);
        assert_string_equal(octet_model_label(model, 4), file->last);
        octet_model_close(&model);
    }
    octet_model *model = NULL;
    FAILS(open_with(directory, "/nowhere/classes.txt", &model), OCTET_NOT_FOUND, "/nowhere/classes.txt");
    FAILS(open_with(directory, directory, &model), OCTET_INVALID_ARGUMENT, "is a directory");
    models_drop(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id2label),
        cmocka_unit_test(test_id2label_refused),
        cmocka_unit_test(test_more_labels_than_classes),
        cmocka_unit_test(test_label_names),
        cmocka_unit_test(test_class_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
