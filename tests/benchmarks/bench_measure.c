/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_impl.h"

const trli_benchmark *trli_benchmarks(int *count)
{
    static const trli_benchmark table[] = {
#define BENCHMARK_ROW(name, collective, doc) {#name, doc, collective, trli_bench_##name},
        TRLI_BENCHMARK_LIST(BENCHMARK_ROW)
#undef BENCHMARK_ROW
    };
    *count = (int)(sizeof table / sizeof *table);
    return table;
}

double trli_bench_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

trl_err trli_bench_list(const trli_bench *bench, const char *option, const char *text, const char *otherwise,
                        trli_numbers *numbers)
{
    const long most = 1 << 20;
    const char *at = text ? text : otherwise;
    char *end;
    numbers->n = 0;
    for (;; at = end + 1) {
        const long number = strtol(at, &end, 10);
        const bool whole = end > at && *at >= '0' && *at <= '9' && (*end == ',' || *end == 0);
        if (!whole || number < 1 || number > most || numbers->n == TRLI_NUMBERS_MOST)
            return trl_fail(
                bench->ctx, TRL_ERR_INPUT, NULL,
                "trellis bench: %s takes up to %d whole numbers from 1 to %ld, separated by commas, not '%s'", option,
                TRLI_NUMBERS_MOST, most, text);
        numbers->at[numbers->n++] = (int)number;
        if (*end == 0) return TRL_OK;
    }
}

trl_err trli_bench_parts(const trli_bench *bench, const char *benchmark, const char *const *name, int n, bool *wanted)
{
    enum { LIST_ROOM = 256 };
    char known[LIST_ROOM] = "";
    for (int i = 0; i < n; ++i) {
        const size_t used = strlen(known);
        wanted[i] = !bench->parts;
        if (i > 0 && strcmp(name[i], name[i - 1]) == 0) continue;
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", name[i]);
    }
    for (const char *at = bench->parts; at && *at;) {
        const size_t length = strcspn(at, ",");
        bool found = false;
        for (int i = 0; i < n; ++i) {
            if (strlen(name[i]) != length || strncmp(name[i], at, length) != 0) continue;
            found = wanted[i] = true;
        }
        if (!found)
            return trl_fail(bench->ctx, TRL_ERR_INPUT, NULL, "trellis bench %s: there is no part '%.*s'; use %s",
                            benchmark, (int)length, at, known);
        at += length;
        at += *at == ',';
    }
    return TRL_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

trli_spread trli_spread_of(double *number, int n)
{
    qsort(number, (size_t)n, sizeof *number, compare);
    return (trli_spread){0.5 * (number[(n - 1) / 2] + number[n / 2]), number[0], number[n - 1]};
}

void trli_spread_report(trli_json *json, const char *key, const trli_spread *spread)
{
    trli_json_key(json, key);
    trli_json_begin_object(json);
    trli_json_key(json, "median");
    trli_json_number(json, spread->median);
    trli_json_key(json, "min");
    trli_json_number(json, spread->min);
    trli_json_key(json, "max");
    trli_json_number(json, spread->max);
    trli_json_end_object(json);
}

trl_err trli_rounds_run(trli_contender *contender, int n, int rounds)
{
    trl_err err = TRL_OK;
    for (int r = -1; r < rounds; ++r) {
        for (int i = 0; i < n; ++i) {
            trli_contender *c = &contender[r % 2 ? n - 1 - i : i];
            double start = trli_bench_clock();
            TRL_TRY(c->run(c->data));
            if (r >= 0) c->seconds[r] = trli_bench_clock() - start;
            if (c->after) TRL_TRY(c->after(c->data));
        }
        for (int c = 0; c < n; ++c)
            if (contender[c].check) TRL_TRY(contender[c].check(contender[c].data));
    }
done:
    return err;
}

trli_spread trli_rate(const trli_contender *contender, int rounds, double amount)
{
    double rate[TRLI_ROUNDS_MAX];
    for (int r = 0; r < rounds; ++r) rate[r] = amount / contender->seconds[r];
    return trli_spread_of(rate, rounds);
}

trli_spread trli_ratio(const trli_contender *contender, const trli_contender *other, int rounds)
{
    double ratio[TRLI_ROUNDS_MAX];
    for (int r = 0; r < rounds; ++r) ratio[r] = other->seconds[r] / contender->seconds[r];
    return trli_spread_of(ratio, rounds);
}
