/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A library that is no plugin. */
int trl_plugin_entrance(void);

int trl_plugin_entrance(void)
{
    return 1;
}
