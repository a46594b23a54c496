/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <trl_formula.h>

/* What other programs and languages call it, and what to write here. */
static const char *const synonym[][2] = {
    {"lap", "laplacian(s)"},
    {"laplace", "laplacian(s)"},
    {"gradient", "grad(s)"},
    {"divergence", "div(v)"},
    {"gradient_squared", "dot(at(grad(s), cell), at(grad(s), cell))"},
    {"rot", "curl(v)"},
    {"d_dx", "cddx(s), or ddx(s) between the points"},
    {"d_dy", "cddy(s), or ddy(s) between the points"},
    {"d_dz", "cddz(s), or ddz(s) between the points"},
    {"d2_dx2", "d2dx(s)"},
    {"d2_dy2", "d2dy(s)"},
    {"d2_dz2", "d2dz(s)"},
    {"dx2", "d2dx(s)"},
    {"dy2", "d2dy(s)"},
    {"dz2", "d2dz(s)"},
    {"d2x", "d2dx(s)"},
    {"d2y", "d2dy(s)"},
    {"d2z", "d2dz(s)"},
    {"inner", "dot(v, w)"},
    {"outer", "the products of the components, such as u.x*v.y"},
    {"integ", "integral(s)"},
    {"ave", "integral(s)/integral(1)"},
    {"average", "integral(s)/integral(1)"},
    {"mean", "integral(s)/integral(1)"},
    {"sum", "integral(s)"},
    {"interpolate", "at(f, L), or probe(s, [x, y, z]) at a point"},
    {"interp", "at(f, L), or probe(s, [x, y, z]) at a point"},
    {"DiffusionTerm", "div(D*grad(s))"},
    {"ConvectionTerm", "-div(advective_flux(s, u))"},
    {"rand", "random(seed)"},
    {"uniform", "random(seed)"},
    {"ln", "log(a)"},
    {"fabs", "abs(a)"},
    {"power", "a^b"},
    {"pow", "a^b"},
    {"arcsin", "asin(a)"},
    {"arccos", "acos(a)"},
    {"arctan", "atan(a)"},
    {"arctan2", "atan2(a, b)"},
    {"maximum", "max(a, b)"},
    {"minimum", "min(a, b)"},
    {"where", "if(condition, a, b)"},
    {"select", "if(condition, a, b)"},
    {"heaviside", "if(a > 0, 1, 0)"},
    {"Heaviside", "if(a > 0, 1, 0)"},
};

const char *trl_name_synonym(const char *name)
{
    for (size_t i = 0; i < sizeof synonym / sizeof *synonym; ++i)
        if (strcmp(synonym[i][0], name) == 0) return synonym[i][1];
    return NULL;
}
