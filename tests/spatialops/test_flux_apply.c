// ctest: np=1,4 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct application of advective fluxes: the bits of a naive evaluation, through the caches and past them;
 * refusals. */
#include "trl_test.h"

#include <trl_limiter_body.h>
#include <trl_operator.h>

#include "context_impl.h"
#include "field_fixture.h"

static trl_field_manager *manager;

static double flux_at(int limiter, int axis, int bit, const trl_array *phi, double u, trl_lidx i, trl_lidx j,
                      trl_lidx k)
{
    double value[4];
    for (int o = 0; o < 4; ++o) {
        trl_lidx at[3] = {i, j, k};
        at[axis] += bit - 2 + o;
        value[o] = *value_at(phi, at[0], at[1], at[2]);
    }
    if (limiter < 0) return u * ((value[1] + value[2]) * 0.5);
    if (0 <= u) return u * trl_limiter_face((trl_limiter)limiter, value[0], value[1], value[2]);
    return u * trl_limiter_face((trl_limiter)limiter, value[3], value[2], value[1]);
}

static void check_fluxes(trl_layout *layout, int at, int axis, const crew *c)
{
    const trl_location face = (trl_location)(at ^ 1 << axis);
    for (int limiter = -1; limiter < TRL_LIMITER_COUNT; ++limiter) {
        trl_field *phi = make_field(manager, layout, "phi", (trl_location)at, 2);
        trl_field *u = make_field(manager, layout, "u", face, 1);
        trl_field *flux = make_field(manager, layout, "flux", face, 0);
        fill_field(phi, 1, true);
        fill_field(u, 2, true);
        ck_ok(trl_advective_flux_apply(limiter, axis, limiter % 2 ? c->loop : NULL, phi, u, flux));
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_array a = array_of(flux, p), b = array_of(phi, p), v = array_of(u, p);
            FOR_BOX(a.owned, i, j, k)
            ck_assert(same_bits(*value_at(&a, i, j, k),
                                flux_at(limiter, axis, at >> axis & 1, &b, *value_at(&v, i, j, k), i, j, k)));
        }
        trl_field_destroy(&phi);
        trl_field_destroy(&u);
        trl_field_destroy(&flux);
    }
}

static void check_fluxes_of_a_grid(int dim, const trl_gidx cells[3], const int counts[3], const crew *c)
{
    trl_layout *layout = make_layout(dim, cells, 0, counts);
    for (int at = 0; at < 1 << dim; ++at)
        for (int axis = 0; axis < dim; ++axis) check_fluxes(layout, at, axis, c);
    trl_layout_destroy(&layout);
}

START_TEST(fluxes_give_the_bits_of_their_limiter)
{
    static const struct {
        int dim;
        trl_gidx cells[3];
        int counts[3];
    } grids[] = {{1, {4, 1, 1}, {4, 1, 1}}, {1, {700, 1, 1}, {4, 1, 1}}, {2, {35, 9, 1}, {2, 2, 1}},
                 {3, {1, 1, 4}, {1, 1, 4}}, {3, {7, 5, 3}, {2, 1, 2}},   {3, {13, 2, 6}, {1, 2, 3}}};
    crew c = make_crew(2);
    for (size_t g = 0; g < sizeof grids / sizeof *grids; ++g)
        check_fluxes_of_a_grid(grids[g].dim, grids[g].cells, grids[g].counts, &c);
    destroy_crew(&c);
}
END_TEST

START_TEST(fluxes_have_the_same_bits_past_the_caches)
{
    crew c = make_crew(2);
    size_t *cache = test_ctx->topology.cache_bytes;
    const size_t known = *cache;
    *cache = 1; /* every field outgrows it */
    check_fluxes_of_a_grid(3, (trl_gidx[3]){75, 4, 5}, (int[3]){1, 1, 4}, &c);
    *cache = known;
    destroy_crew(&c);
}
END_TEST

START_TEST(a_limiter_asks_for_the_layers_that_it_reads)
{
    trl_layout *layout = make_layout(1, (trl_gidx[3]){32, 1, 1}, 1, (int[3]){4, 1, 1});
    for (int limiter = -1; limiter < TRL_LIMITER_COUNT; ++limiter)
        for (int ghosts = 1; ghosts <= 2; ++ghosts) {
            trl_field *phi = make_field(manager, layout, "phi", TRL_CELL, ghosts);
            trl_field *u = make_field(manager, layout, "u", TRL_XFACE, 0),
                      *flux = make_field(manager, layout, "flux", TRL_XFACE, 0);
            fill_field(phi, 1, true);
            fill_field(u, 1, true);
            ck_assert_int_eq(trl_advective_flux_apply(limiter, 0, NULL, phi, u, flux),
                             limiter > TRL_LIMITER_UPWIND && ghosts < 2 ? TRL_ERR_USAGE : TRL_OK);
            trl_field_destroy(&phi);
            trl_field_destroy(&u);
            trl_field_destroy(&flux);
        }
    trl_layout_destroy(&layout);
}
END_TEST

static void setup(void)
{
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static void teardown(void)
{
    trl_field_manager_destroy(&manager);
}

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, fluxes_give_the_bits_of_their_limiter);
    tcase_add_test(tc, fluxes_have_the_same_bits_past_the_caches);
    tcase_add_test(tc, a_limiter_asks_for_the_layers_that_it_reads);
}
TRL_TEST_MAIN("flux_apply", add_tests)
