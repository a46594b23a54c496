/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "plot_draw_impl.h"

/* Marching squares (W. Lorensen, H. Cline, "Marching cubes", 1987, in a plane): each square between four points holds
 * the pieces of the line between its sides. The values at the edge of the plane go on to the edge of the frame. */

typedef struct square {
    double x[2], y[2]; /* pixels: left and right, bottom and top */
    double value[4];   /* bottom left, bottom right, top right, top left */
} square;

typedef struct point {
    double x, y;
} point;

/* Where the level lies between two corners of a square, one of which is above it. */
static point crossing(const square *s, int from, int to, double level)
{
    static const int right[] = {0, 1, 1, 0}, top[] = {0, 0, 1, 1};
    const double part = (level - s->value[from]) / (s->value[to] - s->value[from]);
    const double x0 = s->x[right[from]], y0 = s->y[top[from]];
    return (point){x0 + part * (s->x[right[to]] - x0), y0 + part * (s->y[top[to]] - y0)};
}

/* Of a saddle, the middle decides which of its corners are joined. */
static void draw_square(cairo_t *cairo, const square *s, double level)
{
    point at[4];
    int n = 0;
    for (int k = 0; k < 4; ++k)
        if ((s->value[k] > level) != (s->value[(k + 1) % 4] > level)) at[n++] = crossing(s, k, (k + 1) % 4, level);
    const double middle = 0.25 * (s->value[0] + s->value[1] + s->value[2] + s->value[3]);
    const int turn = n == 4 && (middle > level) != (s->value[0] > level);
    for (int k = 0; k + 1 < n; k += 2) {
        const point from = at[(k + turn) % n], to = at[(k + 1 + turn) % n];
        cairo_move_to(cairo, from.x, from.y);
        cairo_line_to(cairo, to.x, to.y);
    }
}

/* Index of a point, from -1 to the number of points, and its place in the frame, 0 to 1. */
static trl_gidx locate(const trli_plot_axis *axis, trl_gidx i, double *place)
{
    trl_gidx index = i < 0 ? 0 : i >= axis->points ? axis->points - 1 : i;
    double at = trli_plot_axis_place(axis, i < 0 || (i >= axis->points && !axis->wraps) ? index : i);
    if (i < 0) at = axis->low;
    if (i >= axis->points) at = axis->high;
    if (i >= axis->points && axis->wraps) index = 0;
    *place = (at - axis->low) / (axis->high - axis->low);
    return index;
}

void trli_contour_draw(cairo_t *cairo, const trli_plot_data *data, double level, const trli_plot_area *area)
{
    const trli_plot_axis *x = &data->axis[0], *y = &data->axis[1];
    for (trl_gidx j = -1; j < y->points; ++j) {
        square s;
        double bottom, top;
        const double *low = data->value + locate(y, j, &bottom) * x->points;
        const double *high = data->value + locate(y, j + 1, &top) * x->points;
        s.y[0] = area->y + (1 - bottom) * area->height;
        s.y[1] = area->y + (1 - top) * area->height;
        for (trl_gidx i = -1; i < x->points; ++i) {
            double left, right;
            const trl_gidx from = locate(x, i, &left), to = locate(x, i + 1, &right);
            const double value[4] = {low[from], low[to], high[to], high[from]};
            bool above = false, below = false, finite = true;
            for (int k = 0; k < 4; ++k) {
                s.value[k] = value[k];
                finite = finite && isfinite(value[k]);
                above = above || value[k] > level;
                below = below || !(value[k] > level);
            }
            if (!finite || !above || !below) continue;
            s.x[0] = area->x + left * area->width;
            s.x[1] = area->x + right * area->width;
            draw_square(cairo, &s, level);
        }
    }
}
