/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Euler steps of advection with limited fluxes along every axis: what theory says of the total variation, of monotone
 * data and of mirrored data.
 *
 * With C_i = nu*(1 + psi(r_i)/(2 r_i) - psi(r_(i-1))/2), nu the Courant number, a step to the right is f_i - C_i*(f_i -
 * f_(i-1)). By Harten ("High resolution schemes for hyperbolic conservation laws", 1983) no total variation grows as
 * long as 0 <= C_i <= 1, that is, for psi <= 2, as long as nu*(1 + s/2) <= 1, where s is the largest psi(r)/r. In
 * Sweby's region s <= 2, so that nu = 1/2 suffices. charm and smart leave it for small r, and need smaller steps: 2/5
 * and 1/3. Beyond the bound, the foot of a jump undershoots. */
// ctest: np=1,2
#include "doc_table.h"
#include "operator_fixture.h"

#include <trl_limiter_body.h>

enum { CENTRAL = -1, LINE = 24 };

/* The largest psi(r)/r of each limiter. */
static const struct {
    const char *name;
    double steepest;
} limiters[TRL_LIMITER_COUNT] = {
    [TRL_LIMITER_UPWIND] = {"upwind", 0},   [TRL_LIMITER_MINMOD] = {"minmod", 1},
    [TRL_LIMITER_VANLEER] = {"vanleer", 2}, [TRL_LIMITER_SUPERBEE] = {"superbee", 2},
    [TRL_LIMITER_MC] = {"mc", 2},           [TRL_LIMITER_KOREN] = {"koren", 2},
    [TRL_LIMITER_CHARM] = {"charm", 3},     [TRL_LIMITER_OSPRE] = {"ospre", 1.5},
    [TRL_LIMITER_SMART] = {"smart", 4},
};

static double largest_courant(int limiter)
{
    return 1 / (1 + limiters[limiter].steepest / 2);
}

/* ---- one problem: phi on cells of a grid, a velocity along one axis ---- */

static domain d;
static int dim, axis;
static trl_field *phi, *velocity, *flux, *rate;

static void open_advection(int dimension, int along, bool periodic)
{
    const int across = 3;
    int cells[3] = {across, across, across}, counts[3] = {1, 1, 1};
    dim = dimension;
    axis = along;
    cells[axis] = LINE;
    counts[axis] = 4;
    d = open_domain(dim, cells, periodic ? 7 : 0, counts);
    phi = new_field(&d, "phi", TRL_CELL, 2);
    velocity = new_field(&d, "u", (trl_location)(1 << axis), 1);
    flux = new_field(&d, "flux", (trl_location)(1 << axis), 1);
    rate = new_field(&d, "rate", TRL_CELL, 0);
}

static void close_advection(void)
{
    trl_field_destroy(&phi);
    trl_field_destroy(&velocity);
    trl_field_destroy(&flux);
    trl_field_destroy(&rate);
    close_domain(&d);
}

/* All points of a field, ghosts too, from a function of the global index along the axis and of the line that a point
 * lies on. */
static void set_lines(trl_field *field, double (*value)(trl_gidx i, const trl_gidx line[3], int seed), int seed)
{
    for (int p = 0; p < d.layout->nlocal; ++p) {
        trl_array a = array_of(field, p);
        FOR_POINTS(&a.held, at)
        {
            trl_gidx line[3];
            global_point(field, p, at, line);
            trl_gidx i = line[axis];
            line[axis] = 0;
            *value_at(&a, at) = value(i, line, seed);
        }
        ck_ok(trl_field_set_valid(field, p, &a.held));
    }
}

static double right(trl_gidx i, const trl_gidx line[3], int seed)
{
    (void)i, (void)line, (void)seed;
    return 1;
}

static double left(trl_gidx i, const trl_gidx line[3], int seed)
{
    (void)i, (void)line, (void)seed;
    return -1;
}

static double rough(trl_gidx i, const trl_gidx line[3], int seed)
{
    return noise(seed, (trl_gidx[3]){i, line[0] + 10 * line[1], line[2]}) + (i > 4 && i < 12 ? 2 : 0);
}

/* Never falling, constant beyond both ends, with jumps and flat parts. */
static double rising(trl_gidx i, const trl_gidx line[3], int seed)
{
    double sum = 0;
    for (trl_gidx j = 0; j <= (i < LINE ? i : LINE - 1); ++j) {
        double step = noise(seed, (trl_gidx[3]){j, line[0] + 10 * line[1], line[2]});
        sum += step < 0 ? 0 : pow(step, 6);
    }
    return sum;
}

/* A jump with a low step at its foot. */
static double jump(trl_gidx i, const trl_gidx line[3], int seed)
{
    (void)line, (void)seed;
    return i < 9 || i > 16 ? 0 : i == 9 || i == 16 ? 1e-3 : 1;
}

/* phi after a step with so large a Courant number. */
static void advance(int limiter, double courant)
{
    const trl_operator_desc desc = {.kind = TRL_DIVERGENCE, .from = (trl_location)(1 << axis), .to = TRL_CELL};
    trl_operator *divergence = new_operator(&d, &desc);
    ck_ok(trl_advective_flux_apply(limiter, axis, NULL, phi, velocity, flux));
    ck_ok(trl_operator_apply(divergence, NULL, &flux, rate));
    for (int p = 0; p < d.layout->nlocal; ++p) {
        trl_array f = array_of(phi, p), r = array_of(rate, p);
        FOR_POINTS(&f.owned, at)
        *value_at(&f, at) -= courant * d.layout->grid.spacing[axis] * *value_at(&r, at);
    }
    trl_field_invalidate_ghosts(phi);
    trl_operator_destroy(&divergence);
}

/* All owned values on every rank: the array of the line along the axis, of the line given by the others. */
static const double *gather(void)
{
    static double all[9 * LINE];
    memset(all, 0, sizeof all);
    for (int p = 0; p < d.layout->nlocal; ++p) {
        trl_array a = array_of(phi, p);
        FOR_POINTS(&a.owned, at)
        {
            trl_gidx g[3];
            global_point(phi, p, at, g);
            all[LINE * (g[(axis + 1) % 3] + 3 * g[(axis + 2) % 3]) + g[axis]] = *value_at(&a, at);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, all, 9 * LINE, MPI_DOUBLE, MPI_SUM, trl_context_comm(test_ctx));
    return all;
}

static void total_variations(double lines[9])
{
    const double *all = gather();
    for (int l = 0; l < 9; ++l) {
        lines[l] = 0;
        for (int i = 0; i < LINE; ++i) lines[l] += fabs(all[LINE * l + i] - all[LINE * l + (i + LINE - 1) % LINE]);
    }
}

static const char *case_text(int limiter, int seed)
{
    static char text[80];
    snprintf(text, sizeof text, "%s along %c in %d-D, seed %d", limiter < 0 ? "central" : limiters[limiter].name,
             "xyz"[axis], dim, seed);
    return text;
}

/* Call check for every axis of every dimension. */
static void on_all_axes(bool periodic, void (*check)(void))
{
    for (int dimension = 1; dimension <= 3; ++dimension)
        for (int along = 0; along < dimension; ++along) {
            open_advection(dimension, along, periodic);
            check();
            close_advection();
        }
}

/* The largest factor by which a step makes the variation of a line grow. */
static double growth(int limiter, double courant, double (*data)(trl_gidx, const trl_gidx[3], int),
                     double (*wind)(trl_gidx, const trl_gidx[3], int), int seed)
{
    double before[9], after[9], largest = 0;
    set_lines(phi, data, seed);
    set_lines(velocity, wind, seed);
    total_variations(before);
    advance(limiter, courant);
    total_variations(after);
    for (int l = 0; l < 9; ++l)
        if (before[l] > 0) largest = fmax(largest, after[l] / before[l]);
    return largest;
}

/* ---- total variation ---- */

static void check_variation(void)
{
    for (int limiter = 0; limiter < TRL_LIMITER_COUNT; ++limiter)
        for (int seed = 0; seed < 8; ++seed) {
            double by = growth(limiter, largest_courant(limiter), rough, seed % 2 ? left : right, seed);
            ck_assert_msg(by < 1 + 1e-14, "%s: the variation grows by %.17g", case_text(limiter, seed), by);
        }
}

START_TEST(no_total_variation_grows_with_any_limiter_up_to_its_courant_number)
{
    on_all_axes(true, check_variation);
}
END_TEST

static void check_bound(void)
{
    for (int limiter = 0; limiter < TRL_LIMITER_COUNT; ++limiter)
        for (int side = 0; side < 2; ++side) {
            double bound = largest_courant(limiter), at = growth(limiter, bound, jump, side ? left : right, 0);
            double beyond = growth(limiter, 1.01 * bound, jump, side ? left : right, 0);
            ck_assert_msg(at < 1 + 1e-14 && beyond > 1 + 1e-7, "%s: %.17g at the bound, %.17g beyond",
                          case_text(limiter, side), at, beyond);
        }
}

START_TEST(the_foot_of_a_jump_undershoots_beyond_that_courant_number)
{
    on_all_axes(true, check_bound);
}
END_TEST

START_TEST(the_courant_numbers_are_those_of_the_documentation)
{
    const char *page = read_page("verification.md");
    bool same =
        print_line(page, "| limiter | largest psi/r | Courant number | growth 1%% beyond |\n|---|---|---|---|\n");
    open_advection(1, 0, true);
    for (int l = 0; l < TRL_LIMITER_COUNT; ++l)
        same &= print_line(page, "| %s | %.1f | %.3f | %.1e |\n", limiters[l].name, limiters[l].steepest,
                           largest_courant(l), growth(l, 1.01 * largest_courant(l), jump, right, 0) - 1);
    close_advection();
    ck_assert_msg(same, "docs/verification.md lacks lines of this table");
}
END_TEST

static void check_central(void)
{
    ck_assert_double_gt(growth(CENTRAL, 0.1, jump, right, 0), 1.05);
}

START_TEST(a_central_flux_makes_the_variation_grow)
{
    on_all_axes(true, check_central);
}
END_TEST

/* ---- monotone and mirrored data ---- */

static void check_rising(void)
{
    for (int limiter = 0; limiter < TRL_LIMITER_COUNT; ++limiter)
        for (int seed = 0; seed < 8; ++seed) {
            set_lines(phi, rising, seed);
            set_lines(velocity, seed % 2 ? left : right, seed);
            advance(limiter, largest_courant(limiter));
            const double *all = gather();
            for (int i = 0; i < 9 * LINE; ++i)
                ck_assert_msg(i % LINE == 0 || all[i] >= all[i - 1] - 1e-15, "%s: falls by %.2e at %d",
                              case_text(limiter, seed), all[i - 1] - all[i], i % LINE);
        }
}

START_TEST(monotone_data_stay_monotone)
{
    on_all_axes(false, check_rising);
}
END_TEST

static double mirrored(trl_gidx i, const trl_gidx line[3], int seed)
{
    return rough(LINE - 1 - i, line, seed);
}

static void check_mirrored(void)
{
    static double forward[9 * LINE];
    for (int limiter = CENTRAL; limiter < TRL_LIMITER_COUNT; ++limiter) {
        set_lines(phi, rough, 7);
        set_lines(velocity, right, 0);
        advance(limiter, 0.3);
        memcpy(forward, gather(), sizeof forward);
        set_lines(phi, mirrored, 7);
        set_lines(velocity, left, 0);
        advance(limiter, 0.3);
        const double *backward = gather();
        for (int i = 0; i < 9 * LINE; ++i)
            ck_assert_msg(forward[i] == backward[i / LINE * LINE + LINE - 1 - i % LINE], "%s: %.17g and %.17g",
                          case_text(limiter, 7), forward[i], backward[i / LINE * LINE + LINE - 1 - i % LINE]);
    }
}

START_TEST(mirrored_data_and_wind_give_the_mirrored_bits)
{
    on_all_axes(false, check_mirrored);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, no_total_variation_grows_with_any_limiter_up_to_its_courant_number);
    tcase_add_test(tc, the_foot_of_a_jump_undershoots_beyond_that_courant_number);
    tcase_add_test(tc, the_courant_numbers_are_those_of_the_documentation);
    tcase_add_test(tc, a_central_flux_makes_the_variation_grow);
    tcase_add_test(tc, monotone_data_stay_monotone);
    tcase_add_test(tc, mirrored_data_and_wind_give_the_mirrored_bits);
}

TRL_TEST_MAIN("limited flux", add_tests)
