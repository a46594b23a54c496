/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps by their error on stiff and oscillating problems, ours beside SUNDIALS', against published values: a table of
 * docs/verification.md. */
// ctest: timeout=300 sanitize=none
#include "../doc_table.h"
#include "cvode_impl.h"
#include "run_fixture.h"

/* Robertson (1966), with 1e5 times the second species; HIRES (Schaefer 1975); the values at the end are those of the
 * Test Set for Initial Value Problem Solvers (Mazzia & Magherini 2008), at t = 40 those of Hairer & Wanner (1996). */
#define ROBERTSON                                                        \
    "  a: {solver: s, initial: 1, ddt: \"-0.04*a + 0.1*b*c\"}\n"         \
    "  b: {solver: s, initial: 0, ddt: \"4e3*a - 1e4*b*c - 300*b^2\"}\n" \
    "  c: {solver: s, initial: 0, ddt: \"3e-3*b^2\"}\n"
#define HIRES                                                                               \
    "  a: {solver: s, initial: 1, ddt: \"-1.71*a + 0.43*b + 8.32*c + 0.0007\"}\n"           \
    "  b: {solver: s, initial: 0, ddt: \"1.71*a - 8.75*b\"}\n"                              \
    "  c: {solver: s, initial: 0, ddt: \"-10.03*c + 0.43*d + 0.035*e\"}\n"                  \
    "  d: {solver: s, initial: 0, ddt: \"8.32*b + 1.71*c - 1.12*d\"}\n"                     \
    "  e: {solver: s, initial: 0, ddt: \"-1.745*e + 0.43*(f + g)\"}\n"                      \
    "  f: {solver: s, initial: 0, ddt: \"-280*f*h + 0.69*d + 1.71*e - 0.43*f + 0.69*g\"}\n" \
    "  g: {solver: s, initial: 0, ddt: \"280*f*h - 1.81*g\"}\n"                             \
    "  h: {solver: s, initial: 0.0057, ddt: \"1.81*g - 280*f*h\"}\n"
/* Verwer (1994): what sunlight makes of exhaust gases. */
#define POLLUTION                                                                                                \
    "  y1: {solver: s, initial: 0, ddt: \"26.6*y2*y4 + 1.23e4*y5*y2 + 1.65e4*y11*y2 + 0.022*y13 + 1.2e4*y10*y2 " \
    "+ 5.78*y19 + 3.12*y20 - 0.35*y1 - 9e3*y11*y1 - 1.63e4*y1*y6 - 0.0474*y1*y4 - 1.78e3*y19*y1\"}\n"            \
    "  y2: {solver: s, initial: 0.2, ddt: \"0.35*y1 + 2.1*y19 - 26.6*y2*y4 - 1.23e4*y5*y2 - 1.65e4*y11*y2 - "    \
    "1.2e4*y10*y2\"}\n"                                                                                          \
    "  y3: {solver: s, initial: 0, ddt: \"0.35*y1 + 0.0175*y4 + 4.44e11*y16 + 5.78*y19 - 4.8e6*y3\"}\n"          \
    "  y4: {solver: s, initial: 0.04, ddt: \"4.8e6*y3 - 26.6*y2*y4 - 3.5e-4*y4 - 0.0175*y4 - 0.0474*y1*y4\"}\n"  \
    "  y5: {solver: s, initial: 0, ddt: \"8.6e-4*y7 + 8.6e-4*y7 + 1.5e4*y7*y6 + 1.3e-4*y9 + 1.88*y14 + "         \
    "1.24e3*y17*y6 - 1.23e4*y5*y2\"}\n"                                                                          \
    "  y6: {solver: s, initial: 0, ddt: \"1.23e4*y5*y2 + 1e8*y16 + 1e8*y16 - 1.5e4*y7*y6 - 2.4e4*y9*y6 - "       \
    "1.63e4*y1*y6 - 1.24e3*y17*y6\"}\n"                                                                          \
    "  y7: {solver: s, initial: 0.1, ddt: \"1.88*y14 - 8.6e-4*y7 - 8.2e-4*y7 - 1.5e4*y7*y6\"}\n"                 \
    "  y8: {solver: s, initial: 0.3, ddt: \"8.6e-4*y7 + 8.2e-4*y7 + 1.5e4*y7*y6 + 1.3e-4*y9\"}\n"                \
    "  y9: {solver: s, initial: 0.01, ddt: \"-1.3e-4*y9 - 2.4e4*y9*y6\"}\n"                                      \
    "  y10: {solver: s, initial: 0, ddt: \"1.3e-4*y9 + 1.65e4*y11*y2 - 1.2e4*y10*y2\"}\n"                        \
    "  y11: {solver: s, initial: 0, ddt: \"2.4e4*y9*y6 + 0.022*y13 - 1.65e4*y11*y2 - 9e3*y11*y1\"}\n"            \
    "  y12: {solver: s, initial: 0, ddt: \"1.65e4*y11*y2\"}\n"                                                   \
    "  y13: {solver: s, initial: 0, ddt: \"9e3*y11*y1 - 0.022*y13\"}\n"                                          \
    "  y14: {solver: s, initial: 0, ddt: \"1.2e4*y10*y2 - 1.88*y14\"}\n"                                         \
    "  y15: {solver: s, initial: 0, ddt: \"1.63e4*y1*y6\"}\n"                                                    \
    "  y16: {solver: s, initial: 0, ddt: \"3.5e-4*y4 - 1e8*y16 - 4.44e11*y16\"}\n"                               \
    "  y17: {solver: s, initial: 0.007, ddt: \"-1.24e3*y17*y6\"}\n"                                              \
    "  y18: {solver: s, initial: 0, ddt: \"1.24e3*y17*y6\"}\n"                                                   \
    "  y19: {solver: s, initial: 0, ddt: \"0.0474*y1*y4 + 3.12*y20 - 2.1*y19 - 5.78*y19 - 1.78e3*y19*y1\"}\n"    \
    "  y20: {solver: s, initial: 0, ddt: \"1.78e3*y19*y1 - 3.12*y20\"}\n"
/* Hairer, Norsett & Wanner (1993), II.10. */
#define BRUSSELATOR                                              \
    "  a: {solver: s, initial: 1.5, ddt: \"1 + a^2*b - 4*a\"}\n" \
    "  b: {solver: s, initial: 3, ddt: \"3*a - a^2*b\"}\n"

static const struct {
    const char *name, *equations;
    double end, absolute; /* the absolute tolerance over the relative one */
    int n;
    double value[20];
    const char *methods[6];
} problems[] = {
    {"Robertson to 40",
     ROBERTSON,
     40,
     1e-4,
     3,
     {0.71582706871941, 0.91855347646, 0.28416374574593},
     {"esdirk2", "esdirk3", "esdirk4", "bdf"}},
    {"Robertson to 1e11",
     ROBERTSON,
     1e11,
     1e-8,
     3,
     {0.2083340149701255e-7, 0.8333360770334713e-8, 0.9999999791665050},
     {"bdf"}},
    {"HIRES",
     HIRES,
     321.8122,
     1e-4,
     8,
     {0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2, 0.2386356198831331e-2,
      0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2},
     {"esdirk3", "esdirk4", "bdf"}},
    {"air pollution",
     POLLUTION,
     60,
     1e-14,
     20,
     {0.5646255480022769e-1, 0.1342484130422339,    0.4139734331099427e-8, 0.5523140207484359e-2,
      0.2018977262302196e-6, 0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018,
      0.7494013383880406e-2, 0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2,
      0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2, 0.4352846369330103e-17,
      0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4},
     {"esdirk3", "esdirk4", "bdf"}},
    {"Brusselator",
     BRUSSELATOR,
     20,
     1,
     2,
     {0.4986370712683478291, 4.5967803494520111183},
     {"bs3", "dp5", "adams", "bdf"}},
};

typedef struct outcome {
    double error; /* the largest of all unknowns, relative */
    int steps, rejected;
} outcome;

static outcome run_problem(size_t p, const char *method, double tolerance)
{
    outcome o = {0};
    open_text(
        "grid: {cells: [2], periodic: [true]}\nsolvers: {s: {method: gmres}}\nequations:\n%stime: {method: {name: %s, "
        "tolerance: {relative: %g, absolute: %g}, dt: {initial: 1e-4}}, end: %.17g}\n",
        problems[p].equations, method, tolerance, problems[p].absolute * tolerance, problems[p].end);
    run_to_end();
    for (int i = 0; i < problems[p].n; ++i) {
        const bool letters = problems[p].n <= 8;
        char name[12] = {letters ? (char)('a' + i) : 'y'};
        if (!letters) snprintf(name + 1, sizeof name - 1, "%d", i + 1);
        o.error = fmax(o.error, fabs(value_of(name) / problems[p].value[i] - 1));
    }
    o.steps = (int)trl_simulation_step_number(sim);
    o.rejected = (int)trl_simulation_rejected(sim);
    return o;
}

static bool of_sundials(const char *method)
{
    return strcmp(method, "bdf") == 0 || strcmp(method, "adams") == 0;
}

/* In the short form what takes long is left out. */
static bool is_run(size_t p, const char *method)
{
    if (of_sundials(method)) return trli_cvode_library() != NULL;
    return test_long() || problems[p].n < 3 || (problems[p].n == 3 && strcmp(method, "esdirk4") == 0);
}

START_TEST(errors_and_steps_are_those_of_the_page)
{
    const char *page = read_page("verification.md");
    bool found = true;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; ++p)
        for (int m = 0; problems[p].methods[m]; ++m) {
            const char *method = problems[p].methods[m];
            outcome o[3];
            if (!is_run(p, method)) continue;
            for (int i = 0; i < 3; ++i) {
                const double tolerance = pow(10, -4 - 2 * i);
                o[i] = run_problem(p, method, tolerance);
                ck_assert_msg(o[i].error < 1000 * tolerance, "%s by %s at %g: error %g", problems[p].name, method,
                              tolerance, o[i].error);
            }
            ck_assert_double_lt(o[2].error, 0.1 * o[0].error);
            found &= print_line(page, "| %s | %s | %d (%d) | %.1e | %d (%d) | %.1e | %d (%d) | %.1e |\n",
                                problems[p].name, method, o[0].steps, o[0].rejected, o[0].error, o[1].steps,
                                o[1].rejected, o[1].error, o[2].steps, o[2].rejected, o[2].error);
        }
    close_problem();
    ck_assert_msg(found, "docs/verification.md lacks lines that are printed above");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, errors_and_steps_are_those_of_the_page);
}

TRL_TEST_MAIN("stiff", add_tests)
