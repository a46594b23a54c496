/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Makes one call fail, in a program `trellis` on a chosen rank; tests/preload/test_faults.py says which. Environment:
 * TRL_INJECT=alloc|mpi|write what can fail: memory and communication that Trellis asks for itself, and whatever changes
 * a file below TRL_INJECT_ROOT, whoever does it TRL_INJECT_RANK=1 where TRL_INJECT_SITE=hash the place (a stack of
 * calls); absent: nothing fails TRL_INJECT_AT=3 and the how-manieth call from there TRL_INJECT_MODE=once|on|after that
 * call alone; all calls from then on; that one, after it was done (mpi) TRL_INJECT_LOG=file lines of what can fail
 * (without a site), or what did: name, site, frames */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

typedef enum kind { NONE, ALLOC, COMMUNICATE, WRITE } kind;

enum { FRAMES = 24 };

static kind configured, injected;
static bool after, on;
static uint64_t wanted_site;
static long wanted_at;
static int log_file = -1;
static const char *root;
static uintptr_t program_begin, program_end;
static atomic_long seen;
static atomic_bool begun; /* the failure was injected */
static _Thread_local bool inside;

/* ---- which call ---- */

static int find_program(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD) continue;
        if (program_begin == 0) program_begin = info->dlpi_addr;
        if (info->dlpi_addr + p->p_vaddr + p->p_memsz > program_end)
            program_end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 1; /* the first is the program */
}

static bool is_ours(const void *address)
{
    return (uintptr_t)address >= program_begin && (uintptr_t)address < program_end;
}

__attribute__((constructor)) static void start(void)
{
    static const char name[] = "/trellis";
    char program[PATH_MAX];
    void *frame[2];
    const char *what = getenv("TRL_INJECT"), *rank = getenv("TRL_INJECT_RANK"), *mine = getenv("OMPI_COMM_WORLD_RANK");
    const char *mode = getenv("TRL_INJECT_MODE"), *site = getenv("TRL_INJECT_SITE"), *at = getenv("TRL_INJECT_AT");
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!what || length < (ssize_t)sizeof name ||
        strncmp(program + length - (sizeof name - 1), name, sizeof name - 1) != 0)
        return;
    if (strcmp(mine ? mine : "0", rank ? rank : "0") != 0) return;
    (void)backtrace(frame, 2); /* loads what it needs */
    dl_iterate_phdr(find_program, NULL);
    root = getenv("TRL_INJECT_ROOT");
    wanted_site = site ? strtoull(site, NULL, 16) : 0;
    wanted_at = at ? strtol(at, NULL, 10) : 1;
    on = mode && strcmp(mode, "on") == 0;
    after = mode && strcmp(mode, "after") == 0;
    if (getenv("TRL_INJECT_LOG"))
        log_file = (int)syscall(SYS_openat, AT_FDCWD, getenv("TRL_INJECT_LOG"),
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    configured = strcmp(what, "alloc") == 0   ? ALLOC
                 : strcmp(what, "mpi") == 0   ? COMMUNICATE
                 : strcmp(what, "write") == 0 ? WRITE
                                              : NONE;
}

static void note(const char *name, uint64_t site, void *const *frame, int n)
{
    char line[512];
    int used = snprintf(line, sizeof line, "%s %016llx", name, (unsigned long long)site), ours = 0;
    for (int i = 0; i < n && ours < 6; ++i) {
        if (!is_ours(frame[i])) continue;
        used += snprintf(line + used, sizeof line - (size_t)used, " %llx",
                         (unsigned long long)((uintptr_t)frame[i] - program_begin));
        ++ours;
    }
    line[used++] = '\n';
    if (log_file >= 0) (void)!syscall(SYS_write, log_file, line, (size_t)used);
}

/* Whether the present call, which `caller` made, is the one. */
static bool hit(kind what, const char *name, const void *caller)
{
    void *frame[FRAMES];
    uint64_t site = 14695981039346656037u;
    if (injected != what || inside || (what != WRITE && !is_ours(caller))) return false;
    if (begun && on) return true;
    if (begun) return false;
    inside = true;
    int n = backtrace(frame, FRAMES);
    for (int i = 0; i < n; ++i)
        if (is_ours(frame[i])) site = (site ^ ((uintptr_t)frame[i] - program_begin)) * 1099511628211u;
    for (const char *c = name; *c; ++c) site = (site ^ (uint64_t)*c) * 1099511628211u;
    bool it = wanted_site == site && atomic_fetch_add(&seen, 1) + 1 == wanted_at;
    if (it || wanted_site == 0) note(name, site, frame, n);
    begun = begun || it;
    inside = false;
    return it;
}

#define CALLER __builtin_return_address(0)

/* ---- memory ---- */

static bool no_memory(const char *name, const void *caller)
{
    if (!hit(ALLOC, name, caller)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return no_memory("malloc", CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return no_memory("calloc", CALLER) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return no_memory("realloc", CALLER) ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return no_memory("aligned_alloc", CALLER) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (no_memory("posix_memalign", CALLER)) return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

char *strndup(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = no_memory("strndup", CALLER) ? NULL : __libc_malloc(length + 1);
    if (!copy) return NULL;
    copy[length] = '\0';
    return memcpy(copy, text, length);
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = no_memory("strdup", CALLER) ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

int vasprintf(char **text, const char *format, va_list args)
{
    va_list again;
    if (no_memory("vasprintf", CALLER)) return -1;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = length < 0 ? NULL : __libc_malloc((size_t)length + 1);
    return *text ? vsnprintf(*text, (size_t)length + 1, format, args) : -1;
}

FILE *open_memstream(char **text, size_t *size)
{
    FILE *(*next)(char **, size_t *);
    void *symbol = dlsym(RTLD_NEXT, "open_memstream");
    memcpy(&next, &symbol, sizeof next);
    return no_memory("open_memstream", CALLER) ? NULL : next(text, size);
}

/* ---- communication ---- */

#define MPI_CALL(name, parameters, arguments)                                      \
    int MPI_##name parameters                                                      \
    {                                                                              \
        if (!hit(COMMUNICATE, "MPI_" #name, CALLER)) return PMPI_##name arguments; \
        if (after) (void)PMPI_##name arguments;                                    \
        return MPI_ERR_OTHER;                                                      \
    }

/* Before, only libraries are at work. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    injected = configured;
    if (!hit(COMMUNICATE, "MPI_Init_thread", CALLER)) return PMPI_Init_thread(argc, argv, required, provided);
    if (after) (void)PMPI_Init_thread(argc, argv, required, provided);
    return MPI_ERR_OTHER;
}

MPI_CALL(Initialized, (int *flag), (flag))
MPI_CALL(Query_thread, (int *provided), (provided))
MPI_CALL(Finalize, (void), ())
MPI_CALL(Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
MPI_CALL(Comm_size, (MPI_Comm comm, int *size), (comm, size))
MPI_CALL(Comm_dup, (MPI_Comm comm, MPI_Comm *copy), (comm, copy))
MPI_CALL(Comm_free, (MPI_Comm * comm), (comm))
MPI_CALL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *part), (comm, color, key, part))
MPI_CALL(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part),
         (comm, type, key, info, part))
MPI_CALL(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
MPI_CALL(Barrier, (MPI_Comm comm), (comm))
MPI_CALL(Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm), (data, n, type, root, comm))
MPI_CALL(Allreduce, (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (from, to, n, type, op, comm))
MPI_CALL(Reduce, (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
         (from, to, n, type, op, root, comm))
MPI_CALL(Alltoall,
         (const void *from, int sent, MPI_Datatype type, void *to, int received, MPI_Datatype as, MPI_Comm comm),
         (from, sent, type, to, received, as, comm))
MPI_CALL(Alltoallv,
         (const void *from, const int *sent, const int *from_begin, MPI_Datatype type, void *to, const int *received,
          const int *to_begin, MPI_Datatype as, MPI_Comm comm),
         (from, sent, from_begin, type, to, received, to_begin, as, comm))
MPI_CALL(Allgatherv,
         (const void *from, int sent, MPI_Datatype type, void *to, const int *received, const int *begin,
          MPI_Datatype as, MPI_Comm comm),
         (from, sent, type, to, received, begin, as, comm))
MPI_CALL(Ialltoallv,
         (const void *from, const int *sent, const int *from_begin, MPI_Datatype type, void *to, const int *received,
          const int *to_begin, MPI_Datatype as, MPI_Comm comm, MPI_Request *request),
         (from, sent, from_begin, type, to, received, to_begin, as, comm, request))
MPI_CALL(Send, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
         (data, n, type, to, tag, comm))
MPI_CALL(Recv, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
         (data, n, type, from, tag, comm, status))
MPI_CALL(Isend, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
         (data, n, type, to, tag, comm, request))
MPI_CALL(Irecv, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
         (data, n, type, from, tag, comm, request))
MPI_CALL(Send_init, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
         (data, n, type, to, tag, comm, request))
MPI_CALL(Recv_init, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
         (data, n, type, from, tag, comm, request))
MPI_CALL(Startall, (int n, MPI_Request *request), (n, request))
MPI_CALL(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
MPI_CALL(Testall, (int n, MPI_Request *request, int *flag, MPI_Status *status), (n, request, flag, status))
MPI_CALL(Waitall, (int n, MPI_Request *request, MPI_Status *status), (n, request, status))
MPI_CALL(Request_free, (MPI_Request * request), (request))

/* ---- files ---- */

static bool is_below_root(const char *path)
{
    return root && (path[0] != '/' || strncmp(path, root, strlen(root)) == 0);
}

static bool is_file_below_root(int file)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = injected == WRITE && file > 2 ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return false;
    path[length] = '\0';
    return path[0] == '/' && is_below_root(path);
}

static bool fails(const char *name, const void *caller, bool counts, int number)
{
    if (!counts || !hit(WRITE, name, caller)) return false;
    errno = number;
    return true;
}

ssize_t write(int file, const void *data, size_t n)
{
    if (fails("write", CALLER, is_file_below_root(file), ENOSPC)) return -1;
    return syscall(SYS_write, file, data, n);
}

ssize_t pwrite(int file, const void *data, size_t n, off_t at)
{
    if (fails("pwrite", CALLER, is_file_below_root(file), ENOSPC)) return -1;
    return syscall(SYS_pwrite64, file, data, n, at);
}

ssize_t pwrite64(int file, const void *data, size_t n, off_t at)
{
    if (fails("pwrite", CALLER, is_file_below_root(file), ENOSPC)) return -1;
    return syscall(SYS_pwrite64, file, data, n, at);
}

ssize_t writev(int file, const struct iovec *pieces, int n)
{
    if (fails("writev", CALLER, is_file_below_root(file), ENOSPC)) return -1;
    return syscall(SYS_writev, file, pieces, n);
}

int ftruncate(int file, off_t size)
{
    return fails("ftruncate", CALLER, is_file_below_root(file), ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int ftruncate64(int file, off_t size)
{
    return fails("ftruncate", CALLER, is_file_below_root(file), ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int fsync(int file)
{
    return fails("fsync", CALLER, is_file_below_root(file), EIO) ? -1 : (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to)
{
    return fails("rename", CALLER, is_below_root(to), EIO) ? -1 : (int)syscall(SYS_rename, from, to);
}

static int open_file(const void *caller, int folder, const char *path, int flags, unsigned mode)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT;
    if (injected == WRITE && fails("open", caller, writes && is_below_root(path), ENOSPC)) return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags)                     \
    unsigned mode = 0;                     \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list args;                      \
        va_start(args, flags);             \
        mode = va_arg(args, unsigned);     \
        va_end(args);                      \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_file(CALLER, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_file(CALLER, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_file(CALLER, folder, path, flags, mode);
}

int fclose(FILE *file)
{
    int (*next)(FILE *);
    void *symbol = dlsym(RTLD_NEXT, "fclose");
    memcpy(&next, &symbol, sizeof next);
    bool failed = fails("fclose", CALLER, is_file_below_root(fileno(file)), ENOSPC);
    int status = next(file);
    if (failed) errno = ENOSPC;
    return failed ? EOF : status;
}
