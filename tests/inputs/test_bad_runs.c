/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pairs of a deck that reads well but cannot be compiled or run, and the exact messages: bad_run/NAME.yaml and
 * bad_run/NAME.txt. Every rank gets the same messages, and none waits for another. */
// ctest: np=1,4
#include <glob.h>
#include <unistd.h>

#include "trl_test.h"

#include <deck_impl.h>
#include <trl_simulation.h>

#include "builtins_impl.h"
#include "message_pairs.h"
#include "sample_types.h"

static trl_err run_deck(const char *path, trl_registry *registry)
{
    trli_deck *deck = NULL;
    trl_simulation *sim = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_deck_read(test_ctx, registry, &(trli_deck_request){.path = path}, &deck));
    TRL_TRY(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
    TRL_TRY(trl_simulation_initialise(sim));
    while (!trl_simulation_done(sim)) TRL_TRY(trl_simulation_step(sim));
    TRL_TRY(trl_simulation_observe(sim));
done:
    trl_simulation_destroy(&sim);
    trli_deck_destroy(&deck);
    return err;
}

/* Whether a pair holds on every rank; what differs goes to standard error. */
static bool check_pair(const char *deck_path)
{
    static char messages[1 << 16];
    char expected_path[256];
    trl_registry *registry;
    snprintf(expected_path, sizeof expected_path, "%.*s.txt", (int)(strrchr(deck_path, '.') - deck_path), deck_path);
    char *expected = read_whole(expected_path);
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(sample_registry(&registry));
    ck_ok(trli_register_builtins(registry));
    trl_err err = run_deck(deck_path, registry);
    format_messages(messages, sizeof messages);
    int holds = err != TRL_OK && expected && strcmp(messages, expected) == 0;
    if (!holds)
        fprintf(stderr, "%s: %s\n--- found\n%s--- expected\n%s\n", deck_path, trl_err_name(err), messages,
                expected ? expected : "");
    trl_registry_destroy(&registry);
    free(expected);
    MPI_Allreduce(MPI_IN_PLACE, &holds, 1, MPI_INT, MPI_MIN, trl_context_comm(test_ctx));
    return holds;
}

START_TEST(every_bad_run_gives_exactly_the_message_beside_it)
{
    glob_t found;
    int checked = 0, failed = 0;
    ck_assert_int_eq(chdir(TRL_TEST_SOURCE_DIR "/inputs/bad_run"), 0);
    ck_assert_int_eq(glob("*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; ++i) {
        ++checked;
        failed += !check_pair(found.gl_pathv[i]);
    }
    globfree(&found);
    ck_assert_int_ge(checked, 40);
    ck_assert_int_eq(failed, 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_bad_run_gives_exactly_the_message_beside_it);
}

TRL_TEST_MAIN("bad_runs", add_tests)
