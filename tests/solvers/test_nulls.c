/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* NULL where something is needed is an error of a driver or a plugin, not a crash. */
#include "../expressions/problem_fixture.h"

static int asked; /* answers to questions with NULL that were right */

static trl_err lazy_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    asked += trl_deps_compute(NULL, "rate", TRL_CELL) == TRL_ERR_USAGE;
    asked += trl_deps_require(NULL, "T", TRL_CELL, NULL, NULL) == TRL_ERR_USAGE;
    asked += trl_deps_grid(NULL) == NULL;
    trl_err err = trl_deps_compute(deps, "rate", TRL_CELL);
    return err == TRL_OK ? trl_deps_require(deps, "T", TRL_CELL, NULL, NULL) : err;
}

static trl_err nameless_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, NULL, TRL_CELL);
}

static trl_err needless_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_require(deps, NULL, TRL_CELL, NULL, NULL);
}

static trl_err lazy_bind(void *state, const trl_binding *binding)
{
    (void)state;
    asked += trl_binding_computed(NULL, "rate") == -1;
    asked += trl_binding_required(NULL, "T") == -1;
    asked += trl_binding_computed(binding, NULL) == -1;
    asked += trl_binding_required(binding, NULL) == -1;
    asked += trl_binding_grid(NULL) == NULL;
    return TRL_OK;
}

static trl_err lazy_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    for (int i = box->lo[0]; i < box->hi[0]; ++i)
        ((double *)args->computed[0].at)[trl_array_offset(&args->computed[0], i, 0, 0)] = 0;
    return TRL_OK;
}

static void problem_with(trl_err (*advertise)(const void *, trl_deps *))
{
    static trl_expr_type lazy;
    static const trl_expr_type *const types[] = {&lazy, NULL};
    lazy = (trl_expr_type){.abi = TRL_PLUGIN_ABI,
                           .size = sizeof lazy,
                           .name = "lazy",
                           .doc = "nothing",
                           .flags = TRL_EXPR_POINTWISE,
                           .advertise_dependents = advertise,
                           .bind_fields = lazy_bind,
                           .evaluate = lazy_evaluate};
    test_types = types;
    new_deck();
    say("grid: {cells: [3], periodic: [true]}\nexpressions: {rate: {type: lazy}}\n");
    say("equations: {T: {initial: 1, ddt: rate}}\ntime: {method: euler, dt: 1, steps: 1}\n");
}

START_TEST(a_plugin_that_passes_null_gets_an_error)
{
    asked = 0;
    problem_with(lazy_advertise);
    ck_ok(open_problem());
    ck_assert_int_eq(asked, 8);
    problem_with(nameless_advertise);
    ck_fails(open_problem(), TRL_ERR_PLUGIN, "advertises a tag without a name");
    problem_with(needless_advertise);
    ck_fails(open_problem(), TRL_ERR_PLUGIN, "advertises a tag without a name");
    test_types = NULL;
}
END_TEST

START_TEST(a_registry_refuses_null)
{
    static const trl_expr_type none = {.abi = 0};
    const trl_place place = {.line = 1};
    trl_registry *r;
    ck_assert_int_eq(trl_registry_create(NULL, &r), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_registry_create(test_ctx, NULL), TRL_ERR_USAGE);
    ck_ok(trl_registry_create(test_ctx, &r));
    ck_assert_int_eq(trl_registry_add(NULL, &none, "x", &place), TRL_ERR_USAGE);
    ck_fails(trl_registry_add(r, NULL, "x", &place), TRL_ERR_USAGE, "without its descriptor");
    ck_fails(trl_registry_add(r, &none, NULL, &place), TRL_ERR_USAGE, "without its origin");
    ck_assert_int_eq(trl_registry_load(NULL, "x", NULL, 0, &place), TRL_ERR_USAGE);
    ck_fails(trl_registry_load(r, NULL, NULL, 0, &place), TRL_ERR_USAGE, "without its name");
    ck_fails(trl_registry_load(r, "x", NULL, 1, &place), TRL_ERR_USAGE, "without the folders");
    ck_assert_ptr_null(trl_registry_find(NULL, "x"));
    ck_assert_ptr_null(trl_registry_find(r, NULL));
    ck_assert_int_eq(trl_registry_count(NULL), 0);
    ck_assert_ptr_null(trl_registry_at(NULL, 0, NULL));
    ck_assert_ptr_null(trl_registry_at(r, 0, NULL));
    trl_registry_destroy(&r);
    trl_registry_destroy(NULL);
}
END_TEST

START_TEST(a_simulation_refuses_null)
{
    trl_field_stats stats;
    trl_simulation *other = NULL;
    double extremes[2];
    problem_with(lazy_advertise);
    ck_ok(open_problem());
    ck_assert_int_eq(trl_simulation_create(NULL, trli_deck_problem(deck), &other), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_create(test_ctx, trli_deck_problem(deck), NULL), TRL_ERR_USAGE);
    ck_fails(trl_simulation_create(test_ctx, NULL, &other), TRL_ERR_USAGE, "without its problem");
    ck_assert_ptr_null(other);
    ck_assert_int_eq(trl_simulation_initialise(NULL), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_step(NULL), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_advance(NULL, NULL, NULL), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_observe(NULL), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_resume(NULL, 0, 0, 1), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_simulation_field_stats(NULL, 0, &stats), TRL_ERR_USAGE);
    ck_fails(trl_simulation_field_stats(sim, 0, NULL), TRL_ERR_USAGE, "nor room for them");
    ck_fails(trl_simulation_field_stats(sim, 99, &stats), TRL_ERR_USAGE, "no statistics of field 99");
    ck_assert_int_eq(trl_simulation_extremes(NULL, extremes), TRL_ERR_USAGE);
    ck_fails(trl_simulation_extremes(sim, NULL), TRL_ERR_USAGE, "need room");
    trl_simulation_destroy(NULL);
    test_types = NULL;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, a_plugin_that_passes_null_gets_an_error);
    tcase_add_test(tc, a_registry_refuses_null);
    tcase_add_test(tc, a_simulation_refuses_null);
}

TRL_TEST_MAIN("nulls", add_tests)
