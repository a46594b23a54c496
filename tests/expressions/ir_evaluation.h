/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values of the IR at points along x, by the folder's arithmetic; and derivatives of functions of one number by
 * differences. */
#ifndef IR_EVALUATION_H
#define IR_EVALUATION_H

#include <math.h>

#include "trl_test.h"

#include <interpreter_impl.h>

enum { REACH = 24, OFFSETS = 2 * REACH + 1 };

/* Where an evaluation gets the values of fields and scalars: at an offset, with everything that may change moved by
 * eps. */
typedef struct evaluation {
    const trli_ir *ir;
    double (*field)(const struct evaluation *e, int field, int offset);
    double (*scalar)(const struct evaluation *e, int scalar);
    const void *data;
    double eps;
    double *value; /* [node][OFFSETS], NaN where not known yet */
} evaluation;

static double evaluate_at(evaluation *e, trli_ir_value v, int offset)
{
    const trli_node *n = &e->ir->node[v];
    double number[3] = {0}, *kept = &e->value[(size_t)v * OFFSETS + (size_t)(offset + REACH)];
    ck_assert(offset >= -REACH && offset <= REACH);
    if (!isnan(*kept)) return *kept;
    for (int i = 0; i < trli_op_operands((trli_op)n->op); ++i)
        number[i] = evaluate_at(e, n->arg[i], offset + (n->op == TRLI_OP_SHIFT ? n->shift[0] : 0));
    switch ((trli_op)n->op) {
    case TRLI_OP_CONSTANT:
        return *kept = n->number;
    case TRLI_OP_FIELD:
        return *kept = e->field(e, n->index, offset);
    case TRLI_OP_SCALAR:
        return *kept = e->scalar(e, n->index);
    case TRLI_OP_COORDINATE:
        return *kept = e->ir->grid->spacing[0] * (offset + 0.5 * (n->bit == 0));
    default:
        return *kept = trli_op_evaluate(n->op, n->index, number);
    }
}

static inline double evaluate(evaluation *e, trli_ir_value v, double eps)
{
    size_t n = (size_t)e->ir->count * OFFSETS;
    e->eps = eps;
    e->value = malloc(n * sizeof *e->value);
    ck_assert_ptr_nonnull(e->value);
    for (size_t i = 0; i < n; ++i) e->value[i] = NAN;
    double result = evaluate_at(e, v, 0);
    free(e->value);
    e->value = NULL;
    return result;
}

/* The derivative by eps at 0: central differences, extrapolated to step 0 (Ridders 1982). *error: how far the best two
 * differ. */
static inline double difference(evaluation *e, trli_ir_value v, double *error)
{
    enum { LEVELS = 9 };
    double table[LEVELS][LEVELS], h = 0.02, best = NAN;
    *error = INFINITY;
    for (int i = 0; i < LEVELS; ++i, h /= 1.7) {
        table[i][0] = (evaluate(e, v, h) - evaluate(e, v, -h)) / (2 * h);
        double factor = 1.7 * 1.7;
        for (int j = 1; j <= i; ++j, factor *= 1.7 * 1.7) {
            table[i][j] = (table[i][j - 1] * factor - table[i - 1][j - 1]) / (factor - 1);
            double apart = fmax(fabs(table[i][j] - table[i][j - 1]), fabs(table[i][j] - table[i - 1][j - 1]));
            if (apart > *error) continue;
            *error = apart;
            best = table[i][j];
        }
    }
    return best;
}

#endif
