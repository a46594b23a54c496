/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "formula_impl.h"

/* A node under construction: what only the parser knows about it. Lists of arguments are chained by next. */
typedef struct node {
    trl_ast ast;
    int height;
    struct node *next;
} node;

typedef struct parser {
    trl_context *ctx;
    const trl_text *text;
    struct trl_formula_memory *memory;
    trli_lexer lexer;
    trli_token token; /* the next one */
    trli_token last;  /* the one before it; END at the beginning */
    int nesting;
} parser;

static const struct {
    int bind;
    trl_ast_op op;
} token_table[] = {
#define TOKEN_ROW(name, bind, op) {bind, TRL_AST_##op},
    TRLI_TOKEN_LIST(TOKEN_ROW)
#undef TOKEN_ROW
};

static trl_err parse_expression(parser *p, int weakest, node **result);

static const char *chars_at(const parser *p, int at)
{
    return p->text->chars + at;
}

static trl_err advance(parser *p)
{
    p->last = p->token;
    return trli_lexer_next(&p->lexer, &p->token);
}

static trl_err enter(parser *p)
{
    if (++p->nesting <= TRLI_FORMULA_NESTING) return TRL_OK;
    return trli_text_fail(p->ctx, p->text, p->token.begin, p->token.end,
                          "nested deeper than %d levels: split the formula into named expressions",
                          (int)TRLI_FORMULA_NESTING);
}

static void leave(parser *p)
{
    --p->nesting;
}

/* Messages. What the user typed is quoted up to a length that keeps the message on a line. */

static trl_err fail_at(const parser *p, const trli_token *token, const char *before, const char *after)
{
    enum { LONGEST = 40 };
    int length = token->end - token->begin;
    return trli_text_fail(p->ctx, p->text, token->begin, token->end, "%s'%.*s'%s", before,
                          length < LONGEST ? length : LONGEST, chars_at(p, token->begin), after);
}

static bool opens(trli_token_kind kind)
{
    return kind == TRLI_TOKEN_OPEN_PAREN || kind == TRLI_TOKEN_OPEN_BRACKET || kind == TRLI_TOKEN_OPEN_BRACE;
}

static bool closes(trli_token_kind kind)
{
    return kind == TRLI_TOKEN_CLOSE_PAREN || kind == TRLI_TOKEN_CLOSE_BRACKET || kind == TRLI_TOKEN_CLOSE_BRACE;
}

static bool is_operator(trli_token_kind kind)
{
    return token_table[kind].op != TRL_AST_NONE;
}

/* Tokens that are wrong wherever an operand or an operator was expected; TRL_OK: not one of these. */
static trl_err fail_misplaced(const parser *p)
{
    switch (p->token.kind) {
    case TRLI_TOKEN_ASSIGN:
        return fail_at(p, &p->token, "", " is not an operator; for equality use ==");
    case TRLI_TOKEN_RANGE:
        return fail_at(p, &p->token, "", " is a range: it belongs in sum(j=1..n, ...) and prod(j=1..n, ...)");
    case TRLI_TOKEN_OPEN_BRACE:
        return fail_at(p, &p->token, "", " must directly follow a name, as in phi{i}");
    default:
        return TRL_OK;
    }
}

static trl_err fail_no_operand(const parser *p)
{
    trl_err err = fail_misplaced(p);
    if (err != TRL_OK) return err;
    trli_token_kind kind = p->token.kind;
    if (opens(p->last.kind) && closes(kind)) return fail_at(p, &p->token, "missing value before ", "");
    if (p->last.kind == TRLI_TOKEN_POWER) return fail_at(p, &p->last, "", " needs an exponent");
    if (kind == TRLI_TOKEN_END || ((closes(kind) || kind == TRLI_TOKEN_COMMA) && is_operator(p->last.kind)))
        return fail_at(p, &p->last, "missing operand after ", "");
    return fail_at(p, &p->token, "missing operand before ", "");
}

/* After a complete operand something stands that neither continues nor closes it. open: the token to be closed, or NULL
 * at the outermost level. */
static trl_err fail_after_operand(const parser *p, const trli_token *open, bool list)
{
    trl_err err = fail_misplaced(p);
    if (err != TRL_OK) return err;
    switch (p->token.kind) {
    case TRLI_TOKEN_END:
        return fail_at(p, open, "", " is never closed");
    case TRLI_TOKEN_CLOSE_PAREN:
    case TRLI_TOKEN_CLOSE_BRACKET:
    case TRLI_TOKEN_CLOSE_BRACE:
        return fail_at(p, &p->token, "", open ? " does not close what is open" : " closes nothing");
    case TRLI_TOKEN_COMMA:
        return fail_at(p, &p->token, "unexpected ", ": a vector is written [a, b]");
    default:
        return fail_at(p, &p->token, list ? "missing operator or ',' before " : "missing operator before ",
                       p->token.kind == TRLI_TOKEN_OPEN_BRACKET && !list ? ": a component is written .x, .y or .z"
                                                                         : "");
    }
}

static trl_err expect_close(parser *p, const trli_token *open, trli_token_kind close, bool list)
{
    return p->token.kind == close ? advance(p) : fail_after_operand(p, open, list);
}

/* Nodes */

/* A node from `begin` up to the last token read. */
static trl_err new_node(parser *p, trl_ast_kind kind, int begin, node *arguments, node **result)
{
    trl_err err = TRL_OK;
    void *memory;
    int nargs = 0, height = 0;
    for (const node *a = arguments; a; a = a->next) {
        ++nargs;
        if (a->height > height) height = a->height;
    }
    if (height >= TRLI_FORMULA_HEIGHT)
        return trli_text_fail(p->ctx, p->text, begin, begin + 1,
                              "more than %d operations in a row: split the formula into named expressions",
                              (int)TRLI_FORMULA_HEIGHT);
    TRL_TRY(trli_formula_alloc(p->memory, sizeof(node) + (size_t)nargs * sizeof(trl_ast *), &memory));
    node *made = memory;
    const trl_ast **arg = (const trl_ast **)(made + 1);
    *made = (node){.ast = {.kind = kind, .nargs = nargs, .arg = arg, .begin = begin, .end = p->last.end},
                   .height = height + 1};
    for (const node *a = arguments; a; a = a->next) *arg++ = &a->ast;
    *result = made;
done:
    return err;
}

static trl_err new_operation(parser *p, trl_ast_op op, int begin, node *left, node *right, node **result)
{
    trl_err err = TRL_OK;
    left->next = right;
    TRL_TRY(new_node(p, right ? TRL_AST_BINARY : TRL_AST_UNARY, begin, left, result));
    (*result)->ast.op = op;
done:
    return err;
}

static trl_err copy_chars(parser *p, int begin, int end, const char **copy)
{
    trl_err err = TRL_OK;
    void *memory;
    size_t length = (size_t)(end - begin);
    TRL_TRY(trli_formula_alloc(p->memory, length + 1, &memory));
    *copy = memcpy(memory, chars_at(p, begin), length);
    ((char *)memory)[length] = 0;
done:
    return err;
}

/* Names and calls */

/* Read '{' expression '}', the token being '{'; afterwards the token is '}'. */
static trl_err parse_braces(parser *p, const trli_token *name, const trl_ast **index)
{
    trl_err err = TRL_OK;
    node *made;
    trli_token open = p->token;
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    if (p->token.kind == TRLI_TOKEN_CLOSE_BRACE) {
        trli_token both = {.begin = name->begin, .end = open.end};
        return fail_at(p, &both, "", " needs an integer expression");
    }
    TRL_TRY(parse_expression(p, TRLI_BIND_OR, &made));
    if (p->token.kind != TRLI_TOKEN_CLOSE_BRACE) return fail_after_operand(p, &open, false);
    *index = &made->ast;
    leave(p);
done:
    return err;
}

/* A name with its braces: what a NAME and a CALL are made from. */
typedef struct spelling {
    int begin, end;
    int nparts;
    trl_name_part *part;
} spelling;

/* Few names have braces and none many, so the array of parts doubles from one. */
static trl_err add_part(parser *p, spelling *name, int begin, int end)
{
    trl_err err = TRL_OK;
    void *memory;
    int n = name->nparts;
    if ((n & (n - 1)) == 0) {
        TRL_TRY(trli_formula_alloc(p->memory, (n > 0 ? 2 * (size_t)n : 1) * sizeof *name->part, &memory));
        if (n > 0) memcpy(memory, name->part, (size_t)n * sizeof *name->part);
        name->part = memory;
    }
    name->part[n].index = NULL;
    TRL_TRY(copy_chars(p, begin, end, &name->part[n].text));
    name->nparts = n + 1;
    name->end = end;
done:
    return err;
}

/* A name, its first letters being the token. Braces and letters that touch belong to it. */
static trl_err parse_spelling(parser *p, spelling *name)
{
    trl_err err = TRL_OK;
    trli_token first = p->token;
    *name = (spelling){.begin = first.begin};
    TRL_TRY(add_part(p, name, first.begin, first.end));
    TRL_TRY(advance(p));
    while (p->token.kind == TRLI_TOKEN_OPEN_BRACE && p->token.begin == name->end) {
        TRL_TRY(parse_braces(p, &first, &name->part[name->nparts - 1].index));
        int begin = p->token.end, end = begin;
        name->end = end;
        while (trli_name_char(*chars_at(p, end))) ++end;
        p->lexer.at = p->token.end = end; /* the closing brace takes the letters with it */
        if (end > begin || *chars_at(p, end) == '{') TRL_TRY(add_part(p, name, begin, end));
        TRL_TRY(advance(p));
    }
done:
    return err;
}

static trl_err parse_list(parser *p, const trli_token *open, trli_token_kind close, node **list)
{
    trl_err err = TRL_OK;
    node **tail = list;
    for (;;) {
        TRL_TRY(parse_expression(p, TRLI_BIND_OR, tail));
        tail = &(*tail)->next;
        if (p->token.kind != TRLI_TOKEN_COMMA) break;
        TRL_TRY(advance(p));
    }
    TRL_TRY(expect_close(p, open, close, true));
done:
    return err;
}

static trl_err new_call(parser *p, const spelling *name, node *arguments, node **result)
{
    trl_err err = TRL_OK;
    TRL_TRY(new_node(p, TRL_AST_CALL, name->begin, arguments, result));
    (*result)->ast.nparts = 1;
    (*result)->ast.part = name->part;
done:
    return err;
}

static trl_err fail_family(const parser *p, const char *word, const char *expected)
{
    return trli_text_fail(p->ctx, p->text, p->token.begin, p->token.end,
                          "%s is written %s(j=1..n, ...): expected %s here", word, word, expected);
}

/* What follows "sum(" or "prod(". The index replaces the word as the node's name. */
static trl_err parse_family(parser *p, const spelling *name, const trli_token *open, node **result)
{
    trl_err err = TRL_OK;
    node *lower, *upper;
    spelling index = {.nparts = 0};
    const char *word = name->part->text;
    if (p->token.kind != TRLI_TOKEN_NAME || *chars_at(p, p->token.end) == '{')
        return fail_family(p, word, "the name of an index");
    TRL_TRY(add_part(p, &index, p->token.begin, p->token.end));
    if (trl_name_reserved(index.part->text)) return fail_at(p, &p->token, "", " is reserved and cannot be an index");
    TRL_TRY(advance(p));
    if (p->token.kind != TRLI_TOKEN_ASSIGN) return fail_family(p, word, "'='");
    TRL_TRY(advance(p));
    TRL_TRY(parse_expression(p, TRLI_BIND_ADD, &lower));
    if (p->token.kind != TRLI_TOKEN_RANGE) return fail_family(p, word, "'..'");
    TRL_TRY(advance(p));
    TRL_TRY(parse_expression(p, TRLI_BIND_ADD, &upper));
    if (p->token.kind != TRLI_TOKEN_COMMA) return fail_family(p, word, "','");
    TRL_TRY(advance(p));
    TRL_TRY(parse_expression(p, TRLI_BIND_OR, &upper->next));
    lower->next = upper;
    TRL_TRY(expect_close(p, open, TRLI_TOKEN_CLOSE_PAREN, false));
    TRL_TRY(new_call(p, name, lower, result));
    (*result)->ast.kind = TRL_AST_FAMILY;
    (*result)->ast.op = strcmp(word, "sum") == 0 ? TRL_AST_ADD : TRL_AST_MUL;
    (*result)->ast.part = index.part;
done:
    return err;
}

/* min(a, b, c) is min(min(a, b), c). The list is cut after each pair. */
static trl_err nest_pairs(parser *p, const spelling *name, node *arguments, node **result)
{
    trl_err err = TRL_OK;
    node *left = arguments, *right = arguments->next;
    while (right) {
        node *rest = right->next;
        left->next = right;
        right->next = NULL;
        TRL_TRY(new_call(p, name, left, &left));
        right = rest;
    }
    *result = left;
done:
    return err;
}

/* A side, x- to z+: a keyword that only one argument of one operator may be. */
static trl_err parse_side(parser *p, node **result)
{
    trl_err err = TRL_OK;
    trli_token axis = p->token;
    char letter = *chars_at(p, axis.begin);
    bool named = axis.kind == TRLI_TOKEN_NAME && axis.end == axis.begin + 1 && letter >= 'x' && letter <= 'z';
    if (axis.kind == TRLI_TOKEN_END) return fail_no_operand(p);
    TRL_TRY(advance(p));
    if (!named || (p->token.kind != TRLI_TOKEN_MINUS && p->token.kind != TRLI_TOKEN_PLUS))
        return fail_at(p, &axis, "", " is no side: x-, x+, y-, y+, z- or z+");
    trl_ast_op op = token_table[p->token.kind].op;
    TRL_TRY(advance(p));
    TRL_TRY(new_node(p, TRL_AST_SIDE, axis.begin, NULL, result));
    (*result)->ast.axis = letter - 'x';
    (*result)->ast.op = op;
done:
    return err;
}

/* What follows "extrapolate(". */
static trl_err parse_extrapolate(parser *p, const spelling *name, const trli_token *open, node **result)
{
    trl_err err = TRL_OK;
    node *arguments;
    TRL_TRY(parse_expression(p, TRLI_BIND_OR, &arguments));
    if (p->token.kind == TRLI_TOKEN_COMMA) {
        TRL_TRY(advance(p));
        TRL_TRY(parse_side(p, &arguments->next));
    }
    TRL_TRY(expect_close(p, open, TRLI_TOKEN_CLOSE_PAREN, true));
    TRL_TRY(new_call(p, name, arguments, result));
done:
    return err;
}

/* The call of a name, the token being '('. */
static trl_err parse_call(parser *p, const spelling *name, node **result)
{
    trl_err err = TRL_OK;
    node *arguments;
    const char *word = name->part->text;
    trli_token open = p->token, spelled = {.begin = name->begin, .end = name->end};
    if (name->part->index) return fail_at(p, &spelled, "", " is called: the name of a function has no braces");
    if (trl_name_reserved(word)) return fail_at(p, &spelled, "", " is reserved and not a function");
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    if (strcmp(word, "sum") == 0 || strcmp(word, "prod") == 0) {
        TRL_TRY(parse_family(p, name, &open, result));
    } else if (strcmp(word, "extrapolate") == 0) {
        TRL_TRY(parse_extrapolate(p, name, &open, result));
    } else {
        TRL_TRY(parse_list(p, &open, TRLI_TOKEN_CLOSE_PAREN, &arguments));
        const trl_function *f = trl_function_find(word);
        bool pairs = arguments->next && f && f->many;
        TRL_TRY(pairs ? nest_pairs(p, name, arguments, result) : new_call(p, name, arguments, result));
    }
    leave(p);
done:
    return err;
}

static trl_err parse_name(parser *p, node **result)
{
    trl_err err = TRL_OK;
    spelling name;
    TRL_TRY(parse_spelling(p, &name));
    if (p->token.kind == TRLI_TOKEN_OPEN_PAREN) return parse_call(p, &name, result);
    TRL_TRY(new_node(p, TRL_AST_NAME, name.begin, NULL, result));
    (*result)->ast.part = name.part;
    (*result)->ast.nparts = name.nparts;
done:
    return err;
}

/* Expressions */

/* A value in parentheses is the value itself; operations around it begin and end at its parentheses. */
static trl_err parse_group(parser *p, node **result)
{
    trl_err err = TRL_OK;
    trli_token open = p->token;
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    TRL_TRY(parse_expression(p, TRLI_BIND_OR, result));
    TRL_TRY(expect_close(p, &open, TRLI_TOKEN_CLOSE_PAREN, false));
    leave(p);
done:
    return err;
}

static trl_err parse_vector(parser *p, node **result)
{
    trl_err err = TRL_OK;
    node *components;
    trli_token open = p->token;
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    TRL_TRY(parse_list(p, &open, TRLI_TOKEN_CLOSE_BRACKET, &components));
    TRL_TRY(new_node(p, TRL_AST_VECTOR, open.begin, components, result));
    leave(p);
done:
    return err;
}

static trl_err parse_number(parser *p, node **result)
{
    trl_err err = TRL_OK;
    TRL_TRY(advance(p));
    TRL_TRY(new_node(p, TRL_AST_NUMBER, p->last.begin, NULL, result));
    (*result)->ast.number = p->last.number;
done:
    return err;
}

/* A value with its components: number, name, call, (group), [vector], each with .x behind it. */
static trl_err parse_value(parser *p, node **result)
{
    trl_err err = TRL_OK;
    int begin = p->token.begin;
    switch (p->token.kind) {
    case TRLI_TOKEN_NUMBER:
        TRL_TRY(parse_number(p, result));
        break;
    case TRLI_TOKEN_NAME:
        TRL_TRY(parse_name(p, result));
        break;
    case TRLI_TOKEN_OPEN_PAREN:
        TRL_TRY(parse_group(p, result));
        break;
    case TRLI_TOKEN_OPEN_BRACKET:
        TRL_TRY(parse_vector(p, result));
        break;
    default:
        return fail_no_operand(p);
    }
    while (p->token.kind == TRLI_TOKEN_COMPONENT) {
        TRL_TRY(advance(p));
        TRL_TRY(new_node(p, TRL_AST_COMPONENT, begin, *result, result));
        (*result)->ast.axis = p->last.axis;
    }
done:
    return err;
}

static trl_err parse_signed(parser *p, node **result);

/* What a sign applies to, or an exponent; the token is the sign or '^'. */
static trl_err parse_signed_next(parser *p, node **result)
{
    trl_err err = TRL_OK;
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    TRL_TRY(parse_signed(p, result));
    leave(p);
done:
    return err;
}

/* Signs and powers: -x^2 is -(x^2), 2^-x is 2^(-x), a^b^c is a^(b^c). */
static trl_err parse_signed(parser *p, node **result)
{
    trl_err err = TRL_OK;
    node *operand, *exponent;
    trli_token first = p->token;
    if (first.kind == TRLI_TOKEN_MINUS || first.kind == TRLI_TOKEN_PLUS) {
        TRL_TRY(parse_signed_next(p, &operand));
        trl_ast_op op = first.kind == TRLI_TOKEN_MINUS ? TRL_AST_NEG : TRL_AST_POS;
        TRL_TRY(new_operation(p, op, first.begin, operand, NULL, result));
    } else {
        TRL_TRY(parse_value(p, result));
        if (p->token.kind == TRLI_TOKEN_POWER) {
            operand = *result;
            TRL_TRY(parse_signed_next(p, &exponent));
            TRL_TRY(new_operation(p, TRL_AST_POW, first.begin, operand, exponent, result));
        }
    }
done:
    return err;
}

static trl_err parse_prefixed(parser *p, int weakest, node **result)
{
    trl_err err = TRL_OK;
    node *operand;
    trli_token first = p->token;
    if (first.kind != TRLI_TOKEN_NOT) return parse_signed(p, result);
    if (weakest > TRLI_BIND_NOT)
        return fail_at(p, &first, "", " binds weaker than the operator before it: put it in parentheses");
    TRL_TRY(enter(p));
    TRL_TRY(advance(p));
    TRL_TRY(parse_expression(p, TRLI_BIND_NOT, &operand));
    TRL_TRY(new_operation(p, TRL_AST_NOT, first.begin, operand, NULL, result));
    leave(p);
done:
    return err;
}

/* Precedence climbing: operators that bind at least as strongly as `weakest`, all left-associative. */
static trl_err parse_expression(parser *p, int weakest, node **result)
{
    trl_err err = TRL_OK;
    node *left, *right;
    int begin = p->token.begin;
    TRL_TRY(parse_prefixed(p, weakest, &left));
    for (;;) {
        int bind = token_table[p->token.kind].bind;
        trl_ast_op op = token_table[p->token.kind].op;
        if (bind == 0 || bind < weakest) break;
        TRL_TRY(advance(p));
        TRL_TRY(parse_expression(p, bind + 1, &right));
        if (bind == TRLI_BIND_COMPARE && token_table[p->token.kind].bind == TRLI_BIND_COMPARE)
            return fail_at(p, &p->token, "chained comparison: use and before ", ", as in a < b and b < c");
        TRL_TRY(new_operation(p, op, begin, left, right, &left));
    }
    *result = left;
done:
    return err;
}

static trl_err parse_tree(trl_context *ctx, trl_formula *formula)
{
    trl_err err = TRL_OK;
    node *root;
    parser p = {
        .ctx = ctx, .text = &formula->text, .memory = formula->memory, .lexer = {.ctx = ctx, .text = &formula->text}};
    TRL_TRY(advance(&p));
    if (p.token.kind == TRLI_TOKEN_END) return trli_text_fail(ctx, p.text, 0, 1, "empty formula");
    TRL_TRY(parse_expression(&p, TRLI_BIND_OR, &root));
    if (p.token.kind != TRLI_TOKEN_END) return fail_after_operand(&p, NULL, false);
    formula->root = &root->ast;
done:
    return err;
}

trl_err trl_formula_parse(trl_context *ctx, const trl_text *text, trl_formula **formula)
{
    trl_err err = TRL_OK;
    trl_formula *made = NULL;
    *formula = NULL;
    if (!text->chars) return trl_fail(ctx, TRL_ERR_USAGE, &text->place, "trl_formula_parse was given no text");
    size_t length = strnlen(text->chars, TRLI_FORMULA_LENGTH + 1);
    if (length > TRLI_FORMULA_LENGTH)
        return trli_text_fail(ctx, text, 0, 1, "formula longer than %d characters: split it into named expressions",
                              (int)TRLI_FORMULA_LENGTH);
    TRL_TRY(trli_formula_create(ctx, text, length, &made));
    TRL_TRY(parse_tree(ctx, made));
    *formula = made;
    made = NULL;
done:
    trl_formula_destroy(&made);
    return err;
}
