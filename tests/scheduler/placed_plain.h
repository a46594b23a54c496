/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The work of a random graph in a plain loop; and what a run should have copied, found by following each value through
 * the tasks in serial order. Included after placed_graph.h. */
#ifndef PLACED_PLAIN_H
#define PLACED_PLAIN_H

/* The same work, one task after the other. */
static inline void do_plainly(const placed_graph *g, data_frame *f)
{
    for (int i = 0; i < g->own; ++i) {
        const placed_node *n = &g->node[i];
        for (int k = 0; k < times_done(n); ++k) {
            work_on_data(n, f, 0, 0, 1);
            if (exchanges(n, k + 1)) exchange_data(n, f);
        }
        for (int k = 0; k < n->children; ++k) work_on_data(&g->node[n->first_child + k], f, 0, 0, 1);
    }
}

/* A value of a handle: where it is, where what it was made of is, and whether several tasks make it. */
typedef struct followed {
    uint32_t now, before;
    int mode;
} followed;

static inline void bring_value(data_frame *f, const data_handle *h, uint32_t *valid, int space)
{
    if (*valid == 0 || *valid >> space & 1) return;
    *valid |= 1u << space;
    ++f->copies;
    f->copies_out += space == 0;
    f->bytes += (int64_t)sizeof(uint64_t) * h->words;
}

static inline void follow_access(data_frame *f, const data_handle *h, followed *v, trl_access mode, int space)
{
    const bool shared = mode >= TRL_WRITE_PART, joins = shared && v->mode == (int)mode;
    if (shared && !joins) *v = (followed){.before = v->now};
    f->parted += joins && v->now != 1u << space;
    if (shared) bring_value(f, h, &v->before, space);
    if (mode == TRL_READ || mode == TRL_READ_WRITE) bring_value(f, h, &v->now, space);
    if (mode == TRL_WRITE || mode == TRL_READ_WRITE) v->now = 0;
    if (mode != TRL_READ) v->now |= 1u << space;
    v->mode = (int)mode;
}

/* A node's work, done once. A call brings data once, and makes values where its body is done. */
static inline void follow_node(const placed_node *n, data_frame *f, followed *v, bool exchange)
{
    const int space = atomic_load(&f->where[n->index]) - 1, *other = n->exchanged;
    for (int a = 0; a < n->naccesses; ++a) {
        const int h = n->access[a].handle;
        const data_handle *handle = &n->graph->handle[h];
        if (handle->nboxes > 0) follow_access(f, handle, &v[h], n->access[a].mode, space);
    }
    if (!exchange) return;
    const followed exchanged = v[other[0]];
    v[other[0]] = v[other[1]];
    v[other[1]] = exchanged;
}

/* Count what a run in the frame had to copy, with each task where it was done: where its data is valid then. before:
 * that when the run began. */
static inline void follow_values(const placed_graph *g, data_frame *f, const uint32_t *before, uint32_t *after)
{
    followed v[DATA_HANDLES];
    for (int h = 0; h < g->nhandles; ++h) v[h] = (followed){.now = before[h], .mode = TRL_READ};
    for (int i = 0; i < g->own; ++i) {
        const placed_node *n = &g->node[i];
        for (int k = 0; k < times_done(n); ++k) follow_node(n, f, v, exchanges(n, k + 1));
    }
    for (int h = 0; h < g->nhandles; ++h) after[h] = v[h].now;
}

#endif
