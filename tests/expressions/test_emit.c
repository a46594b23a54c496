// ctest: np=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Compiled kernels give the interpreter's bits: the C text, and the CUDA text without a GPU, as C++ with a stand-in for
 * what CUDA adds to the language. NVRTC compiles the CUDA text, too, where the build found a CUDA Toolkit. */
#include "gpu_text_fixture.h"
#include "problem_fixture.h"

#include <dlfcn.h>

#include "emit_impl.h"
#include "memory_impl.h"
#include "model_impl.h"
#include "simulation_impl.h"
#include "tasks_impl.h"

enum { KERNELS_MOST = 400 };

static char *text[KERNELS_MOST];     /* of all kernels of a problem */
static trli_code code[KERNELS_MOST]; /* what is made of them */
static int ntexts;
static int total; /* kernels tested so far */

/* ---- as C++ ---- */

/* Blocks that do not divide the box, of a kernel with %d arrays, %d of them inputs, and %d scalars of these numbers. */
static const char run_grid[] = BEHIND_KERNEL
    "static unsigned blocks(const trl_kernel_call *call, int a, long long n)\n"
    "{\n"
    "    return (unsigned)((call->hi[a] - call->lo[a] + n - 1) / n);\n"
    "}\n"
    "extern \"C\" void trl_kernel(trl_kernel_call *call)\n"
    "{\n"
    "    int bad = 0;\n"
    "    trl_kernel_launch launch;\n"
    "    trl_kernel_set_edges(call, call->lo[0], call->lo[1], call->hi[1], call->lo[2], call->hi[2]);\n"
    "    trl_kernel_arrays<%d> arrays;\n"
    "    for (int i = 0; i < %d; ++i) arrays.array[i] = i < %d ? call->input[i] : call->output[i - %d];\n"
    "    static const int number[] = {%s};\n"
    "    trl_kernel_scalars<%d> scalars;\n"
    "    for (int i = 0; i < %d; ++i) scalars.value[i] = call->scalar[number[i]];\n"
    "    launch.grid = *call->grid, launch.planes = 3, launch.nonfinite = &bad;\n"
    "    for (int a = 0; a < 3; ++a) launch.lo[a] = call->lo[a], launch.hi[a] = call->hi[a];\n"
    "    for (int a = 0; a < 3; ++a) launch.low[a] = call->lo[a] - 8;\n"
    "    blockDim.x = 4, blockDim.y = 2, blockDim.z = 1, threadIdx.z = 0;\n"
    "    const unsigned nx = blocks(call, 0, 4), ny = blocks(call, 1, 2), nz = blocks(call, 2, 3);\n"
    "    for (blockIdx.z = nz; blockIdx.z-- > 0;)\n"
    "        for (blockIdx.y = ny; blockIdx.y-- > 0;)\n"
    "            for (blockIdx.x = nx; blockIdx.x-- > 0;)\n"
    "                for (threadIdx.y = 0; threadIdx.y < 2; ++threadIdx.y)\n"
    "                    for (threadIdx.x = 0; threadIdx.x < 4; ++threadIdx.x) gpu_kernel(launch, arrays, scalars);\n"
    "    call->nonfinite = bad;\n"
    "}\n";

static char *as_cpp(const trli_reads *reads, int nout, const char *kernel)
{
    const int ninputs = reads->nfields, all = ninputs + nout, n = reads->nscalars;
    char numbers[4096];
    list_scalars(reads, numbers, sizeof numbers);
    char *run = print_text(run_grid, all, all, ninputs, ninputs, numbers, n > 0 ? n : 1, n);
    char *made = print_text("%s%s%s", stand_in, kernel, run);
    free(run);
    return made;
}

/* Emit every kernel of the open problem, and have each compiled as C++ in place of itself. */
static void emit_all(trli_compiler *compiler)
{
    trli_model *model = sim->model;
    ntexts = 0;
    for (int p = 0; p < model->nprograms; ++p)
        for (int i = 0; i < model->program[p]->nsteps; ++i) {
            trli_program *program = model->program[p];
            const trli_step *s = &program->step[i];
            const trli_step_plan *plan = &program->plan->step[i];
            trli_step_run *run = &program->run->step[i];
            trli_emitted emitted;
            char *cpp;
            if (!plan->live || s->kind != TRLI_STEP_KERNEL) continue;
            ck_assert_int_lt(ntexts, KERNELS_MOST);
            const trli_emit_request wanted = {
                .reads = &plan->reads, .nroots = s->nout, .roots = s->value, .check_finite = s->variable != NULL};
            ck_ok(trli_emit_kernel(&trli_dialect_cuda, &model->ir, &model->walk, &wanted, &emitted));
            ck_assert_ptr_nonnull(emitted.text);
            cpp = as_cpp(&plan->reads, s->nout, emitted.text);
            trli_tuning_request tuned = {.label = s->label,
                                         .nout = s->nout,
                                         .reads = &plan->reads,
                                         .nparts = 1,
                                         .streaming = plan->exceeds_caches,
                                         .interleave = emitted.interleave};
            tuned.points = trli_model_points(model, model->field[s->field[0]].location, &tuned.row);
            ck_ok(trli_tuning_create(test_ctx, &tuned, &run->tuning));
            ck_assert(trli_parts_of(program, s)->whole);
            code[ntexts] = (trli_code){.text = emitted.text};
            run->part[0] = (trli_code_use){.code = &code[ntexts]};
            run->native = true;
            ck_ok(trli_compiler_add(compiler, cpp, &code[ntexts].native));
            free(cpp);
            text[ntexts++] = emitted.text;
        }
}

static void free_texts(void)
{
    for (int i = 0; i < ntexts; ++i) trli_free(text[i]);
    ntexts = 0;
}

static uint64_t hash_of_all(int steps)
{
    uint64_t hash = 0;
    ck_ok(run_steps(steps));
    for (int f = 0; f < trl_simulation_fields(sim); ++f) {
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, f, &stats));
        hash = hash * 31 + stats.hash;
    }
    return hash;
}

/* ---- NVRTC ---- */

#ifdef TRL_TEST_NVRTC
typedef struct nvrtc {
    int (*create)(void **program, const char *text, const char *name, int, const char *const *, const char *const *);
    int (*compile)(void *program, int noptions, const char *const *option);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*destroy)(void **program);
} nvrtc;

static nvrtc load_nvrtc(void)
{
    static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
                                        "nvrtcGetProgramLog", "nvrtcDestroyProgram"};
    nvrtc found;
    void *at[5], *library = dlopen(TRL_TEST_NVRTC, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    for (int i = 0; i < 5; ++i) ck_assert_ptr_nonnull(at[i] = dlsym(library, names[i]));
    memcpy(&found, at, sizeof found);
    return found;
}

/* All kernels of the problem as one program. */
static char *join_texts(void)
{
    char *all = print_text("%s", trli_kernel_prelude);
    for (int i = 0; i < ntexts; ++i) {
        char *more = print_text("%s#define trl_kernel kernel_%d\n%s#undef trl_kernel\n", all, i, text[i]);
        free(all);
        all = more;
    }
    return all;
}

static void compile_with_nvrtc(const char *what)
{
    const nvrtc n = load_nvrtc();
    const char *option[16] = {"--gpu-architecture=compute_90"};
    int noptions = 1;
    void *program;
    size_t bytes = 0;
    char *all = join_texts();
    for (int i = 0; trli_cuda_options[i]; ++i) option[noptions++] = trli_cuda_options[i];
    ck_assert_int_eq(n.create(&program, all, "kernels.cu", 0, NULL, NULL), 0);
    const int failed = n.compile(program, noptions, option);
    ck_assert_int_eq(n.log_size(program, &bytes), 0);
    char *log = calloc(bytes + 1, 1);
    ck_assert_int_eq(n.log(program, log), 0);
    ck_assert_msg(!failed, "NVRTC does not compile the kernels of %s:\n%.3000s", what, log);
    ck_assert_int_eq(n.destroy(&program), 0);
    free(log);
    free(all);
}
#else
static void compile_with_nvrtc(const char *what)
{
    (void)what; /* built without a CUDA Toolkit */
}
#endif

/* ---- problems ---- */

static trl_err open_deck(const char *path, int nsets, const char *const *set)
{
    trl_err err = TRL_OK;
    if (!path) return open_problem_with(nsets, set);
    close_problem();
    TRL_TRY(trl_registry_create(test_ctx, &registry));
    const trli_deck_request request = {.path = path, .nsets = nsets, .set = set};
    TRL_TRY(trli_deck_read(test_ctx, registry, &request, &deck));
    TRL_TRY(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
done:
    return err;
}

/* The C text of a deck's kernels. */
static void check_cpu(const char *path, const char *cells, int steps, uint64_t expected)
{
    const char *set[] = {"run.compile=always", cells};
    ck_ok(open_deck(path, cells ? 2 : 1, set));
    ck_assert_msg(hash_of_all(steps) == expected, "%.3000s: the C text has other bits", path ? path : deck_text);
}

/* A deck (NULL: the one that was said) in all ways. The test of each deck in inputs/decks has its C text, too. */
static void check_deck(const char *path, const char *cells, int steps)
{
    const char *set[] = {"run.compile=never", "run.passes.groups=false", cells};
    const int nsets = cells ? 3 : 2;
    trli_compiler *compiler;
    ck_ok(open_deck(path, nsets, set));
    const uint64_t expected = hash_of_all(steps);
    if (!path || test_long()) check_cpu(path, cells, steps, expected);
    ck_ok(open_deck(path, nsets, set));
    create_cpp_compiler(&compiler);
    emit_all(compiler);
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    const trli_compiler_stats stats = trli_compiler_get_stats(compiler);
    ck_assert_msg(!stats.why && stats.compiled + stats.cached > 0, "%s",
                  stats.why ? stats.why : "the problem has no kernels");
    ck_assert_msg(hash_of_all(steps) == expected, "%.3000s: the CUDA text has other bits", path ? path : deck_text);
    compile_with_nvrtc(path ? path : deck_text);
    total += ntexts;
    free_texts();
    close_problem();
    trli_compiler_destroy(&compiler);
}

START_TEST(kernels_of_decks_have_the_interpreters_bits)
{
    static const struct {
        const char *name, *cells;
    } decks[] = {{"robin_cooling", NULL},
                 {"heat_1d", "grid.cells=[37]"},
                 {"burgers_2d", "grid.cells=[13,9]"},
                 {"cylinder", "grid.cells=[21,15]"},
                 {"maxwell", "grid.cells=[9,8,7]"},
                 {"fourth_order", "grid.cells=[17,13]"},
                 {"filters", NULL},
                 {"heat_variable_k", "grid.cells=[11, 7]"}};
    for (int i = 0; i < (int)(sizeof decks / sizeof *decks); ++i) {
        if (!test_has(i, TEST_SANITIZED ? 16 : 8)) continue;
        char *path = print_text("%s/../inputs/decks/%s.yaml", TRL_TEST_SOURCE_DIR, decks[i].name);
        check_deck(path, decks[i].cells, 2);
        free(path);
    }
}
END_TEST

START_TEST(every_function_has_the_interpreters_bits)
{
    int count;
    const trl_function *table = trl_functions(&count);
    for (int dim = 1; dim <= (test_long() ? 3 : 1); dim += 2) {
        say_grid(dim);
        say_equation(dim, "cell", "0");
        say("expressions:\n");
        for (int f = 0; f < count; ++f) {
            const char *argument = strcmp(table[f].name, "acosh") == 0 ? "1.5 + e" : "e + 0.3*random(3)*x";
            say("  f%d: \"%s(%s%s)\"\n", f, table[f].name, argument, table[f].arity == 2 ? ", 0.1 + x*e" : "");
        }
        say("  near: \"sin(1e3*e) + cos(1e4*x) + tan(e) + fmod(1e3*e, 0.3)\"\n");
        say("  some: \"sin(if(x < 0.5, 1e8, 1)*e) + cos(e*10^(20*random(5)))\"\n");
        say("  far: \"sin(1e30*e) + cos(1e200*x) + tan(1e9*e) + fmod(1e30*e, 0.3) + e^2.5 + 2^x\"\n");
        say("time: {dt: 1e-3, steps: 1}\noutput: {fields: [near, some, far");
        for (int f = 0; f < count; ++f) say(", f%d", f);
        say("]}\n");
        check_deck(NULL, NULL, 1);
    }
}
END_TEST

START_TEST(every_limiter_and_every_side_has_the_interpreters_bits)
{
    static const char *const limiters[] = {"upwind", "minmod", "vanleer", "superbee", "mc",
                                           "koren",  "charm",  "ospre",   "smart"};
    static const char *const places[] = {"xface", "node", "zedge"};
    for (int dim = test_long() ? 1 : 3; dim <= 3; ++dim) {
        say_grid(dim);
        say_equation(dim, "cell", "e/(1 + e^2) - 0.1*laplacian(e)/1e3");
        say("expressions:\n");
        for (int i = 0; i < 9; ++i)
            say("  l%d: \"div(advective_flux(e, %s, %s))\"\n", i,
                dim == 1   ? "[x - 0.5]"
                : dim == 2 ? "[x - 0.5, 0.3]"
                           : "[x - 0.5, 0.3, z - y]",
                limiters[i]);
        say("  s: \"if(e > 0.2 and not x < 0.3 or y0 == 0, min(e, x), max(-e, 0.3))\"\n");
        say("time: {dt: 1e-3, steps: 2, method: rk4}\nparameters: {y0: 0}\noutput: {fields: [l0");
        for (int i = 1; i < 9; ++i) say(", l%d", i);
        say("]}\n");
        check_deck(NULL, NULL, 2);
        say_grid(dim);
        say_equation(dim, places[dim - 1], "0.01*laplacian(e) - e*random(5)");
        say("time: {dt: 1e-3, steps: 2, method: ssprk3}\n");
        check_deck(NULL, NULL, 2);
    }
    printf("%d kernels as CUDA\n", total);
}
END_TEST

/* What the interpreter makes chains of, with factors that are no powers of two: where a flux has no other reader, and
 * where it has. */
START_TEST(differences_of_fluxes_have_the_interpreters_bits)
{
    static const char *const rates[] = {"div(grad(e))",
                                        "e - 0.1*div(grad(e))",
                                        "ddx(2.5*ddx(e))",
                                        "0.01*div(grad(e)) + abs(at(ddx(e), cell))",
                                        "ddx(ddx(e*e)) + ddx(ddx(x*x))",
                                        "-div(-0.7*grad(e))",
                                        "div(t*grad(e))",
                                        "div(grad(e)*0.7*(1 + e))"};
    for (int dim = 1; dim <= 3; ++dim)
        for (int i = 0; i < (int)(sizeof rates / sizeof *rates); ++i) {
            if (!test_has(i + dim, TEST_SANITIZED ? 20 : 12)) continue;
            say_grid(dim);
            say_equation(dim, "cell", rates[i]);
            say("time: {dt: 1e-3, steps: 1}\n");
            check_deck(NULL, NULL, 1);
        }
}
END_TEST

/* Groups of results that share a function: of each number that sets two of them apart, each must get its own. */
START_TEST(equations_with_numbers_of_their_own_have_the_interpreters_bits)
{
    for (int dim = test_long() ? 1 : 3; dim <= 3; ++dim) {
        say_grid(dim);
        for (int i = 0; i < 8; ++i) {
            const double a = 0.3 + 0.07 * i, b = i % 2 ? 0.25 : 0.7 + i;
            say("  e%d: {location: cell, initial: \"%.9g + 0.1*sin(%d*x)\", ddt: \"%.9g*laplacian(e%d) - %.9g*e%d\", "
                "boundary: {x-: {dirichlet: \"%.9g + t\"}, x+: {neumann: %.9g}%s}}\n",
                i, a, i + 1, 0.01 * a, i, b, i, a * b, 0.5 - b,
                dim > 2 ? ", z-: {neumann: 0}, z+: {dirichlet: 1}" : "");
        }
        say("time: {dt: 1e-3, steps: 2}\n");
        check_deck(NULL, NULL, 2);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, equations_with_numbers_of_their_own_have_the_interpreters_bits);
    tcase_add_test(tc, kernels_of_decks_have_the_interpreters_bits);
    tcase_add_test(tc, differences_of_fluxes_have_the_interpreters_bits);
    tcase_add_test(tc, every_function_has_the_interpreters_bits);
    tcase_add_test(tc, every_limiter_and_every_side_has_the_interpreters_bits);
}

TRL_TEST_MAIN("emit", add_tests)
