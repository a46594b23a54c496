/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the applications of the task runtime share: numbers of workers, random numbers, and building graphs. Included
 * after trl_test.h. */
#ifndef APP_SUPPORT_H
#define APP_SUPPORT_H

#include "policy_settings.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define APP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define APP_SANITIZED 1
#endif
#endif
#ifndef APP_SANITIZED
#define APP_SANITIZED 0
#endif

/* Every application gives the same result with each of these. */
static const setting app_settings[] = {{"serial", 1}, {"priority", 1}, {"priority", 2}, {"priority", 4}};
enum { APP_SETTINGS = sizeof app_settings / sizeof *app_settings };

/* As ck_ok, for loops of a million calls: Check writes down every assertion that holds. */
static inline void app_must(trl_err err)
{
    if (err != TRL_OK) ck_abort_msg("%s: %s", trl_err_name(err), test_messages());
}

static inline void *app_calloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) ck_abort_msg("no memory");
    return memory;
}

/* A sequence of 64-bit numbers in which each step is a mix of a counter (Steele, Lea and Flood 2014, splitmix64). */
static inline uint64_t app_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 <= result < n */
static inline int app_below(uint64_t *state, int n)
{
    return (int)(app_random(state) % (uint64_t)n);
}

/* 0 <= result < 1 */
static inline double app_uniform(uint64_t *state)
{
    return (double)(app_random(state) >> 11) * 0x1p-53;
}

static inline trl_graph *app_graph(const char *name)
{
    trl_graph *graph = NULL;
    ck_ok(trl_graph_create(test_ctx, name, &graph));
    return graph;
}

static inline trl_task app_task(trl_graph *graph, const char *name, trl_task_fn run, void *data, int type)
{
    trl_task task;
    app_must(trl_graph_add_task(
        graph, &(trl_task_desc){.name = name, .variant = {{run}}, .data = data, .chunks = 1, .type = type}, &task));
    return task;
}

static inline trl_resource app_resource(trl_graph *graph, const char *name, trl_resource parent)
{
    trl_resource resource;
    app_must(trl_graph_add_resource(graph, &(trl_resource_desc){.name = name, .parent = parent}, &resource));
    return resource;
}

static inline trl_handle app_handle(trl_graph *graph, const char *name)
{
    trl_handle handle;
    app_must(trl_graph_add_handle(graph, &(trl_handle_desc){.name = name}, &handle));
    return handle;
}

#endif
