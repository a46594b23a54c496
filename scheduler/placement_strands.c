/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Strands: tasks that hand most of their data on to one another, as all those of a patch do, from stage to stage and
 * from run to run. */
#include <math.h>

#include "placement_assign_impl.h"

typedef struct strands {
    const trli_place_graph *graph;
    const trli_values *values;
    int32_t *root;         /* [tasks] towards the first task of its strand */
    int32_t *home;         /* [tasks] of a first task: the home of what its strand writes; 0: of none */
    double *made, *needed; /* [tasks] bytes of all values that it makes, or needs */
    double *common;        /* [tasks] bytes that the task makes for the reader that was seen last */
    int32_t *seen;         /* [tasks] that reader, plus one */
} strands;

static int32_t root_of(const strands *s, int32_t task)
{
    while (s->root[task] != task) task = s->root[task] = s->root[s->root[task]];
    return task;
}

/* A strand has one home: what brings homes together, as a sum over all of them does, belongs to the first. */
static void join(strands *s, int32_t a, int32_t b)
{
    a = root_of(s, a);
    b = root_of(s, b);
    if (s->home[a] != 0 && s->home[b] != 0 && s->home[a] != s->home[b]) return;
    const int32_t first = a > b ? b : a;
    s->home[first] = s->home[a] != 0 ? s->home[a] : s->home[b];
    s->root[a > b ? a : b] = first;
}

/* The value that an access needs, as it was made in this run or in the one before; -1: none. */
static int32_t value_of(const strands *s, int32_t access)
{
    const trli_place_graph *g = s->graph;
    const int32_t value = s->values->needs[access];
    if (value < 0 || value >= g->handles) return value;
    return s->values->last[g->follows ? g->follows[value] : value];
}

/* The task that makes it, the first of several; -1: none. */
static int32_t maker_of(const strands *s, int32_t access)
{
    const int32_t value = value_of(s, access);
    if (value < 0) return -1;
    const int32_t first = s->values->writer_first[value];
    return first < s->values->writer_first[value + 1] ? s->values->writer[first] : -1;
}

static double bytes_of(const strands *s, int32_t access)
{
    return (double)s->graph->handle[s->graph->access[access].handle].bytes;
}

static void count_bytes(strands *s)
{
    const trli_place_graph *g = s->graph;
    for (int32_t t = 0; t < g->tasks; ++t) {
        s->root[t] = t;
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
            if (s->values->makes[a] >= 0) s->made[t] += bytes_of(s, a);
            if (s->values->needs[a] >= 0) s->needed[t] += bytes_of(s, a);
        }
    }
}

/* A task that devices may run joins those that make a quarter or more of what it needs, if that is more than a third of
 * all that they make. */
static void join_makers_of(strands *s, int32_t task)
{
    const trli_place_graph *g = s->graph;
    for (int32_t a = g->access_first[task]; a < g->access_first[task + 1] && g->eligible[task] > 1; ++a) {
        const int32_t maker = maker_of(s, a);
        if (maker < 0) continue;
        if (s->seen[maker] != task + 1) s->common[maker] = 0.0;
        s->seen[maker] = task + 1;
        s->common[maker] += bytes_of(s, a);
        if (4.0 * s->common[maker] >= s->needed[task] && 3.0 * s->common[maker] > s->made[maker]) join(s, maker, task);
    }
}

/* A task that is alone joins the strand that alone reads the most part of what it makes. reader: [values] such a
 * strand, plus one; 0: nobody but the maker reads it; -1: several do. size: [tasks] of a first task's strand. */
static void join_readers(strands *s, int32_t *reader, int32_t *size)
{
    const trli_place_graph *g = s->graph;
    for (int32_t t = 0; t < g->tasks; ++t)
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
            const int32_t value = value_of(s, a), strand = root_of(s, t) + 1;
            if (value >= 0 && bytes_of(s, a) > 0.0 && maker_of(s, a) != t)
                reader[value] = reader[value] == 0 || reader[value] == strand ? strand : -1;
        }
    for (int32_t t = 0; t < g->tasks; ++t) ++size[root_of(s, t)];
    for (int32_t t = 0; t < g->tasks; ++t) {
        int32_t only = 0;
        double bytes = 0.0;
        for (int32_t a = g->access_first[t]; size[t] == 1 && a < g->access_first[t + 1]; ++a) {
            const int32_t makes = s->values->makes[a];
            if (makes < 0 || reader[makes] <= 0 || (only > 0 && reader[makes] != only)) continue;
            only = reader[makes];
            bytes += bytes_of(s, a);
        }
        if (2.0 * bytes > s->made[t]) join(s, t, only - 1);
    }
}

/* A task that is alone, and makes what nobody reads, joins the one that overwrites it. latest: [handles] the value that
 * was made last, or 0. */
static void join_writers(strands *s, const int32_t *reader, const int32_t *size, int32_t *latest)
{
    const trli_place_graph *g = s->graph;
    for (int32_t t = 0; t < g->tasks; ++t)
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
            const int32_t makes = s->values->makes[a], before = latest[g->access[a].handle];
            if (makes < 0) continue;
            latest[g->access[a].handle] = makes;
            if (before == 0 || before == makes || reader[before] != 0) continue;
            const int32_t writer = s->values->writer[s->values->writer_first[before]];
            if (size[writer] == 1) join(s, writer, t);
        }
}

/* Before others join: tasks that devices may run join the first one that writes data of the same home. first: [homes],
 * that task plus one. */
static trl_err join_homes(trl_context *ctx, strands *s)
{
    const trli_place_graph *g = s->graph;
    int32_t most = 0;
    if (!g->homes) return TRL_OK;
    for (int32_t h = 0; h < g->handles; ++h) most = g->homes[h] > most ? g->homes[h] : most;
    int32_t *first = trli_new(ctx, (size_t)most + 1, sizeof *first);
    if (!first) return trli_no_memory(ctx, NULL, "to assign %d tasks", g->tasks);
    for (int32_t t = 0; t < g->tasks; ++t)
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1] && g->eligible[t] > 1; ++a) {
            int32_t *of = &first[g->homes[g->access[a].handle]];
            if (of == first || s->values->makes[a] < 0) continue;
            if (*of == 0) *of = t + 1;
            if (s->home[root_of(s, t)] == 0) s->home[root_of(s, t)] = g->homes[g->access[a].handle];
            join(s, *of - 1, t);
        }
    trli_free(first);
    return TRL_OK;
}

trl_err trli_strands_find(trl_context *ctx, const trli_place_graph *graph, const trli_values *values, int32_t *strand,
                          int32_t *count)
{
    const size_t tasks = (size_t)graph->tasks;
    trli_scratch scratch = {.ctx = ctx};
    strands s = {.graph = graph,
                 .values = values,
                 .root = trli_scratch_new(&scratch, tasks, sizeof *s.root),
                 .home = trli_scratch_new(&scratch, tasks, sizeof *s.home),
                 .made = trli_scratch_new(&scratch, tasks, sizeof *s.made),
                 .needed = trli_scratch_new(&scratch, tasks, sizeof *s.needed),
                 .common = trli_scratch_new(&scratch, tasks, sizeof *s.common),
                 .seen = trli_scratch_new(&scratch, tasks, sizeof *s.seen)};
    int32_t *reader = trli_scratch_new(&scratch, (size_t)values->count, sizeof *reader);
    int32_t *size = trli_scratch_new(&scratch, tasks, sizeof *size);
    int32_t *latest = trli_scratch_new(&scratch, (size_t)graph->handles, sizeof *latest);
    trl_err err = TRL_OK;
    *count = 0;
    if (scratch.failed) TRL_TRY(trli_no_memory(ctx, NULL, "to assign %d tasks", graph->tasks));
    count_bytes(&s);
    TRL_TRY(join_homes(ctx, &s));
    for (int32_t t = 0; t < graph->tasks; ++t) join_makers_of(&s, t);
    join_readers(&s, reader, size);
    join_writers(&s, reader, size, latest);
    for (int32_t t = 0; t < graph->tasks; ++t) {
        const int32_t root = root_of(&s, t);
        strand[t] = root == t ? (*count)++ : strand[root];
    }
done:
    trli_scratch_free(&scratch);
    return err;
}

/* ---- dealt in blocks ---- */

/* The executors that take part, and how fast they are: tasks are dealt in that proportion. */
static double find_speeds(const trli_assignment *a, unsigned among, double speed[TRLI_EXECUTORS])
{
    double all = 0.0;
    for (int e = 0; e < a->machine->executors; ++e) {
        double seconds = 0.0;
        for (int32_t t = 0; t < a->graph->tasks; ++t)
            if (a->may[a->unit[t]] >> e & 1)
                seconds += a->graph->seconds[(size_t)t * (size_t)a->machine->executors + (size_t)e];
        speed[e] = among >> e & 1 && seconds > 0.0 ? a->machine->parallel[e] / seconds : 0.0;
        all += speed[e];
    }
    return all;
}

/* Work of the strands that executors among those may do, in seconds of any of them. */
static double weigh(const trli_assignment *a, const int32_t *strand, unsigned among, double *work)
{
    double all = 0.0;
    for (int32_t t = 0; t < a->graph->tasks; ++t) {
        double least = INFINITY;
        for (int e = 0; e < a->machine->executors; ++e) {
            const double seconds = a->graph->seconds[(size_t)t * (size_t)a->machine->executors + (size_t)e];
            if (a->may[a->unit[t]] & among & 1u << e && seconds < least) least = seconds;
        }
        if (least == INFINITY) continue;
        work[strand[t]] += least;
        all += least;
    }
    return all;
}

trl_err trli_assign_blocks(trli_assignment *a, const int32_t *strand, int32_t strands, unsigned among, bool *complete)
{
    double speed[TRLI_EXECUTORS], *work = trli_new(a->ctx, (size_t)strands + 1, sizeof *work), before = 0.0;
    uint8_t *executor = trli_new(a->ctx, (size_t)strands + 1, sizeof *executor);
    *complete = false;
    if (!work || !executor) {
        trli_free(work);
        trli_free(executor);
        return trli_no_memory(a->ctx, NULL, "to assign %d tasks", a->graph->tasks);
    }
    const double speeds = find_speeds(a, among, speed), all = weigh(a, strand, among, work);
    for (int32_t s = 0; s < strands; ++s) {
        double part = all > 0.0 ? (before + 0.5 * work[s]) / all * speeds : 0.0;
        int e = 0;
        for (int i = 0; i < a->machine->executors; ++i) {
            if (speed[i] == 0.0) continue;
            e = i;
            part -= speed[i];
            if (part <= 0.0) break;
        }
        executor[s] = (uint8_t)e;
        before += work[s];
    }
    trli_assignment_clear(a);
    *complete = true;
    for (int32_t i = 0; i < a->graph->tasks && *complete; ++i) {
        const int32_t t = a->graph->order[i];
        if (a->executor[t] == TRLI_UNPLACED) *complete = trli_unit_place_near(a, a->unit[t], executor[strand[t]]);
    }
    trli_free(work);
    trli_free(executor);
    return TRL_OK;
}
