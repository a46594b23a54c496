/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot_draw_impl.h"

#define MINUS "\u2212"

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
        if (fabs(shown) < 0.5 * pow(10, decimals > 0 ? -decimals : 0)) shown = 0;
        snprintf(ticks->label[i], sizeof ticks->label[i], "%s%.*f", shown < 0 ? MINUS : "", decimals > 0 ? decimals : 0,
                 fabs(shown));
    }
    write_factor(offset, exponent, ticks);
}

void trli_ticks_make_powers(double low, double high, int wanted, trli_ticks *ticks)
{
    const int first = (int)ceil(low - 1e-9), last = (int)floor(high + 1e-9), most = wanted < 2 ? 2 : wanted;
    *ticks = (trli_ticks){0};
    const int stride = (last - first) / most + 1;
    for (int power = first; power <= last && ticks->n < TRLI_TICKS; power += stride) {
        ticks->at[ticks->n] = power;
        write_power(power, ticks->label[ticks->n], sizeof ticks->label[0]);
        ++ticks->n;
    }
}
