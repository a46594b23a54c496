/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Explicit Runge-Kutta methods as tables. */
#ifndef TRL_INTEGRATOR_H
#define TRL_INTEGRATOR_H

#include <stdbool.h>

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRL_STAGES_MAX 4

/* One explicit method. Stage values u_0 = u(n), u_1, ..., u_S = u(n+1), with f_k = ddt(u_k) at time t + c_k dt. Row s gives
 * u_{s+1} in one of two forms:
 *   Shu-Osher: u_{s+1} = alpha[s] * u_0 + (1 - alpha[s]) * (u_s + dt * f_s)
 *   Butcher:   u_{s+1} = u_0 + dt * (sum over k <= s of a[s][k] * f_k) */
typedef struct trl_integrator {
    const char *name;
    const char *doc;
    int stages;
    int order;
    double c[TRL_STAGES_MAX];
    double stability; /* dt limit over that of euler on diffusion-dominated problems, for the warning (input.md) */
    bool shu_osher;
    double alpha[TRL_STAGES_MAX];
    double a[TRL_STAGES_MAX][TRL_STAGES_MAX];
    double
        imaginary; /* largest stable |dt lambda| on the imaginary axis; 0: central advection without diffusion grows */
    double radius; /* of the largest half disc in the left half plane that is stable; 1 where there is none */
} trl_integrator;

TRL_API const trl_integrator *trl_integrator_find(const char *name);
/* Names of all methods; the array is static. */
TRL_API const char *const *trl_integrator_names(int *count);

#ifdef __cplusplus
}
#endif
#endif
