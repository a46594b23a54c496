// ctest: np=1,3
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The compiler of kernels and its cache: what is kept, what is made again, and what happens without either. */
#include "trl_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native_impl.h"

static const char kernel_text[] = "void trl_kernel(trl_kernel_call *call)\n"
                                  "{\n"
                                  "    call->output[0].at[0] = call->input[0].at[0] + call->scalar[0];\n"
                                  "}\n";
static char folder[200];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("TRELLIS_CACHE_DIR", folder, 1);
    unsetenv("TRELLIS_CC");
}

/* Visit the names in the cache; returns how many there are. */
static int list_cache(char *last, size_t room)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        if (last) snprintf(last, room, "%s/%s", folder, e->d_name);
        ++n;
    }
    closedir(d);
    return n;
}

typedef struct outcome {
    int compiled, cached, failed;
    char why[600];
    double result; /* of 1.5 + 2 by the kernel; 0 without one */
} outcome;

static outcome compile_text(const char *text)
{
    trli_compiler *compiler;
    trli_native_fn fn = NULL;
    outcome o = {0};
    const char *why;
    double in = 1.5, two = 2, out = 0;
    trl_kernel_array array[2] = {{.at = &in}, {.at = &out}};
    trl_kernel_call call = {.input = &array[0], .output = &array[1], .scalar = &two};
    ck_ok(trli_compiler_create(test_ctx, &compiler));
    ck_ok(trli_compiler_add(compiler, text, &fn));
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    trli_compiler_get_stats(compiler, &o.compiled, &o.cached, &o.failed, &why);
    snprintf(o.why, sizeof o.why, "%s", why ? why : "");
    if (fn) fn(&call);
    o.result = out;
    trli_compiler_destroy(&compiler);
    ck_assert_ptr_null(compiler);
    return o;
}

START_TEST(compiles_a_kernel_once_and_takes_it_from_the_cache_after_that)
{
    set_up();
    outcome first = compile_text(kernel_text);
    ck_assert_msg(first.compiled == 1 && first.cached == 0 && first.failed == 0, "%s", first.why);
    ck_assert(first.result == 3.5);
    ck_assert_int_eq(list_cache(NULL, 0), 1); /* neither source nor log is left */
    outcome second = compile_text(kernel_text);
    ck_assert_int_eq(second.compiled, 0);
    ck_assert_int_eq(second.cached, 1);
    ck_assert(second.result == 3.5);
}
END_TEST

START_TEST(compiles_equal_texts_once)
{
    trli_compiler *compiler;
    trli_native_fn fn[3] = {NULL, NULL, NULL};
    int compiled, cached, failed;
    const char *why;
    set_up();
    ck_ok(trli_compiler_create(test_ctx, &compiler));
    for (int i = 0; i < 3; ++i) ck_ok(trli_compiler_add(compiler, kernel_text, &fn[i]));
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    trli_compiler_get_stats(compiler, &compiled, &cached, &failed, &why);
    ck_assert_int_eq(compiled, 1);
    ck_assert(fn[0] && fn[0] == fn[1] && fn[1] == fn[2]);
    trli_compiler_destroy(&compiler);
}
END_TEST

/* Overwrite, cut or fill the only entry. */
static void damage_entry(int way)
{
    char path[600];
    ck_assert_int_eq(list_cache(path, sizeof path), 1);
    if (way == 0) {
        ck_assert_int_eq(truncate(path, 1000), 0);
        return;
    }
    int file = open(path, way == 1 ? O_WRONLY : O_WRONLY | O_TRUNC);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(lseek(file, way == 1 ? 600 : 0, SEEK_SET), way == 1 ? 600 : 0);
    ck_assert_int_eq(write(file, "rubbish", 7), 7);
    close(file);
}

START_TEST(makes_a_damaged_entry_again)
{
    set_up();
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    damage_entry(_i);
    outcome again = compile_text(kernel_text);
    ck_assert_msg(again.compiled == 1 && again.cached == 0, "%s", again.why);
    ck_assert(again.result == 3.5);
}
END_TEST

static void write_program(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(name, 0700), 0);
}

START_TEST(says_what_is_wrong_with_a_compiler)
{
    static const struct {
        const char *name, *script, *why;
    } bad[] = {
        {"./fails.sh", "#!/bin/sh\necho 'fatal: no licence' >&2\nexit 1\n", "the C compiler failed: fatal: no licence"},
        {"./silent.sh", "#!/bin/sh\nexit 0\n", "cannot be stored in the cache"},
        {"./rubbish.sh", "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo rubbish > \"$2\"; shift; done\n",
         "a compiled kernel cannot be loaded"},
        {"./dies.sh", "#!/bin/sh\nkill -9 $$\n", "the C compiler failed"},
        {"./missing.sh", NULL, "TRELLIS_CC is no program that can be run"},
    };
    set_up();
    if (bad[_i].script) write_program(bad[_i].name, bad[_i].script);
    setenv("TRELLIS_CC", bad[_i].name, 1);
    outcome o = compile_text(kernel_text);
    ck_assert_int_eq(o.compiled, 0);
    ck_assert_int_eq(o.failed, bad[_i].script ? 1 : 0);
    ck_assert_msg(strstr(o.why, bad[_i].why) != NULL, "%s", o.why);
    ck_assert(o.result == 0);
    unsetenv("TRELLIS_CC");
}
END_TEST

START_TEST(reports_text_that_does_not_compile)
{
    set_up();
    outcome o = compile_text("void trl_kernel(trl_kernel_call *call) { syntax error }\n");
    ck_assert_int_eq(o.failed, 1);
    ck_assert_msg(strstr(o.why, "the C compiler failed") != NULL, "%s", o.why);
    ck_assert_int_eq(list_cache(NULL, 0), 0);
}
END_TEST

START_TEST(keeps_nothing_where_others_may_write)
{
    set_up();
    ck_assert_int_eq(chmod(folder, 0777), 0);
    outcome o = compile_text(kernel_text);
    ck_assert_int_eq(o.compiled, 1); /* in a folder of its own, for this run */
    ck_assert(o.result == 3.5);
    ck_assert_int_eq(list_cache(NULL, 0), 0);
}
END_TEST

START_TEST(stops_compilers_that_are_still_at_work)
{
    trli_compiler *compiler;
    trli_native_fn fn = NULL;
    set_up();
    write_program("./sleeps.sh", "#!/bin/sh\nsleep 1000\n");
    setenv("TRELLIS_CC", "./sleeps.sh", 1);
    ck_ok(trli_compiler_create(test_ctx, &compiler));
    ck_ok(trli_compiler_add(compiler, kernel_text, &fn));
    ck_assert_int_eq(trli_compiler_poll(compiler, false), 1);
    ck_assert_int_eq(trli_compiler_poll(compiler, false), 1);
    trli_compiler_destroy(&compiler); /* returns at once, or the test's time runs out */
    ck_assert_int_eq(list_cache(NULL, 0), 0);
    unsetenv("TRELLIS_CC");
}
END_TEST

START_TEST(one_rank_compiles_for_all)
{
    set_up();
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    setenv("TRELLIS_CACHE_DIR", folder, 1);
    outcome o = compile_text(kernel_text);
    ck_assert(o.result == 3.5);
    ck_assert_int_eq(o.compiled, trl_context_rank(test_ctx) == 0);
    ck_assert_int_eq(o.cached, trl_context_rank(test_ctx) > 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, one_rank_compiles_for_all);
    if (trl_context_ranks(test_ctx) > 1) return; /* the others are about one */
    tcase_add_test(tc, compiles_a_kernel_once_and_takes_it_from_the_cache_after_that);
    tcase_add_test(tc, compiles_equal_texts_once);
    tcase_add_loop_test(tc, makes_a_damaged_entry_again, 0, 3);
    tcase_add_loop_test(tc, says_what_is_wrong_with_a_compiler, 0, 5);
    tcase_add_test(tc, reports_text_that_does_not_compile);
    tcase_add_test(tc, keeps_nothing_where_others_may_write);
    tcase_add_test(tc, stops_compilers_that_are_still_at_work);
}

TRL_TEST_MAIN("native", add_tests)
