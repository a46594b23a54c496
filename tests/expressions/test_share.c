// ctest: np=2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels that ranks compile for each other: each is compiled once, with others of its rank, wherever ranks and caches
 * are, and its failure is the same on all ranks. */
#include "trl_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "native_impl.h"

enum { KERNELS = 6 };

static char folder[200];

/* Not 0: ranks take themselves for those of nodes with so many each. */
static int node_ranks;

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part)
{
    int rank;
    if (node_ranks == 0 || type != MPI_COMM_TYPE_SHARED) return PMPI_Comm_split_type(comm, type, key, info, part);
    MPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank / node_ranks, key, part);
}

static void write_compiler(const char *command)
{
    char text[500];
    snprintf(text, sizeof text,
             "#!/bin/sh\necho x >> \"$TRL_TEST_COUNT\"\nfor source; do :; done\n"
             "grep '^void trl_kernel(' $source >> \"$TRL_TEST_COUNT.kernels\"\n%s\n",
             command);
    int file = open("compiler.sh", O_WRONLY | O_CREAT | O_TRUNC, 0700);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

/* A folder for all ranks, or one below it for each; a compiler that counts how often it runs. */
static void set_up(bool apart, const char *command)
{
    char path[260];
    snprintf(folder, sizeof folder, "share-XXXXXX");
    if (trl_context_rank(test_ctx) == 0) {
        ck_assert_ptr_nonnull(mkdtemp(folder));
        write_compiler(command);
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, apart ? "%s/%d" : "%s/all", folder, trl_context_rank(test_ctx));
    setenv("TRELLIS_CACHE_DIR", path, 1);
    setenv("TRL_TEST_COUNT", "../../count", 1); /* compilers work in a folder of the cache */
    setenv("TRELLIS_CC", "./compiler.sh", 1);
}

static char *text_of(int kernel)
{
    static char text[200];
    snprintf(text, sizeof text, "void trl_kernel(trl_kernel_call *call) { call->output[0].at[0] = %d; }\n", kernel);
    return text;
}

static trli_compiler *request_in(trl_context *ctx, int n, trli_native_fn *fn)
{
    trli_compiler *compiler;
    ck_ok(trli_compiler_create(ctx, false, &compiler));
    for (int i = 0; i < n; ++i) ck_ok(trli_compiler_add(compiler, text_of(i), &fn[i]));
    ck_ok(trli_compiler_share(compiler));
    return compiler;
}

static trli_compiler *request(int n, trli_native_fn *fn)
{
    return request_in(test_ctx, n, fn);
}

/* Whether each function is that of its own text. */
static bool all_right(int n, const trli_native_fn *fn)
{
    bool right = true;
    for (int i = 0; i < n; ++i) {
        double out = -1;
        trl_kernel_array array = {.at = &out};
        trl_kernel_call call = {.output = &array};
        if (fn[i]) fn[i](&call);
        right = right && (int)out == i;
    }
    return right;
}

static bool on_all(bool mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    return mine;
}

static int sum_of(int mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return mine;
}

/* How often the compiler ran. */
static int count_runs(void)
{
    char path[300];
    struct stat s = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/count", folder);
    return stat(path, &s) == 0 ? (int)s.st_size / 2 : 0;
}

/* How often kernels went through it: lines of a kernel each, of "void trl_kernel(trl_kernel_call *call) { ..". */
static int count_kernels(void)
{
    char path[300], line[300];
    int n = 0;
    snprintf(path, sizeof path, "%s/count.kernels", folder);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) ++n;
    if (file) fclose(file);
    return n;
}

/* Ranks that have several kernels to compile: they try them together at first. */
static int alone_again(void)
{
    const int ranks = trl_context_ranks(test_ctx);
    return KERNELS - ranks < ranks ? KERNELS - ranks : ranks;
}

static void compile_all(int runs)
{
    trli_native_fn fn[KERNELS];
    const int ranks = trl_context_ranks(test_ctx);
    trli_compiler *compiler = request(KERNELS, fn);
    ck_assert(on_all(trli_compiler_poll(compiler, true) == 0));
    const trli_compiler_stats s = trli_compiler_get_stats(compiler);
    ck_assert(on_all(all_right(KERNELS, fn)));
    ck_assert_int_eq(count_runs(), runs);
    ck_assert_int_eq(sum_of(s.compiled + s.cached), KERNELS);
    ck_assert_int_eq(sum_of(s.received), KERNELS * (ranks - 1));
    ck_assert_int_eq(sum_of(s.failed), 0);
    trli_compiler_destroy(&compiler);
}

START_TEST(each_kernel_is_compiled_once)
{
    const int ranks = trl_context_ranks(test_ctx);
    set_up(_i, "exec cc -O0 \"$@\"");
    compile_all(ranks);
    compile_all(ranks); /* now from the caches of those that compiled */
}
END_TEST

/* All ranks have caches of their own, and all kernels of the first node's ranks, whoever makes them. */
static void compile_in(trl_context *ctx, bool cached)
{
    trli_native_fn fn[KERNELS];
    const int ranks = trl_context_ranks(ctx), first = trl_context_rank(ctx) < node_ranks;
    trli_compiler *compiler = request_in(ctx, KERNELS, fn);
    ck_assert(on_all(trli_compiler_poll(compiler, true) == 0));
    const trli_compiler_stats s = trli_compiler_get_stats(compiler);
    ck_assert(on_all(all_right(KERNELS, fn)));
    ck_assert_int_eq(sum_of(first ? s.compiled : 0), cached ? 0 : KERNELS);
    ck_assert_int_eq(sum_of(first ? s.cached : 0), cached ? KERNELS : 0);
    ck_assert_int_eq(sum_of(s.received), KERNELS * (ranks - 1));
    ck_assert(on_all(s.failed == 0 && count_kernels() == KERNELS));
    trli_compiler_destroy(&compiler);
}

START_TEST(the_first_node_compiles_for_all)
{
    trl_context *ctx;
    char path[260];
    const int ranks = trl_context_ranks(test_ctx);
    node_ranks = 1 + _i;
    ck_ok(trl_context_create(MPI_COMM_WORLD, NULL, &ctx));
    set_up(true, "exec cc -O0 \"$@\"");
    compile_in(ctx, false);
    compile_in(ctx, true);
    /* What came in messages was kept: another node is the first one now, and has all. */
    snprintf(path, sizeof path, "%s/%d", folder, (trl_context_rank(test_ctx) + ranks - 1) % ranks);
    setenv("TRELLIS_CACHE_DIR", path, 1);
    compile_in(ctx, true);
    node_ranks = 0;
    trl_context_destroy(&ctx);
}
END_TEST

/* Ranks whose compilers differ cannot use each other's libraries: the lowest of each kind compiles. */
START_TEST(ranks_of_different_keys_compile_apart)
{
    trli_native_fn fn[KERNELS];
    trl_context *ctx;
    const int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx);
    node_ranks = 1;
    ck_ok(trl_context_create(MPI_COMM_WORLD, NULL, &ctx));
    set_up(true, "exec cc -O0 \"$@\"");
    if (rank == 0) ck_assert_int_eq(system("cp compiler.sh other.sh"), 0);
    ck_assert(on_all(true));
    if (rank % 2) setenv("TRELLIS_CC", "./other.sh", 1);
    trli_compiler *compiler = request_in(ctx, KERNELS, fn);
    ck_assert(on_all(trli_compiler_poll(compiler, true) == 0 && all_right(KERNELS, fn)));
    const trli_compiler_stats s = trli_compiler_get_stats(compiler);
    ck_assert(on_all(s.compiled == (rank < 2 ? KERNELS : 0) && s.received == (rank < 2 ? 0 : KERNELS)));
    ck_assert_int_eq(sum_of(s.received), KERNELS * (ranks - 2));
    ck_assert(on_all(count_kernels() == 2 * KERNELS));
    trli_compiler_destroy(&compiler);
    node_ranks = 0;
    trl_context_destroy(&ctx);
}
END_TEST

START_TEST(a_failure_is_the_same_on_all_ranks)
{
    trli_native_fn fn[KERNELS];
    char first[600];
    set_up(true, "echo \"no disk today\"; exit 1");
    trli_compiler *compiler = request(KERNELS, fn);
    ck_assert(on_all(trli_compiler_poll(compiler, true) == 0));
    trli_compiler_stats s = trli_compiler_get_stats(compiler);
    snprintf(first, sizeof first, "%s", s.why ? s.why : "");
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    ck_assert_str_eq(first, "the C compiler failed: no disk today");
    ck_assert(on_all(s.why && strcmp(s.why, first) == 0 && s.failed == KERNELS));
    ck_assert_int_eq(count_runs(), KERNELS + alone_again());
    trli_compiler_destroy(&compiler);
}
END_TEST

START_TEST(ranks_with_different_kernels_compile_their_own)
{
    trli_native_fn fn[KERNELS];
    const int n = 1 + (trl_context_rank(test_ctx) == 0);
    set_up(true, "exec cc -O0 \"$@\"");
    trli_compiler *compiler = request(n, fn);
    ck_assert(on_all(trli_compiler_poll(compiler, true) == 0 && all_right(n, fn)));
    ck_assert_int_eq(count_runs(), 2); /* the first rank's, and that of the others */
    trli_compiler_destroy(&compiler);
}
END_TEST

/* The context's end receives what was sent; nobody waits before. */
START_TEST(a_rank_may_end_before_others_have_sent)
{
    trli_native_fn fn[KERNELS];
    const int rank = trl_context_rank(test_ctx);
    set_up(true, _i ? "exec cc -O0 \"$@\"" : "sleep 1000");
    trli_compiler *compiler = request(KERNELS, fn);
    for (int i = 0; rank > 0 && i < 20; ++i) {
        (void)trli_compiler_poll(compiler, false);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    trli_compiler_destroy(&compiler);
    ck_assert(on_all(true));
}
END_TEST

/* Tell other ranks, and wait for one of them, without MPI. */
static void put_mark(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static bool await_mark(const char *name)
{
    char path[300];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < 2000 && !found; ++i) {
        found = access(path, F_OK) == 0;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return found;
}

/* The sender of a long message may compute, and wait for the receiver's ghosts, before it sends all of it. */
START_TEST(nobody_waits_for_the_rest_of_a_long_message)
{
    static const char text[] = "const char large[1000000] = {7};\n"
                               "void trl_kernel(trl_kernel_call *call) { call->output[0].at[0] = large[0] - 7; }\n";
    const int rank = trl_context_rank(test_ctx);
    trli_compiler *compiler;
    trli_native_fn fn = NULL;
    bool met;
    set_up(true, "exec cc -O0 \"$@\"");
    ck_ok(trli_compiler_create(test_ctx, false, &compiler));
    ck_ok(trli_compiler_add(compiler, text, &fn));
    ck_ok(trli_compiler_share(compiler));
    if (rank == 0) {
        (void)trli_compiler_poll(compiler, true);
        put_mark("sent");
        met = await_mark("went on");
    } else {
        met = await_mark("sent");
        for (int i = 0; i < 20; ++i) (void)trli_compiler_poll(compiler, false);
        if (rank == 1) put_mark("went on");
    }
    ck_assert(on_all(met && trli_compiler_poll(compiler, true) == 0 && all_right(1, &fn)));
    trli_compiler_destroy(&compiler);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, nobody_waits_for_the_rest_of_a_long_message);
    tcase_add_loop_test(tc, each_kernel_is_compiled_once, 0, 2);
    tcase_add_loop_test(tc, the_first_node_compiles_for_all, 0, 2);
    tcase_add_test(tc, ranks_of_different_keys_compile_apart);
    tcase_add_test(tc, a_failure_is_the_same_on_all_ranks);
    tcase_add_test(tc, ranks_with_different_kernels_compile_their_own);
    tcase_add_loop_test(tc, a_rank_may_end_before_others_have_sent, 0, 2);
}

TRL_TEST_MAIN("share", add_tests)
