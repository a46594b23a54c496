/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The stable time step: what the search for transport and the program that bounds it share. */
#ifndef TRLI_LIMIT_IMPL_H
#define TRLI_LIMIT_IMPL_H

#include "simulation_impl.h"

#include "lower_impl.h"
#include "trl_bound_body.h"

typedef enum trli_transport_kind { TRLI_ADVECTION, TRLI_DIFFUSION } trli_transport_kind;

/* One transport term of an equation: a velocity or a diffusivity on the faces around the equation's points, and what
 * multiplies the divergence there. */
typedef struct trli_transport {
    trli_transport_kind kind;
    bool axis[3];          /* along which it acts */
    trli_ir_value face[3]; /* component a at the equation's location with bit a flipped */
    trli_ir_value outer;   /* at the equation's location; TRLI_NO_VALUE: one */
    bool central;          /* advection without upwinding */
} trli_transport;

typedef struct trli_transport_list {
    int n, capacity;
    trli_transport *term;
    char text[80]; /* the first term that differentiates and is not among them; "": none */
} trli_transport_list;

/* The linearised system, as far as it bounds dt. */
typedef struct trli_jacobian {
    int n;             /* equations */
    const char **text; /* [n] what the rows are mostly made of, in words of the deck */
    int nblocks;
    trli_coupling *block; /* by row and column */
    int *first;           /* [n + 1] the first block of a row */
    int *component;       /* [n] strongly connected equations */
    int ncomponents;
    int *member, *begin; /* [n], [ncomponents + 1] equations by component */
    int nsums;
    trli_quantity *sum;        /* [nsums] by_sums: the largest sums over the blocks of rows */
    bool by_sums;              /* there are too many blocks to look at each */
    const trli_opaque *plugin; /* one whose derivative is not known and that has no stable_dt, or NULL */
    double *work;              /* of the largest component: [TRLI_RATE_WORK] numbers */
} trli_jacobian;

/* By entry: whether its formula differentiates something, itself or through others. The caller frees *entries. */
TRL_NODISCARD trl_err trli_find_differentiating(trl_simulation *sim, bool **entries);
/* Find the transport of its own unknown in an equation's ddt, through named expressions, and mark it. Values are
 * lowered in the instance. mark_others: mark the other terms that differentiate, too. */
TRL_NODISCARD trl_err trli_find_transport(trl_simulation *sim, trli_instance *in, int equation,
                                          const bool *differentiating, bool mark_others, trli_marks *marks,
                                          trli_transport_list *list);

/* -- jacobian.c -- */
/* Derive the Jacobian of all equations, without what is marked: of an equation's own unknown, or with mark_all of any.
 * What is not constant becomes reductions of the program sim->limit. texts: [nequations]. Fails with INPUT, under cfl,
 * where a plugin hides a derivative. */
TRL_NODISCARD trl_err trli_jacobian_create(trl_simulation *sim, trli_instance *in, trli_marks *marks, bool mark_all,
                                           const char **texts, trli_jacobian **jacobian);
void trli_jacobian_destroy(trli_jacobian **jacobian);
/* A reduction over the points of an equation, mask considered: its largest value. */
TRL_NODISCARD trl_err trli_largest_value(trl_simulation *sim, trli_instance *in, int equation, trli_ir_value value,
                                         trli_quantity *largest);
double trli_quantity_value(const trl_simulation *sim, const trli_quantity *quantity);

/* -- limit.c, bound.c -- */
/* What bounds dt. */
typedef struct trli_bound {
    trli_quantity *known; /* [nequations] the rate of the transport that was found */
    trli_quantity given;  /* of the deck's speed and diffusivity, beside the equations */
    int nplugins;
    int *plugin; /* [nplugins] entries */
    trli_quantity *plugin_dt;
    trli_jacobian *jacobian;
    bool constant;   /* it is the same at all times */
    bool known_once; /* the program has run */
} trli_bound;

/* Run the program, of the present state. Collective: yes. */
TRL_NODISCARD trl_err trli_limit_run(trl_simulation *sim);
/* The largest rate, once the program has run. dt = C/rate; unscaled: as of cfl at C = 1, otherwise 1/rate is the
 * method's stable step. */
trli_rate trli_bound_rate(const trl_simulation *sim, bool unscaled);
/* What the largest rate follows from, for as long as the bound and the frame, if there is one, are there. */
trli_rates trli_bound_rates(const trl_simulation *sim, bool unscaled);
/* The step of a rate under cfl; fails if there is none. Without words: whether there is one. */
TRL_NODISCARD trl_err trli_limit_of(const trl_simulation *sim, const trli_rate *rate, double *dt);
bool trli_limit_gives(const trl_simulation *sim, const trli_rate *rate, double *dt);
/* The equation and the term that decide the rate, in words. */
void trli_rate_words(const trl_simulation *sim, const trli_rate *rate, size_t size, char *words);

#endif
