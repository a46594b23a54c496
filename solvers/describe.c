/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan as text: what would run. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "simulation_impl.h"

typedef struct listing {
    const trl_simulation *sim;
    void (*write)(void *data, const char *line);
    void *data;
} listing;

static void say(const listing *l, const char *format, ...) TRL_PRINTF(2, 3);
static void say(const listing *l, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    l->write(l->data, line);
}

static const char *with_unit(double bytes, char buffer[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 4; ++u) bytes /= 1024;
    snprintf(buffer, 32, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return buffer;
}

static void describe_grid(const listing *l)
{
    const trl_layout *layout = l->sim->layout;
    const trl_grid *g = &layout->grid;
    char cells[96] = "", cuts[96] = "";
    for (int a = 0; a < g->dim; ++a) {
        size_t c = strlen(cells), k = strlen(cuts);
        snprintf(cells + c, sizeof cells - c, "%s%" PRId64 "%s", a ? " x " : "", g->cells[a],
                 g->periodic[a] ? " (periodic)" : "");
        snprintf(cuts + k, sizeof cuts - k, "%s%d", a ? " x " : "", layout->counts[a]);
    }
    say(l, "grid         %s cells, %s patches on %d rank%s", cells, cuts, trl_context_ranks(l->sim->ctx),
        trl_context_ranks(l->sim->ctx) == 1 ? "" : "s");
    say(l, "time         %s (%s), %d stage%s of order %d", l->sim->integrator->name, l->sim->integrator->doc,
        l->sim->integrator->stages, l->sim->integrator->stages == 1 ? "" : "s", l->sim->integrator->order);
}

static void describe_workers(const listing *l)
{
    const trl_workers *workers = l->sim->workers;
    char split[64] = "";
    int tasks, operators;
    trl_workers_get_pools(workers, &tasks, &operators);
    if (l->sim->split) snprintf(split, sizeof split, ": %d for tasks, %d for operators", tasks, operators);
    say(l, "workers      %d per rank%s, policy %s", trl_workers_count(workers), split, trl_workers_policy(workers));
}

static void describe_expressions(const listing *l)
{
    const trli_model *m = l->sim->model;
    say(l, "expressions");
    for (int v = 0; v < m->nvariables; ++v) {
        const trli_equation *eq = &l->sim->equation[v];
        char kind[600] = "equation";
        if (eq->direction)
            snprintf(kind, sizeof kind, "sensitivity of %s to %s", m->variable[eq->of].name,
                     m->direction[eq->direction - 1].name);
        say(l, "  %-20s %s at %s%s%s", m->variable[v].name, kind, trl_location_name(m->variable[v].location),
            eq->mask ? ", masked" : "", eq->exact_field >= 0 ? ", with exact solution" : "");
    }
    for (int i = 0; i < m->nentries; ++i) {
        const trli_entry *e = &m->entry[m->order[i]];
        if (e->nformulas)
            say(l, "  %-20s formula%s%s%s", e->deck->name, e->nformulas > 1 ? " (vector)" : "",
                e->has_boundary ? ", with boundary values" : "", e->used ? "" : ", unused");
        else
            say(l, "  %-20s type %s, %d tag%s from %d%s", e->deck->name, e->deck->type->name, e->ncomputed,
                e->ncomputed == 1 ? "" : "s", e->nrequired, e->used ? "" : ", unused");
    }
}

static void describe_ghosts(const listing *l)
{
    const trli_model *m = l->sim->model;
    say(l, "ghost layers (minus side, plus side)");
    for (int f = 0; f < m->nfields; ++f) {
        const trli_field *field = &m->field[f];
        char widths[96] = "";
        if (field->slot < 0 || !field->exchanged) continue;
        for (int a = 0; a < m->layout->grid.dim; ++a) {
            size_t n = strlen(widths);
            snprintf(widths + n, sizeof widths - n, "%s%c %d,%d", a ? "  " : "", 'x' + a, (int)field->ghost_lo[a],
                     (int)field->ghost_hi[a]);
        }
        say(l, "  %-20s %-7s %s", field->name, trl_location_name(field->location), widths);
    }
}

static const char *step_name(trli_step_kind kind)
{
    switch (kind) {
    case TRLI_STEP_KERNEL:
        return "kernel";
    case TRLI_STEP_OPAQUE:
        return "plugin";
    case TRLI_STEP_FILL:
        return "ghosts";
    case TRLI_STEP_PLANES:
        return "sides";
    case TRLI_STEP_REDUCE:
        return "reduction";
    case TRLI_STEP_SCALAR:
        return "scalar";
    }
    return "";
}

static void describe_program(const listing *l, const trli_program *p)
{
    const trli_model *m = l->sim->model;
    say(l, "program '%s'", p->name);
    for (int i = 0; i < p->nsteps; ++i) {
        const trli_step *s = &p->step[i];
        if (!s->live) continue;
        const char *target = s->nout ? m->field[s->field[0]].name : s->label ? s->label : "";
        int operations = s->kernel ? trli_kernel_operations(s->kernel) : 0;
        char folded[64] = "";
        if (s->kind == TRLI_STEP_KERNEL && s->nslabs > 0)
            snprintf(folded, sizeof folded, ", sets %d boundary layer%s", s->nslabs, s->nslabs == 1 ? "" : "s");
        if (s->kind == TRLI_STEP_FILL || s->kind == TRLI_STEP_PLANES)
            say(l, "  %-9s %-20s %d field%s exchanged, %d boundary layer%s", step_name(s->kind), target, s->nexchanged,
                s->nexchanged == 1 ? "" : "s", s->nslabs, s->nslabs == 1 ? "" : "s");
        else
            say(l, "  %-9s %-20s %d result%s from %d field%s, %d operation%s and %d bytes per point%s",
                step_name(s->kind), target, s->nout ? s->nout : 1, s->nout > 1 ? "s" : "", s->ninputs,
                s->ninputs == 1 ? "" : "s", operations, operations == 1 ? "" : "s", 8 * (s->nout + s->ninputs), folded);
    }
}

static void describe_memory(const listing *l, bool verbose)
{
    const trli_model *model = l->sim->model;
    char bytes[5][32];
    say(l, "memory       %s planned on this rank, in %d slots for %d fields",
        with_unit((double)model->planned_bytes, bytes[0]), model->nslots, model->nfields);
    if (!verbose) return;
    say(l, "  scratch    %s for each of %d worker%s", with_unit((double)model->scratch_bytes, bytes[0]),
        model->nworkers, model->nworkers == 1 ? "" : "s");
    for (int s = 0; s < trl_field_manager_spaces(model->memory); ++s) {
        trl_pool_stats p;
        trl_field_manager_get_stats(model->memory, s, &p);
        say(l, "  %-10s %s in use, %s lost to size classes, %s cached, %s at most; %" PRId64 " allocations", p.name,
            with_unit((double)p.in_use, bytes[1]), with_unit((double)p.lost, bytes[2]),
            with_unit((double)p.cached, bytes[3]), with_unit((double)p.peak, bytes[4]), p.allocations);
    }
}

trl_err trl_simulation_describe(const trl_simulation *sim, bool verbose, void (*write)(void *data, const char *line),
                                void *data)
{
    const listing l = {sim, write, data};
    trl_simulation_stats st;
    trl_simulation_get_stats(sim, &st);
    describe_grid(&l);
    describe_workers(&l);
    describe_expressions(&l);
    describe_ghosts(&l);
    for (int i = 0; i < sim->model->nprograms; ++i)
        if (verbose || sim->model->program[i] == sim->step) describe_program(&l, sim->model->program[i]);
    int n = trl_workers_count(sim->workers);
    describe_memory(&l, verbose);
    say(&l, "traffic      %" PRId64 " bytes per cell and step between kernels and memory", st.bytes_per_cell_step);
    say(&l, "tasks        %" PRId64 " per step, %" PRId64 " dependencies", st.step_graph.tasks,
        st.step_graph.dependencies);
    say(&l, "critical path  tau_1 = %.3g s, tau_inf = %.3g s, P(G) = %.3f for %d worker%s", st.step_graph.tau_1,
        st.step_graph.tau_inf, trl_amdahl_score(st.step_graph.tau_1, st.step_graph.tau_inf, n), n, n == 1 ? "" : "s");
    return TRL_OK;
}
