/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context_impl.h"

/* Processors granted by a cgroup's quota; 0: there is none. Inside a container, its own group is at the root. */
static int quota_processors(void)
{
    double quota = -1.0, period = 0.0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file) { /* version 2: "max 100000" or "200000 100000" */
        if (fscanf(file, "%lf %lf", &quota, &period) != 2) quota = -1.0;
        fclose(file);
    } else { /* version 1: -1 means no quota */
        FILE *quota_file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
        FILE *period_file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
        if (!quota_file || fscanf(quota_file, "%lf", &quota) != 1) quota = -1.0;
        if (!period_file || fscanf(period_file, "%lf", &period) != 1) quota = -1.0;
        if (quota_file) fclose(quota_file);
        if (period_file) fclose(period_file);
    }
    if (quota <= 0.0 || period <= 0.0) return 0;
    return quota < period ? 1 : (int)(quota / period);
}

/* cgroups: version 2 writes "max" for no limit, version 1 a very large number. */
uint64_t trli_topology_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i) {
        FILE *file = fopen(limits[i], "r");
        uint64_t limit;
        if (!file) continue;
        if (fscanf(file, "%" SCNu64, &limit) == 1 && (bytes == 0 || limit < bytes)) bytes = limit;
        fclose(file);
    }
    return bytes;
}

static int core_depth(hwloc_topology_t machine)
{
    return hwloc_get_type_or_below_depth(machine, HWLOC_OBJ_CORE);
}

/* FNV-1a of the processors that this rank may run on: ranks of a node with the same value share the same cores. */
static uint64_t cpuset_hash(hwloc_topology_t machine)
{
    uint64_t hash = 14695981039346656037u;
    hwloc_const_bitmap_t set = hwloc_topology_get_topology_cpuset(machine);
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) {
        hash = (hash ^ (uint64_t)i) * 1099511628211u;
    }
    return hash;
}

/* Limit the cache of a core to what real processors have. A virtual machine with few cores often shows the whole
 * last level of its host, of which other machines use the rest. */
static const size_t CORE_CACHE_MOST = (size_t)32 << 20;

/* Before the machine is restricted: cores of other ranks share the caches, too. */
static void read_caches(trli_topology *topology, int processor)
{
    hwloc_topology_t machine = topology->machine;
    hwloc_obj_t object = hwloc_get_pu_obj_by_os_index(machine, (unsigned)processor);
    for (; object; object = object->parent) {
        if (!hwloc_obj_type_is_dcache(object->type)) continue;
        unsigned level = object->attr->cache.depth;
        int sharing = hwloc_get_nbobjs_inside_cpuset_by_depth(machine, object->cpuset, core_depth(machine));
        size_t bytes = object->attr->cache.size / (size_t)(sharing > 0 ? sharing : 1);
        if (bytes > CORE_CACHE_MOST) bytes = CORE_CACHE_MOST;
        if (level >= 1 && level <= TRLI_CACHE_LEVELS) topology->cache_bytes[level] = bytes;
        topology->cache_bytes[0] = bytes;
    }
}

/* Remove the processors that the launcher or a cgroup denies to this process. */
static trl_err load_machine(trli_topology *topology)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (bound == NULL) return TRL_ERR_MEMORY;
    if (hwloc_topology_init(&topology->machine) != 0) {
        topology->machine = NULL;
    } else if (hwloc_topology_load(topology->machine) != 0) {
        hwloc_topology_destroy(topology->machine);
        topology->machine = NULL;
    } else if (hwloc_get_cpubind(topology->machine, bound, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(bound)) {
        read_caches(topology, hwloc_bitmap_first(bound));
        /* Fails only if no processor would remain; then the whole machine is as good an answer as any. */
        hwloc_topology_restrict(topology->machine, bound, 0);
    }
    hwloc_bitmap_free(bound);
    return topology->machine ? TRL_OK : TRL_ERR_MEMORY;
}

/* The ranks of this node; and of those that may use the same cores their number, and the position of this rank. */
static trl_err count_sharers(trl_context *ctx, trli_topology *topology, uint64_t key, int *index, int *count)
{
    trl_err err;
    MPI_Comm node = MPI_COMM_NULL, sharers = MPI_COMM_NULL;
    uint64_t mixed = key ^ (key >> 32);
    int status = MPI_Comm_split_type(ctx->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    TRL_TRY(trli_mpi_check(ctx, status, "MPI_Comm_split_type"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_rank(node, &topology->node_rank), "MPI_Comm_rank"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_size(node, &topology->node_ranks), "MPI_Comm_size"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_split(node, (int)(mixed & 0x7fffffff), 0, &sharers), "MPI_Comm_split"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_rank(sharers, index), "MPI_Comm_rank"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_size(sharers, count), "MPI_Comm_size"));
done:
    trli_comm_free(ctx, &sharers);
    trli_comm_free(ctx, &node);
    return err;
}

trl_err trli_topology_init(trl_context *ctx, trli_topology *topology)
{
    int index, count, usable, quota;
    trl_err err = load_machine(topology);
    if (err != TRL_OK) (void)trl_fail(ctx, err, NULL, "the processors of this machine cannot be found: no memory");
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(count_sharers(ctx, topology, cpuset_hash(topology->machine), &index, &count));
    usable = (int)hwloc_get_nbobjs_by_depth(topology->machine, core_depth(topology->machine));
    quota = quota_processors();
    if (quota > 0 && quota < usable) {
        usable = quota;
        topology->shared = true;
    }
    if (count > usable) {
        topology->shared = true;
        topology->first_core = index % usable;
        topology->cores = 1;
    } else {
        topology->first_core = (int)((int64_t)usable * index / count);
        topology->cores = (int)((int64_t)usable * (index + 1) / count) - topology->first_core;
    }
done:
    return err;
}

void trli_topology_destroy(trli_topology *topology)
{
    if (topology->machine) hwloc_topology_destroy(topology->machine);
    topology->machine = NULL;
}

trl_err trli_topology_node(trl_context *ctx, trli_node_ranks *node)
{
    trl_err err;
    *node = (trli_node_ranks){.comm = MPI_COMM_NULL};
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    int status = MPI_Comm_split_type(ctx->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node->comm);
    TRL_TRY(trli_mpi_check(ctx, status, "MPI_Comm_split_type"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_set_errhandler(node->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_size(node->comm, &node->size), "MPI_Comm_size"));
    node->rank = trli_new(ctx, (size_t)node->size, sizeof *node->rank);
    TRL_TRY(trl_context_agree(ctx, node->rank ? TRL_OK : trli_no_memory(ctx, NULL, "for the ranks of a node")));
    status = MPI_Allgather(&ctx->rank, 1, MPI_INT, node->rank, 1, MPI_INT, node->comm);
    err = trli_mpi_check(ctx, status, "MPI_Allgather");
done:
    return err;
}

void trli_topology_pin(const trli_topology *topology, int core)
{
    hwloc_obj_t object = hwloc_get_obj_by_depth(topology->machine, core_depth(topology->machine),
                                                (unsigned)(topology->first_core + core));
    if (object) hwloc_set_cpubind(topology->machine, object->cpuset, HWLOC_CPUBIND_THREAD);
}

hwloc_bitmap_t trli_topology_unbind(const trli_topology *topology)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (!bound) return NULL;
    if (hwloc_get_cpubind(topology->machine, bound, HWLOC_CPUBIND_THREAD) == 0 &&
        hwloc_set_cpubind(topology->machine, hwloc_topology_get_topology_cpuset(topology->machine),
                          HWLOC_CPUBIND_THREAD) == 0)
        return bound;
    hwloc_bitmap_free(bound);
    return NULL;
}

void trli_topology_rebind(const trli_topology *topology, hwloc_bitmap_t bound)
{
    if (!bound) return;
    hwloc_set_cpubind(topology->machine, bound, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(bound);
}

void trli_topology_bind(const trli_topology *topology, int core, void *memory, size_t bytes)
{
    static const uintptr_t page = 4096;
    uintptr_t begin = ((uintptr_t)memory + page - 1) / page * page, end = ((uintptr_t)memory + bytes) / page * page;
    hwloc_obj_t object = hwloc_get_obj_by_depth(topology->machine, core_depth(topology->machine),
                                                (unsigned)(topology->first_core + core));
    if (!object || end <= begin || hwloc_get_nbobjs_by_type(topology->machine, HWLOC_OBJ_NUMANODE) < 2) return;
    (void)hwloc_set_area_membind(topology->machine, (void *)begin, end - begin, object->nodeset, HWLOC_MEMBIND_BIND,
                                 HWLOC_MEMBIND_BYNODESET);
}
