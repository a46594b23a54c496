/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Butterflies of transforms, for any type that has +, - and *, also by a double: the same operations in the same order,
 * and so the same bits, in lanes of vectors and in threads of a GPU. Included once for each type:
 *
 *     TRL_BUTTERFLY(name)  the name of a function for this type
 *     TRL_BUTTERFLY_BODY   what stands before a function
 *     TRL_BUTTERFLY_REAL   the type
 *
 * A butterfly of radix r turns r values x[q], in place, into X[s], the sum over q of x[q] exp(-2 pi i q s/r). */

TRL_BUTTERFLY_BODY void TRL_BUTTERFLY(2)(TRL_BUTTERFLY_REAL re[2], TRL_BUTTERFLY_REAL im[2])
{
    const TRL_BUTTERFLY_REAL a = re[0], b = im[0];
    re[0] = a + re[1];
    im[0] = b + im[1];
    re[1] = a - re[1];
    im[1] = b - im[1];
}

TRL_BUTTERFLY_BODY void TRL_BUTTERFLY(4)(TRL_BUTTERFLY_REAL re[4], TRL_BUTTERFLY_REAL im[4])
{
    const TRL_BUTTERFLY_REAL a = re[0] + re[2], b = im[0] + im[2], c = re[0] - re[2], d = im[0] - im[2];
    const TRL_BUTTERFLY_REAL e = re[1] + re[3], f = im[1] + im[3], g = re[1] - re[3], h = im[1] - im[3];
    re[0] = a + e;
    im[0] = b + f;
    re[1] = c + h;
    im[1] = d - g;
    re[2] = a - e;
    im[2] = b - f;
    re[3] = c - h;
    im[3] = d + g;
}

TRL_BUTTERFLY_BODY void TRL_BUTTERFLY(8)(TRL_BUTTERFLY_REAL re[8], TRL_BUTTERFLY_REAL im[8])
{
    const double root = 0.70710678118654752440;
    TRL_BUTTERFLY_REAL p[4] = {re[0], re[2], re[4], re[6]}, q[4] = {im[0], im[2], im[4], im[6]};
    TRL_BUTTERFLY_REAL u[4] = {re[1], re[3], re[5], re[7]}, v[4] = {im[1], im[3], im[5], im[7]};
    TRL_BUTTERFLY(4)(p, q);
    TRL_BUTTERFLY(4)(u, v);
    const TRL_BUTTERFLY_REAL a = (u[1] + v[1]) * root, b = (v[1] - u[1]) * root;
    const TRL_BUTTERFLY_REAL c = (v[3] - u[3]) * root, d = (u[3] + v[3]) * root;
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
TRL_BUTTERFLY_BODY void TRL_BUTTERFLY(odd)(int radix, const double *root, const TRL_BUTTERFLY_REAL *x,
                                           TRL_BUTTERFLY_REAL *a, TRL_BUTTERFLY_REAL *b)
{
    const int half = radix / 2;
    TRL_BUTTERFLY_REAL sum[TRLI_ODD_RADIX / 2 + 1], difference[TRLI_ODD_RADIX / 2 + 1];
    a[0] = x[0];
    for (int q = 1; q <= half; ++q) {
        sum[q] = x[q] + x[radix - q];
        difference[q] = x[radix - q] - x[q];
        a[0] = a[0] + sum[q];
    }
    for (int t = 1; t <= half; t += 2) { /* two at once: neither waits for the sums of the other */
        const int u = t < half ? t + 1 : t;
        TRL_BUTTERFLY_REAL re = x[0] + sum[1] * root[2 * t], im = difference[1] * root[2 * t + 1];
        TRL_BUTTERFLY_REAL other_re = x[0] + sum[1] * root[2 * u], other_im = difference[1] * root[2 * u + 1];
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
