/* SPDX-License-Identifier: Apache-2.0 */
/* Attribution on the subjects: a scale damaged on purpose in one of all layers is ranked first, and leaving that op as
 * the base recovers what was planted. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "eval/attribute.h"

#define RECOVERED 0.9 /* of the planted loss, at least */

typedef struct subject {
    const char *place, *data, *recipe;
    size_t limit, ops; /* pictures; narrow ops */
    char scales[64], damaged[64];
    octet_open_options open;
    octet_session_options session;
    octet_model *model;
    octet_session *reference;
    octet_lab_set *set;
    beside pictures;
    variant_recipe variant;
} subject;

static void temporary(char path[64]) {
    snprintf(path, 64, "/tmp/octet-test-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

static void open_subject(subject *s) {
    octet_lab_calibrate_options calibrate = OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT;
    octet_lab_set_options set = OCTET_LAB_SET_OPTIONS_DEFAULT;
    s->open = (octet_open_options)OCTET_OPEN_OPTIONS_DEFAULT;
    s->session = (octet_session_options)OCTET_SESSION_OPTIONS_DEFAULT;
    s->open.threads = s->session.threads = calibrate.threads = 1;
    calibrate.recipe = s->recipe;
    calibrate.data = s->data;
    temporary(s->scales);
    temporary(s->damaged);
    assert_int_equal(octet_lab_calibrate(s->place, &calibrate, NULL, NULL, s->scales), OCTET_OK);
    assert_int_equal(octet_model_open(s->place, &s->open, &s->model), OCTET_OK);
    assert_int_equal(octet_session_new(s->model, &s->session, &s->reference), OCTET_OK);
    set.model = s->model;
    assert_int_equal(octet_lab_set_open(s->data, &set, &s->set), OCTET_OK);
    assert_int_equal(beside_open(s->set, s->reference, s->limit, NULL, NULL, &s->pictures), EVALUATE_DONE);
    assert_int_equal(s->pictures.count, s->limit);
    assert_true(variant_open(s->model, s->recipe, &s->variant));
}

static void close_subject(subject *s) {
    variant_close(&s->variant);
    beside_close(&s->pictures);
    octet_lab_set_close(&s->set);
    octet_session_free(&s->reference);
    octet_model_close(&s->model);
    (void)unlink(s->scales);
    (void)unlink(s->damaged);
}

/* The scale of one op's input times `factor`. */
static void damage(const subject *s, const char *op, double factor) {
    json_t *file = json_load_file(s->scales, 0, NULL), *entry;
    size_t i, found = 0;
    assert_non_null(file);
    json_array_foreach(json_object_get(file, "scales"), i, entry) {
        if (strcmp(variant_op_name(entry), op) != 0) continue;
        json_t *scale = json_object_get(entry, "scale");
        json_array_set_new(scale, 0, json_real(factor * json_number_value(json_array_get(scale, 0))));
        found++;
    }
    assert_int_equal(found, 1);
    assert_int_equal(json_dump_file(file, s->damaged, JSON_REAL_PRECISION(17)), 0);
    json_decref(file);
}

static attribution attribution_of(subject *s, const char *scales) {
    s->open.scales = scales;
    return (attribution){.place = s->place,
                         .open = &s->open,
                         .session = &s->session,
                         .recipe = &s->variant,
                         .pictures = &s->pictures,
                         .reference = s->reference};
}

static json_t *report_of(subject *s, const char *scales) {
    attribution a = attribution_of(s, scales);
    if (attribute(&a) != EVALUATE_DONE) fail_msg("%s: %s", a.failed, octet_error_text());
    assert_int_equal(json_object_size(a.groups), s->ops);
    json_t *report = attribute_report(&a);
    assert_non_null(report);
    attribute_free(&a);
    return report;
}

static double kl_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(json_object_get(object, key), "kl"));
}

static double whole_without(subject *s, const char *scales, const char *op) {
    octet_model *model = NULL;
    octet_session *session = NULL;
    eval_figures figures = {.task = s->pictures.task, .with_reference = true, .threshold = 0.5};
    json_t *names = op != NULL ? json_pack("[s]", op) : json_array();
    char *text = variant_without(&s->variant, VARIANT_KEEP, names);
    double sum = 0.0;
    s->open.scales = scales;
    assert_int_equal(octet_lab_open_recipe(s->place, &s->open, "mine", text, &model), OCTET_OK);
    assert_int_equal(octet_session_new(model, &s->session, &session), OCTET_OK);
    assert_int_equal(beside_measure(&s->pictures, session, NULL, NULL, &figures), EVALUATE_DONE);
    for (size_t i = 0; i < figures.n; i++) sum += beside_kl(&figures, i);
    eval_figures_free(&figures);
    octet_session_free(&session);
    octet_model_close(&model);
    json_decref(names);
    free(text);
    return sum / (double)s->pictures.count;
}

static void check_planted(subject *s, const char *op, double factor) {
    damage(s, op, factor);
    json_t *report = report_of(s, s->damaged);
    const json_t *first = json_array_get(json_object_get(report, "groups"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "group")), op);
    /* what was planted, beside the undamaged recipe; and the same with the op left as the base in both */
    const double planted = kl_of(report, "whole") - whole_without(s, s->scales, NULL);
    const double left = kl_of(first, "kept") - whole_without(s, s->scales, op);
    assert_true(planted > 0.0);
    print_message("%s x %g: planted %.5f nats, alone %.5f, left out %.2g remains\n", op, factor, planted,
                  kl_of(first, "alone"), left);
    assert_true(fabs(left) < 1e-12); /* repaired by keeping it, to the last bit */
    assert_true(kl_of(first, "recovered") >= RECOVERED * planted);
    json_decref(report);
}

static const subject classifier = {.place = OCTET_SOURCE_DIR "/subjects/mobilenetv2_035",
                                   .data = OCTET_SOURCE_DIR "/subjects/pictures/classify",
                                   .recipe = "published",
                                   .limit = 12,
                                   .ops = 34};
static const subject detector = {.place = OCTET_SOURCE_DIR "/subjects/yolos",
                                 .data = OCTET_SOURCE_DIR "/subjects/pictures/detect/instances.json",
                                 .recipe = "published",
                                 .limit = 8,
                                 .ops = 36};

static void test_classifier(void **state) {
    (void)state;
    subject s = classifier;
    open_subject(&s);
    check_planted(&s, "blocks.0.0.conv_pw", 0.125);
    check_planted(&s, "blocks.3.0.conv_pwl", 0.125);
    check_planted(&s, "blocks.5.2.conv_pwl", 0.125);
    close_subject(&s);
}

static void test_detector(void **state) {
    (void)state;
    subject s = detector;
    open_subject(&s);
    check_planted(&s, "vit.encoder.layer.2.output.dense", 0.125);
    close_subject(&s);
}

/* The figures against each other: a row is what an engine of that recipe gives; the report is sorted; steps are there.
 */
static void test_report(void **state) {
    (void)state;
    subject s = classifier;
    s.limit = 6;
    open_subject(&s);
    json_t *report = report_of(&s, s.scales), *groups = json_object_get(report, "groups"), *group, *step;
    size_t i;
    assert_true(kl_of(report, "whole") == whole_without(&s, s.scales, NULL));
    double above = INFINITY;
    json_array_foreach(groups, i, group) {
        const char *name = json_string_value(json_object_get(group, "group"));
        assert_true(kl_of(group, "alone") <= above);
        above = kl_of(group, "alone");
        const double gained = kl_of(report, "whole") - kl_of(group, "kept");
        assert_true(fabs(kl_of(group, "recovered") - gained) < 1e-12);
        if (i == 0 || i == 20) assert_true(kl_of(group, "kept") == whole_without(&s, s.scales, name));
    }
    assert_int_equal(json_integer_value(json_object_get(report, "unmatched_steps")), 0);
    assert_true(json_array_size(json_object_get(report, "steps")) > s.ops);
    json_array_foreach(json_object_get(report, "steps"), i, step) {
        const double db = json_number_value(json_object_get(step, "sqnr_db"));
        const double relative = json_number_value(json_object_get(step, "relative_error"));
        assert_true(db > 5.0 && db < 120.0); /* 8 bits leave noise, and less noise than signal */
        assert_true(fabs(db + 20.0 * log10(relative)) < 1e-9);
    }
    json_decref(report);
    close_subject(&s);
}

static bool stop_at(void *user, size_t done, size_t engines, size_t picture) {
    size_t *left = user;
    (void)done, (void)engines, (void)picture;
    return (*left)-- > 0;
}

/* Stopped in any engine, and a checkpoint that is not there: told, nothing lost. */
static void test_ends(void **state) {
    (void)state;
    subject s = classifier;
    s.limit = 2;
    open_subject(&s);
    const size_t stops[] = {0, 3, 40, 2 * (3 + 2 * 34)};
    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        size_t left = stops[k];
        attribution a = attribution_of(&s, s.scales);
        a.tick = stop_at;
        a.user = &left;
        assert_int_equal(attribute(&a), EVALUATE_STOPPED);
        attribute_free(&a);
    }
    attribution a = attribution_of(&s, NULL); /* a static recipe without its scales */
    assert_int_equal(attribute(&a), EVALUATE_FAILED);
    assert_string_equal(a.failed, "whole");
    attribute_free(&a);
    a = attribution_of(&s, s.scales);
    a.place = "nowhere";
    assert_int_equal(attribute(&a), EVALUATE_FAILED);
    attribute_free(&a);
    close_subject(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classifier),
        cmocka_unit_test(test_detector),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
