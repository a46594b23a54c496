// ctest: np=1,2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Traces: what is recorded and kept, and the JSON text. */
#include "trl_test.h"

#include "policy_settings.h"

#include "../../scheduler/trace_impl.h"

#include <ctype.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>

/* ---- JSON: whether a text is one value and nothing else ---- */

static const char *json_value(const char *at);

static const char *skip_space(const char *at)
{
    return at ? at + strspn(at, " \t\r\n") : NULL;
}

static const char *json_string(const char *at)
{
    if (*at++ != '"') return NULL;
    for (; *at != '"'; ++at) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at != '\\') continue;
        ++at;
        if (*at == 'u') {
            for (int i = 0; i < 4; ++i)
                if (!isxdigit((unsigned char)*++at)) return NULL;
        } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
            return NULL;
        }
    }
    return at + 1;
}

static const char *json_number(const char *at)
{
    const char *digits = at + (*at == '-');
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || (n > 1 && *digits == '0')) return NULL;
    at = digits + n;
    if (*at != '.') return at;
    n = strspn(at + 1, "0123456789");
    return n ? at + 1 + n : NULL;
}

static const char *json_list(const char *at, char end)
{
    at = skip_space(at + 1);
    if (*at == end) return at + 1;
    for (;; at = skip_space(at + 1)) {
        if (end == '}') {
            at = skip_space(json_string(at));
            if (!at || *at != ':') return NULL;
            at = skip_space(at + 1);
        }
        at = skip_space(json_value(at));
        if (!at || (*at != ',' && *at != end)) return NULL;
        if (*at == end) return at + 1;
    }
}

static const char *json_value(const char *at)
{
    if (*at == '{') return json_list(at, '}');
    if (*at == '[') return json_list(at, ']');
    return *at == '"' ? json_string(at) : json_number(at);
}

static bool is_json(const char *text)
{
    const char *end = skip_space(json_value(skip_space(text)));
    return end && *end == 0;
}

/* ---- helpers ---- */

static trl_trace *make_trace(int workers, int64_t events)
{
    trl_trace *trace;
    ck_ok(trl_trace_create(test_ctx, workers, events, &trace));
    return trace;
}

/* What is written, checked to be JSON; the caller frees it. */
static char *text_of(const trl_trace *trace)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_ok(trl_trace_write(trace, out));
    fclose(out);
    ck_assert_msg(strlen(text) == bytes && is_json(text), "no JSON: %s", text);
    return text;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) ++n;
    return n;
}

/* The text contains the formatted part, exactly once. */
static void check_once(const char *text, const char *format, ...)
{
    char part[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(part, sizeof part, format, args);
    va_end(args);
    ck_assert_msg(count(text, part) == 1, "'%s' is %d times in: %s", part, count(text, part), text);
}

/* ---- recording and writing ---- */

START_TEST(the_checker_of_these_tests_knows_json)
{
    static const char *const good[] = {"{}", "[]", " {\"a\" : [1, -2.50, 0] } ", "\"\\u00e4\\n\""};
    static const char *const bad[] = {"",   "{",  "[1,]",   "[1 2]",   "{\"a\"}", "{\"a\":1,}",
                                      "01", "1.", "\"\n\"", "\"\\x\"", "\"",      "[] []"};
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) ck_assert_msg(is_json(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) ck_assert_msg(!is_json(bad[i]), "%s", bad[i]);
}
END_TEST

START_TEST(every_kind_of_event_is_written_with_rank_worker_and_time)
{
    trl_trace *trace = make_trace(2, 10);
    int64_t t = trace->origin_ns;
    int rank = trl_context_rank(test_ctx);
    trli_trace_add(&trace->lane[1], TRLI_TRACE_TASK, "heat", 7, t + 1001, t + 3500);
    trli_trace_add(&trace->lane[1], TRLI_TRACE_PARK, "cells", 0, t + 4000, t + 4000);
    trli_trace_add(&trace->lane[1], TRLI_TRACE_IDLE, "idle", 0, t + 5000, t + 5001);
    trli_trace_add(&trace->lane[0], TRLI_TRACE_POLL, "receive", 3, t + 7, t + 1000000007);
    trli_trace_add_run(trace, "step", t, t + 2000000000);
    trli_trace_add_run(trace, "s\"2", t + 1, t + 2);
    char *text = text_of(trace);
    check_once(text, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"rank %d\"}}",
               rank, rank);
    for (int w = 0; w < 2; ++w)
        check_once(text,
                   "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"worker %d\"}}",
                   rank, w, w);
    check_once(text,
               "{\"ph\":\"X\",\"name\":\"heat\",\"cat\":\"task\",\"ts\":1.001,\"dur\":2.499,\"pid\":%d,\"tid\":1,"
               "\"args\":{\"type\":7}}",
               rank);
    check_once(
        text,
        "{\"ph\":\"i\",\"name\":\"waits for cells\",\"cat\":\"lock\",\"ts\":4.000,\"s\":\"t\",\"pid\":%d,\"tid\":1}",
        rank);
    check_once(text,
               "{\"ph\":\"X\",\"name\":\"idle\",\"cat\":\"idle\",\"ts\":5.000,\"dur\":0.001,\"pid\":%d,\"tid\":1}",
               rank);
    check_once(text,
               "{\"ph\":\"X\",\"name\":\"receive\",\"cat\":\"poll\",\"ts\":0.007,\"dur\":1000000.000,\"pid\":%d,"
               "\"tid\":0,\"args\":{\"calls\":1}}",
               rank);
    check_once(
        text,
        "{\"ph\":\"b\",\"name\":\"step\",\"cat\":\"run\",\"id2\":{\"local\":\"0\"},\"ts\":0.000,\"pid\":%d,\"tid\":0}",
        rank);
    check_once(
        text,
        "{\"ph\":\"e\",\"name\":\"step\",\"cat\":\"run\",\"id2\":{\"local\":\"0\"},\"ts\":2000000.000,\"pid\":%d,",
        rank);
    check_once(text, "{\"ph\":\"b\",\"name\":\"s\\\"2\",\"cat\":\"run\",\"id2\":{\"local\":\"1\"},\"ts\":0.001,");
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(the_frame_of_the_text_is_its_first_and_last_line_and_each_other_line_an_event)
{
    trl_trace *trace = make_trace(1, 10);
    for (int i = 0; i < 3; ++i)
        trli_trace_add(trace->lane, TRLI_TRACE_TASK, "t\n", 0, trace->origin_ns, trace->origin_ns);
    char *text = text_of(trace), *line = text;
    ck_assert_int_eq(count(text, "\n"), 1 + 7 + 1);
    for (int i = 0; i < 9; ++i) {
        char *end = strchr(line, '\n');
        size_t length = (size_t)(end - line);
        if (i == 0) ck_assert_int_eq(strncmp(line, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", length), 0);
        if (i == 8) ck_assert_int_eq(strncmp(line, "]}", length), 0);
        bool event = i > 0 && i < 8, comma = i < 7;
        if (event) ck_assert_int_eq(line[0], '{');
        if (event) ck_assert_int_eq(end[-1], comma ? ',' : '}');
        line = end + 1;
    }
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(names_are_escaped_and_what_is_no_utf8_is_replaced)
{
    trl_trace *trace = make_trace(1, 20);
    const char *const names[] = {"q\"u\\o", "tab\tnew\nline\x01", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
                                 "\xff|\xc3|\xe2\x82|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        trli_trace_add(trace->lane, TRLI_TRACE_TASK, names[i], 0, trace->origin_ns, trace->origin_ns);
    trli_trace_add(trace->lane, TRLI_TRACE_PARK, "\"", 0, trace->origin_ns, trace->origin_ns);
    char *text = text_of(trace);
    check_once(text, "\"name\":\"q\\\"u\\\\o\"");
    check_once(text, "\"name\":\"tab\\u0009new\\u000aline\\u0001\"");
    check_once(text, "\"name\":\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    check_once(text, "\"name\":\"\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|"
                     "\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check_once(text, "\"name\":\"waits for \\\"\"");
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(long_names_keep_their_beginning_and_names_may_die)
{
    trl_trace *trace = make_trace(1, 10);
    char name[100];
    memset(name, 'x', sizeof name);
    memcpy(name + TRLI_TRACE_NAME - 2, "\xc3\xa4", 3); /* the second byte does not fit */
    trli_trace_add(trace->lane, TRLI_TRACE_TASK, name, 0, trace->origin_ns, trace->origin_ns);
    memset(name, 'y', sizeof name - 1);
    char *text = text_of(trace);
    check_once(text, "\"name\":\"%.*s\\ufffd\"", TRLI_TRACE_NAME - 2,
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    ck_assert_ptr_null(strstr(text, "yy"));
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(keeps_the_first_events_and_counts_the_others)
{
    trl_trace *trace = make_trace(2, 3);
    for (int i = 0; i < 8; ++i) {
        char name[] = {'t', (char)('0' + i), 0};
        trli_trace_add(&trace->lane[1], TRLI_TRACE_TASK, name, 0, trace->origin_ns + i, trace->origin_ns + i + 1);
    }
    char *text = text_of(trace);
    for (int i = 0; i < 8; ++i) ck_assert_int_eq(count(text, (char[]){'"', 't', (char)('0' + i), '"', 0}), i < 3);
    check_once(text, "\"tid\":0,\"args\":{\"kept\":0,\"dropped\":0}");
    check_once(text, "\"tid\":1,\"args\":{\"kept\":3,\"dropped\":5}");
    check_once(text, "\"name\":\"trace full: 5 events dropped\",\"cat\":\"trace\",\"s\":\"t\",\"ts\":0.003");
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(poll_calls_in_a_row_are_one_event)
{
    trl_trace *trace = make_trace(1, 3);
    int64_t t = trace->origin_ns;
    for (int i = 0; i < 100; ++i)
        trli_trace_add(trace->lane, TRLI_TRACE_POLL, "a", 0, t + (int64_t)10 * i, t + (int64_t)10 * i + 5);
    trli_trace_add(trace->lane, TRLI_TRACE_TASK, "a", 0, t + 1000, t + 1001);
    for (int i = 0; i < 100; ++i)
        trli_trace_add(trace->lane, TRLI_TRACE_POLL, i % 2 ? "b" : "a", 0, t + 2000 + (int64_t)10 * i,
                       t + 2005 + (int64_t)10 * i);
    char *text = text_of(trace);
    check_once(text, "\"name\":\"a\",\"cat\":\"poll\",\"ts\":0.000,\"dur\":0.995,");
    check_once(text, "\"name\":\"poll tasks\",\"cat\":\"poll\",\"ts\":2.000,\"dur\":0.995,");
    ck_assert_int_eq(count(text, "\"args\":{\"calls\":100}"), 2);
    check_once(text, "\"tid\":0,\"args\":{\"kept\":3,\"dropped\":0}");
    free(text);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(refuses_sizes_that_make_no_sense)
{
    trl_trace *trace;
    ck_fails(trl_trace_create(test_ctx, 0, 10, &trace), TRL_ERR_USAGE,
             "a trace of 0 workers with 10 events each is refused");
    ck_fails(trl_trace_create(test_ctx, 1, 0, &trace), TRL_ERR_USAGE,
             "a trace of 1 workers with 0 events each is refused");
    ck_fails(trl_trace_create(test_ctx, 1, INT64_MAX, &trace), TRL_ERR_USAGE, "is refused");
    ck_fails(trl_trace_create(test_ctx, 3, (int64_t)1 << 55, &trace), TRL_ERR_MEMORY, "for 'trace'");
    ck_assert_ptr_null(trace);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(gives_its_memory_back)
{
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    trl_trace *trace = make_trace(3, 1000);
    trl_trace_destroy(&trace);
    trl_trace_destroy(&trace);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(before.bytes, after.bytes);
}
END_TEST

START_TEST(reports_a_full_disk)
{
    FILE *full = fopen("/dev/full", "w");
    trl_trace *trace = make_trace(1, 1);
    ck_assert_ptr_nonnull(full);
    ck_fails(trl_trace_write(trace, full), TRL_ERR_IO, ": No space left on device");
    fclose(full);
    trl_trace_destroy(&trace);
}
END_TEST

/* ---- runs ---- */

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

/* Asks to be called again a few times. */
static trl_err poll_some(void *data, const trl_task_args *args, bool *done)
{
    int *calls = data;
    (void)args;
    *done = ++*calls % 5 == 0;
    return TRL_OK;
}

static char spawned_name[16];

static trl_err spawn_one(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)done;
    strcpy(spawned_name, "spawned");
    return trl_run_spawn(args->run, &(trl_spawn_desc){.name = spawned_name, .variant = {{do_nothing}}}, NULL);
}

static trl_graph *make_graph(int *calls)
{
    trl_graph *graph;
    trl_task spawner, wide, poll;
    ck_ok(trl_graph_create(test_ctx, "whole run", &graph));
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "spawner", .variant = {{spawn_one}}, .chunks = 1},
                             &spawner));
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "wide", .variant = {{do_nothing}}, .chunks = 6, .type = 9},
                             &wide));
    ck_ok(trl_graph_add_task(
        graph,
        &(trl_task_desc){.name = "poll", .variant = {{poll_some}}, .data = calls, .chunks = 1, .flags = TRL_TASK_POLL},
        &poll));
    ck_ok(trl_graph_add_dependency(graph, spawner, wide));
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

START_TEST(every_call_of_a_task_in_a_run_is_recorded)
{
    enum { RUNS = 4 };
    for (int s = 0; s < SETTINGS; ++s) {
        int calls = 0;
        trl_workers *workers = make_workers(&settings[s]);
        trl_graph *graph = make_graph(&calls);
        trl_trace *trace = make_trace(trl_workers_count(workers), 10000);
        ck_ok(trl_graph_run(graph, workers, NULL)); /* not recorded */
        ck_ok(trl_workers_set_trace(workers, trace));
        for (int i = 0; i < RUNS; ++i) ck_ok(trl_graph_run(graph, workers, NULL));
        ck_ok(trl_workers_set_trace(workers, NULL));
        ck_ok(trl_graph_run(graph, workers, NULL));
        trl_graph_destroy(&graph);
        trl_workers_destroy(&workers);
        memset(spawned_name, 'z', sizeof spawned_name);
        char *text = text_of(trace);
        ck_assert_int_eq(count(text, "\"name\":\"spawner\",\"cat\":\"task\""), RUNS);
        ck_assert_int_eq(count(text, "\"name\":\"spawned\",\"cat\":\"task\""), RUNS);
        ck_assert_int_eq(count(text, "\"name\":\"wide\",\"cat\":\"task\""), (int64_t)6 * RUNS);
        ck_assert_int_eq(count(text, "\"args\":{\"type\":9}"), (int64_t)6 * RUNS);
        ck_assert_int_eq(count(text, "\"name\":\"poll\",\"cat\":\"task\""), RUNS);
        ck_assert_int_ge(count(text, "\"cat\":\"poll\""), RUNS);
        ck_assert_int_eq(count(text, "\"name\":\"whole run\",\"cat\":\"run\""), (int64_t)2 * RUNS);
        ck_assert_int_eq(count(text, "\"ts\":-"), 0);
        free(text);
        trl_trace_destroy(&trace);
    }
}
END_TEST

static trl_err set_flag(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    atomic_store((_Atomic bool *)data, true);
    return TRL_OK;
}

static trl_err wait_for_flag(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    while (!atomic_load((_Atomic bool *)data)) sched_yield();
    return TRL_OK;
}

/* Two tasks lock the same resource. While one has it, waiting for a third task, the other worker finds it taken,
 * unless it takes the third task first: as that is the last in order, some run will do. */
START_TEST(tasks_that_wait_for_a_lock_are_seen)
{
    enum { MOST = 1000 };
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_trace *trace = make_trace(2, (int64_t)10 * MOST);
    trl_graph *graph;
    trl_resource cells;
    trl_task holder, waiter, last;
    _Atomic bool flag;
    bool seen = false;
    ck_ok(trl_graph_create(test_ctx, "locks", &graph));
    ck_ok(trl_graph_add_resource(graph, &(trl_resource_desc){.name = "cells", .parent = TRL_NO_PARENT}, &cells));
    ck_ok(trl_graph_add_task(
        graph,
        &(trl_task_desc){
            .name = "holder", .variant = {{wait_for_flag}}, .data = (void *)&flag, .chunks = 1, .priority = 1},
        &holder));
    ck_ok(
        trl_graph_add_task(graph, &(trl_task_desc){.name = "waiter", .variant = {{do_nothing}}, .chunks = 1}, &waiter));
    ck_ok(trl_graph_add_task(
        graph,
        &(trl_task_desc){.name = "last", .variant = {{set_flag}}, .data = (void *)&flag, .chunks = 1, .priority = -1},
        &last));
    ck_ok(trl_graph_add_lock(graph, holder, cells));
    ck_ok(trl_graph_add_lock(graph, waiter, cells));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_workers_set_trace(workers, trace));
    for (int i = 0; i < MOST && !seen; ++i) {
        atomic_store(&flag, false);
        ck_ok(trl_graph_run(graph, workers, NULL));
        char *text = text_of(trace);
        seen = strstr(text, "\"name\":\"waits for cells\",\"cat\":\"lock\"") != NULL;
        free(text);
    }
    ck_assert(seen);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    trl_trace_destroy(&trace);
}
END_TEST

START_TEST(a_trace_needs_as_many_workers_as_run)
{
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_trace *trace = make_trace(1, 10);
    ck_fails(trl_workers_set_trace(workers, trace), TRL_ERR_USAGE, "a trace for 1 workers cannot record 2");
    trl_trace_destroy(&trace);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_checker_of_these_tests_knows_json);
    tcase_add_test(tc, every_kind_of_event_is_written_with_rank_worker_and_time);
    tcase_add_test(tc, the_frame_of_the_text_is_its_first_and_last_line_and_each_other_line_an_event);
    tcase_add_test(tc, names_are_escaped_and_what_is_no_utf8_is_replaced);
    tcase_add_test(tc, long_names_keep_their_beginning_and_names_may_die);
    tcase_add_test(tc, keeps_the_first_events_and_counts_the_others);
    tcase_add_test(tc, poll_calls_in_a_row_are_one_event);
    tcase_add_test(tc, refuses_sizes_that_make_no_sense);
    tcase_add_test(tc, gives_its_memory_back);
    tcase_add_test(tc, reports_a_full_disk);
    tcase_add_test(tc, every_call_of_a_task_in_a_run_is_recorded);
    tcase_add_test(tc, tasks_that_wait_for_a_lock_are_seen);
    tcase_add_test(tc, a_trace_needs_as_many_workers_as_run);
}
TRL_TEST_MAIN("trace", add_tests)
