/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Derivatives of what instances hold. */

#include "boundary_impl.h"
#include "derivative_impl.h"
#include "memory_impl.h"
#include "side_changes_impl.h"
#include "sides_impl.h"
#include "tangent_impl.h"
#include "values_impl.h"

/* The derivatives of an instance's values along one direction. */
typedef struct trli_tangent_of {
    trli_derivative d;
    trli_instance *in;
    int direction;
    trli_side_changes beyond; /* of an instance that stores values */
} trli_tangent_of;

struct trli_tangents {
    int n;
    trli_tangent_of *along[]; /* [n] by direction, made at first use */
};

/* Those of an instance, made at first use. */
static trl_err tangent_along(trli_instance *in, int direction, trli_tangent_of **along);

/* ---- leaves ---- */

static const char *parameter_of(const trli_tangent_of *t)
{
    return t->in->model->direction[t->direction - 1].name;
}

static trl_err plugin_fails(const trli_tangent_of *t, const trli_opaque *called)
{
    const char *solved = t->in->model->direction[t->direction - 1].solved;
    if (solved)
        return trl_fail(t->in->model->ctx, TRL_ERR_INPUT, &called->place,
                        "solving for '%s' needs the derivative of '%s', and what type '%s' computes has none: write it "
                        "as a formula, or let it read old(...), the value at the start of the step",
                        solved, called->name, called->type);
    return trl_fail(t->in->model->ctx, TRL_ERR_INPUT, &called->place,
                    "'%s' depends on '%s', and what type '%s' computes has no derivative: write it as a formula, or "
                    "take the sensitivity out",
                    called->name, parameter_of(t), called->type);
}

static trl_err reduce(const trli_tangent_of *t, const trli_step *like, trli_ir_value value, trli_reduce_kind kind,
                      trli_ir_value *result)
{
    int scalar;
    trl_err err = trli_program_reduce(t->in->program, like->label, value, like->reduce.location, kind,
                                      like->reduce.weighted, like->reduce.point, &scalar);
    if (err == TRL_OK) *result = trli_ir_scalar(t->d.ir, scalar);
    return err;
}

/* What changes beyond the sides of variables that an instance reads; NULL: nothing does. */
static trl_err changes_of(trli_tangent_of *t, trli_side_changes **changes);

/* A derivative without what is zero where it is read. */
static trl_err settle(trli_tangent_of *t, int across, trli_ir_value *value)
{
    trli_side_changes *changes;
    trl_err err = changes_of(t, &changes);
    return err == TRL_OK && changes ? trli_side_changes_settle(changes, across, value) : err;
}

/* That of what a plugin reads with a footprint, for a condition, as far as it is zero. */
static trl_err settle_input(trli_tangent_of *t, const trl_footprint *reach, trli_ir_value *value)
{
    const trl_offsets hull = trl_footprint_hull(reach);
    for (int a = 0; a < 3; ++a)
        if (hull.lo[a] < 0 || hull.hi[a] > 0)
            *value = trli_ir_shift(t->d.ir, *value, a, hull.lo[a] < 0 ? hull.lo[a] : hull.hi[a]);
    return settle(t, -1, value);
}

/* Sums and probes are linear. The largest value changes as the value does where it is the largest, on average over such
 * points. */
static trl_err scalar_leaf(trli_tangent_of *t, trli_ir_value v, const trli_step *producer)
{
    trli_ir *ir = t->d.ir;
    trl_err err = TRL_OK;
    trli_ir_value inner = TRLI_NO_VALUE, points;
    if (!producer || producer->kind == TRLI_STEP_STABLE_DT) return trli_derivative_set(&t->d, v, TRLI_NO_VALUE);
    const trli_step s = *producer; /* the program's steps may move */
    const trli_ir_value value = s.value[0];
    TRL_TRY(trli_derivative_need(&t->d, value, &inner));
    if (inner == TRLI_TANGENT_UNKNOWN) return TRL_OK;
    if (s.kind == TRLI_STEP_REDUCE) TRL_TRY(settle(t, -1, &inner));
    if (inner >= 0 && s.kind == TRLI_STEP_REDUCE) {
        bool linear = s.reduce.kind == TRLI_REDUCE_SUM || s.reduce.kind == TRLI_REDUCE_POINT;
        trli_ir_value attained = trli_ir_binary(ir, TRLI_OP_EQ, value, v);
        if (!linear) inner = trli_ir_select(ir, attained, inner, trli_ir_constant(ir, 0));
        TRL_TRY(reduce(t, &s, inner, linear ? s.reduce.kind : TRLI_REDUCE_SUM, &inner));
        if (!linear) {
            TRL_TRY(reduce(t, &s, attained, TRLI_REDUCE_SUM, &points));
            inner = trli_ir_binary(ir, TRLI_OP_DIV, inner, points);
        }
    }
    TRL_TRY(trli_derivative_set(&t->d, v, inner));
done:
    return err;
}

/* The tangent of a field with boundary values of its own is one, too. inner < 0: inside, the field does not change. */
static trl_err bounded_tangent(trli_tangent_of *t, int field, trli_ir_value inner, trli_ir_value *tangent)
{
    trli_model *model = t->in->model;
    trli_side lowered[6] = {{0}};
    trli_instance *sides;
    trl_err err = TRL_OK;
    const trli_boundary_source source = model->field[field].boundary;
    const char *name = trli_model_name(model, "%s_%s", model->field[field].name, parameter_of(t));
    trli_ir_value value = inner < 0 ? trli_ir_constant(t->d.ir, 0) : inner;
    int stored = trli_model_add_field(model, name, model->field[field].location);
    if (stored < 0) return model->ir.err;
    model->field[stored].exchanged = true;
    model->field[stored].boundary = source;
    model->field[stored].direction = t->direction;
    model->field[stored].primal = field;
    model->field[stored].only_sides = inner < 0;
    TRL_TRY(trli_instance_sides(t->in, &sides));
    TRL_TRY(trli_boundary_lower(sides, stored, lowered));
    *tangent = TRLI_NO_VALUE;
    if (inner < 0 && trli_sides_are_zero(lowered)) goto done;
    TRL_TRY(trli_program_add_kernel(t->in->program, name, 1, &stored, &value, NULL));
    TRL_TRY(trli_instance_fill_field(t->in, stored));
    *tangent = trli_ir_field(t->d.ir, stored);
done:
    for (int s = 0; s < 6; ++s) trli_free(lowered[s].piece);
    return err;
}

static trl_err stored_leaf(trli_tangent_of *t, trli_ir_value v, trli_ir_value value)
{
    trli_model *model = t->in->model;
    int field = t->d.ir->node[v].index, stored;
    trli_ir_value inner = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_derivative_need(&t->d, value, &inner));
    if (inner == TRLI_TANGENT_UNKNOWN) return TRL_OK;
    if (model->field[field].boundary.side) {
        TRL_TRY(bounded_tangent(t, field, inner, &inner));
    } else if (inner >= 0 && !t->in->inline_only) {
        const trli_node *n = trli_ir_node(t->d.ir, inner);
        if (n->varies && n->op != TRLI_OP_FIELD) {
            const char *name = trli_model_name(model, "%s_%s", model->field[field].name, parameter_of(t));
            TRL_TRY(trli_program_store(t->in->program, name, "it is the derivative of a stored field", inner,
                                       model->field[field].location, NULL, &stored));
            inner = trli_ir_field(t->d.ir, stored);
        }
    }
    TRL_TRY(trli_derivative_set(&t->d, v, inner));
done:
    return err;
}

/* What a plugin computes changes with its inputs and boundary values in a way only it knows. */
static trl_err plugin_leaf(trli_tangent_of *t, trli_ir_value v, const trli_step *producer)
{
    const trli_opaque *called = producer->plugin.called;
    const int *input = producer->plugin.input; /* the program's steps may move */
    const trli_model_field *field = &t->in->model->field[t->d.ir->node[v].index];
    bool ready = true, zero = true;
    trl_err err = TRL_OK;
    for (int i = 0; i < called->ninputs; ++i) {
        trli_ir_value inner = TRLI_NO_VALUE;
        TRL_TRY(trli_derivative_need(&t->d, trli_ir_field(t->d.ir, input[i]), &inner));
        ready &= inner != TRLI_TANGENT_UNKNOWN;
        if (inner >= 0 && t->in->at_side) TRL_TRY(settle_input(t, &called->reach[i], &inner));
        zero &= inner == TRLI_NO_VALUE;
    }
    if (!ready) return TRL_OK;
    if (!zero) return plugin_fails(t, called);
    trli_ir_value tangent = TRLI_NO_VALUE;
    if (field->boundary.side) TRL_TRY(bounded_tangent(t, t->d.ir->node[v].index, TRLI_NO_VALUE, &tangent));
    TRL_TRY(trli_derivative_set(&t->d, v, tangent));
done:
    return err;
}

/* The instance that stores what one of conditions reads; that one itself, if it stores values. */
static trli_instance *storing(trli_instance *in)
{
    return in->inline_only && in->at_side ? in->of : in;
}

/* Whether a variable without a tangent of its own may change where its conditions set it. */
static bool changes_at_sides(trli_instance *in, int variable)
{
    const int field = in->variable[variable];
    return !storing(in)->inline_only && field >= 0 && in->model->field[field].boundary.side;
}

static trl_err changes_of(trli_tangent_of *t, trli_side_changes **changes)
{
    trli_instance *in = storing(t->in);
    trli_tangent_of *whole = t;
    trl_err err = TRL_OK;
    *changes = NULL;
    if (in->inline_only || in->model->direction[t->direction - 1].time) return TRL_OK;
    if (in != t->in) TRL_TRY(tangent_along(in, t->direction, &whole));
    *changes = &whole->beyond;
done:
    return err;
}

static trl_err variable_leaf(trli_tangent_of *t, trli_ir_value v, int variable)
{
    trli_side_changes *changes;
    trli_ir_value tangent;
    trl_err err = TRL_OK;
    TRL_TRY(changes_of(t, &changes));
    TRL_TRY(trli_side_changes_of(changes, variable, !t->in->inline_only, &tangent));
    err = trli_derivative_set(&t->d, v, tangent);
done:
    return err;
}

/* An expression evaluated once a step belongs to the instance at the start of the step. */
static bool is_of_old(const trli_instance *in, trli_ir_value v)
{
    const trli_model *model = in->model;
    for (int e = 0; in->old && e < model->front->nentries; ++e) {
        if (!model->front->entry[e].has_boundary || model->front->entry[e].deck->evaluate != TRL_EVALUATE_STEP)
            continue;
        if (trli_value_is_of_entry(in->old, e, v)) return true;
    }
    return false;
}

static trl_err leaf(trli_derivative *d, trli_ir_value v)
{
    trli_tangent_of *t = d->data;
    const trli_node n = d->ir->node[v];
    const trli_model *model = t->in->model;
    trli_ir_value tangent;
    trl_err err = TRL_OK;
    int which;
    for (int i = 0; n.op == TRLI_OP_FIELD && i < model->nvariables; ++i)
        if (model->variable[i].direction && t->in->variable[i] == n.index)
            return trl_fail(
                model->ctx, TRL_ERR_INPUT, &model->variable[i].place,
                "the derivative by '%s' of something that uses '%s' would be a second derivative, and there "
                "are none yet",
                parameter_of(t), model->variable[i].name);
    for (int i = 0; model->direction[t->direction - 1].time && n.op == TRLI_OP_FIELD && i < model->nvariables; ++i)
        if (t->in->variable[i] == n.index)
            return trl_fail(model->ctx, TRL_ERR_INPUT, &model->variable[i].place,
                            "a condition of an equation with ddt2 reads '%s', whose own rate is not known where the "
                            "condition's is needed: write it without '%s', or with old(%s)",
                            model->variable[i].name, model->variable[i].name, model->variable[i].name);
    if (is_of_old(t->in, v)) {
        TRL_TRY(trli_tangent((trli_instance *)t->in->old, t->direction, v, &tangent));
        return trli_derivative_set(d, v, tangent);
    }
    const trli_step *producer = trli_program_producer(t->in->program, &n, &which);
    if (n.op == TRLI_OP_SCALAR) return scalar_leaf(t, v, producer);
    for (int i = 0; !model->direction[t->direction - 1].time && i < model->nvariables; ++i)
        if (t->in->variable[i] == n.index && changes_at_sides(t->in, i)) return variable_leaf(t, v, i);
    if (!producer && model->field[n.index].persistent) /* what other programs make does not change */
        return trli_derivative_set(d, v, TRLI_NO_VALUE);
    if (!producer)
        return trl_fail(model->ctx, TRL_ERR_BUG, NULL, "nothing computes field '%s'", model->field[n.index].name);
    return producer->kind == TRLI_STEP_PLUGIN ? plugin_leaf(t, v, producer) : stored_leaf(t, v, producer->value[which]);
done:
    return err;
}

/* ---- instances ---- */

/* In time, variables that have a rate change by it. The values at the start of the step do not change. */
static trl_err seed_rates(trli_tangent_of *t)
{
    const trli_instance *in = t->in;
    const trli_model *model = in->model;
    trl_err err = TRL_OK;
    for (int v = 0; in->old && v < model->nvariables; ++v)
        if (in->old->variable[v] >= 0)
            TRL_TRY(trli_derivative_set(&t->d, trli_ir_field(t->d.ir, in->old->variable[v]), TRLI_NO_VALUE));
    for (int v = 0; v < model->nvariables; ++v) {
        if (!model->variable[v].is_rate || in->variable[v] < 0) continue;
        trli_ir_value primal = trli_ir_field(t->d.ir, in->variable[model->variable[v].of]);
        TRL_TRY(trli_derivative_set(&t->d, primal, trli_ir_field(t->d.ir, in->variable[v])));
    }
    err = trli_derivative_set(&t->d, trli_ir_scalar(t->d.ir, in->time_scalar), trli_ir_constant(t->d.ir, 1));
done:
    return err;
}

/* The tangents of the variables' values in an instance. */
static trl_err seed(trli_tangent_of *t, const trli_instance *in)
{
    const trli_model *model = t->in->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v)
        if (!model->variable[v].direction && in->variable[v] >= 0 && !(in == t->in && changes_at_sides(t->in, v)))
            TRL_TRY(trli_derivative_set(&t->d, trli_ir_field(t->d.ir, in->variable[v]), TRLI_NO_VALUE));
    for (int v = 0; v < model->nvariables; ++v) {
        const trli_variable *variable = &model->variable[v];
        if (variable->direction != t->direction || in->variable[v] < 0) continue;
        trli_ir_value primal = trli_ir_field(t->d.ir, in->variable[variable->of]);
        TRL_TRY(trli_derivative_set(&t->d, primal, trli_ir_field(t->d.ir, in->variable[v])));
    }
done:
    return err;
}

static trl_err make_tangent(trli_instance *in, int direction, trli_tangent_of **made)
{
    trli_ir *ir = &in->model->ir;
    int scalar = in->model->direction[direction - 1].scalar;
    trl_err err = TRL_OK;
    trli_tangent_of *t = *made = trli_new(ir->ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(ir->ctx, NULL, "for derivatives");
    t->d = (trli_derivative){.ir = ir, .leaf = leaf, .data = t};
    t->in = in;
    t->direction = direction;
    if (in->model->direction[direction - 1].time) return seed_rates(t);
    if (!in->inline_only) TRL_TRY(trli_side_changes_begin(&t->beyond, in, direction));
    if (in->old) TRL_TRY(seed(t, in->old));
    TRL_TRY(seed(t, in));
    if (scalar >= 0) TRL_TRY(trli_derivative_set(&t->d, trli_ir_scalar(ir, scalar), trli_ir_constant(ir, 1)));
done:
    return err;
}

static trl_err tangent_along(trli_instance *in, int direction, trli_tangent_of **along)
{
    const size_t n = (size_t)in->model->ndirections;
    struct trli_tangents *t = in->tangents;
    trl_err err = TRL_OK;
    if (!t) {
        t = in->tangents = trli_new(in->model->ctx, 1, sizeof *t + n * sizeof(trli_tangent_of *));
        if (!t) return trli_no_memory(in->model->ctx, NULL, "for derivatives");
        t->n = (int)n;
    }
    if (!t->along[direction - 1]) TRL_TRY(make_tangent(in, direction, &t->along[direction - 1]));
    *along = t->along[direction - 1];
done:
    return err;
}

trl_err trli_tangent_of_value(trli_instance *in, int direction, trli_ir_value value, trli_ir_value *tangent)
{
    trli_tangent_of *along = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(tangent_along(in, direction, &along));
    TRL_TRY(trli_derivative_of(&along->d, value, tangent));
    if (in->at_side) err = settle(along, in->across, tangent);
done:
    return err;
}

void trli_tangents_free(struct trli_tangents **tangents)
{
    struct trli_tangents *t = *tangents;
    *tangents = NULL;
    for (int d = 0; t && d < t->n; ++d) {
        if (t->along[d]) trli_derivative_free(&t->along[d]->d);
        if (t->along[d]) trli_side_changes_end(&t->along[d]->beyond);
        trli_free(t->along[d]);
    }
    trli_free(t);
}

int trli_tangent_variable(const trli_model *model, int direction, int variable)
{
    for (int v = 0; v < model->nvariables; ++v)
        if (model->variable[v].direction == direction && model->variable[v].of == variable) return v;
    return -1;
}
