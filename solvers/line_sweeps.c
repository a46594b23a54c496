/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Elimination along lines (Thomas). The entries of a line are found by products with vectors that are one at every
 * third of its points and zero on neighbouring lines. What goes from a patch to the next one along the axis is a value
 * or two of each line, so that a line has the same bits however it is cut. A period has a corner on both ends of its
 * line: it is solved without them, and one further solution makes up for it (Sherman & Morrison 1950). */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "line_sweeps_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"

enum { TAG = 2 /* those of exchanges of ghosts begin higher */, CARRIED = 3 };

/* Of a period, A = T + u v^T with u = (gamma, 0, ..., 0, up) and v = (1, 0, ..., 0, ratio): x = y - share q, where
 * T y = b and T q = u, and share = v.y/(1 + v.q). */
enum { GAMMA, RATIO, UP, DIVISOR, SHARE, LANES };

/* What a patch has of all lines. Points are numbered with x fastest, lines likewise: by places along the other axes. */
typedef struct part {
    int n[3], first[3];
    int64_t lines;
    int index, before, after; /* of the patch along the axis; ranks of its neighbours there, or -1 */
    int local_before;         /* the neighbour among the patches of this rank, or -1 */
    int local_after;
    double *memory;
    double *lower, *inverse, *beyond; /* [points] of a line's rows: entry of the point before; inverse of the diagonal
                                       * once that is eliminated; and what is then left of the point after */
    double *work;                     /* [points] */
    double *round;                    /* [points] of a period: the further solution */
    double *carry;                    /* [CARRIED][lines] what goes on to the next part */
    double *lane[LANES];              /* [lines] of a period */
} part;

struct trli_line_sweeps {
    const trli_grid_level *level;
    int axis, other[2]; /* the axis of lines, and the others in their order */
    int n[3];           /* points of the grid */
    bool periodic, odd[3];
    int colours;
    part *part; /* [local patches]; NULL: no entries were found yet */
    int parts;
    MPI_Request *request; /* [parts] */
};

/* One pass over the lines. */
typedef struct pass {
    const trli_line_sweeps *sweeps;
    part *part;
    int colour; /* of lines; -1: all */
    int marked; /* while entries are found: colours of lines, and of points on them, where z is 1 */
    int along;
    bool back;
    const double *from; /* what a field has in the part, at its first point, and */
    double *to;
    ptrdiff_t from_stride[3], to_stride[3];
} pass;

/* What is done at a point: t along the line, at: the place in the part. */
typedef void (*visit)(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to);

static trl_err no_memory(const trli_line_sweeps *s)
{
    return trli_no_memory(s->level->sim->ctx, NULL, "for lines");
}

/* ---- making ---- */

trl_err trli_line_sweeps_create(const trli_grid_level *level, int axis, trli_line_sweeps **sweeps)
{
    const trl_grid *grid = &level->sim->layout->grid;
    const trl_location location = level->sim->model->variable[level->solver->ask.variable[0]].location;
    trli_line_sweeps *s = *sweeps = trli_new(level->sim->ctx, 1, sizeof *s);
    if (!s) return trli_no_memory(level->sim->ctx, NULL, "for lines");
    *s = (trli_line_sweeps){.level = level, .axis = axis, .periodic = grid->periodic[axis], .colours = 1};
    for (int a = 0, k = 0; a < 3; ++a) {
        s->n[a] = a < grid->dim ? (int)trl_grid_points(grid, location, a) : 1;
        if (a == axis) continue;
        s->other[k++] = a;
        s->odd[a] = a < grid->dim && trli_colour_is_odd(grid, location, a);
        if (s->n[a] > 1 && s->colours == 1) s->colours = 2;
        if (s->odd[a]) s->colours = 3;
    }
    return TRL_OK;
}

void trli_line_sweeps_destroy(trli_line_sweeps **sweeps)
{
    trli_line_sweeps *s = *sweeps;
    *sweeps = NULL;
    if (!s) return;
    for (int p = 0; s->part && p < s->parts; ++p) trli_free(s->part[p].memory);
    trli_free(s->part);
    trli_free(s->request);
    trli_free(s);
}

int trli_line_sweeps_colours(const trli_line_sweeps *s)
{
    return s->colours;
}

/* The neighbour of a patch along the axis: its rank and place among those of this rank, or -1. */
static void find_neighbour(const trli_line_sweeps *s, const trl_patch *patch, int step, int *rank, int *local)
{
    const trl_layout *layout = s->level->sim->layout;
    const int at = patch->index[s->axis] + step;
    int id = patch->id, stride = 1;
    *rank = *local = -1;
    if (at < 0 || at >= layout->counts[s->axis]) return;
    for (int a = 0; a < s->axis; ++a) stride *= layout->counts[a];
    id += step * stride;
    *rank = trl_layout_patch(layout, id).rank;
    for (int p = 0; p < layout->nlocal; ++p)
        if (layout->patch[p].id == id) *local = p;
}

static trl_err make_part(const trli_line_sweeps *s, int number, part *p)
{
    const trl_simulation *sim = s->level->sim;
    const trl_patch *patch = &sim->layout->patch[number];
    const trl_box owned = trli_frame_array(sim->frame, s->level->z.now[0], number, 0).owned;
    size_t points = 1;
    for (int a = 0; a < 3; ++a) {
        p->n[a] = owned.hi[a] - owned.lo[a];
        p->first[a] = (int)patch->first[a];
        points *= (size_t)p->n[a];
    }
    p->lines = (int64_t)p->n[s->other[0]] * p->n[s->other[1]];
    p->index = patch->index[s->axis];
    find_neighbour(s, patch, -1, &p->before, &p->local_before);
    find_neighbour(s, patch, 1, &p->after, &p->local_after);
    const size_t lines = (size_t)p->lines;
    p->memory = trli_new(sim->ctx, (4 + s->periodic) * points + (CARRIED + LANES) * lines + 1, sizeof *p->memory);
    if (!p->memory) return no_memory(s);
    double *next = p->memory, **const of_points[] = {&p->lower, &p->inverse, &p->beyond, &p->work, &p->round};
    for (int i = 0; i < 4 + s->periodic; ++i, next += points) *of_points[i] = next;
    p->carry = next;
    for (int i = 0; i < LANES; ++i) p->lane[i] = p->carry + (size_t)(CARRIED + i) * lines;
    return TRL_OK;
}

static trl_err make_parts(trli_line_sweeps *s)
{
    const trl_simulation *sim = s->level->sim;
    trl_err err = TRL_OK;
    if (s->part) return TRL_OK;
    s->parts = sim->layout->nlocal;
    s->part = trli_new(sim->ctx, (size_t)s->parts + 1, sizeof *s->part);
    s->request = trli_new(sim->ctx, (size_t)s->parts + 1, sizeof(MPI_Request));
    if (!s->part || !s->request) return no_memory(s);
    for (int p = 0; p < s->parts; ++p) TRL_TRY(make_part(s, p, &s->part[p]));
done:
    return err;
}

/* ---- passes ---- */

static int colour_along(const trli_line_sweeps *s, int axis, int i)
{
    return s->odd[axis] && i == s->n[axis] - 1 ? 2 : i % 2;
}

static bool has_colour(const pass *w, int colour, int b, int c)
{
    const trli_line_sweeps *s = w->sweeps;
    const part *p = w->part;
    if (colour < 0 || s->colours == 1) return true;
    const int sum = colour_along(s, s->other[0], p->first[s->other[0]] + b) +
                    colour_along(s, s->other[1], p->first[s->other[1]] + c);
    return sum % s->colours == colour;
}

static int64_t stride_of(const part *p, int axis)
{
    return axis == 0 ? 1 : axis == 1 ? p->n[0] : (int64_t)p->n[0] * p->n[1];
}

/* Lines from b to before end of those with c: along x one after the other, else point after point of all. */
static inline void traverse(const pass *w, int begin, int end, int c, visit fn)
{
    const trli_line_sweeps *s = w->sweeps;
    const part *p = w->part;
    const int x = s->axis, y = s->other[0], z = s->other[1], n = p->n[x];
    const int64_t along = stride_of(p, x), across = stride_of(p, y), first = c * stride_of(p, z);
    const int outer = x == 0 ? end - begin : n, inner = x == 0 ? n : end - begin;
    for (int o = 0; o < outer; ++o)
        for (int i = 0; i < inner; ++i) {
            const int step = x == 0 ? i : o, b = begin + (x == 0 ? o : i), t = w->back ? n - 1 - step : step;
            if (!has_colour(w, w->colour, b, c)) continue;
            const double *from =
                w->from ? w->from + t * w->from_stride[x] + b * w->from_stride[y] + c * w->from_stride[z] : NULL;
            double *to = w->to ? w->to + t * w->to_stride[x] + b * w->to_stride[y] + c * w->to_stride[z] : NULL;
            fn(w, b + (int64_t)p->n[y] * c, p->first[x] + t, first + b * across + t * along, from, to);
        }
}

typedef struct job {
    const pass *pass;
    visit fn;
} job;

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const job *j = data;
    const part *p = j->pass->part;
    const int64_t n = p->n[j->pass->sweeps->other[0]], end = p->lines * (chunk + 1) / chunks;
    (void)worker;
    for (int64_t line = p->lines * chunk / chunks; line < end;) {
        const int64_t c = line / n, last = end < (c + 1) * n ? end : (c + 1) * n;
        traverse(j->pass, (int)(line - c * n), (int)(last - c * n), (int)c, j->fn);
        line = last;
    }
    return TRL_OK;
}

static trl_err await(trl_context *ctx, int n, MPI_Request *request)
{
    int all = n == 0;
    trl_err err = TRL_OK;
    for (int looks = 0; !all; looks += looks < INT_MAX) {
        if (trl_context_lost(ctx)) return TRL_ERR_MPI; /* the others may send no more */
        TRL_TRY(trli_mpi_check(ctx, MPI_Testall(n, request, &all, MPI_STATUSES_IGNORE), "MPI_Testall"));
        if (all) break;
        trli_notice_look(ctx, false);
        trli_agree_rest(ctx, looks);
    }
done:
    return err;
}

/* What the part before, in the direction of the pass, has left. */
static trl_err take_carry(const trli_line_sweeps *s, part *p, bool back, int values)
{
    const int local = back ? p->local_after : p->local_before, rank = back ? p->after : p->before;
    const size_t n = (size_t)(values * p->lines);
    trl_context *ctx = s->level->sim->ctx;
    MPI_Request request;
    trl_err err = TRL_OK;
    if (rank < 0) memset(p->carry, 0, n * sizeof *p->carry);
    if (local >= 0) memcpy(p->carry, s->part[local].carry, n * sizeof *p->carry);
    if (rank < 0 || local >= 0) return TRL_OK;
    TRL_TRY(trli_mpi_check(ctx, MPI_Irecv(p->carry, (int)n, MPI_DOUBLE, rank, TAG, ctx->comm, &request), "MPI_Irecv"));
    err = await(ctx, 1, &request);
done:
    return err;
}

/* A part's values of a field. */
static void view(const trli_line_sweeps *s, int field, int p, double **at, ptrdiff_t stride[3])
{
    const trl_array a = trli_frame_array(s->level->sim->frame, field, p, 0);
    *at = (double *)a.at + trl_array_offset(&a, a.owned.lo[0], a.owned.lo[1], a.owned.lo[2]);
    memcpy(stride, a.stride, sizeof a.stride);
}

/* Parts in the order of the axis; lines of them side by side. values: that go on from one to the next; 0: none do.
 * from, to: fields, or -1. */
static trl_err run_pass(trli_line_sweeps *s, pass w, visit fn, int values, int from, int to, trl_loop *loop)
{
    trl_context *ctx = s->level->sim->ctx;
    const int counts = s->level->sim->layout->counts[s->axis], most = 4 * trl_loop_workers(loop);
    int sent = 0;
    trl_err err = TRL_OK;
    w.sweeps = s;
    for (int step = 0; step < counts; ++step)
        for (int k = 0; k < s->parts; ++k) {
            part *p = w.part = &s->part[k];
            const int rank = w.back ? p->before : p->after, local = w.back ? p->local_before : p->local_after;
            double *values_from = NULL;
            if (p->index != (w.back ? counts - 1 - step : step)) continue;
            if (values > 0) TRL_TRY(take_carry(s, p, w.back, values));
            if (from >= 0) view(s, from, k, &values_from, w.from_stride);
            if (to >= 0) view(s, to, k, &w.to, w.to_stride);
            w.from = values_from;
            TRL_TRY(trl_loop_run(loop, (int)(p->lines < most ? p->lines : most), run_chunk, &(job){&w, fn}));
            if (values == 0 || rank < 0 || local >= 0) continue;
            TRL_TRY(
                trli_send_begin(ctx, p->carry, (int)(values * p->lines), MPI_DOUBLE, rank, TAG, &s->request[sent++]));
        }
    err = await(ctx, sent, s->request);
done:
    return err;
}

/* ---- entries ---- */

/* Of points on a line no two of three in a row have one colour; the last ones of a period have their own. */
static int colour_on_line(const trli_line_sweeps *s, int t)
{
    const int n = s->n[s->axis], rest = n % 3;
    return s->periodic && t >= n - rest ? 3 + t - (n - rest) : t % 3;
}

static int colours_on_line(const trli_line_sweeps *s)
{
    return 3 + (s->periodic ? s->n[s->axis] % 3 : 0);
}

/* Points that conditions set are no unknowns. */
static bool is_fixed(const trli_line_sweeps *s, int axis, int i)
{
    const int8_t *fixed = s->level->sim->model->field[s->level->z.now[0]].fixed_planes;
    return i < fixed[2 * axis] || i >= s->n[axis] - fixed[2 * axis + 1];
}

/* z = 1 at points of a colour on lines of a colour. */
static void set_point(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const trli_line_sweeps *s = w->sweeps;
    const part *p = w->part;
    const int b = (int)(line % p->n[s->other[0]]), c = (int)(line / p->n[s->other[0]]);
    (void)at, (void)from;
    const bool fixed = is_fixed(s, s->axis, t) || is_fixed(s, s->other[0], p->first[s->other[0]] + b) ||
                       is_fixed(s, s->other[1], p->first[s->other[1]] + c);
    *to = !fixed && has_colour(w, w->marked, b, c) && colour_on_line(s, t) == w->along;
}

/* Of the point's row what it has of those. */
static void take_point(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const trli_line_sweeps *s = w->sweeps;
    const int n = s->n[s->axis];
    double *const entry[3] = {w->part->lower, w->part->inverse, w->part->beyond};
    (void)line, (void)to;
    for (int step = -1; step <= 1; ++step) {
        int other = t + step;
        if (s->periodic) other = (other + n) % n;
        if (w->along == 0) entry[step + 1][at] = 0;
        if (other >= 0 && other < n && colour_on_line(s, other) == w->along) entry[step + 1][at] = *from;
    }
}

/* ---- elimination ---- */

static bool is_first(const pass *w, int t)
{
    return w->sweeps->periodic && t == 0;
}

static bool is_last(const pass *w, int t)
{
    return w->sweeps->periodic && t == w->sweeps->n[w->sweeps->axis] - 1;
}

/* What goes on: what is left of the point after, and of a period the first point's entries. */
static void eliminate(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const double least = 1e-13; /* of the diagonal: what rounding leaves of a singular line */
    part *p = w->part;
    double *carry[CARRIED], own = p->inverse[at], divisor;
    (void)from, (void)to;
    for (int i = 0; i < CARRIED; ++i) carry[i] = p->carry + i * p->lines + line;
    divisor = own;
    if (is_first(w, t)) {
        *carry[0] = 0;
        *carry[1] = own != 0 ? p->lower[at] : 0;
        *carry[2] = own;
        p->lane[GAMMA][line] = own != 0 ? -own : -1;
        p->lane[RATIO][line] = *carry[1] / p->lane[GAMMA][line];
        p->lower[at] = 0;
        divisor -= p->lane[GAMMA][line];
    }
    if (is_last(w, t)) {
        p->lane[UP][line] = *carry[2] != 0 ? p->beyond[at] : 0;
        if (*carry[2] != 0) divisor += *carry[1] * p->beyond[at] / *carry[2];
        p->beyond[at] = 0;
    }
    divisor -= p->lower[at] * *carry[0];
    p->inverse[at] = own == 0 || fabs(divisor) <= least * fabs(own) ? 0 : 1 / divisor;
    p->beyond[at] *= p->inverse[at];
    *carry[0] = p->beyond[at];
}

static void forward(const pass *w, int64_t line, int64_t at, double right)
{
    const part *p = w->part;
    p->work[at] = p->carry[line] = (right - p->lower[at] * p->carry[line]) * p->inverse[at];
}

/* Of a period the last value goes on to the first part. */
static double backward(const pass *w, int64_t line, int t, int64_t at)
{
    const part *p = w->part;
    const double x = p->work[at] - p->beyond[at] * p->carry[line];
    p->carry[line] = x;
    if (is_last(w, t)) p->carry[p->lines + line] = x;
    return x;
}

static void further_forward(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    (void)from, (void)to;
    forward(w, line, at, is_first(w, t) ? w->part->lane[GAMMA][line] : is_last(w, t) ? w->part->lane[UP][line] : 0);
}

static void further_back(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const part *p = w->part;
    (void)from, (void)to;
    const double q = p->round[at] = backward(w, line, t, at);
    if (!is_first(w, t)) return;
    const double divisor = 1 + q + p->lane[RATIO][line] * p->carry[p->lines + line];
    p->lane[DIVISOR][line] = p->inverse[at] == 0 || divisor == 0 ? 1 : divisor;
}

static void solve_forward(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    (void)t, (void)to;
    forward(w, line, at, *from);
}

static void solve_back(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    (void)from;
    *to += backward(w, line, t, at);
}

static void solve_period_back(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const part *p = w->part;
    (void)from, (void)to;
    const double y = p->work[at] = backward(w, line, t, at);
    if (is_first(w, t))
        p->lane[SHARE][line] = (y + p->lane[RATIO][line] * p->carry[p->lines + line]) / p->lane[DIVISOR][line];
}

static void close_period(const pass *w, int64_t line, int t, int64_t at, const double *from, double *to)
{
    const part *p = w->part;
    (void)from;
    if (is_first(w, t)) p->carry[line] = p->lane[SHARE][line];
    *to += p->work[at] - p->carry[line] * p->round[at];
}

/* ---- running ---- */

static void note(trl_err *first, trl_err err)
{
    if (*first == TRL_OK) *first = err;
}

trl_err trli_line_sweeps_find(trli_line_sweeps *s, trl_err (*multiply)(void *data), void *data, trl_loop *loop)
{
    const trli_grid_level *l = s->level;
    const int z = l->z.now[0], r = l->r.now[0];
    trl_err err = TRL_OK;
    TRL_TRY(trl_context_agree(l->sim->ctx, make_parts(s)));
    for (int line = 0; line < s->colours; ++line)
        for (int along = 0; along < colours_on_line(s); ++along) {
            const pass set = {.colour = -1, .marked = line, .along = along}, take = {.colour = line, .along = along};
            note(&err, run_pass(s, set, set_point, 0, -1, z, loop));
            trli_frame_written(l->sim->frame, z);
            note(&err, multiply(data));
            note(&err, trli_frame_fetch(l->sim->frame, r));
            note(&err, run_pass(s, take, take_point, 0, r, -1, loop));
        }
    note(&err, run_pass(s, (pass){.colour = -1}, eliminate, CARRIED, -1, -1, loop));
    if (!s->periodic) goto done;
    note(&err, run_pass(s, (pass){.colour = -1}, further_forward, 1, -1, -1, loop));
    note(&err, run_pass(s, (pass){.colour = -1, .back = true}, further_back, 2, -1, -1, loop));
done:
    return err;
}

trl_err trli_line_sweeps_run(trli_line_sweeps *s, int right, int z, int colour, trl_loop *loop)
{
    trli_frame *frame = s->level->sim->frame;
    const pass ahead = {.colour = colour}, back = {.colour = colour, .back = true};
    trl_err err = trli_frame_fetch(frame, right);
    note(&err, trli_frame_fetch(frame, z));
    note(&err, run_pass(s, ahead, solve_forward, 1, right, -1, loop));
    if (s->periodic) {
        note(&err, run_pass(s, back, solve_period_back, 2, -1, -1, loop));
        note(&err, run_pass(s, ahead, close_period, 1, -1, z, loop));
    } else {
        note(&err, run_pass(s, back, solve_back, 1, -1, z, loop));
    }
    trli_frame_written(frame, z);
    return err;
}

double trli_line_sweeps_bytes(const trli_line_sweeps *s)
{
    const int values = s->periodic ? 12 : 8; /* of a point: right-hand side, entries, z, and what is between */
    double points = 0;
    for (int p = 0; s->part && p < s->parts; ++p) points += (double)s->part[p].lines * s->part[p].n[s->axis];
    return points * values * (double)sizeof(double);
}
