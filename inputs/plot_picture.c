/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairo-pdf.h>
#include <cairo-svg.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "plot_draw_impl.h"

typedef enum format { PNG, SVG, PDF } format;

struct trli_picture {
    trl_context *ctx;
    const char *path;
    format format;
    trli_new_file file;
    FILE *stream;
    int number; /* the first errno of writing, or 0 */
    cairo_surface_t *surface;
    cairo_t *cairo;
};

/* The ending decides; a name without one, and a device, gets a PNG. */
static trl_err choose_format(trl_context *ctx, const char *path, format *chosen)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    static const char *const ending[] = {[PNG] = ".png", [SVG] = ".svg", [PDF] = ".pdf"};
    *chosen = PNG;
    for (int k = 0; dot && k < 3; ++k) {
        *chosen = (format)k;
        if (!strcmp(dot, ending[k])) return TRL_OK;
    }
    if (!dot) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis plot: a picture is a .png, .svg or .pdf, and '%s' ends in '%s'; give -o another name",
                    path, dot);
}

static cairo_status_t write_bytes(void *closure, const unsigned char *bytes, unsigned length)
{
    trli_picture *p = closure;
    errno = 0;
    if (fwrite(bytes, 1, length, p->stream) == length) return CAIRO_STATUS_SUCCESS;
    if (!p->number) p->number = errno ? errno : EIO;
    return CAIRO_STATUS_WRITE_ERROR;
}

static cairo_surface_t *make_surface(trli_picture *p, int width, int height)
{
    if (p->format == SVG) return cairo_svg_surface_create_for_stream(write_bytes, p, width, height);
    if (p->format == PDF) return cairo_pdf_surface_create_for_stream(write_bytes, p, width, height);
    return cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
}

trl_err trli_picture_begin(trl_context *ctx, const char *path, int width, int height, trli_picture **picture)
{
    trl_err err;
    trli_picture *p = *picture = trli_new(ctx, 1, sizeof *p);
    if (!p) return trli_no_memory(ctx, NULL, "for a picture");
    p->ctx = ctx;
    p->path = path;
    TRL_TRY(choose_format(ctx, path, &p->format));
    TRL_TRY(trli_file_begin(ctx, path, true, &p->file));
    TRL_TRY(trli_file_stream(&p->file, &p->stream));
    p->surface = make_surface(p, width, height);
    p->cairo = cairo_create(p->surface);
    if (cairo_status(p->cairo)) TRL_TRY(trli_no_memory(ctx, NULL, "for a picture of %d x %d pixels", width, height));
    cairo_set_source_rgb(p->cairo, 1, 1, 1);
    cairo_paint(p->cairo);
done:
    return err == TRL_OK ? TRL_OK : trli_picture_end(picture, err);
}

cairo_t *trli_picture_cairo(const trli_picture *picture)
{
    return picture->cairo;
}

/* Bring the picture to the stream; what is wrong is in p->number, or a status of cairo. */
static cairo_status_t write_picture(trli_picture *p)
{
    cairo_status_t status = cairo_status(p->cairo);
    if (status) return status;
    if (p->format == PNG) return cairo_surface_write_to_png_stream(p->surface, write_bytes, p);
    cairo_surface_finish(p->surface);
    return cairo_surface_status(p->surface);
}

trl_err trli_picture_end(trli_picture **picture, trl_err ended)
{
    trli_picture *p = *picture;
    trl_err err = ended;
    if (!p) return ended;
    if (err == TRL_OK) {
        const cairo_status_t status = write_picture(p);
        errno = 0;
        if (fflush(p->stream) && !p->number) p->number = errno ? errno : EIO;
        if (status || p->number)
            err = trl_fail(p->ctx, TRL_ERR_IO, NULL, "cannot write the picture '%s': %s", p->path,
                           p->number ? strerror(p->number) : cairo_status_to_string(status));
    }
    /* Surfaces write what is left when they end. */
    cairo_destroy(p->cairo);
    cairo_surface_destroy(p->surface);
    if (p->stream) fclose(p->stream);
    err = trli_file_end(&p->file, err);
    trli_free(p);
    *picture = NULL;
    return err;
}
