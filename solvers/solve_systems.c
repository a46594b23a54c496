/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* All systems of a simulation: those of equations that are solved, and that of implicit steps. */
#include "multigrid_impl.h"
#include "multistep_impl.h"
#include "solving_impl.h"

int trli_solving_count(const trl_simulation *sim)
{
    return sim->solving ? sim->solving->nsolvers : 0;
}

const trli_solver *trli_solving_solver(const trl_simulation *sim, int solver)
{
    return sim->solving->solver[solver];
}

int trl_simulation_solvers(const trl_simulation *sim)
{
    return trli_solving_count(sim) + (trli_implicit_solver(sim) || trli_multistep_solver(sim));
}

static const trli_solver *of_steps(const trl_simulation *sim)
{
    return sim->multistep ? trli_multistep_solver(sim) : trli_implicit_solver(sim);
}

const trli_solver *trli_solving_nth(const trl_simulation *sim, int solver)
{
    return solver < trli_solving_count(sim) ? trli_solving_solver(sim, solver) : of_steps(sim);
}

const trl_solve_stats *trl_simulation_solver(const trl_simulation *sim, int solver)
{
    return &trli_solving_nth(sim, solver)->stats;
}

const trl_grid *trli_solving_grid(const trl_simulation *sim, int solver, int level)
{
    return trli_multigrid_grid(trli_solving_nth(sim, solver)->multigrid, level);
}

const trl_simulation *trli_solving_level(const trl_simulation *sim, int solver, int level)
{
    const struct trli_multigrid *m = trli_solving_nth(sim, solver)->multigrid;
    return m && level < trli_multigrid_levels(m) ? trli_multigrid_simulation(m, level) : NULL;
}
