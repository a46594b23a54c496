/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An animated PNG (Portable Network Graphics, third edition, W3C 2025): the chunks of one PNG for each picture, put
 * in one file with chunks that count and time them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "plot_draw_impl.h"

enum { SIGNATURE = 8, HEAD = 8, CRC = 4, PER_SECOND = 10 };

struct trli_movie {
    trl_context *ctx;
    const char *path;
    int pictures, added, width, height;
    uint32_t sequence; /* of chunks that have a number */
    trli_new_file file;
    FILE *stream;
    int number;    /* the first errno of writing, or 0 */
    trli_list png; /* bytes of the present picture */
    cairo_surface_t *surface;
    cairo_t *cairo;
};

static void put_number(unsigned char *bytes, uint32_t number)
{
    for (int i = 0; i < 4; ++i) bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

static uint32_t get_number(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The checksum of ISO 3309, bit by bit; begins and ends with all bits turned. */
static uint32_t crc_more(uint32_t crc, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    return crc;
}

static void write_bytes(trli_movie *m, const void *bytes, size_t n)
{
    errno = 0;
    if (fwrite(bytes, 1, n, m->stream) != n && !m->number) m->number = errno ? errno : EIO;
}

/* A chunk of two parts. */
static void write_chunk(trli_movie *m, const char type[4], const void *first, size_t nfirst, const void *rest,
                        size_t nrest)
{
    unsigned char head[HEAD], end[CRC];
    put_number(head, (uint32_t)(nfirst + nrest));
    memcpy(head + 4, type, 4);
    uint32_t crc = crc_more(crc_more(0xffffffffU, head + 4, 4), first, nfirst);
    put_number(end, ~crc_more(crc, rest, nrest));
    write_bytes(m, head, sizeof head);
    if (nfirst) write_bytes(m, first, nfirst);
    if (nrest) write_bytes(m, rest, nrest);
    write_bytes(m, end, sizeof end);
}

/* acTL: how many pictures; they are played again and again. */
static void write_count(trli_movie *m)
{
    unsigned char data[8] = {0};
    put_number(data, (uint32_t)m->pictures);
    write_chunk(m, "acTL", data, sizeof data, NULL, 0);
}

/* fcTL: size, place and duration of the next picture. */
static void write_control(trli_movie *m)
{
    unsigned char data[26] = {0};
    put_number(data, m->sequence++);
    put_number(data + 4, (uint32_t)m->width);
    put_number(data + 8, (uint32_t)m->height);
    data[21] = 1; /* in units of 1/PER_SECOND s */
    data[23] = PER_SECOND;
    write_chunk(m, "fcTL", data, sizeof data, NULL, 0);
}

static cairo_status_t keep_bytes(void *closure, const unsigned char *bytes, unsigned length)
{
    trli_movie *m = closure;
    if (trli_list_reserve(m->ctx, &m->png, length, 1, "picture") != TRL_OK) return CAIRO_STATUS_NO_MEMORY;
    memcpy((unsigned char *)m->png.data + m->png.count, bytes, length);
    m->png.count += length;
    return CAIRO_STATUS_SUCCESS;
}

/* The chunks of the present picture that the movie needs: the header of the first, and the pixels of all. */
static void write_picture(trli_movie *m)
{
    const unsigned char *png = m->png.data, *end = png + m->png.count;
    if (m->added == 0) write_bytes(m, png, SIGNATURE);
    for (const unsigned char *chunk = png + SIGNATURE; chunk + HEAD + CRC <= end;) {
        const uint32_t length = get_number(chunk);
        const unsigned char *data = chunk + HEAD;
        if (!memcmp(chunk + 4, "IHDR", 4) && m->added == 0) {
            write_chunk(m, "IHDR", data, length, NULL, 0);
            write_count(m);
        }
        if (!memcmp(chunk + 4, "IHDR", 4)) write_control(m);
        if (!memcmp(chunk + 4, "IDAT", 4) && m->added == 0) {
            write_chunk(m, "IDAT", data, length, NULL, 0);
        } else if (!memcmp(chunk + 4, "IDAT", 4)) {
            unsigned char sequence[4];
            put_number(sequence, m->sequence++);
            write_chunk(m, "fdAT", sequence, sizeof sequence, data, length);
        }
        chunk = data + length + CRC;
    }
}

static void clear(cairo_t *cairo)
{
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_paint(cairo);
}

trl_err trli_movie_begin(trl_context *ctx, const char *path, int pictures, int width, int height, trli_movie **movie)
{
    trl_err err;
    trli_movie *m = *movie = trli_new(ctx, 1, sizeof *m);
    if (!m) return trli_no_memory(ctx, NULL, "for a movie");
    *m = (trli_movie){.ctx = ctx, .path = path, .pictures = pictures, .width = width, .height = height};
    TRL_TRY(trli_file_begin(ctx, path, true, &m->file));
    TRL_TRY(trli_file_stream(&m->file, &m->stream));
    m->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    m->cairo = cairo_create(m->surface);
    if (cairo_status(m->cairo)) TRL_TRY(trli_no_memory(ctx, NULL, "for a picture of %d x %d pixels", width, height));
    clear(m->cairo);
done:
    return err == TRL_OK ? TRL_OK : trli_movie_end(movie, err);
}

cairo_t *trli_movie_cairo(const trli_movie *movie)
{
    return movie->cairo;
}

static trl_err fail_write(const trli_movie *m)
{
    return trl_fail(m->ctx, TRL_ERR_IO, NULL, "cannot write the movie '%s': %s", m->path, strerror(m->number));
}

trl_err trli_movie_add(trli_movie *movie)
{
    movie->png.count = 0;
    const cairo_status_t status = cairo_surface_write_to_png_stream(movie->surface, keep_bytes, movie);
    if (status) return trli_no_memory(movie->ctx, NULL, "for a picture: %s", cairo_status_to_string(status));
    write_picture(movie);
    ++movie->added;
    clear(movie->cairo);
    return movie->number ? fail_write(movie) : TRL_OK;
}

trl_err trli_movie_end(trli_movie **movie, trl_err ended)
{
    trli_movie *m = *movie;
    trl_err err = ended;
    if (!m) return ended;
    if (err == TRL_OK) {
        write_chunk(m, "IEND", NULL, 0, NULL, 0);
        errno = 0;
        if (fflush(m->stream) && !m->number) m->number = errno ? errno : EIO;
        if (m->number) err = fail_write(m);
    }
    cairo_destroy(m->cairo);
    cairo_surface_destroy(m->surface);
    if (m->stream) fclose(m->stream);
    trli_list_free(&m->png);
    err = trli_file_end(&m->file, err);
    trli_free(m);
    *movie = NULL;
    return err;
}
