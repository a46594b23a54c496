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
    .error_order = 3,
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
    .error_order = 5,
    .dense = {-12715105075.0 / 11282082432.0, 0, 87487479700.0 / 32700410799.0, -10690763975.0 / 1880347072.0,
              701980252875.0 / 199316789632.0, -1453857185.0 / 822651844.0, 69997945.0 / 29380423.0},
    .imaginary = 0.997,
    .radius = 0.996,
};

/* Its error is the difference to the trapezoidal rule. */
static const trl_integrator beuler = {
    .stages = 2,
    .order = 1,
    .c = {0, 1},
    .stability = 1,
    .a = {{1}},
    .implicit = true,
    .imex = true,
    .last_is_new = true,
    .all_implicit = true,
    .diagonal = {{0}, {0, 1}},
    .embedded = true,
    .error = {-0.5, 0.5},
    .error_order = 2,
    .radius = 1,
};

static const trl_integrator cn = {
    .stages = 2,
    .order = 2,
    .c = {0, 1},
    .stability = 1,
    .implicit = true,
    .last_is_new = true,
    .all_implicit = true,
    .diagonal = {{0}, {0.5, 0.5}},
    .radius = 1,
};

/* Bank, Coughran, Fichtner, Grosse, Rose & Smith (1985), IEEE Trans. CAD 4, 436, with gamma = 1 - sqrt(1/2); the
 * solution of order 3 beside it: Hosea & Shampine (1996), Appl. Numer. Math. 20, 21. */
#define TR_GAMMA 0.29289321881345248
#define TR_W 0.35355339059327376
static const trl_integrator esdirk2 = {
    .stages = 3,
    .order = 2,
    .c = {0, 2 * TR_GAMMA, 1},
    .stability = 1,
    .implicit = true,
    .last_is_new = true,
    .all_implicit = true,
    .diagonal = {{0}, {TR_GAMMA, TR_GAMMA}, {TR_W, TR_W, TR_GAMMA}},
    .embedded = true,
    .error = {TR_W - (1 - TR_W) / 3, TR_W - (3 * TR_W + 1) / 3, TR_GAMMA - TR_GAMMA / 3},
    .error_order = 3,
    .radius = 1,
};

/* Kennedy & Carpenter (2003), Appl. Numer. Math. 44, 139. The explicit halves have the polynomials of methods with as
 * many stages; what bounds them is taken to be that of the order's own. */
#define ARK3_GAMMA (1767732205903.0 / 4055673282236.0)
#define ARK3_TIMES                                         \
    {                                                      \
        0, 1767732205903.0 / 2027836641118.0, 3.0 / 5.0, 1 \
    }
#define ARK3_DIAGONAL                                                                            \
    {                                                                                            \
        {0}, {ARK3_GAMMA, ARK3_GAMMA},                                                           \
            {2746238789719.0 / 10658868560708.0, -640167445237.0 / 6845629431997.0, ARK3_GAMMA}, \
        {                                                                                        \
            1471266399579.0 / 7840856788654.0, -4482444167858.0 / 7529755066697.0,               \
                11266239266428.0 / 11593286722821.0, ARK3_GAMMA                                  \
        }                                                                                        \
    }
#define ARK3_ERROR                                                                      \
    .embedded = true, .error_order = 3,                                                 \
    .error = {1471266399579.0 / 7840856788654.0 - 2756255671327.0 / 12835298489170.0,   \
              -4482444167858.0 / 7529755066697.0 + 10771552573575.0 / 22201958757719.0, \
              11266239266428.0 / 11593286722821.0 - 9247589265047.0 / 10645013368117.0, \
              ARK3_GAMMA - 2193209047091.0 / 5459859503100.0}
#define ARK4_ERROR                                                                                                \
    .embedded = true, .error_order = 4,                                                                           \
    .error = {82889.0 / 524892.0 - 4586570599.0 / 29645900160.0, 0,                                               \
              15625.0 / 83664.0 - 178811875.0 / 945068544.0,     69875.0 / 102672.0 - 814220225.0 / 1159782912.0, \
              -2260.0 / 8211.0 + 3700637.0 / 11593932.0,         0.25 - 61727.0 / 225920.0}
#define ARK4_TIMES                                              \
    {                                                           \
        0, 1.0 / 2.0, 83.0 / 250.0, 31.0 / 50.0, 17.0 / 20.0, 1 \
    }
#define ARK4_DIAGONAL                                                                              \
    {                                                                                              \
        {0}, {0.25, 0.25}, {8611.0 / 62500.0, -1743.0 / 31250.0, 0.25},                            \
            {5012029.0 / 34652500.0, -654441.0 / 2922500.0, 174375.0 / 388108.0, 0.25},            \
            {15267082809.0 / 155376265600.0, -71443401.0 / 120774400.0, 730878875.0 / 902184768.0, \
             2285395.0 / 8070912.0, 0.25},                                                         \
        {                                                                                          \
            82889.0 / 524892.0, 0, 15625.0 / 83664.0, 69875.0 / 102672.0, -2260.0 / 8211.0, 0.25   \
        }                                                                                          \
    }

static const trl_integrator esdirk3 = {
    .stages = 4,
    .order = 3,
    .c = ARK3_TIMES,
    .stability = 1,
    .implicit = true,
    .last_is_new = true,
    .all_implicit = true,
    .diagonal = ARK3_DIAGONAL,
    ARK3_ERROR,
    .radius = 1,
};

static const trl_integrator esdirk4 = {
    .stages = 6,
    .order = 4,
    .c = ARK4_TIMES,
    .stability = 1,
    .implicit = true,
    .last_is_new = true,
    .all_implicit = true,
    .diagonal = ARK4_DIAGONAL,
    ARK4_ERROR,
    .radius = 1,
};

static const trl_integrator ark3 = {
    .stages = 4,
    .order = 3,
    .c = ARK3_TIMES,
    .stability = 1,
    .a = {{1767732205903.0 / 2027836641118.0},
          {5535828885825.0 / 10492691773637.0, 788022342437.0 / 10882634858940.0},
          {6485989280629.0 / 16251701735622.0, -4246266847089.0 / 9704473918619.0,
           10755448449292.0 / 10357097424841.0}},
    .implicit = true,
    .imex = true,
    .diagonal = ARK3_DIAGONAL,
    ARK3_ERROR,
    .imaginary = 1,
    .radius = 1,
};

static const trl_integrator ark4 = {
    .stages = 6,
    .order = 4,
    .c = ARK4_TIMES,
    .stability = 1,
    .a = {{1.0 / 2.0},
          {13861.0 / 62500.0, 6889.0 / 62500.0},
          {-116923316275.0 / 2393684061468.0, -2731218467317.0 / 15368042101831.0, 9408046702089.0 / 11113171139209.0},
          {-451086348788.0 / 2902428689909.0, -2682348792572.0 / 7519795681897.0, 12662868775082.0 / 11960479115383.0,
           3355817975965.0 / 11060851509271.0},
          {647845179188.0 / 3216320057751.0, 73281519250.0 / 8382639484533.0, 552539513391.0 / 3454668386233.0,
           3354512671639.0 / 8306763924573.0, 4040.0 / 17871.0}},
    .implicit = true,
    .imex = true,
    .diagonal = ARK4_DIAGONAL,
    ARK4_ERROR,
    .imaginary = 1,
    .radius = 1,
};

static const trl_integrator bdf = {
    .stages = 1,
    .order = 5,
    .stability = 1,
    .implicit = true,
    .imex = true,
    .multistep = true,
    .stiff = true,
    .all_implicit = true,
    .embedded = true,
    .radius = 1,
};

static const trl_integrator adams = {
    .stages = 1,
    .order = 12,
    .stability = 1,
    .implicit = true,
    .imex = true,
    .multistep = true,
    .all_implicit = true,
    .embedded = true,
    .radius = 1,
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
