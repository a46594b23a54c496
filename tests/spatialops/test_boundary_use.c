/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,4
#include "driver_fixture.h"

#include <trl_boundary.h>
#include <trl_reduction.h>

/* ---- points on the sides ---- */

/* Names the side and the time. */
static double side_name(void *data, const double x[3], double t)
{
    (void)x;
    return *(const double *)data + t;
}

/* x-: dirichlet 1, x+: neumann, y-: dirichlet 3, y+: outflow, z-: robin with b = 0 (6/2), z+: dirichlet 5. */
static double expected_on_sides(const trl_gidx at[3], const trl_gidx n[3], trl_location location, double inside)
{
    if (location >> 2 & 1 && at[2] == n[2] - 1) return 5.25;
    if (location >> 2 & 1 && at[2] == 0) return 6.25 / 2;
    if (location >> 1 & 1 && at[1] == 0) return 3.25;
    if (location & 1 && at[0] == 0) return 1.25;
    return inside;
}

START_TEST(sets_points_on_dirichlet_sides_and_the_last_axis_wins)
{
    static double name[] = {1, 2, 3, 4, 6, 5};
    trl_grid grid = grid_of(3, 4, 5, 4, 0);
    open_layout(&grid, NULL);
    for (int location = 0; location < 8; ++location) {
        trl_boundary *boundary;
        trl_field *field = new_field("f", (trl_location)location, 1);
        trl_bc bc[6] = {{.kind = TRL_BC_DIRICHLET}, {.kind = TRL_BC_NEUMANN}, {.kind = TRL_BC_DIRICHLET},
                        {.kind = TRL_BC_OUTFLOW},   {.kind = TRL_BC_ROBIN},   {.kind = TRL_BC_EXPRESSION}};
        int64_t wrong = 0;
        ck_ok(trl_boundary_create(layout, (trl_location)location, &boundary));
        for (int s = 0; s < 6; ++s) {
            bc[s].value = (trl_bc_value){.function = side_name, .data = &name[s]};
            bc[s].c = bc[s].value;
            if (bc[s].kind == TRL_BC_ROBIN) bc[s].value = (trl_bc_value){.number = 2};
            ck_ok(trl_boundary_add(boundary, s / 2, s % 2, &bc[s]));
        }
        set_field(field, wavy, NULL);
        ck_ok(trl_boundary_set_sides(boundary, NULL, field, 0.25));
        for (int p = 0; p < layout->nlocal; ++p) {
            trl_array array = array_of(field, p);
            trl_lidx at[3];
            EACH_POINT(at, array.owned)
            {
                trl_gidx global[3], n[3];
                double x[3];
                coordinates((trl_location)location, p, at, x);
                for (int a = 0; a < 3; ++a) {
                    global[a] = local_patch(p)->first[a] + at[a];
                    n[a] = trl_grid_points(&grid, (trl_location)location, a);
                }
                double expected = expected_on_sides(global, n, (trl_location)location, wavy(NULL, x, 0));
                wrong += !same_bits(*value_at(&array, at), expected);
            }
        }
        ck_assert_msg(on_all_ranks(wrong == 0), "%s", trl_location_name((trl_location)location));
        trl_boundary_destroy(&boundary);
        trl_field_destroy(&field);
    }
    close_layout();
}
END_TEST

/* ---- values from fields ---- */

START_TEST(takes_values_from_fields_on_the_side_or_next_to_it)
{
    trl_grid grid = grid_of(2, 8, 6, 1, 0);
    open_layout(&grid, NULL);
    trl_field *field = new_field("f", TRL_CELL, 1), *faces = new_field("wall", TRL_XFACE, 1),
              *cells = new_field("near", TRL_CELL, 1);
    trl_boundary *boundary;
    const trl_bc on_side = {.kind = TRL_BC_DIRICHLET, .value.field = faces};
    const trl_bc next_to_it = {.kind = TRL_BC_EXPRESSION, .value.field = cells};
    int64_t wrong = 0;
    ck_ok(trl_boundary_create(layout, TRL_CELL, &boundary));
    ck_ok(trl_boundary_add(boundary, 0, 1, &on_side));
    ck_ok(trl_boundary_add(boundary, 0, 0, &next_to_it));
    set_field(field, wavy, NULL);
    set_field(cells, wavy, NULL);
    trl_err err = trl_boundary_fill(boundary, NULL, field, 0);
    bool at_plus = false;
    for (int p = 0; p < layout->nlocal; ++p) at_plus = at_plus || trl_patch_at_side(layout, local_patch(p), 0, 1);
    ck_assert_int_eq(err, at_plus ? TRL_ERR_USAGE : TRL_OK); /* faces hold nothing yet */
    if (at_plus) ck_assert_ptr_nonnull(strstr(test_messages(), "'wall'"));
    set_field(faces, wavy, NULL);
    ck_ok(trl_boundary_fill(boundary, NULL, field, 0));
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        for (int side = 0; side < 2; ++side) {
            if (!trl_patch_at_side(layout, local_patch(p), 0, side)) continue;
            for (trl_lidx j = 0; j < array.owned.hi[1]; ++j) {
                trl_lidx edge = side ? array.owned.hi[0] - 1 : 0, in[3] = {edge, j, 0},
                         out[3] = {edge + (side ? 1 : -1), j, 0};
                double inner[3], wall[3];
                coordinates(TRL_CELL, p, in, inner);
                coordinates(TRL_XFACE, p, out, wall);
                double expected = side ? 2 * wavy(NULL, wall, 0) - wavy(NULL, inner, 0) : wavy(NULL, inner, 0);
                wrong += !same_bits(*value_at(&array, out), expected);
            }
        }
    }
    ck_assert(on_all_ranks(wrong == 0));
    trl_boundary_destroy(&boundary);
    trl_field_destroy(&field);
    trl_field_destroy(&faces);
    trl_field_destroy(&cells);
    close_layout();
}
END_TEST

/* ---- modifiers ---- */

typedef struct modifier {
    trl_field *from;
    int ghost_calls, side_calls;
} modifier;

static trl_err copy_other(void *data, const trl_bc_call *call)
{
    modifier *m = data;
    trl_array from;
    trl_lidx at[3];
    trl_err err = trl_field_array(m->from, call->patch, &from);
    *(call->on_side ? &m->side_calls : &m->ghost_calls) += 1;
    EACH_POINT(at, call->box)
    {
        trl_lidx in[3] = {at[0], at[1], at[2]};
        in[call->axis] = call->side ? from.owned.hi[call->axis] - 2 : 1;
        *value_at(call->target, at) = 10 * *value_at(&from, in) + call->t;
    }
    return err;
}

START_TEST(calls_modifiers_once_the_fields_they_depend_on_are_valid)
{
    trl_grid grid = grid_of(2, 5, 16, 1, 2);
    const int rows[3] = {1, ranks(), 1};
    open_layout(&grid, rows);
    trl_field *field = new_field("f", TRL_XFACE, 2), *other = new_field("other", TRL_CELL, 1);
    modifier m = {.from = other};
    const trl_bc_dependency reads = {other, {{1, 0, 0}, {1, 0, 0}}};
    const trl_bc bc = {
        .kind = TRL_BC_MODIFIER, .modify = copy_other, .modify_data = &m, .ndependencies = 1, .dependency = &reads};
    trl_boundary *boundary;
    int64_t wrong = 0;
    ck_ok(trl_boundary_create(layout, TRL_XFACE, &boundary));
    ck_ok(trl_boundary_add(boundary, 0, 0, &bc));
    set_field(field, wavy, NULL);
    ck_fails(trl_boundary_fill(boundary, NULL, field, 0.5), TRL_ERR_USAGE, "'other'");
    ck_assert_int_eq(m.ghost_calls, 0);
    set_field(other, wavy, NULL);
    ck_ok(trl_boundary_set_sides(boundary, NULL, field, 0.5));
    ck_assert_int_eq(m.side_calls, layout->nlocal);
    ck_ok(trl_boundary_fill(boundary, NULL, field, 0.5));
    ck_assert_int_eq(m.ghost_calls, layout->nlocal);
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        trl_lidx at[3];
        trl_box set = array.owned;
        set.lo[0] = -2;
        set.hi[0] = 1;
        EACH_POINT(at, set)
        {
            trl_lidx in[3] = {1, at[1], 0};
            double x[3];
            coordinates(TRL_CELL, p, in, x);
            wrong += !same_bits(*value_at(&array, at), 10 * wavy(NULL, x, 0) + 0.5);
        }
        ck_assert_int_eq(trl_field_valid(field, p).lo[0], -2);
    }
    ck_assert(on_all_ranks(wrong == 0));
    trl_boundary_destroy(&boundary);
    trl_field_destroy(&field);
    trl_field_destroy(&other);
    close_layout();
}
END_TEST

/* ---- diffusion ---- */

/* u = 2 + exp(-13 t) cos(3 x + p) cos(2 (y - y0) + q), which solves du/dt = laplacian(u). */
typedef struct wave {
    double p, q, origin, kx, ky;
} wave;

static double exact(void *data, const double x[3], double t)
{
    const wave *w = data;
    return 2 + exp(-(w->kx * w->kx + w->ky * w->ky) * t) * cos(w->kx * x[0] + w->p) *
                   cos(w->ky * (x[1] - w->origin) + w->q);
}

static double slope_x(const wave *w, const double x[3], double t)
{
    return -w->kx * exp(-(w->kx * w->kx + w->ky * w->ky) * t) * sin(w->kx * x[0] + w->p) *
           cos(w->ky * (x[1] - w->origin) + w->q);
}

static double slope_y(const wave *w, const double x[3], double t)
{
    return -w->ky * exp(-(w->kx * w->kx + w->ky * w->ky) * t) * cos(w->kx * x[0] + w->p) *
           sin(w->ky * (x[1] - w->origin) + w->q);
}

/* A side of the wave's problem, for functions on it. */
typedef struct wave_side {
    wave *w;
    int axis, side;
} wave_side;

static double outward_slope(void *data, const double x[3], double t)
{
    const wave_side *s = data;
    double slope = s->axis ? slope_y(s->w, x, t) : slope_x(s->w, x, t);
    return s->side ? slope : -slope;
}

/* 1.5 u + 0.5 du/dn */
static double robin_sum(void *data, const double x[3], double t)
{
    const wave_side *s = data;
    return 1.5 * exact(s->w, x, t) + 0.5 * outward_slope(data, x, t);
}

/* The first half of a side, in both of its coordinates. */
static double first_part(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] + x[1] < 0.9;
}

static trl_bc condition(trl_bc_kind kind, wave_side *side)
{
    trl_bc bc = {.kind = kind, .value = {.function = exact, .data = side->w}};
    if (kind == TRL_BC_NEUMANN) bc.value = (trl_bc_value){.function = outward_slope, .data = side};
    if (kind == TRL_BC_ROBIN) {
        bc.value = (trl_bc_value){.number = 1.5};
        bc.b.number = 0.5;
        bc.c = (trl_bc_value){.function = robin_sum, .data = side};
    }
    return bc;
}

static void diffuse(trl_field *from, trl_field *to, double dt)
{
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array u = array_of(from, p), v = array_of(to, p);
        trl_lidx at[3];
        EACH_POINT(at, u.owned)
        {
            const double *f = value_at(&u, at);
            double sum = 0;
            for (int a = 0; a < 2; ++a) {
                double h = layout->grid.spacing[a];
                sum += (f[u.stride[a]] - 2 * *f + f[-u.stride[a]]) / (h * h);
            }
            *value_at(&v, at) = *f + dt * sum;
        }
        ck_ok(trl_field_set_valid(to, p, &v.owned));
    }
}

/* l2 of the error at t = 0.02 on n x n cells: `kind` on all sides, or only where first_part holds and `other`
 * elsewhere. */
static double diffusion_error(int n, trl_location location, trl_bc_kind kind, trl_bc_kind other, wave *w)
{
    trl_grid grid = grid_of(2, n, n, 1, 0);
    trl_boundary *boundary;
    wave_side side[4] = {{w, 0, 0}, {w, 0, 1}, {w, 1, 0}, {w, 1, 1}};
    double h = grid.spacing[0], end = 0.02, error;
    int steps = (int)ceil(end / (0.2 * h * h));
    open_layout(&grid, NULL);
    trl_field *u = new_field("u", location, 1), *v = new_field("v", location, 1);
    ck_ok(trl_boundary_create(layout, location, &boundary));
    for (int s = 0; s < 4; ++s) {
        trl_bc bc = condition(kind, &side[s]);
        bc.where = kind == other ? NULL : first_part;
        ck_ok(trl_boundary_add(boundary, s / 2, s % 2, &bc));
        bc = condition(other, &side[s]);
        if (kind != other) ck_ok(trl_boundary_add(boundary, s / 2, s % 2, &bc));
    }
    set_field(u, exact, w);
    for (int step = 0; step < steps; ++step) {
        ck_ok(trl_field_exchange(u));
        ck_ok(trl_boundary_fill(boundary, NULL, u, end * step / steps));
        diffuse(u, v, end / steps);
        ck_ok(trl_boundary_set_sides(boundary, NULL, v, end * (step + 1) / steps));
        trl_field *swap = u;
        u = v;
        v = swap;
    }
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(u, p);
        trl_lidx at[3];
        EACH_POINT(at, array.owned)
        {
            double x[3];
            coordinates(location, p, at, x);
            *value_at(&array, at) -= exact(w, x, end);
        }
    }
    ck_ok(trl_field_reduce(u, NULL, TRL_REDUCE_L2, TRL_OVER_VOLUMES, NULL, &error));
    trl_boundary_destroy(&boundary);
    trl_field_destroy(&u);
    trl_field_destroy(&v);
    close_layout();
    return error;
}

static void check_order(trl_location location, trl_bc_kind kind, trl_bc_kind other, wave *w, double least)
{
    double coarse = diffusion_error(10, location, kind, other, w),
           middle = diffusion_error(20, location, kind, other, w);
    double fine = diffusion_error(40, location, kind, other, w), order = log2(middle / fine);
    ck_assert_msg(order > least && log2(coarse / middle) > least - 0.1,
                  "kinds %d and %d at %s: errors %g %g %g, order %g", kind, other, trl_location_name(location), coarse,
                  middle, fine, order);
}

START_TEST(solves_diffusion_to_second_order_with_every_kind_at_every_location)
{
    static const trl_location locations[] = {TRL_CELL, TRL_XFACE, TRL_YFACE, TRL_ZEDGE};
    wave w = {0.4, -0.3, 0.125, 3, 2};
    for (int l = 0; l < 4; ++l) {
        check_order(locations[l], TRL_BC_DIRICHLET, TRL_BC_DIRICHLET, &w, 1.9);
        check_order(locations[l], TRL_BC_NEUMANN, TRL_BC_NEUMANN, &w, 1.9);
        check_order(locations[l], TRL_BC_ROBIN, TRL_BC_ROBIN, &w, 1.9);
        check_order(locations[l], TRL_BC_ROBIN, TRL_BC_NEUMANN, &w, 1.9);
    }
}
END_TEST

/* Zero normal derivative on all sides. On points of the side the ghost f_0 puts the zero half a spacing outside: order
 * 1. */
START_TEST(solves_diffusion_with_outflow_where_the_normal_derivative_is_zero)
{
    const double pi = acos(-1);
    wave w = {0, 0, 0.125, pi, pi / 1.25};
    check_order(TRL_CELL, TRL_BC_OUTFLOW, TRL_BC_OUTFLOW, &w, 1.9);
    check_order(TRL_ZEDGE, TRL_BC_OUTFLOW, TRL_BC_OUTFLOW, &w, 0.8);
}
END_TEST

/* ---- refusals ---- */

static void refused(trl_boundary *boundary, int axis, int side, trl_bc bc, const char *text)
{
    ck_fails(trl_boundary_add(boundary, axis, side, &bc), TRL_ERR_USAGE, text);
}

START_TEST(refuses_conditions_that_do_not_fit)
{
    trl_grid grid = grid_of(2, 8, 6, 1, 2);
    trl_boundary *boundary;
    trl_mask *mask;
    trl_operator *across, *nodes;
    open_layout(&grid, NULL);
    trl_field *edges = new_field("edges", TRL_ZEDGE, 1), *thin = new_field("thin", TRL_CELL, 1);
    trl_operator_desc desc = {.kind = TRL_GRADIENT, .from = TRL_CELL, .to = TRL_YFACE};
    ck_ok(trl_operator_create(test_ctx, &grid, &desc, &across));
    desc = (trl_operator_desc){.kind = TRL_INTERPOLANT, .from = TRL_CELL, .to = TRL_ZEDGE};
    ck_ok(trl_operator_create(test_ctx, &grid, &desc, &nodes));
    ck_ok(trl_mask_create(layout, TRL_YFACE, 1, first_part, NULL, 0, &mask));
    ck_ok(trl_boundary_create(layout, TRL_CELL, &boundary));
    refused(boundary, 1, 0, (trl_bc){.kind = TRL_BC_OUTFLOW}, "on y- at cell: the axis is periodic");
    refused(boundary, 2, 1, (trl_bc){.kind = TRL_BC_OUTFLOW}, "on z+ at cell: the grid lacks this axis");
    refused(boundary, 3, 0, (trl_bc){.kind = TRL_BC_OUTFLOW}, "side 0 of axis 3");
    refused(boundary, 0, 0, (trl_bc){.value.field = edges}, "another location along the side");
    refused(boundary, 0, 0, (trl_bc){.mask = mask}, "with the bit of the side's axis set");
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_OPERATOR}, "an operator is missing");
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_OPERATOR, .op = across},
            "only operators along the axis of the side");
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_OPERATOR, .op = nodes},
            "only operators along the axis of the side");
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_MODIFIER}, "a modifier needs its function");
    ck_ok(trl_boundary_add(boundary, 0, 0, &(trl_bc){.kind = TRL_BC_OUTFLOW, .where = first_part}));
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_MODIFIER, .modify = copy_other},
            "cannot stand beside other pieces");
    set_field(thin, wavy, NULL);
    ck_fails(trl_boundary_fill(boundary, NULL, thin, 0), TRL_ERR_USAGE, "on x-: the last piece must hold everywhere");
    ck_ok(trl_boundary_add(boundary, 0, 0, &(trl_bc){.kind = TRL_BC_OUTFLOW}));
    refused(boundary, 0, 0, (trl_bc){.kind = TRL_BC_OUTFLOW}, "the piece before this one holds everywhere");
    set_field(edges, wavy, NULL);
    ck_fails(trl_boundary_fill(boundary, NULL, edges, 0), TRL_ERR_USAGE, "field 'edges' is at zedge");
    ck_ok(trl_boundary_fill(boundary, NULL, thin, 0));
    trl_boundary_destroy(&boundary);
    trl_mask_destroy(&mask);
    trl_operator_destroy(&across);
    trl_operator_destroy(&nodes);
    trl_field_destroy(&edges);
    trl_field_destroy(&thin);
    close_layout();
}
END_TEST

START_TEST(says_what_a_fill_lacks)
{
    trl_grid grid = grid_of(2, 6, 8, 1, 2);
    const int rows[3] = {1, ranks(), 1};
    trl_boundary *boundary;
    trl_mask *mask;
    trl_operator *wide;
    trl_operator_desc desc = {.kind = TRL_INTERPOLANT4, .from = TRL_CELL, .to = TRL_XFACE};
    open_layout(&grid, rows);
    trl_field *field = new_field("f", TRL_CELL, 1);
    ck_ok(trl_operator_create(test_ctx, &grid, &desc, &wide));
    ck_ok(trl_boundary_create(layout, TRL_CELL, &boundary));
    ck_fails(trl_boundary_fill(boundary, NULL, field, 0), TRL_ERR_USAGE, "'f'"); /* nothing in it yet */
    ck_ok(trl_boundary_add(boundary, 0, 0, &(trl_bc){.kind = TRL_BC_OPERATOR, .op = wide}));
    set_field(field, wavy, NULL);
    ck_fails(trl_boundary_fill(boundary, NULL, field, 0), TRL_ERR_USAGE,
             "to invert fourth-order interpolant the field needs 2 layers of ghosts");
    trl_boundary_destroy(&boundary);
    ck_ok(trl_boundary_create(layout, TRL_CELL, &boundary));
    ck_ok(trl_mask_create(layout, TRL_XFACE, 0, first_part, NULL, 0, &mask));
    ck_ok(trl_boundary_add(boundary, 0, 0, &(trl_bc){.kind = TRL_BC_OUTFLOW, .mask = mask}));
    ck_ok(trl_boundary_add(boundary, 0, 0, &(trl_bc){.kind = TRL_BC_OUTFLOW}));
    ck_ok(trl_field_exchange(field));
    ck_fails(trl_boundary_fill(boundary, NULL, field, 0), TRL_ERR_USAGE,
             "on x-: its mask has 0 layers of ghosts, and 1 are filled along y");
    trl_boundary_destroy(&boundary);
    trl_mask_destroy(&mask);
    trl_operator_destroy(&wide);
    trl_field_destroy(&field);
    close_layout();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, sets_points_on_dirichlet_sides_and_the_last_axis_wins);
    tcase_add_test(tc, takes_values_from_fields_on_the_side_or_next_to_it);
    tcase_add_test(tc, calls_modifiers_once_the_fields_they_depend_on_are_valid);
    tcase_add_test(tc, solves_diffusion_to_second_order_with_every_kind_at_every_location);
    tcase_add_test(tc, solves_diffusion_with_outflow_where_the_normal_derivative_is_zero);
    tcase_add_test(tc, refuses_conditions_that_do_not_fit);
    tcase_add_test(tc, says_what_a_fill_lacks);
}

TRL_TEST_MAIN("boundary_use", add_tests)
