/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context_impl.h"
#include "core_share_impl.h"
#include "memory_impl.h"

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

static int core_depth(hwloc_topology_t machine)
{
    return hwloc_get_type_or_below_depth(machine, HWLOC_OBJ_CORE);
}

static int count_cores(hwloc_topology_t machine)
{
    return (int)hwloc_get_nbobjs_by_depth(machine, core_depth(machine));
}

static hwloc_obj_t core_at(hwloc_topology_t machine, int i)
{
    return hwloc_get_obj_by_depth(machine, core_depth(machine), (unsigned)i);
}

/* Give cores names, by which all processes of the node know them, whatever they may use: their first processors. */
static void name_cores(hwloc_topology_t machine)
{
    for (int i = 0; i < count_cores(machine); ++i) {
        hwloc_obj_t core = core_at(machine, i);
        core->userdata = (void *)(intptr_t)hwloc_bitmap_first(core->complete_cpuset);
    }
}

static int name_of(hwloc_topology_t machine, int i)
{
    return (int)(intptr_t)core_at(machine, i)->userdata;
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

/* Open MPI binds ranks of its own accord, where nobody asked for it: to a core each if there are at most two. */
static bool is_bound_by_default(void)
{
    static const char *const wish[] = {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_cpu_set",
                                       "OMPI_MCA_hwloc_base_cpu_list",       "OMPI_MCA_rmaps_base_mapping_policy",
                                       "OMPI_MCA_rmaps_base_cpus_per_proc",  "OMPI_MCA_orte_rankfile"};
    if (!getenv("OMPI_MCA_orte_bound_at_launch")) return false;
    for (size_t i = 0; i < sizeof wish / sizeof *wish; ++i)
        if (getenv(wish[i])) return false;
    return true;
}

/* Then the ranks of a node share what their launcher may use there. */
static void lift_default(hwloc_topology_t machine, hwloc_bitmap_t bound)
{
    hwloc_bitmap_t launcher = hwloc_bitmap_alloc();
    if (launcher && is_bound_by_default() && hwloc_get_proc_cpubind(machine, getppid(), launcher, 0) == 0 &&
        hwloc_bitmap_isincluded(bound, launcher) && hwloc_set_cpubind(machine, launcher, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_copy(bound, launcher);
    hwloc_bitmap_free(launcher);
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
        lift_default(topology->machine, bound);
        read_caches(topology, hwloc_bitmap_first(bound));
        name_cores(topology->machine);
        topology->node_cores = count_cores(topology->machine);
        /* Fails only if no processor would remain; then the whole machine is as good an answer as any. */
        hwloc_topology_restrict(topology->machine, bound, 0);
    }
    hwloc_bitmap_free(bound);
    return topology->machine ? TRL_OK : TRL_ERR_MEMORY;
}

/* What the ranks of a node may use, as sets of cores' names. */
static trl_err gather_cores(trl_context *ctx, trli_topology *topology, MPI_Comm node, trli_core_sets *sets)
{
    enum { BITS = 64 };
    hwloc_topology_t machine = topology->machine;
    int most = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < count_cores(machine); ++i) most = name_of(machine, i) > most ? name_of(machine, i) : most;
    sets->words = most / BITS + 1;
    sets->n = topology->node_ranks;
    TRL_TRY(trli_mpi_check(ctx, MPI_Allreduce(MPI_IN_PLACE, &sets->words, 1, MPI_INT, MPI_MAX, node), "MPI_Allreduce"));
    sets->set = trli_new(ctx, ((size_t)sets->n + 1) * (size_t)sets->words, sizeof *sets->set);
    TRL_TRY(trl_context_agree(ctx, sets->set ? TRL_OK : trli_no_memory(ctx, NULL, "for the cores of the node")));
    uint64_t *own = sets->set + (ptrdiff_t)sets->n * sets->words;
    for (int i = 0; i < count_cores(machine); ++i)
        own[name_of(machine, i) / BITS] |= (uint64_t)1 << name_of(machine, i) % BITS;
    err = trli_mpi_check(ctx, MPI_Allgather(own, sets->words, MPI_UINT64_T, sets->set, sets->words, MPI_UINT64_T, node),
                         "MPI_Allgather");
done:
    return err;
}

/* The ranks of this node, and the cores that they may use. */
static trl_err find_node(trl_context *ctx, trli_topology *topology, trli_core_sets *sets)
{
    trl_err err;
    MPI_Comm node = MPI_COMM_NULL;
    int status = MPI_Comm_split_type(ctx->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    TRL_TRY(trli_mpi_check(ctx, status, "MPI_Comm_split_type"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_rank(node, &topology->node_rank), "MPI_Comm_rank"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Comm_size(node, &topology->node_ranks), "MPI_Comm_size"));
    topology->node_first = ctx->rank;
    status = MPI_Allreduce(MPI_IN_PLACE, &topology->node_first, 1, MPI_INT, MPI_MIN, node);
    TRL_TRY(trli_mpi_check(ctx, status, "MPI_Allreduce"));
    err = gather_cores(ctx, topology, node, sets);
done:
    trli_comm_free(ctx, &node);
    return err;
}

/* Whether Open MPI is told to yield where it waits: others want the cores of its ranks, too. */
static bool is_told_to_yield(void)
{
    const char *text = getenv("OMPI_MCA_mpi_yield_when_idle");
    return text && (strcmp(text, "1") == 0 || strcmp(text, "true") == 0);
}

/* Take the first to the last of those cores that the share is cut from. */
static trl_err take_cores(trl_context *ctx, trli_topology *topology, const trli_core_share *share)
{
    topology->share = hwloc_bitmap_alloc();
    if (!topology->share) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the cores of this rank");
    for (int i = 0, k = 0; i < count_cores(topology->machine); ++i) {
        if (!trli_core_is_dealt(share, name_of(topology->machine, i))) continue;
        if (k >= share->first && k < share->last) hwloc_bitmap_set(topology->share, (unsigned)i);
        ++k;
    }
    topology->cores = share->last - share->first;
    topology->shared = share->shared;
    topology->yields = share->shared || is_told_to_yield();
    topology->crowd_ranks = share->crowd_ranks;
    topology->crowd_cores = share->crowd_cores;
    return TRL_OK;
}

trl_err trli_topology_init(trl_context *ctx, trli_topology *topology)
{
    trli_core_sets sets = {0};
    trli_core_share share = {0};
    trl_err err = load_machine(topology);
    if (err != TRL_OK) (void)trl_fail(ctx, err, NULL, "the processors of this machine cannot be found: no memory");
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(find_node(ctx, topology, &sets));
    TRL_TRY(trli_core_share_of(ctx, &sets, topology->node_rank, quota_processors(), &share));
    err = take_cores(ctx, topology, &share);
done:
    trli_free(share.dealt);
    trli_free(sets.set);
    return err;
}

void trli_topology_destroy(trli_topology *topology)
{
    if (topology->machine) hwloc_topology_destroy(topology->machine);
    topology->machine = NULL;
    hwloc_bitmap_free(topology->share);
    topology->share = NULL;
}

trl_err trli_topology_warn(trl_context *ctx)
{
    const trli_topology *t = &ctx->topology;
    int64_t crowd[2] = {(int64_t)t->crowd_ranks << 32 | t->crowd_cores, t->node_cores};
    trl_err err;
    TRL_TRY(trli_agree_max(ctx, TRL_OK, 2, crowd));
    const int ranks = (int)(crowd[0] >> 32), cores = (int)(crowd[0] & INT32_MAX);
    if (ranks == 0) goto done;
    trl_warn(ctx, NULL, "%d ranks on %d core%s: ranks will take turns and run slower; use at most %d", ranks, cores,
             cores == 1 ? "" : "s", cores);
    if (cores < crowd[1]) trl_advise(ctx, "let ranks use all cores of a node: mpirun --bind-to none");
done:
    return err;
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

trl_err trli_topology_sum(trl_context *ctx, const trli_node_ranks *node, int n, uint64_t *numbers)
{
    trl_err err;
    TRL_TRY(trl_context_agree(ctx, TRL_OK));
    const int status = MPI_Allreduce(MPI_IN_PLACE, numbers, n, MPI_UINT64_T, MPI_SUM, node->comm);
    err = trli_mpi_check(ctx, status, "MPI_Allreduce");
done:
    return err;
}

/* A core of the share; NULL: it has not so many. */
static hwloc_obj_t core_of(const trli_topology *topology, int core)
{
    int at = hwloc_bitmap_first(topology->share);
    for (; core > 0 && at >= 0; --core) at = hwloc_bitmap_next(topology->share, at);
    return at >= 0 ? core_at(topology->machine, at) : NULL;
}

void trli_topology_pin(const trli_topology *topology, int core)
{
    hwloc_obj_t object = core_of(topology, core);
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
    hwloc_obj_t object = core_of(topology, core);
    if (!object || end <= begin || hwloc_get_nbobjs_by_type(topology->machine, HWLOC_OBJ_NUMANODE) < 2) return;
    (void)hwloc_set_area_membind(topology->machine, (void *)begin, end - begin, object->nodeset, HWLOC_MEMBIND_BIND,
                                 HWLOC_MEMBIND_BYNODESET);
}
