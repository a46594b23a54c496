/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "arithmetic_impl.h"
#include "clock_impl.h"
#include "context_impl.h"
#include "emit_impl.h"
#include "executor_impl.h"
#include "gifts_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "native_impl.h"
#include "relaunch_impl.h"
#include "rtc_impl.h"

enum {
    PARAMETERS_MOST = 32764, /* bytes of a kernel's parameters, since compute capability 7.0 */
    COMPILERS_MOST = 16,     /* threads */
    BLOCKS_WANTED = 8,       /* of a multiprocessor: below, threads go up z through fewer planes */
    BLOCKS_MERGING = 8,      /* that merge values, at most, and */
    BLOCKS_FEW = 2,          /* at least, or threads go through */
    PLANES_TOGETHER = 4,     /* so many planes */
    BLOCKS_AT_ONCE = 16,     /* of a multiprocessor, at most, that go through all points: all that it runs at once */
    WARP = 32,               /* threads, all of which merge together */
    PLANES_MOST = 4,         /* of one result; with more, what a thread has of the plane before is as near in caches */
    RESULTS_FEW = 4,         /* with so many at most a thread goes through two planes */
    PLANES_CACHED = 8,       /* the same, where a cache has all that is read and written */
    THREADS = TRL_KERNEL_MERGING /* of a block where points are many: more blocks, whose waits overlap */
};

typedef struct entry {
    trli_gpu_kernel kernel;
    char *text; /* with the prelude; NULL once it is loaded or has failed */
    char name[TRLI_ENTRY_ROOM];
    void *image, *library;
    size_t bytes;
    bool cached;
    char why[TRLI_RTC_WHY_ROOM];
} entry;

struct trli_gpu_kernels {
    trl_context *ctx;
    const trl_devices *devices;
    const trli_gpu_api *api;
    int capability, multiprocessors;
    size_t cache_bytes;
    trli_rtc rtc;
    char why[TRLI_RTC_WHY_ROOM]; /* there is no NVRTC */
    trli_cache cache;
    entry **entry;
    int nentries, capacity;
    trli_gpu_kernel_stats stats;
};

trl_err trli_gpu_kernels_create(trl_context *ctx, const trl_devices *devices, trli_gpu_kernels **result)
{
    const trl_device_info *info = &devices->device[0]->info;
    trli_gpu_kernels *k = *result = trli_new(ctx, 1, sizeof *k);
    if (!k) return trli_no_memory(ctx, NULL, "for kernels of GPUs");
    k->ctx = ctx;
    k->devices = devices;
    k->api = trli_gpu_api_get();
    k->capability = 10 * info->major + info->minor;
    k->multiprocessors = info->multiprocessors;
    k->cache_bytes = info->cache_bytes;
    (void)trli_rtc_open(&k->rtc, k->why);
    trli_cache_open(&k->cache);
    return TRL_OK;
}

void trli_gpu_kernels_destroy(trli_gpu_kernels **kernels)
{
    trli_gpu_kernels *k = *kernels;
    *kernels = NULL;
    if (!k) return;
    for (int i = 0; i < k->nentries; ++i) {
        if (k->entry[i]->library) k->api->unload(k->entry[i]->library);
        trli_free(k->entry[i]->text);
        trli_free(k->entry[i]->image);
        trli_free(k->entry[i]);
    }
    trli_free(k->entry);
    trli_cache_close(&k->cache);
    trli_rtc_close(&k->rtc);
    trli_free(k);
}

/* ---- asking ---- */

static void name_entry(const trli_gpu_kernels *k, const char *text, char name[TRLI_ENTRY_ROOM])
{
    char digits[TRLI_DIGEST_TEXT];
    uint64_t digest[2];
    trli_digest_start(digest);
    trli_digest_bytes(digest, k->rtc.version, sizeof k->rtc.version);
    trli_digest_bytes(digest, &k->capability, sizeof k->capability);
    for (int i = 0; trli_cuda_options[i]; ++i)
        trli_digest_bytes(digest, trli_cuda_options[i], strlen(trli_cuda_options[i]) + 1);
    trli_digest_bytes(digest, trli_kernel_prelude, strlen(trli_kernel_prelude));
    trli_digest_bytes(digest, text, strlen(text));
    trli_digest_write(digest, digits);
    snprintf(name, TRLI_ENTRY_ROOM, "%s.cubin", digits);
}

static trl_err add_entry(trli_gpu_kernels *k, const char *text, const char *name, entry **added)
{
    const size_t before = strlen(trli_kernel_prelude), length = strlen(text);
    if (!trli_make_room(k->ctx, &k->entry, k->nentries, 1, &k->capacity, sizeof *k->entry))
        return trli_no_memory(k->ctx, NULL, "for kernels of GPUs");
    entry *e = *added = trli_new(k->ctx, 1, sizeof *e);
    if (e) e->text = trli_new(k->ctx, before + length + 1, 1);
    if (!e || !e->text) {
        trli_free(e);
        return trli_no_memory(k->ctx, NULL, "for kernels of GPUs");
    }
    memcpy(e->text, trli_kernel_prelude, before);
    memcpy(e->text + before, text, length);
    memcpy(e->name, name, sizeof e->name);
    k->entry[k->nentries++] = e;
    return TRL_OK;
}

trl_err trli_gpu_kernels_add(trli_gpu_kernels *k, const char *text, int narrays, int nscalars, trli_gpu_kernel **kernel)
{
    const size_t bytes = sizeof(trl_kernel_launch) + (size_t)narrays * sizeof(trl_kernel_array) +
                         (size_t)(nscalars > 0 ? nscalars : 1) * sizeof(double);
    char name[TRLI_ENTRY_ROOM] = "";
    entry *e = NULL;
    trl_err err = TRL_OK;
    name_entry(k, text, name);
    for (int i = 0; i < k->nentries && !e; ++i)
        if (strcmp(k->entry[i]->name, name) == 0) e = k->entry[i];
    if (!e) TRL_TRY(add_entry(k, text, name, &e));
    e->kernel.narrays = narrays > 0 ? narrays : 1;
    e->kernel.nscalars = nscalars > 0 ? nscalars : 1;
    if (bytes > PARAMETERS_MOST) e->kernel.why = "it has more fields than a GPU's kernel has room for";
    *kernel = &e->kernel;
done:
    return err;
}

const char trli_gpu_copy_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<2> "
    "arrays,\n           const __grid_constant__ trl_kernel_scalars<1>)\n"
    "{\n"
    "    const trl_kernel_array in = arrays.array[0], out = arrays.array[1];\n"
    "    const long long i = call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    const long long j = call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    const long long first = call.lo[2] + blockIdx.z * call.planes, rest = call.hi[2] - first;\n"
    "    const long long end = first + (rest < call.planes ? rest : call.planes);\n"
    "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n"
    "    for (long long k = first; k < end; ++k)\n"
    "        out.at[i + j * out.stride[1] + k * out.stride[2]] = in.at[i + j * in.stride[1] + k * in.stride[2]];\n"
    "}\n";

const char trli_gpu_clear_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<1>,\n"
    "           const __grid_constant__ trl_kernel_scalars<8> scalars)\n"
    "{\n"
    "    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= call.hi[0]) return;\n"
    "    trl_kernel_partial empty = {};\n"
    "    empty.extreme = scalars.value[i];\n"
    "    call.share[i] = empty;\n"
    "}\n";

const char trli_gpu_pieces_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch, const __grid_constant__ trl_kernel_arrays<64> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<96> extents)\n"
    "{\n"
    "    const trl_kernel_array from = arrays.array[2 * blockIdx.y], to = arrays.array[2 * blockIdx.y + 1];\n"
    "    const long long n = (long long)extents.value[3 * blockIdx.y], rows = (long long)extents.value[3 * blockIdx.y "
    "+ 1];\n"
    "    const long long all = n * rows * (long long)extents.value[3 * blockIdx.y + 2];\n"
    "    for (long long p = (long long)blockIdx.x * blockDim.x + threadIdx.x; p < all;\n"
    "         p += (long long)gridDim.x * blockDim.x) {\n"
    "        const long long row = trl_kernel_quotient(p, n), k = trl_kernel_quotient(row, rows);\n"
    "        const long long i = p - row * n, j = row - k * rows;\n"
    "        to.at[i + j * to.stride[1] + k * to.stride[2]] = from.at[i + j * from.stride[1] + k * from.stride[2]];\n"
    "    }\n"
    "}\n";

const char trli_gpu_statistics_text[] =
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<3> arrays,\n"
    "           const __grid_constant__ trl_kernel_scalars<4> scalars)\n"
    "{\n"
    "    __shared__ trl_kernel_block block[5];\n"
    "    const trl_kernel_array f = arrays.array[0], m = arrays.array[1], e = arrays.array[2];\n"
    "    const bool masked = scalars.value[0] != 0, exact = scalars.value[1] != 0;\n"
    "    const unsigned long long nx = (unsigned long long)scalars.value[2];\n"
    "    const unsigned long long ny = (unsigned long long)scalars.value[3];\n"
    "    trl_kernel_sum plain = {0, 0, {0, 0}}, square = plain, weights = plain, errors = plain, squares = plain;\n"
    "    trl_kernel_extreme low = {call.share[5].extreme, false}, high = {call.share[6].extreme, false};\n"
    "    trl_kernel_extreme worst = {call.share[7].extreme, false};\n"
    "    unsigned long long hash = 0;\n"
    "    trl_kernel_block_begin(block, 5);\n"
    "    const long long across = call.hi[1] - call.lo[1], rows = across * (call.hi[2] - call.lo[2]);\n"
    "    for (long long above = (long long)blockIdx.y * blockDim.y; above < rows;\n"
    "         above += (long long)gridDim.y * blockDim.y) {\n"
    "        const long long row = above + threadIdx.y, plane = trl_kernel_quotient(row, across);\n"
    "        const long long j = call.lo[1] + row - plane * across, k = call.lo[2] + plane;\n"
    "        for (long long left = call.lo[0] + (long long)blockIdx.x * blockDim.x; left < call.hi[0];\n"
    "             left += (long long)gridDim.x * blockDim.x) {\n"
    "            const long long i = left + threadIdx.x;\n"
    "            double value = 0, weight = 0, error = 0;\n"
    "            if (row < rows && i < call.hi[0]) {\n"
    "                const double v = f.at[i + j * f.stride[1] + k * f.stride[2]];\n"
    "                const unsigned long long y = (unsigned long long)(call.grid.first[1] + j);\n"
    "                const unsigned long long z = (unsigned long long)(call.grid.first[2] + k);\n"
    "                hash += trl_kernel_hash(nx * (y + ny * z) + (unsigned long long)(call.grid.first[0] + i), v);\n"
    "                if (!masked || m.at[i + j * m.stride[1] + k * m.stride[2]] != 0) {\n"
    "                    value = v;\n"
    "                    weight = trl_kernel_weight(&call, 0, i) * trl_kernel_weight(&call, 1, j) *\n"
    "                             trl_kernel_weight(&call, 2, k);\n"
    "                    if (exact) error = fabs(v - e.at[i + j * e.stride[1] + k * e.stride[2]]);\n"
    "                    trl_kernel_merge_extreme(&low, -v, false);\n"
    "                    trl_kernel_merge_extreme(&high, v, false);\n"
    "                    if (exact) trl_kernel_merge_extreme(&worst, error, false);\n"
    "                }\n"
    "            }\n"
    "            trl_kernel_merge_sum(&plain, &block[0].share, value);\n"
    "            trl_kernel_merge_sum(&square, &block[1].share, value * value * weight);\n"
    "            trl_kernel_merge_sum(&weights, &block[2].share, weight);\n"
    "            if (exact) {\n"
    "                trl_kernel_merge_sum(&errors, &block[3].share, error * weight);\n"
    "                trl_kernel_merge_sum(&squares, &block[4].share, error * error * weight);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    trl_kernel_sum_leave(plain, &block[0]);\n"
    "    trl_kernel_sum_leave(square, &block[1]);\n"
    "    trl_kernel_sum_leave(weights, &block[2]);\n"
    "    trl_kernel_sum_leave(errors, &block[3]);\n"
    "    trl_kernel_sum_leave(squares, &block[4]);\n"
    "    for (int r = 0; r < 5; ++r) trl_kernel_block_end(&block[r], &call.share[r], r);\n"
    "    trl_kernel_end_extreme(&low, &call.share[5], false);\n"
    "    trl_kernel_end_extreme(&high, &call.share[6], false);\n"
    "    trl_kernel_end_extreme(&worst, &call.share[7], false);\n"
    "    for (int d = TRL_KERNEL_WARP / 2; d > 0; d /= 2) hash += __shfl_xor_sync(TRL_KERNEL_ALL, hash, d);\n"
    "    if (trl_kernel_thread() % TRL_KERNEL_WARP == 0)\n"
    "        atomicAdd((unsigned long long *)&call.share[7].word[0], hash);\n"
    "}\n";
_Static_assert(TRLI_GPU_SHARES == 8 && TRLI_GPU_PIECES == 32, "texts have these numbers");

trl_err trli_gpu_kernels_add_pieces(trli_gpu_kernels *k, trli_gpu_kernel **kernel)
{
    return trli_gpu_kernels_add(k, trli_gpu_pieces_text, 2 * TRLI_GPU_PIECES, 3 * TRLI_GPU_PIECES, kernel);
}

trl_err trli_gpu_kernels_add_clear(trli_gpu_kernels *k, trli_gpu_kernel **kernel)
{
    return trli_gpu_kernels_add(k, trli_gpu_clear_text, 1, TRLI_GPU_SHARES, kernel);
}

trl_err trli_gpu_kernels_add_copy(trli_gpu_kernels *k, trli_gpu_kernel **kernel)
{
    return trli_gpu_kernels_add(k, trli_gpu_copy_text, 2, 0, kernel);
}

/* ---- compiling ---- */

/* From the cache, if it has a whole one. */
static bool load_entry(const trli_gpu_kernels *k, entry *e)
{
    size_t bytes = 0;
    if (!trli_cache_load_bytes(&k->cache, e->name, 0, NULL, &bytes) || bytes == 0) return false;
    e->image = trli_new(k->ctx, bytes, 1);
    e->bytes = bytes;
    e->cached = e->image && trli_cache_load_bytes(&k->cache, e->name, bytes, e->image, &bytes) && bytes == e->bytes;
    if (e->cached) return true;
    trli_free(e->image);
    e->image = NULL;
    return false;
}

static bool is_wanted(const entry *e)
{
    return e->text && !e->kernel.why && !e->image;
}

/* Entries, which threads take one by one. */
typedef struct work {
    const trli_gpu_kernels *kernels;
    const trli_gifts *share; /* other ranks make some of them; NULL: none */
    atomic_int next;
} work;

static void *compile_some(void *data)
{
    work *w = data;
    const trli_gpu_kernels *k = w->kernels;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < k->nentries;) {
        entry *e = k->entry[i];
        if (!is_wanted(e) || (w->share && !trli_gifts_is_mine(w->share, i))) continue;
        e->image = trli_rtc_compile(&k->rtc, k->ctx, e->text, k->capability, &e->bytes, e->why);
        if (e->image) trli_cache_keep_bytes(&k->cache, e->name, e->image, e->bytes);
    }
    return NULL;
}

static void compile_all(trli_gpu_kernels *k, const trli_gifts *share, int wanted)
{
    pthread_t thread[COMPILERS_MOST];
    work w = {.kernels = k, .share = share};
    int n = trl_context_threads(k->ctx), started = 0;
    if (n > COMPILERS_MOST) n = COMPILERS_MOST;
    if (n > wanted) n = wanted;
    const double start = trli_clock();
    hwloc_bitmap_t bound = trli_topology_unbind(&k->ctx->topology); /* threads stay where their creator is */
    while (started < n - 1 && pthread_create(&thread[started], NULL, compile_some, &w) == 0) ++started;
    (void)compile_some(&w);
    for (int i = 0; i < started; ++i) (void)pthread_join(thread[i], NULL);
    trli_topology_rebind(&k->ctx->topology, bound);
    k->stats.seconds += trli_clock() - start;
}

/* What was compiled, or came from the cache, becomes a function. */
static void settle(trli_gpu_kernels *k, entry *e)
{
    const int code = e->image ? k->api->load(e->image, &e->library, &e->kernel.function) : 0;
    if (code) snprintf(e->why, sizeof e->why, "its machine code cannot be loaded: %s", k->api->message(code));
    if (!e->kernel.function && !e->kernel.why) e->kernel.why = k->rtc.library ? e->why : k->why;
    ++*(!e->kernel.function ? &k->stats.failed : e->cached ? &k->stats.cached : &k->stats.compiled);
    trli_free(e->text);
    e->text = NULL;
}

static int load_all(trli_gpu_kernels *k)
{
    int wanted = 0;
    for (int i = 0; i < k->nentries && k->rtc.library; ++i)
        if (is_wanted(k->entry[i]) && !load_entry(k, k->entry[i])) ++wanted;
    return wanted;
}

static void settle_all(trli_gpu_kernels *k)
{
    for (int i = 0; i < k->nentries; ++i)
        if (k->entry[i]->text) settle(k, k->entry[i]);
}

void trli_gpu_kernels_compile(trli_gpu_kernels *k)
{
    const int wanted = load_all(k);
    if (wanted > 0) compile_all(k, NULL, wanted);
    settle_all(k);
}

/* ---- from other ranks ---- */

static void give(const trli_gpu_kernels *k, trli_gifts *share)
{
    for (int i = 0; i < k->nentries; ++i) {
        const entry *e = k->entry[i];
        if (!trli_gifts_is_mine(share, i)) continue;
        if (e->image)
            trli_gifts_give(share, i, TRLI_GIFT_MADE, e->image, e->bytes);
        else
            trli_gifts_give(share, i, TRLI_GIFT_FAILED, e->why, strlen(e->why));
    }
}

static void receive(const trli_gpu_kernels *k, entry *e, trli_gift *gift)
{
    if (e->image) {
        trli_free(gift->content);
    } else if (gift->kind == TRLI_GIFT_MADE) {
        trli_cache_add_bytes(&k->cache, e->name, gift->content, gift->bytes);
        e->image = gift->content;
        e->bytes = gift->bytes;
        e->cached = true;
    } else {
        snprintf(e->why, sizeof e->why, "%.*s", (int)gift->bytes, gift->content ? (const char *)gift->content : "");
        if (e->why[0] == '\0') snprintf(e->why, sizeof e->why, "the rank that compiles it does not give it");
        trli_free(gift->content);
    }
}

/* Every rank gives before it takes, so each waits only for compilers. */
static void take(const trli_gpu_kernels *k, trli_gifts *share)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    trli_gift gift;
    for (int i = 0; i < k->nentries; ++i) {
        if (trli_gifts_is_mine(share, i)) continue;
        while (!trli_gifts_take(share, i, &gift)) nanosleep(&nap, NULL);
        receive(k, k->entry[i], &gift);
    }
}

trl_err trli_gpu_kernels_compile_together(trl_context *ctx, trli_gpu_kernels *k, trl_err local)
{
    uint64_t digest[2];
    trli_gifts *share = NULL;
    int64_t wanted = 0;
    trl_err err = TRL_OK;
    if (local == TRL_OK && k) wanted = load_all(k);
    const int own = (int)wanted;
    TRL_TRY(trli_agree_max(ctx, local, 1, &wanted));
    trli_digest_start(digest);
    for (int i = 0; k && i < k->nentries; ++i) trli_digest_bytes(digest, k->entry[i]->name, sizeof k->entry[i]->name);
    if (wanted > 0) TRL_TRY(trli_gifts_create(ctx, k ? k->nentries : 0, digest, &share));
    if (!k) goto done;
    if (own > 0) compile_all(k, share, own);
    if (share) give(k, share);
    if (share) take(k, share);
    settle_all(k);
done:
    trli_gifts_destroy(&share);
    return err;
}

trli_gpu_kernel_stats trli_gpu_kernels_get_stats(const trli_gpu_kernels *k)
{
    return k->stats;
}

/* ---- launching ---- */

static long long least_power(long long n, long long most)
{
    long long power = 1;
    while (power < n && power < most) power *= 2;
    return power;
}

/* Threads of a block along x and y: 32 by 4 where there is room, rows where there is one, columns where rows are short.
 */
static void choose_threads(const long long n[3], unsigned threads[3])
{
    const long long x = least_power(n[0], THREADS / least_power(n[1], 4));
    threads[0] = (unsigned)x;
    threads[1] = (unsigned)least_power(n[1], THREADS / x);
    threads[2] = 1;
}

/* Planes that a thread goes through. Where the cache has all, one wave of blocks is the shortest; else neighbours of
 * many blocks that are at work at once share what they load. */
static long long choose_planes(const trli_gpu_kernels *k, const trli_gpu_kernel *kernel, const trli_gpu_call *call,
                               const long long n[3], long long blocks)
{
    const size_t bytes = (size_t)(n[0] * n[1] * n[2] * kernel->narrays) * sizeof(double);
    const long long at_once = (long long)BLOCKS_AT_ONCE * k->multiprocessors;
    const bool cached = bytes <= k->cache_bytes;
    const long long wanted = cached ? (blocks + at_once - 1) / at_once : blocks / (BLOCKS_WANTED * k->multiprocessors);
    const int results = call->nresults > 0 ? call->nresults : 1;
    const long long even = (cached ? PLANES_CACHED : PLANES_MOST) / results, least = results <= RESULTS_FEW ? 2 : 1;
    const long long most = even > least ? even : least;
    const long long planes = wanted < most ? wanted : most;
    return planes < 1 ? 1 : planes;
}

static void choose_blocks(const trli_gpu_kernels *k, const trli_gpu_kernel *kernel, const trli_gpu_call *call,
                          const long long n[3], const unsigned threads[3], long long *planes, unsigned blocks[3])
{
    const long long across = (n[0] + threads[0] - 1) / threads[0], along = (n[1] + threads[1] - 1) / threads[1];
    long long most = choose_planes(k, kernel, call, n, across * along * n[2]);
    while ((n[2] + most - 1) / most > 65535) most *= 2;
    *planes = most;
    blocks[0] = (unsigned)across;
    blocks[1] = (unsigned)along;
    blocks[2] = (unsigned)((n[2] + most - 1) / most);
}

/* Whole warps, along x as far as there are points, in as many blocks as run at once. */
static void choose_sweeping(const trli_gpu_kernels *k, const long long n[3], unsigned threads[3], unsigned blocks[3])
{
    const long long rows = n[1] * n[2], most = (long long)BLOCKS_AT_ONCE * k->multiprocessors;
    const long long x = least_power(n[0], THREADS / least_power(rows, THREADS / WARP));
    long long along = (rows * x + THREADS - 1) / THREADS, across = (n[0] + x - 1) / x;
    threads[0] = (unsigned)x;
    threads[1] = (unsigned)(THREADS / x);
    threads[2] = blocks[2] = 1;
    if (along > most) along = most;
    if (across > most / along) across = most / along;
    blocks[0] = (unsigned)across;
    blocks[1] = (unsigned)along;
}

/* Parts of columns, all of which have the same work. What a block does in the end takes as long as some points. */
static void choose_merging(const trli_gpu_kernels *k, const long long n[3], long long *planes, unsigned threads[3],
                           unsigned blocks[3])
{
    const long long most = BLOCKS_MERGING * (long long)k->multiprocessors, few = most / BLOCKS_MERGING * BLOCKS_FEW;
    const long long x = least_power(n[0], THREADS / least_power(n[1], THREADS / WARP)), y = THREADS / x;
    const long long across = trli_ceil_div(n[0], x), along = trli_ceil_div(n[1], y), columns = across * along;
    const long long chunks = trli_min(most / columns, trli_ceil_div(n[2], PLANES_TOGETHER));
    *planes = trli_ceil_div(n[2], trli_max(1, trli_max(chunks, trli_min(few / columns, n[2]))));
    threads[0] = (unsigned)x;
    threads[1] = (unsigned)y;
    threads[2] = 1;
    blocks[0] = (unsigned)trli_min(across, most);
    blocks[1] = (unsigned)trli_ceil_div(along, trli_ceil_div(columns, most));
    blocks[2] = (unsigned)trli_ceil_div(n[2], *planes);
}

static void choose_for_pieces(const trli_gpu_kernels *k, const long long n[3], unsigned threads[3], unsigned blocks[3])
{
    const long long most = (long long)BLOCKS_AT_ONCE * k->multiprocessors / n[1] + 1;
    const long long wanted = (n[0] + THREADS - 1) / THREADS;
    threads[0] = THREADS;
    threads[1] = threads[2] = blocks[2] = 1;
    blocks[0] = (unsigned)(wanted < most ? wanted : most);
    blocks[1] = (unsigned)n[1];
}

/* Of a tile: planes of the input beside one of each level between, or two that all levels use. */
size_t trli_gpu_tile_bytes(const trli_emit_steps *s)
{
    const size_t plane = (size_t)s->wide * (size_t)(s->high + 2) + 2;
    return (size_t)s->fields * (size_t)(s->flat ? 2 : 2 + s->steps) * plane * sizeof(double);
}

/* As many chunks along z as keep the multiprocessors at work for the shortest time; each begins and ends with planes of
 * its neighbours, as many as there are steps. */
static void choose_for_steps(const trli_gpu_kernels *k, const trli_emit_steps *s, const long long n[3],
                             trli_gpu_work *work, long long *planes)
{
    enum { CHUNKS_MOST = 64 };
    const long long across = trli_ceil_div(n[0], s->wide - 2 * s->steps);
    const long long along = trli_ceil_div(n[1], s->high - 2 * s->steps);
    const long long at_once = (long long)k->multiprocessors * s->at_once;
    long long least = 0;
    for (long long chunks = 1; chunks <= CHUNKS_MOST && chunks <= n[2]; ++chunks) {
        const long long each = trli_ceil_div(n[2], chunks);
        const long long time = trli_ceil_div(across * along * chunks, at_once) * (each + 2 * s->steps);
        if (chunks > 1 && time >= least) continue;
        least = time;
        *planes = each;
    }
    work->threads[0] = (unsigned)(s->wide * (s->high / s->rows));
    work->threads[1] = work->threads[2] = 1;
    work->blocks[0] = (unsigned)across;
    work->blocks[1] = (unsigned)along;
    work->blocks[2] = (unsigned)trli_ceil_div(n[2], *planes);
    work->shared = trli_gpu_tile_bytes(s);
}

void trli_gpu_kernels_share(const trli_gpu_kernels *k, const trli_gpu_kernel *kernel, size_t bytes, const char **why)
{
    const trli_gpu_api *api;
    void *stream;
    *why = NULL;
    for (int d = 0; d < k->devices->n && !*why; ++d) {
        int code = 0;
        if (trli_gpu_use(k->devices->device[d], TRLI_STREAM_COMPUTE, &api, &stream) != TRL_OK)
            *why = "the GPU is lost";
        else
            code = api->share(kernel->function, bytes);
        if (code) *why = api->message(code);
    }
}

trl_err trli_gpu_launch(const trli_gpu_kernels *k, const trli_gpu_kernel *kernel, trli_gpu_call *call, int space,
                        void *stream)
{
    const size_t bytes[TRLI_GPU_ARGUMENTS] = {sizeof call->launch, (size_t)kernel->narrays * sizeof *call->array,
                                              (size_t)kernel->nscalars * sizeof *call->scalar};
    trli_gpu_work work = {.kernel = kernel->function, .argument = {&call->launch, call->array, call->scalar}};
    long long n[3];
    for (int a = 0; a < 3; ++a) {
        n[a] = call->launch.hi[a] - call->launch.lo[a];
        if (n[a] <= 0) return TRL_OK;
    }
    switch (call->shape) {
    case TRLI_GPU_MERGING:
        choose_merging(k, n, &call->launch.planes, work.threads, work.blocks);
        break;
    case TRLI_GPU_SWEEPING:
        choose_sweeping(k, n, work.threads, work.blocks);
        break;
    case TRLI_GPU_BY_PIECES:
        choose_for_pieces(k, n, work.threads, work.blocks);
        break;
    case TRLI_GPU_STEPS:
        choose_for_steps(k, call->steps, n, &work, &call->launch.planes);
        break;
    case TRLI_GPU_GIVEN:
        memcpy(work.blocks, call->layout->blocks, sizeof work.blocks);
        work.threads[0] = call->layout->threads;
        work.threads[1] = work.threads[2] = 1;
        work.shared = call->layout->shared;
        break;
    default:
        choose_threads(n, work.threads);
        choose_blocks(k, kernel, call, n, work.threads, &call->launch.planes, work.blocks);
    }
    return trli_gpu_enqueue(trli_device_of(k->devices, space), &work, bytes, stream, call->label);
}
