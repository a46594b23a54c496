/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot` from the file to the picture. */
#include <sys/stat.h>

#include "plot_files.h"

/* What one plot of a field reads and draws. */
typedef struct drawing {
    trli_plot_set set;
    trli_figure *figure;
    cairo_surface_t *image;
    int width, height;
    trli_plot_panel panel;
    trli_colour_map map;
} drawing;

static void read_one(const trli_plot_request *request, trli_plot_set *set)
{
    trli_plot_source *source;
    ck_ok(trli_plot_source_open(test_ctx, request, false, &source));
    ck_ok(trli_plot_source_read(source, request, 0, set));
    trli_plot_source_close(&source);
}

static drawing draw_set(trli_plot_set set, trli_plot_style style)
{
    drawing d = {.set = set};
    ck_ok(trli_figure_create(test_ctx, &d.set, &style, &d.figure));
    trli_figure_size(d.figure, &d.width, &d.height);
    d.image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, d.width, d.height);
    cairo_t *cairo = cairo_create(d.image);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
    ck_ok(trli_figure_draw(d.figure, cairo));
    ck_assert_int_eq(cairo_status(cairo), 0);
    cairo_destroy(cairo);
    d.panel = *trli_figure_panel(d.figure, 0);
    trli_colour_map_make(style.ranged ? style.low : set.panel[0].low, style.ranged ? style.high : set.panel[0].high,
                         &d.map);
    return d;
}

static drawing draw(const char *path, const char *field)
{
    trli_plot_set set;
    read_one(&(trli_plot_request){.path = path, .nfields = 1, .field = {field}}, &set);
    return draw_set(set, (trli_plot_style){0});
}

static void release(drawing *d)
{
    trli_figure_destroy(&d->figure);
    cairo_surface_destroy(d->image);
    trli_plot_release(&d->set);
}

static bool same(trli_colour a, trli_colour b)
{
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

/* The pixel at a place of a frame: fractions from its lower left corner. */
static trli_colour colour_at(cairo_surface_t *image, const trli_plot_area *frame, double right, double up)
{
    return pixel(image, frame->x + (int)(right * frame->width),
                 frame->y + frame->height - 1 - (int)(up * frame->height));
}

START_TEST(writes_the_drawing_as_a_png)
{
    ck_assert_int_eq(run_plot("plane.nc --field T -o out.png"), 0);
    ck_assert_str_eq(text_of("stdout.txt"), "out.png\n");
    ck_assert_str_eq(text_of("stderr.txt"), "");
    drawing d = draw("plane.nc", "T");
    cairo_surface_t *picture = read_picture("out.png");
    ck_assert_int_eq(cairo_image_surface_get_width(picture), d.width);
    ck_assert_int_eq(cairo_image_surface_get_height(picture), d.height);
    for (int y = 0; y < d.height; ++y)
        for (int x = 0; x < d.width; ++x) ck_assert(same(pixel(picture, x, y), pixel(d.image, x, y)));
    cairo_surface_destroy(picture);
    release(&d);
}
END_TEST

START_TEST(draws_the_maximum_in_the_top_colour_where_it_lies_with_y_upwards)
{
    drawing d = draw("plane.nc", "T");
    const trli_plot_area *area = &d.panel.area;
    ck_assert(same(colour_at(d.image, area, 1.5 / 6, 3.5 / 4), d.map.entry[TRLI_COLOURS - 1]));
    ck_assert(same(colour_at(d.image, area, 4.5 / 6, 0.5 / 4), d.map.entry[0]));
    ck_assert(same(colour_at(d.image, area, 1.5 / 6, 0.5 / 4), trli_colour_of(&d.map, 2)));
    ck_assert_double_eq(d.set.panel[0].high, 13);
    release(&d);
}
END_TEST

START_TEST(draws_planes_at_their_aspect_ratio)
{
    drawing d = draw("plane.nc", "T");
    ck_assert_int_ge(d.panel.area.width, 500);
    ck_assert(2 * d.panel.area.width == 3 * d.panel.area.height);
    release(&d);
}
END_TEST

START_TEST(colour_bar_brightens_from_bottom_to_top)
{
    drawing d = draw("plane.nc", "T");
    double first = 0, last = 0;
    ck_assert_int_eq(d.panel.bar.height, d.panel.area.height);
    for (int j = 0; j < d.panel.bar.height; ++j) {
        double lightness = trli_colour_lightness(colour_at(d.image, &d.panel.bar, 0.5, (j + 0.5) / d.panel.bar.height));
        if (j == 0) first = lightness;
        ck_assert_double_ge(lightness, last - 0.002);
        last = lightness;
    }
    ck_assert_double_lt(first, 0.22);
    ck_assert_double_gt(last, 0.94);
    release(&d);
}
END_TEST

START_TEST(surrounds_panels_with_a_thin_frame)
{
    drawing d = draw("plane.nc", "T");
    const trli_plot_area *a = &d.panel.area;
    trli_colour line = pixel(d.image, a->x - 1, a->y - 1);
    ck_assert(line.red < 128);
    for (int i = -1; i <= a->width; ++i) {
        ck_assert(same(pixel(d.image, a->x + i, a->y - 1), line));
        ck_assert(same(pixel(d.image, a->x + i, a->y + a->height), line));
    }
    ck_assert_int_eq(pixel(d.image, a->x + 3, a->y - 2).red, 255);
    release(&d);
}
END_TEST

START_TEST(points_on_periodic_faces_wrap_and_those_at_walls_do_not)
{
    drawing u = draw("plane.nc", "u"), v = draw("plane.nc", "v");
    ck_assert(u.set.panel[0].axis[0].wraps);
    ck_assert(same(colour_at(u.image, &u.panel.area, 0.01, 0.5), u.map.entry[0]));
    ck_assert(same(colour_at(u.image, &u.panel.area, 0.99, 0.5), u.map.entry[0]));
    ck_assert(same(colour_at(u.image, &u.panel.area, 5. / 6, 0.5), u.map.entry[TRLI_COLOURS - 1]));
    ck_assert(!v.set.panel[0].axis[1].wraps);
    ck_assert_int_eq(v.set.panel[0].axis[1].points, 5);
    ck_assert(same(colour_at(v.image, &v.panel.area, 0.5, 0.01), v.map.entry[0]));
    ck_assert(same(colour_at(v.image, &v.panel.area, 0.5, 0.99), v.map.entry[TRLI_COLOURS - 1]));
    release(&u);
    release(&v);
}
END_TEST

START_TEST(values_that_are_not_finite_are_grey_with_a_note)
{
    drawing d = draw("plane.nc", "with_nan"), plain = draw("plane.nc", "u");
    ck_assert_int_eq(d.set.panel[0].not_finite, 2);
    ck_assert(same(colour_at(d.image, &d.panel.area, 0.5 / 6, 0.5 / 4), trli_colour_of(&d.map, NAN)));
    ck_assert(same(colour_at(d.image, &d.panel.area, 1.5 / 6, 1.5 / 4), trli_colour_of(&d.map, NAN)));
    ck_assert_double_eq(d.set.panel[0].high, 5);
    ck_assert_int_gt(d.height - d.panel.area.height, plain.height - plain.panel.area.height);
    release(&d);
    release(&plain);
    d = draw("plane.nc", "none");
    ck_assert_int_eq(d.set.panel[0].not_finite, 24);
    ck_assert(same(colour_at(d.image, &d.panel.area, 0.5, 0.5), trli_colour_of(&d.map, NAN)));
    release(&d);
}
END_TEST

START_TEST(constant_fields_have_a_bar_of_one_colour)
{
    drawing d = draw("plane.nc", "flat");
    trli_colour colour = colour_at(d.image, &d.panel.area, 0.5, 0.5);
    ck_assert(same(colour, colour_at(d.image, &d.panel.bar, 0.5, 0.1)));
    ck_assert(same(colour, colour_at(d.image, &d.panel.bar, 0.5, 0.9)));
    release(&d);
}
END_TEST

START_TEST(planes_finer_than_the_picture_are_averaged)
{
    enum { SIDE = 2000 };
    double *value = malloc(sizeof(double) * SIDE * SIDE);
    ck_assert_ptr_nonnull(value);
    for (int i = 0; i < SIDE * SIDE; ++i) value[i] = (i + i / SIDE) % 2;
    hid_t file = create_file("fine.nc", 2, (int[]){SIDE, SIDE}, (double[]){0, 0}, (double[]){1, 1});
    add_times(file, 1, (int[]){0}, (double[]){0});
    add_field(file, "T", "cell", 2, (hsize_t[]){SIDE, SIDE}, value);
    H5Fclose(file);
    free(value);
    drawing d = draw("fine.nc", "T");
    for (double at = 0.05; at < 1; at += 0.05) {
        trli_colour colour = colour_at(d.image, &d.panel.area, at, at);
        double lightness = trli_colour_lightness(colour);
        ck_assert_msg(lightness > 0.45 && lightness < 0.70, "lightness %g at %g", lightness, at);
    }
    release(&d);
}
END_TEST

START_TEST(lines_pass_through_their_points)
{
    drawing d = draw("line.nc", "line");
    const trli_plot_area *area = &d.panel.area;
    ck_assert_int_eq(d.panel.bar.width, 0);
    ck_assert_int_ge(d.width, 800);
    ck_assert_int_ge(d.height, 600);
    /* The axis leaves 5 % of the range 0.01 to 0.99 on each side. */
    for (double x = 0.1; x < 1; x += 0.2) {
        double up = (x - 0.01 + 0.049) / (0.98 * 1.1);
        ck_assert_int_lt(colour_at(d.image, area, x, up).red, 100);
        ck_assert_int_eq(colour_at(d.image, area, x, up + 0.1).red, 255);
    }
    release(&d);
    d = draw("line.nc", "peak");
    ck_assert_int_lt(colour_at(d.image, area, 10.5 / 50, 0.05 / 1.1 + 1 / 1.1 - 0.01).red, 100);
    ck_assert_int_eq(colour_at(d.image, area, 39.5 / 50, 0.5).red, 255);
    release(&d);
}
END_TEST

START_TEST(lines_have_gaps_where_values_are_not_finite)
{
    drawing d = draw("line.nc", "gap");
    double zero = 0.05 / 1.1;
    ck_assert_int_lt(colour_at(d.image, &d.panel.area, 18.5 / 50, zero).red, 100);
    ck_assert_int_eq(colour_at(d.image, &d.panel.area, 20.5 / 50, zero).red, 255);
    release(&d);
    d = draw("line.nc", "flat");
    ck_assert_int_lt(colour_at(d.image, &d.panel.area, 0.5, 0.5).red, 100);
    release(&d);
}
END_TEST

static trli_plot_set read_set(trli_plot_request request)
{
    trli_plot_set set;
    read_one(&request, &set);
    return set;
}

START_TEST(cuts_cubes_in_the_middle_of_z_unless_told_otherwise)
{
    trli_plot_set set = read_set((trli_plot_request){.path = "cube.nc"});
    trli_plot_data *d = &set.panel[0];
    ck_assert(d->naxes == 2 && d->axis[0].axis == 0 && d->axis[1].axis == 1 && d->nplanes == 1);
    ck_assert_double_eq_tol(d->plane[0].at, 3.5 / 6, 1e-14);
    ck_assert_double_eq(d->value[2 * 5 + 4], 423);
    trli_plot_release(&set);
    set = read_set((trli_plot_request){.path = "cube.nc", .sliced = {true}, .slice = {1}});
    d = &set.panel[0];
    ck_assert(d->axis[0].axis == 1 && d->axis[1].axis == 2);
    ck_assert_double_eq_tol(d->plane[0].at, 0.9, 1e-14);
    ck_assert_double_eq(d->value[5 * 4 + 2], 425);
    trli_plot_release(&set);
    set = read_set((trli_plot_request){.path = "cube.nc", .sliced = {true, false, true}, .slice = {0.5, 0, 0}});
    d = &set.panel[0];
    ck_assert(d->naxes == 1 && d->axis[0].axis == 1 && d->nplanes == 2);
    ck_assert_double_eq(d->value[3], 230);
    trli_plot_release(&set);
}
END_TEST

START_TEST(takes_the_last_step_or_the_one_nearest_in_time)
{
    static const struct {
        bool timed;
        double time;
        int step;
    } rows[] = {{false, 0, 10}, {true, 0.51, 5}, {true, -7, 0}, {true, 99, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        trli_plot_set set =
            read_set((trli_plot_request){.path = "plane.nc", .timed = rows[i].timed, .time = rows[i].time});
        ck_assert_int_eq(set.panel[0].step, rows[i].step);
        ck_assert_double_eq_tol(set.panel[0].time, 0.1 * rows[i].step, 1e-14);
        trli_plot_release(&set);
    }
}
END_TEST

START_TEST(finds_the_file_of_a_time_in_a_folder)
{
    static const struct {
        const char *path;
        bool timed;
        double time;
        int step;
    } rows[] = {
        {"run", false, 0, 100000000}, {"run/fields", false, 0, 100000000}, {"run", true, 0.3, 7}, {"run", true, -1, 0}};
    ck_assert(mkdir("run", 0777) == 0 && mkdir("run/fields", 0777) == 0);
    for (int i = 0; i < 3; ++i) {
        const int step = (int[]){0, 7, 100000000}[i], cells = 3;
        char path[64];
        snprintf(path, sizeof path, "run/fields/%08d.nc", step);
        hid_t file = create_file(path, 1, &cells, (double[]){0}, (double[]){1});
        add_times(file, 1, &step, (double[]){0.25 * i});
        add_field(file, "T", "cell", 1, (hsize_t[]){3}, (double[]){i, i, i});
        H5Fclose(file);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        trli_plot_set set =
            read_set((trli_plot_request){.path = rows[i].path, .timed = rows[i].timed, .time = rows[i].time});
        ck_assert_int_eq(set.panel[0].step, rows[i].step);
        trli_plot_release(&set);
    }
}
END_TEST

START_TEST(draws_several_fields_side_by_side_and_names_the_picture_after_them)
{
    ck_assert_int_eq(run_plot("plane.nc --field T,u --time 0.5"), 0);
    ck_assert_str_eq(text_of("stdout.txt"), "T_u.png\n");
    drawing d = draw_set(read_set((trli_plot_request){
                             .path = "plane.nc", .nfields = 2, .field = {"T", "u"}, .timed = true, .time = 0.5}),
                         (trli_plot_style){0});
    const trli_plot_panel *first = trli_figure_panel(d.figure, 0), *second = trli_figure_panel(d.figure, 1);
    cairo_surface_t *picture = read_picture("T_u.png");
    ck_assert_int_eq(cairo_image_surface_get_width(picture), d.width);
    ck_assert_int_gt(second->area.x, first->bar.x + first->bar.width);
    ck_assert_int_eq(first->area.y, second->area.y);
    cairo_surface_destroy(picture);
    release(&d);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, enter_folder, leave_folder);
    tcase_add_test(tc, writes_the_drawing_as_a_png);
    tcase_add_test(tc, draws_the_maximum_in_the_top_colour_where_it_lies_with_y_upwards);
    tcase_add_test(tc, draws_planes_at_their_aspect_ratio);
    tcase_add_test(tc, colour_bar_brightens_from_bottom_to_top);
    tcase_add_test(tc, surrounds_panels_with_a_thin_frame);
    tcase_add_test(tc, points_on_periodic_faces_wrap_and_those_at_walls_do_not);
    tcase_add_test(tc, values_that_are_not_finite_are_grey_with_a_note);
    tcase_add_test(tc, constant_fields_have_a_bar_of_one_colour);
    tcase_add_test(tc, planes_finer_than_the_picture_are_averaged);
    tcase_add_test(tc, lines_pass_through_their_points);
    tcase_add_test(tc, lines_have_gaps_where_values_are_not_finite);
    tcase_add_test(tc, cuts_cubes_in_the_middle_of_z_unless_told_otherwise);
    tcase_add_test(tc, takes_the_last_step_or_the_one_nearest_in_time);
    tcase_add_test(tc, finds_the_file_of_a_time_in_a_folder);
    tcase_add_test(tc, draws_several_fields_side_by_side_and_names_the_picture_after_them);
}

TRL_TEST_MAIN("plot", add_tests)
