/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Statistics of fields, the same bits on any decomposition and device, and the report of values that are not finite. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "chunks_impl.h"
#include "context_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "simulation_impl.h"
#include "statistics_impl.h"

static double point_weight(const trl_simulation *sim, trl_location location, const trl_gidx point[3])
{
    const trl_grid *g = &sim->layout->grid;
    double weight = 1;
    for (int a = 0; a < g->dim; ++a)
        if (location >> a & 1 && !g->periodic[a] && (point[a] == 0 || point[a] == g->cells[a])) weight *= 0.5;
    return weight;
}

static void count_point(trli_tally *t, double value, double weight, const double *exact)
{
    double square = value * value * weight;
    trl_sum_add(&t->sum[TRLI_SUM_PLAIN], &value, 1);
    trl_sum_add(&t->sum[TRLI_SUM_SQUARE], &square, 1);
    trl_sum_add(&t->sum[TRLI_SUM_WEIGHT], &weight, 1);
    if (isnan(value)) t->invalid = true;
    if (-value > t->extreme[0]) t->extreme[0] = -value;
    if (value > t->extreme[1]) t->extreme[1] = value;
    if (!exact) return;
    double error = fabs(value - *exact), weighted = error * weight, squared = error * error * weight;
    trl_sum_add(&t->sum[TRLI_SUM_ERROR], &weighted, 1);
    trl_sum_add(&t->sum[TRLI_SUM_ERROR_SQUARE], &squared, 1);
    if (error > t->extreme[2]) t->extreme[2] = error;
}

static trli_counted counted_of(const trl_simulation *sim, const trli_shown *shown)
{
    const trli_equation *eq = shown->equation >= 0 ? &sim->equation[shown->equation] : NULL;
    return (trli_counted){.field = shown->field,
                          .mask = eq ? eq->mask_field : -1,
                          .exact = eq && shown->info.exact >= 0 ? eq->exact_field : -1,
                          .location = shown->info.location};
}

static void count_box(const trl_simulation *sim, const trli_counted *c, int p, const trl_box *box, trli_tally *t)
{
    const trl_patch *patch = &sim->layout->patch[p];
    const bool masked = c->mask >= 0, exact = c->exact >= 0;
    trl_array f = trli_frame_array(sim->frame, c->field, p, 0);
    const trl_array m = masked ? trli_frame_array(sim->frame, c->mask, p, 0) : f;
    const trl_array e = exact ? trli_frame_array(sim->frame, c->exact, p, 0) : f;
    f.owned = *box;
    t->hash += trl_array_hash(sim->layout, patch, c->location, &f);
    for (trl_lidx k = f.owned.lo[2]; k < f.owned.hi[2]; ++k)
        for (trl_lidx j = f.owned.lo[1]; j < f.owned.hi[1]; ++j)
            for (trl_lidx i = f.owned.lo[0]; i < f.owned.hi[0]; ++i) {
                const trl_gidx point[3] = {patch->first[0] + i, patch->first[1] + j, patch->first[2] + k};
                if (masked && ((const double *)m.at)[trl_array_offset(&m, i, j, k)] == 0) continue;
                count_point(t, ((const double *)f.at)[trl_array_offset(&f, i, j, k)],
                            point_weight(sim, c->location, point),
                            exact ? &((const double *)e.at)[trl_array_offset(&e, i, j, k)] : NULL);
            }
}

/* A patch, and what each worker counts of it. */
typedef struct count {
    const trl_simulation *sim;
    const trli_counted *of;
    int patch, parts[3];
    trl_box owned;
    trli_tally *tally; /* [workers] */
} count;

static trl_err count_part(void *data, int chunk, int chunks, int worker)
{
    const count *c = data;
    const trl_box box = trli_box_part(&c->owned, c->parts, chunk);
    (void)chunks;
    count_box(c->sim, c->of, c->patch, &box, &c->tally[worker]);
    return TRL_OK;
}

static trl_err count_patch(count *c)
{
    c->owned = trli_frame_array(c->sim->frame, c->of->field, c->patch, 0).owned;
    const int64_t wanted = trli_chunks_wanted(trl_box_points(&c->owned), trl_loop_workers(c->sim->loop));
    const int parts = trli_box_cut(&c->owned, wanted, c->parts);
    return trl_loop_run(c->sim->loop, parts, count_part, c);
}

static void begin_tally(trli_tally *t)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < TRLI_SUMS; ++i) trl_sum_clear(&t->sum[i]);
    t->extreme[0] = t->extreme[1] = -INFINITY;
}

static void merge_tally(trli_tally *t, const trli_tally *other)
{
    for (int i = 0; i < TRLI_SUMS; ++i) trl_sum_merge(&t->sum[i], &other->sum[i]);
    for (int i = 0; i < 3; ++i) t->extreme[i] = fmax(t->extreme[i], other->extreme[i]);
    t->invalid |= other->invalid;
    t->hash += other->hash;
}

/* The values of a patch that statistics are made of, on the host. */
static trl_err fetch(const trl_simulation *sim, const trli_counted *c, int patch)
{
    trl_err err;
    TRL_TRY(trli_frame_fetch_patch(sim->frame, c->field, patch));
    if (c->mask >= 0) TRL_TRY(trli_frame_fetch_patch(sim->frame, c->mask, patch));
    if (c->exact >= 0) TRL_TRY(trli_frame_fetch_patch(sim->frame, c->exact, patch));
done:
    return err;
}

/* All patches of this rank, each where its values are. */
static trl_err count_all(const trl_simulation *sim, const trli_shown *shown, trli_tally *t)
{
    const trli_counted counted = counted_of(sim, shown);
    const int workers = trl_loop_workers(sim->loop);
    count c = {.sim = sim, .of = &counted, .tally = trli_new(sim->ctx, (size_t)workers, sizeof *c.tally)};
    trl_err err;
    if (!c.tally) return trli_no_memory(sim->ctx, NULL, "for statistics of a field");
    for (int w = 0; w < workers; ++w) begin_tally(&c.tally[w]);
    TRL_TRY(trli_check_held(sim, shown));
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        bool done;
        TRL_TRY(trli_frame_count(sim->frame, &counted, p, t, &done));
        if (done) continue;
        TRL_TRY(fetch(sim, &counted, p));
        c.patch = p;
        TRL_TRY(count_patch(&c));
    }
    for (int w = 0; w < workers; ++w) merge_tally(t, &c.tally[w]);
done:
    trli_free(c.tally);
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
    trli_tally t;
    begin_tally(&t);
    TRL_TRY(trl_context_agree(sim->ctx, count_all(sim, shown, &t)));
    TRL_TRY(trl_sum_allreduce(sim->ctx, TRLI_SUMS, t.sum));
    double extremes[4] = {t.extreme[0], t.extreme[1], t.extreme[2], t.invalid};
    TRL_TRY(trli_allreduce(sim->ctx, extremes, 4, MPI_DOUBLE, MPI_MAX));
    TRL_TRY(trli_allreduce(sim->ctx, &t.hash, 1, MPI_UINT64_T, MPI_SUM));
    double weight = trl_sum_value(&t.sum[TRLI_SUM_WEIGHT]);
    *stats = (trl_field_stats){.min = extremes[3] != 0 ? NAN : 0.0 - extremes[0], /* not -0 */
                               .max = extremes[3] != 0 ? NAN : 0.0 + extremes[1],
                               .sum = trl_sum_value(&t.sum[TRLI_SUM_PLAIN]),
                               .l2 = sqrt(trl_sum_value(&t.sum[TRLI_SUM_SQUARE]) / weight),
                               .hash = t.hash,
                               .masked = weight == 0,
                               .has_error = shown->info.exact >= 0};
    if (stats->has_error) {
        stats->error_l1 = trl_sum_value(&t.sum[TRLI_SUM_ERROR]) / weight;
        stats->error_l2 = sqrt(trl_sum_value(&t.sum[TRLI_SUM_ERROR_SQUARE]) / weight);
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

trl_err trli_first_nonfinite(const trl_simulation *sim, trli_nonfinite *first)
{
    trl_err err = TRL_OK;
    for (int r = 0; r < trl_context_ranks(sim->ctx); ++r) { /* only a failed step comes here: time does not matter */
        trli_nonfinite other = *first;
        TRL_TRY(trli_broadcast(sim->ctx, &other, sizeof other, MPI_BYTE, r));
        if (earlier(&other, first)) *first = other;
    }
done:
    return err;
}

void trli_nonfinite_text(const trl_simulation *sim, const trli_nonfinite *f, char *text, size_t size)
{
    const trl_grid *g = &sim->layout->grid;
    char cell[96] = "", where[128] = "";
    for (int a = 0; a < g->dim; ++a) {
        size_t c = strlen(cell), w = strlen(where);
        snprintf(cell + c, sizeof cell - c, "%s%" PRId64, a ? ", " : "", f->point[a]);
        snprintf(where + w, sizeof where - w, "%s%c = %.6g", a ? ", " : "", "xyz"[a],
                 trl_grid_coordinate(g, sim->model->variable[f->variable].location, a, f->point[a]));
    }
    snprintf(text, size, "%s at cell (%s), %s", isnan(f->value) ? "NaN" : "infinite", cell, where);
}

trl_err trli_report_nonfinite(trl_simulation *sim, trl_gidx step, double time)
{
    trli_nonfinite f = {0};
    char text[256];
    trl_err err = TRL_OK;
    for (int w = 0; w < sim->model->run->lanes; ++w)
        if (earlier(&sim->frame->nonfinite[w], &f)) f = sim->frame->nonfinite[w];
    TRL_TRY(trli_first_nonfinite(sim, &f));
    const trl_equation_entry *deck = sim->equation[f.variable].deck;
    const trl_value *source = step == 0 || deck->solve.chars ? &deck->initial : &deck->ddt;
    const trl_place *place = source->count && source->text[0].place.line ? &source->text[0].place : &deck->place;
    trli_nonfinite_text(sim, &f, text, sizeof text);
    err = trl_context_agree(
        sim->ctx, step == 0
                      ? trl_fail(sim->ctx, TRL_ERR_NUMERICS, place, "the initial value of '%s' is %s", deck->name, text)
                      : trl_fail(sim->ctx, TRL_ERR_NUMERICS, place,
                                 "'%s' is %s, after step %" PRId64 ", t = %.10g; a smaller dt may help", deck->name,
                                 text, step, time));
done:
    return err;
}
