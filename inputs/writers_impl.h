/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Output writers: what a run's fields and series are written as. HDF5 with XDMF is one of them, series.csv another. */
#ifndef TRLI_WRITERS_IMPL_H
#define TRLI_WRITERS_IMPL_H

#include "output_impl.h"

/* What a writer is told when a run begins; valid during the call, but for ctx, layout and workers. */
typedef struct trli_writer_request {
    trl_context *ctx;
    const trl_layout *layout;
    const char *folder;   /* of the run's output; there is one */
    bool append;          /* a restart: what was written up to after_step stays, later steps go */
    trl_gidx after_step;  /* then */
    int compression;      /* of fields: a deflate level, 0: none */
    trl_workers *workers; /* that may be used between steps, or NULL */
    trli_beside *beside;  /* for files that are written while steps go on; NULL: at once */
    int nseries;
    const char *const *series; /* [nseries] names */
    bool means;                /* over time of them, since */
    double means_from;
    trli_receivers_request receivers; /* nvalues 0: none */
} trli_writer_request;

/* One format. All slots are collective, called on the main thread, and fail with the same error on all ranks. A file
 * that a step leaves under its name is whole, whatever ends the run. */
typedef struct trli_writer {
    const char *name; /* REQUIRED. For messages. */
    const char *file; /* OPTIONAL. In the folder; that of an earlier run goes where the writer is not opened. */

    /* REQUIRED. Begin; *state is the writer's own, and NULL after a failure. */
    trl_err (*open)(const trli_writer_request *request, void **state);

    /* OPTIONAL. Write the owned points of n fields at a step, in place of what was written for it before. Absent: the
     * format has no fields. */
    trl_err (*fields)(void *state, trl_gidx step, double time, int n, const trli_output_field *fields);

    /* OPTIONAL. Write the values of all series at a step. Absent: the format has no series. A writer of series alone is
     * not opened when there are none. */
    trl_err (*series)(void *state, trl_gidx step, double time, const double *values);
    bool means; /* of means over time alone, and not opened where none are wanted */

    /* OPTIONAL. Write the values of receivers at a step, [values][points]. Absent: the format has none. A writer of
     * receivers alone is not opened when there are none. */
    trl_err (*receivers)(void *state, trl_gidx step, double time, const double *const *values);

    /* OPTIONAL. From now on fields are those of another layout, and other workers may be used. Fails with MEMORY. */
    trl_err (*move)(void *state, const trl_layout *layout, trl_workers *workers);

    /* REQUIRED. Complete and release; sets *state to NULL, after a failure too. */
    trl_err (*close)(void **state);
} trli_writer;

/* X(name): every writer of a run, trli_writer_<name>. */
#define TRLI_WRITER_LIST(X)                \
    X(netcdf)                              \
    X(csv)                                 \
    X(means) /* reads what csv has kept */ \
    X(receivers)

#define TRLI_WRITER_DECLARE(name) extern const trli_writer trli_writer_##name;
TRLI_WRITER_LIST(TRLI_WRITER_DECLARE)
#undef TRLI_WRITER_DECLARE

/* The writers that a run has open. */
typedef struct trli_writers {
    int n;
    struct trli_open_writer {
        const trli_writer *ops;
        void *state;
    } * open; /* [n] */
} trli_writers;

/* Open n writers, those of TRLI_WRITER_LIST where writers is NULL. BUG: one lacks a required slot. After a failure
 * trli_writers_close closes those that are open. Collective: yes (all functions here). */
TRL_NODISCARD trl_err trli_writers_open(const trli_writer_request *request, const trli_writer *const *writers, int n,
                                        trli_writers *set);
TRL_NODISCARD trl_err trli_writers_fields(const trli_writers *set, trl_gidx step, double time, int n,
                                          const trli_output_field *fields);
TRL_NODISCARD trl_err trli_writers_series(const trli_writers *set, trl_gidx step, double time, const double *values);
TRL_NODISCARD trl_err trli_writers_receivers(const trli_writers *set, trl_gidx step, double time,
                                             const double *const *values);
/* Go on with the fields of another layout, and other workers. */
TRL_NODISCARD trl_err trli_writers_move(const trli_writers *set, const trl_layout *layout, trl_workers *workers);
/* Close them all, and return the first error. May be called twice. */
TRL_NODISCARD trl_err trli_writers_close(trli_writers *set);

#endif
