/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <trl_grid.h>

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
