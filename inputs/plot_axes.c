/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include "plot_draw_impl.h"

#define MINUS "\u2212"

enum { TICK = 6, TICK_GAP = 6 };

const trli_font trli_label_font = {11, {34, 34, 34}};
static const trli_colour line_colour = {70, 70, 70};

void trli_fill(cairo_t *cairo, int x, int y, int width, int height, trli_colour colour)
{
    trli_colour_use(cairo, colour);
    cairo_rectangle(cairo, x, y, width, height);
    cairo_fill(cairo);
}

static double widest(const trli_ticks *ticks)
{
    double width = 0;
    for (int i = 0; i < ticks->n; ++i) width = fmax(width, trli_text_width(&trli_label_font, ticks->label[i]));
    return width;
}

int trli_axis_extent(trli_axis_side edge, const trli_ticks *ticks)
{
    double label = edge == TRLI_BELOW ? trli_label_font.size : widest(ticks);
    return 1 + TICK + TICK_GAP + (int)ceil(label);
}

void trli_plot_area_draw(cairo_t *cairo, const trli_plot_area *frame)
{
    int left = frame->x - 1, top = frame->y - 1, width = frame->width + 2, height = frame->height + 2;
    trli_fill(cairo, left, top, width, 1, line_colour);
    trli_fill(cairo, left, top + height - 1, width, 1, line_colour);
    trli_fill(cairo, left, top, 1, height, line_colour);
    trli_fill(cairo, left + width - 1, top, 1, height, line_colour);
}

/* A tick below: the label is centred on its digits, so that a minus does not push them aside. */
static void draw_below(cairo_t *cairo, const trli_plot_area *frame, double along, const char *label)
{
    int x = frame->x + (int)lround(along * (frame->width + 1)) - 1, y = frame->y + frame->height + 1;
    bool negative = !strncmp(label, MINUS, sizeof MINUS - 1);
    double centre = x + 0.5 - (negative ? 0.5 * trli_text_width(&trli_label_font, MINUS) : 0);
    trli_fill(cairo, x, y, 1, TICK, line_colour);
    trli_text_draw(cairo, &trli_label_font, centre, y + TICK + TICK_GAP + trli_label_font.size, TRLI_CENTRE, label);
}

void trli_axis_draw(cairo_t *cairo, const trli_plot_area *frame, trli_axis_side edge, double low, double high,
                    const trli_ticks *ticks)
{
    double column = widest(ticks);
    int right = frame->x + frame->width + 1;
    for (int i = 0; i < ticks->n; ++i) {
        double half = 0.5 * high - 0.5 * low;
        double along = half > 0 ? fmin(fmax((0.5 * ticks->at[i] - 0.5 * low) / half, 0), 1) : 0.5;
        int y = frame->y + frame->height - (int)lround(along * (frame->height + 1));
        double baseline = y + ceil(0.5 * trli_label_font.size);
        if (edge == TRLI_BELOW) {
            draw_below(cairo, frame, along, ticks->label[i]);
        } else if (edge == TRLI_BESIDE_LEFT) {
            trli_fill(cairo, frame->x - 1 - TICK, y, TICK, 1, line_colour);
            trli_text_draw(cairo, &trli_label_font, frame->x - 1 - TICK - TICK_GAP, baseline, TRLI_RIGHT,
                           ticks->label[i]);
        } else {
            trli_fill(cairo, right, y, TICK, 1, line_colour);
            trli_text_draw(cairo, &trli_label_font, right + TICK + TICK_GAP + column, baseline, TRLI_RIGHT,
                           ticks->label[i]);
        }
    }
    const int above = frame->y - 14, below = frame->y + frame->height + trli_axis_extent(edge, ticks) + 27;
    if (edge == TRLI_BELOW)
        trli_text_draw(cairo, &trli_label_font, right, below, TRLI_RIGHT, ticks->factor);
    else if (edge == TRLI_BESIDE_LEFT)
        trli_text_draw(cairo, &trli_label_font, frame->x - trli_axis_extent(edge, ticks), above, TRLI_LEFT,
                       ticks->factor);
    else
        trli_text_draw(cairo, &trli_label_font, frame->x, above, TRLI_LEFT, ticks->factor);
}
