/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a solver makes ready for an operator: the diagonal, coarser grids, the direct solution; and what it chooses. */
#include <math.h>

#include "diagonal_impl.h"
#include "direct_impl.h"
#include "lu_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "solve_prepare_impl.h"

const char trli_cycles_failed[] = "its cycles did not lead to the solution";

bool trli_solver_is_doubtful(const trli_solver *s)
{
    const trli_variable *v = &s->sim->model->variable[s->ask.variable[0]];
    return v->location != TRL_CELL || v->mask || s->coupled;
}

/* ---- what is compiled ---- */

trl_err trli_solver_choose_direct(trli_solver *s)
{
    const trl_solver_entry *e = &s->settings;
    const bool asked = e->method == TRL_SOLVE_DIRECT;
    const char *missing = trli_direct_missing(s);
    const bool automatic = e->method == TRL_SOLVE_AUTO && e->preconditioner == TRL_PRECONDITIONER_AUTO;
    if (asked && missing) return trli_direct_impossible(s, missing);
    if (e->method == TRL_SOLVE_LU && trli_lu_missing(s)) return trli_lu_impossible(s, trli_lu_missing(s));
    s->stats.no_direct = missing || asked || automatic ? missing : "the deck names another way; auto would try it";
    return missing || !(asked || automatic) ? TRL_OK : trli_direct_create(s);
}

trl_err trli_solver_choose_preconditioner(trli_solver *s)
{
    const trl_solver_entry *e = &s->settings;
    const char *missing = trli_multigrid_missing(s);
    const bool asked = e->preconditioner == TRL_PRECONDITIONER_MULTIGRID || e->method == TRL_SOLVE_MULTIGRID;
    trl_err err = TRL_OK;
    if (asked && missing)
        return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &e->place,
                        "there is no multigrid for '%s', because %s: use method auto and preconditioner jacobi",
                        s->ask.names, missing);
    if (e->preconditioner == TRL_PRECONDITIONER_JACOBI && s->inverse_value[0] < 0)
        return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &e->place,
                        "the operator's diagonal for '%s' is not known as a formula: use preconditioner none",
                        s->ask.names);
    if (!missing && !asked) missing = trli_multigrid_unasked(s);
    if (!missing && trli_direct_is_sure(s)) missing = "the system is solved directly";
    s->stats.no_multigrid = e->preconditioner == TRL_PRECONDITIONER_AUTO ? missing : NULL;
    if (asked || (!missing && e->preconditioner == TRL_PRECONDITIONER_AUTO)) {
        TRL_TRY(trli_solver_compile_skewness(s));
        TRL_TRY(trli_multigrid_compile(s));
        s->stats.levels = trli_multigrid_levels(s->multigrid);
    }
done:
    return err;
}

/* ---- what is made ready ---- */

/* By Gershgorin's theorem, of a matrix over its diagonal whose rows have magnitudes of this sum at most. */
static double condition_of(double row)
{
    return row < 2 ? row / (2 - row) : INFINITY;
}

/* Of conjugate gradients with jacobi at most; INFINITY where the condition is not known. */
static double expected_iterations(const trli_solver *s, double condition)
{
    const double root = sqrt(condition), rate = log((root + 1) / fmax(root - 1, 1e-8));
    return isfinite(condition) ? ceil(log(2 / s->settings.tolerance) / rate) : INFINITY;
}

/* Of jacobi's iterations, or where the condition is not known of cycles, the operations for each point. */
static double expected_operations(const trli_solver *s)
{
    const double iteration = 35, cycles = 8 * 220;
    const double row = s->bounded ? trli_solver_largest_row(s) : 2;
    return fmin(cycles, iteration * expected_iterations(s, condition_of(row)));
}

/* *does: the system is solved directly. */
static trl_err prepare_direct(trli_solver *s, bool *does)
{
    const char *why = NULL;
    trl_err err = TRL_OK;
    *does = false;
    s->stats.direct = NULL;
    const bool asked = s->settings.method == TRL_SOLVE_DIRECT;
    if (!s->direct || s->factored) return TRL_OK;
    if (s->direct_failed) goto done;
    TRL_TRY(trli_direct_prepare(s->direct, &why));
    if (why && asked) return trli_direct_impossible(s, why);
    s->stats.operations = trli_direct_cost(s->direct);
    s->stats.other_operations = expected_operations(s);
    if (!why && !asked && s->stats.operations > s->stats.other_operations) why = "other methods cost less";
    s->stats.no_direct = why;
    if (why) goto done;
    s->stats.direct = trli_direct_words(s->direct);
    *does = true;
done:
    if (!asked) s->method = *does ? TRL_SOLVE_DIRECT : s->krylov;
    return err;
}

trl_err trli_solver_run_diagonal(trli_solver *s)
{
    trl_err err = TRL_OK;
    if (!s->known) {
        s->known = trli_model_keep(s->sim->model, ((size_t)s->sim->model->nscalars + 1) * sizeof *s->known);
        if (!s->known) err = trli_no_memory(s->sim->ctx, NULL, "for a solver");
        TRL_TRY(trl_context_agree(s->sim->ctx, err));
    }
    const bool changed = trli_solver_scalars_change(s, s->known);
    if (s->current && !changed && s->linear && !trli_solver_reads_fields(s)) return TRL_OK;
    s->current = false;
    if (s->diagonal) TRL_TRY(trli_solver_program(s, s->diagonal));
    s->current = true;
    ++s->ndiagonals;
done:
    return err;
}

/* Whether cycles leave alone what makes the condition large: entries of other unknowns that are in no block, where rows
 * are not dominated by the diagonal, or jacobi has iterations enough for it. */
static bool is_of_coupling(const trli_solver *s, double row, double least)
{
    const double clearly = 2.1, condition = condition_of(row);
    if (s->block_value || !(condition_of(trli_solver_largest_own_row(s)) < least)) return false;
    return row > clearly || expected_iterations(s, condition) <= s->settings.iterations;
}

/* Find the diagonal, and whether cycles of multigrid pay: with jacobi, conjugate gradients take a number of iterations
 * that grows with the root of the condition, which Gershgorin's theorem bounds where rows are dominated by it. For
 * implicit diffusion the bound is 1 + 4 gamma dt times the sum of D/h^2 over the axes. In Newton's method systems are
 * solved less exactly, and coarser grids get other coefficients for each of them. */
static trl_err find_diagonal(trli_solver *s)
{
    const double least_of_one = s->linear || s->ask.products_alone ? 15 : 60, row_most = 5;
    const double condition_least = s->constraint ? 1.3 : least_of_one; /* jacobi does not know of pairs */
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_run_diagonal(s));
    if (!s->multigrid) return TRL_OK;
    const double row = trli_solver_largest_row(s);
    s->stats.condition = condition_of(row);
    const bool worth = (row <= row_most || !trli_solver_is_doubtful(s)) && !(s->stats.condition < condition_least) &&
                       !is_of_coupling(s, row, condition_least);
    s->cycles = s->settings.preconditioner == TRL_PRECONDITIONER_MULTIGRID ||
                s->settings.method == TRL_SOLVE_MULTIGRID || s->insists || (worth && !s->cycles_failed);
done:
    return err;
}

/* Coarser grids get what the diagonal was found for. */
static trl_err prepare_multigrid(trli_solver *s)
{
    trl_err err = TRL_OK;
    if (s->coarsened == s->ndiagonals) return TRL_OK;
    s->coarsened = 0;
    TRL_TRY(trli_multigrid_prepare(s->multigrid, s->time));
    s->coarsened = s->ndiagonals;
done:
    return err;
}

bool trli_solver_may_be_questionable(const trli_solver *s)
{
    const trl_solve_method asked = s->settings.method;
    return s->settings.preconditioner == TRL_PRECONDITIONER_AUTO && asked != TRL_SOLVE_MULTIGRID &&
           asked != TRL_SOLVE_CG;
}

bool trli_solver_is_questionable(const trli_solver *s)
{
    return trli_solver_may_be_questionable(s) && s->method != TRL_SOLVE_CG;
}

/* *good: coarser grids may have the equation, or have entries. */
static trl_err judge_equation(trli_solver *s, bool *good)
{
    const bool others = s->coarsened != s->ndiagonals;
    trl_err err = TRL_OK;
    *good = s->constraint != NULL;
    if (*good) return TRL_OK;
    if (others && !trli_multigrid_by_entries(s->multigrid)) TRL_TRY(trli_solver_find_skewness(s));
    *good = !s->skewed || s->tied || trli_multigrid_galerkin(s->multigrid);
done:
    return err;
}

trl_err trli_solver_prepare_cycles(trli_solver *solver, double gamma, bool *cycles)
{
    double *dt = &solver->sim->frame->scalar[TRLI_SCALAR_DT];
    const double full = *dt;
    trl_err err = TRL_OK;
    *cycles = solver->current = false; /* coarser grids have gamma in place of dt */
    TRL_TRY(find_diagonal(solver));
    if (!solver->cycles) return TRL_OK;
    TRL_TRY(judge_equation(solver, cycles));
    if (!*cycles) return TRL_OK;
    *dt = gamma;
    err = prepare_multigrid(solver);
    *dt = full;
done:
    return err;
}

trl_err trli_solver_refresh(trli_solver *solver)
{
    solver->current = false;
    return trli_solver_run_diagonal(solver);
}

trl_err trli_solver_choose_start(trli_solver *s, bool *directly)
{
    trl_err err = TRL_OK;
    *directly = false;
    if (!s->direct) return TRL_OK;
    TRL_TRY(find_diagonal(s));
    err = prepare_direct(s, directly);
done:
    return err;
}

static trl_err prepare_cycles(trli_solver *s)
{
    bool good;
    const bool questionable = trli_solver_is_questionable(s);
    const char **why = &s->stats.no_multigrid;
    trl_err err = TRL_OK;
    *why = s->cycles_failed && !s->insists ? trli_cycles_failed : NULL;
    s->cycles &= s->insists || !(questionable && s->method == TRL_SOLVE_DIRECT);
    if (!s->cycles) return TRL_OK;
    TRL_TRY(judge_equation(s, &good));
    if (!good && !s->insists)
        *why = "its operator is not symmetric, and coarser grids have the equation";
    else
        TRL_TRY(prepare_multigrid(s));
    if (!*why && (questionable || s->insists) && trli_multigrid_is_mixed(s->multigrid))
        *why = "its operator is not symmetric, and beside the diagonal it has large entries of both signs";
    s->cycles = !*why;
done:
    return err;
}

trl_err trli_solver_prepare(trli_solver *s)
{
    bool directly;
    trl_err err = TRL_OK;
    TRL_TRY(find_diagonal(s));
    TRL_TRY(prepare_direct(s, &directly));
    if (s->multigrid) err = prepare_cycles(s);
    s->prepared = true;
done:
    return err;
}

bool trli_solver_is_prepared(const trli_solver *s)
{
    return s->current && s->linear && !trli_solver_reads_fields(s) && !trli_solver_scalars_differ(s, s->known) &&
           s->cycles && s->coarsened == s->ndiagonals;
}

const char *trli_solver_preconditioner(const trli_solver *s)
{
    if (s->method == TRL_SOLVE_MULTIGRID || s->method == TRL_SOLVE_DIRECT || s->method == TRL_SOLVE_LU) return "none";
    return s->cycles ? "multigrid" : s->inverse_value[0] < 0 ? "none" : "jacobi";
}

trl_err trli_solver_foresee(trli_solver *solver, trl_gidx step, double time)
{
    bool directly;
    trl_err err = TRL_OK;
    if (!solver->linear || trli_solver_reads_fields(solver)) return TRL_OK;
    solver->step = step;
    solver->time = time;
    TRL_TRY(find_diagonal(solver));
    TRL_TRY(prepare_direct(solver, &directly));
    solver->stats.preconditioner = trli_solver_preconditioner(solver);
done:
    return err;
}
