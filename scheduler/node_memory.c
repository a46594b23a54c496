/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What memory a node has, and grants: to a container, or to the job of a batch system, by a cgroup. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context_impl.h"
#include "memory_impl.h"

/* Bytes of a node that this process may use: of all of its processes, and those that none of them uses now. UINT64_MAX:
 * unknown. */
typedef struct granted {
    uint64_t all, free;
} granted;

/* Where a version of cgroups has its groups, and the names of their files. */
typedef struct hierarchy {
    const char *root, *line; /* of /proc/self/cgroup, before the name of the group */
    const char *limit, *used, *cached[2];
} hierarchy;

static const hierarchy hierarchies[] = {
    {"/sys/fs/cgroup", "0::", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"/sys/fs/cgroup/memory",
     ":memory:",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

/* The number in a file, or behind a word at the beginning of one of its lines; false: there is none. */
static bool read_number(const char *path, const char *word, uint64_t *number)
{
    char line[256];
    const size_t length = word ? strlen(word) : 0;
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file))
        if (!word || (strncmp(line, word, length) == 0 && strchr(": ", line[length])))
            found = sscanf(line + length + (word != NULL), "%" SCNu64, number) == 1;
    fclose(file);
    return found;
}

/* A group, whose folder is `path`, may grant less; "max" is no limit, nor is the very large number of version 1. Files
 * that are cached make way. */
static void look_at_group(const hierarchy *h, const char *path, granted *g)
{
    char file[PATH_MAX + 64];
    uint64_t limit, used = 0, cached = 0;
    snprintf(file, sizeof file, "%s/%s", path, h->limit);
    if (!read_number(file, NULL, &limit)) return;
    if (limit < g->all) g->all = limit;
    snprintf(file, sizeof file, "%s/%s", path, h->used);
    if (!read_number(file, NULL, &used)) return;
    snprintf(file, sizeof file, "%s/memory.stat", path);
    for (int i = 0; i < 2; ++i) {
        uint64_t bytes;
        if (read_number(file, h->cached[i], &bytes)) cached += bytes;
    }
    const uint64_t kept = used > cached ? used - cached : 0, rest = limit > kept ? limit - kept : 0;
    if (rest < g->free) g->free = rest;
}

/* The name of the process's group; in a container it may be one that is not there. */
static void find_group(const hierarchy *h, char name[PATH_MAX])
{
    char line[PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "r");
    name[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, h->line);
        if (!at) continue;
        snprintf(name, PATH_MAX, "%s", at + strlen(h->line));
        name[strcspn(name, "\n")] = '\0';
    }
    if (file) fclose(file);
}

/* A group has at most what those around it have. */
static void look_at_groups(const hierarchy *h, granted *g)
{
    char name[PATH_MAX], path[PATH_MAX + 32];
    find_group(h, name);
    for (;;) {
        snprintf(path, sizeof path, "%s%s", h->root, name);
        look_at_group(h, path, g);
        char *last = strrchr(name, '/');
        if (!last) break;
        *last = '\0';
    }
}

static granted find_granted(void)
{
    static const char *const info = "/proc/meminfo";
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    granted g = {UINT64_MAX, UINT64_MAX};
    uint64_t kb, swap = 0;
    if (pages > 0 && page > 0) g.all = (uint64_t)pages * (uint64_t)page;
    if (read_number(info, "MemAvailable", &kb)) {
        (void)read_number(info, "SwapFree", &swap);
        g.free = (kb + swap) * 1024;
    }
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; ++i) look_at_groups(&hierarchies[i], &g);
    return g;
}

uint64_t trli_node_memory(void)
{
    return find_granted().all;
}

/* TRL_NODE_MEMORY: bytes that ranks of a node may use together, for tests; those that they use are not free. */
static uint64_t find_free(uint64_t used)
{
    const char *text = getenv("TRL_NODE_MEMORY");
    const double all = text ? strtod(text, NULL) : 0;
    if (!text) return find_granted().free;
    return all > (double)used ? (uint64_t)all - used : 0;
}

trl_err trli_memory_agree(trl_context *ctx, size_t bytes)
{
    trli_node_ranks node = {.comm = MPI_COMM_NULL};
    const bool given = atomic_load_explicit(&ctx->memory.granted, memory_order_relaxed) == 0;
    uint64_t need[2] = {given ? 0 : bytes, atomic_load_explicit(&ctx->memory.bytes, memory_order_relaxed)};
    char ranks[64];
    trl_err err = TRL_OK;
    if (ctx->ranks > 1) {
        TRL_TRY(trli_topology_node(ctx, &node));
        TRL_TRY(trli_topology_sum(ctx, &node, 2, need));
    }
    const uint64_t left = find_free(need[1]);
    snprintf(ranks, sizeof ranks, "the %d ranks on the node of rank %d", ctx->topology.node_ranks, ctx->rank);
    if (need[0] > left && ctx->topology.node_rank == 0)
        err =
            trl_fail(ctx, TRL_ERR_MEMORY, NULL,
                     "the fields of %s need %.3g GB of memory, and %.3g GB are free; use a smaller grid or more nodes, "
                     "or say with 'run.memory' how much a rank may take",
                     ctx->ranks > 1 ? ranks : "this problem", (double)need[0] * 1e-9, (double)left * 1e-9);
done:
    trli_free(node.rank);
    trli_comm_free(ctx, &node.comm);
    return trl_context_agree(ctx, err);
}
