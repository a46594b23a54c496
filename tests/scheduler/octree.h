/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An octree over particles, for the Barnes-Hut test. Included after app_support.h. */
#ifndef OCTREE_H
#define OCTREE_H

#include <math.h>

enum { LEAF_PARTICLES = 12 };

typedef struct particle {
    double x[3], mass;
    double a[3];  /* acceleration */
    double bound; /* of the error of a, from what was approximated */
    int64_t seen; /* particles that acted on it */
} particle;

typedef struct octree_cell {
    struct octree *tree;
    double centre[3], half;      /* of the cube */
    int first, count;            /* its particles are neighbours in memory */
    int child[8], children;      /* 0: a leaf */
    int parent;                  /* or -1 */
    double com[3], mass, radius; /* centre of mass, sum of masses, farthest particle from the centre of mass */
} octree_cell;

typedef struct octree {
    particle *particles;
    int count;
    octree_cell *cells; /* parents before children */
    int ncells;
} octree;

/* Order the particles [first, first + count) so that those above `at` on an axis come last; result: how many do not. */
static int octree_split(particle *p, int count, int axis, double at)
{
    int low = 0;
    for (int i = 0; i < count; ++i) {
        if (p[i].x[axis] >= at) continue;
        particle swap = p[low];
        p[low++] = p[i];
        p[i] = swap;
    }
    return low;
}

static void octree_grow(octree *t, int parent)
{
    octree_cell *c = &t->cells[parent];
    int begin[9] = {c->first, [8] = c->first + c->count};
    if (c->count <= LEAF_PARTICLES) return;
    for (int step = 4, axis = 0; step; step /= 2, ++axis) {
        for (int k = 0; k < 8; k += 2 * step) {
            int count = begin[k + 2 * step] - begin[k];
            begin[k + step] = begin[k] + octree_split(&t->particles[begin[k]], count, axis, c->centre[axis]);
        }
    }
    for (int k = 0; k < 8; ++k) {
        if (begin[k + 1] == begin[k]) continue;
        octree_cell *d = &t->cells[t->ncells];
        *d = (octree_cell){.tree = t, .first = begin[k], .count = begin[k + 1] - begin[k], .half = 0.5 * c->half};
        d->parent = parent;
        for (int axis = 0; axis < 3; ++axis)
            d->centre[axis] = c->centre[axis] + (k & (4 >> axis) ? 0.5 : -0.5) * c->half;
        c->child[c->children++] = t->ncells++;
        octree_grow(t, t->ncells - 1);
    }
}

/* Half of the particles spread over the unit cube, half crowded around a point. */
static inline octree *octree_create(int count, uint64_t seed)
{
    octree *t = app_calloc(1, sizeof *t);
    t->particles = app_calloc((size_t)count, sizeof *t->particles);
    t->count = count;
    for (int i = 0; i < count; ++i) {
        particle *p = &t->particles[i];
        double shrink = i % 2 ? 1.0 : 0.2 * app_uniform(&seed);
        for (int axis = 0; axis < 3; ++axis) p->x[axis] = 0.3 + shrink * (app_uniform(&seed) - 0.3);
        p->mass = (0.5 + app_uniform(&seed)) / count;
    }
    t->cells = app_calloc((size_t)4 * count, sizeof *t->cells);
    t->cells[0] = (octree_cell){.tree = t, .centre = {0.5, 0.5, 0.5}, .half = 0.5, .count = count, .parent = -1};
    t->ncells = 1;
    octree_grow(t, 0);
    return t;
}

static inline void octree_free(octree *t)
{
    free(t->particles);
    free(t->cells);
    free(t);
}

/* Centre of mass and radius; those of the children are known. */
static inline void octree_summarise(octree_cell *c)
{
    const particle *p = &c->tree->particles[c->first];
    c->mass = c->radius = 0.0;
    memset(c->com, 0, sizeof c->com);
    for (int k = 0; k < (c->children ? c->children : c->count); ++k) {
        const octree_cell *d = &c->tree->cells[c->child[k % 8]];
        double mass = c->children ? d->mass : p[k].mass;
        c->mass += mass;
        for (int axis = 0; axis < 3; ++axis) c->com[axis] += mass * (c->children ? d->com[axis] : p[k].x[axis]);
    }
    for (int axis = 0; axis < 3; ++axis) c->com[axis] /= c->mass;
    for (int k = 0; k < c->count; ++k) {
        double r2 = 0.0;
        for (int axis = 0; axis < 3; ++axis) r2 += (p[k].x[axis] - c->com[axis]) * (p[k].x[axis] - c->com[axis]);
        c->radius = fmax(c->radius, sqrt(r2));
    }
}

/* ---- interactions; the constant of gravitation is 1 ---- */

static inline void octree_act_on(particle *p, const double x[3], double mass)
{
    double d[3], r2 = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        d[axis] = x[axis] - p->x[axis];
        r2 += d[axis] * d[axis];
    }
    double factor = mass / (r2 * sqrt(r2));
    for (int axis = 0; axis < 3; ++axis) p->a[axis] += factor * d[axis];
}

/* All pairs with one particle in each cell, or inside one cell. */
static inline void octree_direct(octree_cell *a, octree_cell *b)
{
    particle *p = a->tree->particles;
    for (int i = a->first; i < a->first + a->count; ++i) {
        for (int j = a == b ? i + 1 : b->first; j < b->first + b->count; ++j) {
            octree_act_on(&p[i], p[j].x, p[j].mass);
            octree_act_on(&p[j], p[i].x, p[i].mass);
            ++p[i].seen;
            ++p[j].seen;
        }
    }
}

/* The cell's mass in its centre acts on the particles of another. The error of each is at most
 * M/d^2 3 (r/d)^2 / (1 - r/d)^2 (Salmon and Warren 1994, eq. 33 with all mass at the radius). */
static inline void octree_far(octree_cell *on, const octree_cell *from)
{
    for (int i = on->first; i < on->first + on->count; ++i) {
        particle *p = &on->tree->particles[i];
        double r2 = 0.0;
        for (int axis = 0; axis < 3; ++axis) r2 += (from->com[axis] - p->x[axis]) * (from->com[axis] - p->x[axis]);
        double ratio = from->radius / sqrt(r2);
        octree_act_on(p, from->com, from->mass);
        p->bound += from->mass / r2 * 3.0 * ratio * ratio / ((1.0 - ratio) * (1.0 - ratio));
        p->seen += from->count;
    }
}

/* Whether each of two cells is small from the other: the diagonal of the larger against the distance of the centres. */
static inline bool octree_apart(const octree_cell *a, const octree_cell *b, double opening)
{
    double d2 = 0.0, diagonal = 2.0 * sqrt(3.0) * fmax(a->half, b->half);
    for (int axis = 0; axis < 3; ++axis)
        d2 += (a->centre[axis] - b->centre[axis]) * (a->centre[axis] - b->centre[axis]);
    return diagonal < opening * sqrt(d2);
}

#endif
