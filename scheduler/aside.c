/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "aside_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock_impl.h"

#define PREFIX ".trellis-"

/* A process number belongs to a host and, where the host has several, to a namespace. */
static uint64_t host_digest(void)
{
    char text[512] = "";
    uint64_t digest = 14695981039346656037u;
    (void)gethostname(text, 255);
    size_t used = strnlen(text, 255);
    ssize_t more = readlink("/proc/self/ns/pid", text + used, sizeof text - used);
    if (more > 0) used += (size_t)more;
    for (size_t i = 0; i < used; ++i) digest = (digest ^ (unsigned char)text[i]) * 1099511628211u;
    return digest;
}

void trli_aside_name(char name[TRLI_ASIDE_ROOM])
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)trli_now_ns() * 0x9e3779b97f4a7c15u;
    snprintf(name, TRLI_ASIDE_ROOM, PREFIX "%016llx-%ld-%016llx", (unsigned long long)host_digest(), (long)getpid(),
             (unsigned long long)number);
}

/* A process that ended may stay listed until its parent, which may be busy, asks how it ended. */
static bool has_ended(pid_t process)
{
    char path[64], text[512];
    if (kill(process, 0) != 0) return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = 0;
    const char *state = strrchr(text, ')'); /* behind the command, in which anything may stand */
    return state && (strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0);
}

/* Whether no process writes to a file, or in a folder, of this name any more. */
static bool is_left(const char *name, const struct stat *status)
{
    const time_t day = 86400;
    unsigned long long host, number;
    long process;
    if (sscanf(name, PREFIX "%16llx-%ld-%16llx", &host, &process, &number) != 3 || process <= 0) return false;
    if (status->st_uid != geteuid()) return false;
    if (host == host_digest()) return has_ended((pid_t)process);
    return time(NULL) - status->st_mtime > day;
}

static DIR *list(int folder)
{
    int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = listed >= 0 ? fdopendir(listed) : NULL;
    if (!stream && listed >= 0) close(listed);
    return stream;
}

void trli_aside_empty(int folder)
{
    DIR *stream = list(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(folder, entry->d_name, 0);
    if (stream) closedir(stream);
}

static void remove_folder(int parent, const char *name)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    trli_aside_empty(folder);
    close(folder);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void trli_aside_sweep(int folder, bool folders)
{
    struct stat status;
    DIR *stream = list(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) || !is_left(entry->d_name, &status)) continue;
        if (S_ISREG(status.st_mode)) (void)unlinkat(folder, entry->d_name, 0);
        if (folders && S_ISDIR(status.st_mode)) remove_folder(folder, entry->d_name);
    }
    if (stream) closedir(stream);
}
