/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages of all ranks in an iteration of a solver: sums, and agreements on errors that they wait for. Ranks of a node
 * that share memory post them there. */
// ctest: np=2,3 sanitize=2
#include "context_impl.h"
#include "joint_sums_impl.h"
#include "model_run_impl.h"
#include "run_fixture.h"
#include "simulation_impl.h"

static int joined; /* by MPI_Allreduce, of this rank */

/* In the place of MPI's own. */
int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ++joined;
    return PMPI_Allreduce(from, to, n, type, op, comm);
}

/* ---- counting ---- */

typedef struct count {
    int iterations, sums, agreements;
} count;

/* Reductions in which this rank took part. */
static int begun(void)
{
    int n = 0;
    for (int b = 0; b < sim->model->run->nbatches; ++b) n += (int)sim->frame->batch[b].all.number;
    return sim->frame->joint ? n + (int)sim->frame->joint->message.all.number : n;
}

static count messages(void)
{
    const trli_agreement *a = &test_ctx->agreement;
    return (count){.sums = joined + begun(), .agreements = (int)a->at_once};
}

/* Of the solution alone: before it, ranks agree on a balance of the machine that no cache has yet. */
static count solve(const char *equation, int cells, const char *solver, const char *tolerance)
{
    new_deck();
    say("grid: {cells: [%d, %d]}\nequations:\n  p: {initial: 0, solve: \"%s\", solver: s, boundary: {x-: "
        "{dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}}\n"
        "solvers: {s: {method: %s, tolerance: %s}}\nrun: {compile: never}\n",
        cells, cells, equation, solver, tolerance);
    ck_ok(open_problem());
    const count before = messages();
    ck_ok(trl_simulation_initialise(sim));
    count c = messages();
    c.iterations = (int)trl_simulation_solver(sim, 0)->last_iterations;
    c.sums -= before.sums;
    c.agreements -= before.agreements;
    close_problem();
    return c;
}

START_TEST(an_iteration_has_the_messages_that_its_method_needs)
{
    static const char symmetric[] = "laplacian(p) = 1 + 5*sin(13*x*y)";
    static const char aside[] = "laplacian(p) + 20*d2dx(p) = 1 + 5*sin(13*x*y)";
    static const char other[] = "laplacian(p) - 20*cddx(p) = 1 + 5*sin(13*x*y)";
    /* Each cycle has one of sums, of coarse residuals, behind an agreement. */
    static const struct {
        const char *equation, *solver;
        int sums, agreements;
        const char *least; /* tolerance; NULL: 1e-9 */
    } cases[] = {
        {symmetric, "cg, preconditioner: jacobi", 2, 0, NULL},
        {symmetric, "cg, preconditioner: jacobi, single_reduction: true", 1, 0, NULL},
        {symmetric, "pipelined_cg", 1, 0, NULL},
        {symmetric, "pipelined_cg, preconditioner: multigrid", 2, 1, NULL},
        {symmetric, "cg, preconditioner: multigrid", 4, 1, NULL},
        {symmetric, "cg, preconditioner: multigrid, single_reduction: true", 2, 1, NULL},
        {symmetric, "multigrid", 2, 1, NULL},
        {other, "bicgstab, preconditioner: jacobi", 2, 0, NULL},
        {other, "bicgstab, preconditioner: jacobi, single_reduction: true", 1, 0, NULL},
        {aside, "bicgstab, preconditioner: multigrid, smoother: red_black", 4, 2, "1e-12"},
        {aside, "bicgstab, preconditioner: multigrid, smoother: red_black, single_reduction: true", 3, 2, "1e-12"},
        {other, "gmres, preconditioner: jacobi, restart: 200", 1, 0, NULL},
        {symmetric, "gmres, preconditioner: multigrid", 2, 1, NULL}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const char *const least = cases[k].least ? cases[k].least : "1e-9";
        const count few = solve(cases[k].equation, 24, cases[k].solver, "1e-3"),
                    many = solve(cases[k].equation, 24, cases[k].solver, least);
        const int n = many.iterations - few.iterations;
        ck_assert_int_gt(n, 2);
        ck_assert_msg(many.sums - few.sums == n * cases[k].sums &&
                          many.agreements - few.agreements == n * cases[k].agreements,
                      "%s: %d more iterations, %d sums, %d agreements", cases[k].solver, n, many.sums - few.sums,
                      many.agreements - few.agreements);
    }
}
END_TEST

/* Nine unknowns have no more than nine vectors: what is left of the next one is rounding errors. */
START_TEST(gmres_projects_again_what_nearly_nothing_is_left_of)
{
    static const char equation[] = "laplacian(p) - 20*cddx(p) = 1 + 5*sin(13*x*y)";
    const count few = solve(equation, 3, "gmres, preconditioner: none", "0.2"),
                many = solve(equation, 3, "gmres, preconditioner: none", "1e-12");
    ck_assert_int_eq(many.iterations, 9);
    ck_assert_int_eq(many.sums - few.sums, many.iterations - few.iterations + 1);
}
END_TEST

/* ---- stages of a flow ---- */

typedef struct stage_count {
    int64_t exchanged; /* messages of this rank to neighbours */
    int sums;
} stage_count;

static const char transport[] =
    "  %s: {location: %s, initial: \"%s\", ddt: \"-div(advective_flux(%s, %s)) + 0.1*laplacian(%s)\"%s}\n";

/* Of a step of three stages in which no direct solution is looked at. A divergence takes one message from a neighbour,
 * as a gradient does. walls: the solver eliminates along x; else it transforms along both axes. */
static stage_count step_of_flow(bool flow, bool walls)
{
    static const char given[] = ", boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}";
    const char *const along = walls ? given : "";
    trl_simulation_stats before, after;
    new_deck();
    say("grid: {cells: [12, 24], periodic: [%s, true], patches: [1, %d]}\n%sequations:\n", walls ? "false" : "true",
        trl_context_ranks(test_ctx), flow ? "incompressible: {velocity: [u, v], pressure: p}\n" : "");
    say(transport, "u", "xface", "sin(pi*x)*sin(2*pi*y)", "u", "[u, at(v, zedge)]", "u", along);
    say(transport, "v", "yface", "cos(2*pi*x)", "v", "[at(u, zedge), v]", "v", along);
    say("time: {method: ssprk3, dt: 1e-3, steps: 9}\nrun: {compile: never}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    for (int step = 0; step < 5; ++step) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_settle(sim));
    const count c = messages();
    trl_simulation_get_stats(sim, &before);
    ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_settle(sim));
    trl_simulation_get_stats(sim, &after);
    if (flow) ck_assert_str_eq(trl_simulation_solver(sim, 0)->method, "direct");
    const count d = messages();
    close_problem();
    return (stage_count){.exchanged = after.comm_messages - before.comm_messages, .sums = d.sums - c.sums};
}

START_TEST(a_stage_of_a_flow_has_one_exchange_and_one_sum_more_than_one_of_scalars)
{
    enum { STAGES = 3, MEAN = 1 /* of the first guess, once a step */ };
    for (int walls = 0; walls < 2; ++walls) {
        const stage_count scalars = step_of_flow(false, walls), flow = step_of_flow(true, walls);
        ck_assert_msg(flow.exchanged == scalars.exchanged + STAGES && flow.sums == scalars.sums + STAGES + MEAN,
                      "%d walls: %d messages to neighbours and %d sums, %d and %d of scalars", 2 * walls,
                      (int)flow.exchanged, flow.sums, (int)scalars.exchanged, scalars.sums);
    }
}
END_TEST

/* ---- an expression that is 1, until it fails ---- */

static int calls_left; /* of this rank; -1: any number */

static trl_err brittle_advertise(const void *data, trl_deps *deps)
{
    (void)data;
    return trl_deps_compute(deps, "brittle", TRL_CELL);
}

static trl_err brittle_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *to = &args->computed[0];
    (void)data;
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) ((double *)to->at)[trl_array_offset(to, i, j, 0)] = 1;
    if (calls_left == 0) return trl_fail(test_ctx, TRL_ERR_PLUGIN, NULL, "brittle");
    calls_left -= calls_left > 0;
    return TRL_OK;
}

static const trl_expr_type brittle = {.abi = TRL_PLUGIN_ABI,
                                      .size = sizeof brittle,
                                      .name = "brittle",
                                      .doc = "1, or an error",
                                      .flags = TRL_EXPR_POINTWISE,
                                      .advertise_dependents = brittle_advertise,
                                      .evaluate = brittle_evaluate};
static const trl_expr_type *const types[] = {&brittle, NULL};

START_TEST(a_rank_that_fails_in_an_iteration_ends_all)
{
    static const char *const methods[] = {"cg",       "cg, single_reduction: true",       "pipelined_cg",
                                          "bicgstab", "bicgstab, single_reduction: true", "gmres"};
    static const int calls[] = {1, 8, 15};
    test_types = types;
    for (size_t k = 0; k < sizeof methods / sizeof *methods; ++k)
        for (size_t c = 0; c < sizeof calls / sizeof *calls; ++c) {
            test_clear();
            new_deck();
            say("grid: {cells: [12, 24], periodic: [true, true]}\nexpressions: {b: {type: brittle}}\n"
                "equations: {p: {initial: 0, solve: \"laplacian(p) - brittle*p = sin(13*x*y)\", solver: s}}\n"
                "solvers: {s: {method: %s, preconditioner: none}}\nrun: {threads: 1}\n",
                methods[k]);
            ck_ok(open_problem());
            const bool here = trl_context_rank(test_ctx) == (int)c % trl_context_ranks(test_ctx);
            calls_left = here ? calls[c] : -1;
            const trl_err err = trl_simulation_initialise(sim);
            ck_assert_msg(err == TRL_ERR_PLUGIN, "%s, call %d: %s: %s", methods[k], calls[c], trl_err_name(err),
                          test_messages());
            ck_assert(!trl_context_lost(test_ctx));
            close_problem();
        }
    test_types = NULL;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, an_iteration_has_the_messages_that_its_method_needs);
    tcase_add_test(tc, gmres_projects_again_what_nearly_nothing_is_left_of);
    tcase_add_test(tc, a_stage_of_a_flow_has_one_exchange_and_one_sum_more_than_one_of_scalars);
    tcase_add_test(tc, a_rank_that_fails_in_an_iteration_ends_all);
}

TRL_TEST_MAIN("messages", add_tests)
