/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <math.h>

#include <json_impl.h>
#include <memory_impl.h>

static trli_json *create(void)
{
    trli_json *json;
    ck_ok(trli_json_create(test_ctx, &json));
    return json;
}

/* Finish, compare and free. */
static void check_text(trli_json *json, const char *wanted)
{
    char *text;
    ck_ok(trli_json_finish(&json, &text));
    ck_assert_ptr_null(json);
    ck_assert_str_eq(text, wanted);
    trli_free(text);
}

START_TEST(nests_objects_and_arrays)
{
    trli_json *json = create();
    trli_json_begin_object(json);
    trli_json_key(json, "a");
    trli_json_integer(json, INT64_MIN);
    trli_json_key(json, "b");
    trli_json_begin_array(json);
    trli_json_bool(json, true);
    trli_json_bool(json, false);
    trli_json_begin_object(json);
    trli_json_end_object(json);
    trli_json_begin_array(json);
    trli_json_end_array(json);
    trli_json_end_array(json);
    trli_json_key(json, "c");
    trli_json_string(json, NULL);
    trli_json_end_object(json);
    check_text(json, "{\n  \"a\": -9223372036854775808,\n  \"b\": [\n    true,\n    false,\n    {},\n    []\n  ],\n  "
                     "\"c\": null\n}\n");
}
END_TEST

START_TEST(writes_numbers_so_that_they_read_back_exactly)
{
    static const double value[] = {0.1, 1.0 / 3.0, -1e300, 5e-324, 0};
    trli_json *json = create();
    char *text, *next;
    trli_json_begin_array(json);
    for (int i = 0; i < 5; ++i) trli_json_number(json, value[i]);
    trli_json_number(json, NAN);
    trli_json_number(json, -INFINITY);
    trli_json_end_array(json);
    ck_ok(trli_json_finish(&json, &text));
    next = text + 1;
    for (int i = 0; i < 5; ++i, ++next) ck_assert(strtod(next, &next) == value[i]);
    ck_assert_str_eq(next, "\n  null,\n  null\n]\n");
    trli_free(text);
}
END_TEST

START_TEST(escapes_strings_and_keys)
{
    trli_json *json = create();
    trli_json_begin_object(json);
    trli_json_key(json, "\"k\\\n");
    trli_json_string(json, "tab\t bell\a / \x7f caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
    trli_json_end_object(json);
    check_text(json, "{\n  \"\\\"k\\\\\\u000a\": \"tab\\u0009 bell\\u0007 / \\u007f caf\xC3\xA9 \xE2\x82\xAC "
                     "\xF0\x9F\x98\x80\"\n}\n");
}
END_TEST

START_TEST(replaces_bytes_that_are_no_utf8)
{
    static const struct {
        const char *bad, *good;
    } pair[] = {
        {"a\xFFz", "\"a\xEF\xBF\xBDz\"\n"},
        {"\xC3", "\"\xEF\xBF\xBD\"\n"},
        {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n"},
        {"\xE0\x80\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n"},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n"},
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n"},
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; ++i) {
        trli_json *json = create();
        trli_json_string(json, pair[i].bad);
        check_text(json, pair[i].good);
    }
}
END_TEST

static void value_without_key(trli_json *json)
{
    trli_json_begin_object(json);
    trli_json_number(json, 1);
    trli_json_end_object(json);
}

static void two_keys(trli_json *json)
{
    trli_json_begin_object(json);
    trli_json_key(json, "a");
    trli_json_key(json, "b");
}

static void wrong_end(trli_json *json)
{
    trli_json_begin_array(json);
    trli_json_end_object(json);
}

static void no_end(trli_json *json)
{
    trli_json_begin_array(json);
}

static void two_values(trli_json *json)
{
    trli_json_number(json, 1);
    trli_json_number(json, 2);
}

static void too_deep(trli_json *json)
{
    for (int i = 0; i < 100; ++i) trli_json_begin_array(json);
    for (int i = 0; i < 100; ++i) trli_json_end_array(json);
}

START_TEST(reports_calls_that_make_no_json)
{
    static const struct {
        void (*make)(trli_json *json);
        const char *message;
    } bad[] = {
        {value_without_key, "JSON: a value in an object needs a key"},
        {two_keys, "JSON: a key outside an object, or after a key"},
        {wrong_end, "JSON: an end that fits no begin"},
        {no_end, "JSON: the text ends before its value does"},
        {two_values, "JSON: a second value after the outermost one"},
        {too_deep, "JSON: objects and arrays are nested too deeply"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        trli_json *json = create();
        char *text;
        bad[i].make(json);
        ck_fails(trli_json_finish(&json, &text), TRL_ERR_USAGE, bad[i].message);
        ck_assert(!json && !text);
        trl_context_clear_diagnostics(test_ctx);
    }
}
END_TEST

START_TEST(can_be_given_up)
{
    trli_json *json = create();
    trli_json_begin_array(json);
    trli_json_destroy(&json);
    trli_json_destroy(&json);
    ck_assert_ptr_null(json);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, nests_objects_and_arrays);
    tcase_add_test(tc, writes_numbers_so_that_they_read_back_exactly);
    tcase_add_test(tc, escapes_strings_and_keys);
    tcase_add_test(tc, replaces_bytes_that_are_no_utf8);
    tcase_add_test(tc, reports_calls_that_make_no_json);
    tcase_add_test(tc, can_be_given_up);
}

TRL_TEST_MAIN("json", add_tests)
