/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Decks of a few lines that are run to their end. */
#ifndef RUN_FIXTURE_H
#define RUN_FIXTURE_H

#include "../expressions/problem_fixture.h"

static inline void open_text(const char *format, ...) TRL_PRINTF(1, 2);
static inline void open_text(const char *format, ...)
{
    va_list arguments;
    char text[4000];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    new_deck();
    say("%s", text);
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
}

static inline void run_to_end(void)
{
    while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_observe(sim));
}

/* The first value of a field. */
static inline double value_of(const char *name)
{
    trl_gidx n[3];
    return values_of(name, n)[0];
}

#endif
