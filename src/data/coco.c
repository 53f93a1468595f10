/* SPDX-License-Identifier: Apache-2.0 */
/* COCO instances: boxes, areas and crowds; masks are passed over.
 *
 * Ids are whole numbers of 64 bits; 1.0 is 1, 1.5 and "1" are errors. Two images, categories or annotations of one id
 * are an error. Categories are matched to the model's names, else by id; anything between is an error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/document.h"
#include "base/file.h"
#include "data/read.h"

#define COCO_LIMIT ((size_t)1 << 30)

typedef struct numbered {
    int64_t id;
    size_t index;
    int line;
} numbered;

typedef struct category {
    const char *name;
    int32_t label;
} category;

typedef struct reading {
    oct_set *set;
    const oct_document *document;
    const char *pictures; /* NULL: not looked for */
    const char *other;    /* taken instead if the first picture is there and not in `pictures`; may be NULL */
    numbered *images, *categories, *annotations; /* by rising id */
    size_t image_count, category_count, annotation_count;
    category *facts; /* of categories, in file order */
    size_t *owners;  /* of annotations, in file order: the image's row */
} reading;

/* ---- ids */

static octet_status read_id(const reading *in, const oct_node *map, const char *key, int64_t *id) {
    const oct_node *node = oct_node_get(map, key);
    if (node != NULL && node->kind == OCT_NODE_REAL && node->real == floor(node->real) && fabs(node->real) <= 0x1p53) {
        *id = (int64_t)node->real;
        return OCTET_OK;
    }
    return oct_node_int(in->document, map, key, true, INT64_MIN, INT64_MAX, id);
}

static int by_id(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static const numbered *find_id(const numbered *list, size_t count, int64_t id) {
    numbered key = {.id = id};
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].id < key.id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low].id == id ? &list[low] : NULL;
}

/* The list `key` and the ids of its entries, sorted, each once. */
static octet_status read_ids(const reading *in, const char *key, const oct_node **list, numbered **ids, size_t *count) {
    const oct_document *document = in->document;
    const oct_node *found = oct_node_get(document->root, key);
    if (found == NULL || found->kind != OCT_NODE_LIST)
        return oct_node_fail(document, found != NULL ? found : document->root, "expected a list \"%s\", found %s", key,
                             found != NULL ? oct_node_kind_name(found->kind) : "none");
    numbered *made = oct_calloc(found->count, sizeof *made);
    if (made == NULL) return oct_fail_memory();
    *ids = made;
    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i]->kind != OCT_NODE_MAP)
            return oct_node_fail(document, found->items[i], "%s: expected a map, found %s", key,
                                 oct_node_kind_name(found->items[i]->kind));
        OCT_TRY(read_id(in, found->items[i], "id", &made[i].id));
        made[i].index = i;
        made[i].line = found->items[i]->line;
    }
    if (found->count > 0) qsort(made, found->count, sizeof *made, by_id);
    for (size_t i = 1; i < found->count; i++) {
        if (made[i].id == made[i - 1].id)
            return oct_fail(OCTET_BAD_FORMAT, "%s:%d: %s: id %lld is on line %d too", document->path, made[i].line, key,
                            (long long)made[i].id, made[i - 1].line);
    }
    *list = found;
    *count = found->count;
    return OCTET_OK;
}

/* ---- images */

/* Whether the first picture is in the other folder and not in this. */
static octet_status choose_folder(reading *in, const char *name) {
    if (in->pictures == NULL || in->other == NULL) return OCTET_OK;
    char *here = oct_path_join(in->pictures, name), *there = oct_path_join(in->other, name);
    octet_status status = here != NULL && there != NULL ? OCTET_OK : oct_fail_memory();
    if (status == OCTET_OK && !oct_file_exists(here) && oct_file_exists(there)) in->pictures = in->other;
    oct_free(here);
    oct_free(there);
    return status;
}

static octet_status read_images(reading *in) {
    const oct_node *list = NULL;
    OCT_TRY(read_ids(in, "images", &list, &in->images, &in->image_count));
    for (size_t i = 0; i < list->count; i++) {
        const oct_node *node = list->items[i];
        const char *name = NULL;
        int64_t size[2] = {0, 0};
        oct_row *row = oct_set_add_row(in->set);
        if (row == NULL) return oct_fail_memory();
        OCT_TRY(read_id(in, node, "id", &row->image_id));
        OCT_TRY(oct_node_string(in->document, node, "file_name", true, &name));
        OCT_TRY(oct_node_int(in->document, node, "width", false, 0, INT32_MAX, &size[0]));
        OCT_TRY(oct_node_int(in->document, node, "height", false, 0, INT32_MAX, &size[1]));
        if (!oct_name_is_inside(name))
            return oct_node_fail(in->document, node, "file_name: expected a name inside the directory, found \"%s\"",
                                 name);
        if (i == 0) OCT_TRY(choose_folder(in, name));
        row->line = node->line;
        row->width = (int32_t)size[0];
        row->height = (int32_t)size[1];
        row->name = oct_arena_strdup(&in->set->arena, name);
        row->path = oct_arena_sprintf(&in->set->arena, "%s/%s", in->pictures != NULL ? in->pictures : ".", name);
        if (row->name == NULL || row->path == NULL) return oct_fail_memory();
        if (in->pictures != NULL && !oct_file_exists(row->path)) {
            oct_fail(OCTET_NOT_FOUND, "%s:%d: %s: no such picture", in->document->path, row->line, row->path);
            return oct_hint("INSTANCES.json:PICTURES says where the pictures are");
        }
    }
    return OCTET_OK;
}

/* ---- categories */

/* The model's class of a name; where several have it, the one whose index the id is. -1: none, or several. */
static int32_t label_named(const oct_set *set, const char *name, int64_t id) {
    int32_t found = -1;
    size_t count = 0;
    for (size_t i = 0; i < set->options.name_count; i++) {
        if (strcmp(set->options.names[i], name) != 0) continue;
        if ((int64_t)i == id) return (int32_t)i;
        found = (int32_t)i;
        count++;
    }
    return count == 1 ? found : -1;
}

/* By name if every category has the name of one class and no two of the same; else by id if every id is an index and no
 * name says otherwise. */
static octet_status match_categories(reading *in, const oct_node *list) {
    const oct_set *set = in->set;
    size_t named = 0;
    bool ids_fit = true, twice = false;
    const numbered *odd = NULL; /* the first that has no class by name */
    bool *taken = oct_calloc(set->options.name_count, sizeof *taken);
    if (taken == NULL) return oct_fail_memory();
    for (size_t i = 0; i < in->category_count; i++) {
        const numbered *entry = &in->categories[i];
        category *facts = &in->facts[entry->index];
        facts->label = label_named(set, facts->name, entry->id);
        if (entry->id < 0 || entry->id >= (int64_t)set->options.name_count) ids_fit = false;
        if (facts->label < 0 || taken[facts->label]) {
            if (odd == NULL) odd = entry;
            if (facts->label >= 0) twice = true;
            continue;
        }
        taken[facts->label] = true;
        named++;
        if (facts->label != entry->id) ids_fit = false;
    }
    oct_free(taken);
    if (odd == NULL) {
        in->set->order = "categories by name";
        return OCTET_OK;
    }
    if (!ids_fit || twice) {
        oct_node_fail(in->document, list->items[odd->index],
                      "category %lld \"%s\": expected the name of a class of the model, or ids that are its indices",
                      (long long)odd->id, in->facts[odd->index].name);
        oct_detail("%zu of %zu categories have the name of a class", named, in->category_count);
        return OCTET_MISMATCH;
    }
    for (size_t i = 0; i < in->category_count; i++)
        in->facts[in->categories[i].index].label = (int32_t)in->categories[i].id;
    in->set->order = "categories by id";
    return OCTET_OK;
}

static octet_status read_categories(reading *in) {
    const oct_node *list = NULL;
    OCT_TRY(read_ids(in, "categories", &list, &in->categories, &in->category_count));
    if (list->count > INT32_MAX) return oct_fail(OCTET_LIMIT, "%s: too many categories", in->document->path);
    in->facts = oct_calloc(list->count, sizeof *in->facts);
    if (in->facts == NULL) return oct_fail_memory();
    in->set->categories = oct_arena_alloc(&in->set->arena, (list->count + 1) * sizeof(int64_t));
    if (in->set->categories == NULL) return oct_fail_memory();
    in->set->category_count = list->count;
    for (size_t i = 0; i < list->count; i++) in->set->categories[i] = in->categories[i].id;
    for (size_t i = 0; i < list->count; i++)
        OCT_TRY(oct_node_string(in->document, list->items[i], "name", true, &in->facts[i].name));
    if (in->set->options.names != NULL) return match_categories(in, list);
    for (size_t i = 0; i < list->count; i++) in->facts[in->categories[i].index].label = (int32_t)i;
    in->set->order = "categories by rising id";
    return OCTET_OK;
}

/* ---- annotations */

static octet_status read_crowd(const reading *in, const oct_node *node, bool *crowd) {
    const oct_node *value = oct_node_get(node, "iscrowd");
    int64_t number = 0;
    if (value != NULL && value->kind == OCT_NODE_BOOL) {
        *crowd = value->boolean;
        return OCTET_OK;
    }
    OCT_TRY(oct_node_int(in->document, node, "iscrowd", false, 0, 1, &number));
    *crowd = number != 0;
    return OCTET_OK;
}

static octet_status read_annotation(const reading *in, const oct_node *node, oct_truth *truth, size_t *owner) {
    int64_t image = 0, kind = 0;
    OCT_TRY(read_id(in, node, "id", &truth->id));
    OCT_TRY(read_id(in, node, "image_id", &image));
    OCT_TRY(read_id(in, node, "category_id", &kind));
    const numbered *of = find_id(in->images, in->image_count, image);
    const numbered *what = find_id(in->categories, in->category_count, kind);
    if (of == NULL)
        return oct_node_fail(in->document, node, "annotation %lld: image_id %lld: no such image", (long long)truth->id,
                             (long long)image);
    if (what == NULL)
        return oct_node_fail(in->document, node, "annotation %lld: category_id %lld: no such category",
                             (long long)truth->id, (long long)kind);
    OCT_TRY(oct_node_reals(in->document, node, "bbox", true, truth->box, 4));
    if (truth->box[2] < 0 || truth->box[3] < 0)
        return oct_node_fail(in->document, node,
                             "annotation %lld: bbox: expected x, y, width, height, found a negative "
                             "size",
                             (long long)truth->id);
    truth->area = truth->box[2] * truth->box[3];
    OCT_TRY(oct_node_real(in->document, node, "area", false, &truth->area));
    OCT_TRY(read_crowd(in, node, &truth->crowd));
    truth->label = in->facts[what->index].label;
    *owner = of->index;
    return OCTET_OK;
}

/* From file order to runs, one an image. */
static octet_status group_annotations(reading *in, const oct_truth *read) {
    oct_set *set = in->set;
    set->truths = oct_calloc(in->annotation_count + 1, sizeof *set->truths);
    if (set->truths == NULL) return oct_fail_memory();
    set->truth_count = in->annotation_count;
    for (size_t i = 0; i < in->annotation_count; i++) set->rows[in->owners[i]].truth_count++;
    size_t at = 0;
    for (size_t i = 0; i < set->row_count; i++) {
        set->rows[i].first_truth = at;
        at += set->rows[i].truth_count;
        set->rows[i].truth_count = 0;
    }
    for (size_t i = 0; i < in->annotation_count; i++) {
        oct_row *row = &set->rows[in->owners[i]];
        set->truths[row->first_truth + row->truth_count++] = read[i];
    }
    return OCTET_OK;
}

static octet_status read_annotations(reading *in) {
    const oct_node *list = NULL;
    OCT_TRY(read_ids(in, "annotations", &list, &in->annotations, &in->annotation_count));
    oct_truth *read = oct_calloc(in->annotation_count, sizeof *read);
    in->owners = oct_calloc(in->annotation_count, sizeof *in->owners);
    octet_status status = read != NULL && in->owners != NULL ? OCTET_OK : oct_fail_memory();
    for (size_t i = 0; i < in->annotation_count && status == OCTET_OK; i++)
        status = read_annotation(in, list->items[i], &read[i], &in->owners[i]);
    if (status == OCTET_OK) status = group_annotations(in, read);
    oct_free(read);
    const numbered *zero = find_id(in->annotations, in->annotation_count, 0);
    if (status == OCTET_OK && zero != NULL)
        status = oct_set_warn(in->set,
                              "%s:%d: an annotation has id 0, which pycocotools takes for none: what matches it "
                              "counts as wrong, in octet's average precision too; number annotations from 1",
                              in->document->path, zero->line);
    return status;
}

/* ---- the file */

/* `at` is behind the colon of "segmentation": how far its value goes, up to the comma or bracket after it. */
static size_t mask_length(const char *at, size_t left) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < left; i++) {
        char c = at[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        if (c == '"') quoted = true;
        if (depth == 0 && (c == ',' || c == ']' || c == '}')) return i;
        if (c == '[' || c == '{') depth++;
        if (c == ']' || c == '}') depth--;
    }
    return left;
}

void oct_coco_blank_masks(char *text, size_t size) {
    static const char key[] = "\"segmentation\"";
    char *end = text + size, *at = text;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1)) != NULL) {
        at += sizeof key - 1;
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) at++;
        if (at == end || *at != ':') continue;
        at++;
        size_t length = mask_length(at, (size_t)(end - at));
        char *first = NULL; /* a value must stand there still */
        for (char *byte = at; byte < at + length; byte++) {
            if (*byte == '\n') continue;
            if (first == NULL) first = byte;
            *byte = ' ';
        }
        if (first != NULL) *first = '0';
        at += length;
    }
}

static void free_reading(reading *in) {
    oct_free(in->images);
    oct_free(in->categories);
    oct_free(in->annotations);
    oct_free(in->facts);
    oct_free(in->owners);
}

octet_status oct_coco_parse(oct_set *set, const char *file, const char *pictures, const char *other, char *text,
                            size_t size) {
    oct_document document = {0};
    set->kind = OCT_SET_COCO;
    oct_coco_blank_masks(text, size);
    OCT_TRY(oct_document_parse_json(&document, file, text, size));
    reading in = {.set = set, .document = &document, .pictures = pictures, .other = other};
    octet_status status = OCTET_OK;
    if (document.root->kind != OCT_NODE_MAP)
        status = oct_node_fail(&document, document.root, "expected COCO instances, a map, found %s",
                               oct_node_kind_name(document.root->kind));
    if (status == OCTET_OK) status = read_images(&in);
    if (status == OCTET_OK) status = read_categories(&in);
    if (status == OCTET_OK) status = read_annotations(&in);
    free_reading(&in);
    oct_document_free(&document);
    return status;
}

/* Where the pictures are if nobody says: the JSON's folder, and the folder of its name without "instances_". */
static octet_status default_pictures(const char *file, char **own, char **named) {
    const char *base = oct_path_base(file);
    int folder = (int)(base - file), length = (int)(strlen(base) - strlen(".json"));
    const char *name = base;
    if (oct_starts_with(base, "instances_")) {
        name += strlen("instances_");
        length -= (int)strlen("instances_");
    }
    *own = folder > 0 ? oct_strndup(file, (size_t)(folder > 1 ? folder - 1 : 1)) : oct_strdup(".");
    *named = oct_sprintf("%.*s%.*s", folder, file, length, name);
    return *own != NULL && *named != NULL ? OCTET_OK : oct_fail_memory();
}

octet_status oct_coco_open(oct_set *set, const char *place) {
    const char *colon = oct_ends_with(place, ".json") ? NULL : strstr(place, ".json:");
    char *file = colon != NULL ? oct_strndup(place, (size_t)(colon - place) + strlen(".json")) : oct_strdup(place);
    char *pictures = NULL, *other = NULL;
    uint8_t *text = NULL;
    size_t size = 0;
    octet_status status = file != NULL ? oct_file_read(file, COCO_LIMIT, &text, &size) : oct_fail_memory();
    if (status == OCTET_OK && colon == NULL) status = default_pictures(file, &pictures, &other);
    if (status == OCTET_OK && colon != NULL) {
        pictures = oct_strdup(colon + strlen(".json:"));
        if (pictures == NULL) status = oct_fail_memory();
    }
    if (status == OCTET_OK)
        status = oct_coco_parse(set, file, set->options.facts_only ? NULL : pictures, other, (char *)text, size);
    oct_free(text);
    oct_free(pictures);
    oct_free(other);
    oct_free(file);
    return status;
}
