/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What may be written to and read, and what is left behind. */
#include "output_fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "aside_impl.h"
#include "files_impl.h"
#include "memory_impl.h"

/* One of each kind in the present folder. Devices are named by links alone: a fault may replace what a test names. */
static void make_kinds(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)!system("rm -rf folder pipe socket link broken to_pipe to_null to_full file");
    ck_assert_int_eq(bind(end, (struct sockaddr *)&address, sizeof address), 0);
    close(end);
    ck_assert_int_eq(mkdir("folder", 0777), 0);
    ck_assert_int_eq(mkfifo("pipe", 0666), 0);
    fixture_write("file", "old", 3);
    ck_assert_int_eq(symlink("file", "link"), 0);
    ck_assert_int_eq(symlink("nowhere", "broken"), 0);
    ck_assert_int_eq(symlink("pipe", "to_pipe"), 0);
    ck_assert_int_eq(symlink("/dev/null", "to_null"), 0);
    ck_assert_int_eq(symlink("/dev/full", "to_full"), 0);
}

static const struct {
    const char *path;
    bool written; /* if streams are */
    const char *message;
} target[] = {
    {"folder", false, "cannot write 'folder': a folder stands where a file is needed"},
    {"socket", false, "cannot write 'socket': it is a device, pipe or socket, and only files are replaced"},
    {"link", false, "cannot write 'link': it is a symbolic link, and only files are replaced"},
    {"broken", false, "cannot write 'broken': it is a symbolic link"},
    {"pipe", false, "cannot write 'pipe': it is a device, pipe or socket"},
    {"to_pipe", false, "cannot write 'to_pipe': it is a symbolic link"},
    {"to_null", true, "cannot write 'to_null': it is a symbolic link"},
    {"", false, "cannot write '': the name of the file is empty"},
    {"folder/", false, "cannot write 'folder/': it ends in '/'"},
    {"new/", false, "cannot write 'new/': it ends in '/'"},
    {"file/below", false, "cannot write 'file/below': Not a directory"},
};
enum { TARGETS = sizeof target / sizeof *target };

START_TEST(replaces_no_other_kind_than_files)
{
    struct stat before, after;
    make_kinds();
    const int entries = fixture_entries(".");
    const bool there = lstat(target[_i].path, &before) == 0;
    ck_fails(trli_file_replace(test_ctx, target[_i].path, "new", 3), TRL_ERR_IO, target[_i].message);
    if (there) ck_assert(lstat(target[_i].path, &after) == 0 && before.st_ino == after.st_ino);
    trl_context_clear_diagnostics(test_ctx);
    trl_err err = trli_file_write(test_ctx, target[_i].path, "new", 3);
    ck_assert_msg(err == (target[_i].written ? TRL_OK : TRL_ERR_IO), "%s", test_messages());
    if (there) ck_assert(lstat(target[_i].path, &after) == 0 && before.st_ino == after.st_ino);
    size_t size;
    char *text = fixture_read("file", &size);
    ck_assert_str_eq(text, "old");
    free(text);
    ck_assert_int_eq(fixture_entries("."), entries);
}
END_TEST

START_TEST(writes_to_pipes_that_somebody_reads)
{
    char text[8] = "";
    make_kinds();
    ck_fails(trli_file_write(test_ctx, "pipe", "text", 4), TRL_ERR_IO, "it is a pipe that nobody reads from");
    trl_context_clear_diagnostics(test_ctx);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    ck_ok(trli_file_write(test_ctx, "to_pipe", "text", 4));
    ck_assert_int_eq(read(reader, text, sizeof text), 4);
    ck_assert_str_eq(text, "text");
    close(reader);
    ck_fails(trli_file_write(test_ctx, "to_full", "text", 4), TRL_ERR_IO,
             "cannot write 'to_full': No space left on device; free space there");
}
END_TEST

START_TEST(gives_files_the_mode_that_the_user_wants)
{
    struct stat status;
    const mode_t before = umask(027);
    ck_ok(trli_file_replace(test_ctx, "mode", "text", 4));
    umask(before);
    ck_assert_int_eq(stat("mode", &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
}
END_TEST

START_TEST(leaves_nothing_behind_and_sees_what_others_do_meanwhile)
{
    trli_new_file file;
    (void)!system("rm -rf aside");
    ck_assert_int_eq(mkdir("aside", 0777), 0);
    ck_ok(trli_file_begin(test_ctx, "aside/a", false, &file));
    ck_assert_int_eq(fixture_entries("aside"), 1);
    ck_assert_int_eq(trli_file_end(&file, TRL_ERR_NUMERICS), TRL_ERR_NUMERICS);
    ck_assert_int_eq(fixture_entries("aside"), 0);

    ck_ok(trli_file_begin(test_ctx, "aside/a", false, &file));
    ck_assert_int_eq(unlink(file.aside), 0);
    ck_assert_int_eq(symlink("/etc/passwd", file.aside), 0);
    ck_fails(trli_file_end(&file, TRL_OK), TRL_ERR_IO, "was removed or replaced meanwhile");
    ck_assert(!fixture_exists("aside/a"));
    trl_context_clear_diagnostics(test_ctx);

    ck_ok(trli_file_begin(test_ctx, "aside/a", false, &file));
    ck_assert_int_eq(mkfifo("aside/a", 0666), 0);
    ck_fails(trli_file_end(&file, TRL_OK), TRL_ERR_IO, "only files are replaced");
}
END_TEST

START_TEST(removes_what_killed_processes_left)
{
    char name[TRLI_ASIDE_ROOM], path[2 * TRLI_ASIDE_ROOM];
    int status;
    (void)!system("rm -rf left");
    ck_assert_int_eq(mkdir("left", 0777), 0);
    trli_aside_name(name);
    snprintf(path, sizeof path, "left/%s", name);
    fixture_write(path, "mine", 4);
    pid_t child = fork();
    if (child == 0) {
        trli_aside_name(name);
        snprintf(path, sizeof path, "left/%s.c", name);
        fixture_write(path, "left", 4);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(fixture_entries("left"), 2);
    trli_folder_sweep("left");
    ck_assert_int_eq(fixture_entries("left"), 1);
    ck_assert(fixture_exists(path));
    trli_folder_sweep("nowhere");
}
END_TEST

START_TEST(reads_no_other_kind_than_files)
{
    static const struct {
        const char *path, *message;
    } source[] = {{"folder", "cannot read 'folder': it is a folder, not a file"},
                  {"pipe", "cannot read 'pipe': it is a pipe, not a file"},
                  {"to_pipe", "cannot read 'to_pipe': it is a pipe, not a file"},
                  {"socket", "cannot read 'socket': it is a socket, not a file"},
                  {"/dev/zero", "cannot read '/dev/zero': it is a device, not a file"},
                  {"broken", "cannot read 'broken': No such file or directory"},
                  {"file", "cannot read 'file': it is larger than 0 MB"}};
    char *text;
    size_t size;
    make_kinds();
    for (size_t i = 0; i < sizeof source / sizeof *source; ++i) {
        ck_fails(trli_file_read(test_ctx, TRL_ERR_INPUT, NULL, source[i].path, 2, &text, &size), TRL_ERR_INPUT,
                 source[i].message);
        ck_assert_ptr_null(text);
        trl_context_clear_diagnostics(test_ctx);
    }
    ck_ok(trli_file_read(test_ctx, TRL_ERR_INPUT, NULL, "link", 3, &text, &size));
    ck_assert_str_eq(text, "old");
    trli_free(text);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, replaces_no_other_kind_than_files, 0, TARGETS);
    tcase_add_test(tc, writes_to_pipes_that_somebody_reads);
    tcase_add_test(tc, gives_files_the_mode_that_the_user_wants);
    tcase_add_test(tc, leaves_nothing_behind_and_sees_what_others_do_meanwhile);
    tcase_add_test(tc, removes_what_killed_processes_left);
    tcase_add_test(tc, reads_no_other_kind_than_files);
}

TRL_TEST_MAIN("files", add_tests)
