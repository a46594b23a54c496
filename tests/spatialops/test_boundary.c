/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,4
#include "driver_fixture.h"

#include <trl_boundary.h>

enum { GHOSTS = 3 };

static double target_value(void *data, const double x[3], double t)
{
    (void)data;
    return 0.7 + sin(2 * x[0] + x[1]) - 0.3 * cos(3 * x[2]) + t;
}

static double coefficient(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return 1.25 + 0.5 * sin(x[0] + 2 * x[1] + 3 * x[2]);
}

/* ---- an independent reference: the rules of the manual, on an array of the whole grid with ghosts ---- */

typedef struct whole {
    trl_gidx n[3], lo[3], hi[3]; /* points; first and last index held */
    trl_location location;
    double *at;
} whole;

static double *whole_at(const whole *w, const trl_gidx at[3])
{
    trl_gidx offset = 0;
    for (int a = 2; a >= 0; --a) offset = offset * (w->hi[a] - w->lo[a] + 1) + at[a] - w->lo[a];
    return &w->at[offset];
}

static void whole_point(const whole *w, const trl_gidx at[3], double x[3])
{
    for (int a = 0; a < 3; ++a) x[a] = trl_grid_coordinate(&layout->grid, w->location, a, at[a]);
}

/* A kind per side, with pieces: where `split` does not hold at the point on the side, the kind after it. */
typedef struct rules {
    trl_bc_kind kind[6];
    bool pieces;
    double t;
} rules;

static trl_bc_kind second_kind(trl_bc_kind kind)
{
    return (trl_bc_kind)(((int)kind + 1) % 4);
}

static double split(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return sin(7 * x[0] + 11 * x[1] + 5 * x[2]) < 0.1;
}

static double rule_value(const rules *r, const whole *w, int axis, int side, const trl_gidx ghost[3], int m)
{
    const trl_grid *g = &layout->grid;
    trl_gidx edge = side ? w->n[axis] - 1 : 0, in[3], nearest[3];
    bool on_side = w->location >> axis & 1;
    double x[3], h = g->spacing[axis], b, a, c, value, f, f0;
    whole_point(w, ghost, x);
    x[axis] = side ? g->origin[axis] + g->length[axis] : g->origin[axis];
    trl_bc_kind kind = r->kind[2 * axis + side];
    if (r->pieces && !split(NULL, x, r->t)) kind = second_kind(kind);
    for (int k = 0; k < 3; ++k) in[k] = nearest[k] = ghost[k];
    in[axis] = side ? edge - (on_side ? m : m - 1) : edge + (on_side ? m : m - 1);
    nearest[axis] = edge;
    f = *whole_at(w, in);
    f0 = *whole_at(w, nearest);
    value = target_value(NULL, x, r->t);
    a = coefficient(NULL, x, r->t);
    b = 0.5;
    c = value;
    switch (kind) {
    case TRL_BC_DIRICHLET:
        return 2 * value - f;
    case TRL_BC_NEUMANN:
        return f + (on_side ? 2 * m : 2 * m - 1) * h * value;
    case TRL_BC_ROBIN:
        if (on_side) return f + 2 * m * h * ((c - a * f0) / b);
        return (c - (0.5 * a - b / ((2 * m - 1) * h)) * f) / (0.5 * a + b / ((2 * m - 1) * h));
    default:
        return f0;
    }
}

/* Owned values from wavy, periodic copies, then the sides in order. Layers that have no mirrored value are left NaN. */
static void reference(const rules *r, whole *w, trl_location location)
{
    const trl_grid *g = &layout->grid;
    trl_gidx size = 1, at[3], from[3], range_lo[3], range_hi[3];
    w->location = location;
    for (int a = 0; a < 3; ++a) {
        int ghosts = a < g->dim ? GHOSTS : 0;
        w->n[a] = trl_grid_points(g, location, a);
        w->lo[a] = -ghosts;
        w->hi[a] = w->n[a] - 1 + ghosts;
        size *= w->hi[a] - w->lo[a] + 1;
        range_lo[a] = g->periodic[a] ? w->lo[a] : 0;
        range_hi[a] = g->periodic[a] ? w->hi[a] : w->n[a] - 1;
    }
    w->at = malloc((size_t)size * sizeof *w->at);
    for (trl_gidx i = 0; i < size; ++i) w->at[i] = NAN;
    for (at[2] = range_lo[2]; at[2] <= range_hi[2]; ++at[2])
        for (at[1] = range_lo[1]; at[1] <= range_hi[1]; ++at[1])
            for (at[0] = range_lo[0]; at[0] <= range_hi[0]; ++at[0]) {
                double x[3];
                for (int a = 0; a < 3; ++a) from[a] = g->periodic[a] ? (at[a] % w->n[a] + w->n[a]) % w->n[a] : at[a];
                whole_point(w, from, x);
                *whole_at(w, at) = wavy(NULL, x, 0);
            }
    for (int a = 0; a < g->dim; ++a) {
        if (g->periodic[a]) continue;
        int set[2];
        for (int s = 0; s < 2; ++s) {
            int mirrored = (int)(w->n[a] - (location >> a & 1));
            set[s] = mirrored < GHOSTS && (r->pieces || r->kind[2 * a + s] != TRL_BC_OUTFLOW) ? mirrored : GHOSTS;
            for (int m = 1; m <= set[s]; ++m) {
                trl_gidx low[3], high[3];
                for (int k = 0; k < 3; ++k) low[k] = range_lo[k], high[k] = range_hi[k];
                low[a] = high[a] = s ? w->n[a] - 1 + m : -m;
                for (at[2] = low[2]; at[2] <= high[2]; ++at[2])
                    for (at[1] = low[1]; at[1] <= high[1]; ++at[1])
                        for (at[0] = low[0]; at[0] <= high[0]; ++at[0])
                            *whole_at(w, at) = rule_value(r, w, a, s, at, m);
            }
        }
        range_lo[a] = -set[0];
        range_hi[a] = w->n[a] - 1 + set[1];
    }
}

static void add_rules(trl_boundary *boundary, const rules *r, const trl_mask *const mask[3])
{
    for (int s = 0; s < 2 * layout->grid.dim; ++s) {
        trl_bc bc = {.kind = r->kind[s], .value.function = target_value};
        if (layout->grid.periodic[s / 2]) continue;
        if (bc.kind == TRL_BC_ROBIN) bc.value.function = coefficient;
        bc.b.number = 0.5;
        bc.c.function = target_value;
        if (r->pieces) {
            if (mask)
                bc.mask = mask[s / 2];
            else
                bc.where = split;
            ck_ok(trl_boundary_add(boundary, s / 2, s % 2, &bc));
            bc.where = NULL;
            bc.mask = NULL;
            bc.kind = second_kind(r->kind[s]);
            bc.value.function = bc.kind == TRL_BC_ROBIN ? coefficient : target_value;
        }
        ck_ok(trl_boundary_add(boundary, s / 2, s % 2, &bc));
    }
}

/* Every valid point agrees bit by bit with the reference, and as many are valid as the reference sets. */
static bool agrees(trl_field *field, const whole *w)
{
    bool good = true;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        trl_box valid = trl_field_valid(field, p);
        trl_lidx at[3];
        EACH_POINT(at, array.held)
        {
            trl_gidx global[3];
            for (int a = 0; a < 3; ++a) global[a] = local_patch(p)->first[a] + at[a];
            double expected = *whole_at(w, global);
            if (box_has(&valid, at))
                good = good && same_bits(*value_at(&array, at), expected);
            else
                good = good && isnan(expected);
        }
    }
    return on_all_ranks(good);
}

static void check_rules(const trl_grid *grid, const int counts[3], trl_location location, const rules *r, bool masks)
{
    trl_boundary *boundary;
    trl_mask *mask[3] = {NULL, NULL, NULL};
    whole w;
    open_layout(grid, counts);
    location = trl_location_on(location, grid->dim);
    trl_field *field = new_field("f", location, GHOSTS);
    ck_ok(trl_boundary_create(layout, location, &boundary));
    for (int a = 0; masks && a < grid->dim; ++a)
        ck_ok(trl_mask_create(layout, (trl_location)(location | 1 << a), GHOSTS, split, NULL, 0, &mask[a]));
    add_rules(boundary, r, masks ? (const trl_mask *const *)mask : NULL);
    set_field(field, wavy, NULL);
    ck_ok(trl_field_exchange(field));
    for (int round = 0; round < 2; ++round)
        ck_ok(trl_boundary_fill(boundary, NULL, field, r->t)); /* the second changes nothing */
    reference(r, &w, location);
    ck_assert_msg(agrees(field, &w), "%d-D %d x %d x %d at %s, kinds %d %d %d %d %d %d", grid->dim, (int)grid->cells[0],
                  (int)grid->cells[1], (int)grid->cells[2], trl_location_name(location), r->kind[0], r->kind[1],
                  r->kind[2], r->kind[3], r->kind[4], r->kind[5]);
    free(w.at);
    for (int a = 0; a < 3; ++a) trl_mask_destroy(&mask[a]);
    trl_boundary_destroy(&boundary);
    trl_field_destroy(&field);
    close_layout();
}

/* Kinds differ from side to side, so that corners show the order of the sides. */
static rules rules_of(int shift, bool pieces)
{
    rules r = {.pieces = pieces, .t = 0.375};
    for (int s = 0; s < 6; ++s) r.kind[s] = (trl_bc_kind)((s + shift) % 4);
    return r;
}

START_TEST(fills_every_layer_and_corner_as_the_manual_says_at_every_location)
{
    static const int sizes[][4] = {{1, 1, 1, 1}, {1, 7, 1, 1}, {2, 1, 3, 1}, {2, 5, 6, 1}, {3, 3, 1, 5}, {3, 4, 5, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        const int *n = sizes[s];
        if (ranks() > 1) continue; /* patches are too thin for three layers; the next test has several */
        for (int shift = 0; shift < 4; ++shift)
            for (int location = 0; location < 1 << n[0]; ++location)
                for (int periodic = 0; periodic < 2; ++periodic) {
                    trl_grid grid = grid_of(n[0], n[1], n[2], n[3], n[1] >= GHOSTS && periodic ? 1 : 0);
                    rules r = rules_of(shift, false);
                    check_rules(&grid, NULL, (trl_location)location, &r, false);
                }
    }
}
END_TEST

START_TEST(fills_the_same_bits_on_several_patches_by_pieces_and_masks)
{
    static const int cuts[][3] = {{4, 1, 1}, {2, 2, 1}, {1, 2, 2}, {2, 3, 2}};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; ++c)
        for (int location = 0; location < 8; ++location)
            for (int pieces = 0; pieces < 3; ++pieces) {
                trl_grid grid = grid_of(3, 13, 12, 7, location == 3 ? 2 : 0);
                rules r = rules_of((int)c + location, pieces > 0);
                check_rules(&grid, cuts[c], (trl_location)location, &r, pieces == 2);
            }
}
END_TEST

/* ---- operators at the side ---- */

static double apply_at(const trl_operator *op, const trl_array *f, const trl_lidx at[3])
{
    const trl_pass *pass = &op->term[0].pass[0];
    double sum = 0;
    for (int i = 0; i < pass->npoints; ++i) {
        trl_lidx in[3];
        for (int a = 0; a < 3; ++a) in[a] = at[a] + pass->point[i].offset[a];
        sum += pass->point[i].weight * *value_at(f, in);
    }
    return sum * pass->scale;
}

/* The greatest error of op at its points on the side (or `outward` beyond the one next to it), where its value should
 * be target_value. */
static double inverted_error(trl_field *field, const trl_operator *op, int axis, int side, int outward)
{
    double worst = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        trl_box box = array.owned;
        trl_lidx at[3];
        if (!trl_patch_at_side(layout, local_patch(p), axis, side)) continue;
        box.lo[axis] = side ? local_patch(p)->cells[axis] - 1 + (int)(op->to >> axis & 1) + outward : -outward;
        box.hi[axis] = box.lo[axis] + 1;
        EACH_POINT(at, box)
        {
            double x[3];
            coordinates(trl_field_location(field), p, at, x);
            x[axis] = layout->grid.origin[axis] + (side ? layout->grid.length[axis] : 0);
            double expected = target_value(NULL, x, 0.5);
            double error = fabs(apply_at(op, &array, at) - expected);
            worst = error > worst ? error : worst;
        }
    }
    return greatest(worst);
}

static void check_inversion(const trl_operator *op, int outward)
{
    for (int side = 0; side < 2; ++side)
        for (int axis = 0; axis < layout->grid.dim; ++axis) {
            trl_boundary *boundary;
            const trl_bc bc = {.kind = TRL_BC_OPERATOR, .op = op, .value.function = target_value};
            bool along = op->reads[0].n > 0 &&
                         trl_footprint_hull(&op->reads[0]).lo[axis] != trl_footprint_hull(&op->reads[0]).hi[axis];
            if (!along) continue;
            trl_field *field = new_field("f", op->from[0], GHOSTS);
            set_field(field, wavy, NULL);
            ck_ok(trl_boundary_create(layout, op->from[0], &boundary));
            ck_ok(trl_boundary_add(boundary, axis, side, &bc));
            ck_ok(trl_field_exchange(field));
            ck_ok(trl_boundary_fill(boundary, NULL, field, 0.5));
            /* the derivative divides by h or h^2, and so does rounding */
            double h = layout->grid.spacing[axis], error = inverted_error(field, op, axis, side, outward);
            ck_assert_msg(error < 1e-14 / (h * h), "%s from %s to %s, axis %d, side %d: error %g", op->name,
                          trl_location_name(op->from[0]), trl_location_name(op->to), axis, side, error);
            trl_boundary_destroy(&boundary);
            trl_field_destroy(&field);
        }
}

START_TEST(inverts_operators_of_one_axis_at_every_location_to_rounding)
{
    static const struct {
        trl_operator_kind kind;
        bool flips;
    } kinds[] = {
        {TRL_INTERPOLANT, true},      {TRL_GRADIENT, true},    {TRL_DIVERGENCE, true}, {TRL_INTERPOLANT4, true},
        {TRL_GRADIENT4, true},        {TRL_DIVERGENCE4, true}, {TRL_SECOND, false},    {TRL_CENTRAL_INTERPOLANT, false},
        {TRL_CENTRAL_GRADIENT, false}};
    for (int dim = 1; dim <= 3; ++dim) {
        trl_grid grid = grid_of(dim, 16, 7, 6, 0);
        grid.cells[1] = dim > 1 ? 7 : 1;
        grid.cells[2] = dim > 2 ? 6 : 1;
        open_layout(&grid, NULL);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k)
            for (int location = 0; location < 1 << dim; ++location)
                for (int axis = 0; axis < dim; ++axis) {
                    trl_operator *op;
                    trl_location to = (trl_location)(kinds[k].flips ? location ^ 1 << axis : location);
                    trl_operator_desc desc = {
                        .kind = kinds[k].kind, .from = (trl_location)location, .to = to, .axis = axis};
                    ck_ok(trl_operator_create(test_ctx, &grid, &desc, &op));
                    /* two-point operators from points on the side read no ghost at the point next to it */
                    bool two_points = kinds[k].flips && op->term[0].pass[0].npoints == 2;
                    check_inversion(op, two_points && (location >> axis & 1));
                    trl_operator_destroy(&op);
                }
        close_layout();
    }
}
END_TEST

START_TEST(inverts_stencils_and_extrapolants_to_rounding)
{
    trl_grid grid = grid_of(2, 12, 11, 1, 0);
    /* one-sided, with weights that are no power of two; and one that reads only ghosts on the minus side */
    static const trl_stencil_point points[] = {
        {{-2, 0, 0}, 0.3}, {{-1, 0, 0}, -0.7}, {{0, 0, 0}, 1.9}, {{1, 0, 0}, 0.11}};
    trl_operator *op;
    open_layout(&grid, NULL);
    ck_ok(trl_operator_create_custom(test_ctx, &grid, "odd", TRL_CELL, TRL_CELL, 4, points, &op));
    check_inversion(op, 0);
    trl_operator_destroy(&op);
    for (int side = 0; side < 2; ++side) {
        trl_operator_desc desc = {.kind = TRL_EXTRAPOLANT, .from = TRL_CELL, .to = TRL_YFACE, .side = side};
        ck_ok(trl_operator_create(test_ctx, &grid, &desc, &op));
        trl_boundary *boundary;
        trl_field *field = new_field("f", TRL_CELL, GHOSTS);
        const trl_bc bc = {.kind = TRL_BC_OPERATOR, .op = op, .value.function = target_value};
        ck_ok(trl_boundary_create(layout, TRL_CELL, &boundary));
        ck_ok(trl_boundary_add(boundary, 1, side, &bc)); /* takes ghosts only */
        set_field(field, wavy, NULL);
        ck_ok(trl_field_exchange(field));
        ck_ok(trl_boundary_fill(boundary, NULL, field, 0.5));
        ck_assert_double_lt(inverted_error(field, op, 1, side, 0), 1e-14);
        trl_boundary_destroy(&boundary);
        trl_field_destroy(&field);
        trl_operator_destroy(&op);
    }
    close_layout();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, fills_every_layer_and_corner_as_the_manual_says_at_every_location);
    tcase_add_test(tc, fills_the_same_bits_on_several_patches_by_pieces_and_masks);
    tcase_add_test(tc, inverts_operators_of_one_axis_at_every_location_to_rounding);
    tcase_add_test(tc, inverts_stencils_and_extrapolants_to_rounding);
}

TRL_TEST_MAIN("boundary", add_tests)
