/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The intermediate representation as text, for readers. */
#include <errno.h>
#include <string.h>

#include "cost_impl.h"
#include "formula_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"

typedef struct listing {
    const trli_model *model;
    const int *number; /* by value; 0: it is no operation */
    FILE *out;
} listing;

static void put_leaf(const listing *l, const trli_node *n)
{
    switch (n->op) {
    case TRLI_OP_CONSTANT:
        fprintf(l->out, "%.17g", n->number);
        break;
    case TRLI_OP_SCALAR:
        if (n->index == TRLI_SCALAR_DT)
            fputs("dt", l->out);
        else
            fprintf(l->out, "s%d", n->index);
        break;
    case TRLI_OP_FIELD:
        fputs(l->model->field[n->index].name, l->out);
        break;
    case TRLI_OP_COORDINATE:
        fprintf(l->out, "%c", "xyz"[n->index]);
        break;
    case TRLI_OP_POINT:
        fputs("point", l->out);
        break;
    case TRLI_OP_SHARE:
        fprintf(l->out, "share(%c, %g)", "xyz"[n->index], n -> number);
        break;
    case TRLI_OP_RANDOM:
        fprintf(l->out, "random(%g)", n->number);
        break;
    default: /* AT_SIDE */
        fprintf(l->out, "at_side(%c%c)", "xyz"[n->index / 2], n -> index % 2 ? '+' : '-');
    }
}

/* "a3[1,0]": a value one point further along x. */
static void put_operand(const listing *l, trli_ir_value v)
{
    const trli_node *n = trli_ir_node(&l->model->ir, v);
    int offset[3] = {0};
    for (; n->op == TRLI_OP_SHIFT; v = n->arg[0], n = trli_ir_node(&l->model->ir, v))
        for (int a = 0; a < 3; ++a) offset[a] += n->shift[a];
    if (l->number[v] > 0)
        fprintf(l->out, "a%d", l->number[v]);
    else
        put_leaf(l, n);
    if (!offset[0] && !offset[1] && !offset[2]) return;
    for (int a = 0; a < l->model->layout->grid.dim; ++a) fprintf(l->out, "%c%d", a ? ',' : '[', offset[a]);
    fputc(']', l->out);
}

static void put_operation(const listing *l, const trli_node *n)
{
    int count;
    const trl_function *functions = trl_functions(&count);
    const bool infix =
        trli_op_operands(n->op) == 2 && n->op != TRLI_OP_MIN && n->op != TRLI_OP_MAX && n->op != TRLI_OP_FUNCTION2;
    if (infix) {
        put_operand(l, n->arg[0]);
        fprintf(l->out, " %s ", trli_op_name(n->op));
        put_operand(l, n->arg[1]);
        return;
    }
    const bool function = n->op == TRLI_OP_FUNCTION1 || n->op == TRLI_OP_FUNCTION2;
    fprintf(l->out, "%s(", function ? functions[n->index].name : trli_op_name(n->op));
    for (int o = 0; o < trli_op_operands(n->op); ++o) {
        if (o) fputs(", ", l->out);
        put_operand(l, n->arg[o]);
    }
    fputc(')', l->out);
}

static const char *place_of(const trli_model *model, const trli_node *n)
{
    const unsigned point = model->layout->grid.dim > 1 ? 3 : 1;
    if ((n->varies & point) == point) return "";
    return n->varies & 3 ? ", once for a row" : n->varies ? ", once for a plane" : ", once for a call";
}

static void put_kernel(const listing *l, const trli_step *s, const trli_work *work, int *number, const int *uses)
{
    const trli_walk *walk = &l->model->walk;
    int n = 0;
    fprintf(l->out, "%s: %.0f flops\n", l->model->field[s->field[0]].name, work->flops);
    for (int32_t i = 0; i < walk->count; ++i) {
        const trli_ir_value v = walk->list[i];
        const trli_node *node = trli_ir_node(&l->model->ir, v);
        if (trli_op_operands(node->op) == 0 || node->op == TRLI_OP_SHIFT) continue;
        number[v] = ++n;
        fprintf(l->out, "  a%-2d = ", n);
        put_operation(l, node);
        if (uses[v] > 1 || *place_of(l->model, node))
            fprintf(l->out, "   (%d offset%s%s)", uses[v], uses[v] > 1 ? "s" : "", place_of(l->model, node));
        fputc('\n', l->out);
    }
    for (int o = 0; o < s->nout; ++o) {
        fprintf(l->out, "  %s <- ", l->model->field[s->field[o]].name);
        put_operand(l, s->value[o]);
        fputc('\n', l->out);
    }
}

trl_err trli_ir_write(trli_program *program, FILE *out)
{
    trli_model *model = program->model;
    const size_t n = (size_t)model->ir.count;
    int *number = trli_new(model->ctx, n, sizeof *number), *uses = trli_new(model->ctx, n, sizeof *uses);
    const listing l = {model, number, out};
    trl_err err = TRL_OK;
    if (!number || !uses) {
        err = trli_no_memory(model->ctx, NULL, "to show %zu values", n);
        goto done;
    }
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        trli_work work;
        if (!program->plan->step[i].live || s->kind != TRLI_STEP_KERNEL) continue;
        memset(number, 0, n * sizeof *number);
        memset(uses, 0, n * sizeof *uses);
        TRL_TRY(trli_work_of(model, &model->machine.balance, s->nout, s->value, TRLI_NO_VALUE, uses, &work));
        put_kernel(&l, s, &program->work[i], number, uses);
    }
    if (ferror(out))
        err = trl_fail(model->ctx, TRL_ERR_IO, NULL, "the values of kernels cannot be written: %s", strerror(errno));
done:
    trli_free(number);
    trli_free(uses);
    return err;
}
