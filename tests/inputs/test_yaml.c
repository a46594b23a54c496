/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trees of nodes from YAML text, and what text is a number. */
#include "trl_test.h"

#include <math.h>

#include <scalar_impl.h>
#include <yaml_impl.h>

static trli_arena *arena;
static trli_yaml *root;

static void open_arena(void)
{
    ck_ok(trli_arena_create(test_ctx, &arena));
}

static void close_arena(void)
{
    trli_arena_destroy(&arena);
    ck_assert_ptr_null(arena);
    trli_arena_destroy(&arena);
}

static trl_err read_yaml(const char *text)
{
    return trli_yaml_read(test_ctx, arena, &(trli_source){.file = "a.yaml", .text = text, .line = 1, .column = 1},
                          &root);
}

static void check_place(const trli_yaml *node, int line, int column, bool exact)
{
    ck_assert_str_eq(node->text.place.file, "a.yaml");
    ck_assert_int_eq(node->text.place.line, line);
    ck_assert_int_eq(node->text.place.column, column);
    ck_assert_int_eq(node->text.exact, exact);
}

START_TEST(every_scalar_is_text)
{
    ck_ok(read_yaml("{a: 1, b: yes, c: ~, d: '1', e: 2001-01-01, f: , 3: x}"));
    ck_assert_int_eq(root->n, 7);
    ck_assert_str_eq(trli_yaml_get(root, "a")->text.chars, "1");
    ck_assert_str_eq(trli_yaml_get(root, "b")->text.chars, "yes");
    ck_assert_str_eq(trli_yaml_get(root, "c")->text.chars, "~");
    ck_assert_str_eq(trli_yaml_get(root, "d")->text.chars, "1");
    ck_assert_str_eq(trli_yaml_get(root, "e")->text.chars, "2001-01-01");
    ck_assert_str_eq(trli_yaml_get(root, "f")->text.chars, "");
    ck_assert_str_eq(trli_yaml_get(root, "3")->text.chars, "x");
    ck_assert_ptr_null(trli_yaml_get(root, "z"));
    ck_assert_ptr_null(trli_yaml_get(NULL, "z"));
}
END_TEST

START_TEST(places_count_characters_and_all_kinds_of_line_breaks)
{
    ck_ok(read_yaml("# \xC3\xA9\xC3\xA9 comment\r\n\"\xC3\xA9\": [\"\xC3\xBC\xC3\xBC\", bc]\r? d\r: &x 'ef'\n"
                    "g: \"a\\tb\"\nh: 'it''s'\ni: two\n  lines\nj: \"two\n  lines\"\n"));
    const trli_yaml *list = trli_yaml_get(root, "\xC3\xA9");
    check_place(list->item[0], 2, 8, true);
    ck_assert_int_eq(list->item[0]->text.place.length, 2);
    check_place(list->item[1], 2, 13, true);
    check_place(trli_yaml_get(root, "d"), 4, 7, true);
    check_place(trli_yaml_get(root, "g"), 5, 4, false);
    check_place(trli_yaml_get(root, "h"), 6, 4, false);
    check_place(trli_yaml_get(root, "i"), 7, 4, false);
    check_place(trli_yaml_get(root, "j"), 9, 4, false);
    ck_assert_int_eq(strncmp(list->item[1]->text.place.source, "\"\xC3\xA9\": [", 6), 0);
}
END_TEST

START_TEST(aliases_share_the_node_of_their_anchor)
{
    ck_ok(read_yaml("a: &x {k: 1}\nb: *x\nc: &x [2]\nd: *x\n"));
    ck_assert_ptr_eq(trli_yaml_get(root, "a"), trli_yaml_get(root, "b"));
    ck_assert_ptr_eq(trli_yaml_get(root, "c"), trli_yaml_get(root, "d"));
}
END_TEST

START_TEST(a_text_without_a_value_has_no_root)
{
    ck_ok(read_yaml("\n# nothing\n"));
    ck_assert_ptr_null(root);
}
END_TEST

START_TEST(large_mappings_keep_order_and_find_every_key)
{
    enum { KEYS = 5000 };
    char *text = malloc((size_t)KEYS * 16), key[16];
    int used = 0;
    for (int i = 0; i < KEYS; ++i) used += sprintf(text + used, "k%d: %d\n", i, i);
    ck_ok(read_yaml(text));
    free(text);
    ck_assert_int_eq(root->n, KEYS);
    for (int i = 0; i < KEYS; ++i) {
        sprintf(key, "k%d", i);
        ck_assert_int_eq(trli_yaml_find(root, key), i);
    }
    ck_assert_int_eq(trli_yaml_find(root, "k5000"), -1);
}
END_TEST

START_TEST(part_of_a_line_is_placed_in_the_line)
{
    trli_source source = {.file = "--set", .text = "[1,\n 2]", .first = "a.b=[1,\n 2]", .line = 3, .column = 5};
    ck_ok(trli_yaml_read(test_ctx, arena, &source, &root));
    ck_assert_int_eq(root->item[0]->text.place.column, 6);
    ck_assert_int_eq(root->item[0]->text.place.line, 3);
    ck_assert_str_eq(root->item[0]->text.place.source, source.first);
    ck_assert_int_eq(root->item[1]->text.place.column, 2);
}
END_TEST

START_TEST(bytes_that_are_not_utf8_are_rejected_at_their_place)
{
    ck_fails(read_yaml("a: 1\nb: \xFFz\n"), TRL_ERR_INPUT, "a.yaml:2:4: this is not YAML: invalid leading UTF-8 octet");
}
END_TEST

START_TEST(only_decimal_text_is_a_number)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1e-5", 1e-5}, {"1.0e5", 1e5}, {".5", 0.5},    {"2.", 2},
                {"010", 10},    {"-3", -3},     {"+4E+2", 400}, {"-0", 0}};
    static const char *const bad[] = {"",    "0x10",  "1_000", "1:30", "1e", ".",   "-",  "1.2.3", "1..3", "nan",
                                      "inf", "1e999", "1 ",    " 1",   "e5", "1,0", "1f", "--1",   "1e+"};
    double value;
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i)
        ck_assert_msg(trli_scalar_number(good[i].text, &value) && value == good[i].value, "%s", good[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        ck_assert_msg(!trli_scalar_number(bad[i], &value), "%s", bad[i]);
}
END_TEST

START_TEST(whole_numbers_may_have_an_exponent_but_no_fraction)
{
    int64_t value;
    ck_assert(trli_scalar_integer("1e6", &value) && value == 1000000);
    ck_assert(trli_scalar_integer("2.50e1", &value) && value == 25);
    ck_assert(!trli_scalar_integer("1.5", &value) && !trli_scalar_integer("1e17", &value) &&
              !trli_scalar_integer("n", &value));
}
END_TEST

START_TEST(numbers_are_spelled_for_yaml_1_1_with_all_their_bits)
{
    static const double values[] = {0.1,     1e-5,      1e22, -2.5e-300, 5e-324, 1.7976931348623157e308,
                                    1.0 / 3, 123456789, 1e15, -0.0};
    char text[TRLI_NUMBER_TEXT];
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
        trli_scalar_print(values[i], false, text);
        ck_assert_msg(strtod(text, NULL) == values[i] && signbit(strtod(text, NULL)) == signbit(values[i]), "%s", text);
        ck_assert_msg(strchr(text, '.') != NULL, "%s", text);
    }
    trli_scalar_print(1e6, true, text);
    ck_assert_str_eq(text, "1000000");
    trli_scalar_print(1e-5, true, text);
    ck_assert_str_eq(text, "1.0e-05");
}
END_TEST

START_TEST(advice_names_what_was_meant)
{
    ck_assert_str_eq(trli_scalar_boolean_advice("Yes"), "; write true");
    ck_assert_str_eq(trli_scalar_boolean_advice("OFF"), "; write false");
    ck_assert_str_eq(trli_scalar_boolean_advice("1"), "");
    ck_assert_str_eq(trli_scalar_number_advice("-0b1"), "; numbers are decimal");
    ck_assert_str_eq(trli_scalar_number_advice("1_0"), "; write digits without '_'");
    ck_assert_str_eq(trli_scalar_number_advice("12:30"), "; write a plain number, not minutes or hours");
    ck_assert_str_eq(trli_scalar_number_advice("1e999"), "; it is too large for a number");
    ck_assert_str_eq(trli_scalar_number_advice("0"), "");
    ck_assert_str_eq(trli_scalar_number_advice("many"), "");
}
END_TEST

START_TEST(an_arena_gives_zeroed_memory_of_any_size)
{
    for (size_t bytes = 1; bytes < 300000; bytes = 3 * bytes + 1) {
        char *memory;
        ck_ok(trli_arena_alloc(arena, bytes, &memory));
        for (size_t i = 0; i < bytes; ++i) ck_assert_int_eq(memory[i], 0);
        memset(memory, 1, bytes);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, every_scalar_is_text);
    tcase_add_test(tc, places_count_characters_and_all_kinds_of_line_breaks);
    tcase_add_test(tc, aliases_share_the_node_of_their_anchor);
    tcase_add_test(tc, a_text_without_a_value_has_no_root);
    tcase_add_test(tc, large_mappings_keep_order_and_find_every_key);
    tcase_add_test(tc, part_of_a_line_is_placed_in_the_line);
    tcase_add_test(tc, bytes_that_are_not_utf8_are_rejected_at_their_place);
    tcase_add_test(tc, only_decimal_text_is_a_number);
    tcase_add_test(tc, whole_numbers_may_have_an_exponent_but_no_fraction);
    tcase_add_test(tc, numbers_are_spelled_for_yaml_1_1_with_all_their_bits);
    tcase_add_test(tc, advice_names_what_was_meant);
    tcase_add_test(tc, an_arena_gives_zeroed_memory_of_any_size);
}

TRL_TEST_MAIN("yaml", add_tests)
