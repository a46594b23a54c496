// ctest: np=1 sanitize=none timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* NVRTC compiles all that GPUs compute of every deck: kernels and slabs. It needs no GPU. */
#include "problem_fixture.h"

#include <dirent.h>

#include <builtins_impl.h>

#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "model_impl.h"
#include "native_impl.h"
#include "rtc_impl.h"
#include "simulation_impl.h"

static trli_rtc rtc;

static int number;     /* of functions in the text */
static char *all;      /* the prelude, and the functions */
static size_t all_end; /* where the text ends */

static void append(const char *text)
{
    const size_t length = strlen(text);
    all = realloc(all, all_end + length + 1);
    ck_assert_ptr_nonnull(all);
    memcpy(all + all_end, text, length + 1);
    all_end += length;
}

static void append_function(const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "#undef trl_kernel\n#define trl_kernel kernel_%d\n", number++);
    append(name);
    append(text);
}

static void append_kernel(const trli_emit_request *wanted)
{
    trli_emitted emitted;
    ck_ok(trli_emit_kernel(&trli_dialect_cuda, &sim->model->ir, &sim->model->walk, wanted, &emitted));
    ck_assert_msg(emitted.text != NULL, "a kernel has no text: %s", emitted.why);
    append_function(emitted.text);
    trli_free(emitted.text);
}

/* Both with the ghosts that it computes itself and, as a patch inside of the domain needs it, without. */
static void append_step(const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    if (s->kind == TRLI_STEP_KERNEL) {
        const trli_emit_request wanted = trli_gpu_step(program, s);
        trli_emitted emitted;
        bool folds;
        append_kernel(&wanted);
        ck_ok(trli_gpu_emit_step(program, s, &emitted, &folds));
        if (folds) append_function(emitted.text);
        trli_free(emitted.text);
    }
    for (int k = 0; k < p->nslabs; ++k) {
        if (p->slab[k].kind != TRLI_SLAB_KERNEL) continue;
        const trli_emit_request wanted = trli_gpu_slab(program, s, &p->slab[k]);
        append_kernel(&wanted);
    }
}

static void append_reductions(const trli_program *program)
{
    const trli_reductions *all = &program->run->reductions;
    for (int g = 0; g < all->ngroups; ++g) {
        const trli_emit_request wanted = trli_gpu_group(program, &all->group[g]);
        if (all->group[g].kernel) append_kernel(&wanted);
    }
}

static void open_deck(const char *path)
{
    char plugins[1000];
    const char *set[] = {"run.compile=never", "run.devices=cpu"};
    const char *build = getenv("TRELLIS_BUILD"), *folder[] = {plugins};
    snprintf(plugins, sizeof plugins, "%s/plugins", build ? build : ".");
    close_problem();
    ck_ok(trl_registry_create(test_ctx, &registry));
    ck_ok(trli_register_builtins(registry));
    const trli_deck_request request = {.path = path, .nsets = 2, .set = set, .nfolders = 1, .plugin_folder = folder};
    ck_ok(trli_deck_read(test_ctx, registry, &request, &deck));
    ck_ok(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
}

static void compile_deck(const char *path)
{
    char why[TRLI_RTC_WHY_ROOM];
    size_t bytes;
    open_deck(path);
    all_end = 0;
    append(trli_kernel_prelude);
    append_function(trli_gpu_copy_text);
    append_function(trli_gpu_clear_text);
    append_function(trli_gpu_pieces_text);
    for (int i = 0; i < sim->model->nprograms; ++i) {
        const trli_program *program = sim->model->program[i];
        for (int s = 0; s < program->nsteps && !program->once; ++s)
            if (program->plan->step[s].live) append_step(program, &program->step[s]);
        if (!program->once) append_reductions(program);
    }
    void *image = trli_rtc_compile(&rtc, test_ctx, all, 90, &bytes, why);
    ck_assert_msg(image != NULL && bytes > 0, "%s: %s", path, why);
    trli_free(image);
    close_problem();
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
    DIR *folder = opendir(TRL_TEST_SOURCE_DIR "/../inputs/decks");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0) continue;
        if (strcmp(entry->d_name, "hot_start.yaml") == 0) continue; /* it begins with another deck's output */
        if (!test_has(++decks, TEST_SANITIZED ? 8 : 1)) continue;
        snprintf(path, sizeof path, "%s/../inputs/decks/%s", TRL_TEST_SOURCE_DIR, entry->d_name);
        compile_deck(path);
    }
    closedir(folder);
    trli_rtc_close(&rtc);
    free(all);
    printf("%d kernels of %d decks\n", number, decks);
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
