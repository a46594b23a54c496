/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Chebyshev smoothing (Adams, Brezina, Hu & Tuminaro 2003). */
#include <math.h>

#include "execution_impl.h"
#include "executor_impl.h"
#include "grid_level_impl.h"

enum { SMOOTHING = 2, COARSEST_STEPS = 12 };

/* A new solution takes its place, the present one that before, and this one the room for the next. */
static void swap(const trli_grid_level *l)
{
    const trli_vector room = {l->z.next, l->before.now};
    trli_vector_swap(l->solver, &l->z);
    trli_vector_swap(l->solver, &room);
}

/* Between which eigenvalues are damped. On the coarsest grid it is all of them: where rows are dominated, those of an
 * unknown for itself are around 1. Of unknowns that are coupled at their points they are so, too, or beside the real
 * axis: with blocks d + ir and neighbours d, on a line through 1 as long as 2 rho, rho = d/|d + ir|. The ellipse around
 * these has foci 1 - rho^2 and 1 + rho^2, and rho^2 is what the row's own unknown has beside 1. */
static void find_range(const trli_grid_level *l, bool coarsest, double *least, double *largest)
{
    const double lowest = 0.02 * l->largest;
    *largest = l->largest;
    *least = coarsest ? lowest : 0.5 / l->sim->layout->grid.dim * l->largest;
    if (!coarsest || !(2 - l->own_row > lowest)) return;
    *largest = fmax(l->own_row, 1);
    *least = 2 - *largest;
}

/* Factors of Chebyshev's steps: z + old * (z - before) + new * inverse * residual. There is nothing before the first
 * one, and from zero nothing before the second. */
typedef struct factors {
    double old, new, rho, sigma, half;
} factors;

static factors first_factors(double least, double largest)
{
    const double middle = (largest + least) / 2, half = (largest - least) / 2;
    return (factors){.new = 1 / middle, .rho = half / middle, .sigma = middle / half, .half = half};
}

static factors next_factors(const factors *f)
{
    const double rho = 1 / (2 * f->sigma - f->rho);
    return (factors){.old = rho * f->rho, .new = 2 * rho / f->half, .rho = rho, .sigma = f->sigma, .half = f->half};
}

/* In the row, if there is one. */
static void run(trl_err *first, const trli_grid_level *l, const trli_smoothing *how, const trli_program *program)
{
    trl_err err = TRL_OK;
    if (how->row)
        trli_gpu_row_run(how->row, l->sim->frame, program);
    else
        err = trli_solver_run_alone(l->solver, program);
    if (*first == TRL_OK) *first = err;
}

/* One step, or from zero the first two at once. */
static void step(trl_err *first, const trli_grid_level *l, const trli_smoothing *how, const trli_program *program,
                 double old, double new)
{
    trli_solver_set(l->solver, l->old, old);
    trli_solver_set(l->solver, l->new, new);
    if (l->saddle.constraints) {
        run(first, l, how, program == l->begin ? l->saddle.from_zero : l->saddle.others);
        run(first, l, how, l->saddle.constraints);
    }
    run(first, l, how, program);
    swap(l);
}

/* Steps that damp eigenvalues from a least one on. */
trl_err trli_smooth(const trli_grid_level *l, const trli_smoothing *how, trl_loop *loop)
{
    const int steps = how->coarsest ? COARSEST_STEPS : SMOOTHING;
    trl_err err = TRL_OK;
    if (l->relaxation) return trli_relax(l, how, loop);
    double least, largest;
    find_range(l, how->coarsest, &least, &largest);
    factors f = first_factors(least, largest);
    if (how->from_zero && l->start && steps == 2) {
        const factors next = next_factors(&f);
        step(&err, l, how, l->start, (1 + next.old) * f.new + next.new, f.new *next.new);
        return err;
    }
    for (int k = 0; k < steps; ++k, f = next_factors(&f)) {
        const bool alone = k <= how->from_zero, sums = how->sums && k + 1 == steps;
        const trli_program *const program = k == 0 && how->from_zero ? l->begin : alone ? l->first : l->smooth;
        step(&err, l, how, sums ? l->last : program, alone ? 1 + f.old : f.old, f.new);
    }
    return err;
}

static double bytes_of(const trli_program *program)
{
    return program ? (double)program->run->bytes_moved : 0;
}

double trli_smoothing_bytes(const trli_grid_level *l, bool coarsest)
{
    if (l->relaxation) return trli_relaxation_bytes(l, coarsest);
    const int steps = coarsest ? COARSEST_STEPS : 2 * SMOOTHING;
    double bytes = l->start && !coarsest ? bytes_of(l->start) : bytes_of(l->begin) + bytes_of(l->first);
    bytes += bytes_of(l->saddle.from_zero) + (steps - 1) * bytes_of(l->saddle.others);
    bytes += steps * bytes_of(l->saddle.constraints);
    bytes += ((coarsest ? COARSEST_STEPS : SMOOTHING) - 2) * bytes_of(l->smooth);
    return coarsest ? bytes : bytes + bytes_of(l->first) + (SMOOTHING - 1) * bytes_of(l->smooth);
}
