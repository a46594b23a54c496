/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random programs of one model that call each other. What a program computes on the way lies in temporaries, which live
 * across its calls; after each round of a call those of the called program are overwritten, and before the first one,
 * so that whoever shares memory with a program that is there at the same time reads NaN. Beside them the same in
 * pieces: programs without calls, run one after the other, whose temporaries have memory of their own. */
#ifndef PROGRAM_TREE_H
#define PROGRAM_TREE_H

#include <math.h>
#include <string.h>

#include "trl_test.h"

#include <called_programs_impl.h>
#include <cost_impl.h>
#include <execution_impl.h>
#include <lifecycle_impl.h>
#include <lower_impl.h>
#include <parts_impl.h>
#include <pipeline_impl.h>
#include <program_calls_impl.h>
#include <sides_impl.h>
#include <slot_plan_impl.h>

enum { TREE_PROGRAMS = 8, TREE_TEMPORARIES = 12, TREE_CALLS = 4, TREE_CELLS = 14, TREE_DEEP = 3 };

static trl_compile tree_compile = TRL_COMPILE_NEVER;

struct program_tree;

/* A program, whose result `now` follows from that of before, and from those of the programs that it calls. */
typedef struct tree_program {
    struct program_tree *tree;
    trli_program *program;
    int now, next;  /* exchange their memory after each round */
    int changes[2]; /* both */
    int sum;        /* of its result; -1: it reduces nothing at its end, */
    int middle;     /* and of a temporary, which only its result needs; -1: nothing before */
    int ntemporaries, temporary[TREE_TEMPORARIES];
    bool kept[TREE_TEMPORARIES]; /* to the end */
    int rounds, depth;
    int64_t done; /* rounds, ever */
    /* In pieces: those before `program`, each with what is called behind it. */
    int npieces;
    trli_program *piece[TREE_CALLS];
    struct tree_program *called[TREE_CALLS];
} tree_program;

typedef struct program_tree {
    trl_context *ctx;
    trl_layout *layout;
    trl_workers *workers;
    trli_model *model;
    trli_frame *frame;
    trl_formula *laplacian;
    bool in_pieces;
    uint64_t state; /* of random numbers */
    int source;     /* a field that no program changes */
    int nprograms, ncalls;
    tree_program program[TREE_PROGRAMS];
    trli_program_call call[TREE_PROGRAMS * TREE_CALLS];
} program_tree;

static inline int tree_below(program_tree *t, int n)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((t->state >> 33) % (uint64_t)n);
}

static inline void tree_must(const program_tree *t, trl_err err)
{
    ck_assert_msg(err == TRL_OK, "%s: %s", trl_err_name(err), t->ctx == test_ctx ? test_messages() : "alone");
}

/* ---- what calls do around the rounds ---- */

/* All of its memory, ghosts included. */
static inline void tree_poison(const tree_program *p, trli_frame *frame)
{
    const trli_model *model = p->tree->model;
    for (int i = 0; i < p->ntemporaries && !p->tree->in_pieces; ++i) {
        const int slot = model->field[p->temporary[i]].slot;
        for (int patch = 0; slot >= 0 && patch < model->layout->nlocal; ++patch) {
            double *value = frame->base[0][slot][patch];
            for (int64_t k = 0; k < trli_slot_values(model->slots, slot, patch); ++k) value[k] = (double)NAN;
        }
    }
}

static inline trl_err tree_begin(void *data, trli_frame *frame)
{
    tree_poison(data, frame);
    return TRL_OK;
}

static inline bool tree_goes_on(const tree_program *p, const trli_frame *frame, int64_t round)
{
    const bool odd = p->sum >= 0 && ((int64_t)fabs(1e6 * frame->scalar[p->sum]) & 1);
    return round < p->rounds + odd;
}

static inline trl_err tree_again(void *data, trli_frame *frame, int64_t round, bool *again)
{
    tree_program *p = data;
    ++p->done;
    tree_poison(p, frame);
    trli_frame_swap(frame, p->now, p->next);
    *again = tree_goes_on(p, frame, round);
    return TRL_OK;
}

static inline trli_program_call tree_call(tree_program *p)
{
    return (trli_program_call){.program = p->program,
                               .data = p,
                               .begin = tree_begin,
                               .again = tree_again,
                               .rounds = p->rounds + 1,
                               .nfields = 2,
                               .field = p->changes};
}

/* ---- making programs ---- */

static const trl_bc_piece tree_zero = {.kind = TRL_BC_DIRICHLET,
                                       .value = {.count = 1, .text = &(const trl_text){.chars = "0"}}};
static const trl_bc_side tree_sides[6] = {{.npieces = 1, .piece = &tree_zero}, {.npieces = 1, .piece = &tree_zero},
                                          {.npieces = 1, .piece = &tree_zero}, {.npieces = 1, .piece = &tree_zero},
                                          {.npieces = 1, .piece = &tree_zero}, {.npieces = 1, .piece = &tree_zero}};

static inline int tree_field(const program_tree *t, const char *name, bool persistent)
{
    const int field = trli_model_add_field(t->model, name, TRL_CELL);
    ck_assert_int_ge(field, 0);
    t->model->field[field].persistent = persistent;
    t->model->field[field].exchanged = true;
    t->model->field[field].boundary = (trli_boundary_source){.side = tree_sides, .name = name};
    return field;
}

/* a + factor * b, small enough to go on for ever */
static inline trli_ir_value tree_mix(const program_tree *t, trli_ir_value a, double factor, trli_ir_value b)
{
    trli_ir *ir = &t->model->ir;
    const trli_ir_value product = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, factor), b);
    return trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 0.5), trli_ir_binary(ir, TRLI_OP_ADD, a, product));
}

/* Of a field, whose ghosts are filled. */
static inline trli_ir_value tree_laplacian(const program_tree *t, trli_program *program, int field)
{
    trli_instance *in = NULL;
    trli_ir_value value;
    tree_must(t, trli_instance_create(t->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, &in));
    in->variable[0] = field;
    tree_must(t, trli_instance_fill(in));
    tree_must(t, trli_instance_prepare(in));
    tree_must(t, trli_lower_at(in, t->laplacian, NULL, TRL_CELL, &value));
    trli_instance_destroy(&in);
    return value;
}

static inline void tree_store(const program_tree *t, tree_program *p, int field, trli_ir_value value)
{
    tree_must(t, trli_program_add_kernel(p->program, t->model->field[field].name, 1, &field, &value, NULL));
    if (t->model->field[field].persistent) tree_must(t, trli_program_add_root(p->program, field));
}

/* Now and then with neighbours of a temporary that was computed before: these are exchanged in its slot. */
static inline void tree_add_temporary(program_tree *t, tree_program *p, trli_ir_value *mixed)
{
    trli_ir *ir = &t->model->ir;
    const int field = tree_field(t, "temporary", t->in_pieces), before = p->ntemporaries;
    trli_ir_value value = trli_ir_field(ir, tree_below(t, 2) ? p->now : t->source);
    value = tree_mix(t, value, 0.3 + 0.1 * before, *mixed);
    if (before > 0 && tree_below(t, 3) == 0)
        value = tree_mix(t, value, 1e-4, tree_laplacian(t, p->program, p->temporary[before - 1]));
    tree_store(t, p, field, value);
    p->kept[before] = tree_below(t, 3) == 0;
    p->temporary[p->ntemporaries++] = field;
    value = trli_ir_field(ir, field);
    if (p->middle < 0 && tree_below(t, 2)) {
        tree_must(t,
                  trli_program_reduce(p->program, "middle", value, TRL_CELL, TRLI_REDUCE_SUM, false, NULL, &p->middle));
        tree_must(t, trli_program_add_scalar_root(p->program, p->middle));
    }
    *mixed = tree_below(t, 2) ? value : tree_mix(t, *mixed, 0.7, value);
}

static inline void tree_add_call(program_tree *t, tree_program *p, tree_program *called, trli_ir_value *mixed)
{
    trli_program_call *call = &t->call[t->ncalls++];
    *call = tree_call(called);
    if (t->in_pieces) {
        p->piece[p->npieces] = p->program;
        p->called[p->npieces++] = called;
        tree_must(t, trli_program_create(t->model, "piece", &p->program));
    } else {
        tree_must(t, trli_program_append_call(p->program, "call", call));
    }
    *mixed = tree_mix(t, *mixed, 0.9, trli_ir_field(&t->model->ir, called->now));
    if (called->depth + 1 > p->depth) p->depth = called->depth + 1;
}

/* Its result is of the temporaries that live until then. */
static inline void tree_end_program(program_tree *t, tree_program *p, trli_ir_value mixed)
{
    trli_ir *ir = &t->model->ir;
    trli_ir_value value = mixed;
    for (int i = 0; i < p->ntemporaries; ++i)
        if (p->kept[i]) value = tree_mix(t, value, 0.2 + 0.05 * i, trli_ir_field(ir, p->temporary[i]));
    if (p->middle >= 0) value = tree_mix(t, value, 1e-3, trli_ir_scalar(ir, p->middle));
    tree_store(t, p, p->next, value);
    p->sum = -1;
    if (tree_below(t, 3) == 0) return;
    value = trli_ir_field(ir, p->next);
    tree_must(t, trli_program_reduce(p->program, "sum", value, TRL_CELL, TRLI_REDUCE_SUM, false, NULL, &p->sum));
    tree_must(t, trli_program_add_scalar_root(p->program, p->sum));
}

static inline tree_program *tree_begin_program(program_tree *t)
{
    tree_program *p = &t->program[t->nprograms++];
    *p = (tree_program){.tree = t, .middle = -1, .rounds = 1 + tree_below(t, 3)};
    p->now = tree_field(t, "now", true);
    p->next = tree_field(t, "next", true);
    p->changes[0] = p->now;
    p->changes[1] = p->next;
    tree_must(t, trli_program_create(t->model, "program", &p->program));
    return p;
}

/* A program that calls some of those before it, one of which at least if it is to be deep. */
static inline void tree_add_random(program_tree *t)
{
    const int before = t->nprograms;
    tree_program *p = tree_begin_program(t);
    trli_ir_value mixed = trli_ir_field(&t->model->ir, t->source);
    for (int n = 2 + tree_below(t, 3); n > 0; --n) tree_add_temporary(t, p, &mixed);
    for (int calls = before > 0 ? tree_below(t, 4) : 0; calls > 0; --calls) {
        tree_add_call(t, p, &t->program[before - 1 - tree_below(t, before < 3 ? before : 3)], &mixed);
        if (p->ntemporaries < TREE_TEMPORARIES && tree_below(t, 2)) tree_add_temporary(t, p, &mixed);
    }
    tree_end_program(t, p, mixed);
}

/* ---- the model ---- */

/* Of odd seeds all reductions are messages. */
static inline void tree_open(program_tree *t, trl_context *ctx, trl_workers *workers, uint64_t seed, bool in_pieces)
{
    static const trl_grid grid = {.dim = 2,
                                  .cells = {TREE_CELLS, TREE_CELLS, 1},
                                  .length = {1, 1, 1},
                                  .spacing = {1.0 / TREE_CELLS, 1.0 / TREE_CELLS, 1}};
    const trli_variable variable = {.name = "v", .location = TRL_CELL, .boundary = tree_sides};
    *t = (program_tree){.ctx = ctx, .workers = workers, .in_pieces = in_pieces, .state = seed};
    tree_must(t, trl_layout_create(ctx, &grid, (int[3]){trl_context_ranks(ctx), 2, 1}, NULL, &t->layout));
    tree_must(t, trl_formula_parse(ctx, &(trl_text){.chars = "div(grad(v))"}, &t->laplacian));
    const trli_model_request request = {.layout = t->layout,
                                        .fusion = TRL_FUSION_FULL,
                                        .compile = tree_compile,
                                        .disabled_passes = seed % 2 ? TRL_PASS_SHARED : 0,
                                        .nvariables = 1,
                                        .variables = &variable,
                                        .workers = workers};
    tree_must(t, trli_model_create(ctx, &request, &t->model));
    t->source = tree_field(t, "source", true);
}

static inline void tree_equalise(const program_tree *t, const tree_program *p)
{
    trli_model_field *f = &t->model->field[p->now], *g = &t->model->field[p->next];
    for (int a = 0; a < 3; ++a) {
        f->ghost_lo[a] = g->ghost_lo[a] = f->ghost_lo[a] > g->ghost_lo[a] ? f->ghost_lo[a] : g->ghost_lo[a];
        f->ghost_hi[a] = g->ghost_hi[a] = f->ghost_hi[a] > g->ghost_hi[a] ? f->ghost_hi[a] : g->ghost_hi[a];
    }
}

static inline void tree_plan(const program_tree *t)
{
    for (int i = 0; i < t->model->nprograms; ++i) {
        tree_must(t, trli_program_analyse(t->model->program[i]));
        tree_must(t, trli_program_fold(t->model->program[i]));
        tree_must(t, trli_program_count_work(t->model->program[i]));
        tree_must(t, trli_program_part(t->model->program[i]));
    }
    for (int i = 0; i < t->nprograms; ++i) tree_equalise(t, &t->program[i]);
}

static inline void tree_freeze(program_tree *t)
{
    tree_plan(t);
    tree_must(t, trli_model_freeze(t->model, NULL, NULL));
    tree_must(t, trli_frame_create(t->model, &t->frame));
}

static inline void tree_close(program_tree *t)
{
    trli_frame_destroy(&t->frame);
    trli_model_destroy(&t->model);
    trl_formula_destroy(&t->laplacian);
    trl_layout_destroy(&t->layout);
}

/* ---- runs ---- */

static inline void tree_run_rounds(tree_program *p);

/* One round of a program, in pieces or with calls. */
static inline void tree_run(tree_program *p)
{
    for (int i = 0; i < p->npieces; ++i) {
        tree_must(p->tree, trli_program_run(p->piece[i], p->tree->frame));
        tree_run_rounds(p->called[i]);
    }
    tree_must(p->tree, trli_program_run(p->program, p->tree->frame));
}

static inline void tree_end_round(tree_program *p)
{
    ++p->done;
    trli_frame_swap(p->tree->frame, p->now, p->next);
}

static inline void tree_run_rounds(tree_program *p)
{
    for (int64_t round = 1;; ++round) {
        tree_run(p);
        tree_end_round(p);
        tree_must(p->tree, trli_frame_fetch_scalars(p->tree->frame));
        if (!tree_goes_on(p, p->tree->frame, round)) break;
    }
}

/* ---- values ---- */

static inline void tree_set(const program_tree *t, trli_frame *frame, int field, double factor)
{
    for (int patch = 0; patch < t->layout->nlocal; ++patch) {
        const trl_array a = trli_frame_array(frame, field, patch, 0);
        const trl_gidx *first = t->layout->patch[patch].first;
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i)
                ((double *)a.at)[trl_array_offset(&a, i, j, 0)] =
                    sin(factor * (double)(first[0] + i)) + cos(3 * factor * (double)(first[1] + j));
    }
    trli_frame_written(frame, field);
}

static inline void tree_set_all(program_tree *t, trli_frame *frame)
{
    tree_set(t, frame, t->source, 0.7);
    for (int i = 0; i < t->nprograms; ++i) {
        tree_set(t, frame, t->program[i].now, 0.1 + 0.2 * i);
        tree_poison(&t->program[i], frame);
        t->program[i].done = 0;
    }
}

/* Of all results, the same on any ranks for the same values. */
static inline uint64_t tree_hash(const program_tree *t, trli_frame *frame)
{
    uint64_t hash = 0;
    for (int i = 0; i < t->nprograms; ++i) tree_must(t, trli_frame_fetch(frame, t->program[i].now));
    for (int i = 0; i < t->nprograms; ++i)
        for (int patch = 0; patch < t->layout->nlocal; ++patch) {
            const trl_array a = trli_frame_array(frame, t->program[i].now, patch, 0);
            hash += (uint64_t)(2 * i + 1) * trl_array_hash(t->layout, &t->layout->patch[patch], TRL_CELL, &a);
        }
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_SUM, trl_context_comm(t->ctx));
    return hash;
}

/* Whether a result has lost its values: somebody has read what a called program left. */
static inline bool tree_has_nan(const program_tree *t, trli_frame *frame)
{
    int found = 0;
    for (int i = 0; i < t->nprograms; ++i) tree_must(t, trli_frame_fetch(frame, t->program[i].now));
    for (int i = 0; i < t->nprograms; ++i)
        for (int patch = 0; patch < t->layout->nlocal; ++patch) {
            const trl_array a = trli_frame_array(frame, t->program[i].now, patch, 0);
            for (trl_lidx y = a.owned.lo[1]; y < a.owned.hi[1]; ++y)
                for (trl_lidx x = a.owned.lo[0]; x < a.owned.hi[0]; ++x)
                    found |= isnan(((const double *)a.at)[trl_array_offset(&a, x, y, 0)]) != 0;
        }
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, trl_context_comm(t->ctx));
    return found;
}

/* Random programs of which the last one is TREE_DEEP calls above another one. */
static inline tree_program *tree_add_deep(program_tree *t)
{
    for (;;) {
        tree_add_random(t);
        tree_program *last = &t->program[t->nprograms - 1];
        if (t->nprograms < TREE_PROGRAMS && last->depth < TREE_DEEP) continue;
        return last;
    }
}

static inline void tree_run_often(tree_program *p, int runs)
{
    for (int run = 0; run < runs; ++run) {
        tree_run(p);
        tree_end_round(p);
    }
}

static inline int tree_slots(const program_tree *t)
{
    int n = 0;
    for (int s = 0; s < t->model->slots->n; ++s) n += !t->model->slots->slot[s].persistent;
    return n;
}

static inline bool tree_ran_as(const program_tree *t, const program_tree *other)
{
    int same = !tree_has_nan(t, t->frame) && tree_hash(t, t->frame) == tree_hash(other, other->frame);
    for (int i = 0; i < t->nprograms; ++i) same = same && t->program[i].done == other->program[i].done;
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return same;
}

#endif
