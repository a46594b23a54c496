/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Decks: YAML text to a checked trl_problem and the options of a run. */
#ifndef TRLI_DECK_IMPL_H
#define TRLI_DECK_IMPL_H

#include <trl_problem.h>

typedef struct trli_deck trli_deck;

/* How a deck is read: the command line's part. */
typedef struct trli_deck_request {
    const char *path;
    const char *text; /* the deck itself, the same on every rank; NULL: read from path */
    int nsets;
    const char *const *set; /* "a.b.c=value", in order */
    int nfolders;
    const char *const *plugin_folder; /* --plugin-path */
} trli_deck_request;

/* What is asked for to compute on: a kind, or GPUs by their numbers. */
typedef struct trli_device_choice {
    trl_target target;
    int n; /* GPU; 0: any */
    const int *gpu;
} trli_device_choice;

typedef struct trli_deck_options {
    const char *title;
    const char *directory; /* output.directory */
    trl_place directory_place;
    trl_every every, series_every, checkpoint_every; /* all zero: only at the start and the end (checkpoint: none) */
    int compression;                                 /* deflate level of fields, 0: none */
    bool beside_steps;                               /* files are written while steps go on */
    bool has_means;                                  /* of the series over time, */
    double means_from;                               /* since then */
    trl_every receivers_every;                       /* each step, if the deck does not say */
    bool has_checkpoint;
    trl_place checkpoint_place;
    int checkpoint_keep;
    size_t memory; /* bytes that a rank may allocate; 0: auto */
    int threads;   /* workers of a rank; 0: auto. How they are split is in the problem. */
    trli_device_choice devices;
} trli_deck_options;

/* Read, merge, check and expand a deck; loads its plugins into the registry. Reports as many independent errors as it
 * can. Every rank calls it: rank 0 reads the files and broadcasts their text. Collective: yes. The deck owns every
 * string of the problem. */
TRL_NODISCARD trl_err trli_deck_read(trl_context *ctx, trl_registry *registry, const trli_deck_request *request,
                                     trli_deck **deck);
void trli_deck_destroy(trli_deck **deck);
const trl_problem *trli_deck_problem(const trli_deck *deck);
const trli_deck_options *trli_deck_options_of(const trli_deck *deck);
/* The name of the file of the deck, or of one that it includes, to which a path leads; NULL: to none. */
const char *trli_deck_file_at(const trli_deck *deck, const char *path);
/* Whether output would replace a file that the deck was read from, unless that is a deck as used, which then is written
 * again. Fails with INPUT. */
TRL_NODISCARD trl_err trli_deck_check_kept(trl_context *ctx, const trli_deck *deck);
/* The deck as used (includes merged, --set applied, every default written out), readable by any YAML 1.1 reader with
 * the same meaning. trli_free gives *text back. */
TRL_NODISCARD trl_err trli_deck_write(trl_context *ctx, const trli_deck *deck, char **text);

#endif
