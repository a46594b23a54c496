/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The next coarser grid of a matrix: each point that is left out has neighbours to be interpolated from along its own
 * strong couplings, whatever axes these lie on (Ruge & Stüben 1987). */
#include <math.h>

#include "memory_impl.h"
#include "sparse_impl.h"

typedef struct trli_splitting {
    trl_context *ctx;
    trli_sparse_crew *crew;
    const trli_sparse *a;
    trli_sparse strong; /* a row: the points that a point depends on strongly, without values */
    trli_choosing choosing;
    int *list; /* [points], for */
    int room;
    const int *number; /* [points] of those that stay, or -1 */
} splitting;

/* ---- strong couplings ---- */

static trl_err find_strong(trl_context *ctx, const trli_sparse *a, trli_sparse *strong)
{
    const double share = 0.25, dominated = 0.05;
    int n = 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_reserve_pattern(ctx, strong, a->rows, a->columns, a->begin[a->rows]));
    strong->begin[0] = 0;
    for (int i = 0; i < a->rows; ++i) {
        const int begin = a->begin[i], end = a->begin[i + 1];
        const double own = begin < end ? a->value[begin] : 0, sign = own < 0 ? 1 : -1;
        double most = 0, sum = 0;
        for (int e = begin + 1; e < end; ++e) {
            most = fmax(most, sign * a->value[e]);
            sum += fabs(a->value[e]);
        }
        for (int e = begin + 1; e < end && sum > dominated * fabs(own); ++e)
            if (sign * a->value[e] > 0 && sign * a->value[e] >= share * most) strong->column[n++] = a->column[e];
        strong->begin[i + 1] = n;
    }
done:
    return err;
}

/* ---- interpolation ---- */

/* The entry of the present row for a point, if that is a coarse one which the row's is interpolated from; else -1. */
static int entry_of(const splitting *s, const trli_sparse_rows *making, const int *place, int point)
{
    const int number = s->number[point];
    return number >= 0 && place[number] >= making->made->begin[making->row] ? place[number] : -1;
}

/* What a strong neighbour j that is left out adds: its value is taken from the coarse points that both depend on. */
static bool distribute(const splitting *s, const trli_sparse_rows *making, const int *place, int j, double entry)
{
    const trli_sparse *a = s->a;
    const double sign = a->value[a->begin[j]] < 0 ? 1 : -1;
    double sum = 0;
    for (int e = a->begin[j] + 1; e < a->begin[j + 1]; ++e)
        if (sign * a->value[e] > 0 && entry_of(s, making, place, a->column[e]) >= 0) sum += a->value[e];
    for (int e = a->begin[j] + 1; e < a->begin[j + 1] && sum != 0; ++e) {
        const int to = sign * a->value[e] > 0 ? entry_of(s, making, place, a->column[e]) : -1;
        if (to >= 0) making->made->value[to] += entry * (a->value[e] / sum);
    }
    return sum != 0;
}

static trl_err interpolate(const void *data, trli_sparse_rows *making, int *place, int i)
{
    const splitting *s = data;
    const trli_sparse *a = s->a, *strong = &s->strong;
    const int begin = a->begin[i], end = a->begin[i + 1], *number = s->number;
    double own = begin < end ? a->value[begin] : 0;
    trl_err err = TRL_OK;
    if (number[i] >= 0) return trli_sparse_entry(making, number[i], 1);
    if (own == 0) return TRL_OK;
    for (int e = strong->begin[i]; e < strong->begin[i + 1]; ++e)
        if (number[strong->column[e]] >= 0) TRL_TRY(trli_sparse_add(making, place, number[strong->column[e]], 0));
    for (int e = begin + 1, k = strong->begin[i]; e < end; ++e) {
        const int j = a->column[e];
        const bool is_strong = k < strong->begin[i + 1] && strong->column[k] == j;
        k += is_strong;
        if (is_strong && number[j] >= 0)
            making->made->value[place[number[j]]] += a->value[e];
        else if (!is_strong || !distribute(s, making, place, j, a->value[e]))
            own += a->value[e];
    }
    if (own * a->value[begin] <= 0) own = a->value[begin];
    double *value = making->made->value;
    for (int e = making->made->begin[making->row]; e < making->made->begin[making->row + 1]; ++e)
        value[e] = -value[e] / own;
done:
    return err;
}

/* ---- all of it ---- */

trl_err trli_splitting_create(trl_context *ctx, trli_sparse_crew *crew, trli_splitting **splitting)
{
    *splitting = trli_new(ctx, 1, sizeof **splitting);
    if (!*splitting) return trli_no_memory(ctx, NULL, "for coarser grids");
    (*splitting)->ctx = ctx;
    (*splitting)->crew = crew;
    return TRL_OK;
}

void trli_splitting_destroy(trli_splitting **splitting)
{
    trli_splitting *s = *splitting;
    *splitting = NULL;
    if (!s) return;
    trli_sparse_free(&s->strong);
    trli_choosing_free(&s->choosing);
    trli_free(s->list);
    trli_free(s);
}

trl_err trli_split(trli_splitting *s, const trli_sparse *a, trli_sparse *p)
{
    int coarse = 0;
    trl_err err = TRL_OK;
    s->a = a;
    TRL_TRY(find_strong(s->ctx, a, &s->strong));
    TRL_TRY(trli_choosing_begin(s->ctx, &s->strong, &s->choosing));
    trli_choose(&s->choosing);
    if (!trli_make_room(s->ctx, &s->list, 0, a->rows, &s->room, sizeof *s->list))
        TRL_TRY(trli_no_memory(s->ctx, NULL, "for coarser grids"));
    for (int i = 0; i < a->rows; ++i) s->list[i] = s->choosing.state[i] == TRLI_COARSE ? coarse++ : -1;
    s->number = s->list;
    err = trli_sparse_make_together(s->crew, a->rows, coarse, interpolate, s, p);
done:
    return err;
}

trl_err trli_split_strong(trli_splitting *s, const trli_sparse *a, const trli_sparse **strong)
{
    s->a = a;
    *strong = &s->strong;
    return find_strong(s->ctx, a, &s->strong);
}

trl_err trli_split_rows(trli_splitting *s, int rows, const int *number, int coarse, trli_sparse *p)
{
    s->number = number;
    return trli_sparse_make(s->crew, rows, coarse, interpolate, s, p);
}
