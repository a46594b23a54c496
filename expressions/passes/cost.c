/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The cost model. It decides by the figures of rank 0, and by nothing that differs between ranks but the number of
 * points; that enters only as the choice between the bandwidths of memory and cache, on which the ranks agree. */
#include <string.h>

#include "cost_impl.h"
#include "memory_impl.h"
#include "plan_impl.h"

/* Part of the time of a value at all its offsets that storing it must save: less is within the error of the estimate.
 */
static const double worth_storing = 0.1;

static double additions_of(const trli_balance *balance, const trli_node *n)
{
    return trli_op_additions(n->op, n->index, balance->division, balance->exponential);
}

/* ---- work of a kernel ---- */

/* An offset at which a node is needed. */
typedef struct place {
    int8_t offset[3];
    int32_t next; /* of the same node; -1: none */
} place;

typedef struct counting {
    const trli_ir *ir;
    const trli_walk *walk;
    int32_t *first; /* [walk->count] -1: none */
    place *list;
    int32_t count, capacity;
} counting;

static trl_err need(counting *c, trli_ir_value v, const int8_t from[3])
{
    place here = {.next = -1};
    memcpy(here.offset, from, sizeof here.offset);
    const trli_node *n = trli_ir_node(c->ir, v);
    for (; n->op == TRLI_OP_SHIFT; v = n->arg[0], n = trli_ir_node(c->ir, v))
        for (int a = 0; a < 3; ++a) here.offset[a] = (int8_t)(here.offset[a] + n->shift[a]);
    for (int a = 0; a < 3; ++a)
        if (!(n->varies >> a & 1)) here.offset[a] = 0;
    int32_t *first = &c->first[c->walk->place[v]];
    for (int32_t i = *first; i >= 0; i = c->list[i].next)
        if (memcmp(c->list[i].offset, here.offset, sizeof here.offset) == 0) return TRL_OK;
    if (!trli_make_room(c->ir->ctx, &c->list, c->count, 1, &c->capacity, sizeof *c->list))
        return trli_no_memory(c->ir->ctx, NULL, "to count %d operations", c->count + 1);
    here.next = *first;
    *first = c->count;
    c->list[c->count++] = here;
    return TRL_OK;
}

/* A processor loads about as many vectors as it adds, and stores half as many. */
enum { LOAD_ADDITIONS = 1, STORE_ADDITIONS = 2 };

static void add_read(int n, trli_work *work)
{
    ++work->inputs;
    work->additions += n * LOAD_ADDITIONS;
}

/* Add what a node costs that is needed at n offsets. */
static void add_work(const trli_model *model, const trli_balance *by, const trli_node *node, int n, trli_work *work)
{
    const unsigned varies = node->varies, point = model->layout->grid.dim > 1 ? 3 : 1;
    if (trli_op_operands(node->op) == 0 && node->op != TRLI_OP_RANDOM) {
        if (node->op == TRLI_OP_FIELD) add_read(n, work);
        return;
    }
    ++work->values;
    work->samples += n;
    if ((varies & point) == point) {
        work->flops += n * trli_op_flops(node->op, node->index);
        work->additions += n * additions_of(by, node);
    } else if (varies & 3) {
        work->row += n;
    } else if (varies) {
        work->plane += n;
    } else {
        work->call += n;
    }
}

trl_err trli_work_of(trli_model *model, const trli_balance *by, int nroots, const trli_ir_value *roots,
                     trli_ir_value cut, int *uses, trli_work *work)
{
    static const int8_t here[3] = {0, 0, 0};
    counting c = {.ir = &model->ir, .walk = &model->walk};
    trl_err err = TRL_OK;
    *work = (trli_work){.outputs = nroots, .additions = nroots * STORE_ADDITIONS};
    TRL_TRY(trli_ir_walk(c.ir, &model->walk, nroots, roots));
    c.first = trli_new(model->ctx, (size_t)c.walk->count, sizeof *c.first);
    if (!c.first) return trli_no_memory(model->ctx, NULL, "to count %d values", c.walk->count);
    for (int32_t i = 0; i < c.walk->count; ++i) c.first[i] = -1;
    for (int r = 0; r < nroots; ++r) TRL_TRY(need(&c, roots[r], here));
    for (int32_t at = c.walk->count - 1; at >= 0; --at) { /* users before operands */
        const trli_ir_value v = c.walk->list[at];
        const trli_node *node = trli_ir_node(c.ir, v);
        int n = 0;
        for (int32_t i = c.first[at]; i >= 0; i = c.list[i].next) ++n;
        if (n == 0) continue;
        if (uses) uses[v] += n;
        if (v == cut) {
            add_read(n, work);
            continue;
        }
        add_work(model, by, node, n, work);
        for (int32_t i = c.first[at]; i >= 0; i = c.list[i].next)
            for (int o = 0; o < trli_op_operands(node->op); ++o) {
                const place from = c.list[i]; /* the list may move */
                TRL_TRY(need(&c, node->arg[o], from.offset));
            }
    }
done:
    trli_free(c.first);
    trli_free(c.list);
    return err;
}

double trli_work_seconds(const trli_model *model, const trli_work *work, double rate, bool *memory)
{
    const double bytes = (double)(work->inputs + work->outputs) * sizeof(double);
    const double moving = bytes / trli_model_bandwidth(model), computing = work->additions / rate;
    *memory = moving > computing;
    return moving > computing ? moving : computing;
}

trli_work trli_work_of_fields(int inputs, int outputs)
{
    return (trli_work){
        .inputs = inputs, .outputs = outputs, .additions = inputs * LOAD_ADDITIONS + outputs * STORE_ADDITIONS};
}

double trli_task_seconds(const trli_model *model, const trli_work *work, int64_t points, int workers)
{
    const double any = 1e-7; /* a task is taken from a queue and called */
    bool memory;
    if (!work) return any;
    return any + (double)points * workers * trli_work_seconds(model, work, model->machine.balance.operations, &memory);
}

static double deciding_seconds(const trli_model *model, const trli_work *work)
{
    bool memory;
    return trli_work_seconds(model, work, model->machine.deciding.operations, &memory);
}

static bool has_values(const trli_step *s)
{
    return s->kind == TRLI_STEP_KERNEL || s->kind == TRLI_STEP_REDUCE;
}

static int roots_of(const trli_step *s)
{
    return s->kind == TRLI_STEP_KERNEL ? s->nout : 1;
}

trl_err trli_program_count_work(trli_program *program)
{
    trl_err err = TRL_OK;
    program->work = trli_new(program->model->ctx, (size_t)program->nsteps + 1, sizeof *program->work);
    if (!program->work) return trli_no_memory(program->model->ctx, NULL, "for the work of %d steps", program->nsteps);
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        trli_work *work = &program->work[i];
        if (!p->live) continue;
        if (trli_step_plugin(s)) *work = trli_work_of_fields(p->ninputs, s->nout);
        if (!has_values(s)) continue;
        TRL_TRY(trli_work_of(program->model, &program->model->machine.balance, roots_of(s), s->value, TRLI_NO_VALUE,
                             NULL, work));
        if (s->kind == TRLI_STEP_KERNEL) continue;
        --work->outputs; /* what is reduced is not stored */
        work->additions -= STORE_ADDITIONS;
    }
done:
    return err;
}

/* ---- storing named values ---- */

/* How many offsets each value is needed at, in all steps together; the list grows with the values. */
static trl_err count_uses(trli_program *program, int **uses)
{
    const size_t n = (size_t)program->model->ir.count;
    trli_work work;
    trl_err err = TRL_OK;
    int *longer = trli_resize(program->model->ctx, *uses, n, sizeof *longer);
    if (!longer) return trli_no_memory(program->model->ctx, NULL, "for the costs of program '%s'", program->name);
    *uses = longer;
    memset(longer, 0, n * sizeof *longer);
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (has_values(s))
            TRL_TRY(trli_work_of(program->model, &program->model->machine.deciding, roots_of(s), s->value,
                                 TRLI_NO_VALUE, longer, &work));
    }
done:
    return err;
}

/* Find out what changes of the values that were made since the last time; operands come before what is made of them. */
static trl_err find_changes(trli_model *model)
{
    const trli_ir *ir = &model->ir;
    if (!trli_make_room(model->ctx, &model->changes, model->nchanges, ir->count - model->nchanges,
                        &model->changes_capacity, sizeof *model->changes))
        return trli_no_memory(model->ctx, NULL, "for %d values of the expression graph", ir->count);
    for (int32_t v = model->nchanges; v < ir->count; ++v) {
        const trli_node *n = trli_ir_node(ir, v);
        bool changes = n->op == TRLI_OP_SCALAR || (n->op == TRLI_OP_FIELD && !model->field[n->index].lasting);
        for (int i = 0; i < trli_op_operands(n->op); ++i) changes |= model->changes[n->arg[i]];
        model->changes[v] = changes;
    }
    model->nchanges = ir->count;
    return TRL_OK;
}

/* Find out, once, whether a step's program may leave a value to the program of what lasts: nothing changes it. */
static trl_err find_lasting(const trli_program *program, trli_candidate *candidate)
{
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    if (candidate->looked_at || !program->each_step || !model->may_last) return TRL_OK;
    candidate->looked_at = true;
    TRL_TRY(find_changes(model));
    candidate->lasting = !model->changes[candidate->value];
done:
    return err;
}

/* Seconds that storing a value saves for a point of each kernel. What lasts is not stored again. */
static trl_err weigh(trli_program *program, const trli_candidate *candidate, double *gain)
{
    trli_model *model = program->model;
    trli_work stored, with, without;
    trl_err err = TRL_OK;
    TRL_TRY(trli_work_of(model, &model->machine.deciding, 1, &candidate->value, TRLI_NO_VALUE, NULL, &stored));
    *gain = candidate->lasting ? 0 : -deciding_seconds(model, &stored);
    /* Not even if all of the work at all offsets were saved: most values end here. */
    if (candidate->uses * stored.additions / model->machine.deciding.operations + *gain <= 0) goto done;
    for (int i = candidate->position; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (!has_values(s)) continue;
        TRL_TRY(trli_ir_walk(&model->ir, &model->walk, roots_of(s), s->value));
        if (!trli_walk_has(&model->walk, candidate->value)) continue;
        TRL_TRY(trli_work_of(model, &model->machine.deciding, roots_of(s), s->value, TRLI_NO_VALUE, NULL, &without));
        TRL_TRY(trli_work_of(model, &model->machine.deciding, roots_of(s), s->value, candidate->value, NULL, &with));
        *gain += deciding_seconds(model, &without) - deciding_seconds(model, &with);
    }
done:
    return err;
}

/* A value with the field in place of what is stored there, if it needs that. */
static trl_err read_instead(trli_model *model, trli_ir_value stored, trli_ir_value field, trli_ir_value *value)
{
    trl_err err = trli_ir_walk(&model->ir, &model->walk, 1, value);
    if (err == TRL_OK && trli_walk_has(&model->walk, stored))
        *value = trli_ir_replace(&model->ir, *value, stored, field);
    return err == TRL_OK ? model->ir.err : err;
}

/* Let later steps and candidates read the field in which a candidate is stored. */
static trl_err replace(trli_program *program, trli_candidate *candidate, int field)
{
    trli_model *model = program->model;
    const trli_ir_value instead = trli_ir_field(&model->ir, field);
    trl_err err = TRL_OK;
    for (int i = candidate->position; i < program->nsteps; ++i) {
        trli_step *s = &program->step[i];
        for (int r = 0; has_values(s) && r < roots_of(s); ++r)
            TRL_TRY(read_instead(model, candidate->value, instead, &s->value[r]));
    }
    for (trli_candidate *later = candidate + 1; later < program->candidate + program->ncandidates; ++later)
        if (!later->stored && later->value != candidate->value)
            TRL_TRY(read_instead(model, candidate->value, instead, &later->value));
done:
    return err;
}

/* Store a candidate in the program of what lasts. Other programs that store the same value share the field. */
static trl_err store_lasting(trli_program *program, trli_candidate *candidate)
{
    trli_model *model = program->model;
    int field;
    trl_err err = TRL_OK;
    if (!model->lasting) {
        TRL_TRY(trli_program_create(model, TRLI_LASTING_PROGRAM, &model->lasting));
        model->lasting->once = true;
    }
    TRL_TRY(trli_program_store(model->lasting, candidate->name, "nothing changes it, and reading it takes less time",
                               candidate->value, candidate->location, NULL, &field));
    model->nlasting += !model->field[field].lasting;
    model->field[field].persistent = model->field[field].lasting = true;
    TRL_TRY(replace(program, candidate, field));
    candidate->stored = true;
done:
    return err;
}

/* Insert the step that stores a candidate at its position. */
static trl_err store(trli_program *program, trli_candidate *candidate, int uses)
{
    trli_model *model = program->model;
    const char *why = trli_model_name(model, "it is needed at %d offsets, and reading it there takes less time", uses);
    if (candidate->lasting) return model->nlasting < model->nvariables ? store_lasting(program, candidate) : TRL_OK;
    const int field = trli_model_add_field(model, candidate->name, candidate->location);
    trl_err err = TRL_OK;
    if (field < 0) return model->ir.err;
    model->field[field].why = why;
    TRL_TRY(replace(program, candidate, field));
    TRL_TRY(trli_program_add_kernel(program, candidate->name, 1, &field, &candidate->value, NULL));
    const trli_step added = program->step[program->nsteps - 1];
    trli_step *at = &program->step[candidate->position];
    memmove(at + 1, at, (size_t)(program->nsteps - 1 - candidate->position) * sizeof *at);
    *at = added;
    /* Candidates are in the order of lowering: what a value needs comes before it, maybe at the same position. */
    for (trli_candidate *later = candidate + 1; later < program->candidate + program->ncandidates; ++later)
        ++later->position;
    candidate->stored = true;
done:
    return err;
}

/* The candidate with the most work at all its offsets, of those that were not weighed yet; NULL: there is none. */
static trl_err find_next(trli_program *program, const int *uses, trli_candidate **next)
{
    const trli_model *model = program->model;
    trl_err err = TRL_OK;
    double most = 0;
    *next = NULL;
    for (int i = 0; i < program->ncandidates; ++i) {
        trli_candidate *o = &program->candidate[i];
        trli_work work;
        if (!o->stored) o->uses = uses[o->value];
        if (o->weighed || o->uses < 1) continue;
        TRL_TRY(find_lasting(program, o));
        if (model->nlasting >= model->nvariables) o->lasting = false; /* no more fields than equations have */
        if (o->uses < 2 && !o->lasting) continue;
        TRL_TRY(
            trli_work_of(program->model, &program->model->machine.deciding, 1, &o->value, TRLI_NO_VALUE, NULL, &work));
        o->additions = work.additions;
        o->inputs = work.inputs;
        if (o->uses * work.additions <= most) continue;
        most = o->uses * work.additions;
        *next = o;
    }
done:
    return err;
}

/* Members of a family are alike: what is true of one is taken to be true of all, so that large ones are weighed in no
 * time. */
static bool alike(const trli_candidate *a, const trli_candidate *b)
{
    return a->uses == b->uses && a->inputs == b->inputs && a->additions == b->additions && a->lasting == b->lasting;
}

static trl_err weigh_and_store(trli_program *program, const trli_candidate *candidate)
{
    double gain;
    trl_err err = TRL_OK;
    TRL_TRY(weigh(program, candidate, &gain));
    const bool stored =
        gain > worth_storing * candidate->uses * candidate->additions / program->model->machine.deciding.operations;
    const trli_candidate like = *candidate;
    for (trli_candidate *o = program->candidate; o < program->candidate + program->ncandidates; ++o) {
        if (o->weighed || !alike(o, &like)) continue;
        o->weighed = true;
        if (stored) TRL_TRY(store(program, o, o->uses));
    }
done:
    return err;
}

trl_err trli_program_cut(trli_program *program)
{
    int *uses = NULL;
    trli_candidate *next = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(program->model->ir.err);
    if (program->ncandidates == 0 || program->once) return TRL_OK;
    do {
        if (!next || next->stored) TRL_TRY(count_uses(program, &uses));
        TRL_TRY(find_next(program, uses, &next));
        if (next) TRL_TRY(weigh_and_store(program, next));
    } while (next);
done:
    trli_free(uses);
    return err;
}
