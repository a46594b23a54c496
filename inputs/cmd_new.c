/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis new`: a plugin to start from, copied from the templates with @NAME@ and @PREFIX@ filled in. */
#include "command_impl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <trl_formula.h>

#include "files_impl.h"

typedef struct substitution {
    const char *mark, *text;
} substitution;

/* What the marks of a template stand for; ends with a row whose mark is NULL. */
typedef struct new_plugin {
    trl_context *ctx;
    const char *folder; /* to write into */
    substitution mark[3];
} new_plugin;

/* Text with every mark replaced; the caller frees it. NULL when memory ran out. */
static char *substitute(const substitution *marks, const char *text)
{
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    if (!out) return NULL;
    while (*text) {
        const substitution *m = marks;
        while (m->mark && strncmp(text, m->mark, strlen(m->mark))) ++m;
        if (m->mark)
            fputs(m->text, out);
        else
            fputc(*text, out);
        text += m->mark ? strlen(m->mark) : 1;
    }
    if (fclose(out) == 0) return result;
    free(result);
    return NULL;
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

/* "folder/name" with the marks of name replaced; the caller frees it. NULL when memory ran out. */
static char *join(const char *folder, const char *name, const substitution *marks)
{
    char *path = NULL, *filled = substitute(marks, name);
    if (!filled || asprintf(&path, "%s/%s", folder, filled) < 0) path = NULL;
    free(filled);
    return path;
}

static trl_err copy_template(const new_plugin *plugin, const char *templates, const char *name)
{
    static const substitution none = {0};
    char *text = NULL, *filled = NULL, *source = join(templates, name, &none),
         *target = join(plugin->folder, name, plugin->mark);
    trl_err err = TRL_OK;
    if (source && target) TRL_TRY(read_text(plugin->ctx, source, &text));
    if (text) filled = substitute(plugin->mark, text);
    if (!filled)
        err = trl_fail(plugin->ctx, TRL_ERR_MEMORY, NULL, "no memory for the template '%s'", name);
    else
        err = write_text(plugin->ctx, target, filled);
done:
    free(text);
    free(filled);
    free(source);
    free(target);
    return err;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static trl_err copy_templates(const new_plugin *plugin, const char *templates)
{
    struct dirent **entry = NULL;
    trl_err err = TRL_OK;
    int n = scandir(templates, &entry, is_visible, alphasort);
    if (n <= 0) return trl_fail(plugin->ctx, TRL_ERR_IO, NULL, "the templates in '%s' cannot be read", templates);
    for (int i = 0; i < n; ++i) {
        if (err == TRL_OK) err = copy_template(plugin, templates, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return err;
}

/* What was written before something failed, so that another try finds its place free. */
static void remove_templates(const new_plugin *plugin, const char *templates)
{
    struct dirent **entry = NULL;
    int n = scandir(templates, &entry, is_visible, NULL);
    for (int i = 0; i < n; ++i) {
        char *target = join(plugin->folder, entry[i]->d_name, plugin->mark);
        if (target) (void)unlink(target);
        free(target);
        free(entry[i]);
    }
    free(entry);
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
