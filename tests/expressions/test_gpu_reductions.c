// ctest: np=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What kernels for GPUs merge of values has the bits of what the host does: the CUDA text without a GPU, as C++. */
#include "gpu_text_fixture.h"

#include "compute_impl.h"
#include "gpu_impl.h"
#include "memory_impl.h"
#include "model_impl.h"
#include "simulation_impl.h"

/* Blocks of one thread, in which nothing is at the same time as anything else. */
static const char warp_stand_in[] =
    "#ifndef TRL_KERNEL_WARP\n"
    "#define TRL_KERNEL_WARP 1\n"
    "#define TRL_KERNEL_MERGING 1\n"
    "#define TRL_KERNEL_APART static\n"
    "#define __shared__ static\n"
    "static triple gridDim;\n"
    "static void __syncthreads() {}\n"
    "static long long __double_as_longlong(double x) { long long b; __builtin_memcpy(&b, &x, 8); return b; }\n"
    "static double __longlong_as_double(long long b) { double x; __builtin_memcpy(&x, &b, 8); return x; }\n"
    "static int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }\n"
    "template <class T> T __shfl_xor_sync(unsigned, T x, int) { return x; }\n"
    "static unsigned __ballot_sync(unsigned, bool where) { return where; }\n"
    "static bool __any_sync(unsigned, bool where) { return where; }\n"
    "static int __popc(unsigned lanes) { return __builtin_popcount(lanes); }\n"
    "static void __threadfence() {}\n"
    "template <class T> T atomicAdd(T *to, T x) { T was = *to; *to += x; return was; }\n"
    "template <class T> T atomicMin(T *to, T x) { T was = *to; if (x < was) *to = x; return was; }\n"
    "template <class T> T atomicMax(T *to, T x) { T was = *to; if (x > was) *to = x; return was; }\n"
    "template <class T> T atomicExch(T *to, T x) { T was = *to; *to = x; return was; }\n"
    "#endif\n";

/* Fewer threads than points, of a kernel with %d arrays and %d scalars of these numbers; call->edges: the launch. */
static const char run_merging[] =
    BEHIND_KERNEL "extern \"C\" void trl_kernel(trl_kernel_call *call)\n"
                  "{\n"
                  "    const trl_kernel_launch launch = *(const trl_kernel_launch *)call->edges;\n"
                  "    trl_kernel_arrays<%d> arrays;\n"
                  "    for (int i = 0; i < %d; ++i) arrays.array[i] = call->input[i];\n"
                  "    static const int number[] = {%s};\n"
                  "    trl_kernel_scalars<%d> scalars;\n"
                  "    for (int i = 0; i < %d; ++i) scalars.value[i] = call->scalar[number[i]];\n"
                  "    blockDim.x = blockDim.y = 1, gridDim.x = 6, gridDim.y = 10, gridDim.z = 2;\n"
                  "    for (blockIdx.z = 2; blockIdx.z-- > 0;)\n"
                  "        for (blockIdx.y = 10; blockIdx.y-- > 0;)\n"
                  "            for (blockIdx.x = 6; blockIdx.x-- > 0;) gpu_kernel(launch, arrays, scalars);\n"
                  "}\n";

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *made = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(made);
    ck_assert_uint_lt(fread(made, 1, 1 << 16, file), 1 << 16);
    ck_assert_int_eq(fclose(file), 0);
    return made;
}

static char *merging_as_cpp(const trli_reads *reads, const char *kernel)
{
    const int ninputs = reads->nfields, n = reads->nscalars;
    char numbers[4096];
    list_scalars(reads, numbers, sizeof numbers);
    char *body = read_text(TRL_TEST_SOURCE_DIR "/../expressions/backend/emit/trl_kernel_warp_body.h");
    char *sum = read_text(TRL_TEST_SOURCE_DIR "/../spatialops/trl_sum_body.h");
    char *last = read_text(TRL_TEST_SOURCE_DIR "/../expressions/backend/emit/trl_kernel_last_body.h");
    char *run = print_text(run_merging, ninputs > 0 ? ninputs : 1, ninputs, numbers, n > 0 ? n : 1, n);
    char *made = print_text("%s%s%s%s%s%s%s", stand_in, warp_stand_in, body, sum, last, kernel, run);
    free(body);
    free(sum);
    free(last);
    free(run);
    return made;
}

/* A group's partial results, as the host makes them of the values that the interpreter stores. */
static void reduce_by_hand(const trli_program *program, const trli_reduction_group *group, const trl_box *box,
                           trli_partial *partial)
{
    const trl_layout *layout = program->model->layout;
    const trl_patch *patch = &layout->patch[0];
    const int64_t n = trl_box_points(box);
    const trl_lidx row = box->hi[0], plane = row * box->hi[1];
    trl_array input[8], output[8];
    double *values = calloc((size_t)(n * group->n), sizeof *values);
    double *scratch = calloc(1, trli_kernel_scratch(group->kernel) + 1);
    ck_assert_ptr_nonnull(values);
    for (int i = 0; i < group->reads.nfields; ++i) input[i] = trli_frame_array(sim->frame, group->reads.field[i], 0, 0);
    for (int r = 0; r < group->n; ++r)
        output[r] = (trl_array){.at = values + r * n, .type = TRL_F64, .stride = {1, row, plane}};
    const trli_kernel_run run = {.grid = &layout->grid,
                                 .patch = patch,
                                 .input = input,
                                 .output = output,
                                 .scalar = sim->frame->scalar,
                                 .scratch = scratch};
    trli_kernel_evaluate(group->kernel, &run, box);
    for (int r = 0; r < group->n; ++r) {
        const trli_reduced_step *reduced = &program->run->reductions.reduction[group->first + r];
        trli_partial_clear(&partial[r], group->merge[r]);
        for (trl_lidx k = 0; k < box->hi[2] && trli_is_weighted(reduced); ++k)
            for (trl_lidx j = 0; j < box->hi[1]; ++j)
                trli_weigh_row(layout, patch, reduced->step->reduce.location, (trl_lidx[]){0, j, k}, row,
                               values + r * n + j * row + k * plane);
        trli_partial_add(&partial[r], group->merge[r], values + r * n, n);
    }
    free(values);
    free(scratch);
}

/* Where a launch leaves results: `share` of it, and places for the rest. */
typedef struct outcome {
    trli_partial share[8], told[8], gathered[8];
    double value[2][8];
} outcome;

static void clear_all(const trli_reduction_group *group, trli_partial *partial)
{
    for (int r = 0; r < group->n; ++r) trli_partial_clear(&partial[r], group->merge[r]);
}

/* gathers: the last block lets go what all have brought together. */
static void reduce_as_gpu(const trli_program *program, const trli_reduction_group *group, const trl_box *box,
                          trli_native_fn native, bool gathers, outcome *out)
{
    const trl_layout *layout = program->model->layout;
    const trli_kernel_run on = {.grid = &layout->grid, .patch = &layout->patch[0]};
    const trl_location location = program->run->reductions.reduction[group->first].step->reduce.location;
    trl_kernel_launch launch = {
        .grid = trli_kernel_grid_of(&on), .planes = 5, .share = (trl_kernel_partial *)out->share};
    trl_kernel_array input[8];
    for (int a = 0; a < 3; ++a) {
        const bool sides = (int)location >> a & 1 && !layout->grid.periodic[a];
        launch.hi[a] = box->hi[a];
        launch.low[a] = -8;
        launch.from[a] = sides ? 0 : -1;
        launch.to[a] = sides ? layout->grid.cells[a] : -1;
    }
    for (int i = 0; i < group->reads.nfields; ++i) {
        const trl_array array = trli_frame_array(sim->frame, group->reads.field[i], 0, 0);
        trli_native_set_array(&input[i], &array);
    }
    if (gathers) {
        launch.gathered = (trl_kernel_partial *)out->gathered;
        launch.told = (trl_kernel_partial *)out->told;
        for (int i = 0; i < 2; ++i) launch.value[i] = out->value[i];
        for (int r = 0; r < group->n; ++r) launch.number[r] = group->n - 1 - r;
    } else {
        clear_all(group, out->share);
    }
    trl_kernel_call call = {.input = input, .scalar = sim->frame->scalar, .edges = &launch};
    native(&call);
}

static void compare_partials(trli_partial *a, trli_partial *b, trli_merge merge)
{
    int64_t words[2][TRLI_PARTIAL_WORDS];
    double pair[2][TRLI_PARTIAL_PAIR];
    if (merge == TRLI_MERGE_SUM) {
        trli_partial_pack_sum(a, words[0]);
        trli_partial_pack_sum(b, words[1]);
        ck_assert_mem_eq(words[0], words[1], sizeof words[0]);
    } else {
        trli_partial_pack_extreme(a, merge, pair[0]);
        trli_partial_pack_extreme(b, merge, pair[1]);
        ck_assert_mem_eq(pair[0], pair[1], sizeof pair[0]);
    }
}

static double value_of(trli_partial partial, trli_merge merge)
{
    double pair[TRLI_PARTIAL_PAIR];
    if (merge == TRLI_MERGE_SUM) return trl_sum_value(&partial.sum);
    trli_partial_pack_extreme(&partial, merge, pair);
    return trli_partial_unpack_extreme(merge, pair);
}

/* Each launch finds what it gathers into empty, and leaves it so, whatever was in the other places. */
static void check_gathering(const trli_program *program, const trli_reduction_group *group, const trl_box *box,
                            trli_native_fn native, const trli_partial *expected)
{
    outcome out;
    trli_partial empty[8];
    memset(&out, 0xa5, sizeof out);
    clear_all(group, empty);
    clear_all(group, out.gathered);
    for (int launch = 0; launch < 2; ++launch) {
        reduce_as_gpu(program, group, box, native, true, &out);
        ck_assert_mem_eq(out.gathered, empty, (size_t)group->n * sizeof *empty);
        ck_assert_mem_eq(out.told, out.share, (size_t)group->n * sizeof *out.told);
        for (int r = 0; r < group->n; ++r) {
            trli_partial of[2] = {expected[r], out.share[r]};
            const double value = value_of(expected[r], group->merge[r]);
            compare_partials(&of[0], &of[1], group->merge[r]);
            for (int i = 0; i < 2; ++i) ck_assert_mem_eq(&out.value[i][group->n - 1 - r], &value, sizeof value);
        }
        memset(out.share, 0x5a, sizeof out.share);
    }
}

static void check_group(const trli_program *program, const trli_reduction_group *group, trli_native_fn native)
{
    const trl_layout *layout = program->model->layout;
    const trl_location location = program->run->reductions.reduction[group->first].step->reduce.location;
    const trl_box box = trl_patch_owned(layout, &layout->patch[0], location);
    trli_partial expected[8];
    outcome found;
    reduce_by_hand(program, group, &box, expected);
    check_gathering(program, group, &box, native, expected);
    reduce_as_gpu(program, group, &box, native, false, &found);
    for (int r = 0; r < group->n; ++r) compare_partials(&expected[r], &found.share[r], group->merge[r]);
}

/* All groups of reductions of the open problem. Returns how many there are. */
static int check_reductions(void)
{
    trli_native_fn native[32] = {0};
    const trli_reduction_group *group[32];
    const trli_program *program[32];
    trli_compiler *compiler;
    int n = 0;
    create_cpp_compiler(&compiler);
    for (int p = 0; p < sim->model->nprograms; ++p)
        for (int g = 0; g < sim->model->program[p]->run->reductions.ngroups; ++g, ++n) {
            trli_emitted emitted;
            ck_assert_int_lt(n, 32);
            program[n] = sim->model->program[p];
            group[n] = &program[n]->run->reductions.group[g];
            const trli_emit_request wanted = trli_gpu_group(program[n], group[n]);
            ck_ok(trli_emit_kernel(&trli_dialect_cuda, &sim->model->ir, &sim->model->walk, &wanted, &emitted));
            char *cpp = merging_as_cpp(&group[n]->reads, emitted.text);
            ck_ok(trli_compiler_add(compiler, cpp, &native[n]));
            trli_free(emitted.text);
            free(cpp);
        }
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    for (int i = 0; i < n; ++i) {
        ck_assert(native[i] != NULL);
        check_group(program[i], group[i], native[i]);
    }
    trli_compiler_destroy(&compiler);
    return n;
}

/* Values of all sizes, of sizes that change from point to point, that are not finite, and on sides. */
START_TEST(reductions_have_the_partial_results_of_the_host)
{
    int n = 0;
    for (int dim = test_long() ? 1 : 3; dim <= 3; ++dim) {
        say_grid(dim);
        say_equation(dim, "cell", "0");
        say("  f: {location: %s, initial: \"x - 0.37\", ddt: \"0\"}\n", dim == 3 ? "zedge" : "xface");
        say("  g: {location: %s, initial: \"random(3) - 2\", ddt: \"0\"}\n", dim == 3 ? "zface" : "xface");
        say("  m: {location: %s, initial: \"random(4) - 2\", ddt: \"0\"}\n", dim == 3 ? "xedge" : "xface");
        say("parameters: {zero: 0}\nexpressions:\n"
            "  wide: \"(e - 0.25)*10^(40*random(5) - 20)\"\n"
            "  huge: \"(e - 0.25)*10^(600*random(6) - 300)\"\n"
            "  tiny: \"e*1e-300*10^(-20*random(8))\"\n"
            "  tail: \"e*exp(-600*x)\"\n"
            "  never: \"if(random(9) < 0.1, e/(e - e), e)\"\n"
            "  infinite: \"if(random(9) < 0.1, 1/(e - e), e)\"\n"
            "time: {dt: 1e-3, steps: 1}\noutput: {series: {every: {steps: 1}, values: {\n");
        static const char *const values[] = {"e", "wide", "huge", "tiny", "tail", "never", "infinite", "f", "f*t + x"};
        for (int i = 0; i < (int)(sizeof values / sizeof *values); ++i)
            say("  i%d: \"integral(%s)\", n%d: \"norm(%s)\", h%d: \"domain_max(%s)\", l%d: \"domain_min(-(%s))\",\n", i,
                values[i], i, values[i], i, values[i], i, values[i]);
        say("  v: \"domain_max(-abs(f))\", w: \"domain_min(abs(f))\",\n");
        /* Extremes alone, few and more, of which several points are computed at once. */
        say("  gm: \"domain_max(g)\", gl: \"domain_min(if(random(9) < 0.01, g/(g - g), g*g))\",\n");
        for (int i = 0; i < 5; ++i) say("  m%d: \"domain_%s(sin(%d*m) + y)\",\n", i, i % 2 ? "max" : "min", i + 1);
        say("  mx: \"domain_max(m*x)\"}}}\n");
        ck_ok(open_problem_with(1, (const char *[]){"run.compile=never"}));
        ck_ok(run_steps(1));
        n += check_reductions();
        close_problem();
    }
    printf("%d groups of reductions as CUDA\n", n);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, reductions_have_the_partial_results_of_the_host);
}

TRL_TEST_MAIN("gpu_reductions", add_tests)
