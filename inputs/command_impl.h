/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The `trellis` command: its table of commands, the options they take, and what they share. */
#ifndef TRLI_COMMAND_IMPL_H
#define TRLI_COMMAND_IMPL_H

#include <stdio.h>

#include "deck_impl.h"

typedef struct trli_option {
    const char *name;  /* "--steps", "-o" */
    const char *value; /* what stands for its value in the usage line; NULL: a switch */
    const char *doc;
    bool repeats; /* may be given several times; else twice is an error */
} trli_option;

#define TRLI_OPTIONS_MAX 10

typedef struct trli_arguments trli_arguments;

/* One row of the table of commands. */
typedef struct trli_command {
    const char *name;
    const char *operands; /* in the usage line: "DECK", "[NAME]", "" */
    const char *doc;
    int operands_min, operands_max;
    bool collective;                         /* every MPI rank runs it together; else rank 0 runs it alone, */
    bool (*on_ranks)(int argc, char **argv); /* unless all do by what is behind its name; NULL: they never do */
    trli_option option[TRLI_OPTIONS_MAX];    /* ends with a row whose name is NULL */
    /* Exit code. ctx: over all ranks if collective, else of this process alone. */
    int (*run)(trl_context *ctx, const trli_arguments *arguments);
} trli_command;

/* The checked arguments of one call. */
struct trli_arguments {
    const trli_command *command;
    int argc; /* as given, the command's name first */
    char **argv;
    int noperands;
    const char **operand; /* [argc] */
    int nvalues;
    const trli_option **option; /* [argc] the options given, in order */
    const char **value;         /* [argc] their values; "" for a switch */
    bool help;                  /* --help was given: nothing else was checked */
};

/* The commands in the order of the help. */
const trli_command *trli_commands(int *count);
/* The command of a name; INPUT error with the nearest name. */
TRL_NODISCARD trl_err trli_command_find(trl_context *ctx, const char *name, const trli_command **command);

/* Sort argv (the command's name first) into operands and options. INPUT errors: an unknown option (with the
   nearest), a missing value, an option twice, too few or too many operands. arguments is always safe to release. */
TRL_NODISCARD trl_err trli_arguments_parse(trl_context *ctx, const trli_command *command, int argc, char **argv,
                                           trli_arguments *arguments);
void trli_arguments_release(trli_arguments *arguments);
/* The value of an option, or NULL if it was not given. */
const char *trli_arguments_value(const trli_arguments *arguments, const char *name);
/* All values of an option that repeats, in order, with room for one more; trli_free gives them back. Returns their
   number, or -1 when memory ran out. */
int trli_arguments_values(trl_context *ctx, const trli_arguments *arguments, const char *name, const char ***values);
/* The value of an option that is a whole number from min up; unchanged if it was not given. INPUT error otherwise. */
TRL_NODISCARD trl_err trli_arguments_integer(trl_context *ctx, const trli_arguments *arguments, const char *name,
                                             trl_gidx min, trl_gidx *number);

/* Print the list of commands, or the usage and options of one. */
void trli_help_print(FILE *out);
void trli_command_help_print(const trli_command *command, FILE *out);

/* Rank 0 prints the recorded messages to standard error; all ranks forget them. Collective: no. */
void trli_diagnostics_print(trl_context *ctx);
/* Print what is recorded and turn a result into the command's exit code. */
int trli_command_finish(trl_context *ctx, trl_err err);

/* Where an installation keeps things, below its prefix. */
#define TRLI_TEMPLATES_BELOW "share/trellis/templates"
#define TRLI_PLUGINS_BELOW "lib/trellis/plugins"

/* A folder that belongs to Trellis: installed beside the executable's folder (`below` the prefix), else the build
 * tree's. INPUT error when neither exists. */
TRL_NODISCARD trl_err trli_installed_folder(trl_context *ctx, const char *below, const char *fallback, char *path,
                                            size_t size);

/* What every command that reads a deck starts with: the registry with the built-in types, and the deck read with
   --set, --threads and * --plugin-path. Collective: yes; both are NULL or whole afterwards, and the caller destroys
   them, the deck first. */
TRL_NODISCARD trl_err trli_command_deck(trl_context *ctx, const trli_arguments *arguments, trl_registry **registry,
                                        trli_deck **deck);

/* signals.c: the first SIGINT or SIGTERM is noted; the second one ends the process, and its children. */
void trli_signals_install(void);
/* The signal noted last, or 0; its name, or NULL. */
int trli_signals_received(void);
const char *trli_signals_name(void);
/* Until a launcher that passed the signal on kills this process; INFINITY: nobody does. */
double trli_signals_seconds_left(void);
/* trl_context_options.child */
void trli_signals_child(pid_t group, bool started);

/* The commands, each in the file of its name. */
int trli_cmd_run(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_kernels(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_plan(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_check(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_collect(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_plot(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_types(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_new(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_bench(trl_context *ctx, const trli_arguments *arguments);
/* Whether it is one that all ranks run together. */
bool trli_bench_on_ranks(int argc, char **argv);
int trli_cmd_info(trl_context *ctx, const trli_arguments *arguments);
int trli_cmd_help(trl_context *ctx, const trli_arguments *arguments);

/* Whether all MPI ranks run the command of a name together; then signals are heard. */
bool trli_command_is_collective(const char *name);
/* The whole command: argv as main gets it. MPI is initialised. Returns the exit code, the same on all ranks of a
   collective command. */
int trli_command_main(int argc, char **argv);

#endif
