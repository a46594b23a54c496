/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Instances: the expressions of a problem evaluated from one set of the variables' values, at one time. Equal values of
 * two instances are one node of the IR: what does not change with time or stage is computed once. */
#ifndef TRLI_INSTANCE_IMPL_H
#define TRLI_INSTANCE_IMPL_H

#include "front_impl.h"
#include "marks_impl.h"
#include "operand_impl.h"

typedef struct trli_instance trli_instance;
typedef struct trli_lowering trli_lowering;

/* Calls from a file of front/ to one that calls it: a formula has names, a name stands for a formula with boundary
 * conditions, and these have formulas and derivatives. All are REQUIRED. instance.c sets them; the functions below and
 * trli_lower_node call them. */
typedef struct trli_front_ops {
    /* Lower a part of a formula (nodes.c). */
    trl_err (*node)(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand);
    /* Find the value of a symbol (values.c). */
    trl_err (*symbol)(trli_instance *in, const trli_symbol *symbol, trli_operand *operand);
    /* Find the derivative of a value (tangent.c). */
    trl_err (*tangent)(trli_instance *in, int direction, trli_ir_value value, trli_ir_value *tangent);
} trli_front_ops;

struct trli_instance {
    const trli_front_ops *ops;
    trli_model *model;
    trli_program *program;
    const trli_instance *old; /* instance of old(f) and evaluate: step; NULL: this one */
    int time_scalar;
    int stage;
    int *variable;           /* [nvariables] the field of each, or -1 */
    int **plugin_field;      /* [nentries] fields of each computed tag, NULL: not yet */
    bool initial;            /* the variables' values are their initial formulas */
    bool rates;              /* ddt(f) may be asked for: the values are those of the present time, of no stage */
    bool averages;           /* of random numbers that change with steps: what bounds dt does not wait for them */
    bool at_side;            /* what boundary conditions read, in the frame of their side */
    int across;              /* the axis of the side whose conditions are lowered at present */
    trli_instance *begins;   /* the variables' values are those of this instance, in fields; NULL: variable[] */
    bool rates_only;         /* points on sides are set of rates alone: those of other variables are set already */
    int planes_along;        /* 0, or of tangents along this direction alone, where conditions change along it */
    bool inline_only;        /* it shares the fields of another instance and stores nothing */
    trli_instance *of;       /* that instance */
    bool with_sides;         /* expressions with boundary values of their own are read where `of` stores them */
    trli_instance *sides;    /* the same instance for boundary values, made at first use */
    trli_instance *inlined;  /* the same instance, which stores nothing, made at first use */
    const trli_marks *marks; /* NULL, or which parts of formulas are lowered in instance `no_cse` */
    trli_instance *no_cse;   /* the same instance, in which a variable is read as a value of its own */
    bool reads_no_cse;
    struct trli_memo *memo;         /* of values.c, made at first use */
    struct trli_tangents *tangents; /* of tangent.c, made at first use */
    struct {                        /* of sides.c */
        int conditions_from;        /* the first step of conditions; -1: none yet */
        bool filled;                /* a step sets the ghosts of the variables */
        bool rates_only;            /* this is for those of rates alone: others have theirs, by an earlier instance */
        bool open;                  /* that step is being made */
        int nmore, *more;           /* [nmore] fields whose ghosts it sets, too */
    } fill;
};

TRL_NODISCARD trl_err trli_instance_create(trli_model *model, trli_program *program, int time_scalar, int stage,
                                           const trli_instance *old, trli_instance **instance);
void trli_instance_destroy(trli_instance **instance);
/* An instance that shares fields and plugins' results with another and stores nothing. Marked parts of formulas, and
 * the named expressions that they read, are lowered without CSE in it: they read variables by trli_ir_field_no_cse.
 * marks: sorted, valid as long as the instance is. */
TRL_NODISCARD trl_err trli_instance_marked(trli_instance *instance, const trli_marks *marks, trli_instance **marked);
void trli_instance_marked_destroy(trli_instance **marked);
/* Lower every entry that is used, dependencies first, so that later lowering recurses no deeper than one formula. */
TRL_NODISCARD trl_err trli_instance_prepare(trli_instance *instance);

/* An instance that shares fields and plugins' results with another, has no values yet, and stores nothing. */
TRL_NODISCARD trl_err trli_instance_share(trli_instance *instance, trli_instance **shared);
/* The instance that boundary values are lowered in: shares fields and plugins' results, stores nothing. */
TRL_NODISCARD trl_err trli_instance_sides(trli_instance *instance, trli_instance **sides);
/* The instance that old(f) is lowered in. */
TRL_NODISCARD trl_err trli_instance_old(trli_instance *instance, trli_instance **old);

/* The value of a symbol. */
TRL_NODISCARD static inline trl_err trli_lower_symbol(trli_instance *in, const trli_symbol *symbol,
                                                      trli_operand *operand)
{
    return in->ops->symbol(in, symbol, operand);
}
/* The derivative of a value lowered in an instance along a direction: by its parameter, and times the variables'
 * tangents in the instance (a Jacobian-vector product). What plugins compute has none: INPUT error. Reductions and
 * stored values have theirs appended to the program. *tangent = TRLI_NO_VALUE: zero. */
TRL_NODISCARD static inline trl_err trli_tangent(trli_instance *in, int direction, trli_ir_value value,
                                                 trli_ir_value *tangent)
{
    return in->ops->tangent(in, direction, value, tangent);
}

#endif
