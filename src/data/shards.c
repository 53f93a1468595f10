/* SPDX-License-Identifier: Apache-2.0 */
/* WebDataset shards: tar files whose members are fields of samples.
 *
 * A member DIRECTORIES/KEY.FIELD belongs to the sample DIRECTORIES/KEY: the key ends at the first dot of the last part,
 * as webdataset splits it. FIELD is read in lower case. A sample is a run of members with one key; it has exactly one
 * picture (a field that is a picture's extension, as a whole) and a field "cls", a whole number that may have blanks
 * round it. Other fields are passed over. Names are text, never paths. Passed over too: directories, what begins with a
 * dot, __MACOSX, names without a dot, links (never followed), devices. Errors: a key that comes again after another,
 * two members of one name, a sample without picture or class, damage of any kind; a shard that just lacks its end
 * blocks is read. */
#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/read.h"

#define BLOCK ((size_t)64 << 10)
#define CLASS_LIMIT 64   /* bytes of a cls member */
#define FIELDS_LIMIT 256 /* of one sample */
#define KEY_BYTES 16     /* of a key's hash */

typedef struct gathered {
    char *key;                  /* heap; NULL: no sample begun */
    char *fields[FIELDS_LIMIT]; /* heap */
    size_t field_count;
    char *picture; /* member's name; heap */
    uint8_t *data;
    size_t size;
    char *link; /* the last member that was a link; heap */
    bool has_label;
    int64_t label;
} gathered;

struct oct_shards {
    const char **names;
    size_t count, next;
    const char *name; /* of the open shard */
    struct archive *archive;
    oct_file file;
    uint64_t at;
    uint8_t *block;
    octet_status read_status;
    locale_t locale;            /* C.UTF-8, so that names in pax headers come as they are; (locale_t)0: none here */
    gathered now;               /* the sample being gathered */
    uint8_t (*keys)[KEY_BYTES]; /* an open hash table of the keys of this shard; all zero: free */
    size_t key_count, key_capacity;
    size_t samples; /* of all shards */
};

/* ---- the archive */

static la_ssize_t read_block(struct archive *archive, void *user, const void **data) {
    oct_shards *shards = user;
    uint64_t left = shards->file.size - shards->at;
    size_t take = left < BLOCK ? (size_t)left : BLOCK;
    shards->read_status = take > 0 ? oct_file_read_at(&shards->file, shards->at, shards->block, take) : OCTET_OK;
    if (shards->read_status != OCTET_OK) {
        archive_set_error(archive, EIO, "cannot be read");
        return -1;
    }
    shards->at += take;
    *data = shards->block;
    return (la_ssize_t)take;
}

static octet_status damaged(const oct_shards *shards) {
    if (shards->read_status != OCTET_OK) return shards->read_status;
    const char *why = archive_error_string(shards->archive);
    int64_t at = archive_read_header_position(shards->archive); /* negative before the first */
    return oct_fail(OCTET_BAD_FORMAT, "%s: at byte %lld of the archive: %s", shards->name, at > 0 ? (long long)at : 0LL,
                    why != NULL ? why : "damaged");
}

static void close_archive(oct_shards *shards) {
    if (shards->archive != NULL) archive_read_free(shards->archive);
    shards->archive = NULL;
    oct_file_close(&shards->file);
    oct_free(shards->keys);
    shards->keys = NULL;
    shards->key_count = shards->key_capacity = 0;
}

static octet_status open_archive(oct_shards *shards) {
    shards->name = shards->names[shards->next++];
    shards->at = 0;
    OCT_TRY(oct_file_open(&shards->file, shards->name));
    shards->archive = archive_read_new();
    if (shards->archive == NULL) return oct_fail_memory();
    if (archive_read_support_filter_gzip(shards->archive) != ARCHIVE_OK)
        return oct_fail(OCTET_UNSUPPORTED, "%s: this libarchive has no gzip", shards->name);
    if (archive_read_support_format_tar(shards->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(shards->archive) != ARCHIVE_OK)
        return oct_fail_memory();
    /* No skip function: every byte is read, so that a file cut inside what is passed over is noticed. */
    if (archive_read_open(shards->archive, shards, NULL, read_block, NULL) != ARCHIVE_OK) return damaged(shards);
    return OCTET_OK;
}

/* ---- the sample being gathered */

static void drop_gathered(gathered *now) {
    for (size_t i = 0; i < now->field_count; i++) oct_free(now->fields[i]);
    oct_free(now->key);
    oct_free(now->picture);
    oct_free(now->data);
    oct_free(now->link);
    *now = (gathered){0};
}

static octet_status fail_sample(const oct_shards *shards, const char *what) {
    oct_fail(OCTET_BAD_FORMAT, "%s: sample %s: %s", shards->name, shards->now.key, what);
    if (shards->now.link != NULL) return oct_detail("%s is a link, which is not followed", shards->now.link);
    if (shards->now.field_count == 0) return OCTET_BAD_FORMAT;
    return oct_detail(
        "its members' extensions, from the first dot of the name on: %s%s%s; the members of a sample follow "
        "each other",
        shards->now.fields[0], shards->now.field_count > 1 ? ", " : "",
        shards->now.field_count > 1 ? shards->now.fields[1] : "");
}

/* Hands the gathered sample out. */
static octet_status finish_sample(oct_shards *shards, oct_sample **sample) {
    gathered *now = &shards->now;
    if (now->picture == NULL) return fail_sample(shards, "no picture");
    if (!now->has_label) return fail_sample(shards, "no .cls member");
    oct_sample *made = oct_calloc(1, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    made->name = oct_sprintf("%s/%s", oct_path_base(shards->name), now->key);
    if (made->name == NULL) {
        oct_free(made);
        return oct_fail_memory();
    }
    made->label = (int32_t)now->label;
    made->image_id = (int64_t)shards->samples++;
    made->data = now->data;
    made->size = now->size;
    now->data = NULL;
    drop_gathered(now);
    *sample = made;
    return OCTET_OK;
}

static size_t key_place(const uint8_t (*keys)[KEY_BYTES], size_t capacity, const uint8_t hash[KEY_BYTES]) {
    static const uint8_t none[KEY_BYTES];
    uint64_t start;
    memcpy(&start, hash, sizeof start);
    size_t place = (size_t)start & (capacity - 1);
    while (memcmp(keys[place], none, KEY_BYTES) != 0 && memcmp(keys[place], hash, KEY_BYTES) != 0)
        place = (place + 1) & (capacity - 1);
    return place;
}

static octet_status grow_keys(oct_shards *shards) {
    if (shards->key_count * 2 < shards->key_capacity) return OCTET_OK;
    static const uint8_t none[KEY_BYTES];
    size_t capacity = shards->key_capacity == 0 ? 256 : shards->key_capacity * 2;
    uint8_t(*keys)[KEY_BYTES] = oct_calloc(capacity, KEY_BYTES);
    if (keys == NULL) return oct_fail_memory();
    for (size_t i = 0; i < shards->key_capacity; i++) {
        if (memcmp(shards->keys[i], none, KEY_BYTES) == 0) continue;
        size_t place = key_place((const uint8_t(*)[KEY_BYTES])keys, capacity, shards->keys[i]);
        memcpy(keys[place], shards->keys[i], KEY_BYTES);
    }
    oct_free(shards->keys);
    shards->keys = keys;
    shards->key_capacity = capacity;
    return OCTET_OK;
}

/* A key comes once in a shard. */
static octet_status note_key(oct_shards *shards, const char *key, const char *member) {
    uint8_t hash[OCT_SHA256_SIZE];
    OCT_TRY(grow_keys(shards));
    OCT_TRY(oct_sha256_of(key, strlen(key), hash));
    size_t place = key_place((const uint8_t(*)[KEY_BYTES])shards->keys, shards->key_capacity, hash);
    if (memcmp(shards->keys[place], hash, KEY_BYTES) == 0) {
        oct_fail(OCTET_BAD_FORMAT, "%s: %s: the key %s comes again after another", shards->name, member, key);
        return oct_hint("the members of a sample must follow each other: tar --sort=name writes them so");
    }
    memcpy(shards->keys[place], hash, KEY_BYTES);
    shards->key_count++;
    return OCTET_OK;
}

/* ---- members */

/* Where the key of a member ends (its first dot in the last part); NULL: it belongs to no sample. */
static const char *key_end(const char *name) {
    const char *base = oct_path_base(name);
    if (base[0] == '.' || oct_starts_with(name, "__MACOSX/") || strstr(name, "/__MACOSX/") != NULL) return NULL;
    return strchr(base, '.');
}

static octet_status read_member(oct_shards *shards, const char *member, size_t limit, uint8_t **data, size_t *size) {
    size_t capacity = 0;
    *data = NULL;
    *size = 0;
    for (;;) {
        if (!oct_grow((void **)data, 1, *size + BLOCK, &capacity)) return oct_fail_memory();
        la_ssize_t got = archive_read_data(shards->archive, *data + *size, BLOCK);
        if (got < 0) {
            damaged(shards);
            return oct_detail("in the member %s", member);
        }
        if (got == 0) return OCTET_OK;
        *size += (size_t)got;
        if (*size > limit) return oct_fail(OCTET_LIMIT, "%s: %s: more than %zu bytes", shards->name, member, limit);
    }
}

static octet_status read_class(oct_shards *shards, const oct_set *set, const char *member) {
    uint8_t *data;
    size_t size;
    octet_status status = read_member(shards, member, CLASS_LIMIT, &data, &size);
    if (status == OCTET_OK) {
        size_t start = 0, end = size;
        char text[CLASS_LIMIT + 1] = "";
        while (start < end && isspace(data[start])) start++;
        while (end > start && isspace(data[end - 1])) end--;
        memcpy(text, data + start, end - start);
        text[end - start] = '\0';
        shards->now.has_label =
            strlen(text) == end - start && oct_parse_int(text, INT64_MIN, INT64_MAX, &shards->now.label);
        if (!shards->now.has_label) {
            status =
                oct_fail(OCTET_BAD_FORMAT, "%s: %s: expected a class index, found \"%s\"", shards->name, member, text);
        } else {
            int64_t classes = set->options.name_count > 0 ? (int64_t)set->options.name_count : (int64_t)INT32_MAX;
            if (shards->now.label < 0 || shards->now.label >= classes)
                status = oct_fail(OCTET_MISMATCH, "%s: %s: expected a class index of 0 to %lld, found %lld",
                                  shards->name, member, (long long)classes - 1, (long long)shards->now.label);
        }
    }
    oct_free(data);
    return status;
}

static octet_status add_field(oct_shards *shards, const char *member, const char *field) {
    gathered *now = &shards->now;
    char *lower = oct_strdup(field);
    if (lower == NULL) return oct_fail_memory();
    for (char *at = lower; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);
    for (size_t i = 0; i < now->field_count; i++) {
        if (strcmp(now->fields[i], lower) != 0) continue;
        oct_free(lower);
        return oct_fail(OCTET_BAD_FORMAT, "%s: %s: the sample has a member of this name already", shards->name, member);
    }
    if (now->field_count == FIELDS_LIMIT) {
        oct_free(lower);
        return oct_fail(OCTET_LIMIT, "%s: %s: more than %d members in one sample", shards->name, member, FIELDS_LIMIT);
    }
    now->fields[now->field_count++] = lower;
    return OCTET_OK;
}

static octet_status take_member(oct_shards *shards, const oct_set *set, const char *member, const char *field) {
    gathered *now = &shards->now;
    OCT_TRY(add_field(shards, member, field));
    const char *lower = now->fields[now->field_count - 1];
    if (strcmp(lower, "cls") == 0) return read_class(shards, set, member);
    if (!oct_is_picture_extension(lower)) return OCTET_OK;
    if (now->picture != NULL)
        return oct_fail(OCTET_BAD_FORMAT, "%s: %s: a second picture beside %s", shards->name, member, now->picture);
    now->picture = oct_strdup(member);
    if (now->picture == NULL) return oct_fail_memory();
    return read_member(shards, member, OCT_SET_PICTURE_LIMIT, &now->data, &now->size);
}

/* One member; a sample comes out when the member begins another. */
static octet_status pass_member(oct_shards *shards, const oct_set *set, struct archive_entry *entry,
                                oct_sample **sample) {
    bool link = archive_entry_hardlink(entry) != NULL || archive_entry_filetype(entry) == AE_IFLNK;
    if (!link && archive_entry_filetype(entry) != AE_IFREG) return OCTET_OK;
    const char *name = archive_entry_pathname(entry);
    if (name == NULL) name = archive_entry_pathname_utf8(entry);
    if (name == NULL) return oct_fail(OCTET_BAD_FORMAT, "%s: a member without a readable name", shards->name);
    const char *dot = key_end(name);
    if (dot == NULL) return OCTET_OK;
    size_t length = (size_t)(dot - name);
    char *member = oct_strdup(name), *key = oct_strndup(name, length);
    octet_status status = member != NULL && key != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK && (shards->now.key == NULL || strcmp(shards->now.key, key) != 0)) {
        if (shards->now.key != NULL) status = finish_sample(shards, sample);
        if (status == OCTET_OK) status = note_key(shards, key, member);
        if (status == OCTET_OK) {
            shards->now.key = key;
            key = NULL;
        }
    }
    if (status == OCTET_OK && link) {
        oct_free(shards->now.link);
        shards->now.link = member;
        member = NULL;
    } else if (status == OCTET_OK) {
        status = take_member(shards, set, member, member + length + 1);
    }
    oct_free(key);
    oct_free(member);
    return status;
}

static octet_status next_sample(oct_shards *shards, const oct_set *set, oct_sample **sample) {
    while (*sample == NULL) {
        if (shards->archive == NULL) {
            if (shards->next == shards->count) return OCTET_OK;
            OCT_TRY(open_archive(shards));
        }
        struct archive_entry *entry;
        int got = archive_read_next_header(shards->archive, &entry);
        if (got == ARCHIVE_EOF) {
            if (shards->now.key != NULL) OCT_TRY(finish_sample(shards, sample));
            close_archive(shards);
            continue;
        }
        if (got != ARCHIVE_OK) return damaged(shards);
        OCT_TRY(pass_member(shards, set, entry, sample));
    }
    return OCTET_OK;
}

/* ---- */

octet_status oct_shards_next(oct_set *set, oct_sample **sample) {
    oct_shards *shards = set->shards;
    locale_t before = shards->locale != (locale_t)0 ? uselocale(shards->locale) : (locale_t)0;
    octet_status status = next_sample(shards, set, sample);
    if (before != (locale_t)0) (void)uselocale(before);
    if (status == OCTET_OK && *sample == NULL && shards->samples == 0)
        return oct_fail(OCTET_INVALID_ARGUMENT, "%s: no samples in it", shards->names[0]);
    return status;
}

octet_status oct_shards_open(oct_set *set, const char **names, size_t count) {
    oct_shards *shards = oct_calloc(1, sizeof *shards);
    if (shards == NULL) return oct_fail_memory();
    set->kind = OCT_SET_SHARDS;
    set->order = "cls";
    set->shards = shards;
    shards->names = names;
    shards->count = count;
    shards->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    shards->block = oct_alloc(BLOCK);
    return shards->block != NULL ? OCTET_OK : oct_fail_memory();
}

void oct_shards_close(oct_shards *shards) {
    if (shards == NULL) return;
    close_archive(shards);
    drop_gathered(&shards->now);
    if (shards->locale != (locale_t)0) freelocale(shards->locale);
    oct_free(shards->block);
    oct_free(shards);
}
