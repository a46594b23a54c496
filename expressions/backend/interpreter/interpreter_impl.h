/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The interpreter: evaluates values of the IR over a box, tile by tile, one vector loop per operation. It is the
 * reference that every other executor must match bit by bit. */
#ifndef TRLI_INTERPRETER_IMPL_H
#define TRLI_INTERPRETER_IMPL_H

#include <trl_kernel_body.h>

#include "reads_impl.h"

/* Operations that only the interpreter has: chains of nodes in one pass over the tile, each rounded as by itself. x, y
 * and z are the operands. clang-format would take a product for a pointer. X(name, result). */
/* clang-format off */
#define TRLI_CHAIN_LIST(X)  \
    X(ADD_ADD, x + y + z)   \
    X(ADD_SUB, x + y - z)   \
    X(SUB_ADD, x - y + z)   \
    X(MUL_MUL, x * y * z)   \
    X(ADD_MUL, (x + y) * z) \
    X(SUB_MUL, (x - y) * z) \
    X(MUL_ADD, x * y + z)   \
    X(MUL_SUB, x * y - z)   \
    X(SUB_FROM_MUL, z - x * y)
/* clang-format on */
/* Chains of which some operands, the scales, are one value for a whole row, and no other is: s, r and q are the scales,
 * consecutive operands from the first on; a to h are all operands by row, at i. GRADIENTS and FLUXES compute at two
 * points what costs less than to keep it. X(name, first, count, result). */
#define TRLI_SCALED_LIST(X)                                                        \
    X(SUB_MUL_ADD, 2, 1, (a[i] - b[i]) * s + d[i])                                 \
    X(ADD_SUB_MUL, 3, 1, (a[i] + b[i] - c[i]) * s)                                 \
    X(ADD_SUB_MUL_ADD, 3, 1, (a[i] + b[i] - c[i]) * s + e[i])                      \
    X(GRADIENTS, 4, 1, (a[i] - b[i]) * s - (c[i] - d[i]) * s)                      \
    X(GRADIENTS_MUL, 4, 2, ((a[i] - b[i]) * s - (c[i] - d[i]) * s) * r)            \
    X(GRADIENTS_MUL_ADD, 4, 2, ((a[i] - b[i]) * s - (c[i] - d[i]) * s) * r + g[i]) \
    X(FLUX, 2, 2, (a[i] - b[i]) * s * r)                                           \
    X(FLUXES, 4, 2, (a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r)                 \
    X(FLUXES_MUL, 4, 3, ((a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r) * q)       \
    X(FLUXES_MUL_ADD, 4, 3, ((a[i] - b[i]) * s * r - (c[i] - d[i]) * s * r) * q + h[i])

/* How chains come about: an operation and the one of its operand at the position, itself a chain perhaps, become one
 * instruction; the first row that fits does. GRADIENTS and FLUXES are the difference of one SUB_MUL, or FLUX, at two
 * points. X(operation, of the operand, position, chain). */
#define TRLI_MERGE_LIST(X)                                    \
    X(MUL, CHAIN_ADD_SUB, 0, SCALED_ADD_SUB_MUL)              \
    X(MUL, CHAIN_ADD_SUB, 1, SCALED_ADD_SUB_MUL)              \
    X(MUL, CHAIN_SUB_MUL, 0, SCALED_FLUX)                     \
    X(MUL, CHAIN_SUB_MUL, 1, SCALED_FLUX)                     \
    X(MUL, SCALED_GRADIENTS, 0, SCALED_GRADIENTS_MUL)         \
    X(MUL, SCALED_GRADIENTS, 1, SCALED_GRADIENTS_MUL)         \
    X(MUL, SCALED_FLUXES, 0, SCALED_FLUXES_MUL)               \
    X(MUL, SCALED_FLUXES, 1, SCALED_FLUXES_MUL)               \
    X(MUL, OP_ADD, 0, CHAIN_ADD_MUL)                          \
    X(MUL, OP_ADD, 1, CHAIN_ADD_MUL)                          \
    X(MUL, OP_SUB, 0, CHAIN_SUB_MUL)                          \
    X(MUL, OP_SUB, 1, CHAIN_SUB_MUL)                          \
    X(MUL, OP_MUL, 0, CHAIN_MUL_MUL)                          \
    X(MUL, OP_MUL, 1, CHAIN_MUL_MUL)                          \
    X(ADD, SCALED_ADD_SUB_MUL, 0, SCALED_ADD_SUB_MUL_ADD)     \
    X(ADD, SCALED_ADD_SUB_MUL, 1, SCALED_ADD_SUB_MUL_ADD)     \
    X(ADD, SCALED_GRADIENTS_MUL, 0, SCALED_GRADIENTS_MUL_ADD) \
    X(ADD, SCALED_GRADIENTS_MUL, 1, SCALED_GRADIENTS_MUL_ADD) \
    X(ADD, SCALED_FLUXES_MUL, 0, SCALED_FLUXES_MUL_ADD)       \
    X(ADD, SCALED_FLUXES_MUL, 1, SCALED_FLUXES_MUL_ADD)       \
    X(ADD, CHAIN_SUB_MUL, 0, SCALED_SUB_MUL_ADD)              \
    X(ADD, CHAIN_SUB_MUL, 1, SCALED_SUB_MUL_ADD)              \
    X(ADD, OP_MUL, 0, CHAIN_MUL_ADD)                          \
    X(ADD, OP_MUL, 1, CHAIN_MUL_ADD)                          \
    X(SUB, OP_MUL, 0, CHAIN_MUL_SUB)                          \
    X(SUB, OP_MUL, 1, CHAIN_SUB_FROM_MUL)                     \
    X(ADD, OP_ADD, 0, CHAIN_ADD_ADD)                          \
    X(ADD, OP_ADD, 1, CHAIN_ADD_ADD)                          \
    X(ADD, OP_SUB, 0, CHAIN_SUB_ADD)                          \
    X(ADD, OP_SUB, 1, CHAIN_SUB_ADD)                          \
    X(SUB, OP_ADD, 0, CHAIN_ADD_SUB)

typedef enum trli_chain {
    TRLI_CHAIN_COPY = TRLI_OP_COUNT,
#define TRLI_CHAIN_ENUM(name, result) TRLI_CHAIN_##name,
    TRLI_CHAIN_LIST(TRLI_CHAIN_ENUM)
#undef TRLI_CHAIN_ENUM
        TRLI_CHAIN_END,
    TRLI_SCALED_FIRST = TRLI_CHAIN_END - 1,
#define TRLI_SCALED_ENUM(name, ...) TRLI_SCALED_##name,
    TRLI_SCALED_LIST(TRLI_SCALED_ENUM)
#undef TRLI_SCALED_ENUM
        TRLI_SCALED_END
} trli_chain;

enum { TRLI_OPERANDS = 8 }; /* of one operation, at most */

/* Rows of one operation: out[i] = op(arg[0][i], arg[1][i], ...) for 0 <= i < n, `rows` times, each pointer moving on
 * by its own step from row to row. out may be one of the operands, element by element. Operands that the operation
 * lacks point to any value. With each row some lines of memory are asked for that later blocks read. */
typedef struct trli_row_block {
    double *out;
    const double *arg[TRLI_OPERANDS], *fetch;
    ptrdiff_t n, rows, out_step, arg_step[TRLI_OPERANDS], fetch_step;
    int fetch_lines;
    unsigned broadcast; /* operands, as bits, that are one value for a whole row */
} trli_row_block;
typedef void (*trli_row)(const trli_row_block *block);
/* The loop of an operation (trli_op or trli_chain); `broadcast` means nothing for a scaled chain. FUNCTION* and LIMIT
 * have none of their own, NULL: see trli_row_indexed. */
trli_row trli_row_find(int op, unsigned broadcast);
/* The operands of a scaled chain that are scales, as bits; 0 for every other operation. */
unsigned trli_row_scales(int op);
/* The operations with an index: a function of the table or a limiter. */
void trli_row_indexed(int op, int index, const trli_row_block *block);

/* Whether no value of some rows is infinite or NaN. */
bool trli_rows_finite(const double *values, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t step);
/* Copy a row with streaming stores; whether no value is infinite or NaN. After the last: trli_rows_stored. */
bool trli_row_store(double *out, const double *values, ptrdiff_t n);
void trli_rows_stored(void);

/* A compiled kernel: roots evaluated together, each stored to its own output. Read-only once made; any number of
 * threads run it. */
typedef struct trli_kernel trli_kernel;

/* reads: of the roots. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_kernel_create(const trli_ir *ir, trli_walk *walk, const trli_reads *reads, int nroots,
                                         const trli_ir_value *roots, trli_kernel **kernel);
void trli_kernel_destroy(trli_kernel **kernel);
/* The largest box that is evaluated in one go. */
const trl_lidx *trli_kernel_tile(const trli_kernel *kernel);
/* Bytes of scratch that a thread needs. */
size_t trli_kernel_scratch(const trli_kernel *kernel);

typedef struct trli_kernel_run {
    const trl_grid *grid;
    const trl_patch *patch;
    const trl_array *input;  /* [nfields] of trli_reads, in that order */
    const trl_array *output; /* [roots] */
    const double *scalar;    /* table of all scalars */
    void *scratch;
    bool exceeds_caches; /* the fields do: use streaming stores, and prefetch what is read */
    /* Called with each tile just stored, unless all its values were seen to be finite; or NULL. */
    void (*after)(void *data, const trl_box *tile);
    void *data;
} trli_kernel_run;
void trli_kernel_evaluate(const trli_kernel *kernel, const trli_kernel_run *run, const trl_box *box);
/* What values that come from a point alone depend on. */
trl_kernel_grid trli_kernel_grid_of(const trli_kernel_run *run);

#endif
