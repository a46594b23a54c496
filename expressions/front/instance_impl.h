/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Instances: the expressions evaluated from one set of the variables' values, at one time. */
#ifndef TRLI_INSTANCE_IMPL_H
#define TRLI_INSTANCE_IMPL_H

#include "model_impl.h"

typedef struct trli_instance trli_instance;

#define TRLI_ANYWHERE (-1) /* no location: numbers, coordinates, t, reductions */

typedef struct trli_operand {
    int components; /* 0: a scalar; else one per axis of the grid */
    int location[3];
    trli_value value[3];
} trli_operand;

/* ---- instances: the expressions evaluated from one set of the variables' values, at one time ---- */

typedef enum trli_memo_state { TRLI_MEMO_EMPTY, TRLI_MEMO_BUSY, TRLI_MEMO_DONE, TRLI_MEMO_FAILED } trli_memo_state;

typedef struct trli_memo {
    trli_memo_state state;
    trli_operand operand;
} trli_memo;

/* Parts of formulas. */
typedef struct trli_marks {
    int n, capacity;
    const trl_ast **node;
} trli_marks;

struct trli_instance {
    trli_model *model;
    trli_program *program;
    const trli_instance *old; /* instance of old(f) and evaluate: step; NULL: this one */
    int time_scalar;
    int stage;
    int *variable;                /* [nvariables] the field of each, or -1 */
    trli_memo *formula;           /* [nentries] */
    trli_memo *variable_formula;  /* [nvariables] initial program: their values are formulas */
    int **plugin_field;           /* [nentries] fields of each computed tag, NULL: not yet */
    int conditions_from;          /* the step from which on there are those of conditions; -1: none yet */
    bool filled;                  /* the ghosts of its variables are set by a step of its own */
    bool inline_only;             /* boundary values: named formulas are never stored */
    bool initial;                 /* the variables' values are their initial formulas */
    struct trli_instance *begins; /* the variables' values are those of this instance, in fields; NULL: variable[] */
    struct trli_instance *sides;  /* the same instance for boundary values, made at first use */
    const trli_marks *marks;      /* NULL, or which parts of formulas are lowered in instance `apart` */
    struct trli_instance *apart;  /* the same instance, with the variables' values read apart */
    bool reads_apart;
    struct trli_tangent **tangent; /* [ntangents] by direction, made at first use */
    int ntangents;
};

TRL_NODISCARD trl_err trli_instance_create(trli_model *model, trli_program *program, int time_scalar, int stage,
                                           const trli_instance *old, trli_instance **instance);
void trli_instance_destroy(trli_instance **instance);
/* The instance that boundary values are lowered in: shares fields and plugins' results, stores nothing. */
TRL_NODISCARD trl_err trli_instance_sides(trli_instance *instance, trli_instance **sides);
/* The instance that old(f) is lowered in. */
TRL_NODISCARD trl_err trli_instance_old(trli_instance *instance, trli_instance **old);
/* An instance that shares fields and plugins' results with another and stores nothing. The variables that marked parts of formulas read,
 * also through named expressions, are read apart in it (trli_ir_field_no_cse). marks: sorted, valid as long as the instance is. */
TRL_NODISCARD trl_err trli_instance_marked(const trli_instance *instance, const trli_marks *marks,
                                           trli_instance **marked);
void trli_instance_marked_destroy(trli_instance **marked);
/* Mark a part of a formula; put them in the order in which they are found. */
TRL_NODISCARD trl_err trli_marks_add(trli_model *model, trli_marks *marks, const trl_ast *node);
void trli_marks_sort(trli_marks *marks);
bool trli_marks_have(const trli_marks *marks, const trl_ast *node);
/* Lower every entry that is used, dependencies first, so that later lowering recurses no deeper than one formula. */
TRL_NODISCARD trl_err trli_instance_prepare(trli_instance *instance);

/* -- sides.c -- */
/* Append the fill of the variables' ghosts with their boundary conditions; the first step of an instance. */
TRL_NODISCARD trl_err trli_instance_fill(trli_instance *instance);
/* Append the fill of one field's ghosts. */
TRL_NODISCARD trl_err trli_instance_fill_field(trli_instance *instance, int field);
/* Append what sets points on sides of the variables' fields, after all that their conditions read; check: to finite values. Conditions that
 * need each other's points are an INPUT error that names the cycle. */
TRL_NODISCARD trl_err trli_instance_planes(trli_instance *instance, bool check);

/* -- lower.c -- */
/* Lower a formula in an instance. names: indices, local and global parameters. */
TRL_NODISCARD trl_err trli_lower(trli_instance *instance, const trl_formula *formula, const trl_scope *names,
                                 trli_operand *operand);
/* Lower where one location is wanted: values without location are placed there, others must be there. */
TRL_NODISCARD trl_err trli_lower_at(trli_instance *instance, const trl_formula *formula, const trl_scope *names,
                                    trl_location location, trli_value *value);
/* The value of a symbol. */
TRL_NODISCARD trl_err trli_lower_symbol(trli_instance *instance, const trli_symbol *symbol, const trl_text *text,
                                        const trl_ast *node, trli_operand *operand);

/* -- tangent.c -- */
/* Declare a direction, before anything is lowered. name: of a global parameter, which becomes a scalar of the model, or any other. */
TRL_NODISCARD trl_err trli_direction_add(trli_model *model, const char *name, int *direction);
/* The variable that is the tangent of a variable along a direction, or -1. */
int trli_tangent_variable(const trli_model *model, int direction, int variable);
/* The derivative of a value lowered in an instance along a direction: by its parameter, and times the variables' tangents in the
 * instance (a Jacobian-vector product). What plugins compute has none: INPUT error. Reductions and stored values have theirs
 * appended to the program. *tangent = TRLI_NO_VALUE: zero. */
TRL_NODISCARD trl_err trli_tangent(trli_instance *instance, int direction, trli_value value, trli_value *tangent);
void trli_tangents_free(trli_instance *instance);

/* -- plugin_step.c -- */
TRL_NODISCARD trl_err trli_entry_setup(trli_model *model, trli_entry *entry);
void trli_entry_free(trli_entry *entry);
/* Resolve the tags that plugin entries require. */
TRL_NODISCARD trl_err trli_entry_resolve(trli_model *model, trli_entry *entry);
/* The fields that hold what a plugin entry requires, in an instance; stores formulas where needed. */
TRL_NODISCARD trl_err trli_plugin_inputs(trli_instance *instance, int entry, int **fields);
/* Append a plugin entry's evaluation in an instance; its computed fields are then in instance->plugin_field. */
TRL_NODISCARD trl_err trli_plugin_add(trli_instance *instance, int entry);

/* The scalar that holds the smallest stable_dt of a plugin entry over all patches. */
TRL_NODISCARD trl_err trli_plugin_stable_dt(trli_instance *instance, int entry, int *scalar);

/* -- boundary.c -- */
/* Lower the conditions of a field's sides in an instance, in the frame of each side. */
TRL_NODISCARD trl_err trli_boundary_lower(trli_instance *instance, int field, trli_side sides[6]);
/* Those of one side, numbered 2*axis + which. */
TRL_NODISCARD trl_err trli_boundary_lower_side(trli_instance *instance, int field, int s, trli_side *side);
/* One piece's value at the points on a side of a location whose axis bit is set there: for advective fluxes on
 * Dirichlet faces. */
TRL_NODISCARD trl_err trli_boundary_face_value(trli_instance *instance, const trli_boundary_source *boundary, int axis,
                                               int side, trl_location face, trli_value inside, trli_value *value);
/* The value of a ghost layer (1, 2, ...) or of the plane on the side (layer 0). */
TRL_NODISCARD trl_err trli_boundary_layer(trli_model *model, int field, const trli_side *side, int axis, int which,
                                          int layer, trli_value *value);
/* Whether the side's points are set by a Dirichlet condition everywhere. */
bool trli_boundary_fixes_side(const trl_bc_side *side);
/* Whether a tangent's conditions are all zero: the derivatives of conditions that do not change along its direction. */
bool trli_boundary_is_zero(const trli_side sides[6]);

#endif
