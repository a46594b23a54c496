/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* An entry of the cache is named by everything that its function depends on: the text, the compiler, its options and
 * the processor. Kernels that wait for a compiler share one, which makes one library of them: an entry for each, all
 * links to one file. If such a unit does not compile, each of its kernels is compiled alone. Compilers work in a folder
 * that only this process uses, by names relative to it. A library that was loaded and has its functions is given its
 * digest (loaders ignore what follows their tables) and renamed into the cache: whoever reads an entry, of this rank or
 * another, finds it whole or does not find it; one that is damaged, another user's, or without its function is made
 * again. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
#include "unit_impl.h"

enum {
    LIMIT_S = 120,        /* of a compiler, for each of its kernels */
    UNIT_MOST = 16,       /* kernels of one compiler */
    UNIT_BYTES = 64 << 10 /* of their texts, unless there is one: none waits long for others */
};

typedef enum state { ASKED, WAITING, AT_WORK, LOADED, FAILED } state; /* ASKED: the cache was not looked at */

typedef struct job {
    char *text; /* NULL once loaded or failed */
    char digest[TRLI_DIGEST_TEXT];
    state state;
    bool alone; /* it was compiled with others, and that failed */
    int unit;   /* AT_WORK: the first job of its compiler, which has the next two */
    pid_t pid;
    double start; /* s; when the compiler started */
    int within;   /* the job whose library, received before, has this one's function; -1: none */
    int nfns, fns_capacity;
    trli_native_fn **fn; /* whom to tell */
    trli_native_fn found;
    void *library; /* this job's, unless `within` is set */
} job;

struct trli_compiler {
    trl_context *ctx;
    bool fast_math;
    char program[TRLI_PATH_ROOM]; /* of the compiler; "": none */
    trli_cache cache;
    trli_workshop workshop; /* opened for the first job that needs a compiler */
    uint64_t machine[2];    /* digest of the compiler, its options and the processor */
    job *job;
    int njobs, capacity;
    uint64_t asked[2]; /* digest of all entries, in their order */
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
    trli_unit_digest(c->machine, c->fast_math);
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

static bool find_function(trli_compiler *c, job *j, void *library)
{
    char name[TRLI_DIGEST_TEXT + 16];
    snprintf(name, sizeof name, "trl_kernel_%s", j->digest);
    void *symbol = dlsym(library, name);
    memcpy(&j->found, &symbol, sizeof symbol);
    if (j->found)
        j->library = library;
    else
        note(c, "a compiled kernel lacks its function trl_kernel", "");
    return j->found != NULL;
}

/* Load the open file. made: in the workshop, under this name. */
static bool load(trli_compiler *c, job *j, int file, const char *made)
{
    char path[TRLI_PATH_ROOM];
    if (!path_of_open(file, path)) {
        /* Without /proc there is no way from a descriptor to the loader. What was just made has a path that is safe. */
        if (!made || !c->workshop.path[0]) return false;
        snprintf(path, sizeof path, "%.*s/%s", TRLI_PATH_ROOM - TRLI_UNIT_FILE - 2, c->workshop.path, made);
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror(), *colon = reason ? strstr(reason, ": ") : NULL;
        note(c, "a compiled kernel cannot be loaded", colon ? colon + 2 : "unknown reason");
        return false;
    }
    const bool found = find_function(c, j, library);
    if (!found) dlclose(library);
    return found;
}

static bool is_mine(const trli_compiler *c, const job *j)
{
    return !c->share || trli_gifts_is_mine(c->share, (int)(j - c->job));
}

/* Tell the other ranks what became of a job: what library it is in, or in which job's that they were given
 * before. file: of the library, with so many bytes; -1: there is none. */
static void give(const trli_compiler *c, const job *j, int file, size_t bytes)
{
    const int item = (int)(j - c->job);
    if (!c->share || !is_mine(c, j)) return;
    for (int i = 0; file >= 0 && i < c->njobs; ++i)
        if (c->job[i].state == LOADED && c->job[i].library == j->library && is_mine(c, &c->job[i])) {
            trli_gifts_give(c->share, item, TRLI_GIFT_WITHIN, &i, sizeof i);
            return;
        }
    unsigned char *content = file >= 0 ? trli_new(c->ctx, bytes, 1) : NULL;
    if (content && pread(file, content, bytes, 0) == (ssize_t)bytes)
        trli_gifts_give(c->share, item, TRLI_GIFT_MADE, content, bytes);
    else
        trli_gifts_give(c->share, item, TRLI_GIFT_FAILED, c->why, strlen(c->why));
    trli_free(content);
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

/* From the cache, if it has a whole one. What is wrong with an entry is no trouble: it is made again. */
static bool load_entry(trli_compiler *c, job *j)
{
    char name[TRLI_UNIT_FILE], wanted[TRLI_DIGEST_TEXT] = "", found[TRLI_DIGEST_TEXT];
    char why[sizeof c->why];
    trli_unit_file(j->digest, ".so", name);
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

/* Keep what was made, the library of this name with n jobs, if there is a cache; a full disk is no trouble, either. */
static void publish(const trli_compiler *c, const char *name, int file, int n, job *const *jobs)
{
    char digest[TRLI_DIGEST_TEXT], entry[TRLI_UNIT_FILE];
    const int from = c->workshop.folder, to = c->cache.folder;
    if (to < 0 || !trli_digest_file(file, digest, 0, NULL) || fchmod(file, 0600)) return;
    const off_t end = lseek(file, 0, SEEK_END);
    if (end < 0 || pwrite(file, digest, strlen(digest), end) != (ssize_t)strlen(digest)) return;
    for (int i = 0; i < n; ++i) {
        trli_unit_file(jobs[i]->digest, ".so", entry);
        if (jobs[i]->found && strcmp(entry, name) != 0 && linkat(from, name, from, entry, 0) == 0 &&
            renameat(from, entry, to, entry))
            (void)unlinkat(from, entry, 0);
    }
    (void)renameat(from, name, to, name);
}

/* Load jobs from what their compiler wrote, or another rank, and keep it in the cache. */
static void take(trli_compiler *c, int n, job *const *jobs, bool keep)
{
    char name[TRLI_UNIT_FILE];
    int loaded = 0;
    trli_unit_file(jobs[0]->digest, ".so", name);
    int file = openat(c->workshop.folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        note(c, "the C compiler wrote no library", strerror(errno));
        return;
    }
    for (int i = 0; i < n; ++i) {
        if (!load(c, jobs[i], file, name)) continue;
        give(c, jobs[i], file, (size_t)lseek(file, 0, SEEK_END));
        settle(c, jobs[i], LOADED);
        ++loaded;
    }
    if (loaded > 0 && keep) publish(c, name, file, n, jobs);
    close(file);
}

/* ---- compilers ---- */

static bool waits(const job *j)
{
    return j->state == ASKED || j->state == WAITING;
}

static bool open_workshop(trli_compiler *c)
{
    if (c->workshop.folder >= 0 || trli_workshop_open(&c->workshop, &c->cache)) return true;
    note(c, "there is no folder for compilers to work in", strerror(errno));
    return false;
}

/* A waiting job and those after it that go into its unit: of so many bytes together, unless it has more. Returns how
 * many, and their bytes. */
static int gather(trli_compiler *c, int first, size_t *bytes, job *jobs[UNIT_MOST])
{
    const size_t room = *bytes < UNIT_BYTES ? *bytes : UNIT_BYTES;
    int n = 0;
    *bytes = 0;
    for (int i = first; i < c->njobs && n < UNIT_MOST; ++i) {
        job *j = &c->job[i];
        if (j->state != WAITING || !is_mine(c, j)) continue;
        const size_t more = strlen(j->text);
        if (n > 0 && (j->alone || jobs[0]->alone || *bytes + more > room)) continue;
        jobs[n++] = j;
        *bytes += more;
    }
    return n;
}

/* Start a compiler for a waiting job and others. Returns the bytes of their texts. */
static size_t start(trli_compiler *c, int first, size_t room)
{
    job *jobs[UNIT_MOST], *j = &c->job[first];
    trli_unit_kernel kernel[UNIT_MOST];
    size_t bytes = room;
    const int n = gather(c, first, &bytes, jobs);
    bool started = open_workshop(c);
    for (int i = 0; i < n; ++i) kernel[i] = (trli_unit_kernel){jobs[i]->digest, jobs[i]->text};
    j->start = trli_clock();
    if (started && !trli_unit_write(&c->workshop, n, kernel)) {
        note(c, "the text of a kernel cannot be written", strerror(errno));
        started = false;
    } else if (started && !trli_unit_start(c->ctx, &c->workshop, c->program, c->fast_math, j->digest, &j->pid)) {
        note(c, "the C compiler cannot be started", c->program);
        started = false;
    }
    if (!started && c->workshop.folder >= 0) trli_unit_clean(&c->workshop, j->digest);
    for (int i = 0; i < n; ++i) {
        jobs[i]->unit = first;
        if (started)
            jobs[i]->state = AT_WORK;
        else
            settle(c, jobs[i], FAILED);
    }
    return bytes;
}

/* Start compilers for the jobs that wait, as many at once as the rank has threads, each for its share of the texts. */
static void start_all(trli_compiler *c, int at_work)
{
    const int threads = trl_context_threads(c->ctx);
    size_t bytes = 0;
    for (int i = 0; i < c->njobs; ++i)
        if (c->job[i].state == WAITING && is_mine(c, &c->job[i])) bytes += strlen(c->job[i].text);
    for (int i = 0; i < c->njobs && at_work < threads; ++i) {
        if (c->job[i].state != WAITING || !is_mine(c, &c->job[i])) continue;
        bytes -= start(c, i, bytes / (size_t)(threads - at_work));
        at_work += c->job[i].state == AT_WORK;
    }
}

/* A compiler has ended. Those of several jobs that it did not make are compiled alone, which then tells why. */
static void finish(trli_compiler *c, int unit, int status)
{
    job *jobs[UNIT_MOST], *first = &c->job[unit];
    char why[sizeof c->why], line[300];
    int n = 0, loaded = 0;
    memcpy(why, c->why, sizeof why);
    for (int i = unit; i < c->njobs; ++i)
        if (c->job[i].state == AT_WORK && c->job[i].unit == unit) jobs[n++] = &c->job[i];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        take(c, n, jobs, true);
    } else {
        trli_unit_log(&c->workshop, first->digest, line, sizeof line);
        note(c, "the C compiler failed", line);
    }
    if (n > 1) memcpy(c->why, why, sizeof why);
    trli_unit_clean(&c->workshop, first->digest);
    for (int i = 0; i < n; ++i) {
        loaded += jobs[i]->state == LOADED;
        if (jobs[i]->state == LOADED) continue;
        jobs[i]->alone = n > 1;
        jobs[i]->state = WAITING;
        if (n == 1) settle(c, jobs[i], FAILED);
    }
    c->compiled += loaded;
    if (loaded > 0) c->seconds += trli_clock() - first->start;
}

/* Returns whether the compiler of a unit is still at work. */
static bool check(trli_compiler *c, int unit)
{
    const job *first = &c->job[unit];
    int status = 0, n = 0;
    pid_t ended = waitpid(first->pid, &status, WNOHANG);
    for (int i = unit; i < c->njobs; ++i) n += c->job[i].state == AT_WORK && c->job[i].unit == unit;
    if (ended == 0 && trli_clock() - first->start > LIMIT_S * n) {
        trli_unit_stop(c->ctx, first->pid);
        if (n == 1) note(c, "the C compiler did not end in time", c->program);
        ended = first->pid;
        status = -1;
    } else if (ended == 0 || (ended < 0 && errno == EINTR)) {
        return true;
    } else {
        trli_unit_tell(c->ctx, first->pid, false);
    }
    finish(c, unit, ended < 0 ? -1 : status);
    return false;
}

static bool has_compiler(const trli_compiler *c, int i)
{
    return c->job[i].state == AT_WORK && c->job[i].unit == i;
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

/* ---- from other ranks ---- */

/* Put another rank's library where a compiler would have left it. */
static bool write_library(trli_compiler *c, const job *j, const trli_gift *gift)
{
    char name[TRLI_UNIT_FILE];
    trli_unit_file(j->digest, ".so", name);
    if (!open_workshop(c)) return false;
    const int file = openat(c->workshop.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write(file, gift->content, gift->bytes) == (ssize_t)gift->bytes;
    if (!written) note(c, "a kernel compiled by another rank cannot be written", strerror(errno));
    if (file >= 0) close(file);
    return written;
}

/* Take a job's library, or learn why there is none, or which job's it is. */
static void accept(trli_compiler *c, job *j, const trli_gift *gift)
{
    char name[TRLI_UNIT_FILE];
    trli_unit_file(j->digest, ".so", name);
    const int there = trli_cache_entry(&c->cache, name); /* often its maker's, in the same folder */
    if (there >= 0) close(there);
    if (gift->kind == TRLI_GIFT_WITHIN) {
        memcpy(&j->within, gift->content, sizeof j->within);
        return;
    }
    if (gift->kind == TRLI_GIFT_MADE && write_library(c, j, gift)) take(c, 1, &j, there < 0);
    if (gift->kind == TRLI_GIFT_FAILED && gift->bytes > 0 && c->why[0] == '\0')
        snprintf(c->why, sizeof c->why, "%.*s", (int)gift->bytes, (const char *)gift->content);
    if (gift->kind == TRLI_GIFT_FAILED) note(c, "a kernel that another rank compiled cannot be received", "");
    if (c->workshop.folder >= 0) trli_unit_clean(&c->workshop, j->digest);
    c->received += j->state == LOADED;
    if (j->state != LOADED) settle(c, j, FAILED);
}

/* Take a job from the rank that makes it, if it has come. */
static void receive(trli_compiler *c, job *j)
{
    char from[TRLI_UNIT_FILE], to[TRLI_UNIT_FILE];
    trli_gift gift;
    if (j->within < 0) {
        if (!trli_gifts_take(c->share, (int)(j - c->job), &gift)) return;
        accept(c, j, &gift);
        trli_free(gift.content);
        if (j->within < 0) return;
    }
    job *other = &c->job[j->within];
    if (waits(other)) receive(c, other);
    if (waits(other)) return;
    const bool found = other->library && find_function(c, j, other->library);
    trli_unit_file(other->digest, ".so", from);
    trli_unit_file(j->digest, ".so", to);
    if (found && c->cache.folder >= 0) /* a failure costs a later run a compilation */
        (void)!linkat(c->cache.folder, from, c->cache.folder, to, 0);
    c->received += found;
    settle(c, j, found ? LOADED : FAILED);
}

int trli_compiler_poll(trli_compiler *c, bool wait)
{
    int left, at_work;
    for (;;) {
        left = at_work = 0;
        for (int i = 0; i < c->njobs; ++i)
            if (has_compiler(c, i) && check(c, i)) ++at_work;
        for (int i = 0; i < c->njobs; ++i) {
            job *j = &c->job[i];
            if (waits(j) && !is_mine(c, j)) receive(c, j);
            if (j->state == ASKED && is_mine(c, j)) (void)look_up(c, j);
        }
        start_all(c, at_work);
        for (int i = 0; i < c->njobs; ++i) left += waits(&c->job[i]) || c->job[i].state == AT_WORK;
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
    *j = (job){.text = trli_copy_text(c->ctx, text), .within = -1};
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
    trli_digest_bytes(c->asked, digest, sizeof digest);
    TRL_TRY(tell(c, j, fn));
    if (trl_context_ranks(c->ctx) == 1) (void)look_up(c, j);
done:
    return err;
}

trl_err trli_compiler_share(trli_compiler *c)
{
    bool *given = NULL;
    int64_t lacking = c->program[0] ? 0 : trl_context_rank(c->ctx) + 1;
    trl_err err;
    TRL_TRY(trli_gifts_create(c->ctx, c->njobs, c->asked, &c->share));
    for (int i = 0; i < c->njobs; ++i)
        if (c->job[i].state == ASKED && is_mine(c, &c->job[i])) (void)look_up(c, &c->job[i]);
    given = trli_new(c->ctx, (size_t)c->njobs, sizeof *given);
    err = given ? TRL_OK : trli_no_memory(c->ctx, NULL, "for %d kernels", c->njobs);
    TRL_TRY(trli_agree_max(c->ctx, err, 1, &lacking));
    /* What other ranks than the first warn of is not shown. */
    if (lacking > 0 && c->program[0])
        trl_warn(c->ctx, NULL,
                 "rank %d has no C compiler, and interprets kernels, which takes several times as long: let all ranks "
                 "find the same one (TRELLIS_CC, or cc, gcc or clang in PATH)",
                 (int)lacking - 1);
    if (c->share) TRL_TRY(trli_gifts_announce(c->share, given));
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
        if (has_compiler(c, i)) trli_unit_stop(c->ctx, j->pid);
        if (j->library && j->within < 0) dlclose(j->library);
        trli_free(j->text);
        trli_free(j->fn);
    }
    trli_gifts_destroy(&c->share);
    trli_workshop_close(&c->workshop);
    trli_cache_close(&c->cache);
    trli_free(c->job);
    trli_free(c);
}
