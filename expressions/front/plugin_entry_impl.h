/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Plugin entries: their set-up and the tags that they advertise. */
#ifndef TRLI_PLUGIN_ENTRY_IMPL_H
#define TRLI_PLUGIN_ENTRY_IMPL_H

#include "front_impl.h"

TRL_NODISCARD trl_err trli_entry_setup(trli_model *model, trli_entry *entry);
void trli_entry_free(trli_entry *entry);
/* The error of a method that failed: with a message that names it, unless there is one already, that is, this thread
 * recorded an error since the last trli_diagnostics_said, or the ranks agreed on one. */
trl_err trli_plugin_failed(trli_model *model, const trli_entry *entry, const char *method, trl_err err);

#endif
