/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Names, and formulas that are numbers: parameters, indices, ranges. */
#include <math.h>

#include <trl_formula.h>

#include "trl_test.h"

static const char *const outer_name[] = {"n", "k", "D1", "D2", "D3", "i"};
static const double outer_value[] = {3, 0.25, 0.1, 0.2, 0.5, 9};
static const trl_scope outer = {.n = 6, .name = outer_name, .value = outer_value};
static const char *const inner_name[] = {"i"};
static const double inner_value[] = {2};
static const trl_scope inner = {.n = 1, .name = inner_name, .value = inner_value, .outer = &outer};

static trl_formula *parse(const char *chars)
{
    trl_formula *formula;
    trl_text text = {.chars = chars, .place = {.file = "deck.yaml", .line = 3, .column = 8}, .exact = true};
    ck_ok(trl_formula_parse(test_ctx, &text, &formula));
    return formula;
}

static double number(const char *chars)
{
    double value;
    trl_formula *formula = parse(chars);
    ck_ok(trl_ast_number(test_ctx, &formula->text, formula->root, &inner, &value));
    trl_formula_destroy(&formula);
    return value;
}

static void check_number(const char *chars, double expected)
{
    double value = number(chars);
    ck_assert_msg(memcmp(&value, &expected, sizeof value) == 0, "%s: %.17g, expected %.17g", chars, value, expected);
}

/* The only message recorded since the last check: its text and where it points (column of the formula from 1). */
static void check_message(const char *chars, int column, int length, const char *message)
{
    const trl_diagnostic *list;
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1);
    ck_assert_str_eq(list[0].text, message);
    ck_assert_msg(list[0].column == 7 + column, "%s: column %d", chars, list[0].column - 7);
    ck_assert_msg(list[0].length == length, "%s: length %d", chars, list[0].length);
    trl_context_clear_diagnostics(test_ctx);
}

static void check_no_number(const char *chars, int column, int length, const char *message)
{
    double value;
    trl_formula *formula = parse(chars);
    ck_assert_int_eq(trl_ast_number(test_ctx, &formula->text, formula->root, &inner, &value), TRL_ERR_INPUT);
    check_message(chars, column, length, message);
    trl_formula_destroy(&formula);
}

START_TEST(arithmetic_is_real)
{
    check_number("1/2", 0.5);
    check_number("7/2*2", 7);
    check_number("2 + 3*4 - 1", 13);
    check_number("-2^2", -4);
    check_number("2^3^2", 512);
    check_number("-(+3)", -3);
    check_number("pi", 3.14159265358979323846);
    check_number("1/0", INFINITY);
    check_number("n*k", 0.75);
}
END_TEST

START_TEST(small_whole_powers_are_products_from_the_left)
{
    double a = 1.1;
    check_number("1.1^0", 1);
    check_number("1.1^1", a);
    check_number("1.1^3", a * a * a);
    check_number("1.1^7", a * a * a * a * a * a * a);
    check_number("1.1^8", a * a * a * a * a * a * a * a);
    check_number("1.1^-2", 1 / (a * a));
    check_number("1.1^-1", 1 / a);
    check_number("1.3^9", pow(1.3, 9));
    check_number("1.1^0.5", pow(a, 0.5));
    check_number("(-8)^n", -512);
    ck_assert(isnan(number("(-8)^0.5")));
}
END_TEST

START_TEST(logic_gives_one_or_zero)
{
    check_number("2 and -3", 1);
    check_number("2 and 0", 0);
    check_number("0 or 0.5", 1);
    check_number("0 or 0", 0);
    check_number("not 3", 0);
    check_number("not 0", 1);
    check_number("true + (1 < 2) + (2 <= 2) + (3 > 2) + (2 >= 2) + (1 == 1) + (1 != 2)", 7);
    check_number("false + (2 < 2) + (3 <= 2) + (2 > 2) + (1 >= 2) + (1 == 2) + (1 != 1)", 0);
}
END_TEST

START_TEST(if_evaluates_only_the_chosen_branch)
{
    check_number("if(n > 2, 5, 6)", 5);
    check_number("if(n > 3, 5, 6)", 6);
    check_number("if(i == 2, D{i-1}, D{i-3})", 0.1);
    check_number("if(0, absent, 1)", 1);
}
END_TEST

START_TEST(inner_names_hide_outer_ones)
{
    double value;
    check_number("i", 2);
    ck_assert(trl_scope_find(&outer, "i", &value));
    ck_assert_double_eq(value, 9);
    ck_assert(!trl_scope_find(&inner, "absent", &value));
    ck_assert(!trl_scope_find(NULL, "i", &value));
    const char *pi_name[] = {"pi"};
    double three = 3;
    trl_scope pi = {.n = 1, .name = pi_name, .value = &three};
    ck_assert(trl_scope_find(&pi, "pi", &value));
}
END_TEST

START_TEST(families_are_summed_and_multiplied)
{
    check_number("sum(j=1..n, j^2)", 14);
    check_number("prod(j=1..4, j)", 24);
    check_number("sum(j=1..n, D{j})", 0.1 + 0.2 + 0.5);
    check_number("sum(i=1..2, D{i}) + i", 0.1 + 0.2 + 2);
    check_number("sum(j=1..0, absent)", 0);
    check_number("prod(j=2..-2, absent)", 1);
    check_number("sum(j=1..2, sum(k=1..j, 10*j + k))", 11 + 21 + 22);
    check_number("sum(j=-1..1, j^2)", 2);
}
END_TEST

/* Each against a value known from elsewhere. */
START_TEST(every_function_computes_what_its_name_says)
{
    static const struct {
        const char *name;
        double a, b, expected;
    } rows[] = {
        {"sqrt", 2, 0, 1.4142135623730951},
        {"cbrt", -27, 0, -3},
        {"exp", 1, 0, 2.718281828459045},
        {"expm1", 1e-10, 0, 1.00000000005e-10},
        {"log", 10, 0, 2.302585092994046},
        {"log1p", 1e-10, 0, 9.9999999995e-11},
        {"log2", 8, 0, 3},
        {"log10", 1000, 0, 3},
        {"sin", 1, 0, 0.8414709848078965},
        {"cos", 1, 0, 0.5403023058681398},
        {"tan", 1, 0, 1.5574077246549023},
        {"asin", 0.5, 0, 0.5235987755982989},
        {"acos", 0.5, 0, 1.0471975511965979},
        {"atan", 1, 0, 0.7853981633974483},
        {"atan2", 1, -1, 2.356194490192345},
        {"sinh", 1, 0, 1.1752011936438014},
        {"cosh", 1, 0, 1.543080634815244},
        {"tanh", 1, 0, 0.7615941559557649},
        {"asinh", 1, 0, 0.881373587019543},
        {"acosh", 2, 0, 1.3169578969248168},
        {"atanh", 0.5, 0, 0.5493061443340548},
        {"erf", 1, 0, 0.8427007929497149},
        {"erfc", 1, 0, 0.15729920705028513},
        {"hypot", 3, 4, 5},
        {"fmod", -7, 3, -1},
        {"floor", -1.5, 0, -2},
        {"ceil", -1.5, 0, -1},
        {"round", -2.5, 0, -3},
        {"trunc", -1.7, 0, -1},
        {"abs", -2, 0, 2},
        {"sign", -2, 0, -1},
        {"min", 2, -3, -3},
        {"max", 2, -3, 2},
        {"step", 0, 0, 1},
    };
    int count, n = (int)(sizeof rows / sizeof rows[0]);
    const trl_function *table = trl_functions(&count);
    ck_assert_int_eq(count, n);
    for (int i = 0; i < n; ++i) {
        char text[80];
        const trl_function *f = trl_function_find(rows[i].name);
        ck_assert_ptr_nonnull(f);
        ck_assert(f >= table && f < table + count && f->doc[0]);
        if (f->arity == 1)
            snprintf(text, sizeof text, "%s(%.17g)", f->name, rows[i].a);
        else
            snprintf(text, sizeof text, "%s(%.17g, %.17g)", f->name, rows[i].a, rows[i].b);
        ck_assert_msg(fabs(number(text) - rows[i].expected) <= 4e-16 * fabs(rows[i].expected), "%s: %.17g", text,
                      number(text));
    }
    ck_assert_ptr_null(trl_function_find("grad"));
    ck_assert_ptr_null(trl_function_find("if"));
}
END_TEST

START_TEST(choices_keep_nan_and_edges)
{
    check_number("min(3, 1, 2)", 1);
    check_number("max(1, 3, 2)", 3);
    check_number("step(-1e-300)", 0);
    check_number("step(1)", 1);
    check_number("sign(0)", 0);
    check_number("sign(7)", 1);
    ck_assert(isnan(number("min(0/0, 1)")) && isnan(number("min(1, 0/0)")));
    ck_assert(isnan(number("max(0/0, 1)")) && isnan(number("max(1, 0/0)")));
    ck_assert(isnan(number("step(0/0)")) && isnan(number("sign(0/0)")));
}
END_TEST

START_TEST(rejects_what_is_no_number)
{
    check_no_number("1 + kk", 5, 2, "'kk' is not a number known here; did you mean 'k'?");
    check_no_number("x", 1, 1, "'x' is not a number known here: only parameters, indices and pi are");
    check_no_number("2*D{i+7}", 3, 6, "'D9' is not a number known here; did you mean 'D1'?");
    check_no_number("sine(1)", 1, 7,
                    "'sine' is not a function of numbers, and only these are allowed here; did you mean 'sin'?");
    check_no_number("laplacian(k)", 1, 12, "'laplacian' is not a function of numbers, and only these are allowed here");
    check_no_number("sin(1, 2)", 1, 9, "'sin' takes 1 argument, got 2");
    check_no_number("1 + atan2(1)", 5, 8, "'atan2' takes 2 arguments, got 1");
    check_no_number("max(1)", 1, 6, "'max' takes 2 arguments, got 1");
    check_no_number("if(1, 2)", 1, 8, "'if' takes 3 arguments, got 2");
    check_no_number("[1, 2]", 1, 6, "a vector stands where a number is needed");
    check_no_number("1 + k.x", 5, 3, "a vector stands where a number is needed");
    check_no_number("D{k}", 3, 1, "an index in a name is a whole number from 0, found 0.25");
    check_no_number("D{i-3}", 3, 3, "an index in a name is a whole number from 0, found -1");
    check_no_number("D{0/0}", 3, 3, "an index in a name is a whole number from 0, found nan");
    check_no_number("sum(j=k..2, j)", 7, 1, "a range runs between whole numbers, found 0.25");
    check_no_number("sum(j=0/0..2, j)", 7, 3, "a range runs between whole numbers, found nan");
    check_no_number("sum(j=1..2/4, j)", 10, 3, "a range runs between whole numbers, found 0.5");
    static const char too_many[] =
        "sums and products may take 4000000 operations in all, and here they take more; use shorter ranges";
    check_no_number("sum(j=1..10000000, j)", 1, 21, too_many);
    check_no_number("sum(a=1..10^8, sum(b=1..10^8, 1))", 1, 33, too_many);
}
END_TEST

START_TEST(braces_in_names_are_evaluated)
{
    char buffer[32];
    trl_formula *formula = parse("a{i}b{n*2}{0}");
    ck_ok(trl_name_expand(test_ctx, &formula->text, formula->root, &inner, buffer, sizeof buffer));
    ck_assert_str_eq(buffer, "a2b60");
    ck_ok(trl_name_expand(test_ctx, &formula->text, formula->root, &inner, buffer, 6));
    ck_assert_int_eq(trl_name_expand(test_ctx, &formula->text, formula->root, &inner, buffer, 5), TRL_ERR_INPUT);
    check_message("a{i}b{n*2}{0}", 1, 13, "a name has at most 4 characters");
    ck_assert_int_eq(trl_name_expand(test_ctx, &formula->text, formula->root, NULL, buffer, sizeof buffer),
                     TRL_ERR_INPUT);
    check_message("a{i}b{n*2}{0}", 3, 1, "'i' is not a number known here: only parameters, indices and pi are");
    trl_formula_destroy(&formula);
    formula = parse("plain");
    ck_ok(trl_name_expand(test_ctx, &formula->text, formula->root, NULL, buffer, sizeof buffer));
    ck_assert_str_eq(buffer, "plain");
    trl_formula_destroy(&formula);
}
END_TEST

/* Visited names, each followed by a blank. */
static trl_err collect(void *data, const char *name, const trl_ast *node)
{
    char *list = data;
    ck_assert_int_eq(node->kind, TRL_AST_NAME);
    if (strcmp(name, "stop") == 0) return trl_fail(test_ctx, TRL_ERR_INPUT, NULL, "stopped");
    strcat(strcat(list, name), " ");
    return TRL_OK;
}

static void check_visits(const char *chars, const trl_scope *names, const char *expected)
{
    char list[200] = "";
    trl_formula *formula = parse(chars);
    ck_ok(trl_ast_visit_names(test_ctx, &formula->text, formula->root, names, collect, list));
    ck_assert_str_eq(list, expected);
    trl_formula_destroy(&formula);
}

START_TEST(names_are_visited_once_each)
{
    check_visits("a + sin(b)*a - [c, d.x].y", NULL, "a b a c d ");
    check_visits("2*pi", NULL, "pi ");
    check_visits("D{i-1} + grad(T)", &inner, "i D1 T ");
    check_visits("if(i == 1, absent, other)", &inner, "i other ");
    check_visits("if(i == 2, absent, other)", &inner, "i absent ");
    check_visits("if(a == 1, b, c)", &inner, "a b c ");
    check_visits("if(grad(i), b, c)", &inner, "i b c ");
    check_visits("if(sum(j=1..2, j), b, c)", &inner, "b c ");
}
END_TEST

START_TEST(terms_of_families_are_visited_for_each_index)
{
    check_visits("sum(j=1..n, A{j})", &inner, "n A1 A2 A3 ");
    check_visits("sum(j=1..2, if(j == 1, a, b))", NULL, "a b ");
    check_visits("sum(j=1..m, j*a)", &inner, "m a ");
    check_visits("sum(j=1..m, sum(j=1..2, A{j}))", &inner, "m A1 A2 ");
    check_visits("sum(i=1..m, if(i == 2, a, b))", &inner, "m a b ");
}
END_TEST

START_TEST(visiting_fails_with_its_visitor_and_without_ranges)
{
    char list[200] = "";
    trl_formula *formula = parse("a + stop + b");
    ck_fails(trl_ast_visit_names(test_ctx, &formula->text, formula->root, NULL, collect, list), TRL_ERR_INPUT,
             "stopped");
    ck_assert_str_eq(list, "a ");
    trl_formula_destroy(&formula);
    trl_context_clear_diagnostics(test_ctx);
    formula = parse("sum(i=1..m, A{i})");
    ck_assert_int_eq(trl_ast_visit_names(test_ctx, &formula->text, formula->root, &inner, collect, list),
                     TRL_ERR_INPUT);
    check_message("sum(i=1..m, A{i})", 15, 1, "the range of 'i' is not known here");
    trl_formula_destroy(&formula);
}
END_TEST

START_TEST(names_are_letters_digits_and_underscores)
{
    char name[300];
    memset(name, 'a', sizeof name);
    name[256] = 0;
    ck_assert(!trl_name_valid(name));
    name[255] = 0;
    ck_assert(trl_name_valid(name));
    ck_assert(trl_name_valid("a") && trl_name_valid("_") && trl_name_valid("Rho_1"));
    ck_assert(!trl_name_valid("") && !trl_name_valid("1a") && !trl_name_valid("a-b") && !trl_name_valid("a.x") &&
              !trl_name_valid("\xC3\xA9") && !trl_name_valid("a "));
}
END_TEST

START_TEST(the_reserved_words_are_those_of_the_language)
{
    static const char *const reserved[] = {"x",  "y",  "z",   "t",  "dt",  "dx",   "dy",
                                           "dz", "pi", "and", "or", "not", "true", "false"};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; ++i)
        ck_assert_msg(trl_name_reserved(reserved[i]), "%s", reserved[i]);
    ck_assert(!trl_name_reserved("e") && !trl_name_reserved("X") && !trl_name_reserved("if") && !trl_name_reserved(""));
}
END_TEST

static void check_nearest(const char *name, const char *expected)
{
    static const char *const names[] = {
        "diffusivity", "conductivity", "T",
        "rho",         "rhs",          "a_name_longer_than_the_sixty-three_characters_that_are_compared__"};
    const char *nearest = trl_name_nearest(name, names, 6);
    ck_assert_msg(expected ? nearest && strcmp(nearest, expected) == 0 : !nearest, "%s: %s", name,
                  nearest ? nearest : "(none)");
}

START_TEST(the_nearest_name_is_few_letters_away)
{
    check_nearest("diffusivty", "diffusivity");
    check_nearest("difusivtiy", "diffusivity");
    check_nearest("conductvity", "conductivity");
    check_nearest("rhoo", "rho");
    check_nearest("rh", "rho");
    check_nearest("rsh", "rhs");
    check_nearest("pressure", NULL);
    check_nearest("q", NULL);
    check_nearest("", NULL);
    check_nearest("a_name_longer_than_the_sixty-three_characters_that_are_compared__", NULL);
    ck_assert_ptr_null(trl_name_nearest("a", NULL, 0));
}
END_TEST

START_TEST(places_point_into_exact_texts)
{
    trl_text text = {
        .chars = "a + \xC2\xB5 + bc", .place = {.file = "f", .line = 2, .column = 10, .length = 3}, .exact = true};
    trl_place place = trl_text_place(&text, 9, 11);
    ck_assert_str_eq(place.file, "f");
    ck_assert_int_eq(place.line, 2);
    ck_assert_int_eq(place.column, 18);
    ck_assert_int_eq(place.length, 2);
    ck_assert_int_eq(trl_text_place(&text, 4, 6).length, 1);
    ck_assert_int_eq(trl_text_place(&text, 11, 11).length, 1);
    text.exact = false;
    ck_assert_int_eq(trl_text_place(&text, 9, 11).column, 10);
    ck_assert_int_eq(trl_text_place(&text, 9, 11).length, 3);
    text = (trl_text){.chars = "a + b", .exact = true};
    ck_assert_int_eq(trl_text_place(&text, 4, 5).column, 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, arithmetic_is_real);
    tcase_add_test(tc, small_whole_powers_are_products_from_the_left);
    tcase_add_test(tc, logic_gives_one_or_zero);
    tcase_add_test(tc, if_evaluates_only_the_chosen_branch);
    tcase_add_test(tc, inner_names_hide_outer_ones);
    tcase_add_test(tc, families_are_summed_and_multiplied);
    tcase_add_test(tc, every_function_computes_what_its_name_says);
    tcase_add_test(tc, choices_keep_nan_and_edges);
    tcase_add_test(tc, rejects_what_is_no_number);
    tcase_add_test(tc, braces_in_names_are_evaluated);
    tcase_add_test(tc, names_are_visited_once_each);
    tcase_add_test(tc, terms_of_families_are_visited_for_each_index);
    tcase_add_test(tc, visiting_fails_with_its_visitor_and_without_ranges);
    tcase_add_test(tc, names_are_letters_digits_and_underscores);
    tcase_add_test(tc, the_reserved_words_are_those_of_the_language);
    tcase_add_test(tc, the_nearest_name_is_few_letters_away);
    tcase_add_test(tc, places_point_into_exact_texts);
}

TRL_TEST_MAIN("names", add_tests)
