/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The scalars of a deck: what text is a number, and how values are spelled for any YAML 1.1 reader. */
#ifndef TRLI_SCALAR_IMPL_H
#define TRLI_SCALAR_IMPL_H

#include <trl_context.h>

/* Whether text is a finite decimal number ("1e-5", ".5", "2.", "010" is ten), and its value. Thread: any, all
 * functions. */
bool trli_scalar_number(const char *text, double *value);
/* Whether text is a number without a fraction that a double holds exactly ("1e6" is one). */
bool trli_scalar_integer(const char *text, int64_t *value);
bool trli_scalar_boolean(const char *text, bool *value);
/* How to write what a text that is no boolean, or no number, means elsewhere: "; write true", "; numbers are decimal",
 * or "". */
const char *trli_scalar_boolean_advice(const char *text);
/* Whether a text is the name of a file, rather than a formula: letters behind its last dot. */
bool trli_scalar_is_file(const char *text);
bool trli_scalar_is_library(const char *text);
const char *trli_scalar_number_advice(const char *text);

enum { TRLI_NUMBER_TEXT = 40 };
/* Spell a number so that any YAML 1.1 reader sees it and reads back the same bits; whole numbers of few digits without
 * a point. */
void trli_scalar_print(double value, bool whole, char text[TRLI_NUMBER_TEXT]);

#endif
