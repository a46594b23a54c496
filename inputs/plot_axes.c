/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plot_impl.h>

#define MINUS "\u2212"

enum { TICK = 6, TICK_GAP = 6 };

const trli_font trli_label_font = {11, 1.4, {34, 34, 34}};
static const trli_colour line_colour = {70, 70, 70};

/* 10^exponent with raised digits. */
static void write_power(int exponent, char *buffer, size_t size)
{
    static const char *const raised[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", abs(exponent));
    int used = snprintf(buffer, size, "10%s", exponent < 0 ? "\u207b" : "");
    for (const char *d = digits; *d && used >= 0 && (size_t)used < size; ++d)
        used += snprintf(buffer + used, size - (size_t)used, "%s", raised[*d - '0']);
}

static void format_digits(double value, int digits, char *buffer, size_t size)
{
    char plain[40], power[40] = "";
    snprintf(plain, sizeof plain, "%.*g", digits, value == 0 ? 0 : value);
    char *exponent = strchr(plain, 'e');
    const char *mantissa = plain[0] == '-' ? plain + 1 : plain;
    if (exponent) {
        write_power(atoi(exponent + 1), power, sizeof power);
        *exponent = 0;
        if (!strcmp(mantissa, "1")) mantissa = "";
    }
    snprintf(buffer, size, "%s%s%s%s", plain[0] == '-' ? MINUS : "", mantissa, exponent && *mantissa ? "\u00d7" : "",
             power);
}

void trli_number_format(double value, char *buffer, size_t size)
{
    format_digits(value, 6, buffer, size);
}

/* The next round number below or above a round number's power of ten: 1, 2, 5. */
static double round_step(double least)
{
    double power = pow(10, floor(log10(least)));
    double part = least / power;
    return power * (part <= 1 + 1e-9 ? 1 : part <= 2 + 1e-9 ? 2 : part <= 5 + 1e-9 ? 5 : 10);
}

/* Number of the first tick: values less than a pixel beyond the end count: an axis from 1e-5 to 1 shows its zero. */
static double first_step(double low, double high, double step)
{
    return ceil((low - 1e-3 * (high - low)) / step);
}

static int count_steps(double low, double high, double step)
{
    return (int)(floor((high + 1e-3 * (high - low)) / step) - first_step(low, high, step)) + 1;
}

static void add_plain(trli_ticks *ticks, double value)
{
    ticks->at[ticks->n] = value;
    trli_number_format(value, ticks->label[ticks->n], sizeof ticks->label[0]);
    ++ticks->n;
}

/* A part of all values so large that the labels would repeat its digits, or 0. */
static double common_offset(double low, double high, double step)
{
    double largest = fmax(fabs(low), fabs(high));
    if (largest < 1e5 * step) return 0;
    double unit = pow(10, ceil(log10(high - low)));
    return round(0.5 * (low + high) / unit) * unit;
}

static void write_factor(double offset, int exponent, trli_ticks *ticks)
{
    char power[40] = "", shift[40] = "";
    if (exponent) write_power(exponent, power, sizeof power);
    if (offset != 0) format_digits(fabs(offset), 15, shift, sizeof shift);
    snprintf(ticks->factor, sizeof ticks->factor, "%s%s%s%s%s", exponent ? "\u00d7" : "", power,
             exponent && offset != 0 ? " " : "",
             offset == 0  ? ""
             : offset < 0 ? MINUS " "
                          : "+ ",
             shift);
}

void trli_ticks_make(double low, double high, int wanted, trli_ticks *ticks)
{
    double span = high - low, largest = fmax(fabs(low), fabs(high));
    *ticks = (trli_ticks){0};
    if (isnan(span)) return;
    if (!(span > 1e-13 * largest)) {
        add_plain(ticks, 0.5 * low + 0.5 * high);
        return;
    }
    if (!(span > 1e-290 && span < 1e290)) { /* near the ends of the number range powers of ten over- or underflow */
        add_plain(ticks, low);
        add_plain(ticks, high);
        return;
    }
    double step = round_step(span / (wanted < 2 ? 2 : wanted));
    while (count_steps(low, high, step) < 2) step = round_step(0.4 * step);
    while (count_steps(low, high, step) > TRLI_TICKS) step = round_step(1.5 * step);
    double offset = common_offset(low, high, step);
    largest = fmax(fabs(low - offset), fabs(high - offset));
    int exponent = (int)floor(log10(largest) + 1e-9);
    if (exponent > -3 && exponent < 4) exponent = 0;
    int decimals = exponent - (int)floor(log10(step) + 1e-9);
    double first = first_step(low, high, step);
    ticks->n = count_steps(low, high, step);
    for (int i = 0; i < ticks->n; ++i) {
        ticks->at[i] = (first + i) * step;
        double shown = (ticks->at[i] - offset) / pow(10, exponent);
        /* Zero with rounding noise would be written as -0.0. */
        if (fabs(shown) * pow(10, exponent) < 1e-6 * step) shown = 0;
        snprintf(ticks->label[i], sizeof ticks->label[i], "%s%.*f", shown < 0 ? MINUS : "", decimals > 0 ? decimals : 0,
                 fabs(shown));
    }
    write_factor(offset, exponent, ticks);
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

void trli_frame_draw(trli_canvas *canvas, const trli_frame *frame)
{
    int left = frame->x - 1, top = frame->y - 1, width = frame->width + 2, height = frame->height + 2;
    trli_canvas_rectangle(canvas, left, top, width, 1, line_colour);
    trli_canvas_rectangle(canvas, left, top + height - 1, width, 1, line_colour);
    trli_canvas_rectangle(canvas, left, top, 1, height, line_colour);
    trli_canvas_rectangle(canvas, left + width - 1, top, 1, height, line_colour);
}

/* A tick below: the label is centred on its digits, so that a minus does not push them aside. */
static void draw_below(trli_canvas *canvas, const trli_frame *frame, double along, const char *label)
{
    int x = frame->x + (int)lround(along * (frame->width + 1)) - 1, y = frame->y + frame->height + 1;
    bool negative = !strncmp(label, MINUS, sizeof MINUS - 1);
    double centre = x + 0.5 - (negative ? 0.5 * trli_text_width(&trli_label_font, MINUS) : 0);
    trli_canvas_rectangle(canvas, x, y, 1, TICK, line_colour);
    trli_text_draw(canvas, &trli_label_font, centre, y + TICK + TICK_GAP + trli_label_font.size, TRLI_CENTRE, label);
}

void trli_axis_draw(trli_canvas *canvas, const trli_frame *frame, trli_axis_side edge, double low, double high,
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
            draw_below(canvas, frame, along, ticks->label[i]);
        } else if (edge == TRLI_BESIDE_LEFT) {
            trli_canvas_rectangle(canvas, frame->x - 1 - TICK, y, TICK, 1, line_colour);
            trli_text_draw(canvas, &trli_label_font, frame->x - 1 - TICK - TICK_GAP, baseline, TRLI_RIGHT,
                           ticks->label[i]);
        } else {
            trli_canvas_rectangle(canvas, right, y, TICK, 1, line_colour);
            trli_text_draw(canvas, &trli_label_font, right + TICK + TICK_GAP + column, baseline, TRLI_RIGHT,
                           ticks->label[i]);
        }
    }
    const int above = frame->y - 14, below = frame->y + frame->height + trli_axis_extent(edge, ticks) + 27;
    if (edge == TRLI_BELOW)
        trli_text_draw(canvas, &trli_label_font, right, below, TRLI_RIGHT, ticks->factor);
    else if (edge == TRLI_BESIDE_LEFT)
        trli_text_draw(canvas, &trli_label_font, frame->x - trli_axis_extent(edge, ticks), above, TRLI_LEFT,
                       ticks->factor);
    else
        trli_text_draw(canvas, &trli_label_font, frame->x, above, TRLI_LEFT, ticks->factor);
}
