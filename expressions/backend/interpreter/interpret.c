/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Evaluation of a kernel over a box, tile by tile. Registers hold a node's values on the tile grown by the node's hull,
 * and only along the axes on which it varies; a stencil is then a shifted view, and a function of x alone is computed
 * once per tile. Instructions are bound to memory once for all tiles of one shape; from tile to tile only the views of
 * fields move. */
#include <string.h>

#include "kernel_impl.h"
#include "vector_impl.h"

/* Tiles have rows up to TILE_ROW, and as many points as keep the registers within CACHE_DOUBLES, in the first-level
 * cache; but not so few that going from one instruction to the next costs more than the second level does. */
enum { TILE_ROW = 512, TILE_MIN = 1024, TILE_MAX = 8192, CACHE_DOUBLES = 4096 };

/* One instruction on the present tile. */
typedef struct bound {
    trli_row row; /* NULL: a function, a limiter, or values of the point alone */
    trli_row_block block;
    ptrdiff_t planes, out_plane, arg_plane[TRLI_OPERANDS];
    double *out; /* on the tile that the bindings were made for; and which array moves it from there */
    const double *arg[TRLI_OPERANDS];
    int32_t out_array, arg_array[TRLI_OPERANDS];
    int32_t fetched;          /* input that it asks for early; -1: none */
    trl_lidx fetched_from[3]; /* from there on, relative to the first point of the tile to come */
} bound;

/* A thread's scratch: bindings, the way of each array since they were made, registers. */
typedef struct frame {
    const trli_kernel *kernel;
    const trli_kernel_run *run;
    bound *bound;     /* [instructions] */
    ptrdiff_t *moved; /* [1 + inputs + outputs] the first, of all that stays, is 0 */
    double *registers;
    trl_box tile;       /* the bindings were made for */
    trl_lidx coming[2]; /* row and plane at which the tile after the present one begins */
} frame;

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t bytes_of_bound(const trli_kernel *kernel)
{
    return aligned((size_t)kernel->ninstructions * sizeof(bound));
}

static size_t bytes_of_moved(const trli_kernel *kernel)
{
    return aligned((size_t)(1 + kernel->nfields + kernel->nroots) * sizeof(ptrdiff_t));
}

size_t trli_kernel_scratch(const trli_kernel *kernel)
{
    return bytes_of_bound(kernel) + bytes_of_moved(kernel) +
           (size_t)(kernel->nregisters + 1) * kernel->register_doubles * sizeof(double);
}

/* The largest tile of a box that registers have room for. */
static void choose_shape(const trli_kernel *kernel, const trl_box *box, trl_lidx shape[3])
{
    const trl_lidx *grown = kernel->grown;
    size_t room = kernel->register_doubles / (size_t)((1 + grown[1]) * (1 + grown[2]));
    for (int a = 0; a < 3; ++a) {
        trl_lidx fits = (trl_lidx)room - grown[a];
        shape[a] = box->hi[a] - box->lo[a];
        if (a == 0 && shape[a] > TILE_ROW) shape[a] = TILE_ROW;
        if (shape[a] > fits) shape[a] = fits;
        room /= (size_t)(shape[a] + grown[a]);
        if (a < 2) room *= (size_t)(1 + grown[a + 1]);
    }
}

void trli_kernel_choose_tile(trli_kernel *kernel)
{
    static const trl_box large = {{0, 0, 0}, {TILE_ROW, TILE_MAX, 1}};
    int points = CACHE_DOUBLES / (kernel->nregisters + kernel->nfields + 1);
    points = points < TILE_MIN ? TILE_MIN : points > TILE_MAX ? TILE_MAX : points;
    for (int i = 0; i < kernel->ninstructions; ++i)
        for (int a = 0; a < 3; ++a) {
            const trl_offsets *hull = &kernel->instruction[i].hull;
            if (hull->hi[a] - hull->lo[a] > kernel->grown[a]) kernel->grown[a] = hull->hi[a] - hull->lo[a];
        }
    trl_lidx row = (TILE_ROW + kernel->grown[0]) * (1 + kernel->grown[1]);
    kernel->register_doubles = (size_t)(row > points ? row : points) * (size_t)(1 + kernel->grown[2]);
    kernel->register_doubles = aligned(kernel->register_doubles * sizeof(double)) / sizeof(double);
    choose_shape(kernel, &large, kernel->tile);
}

/* A view of values around the first point of a tile. */
typedef struct view {
    double *at;
    ptrdiff_t stride[3];
    int32_t array; /* 0: stays where it is, else 1 + input, or behind those the output */
} view;

static view view_array(const trl_array *array, const trl_box *tile, const int8_t shift[3])
{
    view v = {.at = array->at};
    for (int a = 0; a < 3; ++a) {
        v.stride[a] = array->stride[a];
        v.at += (tile->lo[a] + shift[a]) * v.stride[a];
    }
    return v;
}

static view view_register(const frame *f, const trli_argument *o)
{
    view v = {.at = f->registers + (size_t)o->index * f->kernel->register_doubles};
    ptrdiff_t stride = 1;
    for (int a = 0; a < 3; ++a) {
        if (!(o->varies & 1 << a)) continue;
        v.stride[a] = stride;
        v.at += (o->shift[a] - o->hull.lo[a]) * stride;
        stride *= f->tile.hi[a] - f->tile.lo[a] + o->hull.hi[a] - o->hull.lo[a];
    }
    return v;
}

/* Whether results go by streaming stores: by one more register, from which each is stored as soon as it is there. */
static bool passes_caches(const frame *f)
{
    return f->run->exceeds_caches && !f->kernel->reads_roots;
}

static view view_operand(const frame *f, const trli_argument *o)
{
    view v;
    switch (o->kind) {
    case TRLI_ARGUMENT_CONSTANT:
        return (view){.at = &f->kernel->constant[o->index]};
    case TRLI_ARGUMENT_SCALAR:
        return (view){.at = (double *)&f->run->scalar[o->index]};
    case TRLI_ARGUMENT_REGISTER:
        return view_register(f, o);
    case TRLI_ARGUMENT_FIELD:
        v = view_array(&f->run->input[o->index], &f->tile, o->shift);
        v.array = 1 + o->index;
        return v;
    default:
        if (passes_caches(f)) return view_register(f, &(trli_argument){.index = f->kernel->nregisters, .varies = 7});
        v = view_array(&f->run->output[o->index], &f->tile, o->shift);
        v.array = 1 + f->kernel->nfields + o->index;
        return v;
    }
}

/* The part of the tile's neighbourhood an instruction fills, relative to the tile's first point. */
static trl_box instruction_region(const trli_instruction *in, const trl_box *tile)
{
    trl_box r = {{0, 0, 0}, {1, 1, 1}};
    for (int a = 0; a < 3; ++a) {
        if (!(in->varies & 1 << a)) continue;
        r.lo[a] = in->hull.lo[a];
        r.hi[a] = tile->hi[a] - tile->lo[a] + in->hull.hi[a];
    }
    return r;
}

static double *first_of_region(const view *v, const trl_box *r)
{
    return v->at + r->lo[0] * v->stride[0] + r->lo[1] * v->stride[1] + r->lo[2] * v->stride[2];
}

/* Rows that follow each other in memory, in the result and in all operands, are one long row. */
static void join_rows(trli_row_block *block, int operands)
{
    bool joined = block->out_step == block->n;
    for (int o = 0; o < operands; ++o) joined &= block->arg_step[o] == (block->broadcast >> o & 1 ? 0 : block->n);
    if (!joined) return;
    block->n *= block->rows;
    block->rows = 1;
}

static void bind(const frame *f, const trli_instruction *in, bound *b)
{
    trl_box r = instruction_region(in, &f->tile);
    view out = view_operand(f, &in->target);
    trli_row_block *block = &b->block;
    *b = (bound){.planes = r.hi[2] - r.lo[2], .out_plane = out.stride[2], .out_array = out.array};
    *block = (trli_row_block){.n = r.hi[0] - r.lo[0], .rows = r.hi[1] - r.lo[1], .out_step = out.stride[1]};
    b->out = first_of_region(&out, &r);
    for (int o = 0; o < in->operands; ++o) {
        const view arg = view_operand(f, &in->operand[o]);
        b->arg[o] = first_of_region(&arg, &r);
        b->arg_array[o] = arg.array;
        b->arg_plane[o] = arg.stride[2];
        block->arg_step[o] = arg.stride[1];
        if (arg.stride[0] == 0 && in->varies & 1) block->broadcast |= 1u << o;
    }
    for (int o = in->operands; o < TRLI_OPERANDS; ++o)
        b->arg[o] = b->out; /* any value: the loops load it, and use none */
    if (in->operands == 0) return;
    b->row = trli_row_find(in->op, block->broadcast);
    join_rows(block, in->operands);
}

static bool reads_fields(const trli_instruction *in)
{
    bool reads = false;
    for (int o = 0; o < in->operands; ++o) reads |= in->operand[o].kind == TRLI_ARGUMENT_FIELD;
    return reads;
}

/* Deal the lines of a row of each input to the instructions that read inputs, whose rows are not joined. */
static void deal_fetches(frame *f)
{
    const trli_kernel *k = f->kernel;
    const ptrdiff_t lines = (f->tile.hi[0] - f->tile.lo[0] + TRLI_LINE - 1) / TRLI_LINE;
    int readers = 0, nth = 0;
    for (int i = 0; k->dim > 1 && i < k->ninstructions; ++i) readers += reads_fields(&k->instruction[i]);
    for (int i = 0; i < k->ninstructions; ++i) {
        bound *b = &f->bound[i];
        b->fetched = -1;
        if (!f->run->exceeds_caches || !readers || !reads_fields(&k->instruction[i])) continue;
        b->fetched = nth % k->nfields;
        const trl_offsets hull = k->reach[b->fetched];
        const int part = nth / k->nfields, parts = (readers - b->fetched + k->nfields - 1) / k->nfields;
        const ptrdiff_t first = lines * part / parts, end = lines * (part + 1) / parts;
        for (int a = 1; a < 3; ++a) b->fetched_from[a] = a + 1 == k->dim ? hull.hi[a] : 0;
        b->fetched_from[0] = (trl_lidx)(first * TRLI_LINE);
        b->block.fetch_lines = (int)(end - first);
        b->block.fetch_step = f->run->input[b->fetched].stride[1];
        ++nth;
    }
}

static void bind_all(frame *f, const trl_box *tile)
{
    f->tile = *tile;
    for (int i = 0; i < f->kernel->ninstructions; ++i) bind(f, &f->kernel->instruction[i], &f->bound[i]);
    deal_fetches(f);
}

static bool same_shape(const trl_box *a, const trl_box *b)
{
    bool same = true;
    for (int i = 0; i < 3; ++i) same &= a->hi[i] - a->lo[i] == b->hi[i] - b->lo[i];
    return same;
}

/* How far the arrays' views are from where they were bound. */
static void move_arrays(frame *f, const trl_box *tile)
{
    for (int i = 0; i < f->kernel->nfields + f->kernel->nroots; ++i) {
        const trl_array *array = i < f->kernel->nfields ? &f->run->input[i] : &f->run->output[i - f->kernel->nfields];
        f->moved[1 + i] = trl_array_offset(array, tile->lo[0] - f->tile.lo[0], tile->lo[1] - f->tile.lo[1],
                                           tile->lo[2] - f->tile.lo[2]);
    }
}

/* Store a tile by streaming stores from the register that holds it; whether all its values are finite. */
static bool store(const frame *f, const trli_instruction *in, const bound *b, const trl_box *tile)
{
    const trl_array *array = &f->run->output[in->target.index];
    const trl_lidx n = tile->hi[0] - tile->lo[0];
    const double *row = b->out;
    bool finite = true;
    for (trl_lidx k = tile->lo[2]; k < tile->hi[2]; ++k)
        for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j, row += n)
            finite &= trli_row_store((double *)array->at + trl_array_offset(array, tile->lo[0], j, k), row, n);
    return finite;
}

static const double *fetched(const frame *f, const bound *b, const trl_box *tile)
{
    const trl_array *array = &f->run->input[b->fetched];
    const trl_lidx *from = b->fetched_from;
    return (const double *)array->at +
           trl_array_offset(array, tile->lo[0] + from[0], f->coming[0] + from[1], f->coming[1] + from[2]);
}

static void run_rows(const trli_instruction *in, bound *b, const ptrdiff_t *moved)
{
    trli_row_block *block = &b->block;
    block->out = b->out + moved[b->out_array];
    for (int o = 0; o < TRLI_OPERANDS; ++o) block->arg[o] = b->arg[o] + moved[b->arg_array[o]];
    for (ptrdiff_t plane = 0; plane < b->planes; ++plane) {
        if (b->row)
            b->row(block);
        else
            trli_row_indexed(in->op, in->index, block);
        block->out += b->out_plane;
        for (int o = 0; o < TRLI_OPERANDS; ++o) block->arg[o] += b->arg_plane[o];
    }
}

/* Values that come from the point alone. */
static double point_value(const trli_instruction *in, const trl_kernel_grid *grid, const trl_gidx point[3])
{
    if (in->op == TRLI_OP_COORDINATE)
        return trl_kernel_coordinate(grid, in->index, in->bit ? 0.0 : 0.5, point[in->index]);
    if (in->op == TRLI_OP_AT_SIDE) {
        int axis = in->index / 2;
        return point[axis] == (in->index % 2 ? grid->cells[axis] : 0) ? 1.0 : 0.0;
    }
    if (in->op == TRLI_OP_SHARE)
        return trl_kernel_share(grid, in->index, in->bit ? 0.0 : 0.5, in->number, point[in->index]);
    if (in->op == TRLI_OP_POINT) return trl_kernel_point(grid, point[0], point[1], point[2]);
    uint64_t seed;
    memcpy(&seed, &in->number, sizeof seed);
    return trl_kernel_random(seed, grid, point[0], point[1], point[2]);
}

static void run_points(const trli_instruction *in, const bound *b, const frame *f, const trl_box *tile)
{
    trl_box r = instruction_region(in, tile);
    trl_gidx first[3], point[3];
    const trl_kernel_grid grid = trli_kernel_grid_of(f->run);
    for (int a = 0; a < 3; ++a) first[a] = grid.first[a] + tile->lo[a];
    for (int k = r.lo[2]; k < r.hi[2]; ++k)
        for (int j = r.lo[1]; j < r.hi[1]; ++j)
            for (int i = r.lo[0]; i < r.hi[0]; ++i) {
                point[0] = first[0] + i;
                point[1] = first[1] + j;
                point[2] = first[2] + k;
                b->out[i - r.lo[0] + (j - r.lo[1]) * b->block.out_step + (k - r.lo[2]) * b->out_plane] =
                    point_value(in, &grid, point);
            }
}

/* Whether all values were seen to be finite. */
static bool run_tile(frame *f, const trl_box *tile)
{
    bool finite = passes_caches(f);
    if (same_shape(&f->tile, tile))
        move_arrays(f, tile);
    else {
        bind_all(f, tile);
        memset(f->moved, 0, bytes_of_moved(f->kernel));
    }
    for (int i = 0; i < f->kernel->ninstructions; ++i) {
        const trli_instruction *in = &f->kernel->instruction[i];
        bound *b = &f->bound[i];
        if (b->fetched >= 0) b->block.fetch = fetched(f, b, tile);
        if (in->operands > 0)
            run_rows(in, b, f->moved);
        else
            run_points(in, b, f, tile);
        if (in->target.kind == TRLI_ARGUMENT_OUTPUT && passes_caches(f)) finite &= store(f, in, b, tile);
    }
    return finite;
}

/* The next tile of a box along an axis. */
static void advance(const trl_box *box, const trl_lidx shape[3], trl_box *tile, int axis)
{
    tile->hi[axis] = box->hi[axis] - tile->lo[axis] < shape[axis] ? box->hi[axis] : tile->lo[axis] + shape[axis];
}

trl_kernel_grid trli_kernel_grid_of(const trli_kernel_run *run)
{
    const trl_grid *g = run->grid;
    trl_kernel_grid grid = {.unused = 0};
    for (int a = 0; a < 3; ++a) {
        grid.origin[a] = g->origin[a];
        grid.spacing[a] = g->spacing[a];
        grid.cells[a] = g->cells[a];
        grid.first[a] = run->patch->first[a];
        grid.periodic[a] = g->periodic[a];
    }
    return grid;
}

void trli_kernel_evaluate(const trli_kernel *kernel, const trli_kernel_run *run, const trl_box *box)
{
    char *scratch = run->scratch;
    frame f = {.kernel = kernel,
               .run = run,
               .bound = (bound *)scratch,
               .moved = (ptrdiff_t *)(scratch + bytes_of_bound(kernel)),
               .registers = (double *)(scratch + bytes_of_bound(kernel) + bytes_of_moved(kernel))};
    trl_lidx shape[3];
    trl_box tile;
    if (trl_box_points(box) == 0) return;
    choose_shape(kernel, box, shape);
    for (tile.lo[2] = box->lo[2]; tile.lo[2] < box->hi[2]; tile.lo[2] = tile.hi[2]) {
        advance(box, shape, &tile, 2);
        for (tile.lo[1] = box->lo[1]; tile.lo[1] < box->hi[1]; tile.lo[1] = tile.hi[1]) {
            advance(box, shape, &tile, 1);
            const bool last = tile.hi[1] == box->hi[1];
            f.coming[0] = last ? box->lo[1] : tile.hi[1];
            f.coming[1] = last ? tile.hi[2] : tile.lo[2];
            for (tile.lo[0] = box->lo[0]; tile.lo[0] < box->hi[0]; tile.lo[0] = tile.hi[0]) {
                advance(box, shape, &tile, 0);
                if (!run_tile(&f, &tile) && run->after) run->after(run->data, &tile);
            }
        }
    }
    if (run->exceeds_caches) trli_rows_stored();
}
