/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A stroke font. A glyph is the path of a round pen on a grid where capitals are 14 units high, small letters 10,
 * descenders 4 and digits 10 wide. M x y moves, L draws a line, C a cubic Bezier curve; V and H draw a quarter of an
 * ellipse that leaves the current point vertically or horizontally; D x y is a dot. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <plot_impl.h>

typedef struct glyph {
    uint32_t code;
    double advance;
    const char *path;
} glyph;

#define SPACING 1.2 /* units between glyphs beside what their advances hold */

enum { MINUS = 0x2212, TIMES = 0xd7, MIDDLE_DOT = 0xb7, UNKNOWN = 0 };

static const glyph glyphs[] = {
    {UNKNOWN, 10, "M1.5 0 L8.5 0 L8.5 14 L1.5 14 L1.5 0"},
    {' ', 5.4, ""},
    {'!', 4.4, "M2.2 14 L2.2 4.4 D2.2 0"},
    {'"', 6.8, "M1.8 14 L1.8 10 M5 14 L5 10"},
    {'#', 13, "M4 0 L5.8 14 M8.2 0 L10 14 M1.8 9.3 L12 9.3 M1.4 4.7 L11.6 4.7"},
    {'$', 10,
     "M8.4 10.4 C8 11.8 6.8 12.4 5.2 12.4 H1.9 9.7 C1.9 7.8 3.4 7.4 5.2 7 C7.2 6.6 8.7 6 8.7 3.9 V5.2 1.4 C3.4 1.4 2 "
     "2.2 1.5 3.6 "
     "M5.2 14.6 L5.2 -0.8"},
    {'%', 15.8,
     "M3.8 14 H6.4 10.8 V3.8 7.6 H1.2 10.8 V3.8 14 M12 6.4 H14.6 3.2 V12 0 H9.4 3.2 V12 6.4 M12.2 14 L3.6 0"},
    {'&', 12.4,
     "M11.4 0 L3.4 9.2 C2.8 10 2.6 10.6 2.6 11.2 V5.2 14 H7.8 11.4 C7.8 9.4 6 8.6 4.4 7.6 C2.6 6.6 1.4 5.4 1.4 3.6 V5 "
     "0 "
     "C7.8 0 10 2.8 10.4 6.6"},
    {'\'', 3.6, "M1.8 14 L1.8 10"},
    {'(', 5.6, "M4.6 15.6 C2.7 13.2 1.8 10 1.8 6.4 C1.8 2.8 2.7 -0.4 4.6 -2.8"},
    {')', 5.6, "M1 15.6 C2.9 13.2 3.8 10 3.8 6.4 C3.8 2.8 2.9 -0.4 1 -2.8"},
    {'*', 8, "M4 14 L4 8 M1.4 12.5 L6.6 9.5 M6.6 12.5 L1.4 9.5"},
    {'+', 11, "M5.5 11 L5.5 2 M1 6.5 L10 6.5"},
    {',', 4.4, "M2.4 0.2 L1.5 -2.6"},
    {'-', 7.2, "M1.2 5.4 L6 5.4"},
    {'.', 4.4, "D2.2 0"},
    {'/', 7.2, "M0.8 -1.6 L6.4 15.4"},
    {'0', 10, "M1.5 9 V5 14 H8.5 9 L8.5 5 V5 0 H1.5 5 L1.5 9"},
    {'1', 10, "M2.2 11.2 L5.6 14 L5.6 0"},
    {'2', 10, "M1.7 10.3 V5 14 H8.3 10.2 C8.3 7 4.5 4.5 1.5 0 L8.6 0"},
    {'3', 10, "M1.8 11 V5 14 H8.1 10.7 V4.8 7.4 H8.5 3.8 V5 0 H1.5 3.2"},
    {'4', 10, "M6.9 0 L6.9 14 L1.2 4 L9 4"},
    {'5', 10, "M8 14 L2.6 14 L2 7.4 C2.8 8.4 3.9 9 5 9 H8.5 4.5 V5 0 C3.2 0 2 1 1.5 2.8"},
    {'6', 10, "M8 12.2 C7.4 13.4 6.4 14 5.2 14 C2.6 14 1.5 11 1.5 6.5 L1.5 4.4 V5 0 H8.5 4.4 V5 8.7 H1.5 4.6"},
    {'7', 10, "M1.4 14 L8.6 14 L4 0"},
    {'8', 10, "M5 14 H8.1 10.8 V5 7.6 H1.9 10.8 V5 14 M5 7.6 H8.5 3.8 V5 0 H1.5 3.8 V5 7.6"},
    {'9', 10, "M2 1.8 C2.6 0.6 3.6 0 4.8 0 C7.4 0 8.5 3 8.5 7.5 L8.5 9.6 V5 14 H1.5 9.6 V5 5.3 H8.5 9.4"},
    {':', 4.4, "D2.2 0 D2.2 8.6"},
    {';', 4.4, "M2.4 0.2 L1.5 -2.6 D2.2 8.6"},
    {'<', 11, "M9.6 11 L1.4 6.5 L9.6 2"},
    {'=', 11, "M1.2 8.6 L9.8 8.6 M1.2 4.4 L9.8 4.4"},
    {'>', 11, "M1.4 11 L9.6 6.5 L1.4 2"},
    {'?', 9.2, "M1.3 10.8 V4.7 14 H8 10.6 C8 8.2 4.6 7.8 4.6 4.4 D4.6 0"},
    {'@', 16.4,
     "M12 -1.9 C10.8 -2.6 9.5 -3 8 -3 H1.4 4.7 V8.2 12.4 H15 5.6 C15 3 14 1.6 12.6 1.6 C11.4 1.6 11 2.4 11 3.6 L11 8.2 "
     "M11 5 V8.1 8.2 H5.2 5 V8.1 1.8 H11 5"},
    {'A', 12, "M0.9 0 L6 14 L11.1 0 M2.7 4.7 L9.3 4.7"},
    {'B', 12, "M2 0 L2 14 L6.4 14 H9.8 10.7 V6.4 7.4 L2 7.4 M6.4 7.4 H10.4 3.7 V6.4 0 L2 0"},
    {'C', 12.4, "M11 11.2 C10.2 13 8.6 14 6.8 14 H1.6 7 V6.8 0 C8.6 0 10.2 1 11 2.8"},
    {'D', 12.8, "M2 0 L2 14 L5.5 14 H11 7 V5.5 0 L2 0"},
    {'E', 11, "M9.4 14 L2 14 L2 0 L9.6 0 M2 7.3 L8.7 7.3"},
    {'F', 10.4, "M9.4 14 L2 14 L2 0 M2 7.1 L8.6 7.1"},
    {'G', 13, "M11 11.4 C10.2 13 8.7 14 6.8 14 H1.6 7 V6.8 0 C9.2 0 11.2 1.3 11.2 3.5 L11.2 6.6 L7.4 6.6"},
    {'H', 12.8, "M2 0 L2 14 M10.8 0 L10.8 14 M2 7.2 L10.8 7.2"},
    {'I', 4.4, "M2.2 0 L2.2 14"},
    {'J', 8.6, "M6.6 14 L6.6 3.8 V3.7 0 H0.8 3"},
    {'K', 11.6, "M2 0 L2 14 M10.4 14 L2 5.2 M4.8 8.1 L10.8 0"},
    {'L', 9.8, "M2 14 L2 0 L9 0"},
    {'M', 14.4, "M2 0 L2 14 L7.2 4 L12.4 14 L12.4 0"},
    {'N', 12.8, "M2 0 L2 14 L10.8 0 L10.8 14"},
    {'O', 14, "M1.6 7 V7 14 H12.4 7 V7 0 H1.6 7"},
    {'P', 11.4, "M2 0 L2 14 L6.4 14 H10.2 10.2 V6.4 6.4 L2 6.4"},
    {'Q', 14, "M1.6 7 V7 14 H12.4 7 V7 0 H1.6 7 M8.4 3.4 L12.2 -0.8"},
    {'R', 11.8, "M2 0 L2 14 L6.4 14 H10.2 10.2 V6.4 6.4 L2 6.4 M6.2 6.4 L10.6 0"},
    {'S', 11.4,
     "M9.6 11.4 C9 13 7.6 14 5.8 14 H1.9 10.5 C1.9 8.2 3.6 7.7 5.9 7.2 C8.4 6.7 10 5.9 10 3.6 V5.8 0 C3.6 0 1.9 1 1.3 "
     "2.9"},
    {'T', 11.2, "M0.8 14 L10.4 14 M5.6 14 L5.6 0"},
    {'U', 12.6, "M2 14 L2 4.5 V6.3 0 H10.6 4.5 L10.6 14"},
    {'V', 11.6, "M0.8 14 L5.8 0 L10.8 14"},
    {'W', 16.6, "M0.8 14 L4.3 0 L8.3 14 L12.3 0 L15.8 14"},
    {'X', 11, "M1 14 L10 0 M10 14 L1 0"},
    {'Y', 11.2, "M0.8 14 L5.6 6.6 L10.4 14 M5.6 6.6 L5.6 0"},
    {'Z', 11.2, "M1.4 14 L9.8 14 L1.2 0 L10 0"},
    {'[', 5.4, "M4.6 15.6 L2 15.6 L2 -2.8 L4.6 -2.8"},
    {'\\', 7.2, "M0.8 15.4 L6.4 -1.6"},
    {']', 5.4, "M0.8 15.6 L3.4 15.6 L3.4 -2.8 L0.8 -2.8"},
    {'^', 10, "M1.4 9 L5 14 L8.6 9"},
    {'_', 9, "M0.4 -2.4 L8.6 -2.4"},
    {'`', 4.8, "M1.4 14.6 L3.4 12"},
    {'a', 10.6, "M2 8 C2.6 9.4 3.6 10 5.2 10 H8.6 6.8 L8.6 0 M8.6 5.8 L5 5.8 H1.5 2.9 V4.6 0 H8.6 3.4"},
    {'b', 11, "M2 14 L2 0 M2 5 V5.7 10 H9.4 5 V5.7 0 H2 5"},
    {'c', 9.8, "M8.6 8 C8 9.3 6.9 10 5.5 10 H1.5 5 V5.5 0 C6.9 0 8 0.7 8.6 2"},
    {'d', 11, "M9 14 L9 0 M9 5 V5.3 10 H1.6 5 V5.3 0 H9 5"},
    {'e', 10.6, "M1.7 5.2 L9 5.2 V5.4 10 H1.6 5 V5.6 0 C7 0 8.2 0.6 8.8 1.8"},
    {'f', 6.6, "M6.6 14 L5.8 14 H3 11.2 L3 0 M0.7 10 L6.2 10"},
    {'g', 11, "M9 10 L9 -0.6 V5.4 -4 C4 -4 2.9 -3.5 2.2 -2.5 M9 5 V5.3 10 H1.6 5 V5.3 0 H9 5"},
    {'h', 11, "M2 14 L2 0 M2 6 V5.6 10 H9 6.2 L9 0"},
    {'i', 4, "M2 10 L2 0 D2 13.6"},
    {'j', 4.6, "M2.6 10 L2.6 -1.4 V0.2 -4 D2.6 13.6"},
    {'k', 9.8, "M2 14 L2 0 M8.6 10 L2 3.7 M4.4 6 L9 0"},
    {'l', 5, "M2 14 L2 2.4 V4.2 0 L4.6 0"},
    {'m', 16, "M2 10 L2 0 M2 6.4 V5.1 10 H8 6.6 L8 0 M8 6.4 V11.1 10 H14 6.6 L14 0"},
    {'n', 11, "M2 10 L2 0 M2 6 V5.6 10 H9 6.2 L9 0"},
    {'o', 11, "M1.5 5 V5.5 10 H9.5 5 V5.5 0 H1.5 5"},
    {'p', 11, "M2 10 L2 -4 M2 5 V5.7 10 H9.4 5 V5.7 0 H2 5"},
    {'q', 11, "M9 10 L9 -4 M9 5 V5.3 10 H1.6 5 V5.3 0 H9 5"},
    {'r', 7.2, "M2 10 L2 0 M2 6 V5.6 10 L6.6 10"},
    {'s', 9.6,
     "M7.8 8.2 C7.3 9.4 6.2 10 4.9 10 H1.8 7.5 C1.8 5.8 3.2 5.5 4.9 5.2 C6.8 4.8 8.3 4.3 8.3 2.6 V4.9 0 C3.3 0 2 0.6 "
     "1.3 1.9"},
    {'t', 7, "M3 13 L3 2.8 V5.6 0 L6.4 0 M0.7 10 L6.2 10"},
    {'u', 11, "M2 10 L2 3.8 V5.4 0 H9 4 M9 10 L9 0"},
    {'v', 9.6, "M0.8 10 L4.8 0 L8.8 10"},
    {'w', 14.4, "M0.8 10 L3.8 0 L7.2 10 L10.6 0 L13.6 10"},
    {'x', 9.4, "M1 10 L8.4 0 M8.4 10 L1 0"},
    {'y', 9.8, "M0.8 10 L4.9 0 M9 10 L4.9 0 L4 -2.2 C3.5 -3.5 2.8 -4 1.6 -4 L1 -4"},
    {'z', 9.2, "M1.3 10 L8 10 L1.1 0 L8.2 0"},
    {'{', 6, "M5.4 15.6 L5 15.6 H3 13.2 L3 9.2 V1.2 6.4 H3 3.6 L3 -0.4 V5 -2.8 L5.4 -2.8"},
    {'|', 4, "M2 15.6 L2 -2.8"},
    {'}', 6, "M0.6 15.6 L1 15.6 H3 13.2 L3 9.2 V4.8 6.4 H3 3.6 L3 -0.4 V1 -2.8 L0.6 -2.8"},
    {'~', 11.2, "M1.2 5.6 C1.8 7.4 2.8 7.9 3.9 7.6 C5.2 7.2 6 5.7 7.3 5.3 C8.4 5 9.4 5.6 10 7.3"},
    {MINUS, 11, "M1.2 6.5 L9.8 6.5"},
    {TIMES, 11, "M2 10 L9 3 M9 10 L2 3"},
    {MIDDLE_DOT, 4.4, "D2.2 6.5"},
};

static const glyph *find_glyph(uint32_t code)
{
    for (size_t i = 0; i < sizeof glyphs / sizeof glyphs[0]; ++i) {
        if (glyphs[i].code == code) return &glyphs[i];
    }
    return &glyphs[0];
}

/* The next character of UTF-8; bytes that are none count as one unknown character each. */
static uint32_t next_character(const unsigned char **text)
{
    const unsigned char *s = *text;
    uint32_t code = s[0];
    int more = code < 0x80 ? 0 : code >> 5 == 6 ? 1 : code >> 4 == 14 ? 2 : code >> 3 == 30 ? 3 : -1;
    *text = s + 1;
    if (more <= 0) return more ? UNKNOWN : code;
    code &= 0x3fu >> more;
    for (int i = 1; i <= more; ++i) {
        if (s[i] >> 6 != 2) return UNKNOWN;
        code = code << 6 | (s[i] & 0x3f);
    }
    *text = s + 1 + more;
    return code;
}

/* Raised digits and minus are small copies of the ordinary glyphs. */
static uint32_t raised_base(uint32_t code)
{
    if (code == 0xb9) return '1';
    if (code == 0xb2 || code == 0xb3) return code - 0xb0 + '0';
    if (code == 0x2070 || (code >= 0x2074 && code <= 0x2079)) return code - 0x2070 + '0';
    return code == 0x207b ? MINUS : UNKNOWN;
}

/* Where a glyph goes: its grid is scaled and shifted to pixels, with the lines that eyes rest on (baseline, tops of
 * small letters and capitals, outermost stems) moved to the middle of pixels, which keeps text sharp. */
typedef struct pen {
    trli_canvas *canvas;
    double x, y; /* of the glyph's origin: the middle of a pixel */
    double scale, weight;
    double left, right;
    bool upwards;
    double at[2]; /* current point on the grid */
} pen;

static double snap_height(const pen *p, double y)
{
    static const double knot[] = {-4, 0, 10, 14, 18};
    int k = y < 0 ? 0 : y < 10 ? 1 : y < 14 ? 2 : 3;
    double low = round(knot[k] * p->scale), high = round(knot[k + 1] * p->scale);
    return low + (high - low) * (y - knot[k]) / (knot[k + 1] - knot[k]);
}

static double snap_across(const pen *p, double x)
{
    double left = round(p->left * p->scale), right = left + round((p->right - p->left) * p->scale);
    return p->right > p->left ? left + (right - left) * (x - p->left) / (p->right - p->left) : left;
}

static void line_to(pen *p, double x, double y)
{
    double ax = snap_across(p, p->at[0]), ay = snap_height(p, p->at[1]), bx = snap_across(p, x), by = snap_height(p, y);
    if (p->upwards)
        trli_canvas_stroke(p->canvas, p->x - ay, p->y - ax, p->x - by, p->y - bx, p->weight);
    else
        trli_canvas_stroke(p->canvas, p->x + ax, p->y - ay, p->x + bx, p->y - by, p->weight);
    p->at[0] = x;
    p->at[1] = y;
}

static void curve_to(pen *p, const double control[4], double x, double y)
{
    enum { PIECES = 10 };
    double x0 = p->at[0], y0 = p->at[1];
    for (int i = 1; i <= PIECES; ++i) {
        double s = i / (double)PIECES, r = 1 - s, a = r * r * r, b = 3 * r * r * s, c = 3 * r * s * s, d = s * s * s;
        line_to(p, a * x0 + b * control[0] + c * control[2] + d * x, a * y0 + b * control[1] + c * control[3] + d * y);
    }
}

static void quarter_to(pen *p, bool vertical_first, double x, double y)
{
    const double handle = 0.5523; /* a circle to 3e-4 */
    double far_x = p->at[0] + handle * (x - p->at[0]), far_y = p->at[1] + handle * (y - p->at[1]);
    double near_x = x - handle * (x - p->at[0]), near_y = y - handle * (y - p->at[1]);
    double up[4] = {p->at[0], far_y, near_x, y}, across[4] = {far_x, p->at[1], x, near_y};
    curve_to(p, vertical_first ? up : across, x, y);
}

/* Outermost stems; the control points of a curve never lie far outside of it. */
static void find_sides(pen *p, const char *path)
{
    p->left = INFINITY;
    p->right = -INFINITY;
    for (const char *s = path; *s;) {
        char *end;
        double x = strtod(s + (*s >= 'A'), &end);
        (void)strtod(end, &end);
        p->left = fmin(p->left, x);
        p->right = fmax(p->right, x);
        s = end + strspn(end, " ");
    }
}

static void draw_glyph(pen *p, const char *path)
{
    find_sides(p, path);
    for (const char *s = path; *s;) {
        char command = *s;
        double number[6];
        int n = command == 'C' ? 6 : 2;
        ++s;
        for (int i = 0; i < n; ++i) {
            char *end;
            number[i] = strtod(s, &end);
            s = end;
        }
        s += strspn(s, " ");
        double x = number[n - 2], y = number[n - 1];
        if (command == 'M' || command == 'D') {
            p->at[0] = x;
            p->at[1] = y;
        }
        if (command == 'C')
            curve_to(p, number, x, y);
        else if (command == 'V' || command == 'H')
            quarter_to(p, command == 'V', x, y);
        else if (command == 'L' || command == 'D')
            line_to(p, x, y);
    }
}

/* Walk along the text; draws where p->canvas is not NULL. Returns its width. */
static double walk(pen p, const trli_font *font, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    double scale = (font->size - font->weight) / 14, along = 0, x = p.x, y = p.y;
    while (*s) {
        uint32_t code = next_character(&s), base = raised_base(code);
        const glyph *g = find_glyph(base ? base : code);
        double raise = base ? round(7.6 * scale) : 0;
        p.scale = base ? 0.68 * scale : scale;
        p.weight = base ? 0.9 * font->weight : font->weight;
        p.x = p.upwards ? x - raise : x + along;
        p.y = p.upwards ? y - along : y - raise;
        if (p.canvas) draw_glyph(&p, g->path);
        along += round((g->advance + SPACING) * p.scale);
    }
    return along;
}

double trli_text_width(const trli_font *font, const char *text)
{
    return walk((pen){0}, font, text);
}

void trli_text_draw(trli_canvas *canvas, const trli_font *font, double x, double y, trli_anchor anchor,
                    const char *text)
{
    double width = trli_text_width(font, text);
    double start = anchor == TRLI_LEFT ? x : anchor == TRLI_CENTRE ? x - 0.5 * width : x - width;
    pen p = {.canvas = canvas, .x = floor(start + 0.5) + 0.5, .y = floor(y - 0.5 * font->weight) + 0.5};
    (void)walk(p, font, text);
    trli_canvas_paint(canvas, font->colour);
}

void trli_text_draw_upwards(trli_canvas *canvas, const trli_font *font, double x, double y, const char *text)
{
    double start = y + 0.5 * trli_text_width(font, text);
    pen p = {
        .canvas = canvas, .x = floor(x - 0.5 * font->weight) + 0.5, .y = floor(start + 0.5) + 0.5, .upwards = true};
    (void)walk(p, font, text);
    trli_canvas_paint(canvas, font->colour);
}
