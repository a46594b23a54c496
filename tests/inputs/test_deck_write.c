/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The deck as used: what trli_deck_write makes of decks. */
// ctest: np=1,2
#include "trl_test.h"

#include "deck_fixture.h"
#include "memory_impl.h"

static void same_text(const trl_text *a, const trl_text *b)
{
    double x, y;
    char *end_x, *end_y;
    ck_assert(!a->chars == !b->chars);
    if (!a->chars || strcmp(a->chars, b->chars) == 0) return;
    x = strtod(a->chars, &end_x);
    y = strtod(b->chars, &end_y);
    ck_assert_msg(!*end_x && !*end_y && x == y, "'%s' became '%s'", a->chars, b->chars);
}

static void same_value(const trl_value *a, const trl_value *b)
{
    ck_assert(a->count == b->count && a->list == b->list);
    for (int i = 0; i < a->count; ++i) same_text(&a->text[i], &b->text[i]);
}

static void same_names(const trl_scope *a, const trl_scope *b)
{
    for (; a && b; a = a->outer, b = b->outer) {
        ck_assert_int_eq(a->n, b->n);
        for (int i = 0; i < a->n; ++i) ck_assert(strcmp(a->name[i], b->name[i]) == 0 && a->value[i] == b->value[i]);
    }
    ck_assert(!a && !b);
}

static void same_sides(const trl_bc_side *a, const trl_bc_side *b)
{
    for (int s = 0; s < 6; ++s) {
        ck_assert_int_eq(a[s].npieces, b[s].npieces);
        for (int i = 0; i < a[s].npieces; ++i) {
            const trl_bc_piece *p = &a[s].piece[i], *q = &b[s].piece[i];
            ck_assert_int_eq(p->kind, q->kind);
            same_text(&p->where, &q->where);
            same_value(&p->value, &q->value);
            same_value(&p->b, &q->b);
            same_value(&p->c, &q->c);
            ck_assert_pstr_eq(p->expression, q->expression);
        }
    }
}

static void same_expressions(const trl_expression_entry *a, const trl_expression_entry *b)
{
    ck_assert_str_eq(a->name, b->name);
    same_names(a->names, b->names);
    same_value(&a->formula, &b->formula);
    same_sides(a->boundary, b->boundary);
    ck_assert(a->location == b->location && a->evaluate == b->evaluate && a->type == b->type);
    ck_assert(a->ncomputes == b->ncomputes && a->ninputs == b->ninputs);
    for (int i = 0; i < a->ncomputes; ++i) ck_assert_str_eq(a->computes[i], b->computes[i]);
    for (int i = 0; i < a->ninputs; ++i) {
        ck_assert_str_eq(a->input_own[i], b->input_own[i]);
        ck_assert_str_eq(a->input_tag[i], b->input_tag[i]);
    }
    for (int i = 0; a->type && a->type->params[i].key; ++i) {
        ck_assert(a->params[i].number == b->params[i].number);
        ck_assert_pstr_eq(a->params[i].text, b->params[i].text);
    }
}

static void same_problem(const trl_problem *a, const trl_problem *b)
{
    ck_assert(memcmp(&a->grid.cells, &b->grid.cells, sizeof a->grid.cells) == 0 && a->grid.dim == b->grid.dim);
    for (int i = 0; i < 3; ++i)
        ck_assert(a->grid.length[i] == b->grid.length[i] && a->grid.origin[i] == b->grid.origin[i] &&
                  a->grid.periodic[i] == b->grid.periodic[i] && a->patches[i] == b->patches[i]);
    same_names(a->parameters, b->parameters);
    ck_assert(a->nexpressions == b->nexpressions && a->nequations == b->nequations && a->noutputs == b->noutputs);
    for (int i = 0; i < a->nexpressions; ++i) same_expressions(&a->expression[i], &b->expression[i]);
    for (int i = 0; i < a->nequations; ++i) {
        const trl_equation_entry *p = &a->equation[i], *q = &b->equation[i];
        ck_assert(strcmp(p->name, q->name) == 0 && p->location == q->location);
        same_names(p->names, q->names);
        same_value(&p->initial, &q->initial);
        same_value(&p->ddt, &q->ddt);
        same_text(&p->mask, &q->mask);
        same_text(&p->exact, &q->exact);
        same_sides(p->boundary, q->boundary);
    }
    ck_assert_int_eq(a->nstencils, b->nstencils);
    for (int i = 0; i < a->nstencils; ++i) {
        const trl_stencil_entry *p = &a->stencil[i], *q = &b->stencil[i];
        ck_assert(strcmp(p->name, q->name) == 0 && p->from == q->from && p->to == q->to && p->npoints == q->npoints);
        for (int k = 0; k < p->npoints; ++k)
            ck_assert(memcmp(p->point[k].offset, q->point[k].offset, sizeof p->point[k].offset) == 0 &&
                      p->point[k].weight == q->point[k].weight);
    }
    for (int i = 0; i < a->noutputs; ++i) ck_assert_str_eq(a->output[i], b->output[i]);
    for (int i = 0; i < a->nseries; ++i) same_text(&a->series[i].value, &b->series[i].value);
    ck_assert(a->time.dt == b->time.dt && a->time.cfl == b->time.cfl && a->time.steps == b->time.steps &&
              a->time.end == b->time.end);
    ck_assert(a->time.dt_min == b->time.dt_min && a->time.dt_max == b->time.dt_max &&
              a->patches_auto == b->patches_auto);
    same_value(&a->time.speed, &b->time.speed);
    same_value(&a->time.diffusivity, &b->time.diffusivity);
    ck_assert(a->time.method == b->time.method && a->compile == b->compile);
    ck_assert(strcmp(a->scheduler, b->scheduler) == 0 && a->fusion == b->fusion);
    ck_assert(a->task_workers == b->task_workers && a->operator_workers == b->operator_workers);
    ck_assert(a->nan_check == b->nan_check && a->fast_math == b->fast_math);
}

/* Write the deck that was read, read that from another folder, and compare; the text of both must be the same too. */
static void check_round_trip(void)
{
    trli_deck *again;
    char *text, *second;
    ck_ok(trli_deck_write(test_ctx, deck, &text));
    trli_deck_request request = {.path = "/some/where/else/deck.yaml", .text = text};
    ck_ok(trli_deck_read(test_ctx, registry, &request, &again));
    same_problem(problem, trli_deck_problem(again));
    const trli_deck_options *o = trli_deck_options_of(again);
    ck_assert(strcmp(o->title, options->title) == 0 && strcmp(o->directory, options->directory) == 0);
    ck_assert(o->threads == options->threads);
    ck_assert(o->devices.target == options->devices.target && o->devices.n == options->devices.n &&
              o->every.steps == options->every.steps && o->every.time == options->every.time);
    ck_assert(o->every.nat == options->every.nat && o->series_every.log == options->series_every.log);
    for (int i = 0; i < o->every.nat; ++i) ck_assert(o->every.at[i] == options->every.at[i]);
    ck_assert(o->has_checkpoint == options->has_checkpoint && o->checkpoint_keep == options->checkpoint_keep);
    ck_ok(trli_deck_write(test_ctx, again, &second));
    ck_assert_str_eq(text, second);
    trli_free(text);
    trli_free(second);
    trli_deck_destroy(&again);
}

START_TEST(the_deck_as_used_reads_back_to_the_same_problem)
{
    ck_ok(read_file(GOOD "example.yaml"));
    check_round_trip();
    ck_ok(read_file(GOOD "minimal.yaml"));
    check_round_trip();
    ck_ok(read_text(HEAD "output: {every: {at: [0, 5e-2, 0.1]}, series: {every: {log: 4}, values: {a: t}}}\n" TAIL));
    ck_assert_int_eq(options->every.nat, 3);
    ck_assert(options->every.at[1] == 0.05 && options->series_every.log == 4);
    check_round_trip();
    ck_ok(read_text(HEAD "parameters: {n: 1, y1: 1e-7, \"off{n}\": 0.1, big: 123456789012345678}\n"
                         "title: \"q \\\" b \\\\ tab \\t nl \\n nel \\N ls \\L bom \\uFEFF \xC3\xA9 c1 \\x80 nbsp \\_ "
                         "odd \\uFFFE\"\n" TAIL));
    check_round_trip();
}
END_TEST

START_TEST(the_deck_as_used_has_every_default_written_out)
{
    static const char *const lines[] = {
        "\n  length: [1, 1]\n",   "\n    location: cell\n",       "\n  fusion: full\n",
        "\n  fast_math: false\n", "\n  method: auto\n",           "\n  dt: 0.0001\n",
        "\n  cells: [16, 10]\n",  "\n  fields: [\"T\", \"C\"]\n", "\n    initial: [0, 1.0e-05]\n"};
    char *text;
    ck_ok(read_file(GOOD "minimal.yaml"));
    ck_ok(trli_deck_write(test_ctx, deck, &text));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i)
        ck_assert_msg(strstr(text, lines[i]), "no '%s' in:\n%s", lines[i], text);
    trli_free(text);
}
END_TEST

START_TEST(the_deck_as_used_names_the_libraries_that_were_found)
{
    static const char *const folder[] = {"/nowhere", TRL_TEST_PLUGIN_DIR};
    char *text;
    ck_ok(read_request(&(trli_deck_request){
        .path = "test.yaml", .text = "plugins: [two_types]\n" HEAD TAIL, .nfolders = 2, .plugin_folder = folder}));
    ck_ok(trli_deck_write(test_ctx, deck, &text));
    ck_assert_msg(strstr(text, "\nplugins: [\"/") && strstr(text, "/two_types.so\"]\n"), "%s", text);
    ck_ok(read_text(text));
    trli_free(text);
}
END_TEST

/* Another reader of YAML, where there is one, sees numbers as numbers and texts as texts. */
START_TEST(the_deck_as_used_means_the_same_to_python)
{
    char *text;
    if (trl_context_ranks(test_ctx) > 1 || system("python3 -c 'import yaml' 2>/dev/null") != 0) return;
    ck_ok(read_file(GOOD "example.yaml"));
    ck_ok(trli_deck_write(test_ctx, deck, &text));
    write_file("test_deck_used.yaml", text, strlen(text));
    trli_free(text);
    ck_assert_int_eq(system("python3 -c 'import yaml\n"
                            "d = yaml.safe_load(open(\"test_deck_used.yaml\"))\n"
                            "p = d[\"expressions\"][\"kinetics\"][\"parameters\"]\n"
                            "assert d[\"parameters\"][\"n\"] == 16 and d[\"time\"][\"dt\"][\"min\"] == 1e-9, d\n"
                            "assert p[\"label\"] == \"010\" and p[\"A\"] == 1e5 and p[\"reversible\"] is False, p\n"
                            "assert d[\"run\"][\"nan_check\"] is True and d[\"grid\"][\"periodic\"] == [False] * 3\n"
                            "assert d[\"equations\"][\"T\"][\"boundary\"][\"z-\"] == {\"outflow\": True}\n"
                            "assert d[\"equations\"][\"phi{i}\"][\"for\"] == {\"i\": \"1..n\"}\n'"),
                     0);
    remove_file("test_deck_used.yaml");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_registry, close_all);
    tcase_add_test(tc, the_deck_as_used_reads_back_to_the_same_problem);
    tcase_add_test(tc, the_deck_as_used_has_every_default_written_out);
    tcase_add_test(tc, the_deck_as_used_names_the_libraries_that_were_found);
    tcase_add_test(tc, the_deck_as_used_means_the_same_to_python);
}

TRL_TEST_MAIN("deck_write", add_tests)
