/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis run --trace FILE`: what the workers of all ranks did, in one file. */
#include "run_impl.h"

#include <errno.h>
#include <string.h>

#include "files_impl.h"
#include "memstream_impl.h"

enum {
    EVENTS = 200000, /* of each worker */
    TAG = 0x7472,    /* no message of a step has it */
    PIECE = 1 << 22  /* bytes of a message, at most */
};

trl_err trli_session_start_trace(trli_session *run)
{
    if (!trli_arguments_value(run->arguments, "--trace")) return TRL_OK;
    /* Each rank counts time from the creation of its trace: created together, they agree. */
    trl_err err = trl_context_agree(run->ctx, TRL_OK);
    if (err == TRL_OK) err = trl_context_agree(run->ctx, trl_simulation_trace(run->sim, EVENTS));
    run->traced = err == TRL_OK;
    return err;
}

/* A rank's text. Its first and last line are the frame of the events between them. */
typedef struct trace_text {
    trli_memstream stream;
    const char *events, *end;
} trace_text;

static trl_err compose(const trli_session *run, trace_text *t)
{
    static const char last[] = "\n]}\n";
    trl_err err = TRL_OK;
    if (!trli_memstream_open(run->ctx, &t->stream)) return trli_no_memory(run->ctx, NULL, "for the text of a trace");
    TRL_TRY(trl_simulation_write_trace(run->sim, t->stream.out));
    if (!trli_memstream_close(&t->stream)) TRL_TRY(trli_no_memory(run->ctx, NULL, "for the text of a trace"));
    t->events = strchr(t->stream.text, '\n') + 1;
    t->end = t->stream.text + t->stream.length - strlen(last);
done:
    return err;
}

static trl_err send_events(const trli_session *run, const trace_text *t)
{
    MPI_Comm comm = trl_context_comm(run->ctx);
    uint64_t length = (uint64_t)(t->end - t->events);
    trl_err err = trli_mpi_check(run->ctx, MPI_Send(&length, 1, MPI_UINT64_T, 0, TAG, comm), "MPI_Send");
    for (const char *at = t->events; err == TRL_OK && at < t->end; at += PIECE) {
        int bytes = t->end - at < PIECE ? (int)(t->end - at) : PIECE;
        err = trli_mpi_check(run->ctx, MPI_Send(at, bytes, MPI_BYTE, 0, TAG, comm), "MPI_Send");
    }
    return err;
}

/* What cannot be written is received all the same: the sender waits for that. */
static trl_err append_events(const trli_session *run, int rank, char *piece, FILE *out)
{
    MPI_Comm comm = trl_context_comm(run->ctx);
    uint64_t left = 0;
    int status = MPI_Recv(&left, 1, MPI_UINT64_T, rank, TAG, comm, MPI_STATUS_IGNORE);
    trl_err err = trli_mpi_check(run->ctx, status, "MPI_Recv");
    fputs(",\n", out);
    while (err == TRL_OK && left > 0) {
        int bytes = left < PIECE ? (int)left : PIECE;
        status = MPI_Recv(piece, bytes, MPI_BYTE, rank, TAG, comm, MPI_STATUS_IGNORE);
        err = trli_mpi_check(run->ctx, status, "MPI_Recv");
        if (err == TRL_OK) fwrite(piece, 1, (size_t)bytes, out);
        left -= (uint64_t)bytes;
    }
    return err;
}

/* The events of all ranks, in the order of ranks, inside the frame of rank 0. */
static trl_err gather(const trli_session *run, const trace_text *t, char *piece, const char *path, FILE *out)
{
    trl_err err = TRL_OK;
    if (trl_context_rank(run->ctx) > 0) return send_events(run, t);
    fwrite(t->stream.text, 1, (size_t)(t->end - t->stream.text), out);
    for (int rank = 1; err == TRL_OK && rank < trl_context_ranks(run->ctx); ++rank)
        err = append_events(run, rank, piece, out);
    fputs(t->end, out);
    if (fflush(out) != 0 || ferror(out)) return trli_file_fail(run->ctx, "write", path, errno);
    return err;
}

/* Rank 0 alone writes. */
static trl_err open_trace(const trli_session *run, const char *path, trli_new_file *file, FILE **out)
{
    trl_err err;
    TRL_TRY(trli_folder_create_for(run->ctx, path));
    TRL_TRY(trli_file_begin(run->ctx, path, true, file));
    TRL_TRY(trli_file_stream(file, out));
done:
    return err;
}

trl_err trli_session_write_trace(trli_session *run)
{
    const char *path = trli_arguments_value(run->arguments, "--trace");
    bool root = trl_context_rank(run->ctx) == 0;
    trace_text t = {0};
    char *piece = NULL;
    trli_new_file file = {.file = -1};
    FILE *out = NULL;
    trl_err err;
    if (!run->traced) return TRL_OK;
    trl_context_begin_phase(run->ctx);
    err = compose(run, &t);
    if (root && err == TRL_OK) err = open_trace(run, path, &file, &out);
    if (root && err == TRL_OK && !(piece = trli_new(run->ctx, PIECE, 1)))
        err = trli_no_memory(run->ctx, NULL, "for the traces of other ranks");
    err = trl_context_agree(run->ctx, err);
    if (err == TRL_OK) err = gather(run, &t, piece, path, out);
    if (out) fclose(out);
    if (root) err = trli_file_end(&file, err);
    trli_free(piece);
    trli_memstream_discard(&t.stream);
    return trl_context_end_phase(run->ctx, err);
}
