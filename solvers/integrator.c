/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stddef.h>

#include <trl_integrator.h>

static const trl_integrator euler = {
    .stages = 1,
    .order = 1,
    .stability = 1,
    .shu_osher = true,
    .radius = 1,
};

/* Shu & Osher (1988), J. Comput. Phys. 77, 439. */
static const trl_integrator ssprk2 = {
    .stages = 2,
    .order = 2,
    .c = {0, 1},
    .stability = 1,
    .shu_osher = true,
    .alpha = {0, 0.5},
    .radius = 1,
};

static const trl_integrator ssprk3 = {
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
    .stages = 4,
    .order = 4,
    .c = {0, 0.5, 0.5, 1},
    .stability = 1.39,
    .a = {{0.5}, {0, 0.5}, {0, 0, 1}, {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}},
    .imaginary = 2.8284271247461903, /* sqrt(8) */
    .radius = 2.615,
};

/* Bogacki & Shampine (1989), Appl. Math. Lett. 2, 321; its polynomial is that of all methods of three stages. */
static const trl_integrator bs3 = {
    .stages = 3,
    .order = 3,
    .c = {0, 0.5, 0.75},
    .stability = 1.25,
    .a = {{0.5}, {0, 0.75}, {2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0}},
    .embedded = true,
    .error = {-5.0 / 72.0, 1.0 / 12.0, 1.0 / 9.0, -1.0 / 8.0},
    .imaginary = 1.7320508075688772, /* sqrt(3) */
    .radius = 1.7320508075688772,
};

/* Dormand & Prince (1980), J. Comput. Appl. Math. 6, 19. */
static const trl_integrator dp5 = {
    .stages = 6,
    .order = 5,
    .c = {0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1},
    .stability = 1.65,
    .a = {{1.0 / 5.0},
          {3.0 / 40.0, 9.0 / 40.0},
          {44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0},
          {19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0},
          {9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0},
          {35.0 / 384.0, 0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0}},
    .embedded = true,
    .error = {71.0 / 57600.0, 0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0},
    .imaginary = 0.997,
    .radius = 0.996,
};

/* Stable up to |dt lambda| = 2 of an oscillation; what damps it is taken by the midpoint rule. */
static const trl_integrator leapfrog = {
    .stages = 1,
    .order = 2,
    .stability = 1,
    .leapfrog = true,
    .imaginary = 2,
    .radius = 1,
};

static const struct {
    const trl_integrator *integrator;
    const char *name, *doc;
} methods[] = {
#define METHOD_ROW(NAME, name, doc) {&name, #name, doc},
    TRL_METHOD_LIST(METHOD_ROW)
#undef METHOD_ROW
};

const trl_integrator *trl_integrator_of(trl_method method)
{
    return (size_t)method < sizeof methods / sizeof *methods ? methods[method].integrator : NULL;
}

const char *trl_method_name(trl_method method)
{
    return methods[method].name;
}

const char *trl_method_doc(trl_method method)
{
    return methods[method].doc;
}
