/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
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
