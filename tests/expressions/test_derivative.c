/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Derivatives of values of the IR against extrapolated differences: every function, every limiter, random expressions
 * of all operations, by a scalar and along fields at once; structure: what is zero is known to be, what is common is
 * shared. */
#include "ir_evaluation.h"

#include <derivative_impl.h>
#include <trl_limiter_body.h>

enum { FIELDS = 2, RANDOM_EXPRESSIONS = TEST_SANITIZED ? 150 : 600 };

static trl_grid grid = {
    .dim = 1, .cells = {16, 1, 1}, .length = {1, 1, 1}, .periodic = {true, false, false}, .spacing = {0.0625, 1, 1}};
static trli_ir ir;
static trli_derivative derivative;
static double values[2 * FIELDS][OFFSETS]; /* the second half: what the first is moved along */
static const double parameter = 0.83;
static uint64_t state;

static double uniform(double low, double high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * ((double)(state >> 11) * 0x1p-53);
}

static int pick(int n)
{
    return (int)uniform(0, n) % n;
}

static double field_value(const evaluation *e, int field, int offset)
{
    double value = values[field][offset + REACH];
    return field < FIELDS ? value + e->eps * values[field + FIELDS][offset + REACH] : value;
}

static double scalar_value(const evaluation *e, int scalar)
{
    return scalar == 0 ? parameter + e->eps : 0.4;
}

/* Fields 0 and 1 move along 2 and 3, scalar 0 by 1; scalar 1 stays. */
static void begin(uint64_t seed)
{
    trli_derivative_free(&derivative);
    trli_ir_free(&ir);
    ck_ok(trli_ir_init(&ir, test_ctx, &grid));
    derivative = (trli_derivative){.ir = &ir};
    state = seed;
    for (int f = 0; f < 2 * FIELDS; ++f)
        for (int i = 0; i < OFFSETS; ++i) values[f][i] = uniform(-1.5, 1.5);
    for (int f = 0; f < FIELDS; ++f)
        ck_ok(trli_derivative_set(&derivative, trli_ir_field(&ir, f), trli_ir_field(&ir, f + FIELDS)));
    ck_ok(trli_derivative_set(&derivative, trli_ir_scalar(&ir, 0), trli_ir_constant(&ir, 1)));
}

static void end(void)
{
    trli_derivative_free(&derivative);
    trli_ir_free(&ir);
}

/* Whether the derivative of a value was compared with a difference that can be trusted: not where a kink or jump is
 * near. */
static bool compare(trli_ir_value v, const char *what)
{
    evaluation e = {.ir = &ir, .field = field_value, .scalar = scalar_value};
    double error, expected = difference(&e, v, &error);
    trli_ir_value tangent;
    ck_ok(trli_derivative_of(&derivative, v, &tangent));
    double found = tangent < 0 ? 0 : evaluate(&e, tangent, 0);
    if (!(error <= 1e-9 * (1 + fabs(expected)))) return false;
    ck_assert_msg(fabs(found - expected) <= 1e-8 * (1 + fabs(expected)), "%s: found %.15g, differences give %.15g",
                  what, found, expected);
    return true;
}

static trli_ir_value binary(trli_op op, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(&ir, op, a, b);
}

static trli_ir_value number(double x)
{
    return trli_ir_constant(&ir, x);
}

/* A value moved smoothly into [low, high]. */
static trli_ir_value within(trli_ir_value v, double low, double high)
{
    int count;
    int sine = (int)(trl_function_find("sin") - trl_functions(&count));
    trli_ir_value wave = trli_ir_function(&ir, sine, v, TRLI_NO_VALUE);
    return binary(TRLI_OP_ADD, number(0.5 * (low + high)), binary(TRLI_OP_MUL, number(0.5 * (high - low)), wave));
}

typedef struct domain {
    const char *name;
    double low, high, low_b, high_b;
} domain;

/* Where not all of [-3, 3] will do. */
static domain domain_of(const char *name)
{
    static const domain special[] = {
        {"sqrt", 0.1, 4, 0, 0},    {"cbrt", 0.1, 4, 0, 0},   {"log", 0.1, 4, 0, 0},      {"log2", 0.1, 4, 0, 0},
        {"log10", 0.1, 4, 0, 0},   {"log1p", -0.9, 3, 0, 0}, {"tan", -1.3, 1.3, 0, 0},   {"asin", -0.9, 0.9, 0, 0},
        {"acos", -0.9, 0.9, 0, 0}, {"acosh", 1.1, 4, 0, 0},  {"atanh", -0.9, 0.9, 0, 0}, {"atan2", 0.3, 3, -3, 3},
        {"hypot", 0.3, 3, -3, 3},  {"fmod", -5, 5, 0.7, 2},
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; ++i)
        if (strcmp(special[i].name, name) == 0) return special[i];
    return (domain){name, -3, 3, -3, 3};
}

START_TEST(every_function_has_the_derivative_that_differences_show)
{
    int count;
    const trl_function *functions = trl_functions(&count);
    for (int f = 0; f < count; ++f) {
        const domain d = domain_of(functions[f].name);
        int compared = 0, changing = 0;
        for (uint64_t k = 0; k < 40; ++k) {
            begin(1000 * (uint64_t)f + k);
            trli_ir_value a = within(binary(TRLI_OP_MUL, number(2), trli_ir_field(&ir, 0)), d.low, d.high), tangent;
            trli_ir_value b =
                functions[f].arity == 1 ? TRLI_NO_VALUE : within(trli_ir_scalar(&ir, 0), d.low_b, d.high_b);
            trli_ir_value v = trli_ir_function(&ir, f, a, b);
            compared += compare(v, functions[f].name);
            ck_ok(trli_derivative_of(&derivative, v, &tangent));
            changing += tangent >= 0;
        }
        ck_assert_msg(compared >= 32, "%s: only %d of 40 could be compared", functions[f].name, compared);
        ck_assert_int_eq(changing % 40, 0);
    }
    end();
}
END_TEST

START_TEST(every_limiter_has_the_derivative_that_differences_show)
{
    for (int limiter = 0; limiter < TRL_LIMITER_COUNT; ++limiter) {
        int compared = 0;
        for (uint64_t k = 0; k < 200; ++k) {
            begin(77 * k + (uint64_t)limiter);
            trli_ir_value f = trli_ir_field(&ir, 0);
            compared += compare(
                trli_ir_limit(&ir, limiter, trli_ir_shift(&ir, f, 0, -1), f, trli_ir_shift(&ir, f, 0, 1)), "limiter");
        }
        ck_assert_int_ge(compared, 170);
    }
    end();
}
END_TEST

static trli_ir_value random_value(int depth);

static trli_ir_value random_leaf(void)
{
    switch (pick(6)) {
    case 0:
        return trli_ir_scalar(&ir, pick(2));
    case 1:
        return number(uniform(-2, 2));
    case 2:
        return trli_ir_coordinate(&ir, 0, pick(2));
    default:
        return trli_ir_shift(&ir, trli_ir_field(&ir, pick(FIELDS)), 0, pick(5) - 2);
    }
}

static trli_ir_value random_function(int depth)
{
    int count, row = (trl_functions(&count), pick(count));
    const trl_function *f = &trl_functions(&count)[row];
    const domain d = domain_of(f->name);
    trli_ir_value a = within(random_value(depth), d.low, d.high);
    return trli_ir_function(&ir, row, a,
                            f->arity == 1 ? TRLI_NO_VALUE : within(random_value(depth), d.low_b, d.high_b));
}

static trli_ir_value random_condition(int depth)
{
    static const trli_op comparisons[] = {TRLI_OP_LT, TRLI_OP_LE, TRLI_OP_EQ, TRLI_OP_NE};
    trli_ir_value c = binary(comparisons[pick(4)], random_value(depth), random_value(depth));
    switch (pick(4)) {
    case 0:
        return trli_ir_unary(&ir, TRLI_OP_NOT, c);
    case 1:
        return binary(TRLI_OP_AND, c, random_value(depth));
    case 2:
        return binary(TRLI_OP_OR, c, number(0));
    default:
        return c;
    }
}

static trli_ir_value random_value(int depth)
{
    if (depth == 0) return random_leaf();
    --depth;
    switch (pick(15)) {
    case 0:
        return binary(TRLI_OP_ADD, random_value(depth), random_value(depth));
    case 1:
        return binary(TRLI_OP_SUB, random_value(depth), random_value(depth));
    case 2:
        return binary(TRLI_OP_MUL, random_value(depth), random_value(depth));
    case 3:
        return binary(TRLI_OP_DIV, random_value(depth), within(random_value(depth), 0.5, 3));
    case 4:
        return trli_ir_unary(&ir, TRLI_OP_NEG, random_value(depth));
    case 5:
        return trli_ir_unary(&ir, TRLI_OP_ABS, random_value(depth));
    case 6:
        return trli_ir_unary(&ir, TRLI_OP_SQRT, within(random_value(depth), 0.2, 3));
    case 7:
        return binary(pick(2) ? TRLI_OP_MIN : TRLI_OP_MAX, random_value(depth), random_value(depth));
    case 8:
        return trli_ir_power(&ir, within(random_value(depth), 0.3, 2), within(random_value(depth), -2, 3));
    case 9:
        return trli_ir_power(&ir, within(random_value(depth), -2, 2), number(pick(9)));
    case 10:
        return trli_ir_select(&ir, random_condition(depth), random_value(depth), random_value(depth));
    case 11:
        return trli_ir_shift(&ir, random_value(depth), 0, pick(5) - 2);
    case 12:
        return trli_ir_limit(&ir, pick(TRL_LIMITER_COUNT), random_value(depth), random_value(depth),
                             random_value(depth));
    case 13:
        return binary(TRLI_OP_MUL, trli_ir_random(&ir, 1), number(0)); /* random numbers do not change */
    default:
        return random_function(depth);
    }
}

START_TEST(random_expressions_have_the_derivative_that_differences_show)
{
    int compared = 0;
    for (uint64_t k = 0; k < RANDOM_EXPRESSIONS; ++k) {
        begin(31 * k + 7);
        compared += compare(random_value(1 + pick(5)), "random expression");
    }
    ck_assert_msg(compared >= RANDOM_EXPRESSIONS * 85 / 100, "only %d of %d could be compared", compared,
                  (int)RANDOM_EXPRESSIONS);
    end();
}
END_TEST

START_TEST(what_does_not_change_has_a_zero_known_from_the_structure)
{
    begin(3);
    trli_ir_value fixed = binary(TRLI_OP_MUL, trli_ir_scalar(&ir, 1), trli_ir_coordinate(&ir, 0, 0)), tangent;
    const trli_ir_value zero[] = {number(2),
                                  fixed,
                                  trli_ir_random(&ir, 5),
                                  binary(TRLI_OP_LT, trli_ir_field(&ir, 0), fixed),
                                  trli_ir_select(&ir, trli_ir_field(&ir, 0), fixed, number(1)),
                                  binary(TRLI_OP_POW, fixed, fixed),
                                  trli_ir_shift(&ir, fixed, 0, 3)};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; ++i) {
        ck_ok(trli_derivative_of(&derivative, zero[i], &tangent));
        ck_assert_int_eq(tangent, TRLI_NO_VALUE);
    }
    /* A factor that does not change is a factor of the derivative, nothing is added to it. */
    ck_ok(trli_derivative_of(&derivative, binary(TRLI_OP_MUL, fixed, trli_ir_field(&ir, 0)), &tangent));
    ck_assert_int_eq(tangent, binary(TRLI_OP_MUL, fixed, trli_ir_field(&ir, FIELDS)));
    ck_ok(trli_derivative_of(&derivative, trli_ir_scalar(&ir, 0), &tangent));
    ck_assert_int_eq(tangent, number(1));
    end();
}
END_TEST

START_TEST(a_product_of_many_factors_shares_what_its_derivatives_have_in_common)
{
    begin(4);
    const int factors = 2000;
    trli_ir_value product = trli_ir_field(&ir, 0), tangent;
    for (int i = 1; i < factors; ++i) {
        trli_ir_value shifted = trli_ir_shift(&ir, trli_ir_field(&ir, i % FIELDS), 0, i % 7 - 3);
        product = binary(TRLI_OP_MUL, product, binary(TRLI_OP_ADD, shifted, number(i)));
    }
    int before = ir.count;
    ck_ok(trli_derivative_of(&derivative, product, &tangent));
    ck_assert_int_ge(tangent, 0);
    ck_assert_int_le(ir.count - before, (intmax_t)4 * factors);
    end();
}
END_TEST

START_TEST(at_a_kink_the_derivative_is_the_one_of_the_stated_side)
{
    const struct {
        trli_op op;
        double b, expected; /* of the operation on x = 0 and b*x, x growing */
    } kinks[] = {{TRLI_OP_ABS, 0, 1}, {TRLI_OP_MIN, 3, 1}, {TRLI_OP_MAX, 3, 1}};
    for (size_t i = 0; i < sizeof kinks / sizeof *kinks; ++i) {
        begin(5);
        evaluation e = {.ir = &ir, .field = field_value, .scalar = scalar_value};
        trli_ir_value x = binary(TRLI_OP_SUB, trli_ir_scalar(&ir, 0), number(parameter)), tangent;
        trli_ir_value v = kinks[i].op == TRLI_OP_ABS
                              ? trli_ir_unary(&ir, TRLI_OP_ABS, x)
                              : binary(kinks[i].op, x, binary(TRLI_OP_MUL, number(kinks[i].b), x));
        ck_ok(trli_derivative_of(&derivative, v, &tangent));
        ck_assert_double_eq(evaluate(&e, tangent, 0), kinks[i].expected);
    }
    end();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_function_has_the_derivative_that_differences_show);
    tcase_add_test(tc, every_limiter_has_the_derivative_that_differences_show);
    tcase_add_test(tc, random_expressions_have_the_derivative_that_differences_show);
    tcase_add_test(tc, what_does_not_change_has_a_zero_known_from_the_structure);
    tcase_add_test(tc, a_product_of_many_factors_shares_what_its_derivatives_have_in_common);
    tcase_add_test(tc, at_a_kink_the_derivative_is_the_one_of_the_stated_side);
}

TRL_TEST_MAIN("derivative", add_tests)
