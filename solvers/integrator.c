/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stddef.h>
#include <string.h>

#include <trl_integrator.h>

/* Names stay beside their tables through this list: X(name). */
#define INTEGRATOR_LIST(X) X(euler) X(ssprk2) X(ssprk3) X(rk4)

static const trl_integrator euler = {
    .name = "euler",
    .doc = "forward Euler",
    .stages = 1,
    .order = 1,
    .stability = 1,
    .shu_osher = true,
    .radius = 1,
};

/* Shu & Osher (1988), J. Comput. Phys. 77, 439. */
static const trl_integrator ssprk2 = {
    .name = "ssprk2",
    .doc = "strong-stability-preserving Runge-Kutta, two stages (Shu & Osher 1988)",
    .stages = 2,
    .order = 2,
    .c = {0, 1},
    .stability = 1,
    .shu_osher = true,
    .alpha = {0, 0.5},
    .radius = 1,
};

static const trl_integrator ssprk3 = {
    .name = "ssprk3",
    .doc = "strong-stability-preserving Runge-Kutta, three stages (Shu & Osher 1988)",
    .stages = 3,
    .order = 3,
    .c = {0, 1, 0.5},
    .stability = 1.25,
    .shu_osher = true,
    .alpha = {0, 0.75, 1.0 / 3.0},
    .imaginary = 1.7320508075688772, /* sqrt(3) */
    .radius = 1.7320508075688772,
};

static const trl_integrator rk4 = {
    .name = "rk4",
    .doc = "the classical Runge-Kutta method, four stages (Kutta 1901)",
    .stages = 4,
    .order = 4,
    .c = {0, 0.5, 0.5, 1},
    .stability = 1.39,
    .a = {{0.5}, {0, 0.5}, {0, 0, 1}, {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}},
    .imaginary = 2.8284271247461903, /* sqrt(8) */
    .radius = 2.615,
};

#define INTEGRATOR_ENTRY(name) &name,
static const trl_integrator *const integrators[] = {INTEGRATOR_LIST(INTEGRATOR_ENTRY)};
#undef INTEGRATOR_ENTRY
#define INTEGRATOR_NAME(name) #name,
static const char *const names[] = {INTEGRATOR_LIST(INTEGRATOR_NAME)};
#undef INTEGRATOR_NAME

const trl_integrator *trl_integrator_find(const char *name)
{
    for (size_t i = 0; i < sizeof integrators / sizeof *integrators; ++i)
        if (strcmp(integrators[i]->name, name) == 0) return integrators[i];
    return NULL;
}

const char *const *trl_integrator_names(int *count)
{
    *count = (int)(sizeof names / sizeof *names);
    return names;
}
