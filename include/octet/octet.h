/* SPDX-License-Identifier: Apache-2.0 */
/* octet: vision models from checkpoints and bundles, in C.
 *
 * A *model* is opened once (a bundle, a checkpoint directory, or a hub id in the local cache), never changes, and may
 * be shared by any number of threads. A *session* runs a model; it belongs to one thread at a time and owns its memory
 * and its threads. Running pictures gives *results*, one a picture.
 *
 *     octet_model *model = NULL;
 *     octet_session *session = NULL;
 *     octet_result *result = NULL;
 *     if (octet_model_open("mobilenetv2_100", NULL, &model) || octet_session_new(model, NULL, &session) ||
 *         octet_session_run_file(session, "cat.jpg", &result))
 *         fprintf(stderr, "%s\n", octet_error_text());
 *     else {
 *         octet_class best;
 *         octet_result_top(result, &best, 1);
 *         printf("%s %.3f\n", best.label, best.probability);
 *     }
 *     octet_result_free(&result);
 *     octet_session_free(&session);
 *     octet_model_close(&model);
 *
 * What holds for every function, unless it says otherwise:
 *
 * - One that can fail returns a status; the text of the calling thread's last failure is octet_error_text(). On failure
 *   every output pointer is NULL and nothing is owed. A NULL that should not be one is INVALID_ARGUMENT there;
 * functions that return no status expect what they say.
 * - What is handed in stays the caller's and is only read during the call; handles may go as soon as what was made of
 *   them was, in any order.
 * - Functions that free take the handle's address and null it; NULL is fine there.
 * - Any thread may call; two threads may not use one session at once, nor free what another still uses.
 * - The library never prints, exits or aborts. Text is bytes, UTF-8 where it can be; the locale does not matter.
 *
 * Structs that carry struct_size may grow at their end: fill them by their *_DEFAULT initialiser. A program compiled
 * against an earlier, smaller one goes on working: fields it lacks are as by default. One compiled against a later one
 * works as long as what this library does not know is zero; else UNSUPPORTED. The others never change. */
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H

#include <stddef.h>
#include <stdint.h>

#include "octet/status.h"

#if defined(__GNUC__)
#    define OCTET_API __attribute__((visibility("default")))
#else
#    define OCTET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the library ------------------------------------------------------------------------------------------------- */

OCTET_API const char *octet_version(void); /* "0.1.0"; static, as are the next two */

OCTET_API const char *octet_status_name(octet_status status); /* "NOT_FOUND"; "UNKNOWN" for no status */
OCTET_API const char *octet_status_text(octet_status status); /* "not found" */
/* The calling thread's last failure: fact, then detail and hint on lines of their own where there are any. Never NULL;
 * valid until the thread's next call into the library. */
OCTET_API const char *octet_error_text(void);

/* Gives back memory that a function said is the caller's to octet_free (lab.h has such). NULL is fine. */
OCTET_API void octet_free(void *memory);

/* A caller's allocator for all of the library's own memory (the libraries it uses to decode pictures and read JSON keep
 * to the C library's). `alignment` is 64 and `size` a multiple of it; `allocate` may return NULL, which ends the call
 * at hand with OUT_OF_MEMORY. Both may be called from several threads at once and must not call the library. The struct
 * is copied. Set it while the library holds no memory: before any other call, or after everything was freed; not
 * thread-safe. NULL (or a struct with a NULL function) restores the C library's. */
typedef struct octet_allocator {
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} octet_allocator;
OCTET_API void octet_set_allocator(const octet_allocator *allocator);

/* Warnings ("a single model.safetensors wins over the index ..."), one line a call, without a line end. Process-wide;
 * called from the thread that met the cause, one line at a time; it must not call the library. NULL (the start) drops
 * them. After octet_set_log returns, the earlier function is not called any more. */
typedef void (*octet_log)(void *user, const char *line);
OCTET_API void octet_set_log(octet_log log, void *user);

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct octet_model octet_model;

typedef enum octet_task { OCTET_CLASSIFICATION = 0, OCTET_DETECTION = 1 } octet_task;

typedef struct octet_open_options {
    size_t struct_size;
    const char *device;       /* "cpu"; NULL: the same */
    const char *classes_file; /* a class name a line, for models that carry no labels of their own; NULL: none */
    int64_t batch;            /* pictures an engine takes at once, 1 .. 1024; 0: a bundle's smallest, else 1 */
    int32_t height, width;    /* build for this input size in pixels; 0: the model's own */
    uint32_t threads;         /* used while opening; 0: one a core */
    /* How a checkpoint's numbers are kept. "fp32" or NULL; "fp16", "bf16", "int8", "fp8"; "checkpoint":
     * as a quantized checkpoint itself says; the name of a recipe of the model's family, or a recipe file (.yaml). A
     * bundle was built with its own: then NULL. */
    const char *recipe;
    const char *scales; /* what octet calibrate wrote, for recipes with static scales; NULL: none */
} octet_open_options;
#define OCTET_OPEN_OPTIONS_DEFAULT                                                                                     \
    { sizeof(octet_open_options), NULL, NULL, 0, 0, 0, 0, NULL, NULL }

/* `place`: a bundle file, a checkpoint directory, or a hub id. `options` may be NULL: the defaults. Everything in the
 * files is checked before this returns, a bundle's checksums too, and the engine is ready to run; only where the input
 * follows the picture's size, the first picture of each size waits for its engine.
 * On success *model is the caller's, to close once; sessions and results of it keep what they need beyond that. */
OCTET_API octet_status octet_model_open(const char *place, const octet_open_options *options, octet_model **model);
OCTET_API void octet_model_close(octet_model **model);

/* Facts of an open model; `model` is not NULL. Strings live as long as the model or any of its sessions and results. */
OCTET_API octet_task octet_model_task(const octet_model *model);
OCTET_API const char *octet_model_name(const octet_model *model); /* architecture: "mobilenetv2_100" */
OCTET_API const char *octet_model_fingerprint(
    const octet_model
        *model); /* SHA-256 of the checkpoint's weights, 64 digits (a bundle: as its provenance says); "" if unknown */
OCTET_API int64_t octet_model_batch(const octet_model *model); /* pictures an engine takes at once */
/* The input in pixels; where it follows the picture (a detector resized by its edges), the checkpoint's own size.
 * Either address may be NULL. */
OCTET_API void octet_model_input_size(const octet_model *model, int32_t *height, int32_t *width);
OCTET_API size_t octet_model_class_count(const octet_model *model);
OCTET_API const char *octet_model_label(const octet_model *model, size_t index); /* NULL past the last */

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

typedef struct octet_session octet_session;

typedef enum octet_orientation {
    OCTET_UPRIGHT = 0, /* EXIF orientation applied */
    OCTET_STORED = 1   /* pixels as stored */
} octet_orientation;

/* A caller's threads: runs task(argument, i) for i = 0 .. count - 1, each once, in any order and on any threads, and
 * returns when all are done. Results do not depend on how. Tasks do not fail and do not call it again. Called from the
 * thread that runs the session. */
typedef void (*octet_parallel_for)(void *user, size_t count, void (*task)(void *argument, size_t index),
                                   void *argument);

typedef struct octet_session_options {
    size_t struct_size;
    uint32_t threads; /* up to 1024; 0: one a core; with parallel_for: how many it has at most */
    octet_orientation orientation;
    octet_parallel_for parallel_for; /* NULL: threads of the session's own, which sleep between runs */
    void *parallel_for_user;
} octet_session_options;
#define OCTET_SESSION_OPTIONS_DEFAULT                                                                                  \
    { sizeof(octet_session_options), 0, OCTET_UPRIGHT, NULL, NULL }

/* `options` may be NULL: the defaults. One thread at a time may use a session, not always the same one; any number of
 * sessions of one model may run at once. Memory for running is taken here, so that a run needs little more than its
 * results. On success *session is the caller's, to free. */
OCTET_API octet_status octet_session_new(octet_model *model, const octet_session_options *options,
                                         octet_session **session);
OCTET_API void octet_session_free(octet_session **session);

/* ---- pictures and results ---------------------------------------------------------------------------------------- */

typedef enum octet_picture_kind {
    OCTET_PICTURE_FILE = 0,   /* `path` */
    OCTET_PICTURE_MEMORY = 1, /* an encoded file: `data`, `size` */
    OCTET_PICTURE_RGB8 = 2,   /* 8-bit pixels: `data`, `width`, `height`, strides; preprocessed like a file's */
    OCTET_PICTURE_INPUT =
        3 /* float32 pixels as the network takes them: `data`, `width`, `height` = the input's size, strides */
} octet_picture_kind;

typedef struct octet_picture {
    size_t struct_size;
    octet_picture_kind kind;
    const char *path;
    const void *data;
    size_t size; /* MEMORY: bytes */
    int32_t width, height;
    int64_t row_stride;     /* RGB8, INPUT: bytes from a row to the next, may be negative (data is the top row); 0: no
                               padding */
    int64_t pixel_stride;   /* bytes from a pixel to the next; 0: 3 values without padding */
    int64_t channel_stride; /* bytes from red to green; 0: 1 (RGB8) or 4 (INPUT) */
} octet_picture;
#define OCTET_PICTURE_DEFAULT                                                                                          \
    { sizeof(octet_picture), OCTET_PICTURE_FILE, NULL, NULL, 0, 0, 0, 0, 0, 0 }

typedef struct octet_result octet_result;

/* Runs `count` >= 1 pictures, the model's batch at a time, in order; what a picture's result says does not depend on
 * the others. `results` has room for `count`; results[i] is picture i's, the caller's to free. On failure the text
 * names the picture, and every results[i] is NULL; the session is as good as before. The three differ in what they
 * take. */
OCTET_API octet_status octet_session_run(octet_session *session, const octet_picture *pictures, size_t count,
                                         octet_result **results);
OCTET_API octet_status octet_session_run_file(octet_session *session, const char *path, octet_result **result);
OCTET_API octet_status octet_session_run_memory(octet_session *session, const void *data, size_t size,
                                                octet_result **result);
OCTET_API void octet_result_free(octet_result **result);

/* A result is never changed; it may outlive its session and model. Labels live as long as the model or any result of
 * it. `result` is not NULL, an address for a number may be. */
OCTET_API octet_task octet_result_task(const octet_result *result);
/* The picture's size in pixels, as decoded and turned upright; for OCTET_PICTURE_INPUT the input's. */
OCTET_API void octet_result_picture_size(const octet_result *result, int32_t *width, int32_t *height);

/* The network's raw outputs, row by row. Classification: 1 row of classes. Detection: a row a detection token, of
 * classes + 1 columns, the last being "no object". rows * columns values, owned by the result. */
OCTET_API const float *octet_result_logits(const octet_result *result, size_t *rows, size_t *columns);
/* Detection: rows of centre x, centre y, width, height in 0 .. 1 of the picture, 4 values each, owned by the
 * result; NULL and 0 rows for classification. */
OCTET_API const float *octet_result_boxes(const octet_result *result, size_t *rows);

typedef struct octet_class {
    int32_t index;
    const char *label;
    float probability; /* softmax over all classes */
    float logit;
} octet_class;
/* The `count` most probable classes, the best first, ties by rising index, logits that are not numbers last. Returns
 * how many were written: min(count, classes); 0 for a detection. `classes` may be NULL if count is 0. */
OCTET_API size_t octet_result_top(const octet_result *result, octet_class *classes, size_t count);

typedef struct octet_detection {
    int32_t index;
    const char *label;
    float score;   /* softmax over all classes with no-object, of the best class that is not no-object */
    float box[4];  /* x0, y0, x1, y1 in pixels of the picture, not clipped */
    int32_t token; /* which detection token */
} octet_detection;
/* Detections with score > threshold in order of tokens, at most `count`; returns how many there are in all, so a call
 * with NULL and count 0 sizes the buffer. 0 for a classification. */
OCTET_API size_t octet_result_detections(const octet_result *result, float threshold, octet_detection *detections,
                                         size_t count);

/* A copy of the picture (file at `path`) with what the result says drawn on it: boxes above `threshold`, or the top
 * classes. JPEG or PNG by the extension of `output`; written whole or not at all: on failure a file there is as it was.
 * `orientation` as the session's. */
OCTET_API octet_status octet_draw(const octet_result *result, const char *path, octet_orientation orientation,
                                  float threshold, const char *output);

#ifdef __cplusplus
}
#endif

#endif
