/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A placement as text for users: where each task runs, and why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "placement_run_impl.h"

typedef struct writer {
    const trli_placement *p;
    const trli_outlook *o;
    FILE *out;
} writer;

static const char *in_seconds(double seconds, char buffer[32])
{
    snprintf(buffer, 32, seconds < 1e-3 ? "%.3g us" : "%.3g ms", seconds * (seconds < 1e-3 ? 1e6 : 1e3));
    return buffer;
}

static const char *in_bytes(double bytes, char buffer[32])
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    int u = 0;
    for (; bytes >= 1000 && u < 4; ++u) bytes /= 1000;
    snprintf(buffer, 32, "%.3g %s", bytes, unit[u]);
    return buffer;
}

static const char *name_of(int e, char buffer[32])
{
    snprintf(buffer, 32, e == 0 ? "workers" : e == TRLI_ANYWHERE ? "where it is" : "device %d", e - 1);
    return buffer;
}

static const char *rule_name(const trli_placement *p)
{
    static const char *const names[] = {
#define PLACEMENT_NAME(name, doc) #name,
        TRLI_PLACEMENT_LIST(PLACEMENT_NAME)
#undef PLACEMENT_NAME
    };
    switch (p->rule.mode) {
    case TRLI_PLACE_BY_TIMES:
        return p->policy ? p->policy->name : names[p->rule.kind];
    case TRLI_PLACE_AT_RANDOM:
        return "random";
    case TRLI_PLACE_ON_DEVICES:
        return "devices";
    case TRLI_PLACE_BY_FILE:
        return p->rule.file.path;
    }
    return "";
}

/* Predicted seconds of a run in which one executor runs every task that it may. */
static trl_err seconds_alone(const trli_placement *p, int e, double *seconds)
{
    trli_placement alone = *p;
    trli_outlook outlook;
    trl_err err = TRL_OK;
    alone.executor = trli_new(p->graph->ctx, (size_t)p->graph->task_count + 1, sizeof *alone.executor);
    if (!alone.executor) return trli_no_memory(p->graph->ctx, NULL, "for a placement");
    trli_placement_put_on(p, e, alone.executor);
    TRL_TRY(trli_outlook_make(&alone, &outlook));
    *seconds = outlook.prediction.seconds;
    trli_outlook_free(&outlook);
done:
    trli_free(alone.executor);
    return err;
}

static trl_err write_executor(const writer *w, int e)
{
    const trli_placement *p = w->p;
    char name[32], text[2][32];
    int64_t tasks = 0;
    double alone = 0;
    trl_err err;
    TRL_TRY(seconds_alone(p, e, &alone));
    for (int32_t t = 0; t < p->graph->task_count; ++t) tasks += p->executor[t] == e;
    fprintf(w->out, "  %-10s %" PRId64 " task%s, busy %s of a step; alone it takes %s", name_of(e, name), tasks,
            tasks == 1 ? "" : "s", in_seconds(w->o->prediction.busy[e], text[0]), in_seconds(alone, text[1]));
    if (e > 0) {
        fprintf(w->out, "; %s planned", in_bytes((double)w->o->memory[e], text[0]));
        if (p->platform.bytes[e]) fprintf(w->out, " of %s", in_bytes((double)p->platform.bytes[e], text[0]));
        fprintf(w->out, "; %s", trli_device_of(p->devices, e)->info.name);
    } else {
        fprintf(w->out, "; %d thread%s", p->workers, p->workers == 1 ? "" : "s");
    }
    fputc('\n', w->out);
done:
    return err;
}

static void write_task(const writer *w, int32_t t)
{
    const trli_placement *p = w->p;
    const char *between = "";
    char name[32], text[3][32];
    fprintf(w->out, "    %-20s %-9s", trli_graph_task_name(p->graph, t), name_of(p->executor[t], name));
    if (p->executor[t] > 0) fprintf(w->out, " chain %d, region %d,", (int)w->o->chain[t], (int)w->o->region[t]);
    fprintf(w->out, " from %s to %s  (", in_seconds(w->o->prediction.start[t], text[0]),
            in_seconds(w->o->prediction.end[t], text[1]));
    for (int e = 0; e < p->platform.executors; ++e) {
        const double s = p->seconds[(size_t)t * (size_t)p->platform.executors + (size_t)e];
        fprintf(w->out, "%s%s ", between, name_of(e, name));
        if (!(p->eligible[t] & 1u << e))
            fputs("cannot", w->out);
        else if (s > 0)
            fputs(in_seconds(s, text[2]), w->out);
        else
            fputs("not timed", w->out);
        between = ", ";
    }
    fputs(")\n", w->out);
}

static void write_transfer(const writer *w, int32_t i)
{
    const trli_placement *p = w->p;
    const trli_transfer *t = (const trli_transfer *)w->o->transfers.list.data + i;
    const trl_policy_handle *handle = (const trl_policy_handle *)p->graph->handles.data + t->handle;
    const double end = w->o->prediction.copy_end[i], lead = w->o->prediction.start[t->reader] - end;
    char from[32], to[32], text[3][32];
    fprintf(w->out, "    %-20s %zu bytes from %s to %s, from %s to %s, %s before %s\n",
            trli_graph_text(p->graph, handle->name), handle->bytes, name_of(t->from, from), name_of(t->to, to),
            in_seconds(w->o->prediction.copy_start[i], text[0]), in_seconds(end, text[1]), in_seconds(lead, text[2]),
            trli_graph_task_name(p->graph, t->reader));
}

static void write_head(const writer *w, bool measured)
{
    const trli_placement *p = w->p;
    char text[2][32];
    fprintf(w->out, "placement    %s, by %s%s%s\n", rule_name(p),
            measured ? "measured times" : "times that the cost model estimates; no step was timed",
            p->single >= 0 ? "; one executor alone was faster" : "", p->late ? "; without prefetch" : "");
    fprintf(w->out,
            "  a step     %s predicted; %" PRId64 " transfer%s of %" PRId64 " bytes in all, %d chain%s and %d region%s "
            "on devices",
            in_seconds(w->o->prediction.seconds, text[0]), w->o->transfers.list.count,
            w->o->transfers.list.count == 1 ? "" : "s", trli_outlook_bytes(p, w->o), (int)w->o->chains,
            w->o->chains == 1 ? "" : "s", (int)w->o->regions, w->o->regions == 1 ? "" : "s");
    if (measured && p->runs > 0 && p->least_ns < INT64_MAX)
        fprintf(w->out, "; %s measured", in_seconds(1e-9 * (double)p->least_ns, text[1]));
    fputc('\n', w->out);
}

trl_err trli_placement_explain(const trli_placement *p, bool measured, FILE *out)
{
    trli_outlook outlook;
    const writer w = {p, &outlook, out};
    trl_err err;
    TRL_TRY(trli_outlook_make(p, &outlook));
    write_head(&w, measured);
    for (int e = 0; e < p->platform.executors && err == TRL_OK; ++e) err = write_executor(&w, e);
    fputs("  tasks, and what each executor takes for them\n", out);
    for (int32_t i = 0; i < p->graph->task_count; ++i) write_task(&w, p->graph->order[i]);
    if (outlook.transfers.list.count > 0) fputs("  transfers\n", out);
    for (int32_t i = 0; i < (int32_t)outlook.transfers.list.count; ++i) write_transfer(&w, i);
    trli_outlook_free(&outlook);
    TRL_TRY(err);
    if (ferror(out)) err = trl_fail(p->graph->ctx, TRL_ERR_IO, NULL, "cannot write the placement: %s", strerror(errno));
done:
    return err;
}
