/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <math.h>

#include <trl_operator.h>

/* Every operator as its definition says it: applied to polynomials sampled at the points of its input, it must give
 * what calculus gives at the point of its result. */

enum { REACH = 9, WIDTH = 2 * REACH + 1 };

static trl_grid grid_of(int dim)
{
    trl_grid g = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    for (int a = 0; a < dim; ++a) {
        g.cells[a] = 8;
        g.spacing[a] = (double[]){0.5, 0.25, 2}[a];
        g.length[a] = 8 * g.spacing[a];
    }
    return g;
}

/* x^p[0] y^p[1] z^p[2] */
typedef struct monomial {
    int power[3];
} monomial;

/* The derivative of a monomial, `times` times along `axis`, at a point. */
static double derivative(const monomial *m, const double x[3], int axis, int times)
{
    double v = 1;
    for (int a = 0; a < 3; ++a) {
        int p = m->power[a];
        for (int n = a == axis ? times : 0; n > 0; --n, --p) v *= p;
        v *= p < 0 ? 0 : pow(x[a], p);
    }
    return v;
}

static double value(const monomial *m, const double x[3])
{
    return derivative(m, x, 0, 0);
}

static void position(const trl_grid *g, int location, const int index[3], double x[3])
{
    for (int a = 0; a < 3; ++a)
        x[a] = a < g->dim ? (index[a] + (location >> a & 1 ? 0 : 0.5)) * g->spacing[a] + 0.125 : 1;
}

/* A term's first passes at an index of the result; notes what is read. */
typedef struct reading {
    const trl_grid *grid;
    int location;
    const monomial *m;
    bool read[WIDTH][WIDTH][WIDTH];
} reading;

static double passes(reading *r, const trl_term *t, int npasses, const int index[3])
{
    double sum = 0;
    if (npasses == 0) {
        double x[3];
        position(r->grid, r->location, index, x);
        r->read[index[2] + REACH][index[1] + REACH][index[0] + REACH] = true;
        return value(r->m, x);
    }
    const trl_pass *p = &t->pass[npasses - 1];
    for (int i = 0; i < p->npoints; ++i) {
        int at[3];
        for (int a = 0; a < 3; ++a) at[a] = index[a] + p->point[i].offset[a];
        sum += p->point[i].weight * passes(r, t, npasses - 1, at);
    }
    return sum * p->scale;
}

/* The operator at index 0, each input a monomial. */
static double apply(const trl_grid *g, const trl_operator *op, const monomial *inputs)
{
    static reading r;
    double sum = 0;
    for (int t = 0; t < op->nterms; ++t) {
        r.grid = g, r.location = (int)op->from[op->term[t].input], r.m = &inputs[op->term[t].input];
        double v = passes(&r, &op->term[t], op->term[t].npasses, (const int[]){0, 0, 0});
        sum += op->term[t].minus ? -v : v;
    }
    return sum;
}

static bool in_footprint(const trl_footprint *f, const int o[3])
{
    for (int p = 0; p < f->n; ++p) {
        bool inside = true;
        for (int a = 0; a < 3; ++a) inside &= f->part[p].lo[a] <= o[a] && o[a] <= f->part[p].hi[a];
        if (inside) return true;
    }
    return false;
}

/* reads holds exactly the offsets that the terms of each input read. */
static void check_reads(const trl_grid *g, const trl_operator *op)
{
    static reading r;
    static const monomial one = {{0, 0, 0}};
    for (int input = 0; input < op->ninputs; ++input) {
        memset(&r, 0, sizeof r);
        r.grid = g, r.m = &one;
        for (int t = 0; t < op->nterms; ++t)
            if (op->term[t].input == input) passes(&r, &op->term[t], op->term[t].npasses, (const int[]){0, 0, 0});
        int wrong = 0;
        for (int o = 0; o < WIDTH * WIDTH * WIDTH; ++o) {
            int offset[3] = {o % WIDTH - REACH, o / WIDTH % WIDTH - REACH, o / WIDTH / WIDTH - REACH};
            wrong += in_footprint(&op->reads[input], offset) !=
                     r.read[offset[2] + REACH][offset[1] + REACH][offset[0] + REACH];
        }
        ck_assert_msg(wrong == 0, "%s: %d offsets of input %d are wrong in its footprint", op->name, wrong, input);
    }
}

static trl_operator *make(const trl_grid *g, const trl_operator_desc *desc)
{
    trl_operator *op;
    ck_ok(trl_operator_create(test_ctx, g, desc, &op));
    ck_assert_int_eq(op->kind, desc->kind);
    ck_assert_str_eq(op->name, trl_operator_kind_name(desc->kind));
    ck_assert_int_eq(op->to, desc->to);
    if (desc->kind < TRL_DIV) ck_assert_int_eq(op->from[0], desc->from);
    return op;
}

static void destroy_checked(const trl_grid *g, trl_operator **op)
{
    check_reads(g, *op);
    trl_operator_destroy(op);
    ck_assert_ptr_null(*op);
    trl_operator_destroy(op);
}

/* Compare for all monomials of degree up to `degree` along each axis; the derivative as in derivative(). */
static void check_exact(int dim, const trl_operator_desc *desc, int degree, int axis, int times)
{
    trl_grid g = grid_of(dim);
    trl_operator *op = make(&g, desc);
    double x[3];
    position(&g, (int)desc->to, (const int[]){0, 0, 0}, x);
    int n = degree + 1;
    for (int k = 0; k < n * n * n; ++k) {
        monomial m = {{k % n, dim > 1 ? k / n % n : 0, dim > 2 ? k / n / n : 0}};
        double exact = derivative(&m, x, axis, times), got = apply(&g, op, &m);
        ck_assert_msg(fabs(got - exact) <= 1e-11 * (1 + fabs(exact)), "%s %s to %s, x^%d y^%d z^%d: %.17g, not %.17g",
                      op->name, trl_location_name(desc->from), trl_location_name(desc->to), m.power[0], m.power[1],
                      m.power[2], got, exact);
    }
    destroy_checked(&g, &op);
}

static int flipped_axis(int from, int to)
{
    int bits = from ^ to;
    return bits == 1 ? 0 : bits == 2 ? 1 : bits == 4 ? 2 : -1;
}

/* Call with every pair of locations on grids of every dimension. */
static void for_pairs(void (*visit)(int dim, trl_location from, trl_location to))
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int from = 0; from < 1 << dim; ++from)
            for (int to = 0; to < 1 << dim; ++to) visit(dim, (trl_location)from, (trl_location)to);
}

static void visit_interpolants(int dim, trl_location from, trl_location to)
{
    if (from == to) return;
    check_exact(dim, &(trl_operator_desc){.kind = TRL_INTERPOLANT, .from = from, .to = to}, 1, 0, 0);
    check_exact(dim, &(trl_operator_desc){.kind = TRL_INTERPOLANT4, .from = from, .to = to}, 3, 0, 0);
}

START_TEST(interpolants_of_every_pair_reproduce_polynomials_below_their_order)
{
    for_pairs(visit_interpolants);
}
END_TEST

static void visit_derivatives(int dim, trl_location from, trl_location to)
{
    int axis = flipped_axis((int)from, (int)to);
    if (axis < 0) return;
    check_exact(dim, &(trl_operator_desc){.kind = TRL_GRADIENT, .from = from, .to = to}, 2, axis, 1);
    check_exact(dim, &(trl_operator_desc){.kind = TRL_DIVERGENCE, .from = from, .to = to}, 2, axis, 1);
    check_exact(dim, &(trl_operator_desc){.kind = TRL_GRADIENT4, .from = from, .to = to}, 4, axis, 1);
    check_exact(dim, &(trl_operator_desc){.kind = TRL_DIVERGENCE4, .from = from, .to = to}, 4, axis, 1);
}

START_TEST(gradients_and_divergences_of_every_pair_differentiate_polynomials_up_to_their_order)
{
    for_pairs(visit_derivatives);
}
END_TEST

static void visit_central(int dim, trl_location from, trl_location to)
{
    if (from != to) return;
    for (int a = 0; a < dim; ++a) {
        trl_operator_desc d = {.kind = TRL_CENTRAL_INTERPOLANT, .from = from, .to = to, .axis = a};
        check_exact(dim, &d, 1, 0, 0);
        d.kind = TRL_CENTRAL_GRADIENT;
        check_exact(dim, &d, 2, a, 1);
        d.kind = TRL_SECOND;
        check_exact(dim, &d, 3, a, 2);
    }
}

START_TEST(operators_along_an_axis_stay_at_every_location)
{
    for_pairs(visit_central);
}
END_TEST

static void visit_extrapolants(int dim, trl_location from, trl_location to)
{
    int axis = flipped_axis((int)from, (int)to);
    trl_grid g = grid_of(dim);
    trl_operator *op;
    for (int side = 0; side < 2 && axis >= 0; ++side) {
        trl_operator_desc d = {.kind = TRL_EXTRAPOLANT, .from = from, .to = to, .side = side};
        check_exact(dim, &d, 1, 0, 0);
        op = make(&g, &d);
        for (int i = 0; i < 2; ++i) {
            /* Half the unit is one location's distance from the other's. */
            int twice = 2 * op->term[0].pass[0].point[i].offset[axis] + ((int)from >> axis & 1 ? -1 : 1);
            ck_assert_int_eq(twice, side ? 2 * i + 1 : -2 * i - 1);
        }
        trl_operator_destroy(&op);
    }
}

START_TEST(an_extrapolant_reads_the_nearest_two_points_of_its_side)
{
    for_pairs(visit_extrapolants);
}
END_TEST

static void visit_laplacian(int dim, trl_location from, trl_location to)
{
    trl_grid g = grid_of(dim);
    if (from != to) return;
    trl_operator *op = make(&g, &(trl_operator_desc){.kind = TRL_LAPLACIAN, .from = from, .to = to});
    double x[3];
    position(&g, (int)to, (const int[]){0, 0, 0}, x);
    for (int k = 0; k < 64; ++k) {
        monomial m = {{k % 4, dim > 1 ? k / 4 % 4 : 0, dim > 2 ? k / 16 : 0}};
        double exact = 0;
        for (int a = 0; a < dim; ++a) exact += derivative(&m, x, a, 2);
        ck_assert_double_eq_tol(apply(&g, op, &m), exact, 1e-11 * (1 + fabs(exact)));
    }
    ck_assert_int_eq(op->nterms, dim);
    destroy_checked(&g, &op);
}

START_TEST(the_laplacian_sums_second_derivatives_at_every_location)
{
    for_pairs(visit_laplacian);
}
END_TEST

/* The mean of the piecewise linear interpolant of x^p over a width, by the midpoint rule on pieces: exact for lines. */
static double tophat_mean(const trl_grid *g, int location, int axis, int power, int width)
{
    const int per = 2; /* pieces end at points and at the ends of the width */
    double sum = 0;
    for (int i = 0; i < per * width; ++i) {
        double s = -0.5 * width + (i + 0.5) / per, x[2];
        for (int e = 0; e < 2; ++e) {
            double p[3];
            int index[3] = {0, 0, 0};
            index[axis] = (int)floor(s) + e;
            position(g, location, index, p);
            x[e] = pow(p[axis], power);
        }
        sum += x[0] + (x[1] - x[0]) * (s - floor(s));
    }
    return sum / (per * width);
}

static double box_mean(const trl_grid *g, int location, int axis, int power, int width)
{
    double sum = 0;
    for (int i = -(width / 2); i <= width / 2; ++i) {
        double p[3];
        int index[3] = {0, 0, 0};
        index[axis] = i;
        position(g, location, index, p);
        sum += pow(p[axis], power);
    }
    return sum / width;
}

static void check_filter(int dim, const trl_operator_desc *desc)
{
    trl_grid g = grid_of(dim);
    trl_operator *op = make(&g, desc);
    for (int k = 0; k < 27; ++k) {
        monomial m = {{k % 3, dim > 1 ? k / 3 % 3 : 0, dim > 2 ? k / 9 : 0}};
        double exact = 1;
        for (int a = 0; a < dim; ++a)
            exact *=
                (desc->kind == TRL_BOX_FILTER ? box_mean : tophat_mean)(&g, (int)desc->to, a, m.power[a], desc->width);
        ck_assert_double_eq_tol(apply(&g, op, &m), exact, 1e-11 * (1 + fabs(exact)));
    }
    ck_assert_int_eq(op->term[0].npasses, dim);
    for (int a = 0; a < dim; ++a)
        for (int i = 0; i < op->term[0].pass[a].npoints; ++i)
            for (int b = 0; b < 3; ++b)
                ck_assert(b == a || op->term[0].pass[a].point[i].offset[b] == 0); /* x, then y, then z */
    destroy_checked(&g, &op);
}

static void visit_filters(int dim, trl_location from, trl_location to)
{
    if (from != to) return;
    /* A wide filter in 3-D would read 17^3 points. */
    for (int width = 1; width <= (dim == 1 ? 15 : 3); ++width) {
        trl_operator_desc d = {.kind = TRL_TOPHAT_FILTER, .from = from, .to = to, .width = width};
        check_filter(dim, &d);
        d.kind = TRL_BOX_FILTER;
        if (width % 2 == 1) check_filter(dim, &d);
    }
}

START_TEST(filters_are_means_of_points_and_of_the_linear_interpolant)
{
    for_pairs(visit_filters);
}
END_TEST

START_TEST(narrow_top_hats_have_the_known_weights)
{
    static const double narrow[] = {0.125, 0.75, 0.125}, wide[] = {0.25, 0.5, 0.25};
    trl_grid g = grid_of(1);
    for (int width = 1; width <= 2; ++width) {
        trl_operator *op = make(&g, &(trl_operator_desc){.kind = TRL_TOPHAT_FILTER, .width = width});
        const trl_pass *p = &op->term[0].pass[0];
        ck_assert_int_eq(p->npoints, 3);
        for (int i = 0; i < 3; ++i)
            ck_assert_double_eq(p->point[i].weight * p->scale, width == 1 ? narrow[i] : wide[i]);
        trl_operator_destroy(&op);
    }
}
END_TEST

static void visit_vectors(int dim, trl_location from, trl_location to)
{
    trl_grid g = grid_of(dim);
    double x[3];
    if (from != to) return;
    position(&g, (int)to, (const int[]){0, 0, 0}, x);
    const monomial m[3] = {{{2, dim > 1, 0}}, {{1, 2, dim > 2}}, {{1, 1, 2}}};
    trl_operator *op;
    double exact = 0;
    for (int a = 0; a < dim; ++a) exact += derivative(&m[a], x, a, 1);
    for (int wide = 0; wide < 2; ++wide) {
        op = make(&g, &(trl_operator_desc){.kind = wide ? TRL_DIV4 : TRL_DIV, .to = to});
        ck_assert_int_eq(op->ninputs, dim);
        for (int a = 0; a < dim; ++a) {
            ck_assert_int_eq(op->from[a], to ^ 1 << a);
            ck_assert_int_eq(op->term[a].pass[0].npoints, wide ? 4 : 2);
        }
        ck_assert_double_eq_tol(apply(&g, op, m), exact, 1e-12);
        destroy_checked(&g, &op);
    }
    for (int c = dim == 2 ? 2 : 0; c < 3 && dim > 1; ++c) {
        int a = (c + 1) % 3, b = (c + 2) % 3;
        op = make(&g, &(trl_operator_desc){.kind = TRL_CURL, .to = to, .axis = c});
        ck_assert_int_eq(op->ninputs, 2);
        ck_assert_int_eq(op->from[0], to ^ 1 << b);
        ck_assert_int_eq(op->from[1], to ^ 1 << a);
        ck_assert_double_eq_tol(apply(&g, op, (const monomial[]){m[a], m[b]}),
                                derivative(&m[b], x, a, 1) - derivative(&m[a], x, b, 1), 1e-12);
        destroy_checked(&g, &op);
    }
}

START_TEST(divergence_and_curl_of_vectors_lead_to_every_location)
{
    for_pairs(visit_vectors);
}
END_TEST

static void visit_refusals(int dim, trl_location from, trl_location to)
{
    trl_grid g = grid_of(dim);
    for (int kind = 0; kind < TRL_OPERATOR_KINDS; ++kind) {
        trl_operator_desc d = {.kind = (trl_operator_kind)kind, .from = from, .to = to, .width = 3};
        bool flip = kind == TRL_GRADIENT || kind == TRL_DIVERGENCE || kind == TRL_GRADIENT4 ||
                    kind == TRL_DIVERGENCE4 || kind == TRL_EXTRAPOLANT;
        bool flips = kind == TRL_INTERPOLANT || kind == TRL_INTERPOLANT4;
        bool legal = flip ? flipped_axis((int)from, (int)to) >= 0 : flips ? from != to : from == to;
        trl_operator *op = (trl_operator *)&g;
        char pair[128];
        if (legal || kind >= TRL_DIV) continue;
        snprintf(pair, sizeof pair, "no %s leads from %s to %s on a %d-D grid", trl_operator_kind_name(d.kind),
                 trl_location_name(from), trl_location_name(to), dim);
        test_clear();
        ck_fails(trl_operator_create(test_ctx, &g, &d, &op), TRL_ERR_USAGE, pair);
        ck_assert_ptr_null(op);
    }
}

START_TEST(every_illegal_pair_is_refused_by_name)
{
    for_pairs(visit_refusals);
}
END_TEST

START_TEST(a_refused_pair_is_told_what_would_be_possible)
{
    trl_grid g = grid_of(2);
    trl_operator *op;
    ck_fails(trl_operator_create(test_ctx, &g, &(trl_operator_desc){.kind = TRL_GRADIENT, .to = TRL_ZEDGE}, &op),
             TRL_ERR_USAGE,
             "no gradient leads from cell to zedge on a 2-D grid; from cell it can lead to: xface, yface");
    test_clear();
    ck_fails(trl_operator_create(test_ctx, &g, &(trl_operator_desc){.kind = TRL_INTERPOLANT, .to = TRL_ZFACE}, &op),
             TRL_ERR_USAGE,
             "no interpolant leads from cell to zface on a 2-D grid; from cell it can lead to: xface, yface, zedge");
    test_clear();
    ck_fails(trl_operator_create(test_ctx, &g, &(trl_operator_desc){.kind = TRL_SECOND, .to = TRL_XFACE}, &op),
             TRL_ERR_USAGE,
             "no second derivative leads from cell to xface on a 2-D grid; from cell it can lead to: cell");
}
END_TEST

START_TEST(wrong_axes_sides_and_widths_are_refused)
{
    static const struct {
        int dim;
        trl_operator_desc desc;
        const char *message;
    } cases[] = {
        {2, {.kind = TRL_SECOND, .axis = 2}, "second derivative: axis 2 on a 2-D grid; 0 to 1 are possible"},
        {1, {.kind = TRL_CENTRAL_GRADIENT, .axis = -1}, "central gradient: axis -1 on a 1-D grid"},
        {1, {.kind = TRL_CURL, .axis = 2}, "curl component: component 2 on a 1-D grid; a curl needs two axes"},
        {2, {.kind = TRL_CURL, .axis = 0}, "only component 2 (z) is possible"},
        {3, {.kind = TRL_CURL, .axis = 3}, "curl component: axis 3 on a 3-D grid; 0 to 2 are possible"},
        {1, {.kind = TRL_EXTRAPOLANT, .to = TRL_XFACE, .side = 2}, "extrapolant: side 2; 0 (minus) and 1 (plus)"},
        {1, {.kind = TRL_BOX_FILTER, .width = 4}, "box filter: a width of 4 cells; odd numbers from 1 to 15"},
        {1, {.kind = TRL_BOX_FILTER, .width = 17}, "box filter: a width of 17 cells"},
        {1, {.kind = TRL_TOPHAT_FILTER}, "top-hat filter: a width of 0 cells; whole numbers from 1 to 15"},
        {1, {.kind = TRL_TOPHAT_FILTER, .width = 16}, "top-hat filter: a width of 16 cells"},
        {1, {.kind = TRL_CUSTOM}, "does not exist"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        trl_grid g = grid_of(cases[i].dim);
        trl_operator *op;
        test_clear();
        ck_fails(trl_operator_create(test_ctx, &g, &cases[i].desc, &op), TRL_ERR_USAGE, cases[i].message);
    }
}
END_TEST

START_TEST(a_custom_stencil_is_what_its_points_say)
{
    trl_grid g = grid_of(2);
    char name[] = "wide";
    trl_stencil_point points[] = {{{-8, 0, 0}, 0.5}, {{0, 8, 0}, -0.25}, {{1, -1, 0}, 0.75}};
    trl_operator *op;
    ck_ok(trl_operator_create_custom(test_ctx, &g, name, TRL_XFACE, TRL_CELL, 3, points, &op));
    name[0] = 'x';
    points[0].weight = 0;
    ck_assert_str_eq(op->name, "wide");
    ck_assert_int_eq(op->kind, TRL_CUSTOM);
    ck_assert_int_eq(op->from[0], TRL_XFACE);
    ck_assert_int_eq(op->to, TRL_CELL);
    double exact = 0, x[3];
    for (int i = 0; i < 3; ++i) {
        position(&g, TRL_XFACE, (const int[]){points[i].offset[0], points[i].offset[1], 0}, x);
        exact += (double[]){0.5, -0.25, 0.75}[i] * x[0] * x[1] * x[1];
    }
    ck_assert_double_eq(apply(&g, op, &(monomial){{1, 2, 0}}), exact);
    destroy_checked(&g, &op);
}
END_TEST

START_TEST(wrong_points_of_custom_stencils_are_refused)
{
    trl_grid g = grid_of(2);
    trl_operator *op;
    static const struct {
        int n;
        trl_stencil_point point;
        const char *message;
    } cases[] = {
        {0, {{0, 0, 0}, 1}, "stencil 'mine' has no points"},
        {1, {{9, 0, 0}, 1}, "stencil 'mine': point 0 has offset 9 along x; -8 to 8 are possible"},
        {1, {{0, -9, 0}, 1}, "point 0 has offset -9 along y"},
        {1, {{0, 0, 1}, 1}, "point 0 is off along z, an axis that a 2-D grid lacks"},
        {1, {{0, 0, 0}, NAN}, "the weight of point 0 is not finite"},
        {1, {{0, 0, 0}, INFINITY}, "the weight of point 0 is not finite"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        test_clear();
        ck_fails(trl_operator_create_custom(test_ctx, &g, "mine", TRL_CELL, TRL_CELL, cases[i].n, &cases[i].point, &op),
                 TRL_ERR_USAGE, cases[i].message);
        ck_assert_ptr_null(op);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, interpolants_of_every_pair_reproduce_polynomials_below_their_order);
    tcase_add_test(tc, gradients_and_divergences_of_every_pair_differentiate_polynomials_up_to_their_order);
    tcase_add_test(tc, operators_along_an_axis_stay_at_every_location);
    tcase_add_test(tc, an_extrapolant_reads_the_nearest_two_points_of_its_side);
    tcase_add_test(tc, the_laplacian_sums_second_derivatives_at_every_location);
    tcase_add_test(tc, filters_are_means_of_points_and_of_the_linear_interpolant);
    tcase_add_test(tc, narrow_top_hats_have_the_known_weights);
    tcase_add_test(tc, divergence_and_curl_of_vectors_lead_to_every_location);
    tcase_add_test(tc, every_illegal_pair_is_refused_by_name);
    tcase_add_test(tc, a_refused_pair_is_told_what_would_be_possible);
    tcase_add_test(tc, wrong_axes_sides_and_widths_are_refused);
    tcase_add_test(tc, a_custom_stencil_is_what_its_points_say);
    tcase_add_test(tc, wrong_points_of_custom_stencils_are_refused);
}
TRL_TEST_MAIN("operators", add_tests)
