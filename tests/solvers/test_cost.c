/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is stored and what is computed again, what kernels are said to cost, and why each is one of its own. */
// ctest: np=1,3
#include "../expressions/problem_fixture.h"

#include "cost_impl.h"
#include "simulation_impl.h"

static char *plan;

static void add_line(void *data, const char *line)
{
    size_t length = plan ? strlen(plan) : 0, more = strlen(line) + 2;
    (void)data;
    plan = realloc(plan, length + more);
    ck_assert_ptr_nonnull(plan);
    snprintf(plan + length, more, "%s\n", line);
}

static void plan_says(const char *text)
{
    free(plan);
    plan = NULL;
    ck_ok(trl_simulation_describe(sim, true, add_line, NULL));
    ck_assert_msg(strstr(plan, text) != NULL, "no '%s' in\n%s", text, plan);
}

/* Diffusion with a conductivity that is a named value, needed at seven points. */
static void say_diffusion(const char *conductivity)
{
    new_deck();
    say("grid: {cells: [9, 8, 7], periodic: [true, true, true]}\n"
        "expressions:\n  k: \"%s\"\n"
        "equations:\n  T: {initial: \"sin(2*pi*x)*cos(2*pi*y) + z\", ddt: \"div(k*grad(T))\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 2}\n",
        conductivity);
}

static int kernels_of(const char *conductivity, const char *setting, uint64_t *hash)
{
    say_diffusion(conductivity);
    ck_ok(open_set(setting));
    int n = trl_simulation_kernels(sim);
    ck_ok(run_steps(2));
    *hash = hash_of("T");
    return n;
}

START_TEST(stores_what_costs_more_to_compute_at_many_offsets_than_to_read)
{
    uint64_t stored, computed;
    trl_kernel_stats k;
    ck_assert_int_eq(kernels_of("0.1*exp(-T)", "run.balance=1", &stored), 2);
    trl_simulation_get_kernel(sim, 0, &k);
    ck_assert_str_eq(k.name, "k");
    plan_says("stored: it is needed at 7 offsets");
    plan_says("storing    1 intermediate field,");
    ck_assert_int_eq(kernels_of("0.1*exp(-T)", "run.balance=1e6", &computed), 1);
    plan_says("k                computed where it is needed, at 7 offsets");
    ck_assert(stored == computed);
}
END_TEST

START_TEST(computes_again_what_costs_less_than_to_read)
{
    uint64_t hash, stored;
    ck_assert_int_eq(kernels_of("0.1 + 0.02*T", "run.balance=1", &hash), 1);
    ck_assert_int_eq(kernels_of("0.1 + 0.02*T", "run.balance=1e-3", &hash), 1); /* loading takes as long */
    ck_assert_int_eq(kernels_of("0.1 + 0.02*T^6", "run.balance=100", &hash), 1);
    ck_assert_int_eq(kernels_of("0.1 + 0.02*T^6", "run.balance=1e-3", &stored), 2);
    ck_assert(stored == hash);
}
END_TEST

/* Nodes read a value beyond the plus side of an axis, and only there; what it follows from is read farther out there
 * than beyond a patch, also beside periodic sides. */
START_TEST(finds_the_corners_of_what_is_stored_beyond_a_side)
{
    static const char *const sides[] = {"x-: {neumann: \"y\"}, x+: {neumann: 0.3}",
                                        "y-: {neumann: \"x\"}, y+: {neumann: 0.3}"};
    for (int axis = 0; axis < 2; ++axis)
        for (int form = 0; form < 2; ++form) {
            uint64_t hash[2];
            for (int stored = 0; stored < 2; ++stored) {
                new_deck();
                say("grid: {cells: [20, 20], periodic: [%s]}\n"
                    "expressions:\n"
                    "  d: \"div(grad(T))\"\n"
                    "  e: \"sin(d)%s\"\n"
                    "equations:\n"
                    "  T: {initial: \"sin(3*x) + random(1)\", ddt: \"-T\", boundary: {%s}}\n"
                    "  F: {location: node, initial: 0, ddt: \"advective_flux(%s(e, %s), %s, upwind).%c\", boundary: "
                    "{%s}}\n"
                    "time: {method: euler, dt: 1e-4, steps: 2}\n",
                    axis ? "true, false" : "false, true", form ? " + laplacian(d)" : "", sides[axis],
                    form ? "at4" : "at", axis ? "xface" : "yface", axis ? "[0.5, -1]" : "[-1, 0.5]", "xy"[axis],
                    sides[axis]);
                ck_ok(open_set(stored ? "run.balance=1e-6" : "run.fusion=none"));
                ck_ok(run_steps(2));
                hash[stored] = hash_of("F");
            }
            ck_assert_msg(hash[0] == hash[1], "%c, form %d", "xy"[axis], form);
        }
}
END_TEST

/* q needs k, which is stored first; then q itself is weighed as it is now. */
START_TEST(weighs_the_others_again_when_one_is_stored)
{
    new_deck();
    say("grid: {cells: [9, 8], periodic: [true, true]}\n"
        "expressions:\n  k: \"0.1*exp(-T)\"\n  q: \"-k*grad(T)\"\n"
        "equations:\n  T: {initial: \"sin(2*pi*x)\", ddt: \"-div(q)\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 2}\n");
    ck_ok(open_set("run.balance=1"));
    ck_assert_int_eq(trl_simulation_kernels(sim), 2);
    plan_says("q.x              computed where it is needed, at 2 offsets");
    new_deck();
    say("grid: {cells: [9, 8, 7], periodic: [true, true, true]}\n"
        "expressions:\n  k: \"0.1*exp(-T)\"\n"
        "  q: [\"exp(at(k, xface))\", \"exp(at(k, yface))\", \"exp(at(k, zface))\"]\n"
        "equations:\n  T: {initial: \"sin(2*pi*x)\", ddt: \"div(q)\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 2}\n");
    ck_ok(open_set("run.balance=1e-3"));
    ck_assert_int_eq(trl_simulation_kernels(sim), 5); /* all of q read k, which is stored before them */
    ck_ok(run_steps(2));
    const uint64_t stored = hash_of("T");
    ck_ok(open_set("run.balance=1e6"));
    ck_assert_int_eq(trl_simulation_kernels(sim), 1);
    ck_ok(run_steps(2));
    ck_assert(hash_of("T") == stored);
}
END_TEST

START_TEST(decides_by_nothing_of_this_machine_if_the_balance_is_given)
{
    new_deck();
    say("grid: {cells: [16]}\nequations:\n  T: {initial: \"x\", ddt: \"1/(1 + T)\"}\ntime: {dt: 1e-4, steps: 1}\n");
    ck_ok(open_set("run.balance=3"));
    const trli_balance *b = &sim->model->machine.deciding;
    ck_assert_double_eq_tol(b->operations / trli_model_bandwidth(sim->model), 3, 1e-12);
    ck_assert(b->division == 12 && b->exponential == 36);
    ck_ok(open_set("run.balance=auto"));
    ck_assert(memcmp(&sim->model->machine.deciding, &sim->model->machine.balance, sizeof *b) == 0);
}
END_TEST

START_TEST(decides_alike_on_all_ranks_by_what_was_measured)
{
    uint64_t hash;
    int n = kernels_of("0.1*exp(-T)", NULL, &hash), most, least;
    MPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&n, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_int_eq(least, most);
}
END_TEST

START_TEST(counts_operations_as_they_are_computed)
{
    trl_kernel_stats k;
    new_deck();
    say("grid: {cells: [16], periodic: [true]}\n"
        "equations:\n  u: {initial: \"x\", ddt: \"div(grad(u*u)) + exp(u)\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 1}\n");
    ck_ok(open_problem());
    ck_assert_int_eq(trl_simulation_kernels(sim), 1);
    trl_simulation_get_kernel(sim, 0, &k);
    ck_assert_str_eq(k.name, "u:np1");
    ck_assert_int_eq(k.bytes_per_point, 16);
    ck_assert_int_eq(k.results, 1);
    ck_assert_int_eq(k.inputs, 1);
    /* u*u at 3 points; 2 differences, each times 1/h; their difference times 1/h; exp as 24; the sum; times dt, added
     * to u. */
    ck_assert(k.flops_per_point == 3 + 4 + 2 + 24 + 1 + 2);
    ck_assert(k.predicted > 0);
    ck_assert(k.measured == 0);
    ck_ok(run_steps(4));
    trl_simulation_get_kernel(sim, 0, &k);
    ck_assert(k.measured > 0);
}
END_TEST

START_TEST(says_why_kernels_are_not_fused)
{
    new_deck();
    say("grid: {cells: [24, 24], periodic: [true, true]}\n"
        "expressions:\n  a: \"laplacian(laplacian(laplacian(laplacian(laplacian(T)))))\"\n  s: \"T*T\"\n"
        "equations:\n  T: {initial: \"sin(2*pi*x)\", ddt: \"laplacian(s) + 1e-9*a\"}\n"
        "  u: {location: xface, initial: \"x\", ddt: \"ddx(T)\"}\n"
        "time: {method: ssprk2, dt: 1e-4, steps: 1}\n");
    ck_ok(open_problem());
    plan_says("stored: it reads values more than 4 points away");
    plan_says("not fused: it reads T:1 at neighbouring points");
    ck_ok(open_set("run.fusion=node"));
    plan_says("stored: run.fusion is not full");
    ck_ok(open_set("run.fusion=none"));
    plan_says("stored: run.fusion is none");
}
END_TEST

START_TEST(fuses_locations_along_periodic_axes_alone)
{
    static const char equations[] = "equations:\n  T: {initial: \"x\", ddt: \"1\"}\n"
                                    "  u: {location: xface, initial: \"x\", ddt: \"2\"}\n"
                                    "time: {method: euler, dt: 1e-4, steps: 1}\n";
    new_deck();
    say("grid: {cells: [24, 6], periodic: [false, true]}\n");
    say(equations);
    ck_ok(open_problem());
    plan_says("not fused with T:np1: at xface, not cell");
    new_deck();
    say("grid: {cells: [24, 6], periodic: [true, false]}\n");
    say(equations);
    ck_ok(open_problem());
    plan_says("2 results from 2 fields");
}
END_TEST

START_TEST(says_what_conditions_of_its_own_have_stored)
{
    new_deck();
    say("grid: {cells: [12]}\n"
        "expressions:\n  b: {formula: \"T*T\", boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
        "equations:\n  T: {initial: \"x\", ddt: \"laplacian(b)\"}\n"
        "time: {method: euler, dt: 1e-4, steps: 1}\n");
    ck_ok(open_problem());
    plan_says("stored: it has boundary values of its own");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, stores_what_costs_more_to_compute_at_many_offsets_than_to_read);
    tcase_add_test(tc, computes_again_what_costs_less_than_to_read);
    tcase_add_test(tc, finds_the_corners_of_what_is_stored_beyond_a_side);
    tcase_add_test(tc, weighs_the_others_again_when_one_is_stored);
    tcase_add_test(tc, decides_by_nothing_of_this_machine_if_the_balance_is_given);
    tcase_add_test(tc, decides_alike_on_all_ranks_by_what_was_measured);
    tcase_add_test(tc, counts_operations_as_they_are_computed);
    tcase_add_test(tc, says_why_kernels_are_not_fused);
    tcase_add_test(tc, fuses_locations_along_periodic_axes_alone);
    tcase_add_test(tc, says_what_conditions_of_its_own_have_stored);
}

TRL_TEST_MAIN("cost", add_tests)
