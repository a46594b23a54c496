/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "run_impl.h"

#include <signal.h>

/* A signal handler is given nothing but the number: this is the one variable of Trellis that is neither constant nor
   owned. */
static volatile sig_atomic_t received;

static const int handled[] = {SIGINT, SIGTERM};

static void note(int number)
{
    received = number;
}

static void handle_all(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; ++i) sigaction(handled[i], &action, NULL);
}

void trli_signals_install(void)
{
    received = 0;
    handle_all(note);
}

void trli_signals_restore(void)
{
    handle_all(SIG_DFL);
}

int trli_signals_received(void)
{
    return received;
}
