/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Columns that no row has two of are found by one product (Curtis, Powell & Reid 1974): those of one unknown whose
 * points are so far apart along some axis that no row reaches two of them. */
#include "matrix_impl.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "agree_impl.h"
#include "context_impl.h"
#include "execution_impl.h"
#include "krylov_impl.h"
#include "memory_impl.h"
#include "plan_impl.h"
#include "solve_vectors_impl.h"

typedef struct entry {
    int row, column;
    double value;
} entry;

struct trli_matrix {
    trli_solver *s;
    int (*n)[3];      /* [unknowns] points of each along the axes */
    int *first;       /* [unknowns + 1] the number of its first point */
    bool periodic[3]; /* and rows reach so far: */
    int reach[3];
    int own;            /* points of this rank, in the order of visits */
    int *count, *begin; /* [ranks] points of each rank, and where they begin in what is gathered */
    int *number;        /* [all] of these the points' numbers */
    double *gathered;   /* [all] */
    entry *found;
    int nfound, room;
    int points; /* of all unknowns; the matrix has these and its borders' */
    trli_columns columns;
};

/* ---- points ---- */

int trli_matrix_unknowns(const trli_solver *s)
{
    const trl_grid *grid = &s->sim->layout->grid;
    double all = 0;
    for (int i = 0; i < s->ask.n; ++i) {
        double points = 1;
        for (int a = 0; a < grid->dim; ++a)
            points *= (double)trl_grid_points(grid, s->sim->model->variable[s->ask.variable[i]].location, a);
        all += points;
    }
    return all < INT32_MAX ? (int)all : INT32_MAX;
}

/* An own point of an unknown: its place, its number, and its value in a field. */
typedef trl_err (*visiting)(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value);

static trl_err visit_patch(trli_matrix *m, int unknown, int p, int field, visiting fn, void *data)
{
    const trl_simulation *sim = m->s->sim;
    const trl_array a = trli_frame_array(sim->frame, field, p, 0);
    const trl_gidx *first = sim->layout->patch[p].first;
    const int *n = m->n[unknown];
    trl_err err = TRL_OK;
    for (trl_lidx k = a.owned.lo[2]; k < a.owned.hi[2]; ++k)
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i) {
                const int at[3] = {(int)(first[0] + i), (int)(first[1] + j), (int)(first[2] + k)};
                const int number = m->first[unknown] + (at[2] * n[1] + at[1]) * n[0] + at[0];
                TRL_TRY(fn(m, data, unknown, at, number, (double *)a.at + trl_array_offset(&a, i, j, k)));
            }
done:
    return err;
}

/* All own points of all unknowns, always in one order. field: [unknowns] */
static trl_err visit(trli_matrix *m, const int *field, visiting fn, void *data)
{
    trl_err err = TRL_OK;
    for (int u = 0; u < m->s->ask.n; ++u)
        for (int p = 0; p < m->s->sim->layout->nlocal; ++p) TRL_TRY(visit_patch(m, u, p, field[u], fn, data));
done:
    return err;
}

/* Points that conditions set are no unknowns. */
static bool is_fixed(const trli_matrix *m, int unknown, const int at[3])
{
    const int8_t *fixed = m->s->sim->model->field[m->s->ask.field[unknown]].fixed_planes;
    bool is = false;
    for (int a = 0; a < 3; ++a) is |= at[a] < fixed[2 * a] || at[a] >= m->n[unknown][a] - fixed[2 * a + 1];
    return is;
}

/* data: where the next number belongs, NULL: nowhere. */
static trl_err note_number(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value)
{
    int **next = data;
    (void)unknown, (void)at, (void)value;
    if (*next)
        *(*next)++ = number;
    else
        ++m->own;
    return TRL_OK;
}

/* ---- making ---- */

static void widen(const trli_matrix *m, int field, trl_lidx far[3])
{
    const trl_offsets hull = trl_footprint_hull(&m->s->apply->plan->demand[field].inner);
    for (int a = 0; a < 3; ++a) {
        const trl_lidx wide = hull.hi[a] > -hull.lo[a] ? hull.hi[a] : -hull.lo[a];
        if (wide > far[a]) far[a] = wide;
    }
}

/* How far rows reach: as far as the product reads d around a point, and around what it reads of what follows from d. */
static void find_reach(trli_matrix *m)
{
    const trli_program *apply = m->s->apply;
    trl_lidx direct[3] = {0};
    for (int u = 0; u < m->s->ask.n; ++u) widen(m, m->s->d.now[u], direct);
    for (int a = 0; a < 3; ++a) m->reach[a] = (int)direct[a];
    for (int i = 0; i < apply->nsteps; ++i) {
        const trli_step *step = &apply->step[i];
        trl_lidx further[3] = {0};
        for (int o = 0; apply->plan->step[i].live && step->kind != TRLI_STEP_FILL && o < step->nout; ++o)
            widen(m, step->field[o], further);
        for (int a = 0; a < 3; ++a) m->reach[a] += (int)further[a];
    }
}

static trl_err make_lists(trli_matrix *m)
{
    const trli_solver *s = m->s;
    const trl_grid *grid = &s->sim->layout->grid;
    trl_context *ctx = s->sim->ctx;
    const size_t ranks = (size_t)trl_context_ranks(ctx);
    bool one_place = true;
    m->n = trli_new(ctx, (size_t)s->ask.n, sizeof *m->n);
    m->first = trli_new(ctx, (size_t)s->ask.n + 1, sizeof *m->first);
    m->count = trli_new(ctx, ranks, sizeof *m->count);
    m->begin = trli_new(ctx, ranks + 1, sizeof *m->begin);
    if (!m->n || !m->first || !m->count || !m->begin) return trli_no_memory(ctx, NULL, "for a matrix");
    for (int u = 0; u < s->ask.n; ++u) {
        const trl_location location = s->sim->model->variable[s->ask.variable[u]].location;
        one_place &= location == s->sim->model->variable[s->ask.variable[0]].location;
        for (int a = 0; a < 3; ++a) m->n[u][a] = a < grid->dim ? (int)trl_grid_points(grid, location, a) : 1;
        m->first[u + 1] = m->first[u] + m->n[u][0] * m->n[u][1] * m->n[u][2];
    }
    find_reach(m);
    for (int a = 0; a < grid->dim; ++a) {
        m->periodic[a] = grid->periodic[a];
        if (!one_place) ++m->reach[a]; /* indices of faces and cells are those of the cell behind a face */
    }
    int *nowhere = NULL;
    return visit(m, s->d.now, note_number, &nowhere);
}

static trl_err gather_numbers(trli_matrix *m)
{
    trl_context *ctx = m->s->sim->ctx;
    const int ranks = trl_context_ranks(ctx), rank = trl_context_rank(ctx);
    const size_t all = (size_t)m->first[m->s->ask.n];
    trl_err err = TRL_OK;
    m->count[rank] = m->own;
    TRL_TRY(trli_allreduce(ctx, m->count, ranks, MPI_INT, MPI_MAX));
    TRL_TRY(trli_allreduce(ctx, m->reach, 3, MPI_INT, MPI_MAX));
    for (int r = 0; r < ranks; ++r) m->begin[r + 1] = m->begin[r] + m->count[r];
    m->number = trli_new(ctx, all, sizeof *m->number);
    m->gathered = trli_new(ctx, all, sizeof *m->gathered);
    m->columns.begin = trli_new(ctx, all + (size_t)m->s->ask.n + 1, sizeof *m->columns.begin);
    m->points = (int)all;
    if (!m->number || !m->gathered || !m->columns.begin) err = trli_no_memory(ctx, NULL, "for a matrix");
    int *next = m->number ? m->number + m->begin[rank] : NULL;
    if (err == TRL_OK) err = visit(m, m->s->d.now, note_number, &next);
    TRL_TRY(trl_context_agree(ctx, err));
    err = trli_allgatherv_further(ctx, m->number, m->count, m->begin, MPI_INT);
done:
    return err;
}

trl_err trli_matrix_create(trli_solver *s, trli_matrix **matrix)
{
    trl_err err = TRL_OK;
    trli_matrix *m = *matrix = trli_new(s->sim->ctx, 1, sizeof *m);
    if (m) m->s = s;
    err = m ? make_lists(m) : trli_no_memory(s->sim->ctx, NULL, "for a matrix");
    TRL_TRY(trl_context_agree(s->sim->ctx, err));
    err = gather_numbers(m);
done:
    if (err != TRL_OK) trli_matrix_destroy(matrix);
    return err;
}

void trli_matrix_destroy(trli_matrix **matrix)
{
    trli_matrix *m = *matrix;
    *matrix = NULL;
    if (!m) return;
    trli_free(m->n);
    trli_free(m->first);
    trli_free(m->count);
    trli_free(m->begin);
    trli_free(m->number);
    trli_free(m->gathered);
    trli_free(m->found);
    trli_free(m->columns.begin);
    trli_free(m->columns.row);
    trli_free(m->columns.value);
    trli_free(m);
}

/* ---- vectors ---- */

static trl_err fetch(const trli_matrix *m, const int *field)
{
    trl_err err = TRL_OK;
    for (int u = 0; u < m->s->ask.n && err == TRL_OK; ++u) err = trli_frame_fetch(m->s->sim->frame, field[u]);
    return err;
}

static trl_err take_value(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value)
{
    double **next = data;
    (void)number;
    *(*next)++ = is_fixed(m, unknown, at) ? 0 : *value;
    return TRL_OK;
}

trl_err trli_matrix_gather(trli_matrix *m, const int *field, double *values)
{
    trl_context *ctx = m->s->sim->ctx;
    double *next = m->gathered + m->begin[trl_context_rank(ctx)];
    trl_err err = fetch(m, field);
    if (err == TRL_OK) err = visit(m, field, take_value, &next);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(trli_allgatherv_further(ctx, m->gathered, m->count, m->begin, MPI_DOUBLE));
    for (int i = 0; i < m->points; ++i) values[m->number[i]] = m->gathered[i];
    for (int i = m->points; i < m->columns.n; ++i) values[i] = 0;
done:
    return err;
}

static trl_err put_value(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value)
{
    const double *const *values = data;
    *value = is_fixed(m, unknown, at) ? 0 : (*values)[number];
    return TRL_OK;
}

static void written(const trli_matrix *m, const int *field)
{
    for (int u = 0; u < m->s->ask.n; ++u) trli_frame_written(m->s->sim->frame, field[u]);
}

trl_err trli_matrix_scatter(trli_matrix *m, const double *values, const int *field)
{
    trl_err err = fetch(m, field);
    if (err == TRL_OK) err = visit(m, field, put_value, &values);
    if (err == TRL_OK) written(m, field);
    return trl_context_agree(m->s->sim->ctx, err);
}

/* ---- entries ---- */

/* Columns of a product: those of an unknown whose points have a colour along each axis. */
typedef struct colour {
    int unknown, of[3];
} colour;

static int colours_of(const trli_matrix *m, int unknown, int axis)
{
    const int n = m->n[unknown][axis], period = 2 * m->reach[axis] + 1;
    if (n <= 2 * period) return n;
    return m->periodic[axis] ? period + n % period : period;
}

/* Of few points each has its own. Where an axis is periodic, its last points have colours of their own, if the others
 * would not be far enough from the first ones. */
static int colour_of(const trli_matrix *m, int unknown, int axis, int i)
{
    const int n = m->n[unknown][axis], period = 2 * m->reach[axis] + 1;
    if (n <= 2 * period) return i;
    const int rest = m->periodic[axis] ? n % period : 0;
    return i < n - rest ? i % period : period + i - (n - rest);
}

static bool has_colour(const trli_matrix *m, const colour *c, int unknown, const int at[3])
{
    bool has = unknown == c->unknown;
    for (int a = 0; a < 3 && has; ++a) has = colour_of(m, unknown, a, at[a]) == c->of[a];
    return has;
}

static trl_err put_one(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value)
{
    (void)number;
    *value = has_colour(m, data, unknown, at) && !is_fixed(m, unknown, at);
    return TRL_OK;
}

/* The place along an axis of the only point of a colour that a row reaches; false: it reaches none. */
static bool find_place(const trli_matrix *m, const colour *c, int axis, int from, int *place)
{
    const int n = m->n[c->unknown][axis];
    if (n <= 2 * (2 * m->reach[axis] + 1)) {
        *place = c->of[axis];
        return true;
    }
    for (int step = -m->reach[axis]; step <= m->reach[axis]; ++step) {
        const int at = m->periodic[axis] ? (from + step + n) % n : from + step;
        *place = at;
        if (at >= 0 && at < n && colour_of(m, c->unknown, axis, at) == c->of[axis]) return true;
    }
    return false;
}

typedef struct taking {
    colour colour;
    const char *why; /* a product does not do */
} taking;

static const char too_far[] = "its equations read points further away than ghosts are filled, or sums over all points";

static trl_err take_entry(trli_matrix *m, void *data, int unknown, const int at[3], int number, double *value)
{
    taking *t = data;
    const int u = t->colour.unknown;
    int to[3];
    if (*value == 0 || is_fixed(m, unknown, at)) return TRL_OK;
    if (!isfinite(*value)) t->why = "an entry of its matrix is not finite";
    for (int a = 0; a < 3; ++a) {
        if (find_place(m, &t->colour, a, at[a], &to[a])) continue;
        t->why = too_far;
        return TRL_OK;
    }
    if (!trli_make_room(m->s->sim->ctx, &m->found, m->nfound, 1, &m->room, sizeof *m->found))
        return trli_no_memory(m->s->sim->ctx, NULL, "for a matrix");
    m->found[m->nfound++] = (entry){number, m->first[u] + (to[2] * m->n[u][1] + to[1]) * m->n[u][0] + to[0], *value};
    return TRL_OK;
}

static trl_err multiply(trli_matrix *m, taking *t)
{
    trli_solver *s = m->s;
    trl_err err = visit(m, s->d.now, put_one, &t->colour);
    written(m, s->d.now);
    TRL_TRY(trl_context_agree(s->sim->ctx, err));
    TRL_TRY(trli_solver_program(s, s->apply));
    err = fetch(m, s->q.now);
    if (err == TRL_OK) err = visit(m, s->q.now, take_entry, t);
    err = trl_context_agree(s->sim->ctx, err);
done:
    return err;
}

static trl_err find_entries(trli_matrix *m, taking *t)
{
    int n[3];
    trl_err err = TRL_OK;
    m->nfound = 0;
    TRL_TRY(trl_context_agree(m->s->sim->ctx, fetch(m, m->s->d.now)));
    for (int u = 0; u < m->s->ask.n; ++u) {
        for (int a = 0; a < 3; ++a) n[a] = colours_of(m, u, a);
        for (int c = 0; c < n[0] * n[1] * n[2]; ++c) {
            t->colour = (colour){u, {c % n[0], c / n[0] % n[1], c / n[0] / n[1]}};
            TRL_TRY(multiply(m, t));
        }
    }
done:
    return err;
}

/* ---- columns ---- */

/* All entries, of all ranks. *all: to be freed. */
static trl_err gather_entries(const trli_matrix *m, entry **all, int *n)
{
    trl_context *ctx = m->s->sim->ctx;
    const int ranks = trl_context_ranks(ctx), rank = trl_context_rank(ctx);
    int *count = trli_new(ctx, 2 * (size_t)ranks, sizeof *count), *begin = count ? count + ranks : NULL;
    double bytes = 0;
    trl_err err = TRL_OK;
    *all = NULL;
    if (count) count[rank] = m->nfound * (int)sizeof **all;
    TRL_TRY(trl_context_agree(ctx, count ? TRL_OK : trli_no_memory(ctx, NULL, "for a matrix")));
    TRL_TRY(trli_allreduce(ctx, count, ranks, MPI_INT, MPI_MAX));
    for (int r = 0; r < ranks; ++r) {
        begin[r] = (int)bytes;
        bytes += count[r];
    }
    *n = (int)(bytes / sizeof **all);
    *all = bytes < INT32_MAX ? trli_new(ctx, (size_t)*n + 1, sizeof **all) : NULL;
    TRL_TRY(trl_context_agree(ctx, *all ? TRL_OK : trli_no_memory(ctx, NULL, "for a matrix")));
    if (m->nfound > 0) memcpy((char *)*all + begin[rank], m->found, (size_t)m->nfound * sizeof **all);
    err = trli_allgatherv_further(ctx, *all, count, begin, MPI_BYTE);
done:
    trli_free(count);
    return err;
}

/* Whether a product with numbers of no pattern is what the entries make of them: rows may reach further than it looked.
 * memory: [3][n] */
static trl_err check(trli_matrix *m, const entry *all, int n, double *memory, bool *same)
{
    const double least = 1e-9, pattern = 0.6180339887498949;
    const int points = m->points;
    double *x = memory, *sum = x + points, *size = sum + points;
    trli_solver *s = m->s;
    trl_err err = TRL_OK;
    for (int i = 0; i < points; ++i) x[i] = fmod(pattern * (i + 1), 1) + 0.25;
    TRL_TRY(trli_matrix_scatter(m, x, s->d.now));
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(trli_matrix_gather(m, s->q.now, sum));
    for (int i = 0; i < points; ++i) size[i] = fabs(sum[i]);
    for (int e = 0; e < n; ++e) {
        const double part = all[e].value * x[all[e].column];
        sum[all[e].row] -= part;
        size[all[e].row] += fabs(part);
    }
    *same = true;
    for (int i = 0; i < points; ++i) *same &= fabs(sum[i]) <= least * size[i];
done:
    return err;
}

/* Points whose rows have no entries are no unknowns, as where a mask leaves them out: leave out what others have of
 * them, too. Returns how many entries are left. is: [points] */
static int leave_out(const trli_matrix *m, entry *all, int n, bool *is)
{
    for (int before = n + 1; n < before;) {
        before = n;
        memset(is, 0, (size_t)m->points * sizeof *is);
        for (int e = 0; e < n; ++e) is[all[e].row] = true;
        n = 0;
        for (int e = 0; e < before; ++e)
            if (is[all[e].column]) all[n++] = all[e];
    }
    return n;
}

/* Append the border of an unknown whose constants are in the null space. */
static int add_border(const trli_matrix *m, int unknown, int border, const bool *is, entry *all, int n)
{
    const int end = m->first[unknown + 1];
    int held = m->first[unknown];
    double size = 0;
    while (held < end && !is[held]) ++held;
    for (int e = 0; e < n; ++e)
        if (all[e].column == held) size = fmax(size, fabs(all[e].value));
    all[n++] = (entry){border, held < end ? held : border, held < end ? size : 1};
    for (int i = held; i < end; ++i)
        if (is[i]) all[n++] = (entry){i, border, size};
    return n;
}

/* Append ones of what is no unknown, and borders. */
static int complete(trli_matrix *m, const bool *is, entry *all, int n)
{
    for (int i = 0; i < m->points; ++i)
        if (!is[i]) all[n++] = (entry){i, i, 1};
    m->columns.n = m->points;
    for (int u = 0; u < m->s->ask.n; ++u)
        if (m->s->singular[u]) n = add_border(m, u, m->columns.n++, is, all, n);
    return n;
}

/* Order entries by rows, then by columns: numbers of a row or column, and where it begins. */
static void sort(const entry *from, int n, int keys, bool by_column, int *begin, entry *to)
{
    memset(begin, 0, ((size_t)keys + 1) * sizeof *begin);
    for (int e = 0; e < n; ++e) ++begin[(by_column ? from[e].column : from[e].row) + 1];
    for (int k = 0; k < keys; ++k) begin[k + 1] += begin[k];
    for (int e = 0; e < n; ++e) to[begin[by_column ? from[e].column : from[e].row]++] = from[e];
    for (int k = keys; k > 0; --k) begin[k] = begin[k - 1];
    begin[0] = 0;
}

static trl_err make_columns(trli_matrix *m, const char **why)
{
    trl_context *ctx = m->s->sim->ctx;
    const size_t points = (size_t)m->points;
    trli_columns *c = &m->columns;
    entry *all = NULL, *sorted = NULL;
    double *vectors = NULL;
    bool same, *is = NULL;
    int n;
    trl_err err = TRL_OK;
    TRL_TRY(gather_entries(m, &all, &n));
    const size_t most = (size_t)n + 2 * points + (size_t)m->s->ask.n;
    vectors = trli_new(ctx, 3 * points, sizeof *vectors);
    is = trli_new(ctx, points, sizeof *is);
    sorted = trli_new(ctx, 2 * most, sizeof *sorted);
    trli_free(c->row);
    trli_free(c->value);
    c->row = trli_new(ctx, most, sizeof *c->row);
    c->value = trli_new(ctx, most, sizeof *c->value);
    if (!vectors || !is || !sorted || !c->row || !c->value) err = trli_no_memory(ctx, NULL, "for a matrix");
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(check(m, all, n, vectors, &same));
    if (!same) *why = too_far;
    entry *const by_rows = sorted + most;
    memcpy(sorted, all, (size_t)n * sizeof *all);
    n = complete(m, is, sorted, leave_out(m, sorted, n, is));
    sort(sorted, n, c->n, false, c->begin, by_rows);
    sort(by_rows, n, c->n, true, c->begin, sorted);
    for (int e = 0; e < n; ++e) {
        c->row[e] = sorted[e].row;
        c->value[e] = sorted[e].value;
    }
done:
    trli_free(all);
    trli_free(sorted);
    trli_free(vectors);
    trli_free(is);
    return err;
}

trl_err trli_matrix_find(trli_matrix *m, trli_columns *columns, const char **why)
{
    static const char *const reasons[] = {NULL, too_far, "an entry of its matrix is not finite"};
    trl_err err = TRL_OK;
    for (int k = 0; k < 2; ++k) { /* what conditions set from points inside may be further away */
        taking t = {.why = NULL};
        int64_t reason = 0;
        TRL_TRY(find_entries(m, &t));
        if (t.why) reason = t.why == too_far ? 1 : 2;
        TRL_TRY(trli_max_further(m->s->sim->ctx, &reason, 1));
        *why = reasons[reason];
        if (!*why) TRL_TRY(make_columns(m, why));
        if (*why != too_far) break;
        for (int a = 0; a < m->s->sim->layout->grid.dim; ++a) ++m->reach[a];
    }
    *columns = m->columns;
done:
    return err;
}
