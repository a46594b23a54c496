/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls of a region that nothing but waits that are seldom needed comes between are enqueued together. */
#include "placed_impl.h"

/* With several devices many waits for copies are needed in each run. */
int32_t trli_placed_row(const trli_placed *p, const trli_device_command *c, int32_t n, int32_t *calls)
{
    int32_t i = 0;
    *calls = 0;
    for (; i < n && c[i].stream == c[0].stream; ++i) {
        if (c[i].kind != TRLI_COMMAND_CALL && (c[i].kind != TRLI_COMMAND_WAIT_IF_SET || p->devices->n > 1)) break;
        *calls += c[i].kind == TRLI_COMMAND_CALL;
    }
    return i;
}

typedef struct finder {
    const trli_placed_nodes *nodes;
    int32_t *call_of;       /* [tasks] number of a task's call, or -1 */
    int32_t *first, *after; /* of the calls in question */
} finder;

/* By call those before it in the row that it follows. */
static void find_order(const finder *f, const trli_placed *p, int32_t row, int32_t n)
{
    int32_t count = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t task = p->call[row + i];
        f->first[i] = count;
        for (int32_t k = f->nodes->before_first[task]; k < f->nodes->before_first[task + 1]; ++k) {
            const int32_t before = f->nodes->before[k];
            const int32_t call = before < f->nodes->tasks ? f->call_of[before] - row : -1;
            if (call >= 0 && call < i) f->after[count++] = call;
        }
    }
    f->first[n] = count;
}

/* Whether some of n calls enqueue something else in each run. */
static bool varies(const trli_placed *p, int32_t first, int32_t n)
{
    bool some = false;
    for (int32_t i = first; i < first + n; ++i)
        some |= (trli_graph_records(p->logical)[p->call[i]].flags & TRL_TASK_VARIES) != 0;
    return some;
}

static trl_err add_relaunches(const finder *f, trli_placed *p, const trli_launch *launch)
{
    const trli_device_command *c = (const trli_device_command *)p->commands.data + launch->first;
    trl_device *device = trli_device_of(p->devices, launch->space);
    trl_err err = TRL_OK;
    for (int32_t i = 0, n; i<launch->n; i += n> 0 ? n : 1) {
        int32_t calls, first = i;
        n = trli_placed_row(p, c + i, launch->n - i, &calls);
        if (calls == 0) continue;
        while (c[first].kind != TRLI_COMMAND_CALL) ++first;
        if (varies(p, c[first].index, calls)) continue;
        find_order(f, p, c[first].index, calls);
        TRL_TRY(trli_relaunch_create(device, (trli_stream)c[first].stream, calls, f->first, f->after,
                                     &p->relaunch[c[first].index]));
    }
done:
    return err;
}

trl_err trli_placed_relaunches_create(trli_placed *p, const trli_placed_nodes *nodes)
{
    trl_context *ctx = p->logical->ctx;
    trl_err err = TRL_OK;
    finder f = {.nodes = nodes};
    if (!p->logical->state || p->devices->device[0]->kind != TRL_KIND_GPU) return TRL_OK;
    p->relaunch = trli_new(ctx, (size_t)p->ncalls + 1, sizeof(trli_relaunch *));
    f.call_of = trli_new(ctx, (size_t)nodes->tasks + 1, sizeof *f.call_of);
    f.first = trli_new(ctx, (size_t)p->ncalls + 2, sizeof *f.first);
    f.after = trli_new(ctx, (size_t)nodes->before_first[nodes->n] + 1, sizeof *f.after);
    if (!p->relaunch || !f.call_of || !f.first || !f.after) TRL_TRY(trli_no_memory(ctx, NULL, "for a placed graph"));
    for (int32_t t = 0; t < nodes->tasks; ++t) f.call_of[t] = -1;
    for (int32_t i = 0; i < p->ncalls; ++i) f.call_of[p->call[i]] = i;
    for (int32_t l = 0; l < p->nregions; ++l) TRL_TRY(add_relaunches(&f, p, &p->launch[l]));
done:
    trli_free(f.call_of);
    trli_free(f.first);
    trli_free(f.after);
    return err;
}

void trli_placed_relaunches_destroy(trli_placed *p)
{
    for (int32_t i = 0; p->relaunch && i < p->ncalls; ++i) trli_relaunch_destroy(&p->relaunch[i]);
    trli_free(p->relaunch);
}
