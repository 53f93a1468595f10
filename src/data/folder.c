/* SPDX-License-Identifier: Apache-2.0 */
/* An image folder: a directory a class, as torchvision's ImageFolder reads it.
 *
 * - Directories get their indices in byte order of their names ("1", "10", "2"; "B" before "a"), unless names decide:
 *   a class list of the user's in which each must stand, or the model's own names if each stands there. A directory
 *   stands for the class of its name, or whose name begins with it and a space or comma ("n01440764 tench").
 * - Pictures are what has a picture's extension, in any case, at any depth below the class; links are followed.
 * - What begins with a dot is passed over; other files are left out and counted in a warning.
 * - A class directory without pictures is an error where the order decides: is it a class, or is it not?
 * - Pictures outside a class directory are an error. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/read.h"

#define FOLDER_DEPTH 32 /* also ends links that go round */

typedef struct listing {
    char **names; /* heap */
    size_t count, capacity;
} listing;

typedef struct walk {
    oct_set *set;
    const char *root;
    int32_t label;
    size_t strays;
    const char *stray; /* the first; in the arena */
} walk;

static void free_listing(listing *list) {
    for (size_t i = 0; i < list->count; i++) oct_free(list->names[i]);
    oct_free(list->names);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory in byte order, those that begin with a dot left out. */
static octet_status list_directory(const char *path, listing *list) {
    octet_status status = OCTET_OK;
    DIR *directory = opendir(path);
    *list = (listing){0};
    if (directory == NULL) return oct_fail_errno(path, "cannot be listed");
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            if (errno != 0) status = oct_fail_errno(path, "cannot be listed");
            break;
        }
        if (entry->d_name[0] == '.') continue;
        char *name = NULL;
        if (oct_grow((void **)&list->names, sizeof *list->names, list->count + 1, &list->capacity))
            name = oct_strdup(entry->d_name);
        if (name == NULL) {
            status = oct_fail_memory();
            break;
        }
        list->names[list->count++] = name;
    }
    (void)closedir(directory);
    if (status != OCTET_OK)
        free_listing(list);
    else if (list->count > 0)
        qsort(list->names, list->count, sizeof *list->names, by_bytes);
    return status;
}

/* ---- one class */

static octet_status walk_directory(walk *state, const char *relative, int depth);

static octet_status visit(walk *state, const char *relative, int depth) {
    oct_arena *arena = &state->set->arena;
    char *path = oct_arena_sprintf(arena, "%s/%s", state->root, relative);
    struct stat facts;
    if (path == NULL) return oct_fail_memory();
    if (stat(path, &facts) != 0) return oct_fail_errno(path, "cannot be looked at");
    if (S_ISDIR(facts.st_mode)) return walk_directory(state, relative, depth + 1);
    if (!oct_is_picture_extension(oct_extension(relative))) {
        if (oct_ends_with(relative, ".parquet")) return oct_refuse_parquet(path);
        if (state->strays++ == 0) state->stray = path;
        return OCTET_OK;
    }
    oct_row *row = oct_set_add_row(state->set);
    if (row == NULL) return oct_fail_memory();
    row->label = state->label;
    row->path = path;
    row->name = path + strlen(state->root) + 1;
    return OCTET_OK;
}

static octet_status walk_directory(walk *state, const char *relative, int depth) {
    listing list;
    if (depth > FOLDER_DEPTH)
        return oct_fail(OCTET_LIMIT, "%s/%s: more than %d directories inside each other", state->root, relative,
                        FOLDER_DEPTH);
    char *path = oct_sprintf("%s/%s", state->root, relative);
    if (path == NULL) return oct_fail_memory();
    octet_status status = list_directory(path, &list);
    oct_free(path);
    if (status != OCTET_OK) return status;
    for (size_t i = 0; i < list.count && status == OCTET_OK; i++) {
        char *inner = oct_sprintf("%s/%s", relative, list.names[i]);
        status = inner != NULL ? visit(state, inner, depth) : oct_fail_memory();
        oct_free(inner);
    }
    free_listing(&list);
    return status;
}

/* ---- which class a directory is */

/* The one class a directory's name stands for, or -1. */
static int32_t class_named(const oct_set *set, const char *name) {
    size_t length = strlen(name);
    int32_t whole = -1, first = -1;
    size_t wholes = 0, firsts = 0;
    for (size_t i = 0; i < set->options.name_count; i++) {
        const char *label = set->options.names[i];
        if (strncmp(label, name, length) != 0) continue;
        if (label[length] == '\0') {
            whole = (int32_t)i;
            wholes++;
        } else if (label[length] == ' ' || label[length] == ',') {
            first = (int32_t)i;
            firsts++;
        }
    }
    if (wholes > 0) return wholes == 1 ? whole : -1;
    return firsts == 1 ? first : -1;
}

/* Whether the model's own names say what every directory is. */
static bool names_tell(const oct_set *set, const listing *classes) {
    if (set->options.names == NULL || classes->count == 0) return false;
    for (size_t i = 0; i < classes->count; i++)
        if (class_named(set, classes->names[i]) < 0) return false;
    return true;
}

/* Leaves the directories of `all` in it; a picture among them is an error. */
static octet_status keep_directories(walk *state, listing *all) {
    size_t kept = 0;
    octet_status status = OCTET_OK;
    for (size_t i = 0; i < all->count; i++) {
        char *path = oct_arena_sprintf(&state->set->arena, "%s/%s", state->root, all->names[i]);
        if (path == NULL) {
            status = oct_fail_memory();
        } else if (oct_file_is_directory(path)) {
            all->names[kept++] = all->names[i];
            continue;
        } else if (oct_is_picture_extension(oct_extension(path))) {
            oct_fail(OCTET_BAD_FORMAT, "%s: a picture outside a class directory", path);
            status = oct_hint("an image folder has a directory a class; else put a labels.txt beside the pictures");
        } else if (oct_ends_with(path, ".parquet")) {
            status = oct_refuse_parquet(path);
        } else if (state->strays++ == 0) {
            state->stray = path;
        }
        oct_free(all->names[i]);
        if (status == OCTET_OK) continue;
        for (i++; i < all->count; i++) oct_free(all->names[i]);
    }
    all->count = kept;
    return status;
}

static octet_status read_classes(walk *state, const listing *classes, bool by_name) {
    oct_set *set = state->set;
    for (size_t i = 0; i < classes->count; i++) {
        const char *name = classes->names[i];
        size_t before = set->row_count;
        state->label = by_name ? class_named(set, name) : (int32_t)i;
        if (state->label < 0)
            return oct_fail(OCTET_MISMATCH, "%s/%s: no one class of that name in the class list", state->root, name);
        if (oct_set_check_label(set, state->label) != OCTET_OK) {
            oct_error_prefix("%s/%s", state->root, name);
            return oct_hint("directories are classes in byte order; --classes FILE says which is which");
        }
        OCT_TRY(walk_directory(state, name, 1));
        if (set->row_count == before && !by_name) {
            oct_fail(OCTET_BAD_FORMAT, "%s/%s: a class directory without pictures", state->root, name);
            return oct_hint("it would move the indices of all classes behind it: remove it, or say by --classes FILE "
                            "which class is which");
        }
    }
    return OCTET_OK;
}

octet_status oct_folder_open(oct_set *set, const char *directory) {
    walk state = {.set = set, .root = oct_arena_strdup(&set->arena, directory)};
    listing classes;
    if (state.root == NULL) return oct_fail_memory();
    OCT_TRY(list_directory(directory, &classes));
    set->kind = OCT_SET_IMAGE_FOLDER;
    octet_status status = keep_directories(&state, &classes);
    bool by_name = set->options.names_decide || names_tell(set, &classes);
    set->order = by_name ? "class directories by name" : "class directories in byte order";
    if (status == OCTET_OK) status = read_classes(&state, &classes, by_name);
    free_listing(&classes);
    if (status == OCTET_OK && state.strays > 0)
        status = oct_set_warn(set, "%s: %zu file%s left out, not a picture by the extension; the first is %s",
                              directory, state.strays, state.strays > 1 ? "s" : "", state.stray);
    return status;
}
