/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Loop fission. Results that share a value which is worth a buffer stay together; the rest may part: a cheap value is
 * computed again in each part. A compiler's time grows faster than a function's length, so what is too long for one
 * function is divided where that costs the least. The limits are of a nominal machine: the text of kernels, and with it
 * what is in their cache, does not depend on the one at hand. */
#include <string.h>

#include "memory_impl.h"
#include "parting_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems are divided too */
    WHOLE_MOST = 24,
    PART_MOST = 64,
#else
    WHOLE_MOST = 512, /* values of a kernel that is not divided */
    PART_MOST = 1500, /* of a part that could be */
#endif
    ROWS_MOST = 12, /* that one loop goes through, as many pointers as there are registers: parts that few are joined */
    DIVISION_COST = 8,
    COST_MOST = 1000,
    HOISTED = 16 /* points, at least, that a value computed outside of the innermost loop serves */
};

/* Additions from which on a value that several results need keeps them together: the first that makes parts short
 * enough is taken; results have nothing in common that costs the last. */
static const int together[] = {3, 8, 32, COST_MOST + 1};
enum { LEVELS = sizeof together / sizeof *together };

typedef trli_parting parting;

static trl_err no_memory(const parting *d)
{
    return trli_no_memory(d->ir->ctx, NULL, "for the parts of kernel '%s'", d->step->label);
}

/* Results that stay together so far: [n] numbers of results, in one array with others. */
typedef struct bunch {
    int n, *root;
} bunch;

static trl_err walk(const parting *d, const bunch *b, trli_ir_value *value)
{
    for (int r = 0; r < b->n; ++r) value[r] = d->step->value[b->root[r]];
    return trli_ir_walk(d->ir, d->walk, b->n, value);
}

/* ---- parts as they are ---- */

static trl_err room_for_part(parting *d, int nroots, trli_step_part **part)
{
    trli_model *model = d->program->model;
    if (!trli_make_room(d->ir->ctx, &d->parts->part, d->parts->n, 1, &d->capacity, sizeof *d->parts->part))
        return no_memory(d);
    *part = &d->parts->part[d->parts->n];
    **part = (trli_step_part){.nroots = nroots,
                              .root = trli_model_keep(model, (size_t)nroots * sizeof *(*part)->root),
                              .value = trli_model_keep(model, (size_t)nroots * sizeof *(*part)->value)};
    if (!(*part)->root || !(*part)->value) return model->ir.err;
    ++d->parts->n;
    return TRL_OK;
}

/* Whether an input is read away from the point along an axis, or lies elsewhere on it. */
static bool leaves(const parting *d, const trli_reads *reads, int input, int axis)
{
    const trl_offsets hull = trl_footprint_hull(&reads->footprint[input]);
    const trli_model_field *field = d->program->model->field;
    const unsigned staggered = field[d->step->field[0]].location ^ field[reads->field[input]].location;
    return hull.lo[axis] < 0 || hull.hi[axis] > 0 || staggered >> axis & 1;
}

/* The layers that a part may compute: those of the fields that its results read beyond their rows, in the order of its
 * inputs, so that parts of one form have them in one order. */
static trl_err find_slabs(const parting *d, const trli_reads *reads, trli_step_part *part)
{
    const trli_slab *slab = d->plan->slab;
    int n = 0;
    part->nslabs = 0;
    for (int i = 0; i < reads->nfields; ++i)
        for (int k = d->slab_of[reads->field[i]]; k >= 0; k = d->next[k]) n += leaves(d, reads, i, slab[k].axis);
    if (n == 0) return TRL_OK;
    part->slab = trli_model_keep(d->program->model, (size_t)n * sizeof *part->slab);
    if (!part->slab) return d->ir->err;
    for (int i = 0; i < reads->nfields; ++i)
        for (int k = d->slab_of[reads->field[i]]; k >= 0; k = d->next[k])
            if (leaves(d, reads, i, slab[k].axis)) part->slab[part->nslabs++] = k;
    return TRL_OK;
}

/* Those of all results: all that there are. */
static trl_err find_all_slabs(const parting *d, trli_step_part *part)
{
    part->slab = trli_model_keep(d->program->model, (size_t)(d->plan->nslabs + 1) * sizeof *part->slab);
    if (!part->slab) return d->ir->err;
    for (int k = 0; k < d->plan->nslabs; ++k)
        if (d->plan->slab[k].of_row) part->slab[part->nslabs++] = k;
    return TRL_OK;
}

/* What a part reads, with the values of the layers of its inputs. */
static trl_err find_reads(const parting *d, trli_step_part *part)
{
    trli_reads found = {0};
    trli_ir_value *all = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_reads_find_in_depth(d->ir, d->walk, part->nroots, part->value, &found));
    TRL_TRY(find_slabs(d, &found, part));
    if (part->nslabs == 0) {
        part->reads = found;
        found = (trli_reads){0};
        goto done;
    }
    all = trli_new(d->ir->ctx, (size_t)(part->nroots + part->nslabs), sizeof *all);
    if (!all) TRL_TRY(no_memory(d));
    memcpy(all, part->value, (size_t)part->nroots * sizeof *all);
    for (int k = 0; k < part->nslabs; ++k) all[part->nroots + k] = d->plan->slab[part->slab[k]].value;
    TRL_TRY(trli_reads_find_in_depth(d->ir, d->walk, part->nroots + part->nslabs, all, &part->reads));
done:
    trli_reads_free(&found);
    trli_free(all);
    return err;
}

static trl_err find_inputs(const parting *d, trli_step_part *part)
{
    part->input = trli_model_keep(d->program->model, (size_t)(part->reads.nfields + 1) * sizeof *part->input);
    if (!part->input) return d->ir->err;
    for (int i = 0; i < part->reads.nfields; ++i) part->input[i] = d->input_of[part->reads.field[i]];
    return TRL_OK;
}

trl_err trli_parting_add_whole(parting *d)
{
    trli_step_part *part;
    trl_err err = TRL_OK;
    TRL_TRY(room_for_part(d, d->step->nout, &part));
    for (int r = 0; r < part->nroots; ++r) part->root[r] = r;
    memcpy(part->value, d->step->value, (size_t)part->nroots * sizeof *part->value);
    part->reads = d->plan->reads;
    d->parts->whole = true;
    TRL_TRY(find_all_slabs(d, part));
    TRL_TRY(find_inputs(d, part));
done:
    return err;
}

trl_err trli_parting_add(parting *d, int nroots, const int *root)
{
    trli_step_part *part;
    trl_err err = TRL_OK;
    TRL_TRY(room_for_part(d, nroots, &part));
    for (int r = 0; r < nroots; ++r) {
        part->root[r] = root[r];
        part->value[r] = d->step->value[root[r]];
    }
    err = find_reads(d, part);
done:
    return err;
}

/* Rows of arrays that a part reads or writes. */
static int rows_of(const trli_reads *reads, int nroots)
{
    int rows = nroots;
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_footprint *f = &reads->footprint[i];
        const trl_offsets hull = trl_footprint_hull(f);
        for (int z = hull.lo[2]; z <= hull.hi[2]; ++z)
            for (int y = hull.lo[1]; y <= hull.hi[1]; ++y) {
                bool read = false;
                for (int p = 0; p < f->n; ++p)
                    read |= f->part[p].lo[1] <= y && y <= f->part[p].hi[1] && f->part[p].lo[2] <= z &&
                            z <= f->part[p].hi[2];
                rows += read;
            }
    }
    return rows;
}

/* Join a bunch to the part before it, if both together are few rows. */
static trl_err join(const parting *d, const bunch *b, bool *joined)
{
    trli_model *model = d->program->model;
    trli_step_part *last = d->parts->n > 0 ? &d->parts->part[d->parts->n - 1] : NULL;
    trli_step_part both = {.nroots = b->n};
    trl_err err = TRL_OK;
    *joined = false;
    if (!last || rows_of(&last->reads, last->nroots) + b->n > ROWS_MOST) return TRL_OK;
    both.nroots += last->nroots;
    both.root = trli_model_keep(model, (size_t)both.nroots * sizeof *both.root);
    both.value = trli_model_keep(model, (size_t)both.nroots * sizeof *both.value);
    if (!both.root || !both.value) return d->ir->err;
    int left = 0, right = 0; /* results stay ascending */
    for (int r = 0; r < both.nroots; ++r) {
        const bool from_left = right == b->n || (left < last->nroots && last->root[left] < b->root[right]);
        both.root[r] = from_left ? last->root[left++] : b->root[right++];
        both.value[r] = d->step->value[both.root[r]];
    }
    TRL_TRY(find_reads(d, &both));
    *joined = rows_of(&both.reads, both.nroots) <= ROWS_MOST && d->walk->count <= WHOLE_MOST;
    trli_reads_free(*joined ? &last->reads : &both.reads);
    if (*joined) *last = both;
done:
    return err;
}

static trl_err add_part(parting *d, const bunch *b)
{
    bool joined;
    trl_err err = TRL_OK;
    TRL_TRY(join(d, b, &joined));
    if (!joined) err = trli_parting_add(d, b->n, b->root);
done:
    return err;
}

/* ---- what results have in common ---- */

typedef struct costs {
    int *cost;      /* by place in the walk: additions that computing it again at a point costs */
    int *once;      /* the same where it is computed outside of the loop over points, for all that it serves */
    int32_t *owner; /* the last result seen to need it, or -1 */
    int32_t *stack;
    int *parent; /* by result of the bunch: a forest of those together */
} costs;

static int capped(int cost)
{
    return cost < COST_MOST ? cost : COST_MOST;
}

/* Where a value varies along x and y it is computed at each point. */
static bool is_of_points(const parting *d, const trli_node *n)
{
    const unsigned point = d->program->model->layout->grid.dim > 1 ? 3 : 1;
    return (n->varies & point) == point;
}

static void find_costs(const parting *d, costs *c)
{
    for (int32_t i = 0; i < d->walk->count; ++i) {
        const trli_node *n = trli_ir_node(d->ir, d->walk->list[i]);
        const bool leaf = n->op == TRLI_OP_FIELD || n->op == TRLI_OP_SCALAR || n->op == TRLI_OP_CONSTANT;
        int at_point = 0, once = leaf ? 0 : (int)trli_op_additions(n->op, n->index, DIVISION_COST, TRLI_EXP_FLOPS);
        if (is_of_points(d, n)) at_point = once;
        for (int o = 0; o < trli_op_operands(n->op); ++o) {
            const int32_t at = d->walk->place[n->arg[o]];
            at_point = capped(at_point + c->cost[at]);
            once = capped(once + c->once[at]);
        }
        c->once[i] = once;
        c->cost[i] = is_of_points(d, n) ? at_point : 0;
        c->owner[i] = -1;
    }
}

static int root_of(int *parent, int r)
{
    while (parent[r] != r) r = parent[r] = parent[parent[r]];
    return r;
}

/* Visit what a result needs; what another one needs too, and costs much, keeps them together. */
static void visit(const parting *d, costs *c, int r, trli_ir_value value, int least)
{
    int32_t depth = 0;
    c->stack[depth++] = d->walk->place[value];
    while (depth > 0) {
        const int32_t at = c->stack[--depth], owner = c->owner[at];
        const trli_node *n = trli_ir_node(d->ir, d->walk->list[at]);
        const int cost = is_of_points(d, n) ? c->cost[at] : c->once[at] / HOISTED;
        if (owner == r) continue;
        if (owner >= 0 && cost >= least) {
            const int a = root_of(c->parent, owner), b = root_of(c->parent, r);
            c->parent[a < b ? b : a] = a < b ? a : b;
            continue;
        }
        c->owner[at] = r;
        for (int o = 0; o < trli_op_operands(n->op); ++o) c->stack[depth++] = d->walk->place[n->arg[o]];
    }
}

static trl_err divide(parting *d, const bunch *b, int level);

/* The results of each tree of the forest, in their order: in `sorted` one tree after the other. */
static trl_err divide_forest(parting *d, const bunch *b, int *parent, int *sorted, int level)
{
    trl_err err = TRL_OK;
    int n = 0;
    for (int first = 0; first < b->n; ++first) {
        bunch tree = {.root = sorted + n};
        if (root_of(parent, first) != first) continue;
        for (int r = first; r < b->n; ++r)
            if (root_of(parent, r) == first) tree.root[tree.n++] = b->root[r];
        n += tree.n;
        TRL_TRY(divide(d, &tree, level));
    }
done:
    return err;
}

/* What has to be cut through: results in their order, as many at a time as are not too long. */
static trl_err chop(parting *d, const bunch *b, trli_ir_value *value)
{
    trl_err err = TRL_OK;
    for (int first = 0, end; first < b->n; first = end) {
        bunch piece = {.root = b->root + first};
        for (end = first; end < b->n; ++end) {
            piece.n = end + 1 - first;
            TRL_TRY(walk(d, &piece, value));
            if (piece.n > 1 && d->walk->count > PART_MOST) break;
        }
        piece.n = end - first;
        TRL_TRY(add_part(d, &piece));
    }
done:
    return err;
}

/* Divide results that are too long for one part, or that nothing of this level or the next ones keeps together. */
static trl_err divide(parting *d, const bunch *b, int level)
{
    trl_context *ctx = d->ir->ctx;
    trli_ir_value *value = trli_new(ctx, (size_t)b->n, sizeof *value);
    int *sorted = trli_new(ctx, (size_t)b->n, sizeof *sorted);
    costs c = {0};
    trl_err err = TRL_OK;
    if (!value || !sorted) TRL_TRY(no_memory(d));
    TRL_TRY(walk(d, b, value));
    const size_t n = (size_t)d->walk->count;
    if (level > 0 && (b->n == 1 || n <= PART_MOST)) TRL_TRY(add_part(d, b));
    if (level > 0 && (b->n == 1 || n <= PART_MOST)) goto done;
    if (level == LEVELS) {
        err = chop(d, b, value);
        goto done;
    }
    c = (costs){.cost = trli_new(ctx, n, sizeof *c.cost),
                .once = trli_new(ctx, n, sizeof *c.once),
                .owner = trli_new(ctx, n, sizeof *c.owner),
                .stack = trli_new(ctx, 3 * n + 1, sizeof *c.stack),
                .parent = trli_new(ctx, (size_t)b->n, sizeof *c.parent)};
    if (!c.cost || !c.once || !c.owner || !c.stack || !c.parent) TRL_TRY(no_memory(d));
    find_costs(d, &c);
    for (int r = 0; r < b->n; ++r) c.parent[r] = r;
    for (int r = 0; r < b->n; ++r) visit(d, &c, r, value[r], together[level]);
    err = divide_forest(d, b, c.parent, sorted, level + 1);
done:
    trli_free(value);
    trli_free(sorted);
    trli_free(c.cost);
    trli_free(c.once);
    trli_free(c.owner);
    trli_free(c.stack);
    trli_free(c.parent);
    return err;
}

/* ---- all of it ---- */

trl_err trli_parting_end(parting *d)
{
    int *read = trli_new(d->ir->ctx, (size_t)d->plan->ninputs + 1, sizeof *read);
    trl_err err = TRL_OK;
    if (!read) return no_memory(d);
    for (int i = 0; i < d->parts->n; ++i) {
        trli_step_part *part = &d->parts->part[i];
        TRL_TRY(find_inputs(d, part));
        for (int f = 0; f < part->reads.nfields; ++f) ++read[part->input[f]];
    }
    for (int i = 0; i < d->plan->ninputs; ++i) {
        const trl_offsets hull = trl_footprint_hull(&d->plan->reads.footprint[i]);
        if (read[i] > 1) d->parts->shared_rows += 1 + hull.hi[2] - hull.lo[2];
    }
done:
    trli_free(read);
    return err;
}

static void free_parts(trli_parts *parts)
{
    for (int i = 0; i < parts->n && !parts->whole; ++i) trli_reads_free(&parts->part[i].reads);
    trli_free(parts->part);
    *parts = (trli_parts){0};
}

static trl_err divide_step(parting *d, const bunch *all)
{
    trl_err err = TRL_OK;
    TRL_TRY(divide(d, all, 0));
    if (d->parts->n > 1) return trli_parting_end(d);
    free_parts(d->parts);
    d->capacity = 0;
    err = trli_parting_add_whole(d);
done:
    return err;
}

/* Look up the step's inputs and slabs by field. */
static trl_err index_fields(parting *d)
{
    const trli_step_plan *p = d->plan;
    d->next = trli_new(d->ir->ctx, (size_t)p->nslabs + 1, sizeof *d->next);
    if (!d->next) return no_memory(d);
    for (int i = 0; i < p->ninputs; ++i) {
        d->input_of[p->input[i]] = i;
        d->slab_of[p->input[i]] = -1;
    }
    for (int k = p->nslabs - 1; k >= 0; --k) {
        if (!p->slab[k].of_row) continue;
        d->next[k] = d->slab_of[p->slab[k].field];
        d->slab_of[p->slab[k].field] = k;
    }
    return TRL_OK;
}

static trl_err part_step(parting *d)
{
    const trli_step *s = d->step;
    bunch all = {.n = s->nout, .root = trli_new(d->ir->ctx, (size_t)s->nout, sizeof *all.root)};
    trl_err err = TRL_OK;
    if (!all.root) return no_memory(d);
    for (int r = 0; r < s->nout; ++r) all.root[r] = r;
    TRL_TRY(trli_ir_walk(d->ir, d->walk, s->nout, s->value));
    const bool groups = !(d->program->model->settings.disabled_passes & TRL_PASS_GROUPS);
    err = groups && d->walk->count > WHOLE_MOST ? divide_step(d, &all) : trli_parting_add_whole(d);
done:
    trli_free(all.root);
    return err;
}

trl_err trli_parting_run(trli_program *program, trl_err (*decide)(trli_parting *), trli_parts **parts)
{
    trli_model *model = program->model;
    int *input_of = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *input_of);
    int *slab_of = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *slab_of);
    trl_err err = TRL_OK;
    *parts = trli_new(model->ctx, (size_t)program->nsteps + 1, sizeof **parts);
    if (!*parts || !input_of || !slab_of)
        TRL_TRY(trli_no_memory(model->ctx, NULL, "for the parts of %d steps", program->nsteps));
    for (int i = 0; i < program->nsteps; ++i) {
        parting d = {.program = program,
                     .step = &program->step[i],
                     .plan = &program->plan->step[i],
                     .ir = &model->ir,
                     .walk = &model->walk,
                     .parts = &(*parts)[i],
                     .input_of = input_of,
                     .slab_of = slab_of};
        if (!d.plan->live || d.step->kind != TRLI_STEP_KERNEL) continue;
        err = index_fields(&d);
        if (err == TRL_OK) err = decide(&d);
        trli_free(d.next);
        TRL_TRY(err);
    }
done:
    trli_free(input_of);
    trli_free(slab_of);
    return err;
}

trl_err trli_program_part(trli_program *program)
{
    return trli_parting_run(program, part_step, &program->parts);
}

static void destroy_parts(const trli_program *program, trli_parts **parts)
{
    for (int i = 0; *parts && i < program->nsteps; ++i) free_parts(&(*parts)[i]);
    trli_free(*parts);
    *parts = NULL;
}

void trli_parts_destroy(trli_program *program)
{
    destroy_parts(program, &program->parts);
    destroy_parts(program, &program->gpu_parts);
}
