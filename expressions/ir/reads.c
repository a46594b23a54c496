/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */

#include "memory_impl.h"
#include "reads_impl.h"

void trli_reads_free(trli_reads *reads)
{
    trli_free(reads->field);
    trli_free(reads->footprint);
    trli_free(reads->scalar);
    *reads = (trli_reads){0};
}

/* Offsets are small integers. */
static trl_err check_reach(const trli_ir *ir, int nroots, const trli_ir_value *roots)
{
    const int most = 100;
    for (int r = 0; r < nroots; ++r)
        for (int a = 0; a < 3; ++a)
            if (trli_ir_node(ir, roots[r])->reach[a] > most)
                return trl_fail(ir->ctx, TRL_ERR_INPUT, NULL,
                                "a formula reads more than %d points away along %c: name its parts", most, "xyz"[a]);
    return TRL_OK;
}

/* A value is read on all points of a hull. Shifts move the hull; they are not values of their own. number: of the
 * fields, by place. */
static void add_read(const trli_ir *ir, const trli_walk *walk, const int *number, trli_ir_value v, trl_offsets hull,
                     trli_reads *reads)
{
    const trli_node *n = trli_ir_node(ir, v);
    for (; n->op == TRLI_OP_SHIFT; v = n->arg[0], n = trli_ir_node(ir, v))
        for (int a = 0; a < 3; ++a) {
            hull.lo[a] = (int8_t)(hull.lo[a] + n->shift[a]);
            hull.hi[a] = (int8_t)(hull.hi[a] + n->shift[a]);
        }
    if (n->op == TRLI_OP_FIELD) trl_footprint_add(&reads->footprint[number[walk->place[v]]], &hull);
}

static void collect(const trli_ir *ir, const trli_walk *walk, int nroots, const trli_ir_value *roots,
                    const trl_offsets *hull, int *number, trli_reads *reads)
{
    static const trl_offsets point = {{0, 0, 0}, {0, 0, 0}};
    for (int32_t i = 0; i < walk->count; ++i) {
        const trli_node *n = trli_ir_node(ir, walk->list[i]);
        if (n->op == TRLI_OP_FIELD) reads->field[number[i] = reads->nfields++] = n->index;
        if (n->op == TRLI_OP_SCALAR) reads->scalar[reads->nscalars++] = n->index;
        for (int o = 0; n->op != TRLI_OP_SHIFT && o < trli_op_operands(n->op); ++o)
            add_read(ir, walk, number, n->arg[o], hull[i], reads);
    }
    for (int r = 0; r < nroots; ++r) add_read(ir, walk, number, roots[r], point, reads);
}

static void count_leaves(const trli_ir *ir, const trli_walk *walk, int *fields, int *scalars)
{
    *fields = *scalars = 0;
    for (int32_t i = 0; i < walk->count; ++i) {
        const int op = trli_ir_node(ir, walk->list[i])->op;
        *fields += op == TRLI_OP_FIELD;
        *scalars += op == TRLI_OP_SCALAR;
    }
}

/* Of the roots that were walked. */
static trl_err find(const trli_ir *ir, const trli_walk *walk, int nroots, const trli_ir_value *roots, trli_reads *reads)
{
    trl_offsets *hull = NULL;
    int *number = NULL, fields, scalars;
    trl_err err = TRL_OK;
    count_leaves(ir, walk, &fields, &scalars);
    hull = trli_new(ir->ctx, (size_t)walk->count, sizeof *hull);
    number = trli_new(ir->ctx, (size_t)walk->count, sizeof *number);
    reads->field = trli_new(ir->ctx, (size_t)fields + 1, sizeof *reads->field);
    reads->footprint = trli_new(ir->ctx, (size_t)fields + 1, sizeof *reads->footprint);
    reads->scalar = trli_new(ir->ctx, (size_t)scalars + 1, sizeof *reads->scalar);
    if (!hull || !number || !reads->field || !reads->footprint || !reads->scalar) {
        err = trli_no_memory(ir->ctx, NULL, "for what %d values read", (int)walk->count);
        goto done;
    }
    trli_ir_hulls(ir, walk, nroots, roots, hull);
    collect(ir, walk, nroots, roots, hull, number, reads);
done:
    trli_free(hull);
    trli_free(number);
    if (err != TRL_OK) trli_reads_free(reads);
    return err;
}

trl_err trli_reads_find(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots, trli_reads *reads)
{
    trl_err err = TRL_OK;
    *reads = (trli_reads){0};
    TRL_TRY(check_reach(ir, nroots, roots));
    TRL_TRY(trli_ir_walk(ir, walk, nroots, roots));
    err = find(ir, walk, nroots, roots, reads);
done:
    return err;
}

trl_err trli_reads_find_in_depth(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots,
                                 trli_reads *reads)
{
    trl_err err = TRL_OK;
    *reads = (trli_reads){0};
    TRL_TRY(check_reach(ir, nroots, roots));
    TRL_TRY(trli_ir_walk_in_depth(ir, walk, nroots, roots));
    err = find(ir, walk, nroots, roots, reads);
done:
    return err;
}
