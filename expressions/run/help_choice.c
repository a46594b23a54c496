/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "help_choice_impl.h"

enum {
    UNEVEN_WINDOWS = 2, /* one after the other, before a trial */
    TRIED = 4,          /* windows of each kind that decide a trial, */
    SETTLING = 2,       /* after so many with help, in which shares change the most */
    STEPS_LEAST = 8,    /* of a window */
    AGAIN = 256,        /* windows with help before the next trial of it */
    REST_LEAST = 32,    /* windows without help after a trial that failed; twice as many after the next one */
    REST_MOST = 2048
};
static const double waits = 0.15;    /* part of a rank's time: it waits for others, */
static const double works = 0.33;    /* which wait for less than this part of it */
static const double window_s = 1e-2; /* that a window takes, if it has steps enough */
static const double gain = 0.97;     /* steps with help take less than this */
static const double beyond = 1.5;    /* so many times what would be enough is offered first */
static const double least_share = 1.0 / 32, most_share = (double)TRLI_HELP_MOST / TRLI_HELP_WHOLE;

/* Whether a rank hardly waits, and some other one does. */
static bool is_waited_for(int n, const trli_help_window *window, int rank)
{
    double most = 0;
    for (int i = 0; i < n; ++i)
        if (window[i].waited > most) most = window[i].waited;
    return most > waits && window[rank].waited < works * most;
}

static bool is_uneven(int n, const trli_help_window *window)
{
    bool any = false;
    for (int i = 0; i < n; ++i) any |= is_waited_for(n, window, i);
    return any;
}

/* What a rank would have to give away for all to end together is what they wait on average. It offers more, since a
 * part that it takes back costs little. A rank that gave too much waits itself, and where others take less than half of
 * what is offered there is less to give. Half of a correction at once, since windows differ by chance. */
static void adapt(trli_help_choice *c, int n, const trli_help_window *window, int own)
{
    double mean = 0;
    for (int i = 0; i < n; ++i) mean += window[i].waited / n;
    const double waited = window[own].waited, idle = window[own].taken < 0.5 ? 1 - 2 * window[own].taken : 0;
    if (c->share > 0)
        c->share += (mean - waited - idle * c->share) / 2;
    else if (is_waited_for(n, window, own))
        c->share = beyond * (mean - waited);
    if (c->share < least_share) c->share = 0;
    if (c->share > most_share) c->share = most_share;
}

static void enter(trli_help_choice *c, trli_help_state state)
{
    c->state = state;
    c->windows = 0;
    c->seen[0] = c->seen[1] = 0;
    c->seconds[0] = c->seconds[1] = 0;
    c->helps = state != TRLI_HELP_APART;
    if (state == TRLI_HELP_APART) c->share = 0;
}

static void look_apart(trli_help_choice *c, int n, const trli_help_window *window, int own)
{
    if (c->rest > 0) --c->rest;
    c->windows = is_uneven(n, window) ? c->windows + 1 : 0;
    if (c->windows < UNEVEN_WINDOWS || c->rest > 0) return;
    adapt(c, n, window, own);
    enter(c, TRLI_HELP_TRIAL);
}

static void end_trial(trli_help_choice *c)
{
    if (c->seconds[1] < gain * c->seconds[0]) {
        c->last_rest = 0;
        enter(c, TRLI_HELP_SHARED);
        return;
    }
    c->rest = c->last_rest < REST_LEAST ? REST_LEAST : 2 * c->last_rest;
    if (c->rest > REST_MOST) c->rest = REST_MOST;
    c->last_rest = c->rest;
    enter(c, TRLI_HELP_APART);
}

/* Steps are as slow as the slowest rank, so those of all ranks count. The fastest window does: what else goes on makes
 * others slower. */
static void look_at_trial(trli_help_choice *c, int n, const trli_help_window *window)
{
    const bool helped = c->helped;
    c->helps = !c->helps;
    c->windows += helped;
    if (c->windows <= SETTLING || c->seen[helped] == TRIED) return;
    double seconds = 0;
    for (int i = 0; i < n; ++i) seconds += window[i].step;
    if (c->seen[helped] == 0 || seconds < c->seconds[helped]) c->seconds[helped] = seconds;
    ++c->seen[helped];
    if (c->seen[0] == TRIED && c->seen[1] == TRIED) end_trial(c);
}

static void look_shared(trli_help_choice *c, int n, const trli_help_window *window)
{
    bool any = false;
    for (int i = 0; i < n; ++i) any |= window[i].share > 0;
    if (++c->windows > 1 && !any)
        enter(c, TRLI_HELP_APART);
    else if (c->windows >= AGAIN)
        enter(c, TRLI_HELP_TRIAL);
}

/* Long steps differ less by chance, and fewer of them are waited for. */
static int steps_for(int n, const trli_help_window *window)
{
    double seconds = 0;
    for (int i = 0; i < n; ++i) seconds += window[i].step / n;
    const double steps = seconds > 0 ? window_s / seconds : TRLI_HELP_STEPS;
    return steps > TRLI_HELP_STEPS ? TRLI_HELP_STEPS : steps < STEPS_LEAST ? STEPS_LEAST : (int)steps;
}

void trli_help_choose(trli_help_choice *c, int n, const trli_help_window *window, int own)
{
    const bool present = c->helps;
    c->steps = steps_for(n, window);
    if (c->helped) adapt(c, n, window, own);
    if (c->state == TRLI_HELP_APART)
        look_apart(c, n, window, own);
    else if (c->state == TRLI_HELP_TRIAL)
        look_at_trial(c, n, window);
    else
        look_shared(c, n, window);
    c->helped = present;
}

int trli_help_steps_of(const trli_help_choice *c)
{
    return c->steps > 0 ? c->steps : STEPS_LEAST;
}

int trli_help_share_of(const trli_help_choice *c)
{
    return c->helps ? (int)(c->share * TRLI_HELP_WHOLE + 0.5) : 0;
}
