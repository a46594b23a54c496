/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What steps leave to later ones beside the state: corrections of first guesses. */
#include "parameters_impl.h"
#include "solving_impl.h"
#include "symbols_impl.h"

int trli_solving_solves(const struct trli_solving *so)
{
    const trl_integrator *m = so->sim->integrator;
    if (!so->in_steps || m->multistep) return 0;
    return m->implicit ? (m->stages - 1) * trli_flow_passes(so->sim) + 1 : m->stages;
}

void trli_solving_begin_step(const trl_simulation *sim)
{
    for (int k = 0; k < trli_solving_count(sim); ++k) trli_solver_begin_step(sim->solving->solver[k]);
}

void trli_solving_leave_step(const trl_simulation *sim)
{
    for (int k = 0; k < trli_solving_count(sim); ++k) trli_solver_leave_step(sim->solving->solver[k]);
}

void trli_solving_end_step(const trl_simulation *sim, bool accepted)
{
    for (int k = 0; k < trli_solving_count(sim); ++k) trli_solver_end_step(sim->solving->solver[k], accepted);
}

void trli_solving_forget_steps(const trl_simulation *sim)
{
    for (int k = 0; k < trli_solving_count(sim); ++k) trli_solver_forget_steps(sim->solving->solver[k]);
}

int trl_simulation_carried(const trl_simulation *sim)
{
    int n = 0;
    for (int k = 0; k < trli_solving_count(sim); ++k) n += trli_solver_carried(sim->solving->solver[k]);
    return n;
}

/* The solver of the i-th field, which is the *i-th one of it. */
static trli_solver *solver_of(const trl_simulation *sim, int *i)
{
    int k = 0;
    for (; *i >= trli_solver_carried(sim->solving->solver[k]); ++k) *i -= trli_solver_carried(sim->solving->solver[k]);
    return sim->solving->solver[k];
}

static int find_field(const trl_simulation *sim, int i, bool *known)
{
    const trli_solver *solver = solver_of(sim, &i);
    return trli_solver_carried_field(solver, i, known);
}

trl_carried_info trl_simulation_carried_field(const trl_simulation *sim, int i)
{
    bool known;
    const trli_model_field *f = &sim->model->field[find_field(sim, i, &known)];
    return (trl_carried_info){.name = f->name,
                              .location = f->location,
                              .location_word = trli_location_text(sim->model, (int)f->location),
                              .known = known};
}

trl_array trl_simulation_carried_array(const trl_simulation *sim, int i, int local_patch)
{
    bool known;
    const int field = find_field(sim, i, &known);
    const trl_err err = trli_frame_fetch_patch(sim->frame, field, local_patch);
    if (err != TRL_OK) ((trl_simulation *)sim)->fetched = err;
    return trli_frame_array(sim->frame, field, local_patch, 0);
}

void trl_simulation_carry(trl_simulation *sim, int i)
{
    trli_solver *solver = solver_of(sim, &i);
    trli_solver_carry(solver, i);
}
