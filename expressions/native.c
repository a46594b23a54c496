/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The cache is a folder of the user alone. An entry is named by everything that its content depends on: the text, the compiler, its
 * options and the processor. A library is written aside, its digest is appended (loaders ignore what follows their tables), and it is
 * renamed into place: whoever reads an entry, of this rank or another, finds it whole or does not find it; one whose digest is
 * wrong is made again. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock_impl.h"
#include "native_impl.h"

enum {
    LIMIT_S = 120, /* of one compiler */
    DEFER_S = 15   /* what ranks other than the first wait for its results, before they compile themselves */
};

static const char *const options[] = {"-O3",
                                      "-march=native",
#if defined(__x86_64__)
                                      "-mprefer-vector-width=512",
#endif
                                      "-std=gnu11",
                                      "-fPIC",
                                      "-shared",
                                      "-w",
                                      "-ffp-contract=off",
                                      "-fno-math-errno",
                                      "-fno-trapping-math"};
enum { OPTIONS = sizeof options / sizeof *options };

typedef enum state { WAITING, AT_WORK, LOADED, FAILED } state;

typedef struct job {
    char *text; /* NULL once loaded or failed */
    char digest[TRLI_DIGEST_TEXT];
    state state;
    pid_t pid;
    double start; /* s; when it was asked for, then when its compiler started */
    int nfns, fns_capacity;
    trli_native_fn **fn; /* whom to tell */
    trli_native_fn found;
    void *library;
} job;

struct trli_compiler {
    trl_context *ctx;
    char program[TRLI_PATH_ROOM]; /* of the compiler; "": none */
    trli_cache cache;
    uint64_t machine[2]; /* digest of the compiler, its options and the processor */
    job *job;
    int njobs, capacity;
    int compiled, cached, failed;
    char why[512];
};

/* ---- the compiler and the cache ---- */

/* Only the first is kept; later ones tend to follow from it. */
static void note(trli_compiler *c, const char *what, const char *detail)
{
    const int most = 300;
    if (c->why[0] == '\0') snprintf(c->why, sizeof c->why, "%.*s%s%.*s", 150, what, *detail ? ": " : "", most, detail);
}

static bool is_program(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *name, char path[TRLI_PATH_ROOM])
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) return snprintf(path, TRLI_PATH_ROOM, "%s", name) < TRLI_PATH_ROOM && is_program(path);
    while (folders && *folders) {
        int n = (int)strcspn(folders, ":");
        if (n > 0 && snprintf(path, TRLI_PATH_ROOM, "%.*s/%s", n, folders, name) < TRLI_PATH_ROOM && is_program(path))
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

static void find_program(trli_compiler *c)
{
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *wanted = getenv("TRELLIS_CC");
    bool found = wanted && *wanted && find_in_path(wanted, c->program);
    if (wanted && *wanted && !found) note(c, "TRELLIS_CC is no program that can be run", wanted);
    for (size_t i = 0; !(wanted && *wanted) && !found && i < sizeof names / sizeof *names; ++i)
        found = find_in_path(names[i], c->program);
    if (found) return;
    c->program[0] = '\0';
    note(c, "there is no C compiler (cc, gcc or clang) in PATH", "");
}

static void digest_machine(trli_compiler *c)
{
    struct stat s;
    char real[TRLI_PATH_ROOM];
    trli_digest_start(c->machine);
    if (realpath(c->program, real) && stat(real, &s) == 0) {
        trli_digest_bytes(c->machine, real, strlen(real));
        trli_digest_bytes(c->machine, &s.st_size, sizeof s.st_size);
        trli_digest_bytes(c->machine, &s.st_mtim, sizeof s.st_mtim);
    }
    for (int i = 0; i < OPTIONS; ++i) trli_digest_bytes(c->machine, options[i], strlen(options[i]) + 1);
    trli_digest_bytes(c->machine, trli_kernel_prelude, strlen(trli_kernel_prelude));
    trli_digest_processor(c->machine);
}

trl_err trli_compiler_create(trl_context *ctx, trli_compiler **compiler)
{
    trli_compiler *c = calloc(1, sizeof *c);
    *compiler = c;
    if (!c) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for a compiler of kernels");
    c->ctx = ctx;
    find_program(c);
    if (!trli_cache_open(&c->cache))
        note(c, "there is no folder for compiled kernels that is this user's alone", strerror(errno));
    if (c->program[0]) digest_machine(c);
    return TRL_OK;
}

/* ---- entries of the cache ---- */

/* DIGEST.suffix, or with `own` a name that no other process uses. */
static void path_of(const trli_compiler *c, const job *j, bool own, const char *suffix, char path[TRLI_PATH_ROOM])
{
    if (own)
        snprintf(path, TRLI_PATH_ROOM, "%.*s/%s.%ld%s", TRLI_PATH_ROOM - 80, c->cache.folder, j->digest, (long)getpid(),
                 suffix);
    else
        snprintf(path, TRLI_PATH_ROOM, "%.*s/%s%s", TRLI_PATH_ROOM - 80, c->cache.folder, j->digest, suffix);
}

static bool load(trli_compiler *c, job *j)
{
    char library[TRLI_PATH_ROOM], wanted[TRLI_DIGEST_TEXT] = "", found[TRLI_DIGEST_TEXT];
    path_of(c, j, false, ".so", library);
    if (!trli_digest_file(library, found, TRLI_DIGEST_TEXT - 1, wanted) || strcmp(wanted, found) != 0) return false;
    j->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!j->library) {
        note(c, "a compiled kernel cannot be loaded", dlerror());
        return false;
    }
    void *symbol = dlsym(j->library, "trl_kernel");
    memcpy(&j->found, &symbol, sizeof symbol);
    return j->found != NULL;
}

static void remove_own(const trli_compiler *c, const job *j)
{
    static const char *const suffixes[] = {".c", ".so", ".log"};
    char path[TRLI_PATH_ROOM];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        path_of(c, j, true, suffixes[i], path);
        (void)unlink(path);
    }
}

/* Move what the compiler wrote into place. */
static bool publish(trli_compiler *c, const job *j)
{
    char own[TRLI_PATH_ROOM], library[TRLI_PATH_ROOM], digest[TRLI_DIGEST_TEXT];
    path_of(c, j, true, ".so", own);
    path_of(c, j, false, ".so", library);
    if (!trli_digest_file(own, digest, 0, NULL)) return false;
    FILE *file = fopen(own, "ab");
    if (!file) return false;
    bool written = fputs(digest, file) >= 0;
    return fclose(file) == 0 && written && rename(own, library) == 0;
}

/* ---- jobs ---- */

static void settle(trli_compiler *c, job *j, state state)
{
    j->state = state;
    for (int i = 0; i < j->nfns; ++i) *j->fn[i] = j->found;
    if (state == FAILED) ++c->failed;
    free(j->text);
    j->text = NULL;
}

static bool spawn(const trli_compiler *c, job *j, char *const *argv, const char *log)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int status = -1;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    if (posix_spawnattr_init(&attributes) == 0) {
        /* A group of its own: what a user types at the terminal ends the run, which then ends its compilers. */
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        (void)posix_spawnattr_setpgroup(&attributes, 0);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        (void)posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
        status = posix_spawn(&j->pid, c->program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return status == 0;
}

static void start(trli_compiler *c, job *j)
{
    char source[TRLI_PATH_ROOM], library[TRLI_PATH_ROOM], log[TRLI_PATH_ROOM];
    const char *argv[OPTIONS + 5];
    int n = 0;
    path_of(c, j, true, ".c", source);
    path_of(c, j, true, ".so", library);
    path_of(c, j, true, ".log", log);
    argv[n++] = c->program;
    for (int i = 0; i < OPTIONS; ++i) argv[n++] = options[i];
    argv[n++] = "-o";
    argv[n++] = library;
    argv[n++] = source;
    argv[n] = NULL;
    remove_own(c, j); /* of an earlier process of this number */
    j->start = trli_clock();
    if (!trli_cache_write(source, trli_kernel_prelude, j->text)) {
        note(c, "the text of a kernel cannot be written to the cache", strerror(errno));
        settle(c, j, FAILED);
    } else if (!spawn(c, j, (char *const *)argv, log)) {
        note(c, "the C compiler cannot be started", c->program);
        settle(c, j, FAILED);
    } else {
        j->state = AT_WORK;
    }
}

/* The first line of what the compiler said. */
static void note_log(trli_compiler *c, const job *j)
{
    char path[TRLI_PATH_ROOM], line[300] = "";
    path_of(c, j, true, ".log", path);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file)) line[strcspn(line, "\n")] = '\0';
    if (file) fclose(file);
    note(c, "the C compiler failed", line);
}

static void finish(trli_compiler *c, job *j, int status)
{
    bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well)
        note_log(c, j);
    else if (!publish(c, j))
        note(c, "a compiled kernel cannot be stored in the cache", strerror(errno));
    else if (load(c, j))
        ++c->compiled;
    remove_own(c, j);
    settle(c, j, j->found ? LOADED : FAILED);
}

static void stop(const job *j)
{
    int status;
    (void)kill(-j->pid, SIGKILL);
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR) {
    }
}

/* Returns whether the job's compiler is still at work. */
static bool check(trli_compiler *c, job *j)
{
    int status = 0;
    pid_t ended = waitpid(j->pid, &status, WNOHANG);
    if (ended == 0 && trli_clock() - j->start > LIMIT_S) {
        stop(j);
        note(c, "the C compiler did not end in time", c->program);
        ended = j->pid;
        status = -1;
    }
    if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
    finish(c, j, ended < 0 ? -1 : status);
    return false;
}

/* Whether a job waits for the first rank, which compiles the same: then its result is looked for. */
static bool defer(trli_compiler *c, job *j)
{
    if (trl_context_rank(c->ctx) == 0 || c->cache.temporary || trli_clock() - j->start > DEFER_S) return false;
    if (!load(c, j)) return true;
    ++c->cached;
    settle(c, j, LOADED);
    return true;
}

int trli_compiler_poll(trli_compiler *c, bool wait)
{
    int left, at_work;
    for (;;) {
        left = at_work = 0;
        for (int i = 0; i < c->njobs; ++i)
            if (c->job[i].state == AT_WORK && check(c, &c->job[i])) ++at_work;
        for (int i = 0; i < c->njobs; ++i) {
            job *j = &c->job[i];
            if (j->state == WAITING && !defer(c, j) && at_work < trl_context_threads(c->ctx)) {
                start(c, j);
                at_work += j->state == AT_WORK;
            }
            left += j->state == WAITING || j->state == AT_WORK;
        }
        if (!wait || left == 0) return left;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* ---- asking ---- */

static trl_err tell(trli_compiler *c, job *j, trli_native_fn *fn)
{
    if (j->nfns == j->fns_capacity) {
        int more = j->fns_capacity ? 2 * j->fns_capacity : 4;
        trli_native_fn **longer = realloc(j->fn, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(c->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d kernels", more);
        j->fn = longer;
        j->fns_capacity = more;
    }
    j->fn[j->nfns++] = fn;
    *fn = j->found;
    return TRL_OK;
}

static trl_err add_job(trli_compiler *c, const char *text, const char digest[TRLI_DIGEST_TEXT], job **added)
{
    if (c->njobs == c->capacity) {
        int more = c->capacity ? 2 * c->capacity : 16;
        job *longer = realloc(c->job, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(c->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d kernels", more);
        c->job = longer;
        c->capacity = more;
    }
    job *j = *added = &c->job[c->njobs];
    *j = (job){.text = strdup(text), .start = trli_clock()};
    if (!j->text) return trl_fail(c->ctx, TRL_ERR_MEMORY, NULL, "no memory for the text of a kernel");
    memcpy(j->digest, digest, TRLI_DIGEST_TEXT);
    ++c->njobs;
    return TRL_OK;
}

trl_err trli_compiler_add(trli_compiler *c, const char *text, trli_native_fn *fn)
{
    uint64_t key[2] = {c->machine[0], c->machine[1]};
    char digest[TRLI_DIGEST_TEXT];
    job *j = NULL;
    trl_err err = TRL_OK;
    *fn = NULL;
    if (!c->program[0] || !c->cache.folder[0]) return TRL_OK;
    trli_digest_bytes(key, text, strlen(text));
    trli_digest_write(key, digest);
    for (int i = 0; i < c->njobs && !j; ++i)
        if (strcmp(c->job[i].digest, digest) == 0) j = &c->job[i];
    if (j) return tell(c, j, fn);
    TRL_TRY(add_job(c, text, digest, &j));
    TRL_TRY(tell(c, j, fn));
    if (!load(c, j)) goto done;
    ++c->cached;
    settle(c, j, LOADED);
done:
    return err;
}

bool trli_compiler_path(const trli_compiler *c, const char *text, const void *size, size_t bytes,
                        char path[TRLI_PATH_ROOM])
{
    uint64_t digest[2] = {c->machine[0], c->machine[1]};
    char name[TRLI_DIGEST_TEXT];
    trli_digest_bytes(digest, text, strlen(text));
    trli_digest_bytes(digest, size, bytes);
    trli_digest_write(digest, name);
    return c->cache.folder[0] && !c->cache.temporary &&
           snprintf(path, TRLI_PATH_ROOM, "%.*s/%s.way", TRLI_PATH_ROOM - 80, c->cache.folder, name) > 0;
}

void trli_compiler_get_stats(const trli_compiler *c, int *compiled, int *cached, int *failed, const char **why)
{
    *compiled = c->compiled;
    *cached = c->cached;
    *failed = c->failed;
    *why = c->why[0] ? c->why : NULL;
}

void trli_compiler_destroy(trli_compiler **compiler)
{
    trli_compiler *c = *compiler;
    *compiler = NULL;
    if (!c) return;
    for (int i = 0; i < c->njobs; ++i) {
        job *j = &c->job[i];
        char path[TRLI_PATH_ROOM];
        if (j->state == AT_WORK) {
            stop(j);
            remove_own(c, j);
        }
        if (j->library) dlclose(j->library);
        path_of(c, j, false, ".so", path);
        if (c->cache.temporary) (void)unlink(path);
        free(j->text);
        free(j->fn);
    }
    trli_cache_close(&c->cache);
    free(c->job);
    free(c);
}
