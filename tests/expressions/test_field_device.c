// ctest: np=1,2 labels=gpu emulated=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of drivers that live on a GPU: what is computed there has the bits of the host, and is copied only when the
 * host asks. */
#include "spatialops/operator_fixture.h"

#include <trl_boundary.h>
#include <trl_field_device.h>
#include <trl_limiter_body.h>
#include <trl_reduction.h>

static trl_devices *devices;

typedef struct setting {
    int dim, cells[3], counts[3], periodic;
} setting;

static const setting settings[] = {{1, {17, 1, 1}, {3, 1, 1}, 0},
                                   {2, {7, 5, 1}, {2, 1, 1}, 1},
                                   {3, {5, 3, 7}, {2, 1, 1}, 4},
                                   {3, {4, 1, 3}, {4, 1, 1}, 0}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static domain d;
static trl_field_device *gpu;

static void open_setting(const setting *s)
{
    ck_ok(trl_devices_open(test_ctx, "gpu", &devices));
    d = open_domain(s->dim, s->cells, s->periodic, s->counts);
    ck_ok(trl_field_device_create(d.manager, devices, 0, &gpu));
}

static void close_setting(void)
{
    ck_assert_int_eq(trl_field_device_get_stats(gpu).fields, 0);
    trl_field_device_destroy(&gpu);
    trl_devices_close(&devices);
    close_domain(&d);
}

static trl_array read_array(trl_field *field, int p)
{
    trl_array array;
    ck_ok(trl_field_read(field, p, &array));
    return array;
}

/* The same points are valid, with the same bits. */
static void check_same(trl_field *host, trl_field *there, const char *what)
{
    for (int p = 0; p < d.layout->nlocal; ++p) {
        const trl_box valid = trl_field_valid(host, p), other = trl_field_valid(there, p);
        const trl_array a = read_array(host, p), b = read_array(there, p);
        ck_assert_msg(memcmp(&valid, &other, sizeof valid) == 0, "%s: other points are valid", what);
        FOR_POINTS(&valid, at)
        {
            if (memcmp(value_at(&a, at), value_at(&b, at), sizeof(double)) != 0)
                ck_abort_msg("%s: %.17g, not %.17g at point %d %d %d of patch %d", what, *value_at(&b, at),
                             *value_at(&a, at), at[0], at[1], at[2], p);
        }
    }
}

/* ---- operators ---- */

static void check_operator(const trl_operator_desc *desc)
{
    trl_operator *op = new_operator(&d, desc);
    trl_field *in[3], *host = new_field(&d, "host", op->to, 1), *there = new_field(&d, "there", op->to, 1);
    for (int i = 0; i < op->ninputs; ++i) {
        in[i] = new_input(&d, "in", op, i, i);
        fill_noise(in[i], i);
    }
    ck_ok(trl_operator_apply(op, NULL, in, host));
    for (int i = 0; i < op->ninputs; ++i) ck_ok(trl_field_move(in[i], gpu));
    ck_ok(trl_field_move(there, gpu));
    const int64_t launches = trl_field_device_get_stats(gpu).launches;
    ck_ok(trl_operator_apply(op, NULL, in, there));
    ck_assert_int_gt(trl_field_device_get_stats(gpu).launches, launches);
    check_same(host, there, operator_text(d.layout->grid.dim, desc));
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_field_destroy(&host);
    trl_field_destroy(&there);
    trl_operator_destroy(&op);
}

START_TEST(operators_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        const operator_list *list = legal_operators(settings[s].dim);
        for (int i = 0; i < list->n; ++i)
            if (test_has(n++, 97)) check_operator(&list->desc[i]);
        close_setting();
    }
}
END_TEST

/* ---- fluxes ---- */

static void check_flux(trl_location phi_at, int axis, int limiter)
{
    const trl_location face = (trl_location)((int)phi_at ^ 1 << axis);
    trl_field *phi = new_field(&d, "phi", phi_at, 3), *u = new_field(&d, "u", face, 1);
    trl_field *host = new_field(&d, "host", face, 1), *there = new_field(&d, "there", face, 1);
    char what[80];
    snprintf(what, sizeof what, "limiter %d at %s along axis %d", limiter, trl_location_name(phi_at), axis);
    fill_noise(phi, 1);
    fill_noise(u, 2);
    ck_ok(trl_advective_flux_apply(limiter, axis, NULL, phi, u, host));
    ck_ok(trl_field_move(phi, gpu));
    ck_ok(trl_field_move(u, gpu));
    ck_ok(trl_field_move(there, gpu));
    ck_ok(trl_advective_flux_apply(limiter, axis, NULL, phi, u, there));
    check_same(host, there, what);
    trl_field_destroy(&phi);
    trl_field_destroy(&u);
    trl_field_destroy(&host);
    trl_field_destroy(&there);
}

START_TEST(fluxes_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at)
            for (int axis = 0; axis < settings[s].dim; ++axis)
                for (int limiter = -1; limiter < TRL_LIMITER_COUNT; ++limiter)
                    if (test_has(n++, 173)) check_flux((trl_location)at, axis, limiter);
        close_setting();
    }
}
END_TEST

/* ---- reductions ---- */

static double some_points(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return sin(40 * x[0]) + cos(30 * x[1]) > 0.3;
}

static void check_reduction(trl_field *host, trl_field *there, trl_reduction kind, trl_weights weights,
                            const trl_mask *mask)
{
    double expected, found;
    ck_ok(trl_field_reduce(host, NULL, kind, weights, mask, &expected));
    ck_ok(trl_field_reduce(there, NULL, kind, weights, mask, &found));
    ck_assert_msg(memcmp(&expected, &found, sizeof found) == 0 || (isnan(expected) && isnan(found)),
                  "%s at %s, weights %d, %s: %.17g, not %.17g", trl_reduction_name(kind),
                  trl_location_name(trl_field_location(host)), weights, mask ? "masked" : "all", found, expected);
}

START_TEST(reductions_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at) {
            if (!test_has(n++, 3)) continue;
            trl_field *host = new_field(&d, "host", (trl_location)at, 1);
            trl_field *there = new_field(&d, "there", (trl_location)at, 2);
            trl_mask *mask;
            fill_noise(host, at);
            fill_noise(there, at);
            ck_ok(trl_field_move(there, gpu));
            const int64_t bytes = trl_field_device_get_stats(gpu).bytes_out;
            ck_ok(trl_mask_create(d.layout, (trl_location)at, 1, some_points, NULL, 0, &mask));
            for (int kind = 0; kind < TRL_REDUCTIONS; ++kind)
                for (int weights = 0; weights < 2; ++weights) {
                    if (!test_has(kind + weights, 3)) continue;
                    check_reduction(host, there, (trl_reduction)kind, (trl_weights)weights, NULL);
                    check_reduction(host, there, (trl_reduction)kind, (trl_weights)weights, mask);
                }
            trl_mask_not(mask);
            check_reduction(host, there, TRL_REDUCE_L2, TRL_OVER_VOLUMES, mask);
            ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, bytes);
            trl_mask_destroy(&mask);
            trl_field_destroy(&host);
            trl_field_destroy(&there);
        }
        close_setting();
    }
}
END_TEST

/* ---- exchange ---- */

static trl_field *new_pair(trl_location at, int layers, int seed, bool ghosts, trl_field **there)
{
    trl_field *pair[2];
    for (int i = 0; i < 2; ++i) {
        pair[i] = new_field(&d, i ? "there" : "host", at, layers);
        fill_noise(pair[i], seed);
        if (!ghosts) trl_field_invalidate_ghosts(pair[i]);
    }
    ck_ok(trl_field_move(pair[1], gpu));
    *there = pair[1];
    return pair[0];
}

START_TEST(exchanges_have_the_bits_of_the_host)
{
    for (int s = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at) {
            trl_field *there, *host = new_pair((trl_location)at, 1, at, false, &there);
            const int64_t bytes = trl_field_device_get_stats(gpu).bytes_out;
            for (int round = 0; round < 3; ++round) {
                ck_ok(trl_field_exchange(host));
                ck_ok(trl_field_exchange(there));
            }
            ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, bytes);
            check_same(host, there, "exchange");
            trl_field_destroy(&host);
            trl_field_destroy(&there);
        }
        close_setting();
    }
}
END_TEST

/* ---- boundary conditions ---- */

static double wave(void *data, const double x[3], double t)
{
    (void)data;
    return sin(3 * x[0] + 2 * x[1] + x[2] + t) + 1.5;
}

static int chosen(int n)
{
    static uint64_t state = 7;
    state = trl_hash_mix(state, 1);
    return (int)(state % (uint64_t)n);
}

/* What conditions of one side may need. */
typedef struct side_parts {
    trl_mask *mask;
    trl_operator *op;
    trl_field *value, *value_there;
} side_parts;

static trl_bc_value some_value(const side_parts *parts, bool there)
{
    switch (chosen(3)) {
    case 0:
        return (trl_bc_value){.function = wave};
    case 1:
        return (trl_bc_value){.field = there ? parts->value_there : parts->value};
    default:
        return (trl_bc_value){.number = 0.25 * (1 + chosen(5))};
    }
}

static trl_bc some_piece(const side_parts *parts, bool there)
{
    static const trl_bc_kind kinds[] = {TRL_BC_DIRICHLET, TRL_BC_NEUMANN,    TRL_BC_ROBIN,
                                        TRL_BC_OUTFLOW,   TRL_BC_EXPRESSION, TRL_BC_OPERATOR};
    trl_bc bc = {.kind = kinds[chosen(6)]};
    bc.value = some_value(parts, there);
    bc.b = some_value(parts, there);
    bc.c = some_value(parts, there);
    if (bc.kind == TRL_BC_ROBIN && chosen(3) == 0) bc.b = (trl_bc_value){.number = 0};
    if (bc.kind == TRL_BC_OPERATOR) bc.op = parts->op;
    return bc;
}

static void add_side(trl_boundary *host, trl_boundary *there, int axis, int side, side_parts *parts)
{
    const int pieces = 1 + chosen(3);
    for (int i = 0; i < pieces; ++i) {
        trl_bc bc = some_piece(parts, false), other;
        const bool masked = chosen(2);
        if (i < pieces - 1 && masked) bc.mask = parts->mask;
        if (i < pieces - 1 && !masked) bc.where = some_points;
        other = bc;
        trl_bc_value *const value[3] = {&other.value, &other.b, &other.c};
        for (int v = 0; v < 3; ++v)
            if (value[v]->field) value[v]->field = parts->value_there;
        ck_ok(trl_boundary_add(host, axis, side, &bc));
        ck_ok(trl_boundary_add(there, axis, side, &other));
    }
}

static void open_parts(trl_location at, int axis, side_parts *parts)
{
    const trl_location face = (trl_location)((int)at | 1 << axis);
    trl_operator_desc desc = {
        .kind = chosen(2) ? TRL_GRADIENT : TRL_INTERPOLANT, .from = at, .to = (trl_location)((int)at ^ 1 << axis)};
    if (chosen(3) == 0) desc = (trl_operator_desc){.kind = TRL_SECOND, .from = at, .to = at, .axis = axis};
    ck_ok(trl_mask_create(d.layout, face, 2, some_points, NULL, 0, &parts->mask));
    parts->op = new_operator(&d, &desc);
    parts->value = new_pair(chosen(2) ? at : face, 2, 11, true, &parts->value_there);
}

static void close_parts(side_parts *parts)
{
    trl_mask_destroy(&parts->mask);
    trl_operator_destroy(&parts->op);
    trl_field_destroy(&parts->value);
    trl_field_destroy(&parts->value_there);
}

static void check_boundary(trl_location at, int layers)
{
    side_parts parts[6];
    trl_boundary *host, *there;
    trl_field *f, *g;
    ck_ok(trl_boundary_create(d.layout, at, &host));
    ck_ok(trl_boundary_create(d.layout, at, &there));
    for (int s = 0; s < 2 * d.layout->grid.dim; ++s) {
        if (d.layout->grid.periodic[s / 2]) continue;
        open_parts(at, s / 2, &parts[s]);
        add_side(host, there, s / 2, s % 2, &parts[s]);
    }
    f = new_pair(at, layers, 3, false, &g);
    for (int round = 0; round < 2; ++round) {
        ck_ok(trl_boundary_set_sides(host, NULL, f, 0.5 * round));
        int64_t bytes = trl_field_device_get_stats(gpu).bytes_out;
        ck_ok(trl_boundary_set_sides(there, NULL, g, 0.5 * round));
        ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, bytes);
        check_same(f, g, "points on sides");
        ck_ok(trl_field_exchange(f));
        ck_ok(trl_field_exchange(g));
        const trl_err expected = trl_boundary_fill(host, NULL, f, 0.5 * round);
        bytes = trl_field_device_get_stats(gpu).bytes_out;
        ck_assert_int_eq(trl_boundary_fill(there, NULL, g, 0.5 * round), expected); /* few points: no inversion */
        ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, bytes);
        if (expected == TRL_OK) check_same(f, g, "ghosts");
    }
    trl_field_destroy(&f);
    trl_field_destroy(&g);
    trl_boundary_destroy(&host);
    trl_boundary_destroy(&there);
    for (int s = 0; s < 2 * d.layout->grid.dim; ++s)
        if (!d.layout->grid.periodic[s / 2]) close_parts(&parts[s]);
}

START_TEST(boundaries_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at)
            for (int many = 0; many < 10; ++many)
                if (test_has(n++, 60)) check_boundary((trl_location)at, s < SETTINGS - 1 ? 2 : 1);
        close_setting();
    }
}
END_TEST

/* ---- masks ---- */

START_TEST(assignments_have_the_bits_of_the_host)
{
    open_setting(&settings[2]);
    trl_field *there, *host = new_pair(TRL_YFACE, 1, 1, true, &there);
    trl_field *from_there, *from = new_pair(TRL_YFACE, 0, 2, true, &from_there);
    trl_mask *mask;
    ck_ok(trl_mask_create(d.layout, TRL_YFACE, 0, some_points, NULL, 0, &mask));
    ck_ok(trl_mask_assign(mask, NULL, from, host));
    ck_ok(trl_mask_assign(mask, NULL, from_there, there));
    trl_mask_not(mask);
    ck_ok(trl_mask_assign_number(mask, NULL, 0.125, host));
    ck_ok(trl_mask_assign_number(mask, NULL, 0.125, there));
    ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, 0);
    check_same(host, there, "assignment");
    trl_mask_destroy(&mask);
    trl_field_destroy(&host);
    trl_field_destroy(&there);
    trl_field_destroy(&from);
    trl_field_destroy(&from_there);
    close_setting();
}
END_TEST

/* ---- a time loop ---- */

/* T += dt (laplacian T - div(u T)), with T = 1 in a mask. */
typedef struct loop_fields {
    trl_field *T, *rate, *more, *u[3], *flux[3];
} loop_fields;

static void open_loop(loop_fields *f, bool there)
{
    const int dim = d.layout->grid.dim;
    f->T = new_field(&d, "T", TRL_CELL, 2);
    f->rate = new_field(&d, "rate", TRL_CELL, 0);
    f->more = new_field(&d, "more", TRL_CELL, 1);
    fill_noise(f->T, 1);
    for (int a = 0; a < dim; ++a) {
        f->u[a] = new_field(&d, "u", (trl_location)(1 << a), 1);
        f->flux[a] = new_field(&d, "flux", (trl_location)(1 << a), 1);
        fill_noise(f->u[a], 2 + a);
        if (there) ck_ok(trl_field_move(f->u[a], gpu));
        if (there) ck_ok(trl_field_move(f->flux[a], gpu));
    }
    if (!there) return;
    ck_ok(trl_field_move(f->T, gpu));
    ck_ok(trl_field_move(f->rate, gpu));
    ck_ok(trl_field_move(f->more, gpu));
}

static void close_loop(loop_fields *f)
{
    trl_field_destroy(&f->T);
    trl_field_destroy(&f->rate);
    trl_field_destroy(&f->more);
    for (int a = 0; a < d.layout->grid.dim; ++a) {
        trl_field_destroy(&f->u[a]);
        trl_field_destroy(&f->flux[a]);
    }
}

static void take_step(loop_fields *f, const trl_boundary *sides, const trl_mask *mask, trl_operator *const op[2])
{
    ck_ok(trl_mask_assign_number(mask, NULL, 1, f->T));
    ck_ok(trl_field_exchange(f->T));
    ck_ok(trl_boundary_fill(sides, NULL, f->T, 0));
    ck_ok(trl_operator_apply(op[0], NULL, &f->T, f->rate));
    for (int a = 0; a < d.layout->grid.dim; ++a)
        ck_ok(trl_advective_flux_apply(TRL_LIMITER_VANLEER, a, NULL, f->T, f->u[a], f->flux[a]));
    ck_ok(trl_operator_apply(op[1], NULL, f->flux, f->more));
    ck_ok(trl_field_combine(f->rate, NULL, 0.5, f->rate, -1, f->more));
    ck_ok(trl_field_combine(f->T, NULL, 1, f->T, 1e-4, f->rate));
}

START_TEST(steps_of_a_time_loop_copy_nothing)
{
    const trl_operator_desc desc[2] = {{.kind = TRL_LAPLACIAN}, {.kind = TRL_DIV}};
    loop_fields host, there;
    trl_boundary *sides;
    trl_mask *mask;
    trl_operator *op[2];
    open_setting(&settings[2]);
    for (int i = 0; i < 2; ++i) op[i] = new_operator(&d, &desc[i]);
    ck_ok(trl_mask_create(d.layout, TRL_CELL, 0, some_points, NULL, 0, &mask));
    ck_ok(trl_boundary_create(d.layout, TRL_CELL, &sides));
    for (int s = 0; s < 4; ++s) {
        const trl_bc bc = {.kind = s % 2 ? TRL_BC_NEUMANN : TRL_BC_DIRICHLET, .value.number = 0.5};
        ck_ok(trl_boundary_add(sides, s / 2, s % 2, &bc));
    }
    open_loop(&host, false);
    open_loop(&there, true);
    trl_field_device_stats first = {0}, last;
    for (int n = 0; n < 4; ++n) {
        take_step(&host, sides, mask, op);
        take_step(&there, sides, mask, op);
        if (n == 0) first = trl_field_device_get_stats(gpu);
    }
    last = trl_field_device_get_stats(gpu);
    ck_assert_int_eq(last.bytes_in, first.bytes_in);
    ck_assert_int_eq(last.bytes_out, first.bytes_out);
    ck_assert_int_eq(last.kernels, first.kernels);
    check_same(host.T, there.T, "a time loop");
    ck_ok(trl_field_combine(host.rate, NULL, 3, host.T, 0, NULL));
    ck_ok(trl_field_combine(there.rate, NULL, 3, there.T, 0, NULL));
    check_same(host.rate, there.rate, "a multiple");
    for (int i = 0; i < 2; ++i) { /* in the place of what the host has read */
        loop_fields *f = i == 0 ? &host : &there;
        ck_ok(trl_field_exchange(f->T));
        ck_ok(trl_boundary_fill(sides, NULL, f->T, 0));
        ck_ok(trl_operator_apply(op[0], NULL, &f->T, f->rate));
    }
    check_same(host.rate, there.rate, "a rate once more");
    ck_fails(trl_field_combine(host.rate, NULL, 1, host.T, 1, there.T), TRL_ERR_USAGE, "live in different places");
    ck_fails(trl_field_combine(host.rate, NULL, 1, host.u[0], 0, NULL), TRL_ERR_USAGE, "cannot be combined");
    close_loop(&host);
    close_loop(&there);
    for (int i = 0; i < 2; ++i) trl_operator_destroy(&op[i]);
    trl_mask_destroy(&mask);
    trl_boundary_destroy(&sides);
    close_setting();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, operators_have_the_bits_of_the_host);
    tcase_add_test(tc, fluxes_have_the_bits_of_the_host);
    tcase_add_test(tc, reductions_have_the_bits_of_the_host);
    tcase_add_test(tc, exchanges_have_the_bits_of_the_host);
    tcase_add_test(tc, boundaries_have_the_bits_of_the_host);
    tcase_add_test(tc, assignments_have_the_bits_of_the_host);
    tcase_add_test(tc, steps_of_a_time_loop_copy_nothing);
}

int main(int argc, char **argv)
{
    const char *required = getenv("TRL_REQUIRE_GPU");
    unsetenv("TRL_MOCK_DEVICES");
    if (trl_device_count() > 0) return test_run("field_device", add_tests, argc, argv);
    puts("there is no GPU");
    return required && strcmp(required, "1") == 0 ? 1 : 77;
}
