/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The next coarser grid of a matrix: points stay of which others depend strongly, so that each point that is left out
 * has neighbours to be interpolated from along its own strong couplings, whatever axes these lie on (Ruge & Stüben
 * 1987). Points come in an order that only the matrix decides. */
#include <math.h>

#include "memory_impl.h"
#include "sparse_impl.h"

enum { UNDECIDED, COARSE, FINE };

typedef struct trli_splitting {
    trl_context *ctx;
    trli_sparse_crew *crew;
    const trli_sparse *a;
    trli_sparse strong;    /* a row: the points that a point depends on strongly, and */
    trli_sparse influence; /* that depend on it; both without values */
    int *memory;           /* of all that follow: */
    int room;
    int *state;
    int *measure;     /* of undecided points: how much they would do as coarse ones; then the numbers of these, or -1 */
    int *head;        /* [measures] lists of undecided points; -1: none */
    int *next, *last; /* [points] in these lists */
    int *stamp;       /* [points] of the coarse points around the one that is looked at */
    int most;         /* no larger measure has points */
} splitting;

/* ---- strong couplings ---- */

static trl_err find_strong(trl_context *ctx, const trli_sparse *a, trli_sparse *strong)
{
    const double share = 0.25, dominated = 0.05;
    int n = 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_reserve_pattern(ctx, strong, a->rows, a->rows, a->begin[a->rows]));
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

/* ---- the first pass: coarse points that others do not depend on ---- */

static void list_point(splitting *s, int i)
{
    int *head = &s->head[s->measure[i]];
    s->next[i] = *head;
    s->last[i] = -1;
    if (*head >= 0) s->last[*head] = i;
    *head = i;
    if (s->measure[i] > s->most) s->most = s->measure[i];
}

static void unlist_point(splitting *s, int i)
{
    if (s->next[i] >= 0) s->last[s->next[i]] = s->last[i];
    *(s->last[i] >= 0 ? &s->next[s->last[i]] : &s->head[s->measure[i]]) = s->next[i];
}

static void change_measure(splitting *s, int i, int by)
{
    if (s->state[i] != UNDECIDED) return;
    unlist_point(s, i);
    s->measure[i] += by;
    list_point(s, i);
}

static void leave_out(splitting *s, int i)
{
    unlist_point(s, i);
    s->state[i] = FINE;
    for (int e = s->strong.begin[i]; e < s->strong.begin[i + 1]; ++e) change_measure(s, s->strong.column[e], 1);
}

static void make_coarse(splitting *s, int i)
{
    unlist_point(s, i);
    s->state[i] = COARSE;
    for (int e = s->influence.begin[i]; e < s->influence.begin[i + 1]; ++e)
        if (s->state[s->influence.column[e]] == UNDECIDED) leave_out(s, s->influence.column[e]);
    for (int e = s->strong.begin[i]; e < s->strong.begin[i + 1]; ++e) change_measure(s, s->strong.column[e], -1);
}

static void split_first(splitting *s)
{
    for (int i = s->a->rows - 1; i >= 0; --i) {
        s->measure[i] = s->influence.begin[i + 1] - s->influence.begin[i];
        list_point(s, i);
    }
    for (; s->most > 0; --s->most)
        while (s->head[s->most] >= 0) make_coarse(s, s->head[s->most]);
    for (int i = 0; i < s->a->rows; ++i)
        if (s->state[i] == UNDECIDED) s->state[i] = FINE;
}

/* ---- the second pass: points that depend on each other have a coarse point in common ---- */

static bool depends_on_stamped(const splitting *s, int j, int stamp)
{
    for (int e = s->strong.begin[j]; e < s->strong.begin[j + 1]; ++e)
        if (s->stamp[s->strong.column[e]] == stamp) return true;
    return false;
}

static void check_point(splitting *s, int i)
{
    const int *begin = s->strong.begin, *column = s->strong.column;
    int added = -1;
    for (int e = begin[i]; e < begin[i + 1]; ++e)
        if (s->state[column[e]] == COARSE) s->stamp[column[e]] = i;
    for (int e = begin[i]; e < begin[i + 1]; ++e) {
        const int j = column[e];
        if (s->state[j] != FINE || j == added || depends_on_stamped(s, j, i)) continue;
        if (added >= 0) { /* a second one lacks it: better the point itself */
            s->state[i] = COARSE;
            return;
        }
        s->stamp[added = j] = i;
    }
    if (added >= 0) s->state[added] = COARSE;
}

/* ---- interpolation ---- */

/* The entry of the present row for a point, if that is a coarse one which the row's is interpolated from; else -1. */
static int entry_of(const splitting *s, const trli_sparse_rows *making, const int *place, int point)
{
    const int number = s->measure[point];
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
    const int begin = a->begin[i], end = a->begin[i + 1], *number = s->measure;
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

static trl_err interpolate_all(splitting *s, trli_sparse *p)
{
    const int n = s->a->rows;
    int coarse = 0;
    for (int i = 0; i < n; ++i) s->measure[i] = s->state[i] == COARSE ? coarse++ : -1;
    return trli_sparse_make_together(s->crew, n, coarse, interpolate, s, p);
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
    trli_sparse_free(&s->influence);
    trli_free(s->memory);
    trli_free(s);
}

static trl_err make_room(splitting *s)
{
    const ptrdiff_t n = s->a->rows;
    int **all[] = {&s->state, &s->measure, &s->next, &s->last, &s->stamp, &s->head};
    int longest = 0;
    trl_err err = TRL_OK;
    TRL_TRY(find_strong(s->ctx, s->a, &s->strong));
    TRL_TRY(trli_sparse_transpose(s->ctx, &s->strong, &s->influence));
    for (int i = 0; i < s->a->rows; ++i) {
        const int length = s->influence.begin[i + 1] - s->influence.begin[i];
        if (length > longest) longest = length;
    }
    const ptrdiff_t measures = 2 * (ptrdiff_t)longest + 2;
    if (!trli_make_room(s->ctx, &s->memory, 0, 5 * n + measures, &s->room, sizeof *s->memory))
        TRL_TRY(trli_no_memory(s->ctx, NULL, "for coarser grids"));
    for (int i = 0; i < 6; ++i) *all[i] = s->memory + i * n;
    for (ptrdiff_t i = 0; i < measures; ++i) s->head[i] = -1;
    for (ptrdiff_t i = 0; i < n; ++i) {
        s->state[i] = UNDECIDED;
        s->stamp[i] = -1;
    }
done:
    return err;
}

trl_err trli_split(trli_splitting *s, const trli_sparse *a, trli_sparse *p)
{
    trl_err err = TRL_OK;
    s->a = a;
    TRL_TRY(make_room(s));
    split_first(s);
    for (int i = 0; i < a->rows; ++i)
        if (s->state[i] == FINE) check_point(s, i);
    err = interpolate_all(s, p);
done:
    return err;
}
