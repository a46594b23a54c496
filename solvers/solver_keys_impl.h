/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which of a solver's settings which methods use. */
#ifndef TRLI_SOLVER_KEYS_IMPL_H
#define TRLI_SOLVER_KEYS_IMPL_H

#include <stddef.h>

#include <trl_solver.h>

typedef enum trli_systems { TRLI_SYSTEMS_ALL, TRLI_SYSTEMS_LINEAR, TRLI_SYSTEMS_NONLINEAR } trli_systems;

/* A key of a solver besides its method: who uses it. */
typedef struct trli_solver_key {
    const char *name; /* below `solvers.NAME`, parts joined by a dot */
    double (*value)(const trl_solver_entry *e);
    unsigned methods;     /* a bit for each */
    unsigned always;      /* likewise: those that have no such key because they do what it says in any case */
    bool cycles;          /* only where multigrid is the method or the preconditioner */
    bool bdf;             /* CVODE's Newton steps use it, too */
    trli_systems systems; /* only for such ones */
} trli_solver_key;

/* What a system is solved by. */
typedef struct trli_solver_use {
    trl_solve_method method;
    bool cycles;          /* of multigrid, by themselves or as a preconditioner, which there may be */
    bool bdf;             /* the method is CVODE's */
    trli_systems systems; /* which are solved; ALL: either */
} trli_solver_use;

const trli_solver_key *trli_solver_keys(int *n);
/* What is known of the use from the settings alone. bdf: its systems are those of bdf. */
trli_solver_use trli_solver_use_of(const trl_solver_entry *e, bool bdf);
/* Whether a key has another value than where a deck says nothing. */
bool trli_solver_key_is_set(const trli_solver_key *key, const trl_solver_entry *e);
bool trli_solver_key_is_used(const trli_solver_key *key, const trli_solver_use *use);
/* "direct", "cg with preconditioner jacobi": what does not use a key. */
void trli_solver_key_write_method(const trli_solver_key *key, const trl_solver_entry *e, char *text, size_t size);
/* "gmres", "multigrid, and auto, cg and gmres with preconditioner multigrid": what uses it. */
void trli_solver_key_write_users(const trli_solver_key *key, char *text, size_t size);
/* Keys that are set and not used, joined by ", "; "" if there are none. */
void trli_solver_write_unused(const trl_solver_entry *e, const trli_solver_use *use, char *text, size_t size);

#endif
