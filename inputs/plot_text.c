/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot_draw_impl.h"

enum { ROOM = 512 }; /* of a text in bytes; longer ones are cut */

/* The font inside cairo, which it draws where fontconfig finds none, has the characters of ASCII only. */
static const struct {
    const char *text, *plain;
} spellings[] = {{"\u2212", "-"}, {"\u00d7", "x"}, {"\u207b", "-"}, {"\u2070", "0"}, {"\u00b9", "1"},
                 {"\u00b2", "2"}, {"\u00b3", "3"}, {"\u2074", "4"}, {"\u2075", "5"}, {"\u2076", "6"},
                 {"\u2077", "7"}, {"\u2078", "8"}, {"\u2079", "9"}};
enum { FIRST_RAISED = 2, SPELLINGS = sizeof spellings / sizeof *spellings };

static cairo_scaled_font_t *open_font(const trli_font *font)
{
    const double capitals = 0.729; /* height of a capital of DejaVu Sans, over the size of the font */
    cairo_matrix_t size, device;
    cairo_font_face_t *face =
        cairo_toy_font_face_create("DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_font_options_t *options = cairo_font_options_create();
    /* The same shapes and widths in pixels as in vectors. */
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_matrix_init_scale(&size, font->size / capitals, font->size / capitals);
    cairo_matrix_init_identity(&device);
    cairo_scaled_font_t *scaled = cairo_scaled_font_create(face, &size, &device, options);
    cairo_font_options_destroy(options);
    cairo_font_face_destroy(face);
    return scaled;
}

static bool has_glyphs(cairo_scaled_font_t *font)
{
    static const char needed[] = "\u2212\u00d7\u207b\u2074";
    cairo_glyph_t *glyph = NULL;
    int n = 0;
    if (cairo_scaled_font_get_type(font) == CAIRO_FONT_TYPE_USER) return false;
    if (cairo_scaled_font_text_to_glyphs(font, 0, 0, needed, -1, &glyph, &n, NULL, NULL, NULL)) return false;
    bool all = n > 0;
    for (int i = 0; i < n; ++i) all = all && glyph[i].index != 0;
    cairo_glyph_free(glyph);
    return all;
}

/* Bytes of the UTF-8 character at s, or 0: it is none. */
static size_t character(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;
    size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : 0;
    for (size_t i = 1; i < n; ++i)
        if ((c[i] & 0xc0) != 0x80) return 0;
    const unsigned code = n == 3 ? (c[0] & 0xfU) << 12 | (c[1] & 0x3fU) << 6 | (c[2] & 0x3fU) : 0x800;
    return code < 0x800 || (code >= 0xd800 && code < 0xe000) || code >= 0xfffe ? 0 : n;
}

/* Text that the font has: names in files need not be UTF-8, which cairo insists on. */
static void spell(const char *text, bool plain, char out[ROOM])
{
    bool raised = false;
    char *end = out;
    while (*text && end < out + ROOM - 4) {
        size_t n = character(text);
        int s = 0;
        while (plain && s < SPELLINGS && strncmp(text, spellings[s].text, strlen(spellings[s].text))) ++s;
        const bool spelled = plain && s < SPELLINGS;
        if (spelled && s >= FIRST_RAISED && !raised) *end++ = '^';
        raised = spelled && s >= FIRST_RAISED;
        const char *from = spelled ? spellings[s].plain : n == 0 || (plain && n > 1) ? "?" : text;
        const size_t length = from == text ? n : 1;
        memcpy(end, from, length);
        end += length;
        text += n ? n : 1;
    }
    *end = 0;
}

static double width_of(cairo_scaled_font_t *font, const char *spelled)
{
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(font, spelled, &extents);
    return extents.x_advance;
}

double trli_text_width(const trli_font *font, const char *text)
{
    char spelled[ROOM];
    cairo_scaled_font_t *scaled = open_font(font);
    spell(text, !has_glyphs(scaled), spelled);
    const double width = width_of(scaled, spelled);
    cairo_scaled_font_destroy(scaled);
    return width;
}

/* Draw from the present origin on, whose axes may be turned. */
static void draw(cairo_t *cairo, const trli_font *font, trli_anchor anchor, const char *text)
{
    static const double part[] = {[TRLI_LEFT] = 0, [TRLI_CENTRE] = 0.5, [TRLI_RIGHT] = 1};
    char spelled[ROOM];
    cairo_matrix_t size;
    cairo_scaled_font_t *scaled = open_font(font);
    cairo_font_options_t *options = cairo_font_options_create();
    spell(text, !has_glyphs(scaled), spelled);
    cairo_scaled_font_get_font_matrix(scaled, &size);
    cairo_scaled_font_get_font_options(scaled, options);
    cairo_set_font_face(cairo, cairo_scaled_font_get_font_face(scaled));
    cairo_set_font_matrix(cairo, &size);
    cairo_set_font_options(cairo, options);
    trli_colour_use(cairo, font->colour);
    cairo_move_to(cairo, -part[anchor] * width_of(scaled, spelled), 0);
    cairo_show_text(cairo, spelled);
    cairo_new_path(cairo);
    cairo_font_options_destroy(options);
    cairo_scaled_font_destroy(scaled);
}

void trli_text_draw(cairo_t *cairo, const trli_font *font, double x, double y, trli_anchor anchor, const char *text)
{
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    draw(cairo, font, anchor, text);
    cairo_restore(cairo);
}

void trli_text_draw_upwards(cairo_t *cairo, const trli_font *font, double x, double y, const char *text)
{
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_rotate(cairo, -1.57079632679489661923);
    draw(cairo, font, TRLI_CENTRE, text);
    cairo_restore(cairo);
}
