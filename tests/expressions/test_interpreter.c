/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The interpreter's kernels against evaluation of the IR node by node and point by point. */
#include <math.h>

#include "trl_test.h"

#include <kernel_impl.h>
#include <reads_impl.h>
#include <trl_limiter_body.h>

enum { FIELDS = 3, SCALARS = 3, GHOSTS = 4, MOST_ROOTS = 4 };

static trl_grid grid;
static trl_patch patch;
static trl_kernel_grid kernel_grid;
static trli_ir ir;
static trli_walk walk;
static trl_array field[FIELDS];
static double scalar[SCALARS];
static uint64_t state;
static void *scratch;
static size_t scratch_bytes;
static bool seen[TRLI_SCALED_END]; /* operations that a kernel checked has had */

static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static int pick(int n)
{
    return (int)(next_random() % (uint64_t)n);
}

/* Mostly numbers of which each operation rounds, some for which signs and zeros matter. */
static double number(void)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0};
    const int i = pick(20);
    return i < 4 ? special[i] : ((double)next_random() * 0x1p-31 - 0.5) * 3;
}

static trl_array new_array(const trl_box *box, int ghosts)
{
    trl_array a = {.owned = *box};
    size_t points = 1;
    for (int b = 0; b < 3; ++b) {
        const int own = b < grid.dim ? ghosts : 0;
        a.held.lo[b] = box->lo[b] - own;
        a.held.hi[b] = box->hi[b] + own;
        a.stride[b] = b < grid.dim ? (ptrdiff_t)points : 0;
        points *= (size_t)(a.held.hi[b] - a.held.lo[b]);
    }
    double *values = malloc(points * sizeof *values);
    if (!values) ck_abort_msg("no memory");
    for (size_t i = 0; i < points; ++i) values[i] = number();
    a.at = values - trl_array_offset(&a, a.held.lo[0], a.held.lo[1], a.held.lo[2]);
    return a;
}

static void free_array(trl_array *a)
{
    free((double *)a->at + trl_array_offset(a, a->held.lo[0], a->held.lo[1], a->held.lo[2]));
}

/* A patch of so many cells, the grid's first, and values of fields and scalars. */
static void begin(int dim, const int cells[3], uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15u + 1;
    grid = (trl_grid){.dim = dim};
    patch = (trl_patch){.id = 0};
    for (int a = 0; a < 3; ++a) {
        grid.cells[a] = patch.cells[a] = a < dim ? cells[a] : 1;
        grid.spacing[a] = 0.3 + 0.1 * a;
        grid.origin[a] = -0.7;
        grid.length[a] = grid.spacing[a] * (double)grid.cells[a];
        grid.periodic[a] = a == 1 && dim > 1;
    }
    kernel_grid = trli_kernel_grid_of(&(trli_kernel_run){.grid = &grid, .patch = &patch});
    ck_ok(trli_ir_init(&ir, test_ctx, &grid));
    const trl_box box = {{0, 0, 0}, {patch.cells[0], patch.cells[1], patch.cells[2]}};
    for (int f = 0; f < FIELDS; ++f) field[f] = new_array(&box, GHOSTS);
    for (int s = 0; s < SCALARS; ++s) scalar[s] = number();
}

static void end(void)
{
    for (int f = 0; f < FIELDS; ++f) free_array(&field[f]);
    trli_walk_free(&walk);
    trli_ir_free(&ir);
}

/* The definition of a value. */
static double value_at(trli_ir_value v, const trl_lidx p[3])
{
    const trli_node *n = trli_ir_node(&ir, v);
    trl_lidx at[3];
    double x[3] = {0};
    for (int a = 0; a < 3; ++a) at[a] = p[a] + n->shift[a];
    for (int o = 0; o < trli_op_operands((trli_op)n->op); ++o) x[o] = value_at(n->arg[o], at);
    switch ((trli_op)n->op) {
    case TRLI_OP_CONSTANT:
        return n->number;
    case TRLI_OP_SCALAR:
        return scalar[n->index];
    case TRLI_OP_FIELD:
        return ((double *)field[n->index].at)[trl_array_offset(&field[n->index], p[0], p[1], p[2])];
    case TRLI_OP_COORDINATE:
        return trl_kernel_coordinate(&kernel_grid, n->index, n->bit ? 0.0 : 0.5, p[n->index]);
    case TRLI_OP_AT_SIDE:
        return p[n->index / 2] == (n->index % 2 ? grid.cells[n->index / 2] : 0);
    case TRLI_OP_SHIFT:
        return x[0];
    case TRLI_OP_ADD:
        return x[0] + x[1];
    case TRLI_OP_SUB:
        return x[0] - x[1];
    case TRLI_OP_MUL:
        return x[0] * x[1];
    default:
        return trli_op_evaluate(n->op, n->index, x);
    }
}

/* Registers begin as NaN, or as what the kernel before has left. */
static void reserve_scratch(size_t bytes)
{
    if (bytes <= scratch_bytes) return;
    free(scratch);
    scratch_bytes = (2 * bytes + 63) / 64 * 64;
    scratch = aligned_alloc(64, scratch_bytes);
    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0xff, scratch_bytes);
}

static void free_scratch(void)
{
    free(scratch);
    scratch = NULL;
    scratch_bytes = 0;
}

/* Check writes a file with each assertion, which takes longer than a point. */
static void check_root(trli_ir_value root, const trl_array *output, const char *what)
{
    const trl_box *box = &output->owned;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
                const double expected = value_at(root, (trl_lidx[3]){i, j, k});
                const double found = ((double *)output->at)[trl_array_offset(output, i, j, k)];
                if (memcmp(&found, &expected, sizeof found) == 0 || (isnan(found) && isnan(expected))) continue;
                ck_abort_msg("%s: value %d at (%d, %d, %d) of %d-D is %.17g, not %.17g", what, root, i, j, k, grid.dim,
                             found, expected);
            }
}

/* The bits of all points that a kernel of the roots computes are those of the definition, but for the sign and payload
 * of NaNs. */
static void check(int nroots, const trli_ir_value *roots, bool exceeds_caches, const char *what)
{
    const trl_box box = field[0].owned;
    trl_array input[FIELDS], output[MOST_ROOTS];
    trli_kernel *kernel;
    trli_reads reads;
    if (ir.err != TRL_OK || trli_reads_find(&ir, &walk, nroots, roots, &reads) != TRL_OK ||
        trli_kernel_create(&ir, &walk, &reads, nroots, roots, &kernel) != TRL_OK)
        ck_abort_msg("%s: %s", what, test_messages());
    for (int i = 0; i < kernel->ninstructions; ++i) seen[kernel->instruction[i].op] = true;
    reserve_scratch(trli_kernel_scratch(kernel));
    for (int i = 0; i < reads.nfields; ++i) input[i] = field[reads.field[i]];
    for (int r = 0; r < nroots; ++r) output[r] = new_array(&box, 0);
    const trli_kernel_run run = {.grid = &grid,
                                 .patch = &patch,
                                 .input = input,
                                 .output = output,
                                 .scalar = scalar,
                                 .scratch = scratch,
                                 .exceeds_caches = exceeds_caches};
    trli_kernel_evaluate(kernel, &run, &box);
    for (int r = 0; r < nroots; ++r) check_root(roots[r], &output[r], what);
    for (int r = 0; r < nroots; ++r) free_array(&output[r]);
    trli_kernel_destroy(&kernel);
    trli_reads_free(&reads);
}

static trli_ir_value binary(trli_op op, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(&ir, op, a, b);
}

/* A root that does not vary along all axes is written by a copy, after whatever else reads it. */
START_TEST(a_root_that_another_goes_on_with_is_stored)
{
    static const int cells[] = {5, 4, 3};
    for (int dim = 1; dim <= 3; ++dim) {
        begin(dim, cells, (uint64_t)dim);
        const trli_ir_value f = trli_ir_field(&ir, 0), s = trli_ir_scalar(&ir, 0), x = trli_ir_coordinate(&ir, 0, 0);
        const trli_ir_value uniform = binary(TRLI_OP_MUL, s, trli_ir_constant(&ir, 0.3));
        const trli_ir_value along_x = binary(TRLI_OP_SUB, x, s);
        const trli_ir_value step = binary(TRLI_OP_MUL, uniform, trli_ir_scalar(&ir, 1));
        const trli_ir_value more = binary(TRLI_OP_MUL, along_x, trli_ir_scalar(&ir, 2));
        const trli_ir_value roots[] = {binary(TRLI_OP_ADD, f, step), uniform, along_x, binary(TRLI_OP_ADD, f, more)};
        check(4, roots, false, "rates and what they lead to");
        check(4, roots, true, "rates and what they lead to, by streaming stores");
        end();
    }
}
END_TEST

/* What an operand may be. */
typedef enum leaf {
    LEAF_CONSTANT,
    LEAF_SCALAR,
    LEAF_FIELD,
    LEAF_SHIFTED, /* a field, elsewhere */
    LEAF_ALONG_X, /* a coordinate */
    LEAF_ALONG_LAST,
    LEAF_SIDE,     /* varies along the last axis */
    LEAF_UNIFORM,  /* computed, one value for all points */
    LEAF_COMPUTED, /* at each point */
    LEAF_COMPUTED_ELSEWHERE,
    LEAF_COMPUTED_ALONG_X,
    LEAF_COUNT
} leaf;

static trli_ir_value shifted(trli_ir_value v)
{
    return trli_ir_shift(&ir, v, pick(grid.dim), pick(2) ? 1 : -1);
}

static trli_ir_value leaf_of(leaf kind)
{
    const trli_ir_value f = trli_ir_field(&ir, pick(FIELDS)), s = trli_ir_scalar(&ir, pick(SCALARS));
    const trli_ir_value x = trli_ir_coordinate(&ir, 0, pick(2));
    switch (kind) {
    case LEAF_CONSTANT:
        return trli_ir_constant(&ir, 1.25 + pick(3) / 3.0);
    case LEAF_SCALAR:
        return s;
    case LEAF_FIELD:
        return f;
    case LEAF_SHIFTED:
        return shifted(f);
    case LEAF_ALONG_X:
        return x;
    case LEAF_ALONG_LAST:
        return trli_ir_coordinate(&ir, grid.dim - 1, 0);
    case LEAF_SIDE:
        return trli_ir_at_side(&ir, grid.dim - 1, pick(2));
    case LEAF_UNIFORM:
        return trli_ir_unary(&ir, TRLI_OP_ABS, s);
    case LEAF_COMPUTED:
        return trli_ir_unary(&ir, TRLI_OP_ABS, f);
    case LEAF_COMPUTED_ELSEWHERE:
        return shifted(trli_ir_unary(&ir, TRLI_OP_ABS, f));
    default:
        return trli_ir_unary(&ir, TRLI_OP_ABS, x);
    }
}

/* The operands of a value that is being made, and how many are taken. */
typedef struct operands {
    leaf kind[TRLI_OPERANDS];
    int taken;
} operands;

static trli_ir_value take(operands *from)
{
    return leaf_of(from->kind[from->taken++]);
}

static const struct merge {
    trli_op outer;
    int inner, position, chain;
} merges[] = {
#define MERGE(outer, inner, position, chain) {TRLI_OP_##outer, TRLI_##inner, position, TRLI_##chain},
    TRLI_MERGE_LIST(MERGE)
#undef MERGE
};
enum { MERGES = sizeof merges / sizeof *merges };

static trli_ir_value merged(const struct merge *m, operands *from, trli_ir_value *inner);

static bool is_difference(int op)
{
    return op == TRLI_SCALED_GRADIENTS || op == TRLI_SCALED_FLUXES;
}

/* A value of which an operation, or a chain, is the last one. */
static trli_ir_value made_by(int op, operands *from)
{
    trli_ir_value inner;
    if (op < TRLI_OP_COUNT) {
        const trli_ir_value a = take(from);
        return binary((trli_op)op, a, take(from));
    }
    if (is_difference(op)) {
        const trli_ir_value flux = made_by(op == TRLI_SCALED_FLUXES ? TRLI_SCALED_FLUX : TRLI_CHAIN_SUB_MUL, from);
        const trli_ir_value there = trli_ir_shift(&ir, flux, pick(grid.dim), 1);
        const int side = pick(3);
        return binary(TRLI_OP_SUB, side ? there : flux, side == 1 ? flux : shifted(flux));
    }
    const int first = pick(MERGES);
    for (int i = 0; i < MERGES; ++i)
        if (merges[(first + i) % MERGES].chain == op) return merged(&merges[(first + i) % MERGES], from, &inner);
    ck_abort_msg("no merge makes operation %d", op);
    return TRLI_NO_VALUE;
}

static trli_ir_value merged(const struct merge *m, operands *from, trli_ir_value *inner)
{
    *inner = made_by(m->inner, from);
    const trli_ir_value other = take(from);
    return binary(m->outer, m->position ? other : *inner, m->position ? *inner : other);
}

/* Who else needs the value v, or the one that it is made of. */
static int add_roots(trli_ir_value v, trli_ir_value inner, trli_ir_value roots[MOST_ROOTS])
{
    const int others = pick(8);
    roots[0] = v;
    roots[1] = others == 1   ? inner
               : others == 2 ? shifted(inner)
               : others == 3 ? v
               : others == 4 ? binary(TRLI_OP_MUL, v, leaf_of(LEAF_FIELD))
                             : shifted(v);
    if (others == 6) roots[0] = binary(TRLI_OP_SUB, v, shifted(v));
    if (others == 7) roots[0] = trli_ir_unary(&ir, TRLI_OP_NEG, binary(TRLI_OP_SUB, v, inner));
    return others == 0 ? 1 : 2;
}

/* Boxes of one point along some axes; rows shorter than vectors, as long, longer than tiles. */
static void begin_some(int dim, int number)
{
    static const int cells[][3] = {{1, 1, 1}, {5, 3, 2}, {1, 4, 3}, {8, 1, 1}, {4, 1, 3}, {2, 5, 1},
                                   {9, 2, 2}, {1, 1, 4}, {3, 1, 1}, {1, 6, 1}, {17, 2, 1}};
    enum { SHAPES = sizeof cells / sizeof *cells };
    static const int long_rows[3] = {1100, 2, 1};
    begin(dim, number % 37 == 36 ? long_rows : cells[number % SHAPES], (uint64_t)number);
}

/* Operands of a chain's parts; a difference takes the first two of a flux twice. */
static int operands_of(int op, bool *differs)
{
    *differs |= is_difference(op);
    if (is_difference(op)) return op == TRLI_SCALED_GRADIENTS ? 3 : 4;
    for (int i = 0; i < MERGES; ++i)
        if (merges[i].chain == op) return operands_of(merges[i].inner, differs) + 1;
    return 2;
}

/* Every choice of operands where there are few; else as many of them, half of which are such as the chain's loop takes,
 * or all but one. */
static void choose_operands(int number, int chain, int count, bool differs, operands *from)
{
    static const leaf at_points[] = {LEAF_FIELD, LEAF_SHIFTED, LEAF_COMPUTED, LEAF_COMPUTED_ELSEWHERE, LEAF_ALONG_X};
    const unsigned scales = trli_row_scales(chain);
    const bool all = count <= 3, fitting = pick(2);
    const int other = pick(2 * count);
    *from = (operands){.taken = 0};
    for (int o = 0; o < count; ++o, number /= LEAF_COUNT) {
        const bool scale = scales >> (o + (differs && o > 1 ? 2 : 0)) & 1;
        from->kind[o] = all                      ? (leaf)(number % LEAF_COUNT)
                        : !fitting || o == other ? (leaf)pick(LEAF_COUNT)
                        : scale                  ? (leaf)pick(LEAF_SCALAR + 1)
                                                 : at_points[pick(sizeof at_points / sizeof *at_points)];
    }
}

/* All that the interpreter merges, with all kinds of operands. */
START_TEST(a_merged_operation_rounds_as_its_parts_do)
{
    enum { ALL = LEAF_COUNT * LEAF_COUNT * LEAF_COUNT, SOME = TEST_SANITIZED ? 128 : 400, ONE_GRID = 64 };
    const struct merge *m = &merges[_i];
    bool differs = false;
    const int count = operands_of(m->chain, &differs), cases = count <= 3 ? ALL : SOME;
    operands from;
    for (int dim = 1; dim <= 3; ++dim) {
        if (!test_has(dim + _i, TEST_SANITIZED ? 3 : 1)) continue;
        seen[m->chain] = false;
        for (int c = 0; c < cases; ++c) {
            trli_ir_value inner, roots[MOST_ROOTS];
            char what[80];
            if (c % ONE_GRID == 0) begin_some(dim, ALL / ONE_GRID * _i + c / ONE_GRID);
            choose_operands(c, m->chain, count, differs, &from);
            const trli_ir_value v = merged(m, &from, &inner);
            if (from.taken != count) ck_abort_msg("merge %d has %d operands, not %d", _i, from.taken, count);
            snprintf(what, sizeof what, "merge %d, case %d", _i, c);
            check(add_roots(v, inner, roots), roots, pick(4) == 0, what);
            if (c % ONE_GRID == ONE_GRID - 1 || c == cases - 1) end();
        }
        ck_assert_msg(seen[m->chain], "no kernel in %d-D has chain %d", dim, m->chain);
    }
}
END_TEST

START_TEST(every_chain_has_a_merge)
{
    for (int op = TRLI_CHAIN_COPY + 1; op < TRLI_SCALED_END; ++op) {
        bool found = is_difference(op);
        for (int i = 0; i < MERGES; ++i) found |= merges[i].chain == op;
        ck_assert_msg(found, "nothing makes chain %d", op);
    }
}
END_TEST

/* An operation with an index has as many meanings. */
static int meanings_of(trli_op op)
{
    int functions;
    (void)trl_functions(&functions);
    return op == TRLI_OP_LIMIT ? TRL_LIMITER_COUNT : op == TRLI_OP_FUNCTION1 || op == TRLI_OP_FUNCTION2 ? functions : 1;
}

/* NO_VALUE: the function has another number of operands. */
static trli_ir_value operation(trli_op op, int index, const trli_ir_value *v)
{
    int functions;
    switch (op) {
    case TRLI_OP_SELECT:
        return trli_ir_select(&ir, v[0], v[1], v[2]);
    case TRLI_OP_LIMIT:
        return trli_ir_limit(&ir, index, v[0], v[1], v[2]);
    case TRLI_OP_NORMAL:
        return trli_ir_normal(&ir, v[0], v[1], v[2]);
    case TRLI_OP_FUNCTION1:
    case TRLI_OP_FUNCTION2:
        if (trl_functions(&functions)[index].arity != trli_op_operands(op)) return TRLI_NO_VALUE;
        return trli_ir_function(&ir, index, v[0], v[1]);
    default:
        return trli_op_operands(op) == 1 ? trli_ir_unary(&ir, op, v[0]) : trli_ir_binary(&ir, op, v[0], v[1]);
    }
}

/* Each operation that has operands, with all choices of these. */
START_TEST(an_operation_is_the_same_for_operands_of_any_kind)
{
    const trli_op op = (trli_op)_i;
    const int count = trli_op_operands(op), meanings = meanings_of(op);
    int all = 1;
    if (count == 0 || op == TRLI_OP_SHIFT) return;
    for (int o = 0; o < count; ++o) all *= LEAF_COUNT;
    for (int grid_number = 0; grid_number < 3 * (count == 1 ? 10 : 2); ++grid_number)
        for (int index = 0; index < meanings; ++index) {
            if (!test_has(grid_number + index + _i, TEST_SANITIZED ? 2 : 1)) continue;
            begin_some(1 + grid_number % 3, 7 * _i + 5 * index + grid_number);
            for (int c = 0; c < all; c += count == 3 ? 1 + pick(meanings) : 1) {
                const trli_ir_value v[] = {leaf_of((leaf)(c % LEAF_COUNT)),
                                           leaf_of((leaf)(c / LEAF_COUNT % LEAF_COUNT)),
                                           leaf_of((leaf)(c / LEAF_COUNT / LEAF_COUNT))};
                char what[80];
                const trli_ir_value root = operation(op, index, v);
                snprintf(what, sizeof what, "%s %d, case %d", trli_op_name(op), index, c);
                if (root >= 0) check(1, &root, false, what);
            }
            end();
        }
}
END_TEST

/* Values of one another, of all operations. */
START_TEST(kernels_of_many_operations_are_what_their_values_are)
{
    enum { KERNELS = 900, VALUES = 24, LEAVES = 8 };
    static const trli_op often[] = {TRLI_OP_ADD, TRLI_OP_SUB, TRLI_OP_MUL};
    for (int k = 0; k < test_cases(KERNELS, 3); ++k) {
        trli_ir_value v[VALUES], roots[MOST_ROOTS];
        char what[80];
        begin_some(1 + k % 3, k / 3);
        for (int i = 0; i < VALUES; ++i) {
            const trli_op op =
                pick(3) ? often[pick(3)] : (trli_op)(TRLI_OP_SHIFT + 1 + pick(TRLI_OP_COUNT - TRLI_OP_SHIFT - 1));
            trli_ir_value arg[3], made = TRLI_NO_VALUE;
            for (int o = 0; o < 3; ++o) arg[o] = i < LEAVES ? TRLI_NO_VALUE : v[i - 1 - pick(LEAVES)];
            if (i >= LEAVES) made = operation(op, pick(meanings_of(op)), arg);
            v[i] = made < 0 ? leaf_of((leaf)pick(LEAF_COUNT)) : pick(6) ? made : shifted(made);
            for (int a = 0; a < 3; ++a)
                if (trli_ir_node(&ir, v[i])->reach[a] > GHOSTS) v[i] = made;
        }
        const int nroots = 1 + pick(MOST_ROOTS);
        for (int r = 0; r < nroots; ++r) roots[r] = v[VALUES - 1 - pick(r ? VALUES : 1)];
        snprintf(what, sizeof what, "kernel %d", k);
        check(nroots, roots, pick(4) == 0, what);
        end();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_root_that_another_goes_on_with_is_stored);
    tcase_add_test(tc, every_chain_has_a_merge);
    tcase_add_unchecked_fixture(tc, NULL, free_scratch);
    tcase_add_loop_test(tc, an_operation_is_the_same_for_operands_of_any_kind, 0, TRLI_OP_COUNT);
    tcase_add_test(tc, kernels_of_many_operations_are_what_their_values_are);
    tcase_add_loop_test(tc, a_merged_operation_rounds_as_its_parts_do, 0, MERGES);
}

TRL_TEST_MAIN("interpreter", add_tests)
