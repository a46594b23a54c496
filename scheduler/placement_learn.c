/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What runs of a graph teach about its placement: times of tasks with each executor, whether one executor alone is
 * faster, and whether times drift. */
#include "placed_calls_impl.h"
#include "placement_run_impl.h"

enum {
    PROFILED = 3,  /* runs with each executor, of which the first one is not counted */
    LAUNCHED = 12, /* such runs of a device whose calls become one launch, which is what a run takes later on: */
    REPEATED = 2,  /* runs with a random placement */
    PATIENT = 8,   /* runs in a row for which workers fetch data from devices, until executors are timed again */
    CHECKED = 32   /* runs between two checks of the times of a placement; of the first the LAUNCHED do not count */
};

/* Part of a run's time by which it must grow before tasks are placed again. */
static const double drift = 0.5;
/* Part of a single executor's time by which a placement may be slower. */
static const double loss = 0.02;
/* Time of a trial's runs behind which launches are not waited for. */
static const int64_t launches_ns = 5000000;

/* The least of the times: disturbances only make a time longer. */
static void take_times(trli_placement *p, bool again)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t) {
        const int e = p->executor[t];
        double *known = trli_placement_seconds_at(p, t, e), now = p->latest[t];
        if (now <= 0) continue;
        if (e == 0) now = trli_placement_on_workers(p, t, now);
        *known = again && *known > 0 && *known < now ? *known : now;
    }
}

void trli_placement_next_stage(trli_placement *p)
{
    bool any = false;
    for (++p->stage; p->stage < p->platform.executors; ++p->stage) {
        for (int32_t t = 0; t < p->graph->task_count && !any; ++t) any = trli_placement_may_run(p, t, p->stage);
        if (any) break;
    }
}

void trli_placement_time_again(trli_placement *p)
{
    p->stage = p->single = -1;
    p->second_look = TRLI_LOOK_BEFORE;
    trli_placement_next_stage(p);
    trli_placement_drop(p);
}

/* Whether the executor had enough runs. What a launch takes does not matter in long ones. */
static bool is_profiled(const trli_placement *p)
{
    if (p->runs < PROFILED) return false;
    return !p->placed->relaunch || p->runs >= LAUNCHED || p->sum_ns > launches_ns;
}

/* A run with the executor that is being timed has ended. */
static void learn_stage(trli_placement *p, int64_t ns)
{
    p->sum_ns += ns;
    if (p->runs > 1) {
        take_times(p, p->runs > 2);
        p->stage_ns[p->stage] = ns < p->least_ns ? ns : p->least_ns;
        p->stage_left[p->stage] = p->placed->overlaps;
        p->least_ns = p->stage_ns[p->stage];
    }
    if (!is_profiled(p) || p->runs_now > 0) return;
    trli_placement_next_stage(p);
    trli_placement_drop(p);
}

static bool runs_all(const trli_placement *p, int e)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t)
        if (p->executor[t] != (trli_placement_may_run(p, t, e) ? e : 0)) return false;
    return true;
}

/* The executor that was the fastest alone; `other`: of those that do not run all now. -1: there is none. */
static int fastest(const trli_placement *p, bool other)
{
    int best = -1;
    for (int e = 0; e < p->platform.executors; ++e)
        if (!p->excluded[e] && p->stage_ns[e] > 0 && (best < 0 || p->stage_ns[e] < p->stage_ns[best]) &&
            !(other && runs_all(p, e)))
            best = e;
    return best;
}

/* Than what the present placement takes. */
static bool is_faster(const trli_placement *p, int e, double ns)
{
    const bool goes_ahead = e >= 0 && p->stage_left[e] && !p->placed->overlaps;
    return e >= 0 && (goes_ahead ? 1 - TRLI_GAIN_AHEAD : 1 + loss) * (double)p->stage_ns[e] < ns;
}

static void run_on(trli_placement *p, int single)
{
    p->single = single;
    trli_placement_drop(p);
}

/* The least time of a trial may be far below what runs take, where workers wait for each other. So an executor whose
 * least time is below the mean of the placement gets as many runs, and the one with the lesser mean stays. Runs that
 * end with devices at work take what those of other graphs take that are behind: of them nothing is concluded. */
static bool look_again(trli_placement *p, double mean)
{
    const trli_second_look look = p->second_look;
    const int other = look == TRLI_LOOK_BEFORE && !p->placed->overlaps ? fastest(p, true) : -1;
    const bool back = look == TRLI_LOOK_BEGUN && mean > p->former_ns;
    p->second_look = is_faster(p, other, mean) ? TRLI_LOOK_BEGUN : TRLI_LOOK_OVER;
    if (p->second_look == TRLI_LOOK_OVER && !back) return false;
    const int next = back ? p->former : other;
    p->former = p->single;
    p->former_ns = mean;
    run_on(p, next);
    return true;
}

/* A run with the placement has ended. Compare its time with the prediction: if a single executor was faster, it runs
 * all; if runs have become slower, all executors are timed again. */
static void learn_placed(trli_placement *p, int64_t ns)
{
    p->sum_ns = p->runs <= LAUNCHED ? 0 : p->sum_ns + ns;
    if (ns < p->least_ns) p->least_ns = ns;
    if (p->runs_now > 0) return;
    if (p->runs == TRLI_PLACEMENT_TRIED && p->single < 0 && is_faster(p, fastest(p, false), (double)p->least_ns)) {
        run_on(p, fastest(p, false));
        return;
    }
    if (p->runs % CHECKED != 0) return;
    const double mean = (double)p->sum_ns / (p->runs == CHECKED ? CHECKED - LAUNCHED : CHECKED);
    p->sum_ns = 0;
    if (p->runs == CHECKED && look_again(p, mean)) return;
    if (p->runs == CHECKED) p->usual_ns = mean;
    if (mean > (1 + drift) * p->usual_ns) trli_placement_time_again(p);
}

/* Such a run only gathers what a GPU gets with others. */
static bool is_chained(const trli_placement *p)
{
    return p->devices && p->devices->n == 1 && p->devices->device[0]->chain;
}

/* A run has ended while devices were at work for other graphs. Where workers do all, data that other graphs leave on
 * devices is fetched for each run: in the trials these may have left it on the host, too. */
static void learn_behind_others(trli_placement *p)
{
    if (p->stage < p->platform.executors || p->runs_now > 0 || trli_placed_regions(p->placed) > 0) return;
    const int64_t fetched = p->placed->copies[TRL_WAY_OUT];
    p->fetching = fetched > p->fetched ? p->fetching + 1 : 0;
    p->fetched = fetched;
    if (p->patience == 0) p->patience = PATIENT;
    if (p->fetching < p->patience) return;
    p->patience *= 4;
    p->fetching = p->fetched = 0;
    trli_placement_time_again(p);
}

void trli_placement_learn(trli_placement *p, int64_t ns, bool timed)
{
    if (trli_placement_is_by_times(p) && !timed) {
        ++p->untimed;
        learn_behind_others(p);
        return;
    }
    ++p->runs;
    if (p->rule.mode == TRLI_PLACE_AT_RANDOM && p->runs >= REPEATED && p->runs_now == 0) trli_placement_drop(p);
    if (!trli_placement_is_by_times(p)) {
        if (ns < p->least_ns) p->least_ns = ns;
        return;
    }
    if (p->stage < p->platform.executors)
        learn_stage(p, ns);
    else if (!is_chained(p))
        learn_placed(p, ns);
}
