/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields that are kept after steps: evaluated while they are locked, without memory while they are not. */
#include "context_impl.h"
#include "frame_impl.h"
#include "simulation_impl.h"

trl_err trli_evaluate_kept(trl_simulation *sim, bool observing)
{
    trl_err err = TRL_OK;
    for (int k = 0; k < sim->nkept; ++k) {
        const trli_kept *kept = &sim->kept[k];
        if (kept->nlocked == 0 && !(observing && kept->output)) continue;
        trli_set_present(sim);
        TRL_TRY(trli_program_run_agreed(sim, kept->program));
    }
done:
    return err;
}

trl_err trli_check_held(const trl_simulation *sim, const trli_shown *shown)
{
    if (shown->kept < 0 || !sim->kept[shown->kept].vacant) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "'%s' is unlocked, and has no values; trl_simulation_lock it before",
                    shown->info.name);
}

static trl_err occupy(trl_simulation *sim, int k)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < sim->nshown && err == TRL_OK; ++i)
        if (sim->shown[i].kept == k) err = trli_frame_occupy(sim->frame, sim->shown[i].field);
    return err;
}

static void vacate(trl_simulation *sim, int k)
{
    for (int i = 0; i < sim->nshown; ++i)
        if (sim->shown[i].kept == k) trli_frame_vacate(sim->frame, sim->shown[i].field);
    sim->kept[k].vacant = true;
}

/* *k: the program of what is kept by which the field is evaluated, or -1: it is current anyway. */
static trl_err find_kept(const trl_simulation *sim, int field, int *k)
{
    if (field < 0 || field >= sim->nshown)
        return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "field %d of %d cannot be locked or unlocked", field,
                        sim->nshown);
    const trli_shown *shown = &sim->shown[field];
    *k = shown->kept;
    if (shown->info.kept || shown->info.equation) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL,
                    "'%s' is not kept, and cannot be locked or unlocked; add it to "
                    "output.keep",
                    shown->info.name);
}

trl_err trl_simulation_lock(trl_simulation *sim, int field)
{
    int k = -1;
    trl_err err = TRL_OK;
    if (!sim) return TRL_ERR_USAGE;
    TRL_TRY(find_kept(sim, field, &k));
    trli_shown *shown = &sim->shown[field];
    if (k < 0 || !shown->unlocked) return TRL_OK;
    if (sim->kept[k].vacant) {
        err = trl_context_agree(sim->ctx, occupy(sim, k));
        if (err != TRL_OK) vacate(sim, k);
        if (err != TRL_OK) return err;
        sim->kept[k].vacant = false;
    }
    shown->unlocked = false;
    ++sim->kept[k].nlocked;
done:
    return err;
}

trl_err trl_simulation_unlock(trl_simulation *sim, int field)
{
    int k = -1;
    trl_err err = TRL_OK;
    if (!sim) return TRL_ERR_USAGE;
    TRL_TRY(find_kept(sim, field, &k));
    trli_shown *shown = &sim->shown[field];
    if (k < 0 || shown->unlocked) return TRL_OK;
    TRL_TRY(trl_context_agree(sim->ctx, trl_workers_finish(sim->workers)));
    shown->unlocked = true;
    if (--sim->kept[k].nlocked == 0 && !sim->kept[k].output) vacate(sim, k);
done:
    return err;
}
