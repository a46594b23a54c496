/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Statistics of fields, the same bits on any decomposition, and the report of values that are not finite. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "model_run_impl.h"
#include "simulation_impl.h"

/* Sums over the points of a field. */
enum { SUM_PLAIN, SUM_SQUARE, SUM_WEIGHT, SUM_ERROR, SUM_ERROR_SQUARE, SUMS };

typedef struct tally {
    trl_sum sum[SUMS];
    double extreme[3]; /* -min, max, largest error: combined by max */
    double invalid;    /* 1: a NaN was counted */
    uint64_t hash;
} tally;

static double point_weight(const trl_simulation *sim, trl_location location, const trl_gidx point[3])
{
    const trl_grid *g = &sim->layout->grid;
    double weight = 1;
    for (int a = 0; a < g->dim; ++a)
        if (location >> a & 1 && !g->periodic[a] && (point[a] == 0 || point[a] == g->cells[a])) weight *= 0.5;
    return weight;
}

static void count_point(tally *t, double value, double weight, const double *exact)
{
    double square = value * value * weight;
    trl_sum_add(&t->sum[SUM_PLAIN], &value, 1);
    trl_sum_add(&t->sum[SUM_SQUARE], &square, 1);
    trl_sum_add(&t->sum[SUM_WEIGHT], &weight, 1);
    if (isnan(value)) t->invalid = 1;
    if (-value > t->extreme[0]) t->extreme[0] = -value;
    if (value > t->extreme[1]) t->extreme[1] = value;
    if (!exact) return;
    double error = fabs(value - *exact), weighted = error * weight, squared = error * error * weight;
    trl_sum_add(&t->sum[SUM_ERROR], &weighted, 1);
    trl_sum_add(&t->sum[SUM_ERROR_SQUARE], &squared, 1);
    if (error > t->extreme[2]) t->extreme[2] = error;
}

static void count_patch(const trl_simulation *sim, const trli_shown *shown, int p, tally *t)
{
    const trl_patch *patch = &sim->layout->patch[sim->layout->local[p]];
    const trli_equation *eq = shown->equation >= 0 ? &sim->equation[shown->equation] : NULL;
    bool masked = eq && eq->mask_field >= 0, exact = eq && shown->info.exact >= 0;
    trl_array f = trli_frame_array(sim->frame, shown->field, p, 0), m = f, e = f;
    trl_location location = shown->info.location;
    if (masked) m = trli_frame_array(sim->frame, eq->mask_field, p, 0);
    if (exact) e = trli_frame_array(sim->frame, eq->exact_field, p, 0);
    t->hash += trl_array_hash(sim->layout, patch, location, &f);
    for (trl_lidx k = f.owned.lo[2]; k < f.owned.hi[2]; ++k)
        for (trl_lidx j = f.owned.lo[1]; j < f.owned.hi[1]; ++j)
            for (trl_lidx i = f.owned.lo[0]; i < f.owned.hi[0]; ++i) {
                const trl_gidx point[3] = {patch->first[0] + i, patch->first[1] + j, patch->first[2] + k};
                if (masked && ((const double *)m.at)[trl_array_offset(&m, i, j, k)] == 0) continue;
                count_point(t, ((const double *)f.at)[trl_array_offset(&f, i, j, k)],
                            point_weight(sim, location, point),
                            exact ? &((const double *)e.at)[trl_array_offset(&e, i, j, k)] : NULL);
            }
}

/* The values that statistics are made of, on the host. */
static trl_err fetch(const trl_simulation *sim, const trli_shown *shown)
{
    const trli_equation *eq = shown->equation >= 0 ? &sim->equation[shown->equation] : NULL;
    trl_err err;
    TRL_TRY(trli_check_held(sim, shown));
    TRL_TRY(trli_frame_fetch(sim->frame, shown->field));
    if (eq && eq->mask_field >= 0) TRL_TRY(trli_frame_fetch(sim->frame, eq->mask_field));
    if (eq && shown->info.exact >= 0) TRL_TRY(trli_frame_fetch(sim->frame, eq->exact_field));
done:
    return err;
}

trl_err trl_simulation_field_stats(trl_simulation *sim, int field, trl_field_stats *stats)
{
    if (!sim) return TRL_ERR_USAGE;
    if (!stats || field < 0 || field >= sim->nshown)
        return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "there are no statistics of field %d of %d%s", field,
                        sim->nshown, stats ? "" : ", nor room for them");
    const trli_shown *shown = &sim->shown[field];
    trl_err err = TRL_OK;
    tally t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < SUMS; ++i) trl_sum_clear(&t.sum[i]);
    t.extreme[0] = t.extreme[1] = -INFINITY;
    TRL_TRY(trl_context_agree(sim->ctx, fetch(sim, shown)));
    for (int p = 0; p < sim->layout->nlocal; ++p) count_patch(sim, shown, p, &t);
    TRL_TRY(trl_sum_allreduce(sim->ctx, SUMS, t.sum));
    double extremes[4] = {t.extreme[0], t.extreme[1], t.extreme[2], t.invalid};
    TRL_TRY(trli_allreduce(sim->ctx, extremes, 4, MPI_DOUBLE, MPI_MAX));
    TRL_TRY(trli_allreduce(sim->ctx, &t.hash, 1, MPI_UINT64_T, MPI_SUM));
    double weight = trl_sum_value(&t.sum[SUM_WEIGHT]);
    *stats = (trl_field_stats){.min = extremes[3] != 0 ? NAN : -extremes[0],
                               .max = extremes[3] != 0 ? NAN : extremes[1],
                               .sum = trl_sum_value(&t.sum[SUM_PLAIN]),
                               .l2 = sqrt(trl_sum_value(&t.sum[SUM_SQUARE]) / weight),
                               .hash = t.hash,
                               .has_error = shown->info.exact >= 0};
    if (stats->has_error) {
        stats->error_l1 = trl_sum_value(&t.sum[SUM_ERROR]) / weight;
        stats->error_l2 = sqrt(trl_sum_value(&t.sum[SUM_ERROR_SQUARE]) / weight);
        stats->error_linf = extremes[2];
    }
done:
    return err;
}

bool trli_point_before(const trl_gidx a[3], const trl_gidx b[3])
{
    for (int i = 2; i >= 0; --i)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}

static bool earlier(const trli_nonfinite *a, const trli_nonfinite *b)
{
    if (!a->found || !b->found) return a->found;
    if (a->variable != b->variable) return a->variable < b->variable;
    return trli_point_before(a->point, b->point);
}

/* The first of all workers' and ranks' findings. */
static trl_err first_nonfinite(trl_simulation *sim, trli_nonfinite *first)
{
    trl_err err = TRL_OK;
    *first = (trli_nonfinite){0};
    for (int w = 0; w < sim->model->run->lanes; ++w)
        if (earlier(&sim->frame->nonfinite[w], first)) *first = sim->frame->nonfinite[w];
    for (int r = 0; r < trl_context_ranks(sim->ctx); ++r) { /* only a failed step comes here: time does not matter */
        trli_nonfinite other = *first;
        TRL_TRY(trli_broadcast(sim->ctx, &other, sizeof other, MPI_BYTE, r));
        if (earlier(&other, first)) *first = other;
    }
done:
    return err;
}

trl_err trli_report_nonfinite(trl_simulation *sim, trl_gidx step, double time)
{
    trli_nonfinite f;
    char cell[96] = "", where[128] = "";
    trl_err err = first_nonfinite(sim, &f);
    if (err != TRL_OK) return err;
    const trl_equation_entry *deck = sim->equation[f.variable].deck;
    const trl_grid *g = &sim->layout->grid;
    for (int a = 0; a < g->dim; ++a) {
        size_t c = strlen(cell), w = strlen(where);
        snprintf(cell + c, sizeof cell - c, "%s%" PRId64, a ? ", " : "", f.point[a]);
        snprintf(where + w, sizeof where - w, "%s%c = %.6g", a ? ", " : "", "xyz"[a],
                 trl_grid_coordinate(g, sim->model->variable[f.variable].location, a, f.point[a]));
    }
    const trl_value *source = step == 0 || deck->solve.chars ? &deck->initial : &deck->ddt;
    const trl_place *place = source->count && source->text[0].place.line ? &source->text[0].place : &deck->place;
    const char *kind = isnan(f.value) ? "NaN" : "infinite";
    return trl_context_agree(sim->ctx, step == 0 ? trl_fail(sim->ctx, TRL_ERR_NUMERICS, place,
                                                            "the initial value of '%s' is %s at cell (%s), %s",
                                                            deck->name, kind, cell, where)
                                                 : trl_fail(sim->ctx, TRL_ERR_NUMERICS, place,
                                                            "'%s' is %s at cell (%s), %s, after step %" PRId64
                                                            ", t = %.10g; a smaller dt may help",
                                                            deck->name, kind, cell, where, step, time));
}
