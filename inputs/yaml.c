/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>
#include <yaml.h>

#include "yaml_impl.h"

typedef struct reader {
    trl_context *ctx;
    trli_arena *arena;
    const trli_source *source;
    yaml_parser_t parser;
    int nlines, line_capacity;
    const char **line; /* where each line starts */
    trli_map anchors;  /* name to position in anchored; -1 while the node is being read */
    int nanchored, anchored_capacity;
    trli_yaml **anchored;
    int nodes; /* read so far, what aliases stand for included */
    int flow;  /* how many [ ] and { } are open */
} reader;

/* Bytes of the line break at s, 0 if there is none: libyaml's notion of a break. */
static int break_length(const char *s)
{
    if (s[0] == '\r') return s[1] == '\n' ? 2 : 1;
    if (s[0] == '\n') return 1;
    if (strncmp(s, "\xC2\x85", 2) == 0) return 2;
    if (strncmp(s, "\xE2\x80\xA8", 3) == 0 || strncmp(s, "\xE2\x80\xA9", 3) == 0) return 3;
    return 0;
}

static trl_err find_lines(reader *r)
{
    const char *s = r->source->text;
    for (bool more = true; more;) {
        trl_err err = trli_arena_grow(r->arena, &r->line, r->nlines, &r->line_capacity, sizeof *r->line);
        if (err != TRL_OK) return err;
        r->line[r->nlines++] = s;
        int length = 0;
        while (*s && !(length = break_length(s))) ++s;
        s += length;
        more = length > 0;
    }
    return TRL_OK;
}

/* Whether a byte of UTF-8 starts a character. */
static bool starts_character(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* line and column count from 0 within the text, columns in characters, as libyaml does. */
static trl_place place_at(const reader *r, size_t line, size_t column)
{
    const trli_source *source = r->source;
    if (line >= (size_t)r->nlines) line = (size_t)r->nlines - 1;
    trl_place place = {.file = source->file, .line = source->line + (int)line, .source = r->line[line]};
    place.column = (int)column + (line == 0 ? source->column : 1);
    if (line == 0 && source->first) place.source = source->first;
    return place;
}

static trl_place place_of_mark(const reader *r, const yaml_mark_t *mark)
{
    return place_at(r, mark->line, mark->column);
}

static trl_place place_of_byte(const reader *r, size_t offset)
{
    const char *at = r->source->text + offset;
    int line = r->nlines - 1;
    while (line > 0 && r->line[line] > at) --line;
    size_t column = 0;
    for (const char *s = r->line[line]; s < at && *s; ++s) column += starts_character(*s);
    return place_at(r, (size_t)line, column);
}

/* The byte of the text at a mark, whose column counts characters. */
static const char *byte_at(const reader *r, const yaml_mark_t *mark)
{
    const char *s = r->line[mark->line < (size_t)r->nlines ? mark->line : (size_t)r->nlines - 1];
    size_t before = mark->column;
    while (*s && !(starts_character(*s) && before-- == 0)) ++s;
    return s;
}

static trl_err fail_syntax(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return trl_fail(r->ctx, TRL_ERR_MEMORY, NULL, "memory ran out while reading YAML");
    bool bytes = p->error == YAML_READER_ERROR;
    trl_place place = bytes ? place_of_byte(r, p->problem_offset) : place_of_mark(r, &p->problem_mark);
    const char *hint = "";
    if (strstr(p->problem, "cannot start any token"))
        hint = *byte_at(r, &p->problem_mark) == '\t' ? "; indent with spaces, not with tabs"
                                                     : "; quote a text that begins so";
    else if (strstr(p->problem, "mapping values are not allowed"))
        hint = "; quote a text that contains ': '";
    else if (r->flow > 0 && !bytes)
        hint = "; inside [ ] or { } quote a formula or name that contains , [ ] { }";
    if (bytes || !p->context)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "this is not YAML: %s%s", p->problem, hint);
    return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "this is not YAML: %s %s from line %d on%s", p->problem, p->context,
                    place_of_mark(r, &p->context_mark).line, hint);
}

static trl_err next_event(reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? TRL_OK : fail_syntax(r);
}

/* Whether a formula has been cut by the commas and brackets of flow syntax. */
static bool has_open_parenthesis(const char *text)
{
    int depth = 0;
    for (; *text && depth >= 0; ++text) depth += (*text == '(') - (*text == ')');
    return depth != 0;
}

/* Find where the characters of a one-line scalar stand, counting back from its end: its start may be that of an
 * anchor. */
static void locate_scalar(const reader *r, const yaml_event_t *event, trl_text *text)
{
    yaml_scalar_style_t style = event->data.scalar.style;
    bool plain = style == YAML_PLAIN_SCALAR_STYLE;
    bool quoted = style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    size_t bytes = event->data.scalar.length, length = 0, end = event->end_mark.column, line = event->end_mark.line;
    for (size_t i = 0; i < bytes; ++i) length += starts_character(text->chars[i]);
    text->place = place_of_mark(r, &event->start_mark);
    if (event->start_mark.line != line || !(plain || quoted) || end < length + quoted) return;
    size_t first = end - quoted - length;
    if (line >= (size_t)r->nlines) return;
    const char *s = r->line[line];
    for (size_t column = 0; *s; ++s) {
        if (s > r->line[line] && starts_character(*s)) ++column;
        if (column == first) break;
    }
    if (strncmp(s, text->chars, bytes) != 0) return;
    text->place = place_at(r, line, first);
    text->place.length = (int)length;
    text->exact = true;
}

static trl_err read_scalar(reader *r, const yaml_event_t *event, bool is_key, trli_yaml **node)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    trl_place place = place_of_mark(r, &event->start_mark);
    if (event->data.scalar.tag)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "tags are not allowed in a deck, found '%s'",
                        event->data.scalar.tag);
    if (length > TRLI_YAML_SCALAR_BYTES)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "a text of %zu characters is too long: at most %d are allowed",
                        length, TRLI_YAML_SCALAR_BYTES);
    if (memchr(value, 0, length))
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "a text cannot contain a NUL character");
    trl_err err = trli_yaml_create(r->arena, TRLI_SCALAR_NODE, &place, node);
    if (err == TRL_OK) err = trli_arena_text(r->arena, value, length, &(*node)->text.chars);
    if (err != TRL_OK) return err;
    trl_text *text = &(*node)->text;
    locate_scalar(r, event, text);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && ((r->flow > 0 && has_open_parenthesis(value)) || (is_key && strchr(value, '('))))
        return trl_fail(r->ctx, TRL_ERR_INPUT, &text->place,
                        "quote this formula: '%s' holds what has a meaning of its own in YAML, or is cut by it", value);
    return TRL_OK;
}

static trl_err read_node(reader *r, const yaml_event_t *event, int depth, trli_yaml **node);

static trl_err read_items(reader *r, int depth, trli_yaml *list)
{
    yaml_event_t event;
    for (;;) {
        trli_yaml *item;
        trl_err err = next_event(r, &event);
        if (err != TRL_OK) return err;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!end) err = read_node(r, &event, depth, &item);
        yaml_event_delete(&event);
        if (err == TRL_OK && !end) err = trli_yaml_append(r->arena, list, item);
        if (err != TRL_OK || end) return err;
    }
}

/* The checks of a key that hold everywhere. */
static trl_err read_key(reader *r, const yaml_event_t *event, const trli_yaml *mapping, trli_yaml **key)
{
    trl_place place = place_of_mark(r, &event->start_mark);
    if (event->type != YAML_SCALAR_EVENT)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "a key must be a text, found %s",
                        event->type == YAML_ALIAS_EVENT            ? "an alias"
                        : event->type == YAML_SEQUENCE_START_EVENT ? "a list"
                                                                   : "a mapping");
    trl_err err = read_scalar(r, event, true, key);
    if (err != TRL_OK) return err;
    const trl_text *text = &(*key)->text;
    if (event->data.scalar.anchor)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "a key cannot have an anchor: anchor the value of '%s' instead",
                        text->chars);
    if (!*text->chars) return trl_fail(r->ctx, TRL_ERR_INPUT, &text->place, "a key is missing before ':'");
    if (strcmp(text->chars, "<<") == 0)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &text->place,
                        "the merge key '<<' is not allowed in a deck; use 'include', or an alias for a whole value");
    int first = trli_yaml_find(mapping, text->chars);
    if (first < 0) return TRL_OK;
    return trl_fail(r->ctx, TRL_ERR_INPUT, &text->place, "key '%s' is given twice; it was given first in line %d",
                    text->chars, mapping->key[first]->text.place.line);
}

static trl_err read_pairs(reader *r, int depth, trli_yaml *mapping)
{
    yaml_event_t event;
    for (;;) {
        trli_yaml *key, *value;
        trl_err err = next_event(r, &event);
        if (err != TRL_OK) return err;
        bool end = event.type == YAML_MAPPING_END_EVENT;
        if (!end) err = read_key(r, &event, mapping, &key);
        yaml_event_delete(&event);
        if (err != TRL_OK || end) return err;
        err = next_event(r, &event);
        if (err != TRL_OK) return err;
        err = read_node(r, &event, depth, &value);
        yaml_event_delete(&event);
        if (err == TRL_OK) err = trli_yaml_put(r->arena, mapping, key, value);
        if (err != TRL_OK) return err;
    }
}

static trl_err count_nodes(reader *r, int more, const trl_place *place)
{
    if (more <= TRLI_YAML_NODES - r->nodes) {
        r->nodes += more;
        return TRL_OK;
    }
    return trl_fail(r->ctx, TRL_ERR_INPUT, place, "the file holds more than %d values, counting what aliases stand for",
                    TRLI_YAML_NODES);
}

static trl_err read_alias(reader *r, const yaml_event_t *event, trli_yaml **node)
{
    const char *name = (const char *)event->data.alias.anchor;
    trl_place place = place_of_mark(r, &event->start_mark);
    int at = trli_map_find(&r->anchors, name);
    if (at < 0) return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "alias '*%s' has no anchor '&%s' before it", name, name);
    *node = r->anchored[at];
    if (!*node)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "alias '*%s' stands inside the value of its own anchor", name);
    return count_nodes(r, (*node)->size, &place);
}

/* Reserve a place for an anchored node; it stays NULL until the node is whole. */
static trl_err add_anchor(reader *r, const yaml_char_t *anchor, int *at)
{
    const char *name;
    *at = anchor ? trli_map_find(&r->anchors, (const char *)anchor) : -1;
    if (*at >= 0) r->anchored[*at] = NULL; /* a later anchor of the same name takes over */
    if (!anchor || *at >= 0) return TRL_OK;
    trl_err err = trli_arena_text(r->arena, (const char *)anchor, strlen((const char *)anchor), &name);
    if (err == TRL_OK)
        err = trli_arena_grow(r->arena, &r->anchored, r->nanchored, &r->anchored_capacity, sizeof *r->anchored);
    if (err != TRL_OK) return err;
    r->anchored[r->nanchored] = NULL;
    *at = r->nanchored++;
    return trli_map_add(r->arena, &r->anchors, name, *at);
}

static trl_err read_collection(reader *r, const yaml_event_t *event, int depth, trli_yaml **node)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    bool flow = mapping ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                        : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    trl_place place = place_of_mark(r, &event->start_mark);
    if (tag)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "tags are not allowed in a deck, found '%s'", (const char *)tag);
    if (depth >= TRLI_YAML_DEPTH)
        return trl_fail(r->ctx, TRL_ERR_INPUT, &place, "the file is nested deeper than %d levels", TRLI_YAML_DEPTH);
    trl_err err = trli_yaml_create(r->arena, mapping ? TRLI_MAPPING_NODE : TRLI_LIST_NODE, &place, node);
    r->flow += flow;
    if (err == TRL_OK) err = mapping ? read_pairs(r, depth + 1, *node) : read_items(r, depth + 1, *node);
    r->flow -= flow;
    return err;
}

static trl_err read_node(reader *r, const yaml_event_t *event, int depth, trli_yaml **node)
{
    trl_place place = place_of_mark(r, &event->start_mark);
    const yaml_char_t *anchor = event->type == YAML_SCALAR_EVENT           ? event->data.scalar.anchor
                                : event->type == YAML_SEQUENCE_START_EVENT ? event->data.sequence_start.anchor
                                : event->type == YAML_MAPPING_START_EVENT  ? event->data.mapping_start.anchor
                                                                           : NULL;
    int at;
    trl_err err;
    if (event->type == YAML_ALIAS_EVENT) return read_alias(r, event, node);
    TRL_TRY(count_nodes(r, 1, &place));
    TRL_TRY(add_anchor(r, anchor, &at));
    TRL_TRY(event->type == YAML_SCALAR_EVENT ? read_scalar(r, event, false, node)
                                             : read_collection(r, event, depth, node));
    if (at >= 0) r->anchored[at] = *node;
done:
    return err;
}

/* Everything between the start and the end of the stream. */
static trl_err read_stream(reader *r, trli_yaml **root)
{
    yaml_event_t event;
    for (bool end = false; !end;) {
        trl_err err = next_event(r, &event);
        if (err != TRL_OK) return err;
        trl_place place = place_of_mark(r, &event.start_mark);
        end = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && *root)
            err = trl_fail(r->ctx, TRL_ERR_INPUT, &place, "a second YAML document starts here; a deck is one document");
        else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT &&
                 event.type != YAML_DOCUMENT_END_EVENT && !end)
            err = read_node(r, &event, 0, root);
        yaml_event_delete(&event);
        if (err != TRL_OK) return err;
    }
    return TRL_OK;
}

trl_err trli_yaml_read(trl_context *ctx, trli_arena *arena, const trli_source *source, trli_yaml **root)
{
    reader r = {.ctx = ctx, .arena = arena, .source = source};
    *root = NULL;
    trl_err err = find_lines(&r);
    if (err != TRL_OK) return err;
    if (!yaml_parser_initialize(&r.parser))
        return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "memory ran out while reading YAML");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)source->text, strlen(source->text));
    err = read_stream(&r, root);
    yaml_parser_delete(&r.parser);
    return err;
}
