/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Marked parts of formulas. */
#ifndef TRLI_MARKS_IMPL_H
#define TRLI_MARKS_IMPL_H

#include "model_impl.h"

typedef struct trli_marks {
    int n, capacity;
    const trl_ast **node;
} trli_marks;

/* Mark a part of a formula. */
TRL_NODISCARD trl_err trli_marks_add(trli_model *model, trli_marks *marks, const trl_ast *node);
/* Put the marks in the order that trli_marks_have needs. */
void trli_marks_sort(trli_marks *marks);
bool trli_marks_have(const trli_marks *marks, const trl_ast *node);

#endif
