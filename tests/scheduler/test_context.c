// ctest: np=1,2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The context: error codes, messages and their places, agreement across ranks, threads, topology, memory accounts. */
#include "trl_test.h"

#include "context_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

static const char *format(const trl_diagnostic *d)
{
    static char text[1024];
    int length = trl_diagnostic_format(d, text, sizeof text);
    ck_assert_int_eq(length, (int)strlen(text));
    return text;
}

static const trl_diagnostic *only_diagnostic(void)
{
    const trl_diagnostic *list;
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1);
    return list;
}

START_TEST(every_code_has_a_name_a_meaning_and_an_exit_code)
{
    ck_assert_str_eq(trl_err_name(TRL_OK), "OK");
    ck_assert_str_eq(trl_err_name(TRL_ERR_INPUT), "INPUT");
    ck_assert_str_eq(trl_err_meaning(TRL_ERR_MEMORY), "memory ran out");
    ck_assert_int_eq(trl_err_exit_code(TRL_OK), 0);
    ck_assert_int_eq(trl_err_exit_code(TRL_ERR_PLUGIN), 2);
    ck_assert_int_eq(trl_err_exit_code(TRL_ERR_IO), 3);
    ck_assert_int_eq(trl_err_exit_code(TRL_ERR_USAGE), 4);
    ck_assert_str_eq(trl_err_name(TRL_ERR_COUNT), "BUG");
    ck_assert_str_eq(trl_err_name((trl_err)77), "BUG");
}
END_TEST

START_TEST(an_error_shows_its_place_and_underlines_the_source)
{
    trl_place place = {
        .file = "heat.yaml", .line = 14, .column = 5, .source = "  q: diffusivty*2\nnext line", .length = 3};
    ck_assert_int_eq(trl_fail(test_ctx, TRL_ERR_INPUT, &place, "unknown name '%s'", "diffusivty"), TRL_ERR_INPUT);
    const trl_diagnostic *d = only_diagnostic();
    ck_assert_int_eq(d->severity, TRL_ERROR);
    ck_assert_int_eq(d->code, TRL_ERR_INPUT);
    ck_assert_str_eq(format(d), "heat.yaml:14:5: unknown name 'diffusivty'\n"
                                "  q: diffusivty*2\n"
                                "    ^~~\n");
}
END_TEST

START_TEST(a_message_offers_three_remedies_and_each_once)
{
    trl_place place = {.file = "a.yaml", .line = 1, .column = 1, .source = "k: 1", .length = 1};
    trl_advise(test_ctx, "remedy of no message");
    trl_warn(test_ctx, NULL, "before");
    (void)!trl_fail(test_ctx, TRL_ERR_INPUT, &place, "unknown");
    static const char *const words[] = {"k1", "k2", "k1", "k3", "k4"};
    for (int i = 0; i < 5; ++i) trl_advise(test_ctx, "write %s", words[i]);
    ck_assert_str_eq(test_messages(), "warning: before\na.yaml:1:1: unknown\nk: 1\n^\n"
                                      "  fix: write k1\n  or:  write k2\n  or:  write k3\n");
    trl_context_clear_diagnostics(test_ctx);
    trl_advise(test_ctx, "too late");
    ck_assert_str_eq(test_messages(), "");
    trl_advise(NULL, "no context");
}
END_TEST

START_TEST(the_underline_follows_tabs_and_characters_and_ends_with_the_line)
{
    trl_place tabs = {.file = "f", .line = 1, .column = 3, .source = "\t\tab", .length = 100};
    trl_place utf8 = {.file = "f", .line = 2, .column = 3, .source = "\xc3\xa9\xc3\xa9\xc3\xa9y\r\nrest", .length = 2};
    trl_place past = {.file = "f", .line = 3, .column = 5, .source = "ab", .length = 2};
    const trl_diagnostic *list;
    (void)trl_fail(test_ctx, TRL_ERR_INPUT, &tabs, "tabs");
    (void)trl_fail(test_ctx, TRL_ERR_INPUT, &utf8, "characters");
    (void)trl_fail(test_ctx, TRL_ERR_INPUT, &past, "past the end");
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 3);
    ck_assert_str_eq(format(&list[0]), "f:1:3: tabs\n\t\tab\n\t\t^~\n");
    ck_assert_str_eq(format(&list[1]), "f:2:3: characters\n\xc3\xa9\xc3\xa9\xc3\xa9y\n  ^~\n");
    ck_assert_str_eq(format(&list[2]), "f:3:5: past the end\nab\n    ^\n");
}
END_TEST

START_TEST(a_warning_says_so_and_unknown_parts_of_a_place_are_left_out)
{
    trl_place no_column = {.file = "a.yaml", .line = 3, .source = "x: 1"}, no_line = {.file = "a.yaml"},
              none = {.line = 0};
    const trl_diagnostic *list;
    trl_warn(test_ctx, &no_column, "dt is %g", 0.5);
    trl_warn(test_ctx, &no_line, "empty");
    trl_warn(test_ctx, NULL, "plain");
    (void)trl_fail(test_ctx, TRL_ERR_IO, &none, "nowhere");
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 4);
    ck_assert_str_eq(format(&list[0]), "a.yaml:3: warning: dt is 0.5\nx: 1\n");
    ck_assert_str_eq(format(&list[1]), "a.yaml: warning: empty\n");
    ck_assert_str_eq(format(&list[2]), "warning: plain\n");
    ck_assert_str_eq(format(&list[3]), "nowhere\n");
    trl_context_clear_diagnostics(test_ctx);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 0);
}
END_TEST

START_TEST(formatting_into_a_small_buffer_cuts_and_returns_the_whole_length)
{
    char text[6];
    trl_diagnostic d = {.severity = TRL_ERROR, .text = (char *)"0123456789"};
    memset(text, 'x', sizeof text);
    ck_assert_int_eq(trl_diagnostic_format(&d, text, 5), 11);
    ck_assert_mem_eq(text, "0123\0x", 6);
    ck_assert_int_eq(trl_diagnostic_format(&d, NULL, 0), 11);
}
END_TEST

START_TEST(a_message_keeps_its_own_copy_of_the_place)
{
    char file[] = "deck.yaml", source[] = "abc";
    trl_place place = {.file = file, .line = 1, .column = 1, .source = source};
    (void)trl_fail(test_ctx, TRL_ERR_INPUT, &place, "m");
    memset(file, 'z', 4);
    memset(source, 'z', 3);
    ck_assert_str_eq(format(only_diagnostic()), "deck.yaml:1:1: m\nabc\n^\n");
}
END_TEST

START_TEST(failing_without_a_context_still_returns_the_code)
{
    ck_assert_int_eq(trl_fail(NULL, TRL_ERR_MPI, NULL, "lost"), TRL_ERR_MPI);
}
END_TEST

static void *fail_often(void *arg)
{
    for (int i = 0; i < 500; ++i) (void)trl_fail(test_ctx, TRL_ERR_BUG, NULL, "%d", *(int *)arg);
    return NULL;
}

START_TEST(threads_may_fail_at_the_same_time)
{
    pthread_t threads[3];
    int ids[3] = {0, 1, 2};
    const trl_diagnostic *list;
    for (int i = 0; i < 3; ++i) ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_often, &ids[i]), 0);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1500);
}
END_TEST

START_TEST(ranks_agree_on_the_largest_code_and_its_lowest_holder)
{
    int rank = trl_context_rank(test_ctx), last = trl_context_ranks(test_ctx) - 1, holder = last > 1 ? 1 : last;
    trl_place place = {.file = "deck.yaml", .line = 2, .column = 3, .source = "x: bad", .length = 3};
    trl_err local = TRL_OK;
    trl_warn(test_ctx, NULL, "rank %d warns", rank);
    if (rank == 0) local = trl_fail(test_ctx, TRL_ERR_INPUT, NULL, "rank 0 fails");
    if (rank >= holder) {
        local = trl_fail(test_ctx, TRL_ERR_NUMERICS, &place, "rank %d fails", rank);
        trl_advise(test_ctx, "have rank %d mended", rank);
    }
    trl_err agreed = trl_context_agree(test_ctx, local);
    char expected[256];
    snprintf(expected, sizeof expected,
             "warning: rank %d warns\n%sdeck.yaml:2:3: rank %d fails\nx: bad\n  ^~~\n  fix: have rank %d mended\n",
             holder, holder == 0 ? "rank 0 fails\n" : "", holder, holder);
    int good = agreed == TRL_ERR_NUMERICS && strcmp(test_messages(), expected) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s: %s", trl_err_name(agreed), test_messages());
}
END_TEST

START_TEST(ranks_agree_on_success_and_keep_their_warnings)
{
    const trl_diagnostic *list;
    const int mine = trl_context_rank(test_ctx) == 0;
    if (mine) trl_warn(test_ctx, NULL, "careful");
    trl_err agreed = trl_context_agree(test_ctx, TRL_OK);
    int good = agreed == TRL_OK && trl_context_diagnostics(test_ctx, &list) == mine &&
               (!mine || strcmp(list[0].text, "careful") == 0);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s", test_messages());
}
END_TEST

/* What a setup function is like: two collective calls, of which a rank may reach none, one or both. */
static trl_err two_calls(int from, int *values)
{
    trl_err err = TRL_OK;
    trl_context_begin_phase(test_ctx);
    for (int call = 0; call < 2; ++call) {
        if (from == call && trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1)
            TRL_TRY(trl_fail(test_ctx, TRL_ERR_MEMORY, NULL, "before call %d", call));
        TRL_TRY(trli_allreduce(test_ctx, &values[call], 1, MPI_INT, MPI_SUM));
    }
done:
    return trl_context_end_phase(test_ctx, err);
}

START_TEST(a_rank_may_leave_a_phase_from_anywhere)
{
    for (int from = 0; from < 3; ++from) {
        int values[2] = {1, 1}, n = trl_context_ranks(test_ctx);
        char expected[40];
        test_clear();
        trl_context_begin_phase(test_ctx); /* phases nest */
        trl_err inner = two_calls(from, values), again = trl_context_agree(test_ctx, TRL_OK);
        trl_err outer = trl_context_end_phase(test_ctx, inner), after = trl_context_agree(test_ctx, TRL_OK);
        snprintf(expected, sizeof expected, "before call %d\n", from);
        int good = inner == (from < 2 ? TRL_ERR_MEMORY : TRL_OK) && outer == inner && after == TRL_OK;
        good = good && again == TRL_OK; /* the inner phase was the failed one: its end brought the ranks together */
        good = good && strcmp(test_messages(), from < 2 ? expected : "") == 0;
        good = good && (from < 2 || (values[0] == n && values[1] == n));
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        ck_assert_msg(good, "from %d: %s, %s, %s: %s", from, trl_err_name(inner), trl_err_name(outer),
                      trl_err_name(after), test_messages());
    }
}
END_TEST

/* One rank fails before a phase that the others begin. */
START_TEST(a_phase_that_only_some_ranks_begin_brings_none_together)
{
    const int n = trl_context_ranks(test_ctx);
    int values[2] = {1, 1};
    trl_err inner = TRL_ERR_MEMORY, again = TRL_OK;
    trl_context_begin_phase(test_ctx);
    if (trl_context_rank(test_ctx) == n - 1) {
        inner = trl_fail(test_ctx, TRL_ERR_MEMORY, NULL, "before the phase");
    } else {
        inner = two_calls(2, values);
        again = two_calls(2, values);
    }
    trl_err outer = trl_context_end_phase(test_ctx, inner), after = trl_context_agree(test_ctx, TRL_OK);
    int good = inner == TRL_ERR_MEMORY && outer == TRL_ERR_MEMORY && after == TRL_OK;
    good = good && (trl_context_rank(test_ctx) == n - 1 || again == TRL_ERR_MEMORY);
    good = good && strcmp(test_messages(), "before the phase\n") == 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s, %s, %s, %s: %s", trl_err_name(inner), trl_err_name(again), trl_err_name(outer),
                  trl_err_name(after), test_messages());
}
END_TEST

START_TEST(agreement_gives_the_largest_values)
{
    const int rank = trl_context_rank(test_ctx), last = trl_context_ranks(test_ctx) - 1;
    int64_t values[3] = {rank, -rank, rank == last / 2 ? INT64_MAX : INT64_MIN};
    trl_err err = trli_agree_max(test_ctx, TRL_OK, 3, values);
    int good = err == TRL_OK && values[0] == last && values[1] == 0 && values[2] == INT64_MAX;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert(good);
}
END_TEST

static const char *ask_to_stop(void)
{
    return "a test";
}

START_TEST(agreements_hear_that_one_rank_is_asked_to_stop)
{
    if (trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1) trl_context_set_stop(test_ctx, ask_to_stop);
    trl_err err = trl_context_agree(test_ctx, TRL_OK);
    trl_context_set_stop(test_ctx, NULL);
    int good = err == TRL_ERR_INTERRUPTED && strstr(test_messages(), "stopped by a test before the first step") != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s: %s", trl_err_name(err), test_messages());
}
END_TEST

START_TEST(agreement_carries_messages_of_any_length)
{
    enum { LENGTH = 20000 };
    static char text[LENGTH + 1];
    int last = trl_context_ranks(test_ctx) - 1;
    trl_err local = TRL_OK;
    const trl_diagnostic *list;
    for (int i = 0; i < LENGTH; ++i) text[i] = (char)('a' + i % 26);
    if (trl_context_rank(test_ctx) == last) local = trl_fail(test_ctx, TRL_ERR_PLUGIN, NULL, "%s", text);
    trl_err agreed = trl_context_agree(test_ctx, local);
    int good =
        agreed == TRL_ERR_PLUGIN && trl_context_diagnostics(test_ctx, &list) == 1 && strcmp(list[0].text, text) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert(good);
}
END_TEST

START_TEST(the_context_knows_its_ranks)
{
    int rank, ranks, compared;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ck_assert_int_eq(trl_context_rank(test_ctx), rank);
    ck_assert_int_eq(trl_context_ranks(test_ctx), ranks);
    MPI_Comm_compare(MPI_COMM_WORLD, trl_context_comm(test_ctx), &compared);
    ck_assert_int_eq(compared, MPI_CONGRUENT);
}
END_TEST

START_TEST(the_ranks_of_a_node_share_its_cores)
{
    int cores = trl_context_cores(test_ctx), sum = cores, ranks = trl_context_ranks(test_ctx);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ck_assert_int_ge(cores, 1);
    ck_assert_int_le(sum, online > ranks ? (int)online : ranks); /* all ranks of a test are on one node */
    ck_assert_int_eq(trl_context_threads(test_ctx), cores);
    if (ranks > online) ck_assert(!trl_context_pinned(test_ctx));
}
END_TEST

START_TEST(caches_grow_with_their_level)
{
    size_t first = trl_context_cache_bytes(test_ctx, 1), last = trl_context_cache_bytes(test_ctx, 0);
    if (first == 0) return; /* a virtual machine may hide its caches */
    ck_assert_uint_ge(first, 4096);
    ck_assert_uint_ge(last, first);
    ck_assert_uint_eq(trl_context_cache_bytes(test_ctx, 9), 0);
}
END_TEST

START_TEST(the_number_of_threads_can_be_set)
{
    const trl_diagnostic *list;
    int cores = trl_context_cores(test_ctx);
    ck_ok(trl_context_set_threads(test_ctx, cores));
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 0);
    ck_ok(trl_context_set_threads(test_ctx, cores + 1));
    ck_assert_int_eq(trl_context_threads(test_ctx), cores + 1);
    ck_assert(!trl_context_pinned(test_ctx));
    ck_assert(strstr(test_messages(), "threads will take turns and run slower; use at most") != NULL);
    ck_fails(trl_context_set_threads(test_ctx, -1), TRL_ERR_INPUT, "-1 threads asked for; allowed are 1 to ");
    ck_fails(trl_context_set_threads(test_ctx, INT_MAX), TRL_ERR_INPUT, "or 0 for one per core (");
    ck_assert_int_eq(trl_context_threads(test_ctx), cores + 1);
    ck_ok(trl_context_set_threads(test_ctx, 0));
    ck_assert_int_eq(trl_context_threads(test_ctx), cores);
}
END_TEST

START_TEST(a_context_is_created_with_options_and_destroyed_twice)
{
    trl_context *ctx;
    trl_context_options options = {.threads = 1};
    ck_ok(trl_context_create(MPI_COMM_WORLD, &options, &ctx));
    ck_assert_int_eq(trl_context_threads(ctx), 1);
    trl_context_destroy(&ctx);
    ck_assert_ptr_null(ctx);
    trl_context_destroy(&ctx);
}
END_TEST

START_TEST(no_context_is_created_on_any_rank_when_one_rank_gives_bad_options)
{
    trl_context *ctx;
    int last = trl_context_ranks(test_ctx) - 1;
    trl_context_options options = {.threads = trl_context_rank(test_ctx) == last ? -3 : 1};
    trl_err err = trl_context_create(MPI_COMM_WORLD, &options, &ctx);
    ck_assert_int_eq(err, TRL_ERR_INPUT);
    ck_assert_ptr_null(ctx);
}
END_TEST

START_TEST(the_mpi_lock_admits_one_thread)
{
    trl_context_mpi_lock(test_ctx);
    ck_assert(!trl_context_mpi_try_lock(test_ctx));
    trl_context_mpi_unlock(test_ctx);
    ck_assert(trl_context_mpi_try_lock(test_ctx));
    trl_context_mpi_unlock(test_ctx);
}
END_TEST

START_TEST(memory_is_aligned_and_accounted)
{
    trl_memory_stats before, during, after;
    void *a, *b, *none;
    trl_memory_get_stats(test_ctx, &before);
    ck_ok(trl_memory_alloc(test_ctx, 1000, "a", &a));
    ck_ok(trl_memory_alloc(test_ctx, 1, "b", &b));
    ck_ok(trl_memory_alloc(test_ctx, 0, "nothing", &none));
    ck_assert_ptr_nonnull(none);
    ck_assert_uint_eq((uintptr_t)a % 64, 0);
    ck_assert_uint_eq((uintptr_t)b % 64, 0);
    memset(a, 1, 1000);
    trl_memory_get_stats(test_ctx, &during);
    ck_assert_uint_eq(during.bytes, before.bytes + 1001);
    ck_assert_uint_ge(during.peak_bytes, during.bytes);
    ck_assert_int_eq(during.allocations, before.allocations + 3);
    trl_memory_free(test_ctx, &a);
    ck_assert_ptr_null(a);
    trl_memory_free(test_ctx, &a);
    trl_memory_free(test_ctx, &b);
    trl_memory_free(test_ctx, &none);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
    ck_assert_uint_eq(after.peak_bytes, during.peak_bytes);
}
END_TEST

START_TEST(large_blocks_begin_at_different_places_of_their_pages)
{
    enum { BLOCKS = 4, LARGE = 5 << 20, PAGE = 4096 };
    void *block[BLOCKS];
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    for (int i = 0; i < BLOCKS; ++i) {
        ck_ok(trl_memory_alloc(test_ctx, LARGE, "a large block", &block[i]));
        memset(block[i], i, LARGE);
    }
    for (int i = 0; i < BLOCKS; ++i)
        for (int j = 0; j < i; ++j) ck_assert_uint_ge(((uintptr_t)block[i] - (uintptr_t)block[j]) % PAGE, 128);
    for (int i = 0; i < BLOCKS; ++i) trl_memory_free(test_ctx, &block[i]);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

START_TEST(memory_that_does_not_fit_is_refused_with_name_size_and_use)
{
    void *memory = &memory;
    char expected[128];
    trl_memory_stats stats;
    trl_memory_get_stats(test_ctx, &stats);
    snprintf(expected, sizeof expected, "bytes (9.22e+09 GB) for 'field T' on rank %d: %zu bytes are in use",
             trl_context_rank(test_ctx), stats.bytes);
    ck_fails(trl_memory_alloc(test_ctx, SIZE_MAX / 2, "field T", &memory), TRL_ERR_MEMORY, expected);
    ck_assert_ptr_null(memory);
    ck_fails(trl_memory_alloc(test_ctx, SIZE_MAX, "field T", &memory), TRL_ERR_MEMORY,
             "use a smaller grid or more nodes");
}
END_TEST

START_TEST(the_limit_of_memory_follows_the_machine_unless_it_is_set)
{
    enum { BYTES = 1 << 20 };
    trli_memory *memory = &test_ctx->memory;
    const size_t all = memory->limit;
    void *array;
    trl_memory_stats now;
    trl_memory_get_stats(test_ctx, &now);
    memory->limit = memory->granted = now.bytes; /* as if the machine had had no more when the program began */
    ck_ok(trl_memory_alloc(test_ctx, BYTES, "field T", &array));
    trl_memory_free(test_ctx, &array);
    ck_assert_uint_eq(memory->limit, all);
    trl_context_set_memory(test_ctx, now.bytes + BYTES / 2);
    ck_fails(trl_memory_alloc(test_ctx, BYTES, "field T", &array), TRL_ERR_MEMORY, "GB allowed");
    trl_context_set_memory(test_ctx, now.bytes + BYTES);
    ck_ok(trl_memory_alloc(test_ctx, BYTES, "field T", &array));
    trl_memory_free(test_ctx, &array);
    trl_context_set_memory(test_ctx, 0);
    ck_assert_uint_eq(memory->limit, all);
}
END_TEST

START_TEST(an_array_grows_with_its_elements_and_stays_as_it_is_without_memory)
{
    enum { MOST = 5000 };
    const size_t limit = test_ctx->memory.limit;
    trl_memory_stats before, after;
    int64_t *element = NULL, count = 0, made;
    int32_t capacity = 0;
    uint32_t random = 1;
    trl_memory_get_stats(test_ctx, &before);
    while (count < MOST) {
        const int64_t more = (random = random * 1664525 + 1013904223) >> 24;
        const int32_t had = capacity;
        ck_assert(trli_make_room(test_ctx, &element, count, more, &capacity, sizeof *element));
        ck_assert_int_ge(capacity, count + more);
        ck_assert(capacity == had || capacity >= 2 * had);
        for (int64_t i = 0; i < more; ++i, ++count) element[count] = 3 * count;
        for (int64_t i = 0; i < count; i += 97) ck_assert_int_eq(element[i], 3 * i);
    }
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_int_le(after.allocations - before.allocations, 12); /* doubled, not extended */
    made = capacity;
    int64_t *const at = element;
    test_ctx->memory.limit = after.bytes;
    ck_assert(!trli_make_room(test_ctx, &element, count, MOST + made, &capacity, sizeof *element));
    test_ctx->memory.limit = limit;
    ck_assert(!trli_make_room(test_ctx, &element, count, INT32_MAX, &capacity, sizeof *element));
    ck_assert_int_eq(capacity, made);
    ck_assert_ptr_eq(element, at);
    for (int64_t i = 0; i < count; ++i) ck_assert_int_eq(element[i], 3 * i);
    trli_free(element);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

START_TEST(a_stream_into_memory_is_counted_and_meets_the_limit)
{
    enum { LINES = 1000 };
    const size_t limit = test_ctx->memory.limit;
    trl_memory_stats before, during, after;
    trli_memstream stream;
    trl_memory_get_stats(test_ctx, &before);
    ck_assert(trli_memstream_open(test_ctx, &stream));
    ck_assert_str_eq(stream.text, "");
    for (int i = 0; i < LINES; ++i) fprintf(stream.out, "line %03d\n", i);
    fflush(stream.out);
    ck_assert_uint_eq(stream.length, 9 * LINES);
    ck_assert(trli_memstream_close(&stream));
    ck_assert_uint_eq(strlen(stream.text), 9 * LINES);
    ck_assert_mem_eq(stream.text + 9 * 998, "line 998\nline 999\n", 19);
    trl_memory_get_stats(test_ctx, &during);
    ck_assert_uint_ge(during.metadata_bytes, before.metadata_bytes + 9 * LINES);
    trli_memstream_discard(&stream);

    test_ctx->memory.limit = before.bytes + 2048;
    ck_assert(trli_memstream_open(test_ctx, &stream));
    for (int i = 0; i < LINES; ++i) fprintf(stream.out, "line %03d\n", i);
    ck_assert(!trli_memstream_close(&stream));
    ck_assert_ptr_null(stream.text);
    test_ctx->memory.limit = before.bytes;
    ck_assert(!trli_memstream_open(test_ctx, &stream));
    trli_memstream_discard(&stream);
    test_ctx->memory.limit = limit;
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_code_has_a_name_a_meaning_and_an_exit_code);
    tcase_add_test(tc, an_error_shows_its_place_and_underlines_the_source);
    tcase_add_test(tc, a_message_offers_three_remedies_and_each_once);
    tcase_add_test(tc, the_underline_follows_tabs_and_characters_and_ends_with_the_line);
    tcase_add_test(tc, a_warning_says_so_and_unknown_parts_of_a_place_are_left_out);
    tcase_add_test(tc, formatting_into_a_small_buffer_cuts_and_returns_the_whole_length);
    tcase_add_test(tc, a_message_keeps_its_own_copy_of_the_place);
    tcase_add_test(tc, failing_without_a_context_still_returns_the_code);
    tcase_add_test(tc, threads_may_fail_at_the_same_time);
    tcase_add_test(tc, ranks_agree_on_the_largest_code_and_its_lowest_holder);
    tcase_add_test(tc, ranks_agree_on_success_and_keep_their_warnings);
    tcase_add_test(tc, a_rank_may_leave_a_phase_from_anywhere);
    tcase_add_test(tc, a_phase_that_only_some_ranks_begin_brings_none_together);
    tcase_add_test(tc, agreement_gives_the_largest_values);
    tcase_add_test(tc, agreements_hear_that_one_rank_is_asked_to_stop);
    tcase_add_test(tc, agreement_carries_messages_of_any_length);
    tcase_add_test(tc, the_context_knows_its_ranks);
    tcase_add_test(tc, the_ranks_of_a_node_share_its_cores);
    tcase_add_test(tc, caches_grow_with_their_level);
    tcase_add_test(tc, the_number_of_threads_can_be_set);
    tcase_add_test(tc, a_context_is_created_with_options_and_destroyed_twice);
    tcase_add_test(tc, no_context_is_created_on_any_rank_when_one_rank_gives_bad_options);
    tcase_add_test(tc, the_mpi_lock_admits_one_thread);
    tcase_add_test(tc, memory_is_aligned_and_accounted);
    tcase_add_test(tc, large_blocks_begin_at_different_places_of_their_pages);
    tcase_add_test(tc, memory_that_does_not_fit_is_refused_with_name_size_and_use);
    tcase_add_test(tc, the_limit_of_memory_follows_the_machine_unless_it_is_set);
    tcase_add_test(tc, an_array_grows_with_its_elements_and_stays_as_it_is_without_memory);
    tcase_add_test(tc, a_stream_into_memory_is_counted_and_meets_the_limit);
}

TRL_TEST_MAIN("context", add_tests)
