/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The schema: one table of all keys of a deck. It drives merging, checking, defaults, the deck as used and the
 * reference. */
#ifndef TRLI_SCHEMA_IMPL_H
#define TRLI_SCHEMA_IMPL_H

#include "yaml_impl.h"

/* The forms that a value may take. */
enum {
    TRLI_AS_TEXT = 1, /* any text */
    TRLI_AS_FORMULA = 2,
    TRLI_AS_NUMBER = 4,
    TRLI_AS_INTEGER = 8,
    TRLI_AS_BOOLEAN = 16,
    TRLI_AS_WORD = 32, /* one of the key's words */
    TRLI_AS_LIST = 64, /* a list of the scalar forms above, except words */
    TRLI_AS_MAPPING = 128,
    TRLI_AS_PIECES = 256,  /* a list of mappings */
    TRLI_AS_LISTS = 512,   /* a list of lists, which the reader of the key checks */
    TRLI_AS_LIBRARY = 1024 /* a file whose name ends with .so */
};

/* What else holds for a key. */
enum {
    TRLI_REQUIRED = 1,  /* where its mapping stands */
    TRLI_CHOICE = 2,    /* exactly one of the choices of a mapping stands */
    TRLI_ONLY_LIST = 4, /* a word, a mapping or a list, never one scalar of another form */
    TRLI_PER_AXIS = 8,  /* the list has one item per axis, which one scalar repeats; so does the default */
    TRLI_ABOVE = 16,    /* greater than min, not equal */
    TRLI_WHOLE = 32,    /* one alternative of several: a mapping replaces what is merged into, as other values do */
    TRLI_RESERVED = 64, /* the name is kept for later versions */
    TRLI_LATER = 128,   /* part of the language, not built yet */
    TRLI_SHORT = 256    /* what is no mapping is short for {formula: it} */
};

typedef struct trli_key {
    const char *path; /* keys joined by dots; '*' stands for names that the user chooses */
    unsigned forms, flags;
    const char *fallback; /* default as YAML text; NULL: none, or not a constant */
    double min, max;      /* inclusive range of numbers; min == max: any */
    const char *words;    /* separated by spaces */
    const char *unless;   /* REQUIRED, but not beside this key of the same mapping */
    const char *like;     /* path whose children are the children of this key too */
    const char *doc;      /* one line */
} trli_key;

/* The whole table; its first row is the deck itself. */
const trli_key *trli_schema_keys(int *n);
/* The key of a deck itself; its children are the top-level keys. */
const trli_key *trli_schema_root(void);
/* The key below parent that a name of the deck stands for; NULL if there is none, or parent is NULL. */
const trli_key *trli_schema_child(const trli_key *parent, const char *name);
/* The keys below parent in the order of the table: pass NULL first, then the last result; NULL ends. '*' is not among
 * them. */
const trli_key *trli_schema_next(const trli_key *parent, const trli_key *last);
/* The last part of a key's path. */
const char *trli_schema_name(const trli_key *key);

/* The position of a text among a key's words, which is its enum value where both come from one list; -1: it is none. */
int trli_schema_word(const trli_key *key, const char *text);
/* Items of grid.cells, 0 where they are not a list. */
int trli_schema_dimension(const trli_yaml *root);

/* Check a whole deck; every fault is an INPUT error at its place. */
TRL_NODISCARD trl_err trli_schema_check(trl_context *ctx, const trli_yaml *root);
/* A copy of a checked deck in which every constant default is written out; lists per axis have as many items as
 * grid.cells. */
TRL_NODISCARD trl_err trli_schema_fill(trli_arena *arena, const trli_yaml *root, trli_yaml **filled);
/* All keys as a page of Markdown. trli_free gives *text back. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_schema_write_reference(trl_context *ctx, char **text);

/* Whether a number lies in a key's range. */
bool trli_schema_in_range(const trli_key *key, double value);
/* Whether a text stands as a formula of parameters for a number that the key accepts. */
bool trli_schema_computes(const trli_key *key, const char *text);
/* What a key accepts, in words: "a whole number from 1 to 3 or a list of numbers". */
void trli_schema_expected(const trli_key *key, char *buffer, size_t size);

#endif
