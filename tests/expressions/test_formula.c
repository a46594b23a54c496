/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include <trl_formula.h>

#include "formula_dump.h"
#include "trl_test.h"

/* A text as the deck reader makes it: it stands from column 8 of line 3. */
static trl_text text_of(const char *chars)
{
    return (trl_text){.chars = chars, .place = {.file = "deck.yaml", .line = 3, .column = 8}, .exact = true};
}

static trl_formula *parse(const char *chars)
{
    trl_formula *formula;
    trl_text text = text_of(chars);
    ck_ok(trl_formula_parse(test_ctx, &text, &formula));
    return formula;
}

static void check_tree(const char *chars, const char *expected)
{
    char buffer[1000] = "";
    dump d = {.buffer = buffer, .size = sizeof buffer};
    trl_formula *formula = parse(chars);
    dump_tree(&d, formula->root);
    ck_assert_str_eq(buffer, expected);
    trl_formula_destroy(&formula);
    ck_assert_ptr_null(formula);
}

/* Parsing fails with this message, at this column of the formula (from 1), this many characters underlined. */
static void check_error(const char *chars, int column, int length, const char *message)
{
    trl_formula *formula;
    const trl_diagnostic *list;
    trl_text text = text_of(chars);
    trl_context_clear_diagnostics(test_ctx);
    ck_assert_int_eq(trl_formula_parse(test_ctx, &text, &formula), TRL_ERR_INPUT);
    ck_assert_ptr_null(formula);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1);
    ck_assert_str_eq(list[0].text, message);
    ck_assert_str_eq(list[0].file, "deck.yaml");
    ck_assert_int_eq(list[0].line, 3);
    ck_assert_msg(list[0].column == 7 + column, "%s: column %d", chars, list[0].column - 7);
    ck_assert_msg(list[0].length == length, "%s: length %d", chars, list[0].length);
}

START_TEST(precedence_follows_the_language)
{
    check_tree("a+b*c", "(a + (b * c))");
    check_tree("a-b-c", "((a - b) - c)");
    check_tree("a/b*c", "((a / b) * c)");
    check_tree("a or b and not c == d + e", "(a or (b and (not (c == (d + e)))))");
    check_tree("not a and b", "((not a) and b)");
    check_tree("not not a", "(not (not a))");
    check_tree("a < b and b <= c or d != e", "(((a < b) and (b <= c)) or (d != e))");
    check_tree("(a < b) < c", "((a < b) < c)");
    check_tree("(a+b)*c", "((a + b) * c)");
    check_tree("a*-b", "(a * (- b))");
    check_tree("a - -b", "(a - (- b))");
    check_tree("+a", "(+ a)");
    check_tree("-a*b", "((- a) * b)");
}
END_TEST

START_TEST(powers_bind_to_the_right_and_tighter_than_signs)
{
    check_tree("-x^2", "(- (x ^ 2))");
    check_tree("a^b^c", "(a ^ (b ^ c))");
    check_tree("a**b**c", "(a ^ (b ^ c))");
    check_tree("2^-x^2", "(2 ^ (- (x ^ 2)))");
    check_tree("2^+-x", "(2 ^ (+ (- x)))");
    check_tree("a*b^c", "(a * (b ^ c))");
    check_tree("v.x^2", "((v).x ^ 2)");
    check_tree("sin(x)^2", "(sin(x) ^ 2)");
    check_tree("-a^b*c", "((- (a ^ b)) * c)");
}
END_TEST

START_TEST(numbers_are_decimal)
{
    check_tree("1. + .5", "(1 + 0.5)");
    check_tree("1e-5", "1.0000000000000001e-05");
    check_tree("1.0E+5", "100000");
    check_tree("2.5e3", "2500");
    check_tree("010", "10");
    check_tree("0.1", "0.10000000000000001");
    check_tree("123456789.123456789", "123456789.12345679");
    check_tree("1.7976931348623157e308", "1.7976931348623157e+308");
    check_tree("0.000000000000000000000000000001e30", "1");
    check_tree("1e-400", "0");
    check_tree("1e-99999999999999999999", "0");
    check_tree("true + false", "(1 + 0)");
}
END_TEST

START_TEST(two_dots_are_a_token_of_their_own)
{
    check_tree("sum(j=1..3, j)", "sum(j=1 .. 3, j)");
    check_tree("sum(j=1. ..5., j)", "sum(j=1 .. 5, j)");
    check_tree("sum(j=1.5e1..n, j)", "sum(j=15 .. n, j)");
    check_tree("sum(j=n.. .5e1, j)", "sum(j=n .. 5, j)");
}
END_TEST

START_TEST(names_calls_vectors_and_components)
{
    check_tree("rho_cp", "rho_cp");
    check_tree("_a1", "_a1");
    check_tree("pi", "pi");
    check_tree("[a, b+1, c]", "[a, (b + 1), c]");
    check_tree("[a]", "[a]");
    check_tree("v.x + [a, b].y + f(a).z", "(((v).x + ([a, b]).y) + (f(a)).z)");
    check_tree("grad( T ).x", "(grad(T)).x");
    check_tree("if(a, b, c)", "if(a, b, c)");
    check_tree("probe(f, [0.5, 0.5])", "probe(f, [0.5, 0.5])");
    check_tree("left(f, minmod) + at(f, cell)", "(left(f, minmod) + at(f, cell))");
    check_tree("extrapolate(x - y, x-) - extrapolate(f , z +)", "(extrapolate((x - y), x-) - extrapolate(f, z+))");
    check_tree("f (a)", "f(a)");
    check_tree(" a\n+\tb ", "(a + b)");
}
END_TEST

START_TEST(names_take_integer_expressions_in_braces)
{
    check_tree("phi{i-1}", "phi{(i - 1)}");
    check_tree("a{i}b", "a{i}b");
    check_tree("a{i}{j}", "a{i}{j}");
    check_tree("a{i}2.x + 1", "((a{i}2).x + 1)");
    check_tree("a{ b{i} }_c{1}d{2}e{3}", "a{b{i}}_c{1}d{2}e{3}");
    check_tree("and{i} + x{1}", "(and{i} + x{1})");
    trl_formula *formula = parse("a{i}b");
    ck_assert_int_eq(formula->root->nparts, 2);
    ck_assert_str_eq(formula->root->part[1].text, "b");
    ck_assert_ptr_null(formula->root->part[1].index);
    trl_formula_destroy(&formula);
    formula = parse("phi{i}");
    ck_assert_int_eq(formula->root->nparts, 1);
    trl_formula_destroy(&formula);
}
END_TEST

START_TEST(families_have_an_index_and_a_range)
{
    check_tree("sum(j=1..n, phi{j})", "sum(j=1 .. n, phi{j})");
    check_tree("prod(j=i-1..2*n, exp(phi{j}))", "prod(j=(i - 1) .. (2 * n), exp(phi{j}))");
    check_tree("sum( k = 1 .. n , k < 2 )", "sum(k=1 .. n, (k < 2))");
    check_tree("summit + prod", "(summit + prod)");
}
END_TEST

START_TEST(min_and_max_take_more_than_two_arguments)
{
    check_tree("min(a, b, c)", "min(min(a, b), c)");
    check_tree("max(a, b, c, d)", "max(max(max(a, b), c), d)");
    check_tree("min(a, b)", "min(a, b)");
    check_tree("max(a)", "max(a)");
    check_tree("min(a, min(b, c, d))", "min(a, min(min(b, c), d))");
}
END_TEST

START_TEST(nodes_know_the_characters_they_were_read_from)
{
    trl_formula *formula = parse("(a + bc) * sin(d)");
    const trl_ast *root = formula->root;
    ck_assert_int_eq(root->begin, 0);
    ck_assert_int_eq(root->end, 17);
    ck_assert_int_eq(root->arg[0]->begin, 1);
    ck_assert_int_eq(root->arg[0]->end, 7);
    ck_assert_int_eq(root->arg[1]->begin, 11);
    ck_assert_int_eq(root->arg[1]->end, 17);
    trl_formula_destroy(&formula);
    formula = parse("1 + phi{i}b");
    ck_assert_int_eq(formula->root->end, 11);
    ck_assert_int_eq(formula->root->arg[1]->begin, 4);
    ck_assert_int_eq(formula->root->arg[1]->end, 11);
    trl_formula_destroy(&formula);
}
END_TEST

START_TEST(rejects_what_is_no_token)
{
    check_error("a + $b", 5, 1, "unexpected character '$'");
    check_error("2*\xC2\xB5 + 1", 3, 1, "unexpected character '\xC2\xB5'");
    check_error("a \x01", 3, 1, "unexpected control character 1");
    check_error("a . b", 3, 1, "unexpected character '.'");
    check_error("a && b", 3, 2, "'&&' is not an operator; use and");
    check_error("a || b", 3, 2, "'||' is not an operator; use or");
    check_error("!a", 1, 1, "'!' is not an operator; use not");
    check_error("a % b", 3, 1, "'%' is not an operator; use fmod(a, b)");
    check_error("v.w + 1", 2, 2, "'.w' is not a component: use .x, .y or .z");
    check_error("v.xx", 2, 3, "'.xx' is not a component: use .x, .y or .z");
    check_error("sum(j=1...5, j)", 10, 1, "unexpected character '.'");
}
END_TEST

START_TEST(rejects_numbers_that_are_not_decimal)
{
    check_error("0x10", 1, 4, "0x10 is not a number: numbers are decimal");
    check_error("1 + 1_000", 5, 5, "1_000 is not a number: numbers are decimal");
    check_error("1:30", 1, 4, "1:30 is not a number: numbers are decimal");
    check_error("1.2.3", 1, 5, "1.2.3 is not a number: numbers are decimal");
    check_error("2x", 1, 2, "2x is not a number: write 2*x for a product");
    check_error("1 + 2.5e3T", 5, 6, "2.5e3T is not a number: write 2.5e3*T for a product");
    check_error("1e", 1, 2, "1e is not a number: numbers are decimal");
    check_error("2.e+x", 1, 3, "2.e is not a number: numbers are decimal");
    check_error("1e999", 1, 5, "1e999 is too large for a number");
    char digits[120];
    memset(digits, '1', sizeof digits);
    digits[101] = 0;
    check_error(digits, 1, 101, "a number has at most 100 characters");
}
END_TEST

START_TEST(rejects_missing_operands)
{
    check_error("", 1, 1, "empty formula");
    check_error("  \n", 1, 1, "empty formula");
    check_error("a +", 3, 1, "missing operand after '+'");
    check_error("(a + )", 4, 1, "missing operand after '+'");
    check_error("f(a *, b)", 5, 1, "missing operand after '*'");
    check_error("a + * b", 5, 1, "missing operand before '*'");
    check_error("f(, b)", 3, 1, "missing operand before ','");
    check_error("f(a, )", 6, 1, "missing operand before ')'");
    check_error("2^", 2, 1, "'^' needs an exponent");
    check_error("2^)", 2, 1, "'^' needs an exponent");
    check_error("()", 2, 1, "missing value before ')'");
    check_error("f()", 3, 1, "missing value before ')'");
    check_error("[]", 2, 1, "missing value before ']'");
    check_error("and(a, b)", 1, 3, "missing operand before 'and'");
    check_error("not", 1, 3, "missing operand after 'not'");
    check_error("sin(", 4, 1, "missing operand after '('");
    check_error(".x", 1, 2, "missing operand before '.x'");
    check_error("a + not b", 5, 3, "'not' binds weaker than the operator before it: put it in parentheses");
}
END_TEST

START_TEST(rejects_text_after_an_operand)
{
    check_error("a b", 3, 1, "missing operator before 'b'");
    check_error("2(a)", 2, 1, "missing operator before '('");
    check_error("a[0]", 2, 1, "missing operator before '[': a component is written .x, .y or .z");
    check_error("a .5", 3, 2, "missing operator before '.5'");
    check_error("f(a b)", 5, 1, "missing operator or ',' before 'b'");
    check_error("[a b]", 4, 1, "missing operator or ',' before 'b'");
    check_error("(a b)", 4, 1, "missing operator before 'b'");
    check_error("a, b", 2, 1, "unexpected ',': a vector is written [a, b]");
    check_error("(a, b)", 3, 1, "unexpected ',': a vector is written [a, b]");
    check_error("a = b", 3, 1, "'=' is not an operator; for equality use ==");
    check_error("f(a=1)", 4, 1, "'=' is not an operator; for equality use ==");
    check_error("= b", 1, 1, "'=' is not an operator; for equality use ==");
    check_error("1..3", 2, 2, "'..' is a range: it belongs in sum(j=1..n, ...) and prod(j=1..n, ...)");
    check_error("a not b", 3, 3, "missing operator before 'not'");
}
END_TEST

START_TEST(rejects_unbalanced_brackets)
{
    check_error("(a + b", 1, 1, "'(' is never closed");
    check_error("2*f(a, b", 4, 1, "'(' is never closed");
    check_error("[a, b", 1, 1, "'[' is never closed");
    check_error("phi{i", 4, 1, "'{' is never closed");
    check_error("a + b)", 6, 1, "')' closes nothing");
    check_error("a]", 2, 1, "']' closes nothing");
    check_error("(a]", 3, 1, "']' does not close what is open");
    check_error("[a)", 3, 1, "')' does not close what is open");
    check_error("phi{i)", 6, 1, "')' does not close what is open");
}
END_TEST

START_TEST(rejects_chained_comparisons)
{
    check_error("a < b < c", 7, 1, "chained comparison: use and before '<', as in a < b and b < c");
    check_error("0 <= x == 1", 8, 2, "chained comparison: use and before '==', as in a < b and b < c");
    check_error("a > b == c >= d", 7, 2, "chained comparison: use and before '==', as in a < b and b < c");
}
END_TEST

START_TEST(rejects_misused_names)
{
    check_error("phi{}", 1, 4, "'phi{' needs an integer expression");
    check_error("phi {i}", 5, 1, "'{' must directly follow a name, as in phi{i}");
    check_error("{i}", 1, 1, "'{' must directly follow a name, as in phi{i}");
    check_error("phi{1..3}", 6, 2, "'..' is a range: it belongs in sum(j=1..n, ...) and prod(j=1..n, ...)");
    check_error("phi{i}(a)", 1, 6, "'phi{i}' is called: the name of a function has no braces");
    check_error("1 + pi(2)", 5, 2, "'pi' is reserved and not a function");
    check_error("true(1)", 5, 1, "missing operator before '('");
    char name[300];
    memset(name, 'a', sizeof name);
    name[256] = 0;
    check_error(name, 1, 256, "a name has at most 255 characters");
}
END_TEST

START_TEST(rejects_malformed_families)
{
    check_error("sum(phi)", 8, 1, "sum is written sum(j=1..n, ...): expected '=' here");
    check_error("sum(1, 2)", 5, 1, "sum is written sum(j=1..n, ...): expected the name of an index here");
    check_error("prod(j{1}=1..2, a)", 6, 1, "prod is written prod(j=1..n, ...): expected the name of an index here");
    check_error("sum(j=1, a)", 8, 1, "sum is written sum(j=1..n, ...): expected '..' here");
    check_error("sum(j=1..n)", 11, 1, "sum is written sum(j=1..n, ...): expected ',' here");
    check_error("sum(x=1..n, a)", 5, 1, "'x' is reserved and cannot be an index");
    check_error("sum(j=1..n, a", 4, 1, "'(' is never closed");
    check_error("sum(j=1..n, a, b)", 14, 1, "unexpected ',': a vector is written [a, b]");
}
END_TEST

static char *repeated(const char *head, const char *piece, int times, const char *tail)
{
    size_t each = strlen(piece), begin = strlen(head);
    char *chars = malloc(begin + each * (size_t)times + strlen(tail) + 1);
    ck_assert_ptr_nonnull(chars);
    memcpy(chars, head, begin);
    for (int i = 0; i < times; ++i) memcpy(chars + begin + each * (size_t)i, piece, each);
    strcpy(chars + begin + each * (size_t)times, tail);
    return chars;
}

static void check_repeated(const char *head, const char *piece, int times, const char *tail, const char *message)
{
    trl_formula *formula;
    char *chars = repeated(head, piece, times, tail);
    trl_text text = text_of(chars);
    trl_context_clear_diagnostics(test_ctx);
    if (message) {
        ck_fails(trl_formula_parse(test_ctx, &text, &formula), TRL_ERR_INPUT, message);
    } else {
        ck_ok(trl_formula_parse(test_ctx, &text, &formula));
        trl_formula_destroy(&formula);
    }
    free(chars);
}

START_TEST(nesting_is_limited_whatever_it_is_made_of)
{
    const char *deep = "nested deeper than 200 levels: split the formula into named expressions";
    const char *openings[] = {
        "(", "-", "+", "not ", "2^", "f(", "[", "sum(j=1..2,", "a{", "1+(", "a or b and c < d + e * ("};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; ++i) {
        int most = (1 << 20) / (int)strlen(openings[i]) - 1;
        check_repeated("", openings[i], most, "", deep);
        check_repeated("", openings[i], 201, "", deep);
        check_repeated("", openings[i], 200, "",
                       strcmp(openings[i], "2^") == 0 ? "needs an exponent" : "missing operand after");
    }
    check_repeated("", "-", 200, "a", NULL);
    check_repeated("", "2^", 200, "a", NULL);
}
END_TEST

START_TEST(long_chains_are_limited)
{
    const char *tall = "more than 2000 operations in a row: split the formula into named expressions";
    check_repeated("a", "+a", 1999, "", NULL);
    check_repeated("a", "+a", 2000, "", tall);
    check_repeated("a", "*a", 500000, "", tall);
    check_repeated("a", ".x", 500000, "", tall);
    check_repeated("min(a", ",a", 500000, ")", tall);
    check_repeated("[a", ",a", 500000, "]", NULL);
    check_repeated("a", "{1}", 300000, "", NULL);
    check_repeated("a", " ", 1 << 20, "", "formula longer than 1048576 characters: split it into named expressions");
}
END_TEST

START_TEST(a_text_must_be_there)
{
    trl_formula *formula;
    trl_text absent = {.chars = NULL};
    ck_fails(trl_formula_parse(test_ctx, &absent, &formula), TRL_ERR_USAGE, "trl_formula_parse was given no text");
}
END_TEST

START_TEST(a_formula_owns_its_text)
{
    char chars[] = "alpha + beta";
    trl_formula *formula = parse(chars);
    memset(chars, '#', sizeof chars - 1);
    ck_assert_str_eq(formula->text.chars, "alpha + beta");
    ck_assert_str_eq(formula->root->arg[0]->part[0].text, "alpha");
    trl_formula_destroy(&formula);
    trl_formula_destroy(&formula);
}
END_TEST

START_TEST(inexact_texts_quote_what_is_wrong)
{
    trl_formula *formula;
    const trl_diagnostic *list;
    trl_text text = text_of("a +\n  b) * some_very_long_name_of_a_quantity");
    text.exact = false;
    ck_assert_int_eq(trl_formula_parse(test_ctx, &text, &formula), TRL_ERR_INPUT);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 1);
    ck_assert_str_eq(list[0].text, "')' closes nothing (at ') * some_very_long_name_of_a_q')");
    ck_assert_int_eq(list[0].column, 8);
}
END_TEST

START_TEST(parsing_returns_all_its_memory)
{
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    trl_formula *formula = parse("sum(j=1..n, phi{j}*grad(T).x) + min(a, b, c)");
    trl_formula_destroy(&formula);
    check_error("a +", 3, 1, "missing operand after '+'");
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(before.bytes, after.bytes);
}
END_TEST

static FILE *open_manual(void)
{
    char path[4096];
    const char *source = getenv("TRELLIS_SOURCE");
    snprintf(path, sizeof path, "%s/docs/formulas.md", source ? source : ".");
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s: set TRELLIS_SOURCE", path);
    return file;
}

START_TEST(every_formula_of_the_manual_is_one)
{
    char line[1000];
    bool inside = false;
    int found = 0;
    FILE *file = open_manual();
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```formula") == 0;
        } else if (inside) {
            trl_formula *formula = parse(line);
            trl_formula_destroy(&formula);
            ++found;
        }
    }
    fclose(file);
    ck_assert_int_ge(found, 15);
}
END_TEST

START_TEST(the_manual_lists_every_function)
{
    char line[1000], row[1000] = "";
    int count, next = 0;
    const trl_function *function = trl_functions(&count);
    FILE *file = open_manual();
    while (next < count && fgets(line, sizeof line, file)) {
        const trl_function *f = &function[next];
        snprintf(row, sizeof row, "| `%s(%s)` | %s |\n", f->name, f->arity == 1 ? "a" : "a, b", f->doc);
        next += strcmp(line, row) == 0;
    }
    fclose(file);
    ck_assert_msg(next == count, "docs/formulas.md lacks, or has in another order: %s", row);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, precedence_follows_the_language);
    tcase_add_test(tc, powers_bind_to_the_right_and_tighter_than_signs);
    tcase_add_test(tc, numbers_are_decimal);
    tcase_add_test(tc, two_dots_are_a_token_of_their_own);
    tcase_add_test(tc, names_calls_vectors_and_components);
    tcase_add_test(tc, names_take_integer_expressions_in_braces);
    tcase_add_test(tc, families_have_an_index_and_a_range);
    tcase_add_test(tc, min_and_max_take_more_than_two_arguments);
    tcase_add_test(tc, nodes_know_the_characters_they_were_read_from);
    tcase_add_test(tc, rejects_what_is_no_token);
    tcase_add_test(tc, rejects_numbers_that_are_not_decimal);
    tcase_add_test(tc, rejects_missing_operands);
    tcase_add_test(tc, rejects_text_after_an_operand);
    tcase_add_test(tc, rejects_unbalanced_brackets);
    tcase_add_test(tc, rejects_chained_comparisons);
    tcase_add_test(tc, rejects_misused_names);
    tcase_add_test(tc, rejects_malformed_families);
    tcase_add_test(tc, nesting_is_limited_whatever_it_is_made_of);
    tcase_add_test(tc, long_chains_are_limited);
    tcase_add_test(tc, a_text_must_be_there);
    tcase_add_test(tc, a_formula_owns_its_text);
    tcase_add_test(tc, inexact_texts_quote_what_is_wrong);
    tcase_add_test(tc, parsing_returns_all_its_memory);
    tcase_add_test(tc, every_formula_of_the_manual_is_one);
    tcase_add_test(tc, the_manual_lists_every_function);
}

TRL_TEST_MAIN("formula", add_tests)
