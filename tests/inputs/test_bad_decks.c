/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pairs of a bad deck and the exact messages: bad/NAME.yaml and bad/NAME.txt. Names that start with "_" are included
 * by others. A deck's lines "# set: a.b=c" are settings of the command line. */
// ctest: np=1,2
#include <glob.h>
#include <unistd.h>

#include "trl_test.h"

#include <deck_impl.h>

#include "message_pairs.h"
#include "sample_types.h"

enum { SETS_MAX = 4, LINE_BYTES = 256 };

static int collect_settings(const char *text, char settings[SETS_MAX][LINE_BYTES])
{
    int n = 0;
    static const char mark[] = "# set: ";
    for (const char *line = strstr(text, mark); line && n < SETS_MAX; line = strstr(line + 1, mark)) {
        const char *setting = line + sizeof mark - 1;
        snprintf(settings[n++], LINE_BYTES, "%.*s", (int)strcspn(setting, "\n"), setting);
    }
    return n;
}

/* Whether a pair holds; what differs goes to standard error. */
static bool check_pair(const char *deck_path)
{
    static char messages[1 << 16];
    char expected_path[LINE_BYTES], settings[SETS_MAX][LINE_BYTES];
    const char *set[SETS_MAX];
    trl_registry *registry;
    trli_deck *deck;
    snprintf(expected_path, sizeof expected_path, "%.*s.txt", (int)(strrchr(deck_path, '.') - deck_path), deck_path);
    char *text = read_whole(deck_path), *expected = read_whole(expected_path);
    trli_deck_request request = {.path = deck_path, .set = set};
    request.nsets = text ? collect_settings(text, settings) : 0;
    for (int i = 0; i < request.nsets; ++i) set[i] = settings[i];
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(sample_registry(&registry));
    trl_err err = trli_deck_read(test_ctx, registry, &request, &deck);
    format_messages(messages, sizeof messages);
    bool holds = err != TRL_OK && expected && strcmp(messages, expected) == 0;
    if (!holds)
        fprintf(stderr, "%s: %s\n--- found\n%s--- expected\n%s\n", deck_path, trl_err_name(err), messages,
                expected ? expected : "");
    trli_deck_destroy(&deck);
    trl_registry_destroy(&registry);
    free(text);
    free(expected);
    return holds;
}

START_TEST(every_bad_deck_gives_exactly_the_message_beside_it)
{
    glob_t found;
    int checked = 0, failed = 0;
    ck_assert_int_eq(chdir(TRL_TEST_SOURCE_DIR "/inputs/bad"), 0);
    ck_assert_int_eq(glob("*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; ++i) {
        if (found.gl_pathv[i][0] == '_') continue;
        ++checked;
        failed += !check_pair(found.gl_pathv[i]);
    }
    globfree(&found);
    ck_assert_int_ge(checked, 35);
    ck_assert_int_eq(failed, 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_bad_deck_gives_exactly_the_message_beside_it);
}

TRL_TEST_MAIN("bad_decks", add_tests)
