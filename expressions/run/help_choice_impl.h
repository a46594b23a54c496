/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* When ranks of a node help one another, and with how much: chosen anew behind each window of steps, from what all
 * ranks of the node have measured in the window before, so that all of them choose alike without a message. */
#ifndef TRLI_HELP_CHOICE_IMPL_H
#define TRLI_HELP_CHOICE_IMPL_H

#include <stdbool.h>

enum {
    TRLI_HELP_STEPS = 32, /* of a window, at most */
    TRLI_HELP_WHOLE = 64, /* parts of a kernel's planes that shares are counted in, */
    TRLI_HELP_MOST = 32   /* and the largest share that is offered */
};

/* What a rank measured in a window. */
typedef struct trli_help_window {
    double waited; /* part of its time in which it waited while messages were under way */
    double step;   /* seconds of a step, the median */
    int share;     /* of its kernels that it offered, */
    double taken;  /* and the part of it that others computed */
} trli_help_window;

typedef enum trli_help_state {
    TRLI_HELP_APART, /* nobody offers anything */
    TRLI_HELP_TRIAL, /* windows with help and without alternate */
    TRLI_HELP_SHARED
} trli_help_state;

/* Begins with zeros. */
typedef struct trli_help_choice {
    trli_help_state state;
    int windows;         /* seen in this state; of TRLI_HELP_APART in which ranks were uneven */
    int rest, last_rest; /* windows before the next trial; the same after the last one that failed */
    double seconds[2];   /* of a step in the fastest window of a trial, without help and with it, */
    int seen[2];         /* and windows of each */
    bool helped, helps;  /* in the window before the present one; in the present one, then in the next one */
    int steps;           /* of a window, from the next one on; 0: no window was seen yet */
    double share;        /* of this rank */
} trli_help_choice;

/* Behind a window: choose for the next one, from what n ranks measured in the window before, this one the own-th. */
void trli_help_choose(trli_help_choice *choice, int n, const trli_help_window *window, int own);
/* Steps of a window from the next one on. */
int trli_help_steps_of(const trli_help_choice *choice);
/* What this rank offers in the next window, in parts of TRLI_HELP_WHOLE. */
int trli_help_share_of(const trli_help_choice *choice);

#endif
