/* SPDX-License-Identifier: Apache-2.0 */
/* The model behind octet_model: a checkpoint or a bundle, and engines for the input sizes asked for so far. */
#ifndef OCT_RUNTIME_MODEL_H
#define OCT_RUNTIME_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "graph/family.h"
#include "image/preprocess.h"
#include "octet/octet.h"
#include "runtime/bundle.h"
#include "runtime/labels.h"

/* Engines kept for a model whose input size follows the picture; the least recently used one goes. */
#define OCT_MODEL_ENGINES 4

typedef struct oct_model_slot {
    int height, width;
    oct_engine *engine;   /* NULL: free */
    oct_weights *weights; /* shapes for inspection; their data was released */
    uint64_t used;        /* turn of the last use */
} oct_model_slot;

struct octet_model {
    atomic_int references;
    oct_checkpoint *checkpoint;  /* NULL: from a bundle */
    const oct_family *family;    /* NULL: from a bundle */
    oct_bundle *bundle;          /* NULL: from a checkpoint */
    oct_weights *bundle_weights; /* for plans not opened yet; NULL where one engine took all */
    char family_name[32];
    oct_model facts;
    oct_preprocess preprocess;
    oct_preprocess own_preprocess;   /* as the checkpoint says, whatever size was asked for */
    struct oct_import *import;       /* quant/import.h; NULL: the checkpoint is not quantized, or it is a bundle */
    struct oct_model_recipe *recipe; /* recipes.h; NULL: float32, or from a bundle */
    oct_labels labels;
    int height, width; /* the input built for; with OCT_FIT_EDGES the size without a picture */
    bool follows_picture;
    int64_t batch;
    uint64_t parameters;
    pthread_mutex_t lock; /* guards what follows, and building from the checkpoint */
    oct_model_slot slots[OCT_MODEL_ENGINES];
    uint64_t turn;
    char fingerprint[OCT_SHA256_HEX]; /* "" until asked for */
};

/* octet_model_open with options already taken; recipe_text: instead of the text that options->recipe names, or NULL. */
octet_status oct_model_open(const char *place, const octet_open_options *options, const char *recipe_text,
                            octet_model **model);
octet_model *oct_model_retain(octet_model *model);
void oct_model_release(octet_model *model);
/* The engine for an input size, built now if there is none; retained for the caller (oct_engine_release). `weights`
 * (may be NULL) is retained too. Thread-safe. */
octet_status oct_model_engine(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                              oct_weights **weights);

/* ---- the two sources (model_checkpoint.c, model_bundle.c) */
octet_status oct_model_open_checkpoint(octet_model *model, const char *place, const octet_open_options *options);
octet_status oct_model_open_bundle(octet_model *model, const char *path, const octet_open_options *options);
/* An engine for an input size, with its weights; the caller holds the lock. */
octet_status oct_model_compile(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                               oct_weights **weights);
octet_status oct_model_load(octet_model *model, int height, int width, oct_pool *pool, oct_engine **engine,
                            oct_weights **weights);
/* Whether all it can run is one engine of a bundle. That engine takes the weights as it is opened, so it is opened with
 * the model: a failure later could not be tried again. */
bool oct_model_one_engine(const octet_model *model);
/* The graph after the passes, from the checkpoint. Takes the model's lock. */
octet_status oct_model_graph(octet_model *model, int height, int width, oct_graph *graph);

#endif
