/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plot_impl.h>

/* Pixels of the layout. */
enum {
    PAD = 24,
    TITLE_GAP = 10,
    HEADER_GAP = 16,
    FACTOR_ROOM = 20,
    LABEL_GAP = 16,
    BAR_GAP = 22,
    BAR = 18,
    SWATCH = 11,
    SHORTEST = 60, /* side of the area of a plane, however long the other one is */
    PER_ROW = 3
};

static const trli_font title_font = {14, 1.9, {17, 17, 17}};
static const trli_font detail_font = {10.5, 1.25, {85, 85, 85}};
static const trli_font axis_font = {12, 1.5, {17, 17, 17}};
static const trli_colour curve_colour = {38, 84, 155};

/* One panel before it is drawn: its texts and measures. Areas are relative to the panel's own corner. */
typedef struct plan {
    const trli_plot_data *data;
    trli_colour_map map; /* planes */
    double low, high;    /* lines: of the vertical axis */
    trli_ticks across, up, colours;
    char title[80], detail[256], note[160];
    trli_plot_panel panel;
    int raise; /* of the header, where a factor needs its place */
    int width, height;
} plan;

static bool is_plane(const plan *p)
{
    return p->data->naxes == 2;
}

static void write_texts(plan *p)
{
    const trli_plot_data *d = p->data;
    char number[64];
    bool fits = snprintf(p->title, sizeof p->title, "%s", d->name) < (int)sizeof p->title;
    if (!fits) strcpy(p->title + sizeof p->title - 4, "...");
    trli_number_format(d->time, number, sizeof number);
    int used = snprintf(p->detail, sizeof p->detail, "t = %s,  step %" PRId64, number, d->step);
    for (int k = 0; k < d->nplanes; ++k) {
        trli_number_format(d->plane[k].at, number, sizeof number);
        used +=
            snprintf(p->detail + used, sizeof p->detail - (size_t)used, ",  %c = %s", 'x' + d->plane[k].axis, number);
    }
    if (d->not_finite)
        snprintf(p->note, sizeof p->note, "%s: %" PRId64 " value%s not finite", is_plane(p) ? "grey" : "gaps",
                 d->not_finite, d->not_finite == 1 ? "" : "s");
}

/* The largest number of ticks whose labels stay apart. */
static void make_ticks_across(double low, double high, int width, trli_ticks *ticks)
{
    for (int wanted = width / 70; wanted >= 2; --wanted) {
        trli_ticks_make(low, high, wanted, ticks);
        int needed = ticks->n * trli_axis_extent(TRLI_BESIDE_LEFT, ticks);
        if (needed <= width) return;
    }
    trli_ticks_make(low, high, 2, ticks);
}

/* A scale near the one given at which cells are whole numbers of pixels, so that all look alike; the same scale if
 * none is near. */
static double whole_pixels(double scale, double spacing)
{
    double pixels = round(scale * spacing), whole = pixels / spacing;
    return pixels >= 1 && whole > 0.82 * scale && whole < 1.12 * scale ? whole : scale;
}

/* The area of a plane at the scale of its axes, unless one side would be too short to see. */
static void size_plane(plan *p, int width, int height)
{
    const trli_plot_axis *x = &p->data->axis[0], *y = &p->data->axis[1];
    double wide = x->high - x->low, high = y->high - y->low,
           scale = whole_pixels(fmin(width / wide, height / high), x->spacing);
    trli_frame *area = &p->panel.area;
    area->width = (int)fmax(lround(wide * scale), SHORTEST);
    area->height = (int)fmax(lround(high * scale), SHORTEST);
    p->panel.bar = (trli_frame){.width = BAR, .height = area->height};
    trli_colour_map_make(p->data->low, p->data->high, &p->map);
    trli_ticks_make(y->low, y->high, area->height / 60, &p->up);
    trli_ticks_make(p->map.low, p->map.high, area->height / 60, &p->colours);
}

static void size_line(plan *p, int width, int height)
{
    double low = p->data->low, high = p->data->high, largest = fmax(fabs(low), fabs(high));
    p->panel.area.width = width;
    p->panel.area.height = height;
    double margin = 0.5 * (0.1 * high - 0.1 * low);
    if (!(high - low > 1e-13 * largest)) margin = largest > 0 ? 0.1 * largest : 1;
    p->low = isfinite(low - margin) ? low - margin : -1;
    p->high = isfinite(high + margin) ? high + margin : 1;
    trli_ticks_make(p->low, p->high, height / 60, &p->up);
}

static void make_plan(const trli_plot_data *data, bool alone, plan *p)
{
    *p = (plan){.data = data};
    write_texts(p);
    if (is_plane(p))
        size_plane(p, alone ? 640 : 440, alone ? 540 : 380);
    else
        size_line(p, alone ? 740 : 480, alone ? 500 : 340);
    trli_frame *area = &p->panel.area, *bar = &p->panel.bar;
    make_ticks_across(data->axis[0].low, data->axis[0].high, area->width, &p->across);
    area->x = PAD + (int)axis_font.size + LABEL_GAP + trli_axis_extent(TRLI_BESIDE_LEFT, &p->up);
    area->y = (int)(PAD + title_font.size + TITLE_GAP + detail_font.size + HEADER_GAP);
    int right = area->x + area->width + 1;
    if (bar->width) {
        bar->x = right + BAR_GAP;
        int labels = BAR + trli_axis_extent(TRLI_BESIDE_RIGHT, &p->colours);
        right = bar->x + (int)fmax(labels, trli_text_width(&trli_label_font, p->colours.factor));
    }
    int text = (int)fmax(trli_text_width(&title_font, p->title), trli_text_width(&detail_font, p->detail));
    p->raise = p->up.factor[0] || (p->colours.factor[0] && text > area->width) ? FACTOR_ROOM : 0;
    area->y += p->raise;
    bar->y = area->y;
    p->width = PAD + (right > area->x + text ? right : area->x + text);
    p->height =
        area->y + area->height + trli_axis_extent(TRLI_BELOW, &p->across) + LABEL_GAP + (int)axis_font.size + PAD;
    if (p->note[0]) p->height += SWATCH + LABEL_GAP;
}

/* Points that a strip of pixels shows: those whose middles lie in it, or else the one nearest to its centre. */
typedef struct strip {
    trl_gidx first, count;
} strip;

static strip *make_strips(const trli_plot_axis *axis, int pixels)
{
    strip *strips = calloc((size_t)pixels, sizeof *strips);
    for (int i = 0; strips && i < pixels; ++i) {
        double size = (axis->high - axis->low) / pixels / axis->spacing;
        double start = (axis->low - axis->first) / axis->spacing + i * size;
        double first = ceil(start), last = ceil(start + size) - 1;
        if (last < first) first = last = floor(start + 0.5 * size + 0.5);
        if (!axis->wraps) {
            first = fmin(fmax(first, 0), (double)axis->points - 1);
            last = fmin(fmax(last, first), (double)axis->points - 1);
        }
        strips[i] = (strip){(trl_gidx)first, (trl_gidx)(last - first) + 1};
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

static trl_err draw_plane(trl_context *ctx, trli_canvas *canvas, const plan *p)
{
    trl_err err = TRL_OK;
    const trli_frame *area = &p->panel.area, *bar = &p->panel.bar;
    strip *across = make_strips(&p->data->axis[0], area->width), *up = make_strips(&p->data->axis[1], area->height);
    if (!across || !up) {
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to draw '%s'", p->data->name);
        goto done;
    }
    for (int j = 0; j < area->height; ++j) {
        for (int i = 0; i < area->width; ++i) {
            trli_colour colour = trli_colour_of(&p->map, mean_under(p->data, across[i], up[j]));
            trli_canvas_rectangle(canvas, area->x + i, area->y + area->height - 1 - j, 1, 1, colour);
        }
    }
    for (int j = 0; j < bar->height; ++j) {
        int entry = (int)lround((j + 0.5) / bar->height * (TRLI_COLOURS - 1));
        if (!(p->map.high > p->map.low)) entry = (TRLI_COLOURS - 1) / 2;
        trli_canvas_rectangle(canvas, bar->x, bar->y + bar->height - 1 - j, bar->width, 1, p->map.entry[entry]);
    }
    trli_frame_draw(canvas, bar);
    trli_axis_draw(canvas, bar, TRLI_BESIDE_RIGHT, p->map.low, p->map.high, &p->colours);
done:
    free(across);
    free(up);
    return err;
}

static void draw_line(trli_canvas *canvas, const plan *p)
{
    enum { FEW = 40 };
    const trli_frame *area = &p->panel.area;
    const trli_plot_axis *axis = &p->data->axis[0];
    trl_gidx n = axis->points + axis->wraps;
    trli_canvas_clip(canvas, area->x, area->y, area->width, area->height);
    for (trl_gidx i = 0; i < n; ++i) {
        double x[2], y[2];
        for (int k = 0; k < 2; ++k) {
            double value = p->data->value[wrapped(axis, i + k < n ? i + k : i)];
            double at = axis->first + (double)(i + k) * axis->spacing;
            x[k] = area->x + (at - axis->low) / (axis->high - axis->low) * area->width;
            y[k] = area->y + area->height * (1 - (0.5 * value - 0.5 * p->low) / (0.5 * p->high - 0.5 * p->low));
        }
        if (!isfinite(y[0])) continue;
        bool joined = i + 1 < n && isfinite(y[1]);
        trli_canvas_stroke(canvas, x[0], y[0], joined ? x[1] : x[0], joined ? y[1] : y[0], 1.8);
        if (n <= FEW) trli_canvas_stroke(canvas, x[0], y[0], x[0], y[0], 6);
    }
    trli_canvas_paint(canvas, curve_colour);
    trli_canvas_clip(canvas, 0, 0, 0, 0);
}

static void draw_note(trli_canvas *canvas, const plan *p, int bottom)
{
    int x = p->panel.area.x;
    if (is_plane(p)) {
        trli_canvas_rectangle(canvas, x, bottom - SWATCH, SWATCH, SWATCH, trli_colour_of(&p->map, NAN));
        x += SWATCH + 8;
    }
    trli_text_draw(canvas, &detail_font, x, bottom, TRLI_LEFT, p->note);
}

/* Header, frame, axes and note around the data. */
static void draw_surroundings(trli_canvas *canvas, const plan *p)
{
    const trli_frame *area = &p->panel.area;
    const trli_plot_axis *x = &p->data->axis[0], *y = &p->data->axis[1];
    double detail = area->y - HEADER_GAP - p->raise;
    trli_text_draw(canvas, &detail_font, area->x, detail, TRLI_LEFT, p->detail);
    trli_text_draw(canvas, &title_font, area->x, detail - detail_font.size - TITLE_GAP, TRLI_LEFT, p->title);
    trli_frame_draw(canvas, area);
    trli_axis_draw(canvas, area, TRLI_BELOW, x->low, x->high, &p->across);
    trli_axis_draw(canvas, area, TRLI_BESIDE_LEFT, is_plane(p) ? y->low : p->low, is_plane(p) ? y->high : p->high,
                   &p->up);
    int below = area->y + area->height + trli_axis_extent(TRLI_BELOW, &p->across) + LABEL_GAP + (int)axis_font.size;
    trli_text_draw(canvas, &axis_font, area->x + 0.5 * area->width, below, TRLI_CENTRE,
                   (char[]){(char)('x' + x->axis), 0});
    double beside = area->x - trli_axis_extent(TRLI_BESIDE_LEFT, &p->up) - LABEL_GAP + 2;
    if (is_plane(p))
        trli_text_draw(canvas, &axis_font, beside, area->y + 0.5 * (area->height + axis_font.size), TRLI_RIGHT,
                       (char[]){(char)('x' + y->axis), 0});
    else
        trli_text_draw_upwards(canvas, &axis_font, beside, area->y + 0.5 * area->height, p->title);
    if (p->note[0]) draw_note(canvas, p, below + SWATCH + LABEL_GAP);
}

static void move(trli_frame *frame, int x, int y)
{
    frame->x += x;
    frame->y += y;
}

/* Put the panels in rows, their areas at one height in a row; returns the size of the whole. */
static void arrange(plan *plans, int n, int *width, int *height)
{
    *width = *height = 0;
    for (int first = 0; first < n; first += PER_ROW) {
        int last = first + PER_ROW < n ? first + PER_ROW : n, x = 0, top = 0, row = 0;
        for (int i = first; i < last; ++i) top = plans[i].panel.area.y > top ? plans[i].panel.area.y : top;
        for (int i = first; i < last; ++i) {
            int down = top - plans[i].panel.area.y;
            move(&plans[i].panel.area, x, *height + down);
            move(&plans[i].panel.bar, x, *height + down);
            x += plans[i].width;
            row = plans[i].height + down > row ? plans[i].height + down : row;
        }
        *width = x > *width ? x : *width;
        *height += row;
    }
}

trl_err trli_figure_draw(trl_context *ctx, const trli_plot_set *set, trli_canvas **canvas, trli_plot_panel *panels)
{
    trl_err err = TRL_OK;
    int width, height;
    *canvas = NULL;
    plan *plans = calloc((size_t)set->n, sizeof *plans);
    if (!plans) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to draw %d fields", set->n);
    for (int i = 0; i < set->n; ++i) make_plan(&set->panel[i], set->n == 1, &plans[i]);
    arrange(plans, set->n, &width, &height);
    TRL_TRY(trli_canvas_create(ctx, width, height, canvas));
    for (int i = 0; i < set->n; ++i) {
        if (is_plane(&plans[i]))
            TRL_TRY(draw_plane(ctx, *canvas, &plans[i]));
        else
            draw_line(*canvas, &plans[i]);
        draw_surroundings(*canvas, &plans[i]);
        if (panels) panels[i] = plans[i].panel;
    }
done:
    free(plans);
    if (err != TRL_OK) trli_canvas_destroy(canvas);
    return err;
}
