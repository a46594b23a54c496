/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of the interpreter: from a set of roots to a list of instructions with registers. */
#include <string.h>

#include "kernel_impl.h"
#include "memory_impl.h"

const trl_lidx *trli_kernel_tile(const trli_kernel *kernel)
{
    return kernel->tile;
}

void trli_kernel_destroy(trli_kernel **kernel)
{
    trli_kernel *k = *kernel;
    *kernel = NULL;
    if (!k) return;
    trli_free(k->instruction);
    trli_free(k->constant);
    trli_free(k->reach);
    trli_free(k);
}

/* What the passes of the translation share. Arrays are indexed by position in the walk. */
typedef struct translation {
    const trli_ir *ir;
    const trli_walk *walk;
    trli_kernel *kernel;
    trl_offsets *hull;
    int32_t *uses;        /* readers within the walk, and roots */
    int32_t *last;        /* last instruction that reads the node's register */
    int32_t *made;        /* the node's instruction, or -1 */
    bool *absorbed;       /* that is part of another instruction */
    trli_argument *where; /* where the node's value is found */
    int32_t *output;      /* root number the node is written to, or -1 */
} translation;

static const trli_node *node_at(const translation *t, int32_t i)
{
    return trli_ir_node(t->ir, t->walk->list[i]);
}

static int32_t place_of(const translation *t, trli_ir_value v)
{
    return t->walk->place[v];
}

static void count_uses(translation *t, int nroots, const trli_ir_value *roots)
{
    for (int32_t i = 0; i < t->walk->count; ++i) {
        const trli_node *n = node_at(t, i);
        for (int o = 0; o < trli_op_operands(n->op); ++o) ++t->uses[place_of(t, n->arg[o])];
    }
    for (int r = 0; r < nroots; ++r) ++t->uses[place_of(t, roots[r])];
}

/* Whether node v's instruction is an `op` that only the node being made reads, at just the points of that node: over
 * more axes, the work would be repeated. */
static bool may_absorb(const translation *t, trli_ir_value v, int op, unsigned varies)
{
    int32_t i = place_of(t, v);
    return t->made[i] >= 0 && t->kernel->instruction[t->made[i]].op == op && t->uses[i] == 1 &&
           trli_ir_node(t->ir, v)->varies == varies;
}

/* Whether the operands are what the loop of a scaled chain takes. */
static bool scale_fits(const translation *t, const trli_instruction *in)
{
    const unsigned scales = trli_row_scales(in->op);
    bool fits = !scales || in->varies & 1;
    for (int o = 0; scales && o < in->operands; ++o) {
        const trli_node *n = node_at(t, in->source[o]);
        fits &= scales >> o & 1 ? n->op == TRLI_OP_CONSTANT || n->op == TRLI_OP_SCALAR : n->varies & 1;
    }
    return fits;
}

/* Operand o of an instruction is operand `of` of the one that made value v, at the points of v. */
static void read_through(const translation *t, trli_instruction *in, int o, trli_ir_value v, int of)
{
    const trli_node *n = trli_ir_node(t->ir, v);
    const trli_ir_value owner = n->op == TRLI_OP_SHIFT ? n->arg[0] : v;
    const trli_instruction *inner = &t->kernel->instruction[t->made[place_of(t, owner)]];
    in->source[o] = inner->source[of];
    for (int a = 0; a < 3; ++a)
        in->farther[o][a] = (int8_t)(inner->farther[of][a] + (n->op == TRLI_OP_SHIFT ? n->shift[a] : 0));
}

/* The place of the node that has the value, here or at other points, if its instruction is a gradient or a flux; or -1.
 */
static int32_t flux_of(const translation *t, trli_ir_value v, unsigned varies)
{
    const trli_node *n = trli_ir_node(t->ir, v);
    const int32_t i = place_of(t, n->op == TRLI_OP_SHIFT ? n->arg[0] : v);
    if (t->made[i] < 0 || node_at(t, i)->varies != varies) return -1;
    const int op = t->kernel->instruction[t->made[i]].op;
    return op == TRLI_CHAIN_SUB_MUL || op == TRLI_SCALED_FLUX ? i : -1;
}

/* The difference of one flux at two points, which nothing else reads, takes it in twice. */
static void take_fluxes(translation *t, const trli_node *n, trli_instruction *in)
{
    trli_instruction longer = *in;
    const int32_t flux = in->op == TRLI_OP_SUB ? flux_of(t, n->arg[0], n->varies) : -1;
    if (flux < 0 || flux_of(t, n->arg[1], n->varies) != flux || t->uses[flux] != 2) return;
    const int scales = t->kernel->instruction[t->made[flux]].operands - 2;
    for (int side = 0; side < 2; ++side) {
        const int32_t i = place_of(t, n->arg[side]);
        if (i != flux && t->uses[i] != 1) return;
        for (int o = 0; o < 2; ++o) read_through(t, &longer, 2 * side + o, n->arg[side], o);
    }
    for (int o = 0; o < scales; ++o) read_through(t, &longer, 4 + o, n->arg[0], 2 + o);
    longer.op = scales == 1 ? TRLI_SCALED_GRADIENTS : TRLI_SCALED_FLUXES;
    longer.operands = 4 + scales;
    if (!scale_fits(t, &longer)) return;
    *in = longer;
    t->absorbed[flux] = true;
}

/* The instruction `in` of node n becomes a chain with that of one of n's operands, if there is such a chain. */
static void lengthen(translation *t, const trli_node *n, trli_instruction *in)
{
    static const struct {
        trli_op outer;
        int inner, position, chain;
    } chains[] = {
#define MERGE(outer, inner, position, chain) {TRLI_OP_##outer, TRLI_##inner, position, TRLI_##chain},
        TRLI_MERGE_LIST(MERGE)
#undef MERGE
    };
    for (size_t c = 0; c < sizeof chains / sizeof *chains; ++c) {
        if (n->op != chains[c].outer || !may_absorb(t, n->arg[chains[c].position], chains[c].inner, n->varies))
            continue;
        int32_t absorbed = place_of(t, n->arg[chains[c].position]);
        const trli_instruction *inner = &t->kernel->instruction[t->made[absorbed]];
        trli_instruction longer = *in;
        longer.op = chains[c].chain;
        longer.operands = inner->operands + 1;
        memcpy(longer.source, inner->source, sizeof longer.source);
        memcpy(longer.farther, inner->farther, sizeof longer.farther);
        longer.source[inner->operands] = place_of(t, n->arg[1 - chains[c].position]);
        if (!scale_fits(t, &longer)) continue;
        *in = longer;
        t->absorbed[absorbed] = true;
        return;
    }
}

/* Whether a node needs no instruction: it is a view of memory. */
static bool is_view(const trli_node *n)
{
    return n->op == TRLI_OP_CONSTANT || n->op == TRLI_OP_SCALAR || n->op == TRLI_OP_FIELD || n->op == TRLI_OP_SHIFT;
}

static void make_view(translation *t, int32_t i)
{
    const trli_node *n = node_at(t, i);
    trli_kernel *k = t->kernel;
    trli_argument *w = &t->where[i];
    switch (n->op) {
    case TRLI_OP_CONSTANT:
        *w = (trli_argument){.kind = TRLI_ARGUMENT_CONSTANT, .index = k->nconstants};
        k->constant[k->nconstants++] = n->number;
        return;
    case TRLI_OP_SCALAR:
        *w = (trli_argument){.kind = TRLI_ARGUMENT_SCALAR, .index = n->index};
        return;
    case TRLI_OP_FIELD:
        *w = (trli_argument){.kind = TRLI_ARGUMENT_FIELD, .index = k->nfields++};
        return;
    default: /* SHIFT */
        *w = t->where[place_of(t, n->arg[0])];
        for (int a = 0; a < 3; ++a) w->shift[a] = (int8_t)(w->shift[a] + n->shift[a]);
        return;
    }
}

static void add_instruction(translation *t, int32_t i)
{
    const trli_node *n = node_at(t, i);
    trli_instruction *in = &t->kernel->instruction[t->kernel->ninstructions];
    *in = (trli_instruction){.op = n->op,
                             .operands = trli_op_operands(n->op),
                             .node = i,
                             .varies = n->varies,
                             .index = n->index,
                             .bit = n->bit,
                             .number = n->number,
                             .hull = t->hull[i],
                             .output = t->output[i]};
    for (int o = 0; o < in->operands; ++o) in->source[o] = place_of(t, n->arg[o]);
    lengthen(t, n, in);
    take_fluxes(t, n, in);
    t->made[i] = t->kernel->ninstructions++;
}

/* Drop absorbed instructions, keep order. */
static void drop_absorbed(translation *t)
{
    trli_kernel *k = t->kernel;
    int kept = 0;
    for (int i = 0; i < k->ninstructions; ++i)
        if (!t->absorbed[k->instruction[i].node]) k->instruction[kept++] = k->instruction[i];
    k->ninstructions = kept;
}

/* The node whose register or memory a place refers to: shifts see through to their operand. */
static int32_t owner_of(const translation *t, int32_t i)
{
    while (node_at(t, i)->op == TRLI_OP_SHIFT) i = place_of(t, node_at(t, i)->arg[0]);
    return i;
}

/* Where an instruction's operands are found. */
static void find_operands(const translation *t, trli_instruction *in)
{
    for (int o = 0; o < in->operands; ++o) {
        int32_t source = in->source[o], owner = owner_of(t, source);
        in->operand[o] = t->where[owner];
        for (int a = 0; a < 3; ++a) in->operand[o].shift[a] = (int8_t)(in->operand[o].shift[a] + in->farther[o][a]);
        for (int32_t s = source; s != owner; s = place_of(t, node_at(t, s)->arg[0]))
            for (int a = 0; a < 3; ++a)
                in->operand[o].shift[a] = (int8_t)(in->operand[o].shift[a] + node_at(t, s)->shift[a]);
    }
}

static bool same_points(const trli_instruction *in, const trli_argument *o)
{
    static const int8_t none[3] = {0, 0, 0};
    return o->varies == in->varies && memcmp(&o->hull, &in->hull, sizeof o->hull) == 0 &&
           memcmp(o->shift, none, sizeof none) == 0;
}

/* A register whose last reader is instruction i, point by point, so that the result may replace the operand; or -1. */
static int32_t register_in_place(const translation *t, int i)
{
    const trli_instruction *in = &t->kernel->instruction[i];
    for (int o = 0; o < in->operands; ++o) {
        const trli_argument *own = &in->operand[o];
        bool fits = own->kind == TRLI_ARGUMENT_REGISTER && t->last[owner_of(t, in->source[o])] == i;
        for (int other = 0; fits && other < in->operands; ++other)
            if (in->operand[other].kind == own->kind && in->operand[other].index == own->index)
                fits = same_points(in, &in->operand[other]);
        if (fits) return own->index;
    }
    return -1;
}

static trl_err deal_registers(translation *t, int32_t *free_list)
{
    trli_kernel *k = t->kernel;
    int nfree = 0;
    for (int i = 0; i < t->walk->count; ++i) t->last[i] = -1;
    for (int i = 0; i < k->ninstructions; ++i)
        for (int o = 0; o < k->instruction[i].operands; ++o) t->last[owner_of(t, k->instruction[i].source[o])] = i;
    for (int i = 0; i < k->ninstructions; ++i) {
        trli_instruction *in = &k->instruction[i];
        find_operands(t, in);
        for (int o = 0; o < in->operands; ++o)
            if (in->operand[o].kind == TRLI_ARGUMENT_NONE)
                return trl_fail(t->ir->ctx, TRL_ERR_BUG, NULL, "a kernel reads a value that it does not compute");
        int32_t taken = in->output < 0 ? register_in_place(t, i) : -1;
        if (in->output >= 0)
            in->target = (trli_argument){.kind = TRLI_ARGUMENT_OUTPUT, .index = in->output};
        else
            in->target = (trli_argument){.kind = TRLI_ARGUMENT_REGISTER,
                                         .index = taken >= 0 ? taken
                                                  : nfree    ? free_list[--nfree]
                                                             : k->nregisters++,
                                         .varies = in->varies,
                                         .hull = in->hull};
        t->where[in->node] = in->target;
        for (int o = 0; o < in->operands; ++o) {
            int32_t owner = owner_of(t, in->source[o]);
            if (t->where[owner].kind != TRLI_ARGUMENT_REGISTER || t->last[owner] != i) continue;
            if (t->where[owner].index != taken) free_list[nfree++] = t->where[owner].index;
            t->last[owner] = -1; /* the same operand twice is freed once */
        }
    }
    return TRL_OK;
}

static bool reads_roots(const trli_kernel *k)
{
    for (int i = 0; i < k->ninstructions; ++i)
        for (int o = 0; o < k->instruction[i].operands; ++o)
            if (k->instruction[i].operand[o].kind == TRLI_ARGUMENT_OUTPUT) return true;
    return false;
}

/* A root is written by its own instruction when it has one at exactly the tile; every other root by a copy. */
static void choose_outputs(translation *t, int nroots, const trli_ir_value *roots, bool *copied)
{
    for (int32_t i = 0; i < t->walk->count; ++i) t->output[i] = -1;
    for (int r = 0; r < nroots; ++r) {
        int32_t i = place_of(t, roots[r]);
        const trli_node *n = node_at(t, i);
        uint8_t all = (uint8_t)((1 << t->ir->grid->dim) - 1);
        bool point = true;
        for (int a = 0; a < 3; ++a) point &= t->hull[i].lo[a] == 0 && t->hull[i].hi[a] == 0;
        copied[r] =
            trli_op_operands(n->op) == 0 || n->op == TRLI_OP_SHIFT || n->varies != all || !point || t->output[i] >= 0;
        if (!copied[r]) t->output[i] = r;
    }
}

static void add_copies(translation *t, int nroots, const trli_ir_value *roots, const bool *copied)
{
    for (int r = 0; r < nroots; ++r) {
        if (!copied[r]) continue;
        t->kernel->instruction[t->kernel->ninstructions++] = (trli_instruction){
            .op = TRLI_CHAIN_COPY,
            .node = t->walk->count + r,
            .varies = (uint8_t)((1 << t->ir->grid->dim) - 1),
            .output = r,
            .operands = 1,
            .source = {place_of(t, roots[r])},
        };
    }
}

static trl_err allocate(translation *t, int nroots, int nfields)
{
    size_t n = (size_t)t->walk->count + (size_t)nroots;
    trli_kernel *k = t->kernel;
    size_t made = (size_t)nroots, constants = 0; /* at most */
    for (int32_t i = 0; i < t->walk->count; ++i) {
        made += !is_view(node_at(t, i));
        constants += node_at(t, i)->op == TRLI_OP_CONSTANT;
    }
    t->hull = trli_new(t->ir->ctx, n, sizeof *t->hull);
    t->uses = trli_new(t->ir->ctx, n, sizeof *t->uses);
    t->last = trli_new(t->ir->ctx, n, sizeof *t->last);
    t->made = trli_new(t->ir->ctx, n, sizeof *t->made);
    t->absorbed = trli_new(t->ir->ctx, n, sizeof *t->absorbed);
    t->where = trli_new(t->ir->ctx, n, sizeof *t->where);
    t->output = trli_new(t->ir->ctx, n, sizeof *t->output);
    k->instruction = trli_new(t->ir->ctx, made, sizeof *k->instruction);
    k->constant = trli_new(t->ir->ctx, constants, sizeof *k->constant);
    k->reach = trli_new(t->ir->ctx, (size_t)nfields, sizeof *k->reach);
    bool ok = t->hull && t->uses && t->last && t->made && t->absorbed && t->where && t->output && k->instruction &&
              k->constant && k->reach;
    return ok ? TRL_OK : trli_no_memory(t->ir->ctx, NULL, "to compile a kernel of %zu values", n);
}

static trl_err translate(translation *t, int nroots, const trli_ir_value *roots, bool *copied)
{
    trli_ir_hulls(t->ir, t->walk, nroots, roots, t->hull);
    count_uses(t, nroots, roots);
    choose_outputs(t, nroots, roots, copied);
    for (int32_t i = 0; i < t->walk->count; ++i)
        if (is_view(node_at(t, i))) {
            make_view(t, i);
            t->made[i] = -1;
        } else {
            add_instruction(t, i);
        }
    drop_absorbed(t);
    add_copies(t, nroots, roots, copied);
    trl_err err = deal_registers(t, t->uses);
    t->kernel->reads_roots = reads_roots(t->kernel);
    return err;
}

trl_err trli_kernel_create(const trli_ir *ir, trli_walk *walk, const trli_reads *reads, int nroots,
                           const trli_ir_value *roots, trli_kernel **kernel)
{
    trl_err err = TRL_OK;
    bool *copied = NULL;
    translation t = {.ir = ir, .walk = walk};
    t.kernel = trli_new(ir->ctx, 1, sizeof *t.kernel);
    copied = trli_new(ir->ctx, (size_t)nroots, sizeof *copied);
    if (!t.kernel || !copied) {
        err = trli_no_memory(ir->ctx, NULL, "for a kernel");
        goto done;
    }
    t.kernel->dim = ir->grid->dim;
    t.kernel->nroots = nroots;
    TRL_TRY(trli_ir_walk(ir, walk, nroots, roots));
    TRL_TRY(allocate(&t, nroots, reads->nfields));
    for (int i = 0; i < reads->nfields; ++i) t.kernel->reach[i] = trl_footprint_hull(&reads->footprint[i]);
    TRL_TRY(translate(&t, nroots, roots, copied));
    trli_kernel_choose_tile(t.kernel);
    *kernel = t.kernel;
    t.kernel = NULL;
done:
    trli_free(copied);
    trli_free(t.hull);
    trli_free(t.uses);
    trli_free(t.last);
    trli_free(t.made);
    trli_free(t.absorbed);
    trli_free(t.where);
    trli_free(t.output);
    trli_kernel_destroy(&t.kernel);
    return err;
}
