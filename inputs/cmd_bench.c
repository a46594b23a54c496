/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis bench`: the benchmarks of tests/benchmarks. */
#include "command_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trl_formula.h>

#include "../tests/benchmarks/bench_impl.h"
#include "files_impl.h"
#include "memory_impl.h"

enum { NAMES_MAX = 32 };

static trl_err find(trl_context *ctx, const char *name, const trli_benchmark **benchmark)
{
    const char *names[NAMES_MAX];
    char list[256] = "";
    int n;
    const trli_benchmark *table = trli_benchmarks(&n);
    for (int i = 0; i < n; ++i) {
        names[i] = table[i].name;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
        if (strcmp(name, names[i])) continue;
        *benchmark = &table[i];
        return TRL_OK;
    }
    const char *nearest = trl_name_nearest(name, names, n);
    if (nearest)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis bench: unknown benchmark '%s'; did you mean '%s'?", name,
                        nearest);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis bench: unknown benchmark '%s'; known are: %s", name, list);
}

static trl_err write_json(trl_context *ctx, trli_json **json, const char *path)
{
    char *text = NULL;
    trl_err err = trli_json_finish(json, &text);
    if (err == TRL_OK && path) err = trli_file_write(ctx, path, text, strlen(text));
    trli_free(text);
    return err;
}

static trl_err read_minutes(trl_context *ctx, const trli_arguments *arguments, double *minutes)
{
    const char *text = trli_arguments_value(arguments, "--minutes");
    char *end = NULL;
    *minutes = text ? strtod(text, &end) : 0;
    if (!text || (*end == 0 && end > text && *minutes > 0 && isfinite(*minutes))) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis bench: --minutes takes a number above 0, not '%s'", text);
}

/* What cannot be written at the end is found at the start. Rank 0 looks. */
static trl_err prepare_files(trl_context *ctx, const char *json, const char *pictures)
{
    trl_err err = TRL_OK;
    if (trl_context_rank(ctx) > 0) goto done;
    if (json) TRL_TRY(trli_file_check(ctx, "bench", "--json", json));
    if (json) TRL_TRY(trli_folder_create_for(ctx, json));
    if (pictures) err = trli_folder_create(ctx, pictures);
done:
    return trl_context_agree(ctx, err);
}

static trl_err measure(trl_context *ctx, const trli_benchmark *benchmark, const trli_arguments *arguments)
{
    const char *path = trli_arguments_value(arguments, "--json");
    trli_bench bench = {.ctx = ctx,
                        .quick = trli_arguments_value(arguments, "--quick") != NULL,
                        .figure = trli_arguments_value(arguments, "--figure"),
                        .pictures = trli_arguments_value(arguments, "--pictures"),
                        .parts = trli_arguments_value(arguments, "--parts"),
                        .cells = trli_arguments_value(arguments, "--cells"),
                        .ranks = trli_arguments_value(arguments, "--ranks"),
                        .threads = trl_context_threads(ctx)};
    trl_err err = TRL_OK;
    TRL_TRY(read_minutes(ctx, arguments, &bench.minutes));
    TRL_TRY(prepare_files(ctx, path, bench.pictures));
    TRL_TRY(trli_json_create(ctx, &bench.json));
    trli_json_begin_object(bench.json);
    trli_json_key(bench.json, "benchmark");
    trli_json_string(bench.json, benchmark->name);
    trli_json_key(bench.json, "version");
    trli_json_string(bench.json, TRL_VERSION);
    trli_json_key(bench.json, "build");
    trli_json_string(bench.json, TRL_BUILD_OPTIONS);
    printf("%s: %s\n", benchmark->name, benchmark->doc);
    TRL_TRY(benchmark->run(&bench));
    trli_json_end_object(bench.json);
    TRL_TRY(trl_context_agree(ctx, write_json(ctx, &bench.json, trl_context_rank(ctx) == 0 ? path : NULL)));
done:
    trli_json_destroy(&bench.json);
    return err;
}

bool trli_bench_on_ranks(int argc, char **argv)
{
    int n;
    const trli_benchmark *table = trli_benchmarks(&n);
    for (int i = 0; i < argc * n; ++i)
        if (table[i % n].collective && strcmp(argv[i / n], table[i % n].name) == 0) return true;
    return false;
}

int trli_cmd_bench(trl_context *ctx, const trli_arguments *arguments)
{
    const trli_benchmark *benchmark;
    trl_err err = TRL_OK;
    const bool silent = trl_context_rank(ctx) > 0; /* the first rank prints what all have measured */
    if (silent && !freopen("/dev/null", "w", stdout))
        err = trl_fail(ctx, TRL_ERR_IO, NULL, "/dev/null cannot be opened");
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(find(ctx, arguments->operand[0], &benchmark));
    TRL_TRY(measure(ctx, benchmark, arguments));
done:
    return trli_command_finish(ctx, err);
}
