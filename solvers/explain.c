/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the graph compiler decided about kernels, in numbers and words. */
#include <string.h>

#include "cost_impl.h"
#include "execution_impl.h"
#include "pipeline_impl.h"
#include "simulation_impl.h"

static bool is_kernel(const trli_program *program, int step)
{
    return program->plan->step[step].live && program->step[step].kind == TRLI_STEP_KERNEL;
}

trl_kernel_stats trli_kernel_stats_of(const trli_program *program, const trli_step *step)
{
    const trli_step_plan *plan = trli_plan_of(program, step);
    const trli_step_time time = trli_step_time_of(program, step);
    return (trl_kernel_stats){.name = program->model->field[step->field[0]].name,
                              .results = step->nout,
                              .inputs = plan->ninputs,
                              .bytes_per_point = (int)sizeof(double) * (step->nout + plan->ninputs),
                              .flops_per_point = program->work[step - program->step].flops,
                              .memory_bound = time.memory,
                              .predicted = time.predicted,
                              .measured = time.measured};
}

int trl_simulation_kernels(const trl_simulation *sim)
{
    int n = 0;
    for (int i = 0; i < sim->step->nsteps; ++i) n += is_kernel(sim->step, i);
    return n;
}

void trl_simulation_get_kernel(const trl_simulation *sim, int kernel, trl_kernel_stats *stats)
{
    int i = 0;
    for (int n = 0; n < kernel || !is_kernel(sim->step, i); ++i) n += is_kernel(sim->step, i);
    *stats = trli_kernel_stats_of(sim->step, &sim->step->step[i]);
}

trl_err trl_simulation_write_values(trl_simulation *sim, FILE *out)
{
    return trli_ir_write(sim->step, out);
}

/* The result of an earlier kernel that a step reads beyond the point itself, or else at it; -1: none. */
static int read_result(const trli_program *program, int step, bool *beyond)
{
    const trli_step_plan *s = &program->plan->step[step];
    int found = -1;
    *beyond = false;
    for (int i = 0; i < s->ninputs && !*beyond; ++i)
        for (int k = 0; k < step; ++k) {
            const trli_step *earlier = &program->step[k];
            for (int o = 0; is_kernel(program, k) && o < earlier->nout; ++o) {
                if (earlier->field[o] != s->input[i]) continue;
                const trl_offsets hull = trl_footprint_hull(&s->reads.footprint[i]);
                found = s->input[i];
                for (int a = 0; a < 3; ++a) *beyond |= hull.lo[a] != 0 || hull.hi[a] != 0;
            }
        }
    return found;
}

const char *trli_reason_not_fused(const trli_program *program, int step, char *buffer, size_t size)
{
    const trli_model *model = program->model;
    const trli_step *s = &program->step[step], *before = NULL;
    const trli_model_field *f = &model->field[s->field[0]];
    bool beyond;
    if (f->why) {
        snprintf(buffer, size, "stored: %s", f->why);
        return buffer;
    }
    for (int k = 0; k < step; ++k)
        if (is_kernel(program, k)) before = &program->step[k];
    if (!before) return NULL;
    const trli_model_field *g = &model->field[before->field[0]];
    const int read = read_result(program, step, &beyond);
    if (read >= 0)
        snprintf(buffer, size, "not fused: it reads %s %s", model->field[read].name,
                 beyond                   ? "at neighbouring points"
                 : model->field[read].why ? "which is stored"
                                          : "after its ghosts or sides are set");
    else if (f->location != g->location)
        snprintf(buffer, size, "not fused with %s: at %s, not %s", g->name, trli_location_text(model, (int)f->location),
                 trli_location_text(model, (int)g->location));
    else if (memcmp(f->fixed_planes, g->fixed_planes, sizeof f->fixed_planes) != 0)
        snprintf(buffer, size, "not fused with %s: conditions set other points on the sides", g->name);
    else if (model->settings.fusion != TRL_FUSION_FULL)
        snprintf(buffer, size, "not fused with %s: run.fusion is not full", g->name);
    else
        snprintf(buffer, size, "not fused with %s: what this program gives is computed one by one", g->name);
    return buffer;
}
