/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis check`: everything that can be wrong before step 0. */
#include "command_impl.h"

#include <trl_simulation.h>

#include "files_impl.h"

/* Whether the output folder, or the nearest folder above it that exists, can be written to. */
static trl_err check_writable(trl_context *ctx, const trli_deck_options *options)
{
    char reason[TRLI_FILE_REASON];
    if (trli_folder_possible(options->directory, reason)) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, &options->directory_place, "the output folder '%s' cannot be written: %s",
                    options->directory, reason);
}

static int count_warnings(const trl_context *ctx)
{
    const trl_diagnostic *list;
    int warnings = 0, n = trl_context_diagnostics(ctx, &list);
    for (int i = 0; i < n; ++i) warnings += list[i].severity == TRL_WARNING;
    return warnings;
}

int trli_cmd_check(trl_context *ctx, const trli_arguments *arguments)
{
    trl_registry *registry;
    trli_deck *deck;
    trl_simulation *sim = NULL;
    trl_err err = TRL_OK;
    trl_context_begin_phase(ctx);
    trl_context_set_stop(ctx, trli_signals_name);
    TRL_TRY(trli_command_deck(ctx, arguments, &registry, &deck));
    TRL_TRY(trl_simulation_create(ctx, trli_deck_problem(deck), &sim));
    TRL_TRY(trl_simulation_initialise(sim));
    TRL_TRY(check_writable(ctx, trli_deck_options_of(deck)));
    TRL_TRY(trli_deck_check_kept(ctx, deck));
done:
    err = trl_context_end_phase(ctx, err);
    if (err == TRL_OK && trl_context_rank(ctx) == 0) {
        int warnings = count_warnings(ctx);
        printf("%s: no errors, %d warning%s\n", arguments->operand[0], warnings, warnings == 1 ? "" : "s");
    }
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
    int status = trli_command_finish(ctx, err);
    /* What would stop the run, as values that are not finite, is wrong in the deck already. */
    return status == trl_err_exit_code(TRL_ERR_NUMERICS) ? trl_err_exit_code(TRL_ERR_INPUT) : status;
}
