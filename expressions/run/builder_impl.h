/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The builder of a model's task graphs: of programs step by step, and of several steps in a pass. Tasks are added in a
 * serial order; their accesses give the dependencies, those of reused memory included. */
#ifndef TRLI_BUILDER_IMPL_H
#define TRLI_BUILDER_IMPL_H

#include <trl_graph.h>

#include <exchange_impl.h>

#include "model_impl.h"
#include "opaque_impl.h"
#include "time_plan_impl.h"

/* What lies in a slot on a patch, as tasks touch it: owned points that no other patch reads; ghosts beyond sides of the
 * domain, and those that come from others, of which those are apart, on ranks without devices, that the rank copies
 * from its own patches; owned points that may be sent to others, the rim. With devices and several patches the rim is
 * in parts, from TRLI_RIM on: below and above along the last axis, then of what is left along the axis before, so that
 * a device gets the part that it reads. Else the rim is TRLI_RIM. Tenants of a slot may have points in different
 * places, so who computes a field touches all. */
typedef enum trli_points {
    TRLI_INNER,
    TRLI_SIDE,
    TRLI_HALO,
    TRLI_COPIED,
    TRLI_RIM,
    TRLI_POINTS = TRLI_RIM + 6
} trli_points;
/* Sets of them, a bit each. A model has some of them only (trli_model_run.points). */
enum {
    TRLI_SET_RIM = (1 << TRLI_POINTS) - (1 << TRLI_RIM),
    TRLI_SET_SIDE = 1 << TRLI_SIDE,
    TRLI_SET_RECEIVED = 1 << TRLI_HALO,
    TRLI_SET_COPIED = 1 << TRLI_COPIED,
    TRLI_SET_HALO = TRLI_SET_RECEIVED | TRLI_SET_COPIED,
    TRLI_OWNED = 1 << TRLI_INNER | TRLI_SET_RIM,
    TRLI_GHOSTS = TRLI_SET_SIDE | TRLI_SET_HALO,
    TRLI_OWNED_AND_GHOSTS = TRLI_OWNED | TRLI_GHOSTS
};

typedef struct trli_step_task trli_step_task; /* tasks_impl.h */

typedef struct trli_task_builder {
    const trli_model *model;
    trl_graph *graph;
    trl_handle *slot_handle;              /* [slot][patch][TRLI_POINTS] */
    trl_handle *scalar_handle;            /* [scalar] */
    trl_handle *opaque_handle;            /* [opaque expression] of those that may not run twice at once */
    const struct trli_late_scalars *late; /* that kernels find in memory; NULL: none */
    trl_handle late_share;                /* with which devices have them */
} trli_task_builder;

/* Keys of handles whose data may be copied. */
int64_t trli_slot_key(const trli_model *model, int slot, int patch, trli_points which);
int64_t trli_share_key(const trli_model *model, int reduction, int patch);
int64_t trli_scalar_key(const trli_model *model, int scalar); /* of those that GPUs find */

/* The set of points that a model has, once it is known along which axes it exchanges anything. */
unsigned trli_points_of(const trli_model *model);
/* The boxes of points of a field, whose array on a patch this is: at most 6. */
int trli_points_boxes(const trli_model *model, int field, const trl_array *array, trli_points which,
                      trl_box box[TRL_MEMORY_BOXES]);
/* Find the sizes of all fields' points, once the set is known. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_points_measure(trli_model *model);
/* The parts of the rim in which a piece of an exchange begins: a set. */
unsigned trli_points_sent(const trli_model *model, int field, const trli_exchange_piece *piece);

/* Begin a graph, which belongs to the caller also after a failure. */
TRL_NODISCARD trl_err trli_builder_begin(trli_task_builder *builder, const trli_model *model, const char *name,
                                         trl_graph **graph);
/* Unless err is an error: freeze the graph and ready it for the model's workers. Returns err or what fails. */
TRL_NODISCARD trl_err trli_builder_end(trli_task_builder *builder, trl_err err);
TRL_NODISCARD trl_err trli_builder_add(trli_task_builder *builder, const char *name, trl_task_fn run, void *data,
                                       int chunks, unsigned flags, double cost, trl_task *task);
/* Add a task that devices may run, too; gpu: how GPUs do; NULL: they do not. */
TRL_NODISCARD trl_err trli_builder_add_anywhere(trli_task_builder *builder, const char *name, trl_task_fn run,
                                                trl_task_fn gpu, void *data, int chunks, unsigned flags, double cost,
                                                trl_task *task);
/* Add a task that GPUs may run, too, and other devices may not. */
TRL_NODISCARD trl_err trli_builder_add_for_gpus(trli_task_builder *builder, const char *name, trl_task_fn run,
                                                trl_task_fn gpu, void *data, int chunks, unsigned flags, double cost,
                                                trl_task *task);
TRL_NODISCARD trl_err trli_builder_field(trli_task_builder *builder, trl_task task, int field, int patch,
                                         unsigned points, trl_access access);
/* After all tasks: the fields exchange their memory after each run (trl_graph_rotate). */
TRL_NODISCARD trl_err trli_builder_rotate(trli_task_builder *builder, const trli_rotation *rotation);
/* Add a task's access to a field that it reads at these offsets from the points of a box. */
TRL_NODISCARD trl_err trli_builder_read(trli_task_builder *builder, trl_task task, int field,
                                        const trl_footprint *footprint, const trl_box *box, int patch);
/* Add accesses of a task to the fields that values of the IR read at the points of a box. */
TRL_NODISCARD trl_err trli_builder_reads(trli_task_builder *builder, trl_task task, const trli_reads *reads,
                                         const trl_box *box, int patch);
TRL_NODISCARD trl_err trli_builder_scalar(trli_task_builder *builder, trl_task task, int scalar, trl_access access);
/* Add accesses of a task to the scalars that values of the IR read. */
TRL_NODISCARD trl_err trli_builder_scalars(trli_task_builder *builder, trl_task task, const trli_reads *reads);
/* A plugin that is not TILED runs once at a time. */
TRL_NODISCARD trl_err trli_builder_plugin(trli_task_builder *builder, trl_task task, const trli_opaque *called);
/* Add an access to anything else: *entry is its handle, -1 before its first access. */
TRL_NODISCARD trl_err trli_builder_value(trli_task_builder *builder, trl_task task, trl_handle *entry, const char *name,
                                         trl_access access);
/* Add accesses to a patch's shares of a group of n reductions, of which this is the first. */
TRL_NODISCARD trl_err trli_builder_share(trli_task_builder *builder, trl_task task, int reduction, int n, int patch,
                                         trl_handle *entry, trl_access access);
/* Add an access to the share with which devices have late scalars, or what they tell: found where the first patch is
 * reduced, whose tasks write parts of one value. */
TRL_NODISCARD trl_err trli_builder_late(trli_task_builder *builder, trl_task task, int share);
/* Add a task that copies pieces from patches of this rank to the ghosts of one of them, each in so many chunks; gpu:
 * how GPUs do; NULL: they do not. */
TRL_NODISCARD trl_err trli_builder_halo(trli_task_builder *builder, const trli_exchanged *exchanged, trl_task_fn gpu,
                                        trli_step_task *data, int chunks, double seconds, trl_task *task);

#endif
