/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Jacobian-vector products: the right-hand sides of two coupled equations along a vector given as further variables of
 * the model, against differences, with values inlined and stored. */
#include "../expressions/ir_evaluation.h"
#include "../expressions/problem_fixture.h"
#include "krylov_impl.h"
#include "parameters_impl.h"
#include "symbols_impl.h"
#include "tangent_impl.h"

#include <simulation_impl.h>

enum { EQUATIONS = 2 };

static trli_program *program;
static trli_instance *instance;
static int vector[EQUATIONS]; /* variables */

static double wave(int which, int offset)
{
    return 0.7 + 0.3 * sin(1.7 * which + 0.9 * offset);
}

/* The state moves along the vector; what the program stores is computed from what it stores it from. */
static double field_value(const evaluation *e, int field, int offset)
{
    for (int v = 0; v < EQUATIONS; ++v) {
        if (field == instance->variable[v]) return wave(v, offset) + e->eps * wave(v + EQUATIONS, offset);
        if (field == instance->variable[vector[v]]) return wave(v + EQUATIONS, offset);
    }
    for (int s = 0; s < program->nsteps; ++s)
        for (int i = 0; program->step[s].kind == TRLI_STEP_KERNEL && i < program->step[s].nout; ++i)
            if (program->step[s].field[i] == field)
                return evaluate_at((evaluation *)e, program->step[s].value[i], offset);
    ck_abort_msg("nothing computes field %d", field);
    return NAN;
}

static double scalar_value(const evaluation *e, int scalar)
{
    (void)e, (void)scalar;
    return 0.3;
}

static void open_with(const char *fusion)
{
    new_deck();
    say("grid: {cells: [12], periodic: [true]}\n"
        "parameters: {k: 0.1}\n"
        "expressions:\n"
        "  conductivity: \"k*(1 + T^2)\"\n"
        "  heat: \"-at(conductivity, faces)*grad(T)\"\n"
        "  reaction: \"T*exp(-1/C)\"\n"
        "equations:\n"
        "  T: {initial: \"1\", ddt: \"-div(heat) + reaction - div(advective_flux(T, [C], vanleer))\"}\n"
        "  C: {initial: \"1\", ddt: \"box_filter(C, 11) - reaction^3\"}\n"
        "time: {dt: 1e-3, steps: 1}\n"
        "run: {compile: never, fusion: %s}\n",
        fusion);
    ck_ok(open_problem());
}

/* Add the vector's variables and an instance that reads the state and them. */
static void add_vector(int *direction)
{
    trli_model *model = sim->model;
    ck_ok(trli_direction_add(model, "v", direction));
    for (int v = 0; v < EQUATIONS; ++v) {
        trli_variable variable = model->variable[v];
        variable.name = trli_model_name(model, "%s:v", model->variable[v].name);
        variable.initial = NULL;
        variable.ddt = NULL;
        variable.direction = *direction;
        variable.of = v;
        ck_ok(trli_variable_add(model, &variable));
        vector[v] = trli_tangent_variable(model, *direction, v);
        ck_assert_int_eq(vector[v], EQUATIONS + v);
    }
    ck_ok(trli_program_create(model, "product", &program));
    ck_ok(trli_instance_create(model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, &instance));
    for (int v = 0; v < EQUATIONS; ++v) {
        instance->variable[v] = sim->equation[v].state;
        instance->variable[vector[v]] = trli_model_add_field(model, model->variable[vector[v]].name, TRL_CELL);
    }
}

START_TEST(a_product_with_the_jacobian_is_the_difference_along_the_vector)
{
    static const char *const fusion[] = {"full", "node", "none"};
    double first[EQUATIONS];
    for (int f = 0; f < 3; ++f) {
        int direction;
        open_with(fusion[f]);
        add_vector(&direction);
        evaluation e = {.ir = &sim->model->ir, .field = field_value, .scalar = scalar_value};
        for (int v = 0; v < EQUATIONS; ++v) {
            trli_ir_value rate, product;
            double error;
            ck_ok(trli_lower_at(instance, sim->equation[v].ddt, sim->equation[v].deck->names, TRL_CELL, &rate));
            ck_ok(trli_tangent(instance, direction, rate, &product));
            ck_assert_int_ge(product, 0);
            double expected = difference(&e, rate, &error), found = evaluate(&e, product, 0);
            ck_assert_double_le(error, 1e-8);
            ck_assert_msg(fabs(found - expected) < 1e-7, "%s: %.15g, differences give %.15g", fusion[f], found,
                          expected);
            if (f == 0) first[v] = found;
            ck_assert_double_eq(found, first[v]);
        }
        trli_instance_destroy(&instance);
        close_problem();
    }
}
END_TEST

START_TEST(unknowns_at_the_same_points_are_multiplied_in_one_sweep)
{
    static const int expected[] = {2, 1};
    int kernels = 0;
    new_deck();
    say("grid: {cells: [12, 10], periodic: [false, true]}\nequations:\n"
        "  u: {initial: x, ddt: {implicit: \"u*v + laplacian(u)\"}, boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
        "  w: {location: xface, initial: y, ddt: {implicit: \"laplacian(w) - at(u, xface)\"},\n"
        "      boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
        "  v: {initial: y, ddt: {implicit: \"u - v^3 + laplacian(v)\"}, boundary: {x-: {neumann: 0}, x+: {neumann: "
        "0}}}\n"
        "time: {method: beuler, dt: 0.1, steps: 1}\n");
    ck_ok(open_problem());
    const trli_solver *s = trli_implicit_solver(sim);
    ck_assert_ptr_nonnull(s);
    for (int i = 0; i < s->apply->nsteps; ++i) {
        if (s->apply->step[i].kind != TRLI_STEP_KERNEL) continue;
        ck_assert_int_lt(kernels, 2);
        ck_assert_int_eq(s->apply->step[i].nout, expected[kernels++]);
    }
    ck_assert_int_eq(kernels, 2);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, unknowns_at_the_same_points_are_multiplied_in_one_sweep);
    tcase_add_test(tc, a_product_with_the_jacobian_is_the_difference_along_the_vector);
}

TRL_TEST_MAIN("jacobian", add_tests)
