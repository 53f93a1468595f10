/* SPDX-License-Identifier: Apache-2.0 */
/* Shards: keys and extensions, half samples, hostile members, damage; lists and braces. */
#include "unit/data/sets.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

static const oct_set_options thousand = {.names = (const char *const[1000]){"a"}, .name_count = 1000};

typedef struct kept {
    char *directory;
    const char *tar;
} kept;

static int set_up(void **state) {
    static kept made;
    made.directory = support_temporary_directory();
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s/s.tar", made.directory);
    made.tar = path;
    *state = &made;
    return 0;
}

static int tear_down(void **state) {
    kept *made = *state;
    sets_drop(made->directory);
    assert_int_equal(oct_alloc_live(), 0);
    return 0;
}

#define TAR(...)                                                                                                       \
    kept *here = *state;                                                                                               \
    sets_tar(here->tar, (const sets_member[]){__VA_ARGS__, {0}})

static void test_plain(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"}, {"b.JPEG", '0', "K"}, {"b.CLS", '0', " 5 \n"});
    sets_expect(here->tar, &thousand, "s.tar/a 3 J\ns.tar/b 5 K\n");
}

static void test_part(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"}, {"b.jpg", '0', "K"}, {"b.cls", '0', "5"}, {"c.jpg", '0', "L"},
        {"c.cls", '0', "6"});
    const int64_t numbers[] = {0, 2, 3};
    oct_set_options part = {.names = thousand.names, .name_count = 1000, .numbers = numbers, .number_count = 2};
    sets_expect(here->tar, &part, "s.tar/a 3 J\ns.tar/c 6 L\n");
    part.number_count = 3;
    sets_refuse(here->tar, &part, OCTET_INVALID_ARGUMENT, "expected sample 3, found 3 samples", NULL);
}

static void test_keys(void **state) {
    TAR({"s/22.0/1.png", '0', "P"}, {"s/22.0/1.cls", '0', "1"}, {"s/22.1/1.png", '0', "Q"}, {"s/22.1/1.cls", '0', "2"},
        {"./", '5', ""}, {"./x/", '5', ""}, {"./x/b.cls", '0', "2"}, {"./x/b.jpg", '0', "J"});
    sets_expect(here->tar, &thousand, "s.tar/s/22.0/1 1 P\ns.tar/s/22.1/1 2 Q\ns.tar/./x/b 2 J\n");
}

static void test_a_dot_in_the_name_ends_the_key(void **state) {
    TAR({"img.v2.0.jpg", '0', "J"}, {"img.v2.0.cls", '0', "1"}, {"img.v2.1.jpg", '0', "J"}, {"img.v2.1.cls", '0', "2"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "sample img: no picture", "v2.0.jpg", NULL);
}

static void test_other_fields_are_passed_over(void **state) {
    TAR({"a.json", '0', "{\"label\": 9}"}, {"a.cls", '0', "7"}, {"a.seg.png", '0', "P"}, {"a.jpg", '0', "J"},
        {"a.txt", '0', "seven"});
    sets_expect(here->tar, &thousand, "s.tar/a 7 J\n");
}

static void test_what_no_sample_has(void **state) {
    TAR({"._a.jpg", '0', "x"}, {"a.jpg", '0', "J"}, {".DS_Store", '0', "x"}, {"a.cls", '0', "1"},
        {"README", '0', "hello"}, {"__MACOSX/._a.jpg", '0', "x"}, {"__MACOSX/b.jpg", '0', "x"});
    sets_expect(here->tar, &thousand, "s.tar/a 1 J\n");
}

static void test_interleaved(void **state) {
    TAR({"a.jpg", '0', "J"}, {"b.jpg", '0', "J"}, {"a.cls", '0', "1"}, {"b.cls", '0', "2"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "s.tar: sample a: no .cls member", "follow each other", NULL);
}

static void test_a_key_that_comes_again(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "1"}, {"b.jpg", '0', "J"}, {"b.cls", '0', "2"}, {"a.jpg", '0', "J"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "a.jpg: the key a comes again", NULL);
}

static void test_half_samples(void **state) {
    TAR({"a.jpg", '0', "J"}, {"b.jpg", '0', "J"}, {"b.cls", '0', "1"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "sample a: no .cls member", NULL);
    sets_tar(here->tar, (const sets_member[]){{"a.jpg", '0', "J"}, {"a.cls", '0', "1"}, {"b.cls", '0', "1"}, {0}});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "sample b: no picture", NULL);
}

static void test_two_of_one(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "1"}, {"a.cls", '0', "2"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "a.cls: the sample has a member of this name", NULL);
    sets_tar(here->tar, (const sets_member[]){{"a.jpg", '0', "J"}, {"a.png", '0', "P"}, {"a.cls", '0', "1"}, {0}});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "a.png: a second picture beside a.jpg", NULL);
}

static void test_labels(void **state) {
    static const char *const wrong[] = {"cat", "", "1.0", "0x1", "1 2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TAR({"a.jpg", '0', "J"}, {"a.cls", '0', wrong[i]});
        sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "s.tar: a.cls: expected a class index, found", wrong[i],
                    NULL);
    }
    static const char *const outside[] = {"-1", "1000"};
    for (size_t i = 0; i < 2; i++) {
        TAR({"a.jpg", '0', "J"}, {"a.cls", '0', outside[i]});
        sets_refuse(here->tar, &thousand, OCTET_MISMATCH, "s.tar: a.cls: expected a class index of 0 to 999",
                    outside[i], NULL);
    }
}

static void test_hostile_members(void **state) {
    TAR({"a.jpg", '2', "/etc/passwd"}, {"a.cls", '0', "1"});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "sample a: no picture", "a.jpg is a link", NULL);
    sets_tar(here->tar, (const sets_member[]){{"a.jpg", '1', "/etc/passwd"}, {"a.cls", '0', "1"}, {0}});
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "a.jpg is a link", NULL);
    sets_tar(
        here->tar,
        (const sets_member[]){
            {"../../b.jpg", '0', "J"}, {"../../b.cls", '0', "2"}, {"/c.jpg", '0', "K"}, {"/c.cls", '0', "3"}, {0}});
    sets_expect(here->tar, &thousand, "s.tar/../../b 2 J\ns.tar//c 3 K\n");
    assert_int_equal(access(support_join(here->directory, "../../b.jpg"), F_OK), -1);
}

/* Any cut is an error, but at the end of a whole sample, as a shard without its end blocks is. */
static void test_cut(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"}, {"a.txt", '0', "passed over"}, {"b.jpg", '0', "K"},
        {"b.cls", '0', "4"});
    size_t size = 0;
    char *whole = support_read_text(here->tar, &size);
    assert_int_equal(size, 11 * 512 + 512);
    for (size_t cut = 1; cut < size; cut++) {
        support_write_file(here->tar, whole, cut);
        const char *text = sets_read(here->tar, &thousand);
        bool sample_ends = cut == 4 * 512 || cut == 6 * 512;
        bool all = cut >= 10 * 512;
        if (all && cut % 512 == 0) assert_string_equal(text, "s.tar/a 3 J\ns.tar/b 4 K\n");
        if (sample_ends) assert_string_equal(text, "s.tar/a 3 J\n");
        if (!all && !sample_ends && !oct_starts_with(text, "BAD_FORMAT: ")) fail_msg("cut at %zu: %s", cut, text);
    }
    free(whole);
}

static void test_damage(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"});
    size_t size = 0;
    char *whole = support_read_text(here->tar, &size);
    whole[150] ^= 1;
    support_write_file(here->tar, whole, size);
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "s.tar: at byte 0 of the archive: ", NULL);
    memset(whole, 0x55, size);
    support_write_file(here->tar, whole, size);
    sets_refuse(here->tar, &thousand, OCTET_BAD_FORMAT, "s.tar: at byte ", NULL);
    free(whole);
    support_write_text(here->tar, "");
    sets_refuse(here->tar, &thousand, OCTET_INVALID_ARGUMENT, "s.tar: no samples in it", NULL);
}

static void test_random_damage(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"}, {"b.jpg", '2', "K"}, {"b.png", '0', "4"}, {"b.cls", '0', "4"});
    size_t size = 0;
    uint64_t seed = 7;
    char *whole = support_read_text(here->tar, &size), *copy = malloc(size);
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, whole, size);
        for (int i = 0; i < 1 + round % 4; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[(seed >> 33) % size] = (char)(seed >> 24);
        }
        support_write_file(here->tar, copy, size);
        (void)sets_read(here->tar, &thousand);
        assert_int_equal(oct_alloc_live(), 0);
    }
    free(copy);
    free(whole);
}

/* By libarchive's own writer: long names and other alphabets in pax headers, read whatever the locale is; gzip. */
static void write_pax(const char *path, bool compressed) {
    static const char *const names[] = {"\xc3\xa9t\xc3\xa9/\xe7\x8c\xab.jpg", "\xc3\xa9t\xc3\xa9/\xe7\x8c\xab.cls"};
    static const char *const data[] = {"J", "3"};
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8")); /* the writer's need */
    struct archive *out = archive_write_new();
    archive_write_set_format_pax(out);
    archive_write_set_options(out, "hdrcharset=UTF-8");
    if (compressed) archive_write_add_filter_gzip(out);
    assert_int_equal(archive_write_open_filename(out, path), ARCHIVE_OK);
    for (int i = 0; i < 2; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_update_pathname_utf8(entry, names[i]);
        archive_entry_set_size(entry, 1);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_write_header(out, entry);
        assert_int_equal(archive_write_data(out, data[i], 1), 1);
        archive_entry_free(entry);
    }
    archive_write_free(out);
    assert_non_null(setlocale(LC_CTYPE, "C"));
}

static void test_pax_and_gzip(void **state) {
    kept *here = *state;
    const char *path = support_join(here->directory, "p.tar.gz");
    write_pax(here->tar, false);
    sets_expect(here->tar, &thousand, "s.tar/\xc3\xa9t\xc3\xa9/\xe7\x8c\xab 3 J\n");
    write_pax(path, true);
    sets_expect(path, &thousand, "p.tar.gz/\xc3\xa9t\xc3\xa9/\xe7\x8c\xab 3 J\n");
    size_t size = 0;
    char *whole = support_read_text(path, &size);
    for (size_t cut = 1; cut < size; cut += 3) {
        support_write_file(path, whole, cut);
        const char *text = sets_read(path, &thousand);
        if (strchr(text, ':') == NULL && cut + 8 < size) fail_msg("cut at %zu: %s", cut, text);
    }
    free(whole);
}

static void test_lists(void **state) {
    kept *here = *state;
    char place[8192];
    for (int i = 8; i < 12; i++) {
        char name[32], cls[8];
        (void)snprintf(name, sizeof name, "t-%02d.tar", i);
        (void)snprintf(cls, sizeof cls, "%d", i);
        sets_tar(support_join(here->directory, name),
                 (const sets_member[]){{"a.jpg", '0', "J"}, {"a.cls", '0', cls}, {0}});
    }
    static const char all[] = "t-08.tar/a 8 J\nt-09.tar/a 9 J\nt-10.tar/a 10 J\nt-11.tar/a 11 J\n";
    (void)snprintf(place, sizeof place, "%s/t-{08..11}.tar", here->directory);
    sets_expect(place, &thousand, all);
    (void)snprintf(place, sizeof place, "%s/t-{0,1}{8..9}.tar", here->directory);
    sets_refuse(place, &thousand, OCTET_NOT_FOUND, "t-18.tar: no such shard", NULL);
    (void)snprintf(place, sizeof place, "%s/t-{11,08}.tar,%s/t-09.tar", here->directory, here->directory);
    sets_expect(place, &thousand, "t-11.tar/a 11 J\nt-08.tar/a 8 J\nt-09.tar/a 9 J\n");
    sets_expect(here->directory, &thousand, all);
    static const char *const wrong[] = {"{",      "{1}.tar",         "{1..}.tar", "{2..1}.tar", "{a,{b,c}}.tar",
                                        "a.tar,", "{0..9999999}.tar"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *text = sets_read(wrong[i], &thousand);
        if (!oct_starts_with(text, "INVALID_ARGUMENT: ") && !oct_starts_with(text, "LIMIT: "))
            fail_msg("%s: %s", wrong[i], text);
    }
}

static void test_faults(void **state) {
    TAR({"a.jpg", '0', "J"}, {"a.cls", '0', "3"}, {"a.txt", '0', "t"}, {"b.jpg", '0', "K"}, {"b.cls", '0', "4"});
    for (int forever = 0; forever < 2; forever++) {
        bool met = true;
        for (uint64_t n = 1; met; n++) {
            assert_true(n < 500);
            oct_alloc_fail_at(n, forever != 0);
            const char *text = sets_read(here->tar, &thousand);
            met = oct_alloc_fault_met();
            oct_alloc_fail_at(0, false);
            assert_true(oct_starts_with(text, met ? "OUT_OF_MEMORY" : "s.tar/a 3 J\ns.tar/b 4 K\n"));
            assert_int_equal(oct_alloc_live(), 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_plain),
        TEST(test_part),
        TEST(test_keys),
        TEST(test_interleaved),
        TEST(test_a_dot_in_the_name_ends_the_key),
        TEST(test_half_samples),
        TEST(test_other_fields_are_passed_over),
        TEST(test_two_of_one),
        TEST(test_what_no_sample_has),
        TEST(test_labels),
        TEST(test_a_key_that_comes_again),
        TEST(test_hostile_members),
        TEST(test_cut),
        TEST(test_damage),
        TEST(test_random_damage),
        TEST(test_pax_and_gzip),
        TEST(test_lists),
        TEST(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
