/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "files_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aside_impl.h"
#include "memory_impl.h"

trl_err trli_format(trl_context *ctx, char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    *text = length >= 0 ? trli_new(ctx, (size_t)length + 1, 1) : NULL;
    if (!*text) return trli_no_memory(ctx, NULL, "for a text of the output");
    va_start(args, format);
    (void)vsnprintf(*text, (size_t)length + 1, format, args);
    va_end(args);
    return TRL_OK;
}

static const char *advice(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return "; free space there, or write to another disk (a run: output.directory)";
    case EFBIG:
        return "; raise the limit on the size of files (ulimit -f), or write fewer fields";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; choose a folder that you may write to (a run: output.directory)";
    case ENOTDIR:
        return "; a file stands where a folder is needed: move it away, or choose another path";
    case EISDIR:
        return "; a folder stands where a file is needed: move it away, or choose another path";
    default:
        return "";
    }
}

trl_err trli_file_fail(trl_context *ctx, const char *action, const char *path, int number)
{
    return trl_fail(ctx, TRL_ERR_IO, NULL, "cannot %s '%s': %s%s", action, path, strerror(number), advice(number));
}

static trl_err create_one(trl_context *ctx, const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0) return TRL_OK;
    int number = errno;
    if (stat(path, &status)) return trli_file_fail(ctx, "create folder", path, number);
    return S_ISDIR(status.st_mode) ? TRL_OK : trli_file_fail(ctx, "create folder", path, ENOTDIR);
}

trl_err trli_folder_create(trl_context *ctx, const char *path)
{
    char *parent = NULL;
    trl_err err = trli_format(ctx, &parent, "%s", path);
    for (char *slash = parent; err == TRL_OK && *slash && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        err = create_one(ctx, parent);
        *slash = '/';
    }
    if (err == TRL_OK) err = create_one(ctx, path);
    trli_free(parent);
    return err;
}

trl_err trli_folder_create_for(trl_context *ctx, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    trl_err err = TRL_OK;
    if (!slash || slash == path) return TRL_OK;
    TRL_TRY(trli_format(ctx, &folder, "%.*s", (int)(slash - path), path));
    TRL_TRY(trli_folder_create(ctx, folder));
done:
    trli_free(folder);
    return err;
}

int trli_file_put(int file, const void *bytes, size_t size, off_t at)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t put = at < 0 ? write(file, from, size) : pwrite(file, from, size, at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        if (put == 0) return ENOSPC;
        from += put;
        if (at >= 0) at += put;
        size -= (size_t)put;
    }
    return 0;
}

/* ---- what stands at a path ---- */

/* Number of the descriptor that a path of the system means, or -1: opening the path would start at the beginning of the
 * file. */
static int own_descriptor(const char *path)
{
    if (strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/fd/1") == 0) return STDOUT_FILENO;
    return strcmp(path, "/dev/stderr") == 0 || strcmp(path, "/dev/fd/2") == 0 ? STDERR_FILENO : -1;
}

/* Whether a path leads to something that bytes are written to one after the other. */
static bool is_stream(const char *path)
{
    struct stat status;
    if (own_descriptor(path) >= 0) return true;
    return stat(path, &status) == 0 && (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode));
}

const char *trli_file_refusal(const char *path, bool streams)
{
    struct stat status;
    const size_t length = strlen(path);
    if (length == 0) return "the name of the file is empty";
    if (path[length - 1] == '/') return "it ends in '/': the name of a file is missing";
    if (streams && is_stream(path)) return NULL;
    if (lstat(path, &status)) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? NULL : strerror(errno);
    if (S_ISREG(status.st_mode)) return NULL;
    if (S_ISDIR(status.st_mode)) return "a folder stands where a file is needed: move it away, or choose another path";
    if (S_ISLNK(status.st_mode))
        return "it is a symbolic link, and only files are replaced: remove it, or name the file itself";
    return "it is a device, pipe or socket, and only files are replaced: move it away, or choose another path";
}

bool trli_file_same(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_ino == second.st_ino &&
           first.st_dev == second.st_dev;
}

bool trli_folder_possible(const char *path, char reason[TRLI_FILE_REASON])
{
    char above[PATH_MAX];
    struct stat status;
    if (snprintf(above, sizeof above, "%s", path) >= (int)sizeof above) {
        snprintf(reason, TRLI_FILE_REASON, "%s", strerror(ENAMETOOLONG));
        return false;
    }
    while (stat(above, &status) != 0) {
        char *slash = strrchr(above, '/');
        if (errno != ENOENT && errno != ENOTDIR) {
            snprintf(reason, TRLI_FILE_REASON, "%s", strerror(errno));
            return false;
        }
        if (slash == above)
            above[1] = 0;
        else if (slash)
            *slash = 0;
        else
            snprintf(above, sizeof above, ".");
    }
    if (!S_ISDIR(status.st_mode))
        snprintf(reason, TRLI_FILE_REASON, "'%.100s' is %s", above, trli_file_kind(status.st_mode));
    else if (access(above, W_OK | X_OK))
        snprintf(reason, TRLI_FILE_REASON, "%s", strerror(errno));
    else
        return true;
    return false;
}

trl_err trli_file_check(trl_context *ctx, const char *command, const char *option, const char *path)
{
    const char *refusal = trli_file_refusal(path, true), *slash = strrchr(path, '/');
    char folder[PATH_MAX], reason[TRLI_FILE_REASON];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (!refusal && !is_stream(path) && !trli_folder_possible(folder, reason)) refusal = reason;
    if (!refusal) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: %s '%s' cannot be written: %s", command, option, path,
                    refusal);
}

static trl_err check_target(trl_context *ctx, const char *path, bool streams)
{
    const char *refusal = trli_file_refusal(path, streams);
    return refusal ? trl_fail(ctx, TRL_ERR_IO, NULL, "cannot write '%s': %s", path, refusal) : TRL_OK;
}

/* ---- new files ---- */

/* Returns 0 or an errno. O_NONBLOCK: opening a pipe without a reader would block. */
static int open_stream(const char *path, int *file)
{
    const int own = own_descriptor(path);
    fflush(stdout); /* which may be the same file */
    *file = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 3) : open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*file < 0) return errno;
    if (own >= 0) return 0;
    const int flags = fcntl(*file, F_GETFL);
    return flags < 0 || fcntl(*file, F_SETFL, flags & ~O_NONBLOCK) < 0 ? errno : 0;
}

/* Returns 0 or an errno. */
static int open_aside(const char *path, char *aside, size_t room, int *file)
{
    enum { TRIES = 16 };
    const char *slash = strrchr(path, '/');
    char name[TRLI_ASIDE_ROOM];
    for (int i = 0; i < TRIES; ++i) {
        trli_aside_name(name);
        snprintf(aside, room, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
        *file = open(aside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*file >= 0) return 0;
        if (errno != EEXIST) break;
    }
    return errno;
}

static void release(trli_new_file *file)
{
    if (file->file >= 0) close(file->file);
    trli_free(file->path);
    trli_free(file->aside);
    *file = (trli_new_file){.file = -1};
}

trl_err trli_file_begin(trl_context *ctx, const char *path, bool streams, trli_new_file *file)
{
    int number;
    trl_err err = TRL_OK;
    *file = (trli_new_file){.ctx = ctx, .file = -1};
    TRL_TRY(check_target(ctx, path, streams));
    TRL_TRY(trli_format(ctx, &file->path, "%s", path));
    if (streams && is_stream(path)) {
        number = open_stream(path, &file->file);
        if (number == ENXIO)
            err = trl_fail(ctx, TRL_ERR_IO, NULL, "cannot write '%s': it is a pipe that nobody reads from", path);
    } else {
        const size_t room = strlen(path) + TRLI_ASIDE_ROOM;
        file->aside = trli_new(ctx, room, 1);
        if (!file->aside) TRL_TRY(trli_no_memory(ctx, NULL, "to write '%s'", path));
        number = open_aside(path, file->aside, room, &file->file);
    }
    if (number && err == TRL_OK) err = trli_file_fail(ctx, "write", path, number);
done:
    if (err != TRL_OK) release(file);
    return err;
}

trl_err trli_file_stream(const trli_new_file *file, FILE **stream)
{
    int copy = fcntl(file->file, F_DUPFD_CLOEXEC, 3);
    *stream = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (*stream) return TRL_OK;
    int number = errno;
    if (copy >= 0) close(copy);
    return trli_file_fail(file->ctx, "write", file->path, number);
}

/* Bring the entries of a path's folder to the disk. Some file systems cannot; a rename holds all the same. */
static void synchronise_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int length = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int file = length < (int)sizeof folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file < 0) return;
    (void)fsync(file);
    close(file);
}

/* Whether the name aside still is that of the open file. */
static bool is_there(const trli_new_file *file)
{
    struct stat named, opened;
    return lstat(file->aside, &named) == 0 && fstat(file->file, &opened) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

static void say(char reason[TRLI_FILE_REASON], int number)
{
    snprintf(reason, TRLI_FILE_REASON, "%s%s", strerror(number), advice(number));
}

bool trli_file_publish(trli_new_file *file, char reason[TRLI_FILE_REASON])
{
    const char *refusal = NULL;
    int number = 0;
    if (fsync(file->file))
        number = errno;
    else if ((refusal = trli_file_refusal(file->path, false)))
        snprintf(reason, TRLI_FILE_REASON, "%s", refusal);
    else if (!is_there(file))
        snprintf(reason, TRLI_FILE_REASON, "%s", "the file or its folder was removed or replaced meanwhile");
    else if (rename(file->aside, file->path))
        number = errno;
    else
        file->named = true;
    if (number) say(reason, number);
    if (file->named) synchronise_folder(file->path);
    return file->named;
}

trl_err trli_file_fail_to_publish(const trli_new_file *file, const char *reason)
{
    return trl_fail(file->ctx, TRL_ERR_IO, NULL, "cannot write '%s': %s", file->path, reason);
}

trl_err trli_file_end(trli_new_file *file, trl_err ended)
{
    char reason[TRLI_FILE_REASON];
    if (!file->path) return ended;
    if (ended == TRL_OK && file->aside && !file->named && !trli_file_publish(file, reason))
        ended = trli_file_fail_to_publish(file, reason);
    if (ended != TRL_OK && file->aside && !file->named && is_there(file)) (void)unlink(file->aside);
    release(file);
    return ended;
}

static trl_err write_new(trl_context *ctx, const char *path, bool streams, const void *bytes, size_t size)
{
    trli_new_file file;
    trl_err err = trli_file_begin(ctx, path, streams, &file);
    if (err != TRL_OK) return err;
    int number = trli_file_put(file.file, bytes, size, file.aside ? 0 : -1);
    return trli_file_end(&file, number ? trli_file_fail(ctx, "write", path, number) : TRL_OK);
}

trl_err trli_file_replace(trl_context *ctx, const char *path, const void *bytes, size_t size)
{
    return write_new(ctx, path, false, bytes, size);
}

trl_err trli_file_write(trl_context *ctx, const char *path, const void *bytes, size_t size)
{
    return write_new(ctx, path, true, bytes, size);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool trli_folder_list(trl_context *ctx, const char *path, bool (*wanted)(const char *name), trli_names *names)
{
    int number = 0;
    *names = (trli_names){0};
    DIR *stream = opendir(path);
    if (!stream) return false;
    for (struct dirent *item; !number && (errno = 0, item = readdir(stream));) {
        if (!wanted(item->d_name)) continue;
        if (trli_make_room(ctx, &names->name, names->n, 1, &names->capacity, sizeof *names->name) &&
            (names->name[names->n] = trli_copy_text(ctx, item->d_name)))
            ++names->n;
        else
            number = ENOMEM;
    }
    if (!number) number = errno;
    closedir(stream);
    if (number) trli_names_free(names);
    if (names->n > 1) qsort(names->name, (size_t)names->n, sizeof *names->name, compare_names);
    errno = number;
    return number == 0;
}

void trli_names_free(trli_names *names)
{
    for (int i = 0; i < names->n; ++i) trli_free(names->name[i]);
    trli_free(names->name);
    *names = (trli_names){0};
}

void trli_folder_sweep(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    trli_aside_sweep(folder, false);
    close(folder);
}

/* ---- reading ---- */

const char *trli_file_kind(mode_t mode)
{
    return S_ISREG(mode)                    ? "a file"
           : S_ISDIR(mode)                  ? "a folder"
           : S_ISFIFO(mode)                 ? "a pipe"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                            : "something else than a file";
}

/* The kind of the file is checked before it is opened, because opening a device may act on the device; and again after
 * that, because the file may have been replaced between the two. */
int trli_file_open(const char *path, off_t *size, char reason[TRLI_FILE_REASON])
{
    struct stat status;
    int file = -1;
    *size = 0;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (file >= 0 && fstat(file, &status)) {
            close(file);
            file = -1;
        }
    } else if (stat(path, &status) == 0) {
        snprintf(reason, TRLI_FILE_REASON, "it is %s, not a file", trli_file_kind(status.st_mode));
        return -1;
    }
    if (file >= 0 && S_ISREG(status.st_mode)) {
        *size = status.st_size;
        return file;
    }
    snprintf(reason, TRLI_FILE_REASON, "%s", file < 0 ? strerror(errno) : "it was replaced meanwhile");
    if (file >= 0) close(file);
    return -1;
}

/* Bytes until the file's end, or as many as there is room for; -1 with errno. */
static ssize_t read_all(int file, char *bytes, size_t room)
{
    size_t got = 0;
    while (got < room) {
        ssize_t n = read(file, bytes + got, room - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

trl_err trli_file_read(trl_context *ctx, trl_err class, const trl_place *place, const char *path, off_t most,
                       char **bytes, size_t *size)
{
    char reason[TRLI_FILE_REASON];
    off_t length;
    ssize_t got = 0;
    trl_err err = TRL_OK;
    *bytes = NULL;
    int file = trli_file_open(path, &length, reason);
    if (file < 0) return trl_fail(ctx, class, place, "cannot read '%s': %s", path, reason);
    if (length > most)
        TRL_TRY(
            trl_fail(ctx, class, place, "cannot read '%s': it is larger than %lld MB", path, (long long)most >> 20));
    *bytes = trli_new(ctx, (size_t)length + 1, 1);
    if (!*bytes) TRL_TRY(trli_no_memory(ctx, place, "to read '%s' of %lld bytes", path, (long long)length));
    got = read_all(file, *bytes, (size_t)length);
    if (got < 0) TRL_TRY(trl_fail(ctx, class, place, "cannot read '%s': %s", path, strerror(errno)));
    (*bytes)[got] = 0;
    *size = (size_t)got;
done:
    close(file);
    if (err == TRL_OK) return TRL_OK;
    trli_free(*bytes);
    *bytes = NULL;
    return err;
}
