/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Samples: a node of the walk at an offset from the point that a kernel computes, once for each. */
#include <string.h>

#include "emit_plan_impl.h"
#include "memory_impl.h"

trl_err trli_emit_sample(trli_emitter *e, trli_ir_value v, const int8_t offset[3], int16_t end, int32_t *found)
{
    const trli_node *n = trli_ir_node(e->ir, v);
    trli_sample in = {.node = e->walk->place[v],
                      .arg = {-1, -1, -1},
                      .end = n->varies & 1 ? end : 0,
                      .pointer = -1,
                      .beyond = -1,
                      .ahead = -1};
    for (int a = 0; a < 3; ++a) in.offset[a] = n->varies >> a & 1 ? offset[a] : 0;
    for (int32_t i = e->first[in.node]; i >= 0; i = e->sample[i].next) {
        *found = i;
        if (memcmp(e->sample[i].offset, in.offset, sizeof in.offset) == 0 && e->sample[i].end == in.end) return TRL_OK;
    }
    if (!trli_make_room(e->ir->ctx, &e->sample, e->count, 1, &e->capacity, sizeof *e->sample))
        return trli_no_memory(e->ir->ctx, NULL, "to emit %d values", e->count + 1);
    in.next = e->first[in.node];
    e->first[in.node] = *found = e->count;
    e->sample[e->count++] = in;
    return TRL_OK;
}

/* The value behind shifts, and its offset. */
trli_ir_value trli_emit_see_through(const trli_emitter *e, trli_ir_value v, int8_t offset[3])
{
    for (const trli_node *n = trli_ir_node(e->ir, v); n->op == TRLI_OP_SHIFT; n = trli_ir_node(e->ir, v)) {
        for (int a = 0; a < 3; ++a) offset[a] = (int8_t)(offset[a] + n->shift[a]);
        v = n->arg[0];
    }
    return v;
}

static trl_err find_operands(trli_emitter *e, int32_t i)
{
    const trli_node *n = trli_sample_node(e, i);
    trl_err err = TRL_OK;
    for (int o = 0; o < trli_op_operands(n->op); ++o) {
        int8_t offset[3];
        int32_t arg;
        memcpy(offset, e->sample[i].offset, sizeof offset);
        trli_ir_value v = trli_emit_see_through(e, n->arg[o], offset);
        TRL_TRY(trli_emit_sample(e, v, offset, e->sample[i].end, &arg));
        e->sample[i].arg[o] = arg;
    }
done:
    return err;
}

/* Users come after their operands in the walk, so descending it meets every user of a node before the node. */
trl_err trli_emit_operands(trli_emitter *e)
{
    trl_err err = TRL_OK;
    for (int32_t at = e->walk->count - 1; at >= 0 && e->count <= TRLI_SAMPLES_MOST; --at)
        for (int32_t i = e->first[at]; i >= 0; i = e->sample[i].next)
            if (e->sample[i].arg[0] < 0) TRL_TRY(find_operands(e, i));
done:
    return err;
}
