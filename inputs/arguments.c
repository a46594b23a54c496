/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Arguments of a command, checked against its row of the table. */
#include "command_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trl_formula.h>

#include "memory_impl.h"

/* The option a word names: all of it, or what stands before its first '='. */
static const trli_option *find_option(const trli_command *command, const char *word, const char **value)
{
    size_t length = strcspn(word, "=");
    *value = word[length] ? word + length + 1 : NULL;
    for (const trli_option *o = command->option; o->name; ++o)
        if (strlen(o->name) == length && !strncmp(o->name, word, length)) return o;
    return NULL;
}

static trl_err unknown_option(trl_context *ctx, const trli_command *command, const char *word)
{
    const char *known[TRLI_OPTIONS_MAX + 1] = {"--help"};
    char name[256];
    int n = 1;
    for (const trli_option *o = command->option; o->name; ++o) known[n++] = o->name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *nearest = trl_name_nearest(name, known, n);
    if (nearest)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: unknown option '%s'; did you mean '%s'?", command->name,
                        name, nearest);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis %s: unknown option '%s'; 'trellis %s --help' lists what there is", command->name, name,
                    command->name);
}

/* Take the option at argv[*i], and its value from the next word if it is not behind a '='. */
static trl_err take_option(trl_context *ctx, trli_arguments *a, int *i)
{
    const char *command = a->command->name, *value;
    const trli_option *option = find_option(a->command, a->argv[*i], &value);
    if (!option) return unknown_option(ctx, a->command, a->argv[*i]);
    if (!option->value && value)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: option %s takes no value, found '%s'", command,
                        option->name, value);
    const char *unused, *next = *i + 1 < a->argc ? a->argv[*i + 1] : NULL;
    const bool none = !next || (next[0] == '-' && find_option(a->command, next, &unused));
    if (option->value && !value && none)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: option %s needs a value: %s %s", command, option->name,
                        option->name, option->value);
    if (!option->repeats && trli_arguments_value(a, option->name))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: option %s is given twice", command, option->name);
    if (option->value && !value) value = a->argv[++*i];
    a->option[a->nvalues] = option;
    a->value[a->nvalues++] = value ? value : "";
    return TRL_OK;
}

static trl_err check_operands(trl_context *ctx, const trli_arguments *a)
{
    const trli_command *c = a->command;
    if (a->noperands < c->operands_min)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: %s is missing; usage: trellis %s %s", c->name,
                        c->operands, c->name, c->operands);
    if (a->noperands > c->operands_max)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis %s: unexpected argument '%s'; usage: trellis %s%s%s",
                        c->name, a->operand[c->operands_max], c->name, c->operands[0] ? " " : "", c->operands);
    return TRL_OK;
}

trl_err trli_arguments_parse(trl_context *ctx, const trli_command *command, int argc, char **argv,
                             trli_arguments *arguments)
{
    trli_arguments *a = arguments;
    trl_err err = TRL_OK;
    size_t room = (size_t)argc + 1;
    *a = (trli_arguments){.command = command, .argc = argc, .argv = argv};
    a->operand = trli_new(ctx, room, sizeof *a->operand);
    a->option = trli_new(ctx, room, sizeof *a->option);
    a->value = trli_new(ctx, room, sizeof *a->value);
    if (!a->operand || !a->option || !a->value) return trli_no_memory(ctx, NULL, "for %d arguments", argc);
    bool options = true;
    for (int i = 1; i < argc; ++i)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) a->help = true;
    for (int i = 1; i < argc && !a->help; ++i) {
        if (options && !strcmp(argv[i], "--"))
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            TRL_TRY(take_option(ctx, a, &i));
        else
            a->operand[a->noperands++] = argv[i];
    }
    if (!a->help) TRL_TRY(check_operands(ctx, a));
done:
    return err;
}

void trli_arguments_release(trli_arguments *arguments)
{
    trli_free(arguments->operand);
    trli_free(arguments->option);
    trli_free(arguments->value);
    *arguments = (trli_arguments){0};
}

const char *trli_arguments_value(const trli_arguments *arguments, const char *name)
{
    for (int i = 0; i < arguments->nvalues; ++i)
        if (!strcmp(arguments->option[i]->name, name)) return arguments->value[i];
    return NULL;
}

int trli_arguments_values(trl_context *ctx, const trli_arguments *arguments, const char *name, const char ***values)
{
    int n = 0;
    *values = trli_new(ctx, (size_t)arguments->nvalues + 1, sizeof **values);
    if (!*values) return -1;
    for (int i = 0; i < arguments->nvalues; ++i)
        if (!strcmp(arguments->option[i]->name, name)) (*values)[n++] = arguments->value[i];
    return n;
}

trl_err trli_arguments_integer(trl_context *ctx, const trli_arguments *arguments, const char *name, trl_gidx min,
                               trl_gidx *number)
{
    const char *text = trli_arguments_value(arguments, name);
    const double largest = 9007199254740992.0; /* 2^53: beyond it doubles skip whole numbers */
    char *end;
    if (!text) return TRL_OK;
    double value = strtod(text, &end); /* as in a deck, 1e6 is a whole number */
    bool decimal = text[0] && !text[strspn(text, "0123456789.eE+-")] && !*end;
    if (!decimal || !(value >= (double)min && value <= largest) || value != floor(value))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "trellis %s: option %s needs a whole number from %" TRL_GIDX_FMT " up, found '%s'",
                        arguments->command->name, name, min, text);
    *number = (trl_gidx)value;
    return TRL_OK;
}
