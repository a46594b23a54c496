/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Forward mode with sparse directions: each value has a list of derivatives, one for each variable and offset that it
 * reads, ordered by these. The rules for one direction are those of derivative.c. */
#include <string.h>

#include <trl_limiter_body.h>

#include "instance_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"
#include "value_map_impl.h"

typedef struct span {
    int begin, count;
} span;

struct trli_partials {
    trli_instance *in;
    trli_ir *ir;
    int own, budget;
    bool coarse, exhausted;
    const trli_opaque *plugin;
    trli_walk walk;
    int nvariable_of;
    int *variable_of;     /* by field: the variable that it holds, or -1 */
    trli_value_map known; /* values with a list */
    span *of;             /* [known.count] */
    int32_t of_capacity;
    trli_partial_derivative *entry;
    int nentries, capacity;
    trli_ir_value *stack;
    int32_t nstack, stack_capacity;
};

static trl_err no_memory(const trli_partials *p)
{
    return trli_no_memory(p->ir->ctx, NULL, "for the derivatives that bound dt");
}

trl_err trli_partials_create(trli_instance *in, trli_partials **partials)
{
    trli_model *model = in->model;
    trli_partials *p = *partials = trli_new(model->ctx, 1, sizeof *p);
    if (!p) return trli_no_memory(model->ctx, NULL, "for derivatives");
    *p = (trli_partials){.in = in, .ir = &model->ir, .own = -1, .nvariable_of = model->nfields};
    p->variable_of = trli_new(p->ir->ctx, (size_t)model->nfields + 1, sizeof *p->variable_of);
    if (!p->variable_of) return no_memory(p);
    for (int f = 0; f < model->nfields; ++f) p->variable_of[f] = -1;
    for (int v = 0; v < model->nvariables; ++v)
        if (in->variable[v] >= 0) p->variable_of[in->variable[v]] = v;
    return TRL_OK;
}

void trli_partials_destroy(trli_partials **partials)
{
    trli_partials *p = *partials;
    *partials = NULL;
    if (!p) return;
    trli_walk_free(&p->walk);
    trli_free(p->variable_of);
    trli_value_map_free(&p->known);
    trli_free(p->of);
    trli_free(p->entry);
    trli_free(p->stack);
    trli_free(p);
}

const trli_opaque *trli_partials_plugin(const trli_partials *partials)
{
    return partials->plugin;
}

static void forget(trli_partials *p)
{
    trli_value_map_clear(&p->known);
    p->nentries = 0;
    p->plugin = NULL;
    p->exhausted = false;
}

/* Of a value with a list. */
static span list_of(const trli_partials *p, trli_ir_value v)
{
    return p->of[trli_value_map_find(&p->known, v)];
}

/* The list of a value if it is known; else it is found next. */
static trl_err need(trli_partials *p, trli_ir_value v, bool *ready)
{
    if (trli_value_map_find(&p->known, v) >= 0) return TRL_OK;
    *ready = false;
    if (!trli_make_room(p->ir->ctx, &p->stack, p->nstack, 1, &p->stack_capacity, sizeof *p->stack)) return no_memory(p);
    p->stack[p->nstack++] = v;
    return TRL_OK;
}

static trl_err append(trli_partials *p, const trli_partial_derivative *entry)
{
    if (p->nentries >= p->budget) {
        p->exhausted = true;
        return TRL_OK;
    }
    if (!trli_make_room(p->ir->ctx, &p->entry, p->nentries, 1, &p->capacity, sizeof *p->entry)) return no_memory(p);
    p->entry[p->nentries++] = *entry;
    return TRL_OK;
}

static trl_err set_list(trli_partials *p, trli_ir_value v, span list)
{
    int32_t number;
    if (!trli_make_room(p->ir->ctx, &p->of, p->known.count, 1, &p->of_capacity, sizeof *p->of)) return no_memory(p);
    trl_err err = trli_value_map_add(p->ir->ctx, &p->known, v, &number);
    if (err == TRL_OK) p->of[number] = list;
    return err == TRL_OK ? p->ir->err : err;
}

/* What was appended since `begin` is the list of v. */
static trl_err conclude(trli_partials *p, trli_ir_value v, int begin)
{
    return set_list(p, v, (span){begin, p->nentries - begin});
}

static int compare(const trli_partial_derivative *a, const trli_partial_derivative *b)
{
    if (a->variable != b->variable) return a->variable < b->variable ? -1 : 1;
    if (a->no_cse != b->no_cse) return a->no_cse ? 1 : -1;
    if (a->everywhere != b->everywhere) return a->everywhere ? 1 : -1;
    for (int i = 2; i >= 0; --i)
        if (a->offset[i] != b->offset[i]) return a->offset[i] < b->offset[i] ? -1 : 1;
    return 0;
}

static trli_ir_value magnitude(trli_ir *ir, trli_ir_value v)
{
    return trli_ir_unary(ir, TRLI_OP_ABS, v);
}

static trli_ir_value sum(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    if (a < 0) return b;
    return b < 0 ? a : trli_ir_binary(ir, TRLI_OP_ADD, a, b);
}

/* |value| + bound. */
static trli_ir_value whole(trli_ir *ir, const trli_partial_derivative *e)
{
    return sum(ir, e->value < 0 ? TRLI_NO_VALUE : magnitude(ir, e->value), e->bound);
}

/* How much the face value of a limiter may change with the values upwind, centre and downwind of it, at most: with the
 * slopes phi(p, q) of trl_limiter_body.h, half of d phi/dp, 1 + that, and half of d phi/dq. */
static double steepest(int limiter, int operand)
{
    static const struct {
        double by_p, by_q;
    } slope[TRL_LIMITER_COUNT] = {
        [TRL_LIMITER_UPWIND] = {0, 0},   [TRL_LIMITER_MINMOD] = {1, 1},    [TRL_LIMITER_VANLEER] = {2, 2},
        [TRL_LIMITER_SUPERBEE] = {2, 2}, [TRL_LIMITER_MC] = {2, 2},        [TRL_LIMITER_KOREN] = {2, 2},
        [TRL_LIMITER_CHARM] = {3, 1.2},  [TRL_LIMITER_OSPRE] = {1.5, 1.5}, [TRL_LIMITER_SMART] = {4, 2}};
    const double by_p = slope[limiter].by_p / 2, by_q = slope[limiter].by_q / 2;
    return operand == 0 ? by_p : operand == 1 ? 1 + by_p : by_q;
}

/* The derivative of v along one direction from those of its operands. */
static void combine(trli_ir *ir, trli_ir_value v, const trli_partial_derivative *const from[3],
                    trli_partial_derivative *to)
{
    const trli_node n = ir->node[v];
    trli_ir_value t[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
    to->value = to->bound = TRLI_NO_VALUE;
    for (int i = 0; i < 3; ++i) {
        if (!from[i]) continue;
        trli_ir_value part = n.op == TRLI_OP_LIMIT ? whole(ir, from[i]) : from[i]->bound;
        if (n.op != TRLI_OP_LIMIT) t[i] = from[i]->value;
        if (part < 0) continue;
        trli_ir_value one[3] = {TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
        one[i] = part;
        part = n.op == TRLI_OP_LIMIT ? trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, steepest(n.index, i)), part)
                                     : trli_node_tangent(ir, v, one);
        if (part >= 0) to->bound = sum(ir, to->bound, magnitude(ir, part));
    }
    if (t[0] >= 0 || t[1] >= 0 || t[2] >= 0) to->value = trli_node_tangent(ir, v, t);
}

/* Merge the operands' lists. */
static trl_err merge(trli_partials *p, trli_ir_value v, unsigned operands)
{
    const trli_node n = p->ir->node[v];
    int at[3] = {0, 0, 0}, begin = p->nentries;
    span list[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int i = 0; i < 3; ++i)
        if (operands >> i & 1) list[i] = list_of(p, n.arg[i]);
    while (!p->exhausted) {
        const trli_partial_derivative *least = NULL, *from[3] = {NULL, NULL, NULL};
        trli_partial_derivative copy[3], made;
        for (int i = 0; i < 3; ++i) {
            from[i] = at[i] < list[i].count ? &p->entry[list[i].begin + at[i]] : NULL;
            if (from[i] && (!least || compare(from[i], least) < 0)) least = from[i];
        }
        if (!least) break;
        made = *least;
        for (int i = 0; i < 3; ++i) {
            if (from[i] && compare(from[i], &made) != 0) from[i] = NULL;
            if (!from[i]) continue;
            copy[i] = *from[i];
            from[i] = &copy[i];
            ++at[i];
        }
        combine(p->ir, v, from, &made);
        for (int a = 0; a < 3 && n.op == TRLI_OP_SHIFT; ++a)
            if (!made.everywhere) made.offset[a] = (int16_t)(made.offset[a] + n.shift[a]);
        if (made.value >= 0 && trli_ir_is_zero(p->ir, made.value)) made.value = TRLI_NO_VALUE;
        if (made.bound >= 0 && trli_ir_is_zero(p->ir, made.bound)) made.bound = TRLI_NO_VALUE;
        if (made.value < 0 && made.bound < 0) continue;
        trl_err err = append(p, &made);
        if (err != TRL_OK) return err;
    }
    return conclude(p, v, begin);
}

/* ---- leaves ---- */

static trl_err variable_leaf(trli_partials *p, trli_ir_value v, int variable)
{
    const bool no_cse = p->ir->node[v].bit == 1;
    trli_partial_derivative e = {
        .variable = variable, .no_cse = no_cse, .value = trli_ir_constant(p->ir, 1), .bound = TRLI_NO_VALUE};
    const int begin = p->nentries;
    trl_err err = TRL_OK;
    if (p->coarse)
        e = (trli_partial_derivative){.variable = -1, .everywhere = true, .value = TRLI_NO_VALUE, .bound = e.value};
    if (!(no_cse && variable == p->own) && !p->in->model->variable[variable].direction) err = append(p, &e);
    return err == TRL_OK ? conclude(p, v, begin) : err;
}

static trl_err plugin_leaf(trli_partials *p, trli_ir_value v, const trli_step *producer)
{
    const trli_opaque *called = producer->plugin.called;
    const int *input = producer->plugin.input; /* the program's steps may move */
    bool ready = true, depends = false;
    trl_err err = TRL_OK;
    for (int i = 0; i < called->ninputs; ++i) TRL_TRY(need(p, trli_ir_field(p->ir, input[i]), &ready));
    if (!ready) return TRL_OK;
    for (int i = 0; i < called->ninputs; ++i) depends |= list_of(p, trli_ir_field(p->ir, input[i])).count > 0;
    if (depends && !called->stable_dt) p->plugin = called;
    err = conclude(p, v, p->nentries);
done:
    return err;
}

/* A reduction: what all points together make of it, for each variable. */
static trl_err reduced(trli_partials *p, const trli_step *like, trli_ir_value magnitudes, trli_ir_value *bound)
{
    const bool linear = like->reduce.kind == TRLI_REDUCE_SUM;
    int scalar;
    trl_err err = TRL_OK;
    TRL_TRY(trli_partials_together(p, magnitudes, &magnitudes));
    TRL_TRY(trli_program_reduce(p->in->program, like->label, magnitudes, like->reduce.location,
                                linear ? TRLI_REDUCE_SUM : TRLI_REDUCE_MAX, like->reduce.weighted, NULL, &scalar));
    *bound = trli_ir_scalar(p->ir, scalar);
done:
    return err;
}

static trl_err scalar_leaf(trli_partials *p, trli_ir_value v, const trli_step *producer)
{
    bool ready = true;
    trl_err err = TRL_OK;
    if (!producer || producer->kind == TRLI_STEP_STABLE_DT) return conclude(p, v, p->nentries);
    const trli_step s = *producer; /* the program's steps may move */
    TRL_TRY(need(p, s.value[0], &ready));
    if (!ready) return TRL_OK;
    const span inner = list_of(p, s.value[0]);
    const int begin = p->nentries;
    for (int i = 0, next; i < inner.count; i = next) {
        trli_partial_derivative e = p->entry[inner.begin + i];
        next = i + 1;
        if (s.kind == TRLI_STEP_REDUCE) {
            trli_ir_value total = whole(p->ir, &e);
            for (; next < inner.count; ++next) {
                const trli_partial_derivative *more = &p->entry[inner.begin + next];
                if (more->variable != e.variable || more->no_cse != e.no_cse) break;
                total = sum(p->ir, total, whole(p->ir, more));
            }
            e = (trli_partial_derivative){
                .variable = e.variable, .no_cse = e.no_cse, .everywhere = true, .value = TRLI_NO_VALUE, .bound = total};
            TRL_TRY(reduced(p, &s, total, &e.bound));
        }
        TRL_TRY(append(p, &e));
    }
    err = conclude(p, v, begin);
done:
    return err;
}

static trl_err leaf(trli_partials *p, trli_ir_value v)
{
    const trli_node n = p->ir->node[v];
    int which, variable = n.op == TRLI_OP_FIELD && n.index < p->nvariable_of ? p->variable_of[n.index] : -1;
    bool ready = true;
    trl_err err = TRL_OK;
    if (variable >= 0) return variable_leaf(p, v, variable);
    const trli_step *producer = trli_program_producer(p->in->program, &n, &which);
    if (n.op == TRLI_OP_SCALAR) return scalar_leaf(p, v, producer);
    if (!producer) return conclude(p, v, p->nentries);
    if (producer->kind == TRLI_STEP_PLUGIN) return plugin_leaf(p, v, producer);
    const trli_ir_value value = producer->value[which];
    TRL_TRY(need(p, value, &ready));
    if (!ready) return TRL_OK;
    err = set_list(p, v, list_of(p, value));
done:
    return err;
}

/* Find the list of the value on top of the stack, or put what it needs there. */
static trl_err advance(trli_partials *p)
{
    const trli_ir_value v = p->stack[p->nstack - 1];
    const trli_node n = p->ir->node[v];
    bool ready = true;
    trl_err err = TRL_OK;
    if (n.op == TRLI_OP_FIELD || n.op == TRLI_OP_SCALAR) return leaf(p, v);
    const unsigned operands = trli_operands_that_count(&n);
    for (int i = 0; i < 3; ++i)
        if (operands >> i & 1) TRL_TRY(need(p, n.arg[i], &ready));
    if (ready) err = merge(p, v, operands);
done:
    return err;
}

trl_err trli_partials_of(trli_partials *partials, trli_ir_value value, int own, int budget, bool coarse,
                         const trli_partial_derivative **list, int *n)
{
    trli_partials *p = partials;
    bool ready = true;
    trl_err err = TRL_OK;
    forget(p);
    p->own = own;
    p->budget = budget;
    p->coarse = coarse;
    p->nstack = 0;
    *n = -1;
    *list = NULL;
    TRL_TRY(need(p, value, &ready));
    while (p->nstack > 0 && !p->exhausted) {
        if (trli_value_map_find(&p->known, p->stack[p->nstack - 1]) >= 0)
            --p->nstack;
        else
            TRL_TRY(advance(p));
    }
    if (p->exhausted) return TRL_OK;
    const span found = list_of(p, value);
    *n = found.count;
    *list = &p->entry[found.begin];
done:
    return err;
}

trl_err trli_partials_together(trli_partials *partials, trli_ir_value value, trli_ir_value *together)
{
    trli_ir *ir = partials->ir;
    trli_walk *walk = &partials->walk;
    trl_err err = TRL_OK;
    *together = value;
    TRL_TRY(trli_ir_walk(ir, walk, 1, &value));
    for (int32_t i = 0; i < walk->count; ++i) {
        const trli_node n = ir->node[walk->list[i]];
        if (n.op != TRLI_OP_FIELD || n.bit != 1) continue;
        *together = trli_ir_replace(ir, *together, walk->list[i], trli_ir_field(ir, n.index));
    }
    err = ir->err;
done:
    return err;
}
