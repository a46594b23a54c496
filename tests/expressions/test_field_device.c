// ctest: np=1 labels=gpu emulated=1 timeout=600
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of drivers that live on a GPU: what is computed there has the bits of the host, and is copied only when the
 * host asks. */
#include "spatialops/operator_fixture.h"

#include <trl_boundary.h>
#include <trl_field_device.h>
#include <trl_limiter_body.h>
#include <trl_reduction.h>

static trl_devices *devices;

typedef struct setting {
    int dim, cells[3], counts[3], periodic;
} setting;

static const setting settings[] = {{1, {17, 1, 1}, {3, 1, 1}, 0},
                                   {2, {7, 5, 1}, {2, 1, 1}, 1},
                                   {3, {5, 3, 7}, {2, 1, 1}, 4},
                                   {3, {4, 1, 3}, {4, 1, 1}, 0}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static domain d;
static trl_field_device *gpu;

static void open_setting(const setting *s)
{
    ck_ok(trl_devices_open(test_ctx, "gpu", &devices));
    d = open_domain(s->dim, s->cells, s->periodic, s->counts);
    ck_ok(trl_field_device_create(d.manager, devices, 0, &gpu));
}

static void close_setting(void)
{
    ck_assert_int_eq(trl_field_device_get_stats(gpu).fields, 0);
    trl_field_device_destroy(&gpu);
    trl_devices_close(&devices);
    close_domain(&d);
}

static trl_array read_array(trl_field *field, int p)
{
    trl_array array;
    ck_ok(trl_field_read(field, p, &array));
    return array;
}

/* The same points are valid, with the same bits. */
static void check_same(trl_field *host, trl_field *there, const char *what)
{
    for (int p = 0; p < d.layout->nlocal; ++p) {
        const trl_box valid = trl_field_valid(host, p), other = trl_field_valid(there, p);
        const trl_array a = read_array(host, p), b = read_array(there, p);
        ck_assert_msg(memcmp(&valid, &other, sizeof valid) == 0, "%s: other points are valid", what);
        FOR_POINTS(&valid, at)
        {
            if (memcmp(value_at(&a, at), value_at(&b, at), sizeof(double)) != 0)
                ck_abort_msg("%s: %.17g, not %.17g at point %d %d %d of patch %d", what, *value_at(&b, at),
                             *value_at(&a, at), at[0], at[1], at[2], p);
        }
    }
}

/* ---- operators ---- */

static void check_operator(const trl_operator_desc *desc)
{
    trl_operator *op = new_operator(&d, desc);
    trl_field *in[3], *host = new_field(&d, "host", op->to, 1), *there = new_field(&d, "there", op->to, 1);
    for (int i = 0; i < op->ninputs; ++i) {
        in[i] = new_input(&d, "in", op, i, i);
        fill_noise(in[i], i);
    }
    ck_ok(trl_operator_apply(op, NULL, in, host));
    for (int i = 0; i < op->ninputs; ++i) ck_ok(trl_field_move(in[i], gpu));
    ck_ok(trl_field_move(there, gpu));
    const int64_t launches = trl_field_device_get_stats(gpu).launches;
    ck_ok(trl_operator_apply(op, NULL, in, there));
    ck_assert_int_gt(trl_field_device_get_stats(gpu).launches, launches);
    check_same(host, there, operator_text(d.layout->grid.dim, desc));
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_field_destroy(&host);
    trl_field_destroy(&there);
    trl_operator_destroy(&op);
}

START_TEST(operators_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        const operator_list *list = legal_operators(settings[s].dim);
        for (int i = 0; i < list->n; ++i)
            if (test_has(n++, 97)) check_operator(&list->desc[i]);
        close_setting();
    }
}
END_TEST

/* ---- fluxes ---- */

static void check_flux(trl_location phi_at, int axis, int limiter)
{
    const trl_location face = (trl_location)((int)phi_at ^ 1 << axis);
    trl_field *phi = new_field(&d, "phi", phi_at, 3), *u = new_field(&d, "u", face, 1);
    trl_field *host = new_field(&d, "host", face, 1), *there = new_field(&d, "there", face, 1);
    char what[80];
    snprintf(what, sizeof what, "limiter %d at %s along axis %d", limiter, trl_location_name(phi_at), axis);
    fill_noise(phi, 1);
    fill_noise(u, 2);
    ck_ok(trl_advective_flux_apply(limiter, axis, NULL, phi, u, host));
    ck_ok(trl_field_move(phi, gpu));
    ck_ok(trl_field_move(u, gpu));
    ck_ok(trl_field_move(there, gpu));
    ck_ok(trl_advective_flux_apply(limiter, axis, NULL, phi, u, there));
    check_same(host, there, what);
    trl_field_destroy(&phi);
    trl_field_destroy(&u);
    trl_field_destroy(&host);
    trl_field_destroy(&there);
}

START_TEST(fluxes_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at)
            for (int axis = 0; axis < settings[s].dim; ++axis)
                for (int limiter = -1; limiter < TRL_LIMITER_COUNT; ++limiter)
                    if (test_has(n++, 173)) check_flux((trl_location)at, axis, limiter);
        close_setting();
    }
}
END_TEST

/* ---- reductions ---- */

static double some_points(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return sin(40 * x[0]) + cos(30 * x[1]) > 0.3;
}

static void check_reduction(trl_field *host, trl_field *there, trl_reduction kind, trl_weights weights,
                            const trl_mask *mask)
{
    double expected, found;
    ck_ok(trl_field_reduce(host, NULL, kind, weights, mask, &expected));
    ck_ok(trl_field_reduce(there, NULL, kind, weights, mask, &found));
    ck_assert_msg(memcmp(&expected, &found, sizeof found) == 0 || (isnan(expected) && isnan(found)),
                  "%s at %s, weights %d, %s: %.17g, not %.17g", trl_reduction_name(kind),
                  trl_location_name(trl_field_location(host)), weights, mask ? "masked" : "all", found, expected);
}

START_TEST(reductions_have_the_bits_of_the_host)
{
    for (int s = 0, n = 0; s < SETTINGS; ++s) {
        open_setting(&settings[s]);
        for (int at = 0; at < 1 << settings[s].dim; ++at) {
            trl_field *host = new_field(&d, "host", (trl_location)at, 1);
            trl_field *there = new_field(&d, "there", (trl_location)at, 2);
            trl_mask *mask;
            if (!test_has(n++, 3)) continue;
            fill_noise(host, at);
            fill_noise(there, at);
            ck_ok(trl_field_move(there, gpu));
            const int64_t bytes = trl_field_device_get_stats(gpu).bytes_out;
            ck_ok(trl_mask_create(d.layout, (trl_location)at, 1, some_points, NULL, 0, &mask));
            for (int kind = 0; kind < TRL_REDUCTIONS; ++kind)
                for (int weights = 0; weights < 2; ++weights) {
                    if (!test_has(kind + weights, 3)) continue;
                    check_reduction(host, there, (trl_reduction)kind, (trl_weights)weights, NULL);
                    check_reduction(host, there, (trl_reduction)kind, (trl_weights)weights, mask);
                }
            trl_mask_not(mask);
            check_reduction(host, there, TRL_REDUCE_L2, TRL_OVER_VOLUMES, mask);
            ck_assert_int_eq(trl_field_device_get_stats(gpu).bytes_out, bytes);
            trl_mask_destroy(&mask);
            trl_field_destroy(&host);
            trl_field_destroy(&there);
        }
        close_setting();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, operators_have_the_bits_of_the_host);
    tcase_add_test(tc, fluxes_have_the_bits_of_the_host);
    tcase_add_test(tc, reductions_have_the_bits_of_the_host);
}

int main(int argc, char **argv)
{
    const char *required = getenv("TRL_REQUIRE_GPU");
    unsetenv("TRL_MOCK_DEVICES");
    if (trl_device_count() > 0) return test_run("field_device", add_tests, argc, argv);
    puts("there is no GPU");
    return required && strcmp(required, "1") == 0 ? 1 : 77;
}
