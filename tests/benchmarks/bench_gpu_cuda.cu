/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Heat on a GPU by hand: T += k dt lap(T), one step per pass. Threads lie along x and y and go up z with the planes
 * below, at and above in registers; neighbours in a plane come from the caches. Several shapes are tried. */
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
