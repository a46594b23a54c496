/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Problems in tests: a deck as text becomes a simulation, and the values of its fields are gathered on every rank.
 * The deck is written line by line with say(); open_problem() reads it. */
#ifndef PROBLEM_FIXTURE_H
#define PROBLEM_FIXTURE_H

#include <math.h>
#include <stdarg.h>

#include "trl_test.h"

#include <deck_impl.h>
#include <trl_simulation.h>

static const trl_expr_type *const *test_types; /* NULL-terminated; registered before the deck is read */
static char *deck_text;
static size_t deck_length, deck_room;
static trl_registry *registry;
static trli_deck *deck;
static trl_simulation *sim;
static double *gathered[8]; /* the last arrays given by values_of, which stay valid that long */
static int next_gathered;

static inline void close_problem(void)
{
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
}

/* Start a deck. */
static inline void say(const char *format, ...) TRL_PRINTF(1, 2);
static inline void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (deck_length + (size_t)n + 2 > deck_room) {
        deck_room = 2 * (deck_room + (size_t)n + 2);
        deck_text = realloc(deck_text, deck_room);
        ck_assert_ptr_nonnull(deck_text);
    }
    va_start(args, format);
    deck_length += (size_t)vsnprintf(deck_text + deck_length, deck_room - deck_length, format, args);
    va_end(args);
}

static inline void new_deck(void)
{
    deck_length = 0;
    say("trellis: 1\n");
}

/* "[7, 6, 5]" of the first dim numbers. */
static inline const char *list_of(int dim, const int *numbers)
{
    static char text[4][64];
    static int next;
    char *at = text[next = (next + 1) % 4];
    size_t used = (size_t)snprintf(at, 64, "[");
    for (int a = 0; a < dim; ++a) used += (size_t)snprintf(at + used, 64 - used, "%s%d", a ? ", " : "", numbers[a]);
    snprintf(at + used, 64 - used, "]");
    return at;
}

/* The simulation of a deck that was read. Kernels that it leaves to be compiled when there is time are interpreted: a
 * short test would only start compilers and stop them, and what it tests would depend on how soon they are done. */
static inline trl_err create_simulation(void)
{
    static trl_problem problem;
    problem = *trli_deck_problem(deck);
    if (problem.compile == TRL_COMPILE_AUTO) problem.compile = TRL_COMPILE_NEVER;
    return trl_simulation_create(test_ctx, &problem, &sim);
}

/* Read the deck said so far and compile it; the result of the first step that fails. */
static inline trl_err open_problem_with(int nsets, const char *const *set)
{
    trl_err err = TRL_OK;
    close_problem();
    TRL_TRY(trl_registry_create(test_ctx, &registry));
    for (int i = 0; test_types && test_types[i]; ++i)
        TRL_TRY(trl_registry_add(registry, test_types[i], "built-in", NULL));
    const trli_deck_request request = {.path = "test.yaml", .text = deck_text, .nsets = nsets, .set = set};
    TRL_TRY(trli_deck_read(test_ctx, registry, &request, &deck));
    TRL_TRY(create_simulation());
done:
    return err;
}

static inline trl_err open_problem(void)
{
    return open_problem_with(0, NULL);
}

static inline trl_err open_set(const char *setting)
{
    return open_problem_with(setting ? 1 : 0, &setting);
}

/* Run a problem just opened: initial values, steps, observation. */
static inline trl_err run_steps(int steps)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_initialise(sim));
    for (int i = 0; i < steps; ++i) TRL_TRY(trl_simulation_step(sim));
    TRL_TRY(trl_simulation_observe(sim));
done:
    return err;
}

static inline int field_index(const char *name)
{
    for (int f = 0; f < trl_simulation_fields(sim); ++f)
        if (strcmp(trl_simulation_field(sim, f)->name, name) == 0) return f;
    ck_abort_msg("the problem has no field '%s'", name);
    return -1;
}

static inline trl_location location_of(const char *name)
{
    return trl_simulation_field(sim, field_index(name))->location;
}

static inline const trl_grid *the_grid(void)
{
    return &trl_simulation_layout(sim)->grid;
}

/* Copy the owned points of a local patch into the array of the whole grid. */
static inline void copy_patch(const trl_patch *patch, const trl_array *a, const trl_gidx n[3], double *all)
{
    for (trl_lidx k = a->owned.lo[2]; k < a->owned.hi[2]; ++k)
        for (trl_lidx j = a->owned.lo[1]; j < a->owned.hi[1]; ++j)
            for (trl_lidx i = a->owned.lo[0]; i < a->owned.hi[0]; ++i)
                all[patch->first[0] + i + n[0] * (patch->first[1] + j + n[1] * (patch->first[2] + k))] =
                    ((const double *)a->at)[trl_array_offset(a, i, j, k)];
}

/* All values of a field, x fastest, on every rank. n: points per axis. */
static inline const double *values_of(const char *name, trl_gidx n[3])
{
    const trl_layout *layout = trl_simulation_layout(sim);
    int f = field_index(name);
    for (int a = 0; a < 3; ++a) n[a] = trl_grid_points(&layout->grid, trl_simulation_field(sim, f)->location, a);
    size_t points = (size_t)(n[0] * n[1] * n[2]);
    int at = next_gathered++ % 8;
    double *all = gathered[at] = realloc(gathered[at], points * sizeof *all);
    memset(all, 0, points * sizeof *all);
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array a = trl_simulation_array(sim, f, p);
        copy_patch(&layout->patch[p], &a, n, all);
    }
    /* Each point has one owner, all others hold zero bits. */
    MPI_Allreduce(MPI_IN_PLACE, all, (int)points, MPI_INT64_T, MPI_BOR, trl_context_comm(test_ctx));
    return all;
}

static inline uint64_t hash_of(const char *name)
{
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field_index(name), &stats));
    return stats.hash;
}

/* Equal up to rounding of a few operations. */
static inline bool near(double found, double expected, double tolerance)
{
    return fabs(found - expected) <= tolerance * (1 + fabs(expected));
}

#endif
