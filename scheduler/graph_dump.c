/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A task graph as text and as a picture. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "calls_impl.h"
#include "phases_impl.h"
#include "rank_impl.h"

enum { OFF_PATH = -2, PATH_END = -1 };

/* The data of both forms. Its arrays are made for the view, so that looking at a graph does not change it. */
typedef struct graph_view {
    const trl_graph *graph;
    trli_times times;
    double tau_1, tau_inf;
    double *weight;      /* [tasks] NULL before freeze */
    int32_t *next;       /* [tasks] the successor on the critical path, or PATH_END; OFF_PATH for others */
    int32_t *before;     /* [tasks] predecessors */
    int32_t *want_first; /* [tasks + 1] as in the graph */
    trli_want *want;
} graph_view;

/* ---- making a view ---- */

static trl_err alloc(const trl_graph *graph, int64_t count, size_t size, void *result)
{
    void *memory;
    trl_err err = trl_memory_alloc(graph->ctx, (size_t)(count + 1) * size, "picture of a task graph", &memory);
    if (err == TRL_OK) memcpy(result, &(void *){memset(memory, 0, (size_t)(count + 1) * size)}, sizeof memory);
    return err;
}

static void release(const trl_graph *graph, void *memory)
{
    trl_memory_free(graph->ctx, &memory);
}

static void free_view(graph_view *v)
{
    release(v->graph, v->weight);
    release(v->graph, v->next);
    release(v->graph, v->before);
    release(v->graph, v->want_first);
    release(v->graph, v->want);
}

/* Start at the task with the longest path and always follow the successor with the longest one. */
static void mark_path(graph_view *v)
{
    const trl_graph *graph = v->graph;
    const trli_task_record *record = trli_graph_records(graph);
    int32_t task = PATH_END;
    for (int32_t at = 0; at < graph->task_count; ++at) {
        int32_t t = graph->order[at];
        if (task == PATH_END || v->weight[t] > v->weight[task]) task = t;
    }
    while (task != PATH_END) {
        int32_t after = PATH_END;
        for (int32_t i = record[task].first; i < record[task].end; ++i) {
            int32_t s = graph->successors[i];
            if (after == PATH_END || v->weight[s] > v->weight[after]) after = s;
        }
        v->next[task] = after;
        task = after;
    }
}

/* Wants of the tasks of a graph that is not frozen yet: the wishes sorted by task. */
static trl_err sort_wishes(graph_view *v)
{
    trl_err err;
    const trl_graph *graph = v->graph;
    const trli_wish *wish = graph->wishes.data;
    int32_t *fill = NULL, n = graph->task_count;
    TRL_TRY(alloc(graph, n + 1, sizeof *fill, &fill));
    for (int64_t i = 0; i < graph->wishes.count; ++i) ++fill[wish[i].task + 1];
    for (int32_t t = 0; t < n; ++t) fill[t + 1] += fill[t];
    memcpy(v->want_first, fill, ((size_t)n + 1) * sizeof *fill);
    for (int64_t i = 0; i < graph->wishes.count; ++i)
        v->want[fill[wish[i].task]++] = (trli_want){.resource = wish[i].resource, .mode = wish[i].mode};
done:
    release(graph, fill);
    return err;
}

static trl_err view_wants(graph_view *v)
{
    trl_err err;
    const trl_graph *graph = v->graph;
    int32_t n = graph->task_count;
    bool ready = graph->frozen && graph->want_first;
    int64_t wants = ready ? graph->want_first[n] : graph->wishes.count;
    TRL_TRY(alloc(graph, n + 1, sizeof *v->want_first, &v->want_first));
    TRL_TRY(alloc(graph, wants, sizeof *v->want, &v->want));
    if (!ready) return sort_wishes(v);
    memcpy(v->want_first, graph->want_first, ((size_t)n + 1) * sizeof *v->want_first);
    if (wants > 0) memcpy(v->want, graph->want, (size_t)wants * sizeof *v->want);
done:
    return err;
}

static trl_err make_view(const trl_graph *graph, graph_view *v)
{
    trl_err err;
    const trli_dependency *edge = graph->edges.data;
    *v = (graph_view){.graph = graph, .times = trli_graph_times(graph)};
    TRL_TRY(alloc(graph, graph->task_count, sizeof *v->next, &v->next));
    TRL_TRY(alloc(graph, graph->task_count, sizeof *v->before, &v->before));
    TRL_TRY(view_wants(v));
    for (int32_t t = 0; t < graph->task_count; ++t) {
        v->next[t] = OFF_PATH;
        v->tau_1 += trli_task_time(graph, t, &v->times);
        v->before[t] = graph->frozen ? graph->predecessors[t] : 0;
    }
    for (int64_t i = 0; !graph->frozen && i < graph->edges.count; ++i) ++v->before[edge[i].after];
    if (graph->frozen) {
        TRL_TRY(alloc(graph, graph->task_count, sizeof *v->weight, &v->weight));
        v->tau_inf = trli_graph_weights(graph, &v->times, INT_MAX, v->weight);
        mark_path(v);
    }
done:
    return err;
}

static trl_err finish(graph_view *v, FILE *out, const char *form)
{
    const trl_graph *graph = v->graph;
    free_view(v);
    if (fflush(out) == 0 && !ferror(out)) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_IO, NULL, "cannot write the %s text of graph '%s': %s", form, graph->name,
                    strerror(errno));
}

/* ---- what both forms write ---- */

/* A time: seconds in a suitable unit, with `~` in front of an estimate; or a number of units of cost. */
static void format_time(const graph_view *v, double time, bool estimate, char text[32])
{
    static const char *const unit[] = {"s", "ms", "us", "ns"};
    const char *mark = estimate ? "~" : "";
    size_t u = 0;
    if (!v->times.measured) {
        snprintf(text, 32, "%.4g", time);
        return;
    }
    while (u + 1 < sizeof unit / sizeof *unit && time > 0.0 && time < 0.9995) {
        time *= 1e3;
        ++u;
    }
    snprintf(text, 32, "%s%.3g %s", mark, time, unit[u]);
}

static void format_task_time(const graph_view *v, int32_t task, char text[32])
{
    bool measured = trli_graph_mean(v->graph, task) > 0.0;
    format_time(v, trli_task_time(v->graph, task, &v->times), !measured, text);
}

/* Totals of the whole graph. */
static void write_totals(const graph_view *v, FILE *out)
{
    int workers = v->graph->ctx->threads;
    char total[32], path[32];
    format_time(v, v->tau_1, false, total);
    format_time(v, v->tau_inf, false, path);
    fprintf(out, "tau_1 %s", total);
    if (v->weight)
        fprintf(out, ", tau_inf %s, P(G) %.3g on %d workers", path, trl_amdahl_score(v->tau_1, v->tau_inf, workers),
                workers);
    if (!v->times.measured) fputs(" (estimates: nothing is measured yet)", out);
}

static int64_t dependencies(const graph_view *v)
{
    int64_t sum = 0;
    for (int32_t t = 0; t < v->graph->task_count; ++t) sum += v->before[t];
    return sum;
}

/* Write a name on one line: control characters as \n or \x1b, backslashes doubled. quoted: as part of a label of
 * dot. Returns the width in characters. out NULL: only the width. */
static int write_name(const char *name, bool quoted, FILE *out)
{
    int width = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; ++c) {
        char text[16] = {(char)*c, 0};
        if (*c == '\n')
            memcpy(text, "\\n", 3);
        else if (*c < 0x20 || *c == 0x7f)
            snprintf(text, sizeof text, "%sx%02x", quoted ? "\\\\" : "\\", *c);
        else if (*c == '\\' || (*c == '"' && quoted))
            snprintf(text, sizeof text, "\\%c", *c);
        if (out) fputs(text, out);
        /* Bytes after the first of a UTF-8 sequence have no width. */
        width += (*c & 0xc0) == 0x80 ? 0 : (int)strlen(text);
    }
    return width;
}

/* "locks a, b" with what is before the list and between the two lists. */
static void write_wants(const graph_view *v, int32_t task, bool quoted, const char *start, const char *between,
                        FILE *out)
{
    static const char *const verb[] = {[TRLI_USE] = "uses", [TRLI_LOCK] = "locks"};
    const trli_resource *resource = v->graph->resources.data;
    const char *separator = start;
    for (int mode = TRLI_LOCK; mode >= TRLI_USE; --mode) {
        bool first = true;
        for (int32_t i = v->want_first[task]; i < v->want_first[task + 1]; ++i) {
            if (v->want[i].mode != mode) continue;
            if (first)
                fprintf(out, "%s%s ", separator, verb[mode]);
            else
                fputs(", ", out);
            (void)write_name(trli_graph_text(v->graph, resource[v->want[i].resource].name), quoted, out);
            first = false;
            separator = between;
        }
    }
}

/* ---- dot ---- */

static void write_node(const graph_view *v, int32_t t, FILE *out)
{
    const trli_task_record *record = &trli_graph_records(v->graph)[t];
    bool critical = v->next[t] != OFF_PATH, poll = record->flags & TRL_TASK_POLL;
    char time[32];
    format_task_time(v, t, time);
    fprintf(out, "    t%d [label=\"", t);
    (void)write_name(trli_graph_task_name(v->graph, t), true, out);
    fprintf(out, "\\n%s%s", v->times.measured ? "" : "cost ", time);
    if (record->chunks > 1) fprintf(out, "\\n%d chunks", record->chunks);
    write_wants(v, t, true, "\\n", "\\n", out);
    fputc('"', out);
    if (critical || poll)
        fprintf(out, ", style=\"%s%s%s\"", critical ? "bold" : "", critical && poll ? "," : "", poll ? "dashed" : "");
    fputs(critical ? ", color=red];\n" : "];\n", out);
}

/* Edges of a frozen graph: those on the critical path, or the others. */
static void write_edges(const graph_view *v, bool critical, FILE *out)
{
    const trl_graph *graph = v->graph;
    const trli_task_record *record = trli_graph_records(graph);
    for (int32_t t = 0; t < graph->task_count; ++t) {
        for (int32_t i = record[t].first; i < record[t].end; ++i) {
            int32_t s = graph->successors[i];
            if ((v->next[t] == s) == critical) fprintf(out, "    t%d -> t%d;\n", t, s);
        }
    }
}

static void write_all_edges(const graph_view *v, FILE *out)
{
    const trl_graph *graph = v->graph;
    const trli_dependency *edge = graph->edges.data;
    for (int64_t i = 0; !graph->frozen && i < graph->edges.count; ++i)
        fprintf(out, "    t%d -> t%d;\n", edge[i].before, edge[i].after);
    if (!graph->frozen) return;
    write_edges(v, false, out);
    fputs("    edge [style=bold, color=red];\n", out);
    write_edges(v, true, out);
}

/* "halve, at most 9 rounds" */
static void write_body(const trli_call *call, bool quoted, FILE *out)
{
    (void)write_name(call->desc.body->name, quoted, out);
    if (!quoted) fputc('\'', out);
    if (call->desc.again)
        fprintf(out, ", at most %lld rounds", (long long)call->desc.rounds);
    else
        fputs(", 1 round", out);
}

/* A call, the tasks of its body, and the calls among these. */
static void write_cluster(const trl_graph *graph, int32_t c, FILE *out)
{
    const trli_call *call = &trli_graph_calls(graph)[c];
    fprintf(out, "    subgraph cluster%d {\n    label=\"", c);
    (void)write_name(trli_graph_task_name(graph, call->task), true, out);
    fputs(": ", out);
    write_body(call, true, out);
    fprintf(out, "\";\n    t%d;", call->task);
    for (int32_t t = call->first; t <= call->end; ++t)
        if (graph->call_of[t] == c) fprintf(out, " t%d;", t);
    fputc('\n', out);
    for (int32_t inner = c + 1; inner < graph->calls.count; ++inner)
        if (trli_graph_calls(graph)[inner].around == c) write_cluster(graph, inner, out);
    fputs("    }\n", out);
    if (call->desc.again) fprintf(out, "    t%d -> t%d [style=dotted, constraint=false];\n", call->end, call->task);
}

trl_err trl_graph_write_dot(const trl_graph *graph, FILE *out)
{
    graph_view v;
    trl_err err = make_view(graph, &v);
    if (err != TRL_OK) {
        free_view(&v);
        return err;
    }
    fputs("digraph \"", out);
    (void)write_name(graph->name, true, out);
    fputs("\" {\n    label=\"", out);
    (void)write_name(graph->name, true, out);
    fputs("\\n", out);
    write_totals(&v, out);
    fputs("\";\n    labelloc=t;\n    node [shape=box];\n", out);
    for (int32_t t = 0; t < graph->task_count; ++t) write_node(&v, t, out);
    for (int32_t c = 0; graph->frozen && c < graph->calls.count; ++c)
        if (trli_graph_calls(graph)[c].around == -1) write_cluster(graph, c, out);
    write_all_edges(&v, out);
    fputs("}\n", out);
    return finish(&v, out, "dot");
}

/* ---- text ---- */

static void write_row(const graph_view *v, int32_t t, int width, FILE *out)
{
    const trli_task_record *record = &trli_graph_records(v->graph)[t];
    char time[32], weight[32] = "-";
    format_task_time(v, t, time);
    if (v->weight) format_time(v, v->weight[t], false, weight);
    fprintf(out, "%c %7d  ", v->next[t] == OFF_PATH ? ' ' : '*', t);
    int used = write_name(trli_graph_task_name(v->graph, t), false, out);
    fprintf(out, "%*s %4d %6d %9s %9s %6d", used < width ? width - used : 0, "", record->type, record->chunks, time,
            weight, v->before[t]);
    write_wants(v, t, false, "  ", "; ", out);
    fputc('\n', out);
}

static void write_header(const graph_view *v, int width, FILE *out)
{
    const trl_graph *graph = v->graph;
    const trli_phase *phase = graph->phases.data;
    fputs("graph '", out);
    (void)write_name(graph->name, false, out);
    fprintf(out, "': %d tasks, %lld dependencies, %lld runs\n", graph->task_count, (long long)dependencies(v),
            (long long)graph->runs);
    write_totals(v, out);
    fputc('\n', out);
    for (int64_t p = 0; p < graph->phases.count; ++p) {
        fputs("phase '", out);
        (void)write_name(trli_graph_text(graph, phase[p].name), false, out);
        fprintf(out, "': types %d to %d\n", phase[p].first_type, phase[p].end_type - 1);
    }
    for (int64_t c = 0; graph->frozen && c < graph->calls.count; ++c) {
        const trli_call *call = &trli_graph_calls(graph)[c];
        fputs("call '", out);
        (void)write_name(trli_graph_task_name(graph, call->task), false, out);
        fprintf(out, "': tasks %d to %d of '", call->first, call->end - 1);
        write_body(call, false, out);
        fprintf(out, ", each ended by %d\n", call->end);
    }
    fprintf(out, "  %7s  %-*s %4s %6s %9s %9s %6s  %s\n", "task", width, "name", "type", "chunks",
            v->times.measured ? "time" : "cost", "weight", "before", "resources");
}

trl_err trl_graph_write_text(const trl_graph *graph, FILE *out)
{
    enum { WIDEST = 48 }; /* longer names shift the rest of their row */
    graph_view v;
    int width = 4;
    trl_err err = make_view(graph, &v);
    if (err != TRL_OK) {
        free_view(&v);
        return err;
    }
    for (int32_t t = 0; t < graph->task_count; ++t) {
        int wanted = write_name(trli_graph_task_name(graph, t), false, NULL);
        if (wanted > width) width = wanted < WIDEST ? wanted : WIDEST;
    }
    write_header(&v, width, out);
    for (int32_t at = 0; at < graph->task_count; ++at) write_row(&v, graph->frozen ? graph->order[at] : at, width, out);
    return finish(&v, out, "plain");
}
