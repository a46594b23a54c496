/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* HDF5 files of fields, as input.md section 4 fixes them, written by all ranks at once.
 *
 * Rank 0 makes the structure (groups, attributes, contiguous datasets with their space allocated) through HDF5 and
 * closes the file; then every rank writes its points straight to their places in the datasets, and rank 0 gives the
 * finished group its name. HDF5 over MPI-IO is not used: under a full disk (Open MPI 4.1, HDF5 1.10) its collective
 * writes lose data and still report success, print to standard error, or leave some ranks waiting for ever; and HDF5
 * itself crashes when its own metadata cannot be written. So rank 0 reserves the space of everything before HDF5
 * touches the file, and a disk that is too full is found while the file is still as it was. */
#ifndef TRLI_OUTPUT_HDF5_IMPL_H
#define TRLI_OUTPUT_HDF5_IMPL_H

#include <stdio.h>

#include <hdf5.h>

#include "output_impl.h"

enum {
    TRLI_SCHEMA = 1,     /* root attribute schema */
    TRLI_STEP_ROOM = 24, /* of the name of a step's group */
    TRLI_REASON_ROOM = 256
};

/* Group of what fields.xdmf shows of each step and tag where the tag's own dataset will not do (other locations than
 * cells, vectors, grids of fewer than three dimensions): /cells/<step>/<tag>, averages at cells, shape [z][y][x] or
 * [z][y][x][3] with 1 for absent axes. */
#define TRLI_CELLS_GROUP "cells"

/* output_hdf5.c: nothing there is collective. */

/* The innermost reason that HDF5 gives for its last failure, on one line. */
void trli_hdf5_reason(char reason[TRLI_REASON_ROOM]);
/* Record "cannot <action> '<path>': HDF5 says: <the innermost reason HDF5 gives>" and return IO. */
trl_err trli_hdf5_fail(trl_context *ctx, const char *action, const char *path);
/* HDF5 forgets the reason of a failure at its next call: keep it over calls that release things. */
hid_t trli_hdf5_keep_reason(void);
void trli_hdf5_restore_reason(hid_t reason);
/* Open a file to read, without locks, which container and network file systems lack; HDF5's own messages are switched
 * off. Without trl_err: -1 and the reason. */
hid_t trli_hdf5_try_open(const char *path, char reason[TRLI_REASON_ROOM]);
TRL_NODISCARD trl_err trli_hdf5_open(trl_context *ctx, const char *path, hid_t *file);
/* Open a file to change, its size first extended on disk by `bytes` and what the structure of `datasets` of them may
 * need. On failure the file is as it was. HDF5 gives back what remains when the file is closed. */
TRL_NODISCARD trl_err trli_hdf5_open_reserved(trl_context *ctx, const char *path, int64_t bytes, int datasets,
                                              hid_t *file);
/* Close a file that was changed. */
TRL_NODISCARD trl_err trli_hdf5_close(trl_context *ctx, const char *path, hid_t file);
/* Create or replace a file that holds the root attributes of a grid and nothing else; whole or not there. */
TRL_NODISCARD trl_err trli_hdf5_create(trl_context *ctx, const trl_grid *grid, const char *path);
/* INPUT error, naming what differs, unless the root attributes are those of the grid. */
TRL_NODISCARD trl_err trli_hdf5_check_grid(trl_context *ctx, const trl_grid *grid, hid_t file, const char *path);

/* Attributes. False: HDF5 failed, or when reading: missing, of another kind or length. */
bool trli_hdf5_put(hid_t object, const char *name, hid_t type, int n, const void *values);
bool trli_hdf5_get(hid_t object, const char *name, hid_t type, int n, void *values);
bool trli_hdf5_put_text(hid_t object, const char *name, const char *text);
bool trli_hdf5_get_location(hid_t dataset, trl_location *location);

/* Name of a step's group, and back: -1 for other names. */
void trli_step_name(trl_gidx step, char name[TRLI_STEP_ROOM]);
trl_gidx trli_step_of(const char *name);
/* The steps that have a group in an open group, ascending; the caller frees. Fails with IO or MEMORY. */
TRL_NODISCARD trl_err trli_hdf5_steps(trl_context *ctx, const char *path, hid_t group, trl_gidx **steps, int *n);

/* Whether exactly one step has a group, and which. */
bool trli_hdf5_only_step(hid_t group, trl_gidx *step);

/* The shape of a dataset of the whole grid at a location, slowest axis first; returns its rank. */
int trli_hdf5_shape(const trl_grid *grid, trl_location location, hsize_t shape[3]);
/* Read the owned points of a field from a dataset of that shape. Fails with IO or MEMORY. */
TRL_NODISCARD trl_err trli_hdf5_read(trl_context *ctx, const trl_layout *layout, const char *path, const char *dataset,
                                     const trli_output_field *field);

/* output_step.c */

/* Numbers that a step's group has as attributes beside `step`. */
typedef struct trli_stamp {
    const char *name;
    double value;
} trli_stamp;

/* One dataset to be written. */
typedef struct trli_part {
    const char *name;
    char *owned_name; /* the same where the maker of the part must free it, else NULL */
    trl_location location;
    bool averaged;                         /* in TRLI_CELLS_GROUP; location is then cell */
    int ncomponents;                       /* 1, or 3: interleaved */
    const trli_output_field *component[3]; /* NULL: zeros */
    int64_t offset;                        /* of its first value in the file, from rank 0 */
} trli_part;

/* A field as it is. */
trli_part trli_part_of(const trli_output_field *field);

/* Where steps are written. Kept from step to step for the plans of ghost exchange that averages need. */
typedef struct trli_step_writer {
    trl_context *ctx;
    const trl_layout *layout;
    trl_exchange *exchange[8]; /* by location; NULL: not needed yet */
} trli_step_writer;

/* Write a group of datasets to a file that trli_hdf5_create made; an older group of the step is replaced. The group is
 * written under another name, and gets its own when it is whole. Fails with IO, MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_step_write(trli_step_writer *writer, const char *path, trl_gidx step, int nstamps,
                                      const trli_stamp *stamps, int nparts, trli_part *parts);
void trli_step_writer_release(trli_step_writer *writer);

/* Remove the group of a step, its averages, and what an interrupted write left. False: HDF5 failed. */
bool trli_step_remove(hid_t file, trl_gidx step);
bool trli_step_clean(hid_t file);

/* output_xdmf.c: append what fields.xdmf says of a step, from its groups. Fails with IO. Not collective. */
TRL_NODISCARD trl_err trli_xdmf_step(trl_context *ctx, const trl_grid *grid, hid_t file, const char *path,
                                     trl_gidx step, FILE *out);
/* Write the file: a head, the steps' text, a tail. Not collective. */
TRL_NODISCARD trl_err trli_xdmf_write(trl_context *ctx, const char *path, const char *steps);

#endif
