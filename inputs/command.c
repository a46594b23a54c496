/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The table of commands, their help, and the way from argv to an exit code. */
#include "command_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <trl_formula.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"

#define OPTION_SET                                                                                             \
    {                                                                                                          \
        "--set", "KEY=VALUE", "change one key of the deck, as time.steps=10; may be given several times", true \
    }
#define OPTION_PLUGIN_PATH                                                                       \
    {                                                                                            \
        "--plugin-path", "DIR", "also look for plugins in DIR; may be given several times", true \
    }
#define OPTION_THREADS                                                                     \
    {                                                                                      \
        "--threads", "N", "threads of each rank, instead of the deck's run.threads", false \
    }

static const trli_command commands[] = {
    {.name = "run",
     .operands = "DECK",
     .doc = "run a deck: mpirun -n 4 trellis run deck.yaml",
     .operands_min = 1,
     .operands_max = 1,
     .collective = true,
     .run = trli_cmd_run,
     .option = {OPTION_SET,
                {"--steps", "N", "stop after N steps from the start of the problem", false},
                {"--restart", "DIR|latest", "continue from a checkpoint: latest is the newest of this deck's output",
                 false},
                {"--report", "FILE", "write report.json to FILE as well", false},
                {"--trace", "FILE", "write what each worker did to FILE, for https://ui.perfetto.dev", false},
                OPTION_THREADS,
                OPTION_PLUGIN_PATH,
                {"--quiet", NULL, "print errors and warnings only", false}}},
    {.name = "plan",
     .operands = "DECK",
     .doc = "show what would run: expressions, kernels, ghosts, memory, tasks",
     .operands_min = 1,
     .operands_max = 1,
     .collective = true,
     .run = trli_cmd_plan,
     .option = {{"--dot", "PREFIX", "write PREFIX.expressions.dot and PREFIX.tasks.dot for Graphviz", false},
                {"--measure", NULL, "run some steps, and show how long each kernel takes", false},
                {"--devices", "NxMACHINE", "predict what it would take with devices that are not there, as 2xH100",
                 false},
                {"--placement", "FILE", "write which executor does which task to FILE, for run.placement", false},
                {"--verbose", NULL, "show every program, and what each pass of the compiler did", false},
                OPTION_SET,
                OPTION_THREADS,
                OPTION_PLUGIN_PATH}},
    {.name = "check",
     .operands = "DECK",
     .doc = "find everything that can be wrong before step 0",
     .operands_min = 1,
     .operands_max = 1,
     .collective = true,
     .run = trli_cmd_check,
     .option = {OPTION_SET, OPTION_THREADS, OPTION_PLUGIN_PATH}},
    {.name = "kernels",
     .operands = "DECK",
     .doc = "show the source of the kernels that are compiled for a deck",
     .operands_min = 1,
     .operands_max = 1,
     .collective = true,
     .run = trli_cmd_kernels,
     .option = {{"--device", "cpu|gpu", "for which device (default: cpu)", false},
                {"--values", NULL, "what the source is made from, one operation a line", false},
                OPTION_SET,
                OPTION_THREADS,
                OPTION_PLUGIN_PATH}},
    {.name = "plot",
     .operands = "FILE|DIR",
     .doc = "draw fields or series of a run's output as a picture",
     .operands_min = 1,
     .operands_max = 1,
     .run = trli_cmd_plot,
     .option = {{"--field", "T", "the field to draw, or several as T,q.x (default: the first)", false},
                {"--slice", "z=0.5", "the plane to draw of a 3-D field (default: the middle of z)", false},
                {"--time", "t|last", "the output nearest to a time (default: last)", false},
                {"--range", "lo,hi", "the values at the ends of the colours, or of a line's axis", false},
                {"--contours", "n", "lines at n equal steps of the value", false},
                {"--spacetime", NULL, "a line over time, from all outputs", false},
                {"--movie", NULL, "an animated PNG of all outputs; with -o frame%04d.png a picture of each", false},
                {"--size", "n", "pixels along the longer side of a field", false},
                {"-o", "PICTURE", "the .png, .svg or .pdf to write (default: a PNG named after the fields)", false}}},
    {.name = "collect",
     .operands = "DIR",
     .doc = "join the files of a run's output times to one",
     .operands_min = 1,
     .operands_max = 1,
     .run = trli_cmd_collect,
     .option = {{"-o", "FILE", "the netCDF file to write (default: all.nc in DIR)", false}}},
    {.name = "types",
     .operands = "[NAME]",
     .doc = "list expression types, operators and functions, or explain one",
     .operands_max = 1,
     .run = trli_cmd_types,
     .option = {OPTION_PLUGIN_PATH}},
    {.name = "new",
     .operands = "[deck] NAME",
     .doc = "write a deck to start from, or a plugin: C source, CMakeLists.txt, deck, test",
     .operands_min = 1,
     .operands_max = 2,
     .run = trli_cmd_new,
     .option = {{"--like", "KIND", "what a deck begins with: heat, reaction, wave, transport or flow", false},
                {"--cuda", NULL, "a plugin that GPUs compute, too", false}}},
    {.name = "bench",
     .operands = "NAME",
     .doc = "measure the speed of this machine and of Trellis: heat, kernels, operators, boundary, functions, solve, "
            "flow, tasks, grain, build, mpi, scalability, gpu_heat, gpu_transport, gpu_fields",
     .operands_min = 1,
     .operands_max = 1,
     .on_ranks = trli_bench_on_ranks,
     .run = trli_cmd_bench,
     .option = {{"--json", "FILE", "write all numbers to FILE", false},
                {"--quick", NULL, "small sizes, once: shows that it works, not how fast", false},
                {"--figure", "NUMBER", "of scalability: this figure alone, 4.3 to 4.7", false},
                {"--minutes", "M", "of scalability: what tells most, in so many minutes", false},
                {"--pictures", "FOLDER", "of scalability: draw FOLDER/figure-NUMBER.png", false},
                {"--parts", "LIST", "of mpi and solve: these parts alone; a wrong name lists them", false},
                {"--cells", "LIST", "of solve: cells along each axis", false},
                {"--ranks", "LIST", "of solve: how many ranks to start by mpirun, as 2,4", false}}},
    {.name = "info",
     .operands = "",
     .doc = "show version, build options, processors, MPI and compilers",
     .run = trli_cmd_info},
    {.name = "help",
     .operands = "[COMMAND]",
     .doc = "show this list, or the options of a command",
     .operands_max = 1,
     .run = trli_cmd_help},
};

const trli_command *trli_commands(int *count)
{
    *count = (int)(sizeof commands / sizeof *commands);
    return commands;
}

trl_err trli_command_find(trl_context *ctx, const char *name, const trli_command **command)
{
    const char *names[sizeof commands / sizeof *commands];
    int n;
    const trli_command *table = trli_commands(&n);
    *command = NULL;
    for (int i = 0; i < n; ++i) {
        names[i] = table[i].name;
        if (!strcmp(name, table[i].name)) *command = &table[i];
    }
    if (*command) return TRL_OK;
    const char *nearest = trl_name_nearest(name, names, n);
    if (nearest)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis: unknown command '%s'; did you mean '%s'?", name, nearest);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis: unknown command '%s'; 'trellis help' lists what there is",
                    name);
}

static void print_usage(const trli_command *command, FILE *out)
{
    fprintf(out, "trellis %s%s%s", command->name, command->operands[0] ? " " : "", command->operands);
    for (const trli_option *o = command->option; o->name; ++o)
        fprintf(out, " [%s%s%s]", o->name, o->value ? " " : "", o->value ? o->value : "");
    fputc('\n', out);
}

void trli_command_help_print(const trli_command *command, FILE *out)
{
    fputs("usage: ", out);
    print_usage(command, out);
    fprintf(out, "\n%s\n", command->doc);
    if (command->option[0].name) fputs("\noptions:\n", out);
    for (const trli_option *o = command->option; o->name; ++o) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", o->name, o->value ? o->value : "");
        fprintf(out, "  %-22s %s\n", left, o->doc);
    }
}

void trli_help_print(FILE *out)
{
    int n;
    const trli_command *table = trli_commands(&n);
    fputs("Trellis " TRL_VERSION ": solves partial differential equations written in a YAML deck.\n\ncommands:\n", out);
    for (int i = 0; i < n; ++i) fprintf(out, "  %-7s %-11s %s\n", table[i].name, table[i].operands, table[i].doc);
    fputs(
        "\n'trellis COMMAND --help' shows the options of a command.\n"
        "exit codes: 0 done; 2 the deck, a plugin or the command line is wrong; 3 the run failed; 4 a bug in Trellis\n",
        out);
}

int trli_cmd_help(trl_context *ctx, const trli_arguments *arguments)
{
    const trli_command *command;
    trl_err err = TRL_OK;
    if (!arguments->noperands) {
        trli_help_print(stdout);
        goto done;
    }
    TRL_TRY(trli_command_find(ctx, arguments->operand[0], &command));
    trli_command_help_print(command, stdout);
done:
    return trli_command_finish(ctx, err);
}

/* least: of their severity. */
static void print_all(const trl_context *ctx, trl_severity least)
{
    const trl_diagnostic *list;
    int n = trl_context_diagnostics(ctx, &list);
    for (int i = 0; i < n; ++i) {
        if (list[i].severity < least) continue;
        int length = trl_diagnostic_format(&list[i], NULL, 0);
        char small[1024], *text = length < 0 ? NULL : malloc((size_t)length + 1);
        if (text) trl_diagnostic_format(&list[i], text, (size_t)length + 1);
        if (!text) trl_diagnostic_format(&list[i], small, sizeof small); /* without memory the message is cut */
        fputs(text ? text : small, stderr);
        free(text);
    }
    fflush(stderr);
}

void trli_diagnostics_print(trl_context *ctx)
{
    if (trl_context_rank(ctx) == 0) print_all(ctx, TRL_NOTE);
    trl_context_clear_diagnostics(ctx);
}

/* Without the others' help, whatever they wait for. Rank 0 warns of what all ranks have seen. */
static void end_all_ranks(trl_context *ctx, trl_err err)
{
    print_all(ctx, trl_context_rank(ctx) == 0 ? TRL_NOTE : TRL_ERROR);
    MPI_Abort(MPI_COMM_WORLD, trl_err_exit_code(err));
}

int trli_command_finish(trl_context *ctx, trl_err err)
{
    trli_diagnostics_print(ctx);
    return trl_err_exit_code(err);
}

/* What a command prints is its result; that of a run is in files. A reader that closed its pipe wants no more, which is
 * no error. */
static int check_printed(const trli_command *command, int status)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != 0) return status;
    const int number = errno ? errno : EIO;
    if (poll(&out, 1, 0) == 1 && out.revents & POLLERR) return status;
    fprintf(stderr, "trellis %s: what it prints cannot be written: %s\n", command->name, strerror(number));
    return command->run == trli_cmd_run ? status : trl_err_exit_code(TRL_ERR_IO);
}

static int dispatch(trl_context *ctx, const trli_command *command, int argc, char **argv)
{
    trli_arguments arguments;
    int status;
    trl_err err = trl_context_agree(ctx, trli_arguments_parse(ctx, command, argc, argv, &arguments));
    if (err != TRL_OK) {
        status = trli_command_finish(ctx, err);
    } else if (arguments.help) {
        if (trl_context_rank(ctx) == 0) trli_command_help_print(command, stdout);
        status = 0;
    } else {
        status = command->run(ctx, &arguments);
    }
    status = check_printed(command, status);
    trli_arguments_release(&arguments);
    return status;
}

bool trli_command_is_collective(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
        if (!strcmp(commands[i].name, name)) return commands[i].collective;
    return false;
}

/* Whether all ranks do what is asked for. */
static bool is_for_all(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
        if (!strcmp(commands[i].name, name) && commands[i].on_ranks) return commands[i].on_ranks(argc - 2, argv + 2);
    return trli_command_is_collective(name);
}

/* The words that a rank was started with, for trli_free. */
static char *words_of(trl_context *ctx, int argc, char **argv)
{
    trli_memstream words;
    if (!trli_memstream_open(ctx, &words)) return NULL;
    fputs("trellis", words.out);
    for (int i = 1; i < argc; ++i) fprintf(words.out, " %s", argv[i]);
    return trli_memstream_close(&words) ? words.text : NULL;
}

/* Ranks that were started with different arguments (mpirun takes several programs) would wait for one another in
 * different places. Collective: yes. */
static trl_err check_words(trl_context *ctx, int argc, char **argv)
{
    const int rank = trl_context_rank(ctx);
    char *words = words_of(ctx, argc, argv), *first = NULL;
    int length = words ? (int)strlen(words) + 1 : 0;
    trl_err err = TRL_OK;
    if (trl_context_ranks(ctx) == 1) goto done;
    TRL_TRY(trl_context_agree(ctx, words ? TRL_OK : trli_no_memory(ctx, NULL, "for the command line")));
    TRL_TRY(trli_broadcast(ctx, &length, 1, MPI_INT, 0));
    first = trli_new(ctx, (size_t)length, 1);
    if (!first) err = trli_no_memory(ctx, NULL, "for the command line");
    TRL_TRY(trl_context_agree(ctx, err));
    if (rank == 0) memcpy(first, words, (size_t)length);
    TRL_TRY(trli_broadcast(ctx, first, length, MPI_CHAR, 0));
    if (strcmp(first, words))
        err = trl_fail(ctx, TRL_ERR_INPUT, NULL,
                       "rank %d was started as '%s', but rank 0 as '%s'; start all ranks with the same arguments", rank,
                       words, first);
    err = trl_context_agree(ctx, err);
done:
    trli_free(first);
    trli_free(words);
    return err;
}

/* Make a context; *status: if there is none, the exit code. */
static trl_context *start(MPI_Comm comm, int rank, int *status)
{
    const trl_context_options options = {.lost = end_all_ranks, .child = trli_signals_child};
    trl_context *ctx = NULL;
    const trl_err err = trl_context_create(comm, &options, &ctx);
    if (err == TRL_OK) return ctx;
    const bool alone = err == TRL_ERR_MPI; /* else all ranks are here */
    if (rank == 0 || alone) fprintf(stderr, "trellis: cannot start: %s\n", trl_err_meaning(err));
    *status = trl_err_exit_code(err);
    if (alone) MPI_Abort(MPI_COMM_WORLD, *status);
    return NULL;
}

static int run_command(trl_context *ctx, const char *name, int argc, char **argv)
{
    const trli_command *command = NULL;
    if (argc < 2) {
        if (trl_context_rank(ctx) == 0) trli_help_print(stderr);
        return trl_err_exit_code(TRL_ERR_INPUT);
    }
    const trl_err err = trl_context_agree(ctx, trli_command_find(ctx, name, &command));
    return err == TRL_OK ? dispatch(ctx, command, argc - 1, argv + 1) : trli_command_finish(ctx, err);
}

/* All ranks make a context: what one of them is to do, they know when they have compared their arguments. */
int trli_command_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int rank, ranks, status = 0;
    if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS) {
        fputs("trellis: cannot start: MPI does not tell the ranks\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, trl_err_exit_code(TRL_ERR_MPI));
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "info";
    trl_context *ctx = start(MPI_COMM_WORLD, rank, &status);
    if (!ctx) return status;
    const trl_err err = check_words(ctx, argc, argv);
    const bool for_one = err == TRL_OK && ranks > 1 && argc > 1 && !is_for_all(name, argc, argv);
    if (err != TRL_OK)
        status = trli_command_finish(ctx, err);
    else if (for_one)
        trl_context_destroy(&ctx);
    if (for_one && rank == 0) ctx = start(MPI_COMM_SELF, rank, &status);
    if (err == TRL_OK && ctx) status = run_command(ctx, name, argc, argv);
    if (ctx) trl_context_destroy(&ctx);
    return status;
}
