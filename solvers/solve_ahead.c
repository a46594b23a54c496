/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct solutions, and iterations, that a GPU is given before the host knows the residual that they are for: what
 * nobody has to decide on is trusted, and looked at while the GPU solves. Where the residual is not what was foreseen,
 * the solution counts not; the unknowns are where they were. */
#include "solve_ahead_impl.h"

#include "direct_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "lifecycle_impl.h"
#include "multigrid_impl.h"
#include "solve_prepare_impl.h"
#include "told_sums_impl.h"

trl_err trli_solver_program_telling(trli_solver *s, trli_program *program, bool *told)
{
    const trl_err err = trli_run_checked(s->sim, program, s->step, s->time, false);
    const trli_frame *frame = s->sim->frame;
    *told = err == TRL_OK && (trli_told_sums_come(frame, program) || trli_found_scalars_come(frame, program));
    return err;
}

trl_err trli_solver_program_later(trli_solver *s, trli_program *program, bool *told)
{
    s->sim->frame->fetches_later = true;
    const trl_err err = trli_solver_program_telling(s, program, told);
    s->sim->frame->fetches_later = false;
    return err;
}

trl_err trli_solver_take(const trli_solver *s, const trli_program *program, bool told)
{
    if (!told) return TRL_OK;
    return program->tells ? trli_told_sums_take(s->sim->frame, program)
                          : trli_found_scalars_take(s->sim->frame, program);
}

trl_err trli_solver_program(trli_solver *s, trli_program *program)
{
    bool told;
    trl_err err = TRL_OK;
    if (trli_program_is_empty(program)) return TRL_OK;
    TRL_TRY(trli_solver_program_telling(s, program, &told));
    err = trli_solver_take(s, program, told);
done:
    return err;
}

bool trli_solver_may_go_ahead(const trli_solver *s)
{
    const trli_variable *v = &s->sim->model->variable[s->ask.variable[0]];
    return s->of_zero_alone.program && v->location == TRL_CELL &&
           (!s->stats.singular || trli_direct_sets_mean(s->direct));
}

trl_err trli_solver_go_ahead(trli_solver *s, const trli_residual *r, const trli_measured *m)
{
    bool told;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program_telling(s, r->program, &told));
    if (m->told) TRL_TRY(trli_solver_take_means(s, m));
    if (told) TRL_TRY(trli_direct_go_ahead(s, s->stats.singular ? m->mean[0] : 0));
    s->ahead = told;
    TRL_TRY(trli_solver_take(s, r->program, told));
    if (told) err = trli_check_passed_step(s->sim);
done:
    return err;
}

/* ---- methods that iterate ---- */

void trli_solver_find_place(trli_solver *s)
{
    const bool next = s->step == s->placed_step;
    s->place = !next ? 0 : s->place + 1 < TRLI_PLACES ? s->place + 1 : s->place;
    s->placed_step = s->step;
}

void trli_solver_note_iterations(trli_solver *s)
{
    s->needed[s->place] = s->stats.last_iterations;
}

/* As the last solve in its place of a step did, this one is foreseen to need iterations. The host has a part in cycles
 * by entries, and would wait for the residual. */
trl_err trli_solver_begin_method(trli_solver *s)
{
    const trli_krylov_type *type = trli_krylov_of(s, s->method);
    trl_err err = TRL_OK;
    if (!type || !type->begin || s->needed[s->place] == 0 || !trli_solver_is_prepared(s)) return TRL_OK;
    if (trli_multigrid_by_entries(s->multigrid)) return TRL_OK;
    TRL_TRY(type->begin(s, trli_krylov_made(s, type)));
    s->ahead = true;
done:
    return err;
}

trl_err trli_solver_begin_launch(trli_solver *s)
{
    const trl_err err = s->launching ? TRL_OK : trli_chain_begin(s->sim->devices, &s->launch);
    s->launching += err == TRL_OK;
    return err;
}

trl_err trli_solver_end_launch(trli_solver *s)
{
    return --s->launching ? TRL_OK : trli_chain_end(s->sim->devices);
}
