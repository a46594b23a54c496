/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Equations without a time derivative among the steps of a simulation, and the flow's pressure, which is one of them:
 * solve_equations.c and flow.c. */
#ifndef TRLI_SOLVING_IMPL_H
#define TRLI_SOLVING_IMPL_H

#include "flow_impl.h"
#include "solve_impl.h"

struct trli_solving {
    trl_simulation *sim;
    bool in_steps;
    int time_scalar;
    int *at;             /* [equations] the fields that are solved on */
    int *stage;          /* [stages][equations] where a stage's values are */
    trli_program *load;  /* the present state to these fields */
    trli_program *guess; /* the present solutions to the next level */
    int nsolvers;
    trli_solver **solver; /* in the order in which they need each other */
    int flow_solver;      /* the one of the pressure, or -1 */
    bool changing;        /* dt, or the step, is read */
    double dt;            /* of the last solution of the present state */
    trl_gidx step;
};

/* Equations that are solved together: the data of the request for their solver. */
typedef struct trli_system {
    const struct trli_solving *solving;
    const int *equation;
} trli_system;

/* The instance that equations are solved in, in a program of that, and that of the step's start, or none. */
TRL_NODISCARD trl_err trli_solving_instance(const struct trli_solving *so, trli_program *program, trli_instance **in,
                                            trli_instance **old);
/* Put the values of a stage where equations are solved; again: back. */
void trli_solving_swap(const struct trli_solving *so, int stage);

#endif
