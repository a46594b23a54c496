/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The frame of a model's programs: all that their runs change. Tasks reach what they change through args->frame alone,
 * so two frames of one model may be in runs at once. */
#ifndef TRLI_FRAME_IMPL_H
#define TRLI_FRAME_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include <mpi.h>

#include <merging_impl.h>
#include <reduction_impl.h>
#include <trl_field_manager.h>

#include "pinned_impl.h"
#include "plan_impl.h"

/* The first value that was not finite, in the order of variables and global points. */
typedef struct trli_nonfinite {
    bool found;
    int variable;
    trl_gidx point[3];
    double value;
} trli_nonfinite;

typedef struct trli_exchange_run {
    struct trl_exchange *exchange;
    int64_t bytes, messages; /* sent by this rank each time */
    bool given;              /* what other ranks would send is there: no messages */
} trli_exchange_run;

typedef struct trli_reduction_run {
    int patches;             /* 1; or where GPUs may bring shares of patches together, all of this rank's */
    trli_partial *part;      /* [patches][lanes] what workers add */
    trli_sum_window *window; /* [lanes] of sums that kernels make: what sizes their next terms may have */
    /* A launch of the only GPU has made all of it, and did what brings its batch together. Written by the task that
     * makes the patch's share, where this is called. */
    bool at_once;
} trli_reduction_run;

/* A batch of reductions in flight: what the ranks bring together. */
typedef struct trli_batch_run {
    bool started, posted;
    bool failed; /* a rank had failed when it sent its part */
    int index;   /* of the model's, and behind those of programs */
    int nsums, nextremes;
    int64_t (*sum)[TRLI_PARTIAL_WORDS];   /* [nsums], and behind them: */
    double (*extreme)[TRLI_PARTIAL_PAIR]; /* [nextremes] */
    trli_merging all;                     /* of these numbers, once it was posted */
    int64_t told_run;                     /* of the device that tells its results, or finds them */
} trli_batch_run;

/* A point and the next ones along axes: how many are read along each, 1 or 2; and their values, x fastest. */
enum { TRLI_CORNER_VALUES = 8 };
typedef struct trli_corner {
    trl_lidx at[3], extent[3];
} trli_corner;

/* Memory of the host into which a GPU stores values around points; NULL: there is none yet. */
typedef struct trli_gathered {
    double (*value)[TRLI_CORNER_VALUES];
    int n;
} trli_gathered;

/* A part of a kernel that has rims (trli_step_task.nrims), which is computed by one worker at a time. */
typedef struct trli_frame_part {
    bool whole;          /* in this run it left nothing to the rims */
    int64_t ahead, left; /* calls in which it computed what it has of them, and in which it did not */
} trli_frame_part;

/* A program that runs in a frame (program_calls_impl.h). */
typedef struct trli_claim {
    const trli_program *program;
    const void *owner;
    bool disturbed; /* by another one, which was refused */
} trli_claim;

enum { TRLI_CLAIMS = 32 /* in a frame at once */ };

typedef struct trli_frame {
    trli_model *model;
    double *scalar; /* [model->nscalars] */
    /* By memory space of a device, the same of those that GPUs find (found_scalars_impl.h): NULL where there are none;
     * the host's memory, where it is told of them; and the spaces that have the values, a bit 1 << space each. */
    double *found[TRL_SPACES_MAX], *found_told;
    uint32_t *scalar_valid;
    bool fetches_later; /* whoever runs a program fetches them after another run */
    /* By memory space [slot][local patch]: which memory each slot is: time levels rotate. NULL where it has none. */
    void ***base[TRL_SPACES_MAX];
    uint32_t **valid;          /* [slot][local patch][TRLI_POINTS] spaces with the values, a bit 1 << space each */
    void **scratch;            /* [lanes] of a call */
    trli_nonfinite *nonfinite; /* [lanes] */
    /* A plugin returned an error in the last run, which went on with its messages. Relaxed: read after the run. */
    _Atomic bool plugin_failed;
    /* By memory space of a GPU: set by its kernels that find what is not finite, of this run or the one before, which
     * may still be under way; the host's memory, else NULL. */
    int *alarm[TRL_SPACES_MAX]; /* [2] */
    int alternate;              /* which of them is this run's */
    int64_t step_number;        /* as plugins are told it */
    const trli_program *brings; /* has run, and left ghosts to those that follow it (trli_program.after); or NULL */
    /* Late scalars (late_scalars_impl.h). */
    struct {
        bool read;    /* kernels read them in this run */
        bool goes_on; /* the finder begins where the one before ended, else at the step's time, after this dt: */
        double before;
        int space;                    /* of the GPU that was the finder last */
        double *told[TRL_SPACES_MAX]; /* by memory space of a GPU: the host's memory, where its finder says */
        double dt, time;              /* that it has said last */
        int step;                     /* the place of what the host is told */
    } late;
    trli_exchange_run *exchange;   /* [model->run->nexchanges] */
    trli_frame_part *part;         /* [model->run->nparts] */
    struct trli_rooms *rooms;      /* of their messages on the GPU; NULL: there are none */
    trli_reduction_run *reduction; /* [model->run->nreductions] */
    trli_batch_run *batch;         /* [model->run->nbatches] */
    bool defers;                   /* a run posts its reductions and ends; trli_reductions_await has their results */
    struct trli_joint_sums *joint; /* of programs that join (joint_sums_impl.h); NULL: there are none */
    struct trli_node_board *board; /* with slots for all batches; or NULL */
    MPI_Comm comm;                 /* of reductions: each batch has its tag, so ranks may come to them in any order */
    bool has_comm;
    struct {
        pthread_mutex_t lock;
        int n;
        trli_claim claim[TRLI_CLAIMS];
    } claims;
    trl_field_manager *memory;     /* of slots and scratch */
    struct trli_open_memory *open; /* where slots are if other ranks may read them there; NULL: elsewhere */
    struct trli_loans *loans;      /* of what they read; NULL: nothing */
    struct trli_help *help;        /* by which ranks of the node help one another; NULL: they cannot */
    trl_block ***block;            /* [slot][local patch] */
    /* By memory space [local patch][model->run->nreductions]: what a device makes of a patch for a reduction, and on
     * the host its copy, until it is merged. NULL where it has no memory. */
    trli_partial *share[TRL_SPACES_MAX];
    trli_partial *gathering[TRL_SPACES_MAX]; /* likewise: what launches gather (trl_kernel_launch) */
    uint32_t *share_valid;                   /* [local patch][nreductions] */
    trli_partial *told[TRL_SPACES_MAX];      /* likewise, in the host's memory: where a GPU tells results; or NULL */
    trli_gathered gathered[TRL_SPACES_MAX];
    trli_pinned pinned;                    /* memory of the host that GPUs copy in each run */
    int64_t fetched_copies, fetched_bytes; /* to the host, by trli_frame_fetch */
    int64_t sent_copies, sent_bytes;       /* from the host, by trli_frame_send */
    void **rows[TRL_SPACES_MAX];           /* what `base` points to */
    trl_block **block_rows;                /* what `block` points to */
    uint32_t *valid_rows;                  /* what `valid` points to */
} trli_frame;

/* Memory, exchanges and scalars, which have their values at compile time, for a frozen model. Collective: yes. */
TRL_NODISCARD trl_err trli_frame_create(trli_model *model, trli_frame **frame);
void trli_frame_destroy(trli_frame **frame);
/* The array of a field on a local patch, as the slot table stands now, in a memory space. */
trl_array trli_frame_array(const trli_frame *frame, int field, int local_patch, int space);
/* Between runs: see that the host has the values of a field on all local patches. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_frame_fetch(trli_frame *frame, int field);
/* The same of one patch. */
TRL_NODISCARD trl_err trli_frame_fetch_patch(trli_frame *frame, int field, int patch);
/* Between runs, after devices failed: bring what is valid only in their memories to the host, and forget it there.
 * spaces: those devices', a bit 1 << space each. needed: [fields of the model] for these it has to succeed, but for
 * their ghosts, which are computed anew. Fails with DEVICE, and says which fields are lost. */
TRL_NODISCARD trl_err trli_frame_leave_devices(trli_frame *frame, uint32_t spaces, const bool *needed);
/* Between runs: the least and the largest owned value of a field on a local patch, NaN aside, found where they are; on
 * the host by the workers of a loop. Fails with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_frame_extremes(trli_frame *frame, int field, int patch, trl_loop *loop, double extreme[2]);
/* Between runs: the values of a field around n points of a local patch, read where they are; 0 where none is read. What
 * lies beyond owned points was exchanged. Fails with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_frame_gather(trli_frame *frame, int field, int patch, int n, const trli_corner *corner,
                                        double (*value)[TRLI_CORNER_VALUES]);
/* Of a frame that ends. */
void trli_frame_release_gathered(trli_frame *frame);
/* Between runs: the host has written a field, on all local patches; devices copy it when they read it. */
void trli_frame_written(const trli_frame *frame, int field);
/* The same in the memory of a device; and of one patch. */
void trli_frame_written_in(const trli_frame *frame, int field, int space);
void trli_frame_patch_written_in(const trli_frame *frame, int field, int patch, int space);
/* The spaces with all owned points of a field on a patch: a bit each. */
uint32_t trli_frame_spaces(const trli_frame *frame, int field, int patch);
/* Between runs: memory for a field on a device; and the values that the host has. Fail with DEVICE, MEMORY. */
TRL_NODISCARD trl_err trli_frame_provide(trli_frame *frame, int field, int space);
TRL_NODISCARD trl_err trli_frame_send(trli_frame *frame, int field, int space);
/* The same of one patch. */
TRL_NODISCARD trl_err trli_frame_provide_patch(trli_frame *frame, int field, int patch, int space);
TRL_NODISCARD trl_err trli_frame_send_patch(trli_frame *frame, int field, int patch, int space);
/* Where the data of a program's tasks lies: of its graph, whose runs have this frame. */
trl_graph_memory trli_frame_memory(trli_model *model);
/* For trli_graph_set_state, of a model that has kernels for GPUs. */
size_t trli_frame_state(void *model, void *frame, int space, void *to);
/* Between runs: wait for the devices, unless the host has all scalars. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_frame_fetch_scalars(trli_frame *frame);
/* Before and after a run of a program whose kernels check their results: forget what was found; whether anything was.
 * What GPUs found is looked for on the host. Fails with DEVICE. */
void trli_frame_forget_nonfinite(trli_frame *frame);
TRL_NODISCARD trl_err trli_frame_find_nonfinite(trli_frame *frame, const trli_program *program, bool *found);
/* Whether GPUs found something in the present run, or in the one before it, which is over. */
bool trli_frame_alarmed(const trli_frame *frame, bool before);
/* Look at a field of a variable on the host. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_frame_look_at(trli_frame *frame, int field, int variable);
/* Widen *around to the ghosts of a field that a program exchanges without others. */
void trli_frame_widen_ghosts(const trli_program *program, int field, trl_offsets *around);
/* Whether those that other ranks own are there before runs of the program, on all ranks and on the host: then its
 * exchanges of that field alone send nothing. */
void trli_frame_give_ghosts(const trli_frame *frame, const trli_program *program, int field, bool given);
/* Exchange the memory of two persistent fields of one shape, everywhere: time levels rotate. Between runs, or by a
 * function of a call that changes both. */
void trli_frame_swap(trli_frame *frame, int field_a, int field_b);
/* Messages that this rank's GPU packs into memory of other ranks' GPUs, each exchange done once. */
int64_t trli_frame_far_messages(const trli_frame *frame);
/* What this rank sends in a run of a program. */
void trli_frame_traffic(const trli_frame *frame, const trli_program *program, int64_t *bytes, int64_t *messages);

/* Make a frame that has its own scalars and records and shares the rest with another frame, which outlives it. */
TRL_NODISCARD trl_err trli_frame_share(trli_frame *frame, const trli_frame *other);
void trli_frame_release_shared(trli_frame *frame);
/* Make an exchange, whose messages are those of a plan that outlives it. loans: of the frame whose slots are sent, if
 * the tasks that send read them until that is done; NULL: all is packed. Collective: yes. */
TRL_NODISCARD trl_err trli_exchange_connect(const trli_model *model, const struct trl_exchange *plan,
                                            const struct trli_loans *loans, trli_exchange_run *run);
void trli_exchange_disconnect(trli_exchange_run *run);
/* Room for what the slots' memory in a space is; and spaces for the devices of the model's workers. */
TRL_NODISCARD trl_err trli_frame_add_space(trli_frame *frame, int space);
TRL_NODISCARD trl_err trli_frame_add_devices(trli_frame *frame);
/* Before memory of the host is given back: it may move again. */
void trli_frame_unpin(trli_frame *frame, void *memory);
/* Give back what devices hold beside slots. */
void trli_frame_release_spaces(trli_frame *frame);
/* Give slots and scratch memory. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slots_allocate(trli_frame *frame);
/* Between runs, and while no device is at one: give the memory of a persistent field back in all spaces; its array has
 * no address then, and no program that touches the field may run. */
void trli_frame_vacate(trli_frame *frame, int field);
/* Give it memory on the host again, signalling NaN; devices get theirs when they need it. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_frame_occupy(trli_frame *frame, int field);

#endif
