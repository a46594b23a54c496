/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What bounds dt, for the plan: the step, the equation that decides, and the table of the Jacobian. */
#include <stdio.h>

#include "describe_impl.h"
#include "limit_impl.h"

enum { ROWS_SHOWN = 16, COLUMNS_SHOWN = 8 };

static void describe_row(const trli_listing *l, int row)
{
    const trl_simulation *sim = l->sim;
    const trli_jacobian *j = sim->bound->jacobian;
    char text[512] = "";
    int used = 0, shown = 0, zero = 0;
    const double known = trli_quantity_value(sim, &sim->bound->known[row]);
    if (known > 0) used = snprintf(text, sizeof text, "  transport %.6g", known);
    for (int k = j->first[row]; k < j->first[row + 1] && used < (int)sizeof text; ++k) {
        const trli_coupling *b = &j->block[k];
        const trli_quantity *size = &b->part[TRLI_COUPLING_SIZE];
        const bool looked_at = size->kind != TRLI_QUANTITY_NONE;
        if (looked_at && trli_quantity_value(sim, size) == 0) {
            ++zero;
            continue;
        }
        if (++shown > COLUMNS_SHOWN) break;
        const char *name = b->column < 0 ? "all" : sim->equation[b->column].deck->name;
        used += looked_at ? snprintf(text + used, sizeof text - (size_t)used, "  %s %.6g", name,
                                     trli_quantity_value(sim, size))
                          : snprintf(text + used, sizeof text - (size_t)used, "  %s (not looked at)", name);
    }
    const int more = j->first[row + 1] - j->first[row] - zero - COLUMNS_SHOWN;
    if (more > 0 && used < (int)sizeof text) snprintf(text + used, sizeof text - (size_t)used, "  and %d more", more);
    trli_listing_say(l, "  %-10s%s", sim->equation[row].deck->name, text[0] ? text : "  0");
}

static void describe_table(const trli_listing *l)
{
    const trl_simulation *sim = l->sim;
    const trli_jacobian *j = sim->bound->jacobian;
    int shown = 0;
    if (j->by_sums) {
        double largest = 0;
        for (int i = 0; i < j->nsums; ++i)
            largest = trli_quantity_value(sim, &j->sum[i]) > largest ? trli_quantity_value(sim, &j->sum[i]) : largest;
        trli_listing_say(
            l, "  the largest sum of derivatives in an equation is %.6g: there are too many to look at each", largest);
        return;
    }
    trli_listing_say(
        l, "  rates of the transport that is found, and sums of the other derivatives by unknown, the largest of all "
           "points:");
    for (int v = 0; v < j->n && shown < ROWS_SHOWN; ++v)
        if (sim->equation[v].ddt) {
            describe_row(l, v);
            ++shown;
        }
    if (shown == ROWS_SHOWN && j->n > shown) trli_listing_say(l, "  and %d more equations", j->n - shown);
}

void trli_describe_bound(const trli_listing *l)
{
    const trl_simulation *sim = l->sim;
    const trl_time_entry *time = &sim->problem->time;
    char words[256], step[96];
    if (!sim->bound->known_once || time->none) return; /* nothing ran */
    const trli_rate stable = trli_bound_rate(sim, false), unscaled = trli_bound_rate(sim, true);
    trli_rate_words(sim, &stable, sizeof words, words);
    if (time->cfl > 0 && unscaled.unstable)
        snprintf(step, sizeof step, "cfl gives none");
    else if (time->cfl > 0)
        snprintf(step, sizeof step, "cfl %g gives %.6g", time->cfl, time->cfl / unscaled.rate);
    else if (time->adaptive)
        snprintf(step, sizeof step, "it follows from the error");
    else
        snprintf(step, sizeof step, "it is %.6g", sim->dt);
    if (stable.unstable)
        trli_listing_say(l, "dt           no step is stable with %s; %s; for %s", trl_method_name(time->method), step,
                         words);
    else if (!(stable.rate > 0))
        trli_listing_say(l, "dt           nothing bounds it; %s", step);
    else
        trli_listing_say(l, "dt           stable up to %.6g with %s; %s; by %s", 1 / stable.rate,
                         trl_method_name(time->method), step, words);
    describe_table(l);
    if (time->speed.count || time->diffusivity.count)
        trli_listing_say(l, "  speed and diffusivity stand for all other terms that differentiate");
    if (sim->bound->jacobian->plugin)
        trli_listing_say(l, "  not bounded: what '%s' makes of the unknowns", sim->bound->jacobian->plugin->name);
}
