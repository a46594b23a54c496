/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Decks that are solved once, for tests of multigrid. */
#ifndef MULTIGRID_DECKS_H
#define MULTIGRID_DECKS_H

#include "run_fixture.h"

#define ZERO "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}"
#define FREE "boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}"

/* What was solved for p by the deck's solver s on that many cells along both axes. */
static inline const trl_solve_stats *solve(const char *equations, int cells, const char *solver)
{
    int i = 0;
    open_text("grid: {cells: [%d, %d]}\nequations:\n%ssolvers: {s: %s}\n", cells, cells, equations, solver);
    while (!strchr(trl_simulation_solver(sim, i)->unknowns, 'p')) ++i;
    return trl_simulation_solver(sim, i);
}

#endif
