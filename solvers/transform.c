/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms by Fourier transforms: sines and cosines by one of the same length (Makhoul 1980; where they
 * are even about one side and odd about the other, of half as many complex numbers, or for odd lengths by that of the
 * same length: Chan & Ho 1992); about points by one of an extended line. */
#include <math.h>

#include "memory_impl.h"
#include "transform_passes_impl.h"

/* ---- tables ---- */

/* Laid out twice: to see how much there is, then with memory. */
typedef struct tables {
    double *at; /* NULL at first */
    size_t used;
} tables;

static size_t reserve(tables *t, size_t values)
{
    const size_t begin = t->used;
    t->used += values;
    return begin;
}

/* Cosine and sine of 2 pi a/b, for a >= 0: angles up to an eighth of the circle are computed, with digits to spare. */
static void set_angle(const tables *t, size_t at, int64_t a, int64_t b, double factor)
{
    if (!t->at) return;
    a %= b;
    const bool below = 2 * a > b;
    if (below) a = b - a;
    const bool behind = 4 * a > b;
    if (behind) {
        a = b - 2 * a;
        b = 2 * b;
    }
    const bool steep = 8 * a > b;
    if (steep) {
        a = b - 4 * a;
        b = 4 * b;
    }
    const long double angle = 6.283185307179586476925286766559005768L * (long double)a / (long double)b;
    const double c = factor * (double)cosl(angle), s = factor * (double)sinl(angle);
    t->at[at] = (behind ? -1 : 1) * (steep ? s : c);
    t->at[at + 1] = (below ? -1 : 1) * (steep ? c : s);
}

/* ---- Fourier transforms ---- */

/* Radices of n, in the order of passes. Returns what is left: 1, or a product of primes above all radices. */
static int factor(int n, int *count, int radix[TRLI_TRANSFORM_PASSES])
{
    int twos = 0;
    *count = 0;
    for (; n % 2 == 0; n /= 2) ++twos;
    if (twos == 1) radix[(*count)++] = 2;
    for (; twos > 1; twos -= twos == 2 || twos == 4 ? 2 : 3) radix[(*count)++] = twos == 2 || twos == 4 ? 4 : 8;
    for (int r = 3; r <= TRLI_ODD_RADIX; r += 2)
        for (; n % r == 0; n /= r) radix[(*count)++] = r;
    return n;
}

/* The length of a convolution. */
static int next_smooth(int n)
{
    for (;; ++n) {
        int rest = n;
        for (int r = 2; r <= 5; ++r)
            while (rest % r == 0) rest /= r;
        if (rest == 1) return n;
    }
}

static void lay_passes(tables *t, trli_fourier *f, int n)
{
    int radix[TRLI_TRANSFORM_PASSES], length = 1;
    (void)factor(n, &f->npasses, radix);
    for (int i = 0; i < f->npasses; ++i) {
        const int r = radix[i];
        trli_fourier_pass *p = &f->pass[i];
        *p = (trli_fourier_pass){.radix = r, .length = length, .batch = n / length / r};
        p->twiddle = reserve(t, 2 * (size_t)length * (size_t)(r - 1));
        for (int k = 0; k < length; ++k)
            for (int q = 1; q < r; ++q)
                set_angle(t, p->twiddle + 2 * ((size_t)k * (size_t)(r - 1) + (size_t)q - 1), (int64_t)k * q,
                          (int64_t)r * length, 1);
        p->root = reserve(t, r % 2 ? 2 * (size_t)r : 0);
        for (int j = 0; j < r && r % 2; ++j) set_angle(t, p->root + 2 * (size_t)j, j, r, 1);
        length *= r;
    }
}

static void lay_fourier(tables *t, trli_fourier *f, int n, bool real)
{
    int radix[TRLI_TRANSFORM_PASSES], count;
    *f = (trli_fourier){.n = n, .real = real};
    if (factor(n, &count, radix) > 1) f->convolved = next_smooth(2 * n - 1);
    lay_passes(t, f, f->convolved ? f->convolved : n);
    if (!f->convolved) return;
    f->chirp = reserve(t, 2 * (size_t)n);
    f->filter = reserve(t, 2 * (size_t)f->convolved);
    for (int64_t j = 0; j < n; ++j) set_angle(t, f->chirp + 2 * (size_t)j, j * j, 2 * (int64_t)n, 1);
}

static void run_pass(const trli_transform *t, int i, trli_pass_role role, const double *from, double *to,
                     ptrdiff_t step)
{
    const trli_fourier *f = &t->fourier;
    const trli_fourier_pass *p = &f->pass[i];
    trli_pass_fn *const(*of)[TRLI_PASS_RADICES] = f->real && !f->convolved ? t->passes->real : t->passes->complex;
    trli_pass_fn *fixed = p->radix < TRLI_PASS_RADICES ? of[role][p->radix] : NULL;
    (fixed ? fixed : of[role][0])(t, p, from, to, step);
}

static void exchange(double **a, double **b)
{
    double *kept = *a;
    *a = *b;
    *b = kept;
}

/* The spectrum of the chirp, which goes around, over the length of the convolution; as conjugates, which values are
 * turned by. */
static trl_err make_filter(trl_context *ctx, trli_transform *t)
{
    enum { POINT = 2 * TRLI_LANES };
    const trli_fourier *f = &t->fourier;
    const size_t values = (size_t)f->convolved * POINT;
    void *memory = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trl_memory_alloc(ctx, 2 * values * sizeof(double), "transforms", &memory));
    double *at = memory, *spare = at + values;
    for (size_t i = 0; i < values; ++i) at[i] = 0;
    for (int j = 0; j < f->n; ++j)
        for (int l = 0; l < POINT; ++l)
            at[(ptrdiff_t)j * POINT + l] = at[(ptrdiff_t)((f->convolved - j) % f->convolved) * POINT + l] =
                t->table[f->chirp + 2 * (size_t)j + (l < TRLI_LANES ? 0 : 1)];
    for (int i = 0; i < f->npasses; ++i) {
        run_pass(t, i, i == 0 ? TRLI_PASS_FIRST : TRLI_PASS_WITHIN, at, spare, 0);
        exchange(&at, &spare);
    }
    for (int k = 0; k < f->convolved; ++k) {
        t->table[f->filter + 2 * (size_t)k] = at[(ptrdiff_t)k * POINT] / f->convolved;
        t->table[f->filter + 2 * (size_t)k + 1] = -at[(ptrdiff_t)k * POINT + TRLI_LANES] / f->convolved;
    }
done:
    trl_memory_free(ctx, &memory);
    return err;
}

/* ---- kinds ---- */

static void set_value(trli_transform *t, tables *made, int i, int index, double sign)
{
    if (!made->at) return;
    t->index[i] = index;
    made->at[t->sign + (size_t)i] = sign;
}

/* First the even points, then the odd ones from the last on, which about an odd side are negative. */
static void lay_cosines(trli_transform *t, tables *made, bool odd)
{
    t->sign = reserve(made, (size_t)t->n);
    for (int j = 0; j < t->n; ++j) set_value(t, made, j % 2 ? t->n - 1 - j / 2 : j / 2, j, odd && j % 2 ? -1 : 1);
    t->turned = true;
    t->turn = reserve(made, 2 * ((size_t)t->n / 2 + 1));
    for (int k = 0; 2 * k <= t->n; ++k) set_angle(made, t->turn + 2 * (size_t)k, k, 4 * (int64_t)t->n, 1);
}

/* About points at both ends: a period. */
static void lay_period(trli_transform *t, tables *made, bool odd)
{
    const int m = t->values / 2;
    t->sign = reserve(made, (size_t)t->values);
    for (int i = 0; i < t->values; ++i) {
        const int inside = i <= m ? i : t->values - i;
        if (odd)
            set_value(t, made, i, i % m ? inside - 1 : 0, i % m ? (i < m ? 1 : -1) : 0);
        else
            set_value(t, made, i, inside, 1);
    }
}

/* cos(2 pi a b/8n), of points a = 2j + 1 and waves b = 2k + 1, changes its sign with a + 4n, and stays with -a: of each
 * class modulo n one a is 1 modulo 8. */
static int find_class(int n, int64_t modulo_n, double *sign)
{
    int64_t a = modulo_n % n;
    while (a % 8 != 1) a += n;
    if (a > 4 * (int64_t)n) a = 8 * (int64_t)n - a;
    *sign = a > 2 * (int64_t)n ? -1 : 1;
    return (int)((a > 2 * (int64_t)n ? 4 * (int64_t)n - a : a) / 2);
}

/* So cos(2 pi a b/8n) is cos(2 pi r s/n + n pi/4) for the classes r of a and 8 s of b. */
static void lay_classes(trli_transform *t, tables *made, bool odd)
{
    const int n = t->n;
    double sign;
    t->sign = reserve(made, (size_t)n);
    t->turn = reserve(made, 2 * (size_t)n);
    for (int r = 0; r < n; ++r) {
        const int j = find_class(n, r, &sign);
        set_value(t, made, r, odd ? n - 1 - j : j, sign);
    }
    for (int s = 0; s < n && made->at; ++s) {
        const int k = find_class(n, 8 * (int64_t)s, &sign);
        double *w = made->at + t->turn + 2 * (size_t)s;
        if (odd && k % 2) sign = -sign;
        t->index[n + s] = k;
        set_angle(made, t->turn + 2 * (size_t)s, n % 8, 8, 2 * sign);
        if (2 * s > n) w[1] = -w[1];
    }
}

static void lay_between(trli_transform *t, tables *made, bool odd)
{
    const int m = t->n / 2;
    for (int back = 0; back < 2; ++back)
        t->way[back] = (trli_transform_way){.first = TRLI_FIRST_TAKE, .last = TRLI_LAST_MIX};
    if (t->n % 2) {
        lay_classes(t, made, odd);
        return;
    }
    for (int back = 0; back < 2; ++back)
        t->way[back] =
            (trli_transform_way){.first = TRLI_FIRST_TURN_IN, .last = TRLI_LAST_TURN_OUT, .reversed_from = odd};
    t->turn = reserve(made, 2 * (size_t)m);
    t->out = reserve(made, 2 * (size_t)m);
    for (int k = 0; k < m; ++k) {
        set_angle(made, t->turn + 2 * (size_t)k, 4 * (int64_t)k + 1, 8 * (int64_t)t->n, 1);
        set_angle(made, t->out + 2 * (size_t)k, k, 2 * (int64_t)t->n, 2);
    }
}

/* There to a spectrum, and back; with points at the ends it is the other way around. */
static void set_ways(trli_transform *t, bool reversed, bool exchanged)
{
    const bool even = t->n % 2 == 0;
    t->way[exchanged] = (trli_transform_way){
        .first = TRLI_FIRST_TAKE, .last = even ? TRLI_LAST_SPLIT_EVEN : TRLI_LAST_SPLIT_ODD, .reversed_to = reversed};
    t->way[!exchanged] = (trli_transform_way){
        .first = even ? TRLI_FIRST_JOIN_EVEN : TRLI_FIRST_JOIN_ODD, .last = TRLI_LAST_GIVE, .reversed_from = reversed};
}

static void lay_kind(trli_transform *t, tables *made)
{
    const bool odd = t->kind == TRLI_TRANSFORM_ODD || t->kind == TRLI_TRANSFORM_ODD_EVEN ||
                     t->kind == TRLI_TRANSFORM_POINT_ODD || t->kind == TRLI_TRANSFORM_POINT_ODD_EVEN;
    t->values = t->n;
    t->norm = 2.0 * t->n;
    t->half = 1;
    set_ways(t, odd, t->kind == TRLI_TRANSFORM_POINT_EVEN_ODD || t->kind == TRLI_TRANSFORM_POINT_ODD_EVEN);
    switch (t->kind) {
    case TRLI_TRANSFORM_PERIODIC:
        t->norm = t->n;
        t->half = 0.5;
        break;
    case TRLI_TRANSFORM_EVEN:
    case TRLI_TRANSFORM_ODD:
    case TRLI_TRANSFORM_POINT_EVEN_ODD:
    case TRLI_TRANSFORM_POINT_ODD_EVEN:
        lay_cosines(t, made, odd);
        break;
    case TRLI_TRANSFORM_EVEN_ODD:
    case TRLI_TRANSFORM_ODD_EVEN:
        lay_between(t, made, odd);
        break;
    case TRLI_TRANSFORM_POINT_EVEN:
    case TRLI_TRANSFORM_POINT_ODD:
        t->values = 2 * (odd ? t->n + 1 : t->n - 1);
        t->norm = t->values;
        t->half = 0.5;
        for (int back = 0; back < 2; ++back)
            t->way[back] = (trli_transform_way){.first = TRLI_FIRST_TAKE, .last = TRLI_LAST_SPLIT_ENDS};
        lay_period(t, made, odd);
        break;
    case TRLI_TRANSFORMS:
        break;
    }
}

static void add_call(trli_transform_way *way, trli_call_kind kind, int which, trli_pass_role role)
{
    way->call[way->ncalls++] = (trli_transform_call){kind, which, role};
}

static void add_passes(trli_transform_way *way, int begin, int end)
{
    for (int i = begin; i < end; ++i) add_call(way, TRLI_CALL_PASS, i, i == 0 ? TRLI_PASS_FIRST : TRLI_PASS_WITHIN);
}

/* The first pass reads the line, and the last one writes it, where nothing else happens to its values. */
static void list_calls(const trli_transform *t, trli_transform_way *way)
{
    const trli_fourier *f = &t->fourier;
    const bool passes = !f->convolved && f->npasses > 0, by = t->kind != TRLI_TRANSFORM_PERIODIC;
    const bool enters = passes && way->first == TRLI_FIRST_TAKE;
    const bool leaves = passes && f->npasses > 1 && way->last == TRLI_LAST_GIVE && !f->real;
    if (enters)
        add_call(way, TRLI_CALL_PASS, 0, by ? TRLI_PASS_ENTER_BY : TRLI_PASS_ENTER);
    else
        add_call(way, TRLI_CALL_FIRST, (int)way->first, TRLI_PASS_WITHIN);
    if (f->convolved) add_call(way, TRLI_CALL_ENTER, 0, TRLI_PASS_WITHIN);
    add_passes(way, enters, f->npasses - leaves);
    if (f->convolved) {
        add_call(way, TRLI_CALL_FILTER, 0, TRLI_PASS_WITHIN);
        add_passes(way, 0, f->npasses);
        add_call(way, TRLI_CALL_LEAVE, 0, TRLI_PASS_WITHIN);
    }
    if (leaves)
        add_call(way, TRLI_CALL_PASS, f->npasses - 1, by ? TRLI_PASS_LEAVE_BY : TRLI_PASS_LEAVE);
    else
        add_call(way, TRLI_CALL_LAST, (int)way->last, TRLI_PASS_WITHIN);
}

static void lay_out(trli_transform *t, tables *made)
{
    lay_kind(t, made);
    const bool even = t->values % 2 == 0;
    lay_fourier(made, &t->fourier, even ? t->values / 2 : t->values, !even);
    t->split = reserve(made, 2 * ((size_t)t->values / 4 + 1));
    for (int k = 0; 4 * k <= t->values; ++k) set_angle(made, t->split + 2 * (size_t)k, k, t->values, 1);
    t->room = 2 * t->fourier.convolved > t->values ? 2 * t->fourier.convolved : t->values;
    if (t->room < t->n) t->room = t->n;
}

trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n, trli_transform **transform)
{
    tables made = {0};
    trl_err err = TRL_OK;
    trli_transform *t = *transform = trli_new(ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ctx, NULL, "for transforms of lines of %d points", n);
    t->kind = kind;
    t->n = n;
    t->passes = trli_passes_widest();
    lay_out(t, &made);
    t->ntable = made.used;
    made = (tables){.at = trli_new(ctx, t->ntable, sizeof(double))};
    t->table = made.at;
    t->nindex = kind == TRLI_TRANSFORM_PERIODIC ? 0 : (size_t)t->values + (size_t)n;
    if (t->nindex > 0) t->index = trli_new(ctx, t->nindex, sizeof *t->index);
    if (!t->table || (!t->index && t->nindex > 0))
        return trli_no_memory(ctx, NULL, "for transforms of lines of %d points", n);
    lay_out(t, &made);
    for (int back = 0; back < 2; ++back) list_calls(t, &t->way[back]);
    if (t->fourier.convolved) TRL_TRY(make_filter(ctx, t));
done:
    return err;
}

void trli_transform_destroy(trli_transform **transform)
{
    trli_transform *t = *transform;
    *transform = NULL;
    if (!t) return;
    trli_free(t->index);
    trli_free(t->table);
    trli_free(t);
}

/* ---- lines ---- */

size_t trli_transform_scratch(const trli_transform *transform)
{
    return 2 * (size_t)transform->room * TRLI_LANES;
}

static void run_call(const trli_transform *t, const trli_transform_call *c, double *at, const double *from, double *to,
                     ptrdiff_t step)
{
    switch (c->kind) {
    case TRLI_CALL_FIRST:
        t->passes->first[c->which](t, from, step, to);
        return;
    case TRLI_CALL_PASS:
        run_pass(t, c->which, c->role, from, to, step);
        return;
    case TRLI_CALL_ENTER:
        t->passes->enter_convolution(&t->fourier, t->table, from, to);
        return;
    case TRLI_CALL_FILTER:
        t->passes->filter(&t->fourier, t->table, at);
        return;
    case TRLI_CALL_LEAVE:
        t->passes->leave_convolution(&t->fourier, t->table, from, to);
        return;
    case TRLI_CALL_LAST:
        t->passes->last[c->which](t, from, to, step);
        return;
    }
}

/* From `from` to `to`, or to `spare`, which then has what comes out. */
static void run_way(const trli_transform *t, bool back, const double *from, ptrdiff_t step, double *to,
                    ptrdiff_t to_step, double *at, double **spare)
{
    const trli_transform_way *way = &t->way[back];
    const int last = way->ncalls - 1;
    const ptrdiff_t end = t->n - 1;
    if (way->reversed_from) {
        from += end * step;
        step = -step;
    }
    run_call(t, &way->call[0], NULL, from, at, step);
    for (int i = 1; i < last; ++i) {
        run_call(t, &way->call[i], at, at, *spare, 0);
        if (way->call[i].kind != TRLI_CALL_FILTER) exchange(&at, spare);
    }
    if (!to) to = *spare;
    if (way->reversed_to) {
        to += end * to_step;
        to_step = -to_step;
    }
    run_call(t, &way->call[last], NULL, at, to, to_step);
}

void trli_transform_lines(const trli_transform *transform, bool back, const double *from, ptrdiff_t step, double *to,
                          ptrdiff_t to_step, double *scratch)
{
    double *spare = scratch + (ptrdiff_t)transform->room * TRLI_LANES;
    run_way(transform, back, from, step, to, to_step, scratch, &spare);
}

void trli_transform_rows(const trli_transform *transform, bool back, int rows, const double *const *from,
                         double *const *to, bool add, double *scratch)
{
    double *spare = scratch + (ptrdiff_t)transform->room * TRLI_LANES;
    transform->passes->take_rows(rows, from, transform->n, spare);
    run_way(transform, back, spare, TRLI_LANES, NULL, TRLI_LANES, scratch, &spare);
    transform->passes->give_rows(rows, to, transform->n, add, spare);
}

void trli_rows_take(int rows, const double *const *row, int n, double *to)
{
    trli_passes_widest()->take_rows(rows, row, n, to);
}

void trli_rows_give(int rows, double *const *row, int n, const double *from)
{
    trli_passes_widest()->give_rows(rows, row, n, false, from);
}

/* ---- what they do ---- */

double trli_transform_norm(const trli_transform *transform)
{
    return transform->norm;
}

/* Of a butterfly of complex numbers. */
static double butterfly_operations(int radix)
{
    const double half = radix / 2;
    if (radix % 2 == 0) return radix == 2 ? 4 : radix == 4 ? 16 : 56;
    return 2 * (3 * half + 4 * half * half) + 4 * half;
}

double trli_transform_operations(const trli_transform *transform)
{
    const trli_fourier *f = &transform->fourier;
    const double n = f->convolved ? f->convolved : f->n, turn = 6;
    double sum = 0;
    for (int i = 0; i < f->npasses; ++i) {
        const double r = f->pass[i].radix;
        sum += n / r * (butterfly_operations(f->pass[i].radix) + (i > 0 ? turn * (r - 1) : 0));
    }
    if (f->convolved) sum = 2 * sum + turn * (2 * f->n + f->convolved);
    if (f->real && !f->convolved) sum /= 2;
    return 2 * (sum + 5 * transform->n); /* waves are split, joined, turned */
}
