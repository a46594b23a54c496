/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The order of the passes over the programs of a model. */
#include "cost_impl.h"
#include "parts_impl.h"
#include "pipeline_impl.h"

/* Which named values are stored decides what the kernels are, these what is read, and that which of them can set ghosts
 * themselves. */
static trl_err plan_program(trli_program *program)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_cut(program));
    TRL_TRY(trli_program_analyse(program));
    TRL_TRY(trli_program_fold(program));
    TRL_TRY(trli_program_count_work(program));
    TRL_TRY(trli_program_part(program));
done:
    return err;
}

trl_err trli_passes_run(trli_model *model)
{
    trl_err first = TRL_OK;
    for (int i = 0; i < model->nprograms; ++i) {
        const trl_err err = model->program[i] == model->lasting ? TRL_OK : plan_program(model->program[i]);
        if (first == TRL_OK) first = err;
    }
    return first;
}

trl_err trli_passes_run_lasting(trli_model *model)
{
    trl_err err = TRL_OK;
    if (!model->lasting) return TRL_OK;
    TRL_TRY(plan_program(model->lasting));
    for (int f = 0; f < model->nfields; ++f)
        if (model->field[f].lasting && !model->lasting->plan->demand[f].live) model->field[f].persistent = false;
done:
    return err;
}
