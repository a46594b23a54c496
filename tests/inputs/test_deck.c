/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2
#include <math.h>

#include "trl_test.h"

#include "deck_fixture.h"

static double parameter(const char *name)
{
    double value = NAN;
    return trl_scope_find(problem->parameters, name, &value) ? value : NAN;
}

static const trl_equation_entry *equation(const char *name)
{
    for (int i = 0; i < problem->nequations; ++i)
        if (strcmp(problem->equation[i].name, name) == 0) return &problem->equation[i];
    ck_abort_msg("no equation '%s'", name);
    return NULL;
}

static const trl_expression_entry *expression(const char *name)
{
    for (int i = 0; i < problem->nexpressions; ++i)
        if (strcmp(problem->expression[i].name, name) == 0) return &problem->expression[i];
    ck_abort_msg("no expression '%s'", name);
    return NULL;
}

static const char *formula_of(const trl_value *value)
{
    ck_assert_int_eq(value->count, 1);
    return value->text->chars;
}

/* The example of the contract */

static void check_threads(int threads, int tasks, int operators)
{
    ck_assert_int_eq(options->threads, threads);
    ck_assert_int_eq(problem->task_workers, tasks);
    ck_assert_int_eq(problem->operator_workers, operators);
}

START_TEST(example_gives_its_grid_and_time)
{
    ck_ok(read_file(GOOD "example.yaml"));
    ck_assert_str_eq(options->title, "3-D heat equation");
    ck_assert_int_eq(problem->grid.dim, 3);
    ck_assert_int_eq(problem->grid.cells[2], 128);
    ck_assert(problem->grid.spacing[1] == 1.0 / 128 && !problem->grid.periodic[0] && problem->patches_auto);
    ck_assert_int_eq(problem->time.method, TRL_METHOD_SSPRK3);
    ck_assert(problem->time.dt == 0 && problem->time.cfl == 0.5 && problem->time.dt_min == 1e-9 &&
              problem->time.dt_max == 1);
    ck_assert_str_eq(formula_of(&problem->time.speed), "abs(u)+c");
    ck_assert_str_eq(formula_of(&problem->time.diffusivity), "k");
    ck_assert(problem->time.steps == 1000 && problem->time.has_end && problem->time.end == 0.1 &&
              problem->time.start == 0);
}
END_TEST

START_TEST(example_gives_its_parameters_in_any_order)
{
    ck_ok(read_file(GOOD "example.yaml"));
    ck_assert(parameter("k") == 1 && parameter("n") == 16 && parameter("D1") == 0.1 && parameter("D3") == 1.5);
    ck_assert(parameter("r") == 2 * 3.14159265358979323846 * 0.01 / 0.2);
    ck_assert(parameter("rho_cp") == 3.5 && parameter("Tinf") == 293);
}
END_TEST

START_TEST(example_gives_its_formulas)
{
    double value;
    ck_ok(read_file(GOOD "example.yaml"));
    const trl_expression_entry *q = expression("q"), *s = expression("S"), *v = expression("v"),
                               *flux = expression("flux2_3");
    ck_assert_str_eq(formula_of(&q->formula), "-k*grad(T)");
    ck_assert(q->location == -1 && q->evaluate == TRL_EVALUATE_STAGE && !q->type);
    ck_assert_int_eq(s->location, TRL_CELL);
    ck_assert(trl_scope_find(s->names, "a", &value) && value == 2);
    ck_assert(trl_scope_find(s->names, "w", &value) && value == 0.1);
    ck_assert(trl_scope_find(s->names, "n", &value) && value == 16);
    ck_assert_int_eq(s->boundary[0].piece[0].kind, TRL_BC_NEUMANN);
    ck_assert(v->formula.list && v->formula.count == 3);
    ck_assert_str_eq(v->formula.text[1].chars, "x");
    ck_assert(trl_scope_find(flux->names, "w", &value) && value == 5);
    ck_assert(trl_scope_find(flux->names, "j", &value) && value == 3);
}
END_TEST

START_TEST(example_gives_its_expression_type)
{
    ck_ok(read_file(GOOD "example.yaml"));
    const trl_expression_entry *e = expression("kinetics");
    ck_assert_ptr_eq(e->type, &sample_type);
    ck_assert_int_eq(e->evaluate, TRL_EVALUATE_STEP);
    ck_assert_int_eq(e->ncomputes, 1);
    ck_assert_str_eq(e->computes[0], "omega");
    ck_assert_int_eq(e->ninputs, 4);
    ck_assert_str_eq(e->input_own[0], "temperature");
    ck_assert_str_eq(e->input_own[3], "c3");
    ck_assert_str_eq(e->input_tag[3], "phi4");
    ck_assert(e->params[0].number == 1e5 && e->params[1].number == 50 && e->params[2].number == 2 &&
              e->params[3].number == 0);
    ck_assert_str_eq(e->params[4].text, "010");
    ck_assert_str_eq(e->params[5].text, GOOD "ic.h5");
    ck_assert(e->params[0].place.line > 0 && e->params[2].place.line > 0);
}
END_TEST

START_TEST(example_gives_its_boundaries)
{
    ck_ok(read_file(GOOD "example.yaml"));
    const trl_equation_entry *t = equation("T");
    const trl_bc_side *side = t->boundary;
    ck_assert_int_eq(side[0].npieces, 1);
    ck_assert_int_eq(side[0].piece->kind, TRL_BC_DIRICHLET);
    ck_assert_ptr_null(side[0].piece->where.chars);
    ck_assert_int_eq(side[1].piece->kind, TRL_BC_NEUMANN);
    ck_assert_int_eq(side[2].piece->kind, TRL_BC_ROBIN);
    ck_assert_str_eq(formula_of(&side[2].piece->value), "1");
    ck_assert_str_eq(formula_of(&side[2].piece->b), "k");
    ck_assert_str_eq(formula_of(&side[2].piece->c), "h*Tinf");
    ck_assert_int_eq(side[3].npieces, 2);
    ck_assert_str_eq(side[3].piece[0].where.chars, "x>0.25 and x<0.75");
    ck_assert_str_eq(formula_of(&side[3].piece[0].value), "sin(t)");
    ck_assert_int_eq(side[4].piece->kind, TRL_BC_OUTFLOW);
    ck_assert_int_eq(side[5].piece->kind, TRL_BC_EXPRESSION);
    ck_assert_str_eq(side[5].piece->expression, "my_bc");
    ck_assert_str_eq(equation("phi7")->boundary[5].piece->expression, "bc8");
    ck_assert_str_eq(t->mask.chars, "(x-0.5)^2+(y-0.5)^2 > r^2");
    ck_assert_ptr_nonnull(t->exact.chars);
}
END_TEST

START_TEST(example_gives_its_family_of_equations)
{
    double value;
    ck_ok(read_file(GOOD "example.yaml"));
    ck_assert_int_eq(problem->nequations, 17);
    ck_assert_str_eq(problem->equation[0].name, "T");
    ck_assert_str_eq(problem->equation[16].name, "phi16");
    ck_assert(trl_scope_find(equation("phi16")->names, "i", &value) && value == 16);
    ck_assert_int_eq(equation("phi3")->location, TRL_CELL);
    ck_assert_ptr_null(equation("phi3")->exact.chars);
}
END_TEST

START_TEST(example_gives_its_output_and_options)
{
    ck_ok(read_file(GOOD "example.yaml"));
    ck_assert_int_eq(problem->noutputs, 18);
    ck_assert_str_eq(problem->output[17], "phi16");
    ck_assert_int_eq(problem->nseries, 2);
    ck_assert_str_eq(problem->series[1].name, "mid");
    ck_assert(options->every.steps == 100 && options->every.time == 0 && options->series_every.steps == 1);
    ck_assert(options->has_checkpoint && options->checkpoint_every.steps == 500 && options->checkpoint_keep == 2);
    ck_assert_str_eq(options->directory, "out");
    ck_assert(options->devices.target == TRL_TARGET_GPU && options->devices.n == 2);
    ck_assert(options->devices.gpu[0] == 0 && options->devices.gpu[1] == 1);
    check_threads(8, 4, 4);
    ck_assert_str_eq(problem->scheduler, "hybrid");
    ck_assert(problem->nan_check && !problem->fast_math);
}
END_TEST

START_TEST(one_value_of_periodic_is_that_of_all_axes)
{
    static const char *const cells[] = {"[8]", "[8, 6]", "[8, 6, 4]"};
    for (int dim = 1; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 2; ++periodic) {
            char text[256];
            snprintf(text, sizeof text,
                     "trellis: 1\ngrid: {cells: %s, periodic: %s}\nequations: {T: {initial: 0, ddt: 0}}\n"
                     "time: {dt: 1, steps: 1}\n",
                     cells[dim - 1], periodic ? "true" : "false");
            ck_ok(read_text(text));
            for (int a = 0; a < 3; ++a) ck_assert_int_eq(problem->grid.periodic[a], periodic && a < dim);
        }
}
END_TEST

START_TEST(whatever_is_left_out_takes_its_default)
{
    ck_ok(read_file(GOOD "minimal.yaml"));
    ck_assert(problem->grid.cells[1] == 10 && problem->grid.cells[2] == 1 && problem->grid.length[1] == 1 &&
              problem->grid.origin[0] == 0);
    ck_assert(problem->grid.periodic[0] && !problem->grid.periodic[1] && !problem->grid.periodic[2]);
    ck_assert_int_eq(problem->time.method, TRL_METHOD_SSPRK3);
    ck_assert(problem->time.dt == 1e-4 && problem->time.steps == 10 && !problem->time.has_end);
    ck_assert_int_eq(problem->noutputs, 2);
    ck_assert_str_eq(problem->output[1], "C");
    ck_assert(options->every.steps == 0 && options->every.time == 0 && !options->has_checkpoint);
    check_threads(0, 0, 0);
    ck_assert(options->devices.target == TRL_TARGET_AUTO && options->devices.n == 0);
    ck_assert_int_eq(problem->compile, TRL_COMPILE_AUTO);
    ck_assert_int_eq(problem->time_blocking, 0);
    ck_assert_int_eq(problem->fusion, TRL_FUSION_FULL);
    ck_assert(equation("C")->initial.list && equation("C")->boundary[2].npieces == 1 &&
              equation("C")->location == TRL_XFACE);
}
END_TEST

START_TEST(formulas_of_parameters_are_numbers_wherever_numbers_stand)
{
    ck_ok(read_text("trellis: 1\ngrid: {cells: [8, 8], length: [2*pi, L], origin: [-L/2, 0]}\n"
                    "parameters: {L: 2*n, n: 4}\n"
                    "equations: {T: {initial: 0, ddt: 0}, p: {solve: p - T}}\n"
                    "solvers: {s: {tolerance: 10^-n}}\n"
                    "time: {dt: {cfl: 1/n, max: L}, start: -pi, end: n*pi}\n"
                    "output: {every: {time: pi/n}, series: {every: {at: [1/L, 1]}, values: {m: norm(T)}}}\n"));
    const double pi = 3.141592653589793;
    ck_assert(problem->grid.length[0] == 2 * pi && problem->grid.length[1] == 8 && problem->grid.origin[0] == -4);
    ck_assert(problem->time.cfl == 0.25 && problem->time.dt_max == 8 && problem->time.start == -pi);
    ck_assert(problem->time.end == 4 * pi && problem->time.landing[0] == 0.125);
    ck_assert_str_eq(formula_of(&equation("p")->initial), "0");
}
END_TEST

START_TEST(places_point_at_the_first_character_of_a_formula)
{
    ck_ok(read_text(
        HEAD "equations:\n  T:\n    initial: &a 1 + x\n    ddt: '-2*T'\n    mask: \"x\\x31\"\n    exact: |\n      x\n"
             "time: {dt: 0.1, steps: 1}\n"));
    const trl_equation_entry *t = equation("T");
    const trl_text *initial = t->initial.text, *ddt = t->ddt.text;
    ck_assert(initial->exact && initial->place.line == 5 && initial->place.column == 17 && initial->place.length == 5);
    ck_assert(ddt->exact && ddt->place.line == 6 && ddt->place.column == 11);
    ck_assert(strncmp(ddt->place.source, "    ddt: '-2*T'\n", 16) == 0);
    ck_assert(!t->mask.exact && t->mask.place.line == 7);
    ck_assert(!t->exact.exact && t->exact.place.line == 8);
}
END_TEST

/* Merging */

START_TEST(later_files_win_and_alternatives_replace_whole)
{
    ck_ok(read_file(GOOD "example.yaml"));
    ck_assert_str_eq(options->directory, "out");
    ck_assert(options->every.time == 0);
    ck_assert_ptr_null(equation("T")->boundary[0].piece->where.chars);
    ck_assert(expression("kinetics")->params[2].number == 2 && parameter("h") == 10);
}
END_TEST

START_TEST(paths_belong_to_the_file_that_gives_them)
{
    const char *set[] = {"expressions={kinetics: {type: arrhenius, parameters: {A: 1, path: x.h5}}}"};
    ck_ok(read_request(&(trli_deck_request){.path = GOOD "minimal.yaml", .nsets = 1, .set = set}));
    ck_assert_str_eq(expression("kinetics")->params[5].text, GOOD "x.h5");
    ck_ok(read_text("include: " GOOD "parts/materials.yaml\n" HEAD TAIL
                    "expressions: {kinetics: {type: arrhenius, parameters: {A: 1}}}\n"));
    ck_assert_str_eq(expression("kinetics")->params[5].text, GOOD "parts/tables/rates.h5");
}
END_TEST

START_TEST(settings_of_the_command_line_come_last_in_order)
{
    const char *set[] = {"time.dt=0.5",
                         "time.dt={cfl: 1}",
                         "time.dt.max=3",
                         "grid.cells.0=32",
                         "run.threads=3",
                         "numerics.fast_math=true",
                         "output.series.values.mass=integral(T)",
                         "equations.phi{i}={for: {i: 1..2}, initial: 0, ddt: 0}"};
    ck_ok(read_request(&(trli_deck_request){.path = "test.yaml", .text = HEAD TAIL, .nsets = 8, .set = set}));
    ck_assert(problem->time.dt == 0 && problem->time.cfl == 1 && problem->time.dt_max == 3);
    ck_assert(problem->grid.cells[0] == 32 && options->threads == 3 && problem->fast_math);
    ck_assert_int_eq(problem->nseries, 1);
    ck_assert_int_eq(problem->nequations, 3);
}
END_TEST

static void set_one(const char *key, const char *word)
{
    char text[64];
    const char *set[] = {text};
    snprintf(text, sizeof text, "%s=%s", key, word);
    ck_ok(read_request(&(trli_deck_request){.path = "test.yaml", .text = HEAD TAIL, .nsets = 1, .set = set}));
}

#define READS_METHOD(NAME, name, doc) \
    set_one("time.method", #name);    \
    ck_assert_int_eq(problem->time.method, TRL_METHOD_##NAME);
#define READS_FUSION(NAME, name, doc) \
    set_one("run.fusion", #name);     \
    ck_assert_int_eq(problem->fusion, TRL_FUSION_##NAME);
#define READS_COMPILE(NAME, name, doc) \
    set_one("run.compile", #name);     \
    ck_assert_int_eq(problem->compile, TRL_COMPILE_##NAME);
#define READS_TARGET(NAME, name, doc) \
    set_one("run.devices", #name);    \
    ck_assert_int_eq(options->devices.target, TRL_TARGET_##NAME);
#define READS_PASS(NAME, name, bit, doc)   \
    set_one("run.passes." #name, "false"); \
    ck_assert_uint_eq(problem->disabled_passes, TRL_PASS_##NAME);

START_TEST(each_word_of_a_list_is_its_enum){TRL_METHOD_LIST(READS_METHOD) TRL_FUSION_LIST(READS_FUSION)
                                                TRL_COMPILE_LIST(READS_COMPILE) TRL_TARGET_LIST(READS_TARGET)
                                                    TRL_PASS_LIST(READS_PASS)} END_TEST

START_TEST(threads_are_as_many_as_there_are_cores_a_number_or_a_split)
{
    ck_ok(read_with(HEAD TAIL, "run.threads=3"));
    check_threads(3, 0, 0);
    ck_ok(read_with(HEAD TAIL, "run.threads={tasks: 3, operators: 0}"));
    check_threads(3, 3, 0);
    ck_ok(read_with(HEAD TAIL "run: {threads: 3}\n", "run.threads={tasks: 0, operators: 2}"));
    check_threads(2, 0, 2);
    ck_ok(read_with(HEAD TAIL "run: {threads: {tasks: 1, operators: 2}}\n", "run.threads=5"));
    check_threads(5, 0, 0);
    ck_ok(read_with(HEAD TAIL "run: {threads: {tasks: 1, operators: 2}}\n", "run.threads=auto"));
    check_threads(0, 0, 0);
    ck_ok(read_with(HEAD TAIL "run: {threads: {tasks: 1, operators: 2}}\n", "run.threads.operators=4"));
    check_threads(5, 1, 4);
}
END_TEST

START_TEST(setting_a_piece_of_a_side_replaces_it_whole)
{
    const char *text =
        HEAD "equations:\n  T: {initial: 0, ddt: 0, boundary: {x-: [{where: 'y>0', dirichlet: 1}, {neumann: 0}]}}\n"
             "time: {dt: 0.1, steps: 1}\n";
    ck_ok(read_with(text, "equations.T.boundary.x-.1={outflow: true}"));
    ck_assert_int_eq(equation("T")->boundary[0].piece[1].kind, TRL_BC_OUTFLOW);
    ck_ok(read_with(text, "equations.T.boundary.x-.0.dirichlet=5"));
    ck_assert_str_eq(formula_of(&equation("T")->boundary[0].piece[0].value), "5");
    ck_assert_str_eq(equation("T")->boundary[0].piece[0].where.chars, "y>0");
}
END_TEST

START_TEST(an_empty_setting_is_an_empty_text)
{
    ck_ok(read_with(HEAD TAIL "title: full\n", "title="));
    ck_assert_str_eq(options->title, "");
}
END_TEST

/* Names and families */

START_TEST(last_index_of_a_product_runs_fastest)
{
    ck_ok(read_text(HEAD "expressions:\n  \"f{i}_{j}\": {for: {i: 1..2, j: 0..1}, formula: \"i\"}\n" TAIL));
    ck_assert_int_eq(problem->nexpressions, 4);
    ck_assert_str_eq(problem->expression[1].name, "f1_1");
    ck_assert_str_eq(problem->expression[2].name, "f2_0");
}
END_TEST

START_TEST(names_in_braces_are_evaluated_in_every_list)
{
    ck_ok(read_text(
        HEAD
        "parameters: {n: 2, \"c{n+1}\": 7, m: \"c3 + c{n + 1}\"}\n"
        "expressions:\n  \"r{i}\": {for: {i: 1..n}, type: arrhenius, parameters: {A: \"10*i\"}, computes: [\"w{i}\"],"
        " inputs: {\"a{1..2}_{1..2}\": \"b{i}_{1..4}\", v.x: u.x}}\n" TAIL "output: {fields: [\"w{1..n}\", T]}\n"));
    const trl_expression_entry *r = expression("r2");
    ck_assert(parameter("m") == 14);
    ck_assert_str_eq(r->computes[0], "w2");
    ck_assert_int_eq(r->ninputs, 5);
    ck_assert_str_eq(r->input_own[2], "a2_1");
    ck_assert_str_eq(r->input_tag[2], "b2_3");
    ck_assert_str_eq(r->input_tag[4], "u.x");
    ck_assert(r->params[0].number == 20);
    ck_assert_str_eq(problem->output[1], "w2");
}
END_TEST

START_TEST(local_names_hide_indices_and_these_global_names)
{
    double value;
    ck_ok(read_text(HEAD "parameters: {a: 1, i: 2, b: \"10*a\"}\n"
                         "expressions:\n  \"f{i}{j}\": {for: {i: 5..5, j: 1..1}, formula: \"a\","
                         " parameters: {a: \"b + i + j\", j: 7}}\n" TAIL));
    const trl_scope *names = expression("f51")->names;
    ck_assert(trl_scope_find(names, "a", &value) && value == 22);
    ck_assert(trl_scope_find(names, "i", &value) && value == 5);
    ck_assert(trl_scope_find(names, "j", &value) && value == 7);
    ck_assert(parameter("a") == 1 && parameter("i") == 2);
}
END_TEST

START_TEST(sums_over_families_of_parameters_are_numbers)
{
    ck_ok(read_text(
        HEAD "parameters:\n  total: \"sum(j=1..n, D{j}*j)\"\n  \"D{i}\": {for: {i: 1..n}, values: [1, \"total0\", 3]}\n"
             "  total0: \"n - 1\"\n  n: \"2 + 1\"\n"
             "  twice: \"2*last\"\n  last: \"D{n}\"\n" TAIL));
    ck_assert(parameter("total") == 1 + 2 * 2 + 3 * 3);
    ck_assert(parameter("twice") == 6);
}
END_TEST

START_TEST(long_chains_of_parameters_have_values)
{
    enum { LINKS = 20000 };
    char *text = malloc((size_t)64 * LINKS);
    int used = sprintf(text, HEAD TAIL "parameters:\n  p%d: 1\n", LINKS);
    for (int i = 0; i < LINKS; ++i) used += sprintf(text + used, "  p%d: \"p%d + 1\"\n", i, i + 1);
    ck_ok(read_text(text));
    free(text);
    ck_assert(parameter("p0") == LINKS + 1);
}
END_TEST

/* Bounds */

/* A deck whose title is one character, many times. */
static char *make_title(char c, int n)
{
    char *text = calloc(1, (size_t)n + 256), *at = text + sprintf(text, "%s", HEAD TAIL "title: ");
    memset(at, c, (size_t)n);
    return text;
}

START_TEST(rejects_a_text_beyond_a_megabyte)
{
    char *text = make_title('a', (1 << 20) + 1);
    ck_fails(read_text(text), TRL_ERR_INPUT,
             "test.yaml:5:8: a text of 1048577 characters is too long: at most 1048576 are allowed");
    free(text);
}
END_TEST

START_TEST(stops_reporting_after_many_errors)
{
    enum { ERRORS = 200 };
    const trl_diagnostic *list;
    char text[ERRORS * 16] = HEAD TAIL;
    for (int i = 0; i < ERRORS; ++i) sprintf(text + strlen(text), "bad%d: 1\n", i);
    ck_fails(read_text(text), TRL_ERR_INPUT, "(and more errors, not shown)");
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &list), 50);
}
END_TEST

START_TEST(rejects_more_names_than_a_deck_may_have)
{
    ck_fails(read_text(HEAD TAIL "output: {fields: [\"a{1..999999}\", \"b{1..9}\"]}\n"), TRL_ERR_INPUT,
             "the deck has more than 1000000 names");
}
END_TEST

START_TEST(rejects_files_that_are_no_text_or_too_large)
{
    static const char name[] = "test_deck_file.yaml";
    write_file(name, "trellis: 1\n\0", 12);
    ck_fails(read_file(name), TRL_ERR_INPUT,
             "cannot read 'test_deck_file.yaml': it holds a NUL character, so it is no text");
    trl_context_clear_diagnostics(test_ctx);
    if (trl_context_rank(test_ctx) == 0) ck_assert_int_eq(truncate(name, 65 << 20), 0);
    MPI_Barrier(trl_context_comm(test_ctx));
    ck_fails(read_file(name), TRL_ERR_INPUT, "cannot read 'test_deck_file.yaml': it is larger than 64 MB");
    remove_file(name);
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(read_file(name), TRL_ERR_INPUT, "cannot read 'test_deck_file.yaml': No such file or directory");
}
END_TEST

START_TEST(rejects_more_included_files_than_anyone_needs)
{
    char text[8192] = "include: [", name[] = "test_deck_part.yaml";
    write_file(name, "title: part\n", 12);
    for (int i = 0; i < 201; ++i) sprintf(text + strlen(text), "%s, ", name);
    strcat(text, "]\n" HEAD TAIL);
    ck_fails(read_text(text), TRL_ERR_INPUT, "more than 200 files are included");
    remove_file(name);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_registry, close_all);
    tcase_add_test(tc, example_gives_its_grid_and_time);
    tcase_add_test(tc, example_gives_its_parameters_in_any_order);
    tcase_add_test(tc, example_gives_its_formulas);
    tcase_add_test(tc, example_gives_its_expression_type);
    tcase_add_test(tc, example_gives_its_boundaries);
    tcase_add_test(tc, example_gives_its_family_of_equations);
    tcase_add_test(tc, example_gives_its_output_and_options);
    tcase_add_test(tc, one_value_of_periodic_is_that_of_all_axes);
    tcase_add_test(tc, whatever_is_left_out_takes_its_default);
    tcase_add_test(tc, formulas_of_parameters_are_numbers_wherever_numbers_stand);
    tcase_add_test(tc, places_point_at_the_first_character_of_a_formula);
    tcase_add_test(tc, later_files_win_and_alternatives_replace_whole);
    tcase_add_test(tc, paths_belong_to_the_file_that_gives_them);
    tcase_add_test(tc, settings_of_the_command_line_come_last_in_order);
    tcase_add_test(tc, each_word_of_a_list_is_its_enum);
    tcase_add_test(tc, threads_are_as_many_as_there_are_cores_a_number_or_a_split);
    tcase_add_test(tc, setting_a_piece_of_a_side_replaces_it_whole);
    tcase_add_test(tc, an_empty_setting_is_an_empty_text);
    tcase_add_test(tc, last_index_of_a_product_runs_fastest);
    tcase_add_test(tc, names_in_braces_are_evaluated_in_every_list);
    tcase_add_test(tc, local_names_hide_indices_and_these_global_names);
    tcase_add_test(tc, sums_over_families_of_parameters_are_numbers);
    tcase_add_test(tc, long_chains_of_parameters_have_values);
    tcase_add_test(tc, rejects_a_text_beyond_a_megabyte);
    tcase_add_test(tc, stops_reporting_after_many_errors);
    tcase_add_test(tc, rejects_more_names_than_a_deck_may_have);
    tcase_add_test(tc, rejects_files_that_are_no_text_or_too_large);
    tcase_add_test(tc, rejects_more_included_files_than_anyone_needs);
}

TRL_TEST_MAIN("deck", add_tests)
