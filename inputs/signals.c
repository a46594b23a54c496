/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "run_impl.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* A signal handler is given nothing but the number: these are the variables of Trellis that are neither constant nor
 * owned. */
static volatile sig_atomic_t received, by_launcher;
static _Atomic int64_t received_ns;
enum { CHILDREN = 256 /* compilers at work; of more, some are left to themselves */ };
static _Atomic pid_t children[CHILDREN];

static const int handled[] = {SIGINT, SIGTERM};

/* The second one ends the program at once, as it does without a handler; compilers are in groups of their own. */
static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (received) {
        for (int i = 0; i < CHILDREN; ++i)
            if (children[i] > 0) kill(-children[i], SIGTERM);
        signal(number, SIG_DFL);
        raise(number);
    }
    by_launcher = info->si_pid == getppid();
    received_ns = trli_now_ns();
    received = number;
}

void trli_signals_install(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; ++i) sigaction(handled[i], &action, NULL);
}

int trli_signals_received(void)
{
    return received;
}

const char *trli_signals_name(void)
{
    return received == SIGINT ? "SIGINT" : received ? "SIGTERM" : NULL;
}

/* Open MPI passes a signal on and kills what is left of the ranks a while later; mpirun hands its settings on to them.
 */
double trli_signals_seconds_left(void)
{
    const char *text = getenv("OMPI_MCA_odls_base_sigkill_timeout");
    double patience = text ? strtod(text, NULL) : 1;
    if (!received || !by_launcher || !getenv("OMPI_COMM_WORLD_SIZE")) return INFINITY;
    return patience - 1e-9 * (double)(trli_now_ns() - received_ns);
}

void trli_signals_child(pid_t group, bool started)
{
    int i = 0;
    while (i < CHILDREN && children[i] != (started ? 0 : group)) ++i;
    if (i < CHILDREN) children[i] = started ? group : 0;
}
