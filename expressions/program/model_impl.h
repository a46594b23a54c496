/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The model: what a problem declares, its fields and scalars, and the programs compiled from them. */
#ifndef TRLI_MODEL_IMPL_H
#define TRLI_MODEL_IMPL_H

#include "machine_impl.h"
#include "program_impl.h"
#include "spatialops_impl.h"
#include "variable_impl.h"
#include <trl_field_manager.h>

/* The name of the program that computes what lasts. */
#define TRLI_LASTING_PROGRAM "lasting"

/* Scalars that every model has. */
enum { TRLI_SCALAR_STEP_TIME, TRLI_SCALAR_DT, TRLI_SCALAR_STEP, TRLI_SCALARS_FIXED };

typedef struct trli_front trli_front;
typedef struct trli_slot_plan trli_slot_plan;
typedef struct trli_model_run trli_model_run;

/* What the run chooses, not the problem. */
typedef struct trli_settings {
    trl_fusion fusion;
    trl_compile compile;
    bool gpus_alone; /* kernels are compiled for these; the CPU interprets its own */
    bool fast_math;
    unsigned disabled_passes; /* TRL_PASS_... */
    trli_cache_line line;     /* at which rows of fields begin */
} trli_settings;

/* Two programs that may run in one frame at once. */
typedef struct trli_meeting {
    const trli_program *one, *other;
} trli_meeting;

/* Batches of sums that ranks bring together, of what no program reduces, or several do: trli_batch_post. */
enum { TRLI_SENT_PROFILES, TRLI_SENT_SPECTRA, TRLI_SENT_JOINT, TRLI_SENT };

struct trli_model {
    trl_context *ctx;
    const trl_layout *layout;
    trli_ir ir;
    trli_walk walk;
    bool *changes; /* [nchanges] of a value: whether it has a scalar, or a field that does not last */
    int32_t nchanges, changes_capacity;
    trli_settings settings;
    trli_machine machine;
    const char *location_word[8]; /* what the deck calls a location, several of which may be one on its grid */
    int ndirections, directions_capacity;
    trli_direction *direction; /* [ndirections], the first is number 1 */
    int nopaques;              /* opaque expressions, by number */
    int nvariables, variables_capacity;
    trli_variable *variable;
    int nfields, fields_capacity;
    trli_model_field *field;
    int nscalars, scalars_capacity;
    double *scalar;
    int nprograms, programs_capacity;
    trli_program **program;
    int nmeetings, meetings_capacity;
    trli_meeting *meeting; /* beside those that follow from calls */
    bool may_last;         /* its programs are run by somebody who runs `lasting` before */
    int nlasting;          /* fields of named values that it computes, beside those that are stored in any case */
    trli_program *lasting; /* computes what no step changes, before all others; NULL: there is no such thing */
    trli_slot_plan *slots; /* once fields have places: passes/slot_plan_impl.h */
    bool joint;          /* programs that run in turn touch the same fields: a solver's, the step and what bounds dt */
    int sent[TRLI_SENT]; /* so many sums of each */
    struct trli_late_scalars *late; /* run/late_scalars_impl.h; NULL: there are none */
    trli_front *front;              /* front/front_impl.h */
    trli_model_run *run;            /* run/model_run_impl.h */
    void **owned;                   /* small blocks that live as long as the model: names, lists of fields */
    int nowned, owned_capacity;
};

/* What a model is made from. */
typedef struct trli_model_request {
    const trl_layout *layout;
    const trl_scope *parameters;
    trl_fusion fusion;
    trl_compile compile;
    bool fast_math;           /* of compiled kernels */
    double balance;           /* additions in the time of a byte; 0: measured */
    unsigned disabled_passes; /* TRL_PASS_... */
    int nentries;
    const trl_expression_entry *entries;
    int nvariables;
    const trli_variable *variables; /* copied; masks are owned by the caller */
    int nstencils;
    const trl_stencil_entry *stencils;
    trl_workers *workers;
    const trli_model *finer; /* NULL, or a model of the same entries: types share its states where formulas do not
                              * contain them, and are not evaluated on this grid */
} trli_model_request;
/* The deck has written a location; the first word for what is one place is kept. */
void trli_model_note_location(trli_model *model, trl_location written);
/* A location in the deck's words, or "no location" (-1). */
const char *trli_location_text(const trli_model *model, int location);
int trli_model_add_field(trli_model *model, const char *name,
                         trl_location location);            /* -1: no memory, recorded in model->ir.err */
int trli_model_add_scalar(trli_model *model, double value); /* likewise */
/* Zeroed memory that lives as long as the model; NULL without memory, recorded in model->ir.err. */
void *trli_model_keep(trli_model *model, size_t bytes);
const char *trli_model_name(trli_model *model, const char *format, ...) TRL_PRINTF(2, 3);
/* Points of a location on this rank; row: of the longest row along x, or NULL. */
int64_t trli_model_points(const trli_model *model, trl_location location, trl_lidx *row);
/* Whether so many values fill more than half of the last-level cache, which others share: streaming stores are tried
 * then. In builds for testing, all do. */
bool trli_exceeds_caches(const trl_context *ctx, int64_t values);
#endif
