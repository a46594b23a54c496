/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"
#include "plot_draw_impl.h"

struct trli_reel {
    trl_context *ctx;
    const trli_plot_request *request;
    trli_plot_source *source;
    int n;
    trli_plot_set *head;                                  /* [n] what is drawn at each time, without values */
    double low[TRLI_PLOT_FIELDS], high[TRLI_PLOT_FIELDS]; /* over all times */
    int width, height;
};

/* Read all times for their ranges; values come again when they are drawn. */
static trl_err look(trli_reel *r)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < TRLI_PLOT_FIELDS; ++i) r->low[i] = r->high[i] = NAN;
    for (int k = 0; k < r->n; ++k) {
        TRL_TRY(trli_plot_source_read(r->source, r->request, k, &r->head[k]));
        for (int i = 0; i < r->head[k].n; ++i) {
            trli_plot_data *data = &r->head[k].panel[i];
            r->low[i] = fmin(r->low[i], data->low);
            r->high[i] = fmax(r->high[i], data->high);
            trli_free(data->value);
            data->value = NULL;
        }
    }
done:
    return err;
}

trl_err trli_reel_open(trl_context *ctx, const trli_plot_request *request, trli_reel **reel)
{
    trl_err err;
    trli_reel *r = *reel = trli_new(ctx, 1, sizeof *r);
    if (!r) return trli_no_memory(ctx, NULL, "for a movie");
    r->ctx = ctx;
    r->request = request;
    TRL_TRY(trli_plot_source_open(ctx, request, true, &r->source));
    r->n = trli_plot_source_times(r->source);
    r->head = trli_new(ctx, (size_t)r->n, sizeof *r->head);
    if (!r->head) TRL_TRY(trli_no_memory(ctx, NULL, "for a movie of %d pictures", r->n));
    TRL_TRY(look(r));
done:
    if (err != TRL_OK) trli_reel_close(reel);
    return err;
}

const trli_plot_set *trli_reel_first(const trli_reel *reel)
{
    return &reel->head[0];
}

static trl_err make_figure(const trli_reel *r, trli_plot_set *set, const trli_plot_style *style, trli_figure **figure)
{
    for (int i = 0; i < set->n; ++i) {
        set->panel[i].low = r->low[i];
        set->panel[i].high = r->high[i];
    }
    return trli_figure_create(r->ctx, set, style, figure);
}

/* The size that all pictures fit in. */
static trl_err measure(trli_reel *r, const trli_plot_style *style)
{
    trl_err err = TRL_OK;
    trli_figure *figure = NULL;
    for (int k = 0; k < r->n; ++k) {
        int width, height;
        TRL_TRY(make_figure(r, &r->head[k], style, &figure));
        trli_figure_size(figure, &width, &height);
        r->width = width > r->width ? width : r->width;
        r->height = height > r->height ? height : r->height;
        trli_figure_destroy(&figure);
    }
done:
    return err;
}

static trl_err draw(const trli_reel *r, int which, const trli_plot_style *style, cairo_t *cairo)
{
    trl_err err;
    trli_plot_set set;
    trli_figure *figure = NULL;
    TRL_TRY(trli_plot_source_read(r->source, r->request, which, &set));
    err = make_figure(r, &set, style, &figure);
    if (err == TRL_OK) err = trli_figure_draw(figure, cairo);
    trli_figure_destroy(&figure);
    trli_plot_release(&set);
done:
    return err;
}

static trl_err draw_movie(const trli_reel *r, const trli_plot_style *style, const char *path)
{
    trli_movie *movie;
    trl_err err = trli_movie_begin(r->ctx, path, r->n, r->width, r->height, &movie);
    for (int k = 0; k < r->n && err == TRL_OK; ++k) {
        err = draw(r, k, style, trli_movie_cairo(movie));
        if (err == TRL_OK) err = trli_movie_add(movie);
    }
    return trli_movie_end(&movie, err);
}

/* A place for a number in a name. */
typedef struct place {
    const char *begin, *end; /* "%04d"; begin NULL: none */
    int digits;
} place;

static trl_err find_place(trl_context *ctx, const char *path, place *found)
{
    char *end;
    *found = (place){.begin = strchr(path, '%')};
    if (!found->begin) return TRL_OK;
    const long digits = isdigit((unsigned char)found->begin[1]) ? strtol(found->begin + 1, &end, 10) : 0;
    if (!digits) end = (char *)found->begin + 1 + strspn(found->begin + 1, "0");
    found->digits = (int)digits;
    found->end = end + 1;
    if (*end == 'd' && digits < 20 && !strchr(end, '%')) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis plot: the place for the number of a picture is one %%d or, with leading zeros, %%04d; "
                    "found '%s'",
                    path);
}

static trl_err draw_file(const trli_reel *r, int which, const trli_plot_style *style, const char *path)
{
    trli_picture *picture;
    trl_err err;
    TRL_TRY(trli_picture_begin(r->ctx, path, r->width, r->height, &picture));
    err = draw(r, which, style, trli_picture_cairo(picture));
    err = trli_picture_end(&picture, err);
done:
    return err;
}

static trl_err draw_files(const trli_reel *r, const trli_plot_style *style, const char *path, const place *number)
{
    trl_err err = TRL_OK;
    const size_t size = strlen(path) + 32;
    char *name = trli_new(r->ctx, size, 1);
    if (!name) return trli_no_memory(r->ctx, NULL, "for the names of pictures");
    for (int k = 0; k < r->n; ++k) {
        snprintf(name, size, "%.*s%0*d%s", (int)(number->begin - path), path, number->digits, k, number->end);
        TRL_TRY(draw_file(r, k, style, name));
    }
done:
    trli_free(name);
    return err;
}

trl_err trli_reel_draw(trli_reel *reel, const trli_plot_style *style, const char *path)
{
    trl_err err;
    place number;
    const size_t length = strlen(path);
    TRL_TRY(find_place(reel->ctx, path, &number));
    TRL_TRY(measure(reel, style));
    if (number.begin) return draw_files(reel, style, path, &number);
    if (length < 4 || strcmp(path + length - 4, ".png"))
        TRL_TRY(trl_fail(reel->ctx, TRL_ERR_INPUT, NULL,
                         "trellis plot: a movie is an animated .png, found '%s'; numbered pictures, for ffmpeg, are "
                         "had with a name as frame%%04d.png",
                         path));
    TRL_TRY(draw_movie(reel, style, path));
done:
    return err;
}

void trli_reel_close(trli_reel **reel)
{
    trli_reel *r = *reel;
    if (!r) return;
    for (int k = 0; k < r->n && r->head; ++k) trli_plot_release(&r->head[k]);
    trli_free(r->head);
    trli_plot_source_close(&r->source);
    trli_free(r);
    *reel = NULL;
}
