/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "deck_build_impl.h"

static trl_err read_cfl(trli_deck *deck, const trli_yaml *dt)
{
    trl_time_entry *time = &deck->problem.time;
    const trli_yaml *speed = trli_yaml_get(dt, "speed"), *diffusivity = trli_yaml_get(dt, "diffusivity");
    const trli_yaml *min = trli_yaml_get(dt, "min"), *max = trli_yaml_get(dt, "max");
    int dim = deck->problem.grid.dim;
    trl_err err = TRL_OK;
    time->cfl = trli_yaml_number(trli_yaml_get(dt, "cfl"));
    if (min) time->dt_min = trli_yaml_number(min);
    if (max) time->dt_max = trli_yaml_number(max);
    if (min && max && time->dt_min > time->dt_max)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(min),
                        "'time.dt.min' is larger than 'time.dt.max': %g and %g", time->dt_min, time->dt_max);
    if (speed) TRL_TRY(trli_value_read(deck, speed, &time->speed));
    if (time->speed.list && time->speed.count != dim)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(speed),
                        "'time.dt.speed' must be one formula, or one per axis of the grid, %d, found %d", dim,
                        time->speed.count);
    if (diffusivity) TRL_TRY(trli_value_read(deck, diffusivity, &time->diffusivity));
done:
    return err;
}

static trl_err read_stop(trli_deck *deck, const trli_yaml *stop)
{
    trl_time_entry *time = &deck->problem.time;
    if (!stop) return TRL_OK;
    time->stop = trli_yaml_get(stop, "when")->text;
    return trli_every_read(deck, stop, &time->stop_every);
}

/* The method where the deck leaves it open. */
static trl_method method_of(const trli_deck *deck)
{
    const trl_problem *p = &deck->problem;
    bool second = p->nequations > 0;
    for (int v = 0; v < p->nequations; ++v) second &= p->equation[v].ddt2.count > 0;
    return second ? TRL_METHOD_LEAPFROG : TRL_METHOD_SSPRK3;
}

trl_err trli_time_read(trli_deck *deck)
{
    const trli_yaml *node = trli_yaml_get(deck->root, "time"), *dt = trli_yaml_get(node, "dt"),
                    *end = trli_yaml_get(node, "end");
    const trli_yaml *steps = trli_yaml_get(node, "steps");
    trl_time_entry *time = &deck->problem.time;
    time->place = *trli_yaml_place(node);
    time->dt_place = *trli_yaml_place(dt);
    time->steps = trli_yaml_whole(steps, -1);
    time->start = trli_yaml_number(trli_yaml_get(node, "start"));
    time->has_end = end != NULL;
    if (end) time->end = trli_yaml_number(end);
    trl_err err = TRL_OK;
    const int method = trli_deck_word(deck, "time", "method");
    time->method = method < TRL_METHODS ? (trl_method)method : method_of(deck);
    time->method_place = *trli_yaml_place(trli_yaml_get(node, "method"));
    if (!steps && !end)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &time->place, "'time' needs 'steps' or 'end', to know when to stop");
    if (end && time->end < time->start)
        err = trli_worse(err, trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(end),
                                       "'time.end' lies before 'time.start': %g and %g", time->end, time->start));
    err = trli_worse(err, read_stop(deck, trli_yaml_get(node, "stop")));
    if (dt->kind == TRLI_MAPPING_NODE) return trli_worse(err, read_cfl(deck, dt));
    time->dt = trli_yaml_number(dt);
    return err;
}
