/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "writers_impl.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files_impl.h"
#include "memory_impl.h"

static const trli_writer *const built_in[] = {
#define WRITER_ADDRESS(name) &trli_writer_##name,
    TRLI_WRITER_LIST(WRITER_ADDRESS)
#undef WRITER_ADDRESS
};

static trl_err check(trl_context *ctx, const trli_writer *writer)
{
    const char *missing = NULL;
    if (!writer->open) missing = "open";
    if (!writer->close) missing = "close";
    if (!missing) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_BUG, NULL, "output writer '%s' lacks the required slot '%s'", writer->name, missing);
}

static bool is_needed(const trli_writer_request *request, const trli_writer *ops)
{
    return ops->fields || (ops->series && request->nseries > 0 && (request->means || !ops->means)) ||
           (ops->receivers && request->receivers.nvalues > 0);
}

/* A run that writes no such file leaves none of an earlier run, which would pass for its own. Of the run that a restart
 * continues the file stays, and ends there. */
static trl_err leave_file(const trli_writer_request *request, const trli_writer *ops)
{
    struct stat status;
    char *path = NULL;
    trl_err err = TRL_OK;
    if (!ops->file || trl_context_rank(request->ctx) > 0) goto done;
    TRL_TRY(trli_format(request->ctx, &path, "%s/%s", request->folder, ops->file));
    if (lstat(path, &status) || !S_ISREG(status.st_mode)) goto done;
    if (request->append)
        trl_warn(request->ctx, NULL,
                 "'%s' does not go on after the restart: the deck does not ask for it any more; its lines end before",
                 path);
    else if (unlink(path) && errno != ENOENT)
        err = trli_file_fail(request->ctx, "remove", path, errno);
done:
    trli_free(path);
    return trl_context_agree(request->ctx, err);
}

static trl_err open_all(const trli_writer_request *request, const trli_writer *const *writers, int n, trli_writers *set)
{
    trl_err err = TRL_OK;
    set->open = trli_new(request->ctx, (size_t)n + 1, sizeof *set->open);
    if (!set->open) err = trli_no_memory(request->ctx, NULL, "for %d output writers", n);
    TRL_TRY(trl_context_agree(request->ctx, err));
    for (int i = 0; i < n; ++i) {
        const trli_writer *ops = writers[i];
        TRL_TRY(check(request->ctx, ops));
        if (!is_needed(request, ops)) {
            TRL_TRY(leave_file(request, ops));
            continue;
        }
        TRL_TRY(ops->open(request, &set->open[set->n].state));
        set->open[set->n++].ops = ops;
    }
done:
    return err;
}

trl_err trli_writers_open(const trli_writer_request *request, const trli_writer *const *writers, int n,
                          trli_writers *set)
{
    *set = (trli_writers){0};
    if (writers) return open_all(request, writers, n, set);
    return open_all(request, built_in, (int)(sizeof built_in / sizeof *built_in), set);
}

trl_err trli_writers_fields(const trli_writers *set, trl_gidx step, double time, int n, const trli_output_field *fields)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < set->n; ++i)
        if (set->open[i].ops->fields) TRL_TRY(set->open[i].ops->fields(set->open[i].state, step, time, n, fields));
done:
    return err;
}

trl_err trli_writers_series(const trli_writers *set, trl_gidx step, double time, const double *values)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < set->n; ++i)
        if (set->open[i].ops->series) TRL_TRY(set->open[i].ops->series(set->open[i].state, step, time, values));
done:
    return err;
}

trl_err trli_writers_receivers(const trli_writers *set, trl_gidx step, double time, const double *const *values)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < set->n; ++i)
        if (set->open[i].ops->receivers) TRL_TRY(set->open[i].ops->receivers(set->open[i].state, step, time, values));
done:
    return err;
}

trl_err trli_writers_move(const trli_writers *set, const trl_layout *layout, trl_workers *workers)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < set->n; ++i)
        if (set->open[i].ops->move) TRL_TRY(set->open[i].ops->move(set->open[i].state, layout, workers));
done:
    return err;
}

trl_err trli_writers_close(trli_writers *set)
{
    trl_err first = TRL_OK;
    for (int i = 0; i < set->n; ++i) {
        trl_err err = set->open[i].ops->close(&set->open[i].state);
        if (first == TRL_OK) first = err;
    }
    trli_free(set->open);
    *set = (trli_writers){0};
    return first;
}
