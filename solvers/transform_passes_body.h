/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Passes over several lines at once, whose values lie beside one another: the same operations in the same order, and so
 * the same bits, in vectors of a core and in threads of a GPU. After transform_plan_body.h, once for each type:
 *
 *     VECTOR         the type: it has +, - and *, also by a double
 *     OF(name)       the name of a function for this type
 *     INLINE, PASS   what stands before functions, and before those that are called from outside
 *     TRLI_LANES     doubles from a value to the next one of the same line
 *     EACH_LANE      before what is done with value `l` of each vector, in doubles
 *     EACH(i, begin, condition), EACH_PAIR(k, begin, end, c, n)  before what is done for each index, or each two, c < n
 *     ONCE           before what is done once
 *     EACH_COMPLEX, EACH_REAL  X(name, radix): the radices that have functions of their own, and any, p->radix
 *
 * In what follows a value is one of each line. `from` and `to` are values `step` doubles apart. */

#define AT(value) (*(VECTOR *)(value))
#define OF_ALL(value) (*(const VECTOR *)(value))

/* ---- butterflies ---- */

/* A butterfly of radix r turns r values x[q], in place, into X[s], the sum over q of x[q] exp(-2 pi i q s/r). */
INLINE void OF(butterfly_2)(VECTOR re[2], VECTOR im[2])
{
    const VECTOR a = re[0], b = im[0];
    re[0] = a + re[1];
    im[0] = b + im[1];
    re[1] = a - re[1];
    im[1] = b - im[1];
}

INLINE void OF(butterfly_4)(VECTOR re[4], VECTOR im[4])
{
    const VECTOR a = re[0] + re[2], b = im[0] + im[2], c = re[0] - re[2], d = im[0] - im[2];
    const VECTOR e = re[1] + re[3], f = im[1] + im[3], g = re[1] - re[3], h = im[1] - im[3];
    re[0] = a + e;
    im[0] = b + f;
    re[1] = c + h;
    im[1] = d - g;
    re[2] = a - e;
    im[2] = b - f;
    re[3] = c - h;
    im[3] = d + g;
}

INLINE void OF(butterfly_8)(VECTOR re[8], VECTOR im[8])
{
    const double root = 0.70710678118654752440;
    VECTOR p[4] = {re[0], re[2], re[4], re[6]}, q[4] = {im[0], im[2], im[4], im[6]};
    VECTOR u[4] = {re[1], re[3], re[5], re[7]}, v[4] = {im[1], im[3], im[5], im[7]};
    OF(butterfly_4)(p, q);
    OF(butterfly_4)(u, v);
    const VECTOR a = (u[1] + v[1]) * root, b = (v[1] - u[1]) * root;
    const VECTOR c = (v[3] - u[3]) * root, d = (u[3] + v[3]) * root;
    re[0] = p[0] + u[0];
    im[0] = q[0] + v[0];
    re[4] = p[0] - u[0];
    im[4] = q[0] - v[0];
    re[1] = p[1] + a;
    im[1] = q[1] + b;
    re[5] = p[1] - a;
    im[5] = q[1] - b;
    re[2] = p[2] + v[2];
    im[2] = q[2] - u[2];
    re[6] = p[2] - v[2];
    im[6] = q[2] + u[2];
    re[3] = p[3] + c;
    im[3] = q[3] - d;
    re[7] = p[3] - c;
    im[7] = q[3] + d;
}

/* Of an odd radix 2h + 1 and real values: X[t] is a[t] + i b[t] for t <= h, and the conjugate of X[r - t] beyond. b[0]
 * is left alone. root: [r][2] cosines and sines of 2 pi j/r. */
INLINE void OF(butterfly_odd)(int radix, const double *root, const VECTOR *x, VECTOR *a, VECTOR *b)
{
    const int half = radix / 2;
    VECTOR sum[TRLI_ODD_RADIX / 2 + 1], difference[TRLI_ODD_RADIX / 2 + 1];
    a[0] = x[0];
    for (int q = 1; q <= half; ++q) {
        sum[q] = x[q] + x[radix - q];
        difference[q] = x[radix - q] - x[q];
        a[0] = a[0] + sum[q];
    }
    for (int t = 1; t <= half; t += 2) { /* two at once: neither waits for the sums of the other */
        const int u = t < half ? t + 1 : t;
        VECTOR re = x[0] + sum[1] * root[2 * t], im = difference[1] * root[2 * t + 1];
        VECTOR other_re = x[0] + sum[1] * root[2 * u], other_im = difference[1] * root[2 * u + 1];
        for (int q = 2, i = t, j = u; q <= half; ++q) {
            i = i + t < radix ? i + t : i + t - radix;
            j = j + u < radix ? j + u : j + u - radix;
            re = re + sum[q] * root[2 * i];
            im = im + difference[q] * root[2 * i + 1];
            other_re = other_re + sum[q] * root[2 * j];
            other_im = other_im + difference[q] * root[2 * j + 1];
        }
        a[t] = re;
        b[t] = im;
        a[u] = other_re;
        b[u] = other_im;
    }
}

/* ---- passes of Fourier transforms ---- */

/* z exp(-i a), with cosine and sine of a at w. */
INLINE void OF(turn)(VECTOR *re, VECTOR *im, const double *w)
{
    const VECTOR a = *re, b = *im;
    *re = a * w[0] + b * w[1];
    *im = b * w[0] - a * w[1];
}

/* X[t] for 0 < t <= radix/2, and X[radix - t], of what an odd butterfly made of real and of imaginary parts. */
INLINE void OF(combine)(int t, int radix, const VECTOR *ra, const VECTOR *rb, const VECTOR *ia, const VECTOR *ib,
                        VECTOR *re, VECTOR *im)
{
    re[t] = ra[t] - ib[t];
    im[t] = rb[t] + ia[t];
    re[radix - t] = ra[t] + ib[t];
    im[radix - t] = ia[t] - rb[t];
}

/* Value i of a line as it is read, and where it is written: of a buffer, of a line whose values are in their places, or
 * have others by index and signs. */
enum OF(place) { OF(BUFFER), OF(LINE), OF(INDEXED) };

INLINE VECTOR OF(load)(enum OF(place) place, const trli_transform *t, const double *from, ptrdiff_t step, ptrdiff_t i)
{
    if (place == OF(BUFFER)) return OF_ALL(from + i * TRLI_LANES);
    if (place == OF(LINE)) return OF_ALL(from + i * step);
    return OF_ALL(from + t->index[i] * step) * t->table[t->sign + (size_t)i];
}

INLINE void OF(store)(enum OF(place) place, const trli_transform *t, double *to, ptrdiff_t step, ptrdiff_t i, VECTOR x)
{
    if (place == OF(BUFFER))
        AT(to + i * TRLI_LANES) = x;
    else if (place == OF(LINE))
        AT(to + i * step) = x;
    else
        AT(to + t->index[i] * step) = x * t->table[t->sign + (size_t)i];
}

INLINE void OF(butterfly)(int radix, const double *root, VECTOR *re, VECTOR *im)
{
    enum { HALF = TRLI_ODD_RADIX / 2 + 1 };
    if (radix == 2) {
        OF(butterfly_2)(re, im);
    } else if (radix == 4) {
        OF(butterfly_4)(re, im);
    } else if (radix == 8) {
        OF(butterfly_8)(re, im);
    } else {
        VECTOR ra[HALF], rb[HALF], ia[HALF], ib[HALF];
        OF(butterfly_odd)(radix, root, re, ra, rb);
        OF(butterfly_odd)(radix, root, im, ia, ib);
        re[0] = ra[0];
        im[0] = ia[0];
        for (int s = 1; s <= radix / 2; ++s) OF(combine)(s, radix, ra, rb, ia, ib, re, im);
    }
}

/* A pass from a line to a buffer, from buffer to buffer, or from a buffer to a line, whose parts have changed places.
 * The first pass, of spectra of one value, has no factors. */
INLINE void OF(complex_pass)(int radix, enum OF(place) source, enum OF(place) target, bool first,
                             const trli_transform *t, const trli_fourier_pass *p, const double *from, double *to,
                             ptrdiff_t step)
{
    const ptrdiff_t in = p->batch, out = in * p->length, swapped = target != OF(BUFFER);
    EACH_PAIR(k, 0, first ? 1 : p->length, c, in)
    EACH_LANE
    {
        const double *w = t->table + p->twiddle + k * (radix - 1) * 2;
        const ptrdiff_t x = k * in * radix + c, y = k * in + c;
        VECTOR re[TRLI_ODD_RADIX], im[TRLI_ODD_RADIX];
        re[0] = OF(load)(source, t, from + l, step, 2 * x);
        im[0] = OF(load)(source, t, from + l, step, 2 * x + 1);
        for (int q = 1; q < radix; ++q) {
            re[q] = OF(load)(source, t, from + l, step, 2 * (x + q * in));
            im[q] = OF(load)(source, t, from + l, step, 2 * (x + q * in) + 1);
            if (!first) OF(turn)(&re[q], &im[q], w + 2 * (q - 1));
        }
        OF(butterfly)(radix, t->table + p->root, re, im);
        for (int q = 0; q < radix; ++q) {
            OF(store)(target, t, to + l, step, 2 * (y + q * out) + swapped, re[q]);
            OF(store)(target, t, to + l, step, 2 * (y + q * out) + !swapped, im[q]);
        }
    }
}

/* Waves 0 of spectra of real lines, and their imaginary parts, which are zero. */
INLINE void OF(real_waves_0)(int radix, enum OF(place) source, const trli_transform *t, const trli_fourier_pass *p,
                             const double *from, ptrdiff_t step, double *to)
{
    enum { ROOM = TRLI_ODD_RADIX, HALF = ROOM / 2 + 1 };
    const ptrdiff_t in = p->batch, out = in * p->length;
    EACH(c, 0, c < in) EACH_LANE
    {
        VECTOR x[ROOM], a[HALF], b[HALF];
        x[0] = OF(load)(source, t, from + l, step, c);
        for (int q = 1; q < radix; ++q) x[q] = OF(load)(source, t, from + l, step, c + q * in);
        OF(butterfly_odd)(radix, t->table + p->root, x, a, b);
        AT(to + c * TRLI_LANES + l) = a[0];
        for (int s = 1; s <= radix / 2; ++s) {
            AT(to + (c + s * out) * TRLI_LANES + l) = a[s];
            AT(to + (c + (radix - s) * out) * TRLI_LANES + l) = b[s];
        }
    }
}

/* The other waves. */
INLINE void OF(real_waves)(int radix, const trli_transform *t, const trli_fourier_pass *p, const double *from,
                           double *to)
{
    enum { ROOM = TRLI_ODD_RADIX, HALF = ROOM / 2 + 1 };
    const ptrdiff_t in = (ptrdiff_t)p->batch * TRLI_LANES, out = in * p->length;
    EACH_PAIR(k, 1, (p->length + 1) / 2, c, p->batch)
    EACH_LANE
    {
        const double *w = t->table + p->twiddle + k * (radix - 1) * 2;
        const double *x = from + k * in * radix + c * TRLI_LANES + l;
        const double *conjugate = from + (p->length - k) * in * radix + c * TRLI_LANES + l;
        VECTOR re[ROOM], im[ROOM], ra[HALF], rb[HALF], ia[HALF], ib[HALF];
        re[0] = OF_ALL(x);
        im[0] = OF_ALL(conjugate);
        for (int q = 1; q < radix; ++q) {
            re[q] = OF_ALL(x + q * in);
            im[q] = OF_ALL(conjugate + q * in);
            OF(turn)(&re[q], &im[q], w + 2 * (q - 1));
        }
        OF(butterfly_odd)(radix, t->table + p->root, re, ra, rb);
        OF(butterfly_odd)(radix, t->table + p->root, im, ia, ib);
        double *y = to + k * in + c * TRLI_LANES + l, *z = to + radix * out - k * in + c * TRLI_LANES + l;
        AT(y) = ra[0];
        AT(z) = ia[0];
        for (int s = 1; s <= radix / 2; ++s) {
            OF(combine)(s, radix, ra, rb, ia, ib, re, im);
            AT(y + s * out) = re[s];
            AT(z - s * out) = im[s];
            AT(z - (radix - s) * out) = re[radix - s];
            AT(y + (radix - s) * out) = -im[radix - s];
        }
    }
}

/* Functions of each radix: a fixed one, with arguments of a pass before those of all, or that of the pass. */
#define COMPLEX(name, radix, source, target, first)                                                         \
    PASS void OF(name)(const trli_transform *t, const trli_fourier_pass *p, const double *from, double *to, \
                       ptrdiff_t step)                                                                      \
    {                                                                                                       \
        OF(complex_pass)(radix, OF(source), OF(target), first, t, p, from, to, step);                       \
    }
#define COMPLEX_PASSES(name, radix)                        \
    COMPLEX(within_##name, radix, BUFFER, BUFFER, false)   \
    COMPLEX(first_##name, radix, BUFFER, BUFFER, true)     \
    COMPLEX(enter_##name, radix, LINE, BUFFER, true)       \
    COMPLEX(enter_by_##name, radix, INDEXED, BUFFER, true) \
    COMPLEX(leave_##name, radix, BUFFER, LINE, false)      \
    COMPLEX(leave_by_##name, radix, BUFFER, INDEXED, false)
#define REAL(name, radix, source)                                                                           \
    PASS void OF(name)(const trli_transform *t, const trli_fourier_pass *p, const double *from, double *to, \
                       ptrdiff_t step)                                                                      \
    {                                                                                                       \
        OF(real_waves_0)(radix, OF(source), t, p, from, step, to);                                          \
        OF(real_waves)(radix, t, p, from, to);                                                              \
    }
#define REAL_PASSES(name, radix)         \
    REAL(real_##name, radix, BUFFER)     \
    REAL(real_enter_##name, radix, LINE) \
    REAL(real_enter_by_##name, radix, INDEXED)
EACH_COMPLEX(COMPLEX_PASSES)
EACH_REAL(REAL_PASSES)
#undef COMPLEX
#undef COMPLEX_PASSES
#undef REAL
#undef REAL_PASSES

/* ---- Fourier transforms by a convolution ---- */

/* Values times conjugates of the chirp, and zeros behind them. */
PASS void OF(enter_convolution)(const trli_fourier *f, const double *table, const double *from, double *to)
{
    enum { POINT = 2 * TRLI_LANES };
    const double *w = table + f->chirp;
    EACH(j, 0, j < f->n) EACH_LANE
    {
        const double *x = from + j * (f->real ? TRLI_LANES : POINT) + l;
        VECTOR re = OF_ALL(x), im = {0};
        if (!f->real) im = OF_ALL(x + TRLI_LANES);
        OF(turn)(&re, &im, w + 2 * j);
        AT(to + j * POINT + l) = re;
        AT(to + j * POINT + TRLI_LANES + l) = im;
    }
    EACH(j, f->n, j < f->convolved)
    EACH_LANE
    {
        const VECTOR none = {0};
        AT(to + j * POINT + l) = none;
        AT(to + j * POINT + TRLI_LANES + l) = none;
    }
}

/* Times the filter; real and imaginary parts change places, as before and after a transform back. */
PASS void OF(filter)(const trli_fourier *f, const double *table, double *at)
{
    EACH(k, 0, k < f->convolved) EACH_LANE
    {
        double *z = at + k * 2 * TRLI_LANES + l;
        VECTOR re = OF_ALL(z), im = OF_ALL(z + TRLI_LANES);
        OF(turn)(&re, &im, table + f->filter + 2 * k);
        AT(z) = im;
        AT(z + TRLI_LANES) = re;
    }
}

PASS void OF(leave_convolution)(const trli_fourier *f, const double *table, const double *from, double *to)
{
    EACH(k, 0, k < (f->real ? f->n / 2 + 1 : f->n)) EACH_LANE
    {
        const double *z = from + k * 2 * TRLI_LANES + l;
        VECTOR re = OF_ALL(z + TRLI_LANES), im = OF_ALL(z);
        OF(turn)(&re, &im, table + f->chirp + 2 * k);
        AT(to + k * (f->real ? TRLI_LANES : 2 * TRLI_LANES) + l) = re;
        if (!f->real)
            AT(to + k * 2 * TRLI_LANES + TRLI_LANES + l) = im;
        else if (k > 0)
            AT(to + (f->n - k) * TRLI_LANES + l) = im;
    }
}

/* ---- before and after ---- */

PASS void OF(take)(const trli_transform *t, const double *from, ptrdiff_t step, double *to)
{
    const enum OF(place) source = t->index ? OF(INDEXED) : OF(LINE);
    EACH(i, 0, i < t->values) EACH_LANE AT(to + i * TRLI_LANES + l) = OF(load)(source, t, from + l, step, i);
}

/* Of an even line: parts changed places. Of an odd one: the transform was of sums and differences of parts. */
PASS void OF(give)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const enum OF(place) target = t->index ? OF(INDEXED) : OF(LINE);
    const ptrdiff_t n = t->n;
    EACH(i, 0, n % 2 == 0 && i < n)
    EACH_LANE OF(store)(target, t, to + l, step, i, OF_ALL(from + (i ^ 1) * TRLI_LANES + l));
    EACH(i, 0, n % 2 && 2 * i < n) EACH_LANE
    {
        const VECTOR a = OF_ALL(from + i * TRLI_LANES + l);
        if (i == 0) {
            OF(store)(target, t, to + l, step, i, a);
            continue;
        }
        const VECTOR b = OF_ALL(from + (n - i) * TRLI_LANES + l);
        OF(store)(target, t, to + l, step, i, a - b);
        OF(store)(target, t, to + l, step, n - i, a + b);
    }
}

/* Parts of wave k of n to where they belong, and back; of cosines these are two values that are turned. */
INLINE void OF(put)(const trli_transform *t, ptrdiff_t k, VECTOR re, VECTOR im, double *to, ptrdiff_t step, int l)
{
    const double *w = t->table + t->turn + 2 * k;
    AT(to + k * step + l) = t->turned ? re * w[0] + im * w[1] : re;
    AT(to + (t->n - k) * step + l) = t->turned ? re * w[1] - im * w[0] : im;
}

INLINE void OF(get)(const trli_transform *t, ptrdiff_t k, const double *from, ptrdiff_t step, int l, VECTOR *re,
                    VECTOR *im)
{
    const double *w = t->table + t->turn + 2 * k;
    const VECTOR a = OF_ALL(from + k * step + l), b = OF_ALL(from + (t->n - k) * step + l);
    *re = t->turned ? a * w[0] + b * w[1] : a;
    *im = t->turned ? a * w[1] - b * w[0] : b;
}

/* Waves k and m - k of a real line of 2m values, of which the transform of m complex ones has a and b, times
 * `half`. w: cosine and sine of pi k/m. */
INLINE void OF(separate)(const double *w, double half, const VECTOR a[2], const VECTOR b[2], VECTOR x[2], VECTOR y[2])
{
    const VECTOR re = a[0] + b[0], im = a[1] - b[1], dr = a[0] - b[0], di = a[1] + b[1];
    const VECTOR real = di * w[0] - dr * w[1], image = dr * w[0] + di * w[1];
    x[0] = (re + real) * half;
    x[1] = (im - image) * half;
    y[0] = (re - real) * half;
    y[1] = (im + image) * -half;
}

PASS void OF(split_even)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const ptrdiff_t m = t->n / 2;
    ONCE EACH_LANE
    {
        const VECTOR re = OF_ALL(from + l), im = OF_ALL(from + TRLI_LANES + l);
        const double more = t->turned ? 2 : 1, last = t->turned ? 2 * t->table[t->turn + 2 * (size_t)m] : 1;
        AT(to + l) = (re + im) * more;
        AT(to + m * step + l) = (re - im) * last;
    }
    EACH(k, 1, 2 * k <= m) EACH_LANE
    {
        const double *p = from + 2 * k * TRLI_LANES + l, *q = from + 2 * (m - k) * TRLI_LANES + l;
        const VECTOR a[2] = {OF_ALL(p), OF_ALL(p + TRLI_LANES)}, b[2] = {OF_ALL(q), OF_ALL(q + TRLI_LANES)};
        VECTOR x[2], y[2];
        OF(separate)(t->table + t->split + 2 * k, t->half, a, b, x, y);
        OF(put)(t, k, x[0], x[1], to, step, l);
        OF(put)(t, m - k, y[0], y[1], to, step, l);
    }
}

PASS void OF(split_odd)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const double more = t->turned ? 2 : 1;
    ONCE EACH_LANE AT(to + l) = OF_ALL(from + l) * more;
    EACH(k, 1, 2 * k < t->n) EACH_LANE
    {
        const VECTOR re = OF_ALL(from + k * TRLI_LANES + l), im = OF_ALL(from + (t->n - k) * TRLI_LANES + l);
        OF(put)(t, k, re * more, im * more, to, step, l);
    }
}

PASS void OF(join_even)(const trli_transform *t, const double *from, ptrdiff_t step, double *to)
{
    const ptrdiff_t m = t->n / 2;
    ONCE EACH_LANE
    {
        const double last = t->turned ? 2 * t->table[t->turn + 2 * (size_t)m] : 1;
        const VECTOR a = OF_ALL(from + l), b = OF_ALL(from + m * step + l) * last;
        AT(to + l) = a - b;
        AT(to + TRLI_LANES + l) = a + b;
    }
    EACH(k, 1, 2 * k <= m) EACH_LANE
    {
        const double *w = t->table + t->split + 2 * k;
        VECTOR ar, ai, br, bi;
        OF(get)(t, k, from, step, l, &ar, &ai);
        OF(get)(t, m - k, from, step, l, &br, &bi);
        const VECTOR re = ar + br, im = ai - bi, dr = ar - br, di = ai + bi;
        const VECTOR real = dr * w[1] + di * w[0], image = dr * w[0] - di * w[1];
        double *p = to + 2 * k * TRLI_LANES + l, *q = to + 2 * (m - k) * TRLI_LANES + l;
        AT(p) = im + image;
        AT(p + TRLI_LANES) = re - real;
        AT(q) = image - im;
        AT(q + TRLI_LANES) = re + real;
    }
}

PASS void OF(join_odd)(const trli_transform *t, const double *from, ptrdiff_t step, double *to)
{
    ONCE EACH_LANE AT(to + l) = OF_ALL(from + l);
    EACH(k, 1, 2 * k < t->n) EACH_LANE
    {
        VECTOR re, im;
        OF(get)(t, k, from, step, l, &re, &im);
        AT(to + k * TRLI_LANES + l) = re - im;
        AT(to + (t->n - k) * TRLI_LANES + l) = re + im;
    }
}

/* Of a line that is even or odd about its ends, and was extended: the parts that are not zero. */
PASS void OF(split_ends)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const ptrdiff_t m = t->values / 2;
    const bool real = t->kind == TRLI_TRANSFORM_POINT_EVEN;
    ONCE EACH_LANE
    {
        const VECTOR re = OF_ALL(from + l), im = OF_ALL(from + TRLI_LANES + l);
        if (real) AT(to + l) = re + im;
        if (real) AT(to + m * step + l) = re - im;
    }
    EACH(k, 1, 2 * k <= m) EACH_LANE
    {
        const double *p = from + 2 * k * TRLI_LANES + l, *q = from + 2 * (m - k) * TRLI_LANES + l;
        const VECTOR a[2] = {OF_ALL(p), OF_ALL(p + TRLI_LANES)}, b[2] = {OF_ALL(q), OF_ALL(q + TRLI_LANES)};
        VECTOR x[2], y[2];
        OF(separate)(t->table + t->split + 2 * k, t->half, a, b, x, y);
        AT(to + (real ? k : k - 1) * step + l) = real ? x[0] : -x[1];
        AT(to + (real ? m - k : m - k - 1) * step + l) = real ? y[0] : -y[1];
    }
}

/* Even lines that are even about one side, odd about the other: complex numbers of half as many. */
PASS void OF(turn_in)(const trli_transform *t, const double *from, ptrdiff_t step, double *to)
{
    EACH(k, 0, 2 * k < t->n) EACH_LANE
    {
        VECTOR re = OF_ALL(from + 2 * k * step + l), im = OF_ALL(from + (t->n - 1 - 2 * k) * step + l);
        OF(turn)(&re, &im, t->table + t->turn + 2 * k);
        AT(to + 2 * k * TRLI_LANES + l) = re;
        AT(to + (2 * k + 1) * TRLI_LANES + l) = im;
    }
}

PASS void OF(turn_out)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const bool odd = t->kind == TRLI_TRANSFORM_ODD_EVEN;
    EACH(k, 0, 2 * k < t->n) EACH_LANE
    {
        const double *z = from + 2 * k * TRLI_LANES + l;
        VECTOR re = OF_ALL(z), im = OF_ALL(z + TRLI_LANES);
        OF(turn)(&re, &im, t->table + t->out + 2 * k);
        AT(to + 2 * k * step + l) = re;
        AT(to + (t->n - 1 - 2 * k) * step + l) = odd ? im : -im;
    }
}

/* Odd ones, of which wave k has the values of two. */
PASS void OF(mix)(const trli_transform *t, const double *from, double *to, ptrdiff_t step)
{
    const int *index = t->index + t->values;
    const double *w = t->table + t->turn;
    ONCE EACH_LANE AT(to + index[0] * step + l) = OF_ALL(from + l) * w[0];
    EACH(k, 1, 2 * k < t->n) EACH_LANE
    {
        const double *p = w + 2 * k, *q = w + 2 * (t->n - k);
        const VECTOR re = OF_ALL(from + k * TRLI_LANES + l), im = OF_ALL(from + (t->n - k) * TRLI_LANES + l);
        AT(to + index[k] * step + l) = re * p[0] + im * p[1];
        AT(to + index[t->n - k] * step + l) = re * q[0] + im * q[1];
    }
}
