/* SPDX-License-Identifier: Apache-2.0 */
/* COCO instances: ids, categories, masks, pictures, and every field wrong in turn. */
#include "unit/data/sets.h"

static const char *const two_names[2] = {"a", "b"};
static const oct_set_options two = {.names = two_names, .name_count = 2};

static char *directory, *json;

static int set_up(void **state) {
    (void)state;
    directory = support_temporary_directory();
    json = malloc(4096);
    (void)snprintf(json, 4096, "%s/instances_val.json", directory);
    sets_put(directory, "1.png", "P");
    sets_put(directory, "2.png", "Q");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    sets_drop(directory);
    free(json);
    assert_int_equal(oct_alloc_live(), 0);
    return 0;
}

#define IMAGES                                                                                                         \
    "{\"images\": [{\"id\": 1, \"file_name\": \"1.png\", \"width\": 20, \"height\": 10},\n{\"id\": 2, \"file_name\": " \
    "\"2.png\"}],\n"
#define CATEGORIES "\"categories\": [{\"id\": 7, \"name\": \"b\"}, {\"id\": 3, \"name\": \"a\"}],\n"
#define ANNOTATION(id, rest) "{\"id\": " id ", \"image_id\": 2, \"category_id\": 7, " rest "}"
#define BOX "\"bbox\": [1, 2, 3, 4.5]"
#define WHOLE(annotations) IMAGES CATEGORIES "\"annotations\": [" annotations "]}"

static void expect(const char *text, const char *wanted) {
    support_write_text(json, text);
    sets_expect(json, &two, wanted);
}

static void refuse(const char *text, octet_status status, const char *words) {
    support_write_text(json, text);
    sets_refuse(json, &two, status, "instances_val.json", words, NULL);
}

static void test_boxes(void **state) {
    (void)state;
    expect(WHOLE(ANNOTATION("5", BOX ", \"area\": 9, \"iscrowd\": 1") "," ANNOTATION("4", BOX)),
           "1.png -1 P\n2.png -1 Q 5:1[1,2,3,4.5]9c 4:1[1,2,3,4.5]13.5\n");
    expect(WHOLE(""), "1.png -1 P\n2.png -1 Q\n");
    sets_expect(json, NULL, "1.png -1 P\n2.png -1 Q\n");
}

static void test_masks_are_passed_over(void **state) {
    (void)state;
    static const char *const masks[] = {
        "[[1.5, 2, 3], [4]]", "{\"counts\": \"a]}\\\"[,\", \"size\": [1, 2]}", "[]", "\n\n[\n1]\n", "7", "null"};
    char text[4096];
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        (void)snprintf(text, sizeof text,
                       IMAGES CATEGORIES "\"annotations\": [" ANNOTATION("5", "\"segmentation\" : %s, " BOX) "]}",
                       masks[i]);
        expect(text, "1.png -1 P\n2.png -1 Q 5:1[1,2,3,4.5]13.5\n");
        (void)snprintf(text, sizeof text,
                       IMAGES CATEGORIES "\"annotations\": [" ANNOTATION("5", BOX ", \"segmentation\":%s") "]}",
                       masks[i]);
        expect(text, "1.png -1 P\n2.png -1 Q 5:1[1,2,3,4.5]13.5\n");
    }
    refuse(IMAGES CATEGORIES "\"annotations\": [" ANNOTATION("5", "\"segmentation\": [\n\n[1,\n2]],\n\"bbox\": 3") "]}",
           OCTET_BAD_FORMAT, "json:8: bbox: expected a list of 4 numbers, found 3");
    refuse(IMAGES "\"segmentation\": [1, 2", OCTET_BAD_FORMAT, "instances_val.json:");
}

static void test_ids(void **state) {
    (void)state;
    expect(
        WHOLE(ANNOTATION("5.0", BOX) "," ANNOTATION("9007199254740993", BOX) "," ANNOTATION("9007199254740992", BOX)),
        "1.png -1 P\n2.png -1 Q 5:1[1,2,3,4.5]13.5 9007199254740993:1[1,2,3,4.5]13.5 "
        "9007199254740992:1[1,2,3,4.5]13.5\n");
    refuse(WHOLE(ANNOTATION("5.5", BOX)), OCTET_BAD_FORMAT, "json:4: id: expected an integer, found 5.5");
    refuse(WHOLE(ANNOTATION("\"5\"", BOX)), OCTET_BAD_FORMAT, "json:4: id: expected an integer, found '5'");
    refuse(WHOLE(ANNOTATION("1e300", BOX)), OCTET_BAD_FORMAT, "json:4: id: expected an integer");
    refuse(WHOLE(ANNOTATION("NaN", BOX)), OCTET_BAD_FORMAT, "json:4:");
    refuse(WHOLE(ANNOTATION("5", BOX) ",\n" ANNOTATION("5", BOX)), OCTET_BAD_FORMAT,
           "json:5: annotations: id 5 is on line 4 too");
    refuse(WHOLE("{\"id\": 1, \"image_id\": 3, \"category_id\": 7, " BOX "}"), OCTET_BAD_FORMAT,
           "json:4: annotation 1: image_id 3: no such image");
    refuse(WHOLE("{\"id\": 1, \"image_id\": 2, \"category_id\": 9, " BOX "}"), OCTET_BAD_FORMAT,
           "category_id 9: no such category");
    support_write_text(json, WHOLE(ANNOTATION("0", BOX)));
    oct_set *set = NULL;
    assert_int_equal(oct_set_open(&set, json, &two), OCTET_OK);
    assert_non_null(strstr(oct_set_warning(set, 0), "instances_val.json:4: an annotation has id 0"));
    oct_set_close(set);
}

static void test_fields(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"[]", "json:1: expected COCO instances, a map, found a list"},
        {"{}", "json:1: expected a list \"images\", found none"},
        {"{\"images\": {}}", "expected a list \"images\", found a map"},
        {"{\"images\": [3]}", "images: expected a map"},
        {"{\"images\": [{\"id\": 1}]}", "missing key 'file_name'"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"../1.png\"}]}", "expected a name inside"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"1.png\", \"width\": -1}]}", "width: expected"},
        {IMAGES "\"categories\": 3}", "expected a list \"categories\""},
        {IMAGES "\"categories\": [{\"id\": 1}]}", "missing key 'name'"},
        {IMAGES CATEGORIES "\"annotations\": null}", "expected a list \"annotations\""},
        {WHOLE(ANNOTATION("5", "\"area\": 3")), "missing key 'bbox'"},
        {WHOLE(ANNOTATION("5", "\"bbox\": [1, 2, 3]")), "bbox: expected a list of 4 numbers"},
        {WHOLE(ANNOTATION("5", "\"bbox\": [1, 2, \"3\", 4]")), "bbox: expected a list of 4 numbers"},
        {WHOLE(ANNOTATION("5", "\"bbox\": [1, 2, -3, 4]")), "found a negative size"},
        {WHOLE(ANNOTATION("5", BOX ", \"area\": \"x\"")), "area: expected a number"},
        {WHOLE(ANNOTATION("5", BOX ", \"iscrowd\": 2")), "iscrowd: expected"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(wrong[i].text, OCTET_BAD_FORMAT, wrong[i].words);
    support_write_text(json, "{\"images\": [], \"categories\": [], \"annotations\": []}");
    sets_refuse(json, &two, OCTET_INVALID_ARGUMENT, "no pictures in it", NULL);
}

static void test_categories(void **state) {
    (void)state;
    static const char *const names[4] = {"N/A", "x", "b", "N/A"};
    const oct_set_options four = {.names = names, .name_count = 4};
    static const char tail[] = "\"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 3, " BOX "}]}";
    static const struct {
        const char *categories, *found; /* "!" before words of an error */
    } rows[] = {
        {"{\"id\": 3, \"name\": \"b\"}", "1:2["},   /* the name, though the id is an index */
        {"{\"id\": 3, \"name\": \"N/A\"}", "1:3["}, /* two classes: the one of this index */
        {"{\"id\": 3, \"name\": \"cat\"}", "1:3["}, /* no name: the id */
        {"{\"id\": 3, \"name\": \"cat\"}, {\"id\": 2, \"name\": \"b\"}", "1:3["}, /* the other name agrees */
        {"{\"id\": 3, \"name\": \"cat\"}, {\"id\": 1, \"name\": \"b\"}",
         "!category 3 \"cat\": expected the name of a class"},
        {"{\"id\": 3, \"name\": \"cat\"}, {\"id\": 4, \"name\": \"dog\"}", "!category 3 \"cat\""},
        {"{\"id\": 3, \"name\": \"b\"}, {\"id\": 2, \"name\": \"b\"}", "!category "},
    };
    char text[4096];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text, IMAGES "\"categories\": [%s],\n%s", rows[i].categories, tail);
        support_write_text(json, text);
        if (rows[i].found[0] == '!')
            sets_refuse(json, &four, OCTET_MISMATCH, rows[i].found + 1, NULL);
        else if (strstr(sets_read(json, &four), rows[i].found) == NULL)
            fail_msg("row %zu: %s", i, sets_read(json, &four));
    }
}

static void test_where_pictures_are(void **state) {
    (void)state;
    char place[8192];
    sets_put(directory, "val/1.png", "V");
    sets_put(directory, "val/2.png", "W");
    expect(WHOLE(""), "1.png -1 P\n2.png -1 Q\n");
    assert_int_equal(unlink(support_join(directory, "1.png")), 0);
    expect(WHOLE(""), "1.png -1 V\n2.png -1 W\n");
    assert_int_equal(unlink(support_join(directory, "val/2.png")), 0);
    refuse(WHOLE(""), OCTET_NOT_FOUND, "json:2: ");
    refuse(WHOLE(""), OCTET_NOT_FOUND, "val/2.png: no such picture");
    sets_put(directory, "o/1.png", "O");
    sets_put(directory, "o/2.png", "o");
    (void)snprintf(place, sizeof place, "%s:%s/o", json, directory);
    sets_expect(place, &two, "1.png -1 O\n2.png -1 o\n");
}

static void test_random_damage(void **state) {
    (void)state;
    static const char whole[] =
        WHOLE(ANNOTATION("5", "\"segmentation\": [[1]], " BOX ", \"iscrowd\": 0") "," ANNOTATION("4", BOX));
    char copy[sizeof whole];
    uint64_t seed = 11;
    for (int round = 0; round < 4000; round++) {
        memcpy(copy, whole, sizeof whole);
        for (int i = 0; i < 1 + round % 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[(seed >> 33) % (sizeof whole - 1)] = "0123\"[]{},:.-eax"[(seed >> 24) & 15];
        }
        support_write_file(json, copy, sizeof whole - 1);
        (void)sets_read(json, &two);
        assert_int_equal(oct_alloc_live(), 0);
    }
    for (size_t cut = 0; cut < sizeof whole - 1; cut++) {
        support_write_file(json, whole, cut);
        if (!oct_starts_with(sets_read(json, &two), "BAD_FORMAT: ")) fail_msg("cut at %zu", cut);
    }
}

static void test_faults(void **state) {
    (void)state;
    support_write_text(json, WHOLE(ANNOTATION("0", BOX) "," ANNOTATION("4", BOX)));
    for (int forever = 0; forever < 2; forever++) {
        bool met = true;
        for (uint64_t n = 1; met; n++) {
            assert_true(n < 1000);
            oct_alloc_fail_at(n, forever != 0);
            const char *text = sets_read(json, &two);
            met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            assert_int_equal(oct_starts_with(text, "OUT_OF_MEMORY"), met);
            assert_int_equal(oct_alloc_live(), 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_boxes),      TEST(test_masks_are_passed_over), TEST(test_ids),           TEST(test_fields),
        TEST(test_categories), TEST(test_where_pictures_are),    TEST(test_random_damage), TEST(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
