/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct solution as a method: for which systems there is one, what it costs, and whether it solves what it should. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "context_impl.h"
#include "diagonal_impl.h"
#include "direct_impl.h"
#include "memory_impl.h"
#include "solve_ahead_impl.h"
#include "solve_look_impl.h"
#include "symbols_impl.h"
#include "tree_impl.h"

/* What belongs to an unknown, which no other is coupled to. */
typedef struct part {
    trli_line line[3];
    trli_direct_plan plan;
    trli_slabs *slabs;
} part;

struct trli_direct {
    trli_solver *solver;
    trl_loop *loop;
    part *part;      /* [ask.n] */
    bool found;      /* the plan is that of the scalars in `known` */
    double *known;   /* [scalars of the model] what the operator was made with */
    bool varies;     /* rows differ along an axis */
    bool given;      /* what conditions say at sides follows from no unknowns */
    const char *why; /* it does not solve the system, or NULL */
    char words[256]; /* what it does */
};

/* ---- for which systems ---- */

const char *trli_direct_missing(const trli_solver *s)
{
    if (s->ask.n > 1 && s->coupled) return "its unknowns are coupled";
    if (!s->linear) return "the equation is not linear";
    if (s->opaque) return "coefficients of the operator are no formulas";
    if (s->reduces) return "the operator contains a sum or an extreme over all points";
    for (int e = 0; e < s->sim->nequations; ++e)
        if (s->reads[e] || s->reads_old[e]) return "coefficients of the operator are fields";
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &s->sim->model->variable[s->ask.variable[i]];
        if (v->mask) return "points are masked";
        for (int side = 0; side < 6; ++side)
            if (v->boundary[side].npieces > 1) return "conditions change along a side";
    }
    return NULL;
}

/* *is: of all formulas of a value, that they are numbers, or else that unknowns are not in them. */
static trl_err judge(const trli_solver *s, const trl_value *value, const trl_scope *names, bool number, bool *is)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < value->count && *is; ++i) {
        trl_formula *f = NULL;
        if (!value->text[i].chars) continue;
        TRL_TRY(trli_formula_of(s->sim, &value->text[i], &f));
        *is = number ? trli_decided(f->root, names) : trli_tree_is_given(s->sim->model, f, names);
        trl_formula_destroy(&f);
    }
done:
    return err;
}

/* *plain: conditions are of a kind, with coefficients that are numbers, and read no unknowns. */
static trl_err find_conditions(const trli_solver *s, bool *plain)
{
    trl_err err = TRL_OK;
    *plain = true;
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &s->sim->model->variable[s->ask.variable[i]];
        for (int side = 0; side < 6; ++side)
            for (int p = 0; p < v->boundary[side].npieces; ++p) {
                const trl_bc_piece *piece = &v->boundary[side].piece[p];
                *plain &= piece->kind <= TRL_BC_OUTFLOW;
                TRL_TRY(judge(s, &piece->value, v->names, piece->kind == TRL_BC_ROBIN, plain));
                TRL_TRY(judge(s, &piece->b, v->names, true, plain));
                TRL_TRY(judge(s, &piece->c, v->names, false, plain));
            }
    }
done:
    return err;
}

bool trli_direct_is_sure(const trli_solver *s)
{
    return s->direct && s->direct->given && s->plain && trli_solver_drifts(s) <= 1;
}

trl_err trli_direct_impossible(const trli_solver *s, const char *why)
{
    return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->settings.place,
                    "'%s' cannot be solved directly, because %s: use method auto or multigrid", s->ask.names, why);
}

/* ---- making ---- */

trl_err trli_direct_create(trli_solver *s)
{
    trl_context *ctx = s->sim->ctx;
    trl_err err = TRL_OK;
    trli_direct *d = s->direct = trli_new(ctx, 1, sizeof *d);
    if (!d) return trli_no_memory(ctx, NULL, "for a direct solver");
    d->part = trli_new(ctx, (size_t)s->ask.n, sizeof *d->part);
    if (!d->part) return trli_no_memory(ctx, NULL, "for a direct solver");
    d->solver = s;
    TRL_TRY(find_conditions(s, &d->given));
    TRL_TRY(trl_loop_create(ctx, s->sim->workers, &d->loop));
done:
    return err;
}

void trli_direct_destroy(trli_direct **direct)
{
    trli_direct *d = *direct;
    *direct = NULL;
    if (!d) return;
    for (int i = 0; d->part && i < d->solver->ask.n; ++i) {
        trli_slabs_destroy(&d->part[i].slabs);
        trli_direct_plan_destroy(&d->part[i].plan);
        trli_lines_destroy(d->part[i].line);
    }
    trli_free(d->part);
    trl_loop_destroy(&d->loop);
    trli_free(d->known);
    trli_free(d);
}

/* ---- what it costs ---- */

/* Operations for each point: transforms there and back, or elimination. */
static double cost_of(const trli_direct_plan *plan)
{
    const double elimination = 10, move = 4;
    double cost = plan->swept ? elimination : 2;
    for (int a = 0; a < 3; ++a)
        if (plan->axis[a].transform)
            cost += trli_transform_operations(plan->axis[a].transform) / plan->axis[a].n + move;
    return cost;
}

double trli_direct_cost(const trli_direct *d)
{
    double cost = 0;
    for (int i = 0; i < d->solver->ask.n; ++i) cost += cost_of(&d->part[i].plan);
    return cost / d->solver->ask.n;
}

static const char *words_of(trli_transform_kind kind)
{
    static const char *const words[TRLI_TRANSFORMS] = {
#define WORDS(NAME, text, eigenvalue) [TRLI_TRANSFORM_##NAME] = text,
        TRLI_TRANSFORM_LIST(WORDS)
#undef WORDS
    };
    return words[kind];
}

/* Of the first unknown. */
static void describe(trli_direct *d)
{
    const part *first = &d->part[0];
    size_t used = 0;
    d->words[0] = '\0';
    for (int a = 0; a < 3; ++a) {
        const bool swept = a == first->plan.last && first->plan.swept;
        if (first->line[a].n == 1 || used >= sizeof d->words) continue;
        const int w = snprintf(d->words + used, sizeof d->words - used, "%s%s along %c", used ? ", " : "",
                               swept ? "elimination" : words_of(first->plan.axis[a].kind), "xyz"[a]);
        used += (size_t)w;
    }
    if (first->plan.axis[0].weight || first->plan.axis[1].weight || first->plan.axis[2].weight)
        snprintf(d->words + used, sizeof d->words - used, ", along which all coefficients vary");
}

const char *trli_direct_words(const trli_direct *d)
{
    return d->words;
}

static void note_gpus(trli_direct *d)
{
    const char **why = &d->solver->stats.no_gpu;
    *why = NULL;
    for (int i = 0; i < d->solver->ask.n && !*why; ++i) *why = trli_slabs_missing_gpus(d->part[i].slabs);
}

/* ---- whether it solves ---- */

/* Whether the field `to` has what a product with the operator was made of, up to a constant if constants are in its
 * null space. */
static trl_err compare(const trli_direct *d, bool singular, int from, int to, bool *same)
{
    /* Rows that are not looked at may differ a little; what rounding errors leave is found in a few rounds. */
    const double enough = d->varies ? 1e-3 : 1e-9;
    const trl_simulation *sim = d->solver->sim;
    double most[3] = {-INFINITY, -INFINITY, 0}; /* of the difference, of its negative, and of what is wanted */
    trl_err err = trli_frame_fetch(sim->frame, from);
    if (err == TRL_OK) err = trli_frame_fetch(sim->frame, to);
    TRL_TRY(trl_context_agree(sim->ctx, err));
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array a = trli_frame_array(sim->frame, from, p, 0), b = trli_frame_array(sim->frame, to, p, 0);
        for (trl_lidx k = a.owned.lo[2]; k < a.owned.hi[2]; ++k)
            for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
                for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i) {
                    const double wanted = ((double *)a.at)[trl_array_offset(&a, i, j, k)];
                    const double is = ((double *)b.at)[trl_array_offset(&b, i, j, k)];
                    if (wanted == 0 && is == 0) continue; /* no unknown */
                    most[0] = isnan(is) ? INFINITY : fmax(most[0], is - wanted);
                    most[1] = fmax(most[1], wanted - is);
                    most[2] = fmax(most[2], fabs(wanted));
                }
    }
    TRL_TRY(trli_allreduce(sim->ctx, most, 3, MPI_DOUBLE, MPI_MAX));
    const double error = singular ? (most[0] + most[1]) / 2 : fmax(most[0], most[1]);
    *same = error <= enough * most[2];
done:
    return err;
}

/* Plan for unknown i. */
static trl_err make_part(trli_direct *d, int i)
{
    trli_solver *s = d->solver;
    trl_context *ctx = s->sim->ctx;
    part *p = &d->part[i];
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lines_find(s, i, d->varies, p->line));
    trli_direct_plan_destroy(&p->plan);
    TRL_TRY(trl_context_agree(ctx, trli_direct_plan_create(ctx, p->line, -1, s->singular[i], &p->plan, &d->why)));
    if (d->why) goto done;
    p->plan.sets_mean = s->singular[i] && (!p->plan.swept || location == TRL_CELL); /* there all points count alike */
    p->plan.balanced = s->balanced[i];
    if (d->varies && p->plan.swept) {
        TRL_TRY(trl_context_agree(ctx, trli_direct_plan_add_weights(ctx, &p->plan)));
        double *const weight[3] = {p->plan.axis[0].weight, p->plan.axis[1].weight, p->plan.axis[2].weight};
        TRL_TRY(trli_lines_weigh(s, i, p->line, p->plan.last, weight));
        trli_direct_plan_use_weights(&p->plan);
    }
    const trl_offsets *around = s->ask.brings ? &s->ask.around : NULL;
    if (!trli_slabs_suit(p->slabs, around)) {
        trli_slabs_destroy(&p->slabs);
        TRL_TRY(trli_slabs_create(s->sim, location, p->line, &p->plan, around, d->loop, &p->slabs));
    }
    err = trli_slabs_add_gpus(p->slabs, location, p->line);
done:
    return err;
}

static trl_err make_plan(trli_direct *d)
{
    trli_solver *s = d->solver;
    const int n = s->ask.n;
    trl_err err = TRL_OK;
    s->trusted = false;
    d->why = NULL;
    for (int i = 0; i < n && !d->why; ++i) {
        if (n > 1 && s->singular[i]) d->why = "it leaves one of several unknowns free up to a constant";
        if (!d->why) TRL_TRY(make_part(d, i));
    }
    if (d->why) goto done;
    TRL_TRY(trli_solver_try(s, -1, 0));
    for (int i = 0; i < n && !d->why; ++i) {
        bool same = false;
        const part *p = &d->part[i];
        TRL_TRY(trli_slabs_solve(p->slabs, s->q.now[i], s->d.next[i], false, false, 0));
        TRL_TRY(compare(d, p->plan.singular, s->d.now[i], s->d.next[i], &same));
        if (!same)
            d->why = "the operator is not a sum of one along each axis that reads the nearest points alone, and whose "
                     "coefficients vary along one axis at most";
    }
    describe(d);
    note_gpus(d);
done:
    return err;
}

/* On the first use. */
static trl_err make_room(trli_direct *d)
{
    trli_solver *s = d->solver;
    trl_err err = TRL_OK;
    d->known = trli_new(s->sim->ctx, (size_t)s->sim->model->nscalars + 1, sizeof *d->known);
    if (!d->known) return trli_no_memory(s->sim->ctx, NULL, "for a direct solver");
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(trli_lines_create(s, i, d->part[i].line));
done:
    return err;
}

trl_err trli_direct_prepare(trli_direct *d, const char **why)
{
    trli_solver *s = d->solver;
    trl_err err = TRL_OK;
    if (!d->known) TRL_TRY(trl_context_agree(s->sim->ctx, make_room(d)));
    const bool changed = trli_solver_scalars_change(s, d->known);
    if (d->found && !changed) goto done;
    d->found = false;
    TRL_TRY(make_plan(d));
    if (d->why && !d->varies) {
        d->varies = true;
        TRL_TRY(make_plan(d));
    }
    d->found = true;
done:
    *why = d->why;
    return err;
}

bool trli_direct_sets_mean(const trli_direct *d)
{
    return d->solver->ask.n == 1 && d->part[0].plan.sets_mean;
}

/* ---- as a method ---- */

trl_err trli_direct_go_ahead(trli_solver *s, double mean)
{
    return trli_slabs_solve(s->direct->part[0].slabs, s->r.now[0], s->x.next[0], false, true, mean);
}

/* The residual is not known afterwards: the caller computes it, and solves again for what is left. */
static trl_err direct_run(trli_solver *s, trli_krylov *method, double target, int most, int *iterations, double *norm,
                          bool *broken)
{
    (void)method, (void)target, (void)most, (void)broken;
    *norm = 0;
    *iterations = 1;
    const bool add = !s->at_zero, ahead = s->ahead && !add;
    trl_err err = TRL_OK;
    s->at_zero = s->ahead = false;
    if (ahead) trli_vector_swap(s, &s->x);
    for (int i = 0; i < s->ask.n && !ahead; ++i) {
        const part *p = &s->direct->part[i];
        TRL_TRY(
            trli_slabs_solve(p->slabs, s->r.now[i], s->c.now[i], add, !add || s->brought, add ? 0 : s->wanted_mean));
    }
    note_gpus(s->direct);
    s->brought = s->ask.brings && (!add || s->brought);
done:
    return err;
}

const trli_krylov_type trli_krylov_direct = {.words = "direct", .run = direct_run};
