/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Why a residual is not finite, as far as that is found once a solver fails. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute_impl.h"
#include "lifecycle_impl.h"
#include "model_run_impl.h"
#include "solve_errors_impl.h"

static bool is_number(const trl_simulation *sim, trli_ir_value value, double *number)
{
    if (value < 0) return false;
    const trli_node *node = trli_ir_node(&sim->model->ir, value);
    *number = node->number;
    return node->op == TRLI_OP_CONSTANT;
}

/* Beyond a side a point gets (c - (a/2 - b/h) u)/(a/2 + b/h) from the one within, u, where none is on the side. */
static bool gives_nothing(const trl_simulation *sim, const trli_piece *piece, double h, double *a, double *b)
{
    if (piece->kind != TRL_BC_ROBIN || !is_number(sim, piece->a, a) || !is_number(sim, piece->b, b)) return false;
    return fabs(*a / 2 + *b / h) <= 4 * DBL_EPSILON * fabs(*b / h);
}

static bool find_robin(const trli_solver *s, int field, const trli_side sides[6], char *text, size_t size)
{
    const trl_simulation *sim = s->sim;
    for (int side = 0; side < 2 * sim->layout->grid.dim; ++side) {
        const double h = sim->layout->grid.spacing[side / 2];
        for (int p = 0; p < sides[side].npieces; ++p) {
            double a, b;
            if ((int)sim->model->field[field].location >> side / 2 & 1) continue;
            if (!gives_nothing(sim, &sides[side].piece[p], h, &a, &b)) continue;
            snprintf(
                text, size,
                ": a robin condition at the side %c%c has a = %.6g and b = %.6g, and cells have h = %.6g there, "
                "so that a/2 + b/h = 0 and it gives no value beyond the side: take other numbers for a and b, with "
                "the same sign where the solution is to be unique, or other cells along %c",
                "xyz"[side / 2], "-+"[side % 2], a, b, h, "xyz"[side / 2]);
            return true;
        }
    }
    return false;
}

/* The sides that a point is beside. */
static void add_sides(const trl_simulation *sim, const trli_nonfinite *f, char *text, size_t size)
{
    const trl_grid *g = &sim->layout->grid;
    const trl_location location = sim->model->variable[f->variable].location;
    const size_t before = strlen(text);
    for (int a = 0; a < g->dim; ++a)
        for (int side = 0; side < 2 && !g->periodic[a]; ++side) {
            const size_t used = strlen(text);
            const bool first = used == before;
            if (f->point[a] != (side ? trl_grid_points(g, location, a) - 1 : 0)) continue;
            snprintf(text + used, size - used, "%s%c%c", first ? ", beside " : ", ", "xyz"[a], "-+"[side]);
        }
}

trl_err trli_solver_find_cause(const trli_solver *s, const trli_vector *v, char *text, size_t size)
{
    trl_simulation *sim = s->sim;
    trli_nonfinite first = {0};
    char point[256];
    trl_err err = TRL_OK;
    *text = '\0';
    for (int k = 0; k < s->residual.program->nsteps; ++k) {
        const trli_step *step = &s->residual.program->step[k];
        for (int o = 0; step->kind == TRLI_STEP_FILL && o < step->nout; ++o)
            if (find_robin(s, step->field[o], step->fill.sides[o], text, size)) return TRL_OK;
    }
    for (int i = 0; i < s->ask.n; ++i) {
        err = trli_frame_fetch(sim->frame, v->now[i]);
        if (err == TRL_OK && !first.found) trli_check_field(sim->frame, v->now[i], s->ask.variable[i], &first);
    }
    TRL_TRY(trl_context_agree(sim->ctx, err));
    TRL_TRY(trli_first_nonfinite(sim, &first));
    if (!first.found) goto done;
    trli_nonfinite_text(sim, &first, point, sizeof point);
    snprintf(text, size, ": the first such value is %s", point);
    add_sides(sim, &first, text, size);
done:
    return err;
}
