/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis new`: a plugin or a deck to start from, copied from the templates with @NAME@ and @PREFIX@ filled in. */
#include "command_impl.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <trl_formula.h>

#include "files_impl.h"
#include "memstream_impl.h"

typedef struct substitution {
    const char *mark, *text;
} substitution;

/* What the marks of a template stand for; ends with a row whose mark is NULL. */
typedef struct new_plugin {
    trl_context *ctx;
    const char *folder; /* to write into */
    substitution mark[3];
} new_plugin;

/* Text with every mark replaced; trli_free gives it back. NULL when memory ran out. */
static char *substitute(trl_context *ctx, const substitution *marks, const char *text)
{
    trli_memstream result;
    if (!trli_memstream_open(ctx, &result)) return NULL;
    while (*text) {
        const substitution *m = marks;
        while (m->mark && strncmp(text, m->mark, strlen(m->mark))) ++m;
        if (m->mark)
            fputs(m->text, result.out);
        else
            fputc(*text, result.out);
        text += m->mark ? strlen(m->mark) : 1;
    }
    return trli_memstream_close(&result) ? result.text : NULL;
}

static trl_err read_text(trl_context *ctx, const char *path, char **text)
{
    const off_t most = 1 << 20;
    size_t size;
    return trli_file_read(ctx, TRL_ERR_IO, NULL, path, most, text, &size);
}

static trl_err write_text(trl_context *ctx, const char *path, const char *text)
{
    trl_err err;
    TRL_TRY(trli_file_replace(ctx, path, text, strlen(text)));
    printf("  %s\n", path);
done:
    return err;
}

/* "folder/name" with the marks of name replaced; trli_free gives it back. */
static trl_err join(trl_context *ctx, const char *folder, const char *name, const substitution *marks, char **path)
{
    char *filled = substitute(ctx, marks, name);
    if (!filled) return trli_no_memory(ctx, NULL, "for the path of '%s'", name);
    trl_err err = trli_format(ctx, path, "%s/%s", folder, filled);
    trli_free(filled);
    return err;
}

static trl_err copy_template(const new_plugin *plugin, const char *templates, const char *name)
{
    static const substitution none = {0};
    char *text = NULL, *filled = NULL, *source = NULL, *target = NULL;
    trl_context *ctx = plugin->ctx;
    trl_err err;
    TRL_TRY(join(ctx, templates, name, &none, &source));
    TRL_TRY(join(ctx, plugin->folder, name, plugin->mark, &target));
    TRL_TRY(read_text(ctx, source, &text));
    filled = substitute(ctx, plugin->mark, text);
    if (!filled) TRL_TRY(trli_no_memory(ctx, NULL, "for the template '%s'", name));
    err = write_text(ctx, target, filled);
done:
    trli_free(text);
    trli_free(filled);
    trli_free(source);
    trli_free(target);
    return err;
}

static bool is_visible(const char *name)
{
    return name[0] != '.';
}

static bool has_template(const char *templates, const char *name)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", templates, name);
    return n < (int)sizeof path && access(path, F_OK) == 0;
}

/* Copy a folder of templates, but those that another folder has instead; NULL: there is no other. */
static trl_err copy_templates(const new_plugin *plugin, const char *templates, const char *instead)
{
    trli_names names;
    trl_err err = TRL_OK;
    if (!trli_folder_list(plugin->ctx, templates, is_visible, &names) || names.n == 0)
        return trl_fail(plugin->ctx, TRL_ERR_IO, NULL, "the templates in '%s' cannot be read", templates);
    for (int i = 0; i < names.n && err == TRL_OK; ++i)
        if (!instead || !has_template(instead, names.name[i])) err = copy_template(plugin, templates, names.name[i]);
    trli_names_free(&names);
    return err;
}

/* What was written before something failed, so that another try finds its place free. */
static void remove_templates(const new_plugin *plugin, const char *templates)
{
    trli_names names;
    if (!trli_folder_list(plugin->ctx, templates, is_visible, &names)) return;
    for (int i = 0; i < names.n; ++i) {
        char *target = NULL;
        if (join(plugin->ctx, plugin->folder, names.name[i], plugin->mark, &target) == TRL_OK) (void)unlink(target);
        trli_free(target);
    }
    trli_names_free(&names);
    (void)rmdir(plugin->folder);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Where find_package looks first: the build folder that this program runs from, else the prefix it is installed
   under. */
static trl_err package_prefix(trl_context *ctx, char *prefix)
{
    char config[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", prefix, PATH_MAX - 1);
    if (length <= 0)
        return trl_fail(ctx, TRL_ERR_IO, NULL, "the folder of this program cannot be found: %s", strerror(errno));
    prefix[length] = 0;
    for (int up = 0; up < 2; ++up) {
        char *slash = strrchr(prefix, '/');
        if (slash) *slash = 0;
        int n = snprintf(config, sizeof config, "%s/TrellisConfig.cmake", prefix);
        if (n < (int)sizeof config && access(config, F_OK) == 0) break;
    }
    return TRL_OK;
}

static trl_err check_name(trl_context *ctx, const char *name)
{
    if (!trl_name_valid(name))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new: '%s' is no name: letters, digits and _, no digit first",
                        name);
    if (trl_name_reserved(name))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new: '%s' is reserved in formulas; choose another name",
                        name);
    return TRL_OK;
}

static trl_err make_folder(trl_context *ctx, const char *folder)
{
    if (mkdir(folder, 0777) == 0) return TRL_OK;
    if (errno == EEXIST)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new: '%s' exists already; choose another name or remove it",
                        folder);
    return trl_fail(ctx, TRL_ERR_IO, NULL, "trellis new: the folder '%s' cannot be made: %s", folder, strerror(errno));
}

static trl_err write_plugin(trl_context *ctx, const trli_arguments *arguments)
{
    const char *folder = arguments->operand[0], *name = last_part(folder);
    char templates[PATH_MAX], instead[PATH_MAX], prefix[PATH_MAX];
    const bool cuda = trli_arguments_value(arguments, "--cuda");
    trl_err err = TRL_OK;
    if (trli_arguments_value(arguments, "--like"))
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "trellis new: a plugin is like no deck; write 'trellis new deck %s --like ...', or leave out "
                         "--like",
                         folder));
    TRL_TRY(check_name(ctx, name));
    TRL_TRY(trli_installed_folder(ctx, TRLI_TEMPLATES_BELOW "/plugin", TRL_TEMPLATE_FOLDER "/plugin", templates,
                                  sizeof templates));
    TRL_TRY(trli_installed_folder(ctx, TRLI_TEMPLATES_BELOW "/plugin_cuda", TRL_TEMPLATE_FOLDER "/plugin_cuda", instead,
                                  sizeof instead));
    TRL_TRY(package_prefix(ctx, prefix));
    TRL_TRY(make_folder(ctx, folder));
    const new_plugin plugin = {.ctx = ctx, .folder = folder, .mark = {{"@NAME@", name}, {"@PREFIX@", prefix}}};
    printf("wrote the plugin %s:\n", name);
    err = copy_templates(&plugin, templates, cuda ? instead : NULL);
    if (err == TRL_OK && cuda) err = copy_templates(&plugin, instead, NULL);
    if (err != TRL_OK && cuda) remove_templates(&plugin, instead);
    if (err != TRL_OK) remove_templates(&plugin, templates);
    TRL_TRY(err);
    printf("build and run it with:\n"
           "  cmake -S %s -B %s/build && cmake --build %s/build && trellis run %s/deck.yaml\n",
           folder, folder, folder, folder);
done:
    return err;
}

/* ---- decks ---- */

static bool is_deck(const char *name)
{
    const size_t length = strlen(name);
    return name[0] != '.' && length > 5 && !strcmp(name + length - 5, ".yaml");
}

/* Decks differ by their names without the ending. */
static trl_err list_kinds(trl_context *ctx, const char *templates, trli_names *kinds)
{
    if (!trli_folder_list(ctx, templates, is_deck, kinds) || kinds->n == 0)
        return trl_fail(ctx, TRL_ERR_IO, NULL, "the templates in '%s' cannot be read", templates);
    for (int i = 0; i < kinds->n; ++i) kinds->name[i][strlen(kinds->name[i]) - 5] = 0;
    return TRL_OK;
}

/* kind: NULL, or what the user asked for and is not there. */
static trl_err fail_kind(trl_context *ctx, const trli_names *kinds, const char *kind)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < kinds->n && used < sizeof list; ++i)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", kinds->name[i]);
    if (!kind)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new deck needs --like and what the deck begins with: %s",
                        list);
    const char *nearest = trl_name_nearest(kind, (const char *const *)kinds->name, kinds->n);
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new deck: there is nothing like '%s'; there is: %s%s%s%s", kind,
                    list, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static trl_err check_kind(trl_context *ctx, const char *templates, const char *kind)
{
    trli_names kinds = {0};
    trl_err err;
    TRL_TRY(list_kinds(ctx, templates, &kinds));
    for (int i = 0; i < kinds.n && kind; ++i)
        if (!strcmp(kinds.name[i], kind)) goto done;
    err = fail_kind(ctx, &kinds, kind);
done:
    trli_names_free(&kinds);
    return err;
}

/* The name is also that of a folder, in a deck, where it needs no quotes. */
static trl_err check_deck_name(trl_context *ctx, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (*name && !strchr("-.", *name) && !name[strspn(name, letters)]) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "trellis new deck: '%s' is no name of a deck: letters, digits, _, - and ., none of the last two "
                    "first",
                    name);
}

static trl_err write_deck(trl_context *ctx, const char *where, const char *kind)
{
    char templates[PATH_MAX];
    char *source = NULL, *text = NULL, *filled = NULL, *path = NULL, *name = NULL;
    trl_err err;
    TRL_TRY(trli_installed_folder(ctx, TRLI_TEMPLATES_BELOW "/deck", TRL_TEMPLATE_FOLDER "/deck", templates,
                                  sizeof templates));
    TRL_TRY(check_kind(ctx, templates, kind));
    TRL_TRY(trli_format(ctx, &name, "%s", last_part(where)));
    if (is_deck(name)) name[strlen(name) - 5] = 0;
    TRL_TRY(check_deck_name(ctx, name));
    TRL_TRY(trli_format(ctx, &path, "%.*s%s.yaml", (int)(last_part(where) - where), where, name));
    if (access(path, F_OK) == 0)
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new: '%s' exists already; choose another name or remove it",
                         path));
    TRL_TRY(trli_format(ctx, &source, "%s/%s.yaml", templates, kind));
    TRL_TRY(read_text(ctx, source, &text));
    filled = substitute(ctx, (const substitution[]){{"@NAME@", name}, {0}}, text);
    if (!filled) TRL_TRY(trli_no_memory(ctx, NULL, "for the deck '%s'", name));
    printf("wrote the deck %s:\n", name);
    TRL_TRY(write_text(ctx, path, filled));
    printf("run it with:\n  trellis run %s && trellis plot out/%s\n", path, name);
done:
    trli_free(source);
    trli_free(text);
    trli_free(filled);
    trli_free(path);
    trli_free(name);
    return err;
}

int trli_cmd_new(trl_context *ctx, const trli_arguments *arguments)
{
    const char *const *operand = arguments->operand;
    trl_err err;
    if (arguments->noperands == 1)
        err = write_plugin(ctx, arguments);
    else if (strcmp(operand[0], "deck"))
        err =
            trl_fail(ctx, TRL_ERR_INPUT, NULL,
                     "trellis new: found '%s %s'; write 'trellis new deck %s --like ...' for a deck, and one name for "
                     "a plugin",
                     operand[0], operand[1], operand[1]);
    else if (trli_arguments_value(arguments, "--cuda"))
        err = trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis new deck: a deck needs no --cuda; leave it out");
    else
        err = write_deck(ctx, operand[1], trli_arguments_value(arguments, "--like"));
    return trli_command_finish(ctx, err);
}
