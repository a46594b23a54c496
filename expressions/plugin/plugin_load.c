/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Plugins: finding, opening and checking shared libraries of expression types. */
#include "context_impl.h"
#include "memory_impl.h"
#include "registry_impl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* The three spellings of a library in a folder; a name with folders of its own ("build/heat") is decorated in its
   last part. * Without a slash dlopen would search the system's folders, so a path always has one. */
static bool find_in_folder(const char *folder, const char *name, char path[PATH_MAX])
{
    static const struct {
        const char *prefix, *suffix;
    } spelling[] = {{"", ""}, {"lib", ".so"}, {"", ".so"}};
    const char *last = last_part(name);
    const char *between = name[0] == '/' ? "" : "/";
    if (name[0] == '/')
        folder = "";
    else if (!folder[0])
        folder = ".";
    for (size_t i = 0; i < sizeof spelling / sizeof *spelling; ++i) {
        int n = snprintf(path, PATH_MAX, "%s%s%.*s%s%s%s", folder, between, (int)(last - name), name,
                         spelling[i].prefix, last, spelling[i].suffix);
        if (n > 0 && n < PATH_MAX && is_file(path)) return true;
    }
    return false;
}

/* Whether something else than a file stands at the very path. */
static bool find_other(const char *folder, const char *name, char path[PATH_MAX])
{
    struct stat status;
    const char *first = name[0] == '/' ? "" : folder[0] ? folder : ".", *between = name[0] == '/' ? "" : "/";
    const int n = snprintf(path, PATH_MAX, "%s%s%s", first, between, name);
    return n > 0 && n < PATH_MAX && stat(path, &status) == 0;
}

/* "a; b; c" in a fixed buffer, cut with dots when it does not fit. */
static void join_folders(const char *const *folders, int n, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < n; ++i) {
        int length = snprintf(text + used, size - used, "%s%s", i ? "; " : "", folders[i][0] ? folders[i] : ".");
        if (length < 0 || (size_t)length >= size - used) {
            snprintf(text + size - 4, 4, "...");
            return;
        }
        used += (size_t)length;
    }
}

static trl_err find_library(trl_registry *r, const char *name, const char *const *folders, int nfolders,
                            const trl_place *place, char path[PATH_MAX])
{
    static const char *const here[] = {"."};
    char searched[2048];
    if (!name[0]) return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "the name of a plugin is empty");
    if (nfolders == 0) {
        folders = here;
        nfolders = 1;
    }
    for (int i = 0; i < nfolders; ++i)
        if (find_in_folder(folders[i], name, path)) return TRL_OK;
    for (int i = 0; i < nfolders && strchr(name, '/'); ++i)
        if (find_other(folders[i], name, path))
            return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "plugin '%s' cannot be loaded: it is no file", name);
    if (name[0] == '/') return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "plugin '%s' not found", name);
    join_folders(folders, nfolders, searched, sizeof searched);
    const char *last = last_part(name);
    return trl_fail(r->ctx, TRL_ERR_PLUGIN, place,
                    "plugin '%s' not found: no %s, lib%s.so or %s.so in: %s; build it, or name its folder with "
                    "--plugin-path",
                    name, last, last, last, searched);
}

/* The loader reports "path: reason"; the path is in our message already. */
static const char *loader_reason(const char *path)
{
    const char *reason = dlerror();
    size_t length = strlen(path);
    if (!reason) return "unknown reason";
    if (!strncmp(reason, path, length) && !strncmp(reason + length, ": ", 2)) return reason + length + 2;
    return reason;
}

/* Whether a file begins as libraries do; what cannot be read counts as one, of which the loader says more. */
static bool may_be_library(const char *path)
{
    char begin[4] = "\177ELF";
    FILE *file = fopen(path, "rb");
    if (!file) return true;
    const size_t n = fread(begin, 1, sizeof begin, file);
    fclose(file);
    return n == sizeof begin && memcmp(begin, "\177ELF", sizeof begin) == 0;
}

static trl_err fail_to_open(trl_registry *r, const char *path, const trl_place *place)
{
    trl_err err =
        trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "plugin '%s' cannot be loaded: %s", path, loader_reason(path));
    if (!may_be_library(path))
        trl_advise(r->ctx,
                   "build the plugin and name the shared library, FILE.so: this file is none; `trellis new NAME` "
                   "shows how");
    return err;
}

/* Keep the handle; *known is set when the library was loaded before, which is harmless. */
static trl_err keep_library(trl_registry *r, void *library, const char *path, const trl_place *place, bool *known)
{
    *known = false;
    for (int i = 0; i < r->nlibraries && !*known; ++i) *known = r->library[i] == library;
    if (*known) {
        dlclose(library);
        return TRL_OK;
    }
    if (!trli_make_room(r->ctx, &r->library, r->nlibraries, 1, &r->libraries_capacity, sizeof *r->library)) {
        dlclose(library);
        return trli_no_memory(r->ctx, place, "for plugin '%s'", path);
    }
    r->library[r->nlibraries++] = library;
    return TRL_OK;
}

static trl_err check_plugin(trl_registry *r, const trl_plugin *plugin, const char *path, const trl_place *place)
{
    if (plugin->abi != TRL_PLUGIN_ABI)
        return trl_fail(
            r->ctx, TRL_ERR_PLUGIN, place,
            "plugin '%s' has plugin abi %u, this Trellis has %u; rebuild it with this version's trl_plugin.h", path,
            (unsigned)plugin->abi, TRL_PLUGIN_ABI);
    if (plugin->size != sizeof *plugin || plugin->type_size != sizeof(trl_expr_type))
        return trl_fail(
            r->ctx, TRL_ERR_PLUGIN, place,
            "plugin '%s' has descriptors of %u and %u bytes (plugin, expression type), this Trellis expects "
            "%zu and %zu; rebuild it with this version's trl_plugin.h",
            path, (unsigned)plugin->size, (unsigned)plugin->type_size, sizeof *plugin, sizeof(trl_expr_type));
    if (!plugin->types || plugin->ntypes < 1)
        return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "plugin '%s' holds no expression type", path);
    return TRL_OK;
}

trl_err trl_registry_load(trl_registry *registry, const char *name, const char *const *folders, int nfolders,
                          const trl_place *place)
{
    trl_err err = TRL_OK;
    char path[PATH_MAX];
    bool known;
    if (!registry) return TRL_ERR_USAGE;
    if (!name || (!folders && nfolders > 0))
        return trl_fail(registry->ctx, TRL_ERR_USAGE, place, "a plugin is loaded without %s",
                        name ? "the folders that it is looked for in" : "its name");
    err = find_library(registry, name, folders, nfolders, place, path);
    if (err != TRL_OK) trli_advise_rank(registry->ctx);
    TRL_TRY(err);
    /* RTLD_NOW: a missing symbol is found here, not in the middle of a run. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return fail_to_open(registry, path, place);
    TRL_TRY(keep_library(registry, library, path, place, &known));
    if (known) goto done;
    const trl_plugin *plugin = dlsym(library, "trl_plugin_entry");
    if (!plugin)
        return trl_fail(registry->ctx, TRL_ERR_PLUGIN, place,
                        "'%s' is no Trellis plugin: it exports no symbol trl_plugin_entry", path);
    TRL_TRY(check_plugin(registry, plugin, path, place));
    for (int i = 0; i < plugin->ntypes; ++i) TRL_TRY(trl_registry_add(registry, &plugin->types[i], path, place));
done:
    return err;
}
