/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements as text that is written and read. */
#include "placement_file_impl.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph_impl.h"
#include "placed_impl.h"
#include "placement_assign_impl.h"

/* ---- tasks by name ---- */

typedef struct named {
    const char *name;
    int32_t task;
} named;

static int compare_named(const void *x, const void *y)
{
    const named *a = x, *b = y;
    const int order = strcmp(a->name, b->name);
    return order ? order : (a->task > b->task) - (a->task < b->task);
}

/* All tasks sorted by name, tasks of one name in the order added; NULL: no memory. */
static named *sort_tasks(const trl_graph *graph)
{
    named *list = trli_new(graph->ctx, (size_t)graph->task_count + 1, sizeof *list);
    if (!list) return NULL;
    for (int32_t t = 0; t < graph->task_count; ++t) list[t] = (named){trli_graph_task_name(graph, t), t};
    qsort(list, (size_t)graph->task_count, sizeof *list, compare_named);
    return list;
}

/* ---- reading ---- */

typedef struct reader {
    trl_graph *graph;
    const trli_platform *platform;
    const trli_placement_file *file;
    named *list;
    int32_t *line_of; /* [tasks] 0: none */
    uint8_t *executor;
    const char *at; /* the number of the line */
    int line, length;
    bool ours; /* the lines read now are for tasks of this rank */
} reader;

static trl_place place_of(const reader *r)
{
    return (trl_place){.file = r->file->path, .line = r->line, .column = 1, .source = r->at, .length = r->length};
}

static void advise_anew(const reader *r)
{
    trl_advise(r->graph->ctx, "write the file anew: trellis plan DECK --placement FILE");
}

/* Cut the last word off text[0..*length). Returns where the word begins, or -1. */
static int cut_word(const char *text, int *length)
{
    int end = *length;
    while (end > 0 && isspace((unsigned char)text[end - 1])) --end;
    int begin = end;
    while (begin > 0 && !isspace((unsigned char)text[begin - 1])) --begin;
    *length = begin;
    return begin < end ? begin : -1;
}

/* Read a word as a whole number; -1: it is none, or too large. */
static int number_at(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || (text[digits] && !isspace((unsigned char)text[digits]))) return -1;
    return (int)strtol(text, NULL, 10);
}

static bool word_is(const char *text, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && (!text[n] || isspace((unsigned char)text[n]));
}

/* Parse "NAME OCCURRENCE EXECUTOR": the length of the name, and the rest; false: the line has another form. */
static bool split_line(const char *at, int length, int *name, int *occurrence, int *executor)
{
    int word = cut_word(at, &length);
    if (word < 0) return false;
    *executor = 0;
    if (!word_is(at + word, "workers")) {
        const int device = number_at(at + word);
        word = cut_word(at, &length);
        if (device < 0 || word < 0 || !word_is(at + word, "device")) return false;
        *executor = device + 1;
    }
    word = cut_word(at, &length);
    *occurrence = word < 0 ? -1 : number_at(at + word);
    while (length > 0 && isspace((unsigned char)at[length - 1])) --length;
    *name = length;
    return *occurrence > 0 && length > 0;
}

static trl_err refuse_name(const reader *r, const char *name)
{
    const trl_place place = place_of(r);
    const trl_err err =
        trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place, "'%s' is no task of graph '%s'", name, r->graph->name);
    advise_anew(r);
    return err;
}

/* The task that a line names. */
static trl_err find_task(const reader *r, int length, int occurrence, int32_t *task)
{
    trl_err err = TRL_OK;
    int32_t from = 0, to = r->graph->task_count;
    char *name = trli_new(r->graph->ctx, (size_t)length + 1, 1);
    if (!name) return trli_no_memory(r->graph->ctx, NULL, "for a placement");
    memcpy(name, r->at, (size_t)length);
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (strcmp(r->list[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    int32_t n = 0;
    while (from + n < r->graph->task_count && strcmp(r->list[from + n].name, name) == 0) ++n;
    if (n == 0) TRL_TRY(refuse_name(r, name));
    if (occurrence > n) {
        const trl_place place = place_of(r);
        err = trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place,
                       "there is no task '%s' number %d in graph '%s'; the last one is number %d", name, occurrence,
                       r->graph->name, (int)n);
        advise_anew(r);
        goto done;
    }
    *task = r->list[from + occurrence - 1].task;
done:
    trli_free(name);
    return err;
}

static trl_err check_executor(const reader *r, int32_t task, int executor)
{
    const trl_place place = place_of(r);
    trl_context *ctx = r->graph->ctx;
    const char *name = trli_graph_task_name(r->graph, task);
    trl_err err;
    if (executor >= r->platform->executors) {
        if (r->platform->executors == 1)
            err = trl_fail(ctx, TRL_ERR_INPUT, &place, "there is no device %d: this run has none", executor - 1);
        else
            err = trl_fail(ctx, TRL_ERR_INPUT, &place, "there is no device %d; the last one is device %d", executor - 1,
                           r->platform->executors - 2);
        trl_advise(ctx, "write 'workers', or run with as many devices as the file was written for");
        return err;
    }
    if (trli_placed_eligible(r->graph, task, r->platform->kind[executor])) return TRL_OK;
    if (executor == 0) {
        err = trl_fail(ctx, TRL_ERR_INPUT, &place, "the workers cannot do task '%s'", name);
        trl_advise(ctx, "write a device");
        return err;
    }
    err = trl_fail(ctx, TRL_ERR_INPUT, &place, "device %d cannot do task '%s'", executor - 1, name);
    trl_advise(ctx, "write 'workers'");
    return err;
}

/* "rank R of N" starts the tasks of a rank. */
static trl_err read_rank(reader *r)
{
    const char *at = r->at + strlen("rank");
    at += strspn(at, " \t");
    const int rank = number_at(at);
    at += strcspn(at, " \t\n");
    at += strspn(at, " \t");
    const int ranks = word_is(at, "of") ? number_at(at + 2 + strspn(at + 2, " \t")) : -1;
    const int wanted = trl_context_ranks(r->graph->ctx);
    const trl_place place = place_of(r);
    if (rank < 0 || ranks < 0)
        return trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place,
                        "this begins like the tasks of a rank; write, for instance, 'rank 0 of 1'");
    r->ours = rank == trl_context_rank(r->graph->ctx);
    if (ranks == wanted) return TRL_OK;
    const trl_err err = trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place, "this is a placement for %d rank%s, not for %d",
                                 ranks, ranks == 1 ? "" : "s", wanted);
    trl_advise(r->graph->ctx, "write the file anew, on %d rank%s: trellis plan DECK --placement FILE", wanted,
               wanted == 1 ? "" : "s");
    return err;
}

static trl_err read_task(reader *r)
{
    const trl_place place = place_of(r);
    int name, occurrence, executor;
    int32_t task = 0;
    trl_err err = TRL_OK;
    if (!split_line(r->at, r->length, &name, &occurrence, &executor))
        return trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place,
                        "this is no task with its place; write a name, which of the tasks of that name it is, and "
                        "'workers' or 'device N', as in 'T 1 device 0'");
    if (!r->ours) return TRL_OK;
    TRL_TRY(find_task(r, name, occurrence, &task));
    TRL_TRY(check_executor(r, task, executor));
    if (r->line_of[task])
        return trl_fail(r->graph->ctx, TRL_ERR_INPUT, &place,
                        "task '%s' number %d is placed on line %d already; remove one of the lines",
                        trli_graph_task_name(r->graph, task), occurrence, (int)r->line_of[task]);
    r->line_of[task] = r->line;
    r->executor[task] = (uint8_t)executor;
done:
    return err;
}

static trl_err read_line(reader *r)
{
    const int blank = (int)strspn(r->at, " \t\r");
    if (blank >= r->length || r->at[blank] == '#') return TRL_OK;
    r->at += blank;
    r->length -= blank;
    int n = r->length, words = 0;
    while (cut_word(r->at, &n) >= 0) ++words;
    if (words == 4 && word_is(r->at, "rank")) {
        n = r->length;
        (void)cut_word(r->at, &n);
        const int of = cut_word(r->at, &n);
        if (word_is(r->at + of, "of")) return read_rank(r);
    }
    return read_task(r);
}

/* Tasks that write parts of a value, or add to it, must have the same executor. */
static trl_err check_units(reader *r)
{
    trl_context *ctx = r->graph->ctx;
    trli_values values = {0};
    trli_place_graph view = trli_graph_to_place(r->graph);
    trli_assignment a = {.ctx = ctx, .graph = &view, .machine = r->platform, .values = &values};
    uint16_t *eligible = trli_new(ctx, (size_t)view.tasks + 1, sizeof *eligible);
    trl_err err = TRL_OK;
    if (!eligible) return trli_no_memory(ctx, NULL, "for a placement");
    for (int32_t t = 0; t < view.tasks; ++t)
        for (int e = 0; e < r->platform->executors; ++e)
            if (trli_placed_eligible(r->graph, t, r->platform->kind[e])) eligible[t] |= (uint16_t)(1u << e);
    view.eligible = eligible;
    TRL_TRY(trli_values_find(ctx, &view, &values));
    TRL_TRY(trli_assignment_begin(&a));
    for (int32_t u = 0; u < a.units && err == TRL_OK; ++u) {
        const int32_t first = a.unit_task[a.unit_first[u]];
        for (int32_t i = a.unit_first[u] + 1; i < a.unit_first[u + 1] && err == TRL_OK; ++i) {
            const int32_t t = a.unit_task[i];
            if (r->executor[t] == r->executor[first]) continue;
            const trl_place place = {.file = r->file->path, .line = r->line_of[t] ? r->line_of[t] : r->line_of[first]};
            err = trl_fail(ctx, TRL_ERR_INPUT, &place,
                           "tasks '%s' and '%s' make one value together and need one executor; give both the same",
                           trli_graph_task_name(r->graph, first), trli_graph_task_name(r->graph, t));
        }
    }
done:
    trli_assignment_end(&a);
    trli_values_free(&values);
    trli_free(eligible);
    return err;
}

trl_err trli_placement_file_read(trl_graph *graph, const trli_platform *platform, const trli_placement_file *file,
                                 uint8_t *executor)
{
    reader r = {.graph = graph, .platform = platform, .file = file, .executor = executor, .ours = true};
    trl_err err = TRL_OK;
    r.list = sort_tasks(graph);
    r.line_of = trli_new(graph->ctx, (size_t)graph->task_count + 1, sizeof *r.line_of);
    if (!r.list || !r.line_of) TRL_TRY(trli_no_memory(graph->ctx, NULL, "for a placement"));
    memset(executor, 0, (size_t)graph->task_count * sizeof *executor);
    for (r.at = file->text; *r.at; r.at += r.length + (r.at[r.length] == '\n')) {
        r.length = (int)strcspn(r.at, "\n");
        ++r.line;
        TRL_TRY(read_line(&r));
    }
    TRL_TRY(check_units(&r));
done:
    trli_free(r.list);
    trli_free(r.line_of);
    return err;
}

/* ---- writing ---- */

trl_err trli_placement_file_write(trl_graph *graph, const uint8_t *executor, FILE *out)
{
    trl_err err = TRL_OK;
    int32_t *occurrence = trli_new(graph->ctx, (size_t)graph->task_count + 1, sizeof *occurrence);
    named *list = sort_tasks(graph);
    if (!list || !occurrence) TRL_TRY(trli_no_memory(graph->ctx, NULL, "for a placement"));
    for (int32_t i = 0; i < graph->task_count; ++i) {
        const bool again = i > 0 && strcmp(list[i].name, list[i - 1].name) == 0;
        occurrence[list[i].task] = again ? occurrence[list[i - 1].task] + 1 : 1;
    }
    for (int32_t t = 0; t < graph->task_count; ++t) {
        fprintf(out, "%-24s %4d  ", trli_graph_task_name(graph, t), (int)occurrence[t]);
        if (executor[t] == 0)
            fputs("workers\n", out);
        else
            fprintf(out, "device %d\n", executor[t] - 1);
    }
    if (ferror(out)) err = trl_fail(graph->ctx, TRL_ERR_IO, NULL, "cannot write the placement: %s", strerror(errno));
done:
    trli_free(list);
    trli_free(occurrence);
    return err;
}
