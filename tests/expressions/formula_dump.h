/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A syntax tree as text with every operation in parentheses; parsing that text gives the same tree. */
#ifndef FORMULA_DUMP_H
#define FORMULA_DUMP_H

#include <stdio.h>
#include <string.h>

#include <trl_formula.h>

typedef struct dump {
    char *buffer;
    size_t size, used; /* used may pass size: the text did not fit */
} dump;

static inline void dump_text(dump *d, const char *text)
{
    size_t length = strlen(text);
    if (d->used + length < d->size) memcpy(d->buffer + d->used, text, length + 1);
    d->used += length;
}

static inline const char *dump_op_text(trl_ast_op op)
{
    static const char *const texts[] = {
#define DUMP_OP_TEXT(name, text) text,
        TRL_AST_OP_LIST(DUMP_OP_TEXT)
#undef DUMP_OP_TEXT
    };
    return texts[op];
}

static inline void dump_tree(dump *d, const trl_ast *node);

static inline void dump_parts(dump *d, const trl_ast *node)
{
    for (int i = 0; i < node->nparts; ++i) {
        dump_text(d, node->part[i].text);
        if (!node->part[i].index) continue;
        dump_text(d, "{");
        dump_tree(d, node->part[i].index);
        dump_text(d, "}");
    }
}

static inline void dump_list(dump *d, const trl_ast *node, const char *open, const char *close)
{
    dump_text(d, open);
    for (int i = 0; i < node->nargs; ++i) {
        if (i > 0) dump_text(d, ", ");
        dump_tree(d, node->arg[i]);
    }
    dump_text(d, close);
}

static inline void dump_family(dump *d, const trl_ast *node)
{
    dump_text(d, node->op == TRL_AST_ADD ? "sum(" : "prod(");
    dump_parts(d, node);
    dump_text(d, "=");
    dump_tree(d, node->arg[0]);
    dump_text(d, " .. ");
    dump_tree(d, node->arg[1]);
    dump_text(d, ", ");
    dump_tree(d, node->arg[2]);
    dump_text(d, ")");
}

static inline void dump_operation(dump *d, const trl_ast *node)
{
    dump_text(d, "(");
    if (node->kind == TRL_AST_BINARY) {
        dump_tree(d, node->arg[0]);
        dump_text(d, " ");
    }
    dump_text(d, dump_op_text(node->op));
    dump_text(d, " ");
    dump_tree(d, node->arg[node->nargs - 1]);
    dump_text(d, ")");
}

static inline void dump_tree(dump *d, const trl_ast *node)
{
    char number[40];
    switch (node->kind) {
    case TRL_AST_NUMBER:
        snprintf(number, sizeof number, "%.17g", node->number);
        dump_text(d, number);
        break;
    case TRL_AST_NAME:
        dump_parts(d, node);
        break;
    case TRL_AST_CALL:
        dump_parts(d, node);
        dump_list(d, node, "(", ")");
        break;
    case TRL_AST_UNARY:
    case TRL_AST_BINARY:
        dump_operation(d, node);
        break;
    case TRL_AST_VECTOR:
        dump_list(d, node, "[", "]");
        break;
    case TRL_AST_COMPONENT:
        dump_text(d, "(");
        dump_tree(d, node->arg[0]);
        dump_text(d, (const char *[]){").x", ").y", ").z"}[node->axis]);
        break;
    case TRL_AST_FAMILY:
        dump_family(d, node);
        break;
    case TRL_AST_SIDE:
        dump_text(d, (const char *[]){"x", "y", "z"}[node->axis]);
        dump_text(d, node->op == TRL_AST_SUB ? "-" : "+");
        break;
    }
}

#endif
