// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices that are not there, and what is known of those that are. */
#include "trl_test.h"

#include <executor_impl.h>

START_TEST(finds_the_machine_that_a_driver_names)
{
    const trli_figures h100 = trli_figures_of("NVIDIA H100 80GB HBM3", 85e9);
    ck_assert_double_eq(h100.bandwidth, 2.83e12);
    ck_assert(!h100.modelled);
    ck_assert_double_eq(trli_figures_of("NVIDIA A100-SXM4-40GB", 42e9).bandwidth, 1.24e12);
    ck_assert_double_eq(trli_figures_of("NVIDIA A100-SXM4-80GB", 85e9).bandwidth, 1.63e12);
    ck_assert_double_eq(trli_figures_of("Tesla K80", 12e9).bandwidth, 0);
}
END_TEST

START_TEST(takes_the_longer_of_moving_and_computing)
{
    const trli_figures f = trli_figures_of("H100", 80e9);
    ck_assert_double_eq_tol(trli_figures_seconds(&f, 1, 2.83e9, 0), 1e-3 + 2.5e-6, 1e-12);
    ck_assert_double_eq_tol(trli_figures_seconds(&f, 1, 2.83e9, 34e10), 1e-2 + 2.5e-6, 1e-12);
    ck_assert_double_eq(trli_figures_seconds(&(trli_figures){0}, 3, 1e9, 1e9), 3);
    ck_assert_double_eq(trli_figures_seconds(&(trli_figures){.speed = 2, .launch = 1}, 3, 1e9, 1e9), 2.5);
}
END_TEST

START_TEST(opens_as_many_as_are_asked_for)
{
    trl_devices *devices;
    ck_ok(trl_devices_open_model(test_ctx, "8xH200", &devices));
    ck_assert_int_eq(trl_devices_opened(devices), 8);
    for (int i = 0; i < 8; ++i) {
        ck_assert_int_eq(devices->device[i]->space, i + 1);
        ck_assert(devices->device[i]->figures.modelled);
        ck_assert_uint_eq(trl_devices_info(devices, i)->bytes, 141000000000u);
    }
    trl_devices_close(&devices);
    ck_ok(trl_devices_open_model(test_ctx, "A100", &devices));
    ck_assert_int_eq(trl_devices_opened(devices), 1);
    trl_devices_close(&devices);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, finds_the_machine_that_a_driver_names);
    tcase_add_test(tc, takes_the_longer_of_moving_and_computing);
    tcase_add_test(tc, opens_as_many_as_are_asked_for);
}

TRL_TEST_MAIN("machines", add_tests)
