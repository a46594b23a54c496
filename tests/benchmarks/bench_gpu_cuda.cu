/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Heat, and advection and diffusion of scalars, on a GPU by hand. Heat: T += k dt lap(T), one step per pass. Threads
 * lie along x and y and go up z with the planes below, at and above in registers; neighbours in a plane come from the
 * caches. Several shapes are tried. */
#include <cstdio>
#include <cuda_runtime.h>

#include "bench_gpu_impl.h"

namespace {

/* What lies beyond a side: the value at the other end, or, where the side is held at 0, the negative one. */
template <bool PERIODIC> __device__ __forceinline__ double beyond(double centre, double other)
{
    return PERIODIC ? other : -centre;
}

template <int BX, int BY, bool PERIODIC>
__global__ void __launch_bounds__(BX *BY)
    heat(double *__restrict__ to, const double *__restrict__ from, int n, double factor, int planes)
{
    const int i = blockIdx.x * BX + threadIdx.x, j = blockIdx.y * BY + threadIdx.y;
    const int first = blockIdx.z * planes, end = min(first + planes, n);
    if (i >= n || j >= n) return;
    const long long plane = (long long)n * n;
    const double *at = from + (long long)first * plane + (long long)j * n + i;
    double *out = to + (long long)first * plane + (long long)j * n + i;
    const int left = i > 0 ? -1 : n - 1, right = i < n - 1 ? 1 : 1 - n;
    const long long front = j > 0 ? -n : plane - n, back = j < n - 1 ? n : n - plane;
    double below = first > 0 ? at[-plane] : beyond<PERIODIC>(*at, at[(long long)(n - 1) * plane]), centre = *at;
    for (int k = first; k < end; ++k) {
        const double above = k < n - 1 ? at[plane] : beyond<PERIODIC>(centre, at[-(long long)(n - 1) * plane]);
        double xm = at[left], xp = at[right], ym = at[front], yp = at[back];
        if (!PERIODIC) {
            if (i == 0) xm = -centre;
            if (i == n - 1) xp = -centre;
            if (j == 0) ym = -centre;
            if (j == n - 1) yp = -centre;
        }
        *out = centre + factor * ((xm - 2 * centre + xp) + (ym - 2 * centre + yp) + (below - 2 * centre + above));
        below = centre;
        centre = above;
        at += plane;
        out += plane;
    }
}

__global__ void copy(double2 *__restrict__ to, const double2 *__restrict__ from, long long n)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

typedef void (*launcher)(double *, const double *, int, double, int, cudaStream_t);

template <int BX, int BY, bool PERIODIC>
void launch(double *to, const double *from, int n, double factor, int planes, cudaStream_t stream)
{
    const dim3 blocks((n + BX - 1) / BX, (n + BY - 1) / BY, (n + planes - 1) / planes);
    heat<BX, BY, PERIODIC><<<blocks, dim3(BX, BY), 0, stream>>>(to, from, n, factor, planes);
}

struct shape {
    int x, y;
    launcher periodic, fixed;
};

#define SHAPE(BX, BY)                                       \
    {                                                       \
        BX, BY, launch<BX, BY, true>, launch<BX, BY, false> \
    }
const shape shapes[] = {SHAPE(32, 4),  SHAPE(32, 8),  SHAPE(64, 4),  SHAPE(64, 8), SHAPE(128, 2),
                        SHAPE(128, 4), SHAPE(256, 1), SHAPE(256, 2), SHAPE(32, 16)};
const int depths[] = {4, 8, 16, 32, 64, 128, 1024};

enum { TIMES = 5 };

/* Seconds of work, the median of some. */
template <typename Work> double seconds_of(Work work)
{
    float times[TIMES] = {0};
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    for (int i = -1; i < TIMES; ++i) {
        float ms = 0;
        cudaEventRecord(begin);
        work();
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, begin, end);
        int at = i;
        for (; at > 0 && times[at - 1] > ms; --at) times[at] = times[at - 1];
        if (at >= 0) times[at] = ms;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return 1e-3 * times[TIMES / 2];
}

int least(int a, int b)
{
    return a < b ? a : b;
}

} // namespace

const char *trli_gpu_heat_by_hand(const trli_gpu_heat *heat, const double *initial, double *result,
                                  trli_gpu_heat_result *rates)
{
    const size_t values = (size_t)heat->n * heat->n * heat->n, bytes = values * sizeof(double);
    const double factor = heat->k_dt * heat->n * heat->n;
    double *field[2] = {nullptr, nullptr};
    *rates = trli_gpu_heat_result();
    for (double *&f : field)
        if (cudaMalloc(&f, bytes) != cudaSuccess) {
            cudaFree(field[0]);
            return cudaGetErrorString(cudaGetLastError());
        }
    cudaMemcpy(field[0], initial, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(field[1], initial, bytes, cudaMemcpyHostToDevice);
    double best = 0;
    for (const shape &s : shapes)
        for (int planes : depths) {
            const launcher run = heat->periodic ? s.periodic : s.fixed;
            const double t = seconds_of([&] {
                for (int i = 0; i < heat->steps; ++i)
                    run(field[(i + 1) % 2], field[i % 2], heat->n, factor, least(planes, heat->n), nullptr);
            });
            const double rate = (double)values * heat->steps / t;
            if (rate <= best) continue;
            best = rate;
            std::snprintf(rates->variant, sizeof rates->variant, "%d x %d threads, %d planes", s.x, s.y,
                          least(planes, heat->n));
        }
    rates->updates = best;
    const long long pairs = (long long)values / 2;
    const double copied = seconds_of([&] {
        for (int i = 0; i < 10; ++i)
            copy<<<(unsigned)((pairs + 255) / 256), 256>>>((double2 *)field[1], (double2 *)field[0], pairs);
    });
    rates->copy = 10 * (double)values / copied;
    cudaMemcpy(field[0], initial, bytes, cudaMemcpyHostToDevice);
    for (int i = 0; i < heat->steps; ++i) {
        const launcher run = heat->periodic ? shapes[0].periodic : shapes[0].fixed;
        run(field[(i + 1) % 2], field[i % 2], heat->n, factor, 16, nullptr);
    }
    cudaMemcpy(result, field[heat->steps % 2], bytes, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaDeviceSynchronize();
    cudaFree(field[0]);
    cudaFree(field[1]);
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

namespace {

/* u' = a * start + b * (u + dt * rate(u)), rate(u) = div(D grad(u) - u velocity), by central differences. */
struct stage {
    double *to[TRLI_GPU_SCALARS];
    const double *from[TRLI_GPU_SCALARS], *start[TRLI_GPU_SCALARS];
    double diffusion[TRLI_GPU_SCALARS]; /* D / h^2 */
    double advection[3];                /* velocity / (2 h) */
    double dt, a, b;
    int n, planes;
};

/* Loads of one scalar are not moved before stores of those ahead of it, unless the loop over scalars is unrolled. */
template <int BX, int BY, int COUNT, int UNROLL, bool STARTS>
__global__ void __launch_bounds__(BX *BY) advance(const __grid_constant__ stage s, int first_scalar)
{
    const int i = blockIdx.x * BX + threadIdx.x, j = blockIdx.y * BY + threadIdx.y, n = s.n;
    const int first = blockIdx.z * s.planes, end = min(first + s.planes, n);
    if (i >= n || j >= n) return;
    const long long plane = (long long)n * n;
    const long long left = i > 0 ? -1 : n - 1, right = i < n - 1 ? 1 : 1 - n;
    const long long front = j > 0 ? -n : plane - n, back = j < n - 1 ? n : n - plane;
    long long at = first * plane + (long long)j * n + i;
    for (int k = first; k < end; ++k, at += plane) {
        const long long below = k > 0 ? -plane : (n - 1) * plane, above = k < n - 1 ? plane : -(n - 1) * plane;
#pragma unroll UNROLL
        for (int f = first_scalar; f < first_scalar + COUNT; ++f) {
            const double *u = s.from[f] + at;
            const double c = __ldg(u), xm = __ldg(u + left), xp = __ldg(u + right), ym = __ldg(u + front),
                         yp = __ldg(u + back), zm = __ldg(u + below), zp = __ldg(u + above);
            const double diffused = (xm - 2 * c + xp) + (ym - 2 * c + yp) + (zm - 2 * c + zp);
            const double advected =
                s.advection[0] * (xp - xm) + s.advection[1] * (yp - ym) + s.advection[2] * (zp - zm);
            const double next = c + s.dt * (s.diffusion[f] * diffused - advected);
            s.to[f][at] = STARTS ? s.a * __ldg(s.start[f] + at) + s.b * next : next;
        }
    }
}

typedef void (*advancer)(const stage &s, bool starts);

template <int BX, int BY, int COUNT, int UNROLL> void launch_stage(const stage &s, bool starts)
{
    const dim3 blocks((s.n + BX - 1) / BX, (s.n + BY - 1) / BY, (s.n + s.planes - 1) / s.planes);
    for (int f = 0; f < TRLI_GPU_SCALARS; f += COUNT)
        if (starts)
            advance<BX, BY, COUNT, UNROLL, true><<<blocks, dim3(BX, BY)>>>(s, f);
        else
            advance<BX, BY, COUNT, UNROLL, false><<<blocks, dim3(BX, BY)>>>(s, f);
}

struct advancing {
    int x, y, unroll;
    advancer together, apart;
};

#define ADVANCING(BX, BY, UNROLL)                                                                  \
    {                                                                                              \
        BX, BY, UNROLL, launch_stage<BX, BY, TRLI_GPU_SCALARS, UNROLL>, launch_stage<BX, BY, 1, 1> \
    }
const advancing advancings[] = {ADVANCING(32, 4, 1), ADVANCING(32, 4, 2), ADVANCING(32, 4, 4),  ADVANCING(32, 4, 16),
                                ADVANCING(64, 2, 1), ADVANCING(64, 4, 1), ADVANCING(64, 4, 2),  ADVANCING(64, 4, 4),
                                ADVANCING(32, 8, 1), ADVANCING(32, 8, 2), ADVANCING(128, 2, 1), ADVANCING(128, 2, 2)};
const int advancing_planes[] = {1, 2, 4, 8, 16};

/* Steps from level 0 to level 0; levels 1 and 2 are for stages. */
void take_steps(const trli_gpu_transport *t, double *const (*level)[TRLI_GPU_SCALARS], advancer run, int planes)
{
    static const double weights[3][2] = {{0, 1}, {0.75, 0.25}, {1.0 / 3, 2.0 / 3}};
    stage s = {};
    int now = 0;
    s.n = t->n;
    s.planes = planes;
    s.dt = t->dt;
    for (int a = 0; a < 3; ++a) s.advection[a] = t->velocity[a] * t->n / 2;
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) s.diffusion[f] = t->diffusivity[f] * t->n * t->n;
    for (int step = 0; step < t->steps; ++step) {
        const int start = now;
        for (int q = 0; q < t->stages; ++q) {
            const int from = now, to = t->stages == 1 ? 1 - now
                                       : q == 2       ? start
                                       : q == 0       ? (start + 1) % 3
                                                      : (start + 2) % 3;
            for (int f = 0; f < TRLI_GPU_SCALARS; ++f) {
                s.from[f] = level[from][f];
                s.to[f] = level[to][f];
                s.start[f] = level[start][f];
            }
            s.a = weights[q][0];
            s.b = weights[q][1];
            run(s, q > 0);
            now = to;
        }
    }
}

} // namespace

static const char *measure_transport(const trli_gpu_transport *t, double *const (*level)[TRLI_GPU_SCALARS],
                                     double *const *field, trli_gpu_transport_result *rates)
{
    const size_t values = (size_t)t->n * t->n * t->n, bytes = values * sizeof(double);
    const double updates = (double)values * TRLI_GPU_SCALARS * t->stages * t->steps;
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) cudaMemcpy(level[0][f], field[f], bytes, cudaMemcpyHostToDevice);
    for (const advancing &a : advancings)
        for (int planes : advancing_planes) {
            const double together = updates / seconds_of([&] { take_steps(t, level, a.together, planes); });
            const double apart = updates / seconds_of([&] { take_steps(t, level, a.apart, planes); });
            if (apart > rates->apart) rates->apart = apart;
            if (together <= rates->updates) continue;
            rates->updates = together;
            std::snprintf(rates->variant, sizeof rates->variant, "%d x %d threads, %d planes, %d scalars at once", a.x,
                          a.y, planes, a.unroll);
        }
    const long long pairs = (long long)values / 2;
    const double copied = seconds_of([&] {
        for (int f = 0; f < TRLI_GPU_SCALARS; ++f)
            copy<<<(unsigned)((pairs + 255) / 256), 256>>>((double2 *)level[1][f], (double2 *)level[0][f], pairs);
    });
    rates->copy = TRLI_GPU_SCALARS * (double)values / copied;
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) cudaMemcpy(level[0][f], field[f], bytes, cudaMemcpyHostToDevice);
    take_steps(t, level, advancings[0].together, 4);
    const int last = t->stages == 1 ? t->steps % 2 : 0;
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) cudaMemcpy(field[f], level[last][f], bytes, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaDeviceSynchronize();
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

const char *trli_gpu_transport_by_hand(const trli_gpu_transport *t, double *const field[TRLI_GPU_SCALARS],
                                       trli_gpu_transport_result *rates)
{
    const size_t bytes = (size_t)t->n * t->n * t->n * sizeof(double);
    double *level[3][TRLI_GPU_SCALARS] = {};
    const char *why = nullptr;
    *rates = trli_gpu_transport_result();
    for (int l = 0; l < 3; ++l)
        for (double *&f : level[l])
            if (!why && cudaMalloc(&f, bytes) != cudaSuccess) why = cudaGetErrorString(cudaGetLastError());
    if (!why) why = measure_transport(t, level, field, rates);
    for (int l = 0; l < 3; ++l)
        for (double *f : level[l]) cudaFree(f);
    return why;
}
