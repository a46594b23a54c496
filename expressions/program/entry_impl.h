/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a problem declares: symbols, variables, directions of differentiation, entries. */
#ifndef TRLI_ENTRY_IMPL_H
#define TRLI_ENTRY_IMPL_H

#include "opaque_impl.h"
#include <trl_entry.h>
#include <trl_operator.h>

typedef enum trli_symbol_kind {
    TRLI_SYMBOL_VARIABLE, /* an equation's unknown: supplied from outside, per instance */
    TRLI_SYMBOL_FORMULA,  /* an entry with a formula */
    TRLI_SYMBOL_OUTPUT    /* a tag computed by a plugin entry */
} trli_symbol_kind;

typedef struct trli_symbol {
    const char *name;
    trli_symbol_kind kind;
    int index;  /* variable, or entry */
    int output; /* OUTPUT: which of the entry's tags */
    trl_place place;
} trli_symbol;

/* A variable of the problem, as the solver declares it. */
typedef struct trli_variable {
    const char *name;
    trl_location location;
    const trl_scope *names;
    const trl_bc_side *boundary; /* [6] */
    trl_formula *initial, *mask; /* mask: NULL: none */
    const trl_formula *ddt;      /* shown in the dependency graph; lowered by the solver */
    trl_place place;
    int direction; /* 0: an unknown of its own; else the tangent along a direction */
    int of;        /* of this variable; it has that one's boundary, names and mask, and no formulas */
} trli_variable;

/* A direction of differentiation, numbered from 1: what changes is a parameter, or the variables that have a tangent
 * along it, or both. */
typedef struct trli_direction {
    const char *name; /* the parameter's, or one for messages */
    int scalar;       /* that holds the parameter, or -1 */
} trli_direction;

/* A tag of a plugin entry, as its advertise_dependents declared it. */
typedef struct trli_advertised {
    const char *own_name; /* the type's name */
    const char *tag;      /* the deck's name */
    trl_location location;
    trl_offsets reach; /* required tags: offsets read */
    int symbol;        /* required tags: resolved */
    int component;     /* required tags: of a vector, or -1 */
} trli_advertised;

/* An entry of `expressions`, parsed or set up. */
typedef struct trli_entry {
    const trl_expression_entry *deck;
    int nformulas; /* components; 0: operand */
    trl_formula **formula;
    void *state;
    bool state_ready;
    int ncomputed, nrequired;
    trli_advertised *computed, *required;
    const trli_opaque *opaque; /* with a type */
    bool has_boundary;
    bool used;
} trli_entry;

#endif
