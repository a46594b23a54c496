/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The interpreter's kernels against evaluation of the IR node by node and point by point. */
#include "trl_test.h"

#include <interpreter_impl.h>

enum { FIELDS = 3, SCALARS = 3, GHOSTS = 3, MOST_ROOTS = 4 };

static trl_grid grid;
static trl_patch patch;
static trli_ir ir;
static trli_walk walk;
static trl_array field[FIELDS];
static double scalar[SCALARS];
static uint64_t state;

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
    ck_assert_ptr_nonnull(values);
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
static double value_at(trli_value v, const trl_lidx p[3])
{
    const trli_node *n = trli_ir_node(&ir, v);
    const trli_kernel_run run = {.grid = &grid, .patch = &patch};
    const trl_kernel_grid g = trli_kernel_grid_of(&run);
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
        return trl_kernel_coordinate(&g, n->index, n->bit ? 0.0 : 0.5, p[n->index]);
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
        return trli_fold(n, x);
    }
}

/* The bits of all points that a kernel of the roots computes are those of the definition, but for the sign and payload of NaNs. */
static void check(int nroots, const trli_value *roots, bool strains_caches, const char *what)
{
    const trl_box box = field[0].owned;
    trl_array input[FIELDS], output[MOST_ROOTS];
    trli_kernel *kernel;
    const int *fields;
    ck_ok(ir.err);
    ck_ok(trli_kernel_create(&ir, &walk, nroots, roots, &kernel));
    void *scratch = aligned_alloc(64, (trli_kernel_scratch(kernel) + 63) / 64 * 64);
    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0x7f, trli_kernel_scratch(kernel));
    const int inputs = trli_kernel_inputs(kernel, &fields);
    for (int i = 0; i < inputs; ++i) input[i] = field[fields[i]];
    for (int r = 0; r < nroots; ++r) output[r] = new_array(&box, 0);
    const trli_kernel_run run = {.grid = &grid,
                                 .patch = &patch,
                                 .input = input,
                                 .output = output,
                                 .scalar = scalar,
                                 .scratch = scratch,
                                 .strains_caches = strains_caches};
    trli_kernel_evaluate(kernel, &run, &box);
    for (int r = 0; r < nroots; ++r)
        for (trl_lidx k = box.lo[2]; k < box.hi[2]; ++k)
            for (trl_lidx j = box.lo[1]; j < box.hi[1]; ++j)
                for (trl_lidx i = box.lo[0]; i < box.hi[0]; ++i) {
                    const double expected = value_at(roots[r], (trl_lidx[3]){i, j, k});
                    const double found = ((double *)output[r].at)[trl_array_offset(&output[r], i, j, k)];
                    ck_assert_msg(memcmp(&found, &expected, sizeof found) == 0 ||
                                      (found != found && expected != expected),
                                  "%s: root %d at (%d, %d, %d) of %d-D is %.17g, not %.17g", what, r, i, j, k, grid.dim,
                                  found, expected);
                }
    for (int r = 0; r < nroots; ++r) free_array(&output[r]);
    free(scratch);
    trli_kernel_destroy(&kernel);
}

static trli_value binary(trli_op op, trli_value a, trli_value b)
{
    return trli_ir_binary(&ir, op, a, b);
}

/* A root that does not vary along all axes is written by a copy, after whatever else reads it. */
START_TEST(a_root_that_another_goes_on_with_is_stored)
{
    static const int cells[] = {5, 4, 3};
    for (int dim = 1; dim <= 3; ++dim) {
        begin(dim, cells, (uint64_t)dim);
        const trli_value f = trli_ir_field(&ir, 0), s = trli_ir_scalar(&ir, 0), x = trli_ir_coordinate(&ir, 0, 0);
        const trli_value uniform = binary(TRLI_OP_MUL, s, trli_ir_constant(&ir, 0.3));
        const trli_value along_x = binary(TRLI_OP_SUB, x, s);
        const trli_value step = binary(TRLI_OP_MUL, uniform, trli_ir_scalar(&ir, 1));
        const trli_value more = binary(TRLI_OP_MUL, along_x, trli_ir_scalar(&ir, 2));
        const trli_value roots[] = {binary(TRLI_OP_ADD, f, step), uniform, along_x, binary(TRLI_OP_ADD, f, more)};
        check(4, roots, false, "rates and what they lead to");
        check(4, roots, true, "rates and what they lead to, past the caches");
        end();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_root_that_another_goes_on_with_is_stored);
}

TRL_TEST_MAIN("interpreter", add_tests)
