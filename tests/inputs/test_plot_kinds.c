/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot` of more than one field at one time: ranges, contours, lines over time, movies, series; and as
 * vectors. */
#include <sys/stat.h>

#include "plot_files.h"

static bool same(trli_colour a, trli_colour b)
{
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

/* Draw what was read. */
static cairo_surface_t *draw(const trli_plot_set *set, trli_plot_style style, trli_plot_panel *panel)
{
    trli_figure *figure;
    int width, height;
    ck_ok(trli_figure_create(test_ctx, set, &style, &figure));
    trli_figure_size(figure, &width, &height);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    cairo_t *cairo = cairo_create(image);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    ck_ok(trli_figure_draw(figure, cairo));
    cairo_destroy(cairo);
    *panel = *trli_figure_panel(figure, 0);
    trli_figure_destroy(&figure);
    return image;
}

static trli_colour colour_at(cairo_surface_t *image, const trli_plot_area *frame, double right, double up)
{
    return pixel(image, frame->x + (int)(right * frame->width),
                 frame->y + frame->height - 1 - (int)(up * frame->height));
}

static void read_one(const char *path, const char *field, trli_plot_set *set)
{
    const trli_plot_request request = {.path = path, .nfields = 1, .field = {field}};
    trli_plot_source *source;
    ck_ok(trli_plot_source_open(test_ctx, &request, false, &source));
    ck_ok(trli_plot_source_read(source, &request, 0, set));
    trli_plot_source_close(&source);
}

START_TEST(a_range_sets_the_values_at_the_ends_of_the_colours)
{
    trli_plot_set set;
    trli_plot_panel panel;
    trli_colour_map map;
    read_one("plane.nc", "T", &set);
    cairo_surface_t *image = draw(&set, (trli_plot_style){.ranged = true, .low = 0, .high = 4}, &panel);
    trli_colour_map_make(0, 4, &map);
    ck_assert(same(colour_at(image, &panel.area, 0.5, 0.5), trli_colour_of(&map, 2)));
    ck_assert(same(colour_at(image, &panel.area, 1.5 / 6, 3.5 / 4), map.entry[TRLI_COLOURS - 1])); /* 13: beyond */
    cairo_surface_destroy(image);
    image = draw(&set, (trli_plot_style){.ranged = true, .low = -1, .high = 0.6}, &panel);
    trli_colour_map_make(-1, 0.6, &map);
    ck_assert(map.diverging);
    ck_assert(same(colour_at(image, &panel.bar, 0.5, 0.999), trli_colour_of(&map, 0.6)));
    ck_assert(same(colour_at(image, &panel.bar, 0.5, 0), trli_colour_of(&map, -1)));
    cairo_surface_destroy(image);
    trli_plot_release(&set);
}
END_TEST

START_TEST(a_range_is_the_axis_of_a_line)
{
    trli_plot_set set;
    trli_plot_panel panel;
    read_one("line.nc", "line", &set);
    cairo_surface_t *image = draw(&set, (trli_plot_style){.ranged = true, .low = 0, .high = 2}, &panel);
    ck_assert_int_lt(colour_at(image, &panel.area, 0.5, 0.25).red, 100);
    cairo_surface_destroy(image);
    trli_plot_release(&set);
}
END_TEST

/* Whether a contour passes within some pixels of a place. */
static bool line_near(cairo_surface_t *image, cairo_surface_t *plain, const trli_plot_area *area, double right,
                      double up)
{
    const int x = area->x + (int)(right * area->width), y = area->y + area->height - 1 - (int)(up * area->height);
    for (int j = -3; j <= 3; ++j)
        for (int i = -3; i <= 3; ++i)
            if (!same(pixel(image, x + i, y + j), pixel(plain, x + i, y + j))) return true;
    return false;
}

/* x + 2y on 40 x 40 cells, with one NaN. */
static void make_slope(const char *path)
{
    enum { SIDE = 40 };
    double value[SIDE * SIDE];
    for (int k = 0; k < SIDE * SIDE; ++k) value[k] = (k % SIDE + 0.5) / SIDE + 2 * (k / SIDE + 0.5) / SIDE;
    value[10 * SIDE + 20] = NAN;
    hid_t file = create_file(path, 2, (int[]){SIDE, SIDE}, (double[]){0, 0}, (double[]){1, 1});
    add_times(file, 1, (int[]){0}, (double[]){0});
    add_field(file, "s", "cell", 2, (hsize_t[]){SIDE, SIDE}, value);
    H5Fclose(file);
}

START_TEST(contours_lie_where_the_values_are)
{
    trli_plot_set set;
    trli_plot_panel panel;
    make_slope("slope.nc");
    read_one("slope.nc", "s", &set);
    trli_plot_style style = {.ranged = true, .low = 0, .high = 3};
    cairo_surface_t *plain = draw(&set, style, &panel);
    style.contours = 2; /* at 1 and 2 */
    cairo_surface_t *image = draw(&set, style, &panel);
    for (double x = 0.05; x < 1; x += 0.1) {
        if (fabs(x - 0.5) > 0.07) ck_assert_msg(line_near(image, plain, &panel.area, x, (1 - x) / 2), "at %g", x);
        ck_assert(line_near(image, plain, &panel.area, x, (2 - x) / 2));
        ck_assert(!line_near(image, plain, &panel.area, x, (1.5 - x) / 2));
    }
    /* Marks on the bar. */
    ck_assert(line_near(image, plain, &panel.bar, 0.5, 1. / 3));
    ck_assert(!line_near(image, plain, &panel.bar, 0.5, 0.5));
    cairo_surface_destroy(image);
    cairo_surface_destroy(plain);
    trli_plot_release(&set);
}
END_TEST

START_TEST(contours_of_a_saddle_do_not_cross)
{
    /* Corners at +1 and -1 in turn, the middle above 0: the positive corners are joined. */
    double value[] = {1, -0.5, -0.5, 1};
    hid_t file = create_file("saddle.nc", 2, (int[]){2, 2}, (double[]){0, 0}, (double[]){1, 1});
    trli_plot_set set;
    trli_plot_panel panel;
    add_times(file, 1, (int[]){0}, (double[]){0});
    add_field(file, "s", "cell", 2, (hsize_t[]){2, 2}, value);
    H5Fclose(file);
    read_one("saddle.nc", "s", &set);
    cairo_surface_t *plain = draw(&set, (trli_plot_style){.ranged = true, .low = -1, .high = 1}, &panel);
    cairo_surface_t *image = draw(&set, (trli_plot_style){.ranged = true, .low = -1, .high = 1, .contours = 1}, &panel);
    for (double d = 0.3; d < 0.7; d += 0.02) ck_assert(!line_near(image, plain, &panel.area, d, d));
    ck_assert(line_near(image, plain, &panel.area, 0.6, 0.4) || line_near(image, plain, &panel.area, 0.583, 0.25));
    cairo_surface_destroy(image);
    cairo_surface_destroy(plain);
    trli_plot_release(&set);
}
END_TEST

/* 3 outputs of 4 cells in a folder, at times 0, 1 and 4; the value is 10*output + cell. */
static void make_run(const char *folder_of_run)
{
    char path[64];
    snprintf(path, sizeof path, "%s/fields", folder_of_run);
    ck_assert(mkdir(folder_of_run, 0777) == 0 && mkdir(path, 0777) == 0);
    for (int k = 0; k < 3; ++k) {
        const int step = 5 * k;
        snprintf(path, sizeof path, "%s/fields/%08d.nc", folder_of_run, step);
        hid_t file = create_file(path, 1, (int[]){4}, (double[]){0}, (double[]){2});
        add_times(file, 1, &step, (double[]){(double[]){0, 1, 4}[k]});
        add_field(file, "T", "cell", 1, (hsize_t[]){4}, (double[]){10 * k, 10 * k + 1, 10 * k + 2, 10 * k + 3});
        H5Fclose(file);
    }
}

START_TEST(spacetime_shows_each_output_at_its_time)
{
    trli_plot_set set;
    trli_plot_panel panel;
    trli_colour_map map;
    make_run("history");
    ck_ok(trli_plot_history_read(test_ctx, &(trli_plot_request){.path = "history"}, &set));
    const trli_plot_data *d = &set.panel[0];
    ck_assert(d->naxes == 2 && d->axis[1].axis == TRLI_PLOT_TIME && d->axis[1].points == 3);
    ck_assert(d->axis[1].low == 0 && d->axis[1].high == 4 && d->low == 0 && d->high == 23 && d->step == 10);
    cairo_surface_t *image = draw(&set, (trli_plot_style){0}, &panel);
    trli_colour_map_make(0, 23, &map);
    /* Up to t = 0.5 the first output, up to 2.5 the second. */
    ck_assert(same(colour_at(image, &panel.area, 0.9, 0.1), trli_colour_of(&map, 3)));
    ck_assert(same(colour_at(image, &panel.area, 0.1, 0.15), trli_colour_of(&map, 10)));
    ck_assert(same(colour_at(image, &panel.area, 0.1, 0.6), trli_colour_of(&map, 10)));
    ck_assert(same(colour_at(image, &panel.area, 0.9, 0.65), trli_colour_of(&map, 23)));
    ck_assert(same(colour_at(image, &panel.area, 0.9, 0.999), trli_colour_of(&map, 23)));
    cairo_surface_destroy(image);
    trli_plot_release(&set);
    ck_assert_int_eq(run_plot("history --spacetime -o history.svg"), 0);
}
END_TEST

START_TEST(spacetime_takes_lines_of_planes)
{
    trli_plot_set set;
    const trli_plot_request request = {.path = "plane.nc", .sliced = {[1] = true}, .slice = {[1] = 11.9}};
    ck_ok(trli_plot_history_read(test_ctx, &request, &set));
    const trli_plot_data *d = &set.panel[0];
    ck_assert(d->axis[0].points == 6 && d->axis[1].points == 3 && d->nplanes == 1);
    ck_assert(d->value[1] == 3 && d->value[6 + 1] == 8 && d->value[12 + 1] == 13);
    trli_plot_release(&set);
}
END_TEST

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

START_TEST(movies_are_animated_pngs_of_all_times)
{
    ck_assert_int_eq(run_plot("plane.nc --field T --movie --size 100 -o movie.png"), 0);
    ck_assert_str_eq(text_of("stdout.txt"), "movie.png\n");
    cairo_surface_destroy(read_picture("movie.png")); /* readers without animation show the first picture */
    static unsigned char bytes[1 << 20];
    FILE *stream = fopen("movie.png", "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, stream);
    uint32_t sequence = 0, controls = 0, pictures = 0;
    fclose(stream);
    for (size_t at = 8; at + 12 <= size; at += 12 + number_at(bytes + at)) {
        const unsigned char *type = bytes + at + 4, *data = bytes + at + 8;
        if (!memcmp(type, "acTL", 4)) ck_assert_uint_eq(number_at(data), 3);
        if (!memcmp(type, "fcTL", 4) || !memcmp(type, "fdAT", 4)) ck_assert_uint_eq(number_at(data), sequence++);
        if (!memcmp(type, "fcTL", 4)) ++controls;
        pictures += !memcmp(type, "IDAT", 4) || !memcmp(type, "fdAT", 4);
    }
    ck_assert_uint_eq(controls, 3);
    ck_assert_uint_ge(pictures, 3);
    ck_assert(!memcmp(bytes + size - 8, "IEND", 4));
}
END_TEST

START_TEST(numbered_pictures_share_their_range_and_size)
{
    ck_assert_int_eq(run_plot("plane.nc --field T --movie -o frame%02d.png"), 0);
    ck_assert_str_eq(text_of("stdout.txt"), "frame%02d.png\n");
    trli_colour_map map;
    trli_colour_map_make(1, 13, &map);
    trli_plot_set set;
    trli_plot_panel panel;
    read_one("plane.nc", "T", &set);
    cairo_surface_t *last = draw(&set, (trli_plot_style){0}, &panel);
    for (int k = 0; k < 3; ++k) {
        char path[32];
        snprintf(path, sizeof path, "frame%02d.png", k);
        cairo_surface_t *image = read_picture(path);
        ck_assert_int_eq(cairo_image_surface_get_width(image), cairo_image_surface_get_width(last));
        ck_assert(same(colour_at(image, &panel.area, 1.5 / 6, 3.5 / 4), trli_colour_of(&map, 3 + 5 * k)));
        ck_assert(same(colour_at(image, &panel.area, 0.5, 0.5), trli_colour_of(&map, 2)));
        cairo_surface_destroy(image);
    }
    ck_assert_int_eq(access("frame03.png", F_OK), -1);
    cairo_surface_destroy(last);
    trli_plot_release(&set);
    ck_assert_int_eq(run_plot("plane.nc --movie -o %d.pdf"), 0);
    ck_assert_int_eq(access("2.pdf", F_OK), 0);
}
END_TEST

static void write_text(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");
    ck_assert_ptr_nonnull(stream);
    fputs(text, stream);
    fclose(stream);
}

START_TEST(series_are_lines_over_time)
{
    trli_plot_set set;
    trli_plot_panel panel;
    write_text("series.csv", "step,time,mass,decay,odd\n0,0,1,1000,nan\n10,1,2,10,1\n30,4,3,0.1,2\n40,5");
    ck_ok(trli_plot_series_read(test_ctx, &(trli_plot_request){.path = "series.csv"}, &set));
    ck_assert_int_eq(set.n, 3);
    const trli_plot_data *d = &set.panel[0];
    ck_assert(d->naxes == 1 && d->axis[0].points == 3 && d->axis[0].axis == TRLI_PLOT_TIME);
    ck_assert(d->axis[0].at[2] == 4 && d->value[1] == 2 && d->step == 30 && !d->logarithmic);
    ck_assert(set.panel[1].logarithmic && set.panel[2].not_finite == 1);
    trli_plot_release(&set);
    ck_ok(trli_plot_series_read(test_ctx, &(trli_plot_request){.path = "series.csv", .nfields = 1, .field = {"decay"}},
                                &set));
    /* From 10^3 to 10^-1 with 5 % on each side: 10 lies in the middle, at a quarter of the time. */
    cairo_surface_t *image = draw(&set, (trli_plot_style){0}, &panel);
    ck_assert_int_lt(colour_at(image, &panel.area, 0.25, 0.5).red, 100);
    ck_assert_int_eq(colour_at(image, &panel.area, 0.25, 0.3).red, 255);
    cairo_surface_destroy(image);
    /* A range with 0 has no logarithm. */
    image = draw(&set, (trli_plot_style){.ranged = true, .low = 0, .high = 1000}, &panel);
    ck_assert_int_lt(colour_at(image, &panel.area, 0.25, 0.012).red, 150);
    ck_assert_int_eq(colour_at(image, &panel.area, 0.25, 0.5).red, 255);
    cairo_surface_destroy(image);
    trli_plot_release(&set);
    ck_assert_int_eq(run_plot("series.csv --field mass,decay"), 0);
    ck_assert_str_eq(text_of("stdout.txt"), "mass_decay.png\n");
}
END_TEST

START_TEST(numbered_columns_are_a_line_over_their_numbers)
{
    const trli_plot_request all = {.path = "profile.csv"},
                            early = {.path = "profile.csv", .nfields = 1, .field = {"U"}, .timed = true, .time = 1.2},
                            column = {.path = "profile.csv", .nfields = 1, .field = {"U_2"}};
    trli_plot_set set;
    write_text("profile.csv", "step,time,U_0,U_1,U_2,U_3,m,p_0,p_1\n0,0,1,2,3,4,0,0,0\n10,1,5,6,7,8,0,0,0\n"
                              "20,2,1,10,100,1000,9,7,8\n");
    ck_ok(trli_plot_series_read(test_ctx, &all, &set));
    ck_assert_int_eq(set.n, 4); /* two columns are series: U, m, p_0, p_1 */
    const trli_plot_data *d = &set.panel[0];
    ck_assert(d->axis[0].axis == TRLI_PLOT_NUMBER && d->axis[0].points == 4 && d->step == 20 && d->time == 2);
    ck_assert(!strcmp(d->name, "U") && d->value[3] == 1000 && d->logarithmic);
    ck_assert(set.panel[1].axis[0].axis == TRLI_PLOT_TIME && set.panel[1].value[2] == 9 && set.panel[3].value[2] == 8);
    trli_plot_release(&set);
    ck_ok(trli_plot_series_read(test_ctx, &early, &set));
    ck_assert(set.panel[0].step == 10 && set.panel[0].value[0] == 5 && set.panel[0].value[3] == 8);
    trli_plot_release(&set);
    ck_ok(trli_plot_series_read(test_ctx, &column, &set));
    ck_assert(set.panel[0].axis[0].axis == TRLI_PLOT_TIME && set.panel[0].value[1] == 7);
    trli_plot_release(&set);
    ck_assert_int_eq(run_plot("profile.csv --field U --time 0"), 0);
    ck_assert_int_eq(run_plot("profile.csv --field m --time 0"), 2);
    ck_assert_ptr_nonnull(strstr(text_of("stderr.txt"), "which have no --time; leave it out"));
    ck_assert_int_eq(run_plot("profile.csv --field V"), 2);
    ck_assert_ptr_nonnull(strstr(text_of("stderr.txt"), "there is: U, m, p_0, p_1"));
}
END_TEST

START_TEST(long_series_look_like_all_their_values)
{
    enum { ROWS = 20000 };
    trli_plot_set set;
    trli_plot_panel panel;
    FILE *stream = fopen("long.csv", "w");
    fputs("step,time,s\n", stream);
    for (int i = 0; i < ROWS; ++i) fprintf(stream, "%d,%d,%d\n", i, i, i == 12345 ? 1 : 0);
    fclose(stream);
    ck_ok(trli_plot_series_read(test_ctx, &(trli_plot_request){.path = "long.csv"}, &set));
    cairo_surface_t *image = draw(&set, (trli_plot_style){0}, &panel);
    int dark = 0;
    for (int i = -2; i <= 2; ++i)
        dark += colour_at(image, &panel.area, 12345. / ROWS + i / (double)panel.area.width, 0.5).red < 150;
    ck_assert_int_ge(dark, 1);
    cairo_surface_destroy(image);
    trli_plot_release(&set);
}
END_TEST

START_TEST(series_that_cannot_be_drawn_are_refused)
{
    static const struct {
        const char *text, *words, *message;
        int status;
    } rows[] = {
        {"a,b\n1,2\n", "", "bad.csv: is not a file of series: its first line is not 'step,time,' and names", 3},
        {"step,time,m\n", "", "bad.csv: holds no values yet", 3},
        {"step,time,\n0,0\n", "", "bad.csv: holds no series", 3},
        {"step,time,m\n0,0,1\n1,0.5\n2,1,3\n", "", "bad.csv:3: this line does not hold a number for each name", 3},
        {"step,time,m\n0,0,1\n1,x,3\n", "", "bad.csv:3: this line does not hold a number for each name", 3},
        {"step,time,mass\n0,0,1\n", "--field mess", "bad.csv: no series 'mess'; there is: mass; did you mean 'mass'?",
         2},
        {"step,time,mass\n0,0,1\n", "--slice x=1", "'bad.csv' holds series, which have no --slice; leave it out", 2},
        {"step,time,mass\n0,0,1\n", "--movie", "'bad.csv' holds series, which have no --movie; leave it out", 2},
        {"step,time,mass\n0,0,1\n", "-o bad.csv", "the picture would replace 'bad.csv', which holds series", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char words[128];
        write_text("bad.csv", rows[i].text);
        snprintf(words, sizeof words, "bad.csv %s", rows[i].words);
        ck_assert_msg(run_plot(words) == rows[i].status, "%s: %s", words, text_of("stderr.txt"));
        ck_assert_msg(strstr(text_of("stderr.txt"), rows[i].message), "%s: %s", words, text_of("stderr.txt"));
    }
    ck_assert_int_eq(run_plot("absent.csv"), 3);
    write_text("one.csv", "step,time,m\n0,0,1\n");
    ck_assert_int_eq(run_plot("one.csv"), 0);
}
END_TEST

START_TEST(vectors_are_written_by_the_ending_of_the_name)
{
    static char text[1 << 20];
    ck_assert_int_eq(run_plot("plane.nc --field T,u --contours 3 -o two.pdf"), 0);
    FILE *stream = fopen("two.pdf", "rb");
    size_t size = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    ck_assert(!memcmp(text, "%PDF-", 5));
    ck_assert_ptr_nonnull(memmem(text + size - 8, 8, "%%EOF", 5));
    ck_assert_int_eq(run_plot("plane.nc -o one.svg"), 0);
    ck_assert_ptr_nonnull(strstr(text_of("one.svg"), "<svg xmlns="));
    ck_assert_int_eq(run_plot("plane.nc -o name_without_ending"), 0);
    cairo_surface_destroy(read_picture("name_without_ending"));
}
END_TEST

START_TEST(size_is_that_of_the_longer_side)
{
    trli_plot_set set;
    trli_plot_panel panel;
    read_one("plane.nc", "T", &set);
    cairo_surface_t *image = draw(&set, (trli_plot_style){.size = 300}, &panel);
    ck_assert_int_eq(panel.area.width, 300);
    ck_assert_int_eq(panel.area.height, 200);
    cairo_surface_destroy(image);
    trli_plot_release(&set);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, enter_folder, leave_folder);
    tcase_add_test(tc, a_range_sets_the_values_at_the_ends_of_the_colours);
    tcase_add_test(tc, a_range_is_the_axis_of_a_line);
    tcase_add_test(tc, contours_lie_where_the_values_are);
    tcase_add_test(tc, contours_of_a_saddle_do_not_cross);
    tcase_add_test(tc, spacetime_shows_each_output_at_its_time);
    tcase_add_test(tc, spacetime_takes_lines_of_planes);
    tcase_add_test(tc, movies_are_animated_pngs_of_all_times);
    tcase_add_test(tc, numbered_pictures_share_their_range_and_size);
    tcase_add_test(tc, series_are_lines_over_time);
    tcase_add_test(tc, numbered_columns_are_a_line_over_their_numbers);
    tcase_add_test(tc, long_series_look_like_all_their_values);
    tcase_add_test(tc, series_that_cannot_be_drawn_are_refused);
    tcase_add_test(tc, vectors_are_written_by_the_ending_of_the_name);
    tcase_add_test(tc, size_is_that_of_the_longer_side);
}

TRL_TEST_MAIN("plot kinds", add_tests)
