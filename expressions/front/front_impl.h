/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the front knows of a problem: its entries, their names, order and dependencies, and where lowering stands. */
#ifndef TRLI_FRONT_IMPL_H
#define TRLI_FRONT_IMPL_H

#include "model_impl.h"
#include "names_table_impl.h"

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
    const struct trli_entry *finer; /* of the model on a finer grid, or NULL */
    void *state;
    bool state_ready; /* it is this entry's own, or else that of the finer one */
    int ncomputed, nrequired, computed_capacity, required_capacity;
    trli_advertised *computed, *required;
    int nops, ops_capacity;
    trl_operator **op;         /* handed out in bind_operators */
    bool neutral;              /* with a type that is NEUTRAL: its tags are values as those of formulas */
    const trli_opaque *opaque; /* with any other type */
    bool has_boundary;
    bool used;
    bool noisy;      /* it contains noise(seed), or depends on an entry that does */
    bool reads_step; /* likewise: dt, old(f), noise, an entry that is held through steps, or one with a type */
    bool given;   /* it and all that it depends on are formulas of coordinates, t and parameters, without conditions */
    bool changes; /* no two evaluations need be the same: likewise of variables, time, reductions, types */
    bool lasting; /* stored, and evaluated once, by the model's program `lasting` */
} trli_entry;

/* Passes and runs know nothing of it. It lives as long as the model: runs use the states of plugins, the plan and the
 * picture of the dependency graph use names and order. */
struct trli_front {
    const trl_scope *parameters;
    int nentries;
    trli_entry *entry;
    int nsymbols, symbols_capacity;
    trli_symbol *symbol;
    trli_table names; /* name -> symbol */
    int nstencils;
    trl_operator **stencil; /* [nstencils] the problem's own */
    int *order;             /* [nentries] entries, dependencies first */
    int *dep_start;         /* [nentries + 1] entries that an entry depends on: dep[dep_start[e]] ... */
    int *dep;
    int ndeps, deps_capacity;
    int64_t expanded;             /* what the sums and products of formulas that were visited expand to */
    struct trli_defined *defined; /* values of parameters that may depend on those of directions */
    int ndefined, defined_capacity;
    struct trli_instance *lasting; /* while programs are made: the instance of the program `lasting`, or NULL */
    const struct trli_under_way *under_way; /* the innermost lowering of a named value */
};

/* Make a model's front from the entries, stencils and parameters of a problem: parse, set plugin entries up, resolve
 * names, order. */
TRL_NODISCARD trl_err trli_front_create(trli_model *model, const trli_model_request *request);
void trli_front_destroy(trli_front **front);

#endif
