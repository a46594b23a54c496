/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <string.h>

#include "deck_build_impl.h"
#include "solver_keys_impl.h"

static trl_solver_entry read_solver(const trli_yaml *key, const trli_yaml *node)
{
    const trli_key *row = trli_schema_child(trli_schema_child(trli_schema_root(), "solvers"), key->text.chars);
    const trli_yaml *newton = trli_yaml_get(node, "newton");
    return (trl_solver_entry){.name = key->text.chars,
                              .place = key->text.place,
                              .method = (trl_solve_method)trli_yaml_word(row, node, "method"),
                              .preconditioner = (trl_preconditioner)trli_yaml_word(row, node, "preconditioner"),
                              .cycle = (trl_solve_cycle)trli_yaml_word(row, node, "cycle"),
                              .smoother = (trl_smoother)trli_yaml_word(row, node, "smoother"),
                              .replicate = trli_yaml_whole(trli_yaml_get(node, "replicate"), 0),
                              .tolerance = trli_yaml_number(trli_yaml_get(node, "tolerance")),
                              .absolute = trli_yaml_number(trli_yaml_get(node, "absolute")),
                              .iterations = (int)trli_yaml_whole(trli_yaml_get(node, "iterations"), 0),
                              .restart = (int)trli_yaml_whole(trli_yaml_get(node, "restart"), 0),
                              .single_reduction = trli_yaml_is_true(trli_yaml_get(node, "single_reduction")),
                              .newton_tolerance = trli_yaml_number(trli_yaml_get(newton, "tolerance")),
                              .newton_iterations = (int)trli_yaml_whole(trli_yaml_get(newton, "iterations"), 0)};
}

trl_err trli_solvers_read(trli_deck *deck)
{
    const trli_yaml *solvers = trli_yaml_get(deck->root, "solvers");
    trl_err err = TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, ((size_t)solvers->n + 1) * sizeof *deck->solver, &deck->solver));
    for (int i = 0; i < solvers->n; ++i) deck->solver[i] = read_solver(solvers->key[i], solvers->item[i]);
    deck->nsolvers = solvers->n;
done:
    return err;
}

/* How systems of an equation are solved, its own or those of stages. */
trl_err trli_solver_name_read(trli_deck *deck, const trli_yaml *entry, trl_equation_entry *equation)
{
    const trli_yaml *solver = trli_yaml_get(entry, "solver");
    trl_err err = TRL_OK;
    if (strcmp(solver->text.chars, "auto") == 0) return TRL_OK;
    for (int i = 0; i < deck->nsolvers; ++i)
        if (strcmp(deck->solver[i].name, solver->text.chars) == 0) equation->solver = &deck->solver[i];
    if (!equation->solver)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(solver),
                       "there is no solver '%s': add it to 'solvers', or say auto", solver->text.chars);
    return err;
}

/* The key of a solver, whose name may have two parts, as the deck has it. */
static const trli_yaml *key_node(const trli_yaml *solver, const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot) return solver->key[trli_yaml_find(solver, name)];
    char outer[32];
    snprintf(outer, sizeof outer, "%.*s", (int)(dot - name), name);
    return key_node(trli_yaml_get(solver, outer), dot + 1);
}

/* What the equations that name a solver have it for. */
typedef struct uses {
    const char *named; /* an equation that names it, or NULL */
    bool solved, bdf;  /* for what they or their stages solve; for steps of bdf */
} uses;

static uses uses_of(const trli_deck *deck, const trl_solver_entry *solver)
{
    const trl_problem *p = &deck->problem;
    const trl_integrator *method = trl_integrator_of(p->time.method);
    uses u = {0};
    for (int v = 0; v < p->nequations; ++v) {
        const trl_equation_entry *e = &p->equation[v];
        if (e->solver != solver) continue;
        u.named = e->name;
        const bool implicit = method->implicit && (method->all_implicit || e->implicit.count > 0);
        u.solved |= e->solve.chars || (implicit && !method->multistep);
        u.bdf |= !e->solve.chars && method->stiff;
    }
    return u;
}

static bool names(const trli_yaml *entry, const char *solver)
{
    const trli_yaml *name = entry ? trli_yaml_get(entry, "solver") : NULL;
    return name && name->text.chars && strcmp(name->text.chars, solver) == 0;
}

/* Whether the text names a solver, which what could not be read of it does not use. */
static bool is_named(const trli_deck *deck, const char *solver)
{
    const trli_yaml *equations = trli_yaml_get(deck->root, "equations");
    bool any = names(trli_yaml_get(deck->root, "incompressible"), solver);
    for (int i = 0; equations && i < equations->n; ++i) any |= names(equations->item[i], solver);
    return any;
}

static trl_err refuse(trli_deck *deck, const trl_solver_entry *solver, const trli_solver_key *key,
                      const trl_place *place)
{
    char method[64], users[192];
    trli_solver_key_write_method(key, solver, method, sizeof method);
    trli_solver_key_write_users(key, users, sizeof users);
    const trl_err err = trl_fail(deck->ctx, TRL_ERR_INPUT, place, "solver '%s' has method %s, which does not use '%s'",
                                 solver->name, method, key->name);
    if (key->always >> solver->method & 1)
        trl_advise(deck->ctx, "remove it: %s does in any case what it is for", method);
    else
        trl_advise(deck->ctx, "remove it, or use what it is for: %s", users);
    return err;
}

/* A key may be for one of the uses of a solver that has several. What the method of time integration makes useless is a
 * warning: that may be another one in the next run. */
static trl_err check_key(trli_deck *deck, const trl_solver_entry *solver, const trli_yaml *node, const uses *u,
                         const trli_solver_key *key)
{
    const trli_solver_use alone = trli_solver_use_of(solver, false), bdf = trli_solver_use_of(solver, true);
    const bool by_bdf = u->bdf && trli_solver_key_is_used(key, &bdf), used = trli_solver_key_is_used(key, &alone);
    if (!trli_solver_key_is_set(key, solver) || by_bdf) return TRL_OK;
    const trl_place *place = &key_node(node, key->name)->text.place;
    if (!used) return refuse(deck, solver, key, place);
    if (u->bdf && !u->solved)
        trl_warn(deck->ctx, place,
                 "bdf does not use '%s' of solver '%s': what it asks of its systems follows from the "
                 "tolerance of the method",
                 key->name, solver->name);
    return TRL_OK;
}

trl_err trli_solvers_check(trli_deck *deck)
{
    int n;
    const trli_solver_key *key = trli_solver_keys(&n);
    const trli_yaml *solvers = trli_yaml_get(deck->root, "solvers");
    trl_err err = TRL_OK;
    for (int i = 0; i < deck->nsolvers; ++i) {
        const trl_solver_entry *solver = &deck->solver[i];
        const uses u = uses_of(deck, solver);
        if (!u.named && is_named(deck, solver->name)) continue; /* what names it was refused */
        if (!u.named)
            trl_warn(deck->ctx, &solver->place, "nothing uses solver '%s': no equation names it", solver->name);
        else if (!u.solved && !u.bdf)
            trl_warn(deck->ctx, &solver->place, "nothing uses solver '%s': %s solves no system for '%s'", solver->name,
                     trl_method_name(deck->problem.time.method), u.named);
        for (int k = 0; k < n; ++k) err = trli_worse(err, check_key(deck, solver, solvers->item[i], &u, &key[k]));
    }
    return err;
}
