/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,4
/* Ghosts that a driver of one's own fills are those of decks, bit by bit: seen through operators that read them. */
#include "problem_fixture.h"

#include <trl_boundary.h>
#include <trl_field_manager.h>

/* The formulas of the deck below, in the same order of operations. */
static double warm(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] * 0.3 + x[1] * 0.7 + 0.1;
}

static double transfer(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[0] * 0.2 + x[1] + 1.1;
}

static double upper(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[1] + x[0] > 0.6;
}

/* x-: two pieces, x+: neumann, y-: robin, y+: outflow; with `turned` the axes change places. */
static void say_deck(trl_location location, bool turned)
{
    static const char *const conditions[4] = {
        "[{where: \"y+x > 0.6\", dirichlet: \"x*0.3+y*0.7+0.1\"}, {outflow: true}]", "{neumann: \"x*0.3+y*0.7+0.1\"}",
        "{robin: {a: \"x*0.2+y+1.1\", b: 0.4, c: \"x*0.3+y*0.7+0.1\"}}", "{outflow: true}"};
    new_deck();
    say("grid: {cells: [9, 7], length: [1, 1.25]}\n");
    say("equations:\n  T:\n    location: %s\n    initial: \"sin(3*x+0.2)*cos(5*y)+x*y\"\n    ddt: 0\n    boundary:\n",
        trl_location_name(location));
    for (int s = 0; s < 4; ++s) say("      %c%c: %s\n", "xy"[s / 2], "-+"[s % 2], conditions[turned ? (s + 2) % 4 : s]);
    say("expressions:\n  gx: \"ddx(T)\"\n  gy: \"ddy(T)\"\n  corner: \"at(T, %s)\"\n",
        trl_location_name((trl_location)((int)location ^ 3)));
    say("output: {fields: [gx, gy, corner]}\ntime: {dt: 0.1, steps: 1}\n");
}

static void add_conditions(trl_boundary *boundary, bool turned)
{
    const trl_bc_value value = {.function = warm};
    const trl_bc piece[5] = {{.kind = TRL_BC_DIRICHLET, .value = value, .where = upper},
                             {.kind = TRL_BC_OUTFLOW},
                             {.kind = TRL_BC_NEUMANN, .value = value},
                             {.kind = TRL_BC_ROBIN, .value.function = transfer, .b.number = 0.4, .c = value},
                             {.kind = TRL_BC_OUTFLOW}};
    static const int axis[5] = {0, 0, 0, 1, 1}, side[5] = {0, 0, 1, 0, 1};
    for (int i = 0; i < 5; ++i) ck_ok(trl_boundary_add(boundary, turned ? 1 - axis[i] : axis[i], side[i], &piece[i]));
}

/* Owned points of a field of the deck that differ from those of a driver's field. */
static int different(const char *name, trl_field *field)
{
    const trl_layout *layout = trl_simulation_layout(sim);
    int wrong = 0;
    ck_assert_int_eq(location_of(name), trl_field_location(field));
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array deck_values = trl_simulation_array(sim, field_index(name), p), values;
        ck_ok(trl_field_array(field, p, &values));
        for (trl_lidx j = values.owned.lo[1]; j < values.owned.hi[1]; ++j)
            for (trl_lidx i = values.owned.lo[0]; i < values.owned.hi[0]; ++i)
                wrong += memcmp((double *)deck_values.at + trl_array_offset(&deck_values, i, j, 0),
                                (double *)values.at + trl_array_offset(&values, i, j, 0), sizeof(double)) != 0;
    }
    return wrong;
}

static trl_field *new_field(trl_field_manager *manager, const char *name, trl_location location)
{
    trl_field_desc desc = {name, location, {1, 1, 1}, {1, 1, 1}};
    trl_field *field;
    ck_ok(trl_field_create(manager, trl_simulation_layout(sim), &desc, &field));
    return field;
}

/* The deck's values of T at the start. */
static void copy_values(trl_field *T)
{
    const trl_layout *layout = trl_simulation_layout(sim);
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array from = trl_simulation_array(sim, field_index("T"), p), to;
        ck_ok(trl_field_array(T, p, &to));
        for (trl_lidx j = to.owned.lo[1]; j < to.owned.hi[1]; ++j)
            for (trl_lidx i = to.owned.lo[0]; i < to.owned.hi[0]; ++i)
                ((double *)to.at)[trl_array_offset(&to, i, j, 0)] =
                    ((double *)from.at)[trl_array_offset(&from, i, j, 0)];
    }
    trl_field_invalidate_ghosts(T);
}

static void check_deck(trl_location location, bool turned)
{
    static const char *const name[3] = {"gx", "gy", "corner"};
    trl_field_manager *manager;
    trl_boundary *boundary;
    say_deck(location, turned);
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    ck_ok(trl_field_manager_create(test_ctx, &manager));
    trl_field *T = new_field(manager, "T", location);
    copy_values(T);
    ck_ok(trl_boundary_create(trl_simulation_layout(sim), location, &boundary));
    add_conditions(boundary, turned);
    ck_ok(trl_field_exchange(T));
    ck_ok(trl_boundary_fill(boundary, NULL, T, 0));
    for (int i = 0; i < 3; ++i) {
        trl_operator_desc desc = {.kind = i < 2 ? TRL_GRADIENT : TRL_INTERPOLANT, .from = location};
        trl_operator *op;
        desc.to = (trl_location)((int)location ^ (i < 2 ? 1 << i : 3));
        ck_ok(trl_operator_create(test_ctx, the_grid(), &desc, &op));
        trl_field *result = new_field(manager, name[i], desc.to);
        ck_ok(trl_operator_apply(op, NULL, &T, result));
        int wrong = different(name[i], result);
        MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        ck_assert_msg(wrong == 0, "%s of T at %s, %s: %d points", name[i], trl_location_name(location),
                      turned ? "turned" : "straight", wrong);
        trl_field_destroy(&result);
        trl_operator_destroy(&op);
    }
    trl_boundary_destroy(&boundary);
    trl_field_destroy(&T);
    trl_field_manager_destroy(&manager);
    close_problem();
}

START_TEST(drivers_fill_the_bits_of_decks)
{
    static const trl_location locations[] = {TRL_CELL, TRL_XFACE, TRL_YFACE, TRL_ZEDGE};
    for (int l = 0; l < 4; ++l)
        for (int turned = 0; turned < 2; ++turned) check_deck(locations[l], turned);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, drivers_fill_the_bits_of_decks);
}

TRL_TEST_MAIN("direct_boundaries", add_tests)
