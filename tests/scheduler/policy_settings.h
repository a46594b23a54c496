/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The policies and numbers of threads that tests of the scheduler loop over. Included after trl_test.h. */
#ifndef POLICY_SETTINGS_H
#define POLICY_SETTINGS_H

#include <trl_graph.h>

typedef struct setting {
    const char *policy;
    int threads;
} setting;

static const setting settings[] = {
    {"serial", 1},
    {"serial", 2},
    {"priority", 1},
    {"priority", 2},
    {"priority", 3},
    {"priority", 4},
    {"hybrid", 2},
    {TRL_TEST_PLUGIN_DIR "/policy_lifo.so", 1},
    {TRL_TEST_PLUGIN_DIR "/policy_lifo.so", 3},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static trl_workers *make_workers(const setting *s)
{
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, s->threads));
    ck_ok(trl_workers_create(test_ctx, s->policy, &workers));
    ck_assert_str_eq(trl_workers_policy(workers), s->policy);
    ck_assert_int_eq(trl_workers_count(workers), strcmp(s->policy, "serial") ? s->threads : 1);
    return workers;
}

#endif
