/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What tests of operators share: domains of any dimension, fields with values at all points that they hold, and a list
 * of every operator that is legal on a grid. */
#ifndef OPERATOR_FIXTURE_H
#define OPERATOR_FIXTURE_H

#include <math.h>

#include "trl_test.h"

#include "owners_fixture.h"

#include <trl_field_manager.h>
#include <trl_operator.h>

enum { OPERATORS_MAX = 800 };

typedef struct domain {
    trl_layout *layout;
    trl_field_manager *manager;
} domain;

/* Cells of another width along each axis. counts as for trl_layout_create. */
static inline domain open_domain(int dim, const int cells[3], int periodic_bits, const int *counts)
{
    static const double length[3] = {1.2, 0.9, 1.5}, origin[3] = {0.1, -0.2, 0.3};
    trl_grid grid = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    domain d;
    for (int a = 0; a < dim; ++a) {
        grid.cells[a] = cells[a];
        grid.length[a] = length[a];
        grid.origin[a] = origin[a];
        grid.spacing[a] = length[a] / cells[a];
        grid.periodic[a] = periodic_bits >> a & 1;
    }
    ck_ok(trl_layout_create_owned(test_ctx, &grid, counts, next_owners(), NULL, &d.layout));
    ck_ok(trl_field_manager_create(test_ctx, &d.manager));
    return d;
}

static inline void close_domain(domain *d)
{
    trl_field_manager_destroy(&d->manager);
    trl_layout_destroy(&d->layout);
}

static inline const trl_patch *local_patch(const trl_layout *layout, int p)
{
    return &layout->patch[p];
}

/* ---- fields ---- */

static inline double *value_at(const trl_array *a, const trl_lidx at[3])
{
    return (double *)a->at + trl_array_offset(a, at[0], at[1], at[2]);
}

/* Go to the next point of a box, x fastest; at begins at its first point. False past the end. */
static inline bool next_point(const trl_box *box, trl_lidx at[3])
{
    for (int a = 0; a < 3; ++a) {
        if (++at[a] < box->hi[a]) return true;
        at[a] = box->lo[a];
    }
    return false;
}

#define FOR_POINTS(box, at)                                                                                   \
    for (trl_lidx at[3] = {(box)->lo[0], (box)->lo[1], (box)->lo[2]}, more_points_ = trl_box_points(box) > 0; \
         more_points_; more_points_ = next_point(box, at))

/* A manager has every name once, and these fields come by the dozen: a number makes the name its own. */
static inline trl_field *create_numbered(const domain *d, trl_field_desc *desc)
{
    static int number;
    char name[80];
    trl_field *field;
    snprintf(name, sizeof name, "%s %d", desc->name, ++number);
    desc->name = name;
    ck_ok(trl_field_create(d->manager, d->layout, desc, &field));
    return field;
}

static inline trl_field *new_field(const domain *d, const char *name, trl_location location, int layers)
{
    trl_field_desc desc = {
        .name = name, .location = location, .ghost_lo = {layers, layers, layers}, .ghost_hi = {layers, layers, layers}};
    return create_numbered(d, &desc);
}

/* An input of an operator, with as many ghosts as the owned points of the result need, and some more. On the plus side
 * of an axis that is not periodic, the final face or cell reads one point more or less. */
static inline trl_field *new_input(const domain *d, const char *name, const trl_operator *op, int input, int more)
{
    trl_field_desc desc = {.name = name, .location = op->from[input]};
    trl_offsets hull = trl_footprint_hull(&op->reads[input]);
    for (int a = 0; a < d->layout->grid.dim; ++a) {
        bool final = !d->layout->grid.periodic[a] && (op->to & ~op->from[input]) >> a & 1;
        trl_lidx lo = -hull.lo[a], hi = hull.hi[a] + final;
        desc.ghost_lo[a] = more + (lo > 0 ? lo : 0);
        desc.ghost_hi[a] = more + (hi > 0 ? hi : 0);
    }
    return create_numbered(d, &desc);
}

static inline trl_array array_of(trl_field *field, int p)
{
    trl_array array;
    ck_ok(trl_field_array(field, p, &array));
    return array;
}

/* Global indices of a point, wrapped along periodic axes. */
static inline void global_point(const trl_field *field, int p, const trl_lidx at[3], trl_gidx global[3])
{
    const trl_layout *layout = trl_field_layout(field);
    for (int a = 0; a < 3; ++a) {
        trl_gidx n = trl_grid_points(&layout->grid, trl_field_location(field), a);
        global[a] = local_patch(layout, p)->first[a] + at[a];
        if (layout->grid.periodic[a]) global[a] = (global[a] % n + n) % n;
    }
}

/* In [-1, 1), from seed and global point alone, so that all patches agree on what they share. */
static inline double noise(int seed, const trl_gidx global[3])
{
    uint64_t bits = trl_hash_mix((uint64_t)seed, 1);
    for (int a = 0; a < 3; ++a) bits = trl_hash_mix(bits ^ (uint64_t)global[a], 1);
    return (double)(int64_t)bits * 0x1p-63;
}

/* Noise at all held points, ghosts included, all valid. */
static inline void fill_noise(trl_field *field, int seed)
{
    for (int p = 0; p < trl_field_layout(field)->nlocal; ++p) {
        trl_array array = array_of(field, p);
        FOR_POINTS(&array.held, at)
        {
            trl_gidx global[3];
            global_point(field, p, at, global);
            *value_at(&array, at) = noise(seed, global);
        }
        ck_ok(trl_field_set_valid(field, p, &array.held));
    }
}

/* ---- operators ---- */

/* What the adjective of a row of trl_operator.h leaves open. */
static inline bool along_one_axis(trl_operator_kind kind)
{
    return kind == TRL_CENTRAL_INTERPOLANT || kind == TRL_CENTRAL_GRADIENT || kind == TRL_SECOND;
}

static inline bool is_filter(trl_operator_kind kind)
{
    return kind == TRL_BOX_FILTER || kind == TRL_TOPHAT_FILTER;
}

static inline int filter_widths(trl_operator_kind kind, const int **widths)
{
    static const int box[] = {3, 5}, tophat[] = {1, 2, 3, 4};
    *widths = kind == TRL_BOX_FILTER ? box : tophat;
    return kind == TRL_BOX_FILTER ? 2 : 4;
}

typedef struct operator_list {
    int n;
    trl_operator_desc desc[OPERATORS_MAX];
} operator_list;

static inline void add_operator(operator_list *list, trl_operator_desc desc)
{
    ck_assert_int_lt(list->n, OPERATORS_MAX);
    list->desc[list->n++] = desc;
}

static inline void add_flip(operator_list *list, trl_operator_kind kind, trl_location from, trl_location to)
{
    for (int side = 0; side < (kind == TRL_EXTRAPOLANT ? 2 : 1); ++side)
        add_operator(list, (trl_operator_desc){.kind = kind, .from = from, .to = to, .side = side});
}

static inline void add_same(operator_list *list, int dim, trl_operator_kind kind, trl_location at)
{
    const int *widths, nwidths = filter_widths(kind, &widths);
    trl_operator_desc desc = {.kind = kind, .from = at, .to = at};
    if (is_filter(kind))
        for (int w = 0; w < nwidths; ++w) {
            desc.width = widths[w];
            add_operator(list, desc);
        }
    else
        for (desc.axis = 0; desc.axis < (along_one_axis(kind) ? dim : 1); ++desc.axis) add_operator(list, desc);
}

static inline void add_vector(operator_list *list, int dim, trl_operator_kind kind, trl_location to)
{
    trl_operator_desc desc = {.kind = kind, .to = to};
    if (kind == TRL_DIV) add_operator(list, desc);
    for (desc.axis = dim == 2 ? 2 : 0; kind == TRL_CURL && dim > 1 && desc.axis < 3; ++desc.axis)
        add_operator(list, desc);
}

/* Every kind from every location to every other that it connects, along every axis, to both sides, with some widths. */
static inline const operator_list *legal_operators(int dim)
{
    enum { FLIP, FLIPS, SAME, VECTOR };
#define RULE_OF_KIND(kind, name, rule, doc) rule,
    static const int rule[] = {TRL_OPERATOR_LIST(RULE_OF_KIND)};
#undef RULE_OF_KIND
    static operator_list list;
    list.n = 0;
    for (int k = 0; k < TRL_OPERATOR_KINDS; ++k)
        for (int at = 0; at < 1 << dim; ++at) {
            if (rule[k] == SAME) add_same(&list, dim, (trl_operator_kind)k, (trl_location)at);
            if (rule[k] == VECTOR) add_vector(&list, dim, (trl_operator_kind)k, (trl_location)at);
            for (int to = 0; to < 1 << dim; ++to) {
                int changed = at ^ to;
                if (changed && (rule[k] == FLIPS || (rule[k] == FLIP && !(changed & (changed - 1)))))
                    add_flip(&list, (trl_operator_kind)k, (trl_location)at, (trl_location)to);
            }
        }
    return &list;
}

static inline trl_operator *new_operator(const domain *d, const trl_operator_desc *desc)
{
    trl_operator *op;
    ck_ok(trl_operator_create(test_ctx, &d->layout->grid, desc, &op));
    return op;
}

/* "3-D gradient from xface to cell, axis 0, side 0, width 0" */
static inline const char *operator_text(int dim, const trl_operator_desc *desc)
{
    static char text[160];
    snprintf(text, sizeof text, "%d-D %s from %s to %s, axis %d, side %d, width %d", dim,
             trl_operator_kind_name(desc->kind), trl_location_name(desc->from), trl_location_name(desc->to), desc->axis,
             desc->side, desc->width);
    return text;
}

/* Which axis' bit differs between two locations; -1: none. */
static inline int flipped_axis(trl_location a, trl_location b)
{
    int bits = (int)(a ^ b);
    return bits == 1 ? 0 : bits == 2 ? 1 : bits == 4 ? 2 : -1;
}

/* The component that an input of a vector operator is: beside the axis it is differentiated along. */
static inline int component_of_input(const trl_operator *op, const trl_operator_desc *desc, int input)
{
    int along = flipped_axis(op->from[input], op->to);
    return op->kind == TRL_CURL ? 3 - desc->axis - along : along;
}

#endif
