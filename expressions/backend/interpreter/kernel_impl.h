/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the interpreter's translation and evaluation share. */
#ifndef TRLI_KERNEL_IMPL_H
#define TRLI_KERNEL_IMPL_H

#include "interpreter_impl.h"

typedef enum trli_argument_kind {
    TRLI_ARGUMENT_NONE,     /* nothing computes the value (yet) */
    TRLI_ARGUMENT_CONSTANT, /* index: of the kernel's constants */
    TRLI_ARGUMENT_SCALAR,   /* index: of the table of scalars */
    TRLI_ARGUMENT_FIELD,    /* index: of the kernel's inputs */
    TRLI_ARGUMENT_REGISTER, /* index: register, with the axes and the hull of the tile that it covers */
    TRLI_ARGUMENT_OUTPUT    /* index: root */
} trli_argument_kind;

typedef struct trli_argument {
    trli_argument_kind kind;
    int32_t index;
    int8_t shift[3];
    uint8_t varies;
    trl_offsets hull;
} trli_argument;

typedef struct trli_instruction {
    int op; /* trli_op or trli_chain */
    int operands;
    uint8_t varies;     /* axes of the result */
    int32_t index, bit; /* as in trli_node */
    double number;
    trl_offsets hull; /* computed on the tile grown by this */
    trli_argument target, operand[TRLI_OPERANDS];
    /* Used while translating: the nodes of the result and of the operands, and by how much farther on than there these
     * are read. */
    int32_t node, source[TRLI_OPERANDS], output;
    int8_t farther[TRLI_OPERANDS][3];
} trli_instruction;

struct trli_kernel {
    int dim;
    int ninstructions;
    trli_instruction *instruction;
    int nregisters;
    int nfields;        /* inputs: those of trli_reads, in their order */
    trl_offsets *reach; /* [nfields] all offsets at which each is read */
    int nconstants;
    double *constant;
    int nroots;
    bool reads_roots;        /* some instruction reads what another has stored to an output */
    trl_lidx tile[3];        /* of a large box */
    trl_lidx grown[3];       /* points by which registers are longer than the tile, at most */
    size_t register_doubles; /* room of one register */
};

void trli_kernel_choose_tile(trli_kernel *kernel);

#endif
