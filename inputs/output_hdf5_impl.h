/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* netCDF-4 files of fields, written by all ranks at once; docs/output.md describes them.
 *
 * Rank 0 lets HDF5 make the structure in memory (memory_file_impl.h), creates the file aside, reserves its
 * space and stores the structure; then every rank writes its points straight to their places in the chunks, and rank 0
 * gives the file its name. HDF5 over MPI-IO is not used: under a full disk (Open MPI 4.1, HDF5 1.10) its collective
 * writes lose data and still report success, print to standard error, or leave some ranks waiting for ever. */
#ifndef TRLI_OUTPUT_HDF5_IMPL_H
#define TRLI_OUTPUT_HDF5_IMPL_H

#include <stdio.h>

#include <hdf5.h>

#include <trl_loop.h>

#include "files_impl.h"
#include "memory_file_impl.h"
#include "output_impl.h"

enum {
    TRLI_NO_FILTERS = 3, /* bits of a chunk that went through neither shuffle nor deflate */
    TRLI_SCHEMA = 2,     /* root attribute schema */
    TRLI_STEP_ROOM = 36, /* of a step's digits */
    TRLI_REASON_ROOM = 256
};

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
/* Put the root attributes of a grid. */
bool trli_hdf5_put_grid(hid_t file, const trl_grid *grid);
/* The grid of the root attributes of a file of this schema. False: there is none, and why. */
bool trli_hdf5_get_grid(hid_t file, trl_grid *grid, char reason[TRLI_REASON_ROOM]);
/* Whether the root attributes are those of the grid; if not, what differs. */
bool trli_hdf5_is_grid(const trl_grid *grid, hid_t file, char reason[TRLI_REASON_ROOM]);

/* Attributes. False: HDF5 failed, or when reading: missing, of another kind or length. */
bool trli_hdf5_put(hid_t object, const char *name, hid_t type, const void *value);
bool trli_hdf5_put_row(hid_t object, const char *name, hid_t type, hsize_t n, const void *values);
bool trli_hdf5_get(hid_t object, const char *name, hid_t type, int n, void *values);
bool trli_hdf5_put_text(hid_t object, const char *name, const char *text);
bool trli_hdf5_get_location(hid_t dataset, trl_location *location);

/* The times of an open file; trli_free gives both lists back. False: there are none, and why. */
bool trli_hdf5_times(trl_context *ctx, hid_t file, trl_gidx **step, double **time, int *n,
                     char reason[TRLI_REASON_ROOM]);
/* The variables that hold tags, in their order, for trli_hdf5_free_tags. False: HDF5 failed, or no memory. */
bool trli_hdf5_tags(trl_context *ctx, hid_t file, char ***name, int *n);
void trli_hdf5_free_tags(char **name, int n);

/* Whether a tag's variable is one that a checkpoint may be without. */
bool trli_hdf5_is_optional(hid_t file, const char *tag);

/* The shape of a field of the whole grid at a location, slowest axis first; returns its rank. */
int trli_hdf5_shape(const trl_grid *grid, trl_location location, hsize_t shape[3]);
/* Read the owned points of a field from a dataset of that shape, or of one more axis, whose index is `time`. Fails with
 * IO or MEMORY. */
TRL_NODISCARD trl_err trli_hdf5_read(trl_context *ctx, const trl_layout *layout, const char *path, const char *dataset,
                                     trl_gidx time, const trli_output_field *field);

/* output_folder.c: folders of files named after steps, "00000100.nc". Nothing there is collective. */

/* A file: the steps that were taken before its time, and its number among several files of so many steps, which is 0
 * for the first. */
typedef struct trli_step_key {
    trl_gidx step;
    int part;
} trli_step_key;
/* The digits of a key: 8, or more for later steps, and "_001" behind them for part 1. */
void trli_step_name(trli_step_key key, char name[TRLI_STEP_ROOM]);
/* The path of a file, for trli_free. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_step_path(trl_context *ctx, const char *folder, trli_step_key key, char **path);
typedef struct trli_step_list {
    trli_step_key *key; /* [n] ascending */
    int n;
} trli_step_list;
/* The files of a folder. Fails with IO or MEMORY; the list is empty then. */
TRL_NODISCARD trl_err trli_steps_list(trl_context *ctx, const char *folder, trli_step_list *list);
void trli_steps_release(trli_step_list *list);

/* The files of fields of an output folder, for commands that read them: those of fields/ in it, or its own. Fails with
 * IO or MEMORY, IO too where there are none. */
typedef struct trli_output_folder {
    char *path;
    trli_step_list steps;
} trli_output_folder;
TRL_NODISCARD trl_err trli_output_folder_find(trl_context *ctx, const char *path, trli_output_folder *folder);
void trli_output_folder_release(trli_output_folder *folder);

/* output_structure.c: nothing there is collective. */

/* A tag in a file, and where its values lie. Along axes that the grid lacks there is one point. */
typedef struct trli_file_variable {
    const char *name;
    trl_location location;
    const char *word;                        /* of its attribute */
    bool optional;                           /* a checkpoint may be without it */
    trl_gidx points[3], chunk[3], chunks[3]; /* of the grid; of a chunk; chunks along each axis */
    int64_t *place;                          /* [times][chunks z][y][x] where each chunk begins in the file, bytes; one
                                                block holds those of all variables of a file */
} trli_file_variable;

/* Numbers that a file has as root attributes of their own. */
typedef struct trli_stamp {
    const char *name;
    double value;
} trli_stamp;

/* What a file is to hold. */
typedef struct trli_contents {
    const trl_grid *grid;
    int ntimes;
    const trl_gidx *step; /* [ntimes] */
    const double *time;
    int nstamps;
    const trli_stamp *stamp;
    int compression; /* deflate level of the variables, 0: none */
    trl_loop *loop;  /* of the workers that compress; NULL: the caller alone */
    int nvariables;
    trli_file_variable *variable;
} trli_contents;

/* Variables for fields, cut into chunks as a grid is into patches, smaller ones if they are compressed, their places
 * not known yet. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_file_variables_create(trl_context *ctx, const trl_grid *grid, const int patches[3],
                                                 int compression, int ntimes, int n, const trli_output_field *fields,
                                                 trli_file_variable **variables);
void trli_file_variables_release(trli_file_variable **variables);
int64_t trli_file_variable_chunks(const trli_file_variable *variable);
int64_t trli_file_variable_chunk_points(const trli_file_variable *variable);
/* The structure of a file, in memory. It must stay where it is while it is open. */
typedef struct trli_structure {
    trl_context *ctx;
    const char *path; /* of the file, for messages */
    int dim;
    trli_memory_file memory;
    hid_t file;   /* -1: closed */
    void *values; /* what memory.values is, in memory of so many bytes */
    size_t bytes;
} trli_structure;
/* Begin one. Variables that are not compressed get their places. Whatever happens to it, trli_structure_release
 * follows. Fails with MEMORY or IO (all functions here). */
TRL_NODISCARD trl_err trli_structure_open(trl_context *ctx, const char *path, const trli_contents *contents,
                                          trli_structure *structure);
/* Set the places of n chunks of a compressed variable, from number `from` on; bytes[n]: what they take, as much as
 * their values if these are stored as they are. */
TRL_NODISCARD trl_err trli_structure_place(trli_structure *structure, const trli_file_variable *variable, int time,
                                           int64_t from, int n, const int64_t *bytes);
/* Complete it: after that its memory holds all of it. */
TRL_NODISCARD trl_err trli_structure_close(trli_structure *structure);
void trli_structure_release(trli_structure *structure);

/* output_xdmf.c: append what fields.xdmf says of a step. path: of its file; link: the same from the folder of
 * fields.xdmf. Fails with IO. Not collective. */
TRL_NODISCARD trl_err trli_xdmf_step(trl_context *ctx, const trl_grid *grid, const char *path, const char *link,
                                     trli_step_key key, double time, int n, const trli_output_field *fields, FILE *out);
/* Begin the file: a head, the steps' text, a tail; or write it. Not collective. */
TRL_NODISCARD trl_err trli_xdmf_begin(trl_context *ctx, const char *path, const char *steps, trli_new_file *file);
TRL_NODISCARD trl_err trli_xdmf_write(trl_context *ctx, const char *path, const char *steps);
/* The text of the steps up to one of a file that trli_xdmf_write wrote, for trli_free; empty where the file is
 * missing or says something else. Not collective. */
TRL_NODISCARD trl_err trli_xdmf_read(trl_context *ctx, const char *path, trl_gidx last, char **steps);

#endif
