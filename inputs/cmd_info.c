/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis info`: what this program is and what it runs on. */
#include "command_impl.h"

#include <cairo.h>
#include <hdf5.h>
#include <string.h>

#include <trl_device.h>

#include "balance_impl.h"
#include "cache_impl.h"
#include "cvode_impl.h"
#include "executor_impl.h"
#include "factors_impl.h"

/* The processor's name as Linux gives it, or "unknown". */
static void processor_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file) fclose(file);
}

static void print_processors(const trl_context *ctx)
{
    char name[256];
    processor_name(name, sizeof name);
    printf("processor  %s, %d cores for this process, %s\n", name, trl_context_cores(ctx),
           trl_context_pinned(ctx) ? "threads pinned" : "threads not pinned");
    printf("caches     %zu kB first level, %zu kB last level\n", trl_context_cache_bytes(ctx, 1) / 1024,
           trl_context_cache_bytes(ctx, 0) / 1024);
}

static trl_err print_balance(trl_context *ctx)
{
    trl_workers *workers = NULL;
    trli_balance b;
    trl_err err = TRL_OK;
    TRL_TRY(trl_workers_create(ctx, "priority", &workers));
    TRL_TRY(trli_balance_find(ctx, workers, &b));
    printf("speed      %.3g GB/s memory, %.3g GB/s cache, %.3g additions/ns, by %d worker%s\n", 1e-9 * b.memory,
           1e-9 * b.cache, 1e-9 * b.operations, trl_workers_count(workers), trl_workers_count(workers) == 1 ? "" : "s");
    printf("balance    %.3g additions in the time of a byte, %.3g of a division, %.3g of an exp\n",
           b.operations / b.memory, b.division, b.exponential);
done:
    trl_workers_destroy(&workers);
    return err;
}

static void print_cache(void)
{
    trli_cache cache;
    int kernels;
    int64_t bytes;
    trli_cache_open(&cache);
    if (cache.folder >= 0) {
        trli_cache_measure(&cache, &kernels, &bytes);
        printf("cache      %s, %d kernel%s, %.1f MB\n", cache.path, kernels, kernels == 1 ? "" : "s",
               1e-6 * (double)bytes);
    } else {
        printf("cache      %s%snot used: %s\n", cache.path, cache.path[0] ? ", " : "", cache.why);
    }
    trli_cache_close(&cache);
}

static trl_err print_devices(trl_context *ctx)
{
    int n = trl_device_count();
    trl_err err = TRL_OK;
    if (!trl_device_supported())
        puts("GPUs       this build has no CUDA");
    else if (n == 0)
        puts("GPUs       none found");
    for (int i = 0; i < n; ++i) {
        trl_device_info info;
        TRL_TRY(trl_device_get_info(ctx, i, &info));
        printf("GPU %d      %s, compute capability %d.%d, %d multiprocessors, %.1f GB\n", i, info.name, info.major,
               info.minor, info.multiprocessors, (double)info.bytes / 1e9);
    }
done:
    return err;
}

static trl_err print_mock_devices(trl_context *ctx)
{
    trl_devices *devices;
    trl_err err = trl_devices_open(ctx, "auto", &devices);
    for (int i = 0; err == TRL_OK && i < trl_devices_opened(devices); ++i) {
        const trl_device_info *info = trl_devices_info(devices, i);
        if (trli_device_of(devices, i + 1)->kind == TRL_KIND_MOCK) printf("device %d   %s\n", i, info->name);
    }
    if (err == TRL_OK) trl_devices_close(&devices);
    return err;
}

static void print_libraries(void)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned major, minor, release;
    int length, level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    MPI_Get_library_version(mpi, &length);
    printf("MPI        %.*s, called by %s\n", (int)strcspn(mpi, "\n,"), mpi,
           level >= MPI_THREAD_MULTIPLE ? "several threads at a time" : "one thread at a time");
    if (H5get_libversion(&major, &minor, &release) >= 0) printf("HDF5       %u.%u.%u\n", major, minor, release);
    printf("cairo      %s\n", cairo_version_string());
    printf("SUNDIALS   %s\n", trli_cvode_library() ? trli_cvode_library() : "not in this build");
    printf("SuiteSparse %s\n", trli_factors_library() ? trli_factors_library() : "not in this build");
}

int trli_cmd_info(trl_context *ctx, const trli_arguments *arguments)
{
    (void)arguments;
    puts("Trellis    " TRL_VERSION);
    puts("compiler   " TRL_COMPILER);
    puts("build      " TRL_BUILD_OPTIONS);
    puts("CUDA       " TRL_CUDA_VERSION);
    print_processors(ctx);
    trl_err err = print_balance(ctx);
    print_cache();
    if (err == TRL_OK) err = print_devices(ctx);
    if (err == TRL_OK) err = print_mock_devices(ctx);
    print_libraries();
    return trli_command_finish(ctx, err);
}
