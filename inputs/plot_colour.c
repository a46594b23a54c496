/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include "plot_draw_impl.h"

typedef struct lab {
    double lightness, a, b;
} lab;

static const trli_colour grey = {176, 176, 176};

static double encode(double linear)
{
    double c = linear < 0 ? 0 : linear > 1 ? 1 : linear;
    return c <= 0.0031308 ? 12.92 * c : 1.055 * pow(c, 1 / 2.4) - 0.055;
}

static double decode(uint8_t byte)
{
    double c = byte / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static trli_colour from_lab(lab c)
{
    double l = c.lightness + 0.3963377774 * c.a + 0.2158037573 * c.b;
    double m = c.lightness - 0.1055613458 * c.a - 0.0638541728 * c.b;
    double s = c.lightness - 0.0894841775 * c.a - 1.2914855480 * c.b;
    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    double red = encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    double green = encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    double blue = encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
    return (trli_colour){(uint8_t)lround(255 * red), (uint8_t)lround(255 * green), (uint8_t)lround(255 * blue)};
}

double trli_colour_lightness(trli_colour colour)
{
    double red = decode(colour.red), green = decode(colour.green), blue = decode(colour.blue);
    double l = cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
    double m = cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
    double s = cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
    return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
}

static lab polar(double lightness, double chroma, double degrees)
{
    double radians = degrees * 3.14159265358979323846 / 180;
    return (lab){lightness, chroma * cos(radians), chroma * sin(radians)};
}

/* The coefficients keep the whole curve inside sRGB: clipping would bend lightness and hue. */
static lab sequential(double s)
{
    return polar(0.20 + 0.75 * s, 0.115 + 0.22 * s * (1 - s), 270 + 198 * s);
}

static lab diverging(double s)
{
    double u = 2 * s - 1, far = fabs(u);
    return polar(0.96 - 0.56 * far, 0.15 * far * (2 - far), u < 0 ? 260 : 29);
}

static double difference(lab p, lab q)
{
    double l = p.lightness - q.lightness, a = p.a - q.a, b = p.b - q.b;
    return sqrt(l * l + a * a + b * b);
}

/* Entries at equal arc length along the curve, so that equal steps of the value look equally large. */
static void sample(lab (*curve)(double), trli_colour entry[TRLI_COLOURS])
{
    enum { FINE = 4096 };
    double total = 0, walked = 0;
    for (int i = 1; i <= FINE; ++i) total += difference(curve((i - 1) / (double)FINE), curve(i / (double)FINE));
    for (int k = 0, i = 0; k < TRLI_COLOURS; ++k) {
        double target = total * k / (TRLI_COLOURS - 1);
        while (i < FINE) {
            double next = walked + difference(curve(i / (double)FINE), curve((i + 1) / (double)FINE));
            if (next > target) break;
            walked = next;
            ++i;
        }
        entry[k] = from_lab(curve(i / (double)FINE));
    }
}

void trli_colour_map_make(double low, double high, trli_colour_map *map)
{
    double smaller = fmin(-low, high), larger = fmax(-low, high);
    map->diverging = smaller > 0 && smaller >= 0.5 * larger;
    map->low = map->diverging ? -larger : low;
    map->high = map->diverging ? larger : high;
    sample(map->diverging ? diverging : sequential, map->entry);
}

trli_colour trli_colour_of(const trli_colour_map *map, double value)
{
    if (!isfinite(value)) return grey;
    /* Halves: high - low may overflow. */
    double span = 0.5 * map->high - 0.5 * map->low;
    double s = span > 0 ? (0.5 * value - 0.5 * map->low) / span : 0.5;
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    return map->entry[lround(s * (TRLI_COLOURS - 1))];
}

void trli_colour_use(cairo_t *cairo, trli_colour colour)
{
    cairo_set_source_rgb(cairo, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0);
}
