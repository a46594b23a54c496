/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1 timeout=300
/* The elementary functions against long double ones, whose own errors are below 0.002 ULP of a double where it has 64
 * bits or more (found against libquadmath's). TRL_FUNCTION_ARGUMENTS is the number of arguments for each function, by
 * default 1e6; the errors found are printed. */
#include "trl_test.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include <trl_formula.h>

#include "interpreter_impl.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
enum { ARGUMENTS = 100000 };
#else
enum { ARGUMENTS = 1000000 };
#endif

static uint64_t state;

/* SplitMix64 (Steele, Lea & Flood 2014) */
static uint64_t random_bits(void)
{
    uint64_t h = state += 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t to_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double between(double low, double high)
{
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

/* Any number that is not NaN, of all magnitudes alike. */
static double any_number(void)
{
    double x = from_bits(random_bits());
    return x == x ? x : any_number();
}

/* Near a multiple of pi/2 at which sines and cosines are small, and tangents large. */
static double near_quarter_turn(void)
{
    double x = rint(between(-1, 1) * exp2(between(0, 24))) * 1.5707963267948966;
    return from_bits(to_bits(x) + random_bits() % 5 - 2);
}

typedef struct span {
    double low, high;
} span;

/* A function of one number, its reference, the error that is allowed (ULP), and where arguments are dense. */
typedef struct wanted1 {
    const char *name;
    long double (*reference)(long double);
    double allowed;
    span span[6];
    double (*special)(void);
} wanted1;

static const wanted1 of_one[] = {
    {"sqrt", sqrtl, 0.5, {{0, 4}}, NULL},
    {"cbrt", cbrtl, 1, {{-8, 8}, {0, 0x1p-1022}}, NULL},
    {"exp", expl, 1, {{-1, 1}, {-20, 20}, {-746, 710}, {-746, -707}, {709, 710}}, NULL},
    {"expm1", expm1l, 1, {{-1, 1}, {-0.4, 0.4}, {-45, 5}, {-1e-3, 1e-3}, {5, 710}}, NULL},
    {"log", logl, 1, {{0, 4}, {0.5, 2}, {0.99, 1.01}, {0, 0x1p-1022}}, NULL},
    {"log1p", log1pl, 1, {{-1, 2}, {-0.4, 0.6}, {-1e-3, 1e-3}, {0, 1e5}}, NULL},
    {"log2", log2l, 1, {{0, 4}, {0.5, 2}, {0.99, 1.01}, {0, 0x1p-1022}}, NULL},
    {"log10", log10l, 1, {{0, 4}, {0.5, 2}, {0.99, 1.01}, {0, 0x1p-1022}}, NULL},
    {"sin", sinl, 1, {{-1, 1}, {-10, 10}, {-1e6, 1e6}, {-1e-3, 1e-3}}, near_quarter_turn},
    {"cos", cosl, 1, {{-1, 1}, {-10, 10}, {-1e6, 1e6}, {-1e-3, 1e-3}}, near_quarter_turn},
    {"tan", tanl, 1, {{-1, 1}, {-10, 10}, {-1e6, 1e6}, {-1e-3, 1e-3}}, near_quarter_turn},
    {"asin", asinl, 4, {{-1, 1}, {0.45, 0.55}, {-1e-3, 1e-3}, {0.999, 1}}, NULL},
    {"acos", acosl, 4, {{-1, 1}, {0.45, 0.55}, {-1, -0.999}, {0.999, 1}}, NULL},
    {"atan", atanl, 1, {{-1, 1}, {-5, 5}, {0.35, 0.5}, {2.3, 2.5}}, NULL},
    {"sinh", sinhl, 4, {{-1, 1}, {-30, 30}, {-1e-3, 1e-3}, {-711, 711}, {17, 20}}, NULL},
    {"cosh", coshl, 4, {{-1, 1}, {-30, 30}, {-1e-3, 1e-3}, {-711, 711}, {17, 20}}, NULL},
    {"tanh", tanhl, 1, {{-1, 1}, {-23, 23}, {-1e-3, 1e-3}, {0.3, 0.4}, {17, 20}}, NULL},
    {"asinh", asinhl, 4, {{-1, 1}, {-50, 50}, {-1e-3, 1e-3}, {0, 0x1p29}}, NULL},
    {"acosh", acoshl, 4, {{1, 2}, {1, 50}, {1, 1.001}, {0, 0x1p29}}, NULL},
    {"atanh", atanhl, 4, {{-1, 1}, {-0.2, 0.2}, {-1e-3, 1e-3}, {0.999, 1}}, NULL},
    {"erf", erfl, 4, {{-1, 1}, {-7, 7}, {-1e-3, 1e-3}, {0.9, 1.1}}, NULL},
    {"erfc", erfcl, 4, {{-1, 1}, {-7, 7}, {0, 28}, {26, 27.3}, {0.45, 0.6}}, NULL},
    {"floor", floorl, 0, {{-3, 3}, {-0x1p53, 0x1p53}, {-0x1p51, 0x1p51}}, NULL},
    {"ceil", ceill, 0, {{-3, 3}, {-0x1p53, 0x1p53}, {-0x1p51, 0x1p51}}, NULL},
    {"round", roundl, 0, {{-3, 3}, {-0x1p53, 0x1p53}, {-0x1p51, 0x1p51}}, NULL},
    {"trunc", truncl, 0, {{-3, 3}, {-0x1p53, 0x1p53}, {-0x1p51, 0x1p51}}, NULL},
    {"abs", fabsl, 0, {{-3, 3}}, NULL},
};

/* Of two numbers; the second one of the last span is rounded to a whole number. */
typedef struct wanted2 {
    const char *name;
    long double (*reference)(long double, long double);
    double allowed;
    span first[6], second[6];
} wanted2;

static const wanted2 of_two[] = {
    {"^",
     powl,
     2,
     {{0, 4}, {0, 10}, {0.99, 1.01}, {1 - 1e-9, 1 + 1e-9}, {0, 0x1p-1022}, {-10, 10}},
     {{-10, 10}, {-300, 300}, {-70000, 70000}, {-7e11, 7e11}, {-1.1, 1.1}, {-40, 40}}},
    {"atan2", atan2l, 4, {{-1, 1}, {-1e-3, 1e-3}, {0, 1}}, {{-1, 1}, {-1, 1}, {-1e-300, 1e-300}}},
    {"hypot", hypotl, 4, {{-1, 1}, {0, 0x1p-1022}, {0, DBL_MAX}}, {{-1, 1}, {0, 0x1p-1022}, {0, DBL_MAX}}},
    {"fmod", fmodl, 0, {{-10, 10}, {0, 1e300}, {0, 0x1p-1000}}, {{-1, 1}, {-1, 1}, {0, 0x1p-1060}}},
};

/* |got - reference| in units of the last place of a double there; infinity counts as 2^1024. */
static double error_of(double got, long double reference)
{
    const long double end = 0x1p1024L;
    int exponent;
    if (got != got || reference != reference) return got != got && reference != reference ? 0 : INFINITY;
    if (got == 0 && reference == 0) return !signbit(got) == !signbit(reference) ? 0 : INFINITY;
    long double g = isinf(got) ? copysignl(end, got) : (long double)got;
    long double r = fabsl(reference) > end ? copysignl(end, reference) : reference;
    frexpl(r, &exponent);
    exponent = r == 0 || exponent < -1021 ? -1021 : exponent > 1024 ? 1024 : exponent;
    return (double)(fabsl(g - r) / ldexpl(1, exponent - 53));
}

/* ---- blocks, by the loops of the interpreter ---- */

enum { BLOCK = 512 };

static void evaluate(int op, int index, const double *a, const double *b, double *out, int n, unsigned broadcast)
{
    const trli_row_block block = {
        .out = out, .arg = {a, b, a, a, a}, .n = n, .rows = 1, .broadcast = broadcast, .out_step = n};
    trli_row row = trli_row_find(op, broadcast);
    if (row)
        row(&block);
    else
        trli_row_indexed(op, index, &block);
}

static int index_of(const char *name)
{
    int count;
    return (int)(trl_function_find(name) - trl_functions(&count));
}

static int spans_in(const span *span)
{
    int n = 0;
    while (n < 6 && (span[n].low != 0 || span[n].high != 0)) ++n;
    return n;
}

static long arguments(void)
{
    const char *text = getenv("TRL_FUNCTION_ARGUMENTS");
    return text ? atol(text) : ARGUMENTS;
}

static double random_of(const span *span, int spans, int i, double (*special)(void))
{
    if (i < spans) return between(span[i].low, span[i].high);
    return i > spans ? special() : any_number();
}

/* The greatest error of a function, and where. Kinds of arguments alternate from block to block. */
static double worst_of_one(const wanted1 *w, double *where)
{
    double x[BLOCK], y[BLOCK], worst = 0;
    int spans = spans_in(w->span), kinds = spans + 1 + (w->special != NULL), index = index_of(w->name);
    long blocks = arguments() / BLOCK + 1;
    for (long block = 0; block < blocks; ++block) {
        for (int i = 0; i < BLOCK; ++i) x[i] = random_of(w->span, spans, (int)(block % kinds), w->special);
        evaluate(TRLI_OP_FUNCTION1, index, x, x, y, BLOCK, 0);
        for (int i = 0; i < BLOCK; ++i) {
            double error = error_of(y[i], w->reference(x[i]));
            if (error <= worst) continue;
            worst = error;
            *where = x[i];
        }
    }
    return worst;
}

static double worst_of_two(const wanted2 *w, double where[2])
{
    double a[BLOCK], b[BLOCK], y[BLOCK], worst = 0;
    bool power = strcmp(w->name, "^") == 0;
    int spans = spans_in(w->first), index = power ? 0 : index_of(w->name);
    long blocks = arguments() / BLOCK + 1;
    for (long block = 0; block < blocks; ++block) {
        int kind = (int)(block % (spans + 1));
        for (int i = 0; i < BLOCK; ++i) {
            a[i] = random_of(w->first, spans, kind, NULL);
            b[i] = random_of(w->second, spans, kind, NULL);
            if (kind == 5) b[i] = rint(b[i]);
        }
        evaluate(power ? TRLI_OP_POW : TRLI_OP_FUNCTION2, index, a, b, y, BLOCK, 0);
        for (int i = 0; i < BLOCK; ++i) {
            double error = error_of(y[i], w->reference(a[i], b[i]));
            if (error <= worst) continue;
            worst = error;
            where[0] = a[i];
            where[1] = b[i];
        }
    }
    return worst;
}

/* The bound of a function in the manual's table of errors. */
static double bound_in_manual(const char *name)
{
    char line[1000], key[32];
    double bound = -1;
    FILE *file = fopen(TRL_TEST_SOURCE_DIR "/../docs/formulas.md", "r");
    ck_assert_ptr_nonnull(file);
    snprintf(key, sizeof key, "| `%s` | ", name);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%lf", &bound) == 1) break;
    fclose(file);
    ck_assert_msg(bound >= 0, "docs/formulas.md has no row '%s<bound> |'", key);
    return bound;
}

static bool is_within(const char *name, double worst, double allowed, double x, double y)
{
    double bound = bound_in_manual(name);
    printf("%-6s %.4f ULP at %a %a; docs/formulas.md says %.4g\n", name, worst, x, y, bound);
    if (bound > allowed) printf("%s: no more than %.4g is allowed\n", name, allowed);
    fflush(stdout);
    return worst <= bound && bound <= allowed;
}

START_TEST(errors_stay_below_the_bounds_in_the_manual)
{
    bool within = true;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; ++i) {
        double where = 0, worst = worst_of_one(&of_one[i], &where);
        within &= is_within(of_one[i].name, worst, of_one[i].allowed, where, 0);
    }
    for (size_t i = 0; i < sizeof of_two / sizeof *of_two; ++i) {
        double where[2] = {0}, worst = worst_of_two(&of_two[i], where);
        within &= is_within(of_two[i].name, worst, of_two[i].allowed, where[0], where[1]);
    }
    ck_assert_msg(within, "an error above (found, or admitted by the manual) is greater than it may be");
}
END_TEST

/* ---- special values ---- */

#define TINY 0x1p-1074
#define LARGE DBL_MAX
#define PI 0x1.921fb54442d18p+1

static const struct {
    const char *name;
    double x, expected;
} special1[] = {
    {"exp", -INFINITY, 0},
    {"exp", INFINITY, INFINITY},
    {"exp", -0.0, 1},
    {"exp", 0x1.62e42fefa39fp+9, INFINITY},
    {"exp", -0x1.74910d52d3052p+9, 0},
    {"exp", -0x1.74910d52d3051p+9, TINY},
    {"exp", LARGE, INFINITY},
    {"exp", -LARGE, 0},
    {"expm1", -0.0, -0.0},
    {"expm1", TINY, TINY},
    {"expm1", -INFINITY, -1},
    {"expm1", INFINITY, INFINITY},
    {"expm1", -50, -1},
    {"log", 0, -INFINITY},
    {"log", -0.0, -INFINITY},
    {"log", 1, 0},
    {"log", INFINITY, INFINITY},
    {"log", -1, NAN},
    {"log", -INFINITY, NAN},
    {"log1p", -0.0, -0.0},
    {"log1p", -1, -INFINITY},
    {"log1p", -1.5, NAN},
    {"log1p", INFINITY, INFINITY},
    {"log1p", -INFINITY, NAN},
    {"log1p", TINY, TINY},
    {"log2", 0, -INFINITY},
    {"log2", TINY, -1074},
    {"log2", 0x1p1023, 1023},
    {"log2", -1, NAN},
    {"log2", INFINITY, INFINITY},
    {"log10", 0, -INFINITY},
    {"log10", 1000, 3},
    {"log10", 1e22, 22},
    {"log10", 1, 0},
    {"log10", -1, NAN},
    {"log10", INFINITY, INFINITY},
    {"sin", -0.0, -0.0},
    {"sin", INFINITY, NAN},
    {"sin", -INFINITY, NAN},
    {"sin", TINY, TINY},
    {"cos", -0.0, 1},
    {"cos", INFINITY, NAN},
    {"tan", -0.0, -0.0},
    {"tan", -INFINITY, NAN},
    {"asin", -0.0, -0.0},
    {"asin", 1, PI / 2},
    {"asin", -1, -PI / 2},
    {"asin", 1.1, NAN},
    {"asin", -INFINITY, NAN},
    {"acos", 1, 0},
    {"acos", -1, PI},
    {"acos", 0, PI / 2},
    {"acos", -1.1, NAN},
    {"atan", -0.0, -0.0},
    {"atan", INFINITY, PI / 2},
    {"atan", -INFINITY, -PI / 2},
    {"atan", LARGE, PI / 2},
    {"atan", -TINY, -TINY},
    {"sinh", -0.0, -0.0},
    {"sinh", INFINITY, INFINITY},
    {"sinh", -INFINITY, -INFINITY},
    {"sinh", -TINY, -TINY},
    {"sinh", LARGE, INFINITY},
    {"cosh", -0.0, 1},
    {"cosh", -INFINITY, INFINITY},
    {"cosh", LARGE, INFINITY},
    {"tanh", -0.0, -0.0},
    {"tanh", INFINITY, 1},
    {"tanh", -INFINITY, -1},
    {"tanh", TINY, TINY},
    {"tanh", -LARGE, -1},
    {"asinh", -0.0, -0.0},
    {"asinh", INFINITY, INFINITY},
    {"asinh", -INFINITY, -INFINITY},
    {"asinh", -TINY, -TINY},
    {"acosh", 1, 0},
    {"acosh", INFINITY, INFINITY},
    {"acosh", 0.5, NAN},
    {"acosh", -INFINITY, NAN},
    {"atanh", -0.0, -0.0},
    {"atanh", 1, INFINITY},
    {"atanh", -1, -INFINITY},
    {"atanh", 1.5, NAN},
    {"atanh", TINY, TINY},
    {"erf", -0.0, -0.0},
    {"erf", INFINITY, 1},
    {"erf", -INFINITY, -1},
    {"erfc", INFINITY, 0},
    {"erfc", -INFINITY, 2},
    {"erfc", -0.0, 1},
    {"cbrt", -0.0, -0.0},
    {"cbrt", -INFINITY, -INFINITY},
    {"cbrt", -27, -3},
    {"cbrt", 0x1p-1074, 0x1p-358},
    {"sqrt", -0.0, -0.0},
    {"sqrt", -1, NAN},
    {"sqrt", INFINITY, INFINITY},
    {"floor", -0.0, -0.0},
    {"floor", -0.2, -1},
    {"floor", -INFINITY, -INFINITY},
    {"floor", 0x1.fffffffffffffp51, 0x1.ffffffffffffep51},
    {"ceil", -0.0, -0.0},
    {"ceil", -0.2, -0.0},
    {"ceil", TINY, 1},
    {"ceil", INFINITY, INFINITY},
    {"round", -0.0, -0.0},
    {"round", -0.2, -0.0},
    {"round", 0.5, 1},
    {"round", 0x1.fffffffffffffp-2, 0},
    {"round", -2.5, -3},
    {"round", 3.5, 4},
    {"round", 0x1.fffffffffffffp51, 0x1p52},
    {"trunc", -0.9, -0.0},
    {"trunc", -INFINITY, -INFINITY},
    {"abs", -0.0, 0},
    {"sign", -0.0, -0.0},
    {"step", -0.0, 1},
};

static const struct {
    const char *name;
    double x, y, expected;
} special2[] = {
    {"^", 0, 3, 0},
    {"^", -0.0, 3, -0.0},
    {"^", -0.0, 2.5, 0},
    {"^", 0, -3, INFINITY},
    {"^", -0.0, -3, -INFINITY},
    {"^", -0.0, -2, INFINITY},
    {"^", -0.0, -INFINITY, INFINITY},
    {"^", 0, INFINITY, 0},
    {"^", -1, INFINITY, 1},
    {"^", -1, -INFINITY, 1},
    {"^", 1, NAN, 1},
    {"^", NAN, 0, 1},
    {"^", NAN, -0.0, 1},
    {"^", NAN, 1, NAN},
    {"^", 2, NAN, NAN},
    {"^", -2, 0.5, NAN},
    {"^", -8, 3, -512},
    {"^", -2, 0x1p53, INFINITY},
    {"^", -0.5, 0x1.fffffffffffffp52, -0.0},
    {"^", 0.5, INFINITY, 0},
    {"^", 0.5, -INFINITY, INFINITY},
    {"^", -2, INFINITY, INFINITY},
    {"^", -2, -INFINITY, 0},
    {"^", -INFINITY, -3, -0.0},
    {"^", -INFINITY, -2.5, 0},
    {"^", -INFINITY, 3, -INFINITY},
    {"^", -INFINITY, 2, INFINITY},
    {"^", INFINITY, -TINY, 0},
    {"^", INFINITY, 0.5, INFINITY},
    {"^", 2, 1024, INFINITY},
    {"^", 2, -1074, TINY},
    {"^", 2, -1076, 0},
    {"^", LARGE, LARGE, INFINITY},
    {"^", LARGE, -LARGE, 0},
    {"^", 0x1.fffffffffffffp-1, LARGE, 0},
    {"^", 10, 22, 1e22},
    {"atan2", 0, -0.0, PI},
    {"atan2", -0.0, -0.0, -PI},
    {"atan2", 0, 0, 0},
    {"atan2", -0.0, 0, -0.0},
    {"atan2", -0.0, -3, -PI},
    {"atan2", 0, 3, 0},
    {"atan2", -2, 0, -PI / 2},
    {"atan2", 2, -0.0, PI / 2},
    {"atan2", 1, -INFINITY, PI},
    {"atan2", -1, INFINITY, -0.0},
    {"atan2", INFINITY, 7, PI / 2},
    {"atan2", -INFINITY, -INFINITY, -0x1.2d97c7f3321d2p+1},
    {"atan2", INFINITY, INFINITY, PI / 4},
    {"atan2", LARGE, LARGE, PI / 4},
    {"atan2", TINY, TINY, PI / 4},
    {"atan2", TINY, LARGE, 0},
    {"atan2", LARGE, TINY, PI / 2},
    {"atan2", NAN, INFINITY, NAN},
    {"atan2", 1, NAN, NAN},
    {"hypot", -INFINITY, NAN, INFINITY},
    {"hypot", NAN, INFINITY, INFINITY},
    {"hypot", NAN, 1, NAN},
    {"hypot", -3, 4, 5},
    {"hypot", -3e300, 4e300, 5e300},
    {"hypot", 3 * TINY, 4 * TINY, 5 * TINY},
    {"hypot", LARGE, LARGE, INFINITY},
    {"hypot", -0.0, -0.0, 0},
    {"fmod", -0.0, 2, -0.0},
    {"fmod", -6, 2, -0.0},
    {"fmod", 5, INFINITY, 5},
    {"fmod", 5, 0, NAN},
    {"fmod", INFINITY, 2, NAN},
    {"fmod", NAN, 2, NAN},
    {"fmod", 2, NAN, NAN},
    {"fmod", LARGE, TINY, 0},
    {"fmod", LARGE, 3, 2},
    {"fmod", 0x1p1000, 7, 2},
    {"min", NAN, 1, NAN},
    {"min", 1, NAN, NAN},
    {"max", NAN, 1, NAN},
    {"max", 1, NAN, NAN},
};

static bool same(double a, double b)
{
    return to_bits(a) == to_bits(b) || (a != a && b != b);
}

START_TEST(special_values_are_those_of_annex_f)
{
    for (size_t i = 0; i < sizeof special1 / sizeof *special1; ++i) {
        double y, x = special1[i].x;
        evaluate(TRLI_OP_FUNCTION1, index_of(special1[i].name), &x, &x, &y, 1, 0);
        ck_assert_msg(same(y, special1[i].expected), "%s(%a) is %a, not %a", special1[i].name, x, y,
                      special1[i].expected);
    }
    for (size_t i = 0; i < sizeof special2 / sizeof *special2; ++i) {
        double r, x = special2[i].x, y = special2[i].y;
        bool power = strcmp(special2[i].name, "^") == 0;
        evaluate(power ? TRLI_OP_POW : TRLI_OP_FUNCTION2, power ? 0 : index_of(special2[i].name), &x, &y, &r, 1, 0);
        ck_assert_msg(same(r, special2[i].expected), "%s(%a, %a) is %a, not %a", special2[i].name, x, y, r,
                      special2[i].expected);
    }
}
END_TEST

START_TEST(nan_stays_nan)
{
    int count;
    const trl_function *f = trl_functions(&count);
    for (int i = 0; i < count; ++i) {
        double nan[2] = {NAN, -NAN};
        for (int j = 0; j < 2; ++j) {
            double y = f[i].arity == 1 ? f[i].unary(nan[j]) : f[i].binary(nan[j], nan[j]);
            ck_assert_msg(isnan(y), "%s of NaN is %a", f[i].name, y);
        }
    }
}
END_TEST

/* Vectors and their remainders, near and far arguments in one row, broadcast operands: each value as by itself. */
START_TEST(rows_give_the_bits_of_single_values)
{
    enum { MOST = 37 };
    int count;
    const trl_function *f = trl_functions(&count);
    for (int i = 0; i < count; ++i)
        for (int trial = 0; trial < 400; ++trial) {
            double a[MOST], b[MOST], y[MOST];
            int n = 1 + trial % MOST, far = trial % 3;
            unsigned broadcast = f[i].arity == 2 && n > 1 ? (unsigned)trial / 3 % 3 : 0;
            for (int p = 0; p < n; ++p) {
                a[p] = far && random_bits() % 4 < (unsigned)far ? any_number() : between(-3, 3);
                b[p] = far && random_bits() % 4 < (unsigned)far ? any_number() : between(-3, 3);
            }
            evaluate(f[i].arity == 1 ? TRLI_OP_FUNCTION1 : TRLI_OP_FUNCTION2, i, a, b, y, n, broadcast);
            for (int p = 0; p < n; ++p) {
                double x = a[broadcast & 1 ? 0 : p], z = b[broadcast & 2 ? 0 : p];
                double expected = f[i].arity == 1 ? f[i].unary(x) : f[i].binary(x, z);
                ck_assert_msg(same(y[p], expected), "%s(%a, %a): %a in a row, %a alone", f[i].name, x, z, y[p],
                              expected);
            }
        }
}
END_TEST

static void add_tests(TCase *tc)
{
    if (LDBL_MANT_DIG >= 64) tcase_add_test(tc, errors_stay_below_the_bounds_in_the_manual);
    tcase_add_test(tc, special_values_are_those_of_annex_f);
    tcase_add_test(tc, nan_stays_nan);
    tcase_add_test(tc, rows_give_the_bits_of_single_values);
}

TRL_TEST_MAIN("functions", add_tests)
