/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values at faces, reconstructed by a limiter from the side that a flow comes from. */
#include "flux_impl.h"
#include "ir_impl.h"

trli_ir_value trli_ir_reconstruct(trli_ir *ir, trli_ir_value s, int location, int axis, int limiter, bool from_plus)
{
    int8_t at[4];
    (void)trli_flux_points(limiter, (trl_location)location, axis, at);
    trli_ir_value centre = trli_ir_shift(ir, s, axis, at[from_plus]);
    if (limiter == TRL_LIMITER_UPWIND) return centre;
    trli_ir_value upwind = trli_ir_shift(ir, s, axis, at[2 + from_plus]);
    trli_ir_value downwind = trli_ir_shift(ir, s, axis, at[!from_plus]);
    return trli_ir_limit(ir, limiter, upwind, centre, downwind);
}

trli_ir_value trli_ir_upwind(trli_ir *ir, trli_ir_value s, int location, int axis, int limiter, trli_ir_value velocity)
{
    const trli_ir_value forward = trli_ir_binary(ir, TRLI_OP_LE, trli_ir_constant(ir, 0), velocity);
    const trli_ir_value minus = trli_ir_reconstruct(ir, s, location, axis, limiter, false);
    return trli_ir_select(ir, forward, minus, trli_ir_reconstruct(ir, s, location, axis, limiter, true));
}
