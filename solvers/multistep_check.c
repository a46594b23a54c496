/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which problems multistep methods suit. */
#include "compile_impl.h"
#include "cvode_impl.h"
#include "memory_impl.h"
#include "multistep_impl.h"

trl_err trli_multistep_check(trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    const char *name = trl_method_name(p->method);
    if (!sim->integrator->multistep) return TRL_OK;
    if (!trli_cvode_library())
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->method_place,
                        "this build has no SUNDIALS, whose CVODE %s is: install libsundials-dev and configure with "
                        "-D TRL_SUNDIALS=ON, or use esdirk3, esdirk4 or dp5",
                        name);
    if (!p->adaptive)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->dt_place,
                        "the dt of %s follows from its error: remove 'time.dt', and give time.method a 'tolerance'",
                        name);
    bool any = false;
    for (int v = 0; v < sim->nequations; ++v) any |= !sim->equation[v].solve;
    if (!any)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->method_place,
                        "%s has nothing to advance, as no equation has a 'ddt': leave out 'time', or use ssprk3", name);
    if (sim->problem->incompressible.n)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->method_place,
                        "%s does not go with an incompressible flow, whose velocities are projected after each stage: "
                        "use ssprk3, rk4 or dp5, or with implicit terms ark3",
                        name);
    return TRL_OK;
}

trl_err trli_multistep_check_rates(trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    bool reads = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_rates_read_step(sim, &reads));
    if (reads)
        err = trl_fail(sim->ctx, TRL_ERR_INPUT, &p->method_place,
                       "%s goes back to rates of several steps, and these rates depend on the step: remove dt, old(), "
                       "noise(), expressions of a type and those that are evaluated once a step, or use dp5 or ark4",
                       trl_method_name(p->method));
done:
    return err;
}
