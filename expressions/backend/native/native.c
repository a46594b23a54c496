/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An entry of the cache is named by everything that its content depends on: the text, the compiler, its options and the
 * processor. Compilers work in a folder that only this process uses, by names relative to it. A library that was loaded
 * and has its function is given its digest (loaders ignore what follows their tables) and renamed into the cache:
 * whoever reads an entry, of this rank or another, finds it whole or does not find it; one that is damaged, or another
 * user's, is made again. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "gifts_impl.h"
#include "native_impl.h"
#include "spawn_impl.h"

enum { LIMIT_S = 120 /* of one compiler */ };

static const char *const options[] = {"-O3",
                                      "-march=native",
#if defined(__x86_64__)
                                      "-mprefer-vector-width=512",
#endif
                                      "-std=gnu11",
                                      "-fPIC",
                                      "-shared",
                                      "-w",
                                      "-fno-math-errno",
                                      "-fno-trapping-math"};
enum { OPTIONS = sizeof options / sizeof *options };

/* With fast_math a product and the sum that takes it are rounded once. Sums keep their order: the functions of the
 * prelude round by adding and subtracting large numbers, which reassociation would remove. */
static const char *contraction(bool fast_math)
{
    return fast_math ? "-ffp-contract=fast" : "-ffp-contract=off";
}

typedef enum state { ASKED, WAITING, AT_WORK, LOADED, FAILED } state; /* ASKED: the cache was not looked at */

typedef struct job {
    char *text; /* NULL once loaded or failed */
    char digest[TRLI_DIGEST_TEXT];
    state state;
    pid_t pid;
    double start; /* s; when its compiler started */
    int nfns, fns_capacity;
    trli_native_fn **fn; /* whom to tell */
    trli_native_fn found;
    void *library;
} job;

enum { FILE_ROOM = TRLI_DIGEST_TEXT + 8 }; /* of a name in the workshop */

struct trli_compiler {
    trl_context *ctx;
    bool fast_math;
    char program[TRLI_PATH_ROOM]; /* of the compiler; "": none */
    trli_cache cache;
    trli_workshop workshop; /* opened for the first job that needs a compiler */
    uint64_t machine[2];    /* digest of the compiler, its options and the processor */
    job *job;
    int njobs, capacity;
    uint64_t asked[2]; /* digest of all texts, in their order */
    trli_gifts *share; /* of the jobs; NULL: each rank does its own */
    int compiled, cached, received, failed;
    double seconds; /* of compilers, for those compiled */
    char why[512];
};

/* ---- the compiler and the cache ---- */

/* Only the first is kept; later ones tend to follow from it. */
static void note(trli_compiler *c, const char *what, const char *detail)
{
    const int most = 300;
    if (c->why[0] == '\0') snprintf(c->why, sizeof c->why, "%.*s%s%.*s", 150, what, *detail ? ": " : "", most, detail);
}

static void find_program(trli_compiler *c)
{
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *wanted = getenv("TRELLIS_CC");
    bool found = wanted && *wanted && trli_program_find(wanted, c->program);
    if (wanted && *wanted && !found) note(c, "TRELLIS_CC is no program that can be run", wanted);
    for (size_t i = 0; !(wanted && *wanted) && !found && i < sizeof names / sizeof *names; ++i)
        found = trli_program_find(names[i], c->program);
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
    trli_digest_bytes(c->machine, contraction(c->fast_math), strlen(contraction(c->fast_math)) + 1);
    trli_digest_bytes(c->machine, trli_kernel_prelude, strlen(trli_kernel_prelude));
    trli_digest_processor(c->machine);
}

trl_err trli_compiler_create(trl_context *ctx, bool fast_math, trli_compiler **compiler)
{
    trli_compiler *c = trli_new(ctx, 1, sizeof *c);
    *compiler = c;
    if (!c) return trli_no_memory(ctx, NULL, "for a compiler of kernels");
    c->ctx = ctx;
    c->fast_math = fast_math;
    trli_digest_start(c->asked);
    find_program(c);
    trli_cache_open(&c->cache);
    c->workshop = (trli_workshop){.parent = -1, .folder = -1};
    if (c->program[0]) digest_machine(c);
    if (c->program[0] && c->cache.told)
        trl_warn(ctx, NULL,
                 "kernels are compiled anew in each run, because their cache '%.300s' is not used: %s; "
                 "TRELLIS_CACHE_DIR may "
                 "name another folder",
                 c->cache.path, c->cache.why);
    return TRL_OK;
}

/* ---- libraries ---- */

static void name_of(const job *j, const char *suffix, char name[FILE_ROOM])
{
    snprintf(name, FILE_ROOM, "%s%s", j->digest, suffix);
}

/* The library itself, whatever its name leads to by now. Loaders take a path that they have seen for the library that
 * they know, and numbers of descriptors come again: so slashes and dots, which mean nothing, spell out which file it
 * is. */
static bool path_of_open(int file, char path[TRLI_PATH_ROOM])
{
    struct stat s;
    char *end = stpcpy(path, "/proc/self");
    if (fstat(file, &s)) return false;
    const uint64_t number[2] = {s.st_ino, s.st_dev};
    for (int bit = 0; bit < 128; ++bit) end = stpcpy(end, number[bit / 64] >> bit % 64 & 1 ? "/." : "/");
    snprintf(end, TRLI_PATH_ROOM - (size_t)(end - path), "/fd/%d", file);
    return access(path, F_OK) == 0;
}

/* Load the open file. made: in the workshop, under this name. */
static bool load(trli_compiler *c, job *j, int file, const char *made)
{
    char path[TRLI_PATH_ROOM];
    if (!path_of_open(file, path)) {
        /* Without /proc there is no way from a descriptor to the loader. What was just made has a path that is safe. */
        if (!made || !c->workshop.path[0]) return false;
        snprintf(path, sizeof path, "%.*s/%s", TRLI_PATH_ROOM - FILE_ROOM - 2, c->workshop.path, made);
    }
    j->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!j->library) {
        const char *reason = dlerror(), *colon = reason ? strstr(reason, ": ") : NULL;
        note(c, "a compiled kernel cannot be loaded", colon ? colon + 2 : "unknown reason");
        return false;
    }
    void *symbol = dlsym(j->library, "trl_kernel");
    memcpy(&j->found, &symbol, sizeof symbol);
    if (j->found) return true;
    dlclose(j->library);
    j->library = NULL;
    note(c, "a compiled kernel lacks its function trl_kernel", "");
    return false;
}

/* Tell the other ranks of the node what became of a job. file: of the library, with so many bytes; -1: there is
 * none. */
static void give(const trli_compiler *c, const job *j, int file, size_t bytes)
{
    const int item = (int)(j - c->job);
    if (!c->share || !trli_gifts_is_mine(c->share, item)) return;
    unsigned char *content = file >= 0 ? trli_new(c->ctx, bytes, 1) : NULL;
    if (content && pread(file, content, bytes, 0) == (ssize_t)bytes)
        trli_gifts_give(c->share, item, TRLI_GIFT_MADE, content, bytes);
    else
        trli_gifts_give(c->share, item, TRLI_GIFT_FAILED, c->why, strlen(c->why));
    trli_free(content);
}

/* From the cache, if it has a whole one. What is wrong with an entry is no trouble: it is made again. */
static bool load_entry(trli_compiler *c, job *j)
{
    char name[FILE_ROOM], wanted[TRLI_DIGEST_TEXT] = "", found[TRLI_DIGEST_TEXT];
    char why[sizeof c->why];
    name_of(j, ".so", name);
    int file = trli_cache_entry(&c->cache, name);
    if (file < 0) return false;
    memcpy(why, c->why, sizeof why);
    const bool loaded = trli_digest_file(file, found, TRLI_DIGEST_TEXT - 1, wanted) && strcmp(wanted, found) == 0 &&
                        load(c, j, file, NULL);
    memcpy(c->why, why, sizeof why);
    if (loaded) give(c, j, file, (size_t)lseek(file, 0, SEEK_END) - (TRLI_DIGEST_TEXT - 1));
    close(file);
    return loaded;
}

/* Keep what was made, if there is a cache; a full disk is no trouble, either. */
static void publish(const trli_compiler *c, const char *name, int file)
{
    char digest[TRLI_DIGEST_TEXT];
    if (c->cache.folder < 0 || !trli_digest_file(file, digest, 0, NULL) || fchmod(file, 0600)) return;
    const off_t end = lseek(file, 0, SEEK_END);
    if (end < 0 || pwrite(file, digest, strlen(digest), end) != (ssize_t)strlen(digest)) return;
    (void)renameat(c->workshop.folder, name, c->cache.folder, name);
}

/* What the compiler wrote, or another rank's. keep: in the cache. */
static bool take(trli_compiler *c, job *j, bool keep)
{
    char name[FILE_ROOM];
    name_of(j, ".so", name);
    int file = openat(c->workshop.folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        note(c, "the C compiler wrote no library", strerror(errno));
        return false;
    }
    const bool loaded = load(c, j, file, name);
    if (loaded) give(c, j, file, (size_t)lseek(file, 0, SEEK_END));
    if (loaded && keep) publish(c, name, file);
    close(file);
    return loaded;
}

static void clean(const trli_compiler *c, const job *j)
{
    static const char *const suffixes[] = {".c", ".so", ".log"};
    char name[FILE_ROOM];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        name_of(j, suffixes[i], name);
        (void)unlinkat(c->workshop.folder, name, 0);
    }
}

/* ---- jobs ---- */

static void tell_child(const trli_compiler *c, pid_t group, bool started)
{
    const trl_context_options *o = &c->ctx->options;
    if (o->child) o->child(group, started);
}

static void settle(trli_compiler *c, job *j, state state)
{
    j->state = state;
    for (int i = 0; i < j->nfns; ++i) *j->fn[i] = j->found;
    if (state == FAILED) ++c->failed;
    if (state == FAILED) give(c, j, -1, 0);
    trli_free(j->text);
    j->text = NULL;
}

/* The text of a kernel, for the compiler. */
static bool write_source(const trli_compiler *c, const job *j, const char *name)
{
    int file = openat(c->workshop.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream) {
        if (file >= 0) close(file);
        return false;
    }
    const bool written = fputs(trli_kernel_prelude, stream) >= 0 && fputs(j->text, stream) >= 0;
    return fclose(stream) == 0 && written;
}

static void start(trli_compiler *c, job *j)
{
    char source[FILE_ROOM], library[FILE_ROOM], log[FILE_ROOM];
    const char *argv[OPTIONS + 6];
    int n = 0;
    name_of(j, ".c", source);
    name_of(j, ".so", library);
    name_of(j, ".log", log);
    argv[n++] = c->program;
    for (int i = 0; i < OPTIONS; ++i) argv[n++] = options[i];
    argv[n++] = contraction(c->fast_math);
    argv[n++] = "-o";
    argv[n++] = library;
    argv[n++] = source;
    argv[n] = NULL;
    j->start = trli_clock();
    if (c->workshop.folder < 0 && !trli_workshop_open(&c->workshop, &c->cache)) {
        note(c, "there is no folder for compilers to work in", strerror(errno));
        settle(c, j, FAILED);
    } else if (!write_source(c, j, source)) {
        note(c, "the text of a kernel cannot be written", strerror(errno));
        clean(c, j);
        settle(c, j, FAILED);
    } else if (!trli_program_start(c->ctx, c->workshop.folder, (char *const *)argv, log, &j->pid)) {
        note(c, "the C compiler cannot be started", c->program);
        clean(c, j);
        settle(c, j, FAILED);
    } else {
        j->state = AT_WORK;
        tell_child(c, j->pid, true);
    }
}

/* The first line of what the compiler said. */
static void note_log(trli_compiler *c, const job *j)
{
    char name[FILE_ROOM], line[300] = "";
    name_of(j, ".log", name);
    int log = openat(c->workshop.folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = log >= 0 ? fdopen(log, "r") : NULL;
    if (file && fgets(line, sizeof line, file)) line[strcspn(line, "\n")] = '\0';
    if (file) fclose(file);
    if (!file && log >= 0) close(log);
    note(c, "the C compiler failed", line);
}

static void finish(trli_compiler *c, job *j, int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        note_log(c, j);
    else if (take(c, j, true)) {
        ++c->compiled;
        c->seconds += trli_clock() - j->start;
    }
    clean(c, j);
    settle(c, j, j->found ? LOADED : FAILED);
}

/* A compiler that is asked to end removes its own temporary files. */
static void stop(const trli_compiler *c, const job *j)
{
    enum { PATIENCE_MS = 500 };
    int status, waited = 0;
    pid_t ended = 0;
    (void)kill(-j->pid, SIGTERM);
    while ((ended = waitpid(j->pid, &status, WNOHANG)) == 0 && waited++ < PATIENCE_MS)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    (void)kill(-j->pid, SIGKILL); /* all that it started */
    while (ended == 0 && waitpid(j->pid, &status, 0) < 0 && errno == EINTR) {
    }
    tell_child(c, j->pid, false);
}

/* Returns whether the job's compiler is still at work. */
static bool check(trli_compiler *c, job *j)
{
    int status = 0;
    pid_t ended = waitpid(j->pid, &status, WNOHANG);
    if (ended == 0 && trli_clock() - j->start > LIMIT_S) {
        stop(c, j);
        note(c, "the C compiler did not end in time", c->program);
        ended = j->pid;
        status = -1;
    }
    if (ended == 0 || (ended < 0 && errno == EINTR)) return true;
    tell_child(c, j->pid, false);
    finish(c, j, ended < 0 ? -1 : status);
    return false;
}

/* Whether a job is done by what the cache has. */
static bool look_up(trli_compiler *c, job *j)
{
    j->state = WAITING;
    if (!load_entry(c, j)) return false;
    ++c->cached;
    settle(c, j, LOADED);
    return true;
}

/* Put another rank's library where a compiler would have left it. */
static bool write_library(trli_compiler *c, const job *j, const trli_gift *gift)
{
    char name[FILE_ROOM];
    name_of(j, ".so", name);
    if (c->workshop.folder < 0 && !trli_workshop_open(&c->workshop, &c->cache)) {
        note(c, "there is no folder for compilers to work in", strerror(errno));
        return false;
    }
    const int file = openat(c->workshop.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, gift->content, gift->bytes) == (ssize_t)gift->bytes;
    if (!written) note(c, "a kernel compiled by another rank cannot be written", strerror(errno));
    if (file >= 0) close(file);
    return written;
}

/* Take a job's library from the rank that makes it, if it has come. */
static void receive(trli_compiler *c, job *j)
{
    char name[FILE_ROOM];
    trli_gift gift;
    if (!trli_gifts_take(c->share, (int)(j - c->job), &gift)) return;
    name_of(j, ".so", name);
    const int there = trli_cache_entry(&c->cache, name); /* often its maker's, in the same folder */
    if (there >= 0) close(there);
    if (gift.kind == TRLI_GIFT_MADE && write_library(c, j, &gift) && take(c, j, there < 0)) ++c->received;
    if (gift.kind == TRLI_GIFT_FAILED) {
        char why[sizeof c->why] = "a kernel that another rank compiled cannot be received";
        if (gift.bytes > 0) snprintf(why, sizeof why, "%.*s", (int)gift.bytes, (const char *)gift.content);
        if (c->why[0] == '\0') memcpy(c->why, why, sizeof why);
    }
    trli_free(gift.content);
    if (c->workshop.folder >= 0) clean(c, j);
    settle(c, j, j->found ? LOADED : FAILED);
}

static bool is_mine(const trli_compiler *c, const job *j)
{
    return !c->share || trli_gifts_is_mine(c->share, (int)(j - c->job));
}

/* Go on with a job that waits: start its compiler if there is room for one, or look for what another rank made. */
static void go_on(trli_compiler *c, job *j, int *at_work)
{
    if (!is_mine(c, j)) {
        receive(c, j);
    } else if (!(j->state == ASKED && look_up(c, j)) && *at_work < trl_context_threads(c->ctx)) {
        start(c, j);
        *at_work += j->state == AT_WORK;
    }
}

static bool waits(const job *j)
{
    return j->state == ASKED || j->state == WAITING;
}

int trli_compiler_poll(trli_compiler *c, bool wait)
{
    int left, at_work;
    for (;;) {
        left = at_work = 0;
        for (int i = 0; i < c->njobs; ++i)
            if (c->job[i].state == AT_WORK && check(c, &c->job[i])) ++at_work;
        for (int i = 0; i < c->njobs; ++i) {
            if (waits(&c->job[i])) go_on(c, &c->job[i], &at_work);
            left += waits(&c->job[i]) || c->job[i].state == AT_WORK;
        }
        if (!wait || left == 0 || (c->ctx->options.stop && c->ctx->options.stop())) return left;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* ---- asking ---- */

static trl_err tell(trli_compiler *c, job *j, trli_native_fn *fn)
{
    if (!trli_make_room(c->ctx, &j->fn, j->nfns, 1, &j->fns_capacity, sizeof *j->fn))
        return trli_no_memory(c->ctx, NULL, "for %d kernels", j->nfns + 1);
    j->fn[j->nfns++] = fn;
    *fn = j->found;
    return TRL_OK;
}

static trl_err add_job(trli_compiler *c, const char *text, const char digest[TRLI_DIGEST_TEXT], job **added)
{
    if (!trli_make_room(c->ctx, &c->job, c->njobs, 1, &c->capacity, sizeof *c->job))
        return trli_no_memory(c->ctx, NULL, "for %d kernels", c->njobs + 1);
    job *j = *added = &c->job[c->njobs];
    *j = (job){.text = trli_copy_text(c->ctx, text)};
    if (!j->text) return trli_no_memory(c->ctx, NULL, "for the text of a kernel");
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
    if (!c->program[0]) return TRL_OK;
    trli_digest_bytes(key, text, strlen(text));
    trli_digest_write(key, digest);
    for (int i = 0; i < c->njobs && !j; ++i)
        if (strcmp(c->job[i].digest, digest) == 0) j = &c->job[i];
    if (j) return tell(c, j, fn);
    TRL_TRY(add_job(c, text, digest, &j));
    trli_digest_bytes(c->asked, text, strlen(text));
    TRL_TRY(tell(c, j, fn));
    if (trl_context_ranks(c->ctx) == 1) (void)look_up(c, j);
done:
    return err;
}

trl_err trli_compiler_share(trli_compiler *c)
{
    bool *given = NULL;
    trl_err err;
    TRL_TRY(trli_gifts_create(c->ctx, c->njobs, c->asked, &c->share));
    for (int i = 0; i < c->njobs; ++i)
        if (c->job[i].state == ASKED && is_mine(c, &c->job[i])) (void)look_up(c, &c->job[i]);
    if (!c->share) goto done;
    given = trli_new(c->ctx, (size_t)c->njobs, sizeof *given);
    err = given ? TRL_OK : trli_no_memory(c->ctx, NULL, "for %d kernels", c->njobs);
    TRL_TRY(trl_context_agree(c->ctx, err));
    TRL_TRY(trli_gifts_announce(c->share, given));
    for (int i = 0; i < c->njobs; ++i)
        for (; given[i] && waits(&c->job[i]); nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL))
            receive(c, &c->job[i]);
done:
    trli_free(given);
    return err;
}

const trli_cache *trli_compiler_entry(const trli_compiler *c, const char *text, const void *size, size_t bytes,
                                      char name[TRLI_ENTRY_ROOM])
{
    uint64_t digest[2] = {c->machine[0], c->machine[1]};
    char words[TRLI_DIGEST_TEXT];
    trli_digest_bytes(digest, text, strlen(text));
    trli_digest_bytes(digest, size, bytes);
    trli_digest_write(digest, words);
    snprintf(name, TRLI_ENTRY_ROOM, "%s.variant", words);
    return c->cache.folder >= 0 ? &c->cache : NULL;
}

trli_compiler_stats trli_compiler_get_stats(const trli_compiler *c)
{
    trli_compiler_stats s = {.compiled = c->compiled,
                             .cached = c->cached,
                             .received = c->received,
                             .failed = c->failed,
                             .seconds = c->seconds,
                             .keeps = c->cache.folder >= 0,
                             .why = c->why[0] ? c->why : NULL};
    bool started = c->compiled + c->failed + c->received > 0;
    for (int i = 0; i < c->njobs; ++i) {
        started = started || c->job[i].state == AT_WORK;
        s.under_way += c->job[i].state == AT_WORK || waits(&c->job[i]);
    }
    if (!started) s.under_way = 0;
    return s;
}

void trli_compiler_destroy(trli_compiler **compiler)
{
    trli_compiler *c = *compiler;
    *compiler = NULL;
    if (!c) return;
    for (int i = 0; i < c->njobs; ++i) {
        job *j = &c->job[i];
        if (j->state == AT_WORK) stop(c, j);
        if (j->library) dlclose(j->library);
        trli_free(j->text);
        trli_free(j->fn);
    }
    trli_gifts_destroy(&c->share);
    trli_workshop_close(&c->workshop);
    trli_cache_close(&c->cache);
    trli_free(c->job);
    trli_free(c);
}
