/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A file of fields that all ranks write. */
#ifndef TRLI_OUTPUT_FILE_IMPL_H
#define TRLI_OUTPUT_FILE_IMPL_H

#include "output_copy_impl.h"
#include "output_hdf5_impl.h"

/* What stands behind the end of a checkpoint, where readers of netCDF do not look: a checksum of all that is before. */
typedef struct trli_seal {
    char magic[8];
    int64_t bytes; /* of the file before it */
    int64_t step;
    int64_t lineage; /* the same in the checkpoints of runs that continue one another */
    uint64_t sum;    /* over the words of the file */
    uint64_t own;    /* of the members above */
} trli_seal;

typedef struct trli_output_file {
    trl_context *ctx;
    char *path;
    trli_new_file first;      /* rank 0: the file, aside until it is whole */
    trli_structure structure; /* rank 0 */
    int file;                 /* on each rank; -1: not open */
    int compression;          /* as in the contents */
    trl_loop *loop;
    bool sealed;     /* it gets a seal */
    int64_t lineage; /* then */
    trl_gidx step;
    int64_t bytes;                 /* rank 0: of the structure and all values */
    uint64_t sum;                  /* of what this rank wrote, then of the file */
    double *buffer;                /* of a chunk */
    trli_file_copy *copy;          /* of what is to be written; NULL: it is written at once */
    int number;                    /* errno of what failed */
    char reason[TRLI_FILE_REASON]; /* why it has no name */
} trli_output_file;

/* Create a file aside; unless it is compressed, with its space reserved and its structure in it. lineage < 0: no
 * seal. copy: as in the file. Fails with IO, MEMORY, MPI. Collective: yes; whatever happens, trli_output_end or
 * trli_output_release follows. */
TRL_NODISCARD trl_err trli_output_begin(trl_context *ctx, const char *path, int64_t lineage,
                                        const trli_contents *contents, trli_file_copy *copy, trli_output_file *file);
/* Points of a variable: `box` of an array whose index 0 is point `first` of the grid. */
typedef struct trli_part {
    const trl_array *array;
    const trl_gidx *first;
    trl_box box;
} trli_part;
/* Write points of a variable of a file that is not compressed. Returns 0 or an errno. Not collective: each point comes
 * from one rank. */
TRL_NODISCARD int trli_output_put(trli_output_file *file, const trli_file_variable *variable, int time,
                                  const trli_part *part);
/* Write whole words at a place of the file that is this rank's. Returns 0 or an errno. */
TRL_NODISCARD int trli_output_put_words(trli_output_file *file, const void *bytes, size_t size, int64_t at);
/* The chunks along each axis, from one to before another, in which a part lies. False: it has no points. */
bool trli_part_chunks(const trli_file_variable *variable, const trli_part *part, trl_gidx from[3], trl_gidx to[3]);
/* output_deflate.c: write chunks `from` to before `to` of a variable of a compressed file. The parts of all ranks hold
 * all points in them, each once, and perhaps others. Fails with IO, MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_output_deflate(trli_output_file *file, const trli_file_variable *variable, int time,
                                          int64_t from, int64_t to, int nparts, const trli_part *parts);
/* The end of a file in parts. After the last point: rank 0 completes the structure. Not collective. */
TRL_NODISCARD trl_err trli_output_complete(trli_output_file *file);
/* Then bring what this rank has to the file; of other ranks than 0 to the disk. What fails is kept. Thread: any. */
void trli_output_write(trli_output_file *file);
/* Then the ranks agree on that, each with its own error before it. Collective: yes. */
TRL_NODISCARD trl_err trli_output_written(trli_output_file *file, trl_err err);
/* Then rank 0 seals the file, brings it to the disk and gives it its name. What fails is kept. Thread: any. */
void trli_output_name(trli_output_file *file);
TRL_NODISCARD trl_err trli_output_named(const trli_output_file *file);
/* A file without its name is removed. Not collective. */
void trli_output_release(trli_output_file *file);
/* All of that, unless `err` or a part fails on any rank. Collective: yes. */
TRL_NODISCARD trl_err trli_output_end(trli_output_file *file, trl_err err);
/* Begin a file for one time of fields, chunked by the patches of the layout, and put all into it, or into the copy; of
 * `contents`, its grid and variables are set here. Collective: yes; whatever happens, trli_output_release follows. */
TRL_NODISCARD trl_err trli_output_fields(trl_context *ctx, const trl_layout *layout, const char *path, int64_t lineage,
                                         const trli_contents *contents, int n, const trli_output_field *fields,
                                         trli_file_copy *copy, trli_output_file *file);

/* Read the seal of a file. False: it has none, and why. Not collective. */
bool trli_seal_read(const char *path, trli_seal *seal, char reason[TRLI_REASON_ROOM]);
/* Whether the file is what its seal says; if not, why. Each rank reads a part. Fails with IO where some ranks do not
 * find what others do, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_seal_check(trl_context *ctx, const char *path, bool *whole, char reason[TRLI_REASON_ROOM]);

#endif
