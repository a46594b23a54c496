/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the IR to text. Every operation is the interpreter's, in the same order and on every device, so the bits are the
 * same. */
#include <stdlib.h>
#include <string.h>

#include <trl_functions_body.h>

#include "emit_writer_impl.h"

enum { CALLS_FEW = 12 }; /* that are worth a copy of the function each: more take long to compile */

void trli_put_indent(trli_emitter *e, int depth)
{
    fprintf(e->out, "%*s", 4 * depth, "");
}

void trli_put_number(trli_emitter *e, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number - number == 0)
        fprintf(e->out, number < 0 || bits >> 63 ? "(%a)" : "%a", number);
    else
        fprintf(e->out, "trl_kernel_number(0x%llxull)", (unsigned long long)bits);
}

/* The global index of the point along an axis. */
static void put_index(trli_emitter *e, const trli_sample *in, int axis)
{
    const int loop = axis == e->along ? 0 : axis == e->across ? 1 : 2;
    fprintf(e->out, "grid->first[%d] + ", axis);
    if (axis == 0 && in->end != 0)
        fprintf(e->out, "x + %s%d", trli_end_name(in), e->input_name[trli_end_input(in)]);
    else
        fputs(e->dialect->index[loop], e->out);
    fprintf(e->out, " + (%d)", in->offset[axis]);
}

/* The axis of lanes, if there are any, and all three indices. */
static void put_indices(trli_emitter *e, bool lanes, const trli_sample *in)
{
    if (lanes) fprintf(e->out, ", %d", e->along);
    for (int a = 0; a < 3; ++a) {
        fputs(", ", e->out);
        put_index(e, in, a);
    }
}

void trli_put_point(trli_emitter *e, bool lanes, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const trli_node *n = trli_sample_node(e, i);
    const char *kind = lanes ? "lanes" : "kernel";
    uint64_t seed;
    switch (n->op) {
    case TRLI_OP_COORDINATE:
        fprintf(e->out, "trl_%s_coordinate(grid, %d, %s, ", kind, n->index, n->bit ? "0.0" : "0.5");
        put_index(e, in, n->index);
        break;
    case TRLI_OP_SHARE:
        fprintf(e->out, "trl_%s_share(grid, %d, %s, ", kind, n->index, n->bit ? "0.0" : "0.5");
        trli_put_number(e, n->number);
        fputs(", ", e->out);
        put_index(e, in, n->index);
        break;
    case TRLI_OP_AT_SIDE:
        fprintf(e->out, n->index % 2 ? "trl_%s_at(grid->cells[%d], " : "trl_%s_at(0, ", kind, n->index / 2);
        put_index(e, in, n->index / 2);
        break;
    case TRLI_OP_POINT:
        fprintf(e->out, "trl_%s_point(grid", kind);
        put_indices(e, lanes, in);
        break;
    default:
        memcpy(&seed, &n->number, sizeof seed);
        fprintf(e->out, "trl_%s_random(0x%llxull, grid", kind, (unsigned long long)seed);
        put_indices(e, lanes, in);
    }
    fputs(")", e->out);
}

/* By row of the table of functions: whether it has a branch for arguments that few have. */
static bool has_branch(const trli_node *n)
{
#define TRLI_FREE(NAME, name, doc) false,
#define TRLI_BRANCH(NAME, name, doc) true,
    static const bool has[] = {TRL_FUNCTION_LIST(TRLI_FREE, TRLI_FREE, TRLI_BRANCH, TRLI_BRANCH)};
#undef TRLI_FREE
#undef TRLI_BRANCH
    return (n->op == TRLI_OP_FUNCTION1 || n->op == TRLI_OP_FUNCTION2) && has[n->index];
}

bool trli_is_function(const trli_node *n)
{
    return trli_op_calls(n->op);
}

static void put_function(trli_emitter *e, const trli_node *n)
{
    int count;
    const char *result = trli_op_find(n->op)->result;
    if (result)
        fprintf(e->out, "%.*s", (int)strcspn(result, "("), result);
    else if (n->op == TRLI_OP_LIMIT)
        fprintf(e->out, "trl_limiter_face_%s", trli_limiter_name(n->index));
    else
        fprintf(e->out, "trl_fn_%s", trl_functions(&count)[n->index].name);
}

void trli_put_definitions(trli_emitter *e)
{
    int calls = 0;
    for (int32_t i = 0; i < e->count; ++i) calls += trli_is_function(trli_sample_node(e, i));
    for (int32_t i = 0; i < e->walk->count; ++i) {
        const trli_node *n = trli_ir_node(e->ir, e->walk->list[i]);
        bool defined = !trli_is_function(n);
        for (int32_t k = 0; k < i && !defined; ++k) {
            const trli_node *before = trli_ir_node(e->ir, e->walk->list[k]);
            defined = before->op == n->op && (trli_op_find(n->op)->result || before->index == n->index);
        }
        if (defined) continue;
        fprintf(e->out, "%s(%s, ", has_branch(n) ? "TRL_KERNEL_FUNCTION_NEAR" : "TRL_KERNEL_FUNCTION",
                calls > CALLS_FEW ? "MANY" : "FEW");
        put_function(e, n);
        fprintf(e->out, ", %d)\n", trli_op_operands(n->op));
    }
}

void trli_put_form(trli_emitter *e, trli_loop_level loop, int32_t i, const char *form, trli_put_operand *put_operand)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
    while (*form) {
        const size_t letters = strspn(form, word), length = letters ? letters : 1;
        if (length == 1 && *form >= 'x' && *form <= 'z')
            put_operand(e, loop, e->sample[i].arg[*form - 'x']);
        else
            fwrite(form, 1, length, e->out);
        form += length;
    }
}

void trli_put_call(trli_emitter *e, trli_loop_level loop, int32_t i, const char *suffix, trli_put_operand *put_operand)
{
    static const char *const forms_of[] = {"(x)", "(x, y)", "(x, y, z)"};
    const trli_node *n = trli_sample_node(e, i);
    if (*suffix) fputs("TRL_OWN(", e->out);
    put_function(e, n);
    if (*suffix) fprintf(e->out, "%s)", suffix);
    trli_put_form(e, loop, i, forms_of[trli_op_operands(n->op) - 1], put_operand);
}

void trli_put_operation(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_node *n = trli_sample_node(e, i);
    if (trli_op_operands(n->op) == 0)
        trli_put_point(e, false, i);
    else if (trli_is_function(n))
        trli_put_call(e, loop, i, e->dialect->suffix, e->dialect->put_use);
    else
        trli_put_form(e, loop, i, trli_op_find(n->op)->result, e->dialect->put_use);
}
