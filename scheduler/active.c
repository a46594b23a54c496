/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "active_impl.h"

/* Trials cost about one part in SHARE of the time, since their runs may take up to twice as long as others. Where
 * runs are short the first trials come early, so that a calculation of a thousand steps gains from them, too. */
enum {
    FIRST = 4,              /* runs before the first trial: caches are cold, and graphs do not know their order yet */
    RUNS = 6,               /* of a trial */
    SHARE = 50,             /* trials take at most this part of the time */
    SETTLE_NS = 150000,     /* time in which workers wake up and go to sleep */
    SHORT_NS = 1000000,     /* of runs that are tried without saving time for them */
    PAUSE_NS = 5000000,     /* between trials, at least */
    LONGEST_NS = 500000000, /* between trials of short runs, at most: the load by other programs changes */
    WINDOW_NS = 20000000    /* some time slices of the operating system */
};

static const double better = 0.95,
                    much_better = 0.8; /* fraction of the time so far that justifies a change; an early trial */

static int halve(int workers)
{
    return (workers + 1) / 2;
}

static int last_level(int workers)
{
    int level = 0;
    for (; workers > 1 && level < TRLI_ACTIVE_LEVELS - 1; workers = halve(workers)) ++level;
    return level;
}

int trli_active_workers(const trli_active *a, int workers)
{
    for (int i = 0; i < (a->trying ? a->trial : a->level); ++i) workers = halve(workers);
    return workers;
}

/* ns of a run; 0: unknown. */
static double mean(const trli_active *a, int level)
{
    const trli_active_window *window = &a->window[level];
    return window->runs > 0 ? window->ns / window->runs : 0;
}

static void add(trli_active_window *window, int64_t ns)
{
    window->ns += (double)ns;
    window->runs += 1;
    if (window->ns < 2.0 * WINDOW_NS || window->runs < 4) return;
    window->ns /= 2;
    window->runs /= 2;
}

static void restart(trli_active *a, bool trying)
{
    a->trying = trying;
    a->runs = a->ns = 0;
    a->settle = SETTLE_NS;
}

/* Try more and fewer workers in turns. What is known of a level loses weight with each trial. */
static int neighbour(const trli_active *a, int workers)
{
    const bool larger = a->level > 0 && (a->larger || a->level == last_level(workers));
    return a->level + (larger ? -1 : 1);
}

static void begin_trial(trli_active *a, int workers)
{
    a->trial = neighbour(a, workers);
    a->larger = a->trial < a->level;
    a->window[a->trial].ns /= 2;
    a->window[a->trial].runs /= 2;
    restart(a, true);
}

/* Trials follow one another as long as they succeed; after one without gain the pauses grow. */
static void end_trial(trli_active *a)
{
    const bool changed = mean(a, a->trial) < better * mean(a, a->level);
    if (changed)
        a->level = a->trial;
    else
        a->larger = !a->larger;
    restart(a, false);
    if (changed && a->wait == 0) return;
    const double least = SHARE * (2 * RUNS * mean(a, a->level) + SETTLE_NS);
    const double later = changed ? PAUSE_NS : 2 * (double)a->wait > PAUSE_NS ? 2 * (double)a->wait : PAUSE_NS;
    const double most = least > LONGEST_NS ? least : LONGEST_NS;
    a->wait = (int64_t)(later < most ? later : most);
}

static bool is_due(const trli_active *a, int workers)
{
    const double now = mean(a, a->level), other = mean(a, neighbour(a, workers));
    const bool paid = (double)a->ns > 2 * RUNS * SHARE * now;
    if (a->wait == 0) return a->runs >= FIRST && (now < SHORT_NS || paid);
    if (a->ns >= a->wait && (now < SHORT_NS || paid)) return true;
    return a->ns >= PAUSE_NS && a->runs >= 4 * RUNS && other > 0 && other < much_better * now;
}

void trli_active_learn(trli_active *a, int workers, int64_t ns)
{
    if (workers == 1) return;
    if (a->settle > 0) {
        a->settle -= ns;
        return;
    }
    ++a->runs;
    a->ns += ns;
    if (a->wait == 0 && !a->trying && a->runs == 1) return; /* caches are cold */
    add(&a->window[a->trying ? a->trial : a->level], ns);
    if (!a->trying) {
        if (is_due(a, workers)) begin_trial(a, workers);
    } else if (a->runs >= RUNS || (double)a->ns > 2 * RUNS * mean(a, a->level)) {
        end_trial(a);
    }
}
