/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "memory_impl.h"
#include "plot_draw_impl.h"

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

static const trli_font title_font = {14, {17, 17, 17}};
static const trli_font detail_font = {10.5, {85, 85, 85}};
static const trli_font axis_font = {12, {17, 17, 17}};

/* One panel before it is drawn: its texts and measures. Areas are relative to the panel's own corner until the panels
 * are arranged. */
typedef struct plan {
    const trli_plot_data *data;
    trli_colour_map map; /* planes */
    double low, high;    /* of the colour bar, or of the vertical axis of a line */
    bool logarithmic;    /* of that axis, whose ends are exponents then */
    trli_ticks across, up, colours;
    char title[80], detail[256], note[160];
    trli_plot_panel panel;
    int raise; /* of the header, where a factor needs its place */
    int width, height;
} plan;

struct trli_figure {
    trl_context *ctx;
    trli_plot_style style;
    int n;
    plan *plans; /* [n] */
    int width, height;
};

static bool is_plane(const plan *p)
{
    return p->data->naxes == 2;
}

/* Whether an axis of the picture is time. */
static bool is_history(const plan *p)
{
    return p->data->axis[p->data->naxes - 1].axis == TRLI_PLOT_TIME;
}

static void write_texts(plan *p)
{
    const trli_plot_data *d = p->data;
    char number[64];
    int used;
    bool fits = snprintf(p->title, sizeof p->title, "%s", d->name) < (int)sizeof p->title;
    if (!fits) strcpy(p->title + sizeof p->title - 4, "...");
    if (is_history(p)) {
        used = snprintf(p->detail, sizeof p->detail, "%" PRId64 " times,  to step %" PRId64,
                        d->axis[d->naxes - 1].points, d->step);
    } else {
        trli_number_format(d->time, number, sizeof number);
        used = snprintf(p->detail, sizeof p->detail, "t = %s,  step %" PRId64, number, d->step);
    }
    for (int k = 0; k < d->nplanes; ++k) {
        trli_number_format(d->plane[k].at, number, sizeof number);
        used += snprintf(p->detail + used, sizeof p->detail - (size_t)used, ",  %c = %s",
                         trli_plot_axis_name(d->plane[k].axis), number);
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

/* The area of a plane at the scale of its axes, unless one side would be too short to see; space and time have no
 * common scale. */
static void size_plane(plan *p, const trli_plot_style *style, int width, int height)
{
    const trli_plot_axis *x = &p->data->axis[0], *y = &p->data->axis[1];
    const bool history = is_history(p);
    double wide = x->high - x->low, high = y->high - y->low;
    double scale = whole_pixels(history ? width / wide : fmin(width / wide, height / high), x->spacing);
    trli_plot_area *area = &p->panel.area;
    area->width = (int)fmax(lround(wide * scale), SHORTEST);
    area->height = history ? height : (int)fmax(lround(high * scale), SHORTEST);
    p->panel.bar = (trli_plot_area){.width = BAR, .height = area->height};
    trli_colour_map_make(p->low, p->high, &p->map);
    if (!style->ranged) {
        p->low = p->map.low;
        p->high = p->map.high;
    }
    trli_ticks_make(y->low, y->high, area->height / 60, &p->up);
    trli_ticks_make(p->low, p->high, area->height / 60, &p->colours);
}

static void size_line(plan *p, const trli_plot_style *style, int width, int height)
{
    const bool logarithmic = p->logarithmic = p->data->logarithmic && p->low > 0; /* unless --range includes 0 */
    double low = logarithmic ? log10(p->low) : p->low, high = logarithmic ? log10(p->high) : p->high;
    double largest = fmax(fabs(low), fabs(high));
    p->panel.area.width = width;
    p->panel.area.height = height;
    double margin = 0.5 * (0.1 * high - 0.1 * low);
    if (!(high - low > 1e-13 * largest)) margin = largest > 0 ? 0.1 * largest : 1;
    if (style->ranged) margin = 0;
    p->low = isfinite(low - margin) ? low - margin : -1;
    p->high = isfinite(high + margin) ? high + margin : 1;
    if (logarithmic)
        trli_ticks_make_powers(p->low, p->high, height / 60, &p->up);
    else
        trli_ticks_make(p->low, p->high, height / 60, &p->up);
}

static void size_area(plan *p, const trli_plot_style *style, bool alone)
{
    const int size = style->size;
    if (is_plane(p) && size)
        size_plane(p, style, size, size);
    else if (is_plane(p))
        size_plane(p, style, alone ? 640 : 440, alone ? 540 : 380);
    else if (size)
        size_line(p, style, size, 2 * size / 3);
    else
        size_line(p, style, alone ? 740 : 480, alone ? 500 : 340);
}

static void make_plan(const trli_plot_data *data, const trli_plot_style *style, bool alone, plan *p)
{
    *p = (plan){
        .data = data, .low = style->ranged ? style->low : data->low, .high = style->ranged ? style->high : data->high};
    write_texts(p);
    size_area(p, style, alone);
    trli_plot_area *area = &p->panel.area, *bar = &p->panel.bar;
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
    /* Not as the text is long: pictures of a movie keep their areas. */
    p->raise = p->up.factor[0] || p->colours.factor[0] ? FACTOR_ROOM : 0;
    area->y += p->raise;
    bar->y = area->y;
    p->width = PAD + (right > area->x + text ? right : area->x + text);
    p->height =
        area->y + area->height + trli_axis_extent(TRLI_BELOW, &p->across) + LABEL_GAP + (int)axis_font.size + PAD;
    if (p->note[0]) p->height += SWATCH + LABEL_GAP;
}

static void draw_bar(cairo_t *cairo, const plan *p)
{
    const trli_plot_area *bar = &p->panel.bar;
    for (int j = 0; j < bar->height; ++j) {
        const double part = (j + 0.5) / bar->height, value = (1 - part) * p->low + part * p->high;
        trli_fill(cairo, bar->x, bar->y + bar->height - 1 - j, bar->width, 1, trli_colour_of(&p->map, value));
    }
    trli_plot_area_draw(cairo, bar);
    trli_axis_draw(cairo, bar, TRLI_BESIDE_RIGHT, p->low, p->high, &p->colours);
}

/* Lines at n equal steps inside the range, light where the plane is dark, and their marks on the bar. */
static void draw_contours(cairo_t *cairo, const plan *p, int n)
{
    const trli_plot_area *area = &p->panel.area, *bar = &p->panel.bar;
    cairo_save(cairo);
    cairo_rectangle(cairo, area->x, area->y, area->width, area->height);
    cairo_rectangle(cairo, bar->x, bar->y, bar->width, bar->height);
    cairo_clip(cairo);
    for (int k = 1; k <= n && p->high > p->low; ++k) {
        const double part = (double)k / (n + 1), level = (1 - part) * p->low + part * p->high;
        const bool dark = trli_colour_lightness(trli_colour_of(&p->map, level)) < 0.6;
        cairo_set_source_rgba(cairo, dark, dark, dark, 0.8);
        trli_contour_draw(cairo, p->data, level, area);
        cairo_move_to(cairo, bar->x, bar->y + (1 - part) * bar->height);
        cairo_rel_line_to(cairo, bar->width, 0);
        cairo_set_line_cap(cairo, CAIRO_LINE_CAP_ROUND);
        cairo_set_line_width(cairo, 1);
        cairo_stroke(cairo);
    }
    cairo_restore(cairo);
}

static trl_err draw_plane(const trli_figure *figure, cairo_t *cairo, const plan *p)
{
    trl_err err;
    TRL_TRY(trli_plane_draw(figure->ctx, cairo, p->data, &p->map, &p->panel.area));
    draw_bar(cairo, p);
    draw_contours(cairo, p, figure->style.contours);
done:
    return err;
}

static void draw_note(cairo_t *cairo, const plan *p, int bottom)
{
    int x = p->panel.area.x;
    if (is_plane(p)) {
        trli_fill(cairo, x, bottom - SWATCH, SWATCH, SWATCH, trli_colour_of(&p->map, NAN));
        x += SWATCH + 8;
    }
    trli_text_draw(cairo, &detail_font, x, bottom, TRLI_LEFT, p->note);
}

/* Header, frame, axes and note around the data. */
static void draw_surroundings(cairo_t *cairo, const plan *p)
{
    const trli_plot_area *area = &p->panel.area;
    const trli_plot_axis *x = &p->data->axis[0], *y = &p->data->axis[1];
    double detail = area->y - HEADER_GAP - p->raise;
    trli_text_draw(cairo, &detail_font, area->x, detail, TRLI_LEFT, p->detail);
    trli_text_draw(cairo, &title_font, area->x, detail - detail_font.size - TITLE_GAP, TRLI_LEFT, p->title);
    trli_plot_area_draw(cairo, area);
    trli_axis_draw(cairo, area, TRLI_BELOW, x->low, x->high, &p->across);
    trli_axis_draw(cairo, area, TRLI_BESIDE_LEFT, is_plane(p) ? y->low : p->low, is_plane(p) ? y->high : p->high,
                   &p->up);
    int below = area->y + area->height + trli_axis_extent(TRLI_BELOW, &p->across) + LABEL_GAP + (int)axis_font.size;
    trli_text_draw(cairo, &axis_font, area->x + 0.5 * area->width, below, TRLI_CENTRE,
                   (char[]){trli_plot_axis_name(x->axis), 0});
    double beside = area->x - trli_axis_extent(TRLI_BESIDE_LEFT, &p->up) - LABEL_GAP + 2;
    if (is_plane(p))
        trli_text_draw(cairo, &axis_font, beside, area->y + 0.5 * (area->height + axis_font.size), TRLI_RIGHT,
                       (char[]){trli_plot_axis_name(y->axis), 0});
    else
        trli_text_draw_upwards(cairo, &axis_font, beside, area->y + 0.5 * area->height, p->title);
    if (p->note[0]) draw_note(cairo, p, below + SWATCH + LABEL_GAP);
}

static void move(trli_plot_area *frame, int x, int y)
{
    frame->x += x;
    frame->y += y;
}

/* Put the panels in rows, their areas at one height in a row; sets the size of the whole. */
static void arrange(trli_figure *figure)
{
    plan *plans = figure->plans;
    for (int first = 0; first < figure->n; first += PER_ROW) {
        int last = first + PER_ROW < figure->n ? first + PER_ROW : figure->n, x = 0, top = 0, row = 0;
        for (int i = first; i < last; ++i) top = plans[i].panel.area.y > top ? plans[i].panel.area.y : top;
        for (int i = first; i < last; ++i) {
            int down = top - plans[i].panel.area.y;
            move(&plans[i].panel.area, x, figure->height + down);
            move(&plans[i].panel.bar, x, figure->height + down);
            x += plans[i].width;
            row = plans[i].height + down > row ? plans[i].height + down : row;
        }
        figure->width = x > figure->width ? x : figure->width;
        figure->height += row;
    }
}

trl_err trli_figure_create(trl_context *ctx, const trli_plot_set *set, const trli_plot_style *style,
                           trli_figure **figure)
{
    trli_figure *f = *figure = trli_new(ctx, 1, sizeof *f);
    if (f) f->plans = trli_new(ctx, (size_t)set->n, sizeof *f->plans);
    if (!f || !f->plans) {
        trli_figure_destroy(figure);
        return trli_no_memory(ctx, NULL, "to draw %d fields", set->n);
    }
    f->ctx = ctx;
    f->style = *style;
    f->n = set->n;
    for (int i = 0; i < set->n; ++i) make_plan(&set->panel[i], style, set->n == 1, &f->plans[i]);
    arrange(f);
    return TRL_OK;
}

void trli_figure_size(const trli_figure *figure, int *width, int *height)
{
    *width = figure->width;
    *height = figure->height;
}

const trli_plot_panel *trli_figure_panel(const trli_figure *figure, int panel)
{
    return &figure->plans[panel].panel;
}

trl_err trli_figure_draw(const trli_figure *figure, cairo_t *cairo)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < figure->n; ++i) {
        const plan *p = &figure->plans[i];
        if (is_plane(p))
            TRL_TRY(draw_plane(figure, cairo, p));
        else
            trli_line_draw(cairo, p->data, &(trli_line_axis){p->logarithmic, p->low, p->high}, &p->panel.area);
        draw_surroundings(cairo, p);
    }
done:
    return err;
}

void trli_figure_destroy(trli_figure **figure)
{
    if (*figure) trli_free((*figure)->plans);
    trli_free(*figure);
    *figure = NULL;
}
