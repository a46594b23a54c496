// ctest: np=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels for GPUs as they are launched, in parts that share functions, with the ghosts that they compute: their text
 * as C++ gives the interpreter's bits. */
#include "gpu_text_fixture.h"

#include <math.h>

#include "gpu_impl.h"
#include "memory_impl.h"
#include "model_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "simulation_impl.h"

enum {
    CODES_MOST = 128,
#ifdef TRL_SMALL_SIZES /* parts are small, too */
    MANY = 9
#else
    MANY = 50
#endif
};

/* Blocks that do not divide the box, of a kernel with %d arrays and %d scalars; call->edges: the launch. */
static const char run_launch[] = BEHIND_KERNEL
    "static unsigned blocks(const trl_kernel_launch *launch, int a, long long n)\n"
    "{\n"
    "    return (unsigned)((launch->hi[a] - launch->lo[a] + n - 1) / n);\n"
    "}\n"
    "extern \"C\" void trl_kernel(trl_kernel_call *call)\n"
    "{\n"
    "    const trl_kernel_launch launch = *(const trl_kernel_launch *)call->edges;\n"
    "    trl_kernel_arrays<%d> arrays;\n"
    "    trl_kernel_scalars<%d> scalars;\n"
    "    __builtin_memcpy(&arrays, call->input, sizeof arrays);\n"
    "    __builtin_memcpy(&scalars, call->scalar, sizeof scalars);\n"
    "    blockDim.x = 4, blockDim.y = 2, blockDim.z = 1, threadIdx.z = 0;\n"
    "    const unsigned nx = blocks(&launch, 0, 4), ny = blocks(&launch, 1, 2), nz = blocks(&launch, 2, "
    "launch.planes);\n"
    "    for (blockIdx.z = nz; blockIdx.z-- > 0;)\n"
    "        for (blockIdx.y = ny; blockIdx.y-- > 0;)\n"
    "            for (blockIdx.x = nx; blockIdx.x-- > 0;)\n"
    "                for (threadIdx.y = 0; threadIdx.y < 2; ++threadIdx.y)\n"
    "                    for (threadIdx.x = 0; threadIdx.x < 4; ++threadIdx.x) gpu_kernel(launch, arrays, scalars);\n"
    "}\n";

static const trli_code *code[CODES_MOST];
static trli_native_fn native[CODES_MOST];
/* Parts tested, those that are given numbers, that compute ghosts, or have them in memory. */
static int ncodes, nparts, nshared, nfolding, nstoring;

/* Have all functions of kernels compiled as C++. */
static void compile_codes(trli_compiler *compiler)
{
    const trli_code *at;
    ncodes = 0;
    for (int i = 0; (at = trli_codes_get(sim->model->run->gpu_codes, i)); ++i) {
        const trli_emit_request *of = &at->request;
        const int n = of->reads->nscalars + at->ngiven;
        if (of->merge) continue;
        ck_assert_int_lt(ncodes, CODES_MOST);
        char *run = print_text(run_launch, of->reads->nfields + of->nroots, n > 0 ? n : 1);
        char *cpp = print_text("%s%s%s", stand_in, at->text, run);
        ck_ok(trli_compiler_add(compiler, cpp, &native[ncodes]));
        code[ncodes++] = at;
        free(cpp);
        free(run);
    }
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    for (int i = 0; i < ncodes; ++i) ck_assert(native[i] != NULL);
}

static double *row_of(const trl_array *a, trl_lidx j, trl_lidx k)
{
    return (double *)a->at + trl_array_offset(a, 0, j, k);
}

/* Numbers of a size that rates stay finite with, in all of an array, ghosts included. */
static void fill(int field, unsigned *seed)
{
    const trl_array a = trli_frame_array(sim->frame, field, 0, 0);
    for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
        for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
            for (trl_lidx i = a.held.lo[0]; i < a.held.hi[0]; ++i)
                row_of(&a, j, k)[i] = 0.5 + (*seed = *seed * 1664525u + 1013904223u) / 4294967296.0;
}

static void poison(int field, const trl_box *box)
{
    const trl_array a = trli_frame_array(sim->frame, field, 0, 0);
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) row_of(&a, j, k)[i] = NAN;
}

/* Copy the points of a box, or compare them. */
static void visit(const trli_step *s, int o, const trl_box *box, double *values, bool compare)
{
    const trl_array a = trli_frame_array(sim->frame, s->field[o], 0, 0);
    const trl_lidx n = box->hi[0] - box->lo[0];
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j, values += n) {
            double *row = row_of(&a, j, k) + box->lo[0];
            if (compare)
                ck_assert_msg(memcmp(row, values, (size_t)n * sizeof *row) == 0, "'%s', result %d, row %d of plane %d",
                              s->label, o, (int)j, (int)k);
            else
                memcpy(values, row, (size_t)n * sizeof *row);
        }
}

static trli_native_fn native_of(const trli_code_use *use)
{
    int i = 0;
    while (i < ncodes && code[i] != use->code) ++i;
    ck_assert_int_lt(i, ncodes);
    return native[i];
}

/* All parts, in the scratch that they ask for. */
static void launch(trl_task_args *args, const trli_step_task *t)
{
    const trli_parts *parts = trli_gpu_parts_of(t->program, t->step);
    void *const before = sim->frame->scratch[0];
    sim->frame->scratch[0] = malloc(trli_gpu_scratch(t->program, t->step));
    ck_assert_ptr_nonnull(sim->frame->scratch[0]);
    for (int i = parts->n - 1; i >= 0; --i) {
        trli_gpu_call call;
        int bad = 0;
        trli_gpu_call_part(args, t, i, &call);
        call.launch.planes = 3;
        call.launch.nonfinite = &bad;
        trl_kernel_call as_cpp = {.input = call.array, .scalar = call.scalar, .edges = &call.launch};
        native_of (&t->run->gpu[i])(&as_cpp);
        ck_assert_int_eq(bad, 0);
        nshared += t->run->gpu[i].code->ngiven > 0;
    }
    free(sim->frame->scratch[0]);
    sim->frame->scratch[0] = before;
    nparts += parts->n;
}

static void check_step(trli_program *program, const trli_step *s)
{
    trli_step_task t = {.program = program,
                        .step = s,
                        .plan = trli_plan_of(program, s),
                        .run = trli_run_of(program, s),
                        .box = trli_step_box(program, s, 0, 0),
                        .around = trli_step_box(program, s, 0, 0),
                        .parts = {1, 1, 1}};
    trl_task_args args = {.chunks = 1, .frame = sim->frame};
    const trl_layout *layout = sim->model->layout;
    const size_t points = (size_t)trl_box_points(&t.box);
    double *expected = malloc(points * (size_t)s->nout * sizeof *expected);
    unsigned seed = 7;
    bool done = true;
    ck_assert_ptr_nonnull(expected);
    for (int i = 0; i < t.plan->ninputs; ++i) fill(t.plan->input[i], &seed);
    ck_ok(trli_task_kernel(&t, &args, &done));
    for (int o = 0; o < s->nout; ++o) visit(s, o, &t.box, expected + (size_t)o * points, false);
    for (int o = 0; o < s->nout; ++o) poison(s->field[o], &t.box);
    for (int k = 0; k < t.plan->nslabs && t.run->gpu_folds; ++k) {
        const trl_box box = trli_slab_box(program, &t.plan->slab[k], 0);
        if (trli_slab_is_at(layout, &layout->patch[0], &t.plan->slab[k])) poison(t.plan->slab[k].field, &box);
    }
    launch(&args, &t);
    for (int o = 0; o < s->nout; ++o) visit(s, o, &t.box, expected + (size_t)o * points, true);
    nfolding += t.run->gpu_folds;
    nstoring += t.plan->nslabs > 0 && !t.run->gpu_folds;
    free(expected);
}

/* Every kernel of the open problem. */
static void check_problem(void)
{
    trli_compiler *compiler;
    ck_ok(open_problem_with(1, (const char *[]){"run.compile=never"}));
    ck_ok(run_steps(1));
    ck_ok(trli_gpu_write_texts(sim->model));
    create_cpp_compiler(&compiler);
    compile_codes(compiler);
    nparts = nshared = nfolding = nstoring = 0;
    for (int p = 0; p < sim->model->nprograms; ++p) {
        trli_program *program = sim->model->program[p];
        for (int i = 0; i < program->nsteps && !program->once; ++i)
            if (program->plan->step[i].live && program->step[i].kind == TRLI_STEP_KERNEL)
                check_step(program, &program->step[i]);
    }
    trli_compiler_destroy(&compiler);
    close_problem();
}

/* MANY equations on a grid whose ghosts kernels compute. small: a period has two cells. */
static void say_family(int dim, bool small, const char *ddt, const char *more)
{
    static const int large_cells[] = {19, 16, 17}, small_cells[] = {11, 6, 2};
    new_deck();
    say("grid: {cells: %s, periodic: [true%s%s]}\n"
        "parameters: {n: %d}\n"
        "equations:\n"
        "  \"f{i}\": {for: {i: 1..n}, initial: \"sin(i*x) + 0.1*i\", ddt: \"%s\"%s}\n"
        "time: {method: ssprk3, dt: 1e-4, steps: 1}\n",
        list_of(dim, small ? small_cells : large_cells), dim > 1 ? ", false" : "", dim > 2 ? ", true" : "", MANY, ddt,
        more);
}

static const char y_sides[] = ", boundary: {y-: {dirichlet: \"i + 0.3 + t\"}, y+: {neumann: \"0.1*i\"}}";

START_TEST(parts_that_share_a_function_have_the_interpreters_bits)
{
    for (int dim = 2; dim <= 3; ++dim) {
        say_family(dim, false, "div(0.013*i*grad(f{i})) - 0.71*i*f{i}^3", y_sides);
        check_problem();
        ck_assert_int_eq(nfolding, 3);
        ck_assert_int_gt(nparts, 3);
        ck_assert_int_gt(nshared, 3);
    }
}
END_TEST

START_TEST(parts_with_ghosts_in_memory_have_the_interpreters_bits)
{
    say_family(3, true, "div(0.013*i*grad(f{i})) - 0.71*i*f{i}^3", y_sides);
    check_problem(); /* a period of two cells */
    ck_assert_int_eq(nfolding, 3);
    setenv("TRELLIS_GPU_IMAGES", "none", 1);
    say_family(3, true, "div(0.013*i*grad(f{i})) - 0.71*i*f{i}^3", y_sides);
    check_problem();
    unsetenv("TRELLIS_GPU_IMAGES");
    ck_assert_int_eq(nfolding, 0);
    ck_assert_int_ge(nstoring, 3);
    ck_assert_int_gt(nparts, 3);
    new_deck(); /* where each row has both of its ghosts, and those across it are next to each other */
    say("grid: {cells: [3, 4, 5], periodic: [true, false, true]}\n"
        "equations: {f: {initial: \"x + y^2 + sin(z)\", ddt: \"laplacian(f)\"%s}}\n"
        "time: {method: ssprk3, dt: 1e-4, steps: 1}\n",
        ", boundary: {y-: {dirichlet: \"0.3 + t\"}, y+: {neumann: 0.1}}");
    check_problem();
    ck_assert_int_gt(nfolding, 0);
}
END_TEST

/* Each reads three others, at neighbours, too: two layers beyond the sides. */
START_TEST(parts_that_read_the_same_have_the_interpreters_bits)
{
    say_family(2, false,
               "0.01*i*laplacian(f{i}) + 0.1*i*f{fmod(i + 6, n) + 1}*f{i} - cddx(f{fmod(i + 11, n) + 1}) + "
               "ddy(ddy(f{fmod(i + 20, n) + 1}))",
               ", boundary: {y-: {dirichlet: \"i\"}, y+: {robin: {a: 1, b: i, c: 0.5}}}");
    check_problem();
    ck_assert_int_gt(nparts, 3);
}
END_TEST

/* Parts and functions of the step's kernel of n scalars as inputs/decks/transport.yaml has them. */
static void check_division(int n, int parts, int functions)
{
    new_deck();
    say("grid: {cells: [16, 16, 16], periodic: [true, true, true]}\n"
        "parameters: {n: %d}\n"
        "expressions: {velocity: [1, 0.5, 0.25]}\n"
        "equations:\n"
        "  \"f{i}\": {for: {i: 1..n}, initial: 0, ddt: \"div(0.0137*i*grad(f{i}) - advective_flux(f{i}, velocity))\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 1}\n",
        n);
    ck_ok(open_problem_with(1, (const char *[]){"run.compile=never"}));
    ck_ok(trli_gpu_write_texts(sim->model));
    for (int i = 0; i < sim->step->nsteps; ++i) {
        if (!sim->step->plan->step[i].live || sim->step->step[i].kind != TRLI_STEP_KERNEL) continue;
        const trli_parts *of = trli_gpu_parts_of(sim->step, &sim->step->step[i]);
        const trli_code_use *use = sim->step->run->step[i].gpu;
        int different = 0;
        for (int k = 0, like; k < of->n; ++k) {
            for (like = 0; use[like].code != use[k].code;) ++like;
            different += like == k;
            ck_assert_ptr_nonnull(use[k].code->text);
        }
#ifndef TRL_SMALL_SIZES
        ck_assert_int_eq(of->n, parts);
        ck_assert_int_eq(different, functions);
#else
        (void)parts, (void)functions;
#endif
    }
    close_problem();
}

START_TEST(many_equations_are_few_functions)
{
    check_division(16, 1, 1);
    check_division(60, 3, 1);
    check_division(100, 5, 1);
    check_division(200, 10, 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, many_equations_are_few_functions);
    tcase_add_test(tc, parts_that_share_a_function_have_the_interpreters_bits);
    tcase_add_test(tc, parts_with_ghosts_in_memory_have_the_interpreters_bits);
    tcase_add_test(tc, parts_that_read_the_same_have_the_interpreters_bits);
}

TRL_TEST_MAIN("gpu_parts", add_tests)
