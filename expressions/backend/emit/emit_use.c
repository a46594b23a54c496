/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What loops read: constants, fields, ghosts beyond ends of rows, and the lines ahead. */
#include <stdlib.h>
#include <string.h>

#include "emit_writer_impl.h"

int trli_given_as(const trli_emitter *e, const double *number)
{
    int i = 0;
    while (i < e->nnumbers && &trli_ir_node(e->ir, e->given_number[i])->number != number) ++i;
    return i < e->nnumbers ? i : -1;
}

void trli_put_number_of(trli_emitter *e, const double *number)
{
    const int given = trli_given_as(e, number);
    if (given >= 0)
        fprintf(e->out, "call->number[%d]", given);
    else
        trli_put_number(e, *number);
}

void trli_put_constant(trli_emitter *e, const double *number)
{
    trli_group_function *const f = e->at_hand;
    const bool named = f && (e->ngroups > 1 || trli_given_as(e, number) >= 0);
    int32_t c = 0;
    while (named && c < f->nconstants && f->constant[c] != number) ++c;
    if (!named || c == TRLI_CONSTANTS_MOST) {
        trli_put_number_of(e, number);
        return;
    }
    if (c == f->nconstants) f->constant[f->nconstants++] = number;
    fprintf(e->out, "number%d", c);
}

/* How a sample is read inside of a loop over the points of a row, or outside of those. */
void trli_put_use(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    const trli_node *n = trli_sample_node(e, i);
    if (n->op == TRLI_OP_CONSTANT)
        trli_put_constant(e, &n->number);
    else if (n->op == TRLI_OP_SCALAR)
        fprintf(e->out, "s%d", n->index);
    else if (n->op == TRLI_OP_FIELD && e->along != 0)
        fprintf(e->out, "p%d[(i + (%d)) * in%d_y]", e->pointer[in->pointer].name, in->offset[e->along],
                e->input_name[e->pointer[in->pointer].input]);
    else if (n->op == TRLI_OP_FIELD && in->end != 0)
        fprintf(e->out, "p%d[%s%d + (%d)]", e->pointer[in->pointer].name, trli_end_name(in),
                e->input_name[trli_end_input(in)], in->offset[0]);
    else if (n->op == TRLI_OP_FIELD && in->beyond >= 0)
        trli_put_beyond(e, false, in);
    else if (n->op == TRLI_OP_FIELD && in->offset[0] != 0)
        fprintf(e->out, "p%d[i %c %d]", e->pointer[in->pointer].name, in->offset[0] < 0 ? '-' : '+',
                abs(in->offset[0]));
    else if (n->op == TRLI_OP_FIELD)
        fprintf(e->out, "p%d[i]", e->pointer[in->pointer].name);
    else if (in->buffered && in->place != loop)
        fprintf(e->out, "b%d[i]", e->number[i]);
    else
        fprintf(e->out, "v%d", e->number[i]);
}

void trli_put_beyond(trli_emitter *e, bool lanes, const trli_sample *in)
{
    const trli_ghosts *g = &e->ghosts[in->beyond];
    const char *side = g->side ? "hi" : "lo";
    fprintf(e->out, "trl_kernel_%s_%s(p%d, i + (%d), %s%d, g%d", lanes ? "load" : "at", side,
            e->pointer[in->pointer].name, in->offset[0], side, e->input_name[g->input], g->name);
    if (lanes) fprintf(e->out, ", %d", g->depth);
    fputs(")", e->out);
}

void trli_mark_computed(trli_emitter *e, trli_loop_level loop, int nroots, const int32_t *root)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = e->sample[i].buffered && e->sample[i].place == loop;
    for (int r = 0; r < nroots; ++r) e->wanted[root[r]] = true;
    for (int32_t o = e->count - 1; o >= 0; --o) {
        int32_t i = e->order[o];
        const trli_sample *in = &e->sample[i];
        bool given = !trli_is_row(in->place) && in->place != TRLI_IN_POINT;
        given |= in->buffered && in->place != loop;
        given |= trli_is_leaf(trli_sample_node(e, i));
        if (given) e->wanted[i] = false;
        for (int a = 0; e->wanted[i] && a < 3 && in->arg[a] >= 0; ++a) e->wanted[in->arg[a]] = true;
    }
}

bool trli_wants_row(const trli_emitter *e, int32_t pointer)
{
    for (int32_t i = 0; i < e->count; ++i)
        if (e->wanted[i] && e->sample[i].pointer == pointer) return true;
    return false;
}

bool trli_reads_first(const trli_emitter *e, int32_t group, int32_t input)
{
    return e->along == 0 && e->reader[input] >= 0 && (group == e->ngroups || group == e->reader[input]);
}

bool trli_reads_input(const trli_emitter *e, int32_t input)
{
    for (int32_t p = 0; p < e->npointers; ++p)
        if (e->pointer[p].input == input && trli_wants_row(e, p)) return true;
    return false;
}

void trli_put_fetches(trli_emitter *e, int32_t group, int depth)
{
    const int n = e->reads->nfields;
    trli_put_indent(e, depth);
    fputs("if (ahead) {\n", e->out);
    for (int i = 0; i < n; ++i) {
        if (!trli_reads_first(e, group, i)) continue;
        for (int plane = 0; plane < (group < e->ngroups ? 1 : 2); ++plane) {
            trli_put_indent(e, depth + 1);
            fprintf(e->out, plane ? "trl_kernel_fetch(a%d + i + in%d_z);\n" : "trl_kernel_fetch(a%d + i);\n",
                    e->input_name[i], e->input_name[i]);
        }
    }
    trli_put_indent(e, depth);
    fputs("}\n", e->out);
}
