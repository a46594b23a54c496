/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators made from the one-axis tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <trl_operator.h>

#include "spatialops_impl.h"
#include "stencil_impl.h"

enum { WIDEST_FILTER = 15, FARTHEST_POINT = 8 };

typedef enum rule { RULE_FLIP, RULE_FLIPS, RULE_SAME, RULE_VECTOR } rule;

static const struct {
    const char *name;
    rule rule;
    const char *doc;
} kinds[TRL_OPERATOR_KINDS] = {
#define KIND_ROW(kind, name, rule, doc) [TRL_##kind] = {name, RULE_##rule, doc},
    TRL_OPERATOR_LIST(KIND_ROW)
#undef KIND_ROW
};

const char *trl_operator_kind_name(trl_operator_kind kind)
{
    return kind < TRL_OPERATOR_KINDS ? kinds[kind].name : "custom";
}

const char *trl_operator_kind_doc(trl_operator_kind kind)
{
    return kind < TRL_OPERATOR_KINDS ? kinds[kind].doc : "points and weights given by the user";
}

/* ---- what is legal ---- */

static bool connects(rule rule, int from, int to)
{
    int flipped = from ^ to;
    switch (rule) {
    case RULE_FLIP:
        return flipped != 0 && (flipped & (flipped - 1)) == 0;
    case RULE_FLIPS:
        return flipped != 0;
    case RULE_SAME:
        return flipped == 0;
    case RULE_VECTOR:
        return true;
    }
    return false;
}

static trl_err refuse_pair(trl_context *ctx, const trl_grid *grid, const trl_operator_desc *desc, int from)
{
    char possible[128] = "";
    size_t used = 0;
    for (int to = 0; to < 1 << grid->dim; ++to)
        if (connects(kinds[desc->kind].rule, from, to))
            used += (size_t)snprintf(possible + used, sizeof possible - used, "%s%s", used ? ", " : "",
                                     trl_location_name((trl_location)to));
    return trl_fail(ctx, TRL_ERR_USAGE, NULL, "no %s leads from %s to %s on a %d-D grid; from %s it can lead to: %s",
                    kinds[desc->kind].name, trl_location_name(desc->from), trl_location_name(desc->to), grid->dim,
                    trl_location_name((trl_location)from), possible);
}

static bool along_axis(trl_operator_kind kind)
{
    return kind == TRL_CENTRAL_INTERPOLANT || kind == TRL_CENTRAL_GRADIENT || kind == TRL_SECOND || kind == TRL_CURL;
}

static trl_err check_axis(trl_context *ctx, const trl_grid *grid, const trl_operator_desc *desc)
{
    if (desc->kind == TRL_CURL && grid->dim < 3 && (grid->dim < 2 || desc->axis != 2))
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "%s: component %d on a %d-D grid; %s", kinds[desc->kind].name,
                        desc->axis, grid->dim,
                        grid->dim == 2 ? "only component 2 (z) is possible" : "a curl needs two axes");
    int naxes = desc->kind == TRL_CURL ? 3 : grid->dim;
    if (desc->axis < 0 || desc->axis >= naxes)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "%s: axis %d on a %d-D grid; 0 to %d are possible",
                        kinds[desc->kind].name, desc->axis, grid->dim, naxes - 1);
    return TRL_OK;
}

static trl_err check(trl_context *ctx, const trl_grid *grid, const trl_operator_desc *desc)
{
    trl_operator_kind kind = desc->kind;
    if (kind >= TRL_OPERATOR_KINDS)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "operator kind %d does not exist", (int)kind);
    int from = (int)trl_location_on(desc->from, grid->dim), to = (int)trl_location_on(desc->to, grid->dim);
    if (!connects(kinds[kind].rule, from, to)) return refuse_pair(ctx, grid, desc, from);
    if (along_axis(kind)) return check_axis(ctx, grid, desc);
    if (kind == TRL_EXTRAPOLANT && desc->side != 0 && desc->side != 1)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "%s: side %d; 0 (minus) and 1 (plus) are possible", kinds[kind].name,
                        desc->side);
    if (kind == TRL_BOX_FILTER || kind == TRL_TOPHAT_FILTER) {
        bool odd_only = kind == TRL_BOX_FILTER;
        if (desc->width < 1 || desc->width > WIDEST_FILTER || (odd_only && desc->width % 2 == 0))
            return trl_fail(ctx, TRL_ERR_USAGE, NULL, "%s: a width of %d cells; %s numbers from 1 to %d are possible",
                            kinds[kind].name, desc->width, odd_only ? "odd" : "whole", WIDEST_FILTER);
    }
    return TRL_OK;
}

/* ---- filters ---- */

static void make_box_filter(int width, trli_stencil *s)
{
    *s = (trli_stencil){.npoints = width, .factor = 1.0 / width};
    for (int i = 0; i < width; ++i) {
        s->offset[i] = (int8_t)(i - width / 2);
        s->weight[i] = 1;
    }
}

/* Integral up to x of the hat function, 1 - |x| on [-1, 1]. */
static double hat_integral(double x)
{
    if (x <= -1) return 0;
    if (x >= 1) return 1;
    return x <= 0 ? 0.5 * (1 + x) * (1 + x) : 1 - 0.5 * (1 - x) * (1 - x);
}

/* The linear interpolant is the sum of a hat at each point times its value. Its mean over the width therefore weighs
 * the point at offset j with (H(w/2 - j) - H(-w/2 - j)) / w, H being the hat's integral: even widths 1/2, 1, ..., 1,
 * 1/2 over w, odd ones 1/8, 7/8, 1, ..., 1, 7/8, 1/8 over w (w = 1: 1/8, 3/4, 1/8). */
static void make_tophat_filter(int width, trli_stencil *s)
{
    int reach = (width + 1) / 2;
    *s = (trli_stencil){.npoints = 2 * reach + 1, .factor = 1.0 / width};
    for (int i = 0; i < s->npoints; ++i) {
        int j = i - reach;
        s->offset[i] = (int8_t)j;
        s->weight[i] = hat_integral(0.5 * width - j) - hat_integral(-0.5 * width - j);
    }
}

/* ---- making ---- */

typedef struct builder {
    const trl_grid *grid;
    trl_operator *op;
    trl_stencil_point *next; /* room for points */
    trl_footprint sum;       /* what the term under construction reads */
} builder;

static void begin_term(builder *b, int input)
{
    b->op->term[b->op->nterms++] = (trl_term){.input = input};
    b->sum = (trl_footprint){.n = 1};
}

static void end_term(const builder *b)
{
    trl_footprint_add_all(&b->op->reads[b->op->term[b->op->nterms - 1].input], &b->sum);
}

/* Close the points that were written at b->next as a pass of the current term. */
static void add_pass(builder *b, int npoints, double scale)
{
    trl_term *term = &b->op->term[b->op->nterms - 1];
    trl_footprint reads = {.n = 0};
    for (int i = 0; i < npoints; ++i) {
        trl_offsets part;
        for (int a = 0; a < 3; ++a) part.lo[a] = part.hi[a] = b->next[i].offset[a];
        trl_footprint_add(&reads, &part);
    }
    trl_footprint_compose(&b->sum, &reads, &b->sum);
    term->pass[term->npasses++] = (trl_pass){npoints, b->next, scale};
    b->next += npoints;
}

/* A table along an axis, on values whose location has `bit` there. */
static void add_axis(builder *b, const trli_stencil *s, int axis, int bit)
{
    double scale = s->factor;
    for (int i = 0; i < s->order; ++i) scale = b->grid->flat[axis] ? 0 : scale / b->grid->spacing[axis];
    for (int i = 0; i < s->npoints; ++i) {
        b->next[i] = (trl_stencil_point){.weight = s->weight[i]};
        b->next[i].offset[axis] = (int8_t)(s->offset[i] + (s->flips && bit));
    }
    add_pass(b, s->npoints, scale);
}

/* One term: the table along each axis whose bit is in `axes`, one after the other. */
static void add_passes(builder *b, const trli_stencil *s, int axes, int from)
{
    begin_term(b, 0);
    for (int a = 0; a < 3; ++a)
        if (axes >> a & 1) add_axis(b, s, a, from >> a & 1);
    end_term(b);
}

static void add_derivative(builder *b, const trli_stencil *s, int input, int axis)
{
    begin_term(b, input);
    add_axis(b, s, axis, (int)b->op->from[input] >> axis & 1);
    end_term(b);
}

static void build_vector(builder *b, const trl_operator_desc *desc)
{
    trl_operator *op = b->op;
    const trli_stencil *s =
        trli_stencil_get(desc->kind == TRL_DIV4 ? TRLI_STENCIL_DERIVATIVE4 : TRLI_STENCIL_DERIVATIVE);
    if (desc->kind != TRL_CURL) {
        op->ninputs = b->grid->dim;
        for (int a = 0; a < b->grid->dim; ++a) {
            op->from[a] = (trl_location)((int)op->to ^ 1 << a);
            add_derivative(b, s, a, a);
        }
        return;
    }
    int first = (desc->axis + 1) % 3, second = (desc->axis + 2) % 3;
    op->ninputs = 2;
    op->from[0] = (trl_location)((int)op->to ^ 1 << second);
    op->from[1] = (trl_location)((int)op->to ^ 1 << first);
    add_derivative(b, s, 1, first);
    add_derivative(b, s, 0, second);
    op->term[1].minus = true;
}

static void build(builder *b, const trl_operator_desc *desc)
{
    static const trli_stencil_id tables[TRL_OPERATOR_KINDS] = {
        [TRL_INTERPOLANT] = TRLI_STENCIL_INTERPOLANT,
        [TRL_GRADIENT] = TRLI_STENCIL_DERIVATIVE,
        [TRL_DIVERGENCE] = TRLI_STENCIL_DERIVATIVE,
        [TRL_CENTRAL_INTERPOLANT] = TRLI_STENCIL_CENTRAL_INTERPOLANT,
        [TRL_CENTRAL_GRADIENT] = TRLI_STENCIL_CENTRAL_DERIVATIVE,
        [TRL_SECOND] = TRLI_STENCIL_SECOND,
        [TRL_LAPLACIAN] = TRLI_STENCIL_SECOND,
        [TRL_INTERPOLANT4] = TRLI_STENCIL_INTERPOLANT4,
        [TRL_GRADIENT4] = TRLI_STENCIL_DERIVATIVE4,
        [TRL_DIVERGENCE4] = TRLI_STENCIL_DERIVATIVE4,
        [TRL_EXTRAPOLANT] = TRLI_STENCIL_EXTRAPOLANT_MINUS, /* the other side's follows */
    };
    const trli_stencil *s =
        trli_stencil_get((trli_stencil_id)(tables[desc->kind] + (desc->kind == TRL_EXTRAPOLANT ? desc->side : 0)));
    trli_stencil filter;
    int all = (1 << b->grid->dim) - 1, from = (int)b->op->from[0], flipped = from ^ (int)b->op->to;
    switch (desc->kind) {
    case TRL_DIV:
    case TRL_DIV4:
    case TRL_CURL:
        build_vector(b, desc);
        return;
    case TRL_LAPLACIAN:
        for (int a = 0; a < b->grid->dim; ++a) add_passes(b, s, 1 << a, from);
        return;
    case TRL_BOX_FILTER:
        make_box_filter(desc->width, &filter);
        add_passes(b, &filter, all, from);
        return;
    case TRL_TOPHAT_FILTER:
        make_tophat_filter(desc->width, &filter);
        add_passes(b, &filter, all, from);
        return;
    default:
        add_passes(b, s, flipped ? flipped : 1 << desc->axis, from);
        return;
    }
}

/* An operator with room for points and a name behind it. */
static trl_err new_operator(trl_context *ctx, int npoints, const char *name, bool copy, trl_operator **op)
{
    void *memory;
    size_t points = (size_t)npoints * sizeof(trl_stencil_point), length = copy ? strlen(name) + 1 : 0;
    trl_err err = trl_memory_alloc(ctx, sizeof **op + points + length, "the points of an operator", &memory);
    if (err != TRL_OK) return err;
    *op = memory;
    char *kept = (char *)(*op + 1) + points;
    **op = (trl_operator){.ctx = ctx, .name = copy ? memcpy(kept, name, length) : name};
    return TRL_OK;
}

trl_err trl_operator_create(trl_context *ctx, const trl_grid *grid, const trl_operator_desc *desc, trl_operator **op)
{
    trl_err err = check(ctx, grid, desc);
    *op = NULL;
    if (err == TRL_OK) err = new_operator(ctx, 3 * TRLI_STENCIL_POINTS, kinds[desc->kind].name, false, op);
    if (err != TRL_OK) return err;
    (*op)->kind = desc->kind;
    (*op)->ninputs = 1;
    (*op)->from[0] = trl_location_on(desc->from, grid->dim);
    (*op)->to = trl_location_on(desc->to, grid->dim);
    builder b = {.grid = grid, .op = *op, .next = (trl_stencil_point *)(*op + 1)};
    build(&b, desc);
    return TRL_OK;
}

static trl_err check_points(trl_context *ctx, const trl_grid *grid, const char *name, int npoints,
                            const trl_stencil_point *points)
{
    if (npoints < 1) return trl_fail(ctx, TRL_ERR_USAGE, NULL, "stencil '%s' has no points", name);
    for (int i = 0; i < npoints; ++i) {
        for (int a = 0; a < 3; ++a) {
            int offset = points[i].offset[a];
            if (offset != 0 && a >= grid->dim)
                return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                                "stencil '%s': point %d is off along %c, an axis that a %d-D grid lacks", name, i,
                                trli_axis_name(a), grid->dim);
            if (offset < -FARTHEST_POINT || offset > FARTHEST_POINT)
                return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                                "stencil '%s': point %d has offset %d along %c; %d to %d are possible", name, i, offset,
                                trli_axis_name(a), -FARTHEST_POINT, FARTHEST_POINT);
        }
        if (!isfinite(points[i].weight))
            return trl_fail(ctx, TRL_ERR_USAGE, NULL, "stencil '%s': the weight of point %d is not finite", name, i);
    }
    return TRL_OK;
}

trl_err trl_operator_create_custom(trl_context *ctx, const trl_grid *grid, const char *name, trl_location from,
                                   trl_location to, int npoints, const trl_stencil_point *points, trl_operator **op)
{
    trl_err err = check_points(ctx, grid, name, npoints, points);
    *op = NULL;
    if (err == TRL_OK) err = new_operator(ctx, npoints, name, true, op);
    if (err != TRL_OK) return err;
    (*op)->kind = TRL_CUSTOM;
    (*op)->ninputs = 1;
    (*op)->from[0] = trl_location_on(from, grid->dim);
    (*op)->to = trl_location_on(to, grid->dim);
    builder b = {.grid = grid, .op = *op, .next = (trl_stencil_point *)(*op + 1)};
    memcpy(b.next, points, (size_t)npoints * sizeof *points);
    begin_term(&b, 0);
    add_pass(&b, npoints, 1);
    end_term(&b);
    return TRL_OK;
}

void trl_operator_destroy(trl_operator **op)
{
    if (*op == NULL) return;
    void *memory = *op;
    trl_memory_free((*op)->ctx, &memory);
    *op = NULL;
}
