/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "plot_draw_impl.h"

static const trli_colour curve_colour = {38, 84, 155};

/* A curve from the data to pixels. */
typedef struct curve {
    cairo_t *cairo;
    const trli_plot_data *data;
    const trli_plot_area *area;
    trli_line_axis up;
    bool pen_down;
} curve;

typedef struct pixel {
    double x, y;
} pixel;

/* Where a point lies; y is not finite where its value is not. */
static pixel pixel_of(const curve *c, trl_gidx i)
{
    const trli_plot_axis *axis = &c->data->axis[0];
    double value = c->data->value[i % axis->points];
    if (c->up.logarithmic) value = log10(value);
    const double at = i < axis->points ? trli_plot_axis_place(axis, i) : axis->high;
    /* Halves: high - low may overflow. */
    const double up = (0.5 * value - 0.5 * c->up.low) / (0.5 * c->up.high - 0.5 * c->up.low);
    return (pixel){c->area->x + (at - axis->low) / (axis->high - axis->low) * c->area->width,
                   c->area->y + c->area->height * (1 - up)};
}

/* cairo's numbers are small: what is far outside of the frame is only a direction. */
static void draw_to(curve *c, pixel p)
{
    const double far = 1e5;
    if (!isfinite(p.y)) {
        c->pen_down = false;
        return;
    }
    p.y = fmin(fmax(p.y, -far), far);
    if (!c->pen_down) cairo_move_to(c->cairo, p.x, p.y);
    cairo_line_to(c->cairo, p.x, p.y);
    c->pen_down = true;
}

/* Many points share a column of pixels: its first, lowest, highest and last point look like all of them. */
static void draw_columns(curve *c, trl_gidx n)
{
    for (trl_gidx i = 0; i < n;) {
        pixel p = pixel_of(c, i), low = p, high = p, last = p;
        const double column = floor(p.x);
        draw_to(c, p);
        for (; i < n; ++i) {
            p = pixel_of(c, i);
            if (floor(p.x) != column || !isfinite(p.y)) break;
            if (p.y < low.y) low = p;
            if (p.y > high.y) high = p;
            last = p;
        }
        if (isfinite(low.y)) {
            draw_to(c, low);
            draw_to(c, high);
            draw_to(c, last);
        }
        for (; i < n && !isfinite(pixel_of(c, i).y); ++i) c->pen_down = false;
    }
}

void trli_line_draw(cairo_t *cairo, const trli_plot_data *data, const trli_line_axis *axis, const trli_plot_area *area)
{
    enum { FEW = 40 };
    curve c = {.cairo = cairo, .data = data, .area = area, .up = *axis};
    const trl_gidx n = data->axis[0].points + data->axis[0].wraps;
    cairo_save(cairo);
    cairo_rectangle(cairo, area->x, area->y, area->width, area->height);
    cairo_clip(cairo);
    trli_colour_use(cairo, curve_colour);
    if (n > 4 * (trl_gidx)area->width) {
        draw_columns(&c, n);
    } else {
        for (trl_gidx i = 0; i < n; ++i) draw_to(&c, pixel_of(&c, i));
    }
    cairo_set_line_width(cairo, 1.8);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cairo, CAIRO_LINE_CAP_ROUND);
    cairo_stroke(cairo);
    for (trl_gidx i = 0; i < n && n <= FEW; ++i) {
        const pixel p = pixel_of(&c, i);
        if (!isfinite(p.y) || fabs(p.y) > 1e5) continue;
        cairo_arc(cairo, p.x, p.y, 3, 0, 6.28318530717958647692);
        cairo_fill(cairo);
    }
    cairo_restore(cairo);
}
