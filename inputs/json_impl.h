/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A writer of JSON texts: indented, strings escaped, numbers with 17 significant digits, non-finite numbers as null. */
#ifndef TRLI_JSON_IMPL_H
#define TRLI_JSON_IMPL_H

#include <trl_context.h>

typedef struct trli_json trli_json;

TRL_NODISCARD trl_err trli_json_create(trl_context *ctx, trli_json **json);
/* The finished text, for trli_free; the writer is destroyed and set to NULL. Fails with MEMORY, which the
 * calls below leave to this one, or USAGE: not one whole value, a value in an object without a key, an end that fits no
 * begin. */
TRL_NODISCARD trl_err trli_json_finish(trli_json **json, char **text);
/* Destroy a writer whose text is not wanted; NULL is allowed. */
void trli_json_destroy(trli_json **json);

void trli_json_begin_object(trli_json *json);
void trli_json_end_object(trli_json *json);
void trli_json_begin_array(trli_json *json);
void trli_json_end_array(trli_json *json);
/* Before each value of an object. */
void trli_json_key(trli_json *json, const char *key);

/* Bytes that are no UTF-8 become the replacement character; NULL is null. */
void trli_json_string(trli_json *json, const char *value);
void trli_json_number(trli_json *json, double value);
void trli_json_integer(trli_json *json, int64_t value);
void trli_json_bool(trli_json *json, bool value);
/* One whole value that is JSON already. */
void trli_json_text(trli_json *json, const char *value);

#endif
