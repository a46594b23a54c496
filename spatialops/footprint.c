/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <trl_field.h>

static trl_offsets hull_of(const trl_offsets *a, const trl_offsets *b)
{
    trl_offsets hull;
    for (int axis = 0; axis < 3; ++axis) {
        hull.lo[axis] = a->lo[axis] < b->lo[axis] ? a->lo[axis] : b->lo[axis];
        hull.hi[axis] = a->hi[axis] > b->hi[axis] ? a->hi[axis] : b->hi[axis];
    }
    return hull;
}

/* In double: the offsets of a wide hull outnumber any integer type. Exact where it matters, for footprints of real
 * stencils. */
static double count(const trl_offsets *part)
{
    double n = 1;
    for (int axis = 0; axis < 3; ++axis) {
        double width = (double)part->hi[axis] - part->lo[axis] + 1;
        n *= width > 0 ? width : 0;
    }
    return n;
}

/* Offsets that the hull of two parts adds to their union; 0: the union is a box. */
static double added_by_hull(const trl_offsets *a, const trl_offsets *b)
{
    trl_offsets hull = hull_of(a, b), both;
    for (int axis = 0; axis < 3; ++axis) {
        both.lo[axis] = a->lo[axis] > b->lo[axis] ? a->lo[axis] : b->lo[axis];
        both.hi[axis] = a->hi[axis] < b->hi[axis] ? a->hi[axis] : b->hi[axis];
    }
    return count(&hull) - (count(a) + count(b) - count(&both));
}

static void remove_part(trl_footprint *f, int i)
{
    for (--f->n; i < f->n; ++i) f->part[i] = f->part[i + 1];
}

/* Join parts into `part` as long as a union with it is a box. */
static void absorb(trl_footprint *f, trl_offsets *part)
{
    for (int i = 0; i < f->n;) {
        if (added_by_hull(&f->part[i], part) > 0) {
            ++i;
        } else {
            *part = hull_of(&f->part[i], part);
            remove_part(f, i);
            i = 0;
        }
    }
}

/* Of all pairs of held parts and `part`, replace the one with the cheapest hull by that hull, left in `part`. */
static void join_cheapest(trl_footprint *f, trl_offsets *part)
{
    int first = 0, second = 0;
    double least = added_by_hull(&f->part[0], part);
    for (int i = 0; i < f->n; ++i) {
        for (int j = i + 1; j <= f->n; ++j) {
            double added = added_by_hull(&f->part[i], j < f->n ? &f->part[j] : part);
            if (added > least) continue;
            first = i;
            second = j;
            least = added;
        }
    }
    trl_offsets left = *part;
    *part = hull_of(&f->part[first], second < f->n ? &f->part[second] : part);
    if (second < f->n) f->part[second] = left;
    remove_part(f, first);
}

void trl_footprint_add(trl_footprint *f, const trl_offsets *part)
{
    trl_offsets fresh = *part;
    absorb(f, &fresh);
    while (f->n == TRL_FOOTPRINT_MAX) {
        join_cheapest(f, &fresh);
        absorb(f, &fresh);
    }
    f->part[f->n++] = fresh;
}

void trl_footprint_add_all(trl_footprint *f, const trl_footprint *other)
{
    trl_footprint from = *other; /* f may be other */
    for (int i = 0; i < from.n; ++i) trl_footprint_add(f, &from.part[i]);
}

void trl_footprint_compose(const trl_footprint *f, const trl_footprint *by, trl_footprint *sum)
{
    trl_footprint result = {.n = 0};
    for (int i = 0; i < f->n; ++i) {
        for (int j = 0; j < by->n; ++j) {
            trl_offsets part;
            for (int axis = 0; axis < 3; ++axis) {
                part.lo[axis] = f->part[i].lo[axis] + by->part[j].lo[axis];
                part.hi[axis] = f->part[i].hi[axis] + by->part[j].hi[axis];
            }
            trl_footprint_add(&result, &part);
        }
    }
    *sum = result;
}

trl_offsets trl_footprint_hull(const trl_footprint *f)
{
    trl_offsets hull = {{0, 0, 0}, {0, 0, 0}};
    if (f->n > 0) hull = f->part[0];
    for (int i = 1; i < f->n; ++i) hull = hull_of(&hull, &f->part[i]);
    return hull;
}
