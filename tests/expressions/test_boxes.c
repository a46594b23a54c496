// ctest: np=1 sanitize=none timeout=1800
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A compiled kernel gives the same bits for any box by any variant of its loop: those of its points one at a time,
 * where nothing is known from the point, row or plane before. */
#include "problem_fixture.h"

#include <stdint.h>

#include "model_impl.h"
#include "simulation_impl.h"
#include "tasks_impl.h"

enum { MARGIN = 8, NEAR = 4, ARRAYS_MOST = 40, SCALARS = 64 };

static int dim;
static int size[3];                           /* of the largest box */
static trl_kernel_inside inside[ARRAYS_MOST]; /* the largest box: beyond it are images */
static trl_kernel_array input[ARRAYS_MOST], found[ARRAYS_MOST], wanted[ARRAYS_MOST];
static size_t values; /* of an array */
static double scalar[SCALARS];
static trl_kernel_grid grid;

static double number(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    return 0.5 + (double)((i ^ i >> 27) >> 11) * 0x1p-53;
}

/* Rows begin at whole lanes. */
static void new_arrays(int n, trl_kernel_array *made)
{
    for (int f = 0; f < n; ++f) {
        size_t origin = 0;
        values = 1;
        for (int a = 0; a < 3; ++a) {
            made[f].stride[a] = (long long)values;
            origin += a < dim ? MARGIN * values : 0;
            values *= a < dim ? (size_t)(size[a] + 2 * MARGIN + 7) / 8 * 8 : 1;
        }
        double *at = aligned_alloc(64, values * sizeof *at);
        ck_assert_ptr_nonnull(at);
        for (size_t i = 0; i < values; ++i) at[i] = number((uint64_t)f * values + i);
        made[f].at = at + origin;
    }
}

static double *memory_of(const trl_kernel_array *a)
{
    double *at = a->at;
    for (int d = 0; d < dim; ++d) at -= MARGIN * a->stride[d];
    return at;
}

static void free_arrays(int n, trl_kernel_array *made)
{
    for (int f = 0; f < n; ++f) free(memory_of(&made[f]));
}

static void clear(int n, trl_kernel_array *made)
{
    for (int f = 0; f < n; ++f) memset(memory_of(&made[f]), 0, values * sizeof(double));
}

/* Call all parts of a kernel. */
static void call_parts(const trli_program *program, const trli_step *s, const trl_kernel_call *call)
{
    void *room = malloc(trli_native_parts_bytes(program, s));
    ck_assert_ptr_nonnull(room);
    trli_native_part *part = trli_native_parts(program, s, call, room);
    for (int i = 0; i < trli_parts_of(program, s)->n; ++i) part[i].native(&part[i].call);
    free(room);
}

/* Every point of a box by a call of its own. */
static void compute_points(const trli_program *program, const trli_step *s, trl_kernel_call call)
{
    const trl_kernel_call box = call;
    call.output = wanted;
    call.block = call.interleave = 1;
    call.streaming = call.ahead = 0;
    clear(s->nout, wanted);
    for (long long k = box.lo[2]; k < box.hi[2]; ++k)
        for (long long j = box.lo[1]; j < box.hi[1]; ++j)
            for (long long i = box.lo[0]; i < box.hi[0]; ++i) {
                const long long at[3] = {i, j, k};
                for (int a = 0; a < 3; ++a) call.hi[a] = (call.lo[a] = at[a]) + 1;
                call_parts(program, s, &call);
            }
}

/* A box in all ways: the same in it, and nothing beyond. In the short form boxes in turn have a quarter of the ways
 * each. */
static void check_box(const trli_program *program, const trli_step *s, trl_kernel_call call)
{
    static int boxes;
    compute_points(program, s, call);
    ++boxes;
    for (int variant = 0; variant < 4 * 4 * 2; ++variant) {
        if (!test_has(boxes + variant + variant / 4 + variant / 16, 7)) continue;
        call.output = found;
        call.interleave = variant % 4 + 1;
        call.block = variant / 4 % 4 < 3 ? variant / 4 % 4 + 1 : size[1];
        call.streaming = variant / 16;
        call.ahead = variant / 16 * 2;
        clear(s->nout, found);
        call_parts(program, s, &call);
        for (int o = 0; o < s->nout; ++o)
            ck_assert_msg(
                memcmp(memory_of(&found[o]), memory_of(&wanted[o]), values * sizeof(double)) == 0,
                "'%s', result %d, %lld x %lld x %lld points from (%lld, %lld, %lld), interleave %lld, block %lld, "
                "streaming %d: not the bits of single points",
                s->label, o, call.hi[0] - call.lo[0], call.hi[1] - call.lo[1], call.hi[2] - call.lo[2], call.lo[0],
                call.lo[1], call.lo[2], call.interleave, call.block, call.streaming);
    }
}

/* Boxes that begin and end at and near the ends of rows. */
static void check_ends(const trli_program *program, const trli_step *s, trl_kernel_call call)
{
    for (int lo = 0; lo < NEAR; ++lo)
        for (int hi = size[0]; hi > lo && hi > size[0] - NEAR; --hi) {
            call.lo[0] = lo;
            call.hi[0] = hi;
            check_box(program, s, call);
        }
}

static void check_kernel(const trli_program *program, const trli_step *s)
{
    const int ninputs = trli_plan_of(program, s)->ninputs;
    const int n[3] = {size[0], size[1], size[2]};
    const int boxes[][2][3] = {{{0, 0, 0}, {n[0], n[1], n[2]}},
                               {{n[0] > 2, n[1] > 2, n[2] > 2}, {n[0] - (n[0] > 3), n[1], n[2] - (n[2] > 3)}},
                               {{n[0] / 2, n[1] / 2, n[2] / 2}, {n[0], n[1], n[2] / 2 + 1}}};
    ck_assert_int_le(ninputs, ARRAYS_MOST);
    ck_assert_int_le(s->nout, ARRAYS_MOST);
    for (int i = 0; i < ninputs; ++i)
        for (int a = 0; a < 3; ++a) inside[i].hi[a] = n[a];
    new_arrays(ninputs, input);
    new_arrays(s->nout, found);
    new_arrays(s->nout, wanted);
    for (size_t b = 0; b < sizeof boxes / sizeof *boxes; ++b) {
        trl_kernel_call call = {.input = input, .scalar = scalar, .grid = &grid, .inside = inside};
        for (int a = 0; a < 3; ++a) {
            call.lo[a] = boxes[b][0][a];
            call.hi[a] = boxes[b][1][a];
        }
        check_box(program, s, call);
        if (dim == 2 && b == 0) check_ends(program, s, call);
    }
    free_arrays(ninputs, input);
    free_arrays(s->nout, found);
    free_arrays(s->nout, wanted);
}

/* All kernels of the deck that was said, for boxes of each size. */
static void check_kernels(int nsizes, const int sizes[][3])
{
    int kernels = 0;
    ck_ok(open_set("run.compile=always"));
    const trli_model *model = sim->model;
    for (int i = 0; i < SCALARS; ++i) scalar[i] = 0.1 + 0.01 * i;
    for (int z = 0; z < nsizes; ++z) {
        grid = (trl_kernel_grid){.spacing = {0.1, 0.2, 0.3}, .periodic = {1, 1, 1}};
        for (int a = 0; a < 3; ++a) grid.cells[a] = size[a] = sizes[z][a];
        for (int p = 0; p < model->nprograms; ++p)
            for (int i = 0; i < model->program[p]->nsteps; ++i) {
                const trli_step *s = &model->program[p]->step[i];
                if (!model->program[p]->plan->step[i].live || s->kind != TRLI_STEP_KERNEL) continue;
                ck_assert(model->program[p]->run->step[i].native);
                check_kernel(model->program[p], s);
                ++kernels;
            }
    }
    ck_assert_int_ge(kernels, nsizes);
    close_problem();
}

static void say_grid(int dimensions)
{
    static const int cells[3] = {16, 16, 16};
    dim = dimensions;
    new_deck();
    say("grid: {cells: %s, periodic: [true%s%s]}\n", list_of(dim, cells), dim > 1 ? ", true" : "",
        dim > 2 ? ", true" : "");
    say("time: {dt: 1e-3, steps: 1}\nequations:\n");
}

static void say_equation(const char *name, const char *ddt)
{
    say("  %s: {location: cell, initial: \"0.2 + 0.1*random(7)\", ddt: \"%s\"}\n", name, ddt);
}

/* Rows of less than the lanes, of whole lanes, with lanes that overlap, and in two chunks. */
static const int rows[][3] = {{3, 1, 1}, {8, 1, 1}, {19, 1, 1}, {1024 + 13, 1, 1}};
static const int planes[][3] = {{3, 5, 1}, {16, 7, 1}, {19, 6, 1}, {1024 + 9, 4, 1}};
static const int bricks[][3] = {{3, 4, 5}, {16, 5, 4}, {19, 6, 7}, {1024 + 9, 3, 3}};

static void check_all(int nsizes)
{
    check_kernels(nsizes, dim == 1 ? rows : dim == 2 ? planes : bricks);
}

START_TEST(means_on_faces_are_those_of_single_points)
{
    for (int d = 1; d <= 3; ++d) {
        if (!test_has(d + 1, 2)) continue;
        say_grid(d);
        say_equation("k", "0.1*k");
        say_equation("e", "div(harmonic(k, faces)*grad(e))");
        check_all(4);
    }
}
END_TEST

START_TEST(quotients_at_several_offsets_are_those_of_single_points)
{
    for (int d = 1; d <= 3; ++d) {
        if (!test_has(d, 2)) continue;
        say_grid(d);
        say_equation("k", "laplacian(1/(1 + k^2)) + laplacian(sqrt(abs(k) + 2))*x");
        say_equation("e", "div(grad(e)/(1 + abs(e))) + 1/(2 + laplacian(1/(3 + e)))");
        check_all(4);
    }
}
END_TEST

/* Of any length about that of lanes and of what is computed in one go. */
START_TEST(ends_of_rows_that_are_reached_from_afar_are_those_of_single_points)
{
    int sizes[40][3], n = 0;
    for (int length = 4; length < 1029; length += length == 36 ? 986 : 1)
        memcpy(sizes[n++], (int[]){length, 2, 1}, sizeof *sizes);
    for (int reach = 1; reach <= 4; ++reach) {
        if (!test_has(reach - 1, 3)) continue;
        say_grid(2);
        say_equation("e", "both(e) + 0.5*after(e)");
        say_equation("f", "before(e)*f");
        say("stencils:\n");
        say("  both: {to: cell, points: [[[-%d, 0], 0.3], [[0, 0], 0.2], [[%d, 0], 0.4]]}\n", reach, reach);
        say("  after: {to: cell, points: [[[0, 0], 0.3], [[%d, 0], 0.2]]}\n", (reach + 1) / 2);
        say("  before: {to: cell, points: [[[-%d, 0], 0.7], [[0, 0], 0.1]]}\n", (reach + 1) / 2);
        check_kernels(n, (const int(*)[3])sizes);
    }
}
END_TEST

START_TEST(what_groups_share_is_that_of_single_points)
{
    for (int d = test_long() ? 2 : 3; d <= 3; ++d) {
        say_grid(d);
        for (int i = 0; i < 9; ++i) {
            const char name[3] = {'f', (char)('0' + i), 0};
            say("  %s: {location: cell, initial: \"0.1*random(%d)\", ddt: \"", name, i);
            say("div(grad(%s)/(1 + %s^2)) + (f0*f1*f2*f3*f4*f5*f6*f7*f8) + exp(f%d*f0)\"}\n", name, name, (i + 1) % 9);
        }
        check_all(3);
    }
}
END_TEST

START_TEST(what_only_two_planes_at_once_have_in_common_is_that_of_single_points)
{
    say_grid(3);
    say_equation("e", "skew(exp(e))");
    say("stencils:\n  skew: {to: cell, points: [[[0, 0, 0], 1], [[0, 1, -1], 0.5]]}\nrun: {balance: 1e6}\n");
    check_all(3);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, means_on_faces_are_those_of_single_points);
    tcase_add_test(tc, quotients_at_several_offsets_are_those_of_single_points);
    tcase_add_test(tc, ends_of_rows_that_are_reached_from_afar_are_those_of_single_points);
    tcase_add_test(tc, what_groups_share_is_that_of_single_points);
    tcase_add_test(tc, what_only_two_planes_at_once_have_in_common_is_that_of_single_points);
}

TRL_TEST_MAIN("boxes", add_tests)
