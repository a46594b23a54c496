/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "builtins_impl.h"

static const trl_expr_type *const builtins[] = {
    &trli_type_file,
};

trl_err trli_register_builtins(trl_registry *registry)
{
    trl_err err = TRL_OK;
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; ++i)
        TRL_TRY(trl_registry_add(registry, builtins[i], "built-in", NULL));
done:
    return err;
}
