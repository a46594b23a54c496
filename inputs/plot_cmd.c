/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot`: arguments to a request, and the way from the file to the picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include <command_impl.h>
#include <plot_impl.h>

#include "files_impl.h"

/* The whole of text as a finite number. */
static bool parse_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end != text && !*end && isfinite(*number);
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
static trl_err parse_slice(trl_context *ctx, char *list, trli_plot_request *request)
{
    char *rest;
    for (char *cut = strtok_r(list, ",", &rest); cut; cut = strtok_r(NULL, ",", &rest)) {
        int axis = cut[0] - 'x';
        double at;
        if (axis < 0 || axis > 2 || cut[1] != '=' || !parse_number(cut + 2, &at))
            return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                            "trellis plot: --slice needs an axis and a coordinate as z=0.5, found '%s'", cut);
        if (request->sliced[axis])
            return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --slice cuts axis %c twice", cut[0]);
        request->sliced[axis] = true;
        request->slice[axis] = at;
    }
    return TRL_OK;
}

static trl_err parse_time(trl_context *ctx, const char *text, trli_plot_request *request)
{
    if (!strcmp(text, "last")) return TRL_OK;
    request->timed = true;
    if (parse_number(text, &request->time)) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: --time needs a number or 'last', found '%s'", text);
}

/* The picture's path where none is given: <fields joined by _>.png. */
static char *picture_name(const trli_plot_set *set)
{
    size_t size = sizeof ".png";
    for (int i = 0; i < set->n; ++i) size += strlen(set->panel[i].name) + 1;
    char *name = calloc(size, 1);
    for (int i = 0; name && i < set->n; ++i) strcat(strcat(name, i ? "_" : ""), set->panel[i].name);
    return name ? strcat(name, ".png") : NULL;
}

static trl_err plot(trl_context *ctx, const trli_plot_request *request)
{
    trl_err err = TRL_OK;
    trli_plot_set set;
    trli_canvas *canvas = NULL;
    char *name = NULL;
    TRL_TRY(trli_plot_read(ctx, request, &set));
    TRL_TRY(trli_figure_draw(ctx, &set, &canvas, NULL));
    name = request->picture ? strdup(request->picture) : picture_name(&set);
    if (!name) {
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the name of the picture");
        goto done;
    }
    if (trli_file_refusal(name, false) == NULL && H5Fis_hdf5(name) > 0)
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "trellis plot: the picture would replace '%s', which holds fields; choose another name",
                         name));
    TRL_TRY(trli_png_write(ctx, name, canvas));
    printf("%s\n", name);
done:
    free(name);
    trli_canvas_destroy(&canvas);
    trli_plot_release(&set);
    return err;
}

/* Read the arguments and plot. */
static trl_err serve(trl_context *ctx, const trli_arguments *arguments)
{
    trl_err err = TRL_OK;
    const char *field = trli_arguments_value(arguments, "--field"), *slice = trli_arguments_value(arguments, "--slice");
    const char *time = trli_arguments_value(arguments, "--time");
    trli_plot_request request = {.path = arguments->operand[0], .picture = trli_arguments_value(arguments, "-o")};
    char *fields = strdup(field ? field : ""), *cuts = strdup(slice ? slice : "");
    if (!fields || !cuts) {
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the arguments");
        goto done;
    }
    if (field) TRL_TRY(parse_fields(ctx, fields, &request));
    if (slice) TRL_TRY(parse_slice(ctx, cuts, &request));
    if (time) TRL_TRY(parse_time(ctx, time, &request));
    TRL_TRY(plot(ctx, &request));
done:
    free(fields);
    free(cuts);
    return err;
}

int trli_cmd_plot(trl_context *ctx, const trli_arguments *arguments)
{
    return trli_command_finish(ctx, serve(ctx, arguments));
}
