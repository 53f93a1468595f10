/* SPDX-License-Identifier: Apache-2.0 */
/* octet's laboratory: what lies inside a model, and what passes through it. No ABI promise: this header may change with
 * any release. Conventions as in octet.h. */
#ifndef OCTET_LAB_H
#define OCTET_LAB_H

#include "octet/octet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inspecting: a text for people, the caller's to octet_free ---- */
typedef enum octet_lab_view {
    OCTET_LAB_SUMMARY, /* model, weights, input, preprocessing, labels, provenance */
    OCTET_LAB_GRAPH,   /* a line a node, after the passes */
    OCTET_LAB_DOT,     /* the same for Graphviz */
    OCTET_LAB_STEPS,   /* the engine: kernel, formats, operations, bytes a step */
    OCTET_LAB_TACTICS, /* each step's candidates: chosen, or why not */
    OCTET_LAB_MEMORY,  /* the arena: offset, size, lifetime a tensor */
    OCTET_LAB_SHAPES   /* the checkpoint's tensors: name, type, shape */
} octet_lab_view;
OCTET_API int octet_lab_is_bundle(const octet_model *model); /* a bundle holds steps, not the graph */
OCTET_API octet_status octet_lab_describe(octet_model *model, octet_lab_view view, char **text);

/* ---- building ---- */
typedef struct octet_lab_build_options {
    size_t struct_size;
    const char *recipe;     /* as octet_open_options.recipe; NULL: "fp32" */
    const int64_t *batches; /* an engine each, 1 .. 1024 */
    size_t batch_count;
    const int32_t *sizes; /* height, width pairs, engines for each; none: the model's own size */
    size_t size_count;    /* pairs */
    const char *device;   /* "cpu" or NULL */
    uint32_t effort;      /* 1 static rule, 2 times candidates, 3 searches widely */
    uint32_t threads;
    const char *classes_file; /* as octet_open_options */
    const char *timing_cache; /* efforts 2 and 3: times read from and kept in this file; NULL: not kept */
    const char *command;      /* kept in the bundle's provenance; may be NULL */
    const char *scales;       /* as octet_open_options.scales */
} octet_lab_build_options;
/* From a checkpoint to a bundle at `output`, whole or not at all. identity: 64 digits and a zero. Takes no lock on
 * `output`. */
OCTET_API octet_status octet_lab_build(const char *place, const octet_lab_build_options *options, const char *output,
                                       char identity[65]);
/* Whether a bundle (or checkpoint) would open on this machine, and why not: a text for people, the caller's to
 * octet_free. */
OCTET_API octet_status octet_lab_compat(const char *path, int *opens, char **text);

/* Figures of a model's engine at its own input size and batch. */
typedef struct octet_lab_figures {
    size_t struct_size;
    uint64_t parameters;   /* weights */
    uint64_t weight_bytes; /* float32, neutral */
    uint64_t packed_bytes; /* as packed for this machine */
    uint64_t arena_bytes;  /* activations of one session */
    uint64_t flops;        /* of one batch; two a multiply-add */
    uint64_t steps;
    uint64_t unfused_quantize; /* quantize ops left */
} octet_lab_figures;
OCTET_API octet_status octet_lab_get_figures(octet_model *model, octet_lab_figures *figures);

/* What the library supports, from its lists, as Markdown tables (families, ops and kernels, picture formats). */
OCTET_API octet_status octet_lab_support(char **text);

/* ---- recipes ---- */

/* octet_model_open of a checkpoint with a recipe made in memory: YAML, `name` stands in errors. The options' own recipe
 * is NULL; their scales hold. */
OCTET_API octet_status octet_lab_open_recipe(const char *place, const octet_open_options *options, const char *name,
                                             const char *text, octet_model **model);
/* The text of a recipe as octet_open_options.recipe names it ("fp8" of a model: its family's); and the names of those
 * of the model's family, a line each. The caller's to octet_free. */
OCTET_API octet_status octet_lab_recipe_text(const octet_model *model, const char *recipe, char **text);
OCTET_API octet_status octet_lab_recipe_names(const octet_model *model, char **text);
/* What a recipe makes of a checkpoint's ops: a text for people, or JSON: an array of an object an op,
 * {"op", "kind", "shape": [...], "weights": count, "reads": numbers read that are no weights, "flops", "narrow",
 * "weight": "e4m3 channel, max", "activation": ..., "rule": line or null}, in the graph's order. `text` as for
 * octet_lab_open_recipe. The model was opened without a recipe. The result is the caller's to octet_free. */
OCTET_API octet_status octet_lab_recipe_describe(octet_model *model, const char *name, const char *text, int json,
                                                 char **result);
/* A recipe's text as JSON, keys in its order: a recipe's text again. `name` stands in errors; the result is the
 * caller's to octet_free. */
OCTET_API octet_status octet_lab_recipe_json(const char *name, const char *text, char **json);
/* Whether a recipe (text and conditions as for octet_lab_recipe_describe) needs pictures of this checkpoint: static
 * scales, or something else that octet_lab_calibrate finds. */
OCTET_API octet_status octet_lab_recipe_needs_pictures(octet_model *model, const char *name, const char *text,
                                                       int *needs);
/* Whether a file is a right recipe by itself, whatever the model; the error says the line. */
OCTET_API octet_status octet_lab_recipe_check(const char *path);

/* ---- calibration: what static scales, smoothing, bias correction and compensated rounding need of pictures ---- */

typedef struct octet_lab_calibrate_event {
    size_t struct_size;
    int pass, passes;         /* from 1: ranges of activations; then what the recipe asks for */
    uint64_t done, pictures;  /* of this pass; pictures 0: unknown */
    uint64_t resumed;         /* of `done`, found in the state of an earlier run */
    uint64_t tensors, memory; /* watched, and bytes held for them: the same for any number of pictures */
    uint64_t values;          /* seen so far */
} octet_lab_calibrate_event;
/* Called after each picture. Nonzero: stop with CANCELLED, the state kept. */
typedef int (*octet_lab_calibrate_progress)(void *user, const octet_lab_calibrate_event *event);

typedef struct octet_lab_calibrate_options {
    size_t struct_size;
    const char *recipe; /* as octet_open_options.recipe */
    const char *data;   /* SET, as octet_lab_set_open */
    int64_t limit;      /* the first so many pictures; 0: all */
    uint32_t threads;
    octet_orientation orientation;
    const char *classes_file;
    const int64_t *numbers; /* of the samples to take, as octet_lab_set_options; NULL: all */
    size_t number_count;
} octet_lab_calibrate_options;
#define OCTET_LAB_CALIBRATE_OPTIONS_DEFAULT                                                                            \
    { sizeof(octet_lab_calibrate_options), NULL, NULL, 0, 0, OCTET_UPRIGHT, NULL, NULL, 0 }
/* Runs a checkpoint in float32 over pictures and writes the scale file `output`, whole or not at all. Stopped (by
 * `progress`, or killed), it goes on from OUTPUT.part when called again with the same checkpoint, recipe and data; the
 * file is the same for any number of threads and of stops. A recipe that needs no pictures is INVALID_ARGUMENT. */
OCTET_API octet_status octet_lab_calibrate(const char *place, const octet_lab_calibrate_options *options,
                                           octet_lab_calibrate_progress progress, void *user, const char *output);

/* ---- watching: everything that passes on the calling thread, in order ---- */
typedef struct octet_lab_event {
    size_t struct_size;
    const char *room;   /* "image" */
    const char *source; /* "src/image/jpeg.c" or the kernel's name */
    const char *what;   /* "decoded pixels", "input", a step's name, "output logits" */
    const char *format; /* "uint8", "fp32"; "" where there is no array */
    int32_t rank;
    int64_t shape[4];
    /* dense, in row order; NULL where there is no array. A step's are float32, whatever form it is stored in: the
     * numbers that its codes stand for, of the wide form if it has two; `format` names the form. */
    const void *data;
    double milliseconds; /* spent making it */
} octet_lab_event;
typedef void (*octet_lab_watch)(void *user, const octet_lab_event *event);
/* For the calling thread, until set again; NULL stops. `steps` nonzero: an event a step of the engine too. */
OCTET_API void octet_lab_set_watch(octet_lab_watch watch, void *user, int steps);
OCTET_API uint64_t octet_lab_checksum(const void *data, size_t size); /* FNV-1a, 64 bits */

/* ---- timing ---- */
/* Runs the engine alone on what the session's input holds now (random numbers in [-2, 2) before any picture), `count`
 * times, seconds[i] = run i by the monotonic clock. Scope "graph" of design decision 9: input and output stay where
 * they are. */
OCTET_API octet_status octet_lab_time_engine(octet_session *session, size_t count, double *seconds);
/* Moves every number of the network's input by up to `relative` of itself (1e-7: about its last bit), by chance drawn
 * from `seed`: the same moves for the same seed and the same pictures in the same order since this call. 0: none. Runs
 * moved so are as right as any: how far their figures lie apart is a figure's scatter. */
OCTET_API octet_status octet_lab_set_jitter(octet_session *session, double relative, uint64_t seed);
/* Checksum over the outputs of the session's last run, to hold the last timed run against an untimed one. */
OCTET_API octet_status octet_lab_output_checksum(octet_session *session, uint64_t *checksum);
/* The CPU's name, instruction sets and kernels' table in use, as JSON object text; the caller's to octet_free. */
OCTET_API octet_status octet_lab_machine(char **json);

/* ---- pulling: a repository's files from the Hugging Face hub into the local cache ---- */
typedef enum octet_lab_pull_state {
    OCTET_LAB_PULL_ASKING,   /* for the listing (file ""), or for a file's size and hash */
    OCTET_LAB_PULL_FETCHING, /* bytes come */
    OCTET_LAB_PULL_WAITING,  /* for another process that fetches this file, or before trying again: `note` */
    OCTET_LAB_PULL_RETRYING, /* once after each failure, `note`, that trying again may help */
    OCTET_LAB_PULL_FETCHED,  /* last word on a file: whole, and what the hub says it is */
    OCTET_LAB_PULL_CACHED    /* last word on a file: it was there already */
} octet_lab_pull_state;

typedef struct octet_lab_pull_event {
    size_t struct_size;
    octet_lab_pull_state state;
    const char *file;            /* its name in the repository; this and the other texts live during the call */
    uint64_t size, done;         /* bytes of the file; `done` counts what an earlier pull left */
    const char *sha256;          /* FETCHED, CACHED: 64 digits */
    size_t index, count;         /* of this file among those wanted */
    uint64_t all_size, all_done; /* bytes of all files; all_size 0: unknown */
    const char *note;
} octet_lab_pull_event;
/* Called from within octet_lab_pull: often, about once a second while nothing comes. Nonzero cancels. */
typedef int (*octet_lab_pull_progress)(void *user, const octet_lab_pull_event *event);

typedef struct octet_lab_pull_options {
    size_t struct_size;
    const char *id;      /* ORG/NAME[@REVISION]: branch, tag or commit; none: main */
    int dataset;         /* nonzero: a data set's repository */
    const char *include; /* shell pattern over names; NULL: of a model what octet reads, of a data set all files */
    uint32_t timeout;    /* seconds without a byte; 0: 30 */
} octet_lab_pull_options;
#define OCTET_LAB_PULL_OPTIONS_DEFAULT                                                                                 \
    { sizeof(octet_lab_pull_options), NULL, 0, NULL, 0 }
/* HF_ENDPOINT, HF_TOKEN or the token file, HF_HUB_CACHE and HF_HOME hold as for huggingface_hub, which finds what was
 * pulled. *directory is the snapshot, the caller's to octet_free. CANCELLED or killed at any time, the next pull goes
 * on from there. VERIFICATION: a file is not what the hub says it is. UNSUPPORTED: libcurl is not installed; it is
 * loaded here, not at start. Thread-safe; pulls of several processes share the work. `progress` may be NULL. */
OCTET_API octet_status octet_lab_pull(const octet_lab_pull_options *options, octet_lab_pull_progress progress,
                                      void *user, char **directory);

/* ---- data sets: pictures with what is true of them, one at a time ---- */
typedef struct octet_lab_set octet_lab_set;

typedef struct octet_lab_set_options {
    size_t struct_size;
    /* Whose classes the labels are: indices are held against them, directories and categories matched to their names.
     * NULL: labels as they stand. */
    const octet_model *model;
    /* A class name a line, with a model: which class a directory of an image folder is. NULL: none. */
    const char *classes_file;
    /* Nonzero: pictures are neither looked for nor read, samples have no data. Not for shards. */
    int facts_only;
    /* A part of the set: the samples of these numbers (from 0, rising). The others are passed over, and count neither
     * in octet_lab_set_count nor in the fingerprint. NULL: all. */
    const int64_t *numbers;
    size_t number_count;
} octet_lab_set_options;
#define OCTET_LAB_SET_OPTIONS_DEFAULT                                                                                  \
    { sizeof(octet_lab_set_options), NULL, NULL, 0, NULL, 0 }

/* `place`: a directory with labels.txt ("name index" a line), an image folder (a directory a class), WebDataset tar
 * shards (a list parted by commas, braces as {00..63}, a directory of them), or COCO's instances.json[:PICTURES].
 * `options` may be NULL. Every line and annotation is checked here, and that the pictures are there; errors name file
 * and line. The caller's to close. */
OCTET_API octet_status octet_lab_set_open(const char *place, const octet_lab_set_options *options, octet_lab_set **set);
OCTET_API void octet_lab_set_close(octet_lab_set **set);
OCTET_API octet_task octet_lab_set_task(const octet_lab_set *set);   /* detection: boxes, else labels */
OCTET_API int64_t octet_lab_set_count(const octet_lab_set *set);     /* -1: unknown before the end (shards) */
OCTET_API const char *octet_lab_set_order(const octet_lab_set *set); /* how labels came about: "categories by name" */
/* COCO's category ids, rising: label i of a set opened without a model is the i-th. Live as long as the set. */
OCTET_API const int64_t *octet_lab_set_categories(const octet_lab_set *set, size_t *count);
/* Of the samples passed so far, in order (names, labels, bytes of the pictures): SHA-256, 64 digits; valid until the
 * next call. */
OCTET_API const char *octet_lab_set_fingerprint(octet_lab_set *set);

typedef struct octet_lab_truth {
    int64_t id;    /* of the annotation */
    int32_t label; /* class index */
    double box[4]; /* x, y, width, height in pixels */
    double area;
    int crowd; /* a region of many */
} octet_lab_truth;

typedef struct octet_lab_sample {
    const char *name; /* relative path, or SHARD/KEY */
    const char *path; /* of the picture's file; NULL: it has none */
    const void *data; /* the encoded picture; NULL with facts_only */
    size_t size;
    int32_t label;         /* class index; -1 for a detection set */
    int64_t image_id;      /* COCO's, else the sample's number */
    int32_t width, height; /* as a COCO file says; 0: unknown */
    const octet_lab_truth *truths;
    size_t truth_count;
} octet_lab_sample;
/* The next sample, the caller's to free; NULL with OCTET_OK: there are no more. One thread at a time. */
OCTET_API octet_status octet_lab_set_next(octet_lab_set *set, octet_lab_sample **sample);
OCTET_API void octet_lab_sample_free(octet_lab_sample **sample);

#ifdef __cplusplus
}
#endif

#endif
