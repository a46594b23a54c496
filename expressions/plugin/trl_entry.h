/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Entries of a problem that the expression layer knows: values, boundary conditions, formulas and plugin expressions.
 */
#ifndef TRL_ENTRY_H
#define TRL_ENTRY_H

#include <trl_boundary.h>
#include <trl_formula.h>
#include <trl_operator.h>
#include <trl_registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value where a deck may have a formula: one text, or a list (a vector). count 0: absent. */
typedef struct trl_value {
    int count;
    const trl_text *text;
    bool list;
    trl_place place; /* of the whole value */
} trl_value;

/* One piece of a side's condition; the first whose `where` holds is used. */
typedef struct trl_bc_piece {
    trl_bc_kind kind;
    trl_text where;         /* absent: everywhere */
    trl_value value;        /* dirichlet, neumann: the value; robin: a */
    trl_value b, c;         /* robin */
    const char *expression; /* expression: the name of the entry */
    trl_place place;
} trl_bc_piece;

typedef struct trl_bc_side {
    int npieces; /* 0: no condition */
    const trl_bc_piece *piece;
    trl_place place;
} trl_bc_side;

/* Passes that save time or memory and can be left out: bits of a set. The numbers do not depend on them. */
#define TRL_PASS_LIST(X)                                                                                         \
    X(HOISTING, hoisting, 1, "loop-invariant code motion: compute a value in the outermost loop that it allows") \
    X(CARRYING, carrying, 2, "scalar replacement: take values from the point or the row before")                 \
    X(PAIRS, pairs, 4, "loop interleaving: go through two planes at once")                                       \
    X(GHOSTS, ghosts, 8, "compute ghosts where they are read, and do not store them")                            \
    X(SHARING, sharing, 16, "CSE: compute equal operations once, also those of several equations")               \
    X(GROUPS, groups, 32, "loop fission: give results that read many rows loops of their own")                   \
    X(SLOTS, slots, 64, "colouring of lifetimes: fields that do not live at once share memory")                  \
    X(OVERLAP, overlap, 128, "compute points that need nothing of other ranks while messages are under way")     \
    X(SHARED, shared, 256, "exchange between ranks of a node through memory that they share")                    \
    X(HELPING, helping, 512, "compute points of other ranks of the node while these are late")
#define TRL_PASS_BIT(NAME, name, bit, doc) TRL_PASS_##NAME = (bit),
enum { TRL_PASS_LIST(TRL_PASS_BIT) };
#undef TRL_PASS_BIT

/* How much one kernel computes. */
#define TRL_FUSION_LIST(X)                                           \
    X(FULL, full, "as many expressions as can be computed together") \
    X(NODE, node, "one expression")                                  \
    X(NONE, none, "one operator")
#define TRL_FUSION_ENUM(NAME, name, doc) TRL_FUSION_##NAME,
typedef enum trl_fusion { TRL_FUSION_LIST(TRL_FUSION_ENUM) } trl_fusion;
#undef TRL_FUSION_ENUM

/* When kernels are compiled; kernels that are not are interpreted. */
#define TRL_COMPILE_LIST(X)                                                                      \
    X(AUTO, auto, "while the problem is run, if there is a compiler")                            \
    X(ALWAYS, always, "before the problem is run; without a compiler that works it is an error") \
    X(NEVER, never, "not at all")
#define TRL_COMPILE_ENUM(NAME, name, doc) TRL_COMPILE_##NAME,
typedef enum trl_compile { TRL_COMPILE_LIST(TRL_COMPILE_ENUM) } trl_compile;
#undef TRL_COMPILE_ENUM

/* What may be asked for to compute on. */
#define TRL_TARGET_LIST(X)                    \
    X(AUTO, auto, "whatever takes less time") \
    X(CPU, cpu, "CPUs")                       \
    X(GPU, gpu, "GPUs")
#define TRL_TARGET_ENUM(NAME, name, doc) TRL_TARGET_##NAME,
typedef enum trl_target { TRL_TARGET_LIST(TRL_TARGET_ENUM) } trl_target;
#undef TRL_TARGET_ENUM

/* When an expression is evaluated. */
#define TRL_EVALUATE_LIST(X)          \
    X(STAGE, stage, "at every stage") \
    X(STEP, step, "once at the start of each step, and held through its stages")
#define TRL_EVALUATE_ENUM(NAME, name, doc) TRL_EVALUATE_##NAME,
typedef enum trl_evaluate { TRL_EVALUATE_LIST(TRL_EVALUATE_ENUM) } trl_evaluate;
#undef TRL_EVALUATE_ENUM

/* An entry of `expressions`: a formula, or an expression type. Names are expanded already (family member "phi3"). */
typedef struct trl_expression_entry {
    const char *name; /* the result's name (formula) or the entry's (type) */
    trl_place place;
    const trl_scope *names; /* family indices and local parameters; the chain ends with the problem's parameters */
    trl_value formula;      /* count 0: a type */
    int location;           /* trl_location, or -1: inferred */
    trl_evaluate evaluate;
    trl_bc_side boundary[6]; /* x- x+ y- y+ z- z+ */
    /* types only */
    const trl_expr_type *type;
    trl_target device;             /* CPU: not by evaluate_cuda; GPU: by it, where there are GPUs */
    const trl_param_value *params; /* in the order of the type's table */
    int ncomputes;                 /* 0: the type's own names */
    const char *const *computes;
    int ninputs; /* renamed inputs */
    const char *const *input_own, *const *input_tag;
} trl_expression_entry;

/* A linear operator of the problem's own, called by its name in formulas. */
typedef struct trl_stencil_entry {
    const char *name;
    trl_place place;
    trl_location from, to;
    int npoints;
    const trl_stencil_point *point;
} trl_stencil_entry;

#ifdef __cplusplus
}
#endif
#endif
