/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include <context_impl.h>
#include <trl_reduction.h>

#include "field_impl.h"
#include "mask_impl.h"
#include "reduction_impl.h"
#include "residence_impl.h"
#include "spans_impl.h"
#include "vector_impl.h"

/* ---- partials ---- */

void trli_partial_clear(trli_partial *p, trli_merge merge)
{
    trl_sum_clear(&p->sum);
    p->extreme = merge == TRLI_MERGE_MIN ? INFINITY : -INFINITY;
    p->invalid = 0;
}

static void add_extremes(trli_partial *p, trli_merge merge, const double *values, int64_t n)
{
    double e = p->extreme;
    bool invalid = false;
    for (int64_t i = 0; i < n; ++i) {
        invalid |= isnan(values[i]);
        if (merge == TRLI_MERGE_MIN ? values[i] < e : values[i] > e) e = values[i];
    }
    p->extreme = e;
    p->invalid |= invalid;
}

#if defined(__x86_64__)
/* The extremes of whole pairs of vectors; how many values these are. A NaN is never taken: no comparison with it holds.
 */
#define EXTREMES(width, attribute)                                                                         \
    typedef long long bits##width __attribute__((vector_size(8 * (width))));                               \
    attribute static int64_t extremes##width(trli_partial *p, bool least, const double *values, int64_t n) \
    {                                                                                                      \
        const trli_vector##width zero = {0};                                                               \
        trli_vector##width e[2] = {zero + p->extreme, zero + p->extreme};                                  \
        bits##width invalid = {0};                                                                         \
        const int64_t whole = n - n % (2 * (width));                                                       \
        for (int64_t i = 0; i < whole; i += 2 * (width))                                                   \
            for (int u = 0; u < 2; ++u) {                                                                  \
                const trli_vector##width x = *(const trli_loose##width *)&values[i + u * (width)];         \
                const bits##width taken = least ? x < e[u] : x > e[u];                                     \
                e[u] = (trli_vector##width)(((bits##width)x & taken) | ((bits##width)e[u] & ~taken));      \
                invalid |= x != x;                                                                         \
            }                                                                                              \
        for (int l = 0; l < (width); ++l)                                                                  \
            for (int u = 0; u < 2; ++u) {                                                                  \
                if (least ? e[u][l] < p->extreme : e[u][l] > p->extreme) p->extreme = e[u][l];             \
                p->invalid |= invalid[l] != 0;                                                             \
            }                                                                                              \
        return whole;                                                                                      \
    }
TRLI_STREAM_VARIANTS(EXTREMES)
#undef EXTREMES
#endif

void trli_partial_add(trli_partial *p, trli_merge merge, const double *values, int64_t n)
{
    int64_t done = 0;
    if (merge == TRLI_MERGE_SUM) {
        trl_sum_add(&p->sum, values, n);
        return;
    }
#if defined(__x86_64__)
    done = TRLI_STREAM_CALL(extremes, p, merge == TRLI_MERGE_MIN, values, n);
#endif
    add_extremes(p, merge, values + done, n - done);
}

void trli_partial_merge(trli_partial *p, trli_merge merge, const trli_partial *other)
{
    if (merge == TRLI_MERGE_SUM) {
        trl_sum_merge(&p->sum, &other->sum);
        return;
    }
    if (merge == TRLI_MERGE_MIN ? other->extreme < p->extreme : other->extreme > p->extreme)
        p->extreme = other->extreme;
    p->invalid |= other->invalid;
}

void trli_partial_pack_sum(trli_partial *p, int64_t words[TRLI_PARTIAL_WORDS])
{
    trl_sum_normalise(&p->sum);
    memcpy(words, p->sum.word, sizeof p->sum.word);
    memcpy(words + TRL_SUM_WORDS, p->sum.special, sizeof p->sum.special);
}

double trli_partial_unpack_sum(const int64_t words[TRLI_PARTIAL_WORDS])
{
    trl_sum total;
    trl_sum_clear(&total);
    memcpy(total.word, words, sizeof total.word);
    memcpy(total.special, words + TRL_SUM_WORDS, sizeof total.special);
    return trl_sum_value(&total);
}

void trli_partial_pack_extreme(const trli_partial *p, trli_merge merge, double pair[TRLI_PARTIAL_PAIR])
{
    pair[0] = merge == TRLI_MERGE_MIN ? -p->extreme : p->extreme;
    pair[1] = p->invalid;
}

double trli_partial_unpack_extreme(trli_merge merge, const double pair[TRLI_PARTIAL_PAIR])
{
    /* Which of two zeros comes first depends on the decomposition: both become +0. */
    return pair[1] != 0 ? NAN : (merge == TRLI_MERGE_MIN ? -pair[0] : pair[0]) + 0.0;
}

/* More NaNs than there are points. */
static const int64_t spoilt_nans = (int64_t)1 << 48;
static const double spoilt_pair = 2;
enum { NANS = TRLI_PARTIAL_WORDS - 1 };

void trli_partial_spoil_sum(int64_t words[TRLI_PARTIAL_WORDS])
{
    words[NANS] += spoilt_nans;
}

void trli_partial_spoil_extreme(double pair[TRLI_PARTIAL_PAIR])
{
    pair[1] = spoilt_pair;
}

bool trli_partial_spoilt_sum(const int64_t words[TRLI_PARTIAL_WORDS])
{
    return words[NANS] >= spoilt_nans;
}

bool trli_partial_spoilt_extreme(const double pair[TRLI_PARTIAL_PAIR])
{
    return pair[1] >= spoilt_pair;
}

/* ---- weights ---- */

static double side_weight(const trl_layout *layout, trl_location location, int axis, trl_gidx i)
{
    const trl_grid *g = &layout->grid;
    bool on_side = (int)location >> axis & 1 && !g->periodic[axis] && (i == 0 || i == g->cells[axis]);
    return on_side ? 0.5 : 1.0;
}

void trli_weigh_row(const trl_layout *layout, const trl_patch *patch, trl_location location, const trl_lidx at[3],
                    trl_lidx n, double *values)
{
    double weight = side_weight(layout, location, 1, patch->first[1] + at[1]) *
                    side_weight(layout, location, 2, patch->first[2] + at[2]);
    trl_gidx first = patch->first[0] + at[0];
    if (weight != 1)
        for (trl_lidx i = 0; i < n; ++i) values[i] *= weight;
    values[0] *= side_weight(layout, location, 0, first);
    if (n > 1) values[n - 1] *= side_weight(layout, location, 0, first + n - 1);
}

/* ---- fields ---- */

const char *trl_reduction_name(trl_reduction kind)
{
    static const char *const names[] = {
#define REDUCTION_NAME(kind, name, doc) [TRL_REDUCE_##kind] = name,
        TRL_REDUCTION_LIST(REDUCTION_NAME)
#undef REDUCTION_NAME
    };
    return kind < TRL_REDUCTIONS ? names[kind] : NULL;
}

typedef struct reduction_job {
    trl_field *field;
    const trl_layout *layout;
    trl_location location;
    trl_reduction kind;
    trl_weights weights;
    const trl_mask *mask;
    trli_merge merge;
    int chunks;
    trli_partial value[TRLI_SPAN_CHUNKS];
    int64_t eighths[TRLI_SPAN_CHUNKS]; /* sum of the weights: a point on three sides has one eighth */
} reduction_job;

/* What is added up: the values themselves, their sizes or their squares. */
static void take_terms(trl_reduction kind, const double *values, trl_lidx n, double *terms)
{
    switch (kind) {
    case TRL_REDUCE_L1:
    case TRL_REDUCE_LINF:
        for (trl_lidx i = 0; i < n; ++i) terms[i] = fabs(values[i]);
        break;
    case TRL_REDUCE_L2:
        for (trl_lidx i = 0; i < n; ++i) terms[i] = values[i] * values[i];
        break;
    default:
        memcpy(terms, values, (size_t)n * sizeof *terms);
    }
}

/* Move the entries that the mask holds to the front; how many there are. */
static trl_lidx keep_masked(const trl_mask *mask, const trli_span *span, double *terms, double *weights)
{
    const trli_mask_patch *m = &mask->patch[span->patch];
    const uint64_t *row = trli_mask_row(m, span->j, span->k);
    trl_lidx kept = 0;
    for (trl_lidx i = 0; i < span->n; ++i) {
        bool held = trli_mask_bits(row, span->i + i - m->box.lo[0], 1) != 0;
        terms[kept] = terms[i];
        weights[kept] = weights[i];
        kept += held;
    }
    return kept;
}

static trl_err reduce_span(void *data, const trli_span *span, int chunk)
{
    reduction_job *job = data;
    const trl_lidx at[3] = {span->i, span->j, span->k};
    double terms[TRLI_SPAN_POINTS], weights[TRLI_SPAN_POINTS];
    trl_lidx n = span->n;
    trl_array array;
    trl_err err = trl_field_read(job->field, span->patch, &array);
    if (err != TRL_OK) return err;
    take_terms(job->kind, (const double *)array.at + trl_array_offset(&array, span->i, span->j, span->k), n, terms);
    for (trl_lidx i = 0; i < n; ++i) weights[i] = 1;
    if (job->weights == TRL_OVER_VOLUMES)
        trli_weigh_row(job->layout, &job->layout->patch[span->patch], job->location, at, n, weights);
    if (job->mask) n = keep_masked(job->mask, span, terms, weights);
    if (job->merge == TRLI_MERGE_SUM)
        for (trl_lidx i = 0; i < n; ++i) {
            terms[i] *= weights[i];
            job->eighths[chunk] += (int64_t)(8 * weights[i]);
        }
    trli_partial_add(&job->value[chunk], job->merge, terms, n);
    return TRL_OK;
}

static trl_err check(const trl_field *field, const trl_mask *mask)
{
    const trl_layout *layout = trl_field_layout(field);
    if (mask && (trl_mask_layout(mask) != layout || trl_mask_location(mask) != trl_field_location(field)))
        return trl_fail(layout->ctx, TRL_ERR_USAGE, NULL,
                        "field '%s' is at %s and the mask at %s, or their layouts differ", trl_field_name(field),
                        trl_location_name(trl_field_location(field)), trl_location_name(trl_mask_location(mask)));
    return trli_span_require(field);
}

/* Over all ranks. Sums bring the sum of the weights along. */
static trl_err combine(reduction_job *job, double *value, double *weights)
{
    trl_context *ctx = job->layout->ctx;
    trl_err err;
    for (int c = 1; c < job->chunks; ++c) {
        trli_partial_merge(&job->value[0], job->merge, &job->value[c]);
        job->eighths[0] += job->eighths[c];
    }
    if (job->merge == TRLI_MERGE_SUM) {
        int64_t words[TRLI_PARTIAL_WORDS + 1];
        trli_partial_pack_sum(&job->value[0], words);
        words[TRLI_PARTIAL_WORDS] = job->eighths[0];
        err = trli_allreduce(ctx, words, TRLI_PARTIAL_WORDS + 1, MPI_INT64_T, MPI_SUM);
        *value = trli_partial_unpack_sum(words);
        *weights = (double)words[TRLI_PARTIAL_WORDS] / 8;
    } else {
        double pair[TRLI_PARTIAL_PAIR];
        trli_partial_pack_extreme(&job->value[0], job->merge, pair);
        err = trli_allreduce(ctx, pair, TRLI_PARTIAL_PAIR, MPI_DOUBLE, MPI_MAX);
        *value = trli_partial_unpack_extreme(job->merge, pair);
    }
    return err;
}

static double finish(const reduction_job *job, double value, double weights)
{
    double volume = 1;
    for (int a = 0; a < job->layout->grid.dim; ++a) volume *= job->layout->grid.spacing[a];
    switch (job->kind) {
    case TRL_REDUCE_SUM:
        return job->weights == TRL_OVER_VOLUMES ? value * volume : value;
    case TRL_REDUCE_L1:
        return value / weights;
    case TRL_REDUCE_L2:
        return sqrt(value / weights);
    default:
        return value;
    }
}

/* Of this rank. */
static trl_err reduce_rank(reduction_job *job, trl_loop *loop)
{
    const bool weighted = job->weights == TRL_OVER_VOLUMES;
    bool done = false;
    trl_err err = TRL_OK;
    if (job->field->device)
        TRL_TRY(trli_reduce_there(job->field, job->kind, job->merge, weighted && job->merge == TRLI_MERGE_SUM,
                                  job->mask, &job->value[0], &done));
    if (done) {
        job->chunks = 1;
        if (job->kind == TRL_REDUCE_L1 || job->kind == TRL_REDUCE_L2)
            job->eighths[0] = trli_weights_eighths(job->layout, job->location, weighted, job->mask);
        return TRL_OK;
    }
    if (job->field->device) TRL_TRY(trli_field_bring(job->field, false));
    err = trli_span_sweep(loop, job->layout, job->location, reduce_span, job);
done:
    return err;
}

trl_err trl_field_reduce(trl_field *field, trl_loop *loop, trl_reduction kind, trl_weights weights,
                         const trl_mask *mask, double *result)
{
    trl_err err = check(field, mask);
    double value = 0, sum = 0;
    reduction_job job = {.field = field,
                         .layout = trl_field_layout(field),
                         .location = trl_field_location(field),
                         .kind = kind,
                         .weights = weights,
                         .mask = mask,
                         .chunks = trli_span_chunks(loop, trl_field_layout(field), trl_field_location(field)),
                         .merge = kind == TRL_REDUCE_MIN                              ? TRLI_MERGE_MIN
                                  : kind == TRL_REDUCE_MAX || kind == TRL_REDUCE_LINF ? TRLI_MERGE_MAX
                                                                                      : TRLI_MERGE_SUM};
    for (int c = 0; c < job.chunks; ++c) trli_partial_clear(&job.value[c], job.merge);
    trl_context_begin_phase(job.layout->ctx);
    if (err == TRL_OK) err = reduce_rank(&job, loop);
    if (err == TRL_OK) err = combine(&job, &value, &sum);
    *result = finish(&job, value, sum);
    return trl_context_end_phase(job.layout->ctx, err);
}
