/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdbool.h>

#include "memory_impl.h"
#include "spectrum_impl.h"

/* Tarjan (1972), with a stack of its own. */
typedef struct search {
    const trli_pattern *p;
    int *component, *index, *low, *next, *stack, *path;
    int nstack, npath, visited, found;
} search;

static void enter(search *s, int v)
{
    s->index[v] = s->low[v] = ++s->visited;
    s->next[v] = s->p->start[v];
    s->stack[s->nstack++] = v;
    s->path[s->npath++] = v;
}

static void leave(search *s, int v)
{
    --s->npath;
    if (s->npath > 0 && s->low[v] < s->low[s->path[s->npath - 1]]) s->low[s->path[s->npath - 1]] = s->low[v];
    if (s->low[v] != s->index[v]) return;
    int w;
    do {
        w = s->stack[--s->nstack];
        s->component[w] = s->found;
    } while (w != v);
    ++s->found;
}

int trli_components(trl_context *ctx, const trli_pattern *pattern, int *component)
{
    const size_t n = (size_t)pattern->n;
    int *memory = trli_new(ctx, 5 * n + 1, sizeof *memory);
    if (!memory) return -1;
    search s = {.p = pattern,
                .component = component,
                .index = memory,
                .low = memory + n,
                .next = memory + 2 * n,
                .stack = memory + 3 * n,
                .path = memory + 4 * n};
    for (int v = 0; v < pattern->n; ++v) component[v] = -1;
    for (int root = 0; root < pattern->n; ++root) {
        if (s.index[root]) continue;
        enter(&s, root);
        while (s.npath > 0) {
            int v = s.path[s.npath - 1];
            if (s.next[v] == pattern->start[v + 1]) {
                leave(&s, v);
                continue;
            }
            int w = pattern->column[s.next[v]++];
            if (!s.index[w])
                enter(&s, w);
            else if (component[w] < 0 && s.index[w] < s.low[v])
                s.low[v] = s.index[w];
        }
    }
    trli_free(memory);
    return s.found;
}

static double radius_of_two(const double m[4])
{
    double half = (m[0] - m[3]) / 2;
    return (m[0] + m[3]) / 2 + hypot(half, sqrt(m[1]) * sqrt(m[2]));
}

/* Scale rows and columns alike until both have one norm (Osborne 1960), so that units of the unknowns do not matter. */
static void balance(int n, double *m)
{
    const int sweeps = 20;
    for (int k = 0; k < sweeps; ++k)
        for (int i = 0; i < n; ++i) {
            double row = 0, column = 0;
            for (int j = 0; j < n; ++j) {
                if (j == i) continue;
                row += m[i * n + j];
                column += m[j * n + i];
            }
            if (!(row > 0 && column > 0)) continue;
            const double f = sqrt(column) / sqrt(row);
            for (int j = 0; j < n; ++j) {
                if (j == i) continue;
                m[i * n + j] *= f;
                m[j * n + i] /= f;
            }
        }
}

/* Bounds of the radius from a positive vector: the least and the largest ratio of (m x)_i and x_i. */
static void bounds(int n, const double *m, const double *x, double *y, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += m[i * n + j] * x[j];
        y[i] = sum;
        *low = fmin(*low, sum / x[i]);
        *high = fmax(*high, sum / x[i]);
    }
}

double trli_spectral_radius(int n, double *matrix, double *work)
{
    const int most = 10000;
    const double close = 1e-9;
    double *x = work, *y = work + n, low = 0, high = 0, best = INFINITY;
    bool infinite = false;
    for (int i = 0; i < n * n; ++i) {
        if (isnan(matrix[i])) return NAN;
        infinite |= isinf(matrix[i]);
    }
    if (infinite) return INFINITY;
    if (n == 1) return matrix[0];
    if (n == 2) return radius_of_two(matrix);
    balance(n, matrix);
    for (int i = 0; i < n; ++i) x[i] = 1;
    for (int k = 0; k < most; ++k) {
        bounds(n, matrix, x, y, &low, &high);
        best = fmin(best, high);
        if (high - low <= close * high) break;
        /* A shift by about the radius keeps cycles, whose eigenvalues have one magnitude, from oscillating. */
        double shift = (low + high) / 2, largest = 0;
        for (int i = 0; i < n; ++i) {
            x[i] = y[i] + shift * x[i];
            largest = fmax(largest, x[i]);
        }
        for (int i = 0; i < n; ++i) x[i] = fmax(x[i] / largest, 1e-300);
    }
    return best;
}
