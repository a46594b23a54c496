// ctest: np=1,4 timeout=300 labels=threads sanitize=1 optimise=2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct application of operators: the bits of a naive evaluation, on any sizes, patches and workers; what is valid
 * afterwards; refusals. */
#include "trl_test.h"

#include <trl_limiter_body.h>
#include <trl_operator.h>

#include "chunks_impl.h"
#include "field_fixture.h"
#include "operator_impl.h"

enum { GHOSTS = 10 }; /* of inputs: as far as anything reads from the ghosts of a result, and its final plane */

static trl_field_manager *manager;

/* ---- the reference: point by point, as the definition says ---- */

static double weighted(double sum, int n, double weight, double value)
{
    if (weight == 1) return n == 0 ? value : sum + value;
    if (weight == -1) return n == 0 ? -value : sum - value;
    if (weight < 0) return n == 0 ? -(-weight * value) : sum - -weight * value;
    return n == 0 ? weight * value : sum + weight * value;
}

static double pass_at(const trl_term *term, int pass, const trl_array *in, const trl_lidx at[3])
{
    if (pass < 0) return *value_at(in, at[0], at[1], at[2]);
    const trl_pass *p = &term->pass[pass];
    double sum = 0;
    for (int n = 0; n < p->npoints; ++n) {
        trl_lidx there[3];
        for (int a = 0; a < 3; ++a) there[a] = at[a] + p->point[n].offset[a];
        sum = weighted(sum, n, p->point[n].weight, pass_at(term, pass - 1, in, there));
    }
    return p->scale == 1 ? sum : sum * p->scale;
}

static double result_at(const trl_operator *op, const trl_array *in, trl_lidx i, trl_lidx j, trl_lidx k)
{
    const trl_lidx at[3] = {i, j, k};
    double result = 0;
    for (int t = 0; t < op->nterms; ++t) {
        const trl_term *term = &op->term[t];
        double value = pass_at(term, term->npasses - 1, &in[term->input], at);
        result = t == 0 ? value : term->minus ? result - value : result + value;
    }
    return result;
}

/* ---- problems ---- */

/* Inputs are made once for a layout: fields of three seeds at every location, with valid ghosts. */
typedef struct problem {
    trl_layout *layout;
    trl_field *input[3][8];
} problem;

static problem make_problem(int dim, const trl_gidx cells[3], int periodic, const int *counts)
{
    problem p = {.layout = make_layout(dim, cells, periodic, counts)};
    for (int i = 0; i < 3; ++i)
        for (int at = 0; at < 1 << dim; ++at) {
            char name[32];
            snprintf(name, sizeof name, "input %d at %s", i, trl_location_name((trl_location)at));
            p.input[i][at] = make_field(manager, p.layout, name, (trl_location)at, GHOSTS);
            fill_field(p.input[i][at], (uint64_t)i, true);
        }
    return p;
}

static void destroy_problem(problem *p)
{
    for (int i = 0; i < 24; ++i) trl_field_destroy(&p->input[i / 8][i % 8]);
    trl_layout_destroy(&p->layout);
}

static void choose_inputs(const trl_operator *op, const problem *pr, trl_field *in[3])
{
    for (int i = 0; i < op->ninputs; ++i) in[i] = pr->input[i][op->from[i]];
}

static void mark(trl_field *field)
{
    for (int p = 0; p < trl_field_layout(field)->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        FOR_BOX(a.held, i, j, k) memcpy(value_at(&a, i, j, k), &untouched, sizeof untouched);
    }
}

/* Right in the box, and untouched elsewhere. */
static void check_patch(const trl_operator *op, trl_field *const *field, trl_field *result, int p, const trl_box *box)
{
    trl_array in[3], out = array_of(result, p);
    for (int i = 0; i < op->ninputs; ++i) in[i] = array_of(field[i], p);
    FOR_BOX(out.held, i, j, k)
    {
        const double value = *value_at(&out, i, j, k);
        /* An assertion for each point would take longer than all else. */
        if (!box_holds(box, i, j, k)) {
            if (!is_untouched(value)) ck_abort_msg("%s writes point %d %d %d", op->name, i, j, k);
            continue;
        }
        const double expected = result_at(op, in, i, j, k);
        if (!same_bits(value, expected))
            ck_abort_msg("%s from %s to %s, %d passes: %.17g, not %.17g at point %d %d %d", op->name,
                         trl_location_name(op->from[0]), trl_location_name(op->to), op->term[0].npasses, value,
                         expected, i, j, k);
    }
}

static void check_operator(const trl_operator *op, const problem *pr, trl_loop *loop)
{
    trl_field *in[3], *out = make_field(manager, pr->layout, "result", op->to, 1);
    choose_inputs(op, pr, in);
    mark(out);
    ck_ok(trl_operator_apply(op, loop, in, out));
    for (int p = 0; p < pr->layout->nlocal; ++p) {
        const trl_box valid = trl_field_valid(out, p), held = array_of(out, p).held;
        ck_assert(same_box(&valid, &held));
        check_patch(op, in, out, p, &valid);
    }
    trl_field_destroy(&out);
}

/* Every operator that exists on a grid, with some widths of filters; with sanitizers calls in turn have a part of them
 * each. */
static void for_all_operators(const problem *pr, void (*check)(const trl_operator *op, const problem *pr, void *data),
                              void *data)
{
    static const int widths[] = {1, 2, 3, 4};
    static int calls;
    const int locations = 1 << pr->layout->grid.dim;
    int n = calls++;
    for (int choice = 0; choice < TRL_OPERATOR_KINDS * locations * locations * 3 * 4; ++choice) {
        trl_operator *op;
        const trl_operator_desc desc = {.kind = (trl_operator_kind)(choice / 12 / locations / locations),
                                        .from = (trl_location)(choice / 12 / locations % locations),
                                        .to = (trl_location)(choice / 12 % locations),
                                        .axis = choice / 4 % 3,
                                        .side = choice / 4 % 3 % 2,
                                        .width = widths[choice % 4]};
        const bool filter = desc.kind == TRL_BOX_FILTER || desc.kind == TRL_TOPHAT_FILTER;
        const bool vector = desc.kind == TRL_DIV || desc.kind == TRL_CURL;
        if ((!filter && desc.width > 1) || (filter && (desc.axis > 0 || desc.from > 0)) || (vector && desc.from > 0))
            continue;
        if (trl_operator_create(test_ctx, &pr->layout->grid, &desc, &op) != TRL_OK) continue;
        if (test_has(n++, TEST_SANITIZED ? 5 : 1)) check(op, pr, data);
        trl_operator_destroy(&op);
    }
    trl_context_clear_diagnostics(test_ctx);
}

static void check_with_loop(const trl_operator *op, const problem *pr, void *data)
{
    check_operator(op, pr, data);
}

static const struct {
    int dim;
    trl_gidx cells[3];
    int counts[3];
} shapes[] = {
    {1, {4, 1, 1}, {4, 1, 1}}, {1, {700, 1, 1}, {4, 1, 1}}, {2, {1, 4, 1}, {1, 4, 1}},  {2, {35, 9, 1}, {2, 2, 1}},
    {3, {1, 1, 4}, {1, 1, 4}}, {3, {7, 5, 3}, {2, 1, 2}},   {3, {13, 2, 6}, {1, 2, 3}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(every_operator_gives_the_bits_of_its_definition)
{
    crew c = make_crew(3);
    for (int s = 0; s < SHAPES; ++s) {
        problem pr = make_problem(shapes[s].dim, shapes[s].cells, s % 8, shapes[s].counts);
        for_all_operators(&pr, check_with_loop, NULL);
        for_all_operators(&pr, check_with_loop, c.loop);
        destroy_problem(&pr);
    }
    destroy_crew(&c);
}
END_TEST

START_TEST(callers_that_take_more_planes_give_the_same_bits)
{
    static const trl_lidx cells[2][3] = {{9, 7, 32}, {30, 80, 1}};
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int workers = 2; workers <= 3; ++workers) {
        crew c = make_crew(workers);
        for (int s = 0; s < 2; ++s) { /* on one patch per rank */
            const trl_box box = {{0, 0, 0}, {cells[s][0], cells[s][1], cells[s][2]}};
            const trl_gidx all[3] = {(trl_gidx)cells[s][0] * ranks, cells[s][1], cells[s][2]};
            problem pr = make_problem(3 - s, all, 0, (int[3]){ranks, 1, 1});
            ck_assert_int_gt(trli_planes_ahead(&box, workers, 2), 0);
            for_all_operators(&pr, check_with_loop, c.loop);
            destroy_problem(&pr);
        }
        destroy_crew(&c);
    }
}
END_TEST

/* ---- stencils of the user's, and operators that no kind makes ---- */

static void check_stencil(const problem *pr, int npoints, unsigned seed)
{
    trl_stencil_point point[64];
    trl_operator *op;
    for (int n = 0; n < npoints; ++n) {
        point[n] = (trl_stencil_point){.weight = n % 3 == 0 ? 1 : n % 3 == 1 ? -1 : 0.1 * (n + 1)};
        for (int a = 0; a < pr->layout->grid.dim; ++a) {
            seed = seed * 1664525u + 1013904223u;
            point[n].offset[a] = (int8_t)((int)(seed >> 16) % 17 - 8);
        }
    }
    ck_ok(trl_operator_create_custom(test_ctx, &pr->layout->grid, "mine", TRL_CELL, TRL_XFACE, npoints, point, &op));
    check_operator(op, pr, NULL);
    trl_operator_destroy(&op);
}

START_TEST(stencils_of_any_number_of_points_give_the_bits_of_their_definition)
{
    for (int s = 0; s < SHAPES; ++s) {
        problem pr = make_problem(shapes[s].dim, shapes[s].cells, 0, shapes[s].counts);
        for (int npoints = 1; npoints <= 35; ++npoints) check_stencil(&pr, npoints, (unsigned)(npoints + 100 * s));
        destroy_problem(&pr);
    }
}
END_TEST

static void add_reads(trl_operator *op)
{
    for (int t = 0; t < op->nterms; ++t) {
        trl_footprint sum = {.n = 1};
        for (int p = 0; p < op->term[t].npasses; ++p) {
            trl_footprint reads = {0};
            for (int n = 0; n < op->term[t].pass[p].npoints; ++n) {
                trl_offsets at;
                for (int a = 0; a < 3; ++a) at.lo[a] = at.hi[a] = op->term[t].pass[p].point[n].offset[a];
                trl_footprint_add(&reads, &at);
            }
            trl_footprint_compose(&sum, &reads, &sum);
        }
        trl_footprint_add_all(&op->reads[op->term[t].input], &sum);
    }
}

START_TEST(terms_and_passes_of_any_shape_give_the_bits_of_their_definition)
{
    static const trl_stencil_point a[3] = {{{-1, 0, 0}, 1}, {{2, 0, 0}, -1}, {{0, 1, 0}, 0.3}};
    static const trl_stencil_point b[2] = {{{0, -2, 1}, -0.7}, {{0, 1, -2}, 1}}, c[1] = {{{1, 1, 1}, -1}};
    trl_operator op = {.ctx = test_ctx,
                       .kind = TRL_CUSTOM,
                       .name = "odd",
                       .ninputs = 2,
                       .from = {TRL_CELL, TRL_ZFACE},
                       .to = TRL_CELL,
                       .nterms = 3,
                       .term = {{0, false, 2, {{3, a, 1}, {2, b, 0.1}}},
                                {1, true, 1, {{2, b, 3}}},
                                {0, true, 3, {{1, c, 1}, {2, b, 1}, {3, a, 1.0 / 3}}}}};
    problem pr = make_problem(3, (trl_gidx[3]){9, 6, 11}, 0, (int[3]){1, 2, 2});
    add_reads(&op);
    check_operator(&op, &pr, NULL);
    for (op.nterms = 1; op.nterms <= 2; ++op.nterms) check_operator(&op, &pr, NULL);
    destroy_problem(&pr);
}
END_TEST

/* ---- boxes ---- */

static void check_boxes(const trl_operator *op, const problem *pr, void *data)
{
    const int *shrink = data;
    trl_field *field[3], *result = make_field(manager, pr->layout, "result", op->to, 1);
    trl_array in[3], out = array_of(result, 0);
    trl_box box = out.held;
    choose_inputs(op, pr, field);
    for (int a = 0; a < pr->layout->grid.dim; ++a) {
        box.lo[a] += shrink[2 * (ptrdiff_t)a];
        box.hi[a] -= shrink[2 * (ptrdiff_t)a + 1];
    }
    for (int i = 0; i < op->ninputs; ++i) in[i] = array_of(field[i], 0);
    for (int past = 0; past < 2; ++past) {
        mark(result);
        trli_operator_box(op, in, &out, &box, past);
        check_patch(op, field, result, 0, &box);
    }
    mark(result);
    trl_operator_apply_box(op, in, &out, &box);
    check_patch(op, field, result, 0, &box);
    trl_field_destroy(&result);
}

START_TEST(boxes_are_computed_alike_through_the_caches_and_past_them)
{
    static int shrink[6] = {1, 2, 0, 1, 1, 0};
    static const struct {
        int dim;
        trl_gidx cells[3];
        int counts[3];
    } large[] = {{1, {8803, 1, 1}, {4, 1, 1}},
                 {2, {400, 6, 1}, {4, 1, 1}},
                 {3, {41, 4, 5}, {4, 1, 1}},
                 {3, {530, 2, 13}, {1, 1, 4}}}; /* the last one takes interleaved rows of several planes */
    for (size_t s = 0; s < sizeof large / sizeof *large; ++s) {
        problem pr = make_problem(large[s].dim, large[s].cells, 0, large[s].counts);
        for_all_operators(&pr, check_boxes, shrink);
        destroy_problem(&pr);
    }
}
END_TEST

/* More rows than rings have room for, more columns than they are wide. */
static void check_filters(problem pr)
{
    for (int width = 3; width <= 15; width += 12) {
        if (!test_has(width / 15 + pr.layout->grid.dim, TEST_SANITIZED ? 2 : 1)) continue;
        trl_operator *op;
        const trl_operator_desc desc = {.kind = TRL_BOX_FILTER, .width = width};
        ck_ok(trl_operator_create(test_ctx, &pr.layout->grid, &desc, &op));
        check_operator(op, &pr, NULL);
        trl_operator_destroy(&op);
    }
    destroy_problem(&pr);
}

START_TEST(large_planes_are_computed_in_tiles)
{
    check_filters(make_problem(2, (trl_gidx[3]){300, 600, 1}, 0, (int[3]){1, 4, 1}));
    check_filters(make_problem(3, (trl_gidx[3]){20, 60, 4}, 0, (int[3]){1, 1, 4}));
}
END_TEST

/* ---- fields ---- */

START_TEST(patches_and_ranks_do_not_show)
{
    static const int counts[3][3] = {{4, 1, 1}, {1, 2, 2}, {2, 2, 2}};
    for (int cut = 0; cut < 3; ++cut) {
        trl_layout *layout = make_layout(3, (trl_gidx[3]){12, 10, 8}, 7, counts[cut]);
        trl_operator *op;
        bool right = true;
        crew c = make_crew(2);
        ck_ok(trl_operator_create(test_ctx, &layout->grid, &(trl_operator_desc){.kind = TRL_LAPLACIAN}, &op));
        trl_field *in = make_field(manager, layout, "in", TRL_CELL, 1),
                  *out = make_field(manager, layout, "out", TRL_CELL, 2);
        fill_field(in, 3, false);
        ck_assert(on_all_ranks(trl_operator_apply(op, c.loop, &in, out) == TRL_ERR_USAGE));
        ck_ok(trl_field_exchange(in));
        ck_ok(trl_operator_apply(op, c.loop, &in, out));
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_array result = array_of(out, p);
            const trl_box valid = trl_field_valid(out, p);
            right &= same_box(&valid, &result.owned);
            FOR_BOX(result.owned, i, j, k)
            {
                const trl_lidx box[3] = {i, j, k};
                double value[27], sum = 0;
                trl_array window = {.at = &value[13], .stride = {1, 3, 9}};
                for (int o = 0; o < 27; ++o)
                    value[o] = expected_at(in, p, 3, box[0] + o % 3 - 1, box[1] + o / 3 % 3 - 1, box[2] + o / 9 - 1);
                sum = result_at(op, &window, 0, 0, 0);
                right &= same_bits(sum, *value_at(&result, i, j, k));
            }
        }
        ck_assert(on_all_ranks(right));
        trl_field_destroy(&in);
        trl_field_destroy(&out);
        trl_operator_destroy(&op);
        destroy_crew(&c);
        trl_layout_destroy(&layout);
    }
}
END_TEST

START_TEST(as_many_ghosts_are_computed_as_the_inputs_allow)
{
    trl_layout *layout = make_layout(2, (trl_gidx[3]){16, 16, 1}, 0, (int[3]){1, 4, 1});
    trl_operator *op;
    ck_ok(
        trl_operator_create(test_ctx, &layout->grid, &(trl_operator_desc){.kind = TRL_GRADIENT, .to = TRL_XFACE}, &op));
    trl_field *in = make_field(manager, layout, "in", TRL_CELL, 3),
              *out = make_field(manager, layout, "out", TRL_XFACE, 2);
    fill_field(in, 0, true);
    for (int layers = 0; layers <= 3; ++layers)
        for (int p = 0; p < layout->nlocal; ++p) {
            trl_box valid = array_of(in, p).owned;
            const trl_box owned = array_of(out, p).owned;
            valid.lo[0] -= layers;
            valid.hi[0] += layers;
            valid.hi[1] += layers;
            ck_ok(trl_field_set_valid(in, p, &valid));
            trl_err err = trl_operator_apply(op, NULL, &in, out);
            if (p < layout->nlocal - 1) continue;
            ck_assert_int_eq(err, layers == 0 ? TRL_ERR_USAGE : TRL_OK);
            if (layers == 0) continue;
            const trl_box now = trl_field_valid(out, p);
            ck_assert_int_eq(owned.lo[0] - now.lo[0], layers - 1);
            ck_assert_int_eq(now.hi[0] - owned.hi[0], layers - 1);
            ck_assert_int_eq(owned.lo[1] - now.lo[1], 0);
            ck_assert_int_eq(now.hi[1] - owned.hi[1], layers < 2 ? layers : 2);
        }
    trl_field_destroy(&in);
    trl_field_destroy(&out);
    trl_operator_destroy(&op);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(wrong_fields_are_refused_by_name)
{
    trl_layout *layout = make_layout(2, (trl_gidx[3]){16, 16, 1}, 0, (int[3]){1, 4, 1});
    trl_layout *other = make_layout(2, (trl_gidx[3]){16, 16, 1}, 0, (int[3]){4, 1, 1});
    trl_operator *op, *same;
    ck_ok(
        trl_operator_create(test_ctx, &layout->grid, &(trl_operator_desc){.kind = TRL_GRADIENT, .to = TRL_XFACE}, &op));
    ck_ok(trl_operator_create(test_ctx, &layout->grid, &(trl_operator_desc){.kind = TRL_SECOND}, &same));
    trl_field *cell = make_field(manager, layout, "T", TRL_CELL, 1),
              *face = make_field(manager, layout, "q", TRL_XFACE, 1);
    trl_field *far = make_field(manager, other, "far", TRL_CELL, 1);
    fill_field(cell, 0, true);
    ck_fails(trl_operator_apply(op, NULL, &face, face), TRL_ERR_USAGE,
             "gradient: input 'q' is at xface; the operator needs one at cell");
    ck_fails(trl_operator_apply(op, NULL, &cell, cell), TRL_ERR_USAGE,
             "gradient: output 'T' is at cell; the operator needs one at xface");
    ck_fails(trl_operator_apply(op, NULL, &far, face), TRL_ERR_USAGE, "fields 'far' and 'q' have different layouts");
    ck_fails(trl_operator_apply(same, NULL, &cell, cell), TRL_ERR_USAGE,
             "second derivative: field 'T' is both input and output");
    trl_field_invalidate_ghosts(cell);
    ck_fails(trl_operator_apply(op, NULL, &cell, face), TRL_ERR_USAGE,
             "on side x-, 1 layer of values are not valid; apply a boundary condition there first");
    ck_fails(trl_advective_flux_apply(TRL_LIMITER_COUNT, 0, NULL, cell, face, face), TRL_ERR_USAGE,
             "advective flux: limiter 9; -1 (central) to 8 are possible");
    ck_fails(trl_advective_flux_apply(0, 2, NULL, cell, face, face), TRL_ERR_USAGE,
             "advective flux: axis 2; 0 to 1 are possible");
    trl_field_destroy(&cell);
    trl_field_destroy(&face);
    trl_field_destroy(&far);
    trl_operator_destroy(&op);
    trl_operator_destroy(&same);
    trl_layout_destroy(&layout);
    trl_layout_destroy(&other);
}
END_TEST

START_TEST(nothing_is_allocated_after_the_first_use)
{
    problem pr = make_problem(3, (trl_gidx[3]){32, 16, 16}, 0, (int[3]){1, 4, 1});
    trl_operator *op;
    trl_field *out = make_field(manager, pr.layout, "result", TRL_CELL, 1);
    trl_memory_stats first, last;
    crew c = make_crew(2);
    ck_ok(
        trl_operator_create(test_ctx, &pr.layout->grid, &(trl_operator_desc){.kind = TRL_BOX_FILTER, .width = 5}, &op));
    ck_ok(trl_operator_apply(op, c.loop, pr.input[0], out));
    trl_memory_get_stats(test_ctx, &first);
    for (int round = 0; round < 5; ++round) ck_ok(trl_operator_apply(op, c.loop, pr.input[0], out));
    trl_memory_get_stats(test_ctx, &last);
    ck_assert_int_eq(first.allocations, last.allocations);
    trl_field_destroy(&out);
    destroy_problem(&pr);
    trl_operator_destroy(&op);
    destroy_crew(&c);
}
END_TEST

/* ---- chunks ---- */

START_TEST(all_workers_get_a_chunk_of_a_small_patch_and_rows_stay_whole)
{
    const trl_box box = {{0, 0, 0}, {20, 20, 20}};
    int parts[3];
    const int n = trli_box_cut(&box, trli_chunks_wanted(trl_box_points(&box), 16), parts);
    int64_t most = 0;
    ck_assert_int_ge(n, 16);
    ck_assert_int_eq(parts[0], 1);
    for (int c = 0; c < n; ++c) {
        const trl_box part = trli_box_part(&box, parts, c);
        most = trl_box_points(&part) > most ? trl_box_points(&part) : most;
    }
    ck_assert_int_le((n + 15) / 16 * most, 500);
}
END_TEST

START_TEST(chunks_cover_a_box_once)
{
    static const trl_box boxes[] = {
        {{0, 0, 0}, {1, 1, 1}}, {{-3, 2, 5}, {30, 9, 6}}, {{0, -1, 0}, {4000, 0, 1}}, {{2, 3, 4}, {9, 17, 40}}};
    for (size_t b = 0; b < sizeof boxes / sizeof *boxes; ++b)
        for (int64_t wanted = 1; wanted < 60; wanted += 3) {
            static int seen[20000];
            const trl_box *box = &boxes[b];
            int parts[3], n = trli_box_cut(box, wanted, parts);
            int64_t at = 0;
            memset(seen, 0, sizeof seen);
            for (int c = 0; c < n; ++c) {
                const trl_box part = trli_box_part(box, parts, c);
                ck_assert_int_gt(trl_box_points(&part), 0);
                FOR_BOX(part, i, j, k)
                ++seen[i - box->lo[0] +
                       (box->hi[0] - box->lo[0]) * (j - box->lo[1] + (box->hi[1] - box->lo[1]) * (k - box->lo[2]))];
            }
            for (; at < trl_box_points(box); ++at) ck_assert_int_eq(seen[at], 1);
        }
}
END_TEST

static void setup(void)
{
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static void teardown(void)
{
    trl_field_manager_destroy(&manager);
}

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_operator_gives_the_bits_of_its_definition);
    tcase_add_test(tc, callers_that_take_more_planes_give_the_same_bits);
    tcase_add_test(tc, stencils_of_any_number_of_points_give_the_bits_of_their_definition);
    tcase_add_test(tc, terms_and_passes_of_any_shape_give_the_bits_of_their_definition);
    tcase_add_test(tc, boxes_are_computed_alike_through_the_caches_and_past_them);
    tcase_add_test(tc, large_planes_are_computed_in_tiles);
    tcase_add_test(tc, patches_and_ranks_do_not_show);
    tcase_add_test(tc, as_many_ghosts_are_computed_as_the_inputs_allow);
    tcase_add_test(tc, wrong_fields_are_refused_by_name);
    tcase_add_test(tc, nothing_is_allocated_after_the_first_use);
    tcase_add_test(tc, all_workers_get_a_chunk_of_a_small_patch_and_rows_stay_whole);
    tcase_add_test(tc, chunks_cover_a_box_once);
}
TRL_TEST_MAIN("operator_apply", add_tests)
