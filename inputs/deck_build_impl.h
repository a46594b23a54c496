/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the readers of a deck's parts share. Every function fails with INPUT at the place of the fault, or MEMORY.
 * Thread: main. */
#ifndef TRLI_DECK_BUILD_IMPL_H
#define TRLI_DECK_BUILD_IMPL_H

#include "merge_impl.h"

/* A number that is defined by a formula of others. */
typedef struct trli_named_number {
    const char *name;
    trl_text text;
    const trl_scope *indices; /* of the family that it belongs to; only the first level is looked at */
    double value;
    int state;     /* of the evaluation */
    int collector; /* the collection of needs that saw it last: each needs a name once */
    trl_formula *formula;
    int nneeds, needs_capacity, next;
    int *need; /* definitions of the same scope that must have values first */
    int nouter, outer_capacity;
    int *outer;      /* definitions of the outer scope that it uses */
    trl_place fixed; /* where a text that is read as a number uses it; line 0: nowhere */
} trli_named_number;

typedef struct trli_definitions {
    int n, capacity;
    trli_named_number *definition;
    trli_map map;
    struct trli_definitions *outer; /* evaluated already, or NULL */
} trli_definitions;

/* What a name of the one namespace stands for. */
typedef struct trli_owner {
    const char *what; /* "parameter", "equation", ... */
    trl_place place;
} trli_owner;

struct trli_deck {
    trl_context *ctx;
    trl_registry *registry;
    trli_arena *arena;
    const trli_deck_request *request;
    trli_loaded loaded;
    trli_yaml *root; /* merged, every default written out */
    trli_definitions parameters;
    int collections;      /* of needs of definitions so far */
    bool plugins_missing; /* types may be unknown because their library is */
    trli_map types;       /* names of entries with a type */
    trli_map names;       /* to positions in owner */
    int nowners, owner_capacity;
    trli_owner *owner;
    int members;        /* of all families so far */
    int64_t operations; /* of the sums and products in parameters and names so far */
    int nsolvers;
    trl_solver_entry *solver;
    trl_problem problem;
    trli_deck_options options;
};

/* Keep the worse of two errors, so that independent faults are all reported. */
static inline trl_err trli_worse(trl_err kept, trl_err err)
{
    return err > kept ? err : kept;
}

/* Texts */

typedef struct trli_words {
    int n, capacity;
    const char **word;
    trl_place *place;
    int place_capacity;
    bool indexed;              /* asked for by the caller: */
    const trl_scope **indices; /* [n] the numbers of each name's ranges as i, j, k, in front of the names given */
    int indices_capacity;
} trli_words;

/* Characters [begin, end) of a text as a text of their own. */
TRL_NODISCARD trl_err trli_text_part(trli_deck *deck, const trl_text *text, int begin, int end, trl_text *part);
/* Value of a number or of a formula of names that have numbers. */
TRL_NODISCARD trl_err trli_text_number(trli_deck *deck, const trl_text *text, const trl_scope *names, double *value);
TRL_NODISCARD trl_err trli_text_whole(trli_deck *deck, const trl_text *text, const trl_scope *names, int64_t *value);
/* A formula, or a list of them. */
TRL_NODISCARD trl_err trli_value_read(trli_deck *deck, const trli_yaml *node, trl_value *value);
/* Value of a checked number; NAN where node is NULL. */
double trli_yaml_number(const trli_yaml *node);
/* Value of a checked whole number; fallback where node is NULL. */
int64_t trli_yaml_whole(const trli_yaml *node, int64_t fallback);
bool trli_yaml_is_true(const trli_yaml *node);
/* The position of the value of a key of a mapping among the key's words; below: the mapping's row of the schema. */
int trli_yaml_word(const trli_key *below, const trli_yaml *mapping, const char *key);
/* The same for a top-level mapping. */
int trli_deck_word(const trli_deck *deck, const char *mapping, const char *key);

/* Names and families */

/* Spell a name with its braces evaluated. A range in braces is an error. */
TRL_NODISCARD trl_err trli_name_spell(trli_deck *deck, const trl_text *text, const trl_scope *names, const char **name);
/* Append the names that a text stands for: "phi{1..16}" is sixteen. component: "q.x" is allowed too. */
TRL_NODISCARD trl_err trli_names_expand(trli_deck *deck, const trl_text *text, const trl_scope *names, bool component,
                                        trli_words *words);
/* Enter a name into the one namespace; taken or reserved names are errors. */
TRL_NODISCARD trl_err trli_name_claim(trli_deck *deck, const char *name, const trl_place *place, const char *what);

typedef struct trli_family {
    int n; /* indices; 0: one member without any */
    const char **index;
    int64_t *first, *count;
    int members;
} trli_family;

/* Read the `for` of an entry, or none. names: the parameters that ranges may use. */
TRL_NODISCARD trl_err trli_family_read(trli_deck *deck, const trli_yaml *entry, const trl_scope *names,
                                       trli_family *family);
/* The indices of a member, 0 <= member < members, in front of outer; outer itself when there are none. */
TRL_NODISCARD trl_err trli_family_names(trli_deck *deck, const trli_family *family, int member, const trl_scope *outer,
                                        const trl_scope **names);

/* Parameters */

TRL_NODISCARD trl_err trli_definitions_add(trli_deck *deck, trli_definitions *scope, const char *name,
                                           const trl_text *text, const trl_scope *indices);
/* Give every definition its value, in whatever order they need each other. A cycle is an error with the whole path.
 * partly: leave definitions without a value that need names the scope does not have yet. */
TRL_NODISCARD trl_err trli_definitions_evaluate(trli_deck *deck, trli_definitions *scope, bool partly);
/* The names that have values, in front of outer. */
TRL_NODISCARD trl_err trli_definitions_scope(trli_deck *deck, const trli_definitions *scope, const trl_scope *outer,
                                             const trl_scope **names);

/* The parts of a deck, in this order */

TRL_NODISCARD trl_err trli_plugins_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_parameters_read(trli_deck *deck);
/* Put numbers in place of the formulas of parameters that stand where the schema wants numbers. */
TRL_NODISCARD trl_err trli_constants_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_grid_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_stencils_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_expressions_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_solvers_read(trli_deck *deck);
/* Once equations and the method of time integration are known: keys of solvers that nothing uses. */
TRL_NODISCARD trl_err trli_solvers_check(trli_deck *deck);
TRL_NODISCARD trl_err trli_equations_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_flow_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_sensitivity_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_time_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_output_read(trli_deck *deck);
TRL_NODISCARD trl_err trli_run_read(trli_deck *deck);

/* Read the `every` of a mapping, or none, once time is known; a time of a list that is never met is a warning. */
TRL_NODISCARD trl_err trli_every_read(trli_deck *deck, const trli_yaml *parent, trl_every *every);
/* Read the `boundary` of an entry, or none, into its six sides. */
TRL_NODISCARD trl_err trli_boundary_read(trli_deck *deck, const trli_yaml *entry, const trl_scope *names,
                                         trl_bc_side side[6]);
/* Read the `solver` of an entry: a name of `solvers`, or auto. */
TRL_NODISCARD trl_err trli_solver_name_read(trli_deck *deck, const trli_yaml *entry, trl_equation_entry *equation);
/* Read what only entries with a `type` have into member; the type's defaults are written out into the entry. */
TRL_NODISCARD trl_err trli_type_read(trli_deck *deck, trli_yaml *entry, trl_expression_entry *member);

#endif
