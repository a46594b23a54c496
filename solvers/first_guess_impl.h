/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* First guesses with corrections of the steps before: a step solves the same systems as the one before it, in the same
 * order, and what each solution had beyond its first guess changes little. Of each solve of a step the last ones of
 * these corrections are kept, over dt; the guess gets what they extrapolate to. */
#ifndef TRLI_FIRST_GUESS_IMPL_H
#define TRLI_FIRST_GUESS_IMPL_H

#include "krylov_impl.h"

enum { TRLI_CORRECTIONS_MOST = 3 };

/* Of one solve of a step. */
typedef struct trli_corrections {
    trli_vector last[TRLI_CORRECTIONS_MOST]; /* the newest first */
    int known;                               /* so many of them have values */
    int filled;                              /* fields of a checkpoint that were read, from the first one on */
    bool fresh;                              /* the newest one is of a step that may still be rejected */
} trli_corrections;

struct trli_guesses {
    int n, terms;         /* solves of a step; corrections of each */
    trli_corrections *of; /* [n] programs have the fields of the first one, whose places others take for a run */
    trli_vector plain;    /* the guess without them */
    int factor[TRLI_CORRECTIONS_MOST], inverse_dt; /* scalars */
    trli_program *guess, *note;
    int next;      /* the number of the next solve; -1: it is not one of a step's */
    bool extended; /* the present solve has its corrections in its guess */
};

/* For a linear system that iterations solve, of a request with `solves`; once it is known that none is solved directly.
 * Fails with MEMORY. */
TRL_NODISCARD trl_err trli_guess_history_compile(trli_solver *s);
void trli_guess_history_equalise(const trli_solver *s);
/* If trli_solver_guess was called before: x is what the request has as a guess. Collective: yes. */
TRL_NODISCARD trl_err trli_guess_provide(trli_solver *s);
/* Where there are corrections of the present solve: x is the first guess with them. Collective: yes. */
TRL_NODISCARD trl_err trli_guess_begin(trli_solver *s);
/* Whether a guess with corrections has a residual that is larger than that of zero: x is then the guess without, and
 * they are forgotten. */
bool trli_guess_withdraw(trli_solver *s, double norm, double of_zero);
/* Note what the solution has beyond the guess. Collective: yes. */
TRL_NODISCARD trl_err trli_guess_note(trli_solver *s);

#endif
