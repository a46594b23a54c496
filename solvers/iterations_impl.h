/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Iterations of a method that are programs alone, as a call in one task graph: between two of them no worker is
 * dismissed. Where some rank has devices the host runs the programs, which are launched at once. */
#ifndef TRLI_ITERATIONS_IMPL_H
#define TRLI_ITERATIONS_IMPL_H

#include "called_programs_impl.h"
#include "krylov_impl.h"

enum { TRLI_ITERATION_PARTS = 2 };

typedef struct trli_iterations trli_iterations;

/* A part of an iteration: a program, and what follows it: vectors are exchanged, scalars set. After the last part it
 * says whether another iteration follows, by what is the same on all ranks. */
typedef struct trli_iteration_part {
    trli_program *program;
    bool (*after)(trli_solver *s, void *method);
    const trli_iterations *of; /* set by trli_iterations_compile, as what follows */
    trli_program_call call;
} trli_iteration_part;

struct trli_iterations {
    trli_solver *solver;
    void *method; /* of the functions */
    int nparts;
    trli_iteration_part part[TRLI_ITERATION_PARTS];
    trli_program *one, *all; /* an iteration, and the call of iterations; all NULL: the host runs them */
    trli_program_call call;
    bool goes_on;
};

/* How far a run of a method is, which its functions decide by, and in the end what it says. */
typedef struct trli_krylov_progress {
    double target, norm;
    int most, done; /* iterations */
    bool broken;
} trli_krylov_progress;

static inline bool trli_krylov_goes_on(const trli_krylov_progress *p)
{
    return p->done < p->most && !(p->norm <= p->target) && !p->broken;
}

/* rr: the square of the first residual. */
void trli_krylov_begin_run(trli_solver *s, trli_krylov_progress *p, double rr, double target, int most);
void trli_krylov_end_run(const trli_krylov_progress *p, int *iterations, double *norm, bool *broken);

/* Once the parts have all of their steps. what: of a program's name; changes: [n] vectors that functions exchange;
 * scalar: [nscalars] that they set. `it` lives as long as the model. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_iterations_compile(trli_iterations *it, const char *what, int n,
                                              const trli_vector *const *changes, int nscalars, const int *scalar);
/* Iterations until the last part's function says that it is enough; one at least. Collective: yes. */
TRL_NODISCARD trl_err trli_iterations_run(trli_iterations *it);

#endif
