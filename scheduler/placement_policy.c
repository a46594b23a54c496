/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements by policies of plugins: what they see, and whether what they did will do. */
#include <string.h>

#include "placement_assign_impl.h"
#include "placement_run_impl.h"

static trl_placement_problem view_of(const trli_placement *p)
{
    const trli_place_graph g = trli_placement_view(p);
    return (trl_placement_problem){.ctx = p->graph->ctx,
                                   .graph = p->graph->name,
                                   .executors = p->platform.executors,
                                   .kind = p->platform.kind,
                                   .parallel = p->platform.parallel,
                                   .launch = p->platform.launch,
                                   .bytes = p->platform.bytes,
                                   .tasks = g.tasks,
                                   .first = g.first,
                                   .successors = g.successors,
                                   .order = g.order,
                                   .access_first = g.access_first,
                                   .access = g.access,
                                   .handles = g.handles,
                                   .handle = g.handle,
                                   .eligible = g.eligible,
                                   .seconds = g.seconds,
                                   .unit = p->unit,
                                   .of = p,
                                   .follows = g.follows};
}

#define POLICY_FAIL(p, ...) trl_fail((p)->graph->ctx, TRL_ERR_PLUGIN, NULL, __VA_ARGS__)

static trl_err check_tasks(const trli_placement *p, const uint8_t *executor)
{
    const char *policy = p->policy->name, *graph = p->graph->name;
    for (int32_t t = 0; t < p->graph->task_count; ++t) {
        const char *task = trli_graph_task_name(p->graph, t);
        const int e = executor[t], of_unit = executor[p->unit[t]];
        if (e >= p->platform.executors)
            return POLICY_FAIL(p, "placement policy '%s' puts task '%s' of graph '%s' on executor %d of %d", policy,
                               task, graph, e, p->platform.executors);
        if (!(p->eligible[t] & 1u << e))
            return POLICY_FAIL(p,
                               "placement policy '%s' puts task '%s' of graph '%s' on executor %d, which may not "
                               "do it (see `eligible`)",
                               policy, task, graph, e);
        if (e != of_unit)
            return POLICY_FAIL(p,
                               "placement policy '%s' puts task '%s' of graph '%s' on executor %d, and '%s', which "
                               "makes a value with it, on %d (see `unit`)",
                               policy, task, graph, e, trli_graph_task_name(p->graph, p->unit[t]), of_unit);
    }
    return TRL_OK;
}

static trl_err check_memory(const trli_placement *p, const uint8_t *executor)
{
    const trli_place_graph view = trli_placement_view(p);
    trl_context *ctx = p->graph->ctx;
    trli_values values = {0};
    trli_assignment a = {.ctx = ctx, .graph = &view, .machine = &p->platform, .values = &values};
    trl_err err;
    TRL_TRY(trli_values_find(ctx, &view, &values));
    TRL_TRY(trli_assignment_begin(&a));
    memcpy(a.executor, executor, (size_t)view.tasks);
    if (!trli_assignment_fits(&a))
        err = POLICY_FAIL(p,
                          "placement policy '%s' puts more on an executor than its memory holds, of graph '%s' (see "
                          "`bytes`)",
                          p->policy->name, p->graph->name);
done:
    trli_assignment_end(&a);
    trli_values_free(&values);
    return err;
}

static trl_err check(const trli_placement *p, const uint8_t *executor)
{
    trl_err err;
    TRL_TRY(check_tasks(p, executor));
    err = check_memory(p, executor);
done:
    return err;
}

static trl_err call(trli_placement *p, const trl_placement_problem *view, uint8_t *executor)
{
    trl_err err = TRL_OK;
    if (!p->policy_is_set_up) {
        p->policy_is_set_up = true; /* teardown follows setup, whatever setup returns */
        if (p->policy->setup) TRL_TRY(p->policy->setup(view, &p->policy_state));
    }
    memset(executor, 0, (size_t)view->tasks);
    err = p->policy->place(p->policy_state, view, executor);
done:
    return err;
}

trl_err trli_policy_assign(trli_placement *p, uint8_t *executor)
{
    const trl_placement_problem view = view_of(p);
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(view.ctx, &list);
    trl_err err = call(p, &view, executor);
    if (err != TRL_OK) {
        /* Whatever its code: it is the policy that failed. */
        if (trl_context_diagnostics(view.ctx, &list) == said)
            err = POLICY_FAIL(p, "placement policy '%s' failed (%s) on graph '%s'", p->policy->name,
                              trl_err_meaning(err), p->graph->name);
        err = TRL_ERR_PLUGIN;
    } else {
        err = check(p, executor);
    }
    if (err != TRL_OK) trli_policy_end(p);
    return err;
}

void trli_policy_end(trli_placement *p)
{
    if (p->policy_is_set_up && p->policy->teardown) p->policy->teardown(p->graph->ctx, &p->policy_state);
    p->policy = NULL;
    p->policy_is_set_up = false;
}

/* ---- what policies call ---- */

double trl_placement_copy_seconds(const trl_placement_problem *view, int from, int to, size_t bytes)
{
    const trli_route *link = &view->of->platform.link[from][to];
    if (from == to) return 0;
    return link->latency + (link->rate > 0 ? (double)bytes / link->rate : 0);
}

trl_err trl_placement_predict(const trl_placement_problem *view, const uint8_t *executor, double *seconds)
{
    const trli_placement *p = view->of;
    const trli_place_graph graph = trli_placement_view(p);
    trli_transfers transfers = {0};
    trli_prediction prediction = {0};
    trl_err err;
    TRL_TRY(check(p, executor));
    TRL_TRY(trli_transfers_find(view->ctx, &graph, &p->platform, executor, &transfers));
    TRL_TRY(trli_predict(view->ctx, &graph, &p->platform, executor, &transfers, true, &prediction));
    *seconds = prediction.seconds;
done:
    trli_prediction_free(&prediction);
    trli_transfers_free(&transfers);
    return err;
}

const char *trl_placement_task_name(const trl_placement_problem *view, int32_t task)
{
    return trli_graph_task_name(view->of->graph, task);
}
