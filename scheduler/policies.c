/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The policies: built-in ones by name, others from shared objects. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "policy_impl.h"

static trl_err check(trl_context *ctx, const char *name, const trl_policy *policy)
{
    const char *fault = NULL;
    if (policy->size != sizeof *policy || policy->abi != TRL_POLICY_ABI)
        return trl_fail(ctx, TRL_ERR_PLUGIN, NULL,
                        "policy '%s' has abi %u and size %u, this Trellis has %d and %zu: rebuild it", name,
                        (unsigned)policy->abi, (unsigned)policy->size, TRL_POLICY_ABI, sizeof *policy);
    if (!policy->name) fault = "name";
    if (!policy->setup) fault = "setup";
    if (!policy->teardown) fault = "teardown";
    if (!policy->ready) fault = "ready";
    if (!policy->take) fault = "take";
    if (!policy->holds) fault = "holds";
    if (!fault) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_PLUGIN, NULL, "policy '%s' lacks the required member '%s'", name, fault);
}

static trl_err load(trl_context *ctx, const char *path, const trl_policy **policy, void **library)
{
    trl_err err;
    char here[4096];
    /* A path without a folder would make dlopen search everywhere but here. */
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    void *opened = dlopen(here, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* graphs keep state of the policy */
    if (!opened) return trl_fail(ctx, TRL_ERR_PLUGIN, NULL, "cannot load policy '%s': %s", path, dlerror());
    const trl_policy *found = dlsym(opened, "trl_policy_plugin");
    if (!found) {
        err =
            trl_fail(ctx, TRL_ERR_PLUGIN, NULL, "'%s' is no policy plugin: it does not export trl_policy_plugin", path);
        goto done;
    }
    TRL_TRY(check(ctx, path, found));
    *policy = found;
    *library = opened;
    opened = NULL;
done:
    if (opened) dlclose(opened);
    return err;
}

trl_err trli_policy_find(trl_context *ctx, const char *name, const trl_policy **policy, void **library)
{
    static const struct {
        const char *name;
        const trl_policy *policy;
    } table[] = {
#define POLICY_ROW(name, runs, doc) {#name, &trli_policy_##runs},
        TRL_POLICY_LIST(POLICY_ROW)
#undef POLICY_ROW
    };
#define POLICY_NAME(name, runs, doc) " " #name
    static const char known[] = TRL_POLICY_LIST(POLICY_NAME);
#undef POLICY_NAME
    size_t length = strlen(name);
    *library = NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        *policy = table[i].policy;
        if (strcmp(name, table[i].name) == 0) return TRL_OK;
    }
    if (length > 3 && strcmp(name + length - 3, ".so") == 0) return load(ctx, name, policy, library);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "unknown scheduler '%s'; known are:%s", name, known);
}

void trli_policy_close(void *library)
{
    if (library) dlclose(library);
}
