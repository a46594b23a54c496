/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The parts of `trellis plot` that need no file: colours, strokes, text, ticks. */
#include <math.h>

#include <plot_impl.h>
#include <trl_test.h>

static const trli_colour black = {0, 0, 0};

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

static int darkness(const trli_canvas *canvas)
{
    int sum = 0;
    for (int y = 0; y < canvas->height; ++y)
        for (int x = 0; x < canvas->width; ++x) sum += 255 - trli_canvas_get(canvas, x, y).red;
    return sum;
}

START_TEST(strokes_are_smooth_and_overlaps_count_once)
{
    trli_canvas *canvas;
    ck_ok(trli_canvas_create(test_ctx, 40, 20, &canvas));
    trli_canvas_stroke(canvas, 5, 10, 35, 10, 1);
    trli_canvas_paint(canvas, black);
    ck_assert_int_eq(trli_canvas_get(canvas, 20, 9).red, trli_canvas_get(canvas, 20, 10).red);
    ck_assert_int_eq(trli_canvas_get(canvas, 20, 10).red, 127);
    ck_assert_int_eq(trli_canvas_get(canvas, 20, 12).red, 255);
    trli_canvas_rectangle(canvas, 0, 0, 40, 20, (trli_colour){255, 255, 255});
    for (int k = 0; k < 5; ++k) trli_canvas_stroke(canvas, 5, 10, 35, 10, 1);
    trli_canvas_paint(canvas, black);
    ck_assert_int_eq(trli_canvas_get(canvas, 20, 10).red, 127);
    trli_canvas_destroy(&canvas);
}
END_TEST

START_TEST(painting_forgets_the_strokes_it_painted)
{
    trli_canvas *canvas;
    ck_ok(trli_canvas_create(test_ctx, 40, 20, &canvas));
    trli_canvas_stroke(canvas, 5, 5, 35, 5, 2);
    trli_canvas_paint(canvas, black);
    ck_assert_int_lt(trli_canvas_get(canvas, 30, 5).red, 128);
    trli_canvas_stroke(canvas, 5, 2, 35, 18, 2);
    trli_canvas_paint(canvas, (trli_colour){255, 0, 0});
    ck_assert_int_eq(trli_canvas_get(canvas, 20, 10).red, 255);
    ck_assert_int_lt(trli_canvas_get(canvas, 30, 5).red, 128);
    trli_canvas_destroy(&canvas);
}
END_TEST

START_TEST(drawing_beyond_the_canvas_or_the_clip_leaves_no_trace)
{
    trli_canvas *canvas;
    ck_ok(trli_canvas_create(test_ctx, 40, 20, &canvas));
    trli_canvas_clip(canvas, 10, 5, 10, 5);
    trli_canvas_stroke(canvas, -1e300, 7.5, 1e300, 7.5, 3);
    trli_canvas_stroke(canvas, -50, 500, 20, 900, 3);
    trli_canvas_paint(canvas, black);
    for (int y = 0; y < 20; ++y)
        for (int x = 0; x < 40; ++x)
            if (x < 10 || x >= 20 || y < 5 || y >= 10) ck_assert_int_eq(trli_canvas_get(canvas, x, y).red, 255);
    trli_canvas_clip(canvas, 0, 0, 0, 0);
    int before = darkness(canvas);
    trli_canvas_rectangle(canvas, -30, -30, 20, 20, black);
    trli_canvas_rectangle(canvas, 40, 20, 20, 20, black);
    ck_assert_int_eq(darkness(canvas), before);
    trli_canvas_destroy(&canvas);
}
END_TEST

START_TEST(every_printable_character_has_a_glyph_of_its_own)
{
    enum { FIRST = '!', LAST = '~', SIDE = 40, PIXELS = SIDE * SIDE * 3 };
    trli_font font = {20, 2, {0, 0, 0}};
    uint8_t *pictures = malloc((size_t)(LAST - FIRST + 2) * PIXELS);
    ck_assert_ptr_nonnull(pictures);
    for (int c = FIRST; c <= LAST + 1; ++c) {
        trli_canvas *canvas;
        char text[] = {(char)c, 0}; /* the last one is no printable character: the box */
        ck_ok(trli_canvas_create(test_ctx, SIDE, SIDE, &canvas));
        trli_text_draw(canvas, &font, 5, 28, TRLI_LEFT, text);
        ck_assert_msg(darkness(canvas) > 500, "'%c' is empty", c);
        ck_assert_double_gt(trli_text_width(&font, text), 3);
        memcpy(pictures + (size_t)(c - FIRST) * PIXELS, canvas->pixel, PIXELS);
        for (int d = FIRST; d < c; ++d)
            ck_assert_msg(memcmp(pictures + (size_t)(d - FIRST) * PIXELS, canvas->pixel, PIXELS), "'%c' looks as '%c'",
                          c, d);
        trli_canvas_destroy(&canvas);
    }
    free(pictures);
}
END_TEST

START_TEST(text_stays_inside_its_width_and_height)
{
    trli_font font = {11, 1.4, {0, 0, 0}};
    const char *text = "HxE 0123";
    trli_canvas *canvas;
    ck_ok(trli_canvas_create(test_ctx, 120, 40, &canvas));
    trli_text_draw(canvas, &font, 10, 30, TRLI_LEFT, text);
    double width = trli_text_width(&font, text);
    for (int y = 0; y < 40; ++y)
        for (int x = 0; x < 120; ++x)
            if (x < 9 || x > 11 + width || y < 18 || y >= 30)
                ck_assert_msg(trli_canvas_get(canvas, x, y).red > 200, "ink at %d, %d", x, y);
    trli_canvas_destroy(&canvas);
}
END_TEST

START_TEST(raised_digits_are_small_and_broken_text_is_harmless)
{
    trli_font font = {11, 1.4, {0, 0, 0}};
    ck_assert_double_lt(trli_text_width(&font, "\u2075"), trli_text_width(&font, "5"));
    ck_assert_double_gt(trli_text_width(&font, "\xff\xe2\x88"), 0);
    ck_assert_double_eq(trli_text_width(&font, "\u00e9"), trli_text_width(&font, "\x01"));
}
END_TEST

START_TEST(text_upwards_is_text_turned)
{
    trli_font font = {14, 1.9, {0, 0, 0}};
    trli_canvas *level, *turned;
    ck_ok(trli_canvas_create(test_ctx, 80, 80, &level));
    ck_ok(trli_canvas_create(test_ctx, 80, 80, &turned));
    trli_text_draw(level, &font, 40, 40, TRLI_CENTRE, "Rg");
    trli_text_draw_upwards(turned, &font, 40, 40, "Rg");
    ck_assert_int_eq(darkness(level), darkness(turned));
    int along = 0;
    for (int y = 0; y < 80; ++y)
        for (int x = 0; x < 80; ++x)
            if (trli_canvas_get(turned, x, y).red < 128) along += y < 40 ? -1 : 1;
    ck_assert_msg(along > -40 && along < 40, "not centred: %d", along);
    trli_canvas_destroy(&level);
    trli_canvas_destroy(&turned);
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
    tcase_add_test(tc, strokes_are_smooth_and_overlaps_count_once);
    tcase_add_test(tc, painting_forgets_the_strokes_it_painted);
    tcase_add_test(tc, drawing_beyond_the_canvas_or_the_clip_leaves_no_trace);
    tcase_add_test(tc, every_printable_character_has_a_glyph_of_its_own);
    tcase_add_test(tc, text_stays_inside_its_width_and_height);
    tcase_add_test(tc, raised_digits_are_small_and_broken_text_is_harmless);
    tcase_add_test(tc, text_upwards_is_text_turned);
    tcase_add_test(tc, ticks_are_at_round_numbers);
    tcase_add_test(tc, no_range_has_ticks_without_a_number);
    tcase_add_test(tc, every_range_has_at_least_two_ticks_inside_it);
    tcase_add_test(tc, numbers_have_a_true_minus_and_a_raised_exponent);
}

TRL_TEST_MAIN("plot drawing", add_tests)
