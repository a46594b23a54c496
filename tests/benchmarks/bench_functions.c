/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The interpreter's loops over elementary functions, on one thread and in the first-level cache, beside a loop of calls
 * of the system's library. */
#include <math.h>
#include <stdio.h>

#include <trl_formula.h>

#include "bench_impl.h"
#include "interpreter_impl.h"

enum { VALUES = 1024, ROUNDS = 15, QUICK_ROUNDS = 2, REPEATS = 200, QUICK_REPEATS = 2 };
#define WANTED 6.0 /* exp over the library's, with the widest vectors */

/* The library's function, and the arguments. */
static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double low, high;
} asked[] = {
    {"exp", exp, NULL, -20, 20},     {"expm1", expm1, NULL, -2, 2},   {"log", log, NULL, 0.01, 100},
    {"log1p", log1p, NULL, -0.9, 9}, {"log2", log2, NULL, 0.01, 100}, {"log10", log10, NULL, 0.01, 100},
    {"^", NULL, pow, 0.1, 10},       {"cbrt", cbrt, NULL, -10, 10},   {"sqrt", sqrt, NULL, 0, 10},
    {"sin", sin, NULL, -10, 10},     {"cos", cos, NULL, -10, 10},     {"tan", tan, NULL, -10, 10},
    {"asin", asin, NULL, -1, 1},     {"acos", acos, NULL, -1, 1},     {"atan", atan, NULL, -5, 5},
    {"atan2", NULL, atan2, -3, 3},   {"sinh", sinh, NULL, -5, 5},     {"cosh", cosh, NULL, -5, 5},
    {"tanh", tanh, NULL, -5, 5},     {"asinh", asinh, NULL, -5, 5},   {"acosh", acosh, NULL, 1, 10},
    {"atanh", atanh, NULL, -1, 1},   {"erf", erf, NULL, -3, 3},       {"erfc", erfc, NULL, -3, 6},
    {"hypot", NULL, hypot, -3, 3},   {"fmod", NULL, fmod, -9, 9},     {"floor", floor, NULL, -9, 9},
    {"ceil", ceil, NULL, -9, 9},     {"round", round, NULL, -9, 9},   {"trunc", trunc, NULL, -9, 9},
};
enum { ASKED = sizeof asked / sizeof *asked };

typedef struct loop {
    int which, repeats;
    double a[VALUES], b[VALUES], out[VALUES];
} loop;

static trl_err run_ours(void *data)
{
    loop *l = data;
    const trli_row_block block = {.out = l->out, .arg = {l->a, l->b, l->a, l->a, l->a}, .n = VALUES, .rows = 1};
    const trl_function *f = trl_function_find(asked[l->which].name);
    int count, op = !f ? TRLI_OP_POW : f->arity == 1 ? TRLI_OP_FUNCTION1 : TRLI_OP_FUNCTION2;
    int index = f ? (int)(f - trl_functions(&count)) : 0;
    trli_row row = trli_row_find(op, 0);
    for (int r = 0; r < l->repeats; ++r) {
        if (row)
            row(&block);
        else
            trli_row_indexed(op, index, &block);
    }
    return TRL_OK;
}

/* Called through pointers, the functions stay calls. */
static trl_err run_library(void *data)
{
    loop *l = data;
    double (*volatile one)(double) = asked[l->which].one;
    double (*volatile two)(double, double) = asked[l->which].two;
    for (int r = 0; r < l->repeats; ++r) {
        double (*f)(double) = one;
        double (*g)(double, double) = two;
        if (f)
            for (int i = 0; i < VALUES; ++i) l->out[i] = f(l->a[i]);
        else
            for (int i = 0; i < VALUES; ++i) l->out[i] = g(l->a[i], l->b[i]);
    }
    return TRL_OK;
}

static trl_err measure(trli_bench *bench, int which, trli_spread *faster)
{
    loop l = {.which = which, .repeats = bench->quick ? QUICK_REPEATS : REPEATS};
    trli_contender contender[] = {{.name = "Trellis", .run = run_ours, .data = &l},
                                  {.name = "libm", .run = run_library, .data = &l}};
    int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    double per_value = 1e9 / VALUES / l.repeats;
    trl_err err = TRL_OK;
    for (int i = 0; i < VALUES; ++i) {
        double part = (i + 0.5) / VALUES;
        l.a[i] = asked[which].low + (asked[which].high - asked[which].low) * part;
        l.b[i] = 0.1 + 3 * fmod(part * 7919, 1);
    }
    TRL_TRY(trli_rounds_run(contender, 2, rounds));
    *faster = trli_ratio(&contender[0], &contender[1], rounds);
    trli_spread ours = trli_spread_of(contender[0].seconds, rounds);
    trli_spread theirs = trli_spread_of(contender[1].seconds, rounds);
    printf("%-6s %8.2f %8.2f %8.1f (%.1f, %.1f)\n", asked[which].name, ours.median * per_value,
           theirs.median * per_value, faster->median, faster->min, faster->max);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "function");
    trli_json_string(bench->json, asked[which].name);
    trli_json_key(bench->json, "ns_per_value");
    trli_json_number(bench->json, ours.median * per_value);
    trli_json_key(bench->json, "ns_per_value_libm");
    trli_json_number(bench->json, theirs.median * per_value);
    trli_spread_report(bench->json, "ratio_libm", faster);
    trli_json_end_object(bench->json);
done:
    return err;
}

trl_err trli_bench_functions(trli_bench *bench)
{
    trl_err err = TRL_OK;
    trli_spread faster, exponential = {0};
    trli_json_key(bench->json, "functions");
    trli_json_begin_array(bench->json);
    printf("%-6s %8s %8s  ratio: median (least, most)\n", "", "ns", "libm ns");
    for (int i = 0; i < ASKED; ++i) {
        TRL_TRY(measure(bench, i, &faster));
        if (i == 0) exponential = faster;
    }
    trli_json_end_array(bench->json);
    printf("exp: %.1f times as fast as libm, wanted on AVX-512: %.0f%s\n", exponential.median, WANTED,
           exponential.median < WANTED ? ", MISSED" : "");
done:
    return err;
}
