/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdint.h>
#include <stdlib.h>

#include "marks_impl.h"
#include "memory_impl.h"

trl_err trli_marks_add(trli_model *model, trli_marks *marks, const trl_ast *node)
{
    if (!trli_make_room(model->ctx, &marks->node, marks->n, 1, &marks->capacity, sizeof *marks->node))
        return trli_no_memory(model->ctx, NULL, "for %d parts of formulas", marks->n + 1);
    marks->node[marks->n++] = node;
    return TRL_OK;
}

static int compare_marks(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const trl_ast *const *)a, y = (uintptr_t) * (const trl_ast *const *)b;
    return (x > y) - (x < y);
}

void trli_marks_sort(trli_marks *marks)
{
    if (marks->n > 0) qsort(marks->node, (size_t)marks->n, sizeof(const trl_ast *), compare_marks);
}

bool trli_marks_have(const trli_marks *marks, const trl_ast *node)
{
    return marks->n > 0 &&
           bsearch(&node, marks->node, (size_t)marks->n, sizeof(const trl_ast *), compare_marks) != NULL;
}
