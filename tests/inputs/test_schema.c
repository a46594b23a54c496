/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The table of keys, and the reference that is generated from it: with TRL_WRITE_REFERENCE set, the test writes the
 * page anew. */
#include "trl_test.h"

#include <memory_impl.h>
#include <schema_impl.h>

#define REFERENCE TRL_TEST_SOURCE_DIR "/../docs/reference-deck.md"

static const trli_key *find_row(const char *path, size_t length)
{
    int n;
    const trli_key *keys = trli_schema_keys(&n);
    for (int i = 0; i < n; ++i)
        if (strlen(keys[i].path) == length && strncmp(keys[i].path, path, length) == 0) return &keys[i];
    return NULL;
}

START_TEST(every_key_is_found_from_the_root_under_its_path)
{
    int n;
    const trli_key *keys = trli_schema_keys(&n);
    for (int i = 1; i < n; ++i) {
        const char *dot = strrchr(keys[i].path, '.');
        const trli_key *parent = find_row(keys[i].path, dot ? (size_t)(dot - keys[i].path) : 0);
        ck_assert_msg(parent && parent < &keys[i], "'%s' has no parent before it", keys[i].path);
        ck_assert_msg(parent->forms & (TRLI_AS_MAPPING | TRLI_AS_PIECES), "'%s' is no mapping", parent->path);
        ck_assert_ptr_eq(trli_schema_child(parent, trli_schema_name(&keys[i])), &keys[i]);
        ck_assert_msg(!parent->like, "'%s' has children of its own", parent->path);
        if (keys[i].like)
            ck_assert_msg(find_row(keys[i].like, strlen(keys[i].like)), "'%s' is like no key", keys[i].path);
    }
}
END_TEST

START_TEST(every_key_says_what_it_is)
{
    int n;
    char expected[512];
    const trli_key *keys = trli_schema_keys(&n);
    for (int i = 0; i < n; ++i) {
        trli_schema_expected(&keys[i], expected, sizeof expected);
        ck_assert_msg(*expected && keys[i].doc && *keys[i].doc, "'%s'", keys[i].path);
        ck_assert_msg(!(keys[i].flags & TRLI_REQUIRED && keys[i].fallback), "'%s' is required and has a default",
                      keys[i].path);
        ck_assert_msg(!(keys[i].forms & TRLI_AS_WORD) == !keys[i].words, "'%s'", keys[i].path);
    }
}
END_TEST

START_TEST(what_is_accepted_is_said_in_words)
{
    char expected[512];
    const trli_key *grid = trli_schema_child(trli_schema_root(), "grid"),
                   *run = trli_schema_child(trli_schema_root(), "run");
    trli_schema_expected(trli_schema_child(grid, "patches"), expected, sizeof expected);
    ck_assert_str_eq(expected, "auto or a list of whole numbers of at least 1");
    trli_schema_expected(trli_schema_child(run, "threads"), expected, sizeof expected);
    ck_assert_str_eq(expected, "auto, a whole number from 1 to 65536 or a mapping");
    trli_schema_expected(trli_schema_child(grid, "length"), expected, sizeof expected);
    ck_assert_str_eq(expected, "a list of numbers greater than 0");
}
END_TEST

START_TEST(the_reference_in_the_manual_is_the_generated_one)
{
    char *text, *found = calloc(1, 1 << 17);
    ck_ok(trli_schema_write_reference(test_ctx, &text));
    FILE *file = fopen(REFERENCE, getenv("TRL_WRITE_REFERENCE") ? "w+" : "r");
    ck_assert_ptr_nonnull(file);
    if (getenv("TRL_WRITE_REFERENCE")) {
        fputs(text, file);
        rewind(file);
    }
    size_t length = fread(found, 1, (1 << 17) - 1, file);
    fclose(file);
    ck_assert_int_eq(length, strlen(text));
    ck_assert_str_eq(found, text);
    free(found);
    trli_free(text);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_key_is_found_from_the_root_under_its_path);
    tcase_add_test(tc, every_key_says_what_it_is);
    tcase_add_test(tc, what_is_accepted_is_said_in_words);
    tcase_add_test(tc, the_reference_in_the_manual_is_the_generated_one);
}

TRL_TEST_MAIN("schema", add_tests)
