/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary layers that a kernel sets with the rows beside them: which these are, and that nobody can tell. */
// ctest: np=1,2,4 short=1,4 timeout=600 sanitize=1
#include "plan_impl.h"
#include "problem_fixture.h"

#include "execution_impl.h"
#include <simulation_impl.h>

static const char all_kinds[] =
    "x-: {dirichlet: \"sin(t + y)\"}, x+: {neumann: \"0.1*t\"}, y-: {robin: {a: 1, b: 2, c: \"x\"}}, "
    "y+: [{where: \"x<0.5\", dirichlet: 1}, {neumann: 0}], z-: {outflow: true}, z+: {dirichlet: \"x*y\"}";

/* An equation whose sides have conditions of all kinds, and more of the deck. */
static void say_problem(const char *ddt, const char *more)
{
    new_deck();
    say("grid: {cells: [13, 12, 11]}\n"
        "equations:\n"
        "  T: {initial: \"sin(3*x)*cos(2*y) + z\", ddt: \"%s\", boundary: {%s}}\n"
        "%s\n"
        "time: {method: ssprk2, dt: 1e-4, steps: 3}\n",
        ddt, all_kinds, more);
}

/* Layers that kernels of the step set themselves, and those that tasks of their own set. */
static void count_layers(int *folded, int *unfused)
{
    *folded = *unfused = 0;
    for (int i = 0; i < sim->step->nsteps; ++i) {
        const trli_step *s = &sim->step->step[i];
        const trli_step_plan *plan = &sim->step->plan->step[i];
        if (plan->live) *(s->kind == TRLI_STEP_KERNEL ? folded : unfused) += plan->nslabs;
    }
}

static uint64_t run(const char *first, const char *second, int *folded, int *unfused)
{
    const char *const settings[] = {first, second};
    ck_ok(open_problem_with(second ? 2 : first ? 1 : 0, settings));
    count_layers(folded, unfused);
    ck_ok(run_steps(3));
    return hash_of("T");
}

/* Both stages: `folded` layers are set by kernels, the rest of `all` not, and the bits are those of a kernel per
 * expression. */
static void check(int folded, int all)
{
    int f, a;
    const uint64_t unfused = run("run.fusion=node", NULL, &f, &a), interpreted = run("run.compile=never", NULL, &f, &a);
    ck_assert_int_eq(f, folded);
    ck_assert_int_eq(a, all - folded);
    ck_assert(interpreted == unfused);
    ck_assert(run("run.compile=always", NULL, &f, &a) == unfused);
    ck_assert(run("run.compile=always", "run.time_blocking=2", &f, &a) == unfused);
}

START_TEST(a_kernel_sets_what_it_alone_reads_from_the_row_beside)
{
    say_problem("div(0.1*grad(T))", "");
    check(12, 12);
}
END_TEST

START_TEST(two_equations_are_one_kernel)
{
    char more[1024];
    snprintf(more, sizeof more, "  S: {initial: \"x\", ddt: \"laplacian(S) + T\", boundary: {%s}}", all_kinds);
    say_problem("laplacian(T) + 0.1*S", more);
    check(24, 24);
}
END_TEST

START_TEST(corners_are_read_from_other_rows)
{
    say_problem("at(ddy(at(ddx(T), cell)), cell)", ""); /* x and y together: tasks of their own; z is not read */
    check(0, 8);
}
END_TEST

START_TEST(a_second_reader_needs_the_layer_too)
{
    say_problem("div(0.1*grad(T)) + 0.01*integral(abs(at(ddx(T), cell)))", ""); /* reads beyond x */
    check(8, 12);
}
END_TEST

START_TEST(a_second_layer_beyond_y_and_z_is_read_by_two_rows)
{
    say_problem("0.001*stretched(T)",
                "stencils:\n"
                "  stretched: {to: cell, points: [[[-2, 0, 0], 1], [[2, 0, 0], 1], [[0, -2, 0], 1], "
                "[[0, 2, 0], 1], [[0, 0, -1], 1], [[0, 0, 1], 1], [[0, 0, 0], -6]]}");
    check(2 * (2 * 2 + 2), 2 * (2 * 2 + 2 + 2 * 2)); /* x: two layers, z: one; y: two, not fused */
}
END_TEST

/* Layers of which the compiled kernels need no values in memory. */
static int count_within(void)
{
    int n = 0;
    for (int i = 0; i < sim->step->nsteps; ++i)
        for (int k = 0; k < sim->step->plan->step[i].nslabs; ++k) n += sim->step->run->step[i].slab[k].within;
    return n;
}

static const int row_length[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 1023, 1024, 1025, 1026, 2049};

/* Shorter than lanes, as long, one more; in parts. Two layers beyond x; a face's rows are longer than a cell's. */
START_TEST(rows_of_any_length_end_with_the_same_bits)
{
    const int n = row_length[_i];
    if (!test_has(_i, TEST_SANITIZED ? 9 : 4)) return;
    new_deck();
    say("grid: {cells: [%d, 3, 4], length: [%g, 0.3, 0.4], patches: %s}\n"
        "stencils:\n"
        "  wide: {to: cell, points: [[[-2, 0, 0], 1], [[-1, 0, 0], 0.5], [[2, 0, 0], 1], [[0, 0, 0], -2.5]]}\n"
        "  wide_face: {to: xface, points: [[[-2, 0, 0], 0.3], [[0, 0, 0], -0.7], [[2, 0, 0], 0.4]]}\n"
        "equations:\n"
        "  T: {initial: \"sin(3*x)*cos(2*y) + z\", ddt: \"wide(T) + laplacian(T) + at(u, cell)\", boundary: {%s}}\n"
        "  u: {location: xface, initial: \"cos(x + z)\", ddt: \"laplacian(u) + wide_face(u) + at(T, xface)\", "
        "boundary: {"
        "x-: {dirichlet: 0}, x+: {dirichlet: \"t\"}, y-: {neumann: 0.3}, y+: {dirichlet: \"exp(z)\"}, z-: {outflow: "
        "true}, "
        "z+: {neumann: 0}}}\n"
        "time: {method: ssprk2, dt: 1e-4, steps: 3}\n",
        n, 0.1 * n, n > 15 && n < 20 ? "[2, 1, 2]" : "auto", all_kinds);
    int folded, unfused;
    const uint64_t node = run("run.fusion=node", NULL, &folded, &unfused);
    ck_assert(run("run.compile=always", NULL, &folded, &unfused) == node);
    ck_assert_int_gt(count_within(), 0);
    ck_assert(run("run.compile=always", "run.time_blocking=2", &folded, &unfused) == node);
}
END_TEST

/* The conditions of the sides of axes that are not periodic. */
static const char *conditions(int periodic, char *text, size_t size)
{
    int at = 0;
    for (int a = 0; a < 3; ++a)
        if (!(periodic >> a & 1) && at < (int)size)
            at += snprintf(text + at, size - (size_t)at,
                           "%c-: {dirichlet: \"sin(t)\"}, %c+: {robin: {a: 1, b: 2, c: 1}}, ", "xyz"[a], "xyz"[a]);
    return text;
}

/* How many fields of the step are exchanged, and layers of images that its kernels have. */
static void count_images(int *exchanged, int *images)
{
    *exchanged = *images = 0;
    for (int i = 0; i < sim->step->nsteps; ++i) {
        const trli_step_plan *s = &sim->step->plan->step[i];
        if (!s->live) continue;
        *exchanged += s->exchanged.n;
        for (int k = 0; k < s->nslabs; ++k) *images += s->slab[k].kind == TRLI_SLAB_IMAGE;
    }
}

/* Each set of periodic axes, rows of cells and of faces, shorter than lanes and longer. Where one patch has both sides
 * of an axis, nothing is exchanged along it. */
START_TEST(images_beyond_periodic_sides_are_read_inside)
{
    static const int cells[] = {2, 4, 5, 9, 16, 1025, 1026};
    const int periodic = _i % 7 + 1, n = cells[_i / 7];
    char text[512] = "";
    if (!test_has(_i, TEST_SANITIZED ? 18 : 9)) return;
    conditions(periodic, text, sizeof text);
    new_deck();
    say("grid: {cells: [%d, 5, 4], length: [%g, 0.5, 0.4], periodic: [%s, %s, %s]}\n"
        "stencils:\n"
        "  wide: {to: cell, points: [[[-2, 0, 0], 1], [[-1, 0, 0], 0.5], [[2, 0, 0], 1], [[0, 0, 0], -2.5]]}\n"
        "equations:\n"
        "  T: {initial: \"sin(3*x)*cos(2*y) + z\", ddt: \"wide(T) + laplacian(T) + at(u, cell)\", boundary: {%s}}\n"
        "  u: {location: xface, initial: \"cos(x + z)\", ddt: \"-u\", boundary: {%s}}\n"
        "  w: {location: yface, initial: \"x*y\", ddt: \"ddy(S)\", boundary: {%s}}\n"
        "  S: {initial: \"x + z*y\", ddt: \"laplacian(S)\", boundary: {%s}}\n"
        "time: {method: ssprk2, dt: 1e-4, steps: 3}\n",
        n, 0.1 * n, periodic & 1 ? "true" : "false", periodic & 2 ? "true" : "false", periodic & 4 ? "true" : "false",
        text, text, text, text);
    int folded, unfused, exchanged, images;
    const uint64_t node = run("run.fusion=node", NULL, &folded, &unfused);
    count_images(&exchanged, &images);
    ck_assert_int_gt(exchanged, 0);
    ck_assert_int_eq(images, 0);
    ck_assert(run("run.compile=never", NULL, &folded, &unfused) == node);
    if (periodic == 7) ck_assert(run("run.compile=always", "run.passes.ghosts=false", &folded, &unfused) == node);
    ck_assert(run("run.compile=never", "run.time_blocking=3", &folded, &unfused) == node);
    ck_assert(run("run.compile=always", "run.time_blocking=3", &folded, &unfused) == node);
    ck_assert(run("run.compile=always", NULL, &folded, &unfused) == node);
    count_images(&exchanged, &images);
    if (trl_context_ranks(sim->ctx) > 1) return;
    if (periodic & 2) ck_assert_int_eq(exchanged, 0); /* else the sides of y reach beyond those of x and z */
    ck_assert_int_gt(images, 0);
    ck_assert_int_eq(count_within(), folded);
}
END_TEST

/* A kernel of everything that passes work on: values of rows and planes, faces that neighbours share, functions,
 * conditions. */
START_TEST(kernels_without_a_pass_have_the_same_bits)
{
    static const char *const off[] = {"run.passes.hoisting=false", "run.passes.carrying=false",
                                      "run.passes.pairs=false", "run.passes.ghosts=false",
                                      "run.passes={hoisting: false, carrying: false, pairs: false, ghosts: false}"};
    char more[1024];
    snprintf(more, sizeof more,
             "  S: {initial: \"x\", ddt: \"div(grad(S)/(1 + T^2)) + sin(x)*exp(-y*t) + z\", boundary: {%s}}",
             all_kinds);
    say_problem("div(tanh(T)*grad(T)) + 0.1*S*cos(y)", more);
    int folded, unfused;
    const uint64_t interpreted = run("run.compile=never", NULL, &folded, &unfused);
    for (size_t i = 0; i < sizeof off / sizeof *off; ++i) {
        if (!test_has((int)i, TEST_SANITIZED ? 4 : 2)) continue;
        ck_assert_msg(run("run.compile=always", off[i], &folded, &unfused) == interpreted, "%s", off[i]);
        if (strstr(off[i], "ghosts")) ck_assert_int_eq(count_within(), 0);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, a_kernel_sets_what_it_alone_reads_from_the_row_beside);
    tcase_add_test(tc, two_equations_are_one_kernel);
    tcase_add_test(tc, corners_are_read_from_other_rows);
    tcase_add_test(tc, a_second_reader_needs_the_layer_too);
    tcase_add_test(tc, a_second_layer_beyond_y_and_z_is_read_by_two_rows);
    tcase_add_test(tc, kernels_without_a_pass_have_the_same_bits);
    tcase_add_loop_test(tc, images_beyond_periodic_sides_are_read_inside, 0, 7 * 7);
    tcase_add_loop_test(tc, rows_of_any_length_end_with_the_same_bits, 0, sizeof row_length / sizeof *row_length);
}

TRL_TEST_MAIN("fold", add_tests)
