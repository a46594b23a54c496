/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which points of a matrix stay whose rows the ranks share. Points are chosen one after the other, so the grid is cut
 * into blocks, in the same way on any ranks. One rank chooses the points of a block, and gets for that who depends on
 * whom there and in the blocks around, without numbers. Blocks beside each other have different colours; those of one
 * colour are chosen at a time, and find what is chosen in those of colours before. */
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "row_owners_impl.h"

/* A point that goes to the rank of a block: one of the block's, one that these depend on, or that depends on them. */
typedef struct member {
    trl_gidx point;
    int block, at; /* at: own row; for the rank of the block, its place in messages */
} member;

typedef struct choice {
    const trli_row_owners *o;
    const trli_sparse *strong;
    int counts[3]; /* blocks along each axis */
    int ranks;
    int *block;     /* [all rows] */
    int *state;     /* [own rows] trli_point_state */
    member *member; /* that this rank sends, by ranks of their blocks */
    member *got;    /* that come, in the order of blocks and points */
    int members, members_room, ngot;
    int *list;                                        /* [8 * ranks] of all that follow: */
    int *sent, *sent_begin, *come, *come_begin;       /* members to and from each rank */
    int *columns, *columns_begin, *read, *read_begin; /* points that these depend on */
    int *length;                                      /* [come] of each */
    int *first;                                       /* [come] */
    trl_gidx *column;                                 /* [read] */
    int *out, *in;                                    /* [sent], [come] states */
    trli_sparse rows;                                 /* of the members of a block */
    trli_choosing choosing;
} choice;

static trl_err no_memory(const choice *w)
{
    return trli_no_memory(w->o->ctx, NULL, "for coarser grids");
}

/* ---- blocks ---- */

/* The longest side is halved until blocks have no more than so many of the points, were these everywhere alike. */
static void cut(choice *w, int64_t rows, int64_t most)
{
    for (int a = 0; a < 3; ++a) w->counts[a] = 1;
    for (int64_t blocks = 1; rows / blocks > most; blocks *= 2) {
        int longest = 0;
        for (int a = 1; a < 3; ++a)
            if (w->o->n[a] / w->counts[a] > w->o->n[longest] / w->counts[longest]) longest = a;
        if (w->o->n[longest] / w->counts[longest] < 2) break;
        w->counts[longest] *= 2;
    }
}

static int block_of(const choice *w, trl_gidx point)
{
    const int *n = w->o->n;
    const trl_gidx at[3] = {point % n[0], point / n[0] % n[1], point / n[0] / n[1]};
    int block = 0;
    for (int a = 2; a >= 0; --a) block = block * w->counts[a] + (int)(at[a] * w->counts[a] / n[a]);
    return block;
}

static int colour_of(const choice *w, int block)
{
    int colour = 0;
    for (int a = 0; a < 3; block /= w->counts[a++]) colour |= (block % w->counts[a] & 1) << a;
    return colour;
}

/* That of the point in its middle. */
static int rank_of(const choice *w, int block)
{
    trl_gidx point = 0, before = 1;
    for (int a = 0; a < 3; block /= w->counts[a], before *= w->o->n[a++])
        point += before * ((2 * (trl_gidx)(block % w->counts[a]) + 1) * w->o->n[a] / (2 * w->counts[a]));
    return trli_row_owners_rank(w->o, point);
}

/* ---- who goes where ---- */

static trl_err add_member(choice *w, int row, int block)
{
    if (!trli_make_room(w->o->ctx, &w->member, w->members, 1, &w->members_room, sizeof *w->member)) return no_memory(w);
    w->member[w->members++] = (member){w->o->point[row], block, row};
    return TRL_OK;
}

static int compare_members(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

static void drop_twins(choice *w, int first)
{
    int n = first;
    qsort(w->member + first, (size_t)(w->members - first), sizeof *w->member, compare_members);
    for (int i = first; i < w->members; ++i)
        if (i == first || compare_members(&w->member[n - 1], &w->member[i]) != 0) w->member[n++] = w->member[i];
    w->members = n;
}

/* In their own blocks, and in those of points that have to do with them. */
static trl_err list_members(choice *w)
{
    const trli_row_owners *o = w->o;
    const trli_sparse *strong = w->strong;
    trl_err err = TRL_OK;
    w->block = trli_new(o->ctx, (size_t)o->all + 1, sizeof *w->block);
    if (!w->block) TRL_TRY(no_memory(w));
    for (int i = 0; i < o->all; ++i) w->block[i] = block_of(w, o->point[i]);
    for (int i = 0; i < o->own; ++i) TRL_TRY(add_member(w, i, w->block[i]));
    for (int i = 0; i < strong->rows; ++i)
        for (int e = strong->begin[i]; e < strong->begin[i + 1]; ++e) {
            const int j = strong->column[e];
            if (w->block[i] == w->block[j]) continue;
            if (i < o->own) TRL_TRY(add_member(w, i, w->block[j]));
            if (j < o->own) TRL_TRY(add_member(w, j, w->block[i]));
        }
    drop_twins(w, o->own);
done:
    return err;
}

static void sum_up(int ranks, const int *count, int *begin)
{
    for (int r = 0, n = 0; r < ranks; n += count[r++]) begin[r] = n;
}

static int total(const choice *w, const int *count)
{
    int n = 0;
    for (int r = 0; r < w->ranks; ++r) n += count[r];
    return n;
}

/* By the ranks of their blocks. */
static trl_err sort_members(choice *w)
{
    enum { LISTS = 8 };
    int **all[LISTS] = {&w->sent,    &w->sent_begin,    &w->come, &w->come_begin,
                        &w->columns, &w->columns_begin, &w->read, &w->read_begin};
    trl_context *ctx = w->o->ctx;
    int last = -1, rank = 0;
    trl_err err = TRL_OK;
    member *const sorted = trli_new(ctx, (size_t)w->members + 1, sizeof *sorted);
    int *const to = trli_new(ctx, (size_t)w->members + 1, sizeof *to);
    w->list = trli_new(ctx, LISTS * (size_t)w->ranks, sizeof *w->list);
    if (!sorted || !to || !w->list) TRL_TRY(no_memory(w));
    for (int i = 0; i < LISTS; ++i) *all[i] = w->list + (ptrdiff_t)i * w->ranks;
    for (int i = 0; i < w->members; ++i) {
        const int row = w->member[i].at;
        if (w->member[i].block != last) rank = rank_of(w, last = w->member[i].block);
        to[i] = rank;
        ++w->sent[rank];
        w->columns[rank] += w->strong->begin[row + 1] - w->strong->begin[row];
    }
    sum_up(w->ranks, w->sent, w->sent_begin);
    sum_up(w->ranks, w->columns, w->columns_begin);
    for (int i = 0; i < w->members; ++i) sorted[w->sent_begin[to[i]]++] = w->member[i];
    sum_up(w->ranks, w->sent, w->sent_begin);
    memcpy(w->member, sorted, (size_t)w->members * sizeof *sorted);
done:
    trli_free(sorted);
    trli_free(to);
    return err;
}

/* ---- messages ---- */

static trl_err make_room(choice *w)
{
    trl_context *ctx = w->o->ctx;
    trl_err err = TRL_OK;
    TRL_TRY(trli_alltoall(ctx, w->sent, w->come));
    TRL_TRY(trli_alltoall(ctx, w->columns, w->read));
    int64_t entries = 0, rows = 0;
    for (int r = 0; r < w->ranks; ++r) {
        rows += w->come[r];
        entries += w->read[r];
    }
    if (rows > INT32_MAX || entries > INT32_MAX) TRL_TRY(no_memory(w));
    sum_up(w->ranks, w->come, w->come_begin);
    sum_up(w->ranks, w->read, w->read_begin);
    w->ngot = (int)rows;
    w->got = trli_new(ctx, (size_t)rows + 1, sizeof *w->got);
    w->length = trli_new(ctx, (size_t)rows + 1, sizeof *w->length);
    w->first = trli_new(ctx, (size_t)rows + 1, sizeof *w->first);
    w->in = trli_new(ctx, (size_t)rows + 1, sizeof *w->in);
    w->out = trli_new(ctx, (size_t)w->members + 1, sizeof *w->out);
    w->column = trli_new(ctx, (size_t)entries + 1, sizeof *w->column);
    if (!w->got || !w->length || !w->first || !w->in || !w->out || !w->column) err = no_memory(w);
done:
    return err;
}

/* An int, or a point, for each member. */
static trl_err send_members(const choice *w, const void *sent, void *come, MPI_Datatype type)
{
    return trli_alltoallv(w->o->ctx, sent, w->sent, w->sent_begin, come, w->come, w->come_begin, type);
}

static trl_err send_points(choice *w)
{
    trl_context *ctx = w->o->ctx;
    trl_err err = TRL_OK;
    trl_gidx *const out = trli_new(ctx, (size_t)w->members + 1, sizeof *out);
    trl_gidx *const in = trli_new(ctx, (size_t)w->ngot + 1, sizeof *in);
    if (!out || !in) TRL_TRY(no_memory(w));
    for (int i = 0; i < w->members; ++i) out[i] = w->member[i].point;
    TRL_TRY(send_members(w, out, in, MPI_INT64_T));
    for (int i = 0; i < w->members; ++i) w->out[i] = w->member[i].block;
    TRL_TRY(send_members(w, w->out, w->in, MPI_INT));
    for (int i = 0; i < w->ngot; ++i) w->got[i] = (member){in[i], w->in[i], i};
    qsort(w->got, (size_t)w->ngot, sizeof *w->got, compare_members);
done:
    trli_free(out);
    trli_free(in);
    return err;
}

static trl_err send_rows(choice *w)
{
    const trli_sparse *strong = w->strong;
    const int n = total(w, w->columns);
    trl_err err = TRL_OK;
    trl_gidx *const out = trli_new(w->o->ctx, (size_t)n + 1, sizeof *out);
    if (!out) TRL_TRY(no_memory(w));
    for (int i = 0, k = 0; i < w->members; ++i) {
        const int row = w->member[i].at;
        w->out[i] = strong->begin[row + 1] - strong->begin[row];
        for (int e = strong->begin[row]; e < strong->begin[row + 1]; ++e) out[k++] = w->o->point[strong->column[e]];
    }
    TRL_TRY(send_members(w, w->out, w->length, MPI_INT));
    TRL_TRY(trli_alltoallv_further(w->o->ctx, out, w->columns, w->columns_begin, w->column, w->read, w->read_begin,
                                   MPI_INT64_T));
    for (int i = 0, k = 0; i < w->ngot; k += w->length[i++]) w->first[i] = k;
done:
    trli_free(out);
    return err;
}

/* ---- a block ---- */

/* The place of a point among n members; -1: it is none of them. In most cases it is the one behind that of the same
 * column in the row before. */
static int find(const member *m, int n, trl_gidx point, int guess)
{
    if (guess < n && m[guess].point == point) return guess;
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (m[middle].point < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && m[low].point == point ? low : -1;
}

/* Rows of a block's members, of columns that are members. */
static trl_err make_rows(choice *w, const member *m, int n)
{
    enum { GUESSES = 32 };
    int last[GUESSES] = {0};
    trli_sparse *rows = &w->rows;
    int64_t most = 0;
    int all = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i) most += w->length[m[i].at];
    TRL_TRY(trli_sparse_reserve_pattern(w->o->ctx, rows, n, n, (int)most));
    rows->begin[0] = 0;
    for (int i = 0; i < n; ++i) {
        const trl_gidx *column = w->column + w->first[m[i].at];
        for (int k = 0; k < w->length[m[i].at]; ++k) {
            const int at = find(m, n, column[k], last[k % GUESSES] + 1);
            if (at < 0) continue;
            last[k % GUESSES] = at;
            rows->column[all++] = at;
        }
        rows->begin[i + 1] = all;
    }
done:
    return err;
}

/* in: states before and after. */
static trl_err choose_block(choice *w, const member *m, int n)
{
    trl_err err = TRL_OK;
    TRL_TRY(make_rows(w, m, n));
    TRL_TRY(trli_choosing_begin(w->o->ctx, &w->rows, &w->choosing));
    for (int i = 0; i < n; ++i) {
        const bool inside = block_of(w, m[i].point) == m[i].block;
        const int known = w->in[m[i].at];
        w->choosing.state[i] = known == TRLI_UNDECIDED && !inside ? TRLI_ELSEWHERE : known;
    }
    trli_choose(&w->choosing);
    for (int i = 0; i < n; ++i) {
        const int state = w->choosing.state[i];
        w->in[m[i].at] = state == TRLI_ELSEWHERE ? TRLI_UNDECIDED : state;
    }
done:
    return err;
}

static trl_err choose_colour(choice *w, int colour)
{
    trl_err err = TRL_OK;
    for (int i = 0, end; i < w->ngot; i = end) {
        for (end = i; end < w->ngot && w->got[end].block == w->got[i].block;) ++end;
        if (colour_of(w, w->got[i].block) == colour) TRL_TRY(choose_block(w, w->got + i, end - i));
    }
done:
    return err;
}

/* Ranks of blocks get what is known, and give back what they have chosen: a point that stays for one of them stays. */
static trl_err run_colour(choice *w, int colour)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < w->members; ++i) w->out[i] = w->state[w->member[i].at];
    TRL_TRY(send_members(w, w->out, w->in, MPI_INT));
    TRL_TRY(choose_colour(w, colour));
    TRL_TRY(trli_alltoallv(w->o->ctx, w->in, w->come, w->come_begin, w->out, w->sent, w->sent_begin, MPI_INT));
    for (int i = 0; i < w->members; ++i) {
        int *const state = &w->state[w->member[i].at];
        if (w->out[i] > *state) *state = w->out[i];
    }
done:
    return err;
}

static trl_err run(choice *w)
{
    enum { COLOURS = 8 };
    trl_err err = TRL_OK;
    w->state = trli_new(w->o->ctx, (size_t)w->o->own + 1, sizeof *w->state);
    if (!w->state) TRL_TRY(no_memory(w));
    TRL_TRY(list_members(w));
    TRL_TRY(sort_members(w));
    TRL_TRY(make_room(w));
    TRL_TRY(send_points(w));
    TRL_TRY(send_rows(w));
    for (int colour = 0; colour < COLOURS; ++colour) {
        bool any = true;
        for (int a = 0; a < 3; ++a) any &= w->counts[a] > 1 || !(colour >> a & 1);
        if (any) TRL_TRY(run_colour(w, colour));
    }
done:
    return err;
}

trl_err trli_row_owners_choose(const trli_row_owners *o, const trli_sparse *strong, int64_t most, double *kept)
{
    choice w = {.o = o, .strong = strong, .ranks = trl_context_ranks(o->ctx)};
    int64_t rows = o->own;
    trl_err err = TRL_OK;
    TRL_TRY(trli_allreduce(o->ctx, &rows, 1, MPI_INT64_T, MPI_SUM));
    cut(&w, rows, most);
    TRL_TRY(run(&w));
    for (int i = 0; i < o->own; ++i) kept[i] = w.state[i] == TRLI_COARSE;
done:
    trli_sparse_free(&w.rows);
    trli_choosing_free(&w.choosing);
    void *const lists[] = {w.block, w.state, w.member, w.got, w.list, w.length, w.first, w.column, w.out, w.in};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) trli_free(lists[i]);
    return err;
}
