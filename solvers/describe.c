/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan as text: what would run. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cost_impl.h"
#include "describe_impl.h"
#include "front_impl.h"
#include "gpu_impl.h"
#include "model_run_impl.h"
#include "owners_impl.h"
#include "plan_impl.h"
#include "slot_plan_impl.h"
#include "time_blocking_impl.h"

void trli_listing_say(const trli_listing *l, const char *format, ...)
{
    char line[768];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    l->write(l->data, line);
}

const char *trli_with_unit(double bytes, char buffer[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 4; ++u) bytes /= 1024;
    snprintf(buffer, 32, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return buffer;
}

static const char *in_seconds(double seconds, char buffer[32])
{
    snprintf(buffer, 32, seconds < 1e-3 ? "%.3g us" : "%.3g ms", seconds * (seconds < 1e-3 ? 1e6 : 1e3));
    return buffer;
}

/* Why there are so many patches, by the model that chose them. */
static void describe_patches(const trli_listing *l)
{
    const trl_layout *layout = l->sim->layout;
    trli_layout_choice choice;
    if (!l->sim->problem->patches_auto || layout->ranks == 1) return;
    if (!trli_layout_choose_patches(&layout->grid, layout->ranks, trli_layout_in_one_node(layout->ctx), &choice))
        return;
    if (memcmp(choice.counts, layout->counts, sizeof choice.counts) != 0)
        trli_listing_say(l, "patches      one for each device");
    else if (layout->npatches == layout->ranks)
        trli_listing_say(l, "patches      one for each rank: more would spare the slowest rank less than %.0f %% of it",
                         100 * (1 - TRLI_PATCHES_PAY));
    else if (choice.cost_of_one == 0)
        trli_listing_say(l, "patches      up to %d for each rank: the grid cannot be cut into one for each",
                         trli_layout_most(layout));
    else
        trli_listing_say(
            l, "patches      up to %d for each rank: the slowest one has %.0f %% less to do than with %d x %d x %d",
            trli_layout_most(layout), 100 * (1 - choice.cost / choice.cost_of_one), choice.one[0], choice.one[1],
            choice.one[2]);
}

/* What ranks have of the cells, where the deck gives their shares. */
static void describe_shares(const trli_listing *l)
{
    const trl_layout *layout = l->sim->layout;
    double all = 1, least = 1, most = 0;
    if (!l->sim->problem->owners.share || !layout->owner) return;
    for (int a = 0; a < 3; ++a) all *= (double)layout->grid.cells[a];
    for (int r = 0; r < layout->ranks; ++r) {
        double part = 0;
        for (int at = layout->owner->first[r]; at < layout->owner->first[r + 1]; ++at) {
            const trl_patch p = trl_layout_patch(layout, trli_owners_at(layout->owner, at));
            part += (double)p.cells[0] * p.cells[1] * p.cells[2] / all;
        }
        if (part < least) least = part;
        if (part > most) most = part;
    }
    trli_listing_say(l, "shares       ranks have from %.3g to %.3g %% of the cells", 100 * least, 100 * most);
}

static void describe_grid(const trli_listing *l)
{
    const trl_layout *layout = l->sim->layout;
    const trl_grid *g = &layout->grid;
    const trli_owner_map *map = layout->owner;
    char cells[96] = "", cuts[96] = "", owners[64] = "";
    for (int a = 0; a < g->dim; ++a) {
        size_t c = strlen(cells), k = strlen(cuts);
        snprintf(cells + c, sizeof cells - c, "%s%" PRId64 "%s", a ? " x " : "", g->cells[a],
                 g->periodic[a] ? " (periodic)" : "");
        snprintf(cuts + k, sizeof cuts - k, "%s%d", a ? " x " : "", layout->counts[a]);
    }
    if (map && (layout->npatches > layout->ranks || map->owners.order != TRL_OWNERS_BLOCKS))
        snprintf(owners, sizeof owners, ", owners: %s", trl_owners_name(map->owners.order));
    trli_listing_say(l, "grid         %s cells, %s patches on %d rank%s%s", cells, cuts, layout->ranks,
                     layout->ranks == 1 ? "" : "s", owners);
    describe_patches(l);
    describe_shares(l);
}

static void describe_time(const trli_listing *l)
{
    const trl_method method = l->sim->problem->time.method;
    if (l->sim->problem->time.none)
        trli_listing_say(l, "time         none: equations are solved once");
    else
        trli_listing_say(l, "time         %s (%s), %d stage%s of order %d", trl_method_name(method),
                         trl_method_doc(method), l->sim->integrator->stages, l->sim->integrator->stages == 1 ? "" : "s",
                         l->sim->integrator->order);
}

static void describe_workers(const trli_listing *l)
{
    const trl_workers *workers = l->sim->workers;
    const char *given = trl_workers_policy(workers), *running = trl_workers_running_policy(workers);
    char split[64] = "", replaced[64] = "";
    int tasks, operators;
    trl_workers_get_pools(workers, &tasks, &operators);
    if (l->sim->split) snprintf(split, sizeof split, ": %d for tasks, %d for operators", tasks, operators);
    if (strcmp(given, running) != 0) snprintf(replaced, sizeof replaced, "; its queues are those of %s", running);
    trli_listing_say(l, "workers      %d per rank%s, policy %s%s", trl_workers_count(workers), split, given, replaced);
    if (l->sim->left_gpus > 0)
        trli_listing_say(l, "devices      one of %d GPUs, for a grid that is not cut; grid.patches, run.devices",
                         l->sim->left_gpus + 1);
}

/* How ranks of a node exchange, and by what that was decided. */
static void describe_ways(const trli_listing *l)
{
    const trli_model *m = l->sim->model;
    const trli_ways *w = &m->machine.ways;
    if (trl_context_ranks(l->sim->ctx) == 1) return;
    if (w->known)
        trli_listing_say(l,
                         "exchange     on a node by %s: memory that ranks share takes %.2g us and %.2g us for 100 kB, "
                         "messages %.2g and %.2g",
                         m->machine.shares ? "memory" : "messages", 1e6 * w->shared_s, 1e11 * w->shared_byte_s,
                         1e6 * w->message_s, 1e11 * w->message_byte_s);
    else
        trli_listing_say(l, "exchange     on a node by %s, not measured", m->machine.shares ? "memory" : "messages");
}

bool trl_simulation_inexact(const trl_simulation *sim, int i, size_t size, char *text)
{
    const trli_model *m = sim->model;
    if (m->settings.fast_math && m->settings.compile != TRL_COMPILE_NEVER && i-- == 0) {
        snprintf(text, size, "numerics.fast_math");
        return true;
    }
    for (int e = 0; e < m->front->nentries; ++e) {
        const trl_expression_entry *deck = m->front->entry[e].deck;
        if (!deck->type || deck->type->flags & (TRL_EXPR_PURE | TRL_EXPR_NEUTRAL)) continue;
        if (!m->front->entry[e].used || i-- > 0) continue;
        snprintf(text, size, "type '%s' of '%s' is not TRL_EXPR_PURE", deck->type->name, deck->name);
        return true;
    }
    return false;
}

static void describe_bits(const trli_listing *l)
{
    char reason[256];
    for (int i = 0; trl_simulation_inexact(l->sim, i, sizeof reason, reason); ++i)
        trli_listing_say(l, "bits         may differ between runs: %s", reason);
}

static void describe_expressions(const trli_listing *l)
{
    const trli_model *m = l->sim->model;
    trli_listing_say(l, "expressions");
    for (int v = 0; v < l->sim->nequations; ++v) {
        const trli_equation *eq = &l->sim->equation[v];
        char kind[600] = "equation";
        if (eq->direction)
            snprintf(kind, sizeof kind, "sensitivity of %s to %s", m->variable[eq->of].name,
                     m->direction[eq->direction - 1].name);
        trli_listing_say(l, "  %-20s %s at %s%s%s", m->variable[v].name, kind,
                         trli_location_text(m, (int)m->variable[v].location), eq->mask ? ", masked" : "",
                         eq->exact_field >= 0 ? ", with exact solution" : "");
    }
    for (int i = 0; i < m->front->nentries; ++i) {
        const trli_entry *e = &m->front->entry[m->front->order[i]];
        if (e->nformulas)
            trli_listing_say(l, "  %-20s formula%s%s%s", e->deck->name, e->nformulas > 1 ? " (vector)" : "",
                             e->has_boundary ? ", with boundary values" : "", e->used ? "" : ", unused");
        else {
            const char *form = e->neutral ? "device-neutral" : trli_gpu_plugin_form(m, e->opaque);
            trli_listing_say(l, "  %-20s type %s, %d tag%s from %d%s%s%s", e->deck->name, e->deck->type->name,
                             e->ncomputed, e->ncomputed == 1 ? "" : "s", e->nrequired, form ? ", " : "",
                             form ? form : "", e->used ? "" : ", unused");
        }
    }
}

static void describe_ghosts(const trli_listing *l)
{
    const trli_model *m = l->sim->model;
    trli_listing_say(l, "ghost layers (minus side, plus side)");
    for (int f = 0; f < m->nfields; ++f) {
        const trli_model_field *field = &m->field[f];
        char widths[96] = "";
        if (field->slot < 0 || !field->exchanged) continue;
        for (int a = 0; a < m->layout->grid.dim; ++a) {
            size_t n = strlen(widths);
            snprintf(widths + n, sizeof widths - n, "%s%c %d,%d", a ? "  " : "", 'x' + a, (int)field->ghost_lo[a],
                     (int)field->ghost_hi[a]);
        }
        trli_listing_say(l, "  %-20s %-7s %s", field->name, trli_location_text(m, (int)field->location), widths);
    }
}

static const char *step_name(trli_step_kind kind)
{
    switch (kind) {
    case TRLI_STEP_KERNEL:
        return "kernel";
    case TRLI_STEP_PLUGIN:
        return "plugin";
    case TRLI_STEP_FILL:
        return "ghosts";
    case TRLI_STEP_PLANES:
        return "sides";
    case TRLI_STEP_REDUCE:
    case TRLI_STEP_STABLE_DT:
        return "reduction";
    case TRLI_STEP_SCALAR:
        return "scalar";
    case TRLI_STEP_READ:
        return "read";
    case TRLI_STEP_CALL:
        return "call";
    }
    return "";
}

static const char *bound_of(const trli_listing *l, const trl_kernel_stats *st)
{
    if (!st->memory_bound) return "arithmetic";
    return l->sim->model->machine.streaming ? "memory" : "cache";
}

/* Layers beyond periodic sides that a kernel has in place of an exchange. */
static int images_of(const trli_step_plan *plan)
{
    int n = 0;
    for (int k = 0; k < plan->nslabs; ++k) n += plan->slab[k].kind == TRLI_SLAB_IMAGE;
    return n;
}

/* What a step computes; of a kernel also how long that takes, and why it is one of its own. */
static void describe_work(const trli_listing *l, const trli_program *p, int i, const char *target)
{
    const trli_step *s = &p->step[i];
    const trli_step_plan *plan = &p->plan->step[i];
    char flops[64] = "", time[128] = "", seconds[32], buffer[256];
    if (s->kind == TRLI_STEP_KERNEL) {
        const trl_kernel_stats st = trli_kernel_stats_of(p, s);
        snprintf(flops, sizeof flops, "%.0f flops and ", st.flops_per_point);
        int n = snprintf(time, sizeof time, "; %s, by %s", in_seconds(st.predicted, seconds), bound_of(l, &st));
        if (st.measured > 0 && n > 0)
            snprintf(time + n, sizeof time - (size_t)n, "; measured %s, %.0f%% of the roofline",
                     in_seconds(st.measured, seconds), 100 * st.predicted / st.measured);
    }
    trli_listing_say(l, "  %-9s %-20s %d result%s from %d field%s, %s%d bytes per point%s", step_name(s->kind), target,
                     s->nout ? s->nout : 1, s->nout > 1 ? "s" : "", plan->ninputs, plan->ninputs == 1 ? "" : "s", flops,
                     (int)sizeof(double) * (s->nout + plan->ninputs), time);
    const int images = images_of(plan), layers = plan->nslabs - images;
    if (s->kind == TRLI_STEP_KERNEL && layers > 0)
        trli_listing_say(l, "            sets %d boundary layer%s", layers, layers == 1 ? "" : "s");
    if (images > 0)
        trli_listing_say(l, "            takes %d layer%s beyond periodic sides from inside", images,
                         images == 1 ? "" : "s");
    const trli_step *maker = s->kind == TRLI_STEP_REDUCE ? trli_fused_sums_maker(p, s) : NULL;
    if (maker) trli_listing_say(l, "            in the sweep of kernel %s", l->sim->model->field[maker->field[0]].name);
    const char *reason = s->kind == TRLI_STEP_KERNEL ? trli_reason_not_fused(p, i, buffer, sizeof buffer) : NULL;
    if (reason) trli_listing_say(l, "            %s", reason);
}

static void describe_program(const trli_listing *l, const trli_program *p)
{
    const trli_model *m = l->sim->model;
    trli_listing_say(l, "program '%s'", p->name);
    if (p->after) trli_listing_say(l, "  ghosts    are there that program '%s' exchanges before", p->after->name);
    for (int i = 0; i < p->nsteps; ++i) {
        const trli_step *s = &p->step[i];
        const trli_step_plan *plan = &p->plan->step[i];
        if (!plan->live) continue;
        const char *target = s->nout ? m->field[s->field[0]].name : s->label ? s->label : "";
        if (s->kind == TRLI_STEP_FILL || s->kind == TRLI_STEP_PLANES)
            trli_listing_say(l, "  %-9s %-20s %d field%s exchanged, %d boundary layer%s", step_name(s->kind), target,
                             plan->exchanged.n, plan->exchanged.n == 1 ? "" : "s", plan->nslabs,
                             plan->nslabs == 1 ? "" : "s");
        else
            describe_work(l, p, i, target);
    }
}

/* Kernels that no compiler gets. */
static void describe_interpreted(const trli_listing *l)
{
    const trli_model_run *run = l->sim->model->run;
    const char *why;
    const int n = run->codes ? trli_codes_without_text(run->codes, &why) : 0;
    if (n > 0)
        trli_listing_say(l, "interpreted  %d kernel%s that no compiler gets, %sbecause %s", n, n == 1 ? "" : "s",
                         n == 1 ? "" : "the first ", why);
}

static void describe_memory(const trli_listing *l, bool verbose)
{
    const trli_model *model = l->sim->model;
    char bytes[5][32];
    trli_listing_say(l, "memory       %s planned on this rank, in %d slots for %d fields",
                     trli_with_unit((double)model->slots->bytes, bytes[0]), model->slots->n, model->nfields);
    if (!verbose) return;
    trli_listing_say(l, "  scratch    %s for each of %d worker%s",
                     trli_with_unit((double)model->run->scratch_bytes, bytes[0]), model->run->lanes,
                     model->run->lanes == 1 ? "" : "s");
    for (int s = 0; s < trl_field_manager_spaces(l->sim->frame->memory); ++s) {
        trl_pool_stats p;
        trl_field_manager_get_stats(l->sim->frame->memory, s, &p);
        trli_listing_say(
            l, "  %-10s %s in use, %s lost to size classes, %s cached, %s at most; %" PRId64 " allocations", p.name,
            trli_with_unit((double)p.in_use, bytes[1]), trli_with_unit((double)p.lost, bytes[2]),
            trli_with_unit((double)p.cached, bytes[3]), trli_with_unit((double)p.peak, bytes[4]), p.allocations);
    }
}

static int named_inside(const trli_program *p)
{
    int n = 0;
    for (int i = 0; i < p->ncandidates; ++i) n += p->candidate[i].uses > 0 && !p->candidate[i].stored;
    return n;
}

/* What each pass did, and what switches it off. */
static void describe_passes(const trli_listing *l)
{
    const trli_model *m = l->sim->model;
    const trli_program *p = l->sim->step;
    int kernels = 0, results = 0, stored = 0, held = 0, layers = 0, images = 0, work[5] = {0};
    for (int i = 0; i < p->nsteps; ++i) {
        const trli_step *s = &p->step[i];
        const trli_step_plan *plan = &p->plan->step[i];
        const trli_work *w = &p->work[i];
        if (!plan->live || s->kind != TRLI_STEP_KERNEL) continue;
        ++kernels;
        results += s->nout;
        work[0] += w->values;
        work[1] += w->samples;
        work[2] += w->call;
        work[3] += w->plane;
        work[4] += w->row;
        for (int o = 0; o < s->nout; ++o) stored += m->field[s->field[o]].why != NULL;
        images += images_of(plan);
        layers += plan->nslabs;
    }
    for (int f = 0; f < m->nfields; ++f) held += m->field[f].slot >= 0;
    trli_listing_say(l, "passes");
    trli_listing_say(l,
                     "  folding    %" PRId64 " operations on constants done; part of what a formula means, always on",
                     m->ir.folded);
    trli_listing_say(l, "  sharing    %" PRId64 " operations that were there already; run.passes", m->ir.shared);
    trli_listing_say(l,
                     "  fusion     %d named values inside of kernels, %d results of a step by %d kernels; run.fusion",
                     named_inside(p), results, kernels);
    for (int i = 0; i < p->ncandidates; ++i)
        if (p->candidate[i].uses > 0 && !p->candidate[i].stored)
            trli_listing_say(l, "    %-16s computed where it is needed, at %d offset%s", p->candidate[i].name,
                             p->candidate[i].uses, p->candidate[i].uses == 1 ? "" : "s");
    trli_listing_say(l, "  storing    %d intermediate field%s, at %.3g additions in the time of a byte; run.balance",
                     stored, stored == 1 ? "" : "s", m->machine.deciding.operations / trli_model_bandwidth(m));
    trli_listing_say(
        l, "  hoisting   %d operations at %d offsets; %d once for a call, %d for a plane, %d for a row; run.passes",
        work[0], work[1], work[2], work[3], work[4]);
    trli_listing_say(l, "  boundaries %d layer%s of kernels, %d of them beyond periodic sides; run.fusion", layers,
                     layers == 1 ? "" : "s", images);
    trli_listing_say(l, "  slots      %d fields in %d slots; run.passes", held, m->slots->n);
    trli_listing_say(l, "  compiling  run.compile");
}

static void describe_step_graph(const trli_listing *l, const trl_simulation_stats *st)
{
    const int n = trl_workers_count(l->sim->workers);
    trli_listing_say(l, "tasks        %" PRId64 " per step, %" PRId64 " dependencies", st->step_graph.tasks,
                     st->step_graph.dependencies);
    trli_listing_say(l, "critical path  tau_1 = %.3g s, tau_inf = %.3g s, P(G) = %.3f for %d worker%s",
                     st->step_graph.tau_1, st->step_graph.tau_inf,
                     trl_amdahl_score(st->step_graph.tau_1, st->step_graph.tau_inf, n), n, n == 1 ? "" : "s");
}

/* What a step moves, and how many are taken in one pass. */
static void describe_steps(const trli_listing *l, const trl_simulation_stats *st)
{
    char blocking[256];
    trli_listing_say(l, "traffic      %" PRId64 " bytes per cell and step between kernels and memory",
                     st->bytes_per_cell_step);
    trli_time_blocking_describe(l->sim, sizeof blocking, blocking);
    trli_listing_say(l, "time blocks  %s", blocking);
}

trl_err trl_simulation_describe(const trl_simulation *sim, bool verbose, void (*write)(void *data, const char *line),
                                void *data)
{
    const trli_listing l = {sim, write, data};
    const bool steps = !sim->problem->time.none;
    trl_simulation_stats st;
    trl_simulation_get_stats(sim, &st);
    describe_grid(&l);
    describe_time(&l);
    describe_workers(&l);
    describe_ways(&l);
    describe_bits(&l);
    describe_expressions(&l);
    describe_ghosts(&l);
    for (int i = 0; i < sim->model->nprograms; ++i)
        if (verbose || (steps && sim->model->program[i] == sim->step)) describe_program(&l, sim->model->program[i]);
    describe_interpreted(&l);
    if (verbose) describe_passes(&l);
    describe_memory(&l, verbose);
    if (steps) describe_steps(&l, &st);
    trli_describe_bound(&l);
    trli_describe_solvers(&l);
    if (steps) describe_step_graph(&l, &st);
    return TRL_OK;
}
