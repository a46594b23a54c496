/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "trl_test.h"

#include <signal.h>

#include "memory_impl.h"
#include "run_impl.h"

static int do_nothing(trl_context *ctx, const trli_arguments *arguments)
{
    (void)ctx, (void)arguments;
    return 0;
}

static const trli_command command = {
    .name = "walk",
    .operands = "WHERE",
    .doc = "for tests",
    .operands_min = 1,
    .operands_max = 2,
    .run = do_nothing,
    .option = {{"--set", "K=V", "", true},
               {"--steps", "N", "", false},
               {"-o", "FILE", "", false},
               {"--quiet", NULL, "", false}},
};

#define MAX_WORDS 12
static char words[MAX_WORDS][64];
static char *argv[MAX_WORDS + 1];
static trli_arguments arguments;

/* Parse words separated by spaces as the arguments of the command. */
static trl_err parse(const char *line)
{
    int argc = 0, used;
    trli_arguments_release(&arguments);
    trl_context_clear_diagnostics(test_ctx);
    while (argc < MAX_WORDS && sscanf(line, "%63s%n", words[argc], &used) == 1) {
        argv[argc] = words[argc];
        line += used;
        ++argc;
    }
    argv[argc] = NULL;
    return trli_arguments_parse(test_ctx, &command, argc, argv, &arguments);
}

static void release(void)
{
    trli_arguments_release(&arguments);
}

START_TEST(sorts_operands_and_options)
{
    const char **sets;
    ck_ok(parse("walk --quiet here --set a=1 --set=b=2 -o file there"));
    ck_assert_int_eq(arguments.noperands, 2);
    ck_assert_str_eq(arguments.operand[0], "here");
    ck_assert_str_eq(arguments.operand[1], "there");
    ck_assert_str_eq(trli_arguments_value(&arguments, "-o"), "file");
    ck_assert_ptr_nonnull(trli_arguments_value(&arguments, "--quiet"));
    ck_assert_ptr_null(trli_arguments_value(&arguments, "--steps"));
    ck_assert_int_eq(trli_arguments_values(test_ctx, &arguments, "--set", &sets), 2);
    ck_assert_str_eq(sets[0], "a=1");
    ck_assert_str_eq(sets[1], "b=2");
    trli_free(sets);
}
END_TEST

START_TEST(takes_words_after_two_dashes_as_operands)
{
    ck_ok(parse("walk -- --quiet -"));
    ck_assert_int_eq(arguments.noperands, 2);
    ck_assert_str_eq(arguments.operand[0], "--quiet");
    ck_assert_str_eq(arguments.operand[1], "-");
}
END_TEST

START_TEST(help_needs_nothing_else)
{
    ck_ok(parse("walk --stpes --help"));
    ck_assert(arguments.help);
    ck_ok(parse("walk -h"));
    ck_assert(arguments.help);
}
END_TEST

START_TEST(reads_whole_numbers)
{
    trl_gidx steps = -1;
    ck_ok(parse("walk a"));
    ck_ok(trli_arguments_integer(test_ctx, &arguments, "--steps", 0, &steps));
    ck_assert_int_eq(steps, -1);
    ck_ok(parse("walk a --steps 250"));
    ck_ok(trli_arguments_integer(test_ctx, &arguments, "--steps", 0, &steps));
    ck_assert_int_eq(steps, 250);
    ck_ok(parse("walk a --steps 1e6"));
    ck_ok(trli_arguments_integer(test_ctx, &arguments, "--steps", 0, &steps));
    ck_assert_int_eq(steps, 1000000);
}
END_TEST

START_TEST(rejects_what_is_no_whole_number)
{
    static const char *const bad[] = {"1.5", "-3", "0x10", "", "nan", "1e30", "3steps", "e"};
    trl_gidx steps = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char line[64], message[128];
        snprintf(line, sizeof line, "walk a --steps=%s", bad[i]);
        ck_ok(parse(line));
        snprintf(message, sizeof message, "trellis walk: option --steps needs a whole number from 0 up, found '%s'\n",
                 bad[i]);
        ck_fails(trli_arguments_integer(test_ctx, &arguments, "--steps", 0, &steps), TRL_ERR_INPUT, message);
        ck_assert_int_eq(steps, 7);
    }
}
END_TEST

START_TEST(rejects_unknown_options_with_the_nearest)
{
    ck_fails(parse("walk a --stpes 3"), TRL_ERR_INPUT,
             "trellis walk: unknown option '--stpes'; did you mean '--steps'?\n");
    ck_fails(parse("walk a --stpes=3"), TRL_ERR_INPUT,
             "trellis walk: unknown option '--stpes'; did you mean '--steps'?\n");
    ck_fails(parse("walk a --hlep"), TRL_ERR_INPUT, "trellis walk: unknown option '--hlep'; did you mean '--help'?\n");
    ck_fails(parse("walk a --zzzzzzzzzzz"), TRL_ERR_INPUT,
             "trellis walk: unknown option '--zzzzzzzzzzz'; 'trellis walk --help' lists what there is\n");
}
END_TEST

START_TEST(rejects_wrong_use_of_options)
{
    ck_fails(parse("walk a --steps"), TRL_ERR_INPUT, "trellis walk: option --steps needs a value: --steps N\n");
    ck_fails(parse("walk a --quiet=3"), TRL_ERR_INPUT, "trellis walk: option --quiet takes no value, found '3'\n");
    ck_fails(parse("walk a --steps 1 --steps 2"), TRL_ERR_INPUT, "trellis walk: option --steps is given twice\n");
}
END_TEST

START_TEST(rejects_wrong_numbers_of_operands)
{
    ck_fails(parse("walk --quiet"), TRL_ERR_INPUT, "trellis walk: WHERE is missing; usage: trellis walk WHERE\n");
    ck_fails(parse("walk a b c"), TRL_ERR_INPUT, "trellis walk: unexpected argument 'c'; usage: trellis walk WHERE\n");
}
END_TEST

START_TEST(finds_commands_with_the_nearest)
{
    const trli_command *found;
    ck_ok(trli_command_find(test_ctx, "run", &found));
    ck_assert_str_eq(found->name, "run");
    ck_fails(trli_command_find(test_ctx, "rnu", &found), TRL_ERR_INPUT,
             "trellis: unknown command 'rnu'; did you mean 'run'?\n");
    ck_fails(trli_command_find(test_ctx, "dance_with_me", &found), TRL_ERR_INPUT,
             "trellis: unknown command 'dance_with_me'; 'trellis help' lists what there is\n");
}
END_TEST

START_TEST(every_command_says_what_it_takes)
{
    int n;
    const trli_command *table = trli_commands(&n);
    for (int i = 0; i < n; ++i) {
        const trli_command *c = &table[i];
        ck_assert(c->run != NULL);
        ck_assert_ptr_nonnull(c->doc);
        ck_assert_int_ge(c->operands_max, c->operands_min);
        ck_assert_int_eq(c->operands_max > 0, c->operands[0] != 0);
        ck_assert_ptr_null(c->option[TRLI_OPTIONS_MAX - 1].name);
    }
}
END_TEST

/* The steps up to `steps` at which output is due, as text. */
static const char *due_steps(const trl_every *every, double start, double dt, int steps)
{
    static char text[512];
    size_t used = 0;
    text[0] = 0;
    for (int i = 1; i <= steps; ++i)
        if (trli_every_due(every, i, start + i * dt, dt))
            used += (size_t)snprintf(text + used, sizeof text - used, "%d ", i);
    return text;
}

START_TEST(output_is_due_at_multiples_of_steps)
{
    ck_assert_str_eq(due_steps(&(trl_every){.steps = 4}, 0, 0.1, 13), "4 8 12 ");
    ck_assert_str_eq(due_steps(&(trl_every){0}, 0, 0.1, 13), "");
}
END_TEST

START_TEST(output_is_due_at_the_first_step_past_a_multiple_of_time)
{
    ck_assert_str_eq(due_steps(&(trl_every){.time = 0.1}, 0, 0.03, 14), "4 7 10 14 ");
    /* Multiples that doubles miss by a rounding, in both directions. */
    ck_assert_str_eq(due_steps(&(trl_every){.time = 0.1}, 0, 0.01, 70), "10 20 30 40 50 60 70 ");
    ck_assert_str_eq(due_steps(&(trl_every){.time = 0.3}, 0, 0.1, 12), "3 6 9 12 ");
    /* A step over several multiples writes once; times count from 0, not from the start. */
    ck_assert_str_eq(due_steps(&(trl_every){.time = 0.1}, 0, 0.25, 3), "1 2 3 ");
    ck_assert_str_eq(due_steps(&(trl_every){.time = 1}, 0.5, 0.25, 8), "2 6 ");
    ck_assert_str_eq(due_steps(&(trl_every){.time = 1}, -1.5, 0.25, 8), "2 6 ");
}
END_TEST

START_TEST(output_is_due_at_the_first_step_past_each_time_of_a_list)
{
    const double times[] = {0.3, 0.7, 0.29, 100};
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 3, .at = times}, 0, 0.1, 20), "3 7 ");
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 3, .at = times}, 0, 0.01, 100), "29 30 70 ");
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 4, .at = times}, 0, 0.4, 3), "1 2 ");
    /* Times at the start and before it are not met later; far from 0 steps are small beside t. */
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 1, .at = (double[]){0}}, 0, 0.1, 9), "");
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 1, .at = (double[]){0.5}}, 1, 0.1, 9), "");
    ck_assert_str_eq(due_steps(&(trl_every){.nat = 1, .at = (double[]){1e6 + 3e-5}}, 1e6, 1e-5, 9), "3 ");
}
END_TEST

START_TEST(output_is_due_so_many_times_per_decade)
{
    ck_assert_str_eq(due_steps(&(trl_every){.log = 1}, 0, 0.001, 2000), "1 10 100 1000 ");
    ck_assert_str_eq(due_steps(&(trl_every){.log = 2}, 0, 1, 1000), "1 4 10 32 100 317 1000 ");
    /* Every step meets some where decades are shorter than steps, and none is met at t <= 0. */
    ck_assert_str_eq(due_steps(&(trl_every){.log = 1}, -2, 1, 5), "3 ");
}
END_TEST

START_TEST(output_at_times_does_not_depend_on_a_restart)
{
    /* Steps of uneven length: what a step needs is its own end and length, so any of them may be the first after a
       restart. */
    const trl_every every = {.time = 0.07};
    double t = 0;
    int written = 0;
    for (int i = 1; i <= 1000; ++i) {
        double dt = 0.01 * (1 + 0.5 * (i % 7)), before = t;
        t += dt;
        written += trli_every_due(&every, i, t, dt);
        ck_assert_int_le(written, (int)(t / 0.07 + 1e-6));
        ck_assert_int_eq(trli_every_due(&every, i, t, dt), trli_every_due(&every, i, t, t - before));
    }
    ck_assert_int_eq(written, (int)(t / 0.07 + 1e-6));
}
END_TEST

START_TEST(notes_signals_instead_of_ending)
{
    trli_signals_install();
    ck_assert_int_eq(trli_signals_received(), 0);
    ck_assert(trli_signals_name() == NULL);
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(trli_signals_received(), SIGTERM);
    ck_assert_str_eq(trli_signals_name(), "SIGTERM");
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, NULL, release);
    tcase_add_test(tc, sorts_operands_and_options);
    tcase_add_test(tc, takes_words_after_two_dashes_as_operands);
    tcase_add_test(tc, help_needs_nothing_else);
    tcase_add_test(tc, reads_whole_numbers);
    tcase_add_test(tc, rejects_what_is_no_whole_number);
    tcase_add_test(tc, rejects_unknown_options_with_the_nearest);
    tcase_add_test(tc, rejects_wrong_use_of_options);
    tcase_add_test(tc, rejects_wrong_numbers_of_operands);
    tcase_add_test(tc, finds_commands_with_the_nearest);
    tcase_add_test(tc, every_command_says_what_it_takes);
    tcase_add_test(tc, output_is_due_at_multiples_of_steps);
    tcase_add_test(tc, output_is_due_at_the_first_step_past_a_multiple_of_time);
    tcase_add_test(tc, output_is_due_at_the_first_step_past_each_time_of_a_list);
    tcase_add_test(tc, output_is_due_so_many_times_per_decade);
    tcase_add_test(tc, output_at_times_does_not_depend_on_a_restart);
    tcase_add_test(tc, notes_signals_instead_of_ending);
}

TRL_TEST_MAIN("command", add_tests)
