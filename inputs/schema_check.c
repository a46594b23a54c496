/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formula_impl.h"
#include "scalar_impl.h"
#include "schema_impl.h"

enum { NAMES_SHOWN = 24, TEXT_SHOWN = 40, ERRORS_SHOWN = 50, PHRASE_BYTES = 512 };

/* The state of a check, and the way from the root of the deck to the value being checked. */
typedef struct checker {
    trl_context *ctx;
    int dimension; /* of the grid; 0: not known */
    int errors;
} checker;

typedef struct level {
    const struct level *outer;
    const trli_key *key;
    const char *name; /* as the deck has it; "" at the root */
} level;

/* Composing phrases */

typedef struct phrase {
    char *chars;
    size_t size, used;
} phrase;

static void add(phrase *p, const char *format, ...) TRL_PRINTF(2, 3);
static void add(phrase *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(p->chars + p->used, p->size - p->used, format, args);
    va_end(args);
    p->used += length > 0 ? (size_t)length : 0;
    if (p->used >= p->size) p->used = p->size - 1;
}

static void add_range(phrase *p, const trli_key *key)
{
    if (key->min == key->max) return;
    if (key->flags & TRLI_ABOVE)
        add(p, key->max > 1e9 ? " greater than %.17g" : " greater than %.17g, up to %.17g", key->min, key->max);
    else if (key->max > 1e9)
        add(p, " of at least %.17g", key->min);
    else
        add(p, " from %.17g to %.17g", key->min, key->max);
}

static const struct {
    unsigned form;
    const char *one, *many;
} form_names[] = {
    {TRLI_AS_INTEGER, "a whole number", "whole numbers"},
    {TRLI_AS_NUMBER, "a number", "numbers"},
    {TRLI_AS_BOOLEAN, "true or false", "true and false"},
    {TRLI_AS_FORMULA, "a formula", "formulas"},
    {TRLI_AS_TEXT, "a text", "texts"},
};

static void add_scalar_form(phrase *p, const trli_key *key, bool many)
{
    for (size_t i = 0; i < sizeof form_names / sizeof *form_names; ++i) {
        if (!(key->forms & form_names[i].form)) continue;
        add(p, "%s", many ? form_names[i].many : form_names[i].one);
        if (form_names[i].form & (TRLI_AS_INTEGER | TRLI_AS_NUMBER)) add_range(p, key);
        return;
    }
}

/* Split words at spaces: the next one from *at, which moves behind it. */
static bool next_word(const char **at, char *word, size_t size)
{
    *at += strspn(*at, " ");
    size_t length = strcspn(*at, " ");
    if (!length || length >= size) return false;
    memcpy(word, *at, length);
    word[length] = 0;
    *at += length;
    return true;
}

enum { PARTS = 32, PART_BYTES = 96 };

/* What a key accepts, or one item of its list: one part for each alternative. */
static int find_parts(const trli_key *key, bool item, char part[PARTS][PART_BYTES])
{
    unsigned scalars = TRLI_AS_TEXT | TRLI_AS_FORMULA | TRLI_AS_NUMBER | TRLI_AS_INTEGER | TRLI_AS_BOOLEAN;
    int n = 0;
    if (!item && key->forms & TRLI_AS_WORD)
        for (const char *at = key->words; n < PARTS - 4 && next_word(&at, part[n], PART_BYTES);) ++n;
    if (!item && key->forms & TRLI_AS_LIBRARY) memcpy(part[n++], "a file FILE.so", sizeof "a file FILE.so");
    if (key->forms & scalars && (item || !(key->flags & TRLI_ONLY_LIST))) {
        phrase p = {part[n++], PART_BYTES, 0};
        add_scalar_form(&p, key, false);
    }
    if (item) return n;
    if (key->forms & TRLI_AS_LIST) {
        phrase p = {part[n++], PART_BYTES, 0};
        add(&p, "a list of ");
        add_scalar_form(&p, key, true);
    }
    if (key->forms & TRLI_AS_MAPPING) memcpy(part[n++], "a mapping", sizeof "a mapping");
    if (key->forms & TRLI_AS_PIECES) memcpy(part[n++], "a list of mappings", sizeof "a list of mappings");
    if (key->forms & TRLI_AS_LISTS) memcpy(part[n++], "a list of lists", sizeof "a list of lists");
    return n;
}

static void add_expected(phrase *p, const trli_key *key, bool item)
{
    char part[PARTS][PART_BYTES];
    int n = find_parts(key, item, part);
    for (int i = 0; i < n; ++i) add(p, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", part[i]);
}

void trli_schema_expected(const trli_key *key, char *buffer, size_t size)
{
    phrase p = {buffer, size, 0};
    buffer[0] = 0;
    add_expected(&p, key, false);
}

static void add_path(phrase *p, const level *at)
{
    if (at->outer && *at->outer->name) {
        add_path(p, at->outer);
        add(p, ".");
    }
    add(p, "%s", at->name);
}

/* "in equation 'T'", "in 'time.dt'", "in the deck" */
static void add_container(phrase *p, const level *at)
{
    const char *path = at->key->path;
    bool of_type = strcmp(path, "expressions.*.parameters") == 0;
    if (of_type) at = at->outer;
    if (!*path) {
        add(p, "in the deck");
    } else if (of_type || strcmp(path, "expressions.*") == 0) {
        add(p, "in expression '%s'", at->name);
    } else if (strcmp(path, "equations.*") == 0) {
        add(p, "in equation '%s'", at->name);
    } else if (strcmp(path, "parameters.*") == 0) {
        add(p, "in parameter '%s'", at->name);
    } else {
        add(p, "in '");
        add_path(p, at);
        add(p, "'");
    }
}

static void add_found(phrase *p, const trli_yaml *node)
{
    if (node->kind == TRLI_LIST_NODE)
        add(p, "a list");
    else if (node->kind == TRLI_MAPPING_NODE)
        add(p, "a mapping");
    else if (!*node->text.chars)
        add(p, "nothing");
    else if (strlen(node->text.chars) > TEXT_SHOWN)
        add(p, "'%.*s...'", TEXT_SHOWN, node->text.chars);
    else
        add(p, "'%s'", node->text.chars);
}

/* Checking */

/* Record an error; after many the rest is not worth reading. */
static trl_err fail(checker *c, const trl_place *place, const char *message)
{
    if (++c->errors < ERRORS_SHOWN) return trl_fail(c->ctx, TRL_ERR_INPUT, place, "%s", message);
    if (c->errors > ERRORS_SHOWN) return TRL_ERR_INPUT;
    return trl_fail(c->ctx, TRL_ERR_INPUT, place, "%s (and more errors, not shown)", message);
}

static trl_err keep(trl_err kept, trl_err err)
{
    return err > kept ? err : kept;
}

/* How to fix a scalar that does not fit. */
static void add_advice(phrase *p, const trli_key *key, const char *text)
{
    char words[PARTS][PART_BYTES];
    const char *known[PARTS];
    int n = 0;
    for (const char *at = key->words; at && n < PARTS && next_word(&at, words[n], PART_BYTES); ++n) known[n] = words[n];
    const char *nearest = *text ? trl_name_nearest(text, known, n) : NULL;
    if (nearest)
        add(p, "; did you mean '%s'?", nearest);
    else if (key->forms & TRLI_AS_BOOLEAN)
        add(p, "%s", trli_scalar_boolean_advice(text));
    else if (key->forms & (TRLI_AS_NUMBER | TRLI_AS_INTEGER))
        add(p, "%s", trli_scalar_number_advice(text));
    double number;
    if (key->forms & TRLI_AS_INTEGER && key->max > 1e9 && trli_scalar_number(text, &number) && number > key->max)
        add(p, "; at most %.17g can be counted", key->max);
}

static bool scalar_fits(const trli_key *key, const char *text, bool item);

#define UNCOUNTED 1e6 /* whole numbers up to more are of steps or cells */

static void add_example(phrase *p, const trli_key *key);

/* What a key requires, text if it is a formula, and the first of its choices; else its first key, if it has a name. */
static void add_mapping_example(phrase *p, const trli_key *key, const char *text)
{
    const char *separator = "";
    bool chosen = false;
    add(p, "{");
    for (const trli_key *k = trli_schema_next(key, NULL); k; k = trli_schema_next(key, k)) {
        const bool choice = k->flags & TRLI_CHOICE && !chosen;
        if (k->flags & TRLI_LATER || !(k->flags & TRLI_REQUIRED || choice)) continue;
        chosen |= choice;
        const char *quote = *text && k->forms == TRLI_AS_FORMULA ? "\"" : "";
        add(p, "%s%s: %s%s%s", separator, trli_schema_name(k), quote, *quote ? text : "", quote);
        if (!*quote) add_example(p, k);
        separator = ", ";
    }
    const trli_key *first = trli_schema_next(key, NULL);
    if (!*separator && first && *trli_schema_name(first) != '*' && !(first->flags & TRLI_LATER)) {
        add(p, "%s: ", trli_schema_name(first));
        add_example(p, first);
        separator = ", ";
    }
    add(p, *separator ? "}" : "...}");
}

/* A value of a key, for remedies: its default, or one that its forms allow. */
static void add_example(phrase *p, const trli_key *key)
{
    const bool list = key->flags & TRLI_ONLY_LIST;
    const bool few = key->words || (key->min != key->max && key->max < UNCOUNTED);
    if (key->fallback && *key->fallback && !(key->flags & TRLI_PER_AXIS))
        add(p, "%s", key->fallback);
    else if (key->forms & TRLI_AS_WORD)
        add(p, "%.*s", (int)strcspn(key->words, " "), key->words);
    else if (key->forms & TRLI_AS_FORMULA && !list)
        add(p, "0");
    else if (key->forms & (TRLI_AS_INTEGER | TRLI_AS_NUMBER))
        add(p, list ? "[%s]" : "%s", key->forms & TRLI_AS_NUMBER ? "0.5" : few ? "1" : "100");
    else if (key->forms & TRLI_AS_BOOLEAN)
        add(p, list ? "[true]" : "true");
    else if (key->forms & TRLI_AS_MAPPING)
        add_mapping_example(p, key, "");
    else
        add(p, key->forms & TRLI_AS_TEXT && !list ? "name" : "[...]");
}

/* "[text, text]" of n items. */
static void add_list(phrase *p, const char *text, int n)
{
    for (int i = 0; i < n; ++i) add(p, "%s%s", i ? ", " : "[", text);
    add(p, "]");
}

/* How many items a list in a remedy has. */
static int items_of(const checker *c, const trli_key *key)
{
    return key->flags & TRLI_PER_AXIS && c->dimension ? c->dimension : 1;
}

/* Where a key of this name belongs, which stands elsewhere, first below where it stands. Whether there is any. */
static bool advise_home(const checker *c, const level *at, const char *name)
{
    int count, found = 0;
    const char *const here = at->key ? at->key->path : "";
    const size_t length = strlen(here);
    const trli_key *key = trli_schema_keys(&count);
    for (int i = 0; i < 2 * count; ++i) {
        const trli_key *k = &key[i % count];
        const char *path = k->path, *dot = strrchr(path, '.');
        if ((strncmp(path, here, length) == 0 && path[length] == '.') != (i < count)) continue;
        if (k->flags & (TRLI_RESERVED | TRLI_LATER) || strcmp(trli_schema_name(k), name) != 0) continue;
        ++found;
        if (dot)
            trl_advise(c->ctx, "put `%s` into `%.*s`", name, (int)(dot - path), path);
        else
            trl_advise(c->ctx, "put `%s` at the beginning of a line", name);
    }
    return found > 0;
}

/* Remedies for a value that does not fit: the nearest of the key's words, or some of them, then one of each form. */
static void advise_value(checker *c, const level *at, const char *text, bool item)
{
    static const unsigned forms[] = {TRLI_AS_NUMBER | TRLI_AS_INTEGER, TRLI_AS_BOOLEAN, TRLI_AS_FORMULA,
                                     TRLI_AS_MAPPING};
    char words[PARTS][PART_BYTES];
    const char *known[PARTS];
    double number;
    int n = 0;
    if (c->errors > ERRORS_SHOWN) return;
    for (const char *word = at->key->words; word && n < PARTS && next_word(&word, words[n], PART_BYTES); ++n)
        known[n] = words[n];
    if (*text && !item) trli_advise_names(c->ctx, text, known, n);
    for (int i = 0; i < n && !item && !(*text && trl_name_nearest(text, known, n)); ++i)
        trl_advise(c->ctx, "write `%s: %s`", at->name, known[i]);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
        char example[PHRASE_BYTES], items[PHRASE_BYTES];
        phrase p = {example, sizeof example, 0}, list = {items, sizeof items, 0};
        const bool each = !item && at->key->flags & TRLI_ONLY_LIST && items_of(c, at->key) > 1;
        trli_key one = *at->key;
        if (!(one.forms & forms[i])) continue;
        one.forms &= forms[i] | TRLI_AS_LIST;
        if (!(forms[i] & TRLI_AS_NUMBER && one.fallback && trli_scalar_number(one.fallback, &number)))
            one.fallback = NULL; /* it is of another form, such as a word */
        if (item || each) one.flags &= ~(unsigned)TRLI_ONLY_LIST;
        const trli_key *named = forms[i] == TRLI_AS_MAPPING ? trli_schema_child(at->key, text) : NULL;
        const bool known_here = named && strcmp(trli_schema_name(named), text) == 0;
        if (forms[i] == TRLI_AS_MAPPING && *text && !item && !known_here && advise_home(c, at, text)) continue;
        if (known_here) { /* `neumann` where `{neumann: 0}` is needed */
            add(&p, "{%s: ", text);
            add_example(&p, named);
            add(&p, "}");
        } else if (forms[i] == TRLI_AS_MAPPING)
            add_mapping_example(&p, at->key, item ? "" : text); /* whose children lie beside it in the table */
        else
            add_example(&p, &one);
        const char *meant = forms[i] == TRLI_AS_BOOLEAN ? trli_scalar_boolean_advice(text) : "";
        if (*meant) snprintf(example, sizeof example, "%s", meant + strlen("; write "));
        if (each) add_list(&list, example, items_of(c, at->key));
        if (item)
            trl_advise(c->ctx, "write `%s` for it", example);
        else
            trl_advise(c->ctx, "write `%s: %s`", at->name, each ? items : example);
    }
}

static trl_err fail_value(checker *c, const level *at, const trli_yaml *node, int item)
{
    char message[2 * PHRASE_BYTES];
    char items[2 * PHRASE_BYTES];
    phrase p = {message, sizeof message, 0}, list = {items, sizeof items, 0};
    if (item >= 0) add(&p, "item %d of ", item + 1);
    add(&p, "'");
    add_path(&p, at);
    add(&p, "' must be ");
    add_expected(&p, at->key, item >= 0);
    add(&p, ", found ");
    add_found(&p, node);
    bool lone_item = node->kind == TRLI_SCALAR_NODE && item < 0 && at->key->flags & TRLI_ONLY_LIST &&
                     *node->text.chars && scalar_fits(at->key, node->text.chars, true);
    if (lone_item) {
        add_list(&list, node->text.chars, items_of(c, at->key));
        add(&p, "; write %s%s", items, at->key->flags & TRLI_PER_AXIS ? ", one value per axis" : "");
    } else if (node->kind == TRLI_SCALAR_NODE)
        add_advice(&p, at->key, node->text.chars);
    trl_err err = fail(c, trli_yaml_place(node), message);
    if (lone_item && c->errors <= ERRORS_SHOWN) trl_advise(c->ctx, "write `%s: %s`", at->name, items);
    if (node->kind == TRLI_MAPPING_NODE && strcmp(at->name, "solver") == 0 && c->errors <= ERRORS_SHOWN)
        trl_advise(c->ctx, "put it into `solvers` under a name, and write that name here");
    advise_value(c, at, node->kind == TRLI_SCALAR_NODE ? node->text.chars : "", item >= 0);
    return err;
}

bool trli_schema_in_range(const trli_key *key, double value)
{
    if (key->min == key->max) return true;
    return value <= key->max && (key->flags & TRLI_ABOVE ? value > key->min : value >= key->min);
}

int trli_schema_word(const trli_key *key, const char *text)
{
    char word[32];
    if (!(key->forms & TRLI_AS_WORD)) return -1;
    const char *at = key->words;
    for (int i = 0; next_word(&at, word, sizeof word); ++i)
        if (strcmp(word, text) == 0) return i;
    return -1;
}

bool trli_schema_computes(const trli_key *key, const char *text)
{
    double number;
    bool truth;
    return key->forms & TRLI_AS_NUMBER && !(key->forms & (TRLI_AS_INTEGER | TRLI_AS_WORD)) && *text &&
           !trli_scalar_number(text, &number) && !trli_scalar_boolean(text, &truth) &&
           !*trli_scalar_number_advice(text);
}

static bool scalar_fits(const trli_key *key, const char *text, bool item)
{
    double number;
    int64_t whole;
    bool truth;
    if (!item && trli_schema_word(key, text) >= 0) return true;
    if (key->forms & TRLI_AS_LIBRARY && trli_scalar_is_library(text)) return true;
    if (!item && key->flags & TRLI_ONLY_LIST) return false;
    if (key->forms & TRLI_AS_TEXT) return true;
    if (key->forms & TRLI_AS_FORMULA) return *text != 0;
    if (key->forms & TRLI_AS_INTEGER && trli_scalar_integer(text, &whole))
        return trli_schema_in_range(key, (double)whole);
    if (key->forms & TRLI_AS_NUMBER && trli_scalar_number(text, &number)) return trli_schema_in_range(key, number);
    if (trli_schema_computes(key, text)) return true;
    return key->forms & TRLI_AS_BOOLEAN && trli_scalar_boolean(text, &truth);
}

static trl_err check_value(checker *c, const level *at, const trli_yaml *node);

/* Remedies for an unknown key: those near to it, where a key of its name belongs, and where any name may stand. */
static void advise_key(checker *c, const level *at, const trli_yaml *value, const char *name, const char *const *known,
                       int n)
{
    const bool file = value->kind == TRLI_SCALAR_NODE && trli_scalar_is_file(value->text.chars);
    if (c->errors > ERRORS_SHOWN) return;
    trli_advise_names(c->ctx, name, known, n);
    (void)advise_home(c, at, name);
    for (int i = 0; i < n; ++i)
        if (strncmp(known[i], name, strlen(name)) == 0) trl_advise(c->ctx, "write `%s`", known[i]);
    if (file && at->key && strncmp(at->key->path, "output", strlen("output")) == 0)
        trl_advise(c->ctx, "leave it out: `output.directory` is where files are, by names of their own");
    for (const trli_key *k = trli_schema_next(at->key, NULL); k; k = trli_schema_next(at->key, k)) {
        const trli_key *any = trli_schema_child(k, name);
        if (any && strcmp(trli_schema_name(any), "*") == 0 && any->forms == TRLI_AS_FORMULA && !file)
            trl_advise(c->ctx, "put it into `%s`", trli_schema_name(k));
    }
}

static trl_err fail_unknown(checker *c, const level *at, const trli_yaml *key, const trli_yaml *value)
{
    char message[2 * PHRASE_BYTES];
    phrase p = {message, sizeof message, 0};
    const char *known[NAMES_SHOWN];
    int n = 0;
    for (const trli_key *k = trli_schema_next(at->key, NULL); k && n < NAMES_SHOWN; k = trli_schema_next(at->key, k))
        if (!(k->flags & (TRLI_RESERVED | TRLI_LATER))) known[n++] = trli_schema_name(k);
    add(&p, "unknown key '%.*s' ", TEXT_SHOWN, key->text.chars);
    add_container(&p, at);
    const char *nearest = trl_name_nearest(key->text.chars, known, n);
    if (nearest) {
        add(&p, "; did you mean '%s'?", nearest);
    } else {
        add(&p, "; known keys are ");
        for (int i = 0; i < n; ++i) add(&p, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", known[i]);
    }
    trl_err err = fail(c, trli_yaml_place(key), message);
    advise_key(c, at, value, key->text.chars, known, n);
    return err;
}

static trl_err fail_key(checker *c, const level *at, const trl_place *place, const char *what)
{
    char message[2 * PHRASE_BYTES];
    phrase p = {message, sizeof message, 0};
    add(&p, "'");
    add_path(&p, at);
    add(&p, "' %s", what);
    return fail(c, place, message);
}

static void advise_missing(checker *c, const trli_key *key)
{
    char example[PHRASE_BYTES];
    phrase p = {example, sizeof example, 0};
    if (c->errors > ERRORS_SHOWN) return;
    add_example(&p, key);
    trl_advise(c->ctx, "add `%s: %s`: %.*s", trli_schema_name(key), example, (int)strcspn(key->doc, ":;("), key->doc);
}

static trl_err fail_choice(checker *c, const level *at, const trli_yaml *node)
{
    char message[2 * PHRASE_BYTES];
    phrase p = {message, sizeof message, 0};
    const char *separator = "";
    for (const trli_key *key = trli_schema_next(at->key, NULL); key; key = trli_schema_next(at->key, key)) {
        if (!(key->flags & TRLI_CHOICE) || key->flags & TRLI_LATER) continue;
        add(&p, "%s'%s'", separator, trli_schema_name(key));
        separator = " or ";
    }
    add(&p, " is missing ");
    add_container(&p, at);
    trl_err err = fail(c, trli_yaml_place(node), message);
    for (const trli_key *key = trli_schema_next(at->key, NULL); key; key = trli_schema_next(at->key, key))
        if (key->flags & TRLI_CHOICE && !(key->flags & TRLI_LATER)) advise_missing(c, key);
    return err;
}

/* A mapping has all its required keys, and exactly one of its choices. */
static trl_err check_presence(checker *c, const level *at, const trli_yaml *node)
{
    char message[2 * PHRASE_BYTES];
    const trli_key *chosen = NULL;
    bool choices = false;
    trl_err err = TRL_OK;
    for (const trli_key *key = trli_schema_next(at->key, NULL); key; key = trli_schema_next(at->key, key)) {
        const char *name = trli_schema_name(key);
        int found = trli_yaml_find(node, name);
        phrase p = {message, sizeof message, 0};
        const bool excused = key->unless && trli_yaml_find(node, key->unless) >= 0;
        if (key->flags & TRLI_REQUIRED && found < 0 && !excused) {
            add(&p, "'%s' is missing ", name);
            add_container(&p, at);
            err = keep(err, fail(c, trli_yaml_place(node), message));
            advise_missing(c, key);
        }
        if (!(key->flags & TRLI_CHOICE)) continue;
        choices = true;
        if (found < 0) continue;
        if (chosen) {
            add(&p, "'%s' and '%s' exclude each other ", trli_schema_name(chosen), name);
            add_container(&p, at);
            err = keep(err, fail(c, trli_yaml_place(node->key[found]), message));
        }
        chosen = key;
    }
    return !choices || chosen ? err : keep(err, fail_choice(c, at, node));
}

static trl_err check_mapping(checker *c, const level *at, const trli_yaml *node)
{
    trl_err err = TRL_OK;
    bool unknown = false, later = false;
    for (int i = 0; i < node->n; ++i) {
        const char *name = node->key[i]->text.chars;
        const trl_place *place = trli_yaml_place(node->key[i]);
        level below = {at, trli_schema_child(at->key, name), name};
        if (!below.key) {
            unknown = true;
            err = keep(err, fail_unknown(c, at, node->key[i], node->item[i]));
        } else if (below.key->flags & TRLI_RESERVED) {
            err = keep(err, fail_key(c, &below, place, "is a key reserved for a later version"));
        } else if (below.key->flags & TRLI_LATER) {
            later = true;
            err = keep(err, fail_key(c, &below, place, "is not available yet in this version"));
        } else {
            err = keep(err, check_value(c, &below, node->item[i]));
        }
    }
    /* What seems missing may be there under a name mistyped, or in a form of a later version. */
    return unknown || (later && *at->key->path) ? err : keep(err, check_presence(c, at, node));
}

static trl_err check_list(checker *c, const level *at, const trli_yaml *node)
{
    trl_err err = TRL_OK;
    char message[PHRASE_BYTES];
    phrase p = {message, sizeof message, 0};
    for (int i = 0; i < node->n; ++i) {
        const trli_yaml *item = node->item[i];
        if (at->key->forms & TRLI_AS_PIECES && item->kind == TRLI_MAPPING_NODE) {
            err = keep(err, check_mapping(c, at, item));
        } else if (at->key->forms & TRLI_AS_LISTS && item->kind == TRLI_LIST_NODE) {
            continue;
        } else if (at->key->forms & (TRLI_AS_PIECES | TRLI_AS_LISTS)) {
            err = keep(err, fail_value(c, at, item, -1));
        } else if (item->kind != TRLI_SCALAR_NODE || !scalar_fits(at->key, item->text.chars, true)) {
            err = keep(err, fail_value(c, at, item, i));
        }
    }
    bool per_axis = at->key->flags & TRLI_PER_AXIS && c->dimension;
    if (node->n == 0 && at->key->flags & TRLI_REQUIRED)
        return keep(err, fail_key(c, at, trli_yaml_place(node), "is an empty list"));
    if (!per_axis || node->n == c->dimension) return err;
    add(&p, "must have as many items as 'grid.cells', %d, found %d", c->dimension, node->n);
    return keep(err, fail_key(c, at, trli_yaml_place(node), message));
}

static trl_err check_value(checker *c, const level *at, const trli_yaml *node)
{
    switch (node->kind) {
    case TRLI_SCALAR_NODE:
        return scalar_fits(at->key, node->text.chars, false) ? TRL_OK : fail_value(c, at, node, -1);
    case TRLI_LIST_NODE:
        return at->key->forms & (TRLI_AS_LIST | TRLI_AS_PIECES | TRLI_AS_LISTS) ? check_list(c, at, node)
                                                                                : fail_value(c, at, node, -1);
    case TRLI_MAPPING_NODE:
        break;
    }
    return at->key->forms & TRLI_AS_MAPPING ? check_mapping(c, at, node) : fail_value(c, at, node, -1);
}

trl_err trli_schema_check(trl_context *ctx, const trli_yaml *root)
{
    checker c = {.ctx = ctx};
    level top = {.key = trli_schema_root(), .name = ""};
    char message[PHRASE_BYTES];
    phrase p = {message, sizeof message, 0};
    if (root->kind != TRLI_MAPPING_NODE) {
        add(&p, "a deck is a mapping of keys, found ");
        add_found(&p, root);
        return fail(&c, trli_yaml_place(root), message);
    }
    int dimension = trli_schema_dimension(root);
    trl_err err = TRL_OK;
    if (dimension <= 3)
        c.dimension = dimension;
    else
        err = trl_fail(ctx, TRL_ERR_INPUT, trli_yaml_place(trli_yaml_get(trli_yaml_get(root, "grid"), "cells")),
                       "'grid.cells' must have 1 to 3 items, one per axis, found %d", dimension);
    return keep(err, check_mapping(&c, &top, root));
}
