/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plan`: what a deck would run, without running it. */
#include "command_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <trl_simulation.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "files_impl.h"
#include "memory_impl.h"

static void print_line(void *data, const char *line)
{
    size_t length = strlen(line);
    fputs(line, data);
    if (!length || line[length - 1] != '\n') fputc('\n', data);
}

static trl_err write_graph(trl_context *ctx, const trl_simulation *sim, const char *prefix, const char *kind,
                           bool tasks)
{
    char *path = NULL;
    trli_new_file file = {.file = -1};
    FILE *out = NULL;
    trl_err err;
    if (!prefix[0] || prefix[strlen(prefix) - 1] == '/')
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "trellis plan: --dot '%s' is no beginning of names of files; use one as --dot graph", prefix));
    TRL_TRY(trli_format(ctx, &path, "%s.%s.dot", prefix, kind));
    TRL_TRY(trli_file_begin(ctx, path, true, &file));
    TRL_TRY(trli_file_stream(&file, &out));
    TRL_TRY(trl_simulation_write_dot(sim, tasks, out));
    if (fflush(out) != 0) err = trli_file_fail(ctx, "write", path, errno);
done:
    if (out) fclose(out);
    err = trli_file_end(&file, err);
    if (err == TRL_OK) printf("wrote %s\n", path);
    trli_free(path);
    return err;
}

/* The description is that of rank 0; the memory of the others follows from their own plans. */
static trl_err print_memory_of_ranks(trl_context *ctx, const trl_simulation *sim)
{
    trl_simulation_stats stats;
    trl_simulation_get_stats(sim, &stats);
    int64_t all[2] = {stats.planned_bytes, -stats.planned_bytes};
    trl_err err = trli_agree_max(ctx, TRL_OK, 2, all);
    if (err != TRL_OK) return err;
    if (trl_context_rank(ctx) == 0 && trl_context_ranks(ctx) > 1)
        printf("planned memory of a rank: %" PRId64 " to %" PRId64 " bytes on %d ranks\n", -all[1], all[0],
               trl_context_ranks(ctx));
    return TRL_OK;
}

static trl_err write_graphs(trl_context *ctx, const trl_simulation *sim, const char *prefix)
{
    trl_err err = TRL_OK;
    if (!prefix || trl_context_rank(ctx) != 0) return TRL_OK;
    TRL_TRY(write_graph(ctx, sim, prefix, "expressions", false));
    TRL_TRY(write_graph(ctx, sim, prefix, "tasks", true));
done:
    return err;
}

/* Steps until the means of the kernels' times say something: at least so many, and so long that compilers have ended.
 */
static trl_err measure(trl_context *ctx, trl_simulation *sim)
{
    const int least = 25;
    const double seconds = 2, start = trli_clock();
    int more = 1;
    trl_err err = TRL_OK;
    for (int n = 1; more && !trl_simulation_done(sim); ++n) {
        TRL_TRY(trl_simulation_step(sim));
        more = n < least || trli_clock() - start < seconds;
        TRL_TRY(trli_broadcast(ctx, &more, 1, MPI_INT, 0));
    }
done:
    return err;
}

int trli_cmd_plan(trl_context *ctx, const trli_arguments *arguments)
{
    bool verbose = trli_arguments_value(arguments, "--verbose") != NULL;
    trl_registry *registry;
    trli_deck *deck;
    trl_simulation *sim = NULL;
    trl_err err = TRL_OK, found;
    trl_context_begin_phase(ctx);
    trl_context_set_stop(ctx, trli_signals_name);
    TRL_TRY(trli_command_deck(ctx, arguments, &registry, &deck));
    TRL_TRY(trl_simulation_create(ctx, trli_deck_problem(deck), &sim));
    found = trl_simulation_initialise(sim); /* a plan is shown all the same, with what bounds dt */
    if (found == TRL_OK && trli_arguments_value(arguments, "--measure")) TRL_TRY(measure(ctx, sim));
    if (trl_context_rank(ctx) == 0) err = trl_simulation_describe(sim, verbose, print_line, stdout);
    TRL_TRY(err);
    TRL_TRY(print_memory_of_ranks(ctx, sim));
    TRL_TRY(write_graphs(ctx, sim, trli_arguments_value(arguments, "--dot")));
    err = found;
done:
    err = trl_context_end_phase(ctx, err);
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
    return trli_command_finish(ctx, err);
}
