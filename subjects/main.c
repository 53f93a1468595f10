/* SPDX-License-Identifier: Apache-2.0 */
/* subjects-draw: draws pictures of a set into files. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "store.h"

static const char help[] =
    "usage: subjects-draw --kind classify|detect|small --seed S [--first I] --count N OUTPUT [OPTION...]\n"
    "       subjects-draw --selftest | --list | --help\n"
    "\n"
    "Draws pictures I to I + N - 1 of the set (kind, seed): the same bytes on every machine.\n"
    "\n"
    "outputs, one or more:\n"
    "  --jpeg DIR    DIR/NNNNNN.jpg (quality 90), with labels.txt and classes.txt, or instances.json\n"
    "  --ppm DIR     the same with binary PPM files\n"
    "  --raw FILE    pixels, packed (8-bit, rows of red, green, blue); needs --size; truth goes to FILE.truth:\n"
    "                41 little-endian int32 a picture: the number of objects, then 8 times label, x0, y0, x1, y1 "
    "(1/256 pixel)\n"
    "options:\n"
    "  --size WxH    one size for all pictures (default: every picture has its own)\n"
    "  --threads T   default 1\n"
    "\n"
    "--selftest draws known pictures and compares their hashes; --list prints the classes.\n"
    "exit status: 0 done, 1 failure, 2 usage\n";

struct request {
    enum subject_kind kind;
    uint64_t seed, first, count;
    int width, height; /* 0: each its own */
    int threads;
    const char *jpeg, *ppm, *raw;
};

enum { TRUTH_WORDS = 1 + 5 * SUBJECT_MOST };

struct crew {
    const struct request *request;
    struct record *records;
    atomic_uint_fast64_t next;
    atomic_bool failed;
    FILE *pixels, *truth;
};

static int usage(const char *what, const char *value) {
    fprintf(stderr, "subjects-draw: %s%s%s\ntry: subjects-draw --help\n", what, value ? ": " : "", value ? value : "");
    return 2;
}

static bool store_picture(const struct request *request, uint64_t index, const uint8_t *rgb, int width, int height) {
    char path[4096];
    if (request->jpeg) {
        snprintf(path, sizeof path, "%s/%06" PRIu64 ".jpg", request->jpeg, index);
        if (!store_jpeg(path, rgb, width, height)) return false;
    }
    if (request->ppm) {
        snprintf(path, sizeof path, "%s/%06" PRIu64 ".ppm", request->ppm, index);
        if (!store_ppm(path, rgb, width, height)) return false;
    }
    return true;
}

/* Writes at a place of its own, so that threads need not wait for each other. */
static bool write_at(FILE *file, uint64_t offset, const uint8_t *bytes, size_t size) {
    while (size > 0) {
        ssize_t written = pwrite(fileno(file), bytes, size, (off_t)offset);
        if (written <= 0) {
            fprintf(stderr, "subjects-draw: cannot write the raw file: %s\n", strerror(errno));
            return false;
        }
        bytes += written, offset += (uint64_t)written, size -= (size_t)written;
    }
    return true;
}

static bool store_raw(struct crew *crew, uint64_t place, const uint8_t *rgb, const struct record *record) {
    int32_t words[TRUTH_WORDS] = {record->scene.count};
    for (int i = 0; i < record->scene.count; i++) {
        const struct subject_object *o = &record->scene.objects[i];
        int32_t *w = words + 1 + 5 * i;
        w[0] = o->label, w[1] = o->x0, w[2] = o->y0, w[3] = o->x1, w[4] = o->y1;
    }
    uint8_t bytes[sizeof words];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)((uint32_t)words[i / 4] >> (8 * (i % 4)));
    size_t size = (size_t)record->width * (size_t)record->height * 3;
    return write_at(crew->pixels, place * size, rgb, size) &&
           write_at(crew->truth, place * sizeof bytes, bytes, sizeof bytes);
}

static bool draw_one(struct crew *crew, uint64_t place) {
    const struct request *q = crew->request;
    struct record *record = &crew->records[place];
    record->width = q->width, record->height = q->height;
    if (!q->width) subject_size(q->kind, q->seed, q->first + place, &record->width, &record->height);
    uint8_t *rgb = malloc((size_t)record->width * (size_t)record->height * 3);
    bool done =
        rgb && subject_draw(q->kind, q->seed, q->first + place, record->width, record->height, rgb, &record->scene);
    if (!done) fprintf(stderr, "subjects-draw: out of memory\n");
    if (done) done = store_picture(q, q->first + place, rgb, record->width, record->height);
    if (done && q->raw) done = store_raw(crew, place, rgb, record);
    free(rgb);
    return done;
}

static void *work(void *argument) {
    struct crew *crew = argument;
    for (;;) {
        uint64_t place = atomic_fetch_add(&crew->next, 1);
        if (place >= crew->request->count || atomic_load(&crew->failed)) return NULL;
        if (!draw_one(crew, place)) atomic_store(&crew->failed, true);
    }
}

static bool run_crew(struct crew *crew) {
    pthread_t threads[256];
    int started = 0;
    while (started < crew->request->threads - 1 && pthread_create(&threads[started], NULL, work, crew) == 0) started++;
    work(crew);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return !atomic_load(&crew->failed);
}

static bool store_lists(const struct request *q, const struct record *records) {
    const char *directories[2] = {q->jpeg, q->ppm}, *suffixes[2] = {"jpg", "ppm"};
    for (int i = 0; i < 2; i++) {
        if (!directories[i]) continue;
        if (!store_classes(directories[i], subject_classes(q->kind))) return false;
        bool (*store)(const char *, const char *, uint64_t, uint64_t, const struct record *) =
            q->kind == SUBJECT_DETECT ? store_coco : store_labels;
        if (!store(directories[i], suffixes[i], q->first, q->count, records)) return false;
    }
    return true;
}

static FILE *open_raw(const char *name, const char *suffix) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", name, suffix);
    FILE *file = fopen(path, "wb");
    if (!file) fprintf(stderr, "subjects-draw: cannot write %s: %s\n", path, strerror(errno));
    return file;
}

static bool close_raw(FILE *file) {
    if (!file || fclose(file) == 0) return true;
    fprintf(stderr, "subjects-draw: cannot write the raw file: %s\n", strerror(errno));
    return false;
}

static int draw_set(const struct request *request) {
    struct crew crew = {.request = request};
    crew.records = calloc(request->count, sizeof *crew.records);
    if (!crew.records) {
        fprintf(stderr, "subjects-draw: out of memory for %" PRIu64 " pictures\n", request->count);
        return 1;
    }
    bool done = true;
    if (request->raw) {
        crew.pixels = open_raw(request->raw, "");
        if (crew.pixels) crew.truth = open_raw(request->raw, ".truth");
        done = crew.pixels && crew.truth;
    }
    done = done && run_crew(&crew) && store_lists(request, crew.records);
    done = close_raw(crew.pixels) && done;
    done = close_raw(crew.truth) && done;
    free(crew.records);
    return done ? 0 : 1;
}

static uint64_t hash_bytes(const uint8_t *bytes, size_t count) { /* FNV-1a */
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int selftest(void) {
    static const struct {
        enum subject_kind kind;
        uint64_t seed, index;
        int width, height;
        uint64_t hash;
    } known[] = {
        {SUBJECT_CLASSIFY, 1, 0, 144, 144, UINT64_C(0x9ea6b0e1616ade61)},
        {SUBJECT_CLASSIFY, 7, 123456789, 191, 128, UINT64_C(0x0ed5e1e9a7855886)},
        {SUBJECT_CLASSIFY, UINT64_MAX, 3, 64, 96, UINT64_C(0xe8b9e08d7c253d70)},
        {SUBJECT_DETECT, 1, 0, 256, 192, UINT64_C(0x2a5f9ba7afdd57fe)},
        {SUBJECT_DETECT, 7, 123456789, 333, 250, UINT64_C(0xf1fa0216b89e6e27)},
        {SUBJECT_DETECT, UINT64_MAX, 3, 640, 480, UINT64_C(0x8d743eafd52b2bd5)},
        {SUBJECT_SMALL, 3, 0, 144, 144, UINT64_C(0x310b5fd2f2f2c217)},
        {SUBJECT_SMALL, 7, 123456789, 191, 128, UINT64_C(0x1ac3c9c824c29827)},
    };
    static uint8_t rgb[640 * 480 * 3];
    int wrong = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct subject_scene scene;
        uint64_t hash = 0;
        if (subject_draw(known[i].kind, known[i].seed, known[i].index, known[i].width, known[i].height, rgb, &scene))
            hash = hash_bytes(rgb, (size_t)known[i].width * (size_t)known[i].height * 3);
        if (hash == known[i].hash) continue;
        fprintf(stderr, "subjects-draw: picture %zu: expected hash 0x%016" PRIx64 ", found 0x%016" PRIx64 "\n", i,
                known[i].hash, hash);
        wrong++;
    }
    if (!wrong) printf("%zu pictures as expected\n", sizeof known / sizeof *known);
    return wrong ? 1 : 0;
}

static int list_classes(void) {
    for (int i = 0; i < subject_classes(SUBJECT_CLASSIFY); i++)
        printf("%d %s%s\n", i, subject_class_name(i), i < subject_classes(SUBJECT_DETECT) ? " (detect)" : "");
    return 0;
}

static bool read_whole(const char *text, uint64_t most, uint64_t *value) {
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && *value <= most;
}

static bool read_size(const char *text, int *width, int *height) {
    char rest;
    if (sscanf(text, "%4dx%4d%c", width, height, &rest) != 2) return false;
    return *width >= SUBJECT_SMALLEST && *width <= SUBJECT_LARGEST && *height >= SUBJECT_SMALLEST &&
           *height <= SUBJECT_LARGEST;
}

/* Takes one option with its value; false if either is not understood. */
static bool take_option(struct request *q, const char *name, const char *value) {
    uint64_t threads;
    if (strcmp(name, "--kind") == 0) {
        static const char *const kinds[] = {
            [SUBJECT_CLASSIFY] = "classify", [SUBJECT_DETECT] = "detect", [SUBJECT_SMALL] = "small"};
        size_t kind = 0;
        while (kind < sizeof kinds / sizeof *kinds && strcmp(value, kinds[kind]) != 0) kind++;
        q->kind = (enum subject_kind)kind;
        return kind < sizeof kinds / sizeof *kinds;
    }
    if (strcmp(name, "--seed") == 0) return read_whole(value, UINT64_MAX, &q->seed);
    if (strcmp(name, "--first") == 0) return read_whole(value, UINT64_MAX / 2, &q->first);
    if (strcmp(name, "--count") == 0) return read_whole(value, 100000000, &q->count);
    if (strcmp(name, "--size") == 0) return read_size(value, &q->width, &q->height);
    if (strcmp(name, "--threads") == 0) {
        if (!read_whole(value, 256, &threads) || threads == 0) return false;
        q->threads = (int)threads;
        return true;
    }
    const char **path = strcmp(name, "--jpeg") == 0  ? &q->jpeg
                        : strcmp(name, "--ppm") == 0 ? &q->ppm
                        : strcmp(name, "--raw") == 0 ? &q->raw
                                                     : NULL;
    if (path) *path = value;
    return path != NULL;
}

int main(int argc, char **argv) {
    struct request request = {.threads = 1};
    bool kind = false, seed = false;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) return fputs(help, stdout) < 0;
        if (strcmp(argv[i], "--selftest") == 0) return selftest();
        if (strcmp(argv[i], "--list") == 0) return list_classes();
        if (i + 1 == argc) return usage("an option without its value, or unknown", argv[i]);
        if (!take_option(&request, argv[i], argv[i + 1])) return usage("option not understood", argv[i]);
        kind = kind || strcmp(argv[i], "--kind") == 0;
        seed = seed || strcmp(argv[i], "--seed") == 0;
    }
    if (!kind || !seed || request.count == 0) return usage("--kind, --seed and --count are needed", NULL);
    if (!request.jpeg && !request.ppm && !request.raw)
        return usage("no output: one of --jpeg, --ppm, --raw is needed", NULL);
    if (request.raw && !request.width) return usage("--raw needs --size", NULL);
    return draw_set(&request);
}
