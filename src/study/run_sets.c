/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of a study: which pictures they are, and that none is in two of them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "eval/json.h"
#include "study/run_internal.h"

const char *const study_role_names[ROLE_COUNT] = {"calibrate", "select", "verdict"};

void study_listing_free(study_listing *listing) {
    for (size_t i = 0; i < listing->count; i++) free(listing->names[i]);
    free(listing->names);
    free(listing->hashes);
    free(listing->labels);
    *listing = (study_listing){0};
}

bool study_listing_add(study_listing *listing, const char *name, const char *hash, int32_t label) {
    size_t n = listing->count;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        size_t wanted = n == 0 ? 1 : 2 * n;
        char **names = realloc(listing->names, wanted * sizeof *names);
        if (names != NULL) listing->names = names;
        char(*hashes)[65] = realloc(listing->hashes, wanted * sizeof *hashes);
        if (hashes != NULL) listing->hashes = hashes;
        int32_t *labels = realloc(listing->labels, wanted * sizeof *labels);
        if (labels != NULL) listing->labels = labels;
        if (names == NULL || hashes == NULL || labels == NULL) return false;
    }
    listing->names[n] = strdup(name);
    if (listing->names[n] == NULL) return false;
    memset(listing->hashes[n], 0, sizeof listing->hashes[n]);
    strncpy(listing->hashes[n], hash, sizeof listing->hashes[n] - 1);
    listing->labels[n] = label;
    listing->count++;
    return true;
}

static int rising(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The hash of a set: over its pictures' hashes, in order. */
static octet_status hash_set(const study_listing *listing, const role_set *set, char hex[OCT_SHA256_HEX]) {
    uint8_t digest[OCT_SHA256_SIZE];
    oct_sha256 hash;
    octet_status status = OCTET_OK;
    OCT_TRY(oct_sha256_begin(&hash));
    for (size_t i = 0; status == OCTET_OK && i < set->part.count; i++)
        status = oct_sha256_update(&hash, listing->hashes[set->numbers[i]], 64);
    if (status != OCTET_OK) {
        oct_sha256_drop(&hash);
        return status;
    }
    OCT_TRY(oct_sha256_end(&hash, digest));
    oct_sha256_hex(digest, hex);
    return OCTET_OK;
}

/* Places differ from machine to machine, so only the data set's name is in it. */
static octet_status describe_set(study_role role, const char *data, const study_listing *listing, role_set *set) {
    char hash[OCT_SHA256_HEX];
    OCT_TRY(hash_set(listing, set, hash));
    json_t *pictures = json_array();
    for (size_t i = 0; i < set->part.count; i++) {
        size_t n = (size_t)set->numbers[i];
        json_array_append_new(pictures, json_pack("{s:o, s:s, s:i}", "name", json_text(listing->names[n]), "sha256",
                                                  listing->hashes[n], "label", (int)listing->labels[n]));
    }
    set->body = json_pack("{s:s, s:s, s:s, s:s, s:o}", "kind", "set", "name", study_role_names[role], "data", data,
                          "sha256", hash, "pictures", pictures);
    if (set->body == NULL || json_array_size(pictures) != set->part.count) return oct_fail_memory();
    return evidence_id(EVIDENCE_ARTIFACT, json_incref(set->body), set->id);
}

static octet_status resolve_roles(running *r, const study_listing *listings) {
    const study_file *study = r->study;
    const char *const **names = calloc(study->data_count, sizeof *names);
    size_t *counts = calloc(study->data_count, sizeof *counts);
    octet_status status = names != NULL && counts != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t d = 0; status == OCTET_OK && d < study->data_count; d++) {
        names[d] = (const char *const *)listings[d].names;
        counts[d] = listings[d].count;
    }
    for (int role = 0; status == OCTET_OK && role < ROLE_COUNT; role++) {
        const study_set *set = study_find_set(study, study_role_names[role]);
        study_pictures pictures;
        if (set == NULL) continue;
        status = study_resolve(study, set, names, counts, &pictures);
        if (status != OCTET_OK) break;
        role_set *out = &r->sets[role];
        out->numbers = malloc(pictures.count * sizeof *out->numbers);
        size_t d = 0;
        while (strcmp(study->data[d].name, pictures.data) != 0) d++;
        if (out->numbers == NULL) {
            status = oct_fail_memory();
        } else {
            memcpy(out->numbers, pictures.numbers, pictures.count * sizeof *out->numbers);
            qsort(out->numbers, pictures.count, sizeof *out->numbers, rising); /* as sets are opened */
            out->part = (study_part){study->data[d].place, out->numbers, pictures.count};
            status = describe_set((study_role)role, pictures.data, &listings[d], out);
        }
        study_pictures_free(&pictures);
    }
    free(names);
    free(counts);
    return status;
}

/* ---- disjoint, by content */

typedef struct owned {
    const char *hash, *name;
    study_role role;
} owned;

static int by_hash(const void *a, const void *b) {
    const owned *x = a, *y = b;
    int order = strcmp(x->hash, y->hash);
    return order != 0 ? order : (int)x->role - (int)y->role;
}

static octet_status check_apart(const running *r) {
    size_t count = 0, shared = 0, first = 0;
    for (int role = 0; role < ROLE_COUNT; role++) count += r->sets[role].part.count;
    owned *all = calloc(count + 1, sizeof *all);
    if (all == NULL) return oct_fail_memory();
    count = 0;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const json_t *pictures = json_object_get(r->sets[role].body, "pictures");
        for (size_t i = 0; i < r->sets[role].part.count; i++) {
            const json_t *picture = json_array_get(pictures, i);
            all[count++] = (owned){json_string_value(json_object_get(picture, "sha256")),
                                   json_string_value(json_object_get(picture, "name")), (study_role)role};
        }
    }
    qsort(all, count, sizeof *all, by_hash);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(all[i].hash, all[i - 1].hash) != 0 || all[i].role == all[i - 1].role) continue;
        if (shared++ == 0) first = i;
    }
    octet_status status = OCTET_OK;
    if (shared > 0) {
        (void)oct_fail(OCTET_MISMATCH, "%s: sets %s and %s share pictures: %s is %s (%zu in all)", r->study->path,
                       study_role_names[all[first - 1].role], study_role_names[all[first].role], all[first - 1].name,
                       all[first].name, shared);
        status = oct_hint("the three sets are disjoint by content, so that no choice is judged by what made it");
    }
    free(all);
    return status;
}

octet_status running_sets(running *r) {
    const study_file *study = r->study;
    study_listing *listings = calloc(study->data_count, sizeof *listings);
    octet_status status = listings != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t d = 0; status == OCTET_OK && d < study->data_count; d++)
        status = r->engine->list(r->engine->user, study->data[d].place, &listings[d]);
    if (status == OCTET_OK) status = resolve_roles(r, listings);
    if (status == OCTET_OK) status = check_apart(r);
    for (size_t d = 0; listings != NULL && d < study->data_count; d++) study_listing_free(&listings[d]);
    free(listings);
    return status;
}
