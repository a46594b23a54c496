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
} made;

static PetscErrorCode fill_matrix(made *m)
{
    const PetscInt n = m->problem->n;
    const double w = (double)n * n;
    PetscFunctionBeginUser;
    PetscCall(DMCreateMatrix(m->grid, &m->matrix));
    for (PetscInt k = 0; k < n; ++k)
        for (PetscInt j = 0; j < n; ++j)
            for (PetscInt i = 0; i < n; ++i) {
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
    PetscCall(DMDACreate3d(PETSC_COMM_SELF, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n,
                           n, n, 1, 1, 1, 1, 1, NULL, NULL, NULL, &m->grid));
    PetscCall(DMDASetInterpolationType(m->grid, n % 2 ? DMDA_Q1 : DMDA_Q0));
    PetscCall(DMSetUp(m->grid));
    PetscCall(fill_matrix(m));
    PetscCall(DMCreateGlobalVector(m->grid, &m->f));
    PetscCall(VecDuplicate(m->f, &m->p));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &m->solver));
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
    const size_t bytes = (size_t)m->problem->n * (size_t)m->problem->n * (size_t)m->problem->n * sizeof(double);
    PetscScalar *f;
    PetscInt taken;
    PetscFunctionBeginUser;
    PetscCall(VecGetArray(m->f, &f));
    memcpy(f, m->problem->f, bytes);
    PetscCall(VecRestoreArray(m->f, &f));
    PetscCall(KSPSolve(m->solver, m->f, m->p));
    PetscCall(KSPGetIterationNumber(m->solver, &taken));
    *iterations = (int)taken;
    PetscFunctionReturn(0);
}

static void copy(void *data, double *p)
{
    made *m = data;
    const size_t bytes = (size_t)m->problem->n * (size_t)m->problem->n * (size_t)m->problem->n * sizeof(double);
    const PetscScalar *value;
    if (VecGetArrayRead(m->p, &value)) return;
    memcpy(p, value, bytes);
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
    free(m);
}

const trli_solve_peer *trli_solve_peer_export(void)
{
    static const trli_solve_peer list[] = {{"PETSc, cg with multigrid", create, solve, copy, destroy}, {0}};
    return list;
}
