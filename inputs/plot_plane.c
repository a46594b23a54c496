/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "memory_impl.h"
#include "plot_draw_impl.h"

/* Points that a strip of pixels shows: those whose middles lie in it, or else the one nearest to its centre. */
typedef struct strip {
    trl_gidx first, count;
} strip;

/* The first point of an axis with a list of places that is not below a place. */
static trl_gidx lower_bound(const trli_plot_axis *axis, double place)
{
    trl_gidx low = 0, high = axis->points;
    while (low < high) {
        trl_gidx middle = low + (high - low) / 2;
        if (axis->at[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static strip strip_of_list(const trli_plot_axis *axis, double from, double to, bool last)
{
    trl_gidx first = lower_bound(axis, from), end = last ? axis->points : lower_bound(axis, to);
    if (end > first) return (strip){first, end - first};
    const double centre = 0.5 * (from + to);
    if (first == axis->points || (first > 0 && centre - axis->at[first - 1] < axis->at[first] - centre)) --first;
    return (strip){first, 1};
}

static strip strip_of_row(const trli_plot_axis *axis, double start, double size)
{
    double first = ceil(start), last = ceil(start + size) - 1;
    if (last < first) first = last = floor(start + 0.5 * size + 0.5);
    if (!axis->wraps) {
        first = fmin(fmax(first, 0), (double)axis->points - 1);
        last = fmin(fmax(last, first), (double)axis->points - 1);
    }
    return (strip){(trl_gidx)first, (trl_gidx)(last - first) + 1};
}

static strip *make_strips(trl_context *ctx, const trli_plot_axis *axis, int pixels)
{
    strip *strips = trli_new(ctx, (size_t)pixels, sizeof *strips);
    const double size = (axis->high - axis->low) / pixels;
    for (int i = 0; strips && i < pixels; ++i) {
        double from = axis->low + i * size;
        strips[i] = axis->at
                        ? strip_of_list(axis, from, from + size, i == pixels - 1)
                        : strip_of_row(axis, (axis->low - axis->first) / axis->spacing + i * (size / axis->spacing),
                                       size / axis->spacing);
    }
    return strips;
}

static trl_gidx wrapped(const trli_plot_axis *axis, trl_gidx i)
{
    return axis->wraps ? ((i % axis->points) + axis->points) % axis->points : i;
}

/* Mean of the values under a pixel: a plane finer than the picture is not sampled at random. */
static double mean_under(const trli_plot_data *d, strip across, strip up)
{
    double sum = 0;
    double count = (double)across.count * (double)up.count;
    for (trl_gidx j = 0; j < up.count; ++j) {
        const double *row = d->value + wrapped(&d->axis[1], up.first + j) * d->axis[0].points;
        for (trl_gidx i = 0; i < across.count; ++i) sum += row[wrapped(&d->axis[0], across.first + i)] / count;
    }
    return sum;
}

/* The plane as pixels, the top row first. Fails with MEMORY. */
static trl_err make_image(trl_context *ctx, const trli_plot_data *data, const trli_colour_map *map, int width,
                          int height, cairo_surface_t *image)
{
    trl_err err = TRL_OK;
    strip *across = make_strips(ctx, &data->axis[0], width), *up = make_strips(ctx, &data->axis[1], height);
    unsigned char *pixels = cairo_image_surface_get_data(image);
    const ptrdiff_t stride = cairo_image_surface_get_stride(image);
    if (!across || !up || !pixels) TRL_TRY(trli_no_memory(ctx, NULL, "to draw '%s'", data->name));
    cairo_surface_flush(image);
    for (int j = 0; j < height; ++j) {
        uint32_t *row = (uint32_t *)(void *)(pixels + (height - 1 - j) * stride);
        for (int i = 0; i < width; ++i) {
            trli_colour c = trli_colour_of(map, mean_under(data, across[i], up[j]));
            row[i] = (uint32_t)c.red << 16 | (uint32_t)c.green << 8 | c.blue;
        }
    }
    cairo_surface_mark_dirty(image);
done:
    trli_free(across);
    trli_free(up);
    return err;
}

trl_err trli_plane_draw(trl_context *ctx, cairo_t *cairo, const trli_plot_data *data, const trli_colour_map *map,
                        const trli_plot_area *area)
{
    const cairo_surface_type_t type = cairo_surface_get_type(cairo_get_target(cairo));
    const int fine = type == CAIRO_SURFACE_TYPE_IMAGE ? 1 : 2; /* vectors are looked at from near */
    const int width = fine * area->width, height = fine * area->height;
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    trl_err err = make_image(ctx, data, map, width, height, image);
    if (err == TRL_OK) {
        cairo_save(cairo);
        cairo_translate(cairo, area->x, area->y);
        cairo_scale(cairo, 1.0 / fine, 1.0 / fine);
        cairo_set_source_surface(cairo, image, 0, 0);
        cairo_pattern_set_filter(cairo_get_source(cairo), CAIRO_FILTER_NEAREST);
        cairo_rectangle(cairo, 0, 0, width, height);
        cairo_fill(cairo);
        cairo_restore(cairo);
    }
    cairo_surface_destroy(image);
    return err;
}
