/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <trl_err.h>

typedef struct code_row {
    const char *name, *meaning;
    int status;
} code_row;

static const code_row codes[] = {
#define CODE_ROW(name, status, meaning) {#name, meaning, status},
    TRL_ERR_LIST(CODE_ROW)
#undef CODE_ROW
};

/* A value outside of the enumeration is caused by a defect, or by a plugin that returned it. */
static const code_row *row_of(trl_err err)
{
    int index = (int)err;
    return &codes[index >= 0 && index < TRL_ERR_COUNT ? index : TRL_ERR_BUG];
}

const char *trl_err_name(trl_err err)
{
    return row_of(err)->name;
}

const char *trl_err_meaning(trl_err err)
{
    return row_of(err)->meaning;
}

int trl_err_exit_code(trl_err err)
{
    return row_of(err)->status;
}
