/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "formula_impl.h"

/* What other programs and languages call it, and what to write here. */
static const char *const synonym[][2] = {
    {"lap", "laplacian(s)"},
    {"laplace", "laplacian(s)"},
    {"gradient", "grad(s)"},
    {"divergence", "div(v)"},
    {"gradient_squared", "dot(at(grad(s), cell), at(grad(s), cell))"},
    {"rot", "curl(v)"},
    {"diff", "ddx(s), or d2dx(s) for a second derivative"},
    {"dxx", "d2dx(s)"},
    {"dyy", "d2dy(s)"},
    {"dzz", "d2dz(s)"},
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

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static int skip_spaces(const char *c, int at)
{
    while (c[at] == ' ') ++at;
    return at;
}

/* Behind the sign of a power; 0: there is none. */
static int behind_power(const char *c, int at)
{
    at = skip_spaces(c, at);
    if (c[at] == '^') return skip_spaces(c, at + 1);
    return c[at] == '*' && c[at + 1] == '*' ? skip_spaces(c, at + 2) : 0;
}

/* "dT/dx", "d2T/dx2" and "d2T/dx^2", from a name on. */
static bool read_derivative(const char *c, int at, trli_notation *found)
{
    const int order = c[at + 1] == '2' ? 2 : 1, of = at + order;
    int end = of;
    if (c[at] != 'd' || isdigit((unsigned char)c[of])) return false;
    while (is_part_of_name(c[end])) ++end;
    int by = skip_spaces(c, end);
    if (end == of || c[by] != '/') return false;
    by = skip_spaces(c, by + 1);
    if (c[by] != 'd' || c[by + 1] < 'x' || c[by + 1] > 'z') return false;
    int last = by + 2;
    if (order == 2) {
        const int exponent = behind_power(c, last);
        last = exponent ? exponent : last;
        if (c[last++] != '2') return false;
    }
    if (is_part_of_name(c[last])) return false;
    found->begin = at;
    found->end = last;
    snprintf(found->of, sizeof found->of, "%.*s", end - of, c + of);
    snprintf(found->here, sizeof found->here, "d%sd%c(%s)", order == 2 ? "2" : "", c[by + 1], found->of);
    return true;
}

/* "e^x", "e^(x + y)" and "e^-x". */
static bool read_exponential(const char *c, int begin, int end, trli_notation *found)
{
    const int from = behind_power(c, end);
    int last = from, depth = 0;
    if (end != begin + 1 || c[begin] != 'e' || !from) return false;
    if (c[last] == '-') ++last;
    while (c[last] && (is_part_of_name(c[last]) || c[last] == '.' || c[last] == '(' || depth > 0)) {
        depth += (c[last] == '(') - (c[last] == ')');
        ++last;
    }
    const bool inner = c[from] == '(' && c[last - 1] == ')';
    if (last == from) return false;
    found->begin = begin;
    found->end = last;
    found->of[0] = 0;
    snprintf(found->here, sizeof found->here, "exp(%.*s)", last - from - 2 * inner, c + from + inner);
    return true;
}

bool trli_notation_find(const char *text, int begin, int end, trli_notation *found)
{
    int at = begin;
    if (read_exponential(text, begin, end, found) || read_derivative(text, begin, found)) return true;
    while (at > 0 && text[at - 1] == ' ') --at; /* of "d2T/dx2" it is "dx2" that is no name */
    if (at == 0 || text[at - 1] != '/') return false;
    for (--at; at > 0 && text[at - 1] == ' ';) --at;
    while (at > 0 && is_part_of_name(text[at - 1])) --at;
    return read_derivative(text, at, found) && found->end >= end;
}

/* Keys and words of decks by what they are called elsewhere. */
static const char *const meaning[][2] = {
    {"value", "dirichlet"},
    {"fixed", "dirichlet"},
    {"fixedValue", "dirichlet"},
    {"flux", "neumann"},
    {"gradient", "neumann"},
    {"derivative", "neumann"},
    {"fixedGradient", "neumann"},
    {"noflux", "neumann"},
    {"no_flux", "neumann"},
    {"mixed", "robin"},
    {"open", "outflow"},
    {"outlet", "outflow"},
    {"zeroGradient", "outflow"},
    {"left", "x-"},
    {"xmin", "x-"},
    {"x_min", "x-"},
    {"right", "x+"},
    {"xmax", "x+"},
    {"x_max", "x+"},
    {"bottom", "y-"},
    {"ymin", "y-"},
    {"y_min", "y-"},
    {"top", "y+"},
    {"ymax", "y+"},
    {"y_max", "y+"},
    {"zmin", "z-"},
    {"z_min", "z-"},
    {"zmax", "z+"},
    {"z_max", "z+"},
    {"bc", "boundary"},
    {"bcs", "boundary"},
    {"boundaries", "boundary"},
    {"boundary_conditions", "boundary"},
    {"ic", "initial"},
    {"initial_condition", "initial"},
    {"initial_value", "initial"},
    {"rhs", "ddt"},
    {"center", "cell"},
    {"centre", "cell"},
    {"vertex", "node"},
    {"corner", "node"},
    {"resolution", "cells"},
    {"shape", "cells"},
    {"size", "length"},
    {"domain", "grid"},
    {"mesh", "grid"},
    {"constants", "parameters"},
    {"variables", "equations"},
    {"unknowns", "equations"},
    {"timestep", "dt"},
    {"time_step", "dt"},
    {"t_end", "end"},
    {"tend", "end"},
    {"t_final", "end"},
    {"duration", "end"},
    {"integrator", "method"},
    {"scheme", "method"},
    {"interval", "every"},
    {"folder", "directory"},
    {"dir", "directory"},
    {"path", "directory"},
    {"extent", "length"},
    {"rtol", "tolerance"},
    {"rtol", "relative"},
    {"atol", "absolute"},
    {"maxiter", "iterations"},
    {"max_iterations", "iterations"},
    {"precond", "preconditioner"},
    {"pc", "preconditioner"},
    {"forward_euler", "euler"},
    {"explicit_euler", "euler"},
    {"backward_euler", "beuler"},
    {"implicit_euler", "beuler"},
    {"crank_nicolson", "cn"},
    {"crank-nicolson", "cn"},
    {"rk23", "bs3"},
    {"rk45", "dp5"},
    {"dopri5", "dp5"},
    {"verlet", "leapfrog"},
};

const char *trli_name_meant(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; ++i)
        if (strcasecmp(names[i], name) == 0) return names[i];
    for (size_t m = 0; m < sizeof meaning / sizeof *meaning; ++m)
        for (int i = 0; strcasecmp(meaning[m][0], name) == 0 && i < n; ++i)
            if (strcmp(meaning[m][1], names[i]) == 0) return names[i];
    return NULL;
}
