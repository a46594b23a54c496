/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A lattice whose vertices are to be numbered as Cuthill and McKee (1969) do. Included after app_support.h. */
#ifndef LATTICE_H
#define LATTICE_H

#include <stdatomic.h>

enum { VERTICES = 700, MOST_EDGES = 12 };

typedef struct vertex {
    int degree, neighbour[MOST_EDGES];
    _Atomic int parent; /* position of the first of its neighbours in the order; VERTICES: none yet */
    bool placed;
} vertex;

typedef struct ordering {
    vertex vertices[VERTICES];
    int order[VERTICES], count, level; /* the current level begins at order[level] */
    struct expand_part *parts;
} ordering;

static inline void connect(ordering *o, int a, int b)
{
    vertex *v = &o->vertices[a], *w = &o->vertices[b];
    if (a == b || v->degree == MOST_EDGES || w->degree == MOST_EDGES) return;
    for (int k = 0; k < v->degree; ++k) {
        if (v->neighbour[k] == b) return;
    }
    v->neighbour[v->degree++] = b;
    w->neighbour[w->degree++] = a;
}

/* A strip of a lattice with some diagonals, under random names. */
static inline void make_lattice(ordering *o, uint64_t seed)
{
    enum { ACROSS = 14 };
    int name[VERTICES];
    for (int i = 0; i < VERTICES; ++i) name[i] = i;
    for (int i = VERTICES - 1; i > 0; --i) {
        int j = app_below(&seed, i + 1), swap = name[i];
        name[i] = name[j];
        name[j] = swap;
    }
    for (int i = 0; i < VERTICES; ++i) o->vertices[i].degree = 0;
    for (int i = 0; i < VERTICES; ++i) {
        if (i % ACROSS) connect(o, name[i], name[i - 1]);
        if (i >= ACROSS) connect(o, name[i], name[i - ACROSS]);
        if (i > ACROSS && i % ACROSS && app_below(&seed, 3) == 0) connect(o, name[i], name[i - ACROSS - 1]);
    }
}

typedef struct sort_key {
    int parent, degree, vertex;
} sort_key;

static inline int compare_keys(const void *a, const void *b)
{
    const sort_key *p = a, *q = b;
    if (p->parent != q->parent) return p->parent - q->parent;
    return p->degree != q->degree ? p->degree - q->degree : p->vertex - q->vertex;
}

/* With a queue: the neighbours of each vertex, by degree, when its turn comes. */
static inline void order_serially(const ordering *o, int order[VERTICES])
{
    bool placed[VERTICES] = {false};
    int count = 1;
    order[0] = o->order[0];
    placed[order[0]] = true;
    for (int at = 0; at < count; ++at) {
        const vertex *v = &o->vertices[order[at]];
        sort_key keys[MOST_EDGES];
        int n = 0;
        for (int k = 0; k < v->degree; ++k) {
            int w = v->neighbour[k];
            if (!placed[w]) keys[n++] = (sort_key){.degree = o->vertices[w].degree, .vertex = w};
            placed[w] = true;
        }
        qsort(keys, (size_t)n, sizeof *keys, compare_keys);
        for (int k = 0; k < n; ++k) order[count++] = keys[k].vertex;
    }
}

/* Of the reversed order, which is that of the order: the farthest neighbour. */
static inline int bandwidth(const ordering *o, const int order[VERTICES])
{
    int position[VERTICES], width = 0;
    for (int i = 0; i < VERTICES; ++i) position[order[i]] = VERTICES - 1 - i;
    for (int v = 0; v < VERTICES; ++v) {
        for (int k = 0; k < o->vertices[v].degree; ++k) {
            int d = abs(position[v] - position[o->vertices[v].neighbour[k]]);
            width = d > width ? d : width;
        }
    }
    return width;
}

#endif
