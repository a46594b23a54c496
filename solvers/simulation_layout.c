/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which rank has which part of the grid: how patches are dealt, and how a simulation goes to other patches while its
 * steps go on. */
#include "context_impl.h"
#include "executor_impl.h"
#include "frame_impl.h"
#include "help_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "simulation_layout_impl.h"
#include "solving_impl.h"

/* What the rank with the most to do beside its share has to do. Collective: yes; after an error of this rank, too. */
static trl_err find_most(const trl_simulation *sim, trl_err err, const trl_layout *layout, double *cost)
{
    static const double tasks = 1000; /* of a patch: in their time so many cells are updated */
    const trl_owners *owners = &sim->problem->owners;
    *cost = err == TRL_OK ? trli_layout_cost(layout) : 0;
    if (owners->share && err == TRL_OK)
        *cost = (*cost + tasks * layout->nlocal) / owners->share[trl_context_rank(sim->ctx)];
    return trli_allreduce_after(sim->ctx, err, cost, 1, MPI_DOUBLE, MPI_MAX);
}

/* Take another layout in place of the present one if it costs less, *cost. Collective: yes. */
static trl_err consider(trl_simulation *sim, const int *counts, trl_owner_order order, double *cost)
{
    const trl_problem *p = sim->problem;
    const trl_owners owners = {.order = order, .share = p->owners.share};
    trl_layout *other = NULL;
    double its;
    trl_err err = trl_layout_create_owned(sim->ctx, &p->grid, counts, &owners, &p->patches_place, &other);
    TRL_TRY(find_most(sim, err, other, &its));
    if (its < *cost) {
        trl_layout *before = sim->layout;
        sim->layout = other;
        other = before;
        *cost = its;
    }
done:
    trl_layout_destroy(&other);
    return err;
}

enum { EACH = 4 /* patches of a rank, so that some can have half as many, or twice */ };

/* Ranks that differ much, each with a layer of the grid of its own, or with several patches. */
static trl_err consider_uneven(trl_simulation *sim, double *cost)
{
    const trl_grid *grid = &sim->problem->grid;
    const int ranks = trl_context_ranks(sim->ctx), last = grid->dim - 1;
    int counts[3] = {1, 1, 1};
    trl_err err = TRL_OK;
    counts[last] = ranks;
    if (ranks <= grid->cells[last]) TRL_TRY(consider(sim, counts, TRL_OWNERS_BLOCKS, cost));
    if (trli_layout_choose(grid, EACH * ranks, trli_layout_in_one_node(sim->ctx), counts))
        TRL_TRY(consider(sim, counts, TRL_OWNERS_CURVE, cost));
done:
    return err;
}

trl_err trli_simulation_deal(trl_simulation *sim, const int *counts)
{
    const trl_problem *p = sim->problem;
    const trl_place *place = &p->patches_place;
    const int ranks = trl_context_ranks(sim->ctx);
    const trl_owners blocks = {.order = TRL_OWNERS_BLOCKS, .share = p->owners.share};
    double cost;
    trl_err err = TRL_OK;
    if (p->owners.share && p->nshares != ranks)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->shares_place,
                        "'run.shares' has %d numbers for %d ranks; give one for each rank, or auto", p->nshares, ranks);
    if (!p->owners_auto) return trl_layout_create_owned(sim->ctx, &p->grid, counts, &p->owners, place, &sim->layout);
    TRL_TRY(trl_layout_create_owned(sim->ctx, &p->grid, counts, &blocks, place, &sim->layout));
    const bool several = sim->layout->npatches > sim->layout->ranks, uneven = !counts && p->owners.share;
    if ((!several && !uneven) || sim->layout->ranks == 1) return TRL_OK;
    TRL_TRY(find_most(sim, TRL_OK, sim->layout, &cost));
    if (several) TRL_TRY(consider(sim, counts, TRL_OWNERS_CURVE, &cost));
    if (uneven) TRL_TRY(consider_uneven(sim, &cost));
done:
    return err;
}

/* ---- another layout ---- */

const char *trl_simulation_stays(const trl_simulation *sim)
{
    const trli_front *front = sim->model->front;
    if (sim->layout->ranks == 1) return "one rank has all patches";
    if (sim->devices && sim->devices->n > 0) return "devices have patches";
    if (sim->multistep) return "the method would forget the steps before";
    if (sim->problem->time.none) return "there are no steps";
    if (sim->trace) return "it is traced";
    for (int e = 0; e < front->nentries; ++e) {
        const trl_expression_entry *entry = front->entry[e].deck;
        if (entry->type && front->entry[e].used && !(entry->type->flags & (TRL_EXPR_PURE | TRL_EXPR_NEUTRAL)))
            return "a plugin does not promise to be pure";
    }
    return NULL;
}

double trl_simulation_waited(const trl_simulation *sim)
{
    const trli_help_given given = trli_help_get_given(sim->frame->help);
    double waited = (given.seconds - given.saved) / sim->model->run->nworkers;
    for (int i = 0; i < sim->model->nprograms; ++i) {
        trl_graph_stats stats;
        trl_graph_get_stats(sim->model->program[i]->run->graph, &stats);
        waited += stats.idle + stats.late;
    }
    return waited;
}

/* What was counted goes on. */
static void inherit(trl_simulation *sim, const trl_simulation *from)
{
    sim->compile_seconds = from->compile_seconds;
    sim->allocations = from->allocations;
    sim->comm_bytes = from->comm_bytes;
    sim->comm_messages = from->comm_messages;
    sim->control.nrejected = from->control.nrejected;
    sim->control.nunsolved = from->control.nunsolved;
    sim->control.naccepted = from->control.naccepted;
    sim->control.warned = from->control.warned;
    trl_simulation_get_compile_stats(from, &sim->compiled);
    sim->compiled.under_way = 0;
    for (int i = 0; i < trl_simulation_solvers(sim); ++i) {
        trl_solve_stats *to = (trl_solve_stats *)trl_simulation_solver(sim, i);
        const trl_solve_stats *of = trl_simulation_solver(from, i);
        to->solves = of->solves;
        to->iterations = of->iterations;
    }
}

/* A field of both, of the state or carried. */
static trl_err move_field(trl_simulation *from, trl_simulation *to, bool carried, int field)
{
    trl_array (*const array)(const trl_simulation *, int, int) =
        carried ? trl_simulation_carried_array : trl_simulation_array;
    const trl_location location =
        carried ? trl_simulation_carried_field(from, field).location : trl_simulation_field(from, field)->location;
    const int n = from->layout->nlocal, m = to->layout->nlocal;
    trl_array *arrays = trli_new(from->ctx, (size_t)n + (size_t)m, sizeof *arrays);
    trl_err err = arrays ? TRL_OK : trli_no_memory(from->ctx, NULL, "for patches of a field");
    for (int p = 0; p < n + m && arrays; ++p) arrays[p] = p < n ? array(from, field, p) : array(to, field, p - n);
    if (err == TRL_OK) err = trl_simulation_fetched(from);
    if (err == TRL_OK) err = trl_simulation_fetched(to);
    err = trli_layout_move(from->layout, to->layout, location, err, arrays, arrays + n);
    trli_free(arrays);
    return err;
}

static trl_err move(trl_simulation *from, trl_simulation *to)
{
    double control[TRL_CONTROLS];
    trl_err err = TRL_OK;
    trl_simulation_set_steps(to, from->steps_wanted);
    for (int f = 0; f < trl_simulation_fields(from); ++f)
        if (trl_simulation_field(from, f)->equation) TRL_TRY(move_field(from, to, false, f));
    for (int i = 0; i < trl_simulation_carried(from); ++i)
        if (trl_simulation_carried_field(from, i).known) TRL_TRY(move_field(from, to, true, i));
    TRL_TRY(trl_simulation_resume(to, from->step_number, from->time, from->dt));
    trl_simulation_get_control(from, control);
    trl_simulation_set_control(to, control);
    for (int i = 0; i < trl_simulation_carried(from); ++i)
        if (trl_simulation_carried_field(from, i).known) trl_simulation_carry(to, i);
    inherit(to, from);
done:
    return err;
}

trl_err trl_simulation_foresee(const trl_simulation *sim, const trl_problem *problem, trl_layout **layout)
{
    trl_simulation other = {.ctx = sim->ctx, .problem = problem};
    const trl_err err = trli_simulation_deal(&other, problem->patches_auto ? NULL : problem->patches);
    if (err != TRL_OK) trl_layout_destroy(&other.layout);
    *layout = other.layout;
    return err;
}

trl_err trl_simulation_move(trl_simulation *from, const trl_problem *problem, trl_simulation **to)
{
    trl_context *ctx = from->ctx;
    trl_simulation *sim = NULL;
    const char *stays = trl_simulation_stays(from);
    trl_err err = TRL_OK;
    *to = NULL;
    if (stays) return trl_fail(ctx, TRL_ERR_USAGE, NULL, "a simulation cannot go to other patches: %s", stays);
    trl_context_begin_phase(ctx);
    TRL_TRY(trl_simulation_settle(from));
    TRL_TRY(trl_simulation_create(ctx, problem, &sim));
    TRL_TRY(move(from, sim));
    *to = sim;
    sim = NULL;
done:
    trl_simulation_destroy(&sim);
    return trl_context_end_phase(ctx, err);
}
