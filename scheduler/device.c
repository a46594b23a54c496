/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "device_impl.h"

bool trl_device_supported(void)
{
    return trli_device_backend_exists();
}

int trl_device_count(void)
{
    return trli_device_backend_count();
}

trl_err trl_device_get_info(trl_context *ctx, int index, trl_device_info *info)
{
    int count = trli_device_backend_count();
    if (index < 0 || index >= count)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "device %d was asked for, but this machine has %d; count from 0",
                        index, count);
    const char *reason = trli_device_backend_describe(index, info);
    if (reason != NULL)
        return trl_fail(ctx, TRL_ERR_DEVICE, NULL, "device %d does not answer: %s; see nvidia-smi", index, reason);
    return TRL_OK;
}
