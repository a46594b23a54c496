/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis kernels`: the source that would be compiled for a deck. */
#include "command_impl.h"

#include <string.h>

#include <trl_simulation.h>

static trl_err find_kind(trl_context *ctx, const char *name, trl_kind *kind)
{
    *kind = name && strcmp(name, "gpu") == 0 ? TRL_KIND_GPU : TRL_KIND_CPU;
    if (!name || *kind == TRL_KIND_GPU || strcmp(name, "cpu") == 0) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "--device takes cpu or gpu, not '%s'", name);
}

int trli_cmd_kernels(trl_context *ctx, const trli_arguments *arguments)
{
    trl_registry *registry = NULL;
    trli_deck *deck = NULL;
    trl_simulation *sim = NULL;
    trl_kind kind;
    trl_err err = TRL_OK;
    trl_context_begin_phase(ctx);
    trl_context_set_stop(ctx, trli_signals_name);
    TRL_TRY(find_kind(ctx, trli_arguments_value(arguments, "--device"), &kind));
    TRL_TRY(trli_command_deck(ctx, arguments, &registry, &deck));
    TRL_TRY(trl_simulation_create(ctx, trli_deck_problem(deck), &sim));
    const bool values = trli_arguments_value(arguments, "--values") != NULL;
    if (trl_context_rank(ctx) == 0)
        err = values ? trl_simulation_write_values(sim, stdout) : trl_simulation_write_kernels(sim, kind, stdout);
done:
    err = trl_context_end_phase(ctx, err);
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
    return trli_command_finish(ctx, err);
}
