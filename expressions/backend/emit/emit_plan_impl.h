/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan of a kernel's text: samples, the loops that compute them, rows, ghosts and groups of results. */
#ifndef TRLI_EMIT_PLAN_IMPL_H
#define TRLI_EMIT_PLAN_IMPL_H

#include "emit_impl.h"

/* The loop that computes a sample: by the axes on which it varies. Rows go along x, or in thin boxes along y; below, x
 * is that axis and y the other one. */
typedef enum trli_loop_level {
    TRLI_IN_CALL,      /* none */
    TRLI_IN_ROW_X,     /* x */
    TRLI_IN_PLANE,     /* z */
    TRLI_IN_PLANE_ROW, /* x and z */
    TRLI_IN_ROW,       /* y, or y and z */
    TRLI_IN_POINT,     /* x and y, or all */
    TRLI_IN_RESULT /* none is computed there: the loops over points that store results, after that of what they share */
} trli_loop_level;

/* A node of the walk at an offset from the point that the kernel computes. */
typedef struct trli_sample {
    int32_t node;     /* place in the walk */
    int8_t offset[3]; /* from the point */
    int16_t end;      /* 0: from the point; 1 + 2 * input + side: along x from that end of the input's row */
    int32_t next;     /* another one of the same node; -1: none */
    int32_t arg[3];
    trli_loop_level place;
    int cost;
    bool buffered;   /* kept in a row buffer */
    int32_t groups;  /* of results that need it */
    int32_t pointer; /* FIELD: which row pointer */
    int32_t beyond;  /* FIELD that may lie beyond an end of its row: the ghosts there; -1: none */
    int32_t ahead; /* in the loop at hand: the sample that had this value at the point or in the row before; -1: none */
    int axis;      /* x: at the point before; y: in the row before */
} trli_sample;

/* A row of a field, `x` aside. */
typedef struct trli_row_pointer {
    int32_t input;
    int8_t y, z;
    int32_t beyond; /* the ghosts that the row may be; -1: none */
    bool read;      /* scratch */
    int32_t name;   /* in the text at hand */
} trli_row_pointer;

/* Ghosts of an input that a row reads: beyond an end of the row itself, or the row beside it beyond a side of y or z.
 */
typedef struct trli_ghosts {
    int input, axis, side;
    int8_t y, z; /* the row that they are in */
    bool image;  /* beyond a side: it is the row at the other side */
    int depth;
    int further; /* beyond an end: points by which the kernel's rows reach beyond the input's there; below 0, by which
                    they do not reach it */
    int32_t sample[TRL_KERNEL_GHOSTS]; /* the nearest first */
    bool read;                         /* scratch */
    int32_t name;                      /* in the text at hand */
} trli_ghosts;

/* A field's sample that, where its point lies in a layer of ghosts, is another sample, or the field at the other side:
 * of kernels whose threads compute one point each. */
typedef struct trli_choice {
    int32_t sample, ghost; /* ghost: -1, an image */
    int axis, side, layer;
} trli_choice;

/* A field's sample beside the point that a ghost reads: where the choice is that ghost it is held, elsewhere it may not
 * be. */
typedef struct trli_guard {
    int32_t sample, choice;
} trli_guard;

enum { TRLI_SAMPLES_MOST = 4000 }; /* of a kernel that is emitted */
enum { TRLI_CONSTANTS_MOST = 64 }; /* that have names in a function; more are part of its body */

/* Results [first, end), which one loop over points stores. */
typedef struct trli_group {
    int32_t first, end;
} trli_group;

/* The function that computes the rows of a group. */
typedef struct trli_group_function {
    char *body;         /* NULL: the group has none of its own */
    int32_t nconstants; /* numbers of the group, which others with the same body may have others for */
    const double *constant[TRLI_CONSTANTS_MOST]; /* in the order of their appearance */
    int32_t number;                              /* in its name, and that of those which share it */
} trli_group_function;

struct trli_emitter {
    const trli_dialect *dialect;
    const trli_ir *ir;
    const trli_walk *walk;
    unsigned disabled_passes;
    const trli_reads *reads;
    int nroots;
    const trli_ir_value *roots;
    const trli_merge *merge; /* by root; NULL: no call merges */
    int nstored;             /* with `merge`, roots that all calls store, while they merge the others */
    unsigned weighted;       /* as the request says */
    int nlayers;
    const trli_emit_layer *layer;
    const int *shape; /* as the request says */
    bool wide;        /* the same */
    int nlate;        /* the same, with */
    const int *late;
    const bool *found; /* the same */
    const trli_emit_steps *steps;
    const trli_emit_level *level; /* the same */
    const char *why;              /* there is no text, once it is written */
    int nnumbers;                 /* constants that the kernel is given */
    const trli_ir_value *given_number;
    bool check_finite, edges;
    int along, across; /* axes: of rows, and of the rows of a plane */
    FILE *out;
    int nresults;  /* nroots, or those of two planes, one after the other */
    int32_t *root; /* [nresults] samples */
    trli_group *group;
    int32_t ngroups;     /* of the results of one plane; behind them that of all results of two planes, if there are */
    int32_t *reader;     /* by input: the first group that reads it */
    int32_t *first;      /* by place in the walk: its samples, as a list */
    trli_sample *sample; /* in the order found; users before operands */
    int32_t count, capacity;
    int32_t *order;      /* samples, operands first */
    int32_t *number;     /* by sample: its name in the text at hand */
    int32_t *input_name; /* by input, in the function at hand; -1: it is not read there */
    bool *wanted, *also; /* [count] scratch */
    trli_row_pointer *pointer;
    trli_ghosts *ghosts;
    int32_t nghosts, ghosts_capacity;
    trli_choice *choice;
    int32_t nchoices, choices_capacity;
    trli_guard *guard; /* of ghosts' values that are computed before it is known whether they are needed */
    int32_t nguards, guards_capacity;
    bool choices_fit;              /* what they read is held, and they are beside one side each */
    bool *kept;                    /* by input: a thread of a GPU keeps its column's values; NULL: of none */
    bool narrow;                   /* a thread's point and sides are of 32 bits, the sides at hand */
    bool raw;                      /* fields are read as they lie in memory: ghosts are being computed */
    bool guarded;                  /* and only where guards say that they are held */
    int32_t ends, sides;           /* samples from there on: only of ghosts beyond ends of rows; beyond other sides */
    int interleave;                /* the most planes whose rows the kernel interleaves */
    bool by_planes;                /* each group takes the rows of one plane at a time: nothing is interleaved */
    trli_group_function *function; /* by group, then that of pairs of planes and that of what groups share */
    trli_group_function *at_hand;  /* whose body is written; NULL: none */
    int32_t npointers, nbuffers, nshared; /* nshared: of the row buffers, those of what groups share */
};

/* A sample as an operand inside of a loop. */
typedef void trli_put_operand(trli_emitter *e, trli_loop_level loop, int32_t i);

struct trli_dialect {
    trl_err (*put_kernel)(trli_emitter *e); /* all of the text. Fails with MEMORY. */
    trli_put_operand *put_use;
    const char *suffix;   /* of functions for a point */
    const char *index[3]; /* of the point, along each axis */
    bool pairs;           /* one loop may compute the points of two planes */
    bool points;          /* each point is computed by itself: it chooses between a field and its ghosts */
};

/* The sample of a value at an offset; it may be new. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_sample(trli_emitter *e, trli_ir_value value, const int8_t offset[3], int16_t end,
                                       int32_t *sample);
/* The value behind shifts, and its offset. */
trli_ir_value trli_emit_see_through(const trli_emitter *e, trli_ir_value value, int8_t offset[3]);
/* Add the operands of all samples. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_operands(trli_emitter *e);
/* What samples of fields are beyond sides. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_find_choices(trli_emitter *e);

/* Find the samples, and decide where each is computed. why: as above. trli_emitter_free afterwards, also after a
 * failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_plan(trli_emitter *e, const char **why);
void trli_emitter_free(trli_emitter *e);
enum { TRLI_ALL_GROUPS = -1, TRLI_SHARED = -2 };
/* Mark as wanted what is needed for what is, ghosts aside. What the function of the group is given needs nothing there.
 */
void trli_emit_mark_operands(trli_emitter *e, int32_t group);
/* Mark as wanted all that the function of a group computes, reads or is given; or that of what groups share; or all
 * that the kernel does. */
void trli_emit_mark_needed(trli_emitter *e, int32_t group);

static inline const trli_node *trli_sample_node(const trli_emitter *e, int32_t i)
{
    return trli_ir_node(e->ir, e->walk->list[e->sample[i].node]);
}

/* Of samples at the end of a row: the input, and where its ghosts begin. */
static inline int trli_end_input(const trli_sample *in)
{
    return (in->end - 1) / 2;
}

static inline const char *trli_end_name(const trli_sample *in)
{
    return in->end % 2 ? "lo" : "hi";
}

/* Whether a call stores a root, or some do. */
static inline bool trli_is_stored(const trli_emitter *e, int32_t root)
{
    return e->nstored == 0 || root < e->nstored;
}

/* Whether a call merges a root, or some do. */
static inline bool trli_is_merged(const trli_emitter *e, int32_t root)
{
    return e->merge && root >= e->nstored;
}

static inline bool trli_goes_by_pairs(const trli_emitter *e)
{
    return e->nresults > e->nroots;
}

static inline bool trli_is_row(trli_loop_level p)
{
    return p == TRLI_IN_ROW_X || p == TRLI_IN_PLANE_ROW;
}

/* What is read where it is used, and has no name of its own. */
static inline bool trli_is_leaf(const trli_node *n)
{
    return n->op == TRLI_OP_CONSTANT || n->op == TRLI_OP_SCALAR || n->op == TRLI_OP_FIELD;
}

/* Whether a value or a row buffer is at hand before the rows of a group begin. */
static inline bool trli_is_outer(const trli_emitter *e, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    if (trli_is_leaf(trli_sample_node(e, i))) return false;
    return in->place == TRLI_IN_CALL || in->place == TRLI_IN_PLANE || (trli_is_row(in->place) && in->buffered);
}

#endif
