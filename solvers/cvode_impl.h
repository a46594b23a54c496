/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* SUNDIALS' CVODE (Hindmarsh et al. 2005): multistep methods of variable order. It knows a system y' = f(t, y) as
 * numbers in memory of this rank and a few functions; its vectors' sums are exact, so it takes the same steps on any
 * number of ranks and threads. */
#ifndef TRLI_CVODE_IMPL_H
#define TRLI_CVODE_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include <trl_loop.h>

typedef struct trli_cvode trli_cvode;

typedef struct trli_cvode_request {
    trl_context *ctx;
    trl_loop *loop; /* outlives what is made */
    int64_t n;      /* numbers of this rank */
    double points;  /* of all ranks, those that change: norms are means over these */
    bool stiff;     /* BDF with Newton's method, else Adams with fixed-point iterations */
    bool bicgstab;  /* stiff: in place of gmres */
    int subspace;   /* stiff: iterations of a linear system, at most */
    double relative, absolute;
    double dt_min, dt_max; /* 0: none */
    void *data;            /* of the functions, which are collective; an error ends the step and is returned by it */
    /* f = f(t, y). *finite: all numbers of all ranks are; else a smaller step is tried. */
    trl_err (*rates)(void *data, double t, const double *y, double *f, bool *finite);
    /* The functions of stiff systems are about the t and y of the last call of `rates`. */
    /* product = (1 - gamma df/dy) v, less v, over -gamma. *found: there is one, else a smaller step is tried. */
    trl_err (*product)(void *data, double gamma, const double *v, double *product, bool *found);
    /* OPTIONAL: make ready for approximations of the inverse of 1 - gamma df/dy, and apply it. */
    trl_err (*prepare)(void *data, double gamma);
    trl_err (*precondition)(void *data, const double *r, double *z);
} trli_cvode_request;

typedef struct trli_cvode_stats {
    int order;        /* of the last step */
    int64_t rejected; /* since it was made: steps whose error was not tolerated, or that were not solved */
    int64_t nonlinear, linear, last_nonlinear, last_linear; /* iterations: so far, and in the last step */
} trli_cvode_stats;

/* SUNDIALS' version; NULL in a build without it. */
const char *trli_cvode_library(void);
TRL_NODISCARD trl_err trli_cvode_create(const trli_cvode_request *request, trli_cvode **cvode);
void trli_cvode_destroy(trli_cvode **cvode);
/* [n] The values that a step begins with and ends at. */
double *trli_cvode_values(trli_cvode *cvode);
/* Begin at time t with these values, at order 1. dt: of the first step; 0: chosen. */
TRL_NODISCARD trl_err trli_cvode_begin(trli_cvode *cvode, double t, double dt);
/* One step. toward: a time beyond the present one; land: steps do not go beyond it. Fails with NUMERICS, and says why
 * in *message, an empty text if it is an error of a function: it is returned. Collective: yes. */
TRL_NODISCARD trl_err trli_cvode_step(trli_cvode *cvode, double toward, bool land, double *t, double *next_dt,
                                      const char **message);
/* The values at a time in the last step, until the next call. */
TRL_NODISCARD trl_err trli_cvode_between(trli_cvode *cvode, double t, const double **values);
void trli_cvode_get_stats(const trli_cvode *cvode, trli_cvode_stats *stats);

#endif
