/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Evaluation of a kernel over a box, tile by tile. Registers hold a node's values on the tile grown by the node's hull, and only along
 * the axes on which it varies; a stencil is then a shifted view, and a function of x alone is computed once per row. */
#include <string.h>

#include "kernel_impl.h"

/* Tiles: rows up to TILE_ROW, and as many points as keep the registers within CACHE_DOUBLES. */
#define TILE_ROW 512
#define TILE_MIN 256
#define TILE_MAX 8192
#define CACHE_DOUBLES 3072

static int grown(int extent, const trl_offsets *hull, int axis)
{
    return extent + hull->hi[axis] - hull->lo[axis];
}

void trli_kernel_choose_tile(trli_kernel *kernel)
{
    int points = CACHE_DOUBLES / (kernel->nregisters + kernel->nfields + 1);
    points = points < TILE_MIN ? TILE_MIN : points > TILE_MAX ? TILE_MAX : points;
    kernel->tile[0] = TILE_ROW;
    kernel->tile[1] = kernel->dim > 1 ? points / 128 : 1;
    kernel->tile[2] = 1;
    for (int i = 0; i < kernel->ninstructions; ++i) {
        const trli_instruction *in = &kernel->instruction[i];
        size_t room = 1;
        if (in->target.kind != TRLI_OPERAND_REGISTER) continue;
        for (int a = 0; a < 3; ++a)
            if (in->varies & 1 << a) room *= (size_t)grown(kernel->tile[a], &in->hull, a);
        if (room > kernel->register_doubles) kernel->register_doubles = room;
    }
    kernel->register_doubles = (kernel->register_doubles + 7) / 8 * 8;
}

size_t trli_kernel_scratch(const trli_kernel *kernel)
{
    return (size_t)kernel->nregisters * kernel->register_doubles * sizeof(double);
}

/* A view of values around the first point of a tile. */
typedef struct view {
    double *at;
    ptrdiff_t stride[3];
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

static view view_register(const trli_kernel *k, const trli_kernel_run *run, const trli_operand *o, const trl_box *tile)
{
    view v = {.at = (double *)run->scratch + (size_t)o->index * k->register_doubles};
    ptrdiff_t stride = 1;
    for (int a = 0; a < 3; ++a) {
        if (!(o->varies & 1 << a)) continue;
        v.stride[a] = stride;
        v.at += (o->shift[a] - o->hull.lo[a]) * stride;
        stride *= grown(tile->hi[a] - tile->lo[a], &o->hull, a);
    }
    return v;
}

static view view_operand(const trli_kernel *k, const trli_kernel_run *run, const trli_operand *o, const trl_box *tile)
{
    switch (o->kind) {
    case TRLI_OPERAND_CONSTANT: return (view){.at = &k->constant[o->index]};
    case TRLI_OPERAND_SCALAR: return (view){.at = (double *)&run->scalar[o->index]};
    case TRLI_OPERAND_FIELD: return view_array(&run->input[o->index], tile, o->shift);
    case TRLI_OPERAND_OUTPUT: return view_array(&run->output[o->index], tile, o->shift);
    default: return view_register(k, run, o, tile);
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

static double *first_of_plane(const view *v, const trl_box *r, int k)
{
    return v->at + r->lo[0] * v->stride[0] + r->lo[1] * v->stride[1] + k * v->stride[2];
}

/* Rows that follow each other in memory, in the result and in all operands, are one long row. */
static void join_rows(trli_block *block, int operands)
{
    bool joined = block->out_step == block->n;
    for (int o = 0; o < operands; ++o) joined &= block->arg_step[o] == (block->broadcast >> o & 1 ? 0 : block->n);
    if (!joined) return;
    block->n *= block->rows;
    block->rows = 1;
}

static void run_rows(const trli_instruction *in, const view *out, const view arg[3], const trl_box *r)
{
    trli_block block = {.n = r->hi[0] - r->lo[0], .rows = r->hi[1] - r->lo[1], .out_step = out->stride[1]};
    for (int o = 0; o < in->operands; ++o) {
        block.arg_step[o] = arg[o].stride[1];
        if (arg[o].stride[0] == 0 && in->varies & 1) block.broadcast |= 1u << o;
    }
    trli_row row = trli_row_find(in->op, block.broadcast);
    join_rows(&block, in->operands);
    for (int k = r->lo[2]; k < r->hi[2]; ++k) {
        block.out = first_of_plane(out, r, k);
        for (int o = 0; o < 3; ++o) block.arg[o] = first_of_plane(&arg[o < in->operands ? o : 0], r, k);
        if (row) row(&block);
        else trli_row_indexed(in->op, in->index, &block);
    }
}

static trl_gidx wrapped(const trl_grid *grid, int axis, trl_gidx i)
{
    if (!grid->periodic[axis]) return i;
    i %= grid->cells[axis];
    return i < 0 ? i + grid->cells[axis] : i;
}

/* Values that come from the point alone. */
static double point_value(const trli_instruction *in, const trl_grid *grid, const trl_gidx point[3])
{
    if (in->op == TRLI_OP_COORDINATE)
        return trl_grid_coordinate(grid, in->bit ? TRL_NODE : TRL_CELL, in->index, point[in->index]);
    if (in->op == TRLI_OP_AT_SIDE) {
        int axis = in->index / 2;
        return point[axis] == (in->index % 2 ? grid->cells[axis] : 0) ? 1.0 : 0.0;
    }
    trl_gidx cell[3];
    for (int a = 0; a < 3; ++a) cell[a] = wrapped(grid, a, point[a]);
    return trli_random(in->number, cell);
}

static void run_points(const trli_instruction *in, const trli_kernel_run *run, const view *out, const trl_box *r, const trl_box *tile)
{
    trl_gidx first[3], point[3];
    for (int a = 0; a < 3; ++a) first[a] = run->patch->first[a] + tile->lo[a];
    for (int k = r->lo[2]; k < r->hi[2]; ++k)
        for (int j = r->lo[1]; j < r->hi[1]; ++j)
            for (int i = r->lo[0]; i < r->hi[0]; ++i) {
                point[0] = first[0] + i;
                point[1] = first[1] + j;
                point[2] = first[2] + k;
                out->at[i * out->stride[0] + j * out->stride[1] + k * out->stride[2]] = point_value(in, run->grid, point);
            }
}

static void run_tile(const trli_kernel *kernel, const trli_kernel_run *run, const trl_box *tile)
{
    for (int i = 0; i < kernel->ninstructions; ++i) {
        const trli_instruction *in = &kernel->instruction[i];
        trl_box region = instruction_region(in, tile);
        view out = view_operand(kernel, run, &in->target, tile), arg[3];
        for (int o = 0; o < in->operands; ++o) arg[o] = view_operand(kernel, run, &in->operand[o], tile);
        if (in->operands > 0) run_rows(in, &out, arg, &region);
        else run_points(in, run, &out, &region, tile);
    }
}

void trli_kernel_evaluate(const trli_kernel *kernel, const trli_kernel_run *run, const trl_box *box)
{
    trl_box tile;
    for (tile.lo[2] = box->lo[2]; tile.lo[2] < box->hi[2]; tile.lo[2] = tile.hi[2]) {
        tile.hi[2] = tile.lo[2] + kernel->tile[2] < box->hi[2] ? tile.lo[2] + kernel->tile[2] : box->hi[2];
        for (tile.lo[1] = box->lo[1]; tile.lo[1] < box->hi[1]; tile.lo[1] = tile.hi[1]) {
            tile.hi[1] = tile.lo[1] + kernel->tile[1] < box->hi[1] ? tile.lo[1] + kernel->tile[1] : box->hi[1];
            for (tile.lo[0] = box->lo[0]; tile.lo[0] < box->hi[0]; tile.lo[0] = tile.hi[0]) {
                tile.hi[0] = tile.lo[0] + kernel->tile[0] < box->hi[0] ? tile.lo[0] + kernel->tile[0] : box->hi[0];
                run_tile(kernel, run, &tile);
                if (run->after) run->after(run->data, &tile);
            }
        }
    }
}

double trli_random(double seed, const trl_gidx cell[3])
{
    /* SplitMix64 (Steele, Lea & Flood 2014) of seed and cell; 53 bits make the number. */
    uint64_t h;
    memcpy(&h, &seed, sizeof h);
    for (int a = 0; a < 3; ++a) {
        h += 0x9e3779b97f4a7c15u + (uint64_t)cell[a];
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
        h = (h ^ h >> 27) * 0x94d049bb133111ebu;
        h ^= h >> 31;
    }
    return (double)(h >> 11) * 0x1p-53;
}
