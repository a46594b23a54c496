/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the blocks of the Jacobian to the largest rate, by trl_bound_body.h, and what decides it in words. */
#include <stdio.h>

#include "limit_impl.h"

trli_rates trli_bound_rates(const trl_simulation *sim, bool unscaled)
{
    const trli_bound *bound = sim->bound;
    const trli_jacobian *j = bound->jacobian;
    const trl_integrator *m = sim->integrator;
    return (trli_rates){.dim = sim->layout->grid.dim,
                        .nequations = j->n,
                        .ncomponents = j->by_sums ? 0 : j->ncomponents,
                        .nsums = j->nsums,
                        .nplugins = bound->nplugins,
                        .largest = j->n,
                        .by_sums = j->by_sums,
                        .radius = m->radius,
                        .imaginary = m->imaginary,
                        .scale = unscaled ? 1 : m->stability,
                        .block = j->block,
                        .first = j->first,
                        .component = j->component,
                        .member = j->member,
                        .begin = j->begin,
                        .known = bound->known,
                        .sum = j->sum,
                        .plugin_dt = bound->plugin_dt,
                        .given = &bound->given,
                        .scalar = sim->frame ? sim->frame->scalar : NULL};
}

trli_rate trli_bound_rate(const trl_simulation *sim, bool unscaled)
{
    const trli_rates all = trli_bound_rates(sim, unscaled);
    trli_rate largest = trli_rate_of_nothing();
    for (int c = 0; c < all.ncomponents; ++c) {
        const trli_rate r = trli_component_rate(&all, trli_alone(), c, sim->bound->jacobian->work);
        trli_rate_take(&r, &largest);
    }
    trli_rate_of_others(&all, &largest);
    if (largest.by == TRLI_BY_PLUGIN) largest.index = sim->bound->plugin[largest.index];
    return largest;
}

void trli_rate_words(const trl_simulation *sim, const trli_rate *rate, size_t size, char *words)
{
    const trli_jacobian *j = sim->bound->jacobian;
    const char *name = rate->index >= 0 && rate->by != TRLI_BY_PLUGIN && rate->by != TRLI_BY_NOTHING
                           ? sim->equation[rate->index].deck->name
                           : "";
    size_t used = 0;
    switch (rate->by) {
    case TRLI_BY_NOTHING:
        snprintf(words, size, "nothing");
        break;
    case TRLI_BY_TRANSPORT:
        snprintf(words, size, "the advection and diffusion of '%s'", name);
        break;
    case TRLI_BY_ITSELF:
        snprintf(words, size, "'%s' in the equation of '%s'", j->text[rate->index], name);
        break;
    case TRLI_BY_COUPLING: {
        const int c = j->component[rate->index], n = j->begin[c + 1] - j->begin[c], shown = n > 4 ? 3 : n;
        used = (size_t)snprintf(words, size, "the %scoupling of ", rate->wavelike ? "oscillating " : "");
        for (int i = 0; i < shown && used < size; ++i)
            used += (size_t)snprintf(words + used, size - used, "%s'%s'",
                                     i == 0       ? ""
                                     : i == n - 1 ? " and "
                                                  : ", ",
                                     sim->equation[j->member[j->begin[c] + i]].deck->name);
        if (shown < n && used < size) snprintf(words + used, size - used, " and %d more", n - shown);
        break;
    }
    case TRLI_BY_SUMS:
        snprintf(words, size,
                 "the largest sum over a row of the Jacobian, with what is coupled too much to look closer");
        break;
    case TRLI_BY_PLUGIN:
        snprintf(words, size, "the stable_dt of '%s'", sim->model->front->entry[rate->index].deck->name);
        break;
    case TRLI_BY_GIVEN:
        snprintf(words, size, "speed and diffusivity");
        break;
    }
}
