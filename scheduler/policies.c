/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The policies: built-in ones by name, others from shared objects. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "policy_impl.h"

/* size and abi stand first in every version: nothing else is read before they are known to fit. */
static trl_err check_abi(trl_context *ctx, const char *name, uint32_t size, uint32_t abi, size_t expected)
{
    if (size == expected && abi == TRL_POLICY_ABI) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_PLUGIN, NULL,
                    "policy '%s' has abi %u and size %u, this Trellis has %d and %zu: rebuild it", name, (unsigned)abi,
                    (unsigned)size, TRL_POLICY_ABI, expected);
}

static trl_err fail_missing(trl_context *ctx, const char *name, const char *fault)
{
    return trl_fail(ctx, TRL_ERR_PLUGIN, NULL, "policy '%s' lacks the required member '%s'", name, fault);
}

static trl_err check(trl_context *ctx, const char *name, const trl_policy *policy)
{
    const char *fault = NULL;
    trl_err err;
    TRL_TRY(check_abi(ctx, name, policy->size, policy->abi, sizeof *policy));
    if (!policy->name) fault = "name";
    if (!policy->setup) fault = "setup";
    if (!policy->teardown) fault = "teardown";
    if (!policy->ready) fault = "ready";
    if (!policy->take) fault = "take";
    if (!policy->holds) fault = "holds";
    if (fault) err = fail_missing(ctx, name, fault);
done:
    return err;
}

static trl_err check_placement(trl_context *ctx, const char *name, const trl_placement_policy *policy)
{
    trl_err err;
    TRL_TRY(check_abi(ctx, name, policy->size, policy->abi, sizeof *policy));
    if (!policy->name) err = fail_missing(ctx, name, "name");
    if (err == TRL_OK && !policy->place) err = fail_missing(ctx, name, "place");
done:
    return err;
}

static trl_err load(trl_context *ctx, const char *path, trli_policies *policies)
{
    trl_err err = TRL_OK;
    char here[4096];
    /* A path without a folder would make dlopen search everywhere but here. */
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    void *opened = dlopen(here, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* graphs keep state of the policy */
    if (!opened) return trl_fail(ctx, TRL_ERR_PLUGIN, NULL, "cannot load policy '%s': %s", path, dlerror());
    const trl_policy *queue = dlsym(opened, "trl_policy_plugin");
    const trl_placement_policy *placement = dlsym(opened, "trl_placement_plugin");
    if (!queue && !placement)
        TRL_TRY(trl_fail(ctx, TRL_ERR_PLUGIN, NULL,
                         "'%s' is no policy plugin: it exports neither trl_policy_plugin nor trl_placement_plugin",
                         path));
    if (queue) TRL_TRY(check(ctx, path, queue));
    if (placement) TRL_TRY(check_placement(ctx, path, placement));
    *policies = (trli_policies){queue ? queue : &trli_policy_priority, placement, opened};
    opened = NULL;
done:
    if (opened) dlclose(opened);
    return err;
}

static const struct {
    const char *name;
    const trl_policy *policy;
} table[] = {
#define POLICY_ROW(name, runs, doc) {#name, &trli_policy_##runs},
    TRL_POLICY_LIST(POLICY_ROW)
#undef POLICY_ROW
};

static const trl_policy *built_in(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
        if (strcmp(name, table[i].name) == 0) return table[i].policy;
    return NULL;
}

static bool is_file(const char *name)
{
    const size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

bool trl_policy_is_known(const char *name)
{
    return built_in(name) != NULL;
}

trl_err trli_policy_find(trl_context *ctx, const char *name, trli_policies *policies)
{
#define POLICY_NAME(name, runs, doc) " " #name
    static const char known[] = TRL_POLICY_LIST(POLICY_NAME);
#undef POLICY_NAME
    *policies = (trli_policies){.queue = built_in(name)};
    if (policies->queue) return TRL_OK;
    if (is_file(name)) return load(ctx, name, policies);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "unknown scheduler '%s'; known are:%s", name, known);
}

void trli_policy_close(void *library)
{
    if (library) dlclose(library);
}
