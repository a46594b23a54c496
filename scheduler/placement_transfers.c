/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The copies of values that a placement needs. */
#include <math.h>

#include "placement_values_impl.h"

static const char list_memory[] = "transfers of a placement";

typedef struct search {
    trl_context *ctx;
    const trli_place_graph *graph;
    const trli_platform *machine;
    const trli_values *values;
    trli_transfers *transfers;
    uint16_t *spaces; /* [values] spaces where it is valid, a bit each */
    int32_t *brought; /* [values][executors] the transfer that makes it valid there, or -1 */
} search;

static int32_t *brought_to(const search *s, int32_t value, int space)
{
    return &s->brought[(size_t)value * (size_t)s->machine->executors + (size_t)space];
}

static int source_of(const search *s, int32_t value, int to)
{
    if (s->spaces[value] >> TRLI_ANYWHERE & 1) return TRLI_ANYWHERE;
    return trli_cheapest_source(s->graph, s->machine, s->values->handle[value], s->spaces[value], to);
}

static trl_err add_writers(search *s, int32_t value, trli_transfer *transfer)
{
    trl_err err;
    const int32_t *first = &s->values->writer_first[value];
    trli_list *list = &s->transfers->writers;
    TRL_TRY(trli_list_reserve(s->ctx, list, first[1] - first[0], sizeof(int32_t), list_memory));
    for (int32_t i = first[0]; i < first[1]; ++i) ((int32_t *)list->data)[list->count++] = s->values->writer[i];
    transfer->writers_end = (int32_t)list->count;
done:
    return err;
}

/* Copy a value to where a task needs it. */
static trl_err bring(search *s, int32_t value, int32_t reader, int to)
{
    trl_err err;
    trli_list *list = &s->transfers->list;
    const int32_t *first = &s->values->writer_first[value];
    const int from = source_of(s, value, to), writers = (int)s->transfers->writers.count;
    trli_transfer transfer = {.handle = s->values->handle[value],
                              .reader = reader,
                              .writer = first[1] > first[0] ? s->values->writer[first[1] - 1] : -1,
                              .source = from == TRLI_ANYWHERE ? -1 : *brought_to(s, value, from),
                              .writers_first = writers,
                              .writers_end = writers,
                              .from = (uint8_t)from,
                              .to = (uint8_t)to};
    if (transfer.source < 0) TRL_TRY(add_writers(s, value, &transfer));
    TRL_TRY(trli_list_reserve(s->ctx, list, 1, sizeof transfer, list_memory));
    *brought_to(s, value, to) = (int32_t)list->count;
    ((trli_transfer *)list->data)[list->count++] = transfer;
    s->spaces[value] |= (uint16_t)(1u << to);
done:
    return err;
}

/* A value that is valid nowhere cannot be copied; a value without bytes only orders tasks and needs no copy. */
static bool may_copy(const search *s, int32_t value)
{
    return value >= 0 && s->spaces[value] && s->graph->handle[s->values->handle[value]].bytes > 0;
}

/* Of a call whose body is placed. What it writes, its body finds where it is, and leaves where it likes; what it only
 * reads, others may read at the same time, so it is brought before to all spaces where the body reads it. */
static trl_err see_call(search *s, int32_t task, int32_t access)
{
    trl_err err = TRL_OK;
    const int32_t needs = s->values->needs[access], makes = s->values->makes[access];
    const unsigned anywhere = 1u << TRLI_ANYWHERE, wanted = s->graph->called[access];
    trli_list *more = &s->transfers->more;
    if (makes >= 0) s->spaces[makes] |= (uint16_t)anywhere;
    if (wanted & anywhere) s->transfers->found[access] = needs >= 0 ? s->spaces[needs] : 0;
    for (int space = 0; space < s->machine->executors && !(wanted & anywhere); ++space) {
        if (!(wanted >> space & 1) || !may_copy(s, needs)) continue;
        if (!(s->spaces[needs] >> space & 1)) TRL_TRY(bring(s, needs, task, space));
        int32_t *first = &s->transfers->access_transfer[access];
        if (*first < 0) *first = *brought_to(s, needs, space);
        if (*first == *brought_to(s, needs, space)) continue;
        TRL_TRY(trli_list_reserve(s->ctx, more, 1, sizeof(trli_awaited), list_memory));
        ((trli_awaited *)more->data)[more->count++] = (trli_awaited){task, *brought_to(s, needs, space)};
    }
done:
    return err;
}

static trl_err see_access(search *s, int32_t task, int32_t access, int space)
{
    trl_err err = TRL_OK;
    const int32_t needs = s->values->needs[access], makes = s->values->makes[access];
    if (s->graph->called && s->graph->called[access]) return see_call(s, task, access);
    if (may_copy(s, needs)) {
        if (!(s->spaces[needs] >> space & 1)) TRL_TRY(bring(s, needs, task, space));
        s->transfers->access_transfer[access] = *brought_to(s, needs, space);
    }
    if (makes >= 0) s->spaces[makes] |= (uint16_t)(1u << space);
done:
    return err;
}

static trl_err prepare(search *s)
{
    const size_t values = (size_t)s->values->count, accesses = (size_t)s->graph->access_first[s->graph->tasks];
    *s->transfers = (trli_transfers){.access_transfer = trli_new(s->ctx, accesses, sizeof(int32_t)),
                                     .valid_after = trli_new(s->ctx, (size_t)s->graph->handles, sizeof(uint16_t))};
    s->spaces = trli_new(s->ctx, values, sizeof *s->spaces);
    s->brought = trli_new(s->ctx, values * (size_t)s->machine->executors, sizeof *s->brought);
    if (s->graph->called) s->transfers->found = trli_new(s->ctx, accesses, sizeof *s->transfers->found);
    if (!s->transfers->access_transfer || !s->transfers->valid_after || !s->spaces || !s->brought ||
        (s->graph->called && !s->transfers->found))
        return trli_no_memory(s->ctx, NULL, "for the transfers of a graph of %d tasks", s->graph->tasks);
    for (size_t i = 0; i < accesses; ++i) s->transfers->access_transfer[i] = -1;
    for (size_t i = 0; i < values * (size_t)s->machine->executors; ++i) s->brought[i] = -1;
    for (int32_t h = 0; h < s->graph->handles; ++h) s->spaces[h] = (uint16_t)trli_first_spaces(s->graph, h);
    return TRL_OK;
}

int trli_cheapest_source(const trli_place_graph *graph, const trli_platform *machine, int32_t handle, unsigned spaces,
                         int to)
{
    int best = to;
    double least = INFINITY;
    if (spaces >> to & 1) return to;
    for (int from = 0; from < machine->executors; ++from) {
        if (!(spaces >> from & 1)) continue;
        const double seconds = trli_copy_seconds(graph, machine, handle, from, to);
        if (seconds >= least) continue;
        best = from;
        least = seconds;
    }
    return best;
}

trl_err trli_transfers_of(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                          const trli_values *values, const uint8_t *executor, trli_transfers *transfers)
{
    trl_err err;
    search s = {.ctx = ctx, .graph = graph, .machine = machine, .values = values, .transfers = transfers};
    TRL_TRY(prepare(&s));
    for (int32_t t = 0; t < graph->tasks; ++t) {
        for (int32_t a = graph->access_first[t]; a < graph->access_first[t + 1]; ++a)
            TRL_TRY(see_access(&s, t, a, executor[t]));
    }
    for (int32_t h = 0; h < graph->handles; ++h) transfers->valid_after[h] = s.spaces[values->last[h]];
done:
    trli_free(s.spaces);
    trli_free(s.brought);
    if (err) trli_transfers_free(transfers);
    return err;
}

trl_err trli_transfers_find(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                            const uint8_t *executor, trli_transfers *transfers)
{
    trl_err err;
    trli_values values;
    *transfers = (trli_transfers){0};
    TRL_TRY(trli_values_find(ctx, graph, &values));
    err = trli_transfers_of(ctx, graph, machine, &values, executor, transfers);
    trli_values_free(&values);
done:
    return err;
}

unsigned trli_steady_spaces(const trli_place_graph *graph, const trli_transfers *transfers, int32_t handle)
{
    const unsigned anywhere = 1u << TRLI_ANYWHERE;
    unsigned spaces = 0;
    int32_t h = handle;
    do { /* back through the runs before, up to the one that wrote the value */
        h = graph->follows ? graph->follows[h] : h;
        spaces |= transfers->valid_after[h];
    } while (h != handle && transfers->valid_after[h] & anywhere);
    return spaces & ~anywhere;
}

/* A topological order, place[t] of task t, that is the order in which tasks were added wherever that is one: what a
 * transfer waits for is then no message that other ranks send after one which waits for this transfer. Bodies of calls,
 * whose tasks come behind all others, were added with the calls. */
static void number_as_added(const trli_place_graph *graph, int64_t *place)
{
    const int32_t own = graph->own > 0 ? graph->own : graph->tasks;
    for (int32_t t = 0; t < graph->tasks; ++t) place[t] = t < own ? t : 0;
    for (int32_t i = 0; i < graph->tasks; ++i) { /* place[t] is the last of the tasks before t, and t */
        const int32_t t = graph->order[i];
        for (int32_t k = graph->first[t]; k < graph->first[t + 1]; ++k)
            if (place[graph->successors[k]] < place[t]) place[graph->successors[k]] = place[t];
    }
    for (int32_t i = 0; i < graph->tasks; ++i) place[graph->order[i]] = (place[graph->order[i]] << 32) + i;
}

trl_err trli_transfers_wanted(trl_context *ctx, const trli_place_graph *graph, const trli_transfers *transfers,
                              int32_t *task)
{
    const trli_transfer *transfer = transfers->list.data;
    const int32_t n = (int32_t)transfers->list.count, *brought = transfers->access_transfer;
    const trli_awaited *more = transfers->more.data;
    int64_t *place = trli_new(ctx, (size_t)graph->tasks, sizeof *place);
    if (!place) return trli_no_memory(ctx, NULL, "for the transfers of a graph of %d tasks", graph->tasks);
    number_as_added(graph, place);
    for (int32_t x = 0; x < n; ++x) task[x] = transfer[x].reader;
    for (int32_t t = 0; t < graph->tasks; ++t)
        for (int32_t a = graph->access_first[t]; a < graph->access_first[t + 1]; ++a)
            if (brought[a] >= 0 && place[t] < place[task[brought[a]]]) task[brought[a]] = t;
    for (int64_t i = 0; i < transfers->more.count; ++i)
        if (place[more[i].task] < place[task[more[i].transfer]]) task[more[i].transfer] = more[i].task;
    for (int32_t x = n - 1; x >= 0; --x) { /* sources come before what is copied from them */
        const int32_t source = transfer[x].source;
        if (source >= 0 && place[task[x]] < place[task[source]]) task[source] = task[x];
    }
    trli_free(place);
    return TRL_OK;
}

void trli_transfers_free(trli_transfers *transfers)
{
    trli_list_free(&transfers->list);
    trli_list_free(&transfers->writers);
    trli_list_free(&transfers->more);
    trli_free(transfers->found);
    trli_free(transfers->access_transfer);
    trli_free(transfers->valid_after);
    *transfers = (trli_transfers){0};
}
