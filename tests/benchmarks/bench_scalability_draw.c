/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pictures of the scalability study: speed over counts, both logarithmic, in one panel for each problem. */
#include <math.h>
#include <stdio.h>

#include "bench_scalability_impl.h"
#include "plot_draw_impl.h"

/* Pixels of the layout. */
enum { WIDTH = 300, HEIGHT = 240, LEFT = 64, RIGHT = 148, ABOVE = 44, BELOW = 56, PER_ROW = 3, LINES_MOST = 16 };

static const trli_font title_font = {11, {17, 17, 17}}, small_font = {8.5, {85, 85, 85}};
static const trli_colour grey = {150, 150, 150};

typedef struct panel {
    cairo_t *cairo;
    trli_plot_area area;
    double across, up[2]; /* binary logarithms at the ends; the left one is 0 */
} panel;

static double x_of(const panel *p, double count)
{
    return p->area.x + p->area.width * (0.04 + 0.92 * log2(count) / p->across);
}

static double y_of(const panel *p, double speed)
{
    return p->area.y + p->area.height * (p->up[1] - log2(speed)) / (p->up[1] - p->up[0]);
}

static double speed_of(const trli_curves *c, const trli_study_point *p)
{
    return c->point[0].time.median / p->time.median;
}

static void choose_ends(const trli_curves *c, panel *p)
{
    int most = 2;
    double low = 1, high = 2;
    for (int i = 1; i < c->n; ++i) {
        if (c->point[i].n == 0) continue;
        if (c->point[i].place > most) most = c->point[i].place;
        low = fmin(low, speed_of(c, &c->point[i]));
        high = fmax(high, speed_of(c, &c->point[i]));
    }
    p->across = log2(most);
    p->up[0] = floor(log2(low));
    p->up[1] = ceil(log2(high) + 0.2);
}

static void draw_axes(const panel *p)
{
    char text[16];
    trli_plot_area_draw(p->cairo, &p->area);
    for (int e = 0; e <= (int)p->across; ++e) {
        const double x = x_of(p, exp2(e));
        snprintf(text, sizeof text, "%d", 1 << e);
        trli_fill(p->cairo, (int)x, p->area.y + p->area.height, 1, 5, grey);
        trli_text_draw(p->cairo, &small_font, x, p->area.y + p->area.height + 18, TRLI_CENTRE, text);
    }
    for (int e = (int)p->up[0]; e <= (int)p->up[1]; ++e) {
        const double y = y_of(p, exp2(e));
        snprintf(text, sizeof text, "%g", exp2(e));
        trli_fill(p->cairo, p->area.x - 5, (int)y, 5, 1, grey);
        trli_text_draw(p->cairo, &small_font, p->area.x - 9, y + 4, TRLI_RIGHT, text);
    }
}

static void start_line(const panel *p, trli_colour colour, double width)
{
    cairo_new_path(p->cairo);
    trli_colour_use(p->cairo, colour);
    cairo_set_line_width(p->cairo, width);
}

/* As many times faster as there are threads, and no faster than memory lets all cores be. */
static void draw_bounds(const panel *p, const trli_curves *c, const trli_study_costs *costs)
{
    const double roof = trli_study_roofline(c, costs->cores, costs), most = exp2(p->across);
    cairo_save(p->cairo);
    cairo_rectangle(p->cairo, p->area.x, p->area.y, p->area.width, p->area.height);
    cairo_clip(p->cairo);
    start_line(p, grey, 1);
    cairo_set_dash(p->cairo, (double[]){5, 4}, 2, 0);
    cairo_move_to(p->cairo, x_of(p, 1), y_of(p, 1));
    cairo_line_to(p->cairo, x_of(p, most), y_of(p, most));
    cairo_stroke(p->cairo);
    if (roof > 0) {
        const double y = y_of(p, c->point[0].time.median / roof);
        cairo_set_dash(p->cairo, (double[]){2, 3}, 2, 0);
        cairo_move_to(p->cairo, p->area.x, y);
        cairo_line_to(p->cairo, p->area.x + p->area.width, y);
        cairo_stroke(p->cairo);
    }
    cairo_restore(p->cairo);
}

/* The line of one count of other threads; false: it has no points. */
static bool draw_line(const panel *p, const trli_curves *c, int curve, trli_colour colour)
{
    bool any = false;
    start_line(p, colour, 1.6);
    for (int i = 1; i < c->n; ++i) {
        const trli_study_point *q = &c->point[i];
        if (q->n == 0 || q->curve != curve) continue;
        const double x = x_of(p, q->place), y = y_of(p, speed_of(c, q));
        if (any) {
            cairo_line_to(p->cairo, x, y);
            cairo_stroke(p->cairo);
        }
        any = true;
        cairo_arc(p->cairo, x, y, 2.6, 0, 2 * acos(-1));
        cairo_fill(p->cairo);
        cairo_move_to(p->cairo, x, y);
    }
    cairo_new_path(p->cairo);
    return any;
}

/* Names of what varies alone have no count. */
static void draw_key(const panel *p, const trli_curves *c, int curve, int row, trli_colour colour)
{
    static const char *const alone[] = {"ranks", "tasks", "operators"};
    const int x = p->area.x + p->area.width + 10, y = p->area.y + 8 + 17 * row;
    char text[48];
    if (curve < 0)
        snprintf(text, sizeof text, "%s", alone[-curve - 1]);
    else
        snprintf(text, sizeof text, "%d %s", curve, c->lines);
    trli_fill(p->cairo, x, y - 4, 9, 9, colour);
    trli_text_draw(p->cairo, &small_font, x + 14, y + 4, TRLI_LEFT, text);
}

static void draw_panel(cairo_t *cairo, int x, int y, const trli_curves *c, const trli_study_costs *costs)
{
    panel p = {.cairo = cairo, .area = {x + LEFT, y + ABOVE, WIDTH, HEIGHT}};
    trli_colour_map map;
    int curve[LINES_MOST], n = 0;
    char size[80];
    for (int i = 1; i < c->n; ++i) {
        int known = 0;
        while (known < n && curve[known] != c->point[i].curve) ++known;
        if (known == n && n < LINES_MOST && c->point[i].n > 0) curve[n++] = c->point[i].curve;
    }
    snprintf(size, sizeof size, "%d x %d x %d cells, %d equations", c->cells[0], c->cells[1], c->cells[2],
             c->equations);
    trli_text_draw(cairo, &title_font, p.area.x, p.area.y - 22, TRLI_LEFT, c->name);
    trli_text_draw(cairo, &small_font, p.area.x, p.area.y - 7, TRLI_LEFT, size);
    trli_text_draw(cairo, &small_font, p.area.x + 0.5 * WIDTH, p.area.y + HEIGHT + 38, TRLI_CENTRE, c->along);
    trli_text_draw_upwards(cairo, &small_font, p.area.x - 44, p.area.y + 0.5 * HEIGHT, "times the speed of one thread");
    choose_ends(c, &p);
    draw_axes(&p);
    draw_bounds(&p, c, costs);
    trli_colour_map_make(1, 2, &map);
    for (int k = 0; k < n; ++k) {
        const trli_colour colour = map.entry[(TRLI_COLOURS - 1) * (2 * k + 1) * 4 / (10 * n)];
        if (draw_line(&p, c, curve[k], colour)) draw_key(&p, c, curve[k], k, colour);
    }
}

trl_err trli_study_draw(trl_context *ctx, const char *folder, const trli_curves *curves, int ncurves,
                        const trli_study_costs *costs)
{
    const int columns = ncurves < PER_ROW ? ncurves : PER_ROW, rows = (ncurves + PER_ROW - 1) / PER_ROW;
    const int wide = LEFT + WIDTH + RIGHT, high = ABOVE + HEIGHT + BELOW;
    char path[4096], title[128];
    trli_picture *picture;
    trl_err err = TRL_OK;
    snprintf(path, sizeof path, "%s/figure-%s.png", folder, curves[0].figure);
    snprintf(title, sizeof title, "Figure %s: %s", curves[0].figure, curves[0].shows);
    TRL_TRY(trli_picture_begin(ctx, path, columns * wide, rows * high + ABOVE, &picture));
    cairo_t *cairo = trli_picture_cairo(picture);
    trli_text_draw(cairo, &title_font, LEFT, 22, TRLI_LEFT, title);
    trli_text_draw(cairo, &small_font, LEFT, 38, TRLI_LEFT, "dashed: ideal; dotted: what memory allows all cores");
    for (int i = 0; i < ncurves; ++i)
        draw_panel(cairo, i % PER_ROW * wide, ABOVE + i / PER_ROW * high, &curves[i], costs);
    err = trli_picture_end(&picture, err);
done:
    return err;
}
