/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How systems of equations without a time derivative are solved: what a deck says under `solvers`. */
#ifndef TRL_SOLVER_H
#define TRL_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name, doc) */
#define TRL_SOLVE_METHOD_LIST(X)                                                                                   \
    X(AUTO, auto, "direct where that is possible and costs less, else cg for a symmetric operator, else bicgstab") \
    X(DIRECT, direct,                                                                                              \
      "Fourier, sine and cosine transforms and elimination, where the operator is a sum of one along each axis")   \
    X(MULTIGRID, multigrid, "cycles on coarser and coarser grids")                                                 \
    X(CG, cg, "conjugate gradients (Hestenes & Stiefel 1952), for symmetric operators")                            \
    X(PIPELINED_CG, pipelined_cg,                                                                                  \
      "conjugate gradients of one message in an iteration, which travels beside the product (Ghysels & Vanroose "  \
      "2014): for many ranks with few points each")                                                                \
    X(BICGSTAB, bicgstab, "stabilised biconjugate gradients (van der Vorst 1992)")                                 \
    X(GMRES, gmres, "generalised minimal residuals, restarted (Saad & Schultz 1986)")                              \
    X(LU, lu,                                                                                                      \
      "sparse factors of the whole matrix (KLU), on the host: for what iterations do not solve, of up to some "    \
      "100,000 unknowns")                                                                                          \
    X(PSEUDO_TIME, pseudo_time, "dual time: explicit steps in pseudo-time, of a size of its own at each point")
#define TRL_PRECONDITIONER_LIST(X)                           \
    X(AUTO, auto, "multigrid where cycles pay, else jacobi") \
    X(MULTIGRID, multigrid, "a cycle of multigrid")          \
    X(NONE, none, "no preconditioner")                       \
    X(JACOBI, jacobi, "division by the operator's diagonal, of up to 24 unknowns of a point by what couples them")
#define TRL_SOLVE_CYCLE_LIST(X)                                          \
    X(AUTO, auto, "f for the method multigrid, v for a preconditioner")  \
    X(V, v, "each coarser grid once")                                    \
    X(F, f, "each coarser grid twice, in the second place by a V cycle") \
    X(W, w, "each coarser grid twice as often as the next finer one, but the coarsest")
#define TRL_SMOOTHER_LIST(X)                                                                              \
    X(AUTO, auto, "chebyshev")                                                                            \
    X(CHEBYSHEV, chebyshev, "polynomials of the operator; only axes of strong coupling are made coarser") \
    X(RED_BLACK, red_black, "points of one colour after those of the other (Gauss & Seidel), likewise")   \
    X(LINE, line, "lines along the axis of the strongest coupling, or if it varies along all, by elimination")
#define TRL_SOLVE_METHOD_ENUM(NAME, name, doc) TRL_SOLVE_##NAME,
typedef enum trl_solve_method { TRL_SOLVE_METHOD_LIST(TRL_SOLVE_METHOD_ENUM) TRL_SOLVE_METHODS } trl_solve_method;
#undef TRL_SOLVE_METHOD_ENUM
#define TRL_PRECONDITIONER_ENUM(NAME, name, doc) TRL_PRECONDITIONER_##NAME,
typedef enum trl_preconditioner { TRL_PRECONDITIONER_LIST(TRL_PRECONDITIONER_ENUM) } trl_preconditioner;
#undef TRL_PRECONDITIONER_ENUM
#define TRL_SOLVE_CYCLE_ENUM(NAME, name, doc) TRL_CYCLE_##NAME,
typedef enum trl_solve_cycle { TRL_SOLVE_CYCLE_LIST(TRL_SOLVE_CYCLE_ENUM) } trl_solve_cycle;
#undef TRL_SOLVE_CYCLE_ENUM
#define TRL_SMOOTHER_ENUM(NAME, name, doc) TRL_SMOOTHER_##NAME,
typedef enum trl_smoother { TRL_SMOOTHER_LIST(TRL_SMOOTHER_ENUM) } trl_smoother;
#undef TRL_SMOOTHER_ENUM

/* Residuals are measured as norm(A - B). */
typedef struct trl_solver_entry {
    const char *name; /* NULL: that of equations which name none */
    trl_place place;
    trl_solve_method method;
    trl_preconditioner preconditioner;
    trl_solve_cycle cycle;   /* of multigrid */
    trl_smoother smoother;   /* likewise */
    int64_t replicate;       /* of it: ranks share a coarser grid where each would have so many points of others */
    double tolerance;        /* the residual wanted, relative to that of zero */
    double absolute;         /* and one that is small enough in any case */
    int iterations;          /* at most, of a linear system */
    int restart;             /* of gmres: iterations between restarts */
    bool single_reduction;   /* of cg and bicgstab: all sums of an iteration are one message */
    double newton_tolerance; /* of nonlinear equations, in place of tolerance */
    int newton_iterations;
} trl_solver_entry;

/* What is used where a deck says nothing. */
#define TRL_SOLVER_DEFAULTS                                                                                     \
    {                                                                                                           \
        .tolerance = 1e-8, .iterations = 200, .restart = 30, .newton_tolerance = 1e-8, .newton_iterations = 20, \
        .replicate = 10000                                                                                      \
    }

/* What coarser grids have: the equation, products of the operator's entries, or the one or the other in each solve. */
typedef enum trl_coarse_grids { TRL_COARSE_EQUATION, TRL_COARSE_ENTRIES, TRL_COARSE_EITHER } trl_coarse_grids;

/* What solving did. */
typedef struct trl_solve_stats {
    const char *unknowns;       /* of the system, joined by ", " */
    const char *method;         /* that was used last, in words */
    const char *preconditioner; /* likewise */
    const char *why;            /* the method was chosen, in words that go on from them; NULL: the deck says so */
    const char *direct;         /* what a direct solution is made of, in words; NULL: it was none */
    double operations;          /* of a direct solution, for each point; and */
    double other_operations;    /* what auto expects of other methods */
    const char *no_gpu;         /* why the CPU solves directly what GPUs have; or NULL */
    const char *no_direct;      /* why it is none, though it might be; or NULL */
    const char *no_multigrid;   /* why the preconditioner is not multigrid, though it might be; or NULL */
    int levels;                 /* of multigrid; 0: none */
    trl_smoother smoother;      /* of it, if not chebyshev; and axes of its lines on the first grid, a bit each */
    unsigned line_axes;
    trl_coarse_grids coarse;    /* what multigrid's coarser grids have, */
    const char *entries;        /* and why these are entries, or are so at present, in words; or NULL */
    bool linear, singular;      /* singular: constants are in the null space */
    bool pseudo_time;           /* it is solved by steps in pseudo-time */
    double condition;           /* a bound of it, of the matrix over its diagonal; INFINITY: none; 0: not looked for */
    int guessed, guess_steps;   /* solves of a step whose first guesses follow from so many steps before; 0: none */
    int64_t solves, iterations; /* so far */
    int64_t looks;              /* so far: how often the operator's symmetry and null space were looked for */
    int last_iterations, last_newton;
    double last_residual;  /* norm(A - B) after the last solve, */
    double last_reference; /* and of zero */
} trl_solve_stats;

#ifdef __cplusplus
}
#endif
#endif
