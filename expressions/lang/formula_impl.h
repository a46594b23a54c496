/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the files of the formula language share: limits, tokens, the memory of a formula, messages that point into a
 * text. */
#ifndef TRLI_FORMULA_IMPL_H
#define TRLI_FORMULA_IMPL_H

#include <trl_formula.h>

enum {
    TRLI_FORMULA_LENGTH = 1 << 20, /* characters of a text */
    TRLI_FORMULA_NESTING =
        200, /* parentheses, calls, signs and powers inside one another: bounds the parser's recursion */
    TRLI_FORMULA_HEIGHT = 2000, /* of the tree (a long sum is a tall tree): bounds the recursion of walks */
    TRLI_NAME_LENGTH = 255
};

/* X(name, binding strength as a binary operator or 0, operator) */
#define TRLI_TOKEN_LIST(X)            \
    X(END, 0, NONE)                   \
    X(NUMBER, 0, NONE)                \
    X(NAME, 0, NONE)                  \
    X(COMPONENT, 0, NONE)             \
    X(OR, TRLI_BIND_OR, OR)           \
    X(AND, TRLI_BIND_AND, AND)        \
    X(NOT, 0, NOT)                    \
    X(LT, TRLI_BIND_COMPARE, LT)      \
    X(LE, TRLI_BIND_COMPARE, LE)      \
    X(GT, TRLI_BIND_COMPARE, GT)      \
    X(GE, TRLI_BIND_COMPARE, GE)      \
    X(EQ, TRLI_BIND_COMPARE, EQ)      \
    X(NE, TRLI_BIND_COMPARE, NE)      \
    X(PLUS, TRLI_BIND_ADD, ADD)       \
    X(MINUS, TRLI_BIND_ADD, SUB)      \
    X(STAR, TRLI_BIND_MULTIPLY, MUL)  \
    X(SLASH, TRLI_BIND_MULTIPLY, DIV) \
    X(POWER, 0, POW)                  \
    X(OPEN_PAREN, 0, NONE)            \
    X(CLOSE_PAREN, 0, NONE)           \
    X(OPEN_BRACKET, 0, NONE)          \
    X(CLOSE_BRACKET, 0, NONE)         \
    X(OPEN_BRACE, 0, NONE)            \
    X(CLOSE_BRACE, 0, NONE)           \
    X(COMMA, 0, NONE)                 \
    X(ASSIGN, 0, NONE)                \
    X(RANGE, 0, NONE)

typedef enum trli_token_kind {
#define TRLI_TOKEN_ENUM(name, bind, op) TRLI_TOKEN_##name,
    TRLI_TOKEN_LIST(TRLI_TOKEN_ENUM)
#undef TRLI_TOKEN_ENUM
} trli_token_kind;

/* Binding strength, weakest first. NOT is a prefix between AND and the comparisons; signs and powers bind tighter than
 * all. */
enum { TRLI_BIND_OR = 1, TRLI_BIND_AND, TRLI_BIND_NOT, TRLI_BIND_COMPARE, TRLI_BIND_ADD, TRLI_BIND_MULTIPLY };

typedef struct trli_token {
    trli_token_kind kind;
    int begin, end; /* characters [begin, end) of the text */
    double number;  /* NUMBER; true and false are NUMBER 1 and 0 */
    int axis;       /* COMPONENT */
} trli_token;

typedef struct trli_lexer {
    trl_context *ctx;
    const trl_text *text;
    int at; /* the next character to read */
} trli_lexer;

/* Read the next token. A NAME stops before '{': the parser reads braces. Fails with INPUT. */
TRL_NODISCARD trl_err trli_lexer_next(trli_lexer *lexer, trli_token *token);
/* Whether c may stand in a name (anywhere but first, where digits may not). */
bool trli_name_char(char c);

/* A formula without a tree, with a copy of its text, of this length. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_formula_create(trl_context *ctx, const trl_text *text, size_t length, trl_formula **formula);
/* Memory of one formula, 8-byte aligned, released by trl_formula_destroy. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_formula_alloc(struct trl_formula_memory *memory, size_t bytes, void **result);

/* What the sums and products of a deck may expand to, all together: names, numbers and operations. */
enum { TRLI_EXPANSION_MAX = 4000000 };

/* As trl_ast_number and trl_ast_visit_names; *operations counts what is done within sums and products, up to the limit.
 */
TRL_NODISCARD trl_err trli_ast_number(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                      const trl_scope *names, int64_t *operations, double *value);
TRL_NODISCARD trl_err trli_ast_visit_names(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                           const trl_scope *names, int64_t *operations,
                                           trl_err (*visit)(void *data, const char *name, const trl_ast *node),
                                           void *data);

/* trl_fail with INPUT at characters [begin, end) of a text. Where the file cannot be pointed into, the message quotes
 * what stands there. */
trl_err trli_text_fail(trl_context *ctx, const trl_text *text, int begin, int end, const char *format, ...)
    TRL_PRINTF(5, 6);

/* The one of n names that a word of other programs, or of other case, stands for; or NULL. */
const char *trli_name_meant(const char *name, const char *const *names, int n);

/* Remedies for the last message: the names nearest to one that is not known. */
void trli_advise_names(trl_context *ctx, const char *name, const char *const *names, int n);

/* What is written in another notation: e^x, dT/dx, d2T/dx2. */
typedef struct trli_notation {
    int begin, end;                  /* characters [begin, end) of the text */
    char of[TRLI_NAME_LENGTH + 1];   /* what is differentiated; "": e^x */
    char here[TRLI_NAME_LENGTH + 9]; /* what to write here, perhaps cut short */
} trli_notation;

/* Whether the name [begin, end) of a text, which is nobody's, is a part of such. synonyms.c. */
bool trli_notation_find(const char *text, int begin, int end, trli_notation *found);

#endif
