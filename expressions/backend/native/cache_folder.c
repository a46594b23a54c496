/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The way to the folder of the cache. A folder that another user owns, or may write to, is one in which that user may
 * put another folder in the place of the next; one with the sticky bit lets only owners rename, and the next
 * component's owner is looked at anyway. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <trl_context.h>

#include "cache_impl.h"

enum { LINKS_MOST = 40 };

typedef struct walk {
    int at;                    /* the folder reached, open by O_PATH; -1: none */
    char seen[TRLI_PATH_ROOM]; /* its path, for messages */
    char rest[TRLI_PATH_ROOM]; /* the components to come */
    int links;
    char *why;
    bool *unsafe;
} walk;

static bool TRL_PRINTF(3, 4) refuse(walk *w, bool unsafe, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w->why, TRLI_WHY_ROOM, format, arguments);
    va_end(arguments);
    *w->unsafe = unsafe;
    return false;
}

/* A group that is the user's own, as systems make them that let groups write by default: it has the user's name, and no
 * other member. */
static bool is_own_group(gid_t gid)
{
    const struct passwd *user = getpwuid(geteuid());
    char name[256] = "";
    if (user) snprintf(name, sizeof name, "%s", user->pw_name);
    const struct group *group = name[0] ? getgrgid(gid) : NULL;
    if (!group || strcmp(group->gr_name, name) != 0) return false;
    for (char **member = group->gr_mem; *member; ++member)
        if (strcmp(*member, name) != 0) return false;
    return true;
}

static bool others_may_write(const struct stat *s)
{
    if (s->st_mode & S_IWOTH) return true;
    return s->st_mode & S_IWGRP && s->st_gid != 0 && !is_own_group(s->st_gid);
}

/* Whether only this user and root can exchange what is in the folder. */
static bool check_way(walk *w, const struct stat *s)
{
    const int most = 300;
    if (s->st_uid != 0 && s->st_uid != geteuid())
        return refuse(w, true, "the folder '%.*s' belongs to another user (%lu), who could exchange what is in it",
                      most, w->seen, (unsigned long)s->st_uid);
    if (!(s->st_mode & S_ISVTX) && others_may_write(s))
        return refuse(
            w, true,
            "others may write to the folder '%.*s', and could exchange what is in it; take that from them with "
            "chmod go-w",
            most, w->seen);
    return true;
}

static bool check_own(walk *w, const struct stat *s)
{
    const int most = 300;
    if (s->st_uid != geteuid())
        return refuse(w, true, "the folder '%.*s' belongs to another user (%lu)", most, w->seen,
                      (unsigned long)s->st_uid);
    if (s->st_mode & (S_IWGRP | S_IWOTH))
        return refuse(w, true, "others may write to the folder '%.*s'; take that from them with chmod go-w", most,
                      w->seen);
    return true;
}

/* Put what a link says in front of the components to come. */
static bool follow(walk *w, int link, const struct stat *s, const char *name)
{
    char target[TRLI_PATH_ROOM], rest[TRLI_PATH_ROOM];
    const int most = 300;
    if (s->st_uid != 0 && s->st_uid != geteuid())
        return refuse(w, true, "the link '%.*s/%.*s' belongs to another user (%lu)", most, w->seen, most, name,
                      (unsigned long)s->st_uid);
    ssize_t length = readlinkat(link, "", target, sizeof target - 1);
    if (length <= 0 || ++w->links > LINKS_MOST)
        return refuse(w, false, "the link '%.*s/%.*s' leads nowhere", most, w->seen, most, name);
    target[length] = 0;
    if (snprintf(rest, sizeof rest, "%s/%s", target, w->rest) >= (int)sizeof rest)
        return refuse(w, false, "its path is too long");
    memcpy(w->rest, rest, sizeof rest);
    if (target[0] != '/') return true;
    close(w->at);
    w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    w->seen[0] = 0;
    return w->at >= 0 || refuse(w, false, "'/': %s", strerror(errno));
}

static int components_of(const char *path)
{
    int n = 0;
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        path += strcspn(path, "/");
        ++n;
    }
    return n;
}

/* Take the next component off the rest. */
static void next_name(walk *w, char name[256])
{
    const char *start = w->rest + strspn(w->rest, "/");
    const size_t length = strcspn(start, "/");
    snprintf(name, 256, "%.*s", (int)length, start);
    memmove(w->rest, start + length, strlen(start + length) + 1);
}

/* Go on by one component. */
static bool enter(walk *w, bool own, int make)
{
    const int most = 300;
    char name[256];
    struct stat s;
    next_name(w, name);
    const bool last = components_of(w->rest) == 0;
    int next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT && components_of(w->rest) < make &&
        (mkdirat(w->at, name, 0700) == 0 || errno == EEXIST)) /* another rank may make it at the same moment */
        next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || fstat(next, &s)) {
        const int number = errno;
        if (next >= 0) close(next);
        return refuse(w, false, "'%.*s/%.*s': %s", most, w->seen, most, name, strerror(number));
    }
    if (S_ISLNK(s.st_mode)) {
        const bool followed = follow(w, next, &s, name);
        close(next);
        return followed;
    }
    close(w->at);
    w->at = next;
    const size_t used = strlen(w->seen);
    snprintf(w->seen + used, sizeof w->seen - used, "/%s", name);
    if (!S_ISDIR(s.st_mode)) return refuse(w, false, "'%.*s' is no folder", most, w->seen);
    return own && last ? check_own(w, &s) : check_way(w, &s);
}

int trli_folder_open(const char *path, bool own, int make, char why[TRLI_WHY_ROOM], bool *unsafe)
{
    walk w = {.why = why, .unsafe = unsafe, .at = -1};
    struct stat s;
    char here[TRLI_PATH_ROOM] = "";
    bool good = path[0] == '/' || getcwd(here, sizeof here);
    const int length = snprintf(w.rest, sizeof w.rest, "%s/%s", here, path);
    int folder = -1;
    *unsafe = false;
    why[0] = 0;
    if (!good) (void)refuse(&w, false, "the present folder is unknown: %s", strerror(errno));
    if (good && length >= (int)sizeof w.rest) good = refuse(&w, false, "its path is too long");
    if (good) w.at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (good && (w.at < 0 || fstat(w.at, &s))) good = refuse(&w, false, "'/': %s", strerror(errno));
    good = good && check_way(&w, &s);
    while (good && components_of(w.rest) > 0) good = enter(&w, own, make);
    if (good) {
        folder = openat(w.at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || faccessat(folder, ".", W_OK | X_OK, AT_EACCESS)) {
            (void)refuse(&w, false, "'%.*s': %s", 300, w.seen, strerror(errno));
            if (folder >= 0) close(folder);
            folder = -1;
        }
    }
    if (w.at >= 0) close(w.at);
    return folder;
}
