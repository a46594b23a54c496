// ctest: np=1 sanitize=none timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* NVRTC compiles all that GPUs compute of every deck: kernels, slabs and reductions. It needs no GPU. */
#include "problem_fixture.h"

#include <dirent.h>

#include <builtins_impl.h>

#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "gpu_passes_impl.h"
#include "late_scalars_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "model_impl.h"
#include "model_run_impl.h"
#include "multigrid_impl.h"
#include "native_impl.h"
#include "rtc_impl.h"
#include "simulation_impl.h"

static trli_rtc rtc;

/* The distinct texts of all decks, each with the first deck that has it. */
typedef struct found_text {
    char *text, *deck;
} found_text;

static found_text *found;
static int nfound, nasked;

static void add_text(const char *text, const char *deck)
{
    ++nasked;
    for (int i = 0; i < nfound; ++i)
        if (strcmp(found[i].text, text) == 0) return;
    found = realloc(found, (size_t)(nfound + 2) * sizeof *found); /* and one that is compiled at once */
    ck_assert_ptr_nonnull(found);
    found[nfound++] = (found_text){strdup(text), strdup(deck)};
}

/* The prelude, and the texts [first, end) as functions of one program. */
static char *join_texts(int first, int end)
{
    size_t bytes = strlen(trli_kernel_prelude) + 1;
    for (int i = first; i < end; ++i) bytes += strlen(found[i].text) + 64;
    char *all = malloc(bytes), *at = all;
    ck_assert_ptr_nonnull(all);
    at += sprintf(at, "%s", trli_kernel_prelude);
    for (int i = first; i < end; ++i)
        at += sprintf(at, "#undef trl_kernel\n#define trl_kernel kernel_%d\n%s", i, found[i].text);
    return all;
}

static bool compile(int first, int end, char why[TRLI_RTC_WHY_ROOM])
{
    size_t bytes;
    char *all = join_texts(first, end);
    void *image = trli_rtc_compile(&rtc, test_ctx, all, 90, &bytes, why);
    const bool made = image != NULL && bytes > 0;
    trli_free(image);
    free(all);
    return made;
}

/* In the short form, what all runs on GPUs need and each twentieth of the other texts. */
static void keep_some_texts(int needed)
{
    int kept = needed;
    for (int i = needed; i < nfound; ++i)
        if (test_has(i, 20))
            found[kept++] = found[i];
        else {
            free(found[i].text);
            free(found[i].deck);
        }
    nfound = kept;
}

/* Several texts at a time: what NVRTC does for a program takes longer than many of them. */
static void compile_texts(void)
{
    enum { TOGETHER = 16 };
    char why[TRLI_RTC_WHY_ROOM];
    for (int first = 0, end; first < nfound; first = end) {
        end = first + TOGETHER < nfound ? first + TOGETHER : nfound;
        if (compile(first, end, why)) continue;
        for (int i = first; i < end; ++i)
            ck_assert_msg(compile(i, i + 1, why), "%s: %s\n%.3000s", found[i].deck, why, found[i].text);
        ck_abort_msg("texts %d to %d are refused together: %s", first, end, why);
    }
}

static void free_texts(void)
{
    for (int i = 0; i < nfound; ++i) {
        free(found[i].text);
        free(found[i].deck);
    }
    free(found);
}

static void open_deck(const char *path)
{
    char plugins[1000], tested[1000];
    const char *set[] = {"run.compile=never", "run.devices=cpu"};
    const char *build = getenv("TRELLIS_BUILD"), *folder[] = {plugins, tested};
    snprintf(plugins, sizeof plugins, "%s/plugins", build ? build : ".");
    snprintf(tested, sizeof tested, "%s/test_plugins", build ? build : ".");
    close_problem();
    ck_ok(trl_registry_create(test_ctx, &registry));
    ck_ok(trli_register_builtins(registry));
    const trli_deck_request request = {.path = path, .nsets = 2, .set = set, .nfolders = 2, .plugin_folder = folder};
    ck_ok(trli_deck_read(test_ctx, registry, &request, &deck));
    ck_ok(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
}

/* Forms of plugins have names that others have, too: each is a program. */
static void compile_plugins(const trli_program *program, const char *path)
{
    char refused[TRLI_RTC_WHY_ROOM];
    trli_form_call call;
    for (int i = 0; i < program->nsteps; ++i)
        for (int n = 0; trli_gpu_form_call(program, &program->step[i], n, &call); ++n) {
            const char *why;
            char *text;
            ck_ok(trli_gpu_plugin_text(sim->model, call.called, call.form, &text, &why));
            ck_assert_msg(text != NULL, "%s: '%s' has no text: %s", path, call.called->name, why);
            found[nfound] = (found_text){.text = text};
            ck_assert_msg(compile(nfound, nfound + 1, refused), "%s: %s\n%.3000s", path, refused, text);
            trli_free(text);
        }
}

static void add_late(const char *path)
{
    trli_memstream text = {0};
    ck_assert(trli_memstream_open(test_ctx, &text));
    trli_late_scalars_write(sim->model->late, text.out);
    ck_assert(trli_memstream_close(&text));
    add_text(text.text, path);
    trli_memstream_discard(&text);
}

static void add_deck(const char *path)
{
    const trli_code *code;
    open_deck(path);
    ck_ok(trli_gpu_write_texts(sim->model));
    for (int i = 0; (code = trli_codes_get(sim->model->run->gpu_codes, i)); ++i) {
        ck_assert_msg(code->text != NULL, "%s: a kernel has no text: %s", path, code->why);
        add_text(code->text, path);
    }
    if (sim->model->late) add_late(path);
    for (int i = 0; i < sim->model->nprograms; ++i) compile_plugins(sim->model->program[i], path);
    close_problem();
}

/* Several steps in one launch, by the first tile that has no more: a program of its own, since each has a point. */
static void compile_pass(const char *cells, const char *method, int most, const char *equations)
{
    char refused[TRLI_RTC_WHY_ROOM], *text;
    const char *why;
    FILE *out = fopen("passes.yaml", "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "trellis: 1\ngrid: {cells: %s}\nequations:\n%stime: {dt: 1e-3, steps: 2, method: %s}\n", cells,
            equations, method);
    ck_assert_int_eq(fclose(out), 0);
    open_deck("passes.yaml");
    ck_ok(trli_gpu_write_texts(sim->model));
    ck_ok(trli_gpu_passes_text(sim->step, &sim->rotation, most, &text, &why));
    ck_assert_msg(text != NULL, "%s", why);
    found[nfound] = (found_text){.text = text};
    ck_assert_msg(compile(nfound, nfound + 1, refused), "%s\n%.3000s", refused, text);
    trli_free(text);
    close_problem();
}

/* Sides that are computed in a tile, and an axis that goes round; fields that last; 2-D, and stages. For four steps of
 * the first, NVRTC needs as long as for half of all else. */
static void compile_passes(void)
{
    compile_pass("[20, 18, 17], periodic: [false, true, false]", "euler", test_long() ? 8 : 2,
                 "  T:\n    initial: x\n    ddt: \"laplacian(T) + sin(t)*z - T*y\"\n    boundary: {x-: {dirichlet: "
                 "y}, x+: {neumann: 1}, z-: {neumann: 0}, z+: {robin: {a: 1, b: 2, c: t}}}\n");
    compile_pass("[20, 18, 17], periodic: true", "euler", 8,
                 "  T: {initial: x, ddt: \"div(k*grad(T)) + U\"}\n  U: {initial: x, ddt: \"laplacian(U) - T\"}\n"
                 "  k: {initial: y, ddt: 0}\n");
    compile_pass("[20, 18], periodic: [true, false]", "ssprk3", 8,
                 "  T: {initial: x, ddt: \"cddx(q)*laplacian(T)\", boundary: {y-: {neumann: 1}, y+: {dirichlet: "
                 "0}}}\n  q: {initial: y, ddt: 0}\n");
}

/* A deck of CUDA forms. */
static const char *write_plugins(void)
{
    FILE *out = fopen("forms.yaml", "w");
    ck_assert_ptr_nonnull(out);
    fputs("trellis: 1\nplugins: [cuda_forms]\ngrid: {cells: [9, 8]}\nexpressions:\n"
          "  r: {type: cuda_reaction, computes: [S, U]}\n  f: {type: cuda_flux, boundary: {x-: {neumann: 0}, x+: "
          "{neumann: 0}}}\nequations:\n  T: {initial: x, ddt: \"-ddx(F) + S - U*T\", boundary: {x-: {neumann: 0}, x+: "
          "{neumann: 0}}}\ntime: {dt: 1e-3, steps: 2, method: euler}\n",
          out);
    ck_assert_int_eq(fclose(out), 0);
    return "forms.yaml";
}

START_TEST(all_of_every_deck_is_compiled)
{
    char why[TRLI_RTC_WHY_ROOM], path[1000];
    int decks = 0;
    if (!trli_rtc_open(&rtc, why)) {
        printf("skipped: %s\n", why);
#ifdef TRL_TEST_NVRTC
        ck_abort_msg("this build has a CUDA Toolkit, but %s", why);
#endif
        return;
    }
    add_text(trli_gpu_copy_text, "copy");
    add_text(trli_gpu_clear_text, "clear");
    add_text(trli_gpu_pieces_text, "pieces");
    add_text(trli_gpu_statistics_text, "statistics");
    add_text(trli_transfer_restrict_text, "restriction");
    add_text(trli_transfer_prolong_text, "interpolation");
    add_deck(write_plugins());
    compile_passes();
    const int needed = nfound;
    DIR *folder = opendir(TRL_TEST_SOURCE_DIR "/../inputs/decks");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0) continue;
        if (strcmp(entry->d_name, "hot_start.yaml") == 0) continue; /* it begins with another deck's output */
        if (!test_has(++decks, TEST_SANITIZED ? 8 : 1)) continue;
        snprintf(path, sizeof path, "%s/../inputs/decks/%s", TRL_TEST_SOURCE_DIR, entry->d_name);
        add_deck(path);
    }
    closedir(folder);
    keep_some_texts(needed);
    compile_texts();
    trli_rtc_close(&rtc);
    printf("%d texts of %d kernels of %d decks\n", nfound, nasked, decks);
    free_texts();
}
END_TEST

START_TEST(a_text_that_is_refused_says_why)
{
    char why[TRLI_RTC_WHY_ROOM];
    size_t bytes;
    if (!trli_rtc_open(&rtc, why)) return;
    ck_assert_ptr_null(trli_rtc_compile(&rtc, test_ctx, "__device__ int f() { return nothing; }", 90, &bytes, why));
    ck_assert_msg(strstr(why, "identifier \"nothing\" is undefined") != NULL, "%s", why);
    ck_assert_ptr_null(trli_rtc_compile(&rtc, test_ctx, "", 7, &bytes, why));
    ck_assert_str_ne(why, "");
    trli_rtc_close(&rtc);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_text_that_is_refused_says_why);
    tcase_add_test(tc, all_of_every_deck_is_compiled);
}

TRL_TEST_MAIN("gpu_text", add_tests)
