/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages that come late and in another order: calls of MPI wait at random, or say that what is done is not done yet,
 * and workers lose their core between two looks at shared memory. Every run has the bits of one without delays. The
 * long form has a thousand seeds. */
// ctest: np=4 sanitize=none timeout=900
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../expressions/problem_fixture.h"

#include <clock_impl.h>
#include <late_impl.h>
#include <model_run_impl.h>
#include <trace_impl.h>

#include "message_count.h"

/* ---- delays ---- */

static _Atomic uint64_t seed; /* 0: no delays */
static _Atomic uint64_t calls;
static long longest_ns = 100000;        /* wait */
static _Atomic int64_t delayed, denied; /* calls, of all seeds */
_Atomic int values_sent;

/* A number that depends on the seed, this rank and the calls before. */
static uint64_t draw(void)
{
    uint64_t x = atomic_load(&seed) * 0x9e3779b97f4a7c15u + atomic_fetch_add(&calls, 1) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    x = (x ^ x >> 29) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static void wait_sometimes(unsigned one_of)
{
    if (atomic_load(&seed) == 0) return;
    const uint64_t x = draw();
    if (x % one_of != 0) return;
    atomic_fetch_add(&delayed, 1);
    nanosleep(&(struct timespec){.tv_nsec = (long)(x >> 40) % longest_ns}, NULL);
}

/* Whether what may be done is said not to be. */
static bool deny(void)
{
    const bool denies = atomic_load(&seed) != 0 && draw() % 3 != 0;
    if (denies) atomic_fetch_add(&denied, 1);
    return denies;
}

/* The next task that was done from a time on, if the run is traced. */
static const trli_trace_event *next_task(const char *name, int64_t from)
{
    const trli_trace_lane *lane = &sim->trace->lane[0];
    for (int64_t i = 0; i < lane->count; ++i) {
        const trli_trace_event *e = &lane->events[i];
        if (e->kind == TRLI_TRACE_TASK && e->begin_ns >= from && strcmp(e->name, name) == 0) return e;
    }
    return NULL;
}

/* A step's dt is said to be under way until a task of this name is done in the step; NULL: it is not. */
static const char *awaited;
static int64_t step_begun;

static MPI_Request *_Atomic reduced; /* of the last message of a reduction: the first of two that are tested together */

static bool is_held_back(const MPI_Request *request)
{
    const int64_t patience = 10000000000;
    if (!awaited || !reduced || !sim->late->dt->awaited) return false;
    if (request != reduced) return false;
    return !next_task(awaited, step_begun) && trli_now_ns() - step_begun < patience;
}

/* In the place of MPI's own. */
int MPI_Testall(int n, MPI_Request *request, int *flag, MPI_Status *status)
{
    *flag = 0;
    return is_held_back(request) || deny() ? MPI_SUCCESS : PMPI_Testall(n, request, flag, status);
}

int MPI_Startall(int n, MPI_Request *request)
{
    wait_sometimes(4);
    return PMPI_Startall(n, request);
}

int MPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    wait_sometimes(4);
    if (type == MPI_DOUBLE) atomic_fetch_add(&values_sent, 1);
    return PMPI_Isend(buffer, n, type, to, tag, comm, request);
}

int MPI_Irecv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    wait_sometimes(4);
    if (sim && sim->frame && comm == sim->frame->comm) reduced = request;
    return PMPI_Irecv(buffer, n, type, from, tag, comm, request);
}

/* Workers without work call it, between two looks at what others sent. */
int sched_yield(void)
{
    wait_sometimes(8);
    return (int)syscall(SYS_sched_yield);
}

/* ---- problems ---- */

enum {
    PLAIN = 12,
    LONG_STEPS = 8,
    PASSES = 7,
    LENT_PASSES = 4,
    REUSES = 2,
    WAYS = PLAIN + LONG_STEPS + PASSES + REUSES + 1
};

/* Make the problem of the deck, with so many workers on each rank. */
static void open_with(int threads)
{
    close_problem();
    ck_ok(trl_context_set_threads(test_ctx, threads));
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
}

/* What follows T, p and others; the method. */
#define BOUNDED "\"div(0.001*at(1 + V*V, faces)*grad(V)) + 0.1*T\""
static const char *const long_steps[LONG_STEPS][2] = {
    {"", "{name: bs3, tolerance: {relative: 1.0e-4, absolute: 1.0e-4}}, end: 0.1"},
    {", p: {initial: \"0\", solve: \"2*p - laplacian(p) = T\", solver: s}", "ssprk2, dt: 0.01"},
    {", p: {initial: \"0\", solve: \"2*p - laplacian(p) = T\", solver: m}", "ssprk2, dt: {cfl: 0.5}"},
    {", p: {initial: \"x\", ddt: {explicit: \"T\", implicit: \"laplacian(p)\"}, solver: s}", "ark3, dt: 0.01"},
    /* dt comes while their first stage runs, or is waited for */
    {", V: {initial: \"x\", ddt: " BOUNDED "}, p: {initial: \"0\", solve: \"2*p - laplacian(p) = V\", solver: m}",
     "ssprk2, dt: {cfl: 0.5}"},
    {", V: {initial: \"x\", ddt: " BOUNDED
     "}, p: {initial: \"0\", solve: \"(2 + dt)*p - laplacian(p) = V\", solver: s}",
     "euler, dt: {cfl: 0.5}"},
    {", V: {initial: \"x\", ddt: " BOUNDED
     "}, p: {initial: \"x\", ddt: {explicit: \"V\", implicit: \"laplacian(p)\"}, solver: s}",
     "ark3, dt: {cfl: 0.5}"},
    {", u: {location: xface, initial: \"y\", ddt: \"-div(advective_flux(u, [u, at(v, zedge)]))\"}"
     ", v: {location: yface, initial: \"0.1\", ddt: \"0.01*laplacian(v) + at(T, yface)\"}}\n"
     "incompressible: {velocity: [u, v], pressure: p, solver: d",
     "ssprk2, dt: {cfl: 0.5}"}};

/* Steps by their error, equations that are solved, and implicit terms: the ranks agree on each run beside the next. */
static void open_long_steps(int way)
{
    new_deck();
    say("grid: {cells: [12, 24], periodic: [true, true], patches: [1, 4]}\n"
        "solvers: {s: {method: cg, preconditioner: none}, m: {method: cg, preconditioner: multigrid}, "
        "d: {method: direct}}\n"
        "equations: {T: {initial: \"sin(2*pi*x)\", ddt: \"0.01*laplacian(T)\"}, U: {initial: \"0\", ddt: \"T\"}%s}\n"
        "time: {method: %s, steps: 4}\nrun: {compile: never}\n",
        long_steps[way][0], long_steps[way][1]);
    open_with(1 + (way >= LONG_STEPS / 2) * (way % 2));
}

/* Neighbours in one and two directions, also along rows alone, messages of MPI and shared memory, with reductions, and
 * without overlap. */
static void open_way(int way)
{
    static const char *const slope[] = {"0.001*laplacian(T) - 0.1*T*U", "div(0.001*at(1 + 0.1*T*U, faces)*grad(T))"};
    new_deck();
    const bool cuts_rows = way % 6 == 0;
    say("grid: {cells: [%s], periodic: [true, %s], patches: [%s]}\n", cuts_rows ? "1088, 12" : "12, 24",
        way % 2 ? "true" : "false",
        cuts_rows      ? "4, 1"
        : way % 3 == 0 ? "2, 4"
                       : "1, 8");
    for (int f = 0; f < 2; ++f)
        say("%s  %c: {initial: \"sin(2*pi*(x + %d*y))\", ddt: \"%s\"%s}\n", f ? "" : "equations:\n", f ? 'U' : 'T', f,
            f ? "0.002*laplacian(U) + 0.1*T" : slope[way / 2 % 2],
            way % 2 ? "" : ", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0.1}}");
    say("time: {method: ssprk2, dt: %s, steps: 5}\n", way / 3 % 2 ? "{cfl: 0.5}" : "0.01");
    say("run: {compile: never, owners: %s, passes: {shared: %s, overlap: %s}}\n", way % 4 > 1 ? "random:1" : "auto",
        way / 6 ? "true" : "false", way % 5 == 4 ? "false" : "true");
    open_with(1 + way % 2);
}

/* Several steps in a pass: patches behind one another, and beside one another, too; thick ones, and some that are too
 * thin for a pass in which nothing is computed twice. */
static void open_passes(int way)
{
    static const char *const grid_of[] = {
        "cells: [12, 96], patches: [1, 4]",       "cells: [12, 96], patches: [1, 4]",
        "cells: [12, 96], patches: [2, 2]",       "cells: [12, 96], patches: [1, 4]",
        "cells: [12, 24], patches: [1, 4]",       "cells: [12, 16, 48], patches: [1, 2, 2]",
        "cells: [12, 12, 16], patches: [1, 2, 2]"};
    const bool periodic = way != 3;
    new_deck();
    say("grid: {%s, periodic: [true, %s%s]}\n", grid_of[way], periodic ? "true" : "false", way > 4 ? ", true" : "");
    say("equations:\n  T: {initial: \"sin(2*pi*x)\", ddt: \"0.001*laplacian(T) - U\"%s}\n",
        periodic ? "" : ", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0.1}}");
    say("  U: {initial: \"y\", ddt: \"T\"}\n");
    say("time: {method: euler, dt: 0.01, steps: 9}\n"
        "run: {compile: never, time_blocking: 3, owners: %s, passes: {shared: %s}}\n",
        way % 3 == 1 ? "random:2" : "auto", way % 2 || way > 3 ? "true" : "false");
    open_with(1 + way / 5);
}

static trl_err opaque_advertise(const void *state, trl_deps *deps)
{
    trl_err err = trl_deps_compute(deps, "out", TRL_CELL);
    (void)state;
    return err == TRL_OK ? trl_deps_require(deps, "in", TRL_CELL, NULL, NULL) : err;
}

static trl_err opaque_bind(void *state, const trl_binding *binding)
{
    (void)state, (void)binding;
    return TRL_OK;
}

static bool fails; /* the plugin, on rank 1 at step 2 */

static trl_err opaque_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *from = &args->required[0], *to = &args->computed[0];
    (void)state;
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
            ((double *)to->at)[trl_array_offset(to, i, j, 0)] =
                2 * ((double *)from->at)[trl_array_offset(from, i, j, 0)];
    if (fails && args->step == 2 && trl_context_rank(test_ctx) == 1)
        return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "rank 1 fails");
    return TRL_OK;
}

static const trl_expr_type opaque = {.abi = TRL_PLUGIN_ABI,
                                     .size = sizeof(trl_expr_type),
                                     .name = "opaque",
                                     .doc = "twice its input",
                                     .advertise_dependents = opaque_advertise,
                                     .bind_fields = opaque_bind,
                                     .evaluate = opaque_evaluate};

/* What a plugin computes is sent, and c takes its memory as soon as b, which reads it, is done, whatever other ranks
 * still read. Small messages, and such as both workers of a rank pack and unpack. */
static void open_reuse(int way)
{
    static const trl_expr_type *const types[] = {&opaque, NULL};
    test_types = types;
    new_deck();
    say("grid: {cells: [%s], periodic: [true, true], patches: [1, 4]}\n"
        "expressions: {P: {type: opaque, computes: [a], inputs: {in: T}}, b: \"laplacian(a)\", c: \"1 + b*b\", "
        "d: \"c/(1 + c*c)\"}\n"
        "equations: {T: {initial: \"sin(2*pi*x)\", ddt: \"d - T\"}, U: {initial: \"0\", ddt: \"T\"}}\n"
        "time: {method: ssprk2, dt: 0.01, steps: 5}\nrun: {compile: never, fusion: node}\n",
        way ? "800, 8" : "12, 24");
    open_with(1 + way);
    test_types = NULL;
}

/* Patches so large that workers begin with some parts of a kernel when messages have come. */
static void open_large(void)
{
    new_deck();
    say("grid: {cells: [64, 5120], periodic: [true, false], patches: [1, 4]}\n"
        "equations:\n  T: {initial: \"sin(2*pi*(x + y))\", ddt: \"0.00001*laplacian(T) - U\", "
        "boundary: {y-: {dirichlet: 0}, y+: {neumann: 0.1}}}\n"
        "  U: {initial: \"0\", ddt: \"T\"}\n"
        "time: {method: ssprk2, dt: 0.0001, steps: 3}\nrun: {compile: never}\n");
    open_with(2);
}

/* How often parts of kernels computed what is beside messages, and how often they left it to others. */
static int64_t ahead, left;

static void count_parts(void)
{
    for (int i = 0; i < sim->model->run->nparts; ++i) {
        ahead += sim->frame->part[i].ahead;
        left += sim->frame->part[i].left;
    }
}

/* The ranks agree on the other steps beside the next ones. */
static bool looks_at_times(void *data, trl_gidx step, double time, double dt)
{
    (void)data, (void)time, (void)dt;
    return step % 3 == 0;
}

static uint64_t run_way(int way, uint64_t delays)
{
    trl_err err = TRL_OK;
    if (way < PLAIN)
        open_way(way);
    else if (way < PLAIN + LONG_STEPS)
        open_long_steps(way - PLAIN);
    else if (way < PLAIN + LONG_STEPS + PASSES)
        open_passes(way - PLAIN - LONG_STEPS);
    else if (way < WAYS - 1)
        open_reuse(way - PLAIN - LONG_STEPS - PASSES);
    else
        open_large();
    atomic_store(&calls, 0);
    atomic_store(&seed, delays ? delays * 64 + (uint64_t)trl_context_rank(test_ctx) + 1 : 0);
    while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_advance(sim, looks_at_times, NULL);
    if (err == TRL_OK) err = trl_simulation_settle(sim);
    atomic_store(&seed, 0);
    ck_ok(err);
    uint64_t hash = hash_of("T") ^ hash_of("U") * 3;
    if (way >= PLAIN + 1 && way < PLAIN + LONG_STEPS) hash ^= hash_of("p") * 5;
    count_parts();
    close_problem();
    return hash;
}

/* Whether some rank has computed parts whole, and some not; which of them is what delays decide. */
static bool both_ways_seen(void)
{
    int64_t parts[2] = {ahead, left};
    MPI_Allreduce(MPI_IN_PLACE, parts, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return parts[0] > 0 && parts[1] > 0;
}

/* The same bits with so many seeds, of one problem or (way < 0) of all in turn, and with further ones until parts of
 * kernels were computed in both ways. */
static void compare_with_delays(int way, int seeds, const uint64_t whole[WAYS], const char *of)
{
    const int most = seeds + 100;
    ahead = left = 0;
    for (int s = 1; s <= seeds || !both_ways_seen(); ++s) {
        const int here = way < 0 ? s % WAYS : way;
        ck_assert_msg(s <= most, "%s: parts were computed in one way only, with %d seeds", of, most);
        ck_assert_msg(run_way(here, (uint64_t)s) == whole[here], "%s, seed %d: other bits", of, s);
    }
}

START_TEST(delays_change_no_bit)
{
    uint64_t whole[WAYS];
    const int seeds = test_long() ? 1000 : WAYS;
    int64_t all[2];
    /* Of a machine so slow that the large patches take long enough to look after messages. */
    ck_assert_int_eq(setenv("TRL_BALANCE", "4e9,4e9,4e9,4e8,1e8", 1), 0);
    ck_assert_int_eq(setenv("TRELLIS_RIMS", "ahead", 1), 0);
    for (int way = 0; way < WAYS; ++way) whole[way] = run_way(way, 0);
    compare_with_delays(-1, seeds, whole, "small patches");
    ck_assert_int_eq(unsetenv("TRELLIS_RIMS"), 0);
    compare_with_delays(WAYS - 1, 4, whole, "two workers");
    for (int s = 1; s <= seeds; ++s) /* workers that are alone in their ranks compute kernels whole */
        ck_assert_msg(run_way(s % WAYS, (uint64_t)s) == whole[s % WAYS], "without rims, seed %d: other bits", s);
    ck_assert_int_eq(unsetenv("TRL_BALANCE"), 0);
    all[0] = atomic_load(&delayed);
    all[1] = atomic_load(&denied);
    MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    ck_assert_int_gt(all[0], seeds);
    ck_assert_int_gt(all[1], seeds);
    if (test_long() && trl_context_rank(test_ctx) == 0)
        fprintf(stderr, "%d seeds: %lld calls waited, %lld said 'not yet'\n", seeds, (long long)all[0],
                (long long)all[1]);
}
END_TEST

/* Long ones, in which another rank goes on to the next kernels but one, or to the next fronts of a pass. */
START_TEST(nothing_is_written_while_another_rank_reads_it)
{
    const int seeds = test_long() ? 200 : 10;
    longest_ns = 1000000;
    for (int way = WAYS - 1 - REUSES - LENT_PASSES; way < WAYS - 1; ++way) {
        const uint64_t whole = run_way(way, 0);
        for (int s = 1; s <= seeds; ++s)
            ck_assert_msg(run_way(way, (uint64_t)s) == whole, "way %d, seed %d: other bits", way, s);
    }
    longest_ns = 100000;
}
END_TEST

/* It does not unpack any more, so it has to say that it needs nothing of what is lent. */
START_TEST(no_rank_waits_until_one_that_fails_has_read)
{
    for (int way = 0; way < REUSES; ++way) {
        trl_err err = TRL_OK;
        open_reuse(way);
        fails = true;
        while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_advance(sim, looks_at_times, NULL);
        if (err == TRL_OK) err = trl_simulation_settle(sim);
        fails = false;
        ck_assert_int_eq(err, TRL_ERR_NUMERICS);
        close_problem();
        test_clear();
    }
}
END_TEST

/* In steps of one run, and of several. */
START_TEST(what_does_not_read_dt_is_done_before_it_is_known)
{
    enum { STEPS = 6, EVENTS = 100000 };
    new_deck();
    say("grid: {cells: [8, 32], periodic: [true, true], patches: [1, 4]}\n"
        "expressions: {c: {formula: \"1 + T*T\"}, q: {formula: \"-0.01*at(c, faces)*grad(T)\"}}\n"
        "solvers: {s: {method: cg, preconditioner: none}}\n"
        "equations: {T: {initial: \"sin(2*pi*y)\", ddt: \"-div(q)\"}%s}\n"
        "time: {method: euler, dt: {cfl: 0.5}, steps: 100}\n"
        "run: {compile: never, fusion: node, passes: {shared: false}}\n",
        _i ? ", p: {initial: \"0\", solve: \"2*p - laplacian(p) = T\", solver: s}" : "");
    open_with(1);
    ck_ok(trl_simulation_step(sim)); /* its dt is found before it */
    ck_ok(trl_simulation_trace(sim, EVENTS));
    awaited = "q.y";
    for (int s = 0; s < STEPS; ++s) {
        step_begun = trli_now_ns();
        ck_ok(trl_simulation_advance_pending(sim, NULL, NULL));
    }
    awaited = NULL;
    ck_ok(trl_simulation_settle(sim));
    int64_t from = 0;
    for (int s = 0; s < STEPS; ++s) {
        const trli_trace_event *dt = next_task("dt", from), *flux = next_task("q.y", from), *T = next_task("T", from);
        ck_assert(dt && flux && T);
        ck_assert_int_lt(flux->end_ns, dt->end_ns);
        ck_assert_int_ge(T->begin_ns, dt->end_ns);
        from = T->end_ns;
    }
    ck_assert_ptr_null(next_task("dt", from));
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, delays_change_no_bit);
    tcase_add_test(tc, nothing_is_written_while_another_rank_reads_it);
    tcase_add_test(tc, no_rank_waits_until_one_that_fails_has_read);
    tcase_add_loop_test(tc, what_does_not_read_dt_is_done_before_it_is_known, 0, 2);
}

TRL_TEST_MAIN("delays", add_tests)
