/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A solver's vectors and programs, shared by solve.c, which makes the system, and by the files of its methods. */
#ifndef TRLI_KRYLOV_IMPL_H
#define TRLI_KRYLOV_IMPL_H

#include "solve_impl.h"

/* Values of all unknowns. Programs read `now` and write `next`, then both change places. */
typedef struct trli_vector {
    int *now, *next; /* [n] fields; next NULL: written as a whole, from other vectors */
} trli_vector;

/* A program that computes the residual, and scalars: r.r, squares of size, error and residual of zero or -1, sums. */
typedef struct trli_residual {
    trli_program *program;
    int rr, size, error, zero, *sum; /* [n] sums */
} trli_residual;

/* Solves of a step that are told apart. */
enum { TRLI_PLACES = 8 };

typedef struct trli_direct trli_direct;
typedef struct trli_krylov trli_krylov; /* a method's own programs and scalars */

struct trli_solver {
    trl_simulation *sim;
    trli_solve_request ask;
    trl_solver_entry settings;
    int first_field, end_field;    /* of the model: made for it */
    int direction, first_tangent;  /* of the tangents, which the Jacobian is applied to: variables of the model */
    double drift[3];               /* of these what is on one side more than on the other: advection */
    double strength[3];            /* of the coupling of neighbours along an axis, where it is a number; else 0 */
    int *in_field, *old_field;     /* [equations] where the instance of F has their values, and that of the start */
    bool *reads, *reads_old;       /* [equations] the Jacobian reads them there; */
    bool *needs, *needs_old;       /* or conditions of what it reads do */
    bool opaque, reduces, coupled; /* it reads what no formula gives; sums; unknowns of each other's equations */
    int *scalar, nscalars, scalars_room;  /* that the Jacobian reads, whatever is stored of it */
    const trli_solver *finest;            /* of a coarser grid: that of the first grid; else NULL */
    struct trli_multigrid *multigrid;     /* NULL: none */
    struct trli_guesses *history;         /* likewise */
    struct trli_pseudo_time *pseudo_time; /* likewise */
    trli_direct *direct;                  /* NULL: none */
    bool linear, gaps_move, unseen; /* J does not read x; fields say where points are; it reads what plugins make */
    trli_vector x;                  /* the unknowns */
    trli_vector c;                  /* the correction of a step of Newton's method; of a linear system x itself */
    trli_vector r;                  /* F's negative, less the Jacobian times c */
    trli_vector d;                  /* what the Jacobian is applied to, */
    trli_vector q;                  /* and the product */
    trli_vector inverse;            /* of the diagonal, where it varies; now NULL: nowhere */
    trli_ir_value *inverse_value;   /* [n] what jacobi multiplies a residual with; TRLI_NO_VALUE: nothing */
    trli_ir_value *block_value;     /* [n][n] in place of it: of blocks of unknowns; NULL: there are none. Rows of */
    bool *constraint;               /* [n] of saddle.c; NULL: this is no saddle point */
    int *eliminated, neliminated;   /* [n] these unknowns, in this order, are factors, with the inverse of pivots */
    int *coupling;                  /* [n][n] fields of derivatives at one point; NULL: they are not known */
    double *coupling_number;        /* [n][n] where the field is -1 */
    trli_program *couple;           /* finds them */
    bool star, plain;               /* rows are of the nearest points along axes; and of numbers alone */
    bool bounded;                   /* of each row the sum of magnitudes over the diagonal is known: */
    double *bound_number;           /* [2][n] the largest, and that of entries of the row's own unknown, or */
    int *bound_scalar;              /* [2][n] -1, or the scalar that has it once the diagonal is found */
    double *skewness_number;        /* [n][3] of skewness.c: of an equation, of points, of being tied, or */
    int *skewness_scalar;           /* [n][3] the scalars that have the sums over all points; or -1 */
    bool skewed, tied;              /* that is much */
    int *extreme;                   /* [n][2] likewise: the largest magnitude of its diagonal, and of the inverse */
    double *known, *seen; /* by scalar: what the Jacobian reads, of the diagonal, and when it was looked at; or NULL */
    bool current;         /* the diagonal is that of the Jacobian as it was then */
    int64_t ndiagonals, coarsened; /* how many times it was found; the one that coarser grids are for, 0: none */
    trli_program *apply, *diagonal, *skewness, *terms, *zero, *probe[3], *compare[3], *take_trial, *take_residual,
        *measure, *move, *estimate, *shift, *centre, *extrapolate, *guess, *means[2], *scale_r, *scale_c;
    trli_residual residual;               /* of x, with the size */
    trli_residual residual_alone;         /* without; program NULL: there is no size */
    trli_residual of_zero, of_zero_alone; /* likewise where x is zero; program NULL: not known without x */
    trli_residual given;                  /* r is a right-hand side of the caller's; program NULL: there is none */
    struct trli_joint_sums *joint;        /* of equations' products; NULL: there are none */
    int terms_size;                       /* of trli_solver_find_rounding */
    double size;                          /* what the request's size is, as last found; -1: it has none */
    double error;                         /* norm of the residual over what the request tolerates, as last found; 0 */
    bool trusted, sure; /* solutions of the step `trusted_step`, or of later ones, by this method and of the operator
                           with the diagonal of this number, need not be looked at */
    trl_solve_method trusted_method;
    int64_t trusted_diagonal;
    trl_gidx trusted_step, mean_step;
    trl_gidx sized_step;            /* in which the size was found last: in each, or where rounding may matter */
    bool at_zero, ahead, guess_due; /* x is zero; the method has begun with r; x is to be what ask.from has */
    int place, needed[TRLI_PLACES]; /* of the present solve in `placed_step`; iterations of the last one there */
    trl_gidx placed_step;
    struct trli_relaunch *launch; /* of what is launched together, NULL: not made; and such parts, in one another */
    int launching;
    bool mean_set;      /* a direct solution makes it what it should be */
    bool mean_known;    /* the solution of the step `mean_step` has it */
    double wanted_mean; /* of a direct solution, where it is free */
    /* Scalars: q.q, d.d, of q with what `with` says, r.r once it is balanced, once scaled, of a trial, x.x, x.r. */
    int qq[3], dd[3], compared[3], centred_rr, scaled_rr, trial_rr, xx, xr;
    int *one, *noise, *with_one; /* [n] scalars: factors of 1 and of random values in d, and of 1 in what q is compared
                                    with, for each unknown */
    int with;                    /* the comparison that was made last */
    int *x_sum[2];               /* [n] scalars of `means`: sums of x, and of what it is to begin with */
    int *scaled_sum;             /* [n] scalars: sums of r once it is scaled */
    double *r_sum;               /* [n] sums of r, as last computed */
    int *r_offset, *x_points, *x_wanted, *x_free; /* [n] scalars: of r; points, mean, and whether this is free, of x */
    int estimated;      /* scalar: of the program `estimate`, where the system is not linear */
    int length, factor; /* scalars: of the step along c, or from an earlier solution on; what r and c are scaled by */
    trl_solve_method method;     /* that is used, once the system was looked at, and */
    trl_solve_method krylov;     /* where auto solves, and not directly */
    bool cycles, cycles_failed;  /* cycles of multigrid are the preconditioner; they were, and were no good */
    bool insists;                /* they are whatever speaks against them */
    bool called;                 /* iterations without cycles are a call in one task graph */
    bool factored, warned;       /* by the method lu, as others did not lead to the solution; of that */
    bool direct_failed, stalled; /* likewise the direct solution; restarts of gmres do not get on */
    bool prepared, takes_given;  /* the present method is ready; what is solved has a given right-hand side */
    bool looked, brought;        /* the operator was looked at; the last solution has what ask.around says */
    bool *singular, *balanced;   /* [n] constants of an unknown are in the null space; and in the adjoint's */
    double *points;              /* [n] the sum of weights of an unknown's points */
    double all_points;
    double *mean;                         /* [n] of the guess */
    trli_krylov *made[TRL_SOLVE_METHODS]; /* by method; NULL: not asked for */
    trli_krylov *made_cg_cycles;          /* cg with multigrid */
    double lost, enough, fine; /* of a solve: what rounding makes of the residual; what suffices; the aim, or less */
    double r_norm;             /* norm(r), if r is what it was found of, else -1 */
    double power;              /* of two: r and all norms are multiplied by it, where squares would be no numbers; */
    bool scaled;               /* c, which is x, is, too */
    double scale, trial;       /* of the operator: what it makes of vectors of length 1; the size of trial vectors */
    double reference;          /* the residual of zero, in the present solve */
    double least, at_x;        /* residuals: the least one in the present linear system; where x is */
    trl_gidx step;             /* of messages */
    double time;
    trl_solve_stats stats;
};

/* A Krylov method: how it is compiled for a solver, and what it does. */
typedef struct trli_krylov_type {
    const char *words;
    int sums; /* messages of sums in an iteration, beside those of cycles */
    trl_err (*compile)(trli_solver *s, trli_krylov **method); /* *method is kept by the model; OPTIONAL */
    /* OPTIONAL, before norm(r) is known: what `run` begins with, which has s->ahead then. c and r stay. */
    trl_err (*begin)(trli_solver *s, trli_krylov *m);
    /* Reduce norm(r) to the target by changing c, in `most` iterations at most. *broken: it cannot go on. */
    trl_err (*run)(trli_solver *s, trli_krylov *m, double target, int most, int *iterations, double *norm,
                   bool *broken);
} trli_krylov_type;

extern const trli_krylov_type trli_krylov_lu, trli_krylov_cg, trli_krylov_bicgstab, trli_krylov_gmres,
    trli_krylov_cg_cycles, trli_krylov_cycles, trli_krylov_direct, trli_krylov_pipelined, trli_krylov_single_cg,
    trli_krylov_single_cg_cycles, trli_krylov_single_bicgstab;

/* ---- solve.c, solve_vectors.c, solve_ahead.c ---- */

/* A solver of a coarser grid: tangents and the diagonal, no methods. Its callbacks get it as their data.
 * old_field: [equations] of the state at the start of the step. */
TRL_NODISCARD trl_err trli_solver_add_level(trl_simulation *sim, const trli_solver *finest,
                                            const trli_solve_request *request, const int *old_field,
                                            trli_solver **solver);
/* Fields added from here on are not its own. */
void trli_solver_end_fields(trli_solver *solver);
void trli_vector_equalise(const trli_solver *s, const trli_vector *v);
/* Run a program without an agreement of the ranks: whoever runs a chain of them agrees at its end. */
TRL_NODISCARD trl_err trli_solver_run_alone(trli_solver *s, const trli_program *program);

TRL_NODISCARD trl_err trli_solver_begin(trli_solver *s, const char *what, trli_program **program);
/* What the derivatives of equations by unknowns are found with, in a program that needs them. */
typedef struct trli_solver_rows {
    trli_instance *in, *old;
    trli_instance *marked; /* in which equations are lowered */
    struct trli_partials *partials;
} trli_solver_rows;

/* Begin a program with them; end it whether that failed or not. */
TRL_NODISCARD trl_err trli_solver_begin_rows(trli_solver *s, const char *what, trli_program **program,
                                             trli_solver_rows *rows);
void trli_solver_end_rows(trli_solver_rows *rows);
TRL_NODISCARD trl_err trli_vector_add(trli_solver *s, const char *name, bool pair, trli_vector *v);
void trli_vector_swap(const trli_solver *s, const trli_vector *v);
/* Run a program of the solver, unless it is empty. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_program(trli_solver *s, trli_program *program);
/* The values of a vector. */
void trli_solver_read(const trli_solver *s, const int *field, trli_ir_value *value);
/* Append: field = value of each unknown, at all points that are unknown. */
TRL_NODISCARD trl_err trli_solver_store(trli_solver *s, trli_program *program, const int *field,
                                        const trli_ir_value *value);
/* Append to a program of products, whose tangents the instance has: their points on sides, where conditions set these
 * by unknowns, and ghosts. */
TRL_NODISCARD trl_err trli_solver_fill_products(const trli_solver *s, trli_instance *in);
/* Append: q = J d. */
TRL_NODISCARD trl_err trli_solver_product_with(trli_solver *s, trli_program *program);
/* Points where the mask of an unknown is 0, or which conditions in a part of a side set, are no unknowns: *value is 0
 * there. in: where the mask is evaluated. */
TRL_NODISCARD trl_err trli_solver_masked(const trli_solver *s, trli_instance *in, int i, trli_ir_value *value);
/* Whether there may be such points. */
bool trli_solver_has_gaps(const trli_solver *s);
/* Append the sum over all points of the products of two values of each unknown. */
TRL_NODISCARD trl_err trli_solver_dot(trli_solver *s, trli_program *program, const char *label, const trli_ir_value *a,
                                      const trli_ir_value *b, int *scalar);
double trli_solver_scalar(const trli_solver *s, int scalar);
void trli_solver_set(const trli_solver *s, int scalar, double value);
/* norm() of a vector from its product with itself. */
double trli_solver_norm(const trli_solver *s, double square);

/* Whether a scalar that the product reads is another than in known[scalars]; and that gets the present ones. */
bool trli_solver_scalars_differ(const trli_solver *s, const double *known);
bool trli_solver_scalars_change(const trli_solver *s, double *known);
/* Whether the Jacobian reads values of equations. */
bool trli_solver_reads_fields(const trli_solver *s);

/* ---- multigrid.c ---- */

TRL_NODISCARD trl_err trli_multigrid_compile(trli_solver *s);
void trli_multigrid_destroy(struct trli_multigrid **multigrid);
void trli_multigrid_equalise(struct trli_multigrid *m);
/* Once the diagonal is there: the coarser grids get the coefficients of the present state. Collective: yes. */
TRL_NODISCARD trl_err trli_multigrid_prepare(struct trli_multigrid *m, double time);
/* One cycle for a residual, from zero. Collective: yes. */
TRL_NODISCARD trl_err trli_multigrid_cycle(struct trli_multigrid *m, const int *residual);
/* [n] fields of its solution. */
const int *trli_multigrid_solution(const struct trli_multigrid *m);

/* ---- solve_run.c ---- */

/* The residual of the present values and its norm; points on sides are set. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_residual(trli_solver *s, double *norm);
/* Likewise of what is solved for, balanced: of the present values, or of zero, which they become. */
TRL_NODISCARD trl_err trli_solver_begin_at(trli_solver *s, double *norm);
TRL_NODISCARD trl_err trli_solver_begin_at_zero(trli_solver *s, double *norm);

/* ---- krylov.c ---- */

const trli_krylov_type *trli_krylov_of(const trli_solver *s, trl_solve_method method);
trli_krylov *trli_krylov_made(const trli_solver *s, const trli_krylov_type *type);
/* Compile the methods that may be used. */
TRL_NODISCARD trl_err trli_krylov_compile(trli_solver *s);
/* Note an iteration's residual: is it lost, not finite or so much larger than the least one as rounding errors are? */
bool trli_krylov_lost(trli_solver *s, double norm);
/* What jacobi makes of a vector, at each point; and times a factor, where there is a diagonal. */
void trli_krylov_precondition(const trli_solver *s, const trli_ir_value *r, trli_ir_value *z);
void trli_krylov_relax(const trli_solver *s, trli_ir_value factor, const trli_ir_value *r, trli_ir_value *z);
/* Where cycles are the preconditioner: put what one makes of a vector in the place of d. Collective: yes. */
TRL_NODISCARD trl_err trli_krylov_cycle(trli_solver *s, const int *of);
/* Append what every method begins with: r.r; and c = 0, if it is not x. */
TRL_NODISCARD trl_err trli_krylov_start(trli_solver *s, trli_program *program, int *rr);
/* After that program. */
void trli_krylov_started(const trli_solver *s);

#endif
