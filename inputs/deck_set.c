/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "merge_impl.h"
#include "scalar_impl.h"

/* One setting of the command line on its way down the tree. */
typedef struct setting {
    trl_context *ctx;
    trli_arena *arena;
    const char *text;
    int number;
    trli_yaml *value;
} setting;

/* A key on the path: characters [begin, end) of the text. */
typedef struct step {
    int begin, end;
    const char *name;
} step;

/* A long path has no meaning in any deck. */
enum { STEPS_MAX = TRLI_YAML_DEPTH };

static trl_place place_of(const setting *s, int begin, int end)
{
    return (trl_place){
        .file = "--set", .line = s->number, .column = begin + 1, .source = s->text, .length = end - begin};
}

/* Split "a.b.phi{1..3}" at the dots that stand outside braces. */
static trl_err split_path(const setting *s, int length, step steps[STEPS_MAX], int *n)
{
    int begin = 0, depth = 0;
    *n = 0;
    for (int i = 0; i <= length; ++i) {
        if (i < length) depth += (s->text[i] == '{') - (s->text[i] == '}');
        if (i < length && (s->text[i] != '.' || depth > 0)) continue;
        trl_place place = place_of(s, begin, i);
        if (i == begin) return trl_fail(s->ctx, TRL_ERR_INPUT, &place, "a key is missing here in the path of --set");
        if (*n == STEPS_MAX)
            return trl_fail(s->ctx, TRL_ERR_INPUT, &place, "the path of --set has more than %d keys", STEPS_MAX);
        steps[*n] = (step){.begin = begin, .end = i};
        trl_err err = trli_arena_text(s->arena, s->text + begin, (size_t)(i - begin), &steps[*n].name);
        if (err != TRL_OK) return err;
        ++*n;
        begin = i + 1;
    }
    return TRL_OK;
}

static trl_err apply(const setting *s, const trli_key *key, const step *steps, int n, trli_yaml *node,
                     trli_yaml **result);

static trl_err apply_to_item(const setting *s, const trli_key *key, const step *steps, int n, trli_yaml *list,
                             trli_yaml **result)
{
    int64_t at;
    trli_yaml *item;
    trl_err err;
    trl_place place = place_of(s, steps->begin, steps->end);
    if (!trli_scalar_integer(steps->name, &at) || at < 0 || at >= list->n)
        return trl_fail(s->ctx, TRL_ERR_INPUT, &place, "'%.*s' has items 0 to %d, and no item '%s'",
                        steps->begin ? steps->begin - 1 : 0, s->text, list->n - 1, steps->name);
    item = list->item[at];
    TRL_TRY(apply(s, key, steps + 1, n - 1, item, &item));
    TRL_TRY(trli_yaml_copy(s->arena, list, result));
    (*result)->item[at] = item;
done:
    return err;
}

/* steps[0] names the child of node to descend to; node is NULL where the deck has nothing yet. */
static trl_err apply(const setting *s, const trli_key *key, const step *steps, int n, trli_yaml *node,
                     trli_yaml **result)
{
    trl_place place = place_of(s, n ? steps->begin : 0, n ? steps->end : 0);
    trli_yaml *child, *name;
    trl_err err;
    if (n == 0) {
        *result = s->value;
        return node ? trli_merge(s->arena, key, node, s->value, result) : TRL_OK;
    }
    if (node && node->kind == TRLI_LIST_NODE) return apply_to_item(s, key, steps, n, node, result);
    if (node && node->kind == TRLI_SCALAR_NODE)
        return trl_fail(s->ctx, TRL_ERR_INPUT, &place,
                        "'%.*s' is a single value in the deck, so it has no key '%s' to set", steps->begin - 1, s->text,
                        steps->name);
    if (node)
        TRL_TRY(trli_yaml_copy(s->arena, node, result));
    else
        TRL_TRY(trli_yaml_create(s->arena, TRLI_MAPPING_NODE, &place, result));
    TRL_TRY(apply(s, trli_schema_child(key, steps->name), steps + 1, n - 1, trli_yaml_get(node, steps->name), &child));
    TRL_TRY(trli_yaml_scalar(s->arena, steps->name, &place, &name));
    TRL_TRY(trli_yaml_put(s->arena, *result, name, child));
done:
    return err;
}

trl_err trli_merge_setting(trl_context *ctx, trli_arena *arena, const char *text, int number, trli_yaml *root,
                           trli_yaml **merged)
{
    setting s = {.ctx = ctx, .arena = arena, .number = number};
    step steps[STEPS_MAX];
    int n;
    trl_err err;
    TRL_TRY(trli_arena_text(arena, text, strlen(text), &s.text));
    int equals = (int)strcspn(s.text, "=");
    trl_place place = place_of(&s, 0, equals);
    if (!s.text[equals]) return trl_fail(ctx, TRL_ERR_INPUT, &place, "--set needs key=value, found '%s'", text);
    TRL_TRY(split_path(&s, equals, steps, &n));
    if (strcmp(steps[0].name, "include") == 0)
        return trl_fail(ctx, TRL_ERR_INPUT, &place,
                        "'include' cannot be set on the command line: files are merged before --set");
    trli_source source = {
        .file = "--set", .text = s.text + equals + 1, .first = s.text, .line = number, .column = equals + 2};
    TRL_TRY(trli_yaml_read(ctx, arena, &source, &s.value));
    place = place_of(&s, equals + 1, equals + 1);
    if (!s.value) TRL_TRY(trli_yaml_scalar(arena, "", &place, &s.value));
    TRL_TRY(apply(&s, trli_schema_root(), steps, n, root, merged));
done:
    return err;
}
