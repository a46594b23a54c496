/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "bench_impl.h"
#include "builtins_impl.h"

trl_err trli_case_create(trl_context *ctx, const char *text, const char *on, trli_case *c)
{
    trl_err err = TRL_OK;
    const trli_deck_request request = {.path = "benchmark.yaml", .text = text, .nsets = 1, .set = &on};
    *c = (trli_case){0};
    TRL_TRY(trl_registry_create(ctx, &c->registry));
    TRL_TRY(trli_register_builtins(c->registry));
    double start = trli_bench_clock();
    TRL_TRY(trli_deck_read(ctx, c->registry, &request, &c->deck));
    c->read = trli_bench_clock() - start;
    start += c->read;
    TRL_TRY(trl_simulation_create(ctx, trli_deck_problem(c->deck), &c->sim));
    c->create = trli_bench_clock() - start;
    start += c->create;
    TRL_TRY(trl_simulation_initialise(c->sim));
    c->initialise = trli_bench_clock() - start;
done:
    return err;
}

void trli_case_destroy(trli_case *c)
{
    trl_simulation_destroy(&c->sim);
    trli_deck_destroy(&c->deck);
    trl_registry_destroy(&c->registry);
}
