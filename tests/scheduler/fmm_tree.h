/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The fast multipole method with integer additions for operators (Morgenstern 2024, miniFMSolvr): a periodic octree in
 * which every leaf is a source of 1 and ends with one from each leaf, 8^depth. A task works on a unit: 8^grain
 * neighbours of a level. Included after app_support.h. */
#ifndef FMM_TREE_H
#define FMM_TREE_H

enum { FMM_LEVELS = 8, FMM_LIST = 216 };

typedef struct fmm_tree {
    int depth, grain;
    int64_t *omega; /* [boxes] what is inside of a box */
    /* [boxes] what acts on a box from all that is not near: its list's part and its parent's are added in any order */
    int64_t *mu;
    int64_t *result; /* [leaves] the near part and the far part are added in any order */
} fmm_tree;

/* Boxes of a level are numbered along the Morton curve: the children of box b are 8 b .. 8 b + 7 of the next level. */
static inline int fmm_boxes(int level)
{
    return 1 << 3 * level;
}

static inline int fmm_first_box(int level)
{
    return (fmm_boxes(level) - 1) / 7;
}

static inline int fmm_units(const fmm_tree *t, int level)
{
    return level <= t->grain ? 1 : fmm_boxes(level - t->grain);
}

static inline int fmm_boxes_of_unit(const fmm_tree *t, int level)
{
    return fmm_boxes(level < t->grain ? level : t->grain);
}

static inline int fmm_first_unit(const fmm_tree *t, int level)
{
    int first = 0;
    for (int l = 0; l < level; ++l) first += fmm_units(t, l);
    return first;
}

/* Units of the next level with children of this one's boxes: from 8 u, or the only one. */
static inline int fmm_child_units(const fmm_tree *t, int level)
{
    return level < t->grain ? 1 : 8;
}

static inline fmm_tree fmm_create(int depth, int grain)
{
    fmm_tree t = {.depth = depth, .grain = grain};
    size_t boxes = (size_t)fmm_first_box(depth + 1);
    t.omega = app_calloc(boxes, sizeof *t.omega);
    t.mu = app_calloc(boxes, sizeof *t.mu);
    t.result = app_calloc((size_t)fmm_boxes(depth), sizeof *t.result);
    return t;
}

static inline void fmm_free(fmm_tree *t)
{
    free(t->omega);
    free(t->mu);
    free(t->result);
}

static inline void fmm_clear(fmm_tree *t)
{
    size_t boxes = (size_t)fmm_first_box(t->depth + 1);
    memset(t->omega, 0x55, boxes * sizeof *t->omega); /* nothing is right that was not computed in this run */
    memset(t->mu, 0, boxes * sizeof *t->mu);
    memset(t->result, 0, (size_t)fmm_boxes(t->depth) * sizeof *t->result);
}

static inline int fmm_wrong_leaves(const fmm_tree *t)
{
    int wrong = 0;
    for (int b = 0; b < fmm_boxes(t->depth); ++b) wrong += t->result[b] != fmm_boxes(t->depth);
    return wrong;
}

/* ---- neighbours ---- */

/* Bits of a coordinate, three places apart: the Morton number is the sum over the axes, shifted by the axis. */
static inline int fmm_spread(int coordinate)
{
    int spread = 0;
    for (int bit = 0; bit < FMM_LEVELS; ++bit) spread |= (coordinate >> bit & 1) << 3 * bit;
    return spread;
}

static inline int fmm_coordinate(int box, int axis)
{
    int coordinate = 0;
    for (int bit = 0; bit < FMM_LEVELS; ++bit) coordinate |= (box >> (3 * bit + axis) & 1) << bit;
    return coordinate;
}

/* What a box meets on one axis: each coordinate once, though the tree is periodic. */
typedef struct fmm_axis {
    int count, spread[6];
    bool near[6];
} fmm_axis;

static inline fmm_axis fmm_meet(int level, int coordinate, bool near)
{
    int size = 1 << level, begin = near ? coordinate - 1 : (coordinate & ~1) - 2, count = near ? 3 : 6;
    fmm_axis a = {.count = count < size ? count : size};
    for (int i = 0; i < a.count; ++i) {
        int at = (begin + i) & (size - 1), distance = (at - coordinate) & (size - 1);
        a.spread[i] = fmm_spread(at);
        a.near[i] = distance <= 1 || distance == size - 1;
    }
    return a;
}

/* Near: the boxes that touch a box, itself included. Else: its interaction list, children of what is near its parent
 * that are not near the box. Each box once. Result: how many. */
static inline int fmm_sources(int level, int box, bool near, int sources[FMM_LIST])
{
    int count = 0;
    fmm_axis x = fmm_meet(level, fmm_coordinate(box, 0), near), y = fmm_meet(level, fmm_coordinate(box, 1), near),
             z = fmm_meet(level, fmm_coordinate(box, 2), near);
    for (int i = 0; i < x.count; ++i) {
        for (int j = 0; j < y.count; ++j) {
            for (int k = 0; k < z.count; ++k) {
                if ((x.near[i] && y.near[j] && z.near[k]) == near)
                    sources[count++] = x.spread[i] | y.spread[j] << 1 | z.spread[k] << 2;
            }
        }
    }
    return count;
}

/* The units that hold the interaction lists of a unit's boxes, each once. Result: how many. */
static inline int fmm_source_units(const fmm_tree *t, int level, int unit, int units[FMM_LIST])
{
    int per_unit = fmm_boxes_of_unit(t, level), count = 0, sources[FMM_LIST];
    for (int b = unit * per_unit; b < (unit + 1) * per_unit; ++b) {
        int n = fmm_sources(level, b, false, sources);
        for (int i = 0; i < n; ++i) {
            int source = sources[i] / per_unit, k = 0;
            /* Boxes of different numbers are in different units when each is a unit. */
            while (per_unit > 1 && k < count && units[k] != source) ++k;
            if (per_unit == 1) k = count;
            if (k == count) units[count++] = source;
        }
    }
    return count;
}

/* ---- operators on a unit ---- */

static inline void fmm_p2m(fmm_tree *t, int unit)
{
    int n = fmm_boxes_of_unit(t, t->depth);
    for (int b = unit * n; b < (unit + 1) * n; ++b) t->omega[fmm_first_box(t->depth) + b] = 1;
}

static inline void fmm_m2m(fmm_tree *t, int level, int unit)
{
    int n = fmm_boxes_of_unit(t, level);
    for (int b = unit * n; b < (unit + 1) * n; ++b) {
        const int64_t *child = &t->omega[fmm_first_box(level + 1) + 8 * b];
        int64_t sum = 0;
        for (int k = 0; k < 8; ++k) sum += child[k];
        t->omega[fmm_first_box(level) + b] = sum;
    }
}

static inline void fmm_m2l(fmm_tree *t, int level, int unit)
{
    int n = fmm_boxes_of_unit(t, level), sources[FMM_LIST];
    for (int b = unit * n; b < (unit + 1) * n; ++b) {
        int count = fmm_sources(level, b, false, sources);
        int64_t sum = 0;
        for (int i = 0; i < count; ++i) sum += t->omega[fmm_first_box(level) + sources[i]];
        t->mu[fmm_first_box(level) + b] += sum;
    }
}

/* What acts on a box acts on its children. */
static inline void fmm_l2l(fmm_tree *t, int level, int unit)
{
    int n = fmm_boxes_of_unit(t, level);
    for (int b = unit * n; b < (unit + 1) * n; ++b) {
        int64_t *child = &t->mu[fmm_first_box(level + 1) + 8 * b];
        for (int k = 0; k < 8; ++k) child[k] += t->mu[fmm_first_box(level) + b];
    }
}

static inline void fmm_l2p(fmm_tree *t, int unit)
{
    int n = fmm_boxes_of_unit(t, t->depth);
    for (int b = unit * n; b < (unit + 1) * n; ++b) t->result[b] += t->mu[fmm_first_box(t->depth) + b];
}

static inline void fmm_p2p(fmm_tree *t, int unit)
{
    int n = fmm_boxes_of_unit(t, t->depth), sources[FMM_LIST];
    for (int b = unit * n; b < (unit + 1) * n; ++b) t->result[b] += fmm_sources(t->depth, b, true, sources);
}

#endif
