/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot`: arguments to a request, and the way from the file to the picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include <command_impl.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "plot_draw_impl.h"

/* The command line. */
typedef struct plot_options {
    trli_plot_request request;
    trli_plot_style style;
    bool spacetime, movie;
    const char *picture; /* NULL: named after the fields */
} plot_options;

/* The picture's path where none is given: <fields joined by _>.png. */
static char *picture_name(trl_context *ctx, const trli_plot_set *set)
{
    size_t size = sizeof ".png";
    for (int i = 0; i < set->n; ++i) size += strlen(set->panel[i].name) + 1;
    char *name = trli_new(ctx, size, 1);
    for (int i = 0; name && i < set->n; ++i) strcat(strcat(name, i ? "_" : ""), set->panel[i].name);
    return name ? strcat(name, ".png") : NULL;
}

/* Where the picture goes, which must not be what it is made of. */
static trl_err choose_name(trl_context *ctx, const plot_options *options, const trli_plot_set *set, char **name)
{
    *name = options->picture ? trli_copy_text(ctx, options->picture) : picture_name(ctx, set);
    if (!*name) return trli_no_memory(ctx, NULL, "for the name of the picture");
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* a name that is free is no error */
    if (!trli_file_refusal(*name, false) && (H5Fis_hdf5(*name) > 0 || trli_file_same(*name, options->request.path)))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "trellis plot: the picture would replace '%s', which holds %s; choose another name", *name,
                        trli_plot_is_series(*name) ? "series" : "fields");
    return TRL_OK;
}

static trl_err check_contours(trl_context *ctx, const plot_options *options, const trli_plot_set *set)
{
    for (int i = 0; i < set->n && options->style.contours; ++i)
        if (set->panel[i].naxes != 2)
            return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                            "--contours needs a plane, and '%s' is a line here; leave it out, or cut less",
                            set->panel[i].name);
    return TRL_OK;
}

static trl_err draw(trl_context *ctx, const trli_plot_set *set, const trli_plot_style *style, const char *name)
{
    trli_figure *figure = NULL;
    trli_picture *picture = NULL;
    int width, height;
    trl_err err;
    TRL_TRY(trli_figure_create(ctx, set, style, &figure));
    trli_figure_size(figure, &width, &height);
    TRL_TRY(trli_picture_begin(ctx, name, width, height, &picture));
    err = trli_figure_draw(figure, trli_picture_cairo(picture));
    err = trli_picture_end(&picture, err);
done:
    trli_figure_destroy(&figure);
    return err;
}

static trl_err read_one(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set)
{
    trli_plot_source *source;
    trl_err err = trli_plot_source_open(ctx, request, false, &source);
    if (err == TRL_OK) err = trli_plot_source_read(source, request, 0, set);
    trli_plot_source_close(&source);
    return err;
}

/* One picture. */
static trl_err plot(trl_context *ctx, const plot_options *options)
{
    const trli_plot_request *request = &options->request;
    trli_plot_set set = {0};
    char *name = NULL;
    trl_err err;
    if (trli_plot_is_series(request->path))
        TRL_TRY(trli_plot_series_read(ctx, request, &set));
    else if (options->spacetime)
        TRL_TRY(trli_plot_history_read(ctx, request, &set));
    else
        TRL_TRY(read_one(ctx, request, &set));
    TRL_TRY(check_contours(ctx, options, &set));
    TRL_TRY(choose_name(ctx, options, &set, &name));
    TRL_TRY(draw(ctx, &set, &options->style, name));
    printf("%s\n", name);
done:
    trli_free(name);
    trli_plot_release(&set);
    return err;
}

/* One picture for each time. */
static trl_err plot_movie(trl_context *ctx, const plot_options *options)
{
    trli_reel *reel;
    char *name = NULL;
    trl_err err;
    TRL_TRY(trli_reel_open(ctx, &options->request, &reel));
    TRL_TRY(check_contours(ctx, options, trli_reel_first(reel)));
    TRL_TRY(choose_name(ctx, options, trli_reel_first(reel), &name));
    TRL_TRY(trli_reel_draw(reel, &options->style, name));
    printf("%s\n", name);
done:
    trli_free(name);
    trli_reel_close(&reel);
    return err;
}

/* The whole of text as a finite number, up to the end or a comma; *rest is what follows. */
static bool parse_number(const char *text, double *number, const char **rest)
{
    char *end;
    *number = strtod(text, &end);
    *rest = end;
    return end != text && (!*end || *end == ',') && isfinite(*number);
}

/* "T,q.x": the commas become ends of strings in list, which the request points into. */
static trl_err parse_fields(trl_context *ctx, char *list, trli_plot_request *request)
{
    char *rest;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (request->nfields == TRLI_PLOT_FIELDS)
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --field names more than %d fields for one picture",
                            TRLI_PLOT_FIELDS);
        request->field[request->nfields++] = name;
    }
    if (!request->nfields) return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --field names no field");
    return TRL_OK;
}

/* "z=0.5", or one plane per axis: "y=0.5,z=0.5". */
static trl_err parse_slice(trl_context *ctx, const char *list, trli_plot_request *request)
{
    for (const char *cut = list, *rest = list; cut; cut = *rest ? rest + 1 : NULL) {
        int axis = cut[0] - 'x';
        double at;
        if (axis < 0 || axis > 2 || cut[1] != '=' || !parse_number(cut + 2, &at, &rest))
            return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                            "trellis plot: --slice needs an axis and a coordinate as z=0.5, found '%.*s'",
                            (int)strcspn(cut, ","), cut);
        if (request->sliced[axis])
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --slice cuts axis %c twice", cut[0]);
        request->sliced[axis] = true;
        request->slice[axis] = at;
    }
    return TRL_OK;
}

static trl_err parse_time(trl_context *ctx, const char *text, trli_plot_request *request)
{
    const char *rest;
    if (!strcmp(text, "last")) return TRL_OK;
    request->timed = true;
    if (parse_number(text, &request->time, &rest) && !*rest) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --time needs a number or 'last', found '%s'", text);
}

/* "0,1" */
static trl_err parse_range(trl_context *ctx, const char *text, trli_plot_style *style)
{
    const char *rest;
    style->ranged = parse_number(text, &style->low, &rest) && *rest && parse_number(rest + 1, &style->high, &rest) &&
                    !*rest && style->low < style->high;
    if (style->ranged) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis plot: --range needs two numbers, the smaller one first, as 0,1; found '%s'", text);
}

static trl_err parse_count(trl_context *ctx, const trli_arguments *arguments, const char *option, trl_gidx least,
                           trl_gidx most, int *count)
{
    trl_gidx number = 0;
    trl_err err;
    TRL_TRY(trli_arguments_integer(ctx, arguments, option, least, &number));
    *count = (int)number;
    if (number > most)
        err = trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: %s goes up to %" TRL_GIDX_FMT ", found %" TRL_GIDX_FMT,
                       option, most, number);
done:
    return err;
}

/* Options that contradict each other, or what is drawn. */
static trl_err check_together(trl_context *ctx, const trli_arguments *arguments)
{
    static const char *const whole[] = {"--spacetime", "--movie"};
    static const char *const fields_only[] = {"--slice", "--contours", "--spacetime", "--movie"};
    const bool series = trli_plot_is_series(arguments->operand[0]);
    for (int i = 0; i < 2; ++i)
        if (trli_arguments_value(arguments, whole[i]) && trli_arguments_value(arguments, "--time"))
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: %s draws all times; leave out --time", whole[i]);
    if (trli_arguments_value(arguments, whole[0]) && trli_arguments_value(arguments, whole[1]))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "trellis plot: --spacetime draws all times in one picture, --movie in one each; choose one");
    for (int i = 0; series && i < 4; ++i)
        if (trli_arguments_value(arguments, fields_only[i]))
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: '%s' holds series, which have no %s; leave it out",
                            arguments->operand[0], fields_only[i]);
    return TRL_OK;
}

static trl_err parse_options(trl_context *ctx, const trli_arguments *arguments, char *fields, plot_options *options)
{
    const char *slice = trli_arguments_value(arguments, "--slice"), *time = trli_arguments_value(arguments, "--time"),
               *range = trli_arguments_value(arguments, "--range");
    trl_err err;
    TRL_TRY(check_together(ctx, arguments));
    if (fields) TRL_TRY(parse_fields(ctx, fields, &options->request));
    if (slice) TRL_TRY(parse_slice(ctx, slice, &options->request));
    if (time) TRL_TRY(parse_time(ctx, time, &options->request));
    if (range) TRL_TRY(parse_range(ctx, range, &options->style));
    TRL_TRY(parse_count(ctx, arguments, "--contours", 1, 100, &options->style.contours));
    TRL_TRY(parse_count(ctx, arguments, "--size", 60, 4000, &options->style.size));
done:
    return err;
}

int trli_cmd_plot(trl_context *ctx, const trli_arguments *arguments)
{
    trl_err err = TRL_OK;
    const char *field = trli_arguments_value(arguments, "--field");
    plot_options options = {.request = {.path = arguments->operand[0]},
                            .spacetime = trli_arguments_value(arguments, "--spacetime"),
                            .movie = trli_arguments_value(arguments, "--movie"),
                            .picture = trli_arguments_value(arguments, "-o")};
    char *fields = field ? trli_copy_text(ctx, field) : NULL;
    if (field && !fields) TRL_TRY(trli_no_memory(ctx, NULL, "for the arguments"));
    TRL_TRY(parse_options(ctx, arguments, fields, &options));
    TRL_TRY(options.movie ? plot_movie(ctx, &options) : plot(ctx, &options));
done:
    trli_free(fields);
    return trli_command_finish(ctx, err);
}
