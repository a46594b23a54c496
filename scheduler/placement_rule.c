/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How tasks are placed, in words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement_run_impl.h"

static bool read_rule(const char *text, trli_placement_rule *rule)
{
    static const char *const names[] = {
#define PLACEMENT_NAME(name, doc) #name,
        TRLI_PLACEMENT_LIST(PLACEMENT_NAME)
#undef PLACEMENT_NAME
    };
    static const char random[] = "random:";
    *rule = (trli_placement_rule){.mode = TRLI_PLACE_BY_TIMES};
    if (strcmp(text, "auto") == 0) return true;
    rule->named = true;
    for (int i = 0; i < TRLI_PLACEMENTS; ++i) {
        rule->kind = (trli_placement_kind)i;
        if (strcmp(text, names[i]) == 0) return true;
    }
    rule->mode = TRLI_PLACE_ON_DEVICES;
    if (strcmp(text, "devices") == 0) return true;
    rule->mode = TRLI_PLACE_AT_RANDOM;
    if (strncmp(text, random, sizeof random - 1) != 0) return false;
    const char *digits = text + sizeof random - 1;
    char *end;
    errno = 0;
    rule->seed = 0x9e3779b97f4a7c15u * (strtoull(digits, &end, 10) + 1);
    return strspn(digits, "0123456789") > 0 && *end == '\0' && errno == 0;
}

bool trl_placement_is_known(const char *text)
{
    trli_placement_rule rule;
    return read_rule(text, &rule);
}

trl_err trli_placement_rule_of(trl_context *ctx, const char *text, trli_placement_rule *rule)
{
    if (read_rule(text, rule)) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "unknown placement '%s'; write auto, finish_time, round_robin, min_load, devices or random:SEED",
                    text);
}

bool trli_placement_has_file(const trli_placement_rule *rule, const trl_graph *graph)
{
    return rule->mode == TRLI_PLACE_BY_FILE && strcmp(rule->file.graph, graph->name) == 0;
}
