/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trial_impl.h"

#include "sweep_impl.h"

static const double far_behind = 1.2;

static void find_best(trli_trial *t)
{
    double median[TRLI_WAYS_MOST];
    for (int w = 0; w < t->nways; ++w) median[w] = t->behind[w] ? 0 : trli_median(t->ns_per_step[w], t->round);
    t->best = 0;
    for (int w = 1; w < t->nways; ++w) {
        const double bound = t->best == 0 ? t->rules.gain * median[0] : median[t->best];
        if (!t->behind[w] && (t->behind[t->best] || median[w] < bound)) t->best = w;
    }
    for (int w = 0; w < t->nways; ++w) t->behind[w] |= median[w] > far_behind * median[t->best];
}

static int next_tried(const trli_trial *t, int way)
{
    while (way < t->nways && t->behind[way]) ++way;
    return way;
}

/* The next way, or the next round. */
static void go_on(trli_trial *t)
{
    t->ns = t->steps_done = t->missed = 0;
    t->tried = next_tried(t, t->tried + 1);
    if (t->tried < t->nways) return;
    if (++t->round >= t->rules.few) find_best(t);
    t->tried = next_tried(t, 0);
}

void trli_trial_miss(trli_trial *t)
{
    if (++t->missed < t->rules.misses) return;
    t->behind[t->tried] = true;
    go_on(t);
}

void trli_trial_note(trli_trial *t, double ns, int steps)
{
    t->ns += ns;
    t->steps_done += steps;
    if (t->steps_done < t->rules.steps || t->ns < t->rules.ns) return;
    t->ns_per_step[t->tried][t->round] = t->ns / t->steps_done;
    go_on(t);
}
