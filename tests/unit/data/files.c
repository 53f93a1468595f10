/* SPDX-License-Identifier: Apache-2.0 */
/* Label lists and image folders: every line, order, what counts, and what does not. */
#include "unit/data/sets.h"

static const char *const ten_names[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const oct_set_options ten = {.names = ten_names, .name_count = 10};

static char *directory;

static int set_up(void **state) {
    (void)state;
    directory = support_temporary_directory();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    sets_drop(directory);
    assert_int_equal(oct_alloc_live(), 0);
    return 0;
}

/* ---- label lists */

static void list(const char *text) {
    sets_put(directory, "a.jpg", "A");
    sets_put(directory, "deep/b c.jpg", "B");
    sets_put(directory, "labels.txt", text);
}

static void test_list(void **state) {
    (void)state;
    list("deep/b c.jpg 3\na.jpg 9\n");
    sets_expect(directory, &ten, "deep/b c.jpg 3 B\na.jpg 9 A\n");
    list("\xef\xbb\xbf"
         "a.jpg 0\r\n\r\ndeep/b c.jpg 1");
    sets_expect(directory, &ten, "a.jpg 0 A\ndeep/b c.jpg 1 B\n");
    list("a.jpg 10\n");
    sets_expect(directory, NULL, "a.jpg 10 A\n");
}

static void test_part(void **state) {
    (void)state;
    list("deep/b c.jpg 3\na.jpg 9\n");
    const int64_t second[] = {1}, both[] = {0, 1};
    oct_set_options part = {.names = ten_names, .name_count = 10, .numbers = second, .number_count = 1};
    sets_expect(directory, &part, "a.jpg 9 A\n");
    part.numbers = both;
    part.number_count = 2;
    sets_expect(directory, &part, "deep/b c.jpg 3 B\na.jpg 9 A\n");
    part.number_count = 0;
    sets_expect(directory, &part, "");
    const int64_t falls[] = {1, 0}, twice[] = {1, 1}, beyond[] = {2}, below[] = {-1};
    const int64_t *const wrong[] = {falls, twice, beyond, below};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        part.numbers = wrong[i];
        part.number_count = i < 2 ? 2 : 1;
        sets_refuse(directory, &part, OCTET_INVALID_ARGUMENT, "part of a set: expected sample numbers that rise", NULL);
    }
}

static void test_list_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
        octet_status status;
    } wrong[] = {
        {"a.jpg 1\nx\n", "labels.txt:2: expected a name, a space and a class index, found \"x\"", OCTET_BAD_FORMAT},
        {"a.jpg 1 \n", "labels.txt:1: expected a class index after the last space, found \"\"", OCTET_BAD_FORMAT},
        {"a.jpg one\n", "found \"one\"", OCTET_BAD_FORMAT},
        {"a.jpg 1.0\n", "found \"1.0\"", OCTET_BAD_FORMAT},
        {"a.jpg 10\n", "labels.txt:1: expected a class index of 0 to 9, found 10", OCTET_MISMATCH},
        {"a.jpg -1\n", "found -1", OCTET_MISMATCH},
        {" 1\n", "labels.txt:1: expected a name inside", OCTET_BAD_FORMAT},
        {"/etc/passwd 1\n", "found \"/etc/passwd\"", OCTET_BAD_FORMAT},
        {"deep/../../a 1\n", "found \"deep/../../a\"", OCTET_BAD_FORMAT},
        {"..  1\n", "no such picture", OCTET_NOT_FOUND}, /* a name of two dots and a space */
        {"a.jpg 1\nb.jpg 1\n", "labels.txt:2: ", OCTET_NOT_FOUND},
        {"a.jpg 1\ndeep/b c.jpg 1\na.jpg 2\n", "labels.txt:3: a.jpg is on line 1 too", OCTET_BAD_FORMAT},
        {"\n\n", "no line in it", OCTET_BAD_FORMAT}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        list(wrong[i].text);
        sets_refuse(directory, &ten, wrong[i].status, wrong[i].words, NULL);
    }
    support_write_file(support_join(directory, "labels.txt"), "a.jpg\0 1\n", 9);
    sets_refuse(directory, &ten, OCTET_BAD_FORMAT, "labels.txt:1: a zero byte", NULL);
}

static void test_list_damaged(void **state) {
    (void)state;
    static const char whole[] = "a.jpg 1\ndeep/b c.jpg 2\n";
    char copy[sizeof whole];
    uint64_t seed = 3;
    list(whole);
    for (int round = 0; round < 2000; round++) {
        memcpy(copy, whole, sizeof whole);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        copy[(seed >> 33) % (sizeof whole - 1)] = (char)(seed >> 24);
        support_write_file(support_join(directory, "labels.txt"), copy, sizeof whole - 1);
        (void)sets_read(directory, &ten);
        assert_int_equal(oct_alloc_live(), 0);
    }
}

/* ---- image folders */

static void folder(void) {
    static const char *const classes[] = {"1", "10", "2", "B", "a", "n01440764", "\xc3\xa9t\xc3\xa9", "with space"};
    char name[256];
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        (void)snprintf(name, sizeof name, "%s/x.JPEG", classes[i]);
        sets_put(directory, name, "J");
    }
    sets_put(directory, "a/deep/y.jpg", "Y");
    sets_put(directory, ".DS_Store", "x");
    sets_put(directory, "2/.hidden.jpg", "x");
    sets_put(directory, "B/._x2.jpg", "x");
    sets_put(directory, "2/notes.txt", "x");
    sets_put(directory, "B/w.webp", "W");
}

static void test_folder(void **state) {
    (void)state;
    folder();
    sets_expect(
        directory, &ten,
        "1/x.JPEG 0 J\n10/x.JPEG 1 J\n2/x.JPEG 2 J\nB/w.webp 3 W\nB/x.JPEG 3 J\na/deep/y.jpg 4 Y\na/x.JPEG 4 J\n"
        "n01440764/x.JPEG 5 J\nwith space/x.JPEG 6 J\n\xc3\xa9t\xc3\xa9/x.JPEG 7 J\n");
    oct_set *set = NULL;
    assert_int_equal(oct_set_open(&set, directory, &ten), OCTET_OK);
    assert_string_equal(oct_set_order(set), "class directories in byte order");
    assert_int_equal(oct_set_count(set), 10);
    assert_non_null(strstr(oct_set_warning(set, 0), "1 file left out"));
    assert_non_null(strstr(oct_set_warning(set, 0), "2/notes.txt"));
    assert_null(oct_set_warning(set, 1));
    oct_set_close(set);
}

static void test_names_decide(void **state) {
    (void)state;
    static const char *const names[] = {
        "with space", "\xc3\xa9t\xc3\xa9", "n01440764 tench, Tinca", "a", "B", "1", "2", "10", "empty"};
    oct_set_options by_name = {.names = names, .name_count = 9};
    static const char *const wanted =
        "1/x.JPEG 5 J\n10/x.JPEG 7 J\n2/x.JPEG 6 J\nB/w.webp 4 W\nB/x.JPEG 4 J\na/deep/y.jpg 3 Y\n"
        "a/x.JPEG 3 J\nn01440764/x.JPEG 2 J\nwith space/x.JPEG 0 J\n\xc3\xa9t\xc3\xa9/x.JPEG 1 J\n";
    folder();
    sets_expect(directory, &by_name, wanted);
    sets_put(directory, "empty/.keep", "");
    sets_expect(directory, &by_name, wanted);
    by_name.names_decide = true;
    by_name.name_count = 7;
    sets_refuse(directory, &by_name, OCTET_MISMATCH, "10: no one class of that name", NULL);
}

static void test_folder_refused(void **state) {
    (void)state;
    static const oct_set_options three = {.names = ten_names, .name_count = 3};
    folder();
    sets_refuse(directory, &three, OCTET_MISMATCH, "B: expected a class index of 0 to 2, found 3", NULL);
    sets_put(directory, "empty/.keep", "");
    sets_refuse(directory, &ten, OCTET_BAD_FORMAT, "empty: a class directory without pictures", "--classes", NULL);
    sets_put(directory, "c.png", "x");
    sets_refuse(directory, &ten, OCTET_BAD_FORMAT, "c.png: a picture outside a class directory", NULL);
}

static void test_links(void **state) {
    (void)state;
    sets_put(directory, "a/x.jpg", "J");
    assert_int_equal(symlink("x.jpg", support_join(directory, "a/y.jpg")), 0);
    sets_expect(directory, &ten, "a/x.jpg 0 J\na/y.jpg 0 J\n");
    assert_int_equal(symlink("nowhere", support_join(directory, "a/z.jpg")), 0);
    sets_refuse(directory, &ten, OCTET_NOT_FOUND, "a/z.jpg", NULL);
    assert_int_equal(unlink(support_join(directory, "a/z.jpg")), 0);
    assert_int_equal(symlink(".", support_join(directory, "a/round")), 0);
    sets_refuse(directory, &ten, OCTET_LIMIT, "inside each other", NULL);
}

static void test_no_set(void **state) {
    (void)state;
    sets_refuse(directory, &ten, OCTET_INVALID_ARGUMENT, "no pictures in it", NULL);
    sets_refuse("nowhere", &ten, OCTET_NOT_FOUND, "nowhere: no such data set", NULL);
    sets_refuse("val.parquet", &ten, OCTET_UNSUPPORTED, "Parquet is not read", "python3 -c", NULL);
    sets_put(directory, "data/val.parquet", "x");
    sets_refuse(directory, &ten, OCTET_UNSUPPORTED, "val.parquet: Parquet", "labels.txt", NULL);
    sets_put(directory, "other.zip", "x");
    sets_refuse(support_join(directory, "other.zip"), &ten, OCTET_UNSUPPORTED, "not a data set", NULL);
}

static void fingerprint(char hex[OCT_SHA256_HEX]) {
    oct_set *set = NULL;
    oct_sample *sample = NULL;
    assert_int_equal(oct_set_open(&set, directory, &ten), OCTET_OK);
    while (oct_set_next(set, &sample) == OCTET_OK && sample != NULL) oct_sample_free(sample);
    oct_set_fingerprint(set, hex);
    oct_set_close(set);
}

/* The value was computed by Python's hashlib from the words in set.h. */
static void test_fingerprint(void **state) {
    (void)state;
    char first[OCT_SHA256_HEX], second[OCT_SHA256_HEX];
    list("a.jpg 1\n");
    fingerprint(first);
    assert_string_equal(first, "cc99ff5ce11a1422c94d17c9e842cfac33a70773d1739975821744b602d3f441");
    list("a.jpg 2\n");
    fingerprint(second);
    assert_string_not_equal(first, second);
    list("a.jpg 1\n");
    sets_put(directory, "a.jpg", "C");
    fingerprint(second);
    assert_string_not_equal(first, second);
}

static void test_faults(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 0) folder();
        if (kind == 1) list("a.jpg 1\ndeep/b c.jpg 2\n");
        for (int forever = 0; forever < 2; forever++) {
            bool met = true;
            for (uint64_t n = 1; met; n++) {
                assert_true(n < 1000);
                oct_alloc_fail_at(n, forever != 0);
                const char *text = sets_read(directory, &ten);
                met = oct_alloc_fault_met();
                oct_alloc_fail_at(0, false);
                assert_int_equal(oct_starts_with(text, "OUT_OF_MEMORY"), met);
                assert_int_equal(oct_alloc_live(), 0);
            }
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_list),   TEST(test_part),         TEST(test_list_refused),   TEST(test_list_damaged),
        TEST(test_folder), TEST(test_names_decide), TEST(test_folder_refused), TEST(test_links),
        TEST(test_no_set), TEST(test_fingerprint),  TEST(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
