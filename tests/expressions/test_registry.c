/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

#include <trl_registry.h>

static trl_registry *registry;
static const trl_place deck_place = {.file = "deck.yaml", .line = 3, .column = 11};
static const char *const plugin_folder[] = {"/nowhere", TRL_TEST_PLUGIN_DIR};

static void open_registry(void)
{
    ck_ok(trl_registry_create(test_ctx, &registry));
}

static void close_registry(void)
{
    trl_registry_destroy(&registry);
    ck_assert_ptr_null(registry);
    trl_registry_destroy(&registry);
}

static trl_err advertise_dependents(const void *state, trl_deps *deps)
{
    (void)state, (void)deps;
    return TRL_OK;
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state, (void)args, (void)box;
    return TRL_OK;
}

static const trl_expr_type good = {
    .abi = TRL_PLUGIN_ABI,
    .size = sizeof(trl_expr_type),
    .name = "good",
    .doc = "for tests",
    .advertise_dependents = advertise_dependents,
    .evaluate = evaluate,
};

static trl_err add(const trl_expr_type *type)
{
    return trl_registry_add(registry, type, "built-in", &deck_place);
}

static trl_err load(const char *name)
{
    return trl_registry_load(registry, name, plugin_folder, 2, &deck_place);
}

START_TEST(finds_what_was_added)
{
    const char *origin;
    ck_ok(add(&good));
    ck_assert_ptr_eq(trl_registry_find(registry, "good"), &good);
    ck_assert_ptr_null(trl_registry_find(registry, "goo"));
    ck_assert_int_eq(trl_registry_count(registry), 1);
    ck_assert_ptr_eq(trl_registry_at(registry, 0, &origin), &good);
    ck_assert_str_eq(origin, "built-in");
}
END_TEST

START_TEST(holds_many_types)
{
    static trl_expr_type many[100];
    static char name[100][16];
    for (int i = 0; i < 100; ++i) {
        many[i] = good;
        snprintf(name[i], sizeof name[i], "t%d", i);
        many[i].name = name[i];
        ck_ok(add(&many[i]));
    }
    ck_assert_int_eq(trl_registry_count(registry), 100);
    ck_assert_ptr_eq(trl_registry_find(registry, "t57"), &many[57]);
}
END_TEST

static trl_err bound(const void *state, const trl_eval_args *args, double *dt)
{
    (void)state, (void)args;
    *dt = 1;
    return TRL_OK;
}

START_TEST(rejects_cuda_forms_that_cannot_be_used)
{
    const trl_cuda_form form = {.text = {"text"}}, empty = {.nnumbers = 0}, numbers = {.text = {"text"}, .nnumbers = 1};
    trl_expr_type bad = good;
    bad.flags = TRL_EXPR_POINTWISE;
    bad.evaluate_cuda = &form;
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "expression type 'good' of built-in has evaluate_cuda, which computes many points at once: it must be "
             "TILED, and not NEUTRAL");
    bad.flags = TRL_EXPR_TILED;
    bad.evaluate_cuda = &empty;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "expression type 'good' of built-in has evaluate_cuda without a text");
    bad.evaluate_cuda = &numbers;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "has numbers for evaluate_cuda, but not set_numbers");
    bad.evaluate_cuda = NULL;
    bad.stable_dt_cuda = &form;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "has stable_dt_cuda, but not stable_dt");
    bad.stable_dt = bound;
    bad.stable_dt_cuda = &empty;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "has stable_dt_cuda without a text");
    bad.stable_dt_cuda = &numbers;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "has numbers for stable_dt_cuda, but not set_numbers");
}
END_TEST

START_TEST(rejects_another_abi_or_size)
{
    trl_expr_type bad = good;
    bad.abi = 9;
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "deck.yaml:3:11: an expression type of built-in has plugin abi 9, this Trellis has 2; rebuild it with "
             "this version's "
             "trl_plugin.h");
    bad = good;
    bad.size = 8;
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "an expression type of built-in has a descriptor of 8 bytes, this Trellis expects ");
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "; set .size = sizeof(trl_expr_type) and rebuild it with this version's trl_plugin.h");
}
END_TEST

START_TEST(rejects_bad_names)
{
    trl_expr_type bad = good;
    bad.name = "2good";
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "an expression type of built-in has the name '2good'; a name is letters, digits and _, no digit first");
    bad.name = NULL;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "an expression type of built-in has the name '';");
}
END_TEST

START_TEST(rejects_missing_slots)
{
    trl_expr_type bad = good;
    bad.doc = NULL;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "expression type 'good' of built-in lacks its doc line");
    bad = good;
    bad.advertise_dependents = NULL;
    ck_fails(add(&bad), TRL_ERR_PLUGIN,
             "expression type 'good' of built-in lacks the required slot advertise_dependents");
    bad = good;
    bad.evaluate = NULL;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "expression type 'good' of built-in lacks the required slot evaluate");
    bad = good;
    bad.flags = 1u << 20;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "expression type 'good' of built-in has flags that do not exist");
    bad = good;
    bad.flags = TRL_EXPR_NEUTRAL | TRL_EXPR_MODIFIER;
    ck_fails(
        add(&bad), TRL_ERR_PLUGIN,
        "expression type 'good' of built-in is NEUTRAL: it touches no array, and cannot be a MODIFIER, have stable_dt "
        "or scratch_bytes");
    ck_assert_int_eq(trl_registry_count(registry), 0);
}
END_TEST

START_TEST(rejects_bad_parameter_tables)
{
    const trl_param_desc a = {.key = "a", .kind = TRL_PARAM_NUMBER, .unit = "", .doc = "a number"};
    trl_param_desc table[3] = {a, a, {0}};
    trl_expr_type bad = good;
    bad.params = table;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "expression type 'good' of built-in: parameter 'a' is in its table twice");
    table[1] = (trl_param_desc){0};
    table[0].key = "a b";
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "parameter 'a b' has a key that is no name");
    table[0] = a;
    table[0].kind = (trl_param_kind)17;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "parameter 'a' has an unknown kind");
    table[0] = a;
    table[0].doc = NULL;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "parameter 'a' lacks its doc line");
    table[0] = a;
    table[0].min = 2, table[0].max = 1;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "parameter 'a' has a minimum above its maximum");
    table[0].min = 1, table[0].max = INFINITY;
    ck_fails(add(&bad), TRL_ERR_PLUGIN, "parameter 'a' has a default outside its range");
    table[0].required = true;
    ck_ok(add(&bad));
}
END_TEST

START_TEST(rejects_a_second_type_of_a_name)
{
    ck_ok(add(&good));
    ck_fails(trl_registry_add(registry, &good, "other.so", NULL), TRL_ERR_PLUGIN,
             "expression type 'good' of other.so exists already: it comes from built-in; rename one of them");
}
END_TEST

START_TEST(loads_a_plugin_by_name_and_path)
{
    char path[PATH_MAX];
    const char *origin;
    ck_ok(load("two_types"));
    ck_assert_int_eq(trl_registry_count(registry), 2);
    ck_assert_str_eq(trl_registry_at(registry, 1, &origin)->name, "second_type");
    snprintf(path, sizeof path, "%s/two_types.so", TRL_TEST_PLUGIN_DIR);
    ck_assert_str_eq(origin, path);
    trl_registry_destroy(&registry);
    open_registry();
    ck_ok(trl_registry_load(registry, path, NULL, 0, NULL));
    ck_assert_ptr_nonnull(trl_registry_find(registry, "first_type"));
}
END_TEST

START_TEST(loads_a_plugin_with_folders_in_its_name)
{
    char folder[PATH_MAX] = TRL_TEST_PLUGIN_DIR, name[PATH_MAX];
    char *slash = strrchr(folder, '/');
    *slash = 0;
    snprintf(name, sizeof name, "%s/two_types", slash + 1);
    const char *const above[] = {folder};
    ck_ok(trl_registry_load(registry, name, above, 1, NULL));
    ck_assert_int_eq(trl_registry_count(registry), 2);
}
END_TEST

START_TEST(loads_a_plugin_once)
{
    ck_ok(load("two_types"));
    ck_ok(load("two_types.so"));
    ck_assert_int_eq(trl_registry_count(registry), 2);
}
END_TEST

START_TEST(prefers_the_first_spelling_and_folder)
{
    char folder[] = "/tmp/trellis_registry_XXXXXX", path[128], target[PATH_MAX];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libtwo_types.so", folder);
    snprintf(target, sizeof target, "%s/two_types.so", TRL_TEST_PLUGIN_DIR);
    ck_assert_int_eq(symlink(target, path), 0);
    const char *const both[] = {folder, TRL_TEST_PLUGIN_DIR}, *origin = "";
    trl_err err = trl_registry_load(registry, "two_types", both, 2, NULL);
    if (err == TRL_OK) trl_registry_at(registry, 0, &origin);
    unlink(path);
    rmdir(folder);
    ck_ok(err);
    ck_assert_str_eq(origin, path);
}
END_TEST

START_TEST(says_where_it_looked_for_a_plugin)
{
    ck_fails(load("nothing"), TRL_ERR_PLUGIN,
             "deck.yaml:3:11: plugin 'nothing' not found: no nothing, libnothing.so or nothing.so in: "
             "/nowhere; " TRL_TEST_PLUGIN_DIR "; build it, or name its folder with --plugin-path");
    ck_fails(load("build/nothing"), TRL_ERR_PLUGIN,
             "plugin 'build/nothing' not found: no nothing, libnothing.so or nothing.so in: ");
    ck_fails(load("/nowhere/nothing"), TRL_ERR_PLUGIN, "plugin '/nowhere/nothing' not found");
    ck_fails(load(""), TRL_ERR_PLUGIN, "the name of a plugin is empty");
    ck_fails(trl_registry_load(registry, "nothing", NULL, 0, NULL), TRL_ERR_PLUGIN, " in: .; ");
}
END_TEST

START_TEST(cuts_a_long_list_of_folders)
{
    char folder[400];
    const char *folders[20];
    memset(folder, 'f', sizeof folder - 1);
    folder[sizeof folder - 1] = 0;
    for (int i = 0; i < 20; ++i) folders[i] = folder;
    ck_fails(trl_registry_load(registry, "nothing", folders, 20, NULL), TRL_ERR_PLUGIN, "ff...; build it");
}
END_TEST

START_TEST(rejects_a_library_without_entry)
{
    ck_fails(load("no_entry"), TRL_ERR_PLUGIN,
             "deck.yaml:3:11: '" TRL_TEST_PLUGIN_DIR
             "/no_entry.so' is no Trellis plugin: it exports no symbol trl_plugin_entry");
}
END_TEST

START_TEST(rejects_an_undefined_symbol_before_the_run)
{
    ck_fails(load("undefined_symbol"), TRL_ERR_PLUGIN,
             "plugin '" TRL_TEST_PLUGIN_DIR
             "/undefined_symbol.so' cannot be loaded: undefined symbol: trl_function_of_a_later_version");
}
END_TEST

START_TEST(rejects_a_file_that_is_no_library)
{
    char path[] = "/tmp/trellis_registry_XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, "text\n", 5), 5);
    close(file);
    trl_err err = trl_registry_load(registry, path, NULL, 0, NULL);
    unlink(path);
    ck_fails(err, TRL_ERR_PLUGIN, "cannot be loaded: file too short");
    ck_assert_ptr_nonnull(strstr(test_messages(), "fix: build the plugin and name the shared library, FILE.so"));
}
END_TEST

START_TEST(rejects_a_plugin_of_another_abi)
{
    ck_fails(load("wrong_abi"), TRL_ERR_PLUGIN,
             "/wrong_abi.so' has plugin abi 8, this Trellis has 2; rebuild it with this version's trl_plugin.h");
    ck_assert_int_eq(trl_registry_count(registry), 0);
}
END_TEST

START_TEST(rejects_a_plugin_of_another_size)
{
    char expected[256];
    snprintf(expected, sizeof expected,
             "/wrong_size.so' has descriptors of %zu and %zu bytes (plugin, expression type), this Trellis expects %zu "
             "and %zu; "
             "rebuild it with this version's trl_plugin.h",
             sizeof(trl_plugin), sizeof(trl_expr_type) + 8, sizeof(trl_plugin), sizeof(trl_expr_type));
    ck_fails(load("wrong_size"), TRL_ERR_PLUGIN, expected);
}
END_TEST

START_TEST(rejects_a_plugin_without_types)
{
    ck_fails(load("no_types"), TRL_ERR_PLUGIN, "/no_types.so' holds no expression type");
}
END_TEST

START_TEST(rejects_a_plugin_with_a_missing_slot)
{
    ck_fails(load("missing_slot"), TRL_ERR_PLUGIN,
             "deck.yaml:3:11: expression type 'half_type' of " TRL_TEST_PLUGIN_DIR
             "/missing_slot.so lacks the required slot evaluate");
}
END_TEST

START_TEST(rejects_two_plugins_with_one_type)
{
    ck_ok(load("two_types"));
    ck_fails(load("duplicate_type"), TRL_ERR_PLUGIN,
             "expression type 'second_type' of " TRL_TEST_PLUGIN_DIR
             "/duplicate_type.so exists already: it comes from " TRL_TEST_PLUGIN_DIR
             "/two_types.so; rename one of them");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_registry, close_registry);
    tcase_add_test(tc, finds_what_was_added);
    tcase_add_test(tc, holds_many_types);
    tcase_add_test(tc, rejects_cuda_forms_that_cannot_be_used);
    tcase_add_test(tc, rejects_another_abi_or_size);
    tcase_add_test(tc, rejects_bad_names);
    tcase_add_test(tc, rejects_missing_slots);
    tcase_add_test(tc, rejects_bad_parameter_tables);
    tcase_add_test(tc, rejects_a_second_type_of_a_name);
    tcase_add_test(tc, loads_a_plugin_by_name_and_path);
    tcase_add_test(tc, loads_a_plugin_with_folders_in_its_name);
    tcase_add_test(tc, loads_a_plugin_once);
    tcase_add_test(tc, prefers_the_first_spelling_and_folder);
    tcase_add_test(tc, says_where_it_looked_for_a_plugin);
    tcase_add_test(tc, cuts_a_long_list_of_folders);
    tcase_add_test(tc, rejects_a_library_without_entry);
    tcase_add_test(tc, rejects_an_undefined_symbol_before_the_run);
    tcase_add_test(tc, rejects_a_file_that_is_no_library);
    tcase_add_test(tc, rejects_a_plugin_of_another_abi);
    tcase_add_test(tc, rejects_a_plugin_of_another_size);
    tcase_add_test(tc, rejects_a_plugin_without_types);
    tcase_add_test(tc, rejects_a_plugin_with_a_missing_slot);
    tcase_add_test(tc, rejects_two_plugins_with_one_type);
}

TRL_TEST_MAIN("registry", add_tests)
