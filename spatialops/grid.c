/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "spatialops_impl.h"

const char *trl_location_name(trl_location location)
{
    static const char *const names[] = {
#define LOCATION_NAME(name, bits, text) [bits] = text,
        TRL_LOCATION_LIST(LOCATION_NAME)
#undef LOCATION_NAME
    };
    return names[location & 7];
}

bool trl_location_parse(const char *name, trl_location *location)
{
    for (int bits = 0; bits < 8; ++bits) {
        if (strcmp(name, trl_location_name((trl_location)bits)) == 0) {
            *location = (trl_location)bits;
            return true;
        }
    }
    return false;
}

trl_location trl_location_on(trl_location location, int dim)
{
    return (trl_location)((int)location & ((1 << dim) - 1));
}

static bool on_minus_face(const trl_grid *grid, trl_location location, int axis)
{
    return axis < grid->dim && ((int)location >> axis & 1);
}

trl_gidx trl_grid_points(const trl_grid *grid, trl_location location, int axis)
{
    return grid->cells[axis] + (on_minus_face(grid, location, axis) && !grid->periodic[axis]);
}

double trl_grid_coordinate(const trl_grid *grid, trl_location location, int axis, trl_gidx i)
{
    if (grid->periodic[axis]) {
        i %= grid->cells[axis];
        if (i < 0) i += grid->cells[axis];
    }
    double shift = on_minus_face(grid, location, axis) ? 0.0 : 0.5;
    return grid->origin[axis] + ((double)i + shift) * grid->spacing[axis];
}

bool trli_in_domain(const trl_grid *grid, int axis, double *coordinate)
{
    const double lo = grid->origin[axis], hi = lo + grid->length[axis];
    const double rounding = 4 * DBL_EPSILON * fmax(fabs(lo), fabs(hi)); /* -0.05 + 0.7 is below 0.65 */
    if (!(*coordinate >= lo - rounding && *coordinate <= hi + rounding)) return false;
    *coordinate = fmin(fmax(*coordinate, lo), hi);
    return true;
}

void trli_locate(const trl_grid *grid, int axis, trl_location location, double where, trl_gidx *point, int *by,
                 double *weight)
{
    const int bit = location >> axis & 1;
    /* Rounding may put the end beyond the last face. */
    const double cells = fmin((where - grid->origin[axis]) / grid->spacing[axis], (double)grid->cells[axis]);
    const double s = cells - (bit ? 0 : 0.5), below = floor(s);
    *weight = s - below;
    /* The point is owned; the two values are read from it at offsets by and by + 1. */
    trl_gidx last = trl_grid_points(grid, location, axis) - 1, first = (trl_gidx)below;
    *point = first < 0 ? 0 : first > last ? last : first;
    *by = (int)(first - *point);
}
