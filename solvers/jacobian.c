/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The Jacobian of the semi-discrete system by blocks: for each equation and unknown the derivatives at all offsets, as
 * values of the IR, and of these what a bound of the eigenvalues needs. With M_ij the largest sum of magnitudes of a
 * block over all points, the spectral radius of the Jacobian is at most that of M (the norm of each block being at most
 * M_ij). */
#include <math.h>
#include <string.h>

#include "limit_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"
#include "spatialops_impl.h"
#include "spectrum_impl.h"

enum {
    ROW_BUDGET = 40000, /* entries of lists for one row; beyond, the row is one sum */
    SUMS_IN_ONE = 32,   /* rows that one reduction takes, where rows are sums */
    MOST_REDUCTIONS = 600
};

/* A block in the making. */
typedef struct draft {
    trli_coupling block;
    trli_ir_value part[TRLI_COUPLING_PARTS]; /* at a point; TRLI_NO_VALUE: not known */
} draft;

typedef struct builder {
    trl_simulation *sim;
    trli_instance *in;
    trli_ir *ir;
    trli_partials *partials;
    trli_jacobian *jacobian;
    bool mark_all;
    bool coarse; /* rows became too long */
    int long_rows;
    draft *draft;
    int ndrafts, capacity;
} builder;

static trl_err no_memory(const builder *b)
{
    return trli_no_memory(b->sim->ctx, NULL, "for the Jacobian of %d equations", b->sim->nequations);
}

/* ---- values ---- */

static trli_ir_value constant(builder *b, double x)
{
    return trli_ir_constant(b->ir, x);
}

static trli_ir_value magnitude(builder *b, trli_ir_value v)
{
    return trli_ir_unary(b->ir, TRLI_OP_ABS, v);
}

static trli_ir_value add(builder *b, trli_ir_value sum, trli_ir_value v)
{
    return sum < 0 ? v : trli_ir_binary(b->ir, TRLI_OP_ADD, sum, v);
}

static trli_ir_value scaled(builder *b, double factor, trli_ir_value v)
{
    return factor == 1 ? v : trli_ir_binary(b->ir, TRLI_OP_MUL, constant(b, factor), v);
}

/* ---- the parts of a block ---- */

/* The entries of one unknown, and where its points lie: at offset + shift from the equation's, in half cells. */
typedef struct group {
    const trli_partial_derivative *entry;
    int n;
    int shift[3];
} group;

static int twice(const group *g, int i, int axis)
{
    return 2 * g->entry[i].offset[axis] + g->shift[axis];
}

static trli_ir_value mirrored(const group *g, int i)
{
    for (int k = 0; k < g->n; ++k) {
        bool is = !g->entry[k].everywhere;
        for (int a = 0; a < 3; ++a) is &= twice(g, k, a) == -twice(g, i, a);
        if (is) return g->entry[k].value;
    }
    return TRLI_NO_VALUE;
}

static bool at_point(const group *g, int i)
{
    return !g->entry[i].everywhere && twice(g, i, 0) == 0 && twice(g, i, 1) == 0 && twice(g, i, 2) == 0;
}

static void add_entry(builder *b, const group *g, int i, draft *d)
{
    const trli_partial_derivative *e = &g->entry[i];
    if (e->bound >= 0) {
        d->part[TRLI_COUPLING_SIZE] = add(b, d->part[TRLI_COUPLING_SIZE], e->bound);
        d->part[TRLI_COUPLING_UNSIGNED] = add(b, d->part[TRLI_COUPLING_UNSIGNED], e->bound);
        d->part[TRLI_COUPLING_DISC] = add(b, d->part[TRLI_COUPLING_DISC], e->bound);
    }
    if (e->value < 0) return;
    const trli_ir_value size = magnitude(b, e->value), other = mirrored(g, i), half = constant(b, 0.5);
    trli_ir_value even = size, odd = size;
    if (other >= 0) {
        even = magnitude(b, trli_ir_binary(b->ir, TRLI_OP_ADD, e->value, other));
        odd = magnitude(b, trli_ir_binary(b->ir, TRLI_OP_SUB, e->value, other));
        even = trli_ir_binary(b->ir, TRLI_OP_MUL, half, even);
        odd = trli_ir_binary(b->ir, TRLI_OP_MUL, half, odd);
    }
    d->part[TRLI_COUPLING_SIZE] = add(b, d->part[TRLI_COUPLING_SIZE], size);
    d->part[TRLI_COUPLING_EVEN] = add(b, d->part[TRLI_COUPLING_EVEN], even);
    d->part[TRLI_COUPLING_ODD] = add(b, d->part[TRLI_COUPLING_ODD], odd);
    d->part[TRLI_COUPLING_DISC] = add(b, d->part[TRLI_COUPLING_DISC], at_point(g, i) ? e->value : size);
}

/* The largest of two, and of nothing the other. */
static trli_ir_value larger(builder *b, trli_ir_value a, trli_ir_value v)
{
    return a < 0 ? v : trli_ir_binary(b->ir, TRLI_OP_MAX, a, v);
}

static trli_ir_value negative(builder *b, trli_ir_value v)
{
    return trli_ir_unary(b->ir, TRLI_OP_NEG, v);
}

/* cos and sin of k pi/4. */
static double cosine(int k)
{
    static const double table[8] = {1, M_SQRT1_2, 0, -M_SQRT1_2, -1, -M_SQRT1_2, 0, M_SQRT1_2};
    return table[(k % 8 + 8) % 8];
}

static double sine(int k)
{
    return cosine(k - 2);
}

/* The real part of the symbol at each corner of wave numbers, 0 or pi along each axis, and the imaginary part at pi/2
 * along one. */
static void add_symbol(builder *b, const group *g, draft *d)
{
    const int dim = b->ir->grid->dim;
    for (int corner = 0; corner < 1 << dim; ++corner) {
        trli_ir_value real = constant(b, 0);
        for (int i = 0; i < g->n; ++i) {
            double factor = 1;
            for (int a = 0; a < dim; ++a)
                if (corner >> a & 1) factor *= cosine(2 * twice(g, i, a));
            if (g->entry[i].value >= 0 && !g->entry[i].everywhere && factor != 0)
                real = add(b, real, scaled(b, factor, g->entry[i].value));
        }
        d->part[TRLI_COUPLING_REAL_MOST] = larger(b, d->part[TRLI_COUPLING_REAL_MOST], real);
        d->part[TRLI_COUPLING_REAL_LEAST] = larger(b, d->part[TRLI_COUPLING_REAL_LEAST], negative(b, real));
    }
    for (int a = 0; a < dim; ++a) {
        trli_ir_value imaginary = constant(b, 0);
        for (int i = 0; i < g->n; ++i) {
            const double factor = sine(twice(g, i, a));
            if (g->entry[i].value >= 0 && !g->entry[i].everywhere && factor != 0)
                imaginary = add(b, imaginary, scaled(b, factor, g->entry[i].value));
        }
        d->part[TRLI_COUPLING_X_MOST + 2 * a] = imaginary;
        d->part[TRLI_COUPLING_X_LEAST + 2 * a] = negative(b, imaginary);
    }
}

static bool is_constant(const builder *b, trli_ir_value v)
{
    return trli_ir_node(b->ir, v)->op == TRLI_OP_CONSTANT;
}

static bool all_constant(const builder *b, const group *g)
{
    for (int i = 0; i < g->n; ++i) {
        if (g->entry[i].value >= 0 && !is_constant(b, g->entry[i].value)) return false;
        if (g->entry[i].bound >= 0 && !is_constant(b, g->entry[i].bound)) return false;
    }
    return true;
}

static trl_err add_block(builder *b, int row, int column, group *g)
{
    const trli_variable *variable = b->sim->model->variable;
    if (!trli_make_room(b->sim->ctx, &b->draft, b->ndrafts, 1, &b->capacity, sizeof *b->draft)) return no_memory(b);
    draft *d = &b->draft[b->ndrafts++];
    *d = (draft){.block = {.row = row, .column = column}};
    for (int p = 0; p < TRLI_COUPLING_PARTS; ++p) d->part[p] = TRLI_NO_VALUE;
    for (int a = 0; a < 3 && column >= 0; ++a)
        g->shift[a] = (int)(variable[row].location >> a & 1) - (int)(variable[column].location >> a & 1);
    for (int i = 0; i < g->n; ++i) {
        add_entry(b, g, i, d);
        d->block.wide |= !at_point(g, i);
    }
    for (int p = 0; p <= TRLI_COUPLING_DISC; ++p)
        if (d->part[p] < 0) d->part[p] = constant(b, 0);
    /* Signs decide little where a method is stable on both axes: they are worth operations on constants, not
     * reductions. */
    if (all_constant(b, g) || b->sim->integrator->imaginary == 0) add_symbol(b, g, d);
    return b->ir->err;
}

/* ---- rows ---- */

static int compare_column(const trli_partial_derivative *a, const trli_partial_derivative *b)
{
    return a->variable - b->variable;
}

/* Entries of marked and of other parts of formulas are derivatives by the same unknown: at one offset they add up. */
static int join(builder *b, trli_partial_derivative *entry, int n)
{
    int kept = 0;
    for (int i = 0; i < n; ++i) {
        int k = 0;
        for (; k < kept; ++k)
            if (entry[k].everywhere == entry[i].everywhere &&
                memcmp(entry[k].offset, entry[i].offset, sizeof entry[k].offset) == 0)
                break;
        if (k == kept) {
            entry[kept++] = entry[i];
            continue;
        }
        if (entry[i].value >= 0) entry[k].value = add(b, entry[k].value, entry[i].value);
        if (entry[i].bound >= 0) entry[k].bound = add(b, entry[k].bound, entry[i].bound);
    }
    return kept;
}

static trl_err hidden_by_plugin(builder *b, int row)
{
    const trl_simulation *sim = b->sim;
    const trli_opaque *plugin = trli_partials_plugin(b->partials);
    if (!plugin) return TRL_OK;
    b->jacobian->plugin = plugin;
    if (sim->problem->time.cfl <= 0 || b->mark_all) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &sim->problem->time.dt_place,
                    "cfl cannot bound the equation of '%s': what type '%s' of '%s' computes has no derivative and no "
                    "stable_dt; give dt: {cfl: ..., speed: ..., diffusivity: ...}, or a fixed dt",
                    sim->equation[row].deck->name, plugin->type, plugin->name);
}

/* What is solved in each stage follows the others at once, and has no rate of its own. */
static bool is_solved(const builder *b, int variable)
{
    return variable >= 0 && variable < b->sim->nequations && b->sim->equation[variable].solve;
}

static trl_err add_row(builder *b, int row)
{
    trl_simulation *sim = b->sim;
    const trli_equation *eq = &sim->equation[row];
    const int own = b->mark_all ? -1 : row;
    const trli_partial_derivative *list;
    trli_partial_derivative *copy = NULL;
    trli_ir_value value;
    int n;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_at(b->in, eq->ddt, eq->deck->names, sim->model->variable[row].location, &value));
    TRL_TRY(trli_partials_of(b->partials, value, own, ROW_BUDGET, b->coarse, &list, &n));
    if (n < 0) {
        b->coarse = ++b->long_rows > 3; /* the next ones are likely to be as long */
        TRL_TRY(trli_partials_of(b->partials, value, own, INT32_MAX, true, &list, &n));
    }
    TRL_TRY(hidden_by_plugin(b, row));
    copy = trli_new(b->sim->ctx, (size_t)n + 1, sizeof *copy);
    if (!copy) return no_memory(b);
    int kept = 0;
    for (int i = 0; i < n; ++i)
        if (!(b->mark_all && list[i].no_cse) && !is_solved(b, list[i].variable)) copy[kept++] = list[i];
    for (int i = 0, next; i < kept; i = next) {
        for (next = i + 1; next < kept && compare_column(&copy[next], &copy[i]) == 0;) ++next;
        group g = {.entry = &copy[i], .n = join(b, &copy[i], next - i)};
        b->jacobian->by_sums |= copy[i].variable < 0;
        TRL_TRY(add_block(b, row, copy[i].variable, &g));
    }
done:
    trli_free(copy);
    return err;
}

/* ---- from values to quantities ---- */

double trli_quantity_value(const trl_simulation *sim, const trli_quantity *quantity)
{
    switch (quantity->kind) {
    case TRLI_QUANTITY_CONSTANT:
        return quantity->constant;
    case TRLI_QUANTITY_SCALAR:
        return sim->frame->scalar[quantity->scalar];
    default:
        return 0;
    }
}

trl_err trli_largest_value(trl_simulation *sim, trli_instance *in, int equation, trli_ir_value value,
                           trli_quantity *largest)
{
    trli_ir *ir = &sim->model->ir;
    trli_program *limit = sim->limit;
    const trl_location location = equation < 0 ? TRL_CELL : sim->model->variable[equation].location;
    trl_err err = TRL_OK;
    if (ir->err != TRL_OK) return ir->err;
    if (trli_ir_node(ir, value)->op == TRLI_OP_CONSTANT) {
        *largest = (trli_quantity){.kind = TRLI_QUANTITY_CONSTANT, .constant = trli_ir_node(ir, value)->number};
        return TRL_OK;
    }
    if (equation >= 0 && sim->equation[equation].mask) {
        const trli_equation *eq = &sim->equation[equation];
        trli_ir_value mask;
        TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, location, &mask));
        value = trli_ir_select(ir, mask, value, trli_ir_constant(ir, 0));
    }
    largest->kind = TRLI_QUANTITY_SCALAR;
    const int before = limit->nsteps;
    TRL_TRY(trli_program_reduce(limit, "stable dt", value, location, TRLI_REDUCE_MAX, false, NULL, &largest->scalar));
    /* A mere warning must not ask for boundary conditions that nothing else needs, nor for those that an expression has
     * in their place. */
    bool inside = sim->problem->time.cfl <= 0;
    for (int e = 0; e < sim->model->front->nentries && !inside; ++e) inside = sim->model->front->entry[e].has_boundary;
    if (limit->nsteps > before) limit->step[limit->nsteps - 1].reduce.inside = inside;
    err = trli_program_add_scalar_root(limit, largest->scalar);
done:
    return err;
}

/* Whether a value reads what a plugin computes: plugins do not run for a mere warning. */
static trl_err asks_plugins(builder *b, trli_ir_value value, bool *asks)
{
    const trli_model *model = b->sim->model;
    trli_walk *walk = &b->ir->spare; /* no maker is called meanwhile */
    int which;
    *asks = false;
    trl_err err = trli_ir_walk(b->ir, walk, 1, &value);
    for (int32_t i = 0; err == TRL_OK && i < walk->count && !*asks; ++i) {
        const trli_node n = *trli_ir_node(b->ir, walk->list[i]);
        if (n.op != TRLI_OP_FIELD || model->field[n.index].persistent) continue;
        const trli_step *producer = trli_program_producer(b->sim->limit, &n, &which);
        *asks = producer && producer->kind == TRLI_STEP_PLUGIN;
    }
    return err;
}

/* Whether a value reads farther than the patches are thick, or than right-hand sides read without storing what is
 * between: ghosts are not made deeper for a mere warning. */
static bool reads_far(const builder *b, trli_ir_value value)
{
    const trl_layout *layout = b->sim->layout;
    bool far = trli_ir_reaches_far(b->ir, value);
    for (int a = 0; a < layout->grid.dim; ++a)
        far |= trli_ir_node(b->ir, value)->reach[a] > trli_layout_thinnest(layout, a);
    return far;
}

static trl_err quantity_of(builder *b, int row, trli_ir_value value, trli_quantity *quantity)
{
    const bool warning = b->sim->problem->time.cfl <= 0;
    bool leave = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_partials_together(b->partials, value, &value));
    if (warning && b->sim->model->front->nentries) TRL_TRY(asks_plugins(b, value, &leave));
    if (!leave && !(warning && reads_far(b, value))) TRL_TRY(trli_largest_value(b->sim, b->in, row, value, quantity));
done:
    return err;
}

/* Which parts of a block are worth a reduction. */
static bool wanted(const builder *b, const draft *d, trli_coupling_part part)
{
    const trli_jacobian *j = b->jacobian;
    const trli_coupling *k = &d->block;
    if (d->part[part] < 0) return false;
    if (is_constant(b, d->part[part])) return true;
    const bool warning = b->sim->problem->time.cfl <= 0;
    if (k->row != k->column && j->component[k->row] != j->component[k->column])
        return warning && part == TRLI_COUPLING_SIZE;
    if (k->row == k->column && !k->wide) return part == TRLI_COUPLING_SIZE || part == TRLI_COUPLING_DISC;
    if (k->row == k->column) return part <= TRLI_COUPLING_REAL_LEAST;
    return part != TRLI_COUPLING_DISC;
}

static trl_err finish_blocks(builder *b)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < b->ndrafts; ++i)
        for (int p = 0; p < TRLI_COUPLING_PARTS; ++p)
            if (wanted(b, &b->draft[i], (trli_coupling_part)p))
                TRL_TRY(quantity_of(b, b->draft[i].block.row, b->draft[i].part[p], &b->draft[i].block.part[p]));
done:
    return err;
}

/* Rows as sums: the largest of all rows, some rows of one location in a reduction. */
static trl_err finish_sums(builder *b)
{
    trli_jacobian *j = b->jacobian;
    const trli_variable *variable = b->sim->model->variable;
    trl_err err = TRL_OK;
    j->by_sums = true;
    j->sum = trli_new(b->sim->ctx, (size_t)b->ndrafts + 1, sizeof *j->sum);
    if (!j->sum) return no_memory(b);
    for (int i = 0, next; i < b->ndrafts; i = next) {
        const int first = b->draft[i].block.row;
        trli_ir_value largest = TRLI_NO_VALUE, row = TRLI_NO_VALUE;
        int rows = 1;
        for (next = i; next < b->ndrafts; ++next) {
            const int here = b->draft[next].block.row;
            const bool other = next > i && here != b->draft[next - 1].block.row;
            if (other && (++rows > SUMS_IN_ONE || variable[here].location != variable[first].location ||
                          b->sim->equation[here].mask != b->sim->equation[first].mask))
                break;
            if (other) {
                largest = larger(b, largest, row);
                row = TRLI_NO_VALUE;
            }
            row = add(b, row, b->draft[next].part[TRLI_COUPLING_SIZE]);
        }
        TRL_TRY(quantity_of(b, first, larger(b, largest, row), &j->sum[j->nsums++]));
    }
done:
    return err;
}

/* ---- the whole ---- */

static trl_err find_components(builder *b)
{
    trli_jacobian *j = b->jacobian;
    const int n = j->n;
    int *column = trli_new(b->sim->ctx, (size_t)b->ndrafts + 1, sizeof *column);
    if (!column) return no_memory(b);
    for (int i = 0; i < b->ndrafts; ++i) {
        column[i] = b->draft[i].block.column < 0 ? b->draft[i].block.row : b->draft[i].block.column;
        ++j->first[b->draft[i].block.row + 1];
    }
    for (int v = 0; v < n; ++v) j->first[v + 1] += j->first[v];
    const trli_pattern pattern = {n, j->first, column};
    j->ncomponents = trli_components(b->sim->ctx, &pattern, j->component);
    trli_free(column);
    if (j->ncomponents < 0) return no_memory(b);
    j->begin = trli_new(b->sim->ctx, (size_t)j->ncomponents + 2, sizeof *j->begin);
    if (!j->begin) return no_memory(b);
    int *begin = j->begin, largest = 0;
    for (int v = 0; v < n; ++v)
        ++begin[j->component[v] + 2]; /* members are dealt with begin[c + 1] as the place of the next */
    for (int c = 0; c < j->ncomponents; ++c) {
        largest = begin[c + 2] > largest && begin[c + 2] <= TRLI_LARGEST_COMPONENT ? begin[c + 2] : largest;
        begin[c + 2] += begin[c + 1];
    }
    for (int v = 0; v < n; ++v) j->member[begin[j->component[v] + 1]++] = v;
    j->work = trli_new(b->sim->ctx, (size_t)TRLI_RATE_WORK(largest) + 1, sizeof *j->work);
    return j->work ? TRL_OK : no_memory(b);
}

/* Reductions are passes over the grid: so many, and no more. */
static bool too_many(const builder *b)
{
    int reductions = 0;
    for (int i = 0; i < b->ndrafts; ++i)
        for (int p = 0; p < TRLI_COUPLING_PARTS; ++p)
            reductions += wanted(b, &b->draft[i], (trli_coupling_part)p) && !is_constant(b, b->draft[i].part[p]);
    return reductions > MOST_REDUCTIONS;
}

static trl_err build(builder *b)
{
    trli_jacobian *j = b->jacobian;
    trl_err err = TRL_OK;
    TRL_TRY(trli_partials_create(b->in, &b->partials));
    for (int v = 0; v < j->n; ++v)
        if (b->sim->equation[v].ddt) TRL_TRY(add_row(b, v));
    TRL_TRY(find_components(b));
    TRL_TRY(j->by_sums || too_many(b) ? finish_sums(b) : finish_blocks(b));
    j->block = trli_new(b->sim->ctx, (size_t)b->ndrafts + 1, sizeof *j->block);
    if (!j->block) return no_memory(b);
    j->nblocks = b->ndrafts;
    for (int i = 0; i < b->ndrafts; ++i) j->block[i] = b->draft[i].block;
done:
    return err;
}

trl_err trli_jacobian_create(trl_simulation *sim, trli_instance *in, trli_marks *marks, bool mark_all,
                             const char **texts, trli_jacobian **jacobian)
{
    trl_err err = TRL_OK;
    const size_t n = (size_t)sim->nequations;
    trli_jacobian *j = *jacobian = trli_new(sim->ctx, 1, sizeof *j);
    builder b = {.sim = sim, .ir = &sim->model->ir, .jacobian = j, .mark_all = mark_all};
    if (!j) return no_memory(&b);
    *j = (trli_jacobian){.n = sim->nequations, .text = texts};
    j->first = trli_new(sim->ctx, n + 2, sizeof *j->first);
    j->component = trli_new(sim->ctx, n + 1, sizeof *j->component);
    j->member = trli_new(sim->ctx, n + 1, sizeof *j->member);
    if (!j->first || !j->component || !j->member) return no_memory(&b);
    trli_marks_sort(marks);
    TRL_TRY(trli_instance_marked(in, marks, &b.in));
    TRL_TRY(trli_instance_prepare(b.in));
    if (marks->n > 0) TRL_TRY(trli_instance_prepare(b.in->no_cse));
    TRL_TRY(build(&b));
done:
    trli_free(b.draft);
    trli_partials_destroy(&b.partials);
    trli_instance_marked_destroy(&b.in);
    return err;
}

void trli_jacobian_destroy(trli_jacobian **jacobian)
{
    trli_jacobian *j = *jacobian;
    *jacobian = NULL;
    if (!j) return;
    trli_free(j->block);
    trli_free(j->first);
    trli_free(j->component);
    trli_free(j->member);
    trli_free(j->begin);
    trli_free(j->sum);
    trli_free(j->work);
    trli_free(j);
}
