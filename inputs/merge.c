/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge_impl.h"

enum { FILES_MAX = 200 };

/* What some editors put before a text in UTF-8. */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

typedef struct loader {
    trl_context *ctx;
    trli_arena *arena;
    trli_loaded *loaded;
    int files;
} loader;

/* The files being read, innermost first: a file among its own is a cycle. */
typedef struct open_file {
    const struct open_file *outer;
    const char *name; /* as the user named it */
    const char *path; /* absolute */
} open_file;

trl_err trli_merge(trli_arena *arena, const trli_key *key, trli_yaml *base, trli_yaml *over, trli_yaml **merged)
{
    bool whole = key && key->flags & TRLI_WHOLE;
    trli_yaml *copy;
    trl_err err;
    *merged = over;
    if (whole || base->kind != TRLI_MAPPING_NODE || over->kind != TRLI_MAPPING_NODE) return TRL_OK;
    TRL_TRY(trli_yaml_copy(arena, base, &copy));
    for (int i = 0; i < over->n; ++i) {
        const char *name = over->key[i]->text.chars;
        trli_yaml *value = over->item[i], *below = trli_yaml_get(base, name);
        if (below) TRL_TRY(trli_merge(arena, trli_schema_child(key, name), below, value, &value));
        TRL_TRY(trli_yaml_put(arena, copy, over->key[i], value));
    }
    *merged = copy;
done:
    return err;
}

const char *trli_loaded_folder(const trli_loaded *loaded, const trl_place *place)
{
    int at = place->file ? trli_map_find(&loaded->files, place->file) : 0;
    return loaded->folder[at > 0 ? at : 0];
}

static trl_err add_file(loader *l, const char *name, const char *path)
{
    trli_loaded *loaded = l->loaded;
    trl_err err = trli_arena_grow(l->arena, &loaded->folder, loaded->nfiles, &loaded->capacity, sizeof *loaded->folder);
    if (err == TRL_OK) err = trli_path_folder(l->arena, path, &loaded->folder[loaded->nfiles]);
    if (err == TRL_OK)
        err = trli_arena_grow(l->arena, &loaded->path, loaded->npaths, &loaded->paths_capacity, sizeof *loaded->path);
    if (err != TRL_OK) return err;
    loaded->path[loaded->npaths++] = path;
    int at = loaded->nfiles++;
    return trli_map_find(&loaded->files, name) >= 0 ? TRL_OK : trli_map_add(l->arena, &loaded->files, name, at);
}

static trl_err fail_cycle(const loader *l, const open_file *opened, const char *name, const char *path,
                          const trl_place *place)
{
    const char *chain = name;
    for (const open_file *f = opened; f; f = f->outer) {
        trl_err err = trli_arena_print(l->arena, &chain, "%s -> %s", f->name, chain);
        if (err != TRL_OK) return err;
        if (strcmp(f->path, path) == 0) break;
    }
    return trl_fail(l->ctx, TRL_ERR_INPUT, place, "files include each other in a cycle: %s", chain);
}

static trl_err load_text(loader *l, const open_file *self, const char *text, trli_yaml **root);

static trl_err load_included(loader *l, const open_file *self, const trli_yaml *item, trli_yaml **root)
{
    const char *folder, *name;
    trli_file file;
    trl_err err;
    if (item->kind != TRLI_SCALAR_NODE || !*item->text.chars)
        return trl_fail(l->ctx, TRL_ERR_INPUT, trli_yaml_place(item), "'include' must be a path or a list of paths");
    TRL_TRY(trli_path_folder(l->arena, self->name, &folder));
    TRL_TRY(trli_path_join(l->arena, folder, item->text.chars, &name));
    if (++l->files > FILES_MAX)
        return trl_fail(l->ctx, TRL_ERR_INPUT, trli_yaml_place(item), "more than %d files are included", FILES_MAX);
    TRL_TRY(trli_deck_file_read(l->ctx, l->arena, name, trli_yaml_place(item), &file));
    for (const open_file *f = self; f; f = f->outer)
        if (strcmp(f->path, file.path) == 0) return fail_cycle(l, self, name, file.path, trli_yaml_place(item));
    TRL_TRY(load_text(l, &(open_file){self, name, file.path}, file.text, root));
done:
    return err;
}

/* What a file includes, merged; NULL if it includes nothing. */
static trl_err load_includes(loader *l, const open_file *self, const trli_yaml *root, trli_yaml **base)
{
    trli_yaml *include = trli_yaml_get(root, "include"), *one;
    trl_err err = TRL_OK;
    *base = NULL;
    if (!include) return TRL_OK;
    bool list = include->kind == TRLI_LIST_NODE;
    for (int i = 0; i < (list ? include->n : 1); ++i) {
        TRL_TRY(load_included(l, self, list ? include->item[i] : include, &one));
        if (*base)
            TRL_TRY(trli_merge(l->arena, trli_schema_root(), *base, one, base));
        else
            *base = one;
    }
done:
    return err;
}

static trl_err without_include(const loader *l, const trli_yaml *root, trli_yaml **rest)
{
    trl_err err = trli_yaml_create(l->arena, TRLI_MAPPING_NODE, trli_yaml_place(root), rest);
    for (int i = 0; i < root->n && err == TRL_OK; ++i)
        if (strcmp(root->key[i]->text.chars, "include") != 0)
            err = trli_yaml_put(l->arena, *rest, root->key[i], root->item[i]);
    return err;
}

static trl_err load_text(loader *l, const open_file *self, const char *text, trli_yaml **root)
{
    const size_t mark = strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0 ? strlen(BYTE_ORDER_MARK) : 0;
    trli_source source = {.file = self->name, .text = text + mark, .line = 1, .column = 1};
    trl_place place = {.file = self->name, .line = 1, .column = 1};
    trli_yaml *base;
    trl_err err;
    TRL_TRY(add_file(l, self->name, self->path));
    TRL_TRY(trli_yaml_read(l->ctx, l->arena, &source, root));
    if (!*root) return trl_fail(l->ctx, TRL_ERR_INPUT, &place, "the file holds no YAML value");
    if ((*root)->kind != TRLI_MAPPING_NODE)
        return trl_fail(l->ctx, TRL_ERR_INPUT, trli_yaml_place(*root), "a deck must be a mapping of keys to values");
    TRL_TRY(load_includes(l, self, *root, &base));
    TRL_TRY(without_include(l, *root, root));
    if (base) TRL_TRY(trli_merge(l->arena, trli_schema_root(), base, *root, root));
done:
    return err;
}

/* The absolute path of a deck whose text is at hand, so that there need be no such file. */
static trl_err path_of_text(trli_arena *arena, const char *name, const char **path)
{
    char absolute[PATH_MAX];
    const char *folder;
    trl_err err = trli_path_folder(arena, name, &folder);
    if (err != TRL_OK) return err;
    const char *slash = strrchr(name, '/');
    return trli_path_join(arena, realpath(folder, absolute) ? absolute : folder, slash ? slash + 1 : name, path);
}

trl_err trli_deck_load(trl_context *ctx, trli_arena *arena, const trli_deck_request *request, trli_loaded *loaded)
{
    loader l = {.ctx = ctx, .arena = arena, .loaded = loaded};
    open_file self = {0};
    trli_file file = {.text = request->text};
    trl_err err;
    *loaded = (trli_loaded){0};
    TRL_TRY(trli_arena_text(arena, request->path, strlen(request->path), &self.name));
    if (request->text) {
        TRL_TRY(path_of_text(arena, self.name, &file.path));
        TRL_TRY(trli_arena_text(arena, request->text, strlen(request->text), &file.text));
    } else {
        TRL_TRY(trli_deck_file_read(ctx, arena, self.name, NULL, &file));
    }
    self.path = file.path;
    TRL_TRY(load_text(&l, &self, file.text, &loaded->root));
    for (int i = 0; i < request->nsets; ++i)
        TRL_TRY(trli_merge_setting(ctx, arena, request->set[i], i + 1, loaded->root, &loaded->root));
done:
    return err;
}
