/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include <plot_impl.h>

#include "files_impl.h"

/* Fill the file; on failure *reason says why. */
static bool write_image(FILE *stream, const trli_canvas *canvas, png_image *image, const char **reason)
{
    memset(image, 0, sizeof *image);
    image->version = PNG_IMAGE_VERSION;
    image->width = (png_uint_32)canvas->width;
    image->height = (png_uint_32)canvas->height;
    image->format = PNG_FORMAT_RGB;
    errno = 0;
    if (png_image_write_to_stdio(image, stream, 0, canvas->pixel, 0, NULL) && !fflush(stream) && !ferror(stream))
        return true;
    *reason = errno ? strerror(errno) : image->message;
    return false;
}

trl_err trli_png_write(trl_context *ctx, const char *path, const trli_canvas *canvas)
{
    trli_new_file file;
    FILE *stream = NULL;
    png_image image;
    const char *reason = NULL;
    trl_err err = trli_file_begin(ctx, path, true, &file);
    if (err == TRL_OK) err = trli_file_stream(&file, &stream);
    if (err == TRL_OK && !write_image(stream, canvas, &image, &reason))
        err = trl_fail(ctx, TRL_ERR_IO, NULL, "cannot write the picture '%s': %s", path, reason);
    if (stream) fclose(stream);
    return trli_file_end(&file, err);
}
