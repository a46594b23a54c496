/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a problem declares: variables and directions of differentiation. */
#ifndef TRLI_VARIABLE_IMPL_H
#define TRLI_VARIABLE_IMPL_H

#include <trl_entry.h>
#include <trl_operator.h>

/* A variable of the problem, as the solver declares it. */
typedef struct trli_variable {
    const char *name;
    trl_location location;
    const trl_scope *names;
    const trl_bc_side *boundary; /* [6] */
    trl_formula *initial, *mask; /* mask: NULL: none */
    const trl_formula *ddt;      /* lowered by the solver, and where ddt(f) is asked for */
    const trl_formula *implicit; /* a part of the rate beside ddt, or NULL */
    const trl_formula *less;     /* what the rate is less by than ddt says, or NULL, and the names in it */
    const trl_scope *less_names;
    trl_place place;
    int direction; /* 0: an unknown of its own; else the tangent along a direction */
    int of;        /* of this variable; it has that one's boundary, names and mask, and no formulas */
    bool is_rate;  /* it is the time derivative of variable `of`, and has formulas of its own */
} trli_variable;

/* A direction of differentiation, numbered from 1: what changes is a parameter, or the variables that have a tangent
 * along it, or both. */
typedef struct trli_direction {
    const char *name;   /* the parameter's, or one for messages */
    const char *solved; /* names of the unknowns that a system is solved for; NULL: it is none */
    int scalar;         /* that holds the parameter, or -1 */
    bool time;          /* what changes is the time, and variables by their rates */
} trli_direction;

#endif
