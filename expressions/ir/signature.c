/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The form of values, as a list of words: each node with its operands' places in a walk in depth. */
#include <string.h>

#include "memory_impl.h"
#include "signature_impl.h"

trl_err trli_signature_add(const trli_ir *ir, trli_signature *s, int32_t word)
{
    if (!trli_make_room(ir->ctx, &s->word, s->nwords, 1, &s->words_capacity, sizeof *s->word))
        return trli_no_memory(ir->ctx, NULL, "for the signature of %d values", (int)s->nwords);
    s->word[s->nwords++] = word;
    s->hash = (s->hash ^ (uint32_t)word) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing (Knuth) */
    s->hash ^= s->hash >> 29;
    return TRL_OK;
}

static trl_err add_number(const trli_ir *ir, trli_signature *s, trli_ir_value v)
{
    if (!trli_make_room(ir->ctx, &s->number, s->nnumbers, 1, &s->numbers_capacity, sizeof *s->number))
        return trli_no_memory(ir->ctx, NULL, "for the signature of %d values", (int)s->nwords);
    s->number[s->nnumbers++] = v;
    return TRL_OK;
}

/* What a node is beside its operation and its operands. */
static trl_err add_kind(const trli_ir *ir, const trli_reads *reads, const trli_node *n, trli_signature *s)
{
    int32_t bits[2], field = 0;
    trl_err err = TRL_OK;
    switch (n->op) {
    case TRLI_OP_CONSTANT:
        break;
    case TRLI_OP_FIELD:
        while (field < reads->nfields && reads->field[field] != n->index) ++field;
        TRL_TRY(trli_signature_add(ir, s, field));
        break;
    case TRLI_OP_SHIFT:
        for (int a = 0; a < 3; ++a) TRL_TRY(trli_signature_add(ir, s, n->shift[a]));
        break;
    default: /* of most a number is 0 */
        memcpy(bits, &n->number, sizeof bits);
        for (int i = 0; i < 2; ++i) TRL_TRY(trli_signature_add(ir, s, bits[i]));
        TRL_TRY(trli_signature_add(ir, s, n->index));
        TRL_TRY(trli_signature_add(ir, s, n->bit));
    }
done:
    return err;
}

trl_err trli_signature_find(const trli_ir *ir, trli_walk *walk, const trli_reads *reads, int nroots,
                            const trli_ir_value *roots, trli_signature *s)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_ir_walk_in_depth(ir, walk, nroots, roots));
    for (int32_t i = 0; i < walk->count; ++i) {
        const trli_node *n = trli_ir_node(ir, walk->list[i]);
        TRL_TRY(trli_signature_add(ir, s, n->op | n->varies << 8));
        TRL_TRY(add_kind(ir, reads, n, s));
        for (int o = 0; o < trli_op_operands(n->op); ++o) TRL_TRY(trli_signature_add(ir, s, walk->place[n->arg[o]]));
        if (n->op == TRLI_OP_CONSTANT) TRL_TRY(add_number(ir, s, walk->list[i]));
    }
    for (int r = 0; r < nroots; ++r) TRL_TRY(trli_signature_add(ir, s, walk->place[roots[r]]));
done:
    return err;
}

bool trli_signatures_equal(const trli_signature *a, const trli_signature *b)
{
    return a->hash == b->hash && a->nwords == b->nwords &&
           memcmp(a->word, b->word, (size_t)a->nwords * sizeof *a->word) == 0;
}

void trli_signature_free(trli_signature *s)
{
    trli_free(s->word);
    trli_free(s->number);
    *s = (trli_signature){0};
}
