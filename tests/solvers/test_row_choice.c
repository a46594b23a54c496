/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which points stay where they are chosen in blocks: the same ones on any ranks and patches, and enough of them. */
// ctest: np=1,2,3,4,8 sanitize=3
#include "row_owners_impl.h"
#include "spatialops_impl.h"
#include "trl_test.h"

enum { REACH = 2, COLUMNS = 6 };

typedef struct sample {
    trl_grid grid;
    int n[3];
    int64_t most; /* points of a block */
} sample;

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Some points of the grid are no rows. */
static bool is_row(trl_gidx point)
{
    return scramble((uint64_t)point + 1) % 9 != 0;
}

static trl_gidx at_offset(const sample *w, trl_gidx point, const int offset[3])
{
    trl_gidx at[3] = {point % w->n[0], point / w->n[0] % w->n[1], point / w->n[0] / w->n[1]};
    for (int a = 0; a < 3; ++a) {
        at[a] += offset[a];
        if (w->grid.periodic[a]) at[a] = (at[a] + w->n[a]) % w->n[a];
        if (at[a] < 0 || at[a] >= w->n[a]) return -1;
    }
    return at[0] + w->n[0] * (at[1] + w->n[1] * at[2]);
}

/* The points that one depends on strongly: neighbours along axes, and by chance others near it, which need not depend
 * on it. */
static int columns_of(const sample *w, trl_gidx point, trl_gidx column[COLUMNS])
{
    int n = 0;
    for (int k = 0; k < COLUMNS; ++k) {
        const uint64_t chance = scramble(7 * (uint64_t)point + (uint64_t)k);
        int offset[3] = {0, 0, 0};
        for (int a = 0; a < 3; ++a) offset[a] = (int)(chance >> (8 * a) & 0xff) % (2 * REACH + 1) - REACH;
        if (k < 4) {
            offset[0] = k / 2 == 0 ? 2 * (k % 2) - 1 : 0;
            offset[1] = k / 2 == 1 ? 2 * (k % 2) - 1 : 0;
            offset[2] = 0;
        }
        const trl_gidx to = at_offset(w, point, offset);
        bool is = to >= 0 && to != point && is_row(to);
        for (int i = 0; i < n; ++i) is &= column[i] != to;
        if (is) column[n++] = to;
    }
    return n;
}

typedef struct rows {
    trli_row_owners known, around;
    trli_sparse strong;
    double *kept;
} rows;

/* Append the rows of known points from one on. */
static void add_rows(const sample *w, rows *r, int from, int to)
{
    trli_sparse *s = &r->strong;
    s->begin = realloc(s->begin, ((size_t)to + 2) * sizeof *s->begin);
    s->column = realloc(s->column, ((size_t)to + 1) * COLUMNS * sizeof *s->column);
    s->begin[0] = 0;
    for (int i = from; i < to; ++i) {
        trl_gidx column[COLUMNS];
        const int n = columns_of(w, r->around.point[i], column);
        for (int k = 0; k < n; ++k) ck_ok(trli_row_owners_add(&r->around, column[k], &s->column[s->begin[i] + k]));
        s->begin[i + 1] = s->begin[i] + n;
    }
    s->rows = to;
}

static int compare_points(const void *a, const void *b)
{
    const trl_gidx x = *(const trl_gidx *)a, y = *(const trl_gidx *)b;
    return (x > y) - (x < y);
}

/* ranks: that have the whole grid each. */
static void choose(const sample *w, const trl_layout *layout, int ranks, rows *r)
{
    const trl_gidx points = (trl_gidx)w->n[0] * w->n[1] * w->n[2];
    trl_gidx *own = malloc((size_t)points * sizeof *own);
    int n = 0, known;
    *r = (rows){0};
    ck_assert_ptr_nonnull(own);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        for (trl_lidx k = 0; k < patch->cells[2]; ++k)
            for (trl_lidx j = 0; j < patch->cells[1]; ++j)
                for (trl_lidx i = 0; i < patch->cells[0]; ++i) {
                    const trl_gidx at =
                        patch->first[0] + i + w->n[0] * (patch->first[1] + j + w->n[1] * (patch->first[2] + k));
                    if (is_row(at)) own[n++] = at;
                }
    }
    qsort(own, (size_t)n, sizeof *own, compare_points);
    ck_ok(trli_row_owners_begin(test_ctx, layout, w->n, n, &r->around));
    memcpy(r->around.point, own, (size_t)n * sizeof *own);
    free(own);
    add_rows(w, r, 0, n);
    ck_ok(trli_row_owners_add_readers(&r->around, &r->strong));
    known = r->around.all;
    add_rows(w, r, n, known);
    r->kept = calloc((size_t)n + 1, sizeof *r->kept);
    ck_assert_ptr_nonnull(r->kept);
    ck_ok(trli_row_owners_choose(&r->around, &r->strong, ranks * w->most, r->kept));
}

static void free_rows(rows *r)
{
    trli_row_owners_free(&r->around);
    free(r->strong.begin);
    free(r->strong.column);
    free(r->kept);
}

/* Of two points that are left out, one of which depends on the other, both depend on one that stays. */
static void check_enough(const rows *r)
{
    const trli_sparse *s = &r->strong;
    int stay = 0;
    for (int i = 0; i < r->around.own; ++i) {
        stay += r->kept[i] != 0;
        for (int e = s->begin[i]; r->kept[i] == 0 && e < s->begin[i + 1]; ++e) {
            const int j = s->column[e];
            bool common = r->kept[j] != 0;
            for (int a = s->begin[i]; !common && a < s->begin[i + 1]; ++a)
                for (int b = s->begin[j]; b < s->begin[j + 1]; ++b)
                    common |= s->column[a] == s->column[b] && r->kept[s->column[a]] != 0;
            ck_assert_msg(common, "points %d and %d have none in common", i, j);
        }
    }
    ck_assert_msg(2 * stay < r->around.own + 2 * r->around.own / 5, "%d of %d points stay", stay, r->around.own);
}

START_TEST(ranks_and_patches_choose_the_same_points)
{
    const int ranks = trl_context_ranks(test_ctx);
    static const struct {
        int n[3];
        bool periodic[3];
        int64_t most;
    } cases[] = {{{40, 37, 1}, {false, false, false}, 2000}, {{40, 37, 1}, {false, false, false}, 100},
                 {{41, 36, 1}, {true, false, false}, 90},    {{23, 24, 1}, {true, true, false}, 60},
                 {{17, 15, 16}, {false, true, true}, 300},   {{400, 1, 1}, {true, false, false}, 30}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const int *n = cases[k].n, dim = n[2] > 1 ? 3 : n[1] > 1 ? 2 : 1;
        sample w = {.grid = {.dim = dim}, .most = cases[k].most};
        trl_layout *whole, *cut;
        rows all, own;
        for (int a = 0; a < 3; ++a) {
            w.grid.cells[a] = w.n[a] = n[a];
            w.grid.periodic[a] = cases[k].periodic[a];
            w.grid.length[a] = w.grid.spacing[a] = 1;
        }
        ck_ok(trli_layout_create_whole(test_ctx, &w.grid, &whole));
        choose(&w, whole, ranks, &all);
        check_enough(&all);
        for (int more = 1; more <= 3; more += 2) {
            const int counts[3] = {more, dim > 1 ? ranks : 1, 1}, line[3] = {more * ranks, 1, 1};
            ck_ok(trl_layout_create(test_ctx, &w.grid, dim > 1 ? counts : line, NULL, &cut));
            choose(&w, cut, 1, &own);
            for (int i = 0; i < own.around.own; ++i) {
                const int row = trli_row_owners_find(&all.around, own.around.point[i]);
                ck_assert(row >= 0);
                ck_assert_msg(own.kept[i] == all.kept[row], "case %zu, %d patches along x: point %d", k, more, row);
            }
            free_rows(&own);
            trl_layout_destroy(&cut);
        }
        free_rows(&all);
        trl_layout_destroy(&whole);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, ranks_and_patches_choose_the_same_points);
}

TRL_TEST_MAIN("row_choice", add_tests)
