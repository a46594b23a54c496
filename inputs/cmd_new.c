/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis new`: a plugin to start from, copied from the templates with @NAME@ and @PREFIX@ filled in. */
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

static trl_err copy_templates(const new_plugin *plugin, const char *templates)
{
    trli_names names;
    trl_err err = TRL_OK;
    if (!trli_folder_list(plugin->ctx, templates, is_visible, &names) || names.n == 0)
        return trl_fail(plugin->ctx, TRL_ERR_IO, NULL, "the templates in '%s' cannot be read", templates);
    for (int i = 0; i < names.n && err == TRL_OK; ++i) err = copy_template(plugin, templates, names.name[i]);
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

int trli_cmd_new(trl_context *ctx, const trli_arguments *arguments)
{
    const char *folder = arguments->operand[0], *name = last_part(folder);
    char templates[PATH_MAX], prefix[PATH_MAX];
    trl_err err = TRL_OK;
    if (trli_arguments_value(arguments, "--cuda"))
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "trellis new: version " TRL_VERSION " has no GPU plugins yet; leave out --cuda"));
    TRL_TRY(check_name(ctx, name));
    TRL_TRY(trli_installed_folder(ctx, TRLI_TEMPLATES_BELOW "/plugin", TRL_TEMPLATE_FOLDER "/plugin", templates,
                                  sizeof templates));
    TRL_TRY(package_prefix(ctx, prefix));
    TRL_TRY(make_folder(ctx, folder));
    const new_plugin plugin = {.ctx = ctx, .folder = folder, .mark = {{"@NAME@", name}, {"@PREFIX@", prefix}}};
    printf("wrote the plugin %s:\n", name);
    err = copy_templates(&plugin, templates);
    if (err != TRL_OK) remove_templates(&plugin, templates);
    TRL_TRY(err);
    printf("build and run it with:\n"
           "  cmake -S %s -B %s/build && cmake --build %s/build && trellis run %s/deck.yaml\n",
           folder, folder, folder, folder);
done:
    return trli_command_finish(ctx, err);
}
