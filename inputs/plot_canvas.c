/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <plot_impl.h>

#include "arithmetic_impl.h"

static void forget_mask(trli_canvas *canvas)
{
    canvas->dirty[0] = canvas->width;
    canvas->dirty[1] = canvas->height;
    canvas->dirty[2] = canvas->dirty[3] = 0;
}

static void release(trli_canvas *canvas)
{
    if (!canvas) return;
    free(canvas->pixel);
    free(canvas->mask);
    free(canvas);
}

trl_err trli_canvas_create(trl_context *ctx, int width, int height, trli_canvas **canvas)
{
    size_t n = (size_t)width * (size_t)height;
    trli_canvas *c = calloc(1, sizeof *c);
    if (c) {
        c->width = width;
        c->height = height;
        c->pixel = malloc(3 * n);
        c->mask = calloc(n, 1);
    }
    if (!c || !c->pixel || !c->mask) {
        release(c);
        return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for a picture of %d x %d pixels", width, height);
    }
    memset(c->pixel, 255, 3 * n);
    forget_mask(c);
    trli_canvas_clip(c, 0, 0, 0, 0);
    *canvas = c;
    return TRL_OK;
}

void trli_canvas_destroy(trli_canvas **canvas)
{
    release(*canvas);
    *canvas = NULL;
}

static uint8_t *pixel_at(const trli_canvas *canvas, int x, int y)
{
    return canvas->pixel + 3 * ((size_t)y * (size_t)canvas->width + (size_t)x);
}

trli_colour trli_canvas_get(const trli_canvas *canvas, int x, int y)
{
    const uint8_t *p = pixel_at(canvas, x, y);
    return (trli_colour){p[0], p[1], p[2]};
}

void trli_canvas_rectangle(trli_canvas *canvas, int x, int y, int width, int height, trli_colour colour)
{
    int right = (int)trli_min(x + width, canvas->width), bottom = (int)trli_min(y + height, canvas->height);
    for (int j = (int)trli_max(y, 0); j < bottom; ++j) {
        for (int i = (int)trli_max(x, 0); i < right; ++i) {
            uint8_t *p = pixel_at(canvas, i, j);
            p[0] = colour.red;
            p[1] = colour.green;
            p[2] = colour.blue;
        }
    }
}

void trli_canvas_clip(trli_canvas *canvas, int x, int y, int width, int height)
{
    canvas->clip[0] = width ? (int)trli_max(x, 0) : 0;
    canvas->clip[1] = width ? (int)trli_max(y, 0) : 0;
    canvas->clip[2] = width ? (int)trli_min(x + width, canvas->width) : canvas->width;
    canvas->clip[3] = width ? (int)trli_min(y + height, canvas->height) : canvas->height;
}

/* Pixel bounds of [low, high], in floating point until it is confined: curves may reach far outside the canvas. */
static void confine(double low, double high, int first, int last, int *from, int *to)
{
    *from = (int)fmin(fmax(floor(low), first), last);
    *to = (int)fmin(fmax(ceil(high), first), last);
}

void trli_canvas_stroke(trli_canvas *canvas, double x0, double y0, double x1, double y1, double width)
{
    double reach = 0.5 * width + 0.5, dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
    int left, right, top, bottom;
    confine(fmin(x0, x1) - reach, fmax(x0, x1) + reach, canvas->clip[0], canvas->clip[2], &left, &right);
    confine(fmin(y0, y1) - reach, fmax(y0, y1) + reach, canvas->clip[1], canvas->clip[3], &top, &bottom);
    if (left >= right || top >= bottom) return;
    for (int j = top; j < bottom; ++j) {
        for (int i = left; i < right; ++i) {
            double px = i + 0.5 - x0, py = j + 0.5 - y0;
            double along = square > 0 ? (px * dx + py * dy) / square : 0;
            along = along < 0 ? 0 : along > 1 ? 1 : along;
            double cover = reach - hypot(px - along * dx, py - along * dy);
            if (cover <= 0) continue;
            uint8_t level = (uint8_t)lround(255 * fmin(cover, fmin(width, 1)));
            uint8_t *mask = canvas->mask + (size_t)j * (size_t)canvas->width + (size_t)i;
            if (level > *mask) *mask = level;
        }
    }
    canvas->dirty[0] = (int)trli_min(canvas->dirty[0], left);
    canvas->dirty[1] = (int)trli_min(canvas->dirty[1], top);
    canvas->dirty[2] = (int)trli_max(canvas->dirty[2], right);
    canvas->dirty[3] = (int)trli_max(canvas->dirty[3], bottom);
}

static uint8_t blend(uint8_t below, uint8_t above, uint8_t cover)
{
    return (uint8_t)((below * (255 - cover) + above * cover + 127) / 255);
}

void trli_canvas_paint(trli_canvas *canvas, trli_colour colour)
{
    for (int j = canvas->dirty[1]; j < canvas->dirty[3]; ++j) {
        for (int i = canvas->dirty[0]; i < canvas->dirty[2]; ++i) {
            uint8_t *mask = canvas->mask + (size_t)j * (size_t)canvas->width + (size_t)i;
            uint8_t *p = pixel_at(canvas, i, j);
            p[0] = blend(p[0], colour.red, *mask);
            p[1] = blend(p[1], colour.green, *mask);
            p[2] = blend(p[2], colour.blue, *mask);
            *mask = 0;
        }
    }
    forget_mask(canvas);
}
