/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The compiler of kernels and its cache: what is kept, what is made again, and what happens without either. */
#include "trl_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
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

static outcome compile_with(const char *text, bool fast_math, double in, double scalar)
{
    trli_compiler *compiler;
    trli_native_fn fn = NULL;
    outcome o = {0};
    double out = 0;
    trl_kernel_array array[2] = {{.at = &in}, {.at = &out}};
    trl_kernel_call call = {.input = &array[0], .output = &array[1], .scalar = &scalar};
    ck_ok(trli_compiler_create(test_ctx, fast_math, &compiler));
    ck_ok(trli_compiler_add(compiler, text, &fn));
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    const trli_compiler_stats stats = trli_compiler_get_stats(compiler);
    o.compiled = stats.compiled;
    o.cached = stats.cached;
    o.failed = stats.failed;
    snprintf(o.why, sizeof o.why, "%s", stats.why ? stats.why : "");
    ck_assert_int_eq(stats.under_way, 0);
    ck_assert_int_eq(stats.seconds > 0, stats.compiled > 0);
    if (fn) fn(&call);
    o.result = out;
    trli_compiler_destroy(&compiler);
    ck_assert_ptr_null(compiler);
    return o;
}

static outcome compile_text(const char *text)
{
    return compile_with(text, false, 1.5, 2);
}

/* Whether compilers find an instruction that rounds a product and a sum together. */
static bool has_fused_multiply_add(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

START_TEST(fast_math_rounds_a_product_and_a_sum_together_and_has_an_entry_of_its_own)
{
    static const char text[] = "void trl_kernel(trl_kernel_call *call)\n"
                               "{\n"
                               "    const double a = call->input[0].at[0];\n"
                               "    call->output[0].at[0] = a * a - call->scalar[0];\n"
                               "}\n";
    const double a = 1 + 0x1p-30, rounded = 1 + 0x1p-29;
    set_up();
    outcome exact = compile_with(text, false, a, rounded);
    ck_assert(exact.compiled == 1 && exact.result == 0);
    outcome fast = compile_with(text, true, a, rounded);
    ck_assert_int_eq(fast.compiled, 1);
    if (has_fused_multiply_add()) ck_assert(fast.result == 0x1p-60);
    ck_assert_int_eq(list_cache(NULL, 0), 2);
}
END_TEST

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
    set_up();
    ck_ok(trli_compiler_create(test_ctx, false, &compiler));
    for (int i = 0; i < 3; ++i) ck_ok(trli_compiler_add(compiler, kernel_text, &fn[i]));
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    ck_assert_int_eq(trli_compiler_get_stats(compiler).compiled, 1);
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
        {"./fails.sh", "#!/bin/sh\necho half >$TMPDIR/half.s\necho 'fatal: no licence' >&2\nexit 1\n",
         "the C compiler failed: fatal: no licence"},
        {"./silent.sh", "#!/bin/sh\nexit 0\n", "the C compiler wrote no library: No such file or directory"},
        {"./rubbish.sh", "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo rubbish > \"$2\"; shift; done\n",
         "a compiled kernel cannot be loaded"},
        {"./dies.sh", "#!/bin/sh\nkill -9 $$\n", "the C compiler failed"},
        {"./nameless.sh",
         "#!/bin/sh\necho 'int nothing;' > n.c\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && cc -shared -fPIC n.c -o "
         "\"$2\"; shift; done\n",
         "a compiled kernel lacks its function trl_kernel"},
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
    ck_assert_int_eq(list_cache(NULL, 0), 0);
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

START_TEST(leaves_nothing_on_a_full_disk)
{
    struct rlimit limit;
    set_up();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 1000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    outcome o = compile_text(kernel_text);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_msg(o.failed == 1 && o.why[0], "%s", o.why);
    ck_assert_int_eq(list_cache(NULL, 0), 0);
}
END_TEST

/* ---- entries and folders that others could have made ---- */

/* What would be run if it were loaded: it says so, and computes something else. */
static const char planted_text[] =
    "#include <stdlib.h>\n"
    "__attribute__((constructor)) static void mark(void) { setenv(\"PLANTED\", \"1\", 1); }\n"
    "void trl_kernel(void *call) { (void)call; }\n"
    "void trl_other(void *call) { (void)call; }\n";

/* Put a library in the place of the only entry, with a digest that fits, and the entry's function or another. */
static void plant(char path[600], const char *function)
{
    char command[1200], digest[TRLI_DIGEST_TEXT];
    ck_assert_int_eq(list_cache(path, 600), 1);
    const char *entry = strrchr(path, '/') + 1;
    FILE *text = fopen("planted.c", "w");
    fputs(planted_text, text);
    fclose(text);
    snprintf(command, sizeof command, "cc -shared -fPIC -Dtrl_kernel=%s_%.32s planted.c -o planted.so", function,
             entry);
    ck_assert_int_eq(system(command), 0);
    int file = open("planted.so", O_RDWR);
    ck_assert(trli_digest_file(file, digest, 0, NULL));
    ck_assert_int_eq(lseek(file, 0, SEEK_END) > 0 && write(file, digest, strlen(digest)) > 0, 1);
    close(file);
    ck_assert_int_eq(chmod("planted.so", 0600), 0);
    ck_assert_int_eq(rename("planted.so", path), 0);
    unsetenv("PLANTED");
}

static void expect_made_again(const char *path)
{
    struct stat s;
    outcome again = compile_text(kernel_text);
    ck_assert_msg(again.compiled == 1 && again.cached == 0 && again.failed == 0, "%s", again.why);
    ck_assert(again.result == 3.5);
    ck_assert_ptr_null(getenv("PLANTED"));
    ck_assert_int_eq(lstat(path, &s), 0);
    ck_assert(S_ISREG(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 0777) == 0600);
    ck_assert_int_eq(compile_text(kernel_text).cached, 1); /* now it is sound */
}

START_TEST(would_run_a_planted_library_if_it_were_sound)
{
    char path[600];
    set_up();
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    plant(path, "trl_kernel");
    ck_assert_int_eq(compile_text(kernel_text).cached, 1); /* the next tests plant what would run */
    ck_assert_ptr_nonnull(getenv("PLANTED"));
    unsetenv("PLANTED");
}
END_TEST

START_TEST(makes_an_entry_again_that_others_may_write_to_or_made)
{
    static const mode_t mode[] = {0666, 0620};
    char path[600];
    set_up();
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    plant(path, "trl_kernel");
    if (_i < 2) ck_assert_int_eq(chmod(path, mode[_i]), 0);
    if (_i == 2) ck_assert(rename(path, "elsewhere.so") == 0 && symlink("../elsewhere.so", path) == 0);
    if (_i == 3) {
        if (geteuid() != 0) return; /* root alone gives files away */
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
    }
    expect_made_again(path);
}
END_TEST

START_TEST(makes_an_entry_again_that_lacks_its_function)
{
    char path[600];
    set_up();
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    plant(path, "another");
    outcome again = compile_text(kernel_text);
    ck_assert_msg(again.compiled == 1 && again.failed == 0 && again.result == 3.5, "%s", again.why);
    unsetenv("PLANTED");
    ck_assert_int_eq(compile_text(kernel_text).cached, 1);
    ck_assert_ptr_null(getenv("PLANTED"));
}
END_TEST

/* ---- several kernels in one run of the compiler ---- */

enum { TOGETHER = 5 };

/* Ask for kernels of the numbers 0, 1, ... at once; `bad` of them, if it is not negative, does not compile. Returns how
 * often the compiler ran. */
static int compile_together(int bad, trli_compiler_stats *stats)
{
    char text[300], why[300];
    trli_compiler *compiler;
    trli_native_fn fn[TOGETHER];
    struct stat s = {0};
    (void)unlink("runs");
    if (access("./counts.sh", F_OK))
        write_program("./counts.sh", "#!/bin/sh\necho x >>../../runs\nexec cc -O0 \"$@\"\n");
    setenv("TRELLIS_CC", "./counts.sh", 1);
    ck_ok(trli_compiler_create(test_ctx, false, &compiler));
    unsetenv("TRELLIS_CC");
    for (int i = 0; i < TOGETHER; ++i) {
        snprintf(text, sizeof text,
                 "static int TRL_OWN(number)(void) { return %d; }\n"
                 "void trl_kernel(trl_kernel_call *call) { call->output[0].at[0] = TRL_OWN(number)()%s; }\n",
                 i, i == bad ? " syntax error" : "");
        ck_ok(trli_compiler_add(compiler, text, &fn[i]));
    }
    ck_assert_int_eq(trli_compiler_poll(compiler, true), 0);
    *stats = trli_compiler_get_stats(compiler);
    for (int i = 0; i < TOGETHER; ++i) {
        double out = -1;
        trl_kernel_array array = {.at = &out};
        trl_kernel_call call = {.output = &array};
        ck_assert_int_eq(fn[i] == NULL, i == bad);
        if (fn[i]) fn[i](&call);
        ck_assert_int_eq((int)out, i == bad ? -1 : i);
    }
    snprintf(why, sizeof why, "%s", stats->why ? stats->why : "");
    ck_assert_msg(bad < 0 ? !*why : strncmp(why, "the C compiler failed: ", 23) == 0, "%s", why);
    trli_compiler_destroy(&compiler);
    return stat("runs", &s) == 0 ? (int)s.st_size / 2 : 0;
}

START_TEST(compiles_kernels_together_and_keeps_each)
{
    trli_compiler_stats stats;
    char path[600];
    const int threads = trl_context_threads(test_ctx);
    set_up();
    ck_assert_int_eq(compile_together(-1, &stats), threads < TOGETHER ? threads : TOGETHER);
    ck_assert_int_eq(stats.compiled, TOGETHER);
    ck_assert_int_eq(list_cache(path, sizeof path), TOGETHER);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(compile_together(-1, &stats), 1);
    ck_assert(stats.compiled == 1 && stats.cached == TOGETHER - 1); /* the entry that was removed */
    ck_assert_int_eq(compile_together(-1, &stats), 0);
    ck_assert_int_eq(stats.cached, TOGETHER);
}
END_TEST

START_TEST(compiles_kernels_alone_if_one_of_them_fails)
{
    trli_compiler_stats stats;
    set_up();
    ck_assert_int_le(compile_together(2, &stats), 1 + TOGETHER);
    ck_assert(stats.compiled == TOGETHER - 1 && stats.failed == 1);
    ck_assert_int_eq(list_cache(NULL, 0), TOGETHER - 1);
}
END_TEST

/* Another kernel for each number, all loaded from the cache through descriptors that have the same number. */
START_TEST(loads_each_library_as_itself)
{
    enum { KERNELS = 4 };
    char text[KERNELS][300];
    trli_compiler *compiler[2];
    trli_native_fn fn[2][KERNELS];
    set_up();
    for (int i = 0; i < KERNELS; ++i) {
        snprintf(text[i], sizeof text[i], "void trl_kernel(trl_kernel_call *call) { call->output[0].at[0] = %d; }\n",
                 i);
        (void)compile_text(text[i]);
    }
    for (int c = 0; c < 2; ++c) {
        ck_ok(trli_compiler_create(test_ctx, false, &compiler[c]));
        for (int i = 0; i < KERNELS; ++i)
            ck_ok(trli_compiler_add(compiler[c], text[c ? KERNELS - 1 - i : i], &fn[c][i]));
    }
    for (int c = 0; c < 2; ++c)
        for (int i = 0; i < KERNELS; ++i) {
            double out = -1;
            trl_kernel_array array = {.at = &out};
            trl_kernel_call call = {.output = &array};
            ck_assert(fn[c][i]);
            fn[c][i](&call);
            ck_assert_int_eq((int)out, c ? KERNELS - 1 - i : i);
        }
    for (int c = 0; c < 2; ++c) trli_compiler_destroy(&compiler[c]);
}
END_TEST

static void expect_unused(const char *message)
{
    const char *messages;
    test_clear();
    outcome o = compile_text(kernel_text);
    ck_assert_msg(o.compiled == 1 && o.cached == 0, "%s", o.why); /* in a folder of its own, for this run */
    ck_assert(o.result == 3.5);
    messages = test_messages();
    ck_assert_msg(strstr(messages, message) != NULL, "%s", messages);
    test_clear();
}

START_TEST(keeps_nothing_where_others_may_write)
{
    set_up();
    ck_assert_int_eq(chmod(folder, 0777), 0);
    expect_unused("others may write to the folder '");
    ck_assert_int_eq(list_cache(NULL, 0), 0);
    ck_assert_int_eq(chmod(folder, 01777), 0);
    expect_unused("others may write to the folder '");
    ck_assert_int_eq(list_cache(NULL, 0), 0);
    if (geteuid() != 0) return;
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(chown(folder, 65534, 65534), 0);
    expect_unused("' belongs to another user (65534)");
    ck_assert_int_eq(list_cache(NULL, 0), 0);
}
END_TEST

START_TEST(keeps_nothing_below_a_folder_that_others_can_exchange)
{
    char parent[sizeof folder];
    set_up();
    memcpy(parent, folder, sizeof parent);
    strcat(folder, "/below");
    setenv("TRELLIS_CACHE_DIR", folder, 1);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(parent, 0777), 0);
    expect_unused("others may write to the folder '");
    ck_assert_int_eq(chmod(parent, 0730), 0);
    ck_assert_int_eq(geteuid() == 0 ? chown(parent, 0, 65534) : 0, 0);
    if (geteuid() == 0) expect_unused("chmod go-w");
    ck_assert_int_eq(chmod(parent, 0700), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(parent, 65534, 65534), 0);
        expect_unused("' belongs to another user (65534), who could exchange what is in it");
        ck_assert_int_eq(chown(parent, 0, 0), 0);
    }
    ck_assert_int_eq(list_cache(NULL, 0), 0);
    ck_assert_int_eq(chmod(parent, 01777), 0); /* as /tmp */
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    ck_assert_int_eq(compile_text(kernel_text).cached, 1);
}
END_TEST

START_TEST(follows_links_of_this_user_alone)
{
    char link[300];
    set_up();
    snprintf(link, sizeof link, "%s.link", folder);
    ck_assert_int_eq(symlink(folder, link), 0);
    setenv("TRELLIS_CACHE_DIR", link, 1);
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    ck_assert_int_eq(list_cache(NULL, 0), 1);
    if (geteuid() == 0) {
        ck_assert_int_eq(lchown(link, 65534, 65534), 0);
        expect_unused("' belongs to another user (65534)");
    }
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(symlink(link, link), 0);
    expect_unused("' leads nowhere");
    setenv("TRELLIS_CACHE_DIR", "planted.c", 1);
    expect_unused("planted.c' is no folder");
    setenv("TRELLIS_CACHE_DIR", "no/such/folder", 1);
    expect_unused("/no': No such file or directory");
}
END_TEST

START_TEST(removes_what_killed_compilers_left)
{
    trli_cache cache;
    trli_workshop workshop;
    int status;
    set_up();
    trli_cache_open(&cache);
    pid_t child = fork();
    if (child == 0) {
        if (!trli_workshop_open(&workshop, &cache)) _exit(1);
        _exit(openat(workshop.folder, "kernel.c", O_WRONLY | O_CREAT, 0600) < 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(list_cache(NULL, 0), 1);
    ck_assert(trli_workshop_open(&workshop, &cache));
    ck_assert_int_eq(list_cache(NULL, 0), 1); /* this process's */
    ck_assert_int_eq(compile_text(kernel_text).compiled, 1);
    ck_assert_int_eq(list_cache(NULL, 0), 2); /* nobody's work is disturbed */
    trli_workshop_close(&workshop);
    trli_cache_close(&cache);
    ck_assert_int_eq(list_cache(NULL, 0), 1);
}
END_TEST

START_TEST(stops_compilers_that_are_still_at_work)
{
    trli_compiler *compiler;
    trli_native_fn fn = NULL;
    set_up();
    write_program("./sleeps.sh", "#!/bin/sh\nsleep 1000\n");
    setenv("TRELLIS_CC", "./sleeps.sh", 1);
    ck_ok(trli_compiler_create(test_ctx, false, &compiler));
    ck_ok(trli_compiler_add(compiler, kernel_text, &fn));
    ck_assert_int_eq(trli_compiler_poll(compiler, false), 1);
    ck_assert_int_eq(trli_compiler_poll(compiler, false), 1);
    trli_compiler_destroy(&compiler); /* returns at once, or the test's time runs out */
    ck_assert_int_eq(list_cache(NULL, 0), 0);
    unsetenv("TRELLIS_CC");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, compiles_a_kernel_once_and_takes_it_from_the_cache_after_that);
    tcase_add_test(tc, fast_math_rounds_a_product_and_a_sum_together_and_has_an_entry_of_its_own);
    tcase_add_test(tc, compiles_equal_texts_once);
    tcase_add_loop_test(tc, makes_a_damaged_entry_again, 0, 3);
    tcase_add_loop_test(tc, says_what_is_wrong_with_a_compiler, 0, 6);
    tcase_add_test(tc, reports_text_that_does_not_compile);
    tcase_add_test(tc, leaves_nothing_on_a_full_disk);
    tcase_add_test(tc, would_run_a_planted_library_if_it_were_sound);
    tcase_add_loop_test(tc, makes_an_entry_again_that_others_may_write_to_or_made, 0, 4);
    tcase_add_test(tc, makes_an_entry_again_that_lacks_its_function);
    tcase_add_test(tc, compiles_kernels_together_and_keeps_each);
    tcase_add_test(tc, compiles_kernels_alone_if_one_of_them_fails);
    tcase_add_test(tc, loads_each_library_as_itself);
    tcase_add_test(tc, keeps_nothing_where_others_may_write);
    tcase_add_test(tc, keeps_nothing_below_a_folder_that_others_can_exchange);
    tcase_add_test(tc, follows_links_of_this_user_alone);
    tcase_add_test(tc, removes_what_killed_compilers_left);
    tcase_add_test(tc, stops_compilers_that_are_still_at_work);
}

TRL_TEST_MAIN("native", add_tests)
