/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* PETSc's conjugate gradients with geometric multigrid. */
#include <stdlib.h>
#include <string.h>

#include <petscdmda.h>
#include <petscksp.h>

#include "bench_solve_peer.h"

typedef struct made {
    const trli_poisson *problem;
    DM grid;
    Mat matrix;
    Vec f, p;
    KSP solver;
    trli_solve_box box; /* this rank's */
    double *f_values;
} made;

static PetscErrorCode fill_matrix(made *m)
{
    const PetscInt n = m->problem->n;
    const double w = (double)n * n;
    const trli_solve_box *b = &m->box;
    PetscFunctionBeginUser;
    PetscCall(DMCreateMatrix(m->grid, &m->matrix));
    for (PetscInt k = b->lo[2]; k < b->hi[2]; ++k)
        for (PetscInt j = b->lo[1]; j < b->hi[1]; ++j)
            for (PetscInt i = b->lo[0]; i < b->hi[0]; ++i) {
                const PetscInt at[3] = {i, j, k};
                const MatStencil row = {.i = i, .j = j, .k = k};
                MatStencil column[7] = {row};
                double value[7] = {6 * w};
                PetscInt entries = 1;
                for (int a = 0; a < 3; ++a)
                    for (int side = -1; side <= 1; side += 2) {
                        if (at[a] + side < 0 || at[a] + side >= n) {
                            value[0] += w;
                            continue;
                        }
                        column[entries] = row;
                        (a == 0 ? &column[entries].i : a == 1 ? &column[entries].j : &column[entries].k)[0] += side;
                        value[entries++] = -w;
                    }
                PetscCall(MatSetValuesStencil(m->matrix, 1, &row, entries, column, value, INSERT_VALUES));
            }
    PetscCall(MatAssemblyBegin(m->matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(m->matrix, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode take_box(made *m)
{
    PetscInt lo[3], count[3];
    PetscFunctionBeginUser;
    PetscCall(DMDAGetCorners(m->grid, &lo[0], &lo[1], &lo[2], &count[0], &count[1], &count[2]));
    for (int a = 0; a < 3; ++a) {
        m->box.lo[a] = (int)lo[a];
        m->box.hi[a] = (int)(lo[a] + count[a]);
    }
    PetscCall(PetscMalloc1(trli_solve_box_points(&m->box), &m->f_values));
    trli_solve_box_fill(&m->box, m->problem, m->f_values);
    PetscFunctionReturn(0);
}

/* Of an odd number, points of a coarser grid are among those of the finer one; of an even one, its cells are pairs. */
static PetscInt levels_of(int n)
{
    const int odd = n % 2;
    PetscInt levels = 1;
    for (; n > 8 && n % 2 == odd; n = odd ? (n - 1) / 2 + 1 : n / 2) ++levels;
    return n % 2 == odd ? levels : levels - 1;
}

static PetscErrorCode make(made *m)
{
    const PetscInt n = m->problem->n;
    PC pc;
    PetscFunctionBeginUser;
    PetscCall(DMDACreate3d(m->problem->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n,
                           n, n, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &m->grid));
    PetscCall(DMDASetInterpolationType(m->grid, n % 2 ? DMDA_Q1 : DMDA_Q0));
    PetscCall(DMSetUp(m->grid));
    PetscCall(take_box(m));
    PetscCall(fill_matrix(m));
    PetscCall(DMCreateGlobalVector(m->grid, &m->f));
    PetscCall(VecDuplicate(m->f, &m->p));
    PetscCall(KSPCreate(m->problem->comm, &m->solver));
    PetscCall(KSPSetDM(m->solver, m->grid));
    PetscCall(KSPSetDMActive(m->solver, PETSC_FALSE));
    PetscCall(KSPSetOperators(m->solver, m->matrix, m->matrix));
    PetscCall(KSPSetType(m->solver, KSPCG));
    PetscCall(KSPSetNormType(m->solver, KSP_NORM_UNPRECONDITIONED));
    PetscCall(KSPSetTolerances(m->solver, m->problem->tolerance, 0, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(m->solver, &pc));
    PetscCall(PCSetType(pc, PCMG));
    PetscCall(PCMGSetLevels(pc, levels_of((int)n), NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
    PetscCall(KSPSetUp(m->solver));
    PetscFunctionReturn(0);
}

static void *create(const trli_poisson *problem)
{
    PetscBool there = PETSC_FALSE;
    made *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->problem = problem;
    if (PetscInitialized(&there) || (!there && PetscInitializeNoArguments())) return NULL;
    return make(m) ? NULL : m;
}

static int solve(void *data, int *iterations)
{
    made *m = data;
    PetscScalar *f;
    PetscInt taken;
    PetscFunctionBeginUser;
    PetscCall(VecGetArray(m->f, &f));
    memcpy(f, m->f_values, trli_solve_box_points(&m->box) * sizeof *f);
    PetscCall(VecRestoreArray(m->f, &f));
    PetscCall(KSPSolve(m->solver, m->f, m->p));
    PetscCall(KSPGetIterationNumber(m->solver, &taken));
    *iterations = (int)taken;
    PetscFunctionReturn(0);
}

static void copy(void *data, double *p)
{
    made *m = data;
    const PetscScalar *value;
    if (VecGetArrayRead(m->p, &value)) return;
    trli_solve_box_copy(&m->box, m->problem->n, value, p);
    (void)VecRestoreArrayRead(m->p, &value);
}

static void destroy(void *data)
{
    made *m = data;
    (void)KSPDestroy(&m->solver);
    (void)VecDestroy(&m->f);
    (void)VecDestroy(&m->p);
    (void)MatDestroy(&m->matrix);
    (void)DMDestroy(&m->grid);
    (void)PetscFree(m->f_values);
    free(m);
}

const trli_solve_peer *trli_solve_peer_export(void)
{
    static const trli_solve_peer list[] = {{"PETSc, cg with multigrid", false, create, solve, copy, destroy}, {0}};
    return list;
}
