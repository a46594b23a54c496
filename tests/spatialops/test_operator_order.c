/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Observed order of every operator, from every location to every other, along every axis, with exact ghosts: periodic
 * ones and the values of a smooth function beyond the sides. Prints the operators' table of docs/verification.md and
 * finds it there. */
// ctest: sanitize=none timeout=300
#include "doc_table.h"
#include "operator_fixture.h"

enum { GRIDS = 3, ROWS_MAX = 64 };

/* ---- the function: a product of waves, one per axis ---- */

static bool wraps; /* as long as the domain, along every axis */

static double wave(const trl_grid *grid, int axis, int derivative, double x)
{
    static const double frequency[3] = {2.3, 1.9, 2.9}, phase[3] = {0.4, 1.1, 2.1}, mean[3] = {1.3, -0.4, 0.7};
    double w = wraps ? 2 * acos(-1) / grid->length[axis] : frequency[axis];
    return (derivative ? 0 : mean[axis]) + pow(w, derivative) * sin(w * x + phase[axis] + derivative * acos(0));
}

/* A sum of products of derivatives of the waves. */
typedef struct waves {
    int nterms;
    struct {
        double factor;
        int derivative[3];
    } term[3];
} waves;

static void add_waves(waves *sum, double factor, int axis, int derivative)
{
    sum->term[sum->nterms].factor = factor;
    for (int a = 0; a < 3; ++a) sum->term[sum->nterms].derivative[a] = a == axis ? derivative : 0;
    ++sum->nterms;
}

/* Component c of a vector is c + 1 times the function. */
static waves exact_result(int dim, const trl_operator *op, const trl_operator_desc *desc)
{
    waves sum = {0};
    switch (desc->kind) {
    case TRL_GRADIENT:
    case TRL_DIVERGENCE:
    case TRL_GRADIENT4:
    case TRL_DIVERGENCE4:
        add_waves(&sum, 1, flipped_axis(desc->from, desc->to), 1);
        break;
    case TRL_CENTRAL_GRADIENT:
        add_waves(&sum, 1, desc->axis, 1);
        break;
    case TRL_SECOND:
        add_waves(&sum, 1, desc->axis, 2);
        break;
    case TRL_LAPLACIAN:
        for (int a = 0; a < dim; ++a) add_waves(&sum, 1, a, 2);
        break;
    case TRL_DIV:
        for (int a = 0; a < dim; ++a) add_waves(&sum, a + 1, a, 1);
        break;
    case TRL_CURL:
        for (int i = 0; i < 2; ++i) {
            int c = component_of_input(op, desc, i), along = flipped_axis(op->from[i], op->to);
            add_waves(&sum, (c + 1) * ((along + 1) % 3 == c ? 1 : -1), along, 1);
        }
        break;
    default:
        add_waves(&sum, 1, 0, 0);
    }
    return sum;
}

/* Visit a box of a field: give its points the sum of waves, or find the largest difference from it. */
static double visit(trl_field *field, int p, const trl_box *box, const waves *sum, bool fill)
{
    static double table[3][3][256]; /* term, axis, point of the box */
    const trl_layout *layout = trl_field_layout(field);
    const trl_patch *patch = local_patch(layout, p);
    trl_array array = array_of(field, p);
    double largest = 0;
    for (int t = 0; t < sum->nterms; ++t)
        for (int a = 0; a < layout->grid.dim; ++a)
            for (trl_lidx i = box->lo[a]; i < box->hi[a]; ++i) {
                double bit = trl_field_location(field) >> a & 1;
                double x = layout->grid.origin[a] +
                           ((double)(patch->first[a] + i) + 0.5 * (1 - bit)) * layout->grid.spacing[a];
                ck_assert_int_lt(i - box->lo[a], 256);
                table[t][a][i - box->lo[a]] = wave(&layout->grid, a, sum->term[t].derivative[a], x);
            }
    FOR_POINTS(box, at)
    {
        double value = 0;
        for (int t = 0; t < sum->nterms; ++t) {
            double product = sum->term[t].factor;
            for (int a = 0; a < layout->grid.dim; ++a) product *= table[t][a][at[a] - box->lo[a]];
            value += product;
        }
        double *here = value_at(&array, at);
        if (fill) *here = value;
        largest = fmax(largest, isfinite(*here) ? fabs(*here - value) : INFINITY);
    }
    return largest;
}

/* The function, times a factor, in one periodic domain's owned points with exchanged ghosts, or in all points of
 * another. */
static trl_field *function_field(const domain *d, const trl_operator *op, int input, double factor)
{
    trl_field *field = new_input(d, "f", op, input, 1);
    waves function = {0};
    add_waves(&function, factor, 0, 0);
    for (int p = 0; p < d->layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        const trl_box *box = wraps ? &array.owned : &array.held;
        visit(field, p, box, &function, true);
        ck_ok(trl_field_set_valid(field, p, box));
    }
    if (wraps) ck_ok(trl_field_exchange(field));
    return field;
}

static double largest_error(const domain *d, const trl_operator_desc *desc)
{
    const trl_layout *layout = d->layout;
    trl_operator *op = new_operator(d, desc);
    trl_field *in[3], *out = new_field(d, "result", desc->to, 1);
    waves exact = exact_result(layout->grid.dim, op, desc);
    double largest = 0;
    for (int i = 0; i < op->ninputs; ++i)
        in[i] = function_field(d, op, i, op->ninputs > 1 ? component_of_input(op, desc, i) + 1 : 1);
    ck_ok(trl_operator_apply(op, NULL, in, out));
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_box valid = trl_field_valid(out, p);
        largest = fmax(largest, visit(out, p, &valid, &exact, false));
    }
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_field_destroy(&out);
    trl_operator_destroy(&op);
    return largest;
}

/* ---- the table ---- */

/* What all operators of one kind and width have in common. */
typedef struct row {
    trl_operator_kind kind;
    int width, cases[3];
    double error[GRIDS], least, most; /* largest errors; orders of the last refinement */
} row;

static row rows[ROWS_MAX];
static int nrows;

static row *row_of(const trl_operator_desc *desc)
{
    for (int r = 0; r < nrows; ++r)
        if (rows[r].kind == desc->kind && rows[r].width == desc->width) return &rows[r];
    ck_assert_int_lt(nrows, ROWS_MAX);
    rows[nrows] = (row){.kind = desc->kind, .width = desc->width, .least = INFINITY, .most = -INFINITY};
    return &rows[nrows++];
}

static int design_order(trl_operator_kind kind)
{
    return kind == TRL_INTERPOLANT4 || kind == TRL_GRADIENT4 || kind == TRL_DIVERGENCE4 ? 4 : 2;
}

static void check_order(const domain grids[GRIDS], const trl_operator_desc *desc)
{
    int dim = grids[0].layout->grid.dim, design = design_order(desc->kind);
    row *r = row_of(desc);
    double e[GRIDS];
    for (int g = 0; g < GRIDS; ++g) {
        e[g] = largest_error(&grids[g], desc);
        r->error[g] = fmax(r->error[g], e[g]);
    }
    double order = log2(e[1] / e[2]);
    ck_assert_msg(fabs(order - design) < 0.1, "%s%s: errors %.3e, %.3e, %.3e, order %.3f, not %d",
                  wraps ? "periodic " : "", operator_text(dim, desc), e[0], e[1], e[2], order, design);
    r->least = fmin(r->least, order);
    r->most = fmax(r->most, order);
    if (wraps) ++r->cases[dim - 1];
}

static void check_dimension(int dim)
{
    for (int wrap = 0; wrap < 2; ++wrap) {
        domain grids[GRIDS];
        wraps = wrap;
        for (int g = 0; g < GRIDS; ++g)
            grids[g] = open_domain(dim, (const int[3]){14 << g, 10 << g, 12 << g}, wrap ? 7 : 0, NULL);
        const operator_list *list = legal_operators(dim);
        for (int i = 0; i < list->n; ++i) check_order(grids, &list->desc[i]);
        for (int g = 0; g < GRIDS; ++g) close_domain(&grids[g]);
    }
}

START_TEST(every_operator_has_its_design_order_at_every_location_along_every_axis)
{
    const char *page = read_page("verification.md");
    nrows = 0;
    for (int dim = 1; dim <= 3; ++dim) check_dimension(dim);
    bool same =
        print_line(page, "| operator | order | cases in 1-D | 2-D | 3-D | largest error | h/2 | h/4 | observed |\n"
                         "|---|---|---|---|---|---|---|---|---|\n");
    for (const row *r = rows; r < rows + nrows; ++r) {
        char width[24] = "";
        if (r->width) snprintf(width, sizeof width, ", width %d", r->width);
        same &= print_line(page, "| %s%s | %d | %d | %d | %d | %.1e | %.1e | %.1e | %.2f to %.2f |\n",
                           trl_operator_kind_name(r->kind), width, design_order(r->kind), r->cases[0], r->cases[1],
                           r->cases[2], r->error[0], r->error[1], r->error[2], r->least, r->most);
    }
    ck_assert_msg(same, "docs/verification.md lacks lines of this table");
}
END_TEST

/* ---- filters ---- */

/* The mean and the slopes of a field survive a filter. */
static void check_moments(int dim, const trl_operator_desc *desc)
{
    domain d = open_domain(dim, (const int[3]){5, 3, 4}, 0, NULL);
    trl_operator *op = new_operator(&d, desc);
    trl_field *in = new_input(&d, "f", op, 0, 0), *out = new_field(&d, "filtered", desc->to, 0);
    static const double slope[3] = {0.3, -0.7, 1.1};
    trl_array from = array_of(in, 0), to = array_of(out, 0);
    for (int linear = 0; linear < 2; ++linear) {
        FOR_POINTS(&from.held, at)
        {
            *value_at(&from, at) = 1.3;
            for (int a = 0; linear && a < dim; ++a) *value_at(&from, at) += slope[a] * at[a];
        }
        ck_ok(trl_field_set_valid(in, 0, &from.held));
        ck_ok(trl_operator_apply(op, NULL, &in, out));
        FOR_POINTS(&to.owned, at)
        ck_assert_msg(fabs(*value_at(&to, at) - *value_at(&from, at)) < 1e-13, "%s changes %s fields by %.2e",
                      operator_text(dim, desc), linear ? "linear" : "constant",
                      *value_at(&to, at) - *value_at(&from, at));
    }
    trl_field_destroy(&in);
    trl_field_destroy(&out);
    trl_operator_destroy(&op);
    close_domain(&d);
}

START_TEST(filters_of_every_width_keep_constant_and_linear_fields)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int width = 1; width <= 15; ++width) {
            trl_location at = trl_location_on((trl_location)(width % 8), dim);
            check_moments(dim, &(trl_operator_desc){TRL_TOPHAT_FILTER, at, at, 0, 0, width});
            if (width % 2) check_moments(dim, &(trl_operator_desc){TRL_BOX_FILTER, at, at, 0, 0, width});
        }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_operator_has_its_design_order_at_every_location_along_every_axis);
    tcase_add_test(tc, filters_of_every_width_keep_constant_and_linear_fields);
}

TRL_TEST_MAIN("operator order", add_tests)
