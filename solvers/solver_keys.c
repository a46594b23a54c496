/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <string.h>

#include "solver_keys_impl.h"

#define BIT(NAME) (1u << TRL_SOLVE_##NAME)
/* Methods that may have a preconditioner, may have cycles of multigrid, are Newton's, iterate, and all. */
#define HELPED (BIT(AUTO) | BIT(CG) | BIT(PIPELINED_CG) | BIT(BICGSTAB) | BIT(GMRES))
#define CYCLING (HELPED | BIT(MULTIGRID))
#define NEWTON (CYCLING | BIT(LU))
#define ITERATING (CYCLING | BIT(PSEUDO_TIME))
#define ALL (ITERATING | BIT(DIRECT) | BIT(LU))

/* X(name, member, methods, what else holds) */
#define KEY_LIST(X)                                                                                            \
    X("preconditioner", preconditioner, HELPED, .bdf = true)                                                   \
    X("tolerance", tolerance, ALL, .systems = TRLI_SYSTEMS_LINEAR)                                             \
    X("absolute", absolute, ALL, .systems = TRLI_SYSTEMS_ALL)                                                  \
    X("iterations", iterations, ITERATING, .systems = TRLI_SYSTEMS_ALL)                                        \
    X("cycle", cycle, CYCLING, .cycles = true, .bdf = true)                                                    \
    X("smoother", smoother, CYCLING, .cycles = true, .bdf = true)                                              \
    X("replicate", replicate, CYCLING, .cycles = true, .bdf = true)                                            \
    X("restart", restart, BIT(GMRES), .bdf = true)                                                             \
    X("single_reduction", single_reduction, BIT(CG) | BIT(BICGSTAB), .always = BIT(PIPELINED_CG) | BIT(GMRES)) \
    X("newton.tolerance", newton_tolerance, ITERATING | BIT(LU), .systems = TRLI_SYSTEMS_NONLINEAR)            \
    X("newton.iterations", newton_iterations, NEWTON, .systems = TRLI_SYSTEMS_NONLINEAR)

#define KEY_VALUE(name, member, ...)                           \
    static double value_of_##member(const trl_solver_entry *e) \
    {                                                          \
        return (double)e->member;                              \
    }
KEY_LIST(KEY_VALUE)

static const trli_solver_key keys[] = {
#define KEY_ROW(words, member, bits, ...) {.name = words, .value = value_of_##member, .methods = bits, __VA_ARGS__},
    KEY_LIST(KEY_ROW)
#undef KEY_ROW
};

#define WORD(NAME, name, doc) #name,
static const char *const methods[] = {TRL_SOLVE_METHOD_LIST(WORD)};
static const char *const preconditioners[] = {TRL_PRECONDITIONER_LIST(WORD)};
#undef WORD

static const trl_solver_entry defaults = TRL_SOLVER_DEFAULTS;

const trli_solver_key *trli_solver_keys(int *n)
{
    *n = (int)(sizeof keys / sizeof *keys);
    return keys;
}

/* Methods that a deck names, cg aside, take multigrid only where it names that, too. */
static bool may_have_cycles(trl_solve_method method, trl_preconditioner p)
{
    const bool chosen = method == TRL_SOLVE_AUTO || method == TRL_SOLVE_CG;
    if (method == TRL_SOLVE_MULTIGRID) return true;
    return (HELPED >> method & 1) && (p == TRL_PRECONDITIONER_MULTIGRID || (chosen && p == TRL_PRECONDITIONER_AUTO));
}

trli_solver_use trli_solver_use_of(const trl_solver_entry *e, bool bdf)
{
    return (trli_solver_use){.method = e->method, .cycles = may_have_cycles(e->method, e->preconditioner), .bdf = bdf};
}

bool trli_solver_key_is_set(const trli_solver_key *key, const trl_solver_entry *e)
{
    const double value = key->value(e), without = key->value(&defaults);
    return value < without || value > without;
}

bool trli_solver_key_is_used(const trli_solver_key *key, const trli_solver_use *use)
{
    const bool system = !key->systems || !use->systems || key->systems == use->systems;
    const bool method = use->bdf ? key->bdf : key->methods >> use->method & 1;
    return system && method && (use->cycles || !key->cycles);
}

void trli_solver_key_write_method(const trli_solver_key *key, const trl_solver_entry *e, char *text, size_t size)
{
    const bool helped = key->cycles && (HELPED >> e->method & 1);
    snprintf(text, size, "%s%s%s", methods[e->method], helped ? " with preconditioner " : "",
             helped ? preconditioners[e->preconditioner] : "");
}

/* Add text to what is there, as far as it has room. */
static void add(char *text, size_t size, const char *more)
{
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "%s", more);
}

static void add_methods(unsigned bits, char *text, size_t size)
{
    for (int m = 0, first = 1; m < TRL_SOLVE_METHODS; ++m) {
        if (!(bits >> m & 1)) continue;
        if (!first) add(text, size, bits >> m == 1 ? " and " : ", ");
        add(text, size, methods[m]);
        first = 0;
    }
}

void trli_solver_key_write_users(const trli_solver_key *key, char *text, size_t size)
{
    const unsigned alone = key->cycles ? key->methods & ~HELPED : key->methods, helped = key->methods & ~alone;
    *text = '\0';
    add_methods(alone, text, size);
    if (!helped) return;
    add(text, size, ", and ");
    add_methods(helped, text, size);
    add(text, size, " with preconditioner multigrid");
}

void trli_solver_write_unused(const trl_solver_entry *e, const trli_solver_use *use, char *text, size_t size)
{
    int n;
    const trli_solver_key *key = trli_solver_keys(&n);
    *text = '\0';
    for (int k = 0; k < n; ++k) {
        if (!trli_solver_key_is_set(&key[k], e) || trli_solver_key_is_used(&key[k], use)) continue;
        if (*text) add(text, size, ", ");
        add(text, size, key[k].name);
    }
}
