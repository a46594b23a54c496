/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_impl.h"

enum { REPETITIONS = 5, QUICK_REPETITIONS = 1 };

static const char deck_text[] = "trellis: 1\n"
                                "grid: {cells: [8, 8]}\n"
                                "parameters: {n: %d}\n"
                                "expressions:\n"
                                "  e0: \"T\"\n"
                                "  \"e{i}\": {for: {i: 1..n}, formula: \"e{i-1} + 1\"}\n"
                                "equations: {T: {initial: \"x*y\", ddt: \"e{n}\"}}\n"
                                "time: {method: euler, dt: 1, steps: 1}\n"
                                "run: {fusion: %s}\n";

/* Kernels are compiled, and in the cache from the second time on. */
static const char transport_text[] = "trellis: 1\n"
                                     "grid: {cells: [16, 16, 16], periodic: [true, true, true]}\n"
                                     "parameters: {n: %d}\n"
                                     "equations:\n"
                                     "  \"phi{i}\":\n"
                                     "    for: {i: 1..n}\n"
                                     "    initial: \"sin(2*pi*(x + i/n))\"\n"
                                     "    ddt: \"div(i*1e-4*grad(phi{i}) - advective_flux(phi{i}, [1, 0.5, 0.25]))\"\n"
                                     "time: {method: %s, dt: 1e-4, steps: 1}\n"
                                     "run: {compile: always}\n";

/* Seconds of the phases, in the order of the columns. */
typedef enum phase { READ, CREATE, INITIALISE, STEP, PHASES } phase;
static const char *const phase_name[PHASES] = {"read", "create", "initialise", "first_step"};

/* T + dt*(T + n) after the one step of dt = 1. */
static trl_err check(trli_bench *bench, const trl_simulation *sim, int n)
{
    trl_array t = trl_simulation_array(sim, 0, 0);
    double start = 0.5 / 8 * (0.5 / 8), expected = start + (start + n), found = *(const double *)t.at;
    if (fabs(found - expected) <= 1e-9 * expected) return TRL_OK;
    return trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "a chain of %d expressions gives %.17g instead of %.17g", n, found,
                    expected);
}

/* One deck, and what its first step has to give; NULL: anything. */
typedef struct subject {
    const char *text, *word;    /* with the number and the word */
    const char *count, *choice; /* their names */
    int n;
    trl_err (*check)(trli_bench *bench, const trl_simulation *sim, int n);
} subject;

static trl_err build_once(trli_bench *bench, const subject *of, double seconds[PHASES])
{
    char text[1024];
    trli_case c;
    trl_err err = TRL_OK;
    snprintf(text, sizeof text, of->text, of->n, of->word);
    TRL_TRY(trli_case_create(bench->ctx, text, TRLI_ON_CORES, &c));
    double start = trli_bench_clock();
    TRL_TRY(trl_simulation_step(c.sim));
    seconds[STEP] = trli_bench_clock() - start;
    seconds[READ] = c.read;
    seconds[CREATE] = c.create;
    seconds[INITIALISE] = c.initialise;
    if (of->check) TRL_TRY(of->check(bench, c.sim, of->n));
done:
    trli_case_destroy(&c);
    return err;
}

static trl_err build(trli_bench *bench, const subject *of)
{
    double seconds[PHASES + 1][REPETITIONS], once[PHASES];
    int repetitions = bench->quick ? QUICK_REPETITIONS : REPETITIONS;
    trli_json *json = bench->json;
    trl_err err = TRL_OK;
    TRL_TRY(build_once(bench, of, once)); /* fills the caches, that of kernels too */
    for (int r = 0; r < repetitions; ++r) {
        TRL_TRY(build_once(bench, of, once));
        for (int p = 0; p < PHASES; ++p) seconds[p][r] = once[p];
        seconds[PHASES][r] = once[READ] + once[CREATE];
    }
    trli_json_begin_object(json);
    trli_json_key(json, of->count);
    trli_json_integer(json, of->n);
    trli_json_key(json, of->choice);
    trli_json_string(json, of->word);
    printf("%11d %6s", of->n, of->word);
    for (int p = 0; p <= PHASES; ++p) {
        trli_spread s = trli_spread_of(seconds[p], repetitions);
        printf("  %7.1f (%7.1f to %7.1f)", 1e3 * s.median, 1e3 * s.min, 1e3 * s.max);
        trli_spread_report(json, p < PHASES ? phase_name[p] : "read_and_create", &s);
    }
    putchar('\n');
    trli_json_end_object(json);
done:
    return err;
}

static void print_head(const char *what, const char *choice)
{
    printf("%11s %6s", what, choice);
    for (int p = 0; p <= PHASES; ++p) printf("  %28s", p < PHASES ? phase_name[p] : "read and create");
    putchar('\n');
}

trl_err trli_bench_build(trli_bench *bench)
{
    static const char *const fusions[] = {"full", "node"}, *const methods[] = {"euler", "rk4"};
    const int sizes[] = {bench->quick ? 100 : 8000, bench->quick ? 1000 : 100000};
    const int scalars[] = {bench->quick ? 2 : 16, bench->quick ? 4 : 60, bench->quick ? 8 : 200};
    trl_err err = TRL_OK;
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    puts("milliseconds, median (least to most)");
    print_head("expressions", "fusion");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
        for (size_t f = 0; f < sizeof fusions / sizeof *fusions; ++f)
            TRL_TRY(build(bench, &(subject){deck_text, fusions[f], "expressions", "fusion", sizes[s], check}));
    print_head("scalars", "method");
    for (size_t s = 0; s < sizeof scalars / sizeof *scalars; ++s)
        for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m)
            TRL_TRY(build(bench, &(subject){transport_text, methods[m], "scalars", "method", scalars[s], NULL}));
    trli_json_end_array(bench->json);
done:
    return err;
}
