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

/* The word of a method, and the mapping that has more to say, or NULL. */
static void read_name(trli_deck *deck, const trli_yaml *node, const trli_yaml **more)
{
    trl_time_entry *time = &deck->problem.time;
    const trli_key *key = trli_schema_child(trli_schema_child(trli_schema_root(), "time"), "method");
    const trli_yaml *method = trli_yaml_get(node, "method");
    const bool mapping = method->kind == TRLI_MAPPING_NODE;
    const int word = mapping ? trli_yaml_word(key, method, "name") : trli_deck_word(deck, "time", "method");
    time->method = word < TRL_METHODS ? (trl_method)word : method_of(deck);
    time->method_place = *trli_yaml_place(method);
    *more = mapping ? method : NULL;
}

static trl_err read_adaptive(trli_deck *deck, const trli_yaml *method)
{
    trl_time_entry *time = &deck->problem.time;
    const trli_yaml *tolerance = method ? trli_yaml_get(method, "tolerance") : NULL,
                    *dt = method ? trli_yaml_get(method, "dt") : NULL;
    const trli_yaml *min = dt ? trli_yaml_get(dt, "min") : NULL, *max = dt ? trli_yaml_get(dt, "max") : NULL,
                    *initial = dt ? trli_yaml_get(dt, "initial") : NULL;
    const bool both = tolerance && tolerance->kind == TRLI_MAPPING_NODE;
    const trli_yaml *of_values = both ? trli_yaml_get(tolerance, "relative") : tolerance;
    const double relative = 1e-6, absolute = 1e-9;
    time->adaptive = true;
    time->dt_place = time->method_place;
    time->relative = of_values ? trli_yaml_number(of_values) : relative;
    time->absolute = both ? trli_yaml_number(trli_yaml_get(tolerance, "absolute")) : absolute;
    if (min) time->dt_min = trli_yaml_number(min);
    if (max) time->dt_max = trli_yaml_number(max);
    if (initial) time->dt_initial = trli_yaml_number(initial);
    if (min && max && time->dt_min > time->dt_max)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(min),
                        "'time.method.dt.min' is larger than 'time.method.dt.max': %g and %g", time->dt_min,
                        time->dt_max);
    if (initial && ((min && time->dt_initial < time->dt_min) || (max && time->dt_initial > time->dt_max)))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(initial),
                        "'time.method.dt.initial' does not lie between 'min' and 'max'");
    const double least = 1e-14;
    if (time->relative > 0 && time->relative < least)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(of_values),
                        "a relative tolerance of %g is less than numbers near one another differ by: use 1e-14 or more",
                        time->relative);
    return TRL_OK;
}

/* The step: a number, by stability, or by its error. */
static trl_err read_step(trli_deck *deck, const trli_yaml *node, const trli_yaml *method)
{
    trl_time_entry *time = &deck->problem.time;
    const trli_yaml *dt = trli_yaml_get(node, "dt");
    const bool embedded = trl_integrator_of(time->method)->embedded;
    static const char *const keys[] = {"tolerance", "dt"};
    for (int i = 0; method && i < 2; ++i) {
        const int at = trli_yaml_find(method, keys[i]);
        if (at < 0 || (embedded && !dt)) continue;
        if (embedded)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(method->key[at]),
                            "'time.method.%s' lets dt follow from the error, and 'time.dt' gives it: remove one",
                            keys[i]);
        return trl_fail(
            deck->ctx, TRL_ERR_INPUT, trli_yaml_place(method->key[at]),
            "%s has no estimate of its error: use bs3 or dp5, an implicit method other than cn, or give 'time.dt'",
            trl_method_name(time->method));
    }
    if (!dt && embedded) return read_adaptive(deck, method);
    if (!dt) {
        const trl_err err = trl_fail(deck->ctx, TRL_ERR_INPUT, &time->place, "'dt' is missing in 'time'");
        trl_advise(deck->ctx, "add `dt: 0.5`: the step, or how it follows from stability");
        trl_advise(deck->ctx, "use bs3, dp5 or an implicit method other than cn, whose dt follows from the error");
        return err;
    }
    time->dt_place = *trli_yaml_place(dt);
    if (dt->kind == TRLI_MAPPING_NODE) return read_cfl(deck, dt);
    time->dt = trli_yaml_number(dt);
    return TRL_OK;
}

/* A deck without time solves its equations once. */
static trl_err read_none(trli_deck *deck)
{
    const trl_problem *p = &deck->problem;
    deck->problem.time = (trl_time_entry){.none = true, .steps = 0};
    for (int v = 0; v < p->nequations; ++v)
        if (!p->equation[v].solve.chars)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, &p->equation[v].place,
                            "'time' is missing in the deck, and '%s' has a time derivative: add `time: {dt: 0.1, "
                            "steps: 10}`, or write `solve` in place of `ddt`",
                            p->equation[v].name);
    if (p->nequations > 0 || trli_yaml_get(deck->root, "equations")->n > 0) return TRL_OK;
    return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(deck->root),
                    "'time' is missing in the deck: add `time: {dt: 0.1, steps: 10}`, or equations with `solve`");
}

trl_err trli_time_read(trli_deck *deck)
{
    if (!trli_yaml_get(deck->root, "time")) return read_none(deck);
    const trli_yaml *node = trli_yaml_get(deck->root, "time"), *end = trli_yaml_get(node, "end"), *method;
    const trli_yaml *steps = trli_yaml_get(node, "steps");
    trl_time_entry *time = &deck->problem.time;
    time->place = *trli_yaml_place(node);
    time->steps = trli_yaml_whole(steps, -1);
    time->start = trli_yaml_number(trli_yaml_get(node, "start"));
    time->has_end = end != NULL;
    if (end) time->end = trli_yaml_number(end);
    trl_err err = TRL_OK;
    read_name(deck, node, &method);
    if (!steps && !end)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &time->place, "'time' needs 'steps' or 'end', to know when to stop");
    if (end && time->end < time->start)
        err = trli_worse(err, trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(end),
                                       "'time.end' lies before 'time.start': %g and %g", time->end, time->start));
    err = trli_worse(err, read_stop(deck, trli_yaml_get(node, "stop")));
    return trli_worse(err, read_step(deck, node, method));
}
