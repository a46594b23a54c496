/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What operators read: exactly the points that they say, never one that is not valid, and nothing along axes that the
 * grid lacks. */
// ctest: np=1,4 timeout=300 sanitize=1
#include "operator_fixture.h"

enum { CUSTOM = 24, POINTS = 8, MARGIN = 1 };

static uint64_t random_state;

/* In 0 .. n - 1. */
static int random_below(int n)
{
    random_state = trl_hash_mix(random_state, 1);
    return (int)(random_state % (uint64_t)n);
}

/* A stencil of up to POINTS points, none twice, from any location to any other. */
static trl_operator *random_operator(const domain *d)
{
    trl_stencil_point points[POINTS];
    trl_operator *op;
    int dim = d->layout->grid.dim, n = 1 + random_below(POINTS), used = 0;
    while (used < n) {
        trl_stencil_point *next = &points[used];
        *next = (trl_stencil_point){.weight = (random_below(2) ? 1 : -1) * (0.3 + random_below(100))};
        bool again = false;
        for (int a = 0; a < dim; ++a) next->offset[a] = (int8_t)(random_below(7) - 3);
        for (int i = 0; i < used; ++i) again = again || memcmp(points[i].offset, next->offset, 3) == 0;
        if (again)
            --n;
        else
            ++used;
        if (n == 0) return random_operator(d);
    }
    ck_ok(trl_operator_create_custom(test_ctx, &d->layout->grid, "mine", (trl_location)random_below(1 << dim),
                                     (trl_location)random_below(1 << dim), used, points, &op));
    return op;
}

/* Call check for every operator and for custom ones. */
static void on_all_operators(const domain *d, void (*check)(const domain *, const trl_operator *, const char *))
{
    int dim = d->layout->grid.dim;
    const operator_list *list = legal_operators(dim);
    for (int i = 0; i < list->n; ++i) {
        trl_operator *op = new_operator(d, &list->desc[i]);
        check(d, op, operator_text(dim, &list->desc[i]));
        trl_operator_destroy(&op);
    }
    random_state = 1;
    for (int i = 0; i < CUSTOM; ++i) {
        trl_operator *op = random_operator(d);
        check(d, op, op->name);
        trl_operator_destroy(&op);
    }
}

static bool is_read(const trl_footprint *reads, const trl_lidx offset[3])
{
    for (int part = 0; part < reads->n; ++part) {
        bool inside = true;
        for (int a = 0; a < 3; ++a)
            inside = inside && reads->part[part].lo[a] <= offset[a] && offset[a] <= reads->part[part].hi[a];
        if (inside) return true;
    }
    return false;
}

/* ---- footprints ---- */

/* An array of its own memory around the points that an operator reads for one point, and MARGIN beyond, of noise. */
static trl_array array_around(const trl_footprint *reads, int dim, int seed)
{
    trl_offsets hull = trl_footprint_hull(reads);
    trl_array array = {.type = TRL_F64, .owned = {{0, 0, 0}, {1, 1, 1}}, .held = {{0, 0, 0}, {1, 1, 1}}};
    ptrdiff_t stride = 1, origin = 0;
    for (int a = 0; a < dim; ++a) {
        array.held.lo[a] = (hull.lo[a] < 0 ? hull.lo[a] : 0) - MARGIN;
        array.held.hi[a] = (hull.hi[a] > 0 ? hull.hi[a] : 0) + MARGIN + 1;
        array.stride[a] = stride;
        origin -= stride * array.held.lo[a];
        stride *= array.held.hi[a] - array.held.lo[a];
    }
    double *memory = malloc((size_t)stride * sizeof *memory);
    ck_assert_ptr_nonnull(memory);
    array.at = memory + origin;
    FOR_POINTS(&array.held, at)
    *value_at(&array, at) = noise(seed, (trl_gidx[3]){at[0], at[1], at[2]});
    return array;
}

static void free_array(trl_array *array)
{
    free(value_at(array, array->held.lo));
}

static double result_at_origin(const trl_operator *op, const trl_array *in)
{
    const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    double result = NAN;
    const trl_array out = {.at = &result, .stride = {1, 0, 0}, .owned = one, .held = one, .type = TRL_F64};
    trl_operator_apply_box(op, in, &out, &one);
    return result;
}

static void check_footprint(const domain *d, const trl_operator *op, const char *text)
{
    trl_array in[3];
    for (int i = 0; i < op->ninputs; ++i) in[i] = array_around(&op->reads[i], d->layout->grid.dim, i);
    double before = result_at_origin(op, in);
    ck_assert(isfinite(before));
    for (int i = 0; i < op->ninputs; ++i) FOR_POINTS(&in[i].held, at)
        {
            double *value = value_at(&in[i], at), kept = *value;
            bool reads = is_read(&op->reads[i], at);
            *value = reads ? kept + 1 : NAN;
            double after = result_at_origin(op, in);
            if (reads != (after != before)) /* an assertion for each point would take longer than all else */
                ck_abort_msg("%s: input %d at (%d, %d, %d) is %sread, but says otherwise", text, i, at[0], at[1], at[2],
                             reads ? "not " : "");
            *value = kept;
        }
    for (int i = 0; i < op->ninputs; ++i) free_array(&in[i]);
}

START_TEST(operators_read_exactly_the_points_that_they_say)
{
    for (int dim = 1; dim <= 3; ++dim) {
        domain d = open_domain(dim, (const int[3]){4, 4, 4}, 0, NULL);
        on_all_operators(&d, check_footprint);
        close_domain(&d);
    }
}
END_TEST

/* ---- valid points ---- */

static void poison(trl_array *a)
{
    const uint64_t signalling = UINT64_C(0x7ff4dead0000beef);
    FOR_POINTS(&a->held, at) memcpy(value_at(a, at), &signalling, sizeof signalling);
}

/* Noise in so many layers around the owned points, which are valid, and signalling NaN beyond. */
static void set_layers(trl_field *field, const trl_lidx lo[3], const trl_lidx hi[3])
{
    const trl_layout *layout = trl_field_layout(field);
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array a = array_of(field, p);
        trl_box valid = a.owned;
        poison(&a);
        for (int axis = 0; axis < layout->grid.dim; ++axis) {
            valid.lo[axis] -= lo[axis];
            valid.hi[axis] += hi[axis];
        }
        FOR_POINTS(&valid, at)
        {
            trl_gidx global[3];
            global_point(field, p, at, global);
            *value_at(&a, at) = noise(1, global);
        }
        ck_ok(trl_field_set_valid(field, p, &valid));
    }
}

/* Layers that a footprint needs beyond the points it is read at. A footprint apart from its point needs none on the
 * near side, where the owned points of another location may reach further or less far. */
static void layers_needed(const trl_footprint *reads, trl_location from, trl_location to, const domain *d, int p,
                          trl_lidx lo[3], trl_lidx hi[3])
{
    trl_offsets hull = trl_footprint_hull(reads);
    trl_box in = trl_patch_owned(d->layout, local_patch(d->layout, p), from),
            out = trl_patch_owned(d->layout, local_patch(d->layout, p), to);
    for (int a = 0; a < 3; ++a) {
        lo[a] = in.lo[a] - (out.lo[a] + hull.lo[a]);
        hi[a] = out.hi[a] + hull.hi[a] - in.hi[a];
        if (lo[a] < 0) lo[a] = 0;
        if (hi[a] < 0) hi[a] = 0;
    }
}

/* The most that can be computed: all held points for which each input's valid box holds what is read. */
static trl_box computable(const trl_operator *op, trl_field *const *in, int p, const trl_array *out)
{
    trl_box box = out->held;
    for (int i = 0; i < op->ninputs; ++i) {
        trl_offsets hull = trl_footprint_hull(&op->reads[i]);
        trl_box valid = trl_field_valid(in[i], p);
        for (int a = 0; a < 3; ++a) {
            if (valid.lo[a] - hull.lo[a] > box.lo[a]) box.lo[a] = valid.lo[a] - hull.lo[a];
            if (valid.hi[a] - hull.hi[a] < box.hi[a]) box.hi[a] = valid.hi[a] - hull.hi[a];
        }
    }
    return box;
}

static bool in_box(const trl_box *box, const trl_lidx at[3])
{
    bool in = true;
    for (int a = 0; a < 3; ++a) in = in && at[a] >= box->lo[a] && at[a] < box->hi[a];
    return in;
}

/* Valid points are numbers, and all are that can be; the others were not touched. */
static void check_result(const trl_operator *op, trl_field *const *in, trl_field *out, const char *text)
{
    for (int p = 0; p < trl_field_layout(out)->nlocal; ++p) {
        trl_array a = array_of(out, p);
        trl_box valid = trl_field_valid(out, p), expected = computable(op, in, p, &a);
        ck_assert_msg(memcmp(&valid, &expected, sizeof valid) == 0, "%s: computes other points than it could", text);
        FOR_POINTS(&a.held, at)
        if (!isnan(*value_at(&a, at)) != in_box(&valid, at))
            ck_abort_msg("%s: (%d, %d, %d) is %g", text, at[0], at[1], at[2], *value_at(&a, at));
    }
}

/* With the layers needed and up to two more, at random. */
static void check_valid(const domain *d, const trl_operator *op, const char *text)
{
    trl_field *in[3], *out = new_field(d, "result", op->to, 2);
    for (int i = 0; i < op->ninputs; ++i) in[i] = new_input(d, "input", op, i, 3);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < op->ninputs; ++i) {
            trl_lidx most[2][3] = {{0}, {0}}, lo[3], hi[3];
            for (int p = 0; p < d->layout->nlocal; ++p) {
                layers_needed(&op->reads[i], op->from[i], op->to, d, p, lo, hi);
                for (int a = 0; a < 3; ++a) {
                    if (lo[a] > most[0][a]) most[0][a] = lo[a];
                    if (hi[a] > most[1][a]) most[1][a] = hi[a];
                }
            }
            for (int a = 0; round && a < 3; ++a) {
                most[0][a] += random_below(3);
                most[1][a] += random_below(3);
            }
            set_layers(in[i], most[0], most[1]);
        }
        for (int p = 0; p < d->layout->nlocal; ++p) {
            trl_array a = array_of(out, p);
            poison(&a);
        }
        ck_ok(trl_operator_apply(op, NULL, in, out));
        check_result(op, in, out, text);
    }
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_field_destroy(&out);
}

START_TEST(results_are_valid_exactly_where_all_that_they_read_is)
{
    for (int dim = 1; dim <= 3; ++dim) {
        domain d = open_domain(dim, (const int[3]){5, 4, 3}, dim == 2 ? 2 : 0, (const int[3]){4, 1, 1});
        on_all_operators(&d, check_valid);
        close_domain(&d);
    }
}
END_TEST

/* Take one layer that the operator needs, on every side in turn, from an input that has all. */
static void check_refusal(const domain *d, const trl_operator *op, const char *text)
{
    trl_field *in[3], *out = new_field(d, "result", op->to, 0);
    char names[3][24];
    for (int i = 0; i < op->ninputs; ++i) {
        snprintf(names[i], sizeof names[i], "input%d", i);
        in[i] = new_input(d, names[i], op, i, 1);
    }
    for (int i = 0; i < op->ninputs; ++i)
        for (int side = 0; side < 6; ++side) {
            trl_lidx needed[2][3];
            int a = side / 2;
            for (int j = 0; j < op->ninputs; ++j) fill_noise(in[j], j);
            if (a >= d->layout->grid.dim) continue;
            layers_needed(&op->reads[i], op->from[i], op->to, d, 0, needed[0], needed[1]);
            if (needed[side % 2][a] == 0) continue;
            trl_box valid = trl_field_valid(in[i], 0), owned = array_of(in[i], 0).owned;
            if (side % 2)
                valid.hi[a] = owned.hi[a] + needed[1][a] - 1;
            else
                valid.lo[a] = owned.lo[a] - needed[0][a] + 1;
            ck_ok(trl_field_set_valid(in[i], 0, &valid));
            trl_err err = trl_operator_apply(op, NULL, in, out);
            ck_assert_msg(err == TRL_ERR_USAGE && strstr(test_messages(), names[i]), "%s, side %d of %s: %s: %s", text,
                          side, names[i], trl_err_name(err), test_messages());
            test_clear();
        }
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_field_destroy(&out);
}

START_TEST(one_layer_less_than_needed_is_refused_and_the_field_named)
{
    for (int dim = 1; dim <= 3; ++dim) {
        domain d = open_domain(dim, (const int[3]){5, 4, 3}, 0, (const int[3]){4, 1, 1});
        on_all_operators(&d, check_refusal);
        close_domain(&d);
    }
}
END_TEST

START_TEST(a_result_makes_other_ghosts_of_its_field_stale)
{
    domain d = open_domain(2, (const int[3]){5, 4, 1}, 0, (const int[3]){4, 1, 1});
    trl_operator_desc desc = {.kind = TRL_GRADIENT, .from = TRL_CELL, .to = TRL_XFACE},
                      back = {.kind = TRL_DIVERGENCE, .from = TRL_XFACE, .to = TRL_CELL};
    trl_operator *gradient = new_operator(&d, &desc), *divergence = new_operator(&d, &back);
    trl_field *f = new_input(&d, "f", gradient, 0, 0), *q = new_field(&d, "q", TRL_XFACE, 2),
              *g = new_field(&d, "g", TRL_CELL, 2);
    fill_noise(f, 1);
    fill_noise(q, 2);
    ck_ok(trl_operator_apply(gradient, NULL, &f, q));
    ck_ok(trl_operator_apply(divergence, NULL, &q, g));
    for (int p = 0; p < d.layout->nlocal; ++p) {
        trl_box valid = trl_field_valid(q, p), owned = trl_patch_owned(d.layout, local_patch(d.layout, p), TRL_XFACE);
        trl_array a = array_of(q, p);
        ck_assert_int_gt(trl_box_points(&a.held), trl_box_points(&valid));
        ck_assert_int_le(valid.lo[1] - owned.lo[1], 0);
        trl_box one_more = valid;
        ++one_more.hi[1];
        ck_fails(trl_field_require(q, p, &one_more), TRL_ERR_USAGE, "q");
        test_clear();
    }
    trl_field_invalidate_ghosts(f);
    ck_fails(trl_operator_apply(gradient, NULL, &f, q), TRL_ERR_USAGE, "field 'f ");
    trl_field_destroy(&f);
    trl_field_destroy(&q);
    trl_field_destroy(&g);
    trl_operator_destroy(&gradient);
    trl_operator_destroy(&divergence);
    close_domain(&d);
}
END_TEST

/* ---- absent axes ---- */

START_TEST(fields_hold_one_plane_along_axes_that_the_grid_lacks)
{
    for (int dim = 1; dim <= 3; ++dim) {
        domain d = open_domain(dim, (const int[3]){8, 6, 5}, 0, (const int[3]){4, 1, 1});
        for (int at = 0; at < 8; ++at) {
            trl_field *field = new_field(&d, "f", trl_location_on((trl_location)at, dim), 3);
            for (int p = 0; p < d.layout->nlocal; ++p) {
                trl_array a = array_of(field, p);
                int64_t points = 1;
                ck_assert_int_eq(a.stride[0], 1);
                for (int axis = 0; axis < 3; ++axis) {
                    trl_lidx n = a.held.hi[axis] - a.held.lo[axis], owned = a.owned.hi[axis] - a.owned.lo[axis];
                    if (axis >= dim) {
                        ck_assert_int_eq(a.stride[axis], 0);
                        ck_assert(a.held.lo[axis] == 0 && a.held.hi[axis] == 1);
                    } else {
                        ck_assert_int_eq(n, owned + 6);
                        ck_assert(axis == 0 ||
                                  a.stride[axis] >= a.stride[axis - 1] * (a.held.hi[axis - 1] - a.held.lo[axis - 1]));
                    }
                    points *= n;
                }
                ck_assert_int_eq(points, trl_box_points(&a.held));
            }
            trl_field_destroy(&field);
        }
        close_domain(&d);
    }
}
END_TEST

static void check_flat_reads(const domain *d, const trl_operator *op, const char *text)
{
    for (int i = 0; i < op->ninputs; ++i) {
        trl_offsets hull = trl_footprint_hull(&op->reads[i]);
        for (int a = d->layout->grid.dim; a < 3; ++a)
            ck_assert_msg(hull.lo[a] == 0 && hull.hi[a] == 0, "%s reads along axis %d", text, a);
    }
}

START_TEST(operators_read_nothing_along_axes_that_the_grid_lacks)
{
    for (int dim = 1; dim <= 2; ++dim) {
        domain d = open_domain(dim, (const int[3]){8, 6, 1}, 0, (const int[3]){4, 1, 1});
        on_all_operators(&d, check_flat_reads);
        close_domain(&d);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, operators_read_exactly_the_points_that_they_say);
    tcase_add_test(tc, results_are_valid_exactly_where_all_that_they_read_is);
    tcase_add_test(tc, one_layer_less_than_needed_is_refused_and_the_field_named);
    tcase_add_test(tc, a_result_makes_other_ghosts_of_its_field_stale);
    tcase_add_test(tc, fields_hold_one_plane_along_axes_that_the_grid_lacks);
    tcase_add_test(tc, operators_read_nothing_along_axes_that_the_grid_lacks);
}

TRL_TEST_MAIN("operator reads", add_tests)
