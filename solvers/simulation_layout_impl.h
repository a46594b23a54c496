/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Where a simulation is computed: its devices, and which rank has which patches. */
#ifndef TRLI_SIMULATION_LAYOUT_IMPL_H
#define TRLI_SIMULATION_LAYOUT_IMPL_H

#include "simulation_impl.h"

/* Open what is asked for, and tell the workers; nothing if their policy uses none. Fails with INPUT, MEMORY, DEVICE. */
TRL_NODISCARD trl_err trli_simulation_open_devices(trl_simulation *sim);
/* simulation_layout.c: deal patches to ranks by blocks, or along the curve where the slowest rank has less to do then.
 * counts: NULL: one for each rank, or what fits their shares. Fails with INPUT. Collective: yes. */
TRL_NODISCARD trl_err trli_simulation_deal(trl_simulation *sim, const int *counts);
/* Make the layout: patches for ranks, or for their devices; close GPUs that get none. Collective: yes. */
TRL_NODISCARD trl_err trli_simulation_cut(trl_simulation *sim);

#endif
