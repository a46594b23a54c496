/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* hypre's solvers of structured grids: PFMG, and conjugate gradients with it. */
#include <stdbool.h>
#include <stdlib.h>

#include <HYPRE.h>
#include <HYPRE_struct_ls.h>

#include "bench_solve_peer.h"

typedef struct made {
    const trli_poisson *problem;
    HYPRE_StructGrid grid;
    HYPRE_StructStencil stencil;
    HYPRE_StructMatrix matrix;
    HYPRE_StructVector f, p;
    HYPRE_StructSolver cg, pfmg; /* cg NULL: PFMG by itself */
    trli_solve_box box;          /* this rank's, and */
    int last[3];                 /* the last point in it */
    double *f_values;
} made;

/* Boxes of ranks as nearly cubes as there can be. */
static void choose_box(made *m)
{
    int ranks, rank, parts[3] = {0};
    MPI_Comm_size(m->problem->comm, &ranks);
    MPI_Comm_rank(m->problem->comm, &rank);
    MPI_Dims_create(ranks, 3, parts);
    for (int a = 2; a >= 0; rank /= parts[a--]) {
        m->box.lo[a] = rank % parts[a] * m->problem->n / parts[a];
        m->box.hi[a] = (rank % parts[a] + 1) * m->problem->n / parts[a];
        m->last[a] = m->box.hi[a] - 1;
    }
}

static int fill_matrix(made *m)
{
    static const int offset[4][3] = {{0, 0, 0}, {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}};
    int entry[4] = {0, 1, 2, 3};
    const int n = m->problem->n;
    const double w = (double)n * n;
    const trli_solve_box *b = &m->box;
    double *value = malloc(trli_solve_box_points(b) * 4 * sizeof *value), *at = value;
    if (!value) return 1;
    HYPRE_StructStencilCreate(3, 4, &m->stencil);
    for (int e = 0; e < 4; ++e) HYPRE_StructStencilSetElement(m->stencil, e, (int *)offset[e]);
    HYPRE_StructMatrixCreate(m->problem->comm, m->grid, m->stencil, &m->matrix);
    HYPRE_StructMatrixSetSymmetric(m->matrix, 1);
    HYPRE_StructMatrixInitialize(m->matrix);
    for (int k = b->lo[2]; k < b->hi[2]; ++k)
        for (int j = b->lo[1]; j < b->hi[1]; ++j)
            for (int i = b->lo[0]; i < b->hi[0]; ++i, at += 4) {
                const int sides = (i == 0) + (i == n - 1) + (j == 0) + (j == n - 1) + (k == 0) + (k == n - 1);
                at[0] = w * (6 + sides);
                at[1] = i > 0 ? -w : 0;
                at[2] = j > 0 ? -w : 0;
                at[3] = k > 0 ? -w : 0;
            }
    HYPRE_StructMatrixSetBoxValues(m->matrix, m->box.lo, m->last, 4, entry, value);
    free(value);
    return HYPRE_StructMatrixAssemble(m->matrix);
}

static HYPRE_StructVector make_vector(const made *m)
{
    HYPRE_StructVector v;
    HYPRE_StructVectorCreate(m->problem->comm, m->grid, &v);
    HYPRE_StructVectorInitialize(v);
    HYPRE_StructVectorAssemble(v);
    return v;
}

static void make_solvers(made *m, bool with_cg)
{
    HYPRE_StructPFMGCreate(m->problem->comm, &m->pfmg);
    HYPRE_StructPFMGSetRelaxType(m->pfmg, 2); /* red and black, in symmetric order */
    HYPRE_StructPFMGSetNumPreRelax(m->pfmg, 1);
    HYPRE_StructPFMGSetNumPostRelax(m->pfmg, 1);
    HYPRE_StructPFMGSetSkipRelax(m->pfmg, 1);
    HYPRE_StructPFMGSetRAPType(m->pfmg, 1); /* coarse operators of seven points */
    HYPRE_StructPFMGSetMaxIter(m->pfmg, with_cg ? 1 : 200);
    HYPRE_StructPFMGSetTol(m->pfmg, with_cg ? 0 : m->problem->tolerance);
    if (!with_cg) {
        HYPRE_StructPFMGSetup(m->pfmg, m->matrix, m->f, m->p);
        return;
    }
    HYPRE_StructPFMGSetZeroGuess(m->pfmg);
    HYPRE_StructPCGCreate(m->problem->comm, &m->cg);
    HYPRE_StructPCGSetTol(m->cg, m->problem->tolerance);
    HYPRE_StructPCGSetMaxIter(m->cg, 200);
    HYPRE_StructPCGSetTwoNorm(m->cg, 1);
    HYPRE_StructPCGSetPrecond(m->cg, HYPRE_StructPFMGSolve, HYPRE_StructPFMGSetup, m->pfmg);
    HYPRE_StructPCGSetup(m->cg, m->matrix, m->f, m->p);
}

static void *create(const trli_poisson *problem, bool with_cg)
{
    made *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->problem = problem;
    choose_box(m);
    m->f_values = malloc(trli_solve_box_points(&m->box) * sizeof *m->f_values);
    if (!m->f_values) return NULL;
    trli_solve_box_fill(&m->box, problem, m->f_values);
    HYPRE_Init();
    HYPRE_StructGridCreate(m->problem->comm, 3, &m->grid);
    HYPRE_StructGridSetExtents(m->grid, m->box.lo, m->last);
    HYPRE_StructGridAssemble(m->grid);
    if (fill_matrix(m)) return NULL;
    m->f = make_vector(m);
    m->p = make_vector(m);
    make_solvers(m, with_cg);
    return m;
}

static void *create_cg(const trli_poisson *problem)
{
    return create(problem, true);
}

static void *create_pfmg(const trli_poisson *problem)
{
    return create(problem, false);
}

static int solve(void *data, int *iterations)
{
    made *m = data;
    HYPRE_StructVectorSetBoxValues(m->f, m->box.lo, m->last, m->f_values);
    HYPRE_StructVectorSetConstantValues(m->p, 0);
    if (m->cg) {
        HYPRE_StructPCGSolve(m->cg, m->matrix, m->f, m->p);
        HYPRE_StructPCGGetNumIterations(m->cg, iterations);
    } else {
        HYPRE_StructPFMGSolve(m->pfmg, m->matrix, m->f, m->p);
        HYPRE_StructPFMGGetNumIterations(m->pfmg, iterations);
    }
    return HYPRE_GetError();
}

static void copy(void *data, double *p)
{
    made *m = data;
    double *value = malloc(trli_solve_box_points(&m->box) * sizeof *value);
    if (!value) return;
    HYPRE_StructVectorGetBoxValues(m->p, m->box.lo, m->last, value);
    trli_solve_box_copy(&m->box, m->problem->n, value, p);
    free(value);
}

static void destroy(void *data)
{
    made *m = data;
    if (m->cg) HYPRE_StructPCGDestroy(m->cg);
    HYPRE_StructPFMGDestroy(m->pfmg);
    HYPRE_StructVectorDestroy(m->f);
    HYPRE_StructVectorDestroy(m->p);
    HYPRE_StructMatrixDestroy(m->matrix);
    HYPRE_StructStencilDestroy(m->stencil);
    HYPRE_StructGridDestroy(m->grid);
    free(m->f_values);
    free(m);
}

const trli_solve_peer *trli_solve_peer_export(void)
{
    static const trli_solve_peer list[] = {{"hypre, cg with PFMG", false, create_cg, solve, copy, destroy},
                                           {"hypre, PFMG", false, create_pfmg, solve, copy, destroy},
                                           {0}};
    return list;
}
