/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What holds for operators exactly, whatever the values: identities of vector calculus, summation by parts,
 * conservation, adjoints. On noise, on several patches and ranks. */
// ctest: np=1,4 timeout=300 sanitize=1
#include <float.h>

#include "operator_fixture.h"

static const int cells[3] = {8, 9, 10}, cuts[3][3] = {{4, 1, 1}, {2, 2, 1}, {1, 2, 2}};

static domain open_cut_domain(int dim, int periodic_bits)
{
    return open_domain(dim, cells, periodic_bits, cuts[dim - 1]);
}

/* Make the operator that the description says and apply it. */
static void apply(const domain *d, const trl_operator_desc *desc, trl_field *const *in, trl_field *out)
{
    trl_operator *op = new_operator(d, desc);
    ck_ok(trl_operator_apply(op, NULL, in, out));
    trl_operator_destroy(&op);
}

static trl_operator_desc describe(trl_operator_kind kind, int from, int to)
{
    return (trl_operator_desc){.kind = kind, .from = (trl_location)from, .to = (trl_location)to};
}

/* Noise with ghosts enough for all that this file does. */
static trl_field *noise_field(const domain *d, int location, int seed)
{
    trl_field *field = new_field(d, "noise", (trl_location)location, 4);
    fill_noise(field, seed);
    return field;
}

static trl_field *result_field(const domain *d, int location)
{
    return new_field(d, "result", (trl_location)location, 2);
}

/* ---- sums over all ranks, and what rounding can make of them ---- */

typedef struct balance {
    trl_sum sum, size; /* of the terms and of their magnitudes */
} balance;

static void add_term(balance *b, double term)
{
    double size = fabs(term);
    trl_sum_add(&b->sum, &term, 1);
    trl_sum_add(&b->size, &size, 1);
}

/* The sum of all terms vanishes but for the roundings of each. */
static void check_balance(balance *b, const char *what)
{
    ck_ok(trl_sum_allreduce(test_ctx, 1, &b->sum));
    ck_ok(trl_sum_allreduce(test_ctx, 1, &b->size));
    double sum = trl_sum_value(&b->sum), size = trl_sum_value(&b->size);
    ck_assert_msg(size > 0 && fabs(sum) < 8 * DBL_EPSILON * size, "%s: %.3e is left of terms of size %.3e", what, sum,
                  size);
}

/* Add factor * the sum of a*b over owned points. */
static void add_product(balance *sum, trl_field *a, trl_field *b, double factor)
{
    for (int p = 0; p < trl_field_layout(a)->nlocal; ++p) {
        trl_array x = array_of(a, p), y = array_of(b, p);
        FOR_POINTS(&x.owned, at) add_term(sum, factor * (*value_at(&x, at) * *value_at(&y, at)));
    }
}

static double largest_magnitude(trl_field *field)
{
    double largest = 0;
    for (int p = 0; p < trl_field_layout(field)->nlocal; ++p) {
        trl_array a = array_of(field, p);
        trl_box valid = trl_field_valid(field, p);
        FOR_POINTS(&valid, at)
        {
            double size = fabs(*value_at(&a, at));
            largest = size <= largest ? largest : size; /* NaN is larger */
        }
    }
    return largest;
}

/* ---- second derivatives that cancel ---- */

static double smallest_spacing(const domain *d)
{
    double h = INFINITY;
    for (int a = 0; a < d->layout->grid.dim; ++a) h = fmin(h, d->layout->grid.spacing[a]);
    return h;
}

/* Each of two derivatives adds and divides; three or fewer such terms of noise below 1 are added. */
static void check_cancelled(const domain *d, trl_field *field, const char *what, int at)
{
    double size = 12 / pow(smallest_spacing(d), 2), found = largest_magnitude(field);
    ck_assert_msg(found < 4 * DBL_EPSILON * size, "%s at %s in %d-D: %.3e of terms of size %.3e", what,
                  trl_location_name((trl_location)at), d->layout->grid.dim, found, size);
}

static void check_div_curl(const domain *d, int at)
{
    trl_field *v[3], *curl[3], *div = result_field(d, at);
    for (int c = 0; c < 3; ++c) v[c] = noise_field(d, at ^ 7 ^ 1 << c, 10 * at + c);
    for (int c = 0; c < 3; ++c) {
        curl[c] = result_field(d, at ^ 1 << c);
        trl_operator_desc desc = {.kind = TRL_CURL, .to = (trl_location)(at ^ 1 << c), .axis = c};
        apply(d, &desc, (trl_field *[2]){v[(c + 1) % 3], v[(c + 2) % 3]}, curl[c]);
    }
    trl_operator_desc desc = describe(TRL_DIV, 0, at);
    apply(d, &desc, curl, div);
    check_cancelled(d, div, "div curl", at);
    ck_assert_double_gt(largest_magnitude(curl[0]), 1);
    for (int c = 0; c < 3; ++c) {
        trl_field_destroy(&v[c]);
        trl_field_destroy(&curl[c]);
    }
    trl_field_destroy(&div);
}

START_TEST(the_divergence_of_a_curl_vanishes)
{
    for (int periodic = 0; periodic < 8; periodic += 7) {
        domain d = open_cut_domain(3, periodic);
        for (int at = 0; at < 8; ++at) check_div_curl(&d, at);
        close_domain(&d);
    }
}
END_TEST

/* Component c of the curl of a gradient. */
static void check_curl_grad(const domain *d, int at, int c)
{
    trl_field *f = noise_field(d, at, at), *grad[2], *curl;
    int to = at;
    for (int i = 0; i < 2; ++i) {
        int axis = (c + 1 + i) % 3;
        trl_operator_desc desc = describe(TRL_GRADIENT, at, at ^ 1 << axis);
        grad[i] = result_field(d, at ^ 1 << axis);
        apply(d, &desc, &f, grad[i]);
        to ^= 1 << axis;
    }
    trl_operator_desc desc = {.kind = TRL_CURL, .to = (trl_location)to, .axis = c};
    curl = result_field(d, to);
    apply(d, &desc, grad, curl);
    check_cancelled(d, curl, "curl grad", to);
    ck_assert_double_gt(largest_magnitude(grad[0]), 1);
    trl_field_destroy(&f);
    trl_field_destroy(&curl);
    for (int i = 0; i < 2; ++i) trl_field_destroy(&grad[i]);
}

START_TEST(the_curl_of_a_gradient_vanishes)
{
    for (int dim = 2; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 8; periodic += 7) {
            domain d = open_cut_domain(dim, periodic);
            for (int at = 0; at < 1 << dim; ++at)
                for (int c = dim == 2 ? 2 : 0; c < 3; ++c) check_curl_grad(&d, at, c);
            close_domain(&d);
        }
}
END_TEST

/* ---- sums by parts ---- */

/* The products at the sides that are left of the sum of f*(D u) + u*(G f), f at bit 0 and u at bit 1 of the axis, which
 * is not periodic: with N cells, u_N f_N - u_0 f_-1. */
static void take_sides(balance *sum, trl_field *f, trl_field *u, int axis)
{
    const trl_grid *grid = &trl_field_layout(u)->grid;
    for (int p = 0; p < trl_field_layout(u)->nlocal; ++p) {
        trl_array cell = array_of(f, p), face = array_of(u, p);
        FOR_POINTS(&face.owned, at)
        {
            trl_gidx global[3];
            trl_lidx beyond[3] = {at[0], at[1], at[2]};
            global_point(u, p, at, global);
            if (global[axis] != 0 && global[axis] != grid->cells[axis]) continue;
            if (global[axis] == 0) --beyond[axis];
            double product = *value_at(&face, at) * *value_at(&cell, beyond) / grid->spacing[axis];
            add_term(sum, global[axis] == 0 ? product : -product);
        }
    }
}

/* `down` takes the faces' field to the cells, `up` the other way. */
static void check_by_parts(const domain *d, trl_operator_kind down, trl_operator_kind up, int at, int axis)
{
    char what[120];
    balance sum = {0};
    int face = at | 1 << axis;
    trl_operator_desc to_cell = describe(down, face, at), to_face = describe(up, at, face);
    trl_field *f = noise_field(d, at, 3), *u = noise_field(d, face, 4), *du = result_field(d, at),
              *gf = result_field(d, face);
    apply(d, &to_cell, &u, du);
    apply(d, &to_face, &f, gf);
    add_product(&sum, f, du, 1);
    add_product(&sum, u, gf, 1);
    if (!d->layout->grid.periodic[axis]) take_sides(&sum, f, u, axis);
    snprintf(what, sizeof what, "%s and %s of %s and %s in %d-D", trl_operator_kind_name(down),
             trl_operator_kind_name(up), trl_location_name((trl_location)face), trl_location_name((trl_location)at),
             d->layout->grid.dim);
    check_balance(&sum, what);
    trl_field_destroy(&f);
    trl_field_destroy(&u);
    trl_field_destroy(&du);
    trl_field_destroy(&gf);
}

START_TEST(gradient_and_divergence_sum_by_parts_up_to_the_sides)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 1 << dim; ++periodic) {
            domain d = open_cut_domain(dim, periodic);
            for (int at = 0; at < 1 << dim; ++at)
                for (int axis = 0; axis < dim; ++axis) {
                    if (at >> axis & 1) continue;
                    check_by_parts(&d, TRL_DIVERGENCE, TRL_GRADIENT, at, axis);
                    check_by_parts(&d, TRL_GRADIENT, TRL_DIVERGENCE, at, axis);
                }
            close_domain(&d);
        }
}
END_TEST

/* Minus what flows in through the minus side of an axis plus what flows out through the other: the inputs' points
 * beside the sum's first and last. */
static void take_fluxes(balance *sum, trl_field *v, trl_location at, int axis)
{
    const trl_layout *layout = trl_field_layout(v);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = local_patch(layout, p);
        trl_box owned = trl_patch_owned(layout, patch, at);
        trl_array a = array_of(v, p);
        for (int side = 0; side < 2; ++side) {
            trl_box plane = owned;
            if (!trl_patch_at_side(layout, patch, axis, side)) continue;
            plane.lo[axis] = (side ? owned.hi[axis] : owned.lo[axis]) - (at >> axis & 1);
            plane.hi[axis] = plane.lo[axis] + 1;
            FOR_POINTS(&plane, point)
            {
                double flow = *value_at(&a, point) / layout->grid.spacing[axis];
                add_term(sum, side ? -flow : flow);
            }
        }
    }
}

START_TEST(a_divergence_sums_to_the_fluxes_through_the_sides)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 1 << dim; ++periodic) {
            domain d = open_cut_domain(dim, periodic);
            for (int at = 0; at < 1 << dim; ++at) {
                trl_operator_desc desc = describe(TRL_DIV, 0, at);
                trl_field *v[3], *div = result_field(&d, at);
                balance sum = {0};
                for (int a = 0; a < dim; ++a) v[a] = noise_field(&d, at ^ 1 << a, a);
                apply(&d, &desc, v, div);
                for (int p = 0; p < d.layout->nlocal; ++p) {
                    trl_array a = array_of(div, p);
                    FOR_POINTS(&a.owned, point) add_term(&sum, *value_at(&a, point));
                }
                for (int a = 0; a < dim; ++a)
                    if (!d.layout->grid.periodic[a]) take_fluxes(&sum, v[a], (trl_location)at, a);
                check_balance(&sum, "the sum of a divergence");
                for (int a = 0; a < dim; ++a) trl_field_destroy(&v[a]);
                trl_field_destroy(&div);
            }
            close_domain(&d);
        }
}
END_TEST

/* ---- adjoints ---- */

/* The operator A' with sum of u*(A f) = sign * sum of f*(A' u) for all f and u on a periodic grid. False for those of
 * several inputs. */
static bool adjoint_of(const trl_operator_desc *desc, trl_operator_desc *adjoint, double *sign)
{
    *adjoint = *desc;
    adjoint->from = desc->to;
    adjoint->to = desc->from;
    adjoint->side = 1 - desc->side;
    *sign = 1;
    switch (desc->kind) {
    case TRL_GRADIENT:
    case TRL_DIVERGENCE:
        adjoint->kind = desc->kind == TRL_GRADIENT ? TRL_DIVERGENCE : TRL_GRADIENT;
        *sign = -1;
        return true;
    case TRL_GRADIENT4:
    case TRL_DIVERGENCE4:
        adjoint->kind = desc->kind == TRL_GRADIENT4 ? TRL_DIVERGENCE4 : TRL_GRADIENT4;
        *sign = -1;
        return true;
    case TRL_CENTRAL_GRADIENT:
        *sign = -1;
        return true;
    case TRL_DIV:
    case TRL_CURL:
        return false;
    default:
        return true;
    }
}

static void check_adjoint(const domain *d, const trl_operator_desc *desc, const trl_operator_desc *adjoint, double sign)
{
    balance sum = {0};
    trl_field *f = noise_field(d, (int)desc->from, 5), *u = noise_field(d, (int)desc->to, 6),
              *af = result_field(d, (int)desc->to), *au = result_field(d, (int)desc->from);
    apply(d, desc, &f, af);
    apply(d, adjoint, &u, au);
    add_product(&sum, u, af, 1);
    add_product(&sum, f, au, -sign);
    check_balance(&sum, operator_text(d->layout->grid.dim, desc));
    trl_field_destroy(&f);
    trl_field_destroy(&u);
    trl_field_destroy(&af);
    trl_field_destroy(&au);
}

START_TEST(every_operator_has_its_adjoint_on_periodic_grids)
{
    for (int dim = 1; dim <= 3; ++dim) {
        domain d = open_cut_domain(dim, 7);
        const operator_list *list = legal_operators(dim);
        for (int i = 0; i < list->n; ++i) {
            trl_operator_desc adjoint;
            double sign;
            if (adjoint_of(&list->desc[i], &adjoint, &sign)) check_adjoint(&d, &list->desc[i], &adjoint, sign);
        }
        close_domain(&d);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_divergence_of_a_curl_vanishes);
    tcase_add_test(tc, the_curl_of_a_gradient_vanishes);
    tcase_add_test(tc, gradient_and_divergence_sum_by_parts_up_to_the_sides);
    tcase_add_test(tc, a_divergence_sums_to_the_fluxes_through_the_sides);
    tcase_add_test(tc, every_operator_has_its_adjoint_on_periodic_grids);
}

TRL_TEST_MAIN("operator identities", add_tests)
