/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The ghost of every kind of boundary condition: the operator that the condition is about, solved for the ghost.
 * The rules are written over any arithmetic: boundary_fill.c includes them for doubles, expressions/program/side.c for
 * values of a formula's graph. A file that includes this one defines before it, once:
 *
 * - TRL_GHOST: the type of a value;
 * - TRL_GHOST_ENV: the type of what operations need beside operands;
 * - TRL_GHOST_NUMBER(env, x): a value from a double;
 * - TRL_GHOST_ADD(env, p, q), _SUB, _MUL, _DIV.
 *
 * Layer m = 1, 2, ... counts outward from the side; f_1, f_2, ... are the interior values next to it, f_0 the one on
 * it, where the location has points there. */

/* Steps from ghost m to the interior point at the same distance from the side. */
static inline int trl_ghost_span(bool on_side, int m)
{
    return on_side ? 2 * m : 2 * m - 1;
}

/* (ghost + f_m)/2 = b */
static inline TRL_GHOST trl_ghost_dirichlet(TRL_GHOST_ENV env, TRL_GHOST f_m, TRL_GHOST b)
{
    return TRL_GHOST_SUB(env, TRL_GHOST_MUL(env, TRL_GHOST_NUMBER(env, 2), b), f_m);
}

/* (ghost - f_m)/distance = g */
static inline TRL_GHOST trl_ghost_neumann(TRL_GHOST_ENV env, double distance, TRL_GHOST f_m, TRL_GHOST g)
{
    return TRL_GHOST_ADD(env, f_m, TRL_GHOST_MUL(env, TRL_GHOST_NUMBER(env, distance), g));
}

/* a (ghost + f_m)/2 + b (ghost - f_m)/distance = c, on points on the side a f_0 + b (ghost - f_m)/distance = c. */
static inline TRL_GHOST trl_ghost_robin(TRL_GHOST_ENV env, bool on_side, double distance, TRL_GHOST f_m, TRL_GHOST f_0,
                                        TRL_GHOST a, TRL_GHOST b, TRL_GHOST c)
{
    if (on_side) {
        TRL_GHOST g = TRL_GHOST_DIV(env, TRL_GHOST_SUB(env, c, TRL_GHOST_MUL(env, a, f_0)), b);
        return trl_ghost_neumann(env, distance, f_m, g);
    }
    TRL_GHOST half = TRL_GHOST_MUL(env, TRL_GHOST_NUMBER(env, 0.5), a);
    TRL_GHOST slope = TRL_GHOST_DIV(env, b, TRL_GHOST_NUMBER(env, distance));
    TRL_GHOST known = TRL_GHOST_MUL(env, TRL_GHOST_SUB(env, half, slope), f_m);
    return TRL_GHOST_DIV(env, TRL_GHOST_SUB(env, c, known), TRL_GHOST_ADD(env, half, slope));
}

/* nearest: f_0 where the location has points on the side, else f_1. distance: from the ghost to f_m. a: the value of
 * dirichlet, neumann, expression; a, b, c: robin. Kinds that are no rule of one ghost are not for here. */
static inline TRL_GHOST trl_ghost_value(TRL_GHOST_ENV env, trl_bc_kind kind, bool on_side, double distance,
                                        TRL_GHOST f_m, TRL_GHOST nearest, TRL_GHOST a, TRL_GHOST b, TRL_GHOST c)
{
    switch (kind) {
    case TRL_BC_DIRICHLET:
        return trl_ghost_dirichlet(env, f_m, a);
    case TRL_BC_NEUMANN:
        return trl_ghost_neumann(env, distance, f_m, a);
    case TRL_BC_ROBIN:
        return trl_ghost_robin(env, on_side, distance, f_m, nearest, a, b, c);
    case TRL_BC_OUTFLOW:
        return nearest;
    default:
        return a;
    }
}
