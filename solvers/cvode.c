/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>

#include <cvode/cvode.h>
#include <sunlinsol/sunlinsol_spbcgs.h>
#include <sunlinsol/sunlinsol_spgmr.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <trl_context.h>

#include "cvode_vector_impl.h"
#include "memory_impl.h"

/* Of counts that CVODE begins anew with each system. */
typedef struct counts {
    long failed, unsolved, nonlinear, linear;
} counts;

struct trli_cvode {
    trli_cvode_request ask;
    trli_vectors vectors;
    SUNContext sundials;
    void *memory;
    N_Vector y, between;
    SUNLinearSolver linear;
    SUNNonlinearSolver nonlinear;
    bool begun;
    double t;
    trl_err err; /* of a function */
    int order;
    counts before, last, now; /* of earlier beginnings; before the last step, after it */
    char message[256];        /* CVODE's last one */
};

const char *trli_cvode_library(void)
{
    return SUNDIALS_VERSION;
}

/* ---- what CVODE calls: 0, or more to try a smaller step, or less to give up ---- */

static int rates(double t, N_Vector y, N_Vector f, void *data)
{
    trli_cvode *c = data;
    bool finite = true;
    const trl_err err = c->ask.rates(c->ask.data, t, trli_vectors_values(y), trli_vectors_values(f), &finite);
    if (err == TRL_OK) return finite ? 0 : 1;
    c->err = err;
    return -1;
}

static int product(N_Vector v, N_Vector result, double t, N_Vector y, N_Vector f, void *data, N_Vector scratch)
{
    trli_cvode *c = data;
    double gamma;
    (void)t, (void)y, (void)f, (void)scratch;
    if (CVodeGetCurrentGamma(c->memory, &gamma) != CV_SUCCESS) return -1;
    bool found = true;
    c->err = c->ask.product(c->ask.data, gamma, trli_vectors_values(v), trli_vectors_values(result), &found);
    return c->err == TRL_OK ? !found : -1;
}

static int prepare(double t, N_Vector y, N_Vector f, booleantype known, booleantype *anew, double gamma, void *data)
{
    trli_cvode *c = data;
    (void)t, (void)y, (void)f, (void)known;
    *anew = SUNTRUE;
    c->err = c->ask.prepare(c->ask.data, gamma);
    return c->err == TRL_OK ? 0 : -1;
}

static int precondition(double t, N_Vector y, N_Vector f, N_Vector r, N_Vector z, double gamma, double delta, int left,
                        void *data)
{
    trli_cvode *c = data;
    (void)t, (void)y, (void)f, (void)gamma, (void)delta, (void)left;
    c->err = c->ask.precondition(c->ask.data, trli_vectors_values(r), trli_vectors_values(z));
    return c->err == TRL_OK ? 0 : -1;
}

static void keep_message(int code, const char *module, const char *function, char *message, void *data)
{
    trli_cvode *c = data;
    (void)module, (void)function;
    if (code < 0) snprintf(c->message, sizeof c->message, "%s", message);
}

/* ---- making ---- */

static trl_err check(const trli_cvode *c, int result)
{
    if (result == CV_SUCCESS) return TRL_OK;
    return trl_fail(c->ask.ctx, result == CV_MEM_FAIL ? TRL_ERR_MEMORY : TRL_ERR_BUG, NULL,
                    "CVODE could not be set up: %s", c->message[0] ? c->message : "no memory");
}

static trl_err add_solvers(trli_cvode *c)
{
    const trli_cvode_request *ask = &c->ask;
    trl_err err = TRL_OK;
    if (!ask->stiff) {
        c->nonlinear = SUNNonlinSol_FixedPoint(c->y, 0, c->sundials);
        return c->nonlinear ? check(c, CVodeSetNonlinearSolver(c->memory, c->nonlinear))
                            : trli_no_memory(ask->ctx, NULL, "for CVODE");
    }
    const int side = ask->precondition ? SUN_PREC_RIGHT : SUN_PREC_NONE;
    c->linear = ask->bicgstab ? SUNLinSol_SPBCGS(c->y, side, ask->subspace, c->sundials)
                              : SUNLinSol_SPGMR(c->y, side, ask->subspace, c->sundials);
    if (!c->linear) return trli_no_memory(ask->ctx, NULL, "for CVODE");
    TRL_TRY(check(c, CVodeSetLinearSolver(c->memory, c->linear, NULL)));
    TRL_TRY(check(c, CVodeSetJacTimes(c->memory, NULL, product)));
    if (ask->precondition) TRL_TRY(check(c, CVodeSetPreconditioner(c->memory, prepare, precondition)));
done:
    return err;
}

/* At the first beginning: y has its values. */
static trl_err set_up(trli_cvode *c, double t)
{
    enum { FAILURES = 50 }; /* of the error, in a step: with a first step that is much too large there are many */
    const trli_cvode_request *ask = &c->ask;
    trl_err err = TRL_OK;
    TRL_TRY(check(c, CVodeInit(c->memory, rates, t, c->y)));
    TRL_TRY(check(c, CVodeSStolerances(c->memory, ask->relative, ask->absolute)));
    TRL_TRY(check(c, CVodeSetUserData(c->memory, c)));
    TRL_TRY(check(c, CVodeSetMaxHnilWarns(c->memory, -1)));
    TRL_TRY(check(c, CVodeSetMaxErrTestFails(c->memory, FAILURES)));
    TRL_TRY(check(c, CVodeSetMaxConvFails(c->memory, FAILURES)));
    if (ask->dt_min > 0) TRL_TRY(check(c, CVodeSetMinStep(c->memory, ask->dt_min)));
    if (ask->dt_max > 0) TRL_TRY(check(c, CVodeSetMaxStep(c->memory, ask->dt_max)));
    TRL_TRY(add_solvers(c));
done:
    return err;
}

trl_err trli_cvode_create(const trli_cvode_request *request, trli_cvode **cvode)
{
    trl_err err = TRL_OK;
    trli_cvode *c = *cvode = trli_new(request->ctx, 1, sizeof *c);
    if (!c) return trli_no_memory(request->ctx, NULL, "for CVODE");
    c->ask = *request;
    TRL_TRY(trli_vectors_create(request, &c->vectors));
    if (SUNContext_Create(NULL, &c->sundials) != 0) TRL_TRY(trli_no_memory(request->ctx, NULL, "for CVODE"));
    c->y = trli_vectors_new(&c->vectors, c->sundials);
    c->between = trli_vectors_new(&c->vectors, c->sundials);
    c->memory = CVodeCreate(request->stiff ? CV_BDF : CV_ADAMS, c->sundials);
    if (!c->y || !c->between || !c->memory) TRL_TRY(trli_no_memory(request->ctx, NULL, "for CVODE"));
    TRL_TRY(check(c, CVodeSetErrHandlerFn(c->memory, keep_message, c)));
done:
    if (err != TRL_OK) trli_cvode_destroy(cvode);
    return err;
}

void trli_cvode_destroy(trli_cvode **cvode)
{
    trli_cvode *c = *cvode;
    *cvode = NULL;
    if (!c) return;
    if (c->memory) CVodeFree(&c->memory);
    if (c->linear) SUNLinSolFree(c->linear);
    if (c->nonlinear) SUNNonlinSolFree(c->nonlinear);
    if (c->y) N_VDestroy(c->y);
    if (c->between) N_VDestroy(c->between);
    if (c->sundials) SUNContext_Free(&c->sundials);
    trli_vectors_destroy(&c->vectors);
    trli_free(c);
}

/* ---- running ---- */

double *trli_cvode_values(trli_cvode *cvode)
{
    return trli_vectors_values(cvode->y);
}

static void add_counts(counts *to, const counts *of)
{
    to->failed += of->failed;
    to->unsolved += of->unsolved;
    to->nonlinear += of->nonlinear;
    to->linear += of->linear;
}

trl_err trli_cvode_begin(trli_cvode *cvode, double t, double dt)
{
    trli_cvode *c = cvode;
    trl_err err = TRL_OK;
    add_counts(&c->before, &c->now);
    c->last = c->now = (counts){0};
    if (c->begun)
        TRL_TRY(check(c, CVodeReInit(c->memory, t, c->y)));
    else
        TRL_TRY(set_up(c, t));
    TRL_TRY(check(c, CVodeSetInitStep(c->memory, dt)));
    c->begun = true;
    c->t = t;
    c->order = 1;
done:
    return err;
}

static trl_err count(trli_cvode *c)
{
    trl_err err = TRL_OK;
    c->last = c->now;
    TRL_TRY(check(c, CVodeGetNumErrTestFails(c->memory, &c->now.failed)));
    TRL_TRY(check(c, CVodeGetNumStepSolveFails(c->memory, &c->now.unsolved)));
    TRL_TRY(check(c, CVodeGetNumNonlinSolvIters(c->memory, &c->now.nonlinear)));
    if (c->ask.stiff) TRL_TRY(check(c, CVodeGetNumLinIters(c->memory, &c->now.linear)));
    TRL_TRY(check(c, CVodeGetLastOrder(c->memory, &c->order)));
done:
    return err;
}

trl_err trli_cvode_step(trli_cvode *cvode, double toward, bool land, double *t, double *next_dt, const char **message)
{
    trli_cvode *c = cvode;
    trl_err err = TRL_OK;
    *t = c->t;
    *message = "";
    if (land) TRL_TRY(check(c, CVodeSetStopTime(c->memory, toward)));
    c->err = c->vectors.err = TRL_OK;
    const int result = CVode(c->memory, toward, c->y, t, CV_ONE_STEP);
    TRL_TRY(c->err);
    TRL_TRY(c->vectors.err);
    if (result < 0) {
        *message = c->message;
        return TRL_ERR_NUMERICS;
    }
    c->t = *t;
    TRL_TRY(check(c, CVodeGetCurrentStep(c->memory, next_dt)));
    err = count(c);
done:
    return err;
}

trl_err trli_cvode_between(trli_cvode *cvode, double t, const double **values)
{
    const trl_err err = check(cvode, CVodeGetDky(cvode->memory, t, 0, cvode->between));
    *values = trli_vectors_values(cvode->between);
    return err;
}

void trli_cvode_get_stats(const trli_cvode *cvode, trli_cvode_stats *stats)
{
    const counts *before = &cvode->before, *now = &cvode->now, *last = &cvode->last;
    *stats = (trli_cvode_stats){.order = cvode->order,
                                .rejected = before->failed + before->unsolved + now->failed + now->unsolved,
                                .nonlinear = before->nonlinear + now->nonlinear,
                                .linear = before->linear + now->linear,
                                .last_nonlinear = now->nonlinear - last->nonlinear,
                                .last_linear = now->linear - last->linear};
}
