/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The parts of `trellis plot` that need no file: colours, text, ticks. */
#include <math.h>

#include <plot_draw_impl.h>
#include <trl_test.h>

START_TEST(lightness_of_the_sequential_colours_rises_evenly)
{
    trli_colour_map map;
    trli_colour_map_make(0, 1, &map);
    ck_assert(!map.diverging);
    double first = trli_colour_lightness(map.entry[0]), last = trli_colour_lightness(map.entry[TRLI_COLOURS - 1]);
    ck_assert_double_eq_tol(first, 0.20, 0.01);
    ck_assert_double_eq_tol(last, 0.95, 0.01);
    const int stride = 8;
    double mean = (last - first) / (TRLI_COLOURS - 1);
    for (int i = 0; i + 1 < TRLI_COLOURS; ++i)
        ck_assert_double_gt(trli_colour_lightness(map.entry[i + 1]), trli_colour_lightness(map.entry[i]) - 0.002);
    for (int i = 0; i + stride < TRLI_COLOURS; ++i) {
        double rise = trli_colour_lightness(map.entry[i + stride]) - trli_colour_lightness(map.entry[i]);
        ck_assert_double_gt(rise, 0.6 * stride * mean);
        ck_assert_double_lt(rise, 1.5 * stride * mean);
    }
}
END_TEST

START_TEST(sequential_colours_go_from_blue_over_red_to_yellow)
{
    trli_colour_map map;
    trli_colour_map_make(0, 1, &map);
    trli_colour low = trli_colour_of(&map, 0), middle = trli_colour_of(&map, 0.5), high = trli_colour_of(&map, 1);
    ck_assert(low.blue > 2 * low.red && low.blue > 2 * low.green);
    ck_assert(middle.red > middle.green && middle.red > middle.blue);
    ck_assert(high.red > 230 && high.green > 230 && high.blue < 190);
}
END_TEST

START_TEST(data_around_zero_get_diverging_colours_that_are_neutral_at_zero)
{
    trli_colour_map map;
    trli_colour_map_make(-1, 0.5, &map);
    ck_assert(map.diverging);
    ck_assert(map.low == -1 && map.high == 1);
    trli_colour zero = trli_colour_of(&map, 0);
    ck_assert(abs(zero.red - zero.blue) <= 2 && abs(zero.red - zero.green) <= 2 && zero.red > 235);
    for (int i = 1; i <= TRLI_COLOURS / 2; ++i) {
        trli_colour below = map.entry[TRLI_COLOURS / 2 - i], above = map.entry[TRLI_COLOURS / 2 + i];
        ck_assert(below.blue > below.red && above.red > above.blue);
        ck_assert_double_eq_tol(trli_colour_lightness(below), trli_colour_lightness(above), 0.01);
    }
    trli_colour_map_make(-1, 0.49, &map);
    ck_assert(!map.diverging);
    ck_assert(map.low == -1 && map.high == 0.49);
}
END_TEST

START_TEST(values_that_are_not_finite_are_grey)
{
    trli_colour_map map;
    trli_colour_map_make(0, 1, &map);
    trli_colour nan = trli_colour_of(&map, NAN), infinite = trli_colour_of(&map, -INFINITY);
    ck_assert(nan.red == nan.green && nan.green == nan.blue);
    ck_assert(!memcmp(&nan, &infinite, sizeof nan));
}
END_TEST

START_TEST(extreme_and_constant_ranges_have_colours)
{
    trli_colour_map map;
    trli_colour_map_make(-1.7e308, 1.7e308, &map);
    ck_assert(
        !memcmp(&map.entry[TRLI_COLOURS - 1], &(trli_colour[]){trli_colour_of(&map, 1.7e308)}[0], sizeof(trli_colour)));
    trli_colour_map_make(3, 3, &map);
    ck_assert(!memcmp(&map.entry[TRLI_COLOURS / 2], &(trli_colour[]){trli_colour_of(&map, 3)}[0], sizeof(trli_colour)));
}
END_TEST

/* A white image to draw on. */
typedef struct sheet {
    cairo_surface_t *image;
    cairo_t *cairo;
    int width, height;
} sheet;

static sheet open_sheet(int width, int height)
{
    sheet s = {cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height), NULL, width, height};
    s.cairo = cairo_create(s.image);
    cairo_set_source_rgb(s.cairo, 1, 1, 1);
    cairo_paint(s.cairo);
    return s;
}

static void close_sheet(sheet *s)
{
    ck_assert_int_eq(cairo_status(s->cairo), 0);
    cairo_destroy(s->cairo);
    cairo_surface_destroy(s->image);
}

/* Red of a pixel. */
static int red(const sheet *s, int x, int y)
{
    cairo_surface_flush(s->image);
    return cairo_image_surface_get_data(s->image)[y * cairo_image_surface_get_stride(s->image) + 4 * x + 2];
}

static int darkness(const sheet *s)
{
    int sum = 0;
    for (int y = 0; y < s->height; ++y)
        for (int x = 0; x < s->width; ++x) sum += 255 - red(s, x, y);
    return sum;
}

START_TEST(filled_rectangles_are_whole_pixels)
{
    sheet s = open_sheet(40, 20);
    trli_fill(s.cairo, 5, 10, 30, 1, (trli_colour){0, 0, 0});
    ck_assert_int_eq(darkness(&s), 30 * 255);
    ck_assert_int_eq(red(&s, 5, 10), 0);
    ck_assert_int_eq(red(&s, 34, 10), 0);
    close_sheet(&s);
}
END_TEST

START_TEST(every_printable_character_has_a_glyph_of_its_own)
{
    enum { FIRST = '!', LAST = '~', SIDE = 40, PIXELS = SIDE * SIDE * 4 };
    trli_font font = {20, {0, 0, 0}};
    uint8_t *pictures = malloc((size_t)(LAST - FIRST + 1) * PIXELS);
    ck_assert_ptr_nonnull(pictures);
    for (int c = FIRST; c <= LAST; ++c) {
        sheet s = open_sheet(SIDE, SIDE);
        char text[] = {(char)c, 0};
        trli_text_draw(s.cairo, &font, 5, 28, TRLI_LEFT, text);
        ck_assert_msg(darkness(&s) > 500, "'%c' is empty", c);
        ck_assert_double_gt(trli_text_width(&font, text), 3);
        memcpy(pictures + (size_t)(c - FIRST) * PIXELS, cairo_image_surface_get_data(s.image), PIXELS);
        for (int d = FIRST; d < c; ++d)
            ck_assert_msg(
                memcmp(pictures + (size_t)(d - FIRST) * PIXELS, cairo_image_surface_get_data(s.image), PIXELS),
                "'%c' looks as '%c'", c, d);
        close_sheet(&s);
    }
    free(pictures);
}
END_TEST

START_TEST(text_stays_inside_its_width_and_height)
{
    trli_font font = {11, {0, 0, 0}};
    const char *text = "HxE 0123";
    sheet s = open_sheet(120, 40);
    trli_text_draw(s.cairo, &font, 10, 30, TRLI_LEFT, text);
    double width = trli_text_width(&font, text);
    for (int y = 0; y < 40; ++y)
        for (int x = 0; x < 120; ++x)
            if (x < 9 || x > 11 + width || y < 18 || y > 30) ck_assert_msg(red(&s, x, y) > 200, "ink at %d, %d", x, y);
    ck_assert_int_gt(darkness(&s), 5000);
    close_sheet(&s);
}
END_TEST

START_TEST(text_is_anchored_left_in_the_middle_and_right)
{
    trli_font font = {11, {0, 0, 0}};
    for (int anchor = TRLI_LEFT; anchor <= TRLI_RIGHT; ++anchor) {
        sheet s = open_sheet(200, 40);
        double centre = 0, weight = 0;
        trli_text_draw(s.cairo, &font, 100, 30, (trli_anchor)anchor, "OOOO");
        for (int y = 0; y < 40; ++y)
            for (int x = 0; x < 200; ++x) {
                centre += (x + 0.5) * (255 - red(&s, x, y));
                weight += 255 - red(&s, x, y);
            }
        const double half = 0.5 * trli_text_width(&font, "OOOO");
        ck_assert_double_eq_tol(centre / weight, 100 + (1 - anchor) * half, 1.5);
        close_sheet(&s);
    }
}
END_TEST

START_TEST(raised_digits_are_small_and_broken_text_is_harmless)
{
    static const char *const broken[] = {"\xff\xe2\x88", "\xc0\x80", "\xed\xa0\x80", "a\xf0\x9f\x98\x80", "\xe2"};
    trli_font font = {11, {0, 0, 0}};
    ck_assert_double_lt(trli_text_width(&font, "\u2075"), trli_text_width(&font, "5"));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i) {
        sheet s = open_sheet(100, 40);
        trli_text_draw(s.cairo, &font, 10, 30, TRLI_LEFT, broken[i]);
        ck_assert_int_gt(darkness(&s), 0);
        close_sheet(&s);
        ck_assert_double_gt(trli_text_width(&font, broken[i]), 0);
    }
}
END_TEST

START_TEST(text_longer_than_there_is_room_for_is_cut)
{
    trli_font font = {11, {0, 0, 0}};
    char text[4096];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ck_assert_double_lt(trli_text_width(&font, text), 600 * trli_text_width(&font, "x"));
}
END_TEST

START_TEST(text_upwards_is_text_turned)
{
    trli_font font = {14, {0, 0, 0}};
    sheet level = open_sheet(80, 80), turned = open_sheet(80, 80);
    trli_text_draw(level.cairo, &font, 40, 40, TRLI_CENTRE, "Rg");
    trli_text_draw_upwards(turned.cairo, &font, 40, 40, "Rg");
    ck_assert_double_eq_tol(darkness(&level), darkness(&turned), 0.1 * darkness(&level));
    int along = 0;
    for (int y = 0; y < 80; ++y)
        for (int x = 0; x < 80; ++x)
            if (red(&turned, x, y) < 128) along += y < 40 ? -1 : 1;
    ck_assert_msg(along > -40 && along < 40, "not centred: %d", along);
    close_sheet(&level);
    close_sheet(&turned);
}
END_TEST

/* The labels of ticks, joined. */
static const char *labels(const trli_ticks *ticks)
{
    static char text[1024];
    text[0] = 0;
    for (int i = 0; i < ticks->n; ++i) strcat(strcat(text, i ? " " : ""), ticks->label[i]);
    return text;
}

START_TEST(ticks_are_at_round_numbers)
{
    static const struct {
        double low, high;
        int wanted;
        const char *labels, *factor;
    } rows[] = {
        {0, 1, 5, "0.0 0.2 0.4 0.6 0.8 1.0", ""},
        {1e-5, 0.99999, 5, "0.0 0.2 0.4 0.6 0.8 1.0", ""},
        {-1, 1, 4, "\u22121.0 \u22120.5 0.0 0.5 1.0", ""},
        {0.31, 0.392, 4, "0.32 0.34 0.36 0.38", ""},
        {0, 128, 8, "0 20 40 60 80 100 120", ""},
        {0, 2.1e5, 4, "0 1 2", "\u00d710\u2075"},
        {-4e-12, 4e-12, 4, "\u22124 \u22122 0 2 4", "\u00d710\u207b\u00b9\u00b2"},
        {101325 - 0.02, 101325 + 0.02, 4, "\u22120.02 \u22120.01 0.00 0.01 0.02", "+ 101325"},
        {-1 - 1e-7, -1 + 1e-7, 2, "\u22121 0 1", "\u00d710\u207b\u2077 \u2212 1"},
        {0.125 - 2e-11, 0.125, 4, "\u22122 \u22121 0", "\u00d710\u207b\u00b9\u00b9 + 0.125"},
        {3.7, 4.2, 1, "3.8 4.0 4.2", ""},
        {2.5, 2.5, 5, "2.5", ""},
        {1, 1 + 1e-15, 5, "1", ""},
        {0, 0, 5, "0", ""},
        {-1.7e308, 1.7e308, 5, "\u22121.7\u00d710\u00b3\u2070\u2078 1.7\u00d710\u00b3\u2070\u2078", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        trli_ticks ticks;
        trli_ticks_make(rows[i].low, rows[i].high, rows[i].wanted, &ticks);
        ck_assert_str_eq(labels(&ticks), rows[i].labels);
        ck_assert_str_eq(ticks.factor, rows[i].factor);
    }
}
END_TEST

START_TEST(logarithmic_ticks_are_at_powers_of_ten)
{
    static const struct {
        double low, high;
        int wanted;
        const char *labels;
    } rows[] = {
        {-3.2, 1.1, 8, "10\u207b\u00b3 10\u207b\u00b2 10\u207b\u00b9 10\u2070 10\u00b9"},
        {0, 30, 4, "10\u2070 10\u2078 10\u00b9\u2076 10\u00b2\u2074"},
        {0.1, 0.9, 4, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        trli_ticks ticks;
        trli_ticks_make_powers(rows[i].low, rows[i].high, rows[i].wanted, &ticks);
        ck_assert_str_eq(labels(&ticks), rows[i].labels);
    }
}
END_TEST

START_TEST(no_range_has_ticks_without_a_number)
{
    trli_ticks ticks;
    trli_ticks_make(NAN, NAN, 5, &ticks);
    ck_assert_int_eq(ticks.n, 0);
}
END_TEST

START_TEST(every_range_has_at_least_two_ticks_inside_it)
{
    for (int k = -280; k <= 280; k += 7) {
        for (int wanted = 1; wanted <= 12; ++wanted) {
            double low = -0.3 * pow(10, k), high = 1.7 * pow(10, k) * (1 + 0.37 * wanted);
            trli_ticks ticks;
            trli_ticks_make(low, high, wanted, &ticks);
            ck_assert_int_ge(ticks.n, 2);
            ck_assert_int_le(ticks.n, wanted < 3 ? 5 : 2 * wanted);
            for (int i = 0; i < ticks.n; ++i) {
                ck_assert_double_ge(ticks.at[i], low - 2e-3 * (high - low));
                ck_assert_double_le(ticks.at[i], high + 2e-3 * (high - low));
                for (int j = 0; j < i; ++j) ck_assert_str_ne(ticks.label[i], ticks.label[j]);
            }
        }
    }
}
END_TEST

START_TEST(numbers_have_a_true_minus_and_a_raised_exponent)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0.05, "0.05"},
                {-2, "\u22122"},
                {-0.0, "0"},
                {1.25e-7, "1.25\u00d710\u207b\u2077"},
                {1e-9, "10\u207b\u2079"},
                {-1e30, "\u221210\u00b3\u2070"},
                {INFINITY, "inf"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[64];
        trli_number_format(rows[i].value, text, sizeof text);
        ck_assert_str_eq(text, rows[i].text);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, lightness_of_the_sequential_colours_rises_evenly);
    tcase_add_test(tc, sequential_colours_go_from_blue_over_red_to_yellow);
    tcase_add_test(tc, data_around_zero_get_diverging_colours_that_are_neutral_at_zero);
    tcase_add_test(tc, values_that_are_not_finite_are_grey);
    tcase_add_test(tc, extreme_and_constant_ranges_have_colours);
    tcase_add_test(tc, filled_rectangles_are_whole_pixels);
    tcase_add_test(tc, every_printable_character_has_a_glyph_of_its_own);
    tcase_add_test(tc, text_stays_inside_its_width_and_height);
    tcase_add_test(tc, text_is_anchored_left_in_the_middle_and_right);
    tcase_add_test(tc, text_longer_than_there_is_room_for_is_cut);
    tcase_add_test(tc, raised_digits_are_small_and_broken_text_is_harmless);
    tcase_add_test(tc, text_upwards_is_text_turned);
    tcase_add_test(tc, ticks_are_at_round_numbers);
    tcase_add_test(tc, logarithmic_ticks_are_at_powers_of_ten);
    tcase_add_test(tc, no_range_has_ticks_without_a_number);
    tcase_add_test(tc, every_range_has_at_least_two_ticks_inside_it);
    tcase_add_test(tc, numbers_have_a_true_minus_and_a_raised_exponent);
}

TRL_TEST_MAIN("plot drawing", add_tests)
