/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct application of operators: kernels over rows, and boxes cut to feed them. */
#ifndef TRLI_OPERATOR_IMPL_H
#define TRLI_OPERATOR_IMPL_H

#include <trl_operator.h>

#include "spatialops_impl.h"
#include "vector_impl.h"

enum {
    TRLI_LEAVES = 9,     /* values that one kernel reads for a point, at most */
    TRLI_SUM_POINTS = 8, /* points that one kernel of a sum takes, at most */
};

/* A box of results: `planes` of `rows` of n neighbours along x. Leaf l is read at in[l], which moves with the steps of
 * its term. */
typedef struct trli_rows {
    double *out;
    int leaves;
    const double *in[TRLI_LEAVES];
    int8_t term[TRLI_LEAVES];
    ptrdiff_t n, rows, planes;
    ptrdiff_t out_step[2], in_step[3][2]; /* from row to row, from plane to plane */
    double weight[TRLI_LEAVES];           /* of each leaf */
    double scale[3];                      /* of each term; of one term in several passes: of each pass */
    int first;                            /* the leaf that reads what no row before has read, if `ahead` */
    ptrdiff_t ahead;                      /* kernels with streaming stores fetch values this far beyond it; 0: none */
} trli_rows;
/* streaming: the same with streaming stores, for rows that begin and end on cache lines; NULL: there is none. */
typedef struct trli_rows_kernel {
    void (*through)(const trli_rows *rows);
    void (*streaming)(const trli_rows *rows);
} trli_rows_kernel;

/* scale[0] * (the sum of npoints <= TRLI_SUM_POINTS leaves with the weights of these points); the same of out and as
 * many weighted leaves. */
trli_rows_kernel trli_rows_sum(const trl_stencil_point *point, int npoints);
trli_rows_kernel trli_rows_add(int npoints);
/* The kernel that evaluates the whole operator for each point, and its weights and scales; false: there is none. Leaves
 * are the points of the terms in their order, in each term the last pass' points slowest. */
bool trli_rows_fused(const trl_operator *op, trli_rows *rows, trli_rows_kernel *kernel);
/* flux = u * (phi at the face). Leaf 0 is u; 1 and 2 are phi beside the face, on the minus and the plus side; limiters
 * other than upwind also read 3 and 4, the next ones beyond these. Leaves of phi move with the second term. */
trli_rows_kernel trli_rows_flux(int limiter);

/* ---- operator_box.c: kernels on boxes ---- */

/* The rows of a box of an array, without leaves. */
trli_rows trli_rows_of(const trl_array *out, const trl_box *box);
/* The next leaf, of term t, is the array's value at `offset` from each point of the box. */
void trli_rows_read(trli_rows *rows, int t, const trl_array *from, const trl_box *box, const int8_t offset[3]);
/* Run a kernel that reads what the operator reads, block by block. `streaming`: with streaming stores. */
void trli_rows_run(const trl_operator *op, trli_rows_kernel kernel, const trli_rows *rows, bool streaming);
/* trl_operator_apply_box, told whether to use streaming stores. */
void trli_operator_box(const trl_operator *op, const trl_array *in, const trl_array *out, const trl_box *box,
                       bool streaming);

/* ---- operator_device.c ---- */

typedef struct trli_application trli_application; /* field_impl.h */
/* Compute an application, whose boxes are chosen, where its fields live. *done = false: the host has to. */
TRL_NODISCARD trl_err trli_apply_there(const trli_application *application, bool *done);

/* Copy rows with streaming stores; trli_stream_end before others read them. */
void trli_stream_rows(double *to, ptrdiff_t to_step, const double *from, ptrdiff_t from_step, ptrdiff_t n,
                      ptrdiff_t rows);
void trli_stream_end(void);

#endif
