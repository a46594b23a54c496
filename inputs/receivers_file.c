/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* receivers.nc. The classic format of netCDF (its variant with offsets of 64 bits, CDF-2) suits a file that grows: what
 * varies over time stands in records, one after the other, and bytes 4 to 7 are their number. So a record is written
 * first and then counted. All numbers are big-endian. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "growing_file_impl.h"
#include "memory_impl.h"
#include "writers_impl.h"

enum { DIMENSION = 10, VARIABLE = 11, ATTRIBUTE = 12, CHAR = 2, DOUBLE = 6 }; /* of the format */
enum { TIME, RECEIVER };                                                      /* dimensions */
enum { RECORDS_AT = 4, WORD = sizeof(double), LEADING = 2 /* numbers of a record: time and step */ };

struct trli_receivers_file {
    trl_context *ctx;
    int n, nvalues;
    trli_growing_file file; /* rank 0, likewise: */
    uint32_t records;
    uint64_t *record; /* [LEADING + nvalues * n] */
};

/* ---- the part before the records ---- */

typedef struct header {
    trl_context *ctx;
    trli_list bytes;
    bool full; /* there was no memory for all of it */
} header;

static void put(header *h, const void *bytes, size_t size)
{
    if (h->full || trli_list_reserve(h->ctx, &h->bytes, (int64_t)size, 1, "the header of receivers.nc") != TRL_OK) {
        h->full = true;
        return;
    }
    memcpy((char *)h->bytes.data + h->bytes.count, bytes, size);
    h->bytes.count += (int64_t)size;
}

static void put_int(header *h, int64_t value)
{
    const uint32_t word = htobe32((uint32_t)value);
    put(h, &word, sizeof word);
}

static void put_long(header *h, int64_t value)
{
    const uint64_t word = htobe64((uint64_t)value);
    put(h, &word, sizeof word);
}

static void put_double(header *h, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_long(h, (int64_t)bits);
}

/* Its length, and its characters in whole words of 4. */
static void put_text(header *h, const char *text)
{
    const size_t length = strlen(text);
    put_int(h, (int64_t)length);
    put(h, text, length);
    put(h, "\0\0\0", (4 - length % 4) % 4);
}

static void put_attribute(header *h, const char *name, const char *text)
{
    put_text(h, name);
    put_int(h, CHAR);
    put_text(h, text);
}

/* Where a variable stands: of a record, `at` bytes behind the first one's beginning, or among those before. */
typedef struct place_in_file {
    bool timed, on_receivers;
    int64_t at;
} place_in_file;

static void put_variable(header *h, int n, int64_t records, const char *name, const char *doc, const char *more[2],
                         place_in_file place)
{
    const int64_t size = place.on_receivers ? (int64_t)n * WORD : WORD, most = UINT32_MAX - 3;
    put_text(h, name);
    put_int(h, place.timed + place.on_receivers);
    if (place.timed) put_int(h, TIME);
    if (place.on_receivers) put_int(h, RECEIVER);
    put_int(h, ATTRIBUTE);
    put_int(h, more ? 2 : 1);
    put_attribute(h, "long_name", doc);
    if (more) put_attribute(h, more[0], more[1]);
    put_int(h, DOUBLE);
    put_int(h, size < most ? size : UINT32_MAX);
    put_long(h, records + place.at);
}

/* All that stands before the coordinates. records: where the first one begins. */
static void put_description(header *h, const trli_receivers_request *r, int64_t records)
{
    static const char *const axis[] = {"x", "y", "z"}, *const all[] = {"x", "x y", "x y z"};
    static const char *unit[2] = {"units", "1"};
    const char *places[2] = {"coordinates", all[r->dim - 1]};
    const int64_t row = (int64_t)r->n * WORD;
    put(h, "CDF\2", 4);
    put_int(h, 0);
    put_int(h, DIMENSION);
    put_int(h, 2);
    put_text(h, "time");
    put_int(h, 0); /* as many as there are records */
    put_text(h, "receiver");
    put_int(h, r->n);
    put_int(h, ATTRIBUTE);
    put_int(h, 1);
    put_attribute(h, "Conventions", "CF-1.8");
    put_int(h, VARIABLE);
    put_int(h, LEADING + r->dim + r->nvalues);
    put_variable(h, r->n, records, "time", "time of the problem", unit, (place_in_file){.timed = true});
    put_variable(h, r->n, records, "step", "number of the time step", unit, (place_in_file){.timed = true, .at = WORD});
    for (int a = 0; a < r->dim; ++a)
        put_variable(h, r->n, records, axis[a], "coordinate of the receiver", unit,
                     (place_in_file){.on_receivers = true, .at = (a - r->dim) * row});
    for (int v = 0; v < r->nvalues; ++v)
        put_variable(h, r->n, records, r->name[v], r->name[v], places,
                     (place_in_file){.timed = true, .on_receivers = true, .at = LEADING * WORD + v * row});
}

/* The whole part; its length is known once it is made. */
static trl_err make_header(trl_context *ctx, const trli_receivers_request *r, header *h)
{
    *h = (header){.ctx = ctx};
    put_description(h, r, 0);
    const int64_t records = h->bytes.count + (int64_t)r->dim * r->n * WORD;
    h->bytes.count = 0;
    put_description(h, r, records);
    for (int a = 0; a < r->dim; ++a)
        for (int i = 0; i < r->n; ++i) put_double(h, r->at[(ptrdiff_t)i * r->dim + a]);
    return h->full ? TRL_ERR_MEMORY : TRL_OK;
}

/* ---- the file ---- */

static int64_t record_bytes(const trli_receivers_file *f)
{
    return (LEADING + (int64_t)f->nvalues * f->n) * WORD;
}

/* Write how many records there are. Returns 0 or an errno. */
static int put_records(int file, uint32_t records)
{
    const uint32_t word = htobe32(records);
    return trli_file_put(file, &word, sizeof word, RECORDS_AT);
}

static bool get_bytes(int file, void *bytes, size_t size, int64_t at)
{
    ssize_t got = pread(file, bytes, size, at);
    return got == (ssize_t)size;
}

/* Whether the file begins as the header says, but for the number of records. */
static bool begins_with(const header *h, int file)
{
    char piece[4096];
    const char *wanted = h->bytes.data;
    for (int64_t at = 0; at < h->bytes.count; at += (int64_t)sizeof piece) {
        const int64_t rest = h->bytes.count - at;
        const size_t size = rest < (int64_t)sizeof piece ? (size_t)rest : sizeof piece;
        if (!get_bytes(file, piece, size, at)) return false;
        if (at == 0) memcpy(piece + RECORDS_AT, wanted + RECORDS_AT, sizeof(uint32_t));
        if (memcmp(piece, wanted + at, size)) return false;
    }
    return true;
}

/* How many records of an open file are of steps up to after_step. */
static bool count_kept(const trli_receivers_file *f, const header *h, int file, trl_gidx after_step, uint32_t *kept)
{
    uint32_t n;
    uint64_t word;
    struct stat status;
    if (!get_bytes(file, &n, sizeof n, RECORDS_AT) || fstat(file, &status)) return false;
    const int64_t whole = (status.st_size - h->bytes.count) / record_bytes(f);
    *kept = be32toh(n) < whole ? be32toh(n) : (uint32_t)whole;
    for (; *kept > 0; --*kept) {
        double step;
        if (!get_bytes(file, &word, sizeof word, h->bytes.count + (*kept - 1) * record_bytes(f) + WORD)) return false;
        word = be64toh(word);
        memcpy(&step, &word, sizeof step);
        if (step <= (double)after_step) break;
    }
    return true;
}

/* Cut an earlier run's file back to the records that stay: at each moment it is whole. */
static trl_err continue_file(trli_receivers_file *f, const header *h, const char *path, trl_gidx after_step)
{
    const char *refusal = trli_file_refusal(path, false);
    trl_err err = TRL_OK;
    if (refusal) return trl_fail(f->ctx, TRL_ERR_IO, NULL, "cannot write '%s': %s", path, refusal);
    int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return trli_file_fail(f->ctx, "write", path, errno);
    if (!begins_with(h, file))
        TRL_TRY(trl_fail(f->ctx, TRL_ERR_INPUT, NULL,
                         "the receivers in '%s' are not those of the deck; a restart continues the file: use the same "
                         "points and values in output.receivers, or move the file away",
                         path));
    if (!count_kept(f, h, file, after_step, &f->records)) TRL_TRY(trli_file_fail(f->ctx, "read", path, errno));
    int number = put_records(file, f->records);
    if (!number && ftruncate(file, h->bytes.count + f->records * record_bytes(f))) number = errno;
    if (number) err = trli_file_fail(f->ctx, "write", path, number);
done:
    close(file);
    return err;
}

/* On rank 0. */
static trl_err open_file(trli_receivers_file *f, const char *folder, const trli_receivers_request *r, bool append,
                         trl_gidx after_step)
{
    header h = {0};
    char *path = NULL;
    trl_err err;
    TRL_TRY(trli_folder_create(f->ctx, folder));
    TRL_TRY(trli_format(f->ctx, &path, "%s/receivers.nc", folder));
    TRL_TRY(make_header(f->ctx, r, &h));
    f->record = trli_new(f->ctx, (size_t)record_bytes(f), 1);
    if (!f->record) TRL_TRY(trli_no_memory(f->ctx, NULL, "for the values of %d receivers", f->n));
    if (append && access(path, F_OK) == 0)
        TRL_TRY(continue_file(f, &h, path, after_step));
    else
        TRL_TRY(trli_file_replace(f->ctx, path, h.bytes.data, (size_t)h.bytes.count));
    err = trli_growing_open(f->ctx, "the receivers", path, h.bytes.count + f->records * record_bytes(f), &f->file);
done:
    trli_list_free(&h.bytes);
    trli_free(path);
    return err;
}

static void destroy(trli_receivers_file **file)
{
    if (!*file) return;
    trli_free((*file)->record);
    trli_free(*file);
    *file = NULL;
}

trl_err trli_receivers_create(trl_context *ctx, const char *folder, const trli_receivers_request *receivers,
                              bool append, trl_gidx after_step, trli_receivers_file **file)
{
    trli_receivers_file *f = *file = trli_new(ctx, 1, sizeof *f);
    trl_err err = TRL_OK;
    if (f)
        *f = (trli_receivers_file){.ctx = ctx, .n = receivers->n, .nvalues = receivers->nvalues, .file = {.file = -1}};
    else
        err = trli_no_memory(ctx, NULL, "for the file of receivers");
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = open_file(f, folder, receivers, append, after_step);
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK) return TRL_OK;
    if (f) (void)!trli_growing_close(&f->file);
    destroy(file);
    return err;
}

static uint64_t swapped(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return htobe64(bits);
}

/* On rank 0. */
static trl_err append_record(trli_receivers_file *f, trl_gidx step, double time, const double *const *values)
{
    uint64_t *next = f->record;
    trl_err err;
    *next++ = swapped(time);
    *next++ = swapped((double)step);
    for (int v = 0; v < f->nvalues; ++v)
        for (int i = 0; i < f->n; ++i) *next++ = swapped(values[v][i]);
    TRL_TRY(trli_growing_append(&f->file, f->record, (size_t)record_bytes(f)));
    int number = put_records(f->file.file, ++f->records);
    if (number) err = trli_file_fail(f->ctx, "write", f->file.path, number);
done:
    return err;
}

trl_err trli_receivers_write(trli_receivers_file *file, trl_gidx step, double time, const double *const *values)
{
    trl_err err = trl_context_rank(file->ctx) == 0 ? append_record(file, step, time, values) : TRL_OK;
    return trl_context_agree(file->ctx, err);
}

trl_err trli_receivers_close(trli_receivers_file **file)
{
    trli_receivers_file *f = *file;
    if (!f) return TRL_OK;
    trl_err err = trl_context_agree(f->ctx, trli_growing_close(&f->file));
    destroy(file);
    return err;
}

static trl_err open_writer(const trli_writer_request *request, void **state)
{
    trli_receivers_file *file;
    trl_err err = trli_receivers_create(request->ctx, request->folder, &request->receivers, request->append,
                                        request->after_step, &file);
    *state = file;
    return err;
}

static trl_err write_receivers(void *state, trl_gidx step, double time, const double *const *values)
{
    return trli_receivers_write(state, step, time, values);
}

static trl_err close_writer(void **state)
{
    trli_receivers_file *file = *state;
    *state = NULL;
    return trli_receivers_close(&file);
}

const trli_writer trli_writer_receivers = {
    .name = "receivers.nc",
    .file = "receivers.nc",
    .open = open_writer,
    .receivers = write_receivers,
    .close = close_writer,
};
