/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "context_impl.h"
#include "native_impl.h"
#include "spawn_impl.h"
#include "unit_impl.h"

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

/* Before the text of each kernel, with its digest. */
static const char own_names[] = "#undef TRL_KERNEL_ID\n"
                                "#define TRL_KERNEL_ID %s\n"
                                "#undef trl_kernel\n"
                                "#define trl_kernel TRL_OWN(trl_kernel)\n";

void trli_unit_file(const char *digest, const char *suffix, char name[TRLI_UNIT_FILE])
{
    snprintf(name, TRLI_UNIT_FILE, "%s%s", digest, suffix);
}

void trli_unit_digest(uint64_t digest[2], bool fast_math)
{
    for (int i = 0; i < OPTIONS; ++i) trli_digest_bytes(digest, options[i], strlen(options[i]) + 1);
    trli_digest_bytes(digest, contraction(fast_math), strlen(contraction(fast_math)) + 1);
    trli_digest_bytes(digest, trli_kernel_prelude, strlen(trli_kernel_prelude));
    trli_digest_bytes(digest, own_names, sizeof own_names);
}

bool trli_unit_write(const trli_workshop *workshop, int n, const trli_unit_kernel *kernel)
{
    char name[TRLI_UNIT_FILE];
    trli_unit_file(kernel[0].digest, ".c", name);
    int file = openat(workshop->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream) {
        if (file >= 0) close(file);
        return false;
    }
    bool written = fputs(trli_kernel_prelude, stream) >= 0;
    for (int i = 0; i < n; ++i)
        written = written && fprintf(stream, own_names, kernel[i].digest) >= 0 && fputs(kernel[i].text, stream) >= 0;
    return fclose(stream) == 0 && written;
}

void trli_unit_tell(const trl_context *ctx, pid_t group, bool started)
{
    const trl_context_options *o = &ctx->options;
    if (o->child) o->child(group, started);
}

bool trli_unit_start(trl_context *ctx, const trli_workshop *workshop, const char *program, bool fast_math,
                     const char *digest, pid_t *pid)
{
    char source[TRLI_UNIT_FILE], library[TRLI_UNIT_FILE], log[TRLI_UNIT_FILE];
    const char *argv[OPTIONS + 6];
    int n = 0;
    trli_unit_file(digest, ".c", source);
    trli_unit_file(digest, ".so", library);
    trli_unit_file(digest, ".log", log);
    argv[n++] = program;
    for (int i = 0; i < OPTIONS; ++i) argv[n++] = options[i];
    argv[n++] = contraction(fast_math);
    argv[n++] = "-o";
    argv[n++] = library;
    argv[n++] = source;
    argv[n] = NULL;
    if (!trli_program_start(ctx, workshop->folder, (char *const *)argv, log, pid)) return false;
    trli_unit_tell(ctx, *pid, true);
    return true;
}

void trli_unit_stop(trl_context *ctx, pid_t pid)
{
    enum { PATIENCE_MS = 500 };
    int status, waited = 0;
    pid_t ended = 0;
    (void)kill(-pid, SIGTERM);
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && waited++ < PATIENCE_MS)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    (void)kill(-pid, SIGKILL);
    while (ended == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    trli_unit_tell(ctx, pid, false);
}

void trli_unit_log(const trli_workshop *workshop, const char *digest, char *line, int room)
{
    char name[TRLI_UNIT_FILE];
    trli_unit_file(digest, ".log", name);
    int log = openat(workshop->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = log >= 0 ? fdopen(log, "r") : NULL;
    line[0] = '\0';
    if (file && fgets(line, room, file)) line[strcspn(line, "\n")] = '\0';
    if (file) fclose(file);
    if (!file && log >= 0) close(log);
}

void trli_unit_clean(const trli_workshop *workshop, const char *digest)
{
    static const char *const suffixes[] = {".c", ".so", ".log"};
    char name[TRLI_UNIT_FILE];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        trli_unit_file(digest, suffixes[i], name);
        (void)unlinkat(workshop->folder, name, 0);
    }
}
