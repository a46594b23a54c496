/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Small systems with full matrices, by elimination without exchanges of rows. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "sparse_impl.h"

void trli_eliminate(int n, double *m, double lost)
{
    for (int i = 0; i < n; ++i) {
        double *row = m + (ptrdiff_t)i * n;
        const double before = fabs(row[i]);
        for (int j = 0; j < i; ++j) {
            const double *other = m + (ptrdiff_t)j * n;
            row[j] = other[j] != 0 ? row[j] / other[j] : 0;
            for (int k = j + 1; k < n && row[j] != 0; ++k) row[k] -= row[j] * other[k];
        }
        if (!(fabs(row[i]) > lost * before)) row[i] = 0;
    }
}

void trli_eliminated_solve(int n, const double *m, double *x)
{
    for (int row = 0; row < n; ++row)
        for (int q = 0; q < row; ++q) x[row] -= m[(ptrdiff_t)row * n + q] * x[q];
    for (int row = n - 1; row >= 0; --row) {
        for (int q = row + 1; q < n; ++q) x[row] -= m[(ptrdiff_t)row * n + q] * x[q];
        const double pivot = m[(ptrdiff_t)row * n + row];
        x[row] = pivot != 0 ? x[row] / pivot : 0;
    }
}
