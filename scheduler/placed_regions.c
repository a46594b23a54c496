/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Regions of a placed graph. All nodes are visited in a topological order; a task of a device joins the open region
 * of its device. A region is closed when a node outside of it that depends on a member is visited: until then no
 * visited node outside depends on the region, so a task that joins creates no cycle. Nodes that close a region wait
 * while there are other nodes. A task that waits longer for the host than the region does not join: it would delay
 * the others.
 *
 * Poll tasks send, receive, and reduce over ranks. One may wait, by way of other ranks, for any that was added before
 * it. A region that waits for poll task number 5 and is followed by number 4 would be a cycle, though this rank's graph
 * does not show it. */
#include "arithmetic_impl.h"
#include "placed_impl.h"

/* Ready nodes: lowest level first, then the largest weight, then the first added. */
typedef struct heap {
    const int32_t *level;
    const double *weight;
    int32_t *node;
    int32_t n;
} heap;

static bool precedes(const heap *h, int32_t a, int32_t b)
{
    if (h->level[a] != h->level[b]) return h->level[a] < h->level[b];
    return h->weight[a] != h->weight[b] ? h->weight[a] > h->weight[b] : a < b;
}

static void push(heap *h, int32_t node)
{
    int32_t at = h->n++;
    for (; at > 0 && precedes(h, node, h->node[(at - 1) / 2]); at = (at - 1) / 2) h->node[at] = h->node[(at - 1) / 2];
    h->node[at] = node;
}

static int32_t pop(heap *h)
{
    const int32_t first = h->node[0], last = h->node[--h->n];
    int32_t at = 0;
    for (int32_t child = 1; child < h->n; child = 2 * at + 1) {
        if (child + 1 < h->n && precedes(h, h->node[child + 1], h->node[child])) ++child;
        if (!precedes(h, h->node[child], last)) break;
        h->node[at] = h->node[child];
        at = child;
    }
    h->node[at] = last;
    return first;
}

typedef struct search {
    const trli_placed_nodes *nodes;
    int32_t *missing;              /* [n] predecessors not yet visited */
    heap closing, free;            /* ready nodes that may close a region, and the other ready nodes */
    int32_t open[TRLI_EXECUTORS];  /* region of a device; -1: none */
    int32_t level[TRLI_EXECUTORS]; /* of the open one */
    int32_t feeds[TRLI_EXECUTORS]; /* of the open one: the least of its members */
    int32_t *region;
    int32_t regions;
    int32_t *polled;        /* [n] of a node visited that is in no region: the number of the last poll task up to it */
    int32_t *region_polled; /* [n] of a region: that of the last one before it */
} search;

static bool on_device(const trli_placed_nodes *nodes, int32_t x)
{
    return x < nodes->tasks && nodes->space[x] > 0;
}

/* Whether a node follows a task of a device outside of its own. */
static bool leaves_region(const search *s, int32_t x)
{
    const trli_placed_nodes *nodes = s->nodes;
    for (int32_t i = nodes->before_first[x]; i < nodes->before_first[x + 1]; ++i) {
        const int32_t p = nodes->before[i];
        if (on_device(nodes, p) && !(on_device(nodes, x) && nodes->space[x] == nodes->space[p])) return true;
    }
    return false;
}

static void make_ready(search *s, int32_t x)
{
    push(leaves_region(s, x) ? &s->closing : &s->free, x);
}

static void close_regions(search *s, int32_t x)
{
    const trli_placed_nodes *nodes = s->nodes;
    for (int32_t i = nodes->before_first[x]; i < nodes->before_first[x + 1]; ++i) {
        const int32_t p = nodes->before[i];
        if (!on_device(nodes, p) || s->open[nodes->space[p]] != s->region[p]) continue;
        if (!(on_device(nodes, x) && nodes->space[x] == nodes->space[p])) s->open[nodes->space[p]] = -1;
    }
}

/* The number of the last poll task before a node whose predecessors were visited. Regions before it are closed, or it
 * will be in them. */
static int32_t polled_before(const search *s, int32_t x)
{
    const trli_placed_nodes *nodes = s->nodes;
    int32_t polled = 0;
    for (int32_t i = nodes->before_first[x]; i < nodes->before_first[x + 1]; ++i) {
        const int32_t p = nodes->before[i];
        polled = (int32_t)trli_max(polled, s->region[p] >= 0 ? s->region_polled[s->region[p]] : s->polled[p]);
    }
    return polled;
}

static void join(search *s, int32_t x, int32_t polled)
{
    const trli_placed_nodes *nodes = s->nodes;
    const int space = nodes->space[x];
    int32_t *open = &s->open[space];
    const bool begins = *open < 0 || s->level[space] < nodes->level[x] || nodes->held[x] ||
                        trli_max(s->region_polled[*open], polled) >= trli_min(s->feeds[space], nodes->feeds[x]);
    if (begins) {
        *open = s->regions++;
        s->level[space] = nodes->level[x];
        s->feeds[space] = nodes->feeds[x];
        s->region_polled[*open] = polled;
    }
    s->feeds[space] = (int32_t)trli_min(s->feeds[space], nodes->feeds[x]);
    s->region_polled[*open] = (int32_t)trli_max(s->region_polled[*open], polled);
    s->region[x] = *open;
    if (nodes->held[x]) *open = -1;
}

static void visit(search *s, int32_t x)
{
    const trli_placed_nodes *nodes = s->nodes;
    const int32_t polled = polled_before(s, x);
    close_regions(s, x);
    s->region[x] = -1;
    s->polled[x] = (int32_t)trli_max(polled, nodes->poll[x]);
    if (on_device(nodes, x)) join(s, x, polled);
    for (int32_t i = nodes->after_first[x]; i < nodes->after_first[x + 1]; ++i)
        if (--s->missing[nodes->after[i]] == 0) make_ready(s, nodes->after[i]);
}

/* The order of visits, with all members of a region at one place. */
static void gather(const search *s, const int32_t *visited, int32_t *next, int32_t *head, int32_t *order)
{
    /* That place is the last member's: everything that members wait for has been visited before it, and a node that
     * depends on a member closed the region and comes later. */
    const int32_t n = s->nodes->n;
    int32_t at = 0;
    for (int32_t r = 0; r < s->regions; ++r) head[r] = -1;
    for (int32_t i = n - 1; i >= 0; --i) {
        const int32_t r = s->region[visited[i]];
        if (r < 0) continue;
        next[visited[i]] = head[r];
        head[r] = visited[i];
    }
    for (int32_t i = 0; i < n; ++i) {
        const int32_t x = visited[i], r = s->region[x];
        if (r < 0) order[at++] = x;
        if (r < 0 || next[x] >= 0) continue;
        for (int32_t m = head[r]; m >= 0; m = next[m]) order[at++] = m;
    }
}

trl_err trli_regions_find(trl_context *ctx, const trli_placed_nodes *nodes, int32_t *order, int32_t *region,
                          int32_t *regions)
{
    const size_t n = (size_t)nodes->n + 1;
    search s = {.nodes = nodes, .region = region};
    trl_err err = TRL_OK;
    int32_t *visited = trli_new(ctx, n, sizeof *visited), count = 0;
    s.missing = trli_new(ctx, n, sizeof *s.missing);
    s.polled = trli_new(ctx, n, sizeof *s.polled);
    s.region_polled = trli_new(ctx, n, sizeof *s.region_polled);
    s.closing = (heap){nodes->level, nodes->weight, trli_new(ctx, n, sizeof(int32_t)), 0};
    s.free = (heap){nodes->level, nodes->weight, trli_new(ctx, n, sizeof(int32_t)), 0};
    for (int e = 0; e < TRLI_EXECUTORS; ++e) s.open[e] = -1;
    if (!visited || !s.missing || !s.polled || !s.region_polled || !s.closing.node || !s.free.node)
        TRL_TRY(trli_no_memory(ctx, NULL, "for the regions of a placed graph"));
    for (int32_t x = 0; x < nodes->n; ++x) {
        s.missing[x] = nodes->before_first[x + 1] - nodes->before_first[x];
        if (s.missing[x] == 0) make_ready(&s, x);
    }
    while (s.free.n + s.closing.n > 0) {
        const int32_t x = pop(s.free.n > 0 ? &s.free : &s.closing);
        visited[count++] = x;
        visit(&s, x);
    }
    gather(&s, visited, s.missing, s.free.node, order);
    *regions = s.regions;
done:
    trli_free(visited);
    trli_free(s.missing);
    trli_free(s.polled);
    trli_free(s.region_polled);
    trli_free(s.closing.node);
    trli_free(s.free.node);
    return err;
}
