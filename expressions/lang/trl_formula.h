/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The formula language: text to abstract syntax tree. See docs/formulas.md for the language itself. */
#ifndef TRL_FORMULA_H
#define TRL_FORMULA_H

#include <trl_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of text from a user's file. place is where its first character stands; exact: every character of text stands
 * in the file at place.column + its offset (one line, no escapes), so that messages can point inside it. */
typedef struct trl_text {
    const char *chars; /* NUL-terminated; NULL: absent */
    trl_place place;
    bool exact;
} trl_text;

typedef enum trl_ast_kind {
    TRL_AST_NUMBER,    /* number */
    TRL_AST_NAME,      /* name: a tag, parameter, index, coordinate, location or limiter */
    TRL_AST_CALL,      /* name(arg...); operators and functions alike */
    TRL_AST_UNARY,     /* op arg[0] */
    TRL_AST_BINARY,    /* arg[0] op arg[1] */
    TRL_AST_VECTOR,    /* [arg...] */
    TRL_AST_COMPONENT, /* arg[0].x: axis */
    TRL_AST_FAMILY,    /* sum(name = arg[0]..arg[1], arg[2]) or prod(...): op is TRL_AST_ADD or TRL_AST_MUL */
    TRL_AST_SIDE       /* x- or x+, as the second argument of extrapolate: axis, op is TRL_AST_SUB or TRL_AST_ADD */
} trl_ast_kind;

/* X(name, text) */
#define TRL_AST_OP_LIST(X) \
    X(NONE, "")            \
    X(OR, "or")            \
    X(AND, "and")          \
    X(NOT, "not")          \
    X(LT, "<")             \
    X(LE, "<=")            \
    X(GT, ">")             \
    X(GE, ">=")            \
    X(EQ, "==")            \
    X(NE, "!=")            \
    X(ADD, "+")            \
    X(SUB, "-")            \
    X(MUL, "*")            \
    X(DIV, "/")            \
    X(NEG, "-")            \
    X(POS, "+")            \
    X(POW, "^")

typedef enum trl_ast_op {
#define TRL_AST_OP_ENUM(name, text) TRL_AST_##name,
    TRL_AST_OP_LIST(TRL_AST_OP_ENUM)
#undef TRL_AST_OP_ENUM
} trl_ast_op;

/* One part of a name: literal text, then an integer expression in braces (NULL on the last part). "phi{i-1}" is one
 * part with text "phi" and expression i-1; "a{i}b" has two: ("a", i), ("b", NULL). A plain name is one part, expression
 * NULL. */
typedef struct trl_name_part {
    const char *text;
    const struct trl_ast *index;
} trl_name_part;

typedef struct trl_ast {
    trl_ast_kind kind;
    trl_ast_op op;
    double number;
    int axis; /* COMPONENT, SIDE: 0 x, 1 y, 2 z */
    int nparts;
    const trl_name_part *part; /* NAME, CALL (always one plain part), FAMILY (its index) */
    int nargs;
    const struct trl_ast *const *arg;
    int begin, end; /* characters [begin, end) of the text this node was read from */
} trl_ast;

/* A parsed formula; owns its tree and a copy of the text. */
typedef struct trl_formula {
    const trl_ast *root;
    trl_text text;
    struct trl_formula_memory *memory;
} trl_formula;

/* Parse text (one formula). INPUT errors point at the offending characters. Nesting deeper than 200, trees taller than
 * 2000 (so that walks of a formula may recurse) and texts longer than 1 MB are errors. min and max of more than two
 * arguments are nested calls of two; true and false are NUMBERs. The strings of text->place outlive the formula, as
 * does ctx. Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_formula_parse(trl_context *ctx, const trl_text *text, trl_formula **formula);
TRL_API void trl_formula_destroy(trl_formula **formula);

/* Where the value of a parameter comes from: a formula of the names of its own level and further out. */
typedef struct trl_definition {
    trl_text text;
    const struct trl_scope *indices; /* of the family that a member of the outermost level belongs to, or NULL */
} trl_definition;

/* Values of names while a formula is expanded or evaluated to a number: indices, parameters. A chain: inner first. */
typedef struct trl_scope {
    int n;
    const char *const *name;
    const double *value;
    const struct trl_scope *outer;
    const trl_definition *definition; /* [n] for derivatives by parameters; NULL: the values are numbers */
    const int *index;                 /* made by trl_scope_index; NULL: the level is searched from its first name on */
} trl_scope;
/* Fill index, trl_scope_index_size(n) numbers, which makes look-ups quick: for levels of many names. The names stay as
 * they are. */
TRL_API int trl_scope_index_size(int n);
TRL_API void trl_scope_index(int n, const char *const *name, int *index);
/* Position of a name in one level, or -1. */
TRL_API int trl_scope_position(const trl_scope *level, const char *name);
/* Look a name up from the innermost; false if absent. */
TRL_API bool trl_scope_find(const trl_scope *names, const char *name, double *value);

/* The place of characters [begin, end) of a text, for messages. */
TRL_API trl_place trl_text_place(const trl_text *text, int begin, int end);

/* Spell a name with its braces evaluated: "phi{i-1}" with i = 3 is "phi2". Fails with INPUT if an index is unknown or
 * not a whole number, or the result is longer than size. */
TRL_API TRL_NODISCARD trl_err trl_name_expand(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                              const trl_scope *names, char *buffer, size_t size);

/* Value of an expression of numbers, names, pi and functions only (parameters, indices, ranges). Every other name,
 * coordinate or operator is an INPUT error; so are sums and products of more than 4 million operations. `if` evaluates
 * the chosen side only. The value may be infinite or NaN: a caller that needs a finite one checks. */
TRL_API TRL_NODISCARD trl_err trl_ast_number(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                             const trl_scope *names, double *value);
/* All plain names the expression mentions (for ordering parameters): calls visit once per NAME node, with braces
 * expanded, and again for each index of a sum or prod, whose own index is not visited. The ends of a range and the
 * names inside braces come before what needs their value, so that visit can give them one. Of an `if` whose condition
 * is known from names, only the chosen side counts. */
TRL_API TRL_NODISCARD trl_err trl_ast_visit_names(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                                  const trl_scope *names,
                                                  trl_err (*visit)(void *data, const char *name, const trl_ast *node),
                                                  void *data);

/* The functions of numbers (sqrt, atan2, min, ...), one table for the parser, the evaluator and the interpreter. */
typedef struct trl_function {
    int id; /* trl_function_id of trl_functions_body.h: the row in the table */
    const char *name;
    int arity;
    bool many; /* takes more arguments than two as well, from the left */
    double (*unary)(double);
    double (*binary)(double, double);
    const char *doc;
} trl_function;
TRL_API const trl_function *trl_function_find(const char *name);
TRL_API const trl_function *trl_functions(int *count);

/* Reserved words (x y z t dt dx dy dz pi and or not true false) and the grammar of names. */
TRL_API bool trl_name_reserved(const char *name);
TRL_API bool trl_name_valid(const char *name);
/* What to write for a function or operator that other programs have under this name, or NULL. */
TRL_API const char *trl_name_synonym(const char *name);
/* The one of n names that other programs have another word for, or else the nearest by edit distance, or NULL when none
 * is near: for "did you mean". */
TRL_API const char *trl_name_nearest(const char *name, const char *const *names, int n);

#ifdef __cplusplus
}
#endif
#endif
