/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files a run writes: fields with their XDMF, checkpoints, series.csv, report.json. They know arrays, not simulations.
 * A process that writes should ignore SIGXFSZ, so that a limit on the size of files is an error like a full disk. */
#ifndef TRLI_OUTPUT_IMPL_H
#define TRLI_OUTPUT_IMPL_H

#include <trl_field.h>
#include <trl_loop.h>
#include <trl_simulation.h>

/* A field to write or read: one array per local patch of the layout. */
typedef struct trli_output_field {
    const char *name;       /* dataset name: "T", "q.x" */
    trl_location location;  /* bits of axes that the grid lacks are zero */
    const char *word;       /* the location's attribute; NULL: its name */
    const trl_array *patch; /* [layout->nlocal] */
    bool *found;            /* NULL, or a checkpoint may be without it; reading one says here whether it has it */
} trli_output_field;

/* Below a folder, created with its parents if missing: fields/<step, 8 digits>.nc for each output time, and
 * fields.xdmf. Files of steps later than after_step are removed at the start, those of all steps unless append
 * (restart). Files are not read: what is missing or damaged among them does not matter. A file is written aside and
 * then renamed: whatever happens, all files under their names are whole. IO errors name the path and the system's
 * reason. Collective: yes (all functions here). */
typedef struct trli_fields_file trli_fields_file;
TRL_NODISCARD trl_err trli_fields_create(trl_context *ctx, const trl_layout *layout, const char *folder, bool append,
                                         trl_gidx after_step, trli_fields_file **file);
/* From now on write fields of another layout. */
void trli_fields_move(trli_fields_file *file, const trl_layout *layout);
/* From now on compress what is written: a deflate level of 1 to 9, or 0. loop: of the workers that do it, or NULL. */
void trli_fields_compress(trli_fields_file *file, int level, trl_loop *loop);
/* From now on write files while steps go on (output_beside_impl.h): the file is in use until those are finished. */
typedef struct trli_beside trli_beside;
void trli_fields_beside(trli_fields_file *file, trli_beside *beside);
/* What is there of the step is replaced, unless it was written last, of an earlier time: then this is a further file of
 * the same step. */
TRL_NODISCARD trl_err trli_fields_write(trli_fields_file *file, trl_gidx step, double time, int n,
                                        const trli_output_field *fields);
TRL_NODISCARD trl_err trli_fields_close(trli_fields_file **file);

/* Checkpoints: folder/checkpoint/<step, 8 digits>.nc, files like those of fields with a checksum of every byte. Those
 * of runs that continue one another have one lineage: of it the newest `keep` stay, later ones than the present step
 * are removed. Those of other runs stay unless their step is written again. */
typedef struct trli_checkpoint_state {
    trl_gidx step;
    double time, dt, time_start;
    double control[TRL_CONTROLS]; /* 0: dt does not follow from errors */
    int64_t lineage;              /* -1: that of a new run; trli_checkpoint_write sets it */
} trli_checkpoint_state;
/* beside: to write it while steps go on; NULL: at once. */
TRL_NODISCARD trl_err trli_checkpoint_write(trl_context *ctx, trli_beside *beside, const trl_layout *layout,
                                            const char *folder, int keep, trli_checkpoint_state *state, int n,
                                            const trli_output_field *fields);
/* Read the checkpoint at `where` (one file, or a folder: the newest of the newest lineage; damaged ones, and those of
 * another grid or other fields, are skipped with a warning) into the fields' owned points, on any number of ranks and
 * patches. own: the output folder of this run, whose lineage it then continues. INPUT errors: none there; grid, fields
 * or locations differ, naming them. IO: damaged. */
TRL_NODISCARD trl_err trli_checkpoint_read(trl_context *ctx, const trl_layout *layout, const char *own,
                                           const char *where, trli_checkpoint_state *state, int n,
                                           const trli_output_field *fields);

/* A dataset of an HDF5 file, as a deck names it. */
typedef struct trli_dataset_name {
    const char *path, *name;
    trl_place path_place, name_place;
} trli_dataset_name;

/* All of a dataset of n rows of dim numbers, as coordinates of points, which the caller frees (trli_free). INPUT errors
 * as below. Collective: yes. */
TRL_NODISCARD trl_err trli_dataset_points(trl_context *ctx, const trli_dataset_name *from, int dim, double **points,
                                          int *n);

/* Read one dataset of any HDF5 file onto a field's owned points (the `file` expression type). INPUT errors, at the
 * place of what is wrong: missing file or dataset (what is there is listed), wrong shape (both shapes). */
TRL_NODISCARD trl_err trli_dataset_read(trl_context *ctx, const trl_layout *layout, const trli_dataset_name *from,
                                        const trli_output_field *field);

/* A file such as series.csv: a header, then a line per call, 17 significant digits, written by rank 0 and flushed; half
 * a line is never left. append: keep lines up to after_step; an INPUT error if the header differs. */
typedef struct trli_series_file trli_series_file;
TRL_NODISCARD trl_err trli_series_create(trl_context *ctx, const char *folder, const char *name, int n,
                                         const char *const *names, bool append, trl_gidx after_step,
                                         trli_series_file **file);
/* Write a line on rank 0; nothing on others. Collective: no. */
TRL_NODISCARD trl_err trli_series_append(trli_series_file *file, trl_gidx step, double time, const double *values);
TRL_NODISCARD trl_err trli_series_write(trli_series_file *file, trl_gidx step, double time, const double *values);
TRL_NODISCARD trl_err trli_series_close(trli_series_file **file);

/* receivers.nc: values at points over time, a netCDF file of the classic format, in which a record for each time
 * follows the one before and a number in front says how many there are: it is whole whenever a run is killed. Written
 * by rank 0. append: keep records up to after_step; an INPUT error if the file is for other points or values. */
typedef struct trli_receivers_request {
    int n, dim;
    const double *at; /* [n][dim] */
    int nvalues;
    const char *const *name; /* [nvalues] */
} trli_receivers_request;
typedef struct trli_receivers_file trli_receivers_file;
TRL_NODISCARD trl_err trli_receivers_create(trl_context *ctx, const char *folder,
                                            const trli_receivers_request *receivers, bool append, trl_gidx after_step,
                                            trli_receivers_file **file);
/* values[v][i]: of name v at point i, on rank 0. */
TRL_NODISCARD trl_err trli_receivers_write(trli_receivers_file *file, trl_gidx step, double time,
                                           const double *const *values);
TRL_NODISCARD trl_err trli_receivers_close(trli_receivers_file **file);

/* Write text to folder/name atomically (aside, then renamed) from rank 0. */
TRL_NODISCARD trl_err trli_text_write(trl_context *ctx, const char *folder, const char *name, const char *text);

#endif
