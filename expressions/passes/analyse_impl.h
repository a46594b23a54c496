/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the files of the backward pass share: analyse.c, analyse_sides.c for steps that set sides, demand.c for how
 * demands add up. */
#ifndef TRLI_ANALYSE_IMPL_H
#define TRLI_ANALYSE_IMPL_H

#include "model_impl.h"
#include "plan_impl.h"

typedef struct trli_analysis {
    trli_program *program;
    trli_plan *plan;
    trli_model *model;
    const trl_place *place; /* of the step under way */
    bool *scalar_live;
    bool *filled;         /* by field: its fill has been passed, going backwards */
    trl_footprint *early; /* by field that is filled later on: ghosts in the domain that are read before, and wait for
                             an exchange */
    trli_demand **later;  /* by field that a later step computes again: what is demanded of that one */
    trl_err first;        /* first problem that the user should hear of; the pass goes on to find more */
} trli_analysis;

/* How far a step computes beyond the owned points of its output. */
typedef struct trli_extension {
    trl_location location;
    trl_footprint inner;
    trl_offsets side;
    trl_footprint corner; /* as a demand's; none: the box `side` */
} trli_extension;

/* -- demand.c -- */
/* The deck's name of a field: a stage's values have one of their own. */
const char *trli_shown_name(const trli_model_field *f);
bool trli_reaches_out(const trl_footprint *f);
trli_extension trli_owned_only(trl_location location);
/* All that other programs need of what lasts. */
void trli_demand_lasting(trli_analysis *an);
/* A field is read with a footprint by a step that computes on an extension. */
void trli_demand_field(trli_analysis *an, const trli_extension *e, int field, const trl_footprint *reach);
/* Ghosts are read that nothing has set then: an error that the user hears of, unless there is one already. */
void trli_note_unset(trli_analysis *an, int field);

/* -- analyse_sides.c -- */
TRL_NODISCARD trl_err trli_analyse_fill(trli_analysis *an, trli_step *s);
TRL_NODISCARD trl_err trli_analyse_planes(trli_analysis *an, trli_step *s);
/* Every ghost that is read was set before; after all steps. */
void trli_check_filled(trli_analysis *an);

#endif
