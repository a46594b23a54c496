/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which of several ways to take steps is the fastest: they are tried one after the other, in rounds, and one stays. */
#ifndef TRLI_TRIAL_IMPL_H
#define TRLI_TRIAL_IMPL_H

#include <stdbool.h>

enum { TRLI_WAYS_MOST = 8, TRLI_ROUNDS_MOST = 7 };

typedef struct trli_trial_rules {
    int settling;    /* steps before the first round */
    int rounds, few; /* after a few of them ways that are far behind are tried no more */
    int steps;       /* of a way in a round, at least, */
    double ns;       /* and the time that they take */
    int misses;      /* of a way in a round, after which it is tried no more */
    double gain;     /* another way than the first stays only if it takes less than this of the first's time */
} trli_trial_rules;

typedef struct trli_trial {
    trli_trial_rules rules;
    int nways; /* 1: nothing is tried */
    int settled, best;
    int round, tried, steps_done; /* under way */
    int missed;                   /* of the way that is tried */
    double ns;                    /* of those steps */
    double ns_per_step[TRLI_WAYS_MOST][TRLI_ROUNDS_MOST];
    bool behind[TRLI_WAYS_MOST];
} trli_trial;

static inline bool trli_trial_seeks(const trli_trial *trial)
{
    return trial->nways > 1 && trial->round < trial->rules.rounds;
}

static inline bool trli_trial_is_settled(const trli_trial *trial)
{
    return trial->settled >= trial->rules.settling;
}

/* A step was taken, in any way. */
static inline void trli_trial_settle(trli_trial *trial)
{
    if (!trli_trial_is_settled(trial)) ++trial->settled;
}

/* How the next step is to be taken. */
static inline int trli_trial_way(const trli_trial *trial)
{
    if (!trli_trial_seeks(trial)) return trial->best;
    return trli_trial_is_settled(trial) ? trial->tried : 0;
}

/* Whether the way that is tried has its share of steps of the round with so many more. */
static inline bool trli_trial_ends(const trli_trial *trial, int steps)
{
    return trial->steps_done + steps >= trial->rules.steps;
}

/* Note the time of steps of the way that is tried; once it has its share of the round, the next one is tried. */
void trli_trial_note(trli_trial *trial, double ns, int steps);

/* The way that is tried could not be taken, because an event is too near. Never of one step at a time. */
void trli_trial_miss(trli_trial *trial);

#endif
