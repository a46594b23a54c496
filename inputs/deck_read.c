/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "deck_build_impl.h"

/* More cells than this cannot be counted exactly by a double, nor held by any machine. */
#define CELLS_MAX 9007199254740992.0

trl_err trli_grid_read(trli_deck *deck)
{
    const trli_yaml *node = trli_yaml_get(deck->root, "grid"), *cells = trli_yaml_get(node, "cells");
    const trli_yaml *length = trli_yaml_get(node, "length"), *origin = trli_yaml_get(node, "origin");
    const trli_yaml *periodic = trli_yaml_get(node, "periodic"), *patches = trli_yaml_get(node, "patches");
    trl_problem *problem = &deck->problem;
    trl_grid *grid = &problem->grid;
    double all = 1;
    grid->dim = cells->n;
    problem->patches_auto = patches->kind == TRLI_SCALAR_NODE;
    problem->patches_place = *trli_yaml_place(patches);
    for (int a = 0; a < 3; ++a) {
        bool exists = a < grid->dim;
        grid->cells[a] = exists ? trli_yaml_whole(cells->item[a], 1) : 1;
        grid->length[a] = exists ? trli_yaml_number(length->item[a]) : 1;
        grid->origin[a] = exists ? trli_yaml_number(origin->item[a]) : 0;
        grid->periodic[a] = exists && trli_yaml_is_true(periodic->item[a]);
        grid->spacing[a] = grid->length[a] / (double)grid->cells[a];
        all *= (double)grid->cells[a];
        int64_t count = exists && !problem->patches_auto ? trli_yaml_whole(patches->item[a], 1) : 1;
        problem->patches[a] = (int)count;
        if (count > grid->cells[a] || count > INT_MAX)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(patches->item[a]),
                            "%lld patches cannot share %lld cells", (long long)count, (long long)grid->cells[a]);
    }
    if (all <= CELLS_MAX) return TRL_OK;
    return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(cells),
                    "the grid has %.3g cells, more than can be numbered (%.3g)", all, CELLS_MAX);
}

/* Load one library and write its own path into the deck as used, which may be read from another folder. */
static trl_err load_plugin(trli_deck *deck, const char *const *folders, int nfolders, trli_yaml **item)
{
    trl_registry *registry = deck->registry;
    const trli_yaml *node = *item;
    char absolute[PATH_MAX];
    const char *origin;
    int before = trl_registry_count(registry);
    trl_err err;
    TRL_TRY(trl_registry_load(registry, node->text.chars, folders, nfolders, trli_yaml_place(node)));
    if (trl_registry_count(registry) == before) return TRL_OK;
    trl_registry_at(registry, before, &origin);
    if (!realpath(origin, absolute)) return TRL_OK;
    TRL_TRY(trli_arena_text(deck->arena, absolute, strlen(absolute), &origin));
    TRL_TRY(trli_yaml_scalar(deck->arena, origin, trli_yaml_place(node), item));
done:
    return err;
}

trl_err trli_plugins_read(trli_deck *deck)
{
    trli_yaml *plugins = trli_yaml_get(deck->root, "plugins"), *key, *copy;
    const trli_deck_request *request = deck->request;
    const char **folder;
    trl_err err, kept = TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)(request->nfolders + 1) * sizeof *folder, &folder));
    for (int i = 0; i < request->nfolders; ++i) folder[i + 1] = request->plugin_folder[i];
    TRL_TRY(trli_yaml_copy(deck->arena, plugins, &copy));
    for (int i = 0; i < copy->n; ++i) {
        const trl_text *text = &copy->item[i]->text;
        bool named = text->place.file && trli_map_find(&deck->loaded.files, text->place.file) >= 0;
        TRL_TRY(trli_path_folder(deck->arena, named ? text->place.file : request->path, &folder[0]));
        bool is_path = strchr(text->chars, '/') != NULL;
        kept = trli_worse(kept, load_plugin(deck, folder, is_path ? 1 : request->nfolders + 1, &copy->item[i]));
    }
    deck->plugins_missing = kept != TRL_OK;
    if (kept != TRL_OK) return kept;
    TRL_TRY(trli_yaml_scalar(deck->arena, "plugins", trli_yaml_place(plugins), &key));
    TRL_TRY(trli_yaml_put(deck->arena, deck->root, key, copy));
done:
    return err;
}

/* From the checked tree to the problem: what a part needs of others stands before it. */
static trl_err build(trli_deck *deck)
{
    static trl_err (*const first[])(trli_deck *) = {trli_plugins_read, trli_parameters_read};
    static trl_err (*const rest[])(trli_deck *) = {trli_constants_read,   trli_grid_read,        trli_stencils_read,
                                                   trli_expressions_read, trli_solvers_read,     trli_equations_read,
                                                   trli_flow_read,        trli_sensitivity_read, trli_time_read,
                                                   trli_solvers_check,    trli_output_read,      trli_run_read};
    trl_err err = TRL_OK;
    for (size_t i = 0; i < sizeof first / sizeof *first; ++i) err = trli_worse(err, first[i](deck));
    /* Without parameters every formula of them would be reported too. */
    for (size_t i = 0; i < sizeof rest / sizeof *rest && deck->problem.parameters; ++i)
        err = trli_worse(err, rest[i](deck));
    return err;
}

static trl_err read_deck(trl_context *ctx, trl_registry *registry, const trli_deck_request *request, trli_deck **deck)
{
    trli_arena *arena;
    trli_deck *d;
    trl_err err = trli_arena_create(ctx, &arena);
    if (err != TRL_OK) return err;
    err = trli_arena_alloc(arena, sizeof *d, &d);
    if (err != TRL_OK) {
        trli_arena_destroy(&arena);
        return err;
    }
    *d = (trli_deck){.ctx = ctx, .registry = registry, .arena = arena, .request = request};
    *deck = d;
    TRL_TRY(trli_deck_load(ctx, arena, request, &d->loaded));
    TRL_TRY(trli_schema_check(ctx, d->loaded.root));
    TRL_TRY(trli_schema_fill(arena, d->loaded.root, &d->root));
    TRL_TRY(build(d));
done:
    d->request = NULL;
    return err;
}

trl_err trli_deck_read(trl_context *ctx, trl_registry *registry, const trli_deck_request *request, trli_deck **deck)
{
    *deck = NULL;
    trl_context_begin_phase(ctx);
    trl_err err = trl_context_end_phase(ctx, read_deck(ctx, registry, request, deck));
    if (err != TRL_OK) trli_deck_destroy(deck);
    return err;
}

void trli_deck_destroy(trli_deck **deck)
{
    if (!*deck) return;
    /* The deck lives in its own arena. */
    trli_arena *arena = (*deck)->arena;
    trli_arena_destroy(&arena);
    *deck = NULL;
}

const trl_problem *trli_deck_problem(const trli_deck *deck)
{
    return &deck->problem;
}

const trli_deck_options *trli_deck_options_of(const trli_deck *deck)
{
    return &deck->options;
}
