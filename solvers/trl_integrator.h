/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Methods of time integration as tables. */
#ifndef TRL_INTEGRATOR_H
#define TRL_INTEGRATOR_H

#include <stdbool.h>

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name, doc) */
#define TRL_METHOD_LIST(X)                                                                                  \
    X(EULER, euler, "forward Euler")                                                                        \
    X(SSPRK2, ssprk2, "strong-stability-preserving Runge-Kutta, two stages (Shu & Osher 1988)")             \
    X(SSPRK3, ssprk3, "strong-stability-preserving Runge-Kutta, three stages (Shu & Osher 1988)")           \
    X(RK4, rk4, "the classical Runge-Kutta method, four stages (Kutta 1901)")                               \
    X(BS3, bs3, "three stages, order 3, with an estimate of the error (Bogacki & Shampine 1989)")           \
    X(DP5, dp5, "six stages, order 5, with an estimate of the error (Dormand & Prince 1980)")               \
    X(BEULER, beuler, "backward Euler; explicit terms by forward Euler")                                    \
    X(CN, cn, "the trapezoidal rule (Crank & Nicolson 1947), implicit")                                     \
    X(ESDIRK2, esdirk2, "implicit, order 2 (TR-BDF2; Bank et al. 1985)")                                    \
    X(ESDIRK3, esdirk3, "implicit, order 3: the implicit half of ark3")                                     \
    X(ESDIRK4, esdirk4, "implicit, order 4: the implicit half of ark4")                                     \
    X(ARK3, ark3, "explicit and implicit terms, order 3 (ARK3(2)4L[2]SA; Kennedy & Carpenter 2003)")        \
    X(ARK4, ark4, "explicit and implicit terms, order 4 (ARK4(3)6L[2]SA; Kennedy & Carpenter 2003)")        \
    X(BDF, bdf, "implicit, of several steps and orders 1 to 5, by SUNDIALS (CVODE; Hindmarsh et al. 2005)") \
    X(ADAMS, adams, "of several steps and orders 1 to 12, not for stiff equations, by SUNDIALS (CVODE)")    \
    X(LEAPFROG, leapfrog, "for equations with ddt2: rates half a step behind (Stoermer 1907, Verlet 1967)")
#define TRL_METHOD_ENUM(NAME, name, doc) TRL_METHOD_##NAME,
typedef enum trl_method { TRL_METHOD_LIST(TRL_METHOD_ENUM) } trl_method;
#undef TRL_METHOD_ENUM
#define TRL_METHOD_COUNT(NAME, name, doc) +1
enum { TRL_METHODS = 0 TRL_METHOD_LIST(TRL_METHOD_COUNT) };
#undef TRL_METHOD_COUNT

#define TRL_STAGES_MAX 6

/* One explicit method. Stage values u_0 = u(n), u_1, ..., u_S = u(n+1), with f_k = ddt(u_k) at time t + c_k dt. Row s
 * gives u_{s+1} in one of two forms: Shu-Osher: u_{s+1} = alpha[s] * u_0 + (1 - alpha[s]) * (u_s + dt * f_s) Butcher:
 * u_{s+1} = u_0 + dt * (sum over k <= s of a[s][k] * f_k) */
typedef struct trl_integrator {
    int stages;
    int order;
    double c[TRL_STAGES_MAX];
    double stability; /* dt limit over that of euler on diffusion-dominated problems, for the warning */
    bool leapfrog;    /* of equations of second order, see solvers/leapfrog.c; no table */
    bool shu_osher;
    double alpha[TRL_STAGES_MAX];
    double a[TRL_STAGES_MAX][TRL_STAGES_MAX];
    bool implicit;     /* see solvers/implicit.c: stages U_0 to U_{S-1}, U_s being explicit in row a[s-1] and */
    bool imex;         /* implicit in diagonal[s]; imex: there may be explicit terms beside implicit ones */
    bool last_is_new;  /* u_{n+1} is U_{S-1}; else the weights of both are the last row of diagonal */
    bool multistep;    /* see solvers/multistep.c; no table; order is the highest one, and dt follows from the error */
    bool stiff;        /* multistep: stages are solved for with derivatives of the rates */
    bool all_implicit; /* terms that a deck does not divide are implicit, not explicit */
    double diagonal[TRL_STAGES_MAX][TRL_STAGES_MAX];
    bool embedded; /* dt * (sum over k <= S of error[k] * f_k) is the difference to a solution of another order */
    double error[TRL_STAGES_MAX + 1]; /* of implicit terms, where explicit ones have other weights */
    int error_order;                  /* of the difference, in dt */
    double dense[TRL_STAGES_MAX + 1]; /* weights of f_k in values between steps, beside Hermite's cubic; 0: none */
    double
        imaginary; /* largest stable |dt lambda| on the imaginary axis; 0: central advection without diffusion grows */
    double radius; /* of the largest half disc in the left half plane that is stable; 1 where there is none */
} trl_integrator;

/* NULL for a number that is no method. */
TRL_API const trl_integrator *trl_integrator_of(trl_method method);
TRL_API const char *trl_method_name(trl_method method);
TRL_API const char *trl_method_doc(trl_method method);

#ifdef __cplusplus
}
#endif
#endif
