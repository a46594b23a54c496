/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values on patches: arrays, footprints, ghost exchange, exact sums and hashes. */
#ifndef TRL_FIELD_H
#define TRL_FIELD_H

#include <trl_grid.h>

#ifdef __cplusplus
extern "C" {
#endif

/* F64 is built; the others are reserved. */
typedef enum trl_scalar_type { TRL_F64, TRL_F32, TRL_I32, TRL_I64 } trl_scalar_type;

/* One component of a field on one patch. A view: owns nothing. Strides are in elements; the last axis is slowest. */
typedef struct trl_array {
    void *at;            /* the value at local point (0,0,0), which need not be held */
    ptrdiff_t stride[3]; /* 0 on axes the grid lacks; stride[0] is 1 */
    trl_box owned, held; /* points the patch owns; points in memory, ghosts included (local indices) */
    trl_scalar_type type;
} trl_array;

static inline ptrdiff_t trl_array_offset(const trl_array *a, trl_lidx i, trl_lidx j, trl_lidx k)
{
    return i * a->stride[0] + j * a->stride[1] + k * a->stride[2];
}

/* Bytes of one value. */
static inline size_t trl_scalar_size(trl_scalar_type type)
{
    return type == TRL_F64 || type == TRL_I64 ? 8 : 4;
}

/* Where a consumer reads, relative to the point it computes: a union of boxes of offsets lo <= o <= hi. */
#define TRL_FOOTPRINT_MAX 12
typedef struct trl_offsets {
    trl_lidx lo[3], hi[3];
} trl_offsets;
typedef struct trl_footprint {
    int n; /* 0: reads nothing */
    trl_offsets part[TRL_FOOTPRINT_MAX];
} trl_footprint;

/* Add one part. Parts whose union is a box become one; beyond TRL_FOOTPRINT_MAX parts, the two whose hull adds the
 * fewest offsets become their hull. So the footprint always holds at least what was added. Fails never. */
TRL_API void trl_footprint_add(trl_footprint *f, const trl_offsets *part);
TRL_API void trl_footprint_add_all(trl_footprint *f, const trl_footprint *other);
/* f (+) by: reading f at every offset of by (Minkowski sum). sum may be f or by. */
TRL_API void trl_footprint_compose(const trl_footprint *f, const trl_footprint *by, trl_footprint *sum);
/* The smallest box around all parts; all zero if there are none. */
TRL_API trl_offsets trl_footprint_hull(const trl_footprint *f);

/* Ghost exchange of one or more fields at once, from owners to ghosts ("copy"). Setup is collective: every rank of the
 * context calls with the same fields in the same order. */
typedef struct trl_exchange trl_exchange;

typedef struct trl_exchange_field {
    trl_location location;
    /* Which ghosts are wanted: only directions that it touches are filled, each as wide as needed. */
    trl_footprint footprint;
    trl_scalar_type type;   /* of its arrays */
    const char *name;       /* for messages, or NULL */
    const trl_place *place; /* for messages, or NULL: where it is declared */
} trl_exchange_field;

/* Plans messages and buffers (persistent MPI requests on the context's communicator, with a tag of its own). Periodic
 * wrap included; nothing beyond a non-periodic side is touched. Fails with INPUT if a patch is thinner than a footprint
 * is wide (the message names the axis and says how many cells a patch needs), MEMORY, MPI. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_exchange_create(trl_context *ctx, const trl_layout *layout, int nfields,
                                                  const trl_exchange_field *fields, trl_exchange **exchange);
/* An exchange that a failed run left under way, on some ranks or all, is completed first; its arrays are not touched.
 * Collective: yes. Thread: main. */
TRL_API void trl_exchange_destroy(trl_exchange **exchange);

/* One exchange is begin (pack, send, copy between patches of this rank) then finish until *done (receive, unpack).
 * arrays: [field][local patch], addresses may differ from call to call. Allocates nothing. MPI is called under the
 * context's lock (trl_context_mpi_lock), never blocking. Thread: any, one at a time per exchange. */
TRL_API TRL_NODISCARD trl_err trl_exchange_begin(trl_exchange *exchange, const trl_array *const *arrays);
TRL_API TRL_NODISCARD trl_err trl_exchange_finish(trl_exchange *exchange, const trl_array *const *arrays, bool *done);
/* Bytes and messages sent per exchange by this rank, messages of the same rank not counted. */
TRL_API void trl_exchange_traffic(const trl_exchange *exchange, int64_t *bytes, int64_t *messages);

/* ---- fields of a driver of one's own: values of one tag on this rank's patches, which know which of their ghosts are
 * valid ---- */

typedef struct trl_field trl_field;
typedef struct trl_field_manager trl_field_manager; /* see trl_field_manager.h */
typedef struct trl_field_device trl_field_device;   /* see trl_field_device.h */

typedef struct trl_field_desc {
    const char *name; /* copied; of one field of the manager */
    trl_location location;
    trl_lidx ghost_lo[3], ghost_hi[3]; /* layers of ghosts; ignored along axes that the grid lacks */
} trl_field_desc;

/* A field on every patch of this rank. Its memory is a block of the manager for each, and comes at first use. Layout
 * and manager outlive it. Long rows begin at a cache line with their first owned point. Fails with USAGE for negative
 * ghosts and a name that another field has. Collective: no. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_create(trl_field_manager *manager, const trl_layout *layout,
                                               const trl_field_desc *desc, trl_field **field);
/* Collective: if it was exchanged. Thread: main. */
TRL_API void trl_field_destroy(trl_field **field);
TRL_API const char *trl_field_name(const trl_field *field);
TRL_API trl_location trl_field_location(const trl_field *field);
TRL_API const trl_layout *trl_field_layout(const trl_field *field);

/* The array on local patch p in the host's memory, which comes at first use, with the current values: those of a field
 * that lives on a device are copied, once what was enqueued there is done, and again to the device when it needs them.
 * After writing through it, the caller states which points are valid (trl_field_set_valid). It is current until the
 * next call that changes the field: of one on a device, ask again then. Fails with MEMORY at first use; DEVICE. */
TRL_API TRL_NODISCARD trl_err trl_field_array(trl_field *field, int p, trl_array *array);
/* The same to read only: the device's values stay current. */
TRL_API TRL_NODISCARD trl_err trl_field_read(trl_field *field, int p, trl_array *array);
/* Let a field live on a device (trl_field_device.h), with the values that it has, or on the host again (NULL).
 * Functions of fields compute where these live, in the order in which they are called; fields of one call live in one
 * place, else USAGE. The device belongs to the field's manager, and is older than the field. Fails with USAGE, MEMORY,
 * DEVICE. Collective: no; but on all ranks a field is exchanged faster where it lives on a device on all of them.
 * Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_move(trl_field *field, trl_field_device *device);
/* Let a field go to another layout of the same grid, of any patches and owners: the owned points come from where they
 * were, bit by bit, and no ghosts are valid. Arrays are others, with new addresses; masks, boundary conditions and
 * exchanges of the old layout do not fit any more. Both layouts outlive the call, the new one the field. Fails with
 * USAGE for another grid, a field that lives on a device, and owned points that are not valid on some rank: the field
 * stays as it was then; MEMORY, MPI. Collective: yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_set_layout(trl_field *field, const trl_layout *layout);
/* Points of local patch p that hold current values: a box within the held points; empty before anything was written. */
TRL_API trl_box trl_field_valid(const trl_field *field, int p);
/* The box must lie in the held points, else USAGE. */
TRL_API TRL_NODISCARD trl_err trl_field_set_valid(trl_field *field, int p, const trl_box *valid);
/* Only the owned points of every patch are valid from now on: what a change of the owned values leaves. Builds with
 * TRL_POISON fill the ghosts with NaN. */
TRL_API void trl_field_invalidate_ghosts(trl_field *field);
/* USAGE unless the box of local patch p is valid; the message names the field, the side, how many layers are missing,
 * and what provides them (an exchange beside another patch, a boundary condition at a side of the domain). */
TRL_API TRL_NODISCARD trl_err trl_field_require(const trl_field *field, int p, const trl_box *box);

/* Fill all ghosts that belong to other patches (periodic ones included) from their owners. The owned points must be
 * valid on all ranks, else USAGE on all. Ghosts beyond a side of the domain stay valid only where none beside them came
 * new: conditions are applied after the exchange. Plans itself at first use; fails as trl_exchange_create then.
 * Blocking. Collective: yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_exchange(trl_field *field);

/* Order-free exact sum of doubles (a fixed-point superaccumulator after Neal, "Fast exact summation using small and
 * large superaccumulators", 2015): any order, grouping, threads or ranks give the same correctly rounded bits. NaN and
 * infinities behave as in IEEE addition. Merged by adding the words of two normalised accumulators. */
#define TRL_SUM_WORDS 70
typedef struct trl_sum {
    int64_t word[TRL_SUM_WORDS];
    int64_t special[3]; /* counts of +inf, -inf, NaN */
    int64_t pending;    /* additions since the last carry propagation */
} trl_sum;
TRL_API void trl_sum_clear(trl_sum *s);
TRL_API void trl_sum_add(trl_sum *s, const double *values, int64_t n);
TRL_API void trl_sum_merge(trl_sum *s, const trl_sum *other);
TRL_API double trl_sum_value(const trl_sum *s);
/* Over all ranks of the context, blocking. Collective: yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_sum_allreduce(trl_context *ctx, int n, trl_sum *sums);
/* Words to exchange when the caller reduces by itself with MPI_SUM on MPI_INT64_T: normalises s first. */
TRL_API void trl_sum_normalise(trl_sum *s);

/* A mix of a global point index and a value's bits; a field's hash is the sum of the mixes modulo 2^64 over owned
 * points. All NaNs count as one.
 * Point index: i + nx*(j + ny*k) with the points of the whole grid at the location. */
TRL_API uint64_t trl_hash_mix(uint64_t point, double value);
/* The same of 64 bits as they are: different bits at a position have different hashes. */
TRL_API uint64_t trl_hash_bits(uint64_t position, uint64_t bits);
TRL_API uint64_t trl_array_hash(const trl_layout *layout, const trl_patch *patch, trl_location location,
                                const trl_array *a);

#ifdef __cplusplus
}
#endif
#endif
