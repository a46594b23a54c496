/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan's lines about what is solved. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algebraic_impl.h"
#include "cost_impl.h"
#include "describe_impl.h"
#include "execution_impl.h"
#include "galerkin_impl.h"
#include "model_run_impl.h"
#include "multigrid_impl.h"
#include "solve_prepare_impl.h"
#include "solver_keys_impl.h"
#include "solving_impl.h"

/* Seconds that the sums and vectors take which spare messages (docs/solvers.md): so long, and for each point. */
static const struct extra {
    double each, point;
} extra_cg = {0, 1.2e-9}, extra_bicgstab = {5e-6, 3.5e-9};

static bool has_gpus(const trli_listing *l)
{
    return l->sim->model->run->gpu_kernels != NULL;
}

/* Of n grids, those that are cut: the first ones. */
static int shared_grids(const trli_listing *l, int solver, int n)
{
    int shared = 0;
    while (shared < n && trli_solving_level(l->sim, solver, shared)->layout->npatches > 1) ++shared;
    return shared;
}

/* What the CPU keeps although there are GPUs. */
static void describe_levels_on_cpu(const trli_listing *l, int solver, int n)
{
    const int shared = shared_grids(l, solver, n);
    if (!has_gpus(l) || n < 2 || shared == 0) return;
    if (shared > 1)
        trli_listing_say(l, "  from each of the first %d grids to the next one, and back, by the CPU", shared);
    else
        trli_listing_say(l,
                         "  from the first grid to the next one, and back, by the CPU: it adds up what patches have");
}

/* Of n grids. */
static void say_whole(int shared, int grids, char *text, size_t size)
{
    if (shared == grids) {
        snprintf(text, size, "; the ranks share them all");
        return;
    }
    const int n = snprintf(text, size, "; each rank has all but the first");
    if (shared > 1) snprintf(text + n, size - (size_t)n, " %d", shared);
}

static void print_cells(const trl_grid *grid, char *text, size_t size)
{
    size_t used = 0;
    for (int a = 0; a < grid->dim && used < size; ++a)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, a ? " x " : "", grid->cells[a]);
}

/* Grids that are cut into fewer patches than there are ranks, those of as many patches in a line. */
static void describe_merged(const trli_listing *l, int solver, int n)
{
    char first[96], last[96];
    for (int k = 0, end; k < n; k = end) {
        const trl_layout *layout = trli_solving_level(l->sim, solver, k)->layout;
        const int patches = layout->npatches;
        for (end = k + 1; end < n && trli_solving_level(l->sim, solver, end)->layout->npatches == patches;) ++end;
        if (patches == 1 || patches >= layout->ranks) continue;
        print_cells(&layout->grid, first, sizeof first);
        print_cells(trli_solving_grid(l->sim, solver, end - 1), last, sizeof last);
        trli_listing_say(l, "  grid%s of %s%s%s cells: %d patches, each on %d ranks", end > k + 1 ? "s" : "", first,
                         end > k + 1 ? " to " : "", end > k + 1 ? last : "", patches, layout->ranks / patches);
    }
}

static void describe_smoother(const trli_listing *l, const trl_solve_stats *s)
{
    static const char *const axes[] = {"none", "x", "y", "x and y", "z", "x and z", "y and z", "x, y and z"};
    if (s->smoother == TRL_SMOOTHER_RED_BLACK)
        trli_listing_say(l, "  smoothed by relaxation of points, every other one first");
    if (s->smoother == TRL_SMOOTHER_LINE)
        trli_listing_say(l, "  smoothed by elimination of lines along %s on the first grid, every other one first%s",
                         axes[s->line_axes & 7], has_gpus(l) ? ", by the CPU" : "");
}

/* Of an unknown's coarser grids by entries, once they are made. */
static void describe_matrices_of(const trli_listing *l, const trli_algebraic *rest)
{
    const int n = rest ? trli_algebraic_levels(rest) : 0;
    char rows[256] = "", bytes[32];
    for (int k = 0; k < n; ++k) {
        const size_t used = strlen(rows);
        snprintf(rows + used, sizeof rows - used, "%s%d", k ? ", " : "", trli_algebraic_rows(rest, k));
    }
    if (n > 0)
        trli_listing_say(l, "  %d grids, beside the first of %s points%s; their entries take %s", n + 1, rows,
                         trl_context_ranks(l->sim->ctx) > 1 ? " on this rank" : "",
                         trli_with_unit(trli_algebraic_bytes(rest), bytes));
}

static void describe_matrices(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    for (int i = 0; i < s->ask.n; ++i)
        describe_matrices_of(l, trli_galerkin_rest(trli_multigrid_galerkin(s->multigrid), i));
}

/* Whether coarser grids have what they had in the last solution: they may have entries in one and not in another. */
static bool is_settled(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    return s->stats.coarse != TRL_COARSE_EITHER || (l->sim->problem->time.none && s->linear && s->coarsened > 0);
}

static bool has_entries(const trli_listing *l, int solver)
{
    const trl_solve_stats *s = trl_simulation_solver(l->sim, solver);
    return s->coarse != TRL_COARSE_EQUATION && s->entries && is_settled(l, solver);
}

/* Whether first derivatives may be a reason for them, as far as that is known. */
static bool may_be_skew(const trli_solver *s)
{
    bool any = false;
    for (int i = 0; s->skewness && i < s->ask.n; ++i)
        any |= s->skewness_scalar[3 * i] >= 0 || s->skewness_number[3 * i] > 0;
    return any && trli_solver_is_questionable(s);
}

/* Where coarser grids will have entries (trli_multigrid_wants_entries). */
static void describe_choice(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    const bool several = s->ask.n > 1;
    if (is_settled(l, solver)) return;
    trli_listing_say(l,
                     "  where its diagonal differs more than %s between points%s coarser grids are products of %s "
                     "entries%s%s%s",
                     s->settings.method == TRL_SOLVE_MULTIGRID ? "twofold" : "a hundredfold",
                     may_be_skew(s) ? ", or first derivatives outweigh the second ones," : "",
                     several ? "each unknown's" : "the operator's",
                     several ? ", unless unknowns couple each other faster than what crosses the domain" : "",
                     l->sim->problem->time.none ? "" : "; found once a step", has_gpus(l) ? ", on the CPU" : "");
}

static void describe_levels(const trli_listing *l, int solver)
{
    const trl_solve_stats *s = trl_simulation_solver(l->sim, solver);
    const int n = s->levels;
    char grids[256] = "", whole[64] = "", cells[96];
    const bool ranks = trl_context_ranks(l->sim->ctx) > 1;
    if (has_entries(l, solver)) {
        const trli_solver *own = trli_solving_nth(l->sim, solver);
        const bool skew = own->looked && own->krylov != TRL_SOLVE_CG;
        trli_listing_say(l, "  multigrid, whose coarser grids are products of %s entries, since %s%s%s",
                         own->ask.n > 1 ? "each unknown's" : "the operator's", s->entries,
                         s->coarse == TRL_COARSE_ENTRIES && skew ? ", and it is not symmetric" : "",
                         has_gpus(l) ? ": they are on the CPU" : "");
        describe_matrices(l, solver);
        describe_smoother(l, s);
        return;
    }
    for (int k = 0; k < n; ++k) {
        const size_t used = strlen(grids);
        print_cells(trli_solving_grid(l->sim, solver, k), cells, sizeof cells);
        snprintf(grids + used, sizeof grids - used, "%s%s", k ? ", " : "", cells);
    }
    if (n > 1 && ranks) say_whole(shared_grids(l, solver, n), n, whole, sizeof whole);
    trli_listing_say(l, "  multigrid on %d grids: %s%s", n, grids, whole);
    describe_merged(l, solver, n);
    describe_smoother(l, s);
    describe_levels_on_cpu(l, solver, n);
    describe_choice(l, solver);
}

static void describe_direct(const trli_listing *l, const trl_solve_stats *s)
{
    trli_listing_say(l, "  solved directly by %s: about %.0f operations a point, by other methods %.0f%s%s", s->direct,
                     s->operations, s->other_operations, s->no_gpu ? "; by the CPU, because " : "",
                     s->no_gpu ? s->no_gpu : "");
}

/* Of a system that is solved in steps. */
static void describe_prospect(const trli_listing *l, int solver)
{
    const trli_solver *own = trli_solving_nth(l->sim, solver);
    const trl_solve_stats *s = &own->stats;
    char bound[64] = "is not bounded", dt[64] = "";
    if (s->pseudo_time) return;
    if (!s->preconditioner) {
        trli_listing_say(l, "  what solves it is chosen in each stage");
        return;
    }
    if (s->direct) {
        describe_direct(l, s);
        return;
    }
    if (isfinite(s->condition)) snprintf(bound, sizeof bound, "is at most %.4g", s->condition);
    if (!l->sim->problem->time.none) snprintf(dt, sizeof dt, "with dt = %.4g ", trl_simulation_dt(l->sim));
    if (s->condition > 0)
        trli_listing_say(l, "  preconditioner %s%s: %sthe condition %s", s->preconditioner,
                         own->constraint ? "" : " where it is symmetric", dt, bound);
    else
        trli_listing_say(l, "  preconditioner %s", s->preconditioner);
}

static void describe_blocks(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    if (s->block_value && !s->stats.direct)
        trli_listing_say(l, "  for the diagonal stand blocks: what couples its unknowns at the same point");
}

static void describe_saddle(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    char names[192] = "";
    if (!s->constraint || s->stats.direct || s->stats.pseudo_time) return;
    for (int i = 0; i < s->ask.n; ++i) {
        const size_t used = strlen(names);
        if (s->constraint[i])
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                     l->sim->model->variable[s->ask.variable[i]].name);
    }
    trli_listing_say(l,
                     "  a saddle point, where first derivatives couple %s with the others: for the diagonal stand the "
                     "others' one and that of the Schur complement",
                     names);
}

static void describe_guesses(const trli_listing *l, const trl_solve_stats *s)
{
    if (s->guessed == 0) return;
    trli_listing_say(
        l,
        "  first guesses of %d solve%s a step have what the last %d steps' solutions had beyond theirs: %d "
        "fields more for each unknown",
        s->guessed, s->guessed == 1 ? "" : "s", s->guess_steps, s->guessed * s->guess_steps + 1);
}

/* What the deck says of the solver and the system does not need, as far as its methods are known. */
static void describe_unused(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    const bool known = s->stats.method || s->stats.preconditioner;
    const trl_solve_method chosen = s->method == TRL_SOLVE_AUTO ? s->settings.method : s->method;
    const trl_solve_method method = s->stats.pseudo_time ? TRL_SOLVE_PSEUDO_TIME : chosen;
    const trli_solver_use use = {.method = method,
                                 .cycles = s->cycles || method == TRL_SOLVE_MULTIGRID,
                                 .bdf = s->ask.products_alone,
                                 .systems = s->linear ? TRLI_SYSTEMS_LINEAR : TRLI_SYSTEMS_NONLINEAR};
    char keys[192];
    trli_solver_write_unused(&s->settings, &use, keys, sizeof keys);
    if (known && *keys) trli_listing_say(l, "  it has no use for %s of solver '%s'", keys, s->settings.name);
}

/* What iterations are made of: bytes that kernels and transfers of this rank read and write, over the first grid's
 * cells. */
static void describe_cost(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    const trl_simulation *sim = l->sim;
    const bool cycles = s->multigrid && s->stats.levels > 0 && !has_entries(l, solver);
    double cells = 0;
    char cycle[96] = "";
    if (!s->apply || s->stats.direct || s->stats.pseudo_time) return;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_lidx *n = sim->layout->patch[p].cells;
        cells += (double)n[0] * n[1] * n[2];
    }
    const double product = (double)s->apply->run->bytes_moved;
    const double bytes = cycles ? trli_multigrid_cycle_bytes(s->multigrid) : product;
    if (cycles) snprintf(cycle, sizeof cycle, ", a V cycle %.0f", bytes / cells);
    trli_listing_say(l, "  a product reads and writes %.0f bytes a cell%s: %.3g us", product / cells, cycle,
                     1e6 * bytes / trli_model_bandwidth(sim->model));
}

static void describe_call(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    const bool own =
        s->method == TRL_SOLVE_CG || s->method == TRL_SOLVE_PIPELINED_CG || s->method == TRL_SOLVE_BICGSTAB;
    if (s->called && own && !s->cycles)
        trli_listing_say(l, "  iterations are a call in one task graph: its workers go from one to the next");
}

/* What iterations wait for: sums over all ranks, those of cycles included. Where each rank has so few points that a
 * message takes longer than the sums and vectors that spare it, the plan says so; through memory none does. */
static void describe_messages(const trli_listing *l, int solver)
{
    const trli_solver *s = trli_solving_nth(l->sim, solver);
    const bool bicgstab = s->method == TRL_SOLVE_BICGSTAB, named = s->settings.method == s->method;
    const bool shares = l->sim->model->machine.shares;
    const bool possible = (bicgstab || s->method == TRL_SOLVE_CG) && !s->settings.single_reduction && !shares;
    const struct extra *more = bicgstab ? &extra_bicgstab : &extra_cg;
    const trli_ways *ways = &l->sim->model->machine.ways;
    const trli_krylov_type *type = s->looked ? trli_krylov_of(s, s->method) : NULL;
    const int ranks = trl_context_ranks(l->sim->ctx);
    const char *method = named ? "" : bicgstab ? "method: bicgstab, " : "method: cg, ";
    char advice[128] = "";
    if (!type || type->sums == 0 || ranks == 1 || s->stats.direct) return;
    const int cycles = !s->cycles ? 0 : bicgstab ? 2 : 1, spared = type->sums - 1;
    const double saved = spared * ways->message_s * ceil(log2(ranks)), points = s->all_points / ranks;
    const double extra = more->each + more->point * points;
    if (possible && ways->known && saved > extra)
        snprintf(advice, sizeof advice, "; %ssingle_reduction: true would spare %d", method, spared);
    trli_listing_say(l, "  an iteration has %d message%s of sums over all ranks%s", type->sums + cycles,
                     type->sums + cycles == 1 ? "" : "s", advice);
}

void trli_describe_solvers(const trli_listing *l)
{
    for (int i = 0; i < trl_simulation_solvers(l->sim); ++i) {
        const trl_solve_stats *s = trl_simulation_solver(l->sim, i);
        trli_listing_say(l, "solve        %s: a %s system%s", s->unknowns, s->linear ? "linear" : "nonlinear",
                         s->pseudo_time ? ", by explicit steps in pseudo-time, of a size of their own at each point"
                         : !s->linear   ? ", by Newton's method with products of the exact Jacobian"
                         : s->singular || trli_solving_nth(l->sim, i)->settings.method == TRL_SOLVE_LU
                             ? ""
                             : ", whose matrix is applied, not stored");
        if (s->singular) trli_listing_say(l, "  constants are in its null space: the mean of the first guess is kept");
        describe_guesses(l, s);
        if (l->sim->multistep && i > 0 && i == trli_solving_count(l->sim))
            trli_listing_say(l, "  products solve a linear system for each one above, which the rates may need");
        if (s->levels > 0 && !s->no_multigrid) describe_levels(l, i);
        if (s->no_direct) trli_listing_say(l, "  not solved directly, because %s", s->no_direct);
        if (s->no_multigrid) trli_listing_say(l, "  no multigrid, because %s", s->no_multigrid);
        describe_blocks(l, i);
        describe_saddle(l, i);
        describe_cost(l, i);
        describe_call(l, i);
        describe_messages(l, i);
        describe_unused(l, i);
        if (s->solves == 0) {
            describe_prospect(l, i);
            continue;
        }
        if (s->direct) {
            describe_direct(l, s);
            trli_listing_say(l, "  %d solutions, residual %.3g of %.3g", s->last_iterations, s->last_residual,
                             s->last_reference);
            continue;
        }
        if (!s->method) continue; /* the first guess was the solution */
        trli_listing_say(l, "  %s with preconditioner %s%s: %d iterations, residual %.3g of %.3g", s->method,
                         s->preconditioner, s->why ? s->why : "", s->last_iterations, s->last_residual,
                         s->last_reference);
    }
}
