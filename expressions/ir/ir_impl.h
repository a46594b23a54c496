/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The intermediate representation: a hash-consed DAG of scalar values, each a function of the point (i, j, k). A node
 * knows no location: reading a field at an offset and the coordinate's half-offset bit say all. Operands always precede
 * their users, so that every pass is a loop over ascending or descending indices, never a recursion. Value-changing
 * rewrites happen here, when a node is made, and nowhere later. */
#ifndef TRLI_IR_IMPL_H
#define TRLI_IR_IMPL_H

#include <trl_formula.h>
#include <trl_operator.h>

#include "ir_operators_impl.h"

typedef int32_t trli_ir_value; /* index of a node in its trli_ir */
#define TRLI_NO_VALUE (-1)

typedef struct trli_node {
    uint8_t op;
    uint8_t varies;   /* axes along which the value changes: bit a */
    bool unplaced;    /* contains a coordinate whose location is not chosen yet (trli_ir_place) */
    int8_t shift[3];  /* SHIFT: reads operand 0 at the point plus this */
    uint8_t reach[3]; /* farthest offset of a field read below, along each axis; saturates at 255 */
    int32_t index;    /* SCALAR, FIELD: which; COORDINATE, SHARE: axis; AT_SIDE: 2*axis + side; LIMIT: limiter;
                         FUNCTION*: row of the table */
    int32_t
        bit; /* COORDINATE, SHARE: location bit of the axis, or TRLI_UNPLACED; FIELD: 1: a node of its own (no CSE) */
    trli_ir_value arg[3];
    double number; /* CONSTANT: the value; RANDOM: the seed; SHARE: where */
} trli_node;

#define TRLI_UNPLACED 2

/* The nodes that a set of roots needs, ascending; reading a field or a scalar ends the walk. *list is owned by the
 * walk. */
typedef struct trli_walk {
    int32_t *list;
    int32_t count, capacity;
    int32_t *mark, nmark, stamp; /* mark[v] == stamp: in the list, at position place[v] */
    int32_t *place;
    int32_t *stack; /* of walks in depth */
} trli_walk;

typedef struct trli_ir {
    trl_context *ctx;
    const trl_grid *grid;
    trli_node *node;
    int32_t count, capacity;
    int32_t *bucket; /* hash of nodes, open addressing, -1 free */
    int32_t nbuckets;
    bool no_cse;            /* equal operations are nodes of their own all the same */
    int64_t folded, shared; /* operations on constants; nodes that were there already when they were made */
    trli_walk spare;        /* of makers that walk: marks need not be cleared for each */
    trl_err err;            /* first failure (MEMORY); makers then return value 0, so callers check once at the end */
} trli_ir;

TRL_NODISCARD trl_err trli_ir_init(trli_ir *ir, trl_context *ctx, const trl_grid *grid);
void trli_ir_free(trli_ir *ir);

/* Makers. Equal nodes are one node, unless CSE is off; constants are folded (trli_op_evaluate). */
trli_ir_value trli_ir_constant(trli_ir *ir, double number);
/* Whether it is the number 0. */
bool trli_ir_is_zero(const trli_ir *ir, trli_ir_value v);
trli_ir_value trli_ir_scalar(trli_ir *ir, int scalar);
trli_ir_value trli_ir_field(trli_ir *ir, int field);
/* The same field as a node of its own, so that derivatives can tell one reading from the other; not for kernels. */
trli_ir_value trli_ir_field_no_cse(trli_ir *ir, int field);
/* bit: 0 or 1, or TRLI_UNPLACED: the location of the use. */
trli_ir_value trli_ir_coordinate(trli_ir *ir, int axis, int bit);
trli_ir_value trli_ir_random(trli_ir *ir, double seed);
/* A number of the point. */
trli_ir_value trli_ir_point(trli_ir *ir);
/* Along an axis, what a point gets of 1 that is put at a coordinate, per length. bit: as of coordinates. */
trli_ir_value trli_ir_share(trli_ir *ir, int axis, int bit, double where);
/* 1 on points of the domain's side (location bit of the axis set), else 0. */
trli_ir_value trli_ir_at_side(trli_ir *ir, int axis, int side);
trli_ir_value trli_ir_shift(trli_ir *ir, trli_ir_value a, int axis, int by);
trli_ir_value trli_ir_unary(trli_ir *ir, trli_op op, trli_ir_value a);
trli_ir_value trli_ir_binary(trli_ir *ir, trli_op op, trli_ir_value a, trli_ir_value b);
trli_ir_value trli_ir_select(trli_ir *ir, trli_ir_value c, trli_ir_value a, trli_ir_value b);
trli_ir_value trli_ir_limit(trli_ir *ir, int limiter, trli_ir_value upwind, trli_ir_value centre,
                            trli_ir_value downwind);
/* A normal random number of mean 0 and variance 1, a function of the operands. */
trli_ir_value trli_ir_normal(trli_ir *ir, trli_ir_value point, trli_ir_value step, trli_ir_value seed);
/* A function of the table of trl_functions, by its row. */
trli_ir_value trli_ir_function(trli_ir *ir, int row, trli_ir_value a, trli_ir_value b);
/* a^b; constant |b| <= 8: repeated multiplication if it is whole, times the square root if it is half-integer. */
trli_ir_value trli_ir_power(trli_ir *ir, trli_ir_value a, trli_ir_value b);
/* One pass of an operator applied to a value, and a whole operator to its inputs: its points and terms in their order.
 */
trli_ir_value trli_ir_pass(trli_ir *ir, const trl_pass *pass, trli_ir_value a);
trli_ir_value trli_ir_operator(trli_ir *ir, const trl_operator *op, const trli_ir_value *inputs);

/* ---- ir_flux.c ---- */

/* The value at the face between two points along an axis, from those on its minus side (from_plus false) or its plus
 * side; location: of the value. */
trli_ir_value trli_ir_reconstruct(trli_ir *ir, trli_ir_value s, int location, int axis, int limiter, bool from_plus);
/* The same from the side that the velocity at the face comes from. */
trli_ir_value trli_ir_upwind(trli_ir *ir, trli_ir_value s, int location, int axis, int limiter, trli_ir_value velocity);

/* The node n with other operands, made as its maker makes it. */
trli_ir_value trli_ir_remake(trli_ir *ir, const trli_node *n, const trli_ir_value arg[3]);
/* The value with its unplaced coordinates put at a location. */
trli_ir_value trli_ir_place(trli_ir *ir, trli_ir_value a, trl_location location);
/* The value with coordinate `axis` replaced by a constant (boundary values are taken on the side). */
trli_ir_value trli_ir_fix_coordinate(trli_ir *ir, trli_ir_value a, int axis, double coordinate);

/* The value with another in place of one that it is made of; the operations that use it stay what they are. */
trli_ir_value trli_ir_replace(trli_ir *ir, trli_ir_value a, trli_ir_value from, trli_ir_value to);
/* The sum of the magnitudes of all terms that a value adds up, also within factors, but not where it is shifted: a few
 * roundings of it are what the value may be off by. */
trli_ir_value trli_ir_size_of_terms(trli_ir *ir, trli_ir_value a);
/* A derivative without the terms that a tangent is a factor of, which is zero: whatever the other factors are. */
trli_ir_value trli_ir_without(trli_ir *ir, trli_ir_value a, trli_ir_value zero);

/* Whether a value reads so far that computing it in place would cost more than storing it (and offsets would outgrow
 * their type). */
bool trli_ir_reaches_far(const trli_ir *ir, trli_ir_value v);
extern const char trli_far_text[]; /* it in words */

static inline const trli_node *trli_ir_node(const trli_ir *ir, trli_ir_value v)
{
    return &ir->node[v];
}

void trli_walk_free(trli_walk *walk);
static inline bool trli_walk_has(const trli_walk *walk, trli_ir_value v)
{
    return v < walk->nmark && walk->mark[v] == walk->stamp;
}
TRL_NODISCARD trl_err trli_ir_walk(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots);
/* The same nodes in the order of a depth-first search, operands first: it depends on the form of the roots only, not on
 * what else is in the IR. */
TRL_NODISCARD trl_err trli_ir_walk_in_depth(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots);

/* Hulls of the offsets at which each node of a walk is needed when the roots are computed at the point itself. hull:
 * one per entry of walk->list. */
void trli_ir_hulls(const trli_ir *ir, const trli_walk *walk, int nroots, const trli_ir_value *roots, trl_offsets *hull);

#endif
