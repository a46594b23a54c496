/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "operand_impl.h"

trli_operand trli_operand_scalar(int location, trli_ir_value value)
{
    return (trli_operand){
        .components = 0, .location = {location, TRLI_ANYWHERE, TRLI_ANYWHERE}, .value = {value, 0, 0}};
}

void trli_operand_flatten(trli_operand *operand)
{
    if (operand->components == 1) operand->components = 0;
}

bool trli_location_join(int a, int b, int *joined)
{
    *joined = a == TRLI_ANYWHERE ? b : a;
    return a == b || a == TRLI_ANYWHERE || b == TRLI_ANYWHERE;
}
