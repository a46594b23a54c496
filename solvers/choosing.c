/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which points of a matrix stay on the next coarser grid: those of which others depend strongly (Ruge & Stüben 1987).
 * Points come in an order that only the matrix decides. */
#include "memory_impl.h"
#include "sparse_impl.h"

/* ---- the first pass: coarse points that others do not depend on ---- */

static void list_point(trli_choosing *s, int i)
{
    int *head = &s->head[s->measure[i]];
    s->next[i] = *head;
    s->last[i] = -1;
    if (*head >= 0) s->last[*head] = i;
    *head = i;
    if (s->measure[i] > s->most) s->most = s->measure[i];
}

static void unlist_point(trli_choosing *s, int i)
{
    if (s->next[i] >= 0) s->last[s->next[i]] = s->last[i];
    *(s->last[i] >= 0 ? &s->next[s->last[i]] : &s->head[s->measure[i]]) = s->next[i];
}

static void change_measure(trli_choosing *s, int i, int by)
{
    if (s->state[i] != TRLI_UNDECIDED) return;
    unlist_point(s, i);
    s->measure[i] += by;
    list_point(s, i);
}

/* What follows from a point that is left out, or stays. */
static void note_fine(trli_choosing *s, int i)
{
    for (int e = s->strong->begin[i]; e < s->strong->begin[i + 1]; ++e) change_measure(s, s->strong->column[e], 1);
}

static void leave_out(trli_choosing *s, int i)
{
    unlist_point(s, i);
    s->state[i] = TRLI_FINE;
    note_fine(s, i);
}

static void note_coarse(trli_choosing *s, int i)
{
    for (int e = s->influence.begin[i]; e < s->influence.begin[i + 1]; ++e)
        if (s->state[s->influence.column[e]] == TRLI_UNDECIDED) leave_out(s, s->influence.column[e]);
    for (int e = s->strong->begin[i]; e < s->strong->begin[i + 1]; ++e) change_measure(s, s->strong->column[e], -1);
}

static void make_coarse(trli_choosing *s, int i)
{
    unlist_point(s, i);
    s->state[i] = TRLI_COARSE;
    note_coarse(s, i);
}

static void split_first(trli_choosing *s)
{
    for (int i = s->strong->rows - 1; i >= 0; --i) {
        s->is_open[i] = s->state[i] == TRLI_UNDECIDED;
        if (!s->is_open[i]) continue;
        s->measure[i] = s->influence.begin[i + 1] - s->influence.begin[i];
        list_point(s, i);
    }
    for (int i = 0; i < s->strong->rows; ++i) {
        if (s->is_open[i]) continue;
        if (s->state[i] == TRLI_COARSE) note_coarse(s, i);
        if (s->state[i] == TRLI_FINE) note_fine(s, i);
    }
    for (; s->most > 0; --s->most)
        while (s->head[s->most] >= 0) make_coarse(s, s->head[s->most]);
    for (int i = 0; i < s->strong->rows; ++i)
        if (s->state[i] == TRLI_UNDECIDED) s->state[i] = TRLI_FINE;
}

/* ---- the second pass: points that depend on each other have a coarse point in common ---- */

static bool depends_on_stamped(const trli_choosing *s, int j, int stamp)
{
    for (int e = s->strong->begin[j]; e < s->strong->begin[j + 1]; ++e)
        if (s->stamp[s->strong->column[e]] == stamp) return true;
    return false;
}

static void check_point(trli_choosing *s, int i)
{
    const int *begin = s->strong->begin, *column = s->strong->column;
    int added = -1;
    for (int e = begin[i]; e < begin[i + 1]; ++e)
        if (s->state[column[e]] == TRLI_COARSE) s->stamp[column[e]] = i;
    for (int e = begin[i]; e < begin[i + 1]; ++e) {
        const int j = column[e];
        if (s->state[j] != TRLI_FINE || j == added || !(s->is_open[i] || s->is_open[j])) continue;
        if (depends_on_stamped(s, j, i)) continue;
        if (added >= 0) { /* a second one lacks it: better the point itself */
            s->state[i] = TRLI_COARSE;
            return;
        }
        s->stamp[added = j] = i;
    }
    if (added >= 0) s->state[added] = TRLI_COARSE;
}

/* ---- both ---- */

void trli_choosing_free(trli_choosing *s)
{
    trli_sparse_free(&s->influence);
    trli_free(s->memory);
    *s = (trli_choosing){0};
}

trl_err trli_choosing_begin(trl_context *ctx, const trli_sparse *strong, trli_choosing *s)
{
    const ptrdiff_t n = strong->rows;
    int **all[] = {&s->state, &s->is_open, &s->measure, &s->next, &s->last, &s->stamp, &s->head};
    enum { LISTS = sizeof all / sizeof *all };
    int longest = 0;
    trl_err err = TRL_OK;
    s->strong = strong;
    TRL_TRY(trli_sparse_transpose(ctx, strong, &s->influence));
    for (int i = 0; i < n; ++i) {
        const int length = s->influence.begin[i + 1] - s->influence.begin[i];
        if (length > longest) longest = length;
    }
    const ptrdiff_t measures = 2 * (ptrdiff_t)longest + 2;
    if (!trli_make_room(ctx, &s->memory, 0, (LISTS - 1) * n + measures, &s->room, sizeof *s->memory))
        TRL_TRY(trli_no_memory(ctx, NULL, "for coarser grids"));
    for (int i = 0; i < LISTS; ++i) *all[i] = s->memory + i * n;
    s->most = 0;
    for (ptrdiff_t i = 0; i < measures; ++i) s->head[i] = -1;
    for (ptrdiff_t i = 0; i < n; ++i) {
        s->state[i] = TRLI_UNDECIDED;
        s->stamp[i] = -1;
    }
done:
    return err;
}

void trli_choose(trli_choosing *s)
{
    split_first(s);
    for (int i = 0; i < s->strong->rows; ++i)
        if (s->state[i] == TRLI_FINE) check_point(s, i);
}
