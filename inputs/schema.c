/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <trl_grid.h>
#include <trl_policy.h>
#include <trl_problem.h>

#include "schema_impl.h"

#define TEXT TRLI_AS_TEXT
#define FORMULA TRLI_AS_FORMULA
#define NUMBER TRLI_AS_NUMBER
#define INTEGER TRLI_AS_INTEGER
#define BOOLEAN TRLI_AS_BOOLEAN
#define WORD TRLI_AS_WORD
#define LIST TRLI_AS_LIST
#define MAPPING TRLI_AS_MAPPING
#define PIECES TRLI_AS_PIECES
#define LISTS TRLI_AS_LISTS
#define LIST_OF(forms) (LIST | (forms))
#define ONLY_LIST TRLI_ONLY_LIST

#define LOCATION_WORD(name, bits, text) text " "
#define LOCATIONS TRL_LOCATION_LIST(LOCATION_WORD)

/* The words of a list X(NAME, name, doc), in its order, and what each means. */
#define ENUM_WORD(NAME, name, doc) #name " "
#define ENUM_MEANING(NAME, name, doc) "; " #name ": " doc
#define PASS_KEY(NAME, name, bit, text) {"run.passes." #name, BOOLEAN, 0, "true", .doc = (text)},
#define POLICY_WORD(name, runs, doc) #name " "
#define POLICY_MEANING(name, runs, doc) "; " #name ": " doc

/* A user can ask for no more than this: the largest whole number that every double holds. */
#define MANY 9007199254740991.0
#define HUGE_NUMBER 1.7976931348623157e308
#define COUNT(first) .min = (first), .max = MANY
#define POSITIVE .min = 0, .max = HUGE_NUMBER

#define FIRST_SIDE "equations.*.boundary.x-"
#define SIDE(name) \
    "equations.*.boundary." name, MAPPING | PIECES, TRLI_WHOLE, .like = FIRST_SIDE, .doc = "the " name " side"

/* Keys stand behind the key that they belong to. */
static const trli_key keys[] = {
    {"", MAPPING, 0, .doc = "the deck"},
    {"trellis", WORD, TRLI_REQUIRED, .words = "1", .doc = "version of the deck language"},
    {"title", TEXT, 0, "", .doc = "what the deck is about"},
    {"include", LIST_OF(TEXT), 0,
     .doc = "decks to start from, relative to this file; later ones win, this deck over all"},
    {"plugins", LIST_OF(TEXT), ONLY_LIST, "[]",
     .doc = "libraries with expression types: paths, or names searched in the deck's folder, --plugin-path and the "
            "installation"},

    {"grid", MAPPING, TRLI_REQUIRED, .doc = "the uniform grid"},
    {"grid.cells", LIST_OF(INTEGER), TRLI_REQUIRED | ONLY_LIST, COUNT(1), .doc = "cells along 1 to 3 axes"},
    {"grid.length", LIST_OF(NUMBER), ONLY_LIST | TRLI_PER_AXIS | TRLI_ABOVE, "1", POSITIVE,
     .doc = "length of the domain"},
    {"grid.origin", LIST_OF(NUMBER), ONLY_LIST | TRLI_PER_AXIS, "0", .doc = "coordinates of the first corner"},
    {"grid.periodic", LIST_OF(BOOLEAN), TRLI_PER_AXIS, "false", .doc = "which axes are periodic; one value is for all"},
    {"grid.patches", WORD | LIST_OF(INTEGER), ONLY_LIST | TRLI_PER_AXIS, "auto", COUNT(1), .words = "auto",
     .doc = "patches along each axis over the whole problem; auto: one per rank, or several where that costs clearly "
            "less"},

    {"parameters", MAPPING, 0, "{}", .doc = "numbers that formulas may use"},
    {"parameters.*", FORMULA | MAPPING, 0,
     .doc = "a number or a formula of parameters and pi; or a family, as a mapping"},
    {"parameters.*.for", MAPPING, TRLI_REQUIRED,
     .doc = "indices of a family; several make their product, the last one fastest"},
    {"parameters.*.for.*", TEXT, 0, .doc = "range of an index: a..b, inclusive, of whole numbers or parameters"},
    {"parameters.*.values", LIST_OF(FORMULA), TRLI_REQUIRED | ONLY_LIST, .doc = "one value per member"},
    {"parameters.*.value", FORMULA, TRLI_LATER, .doc = "the value of a parameter with a unit"},
    {"parameters.*.unit", TEXT, TRLI_LATER, .doc = "the unit of a parameter"},

    {"expressions", MAPPING, 0, "{}", .doc = "named quantities"},
    {"expressions.*", LIST_OF(FORMULA) | MAPPING, TRLI_SHORT,
     .doc = "a formula, a list of them (a vector), or the mapping below"},
    {"expressions.*.for", MAPPING, 0, .like = "parameters.*.for", .doc = "indices of a family"},
    {"expressions.*.formula", LIST_OF(FORMULA), TRLI_CHOICE, .doc = "what is computed"},
    {"expressions.*.type", TEXT, TRLI_CHOICE, .doc = "an expression type, built in or from a plugin (trellis types)"},
    {"expressions.*.parameters", MAPPING, 0, .doc = "numbers local to a formula, or parameters of the type"},
    {"expressions.*.parameters.*", TEXT | FORMULA, 0,
     .doc = "a number, a formula of parameters, or what the type's table says"},
    {"expressions.*.location", WORD, 0, .words = LOCATIONS, .doc = "where a formula is computed; default: inferred"},
    {"expressions.*.evaluate", WORD, 0, "stage", .words = TRL_EVALUATE_LIST(ENUM_WORD),
     .doc = "when it is computed" TRL_EVALUATE_LIST(ENUM_MEANING)},
    {"expressions.*.boundary", MAPPING, 0, .like = "equations.*.boundary",
     .doc = "values outside the domain, as for equations"},
    {"expressions.*.computes", LIST_OF(TEXT), ONLY_LIST, .doc = "names for what the type computes, in its order"},
    {"expressions.*.inputs", MAPPING, 0, .doc = "names for what the type requires, by its own names"},
    {"expressions.*.inputs.*", TEXT, 0, .doc = "the quantity to use"},
    {"expressions.*.device", WORD, 0, "auto", .words = TRL_TARGET_LIST(ENUM_WORD),
     .doc = "what it runs on" TRL_TARGET_LIST(ENUM_MEANING)},

    {"equations", MAPPING, 0, "{}", .doc = "what advances in time, or is solved for"},
    {"equations.*", MAPPING, 0, .doc = "an equation, or a family of them"},
    {"equations.*.for", MAPPING, 0, .like = "parameters.*.for", .doc = "indices of a family"},
    {"equations.*.location", WORD, 0, "cell", .words = LOCATIONS, .doc = "where its values sit on the unit cell"},
    {"equations.*.initial", LIST_OF(FORMULA), TRLI_REQUIRED, .unless = "solve",
     .doc = "the value at the start; with solve: the first guess, default: 0"},
    {"equations.*.ddt", LIST_OF(FORMULA) | MAPPING, TRLI_CHOICE | TRLI_WHOLE,
     .doc = "the time derivative; as a mapping, its terms by how beuler, ark3 and ark4 advance them"},
    {"equations.*.ddt.explicit", FORMULA, 0, .doc = "terms that are not stiff; default: 0"},
    {"equations.*.ddt.implicit", FORMULA, TRLI_REQUIRED,
     .doc = "stiff terms, for which a system is solved in each stage"},
    {"equations.*.ddt2", LIST_OF(FORMULA), TRLI_CHOICE | TRLI_WHOLE,
     .doc = "the second time derivative, of an equation w with rate `w_t`"},
    {"equations.*.initial_rate", LIST_OF(FORMULA), 0, .doc = "with ddt2: the rate at the start; default: 0"},
    {"equations.*.solve", FORMULA, TRLI_CHOICE,
     .doc = "`A = B`, or `A` for `A = 0`: an equation without a time derivative, which holds wherever its unknown is "
            "read"},
    {"equations.*.solver", TEXT, 0, "auto",
     .doc = "how that, or the systems of implicit methods, are solved: a name of `solvers`, or auto"},
    {"equations.*.boundary", MAPPING, 0, .doc = "conditions on the sides of the domain that are not periodic"},
    {"equations.*.boundary.x-", MAPPING | PIECES, TRLI_WHOLE,
     .doc = "one condition, or a list of which the first that holds is used"},
    {"equations.*.boundary.x-.where", FORMULA, 0, .doc = "where the condition holds; default: everywhere"},
    {"equations.*.boundary.x-.dirichlet", LIST_OF(FORMULA), TRLI_CHOICE, .doc = "the value on the side"},
    {"equations.*.boundary.x-.neumann", LIST_OF(FORMULA), TRLI_CHOICE,
     .doc = "the derivative along the outward normal"},
    {"equations.*.boundary.x-.robin", MAPPING, TRLI_CHOICE, .doc = "a*f + b*df/dn = c"},
    {"equations.*.boundary.x-.robin.a", LIST_OF(FORMULA), TRLI_REQUIRED, .doc = "factor of the value"},
    {"equations.*.boundary.x-.robin.b", LIST_OF(FORMULA), TRLI_REQUIRED, .doc = "factor of the outward derivative"},
    {"equations.*.boundary.x-.robin.c", LIST_OF(FORMULA), TRLI_REQUIRED, .doc = "the right-hand side"},
    {"equations.*.boundary.x-.outflow", WORD, TRLI_CHOICE, .words = "true",
     .doc = "the nearest interior value continues"},
    {"equations.*.boundary.x-.expression", TEXT, TRLI_CHOICE, .doc = "an expression attached as modifier"},
    {SIDE("x+")},
    {SIDE("y-")},
    {SIDE("y+")},
    {SIDE("z-")},
    {SIDE("z+")},
    {"equations.*.mask", FORMULA, 0,
     .doc = "where 0 the initial value stays, and norms and checks leave the point out"},
    {"equations.*.exact", FORMULA, 0, .doc = "the exact solution, for error norms"},

    {"stencils", MAPPING, 0, .doc = "linear operators of the deck's own, called by their names in formulas"},
    {"stencils.*", MAPPING, 0, .doc = "sums of weighted points"},
    {"stencils.*.to", WORD, TRLI_REQUIRED, .words = LOCATIONS, .doc = "where its result sits on the unit cell"},
    {"stencils.*.from", WORD, 0, .words = LOCATIONS, .doc = "where its argument sits; default: as `to`"},
    {"stencils.*.points", LISTS, TRLI_REQUIRED | ONLY_LIST,
     .doc = "`[[i, j, k], weight]` for each: offsets from -8 to 8 along the axes, in points of the argument (face i "
            "lies between "
            "cells i-1 and i), and a number or formula of parameters"},
    {"sensitivity", MAPPING, 0, .doc = "derivatives of equations by parameters, as equations of their own"},
    {"sensitivity.*", LIST_OF(TEXT), ONLY_LIST,
     .doc = "parameters: `T: [k]` adds `T_k`, the derivative of equation T by k, and those of equations that T needs"},

    {"solvers", MAPPING, 0, "{}", .doc = "how equations with `solve` are solved"},
    {"solvers.*", MAPPING, 0, .doc = "a solver that equations name"},
    {"solvers.*.method", WORD, 0, "auto", .words = TRL_SOLVE_METHOD_LIST(ENUM_WORD),
     .doc = "the method" TRL_SOLVE_METHOD_LIST(ENUM_MEANING)},
    {"solvers.*.preconditioner", WORD, 0, "auto", .words = TRL_PRECONDITIONER_LIST(ENUM_WORD),
     .doc = "what it is helped by" TRL_PRECONDITIONER_LIST(ENUM_MEANING)},
    {"solvers.*.tolerance", NUMBER, TRLI_ABOVE, "1e-8", .min = 0, .max = 1,
     .doc = "the residual wanted, norm(A - B), relative to that of zero"},
    {"solvers.*.absolute", NUMBER, 0, "0", POSITIVE, .doc = "a residual that is small enough in any case"},
    {"solvers.*.iterations", INTEGER, 0, "200", .min = 1, .max = 1000000, .doc = "of a linear system, at most"},
    {"solvers.*.cycle", WORD, 0, "auto", .words = TRL_SOLVE_CYCLE_LIST(ENUM_WORD),
     .doc = "of multigrid, how often it has the coarser grids" TRL_SOLVE_CYCLE_LIST(ENUM_MEANING)},
    {"solvers.*.smoother", WORD, 0, "auto", .words = TRL_SMOOTHER_LIST(ENUM_WORD),
     .doc = "of multigrid, what damps errors on each grid" TRL_SMOOTHER_LIST(ENUM_MEANING)},
    {"solvers.*.replicate", INTEGER, 0, "10000", .min = 0, .max = 1000000000,
     .doc = "of multigrid: every rank has all of a coarser grid that gives it fewer points of others than this; larger "
            "grids are cut like the first one, or patches that get thin are merged"},
    {"solvers.*.restart", INTEGER, 0, "30", .min = 1, .max = 1000, .doc = "of gmres: iterations between restarts"},
    {"solvers.*.single_reduction", BOOLEAN, 0, "false",
     .doc = "of cg and bicgstab: all sums of an iteration are one message, for more vectors and sums: for many ranks "
            "with few points each"},
    {"solvers.*.newton", MAPPING, 0, "{}", .doc = "Newton's method, of nonlinear equations"},
    {"solvers.*.newton.tolerance", NUMBER, TRLI_ABOVE, "1e-8", .min = 0, .max = 1,
     .doc = "the residual wanted, relative to that of zero"},
    {"solvers.*.newton.iterations", INTEGER, 0, "20", .min = 1, .max = 1000000, .doc = "at most"},

    {"incompressible", MAPPING, 0,
     .doc = "the velocity's divergence stays 0: a pressure, whose gradient no `ddt` has, projects it after each stage"},
    {"incompressible.velocity", LIST_OF(TEXT), TRLI_REQUIRED | ONLY_LIST,
     .doc = "equations, one per axis, at xface, yface and zface"},
    {"incompressible.pressure", TEXT, TRLI_REQUIRED, .doc = "the name of the pressure, which becomes an equation"},
    {"incompressible.density", FORMULA, 0, "1", .doc = "the mass per volume: velocities change by grad(p)/density"},
    {"incompressible.solver", TEXT, 0, "auto", .doc = "how the pressure is solved for: a name of `solvers`, or auto"},
    {"incompressible.initial", LIST_OF(FORMULA), 0, "0",
     .doc = "its first guess; where no side gives the pressure, it keeps this mean"},
    {"incompressible.boundary", MAPPING, 0, .like = "equations.*.boundary",
     .doc = "the pressure's conditions on sides; default: neumann 0 where the velocity through the side is given, else "
            "dirichlet 0"},
    {"incompressible.exact", FORMULA, 0, .doc = "the exact pressure, for error norms"},

    {"time", MAPPING, 0,
     .doc = "how time advances; at least one of steps and end is needed; a deck whose equations are all solved may go "
            "without"},
    {"time.method", WORD | MAPPING, 0, "auto", .words = TRL_METHOD_LIST(ENUM_WORD) "auto",
     .doc = "the integrator; auto: leapfrog if all equations have ddt2, else ssprk3" TRL_METHOD_LIST(ENUM_MEANING)},
    {"time.method.name", WORD, TRLI_REQUIRED, .words = TRL_METHOD_LIST(ENUM_WORD), .doc = "the integrator"},
    {"time.method.tolerance", NUMBER | MAPPING, TRLI_ABOVE, POSITIVE,
     .doc = "as a number, the relative one; what is tolerated of the error of a step by bs3, dp5 or an implicit "
            "method, whose dt follows from it: "
            "absolute + relative "
            "times the larger magnitude before and after the step, as the root mean square over all points"},
    {"time.method.tolerance.relative", NUMBER, 0, "1e-6", POSITIVE, .doc = "relative to each value"},
    {"time.method.tolerance.absolute", NUMBER, TRLI_ABOVE, "1e-9", POSITIVE, .doc = "in the units of the equations"},
    {"time.method.dt", MAPPING, 0, .doc = "steps whose dt follows from the error"},
    {"time.method.dt.initial", NUMBER, TRLI_ABOVE, POSITIVE,
     .doc = "the first step to try; default: max, at most a thousandth of the way to end"},
    {"time.method.dt.min", NUMBER, TRLI_ABOVE, POSITIVE, .doc = "that a smaller step would be needed is an error"},
    {"time.method.dt.max", NUMBER, TRLI_ABOVE, POSITIVE, .doc = "the largest step"},
    {"time.dt", NUMBER | MAPPING, TRLI_WHOLE | TRLI_ABOVE, POSITIVE,
     .doc = "the step, or how it follows from stability; without it, bs3, dp5 and implicit methods other than cn "
            "choose it by the error"},
    {"time.dt.cfl", NUMBER, TRLI_REQUIRED | TRLI_ABOVE, POSITIVE, .doc = "the factor C of the stability bound"},
    {"time.dt.speed", LIST_OF(FORMULA), 0,
     .doc = "speed of transport, one formula or one per axis; default: found in the equations"},
    {"time.dt.diffusivity", FORMULA, 0, .doc = "default: found in the equations"},
    {"time.dt.min", NUMBER, TRLI_ABOVE, POSITIVE, .doc = "a smaller step is an error"},
    {"time.dt.max", NUMBER, TRLI_ABOVE, POSITIVE, .doc = "the largest step"},
    {"time.steps", INTEGER, 0, COUNT(0), .doc = "number of steps from the start of the problem"},
    {"time.end", NUMBER, 0, .doc = "time to stop at, exactly"},
    {"time.start", NUMBER, 0, "0", .doc = "time of the initial values"},

    {"time.stop", MAPPING, 0, .doc = "what else ends the run, as a run that is done"},
    {"time.stop.when", FORMULA, TRLI_REQUIRED,
     .doc = "ends it after a step where it holds: a formula of values of the series by their names, t and step, or of "
            "anything that gives one number, such as `norm(ddt(T)) < 1e-8`"},
    {"time.stop.every", MAPPING, TRLI_WHOLE, .like = "output.every",
     .doc = "when that is looked at; default: after each step"},

    {"output", MAPPING, 0, "{}", .doc = "what is written; always at the start and the end"},
    {"output.directory", TEXT, 0, "out", .doc = "folder, relative to the working directory"},
    {"output.fields", LIST_OF(TEXT), ONLY_LIST, .doc = "names of fields; [] for none; default: the equations"},
    {"output.every", MAPPING, TRLI_WHOLE, .doc = "when fields are written too"},
    {"output.every.steps", INTEGER, TRLI_CHOICE, COUNT(1), .doc = "every so many steps"},
    {"output.every.time", NUMBER, TRLI_CHOICE | TRLI_ABOVE, POSITIVE,
     .doc = "after the first step at or past each multiple of a time; at it where dt follows from errors"},
    {"output.every.at", LIST_OF(NUMBER), TRLI_CHOICE | ONLY_LIST,
     .doc = "after the first step at or past each of these times"},
    {"output.every.log", INTEGER, TRLI_CHOICE, .min = 1, .max = 1000,
     .doc = "so many times per decade: after the first step at or past each `10^(k/log)`, k a whole number"},
    {"output.compression", WORD | INTEGER, 0, "off", .min = 1, .max = 9, .words = "off",
     .doc = "off, or a deflate level (with shuffle) for the files in fields/"},
    {"output.beside_steps", BOOLEAN, 0, "true",
     .doc = "write files of fields and checkpoints while steps go on, from a copy"},
    {"output.keep", LIST_OF(TEXT), ONLY_LIST,
     .doc = "names of fields that are evaluated after each step, written or not, for drivers that read them then"},
    {"output.receivers", MAPPING, 0,
     .doc = "points from a file at which values are written over time, to receivers.nc"},
    {"output.receivers.path", TEXT, TRLI_REQUIRED, .doc = "an HDF5 or netCDF-4 file, relative to the deck"},
    {"output.receivers.dataset", TEXT, TRLI_REQUIRED,
     .doc = "the dataset in it: a row for each point, with one coordinate per axis of the grid"},
    {"output.receivers.values", LIST_OF(TEXT), TRLI_REQUIRED | ONLY_LIST,
     .doc = "names of what is interpolated there, as `probe` does"},
    {"output.receivers.every", MAPPING, TRLI_WHOLE, .like = "output.every", .doc = "when; default: after each step"},
    {"output.series", MAPPING, 0, .doc = "numbers over time, in series.csv"},
    {"output.series.every", MAPPING, TRLI_WHOLE, .like = "output.every", .doc = "when a line is written too"},
    {"output.series.values", MAPPING, 0, .doc = "the columns; there are some, or `spectra`, `profiles` or `solvers`"},
    {"output.series.values.*", FORMULA, 0,
     .doc = "a formula that gives one number; `\"rec{1..3}\": \"probe(p, [x{i}, 0.1])\"` is a column for each number i "
            "of the range (j and k those of a second and third one)"},
    {"output.series.spectra", MAPPING, 0,
     .doc = "columns NAME_0, NAME_1, .. of half of the square of fields by wave number, in units of 2 pi/length"},
    {"output.series.spectra.*", MAPPING, 0, .doc = "a spectrum"},
    {"output.series.spectra.*.of", LIST_OF(TEXT), TRLI_REQUIRED,
     .doc = "equations or fields that are written, whose energies are added: `[u, v, w]`"},
    {"output.series.spectra.*.along", WORD, 0, "all", .words = "all x y z",
     .doc = "an axis, which is periodic; all: by the size of the wave vector, where all axes are"},
    {"output.series.profiles", MAPPING, 0,
     .doc = "columns NAME_0, NAME_1, .. of means over all axes but one, at the points along that one"},
    {"output.series.profiles.*", MAPPING, 0, .doc = "a profile"},
    {"output.series.profiles.*.of", FORMULA, TRLI_REQUIRED, .doc = "a formula: `u*v`"},
    {"output.series.profiles.*.along", WORD, TRLI_REQUIRED, .words = "x y z", .doc = "the axis that is left"},
    {"output.series.means", MAPPING, 0, .doc = "means of all columns over time, in means.csv"},
    {"output.series.means.from", NUMBER, TRLI_REQUIRED, .doc = "the time from which on"},
    {"output.series.solvers", BOOLEAN, 0, "false",
     .doc =
         "columns `order` of the method, `rejected` steps, and of each system `NAME:iterations`, so far in this run"},
    {"output.checkpoint", MAPPING, 0, .doc = "state to restart from"},
    {"output.checkpoint.every", MAPPING, TRLI_WHOLE, .like = "output.every", .doc = "when; the end is always one"},
    {"output.checkpoint.keep", INTEGER, 0, "2", COUNT(1), .doc = "how many are kept"},

    {"numerics", MAPPING, 0, "{}", .doc = "what may change the numbers"},
    {"numerics.fast_math", BOOLEAN, 0, "false",
     .doc = "compiled kernels may round a product and a sum together: bits may differ between runs and machines"},

    {"run", MAPPING, 0, "{}", .doc = "how a problem is run; never changes the numbers"},
    {"run.scheduler", WORD | TRLI_AS_LIBRARY, 0, "hybrid", .words = TRL_POLICY_LIST(POLICY_WORD),
     .doc = "in which order and by whom tasks are run" TRL_POLICY_LIST(
         POLICY_MEANING) "; or a policy plugin, relative to the deck"},
    {"run.threads", WORD | INTEGER | MAPPING, TRLI_WHOLE, "auto", .min = 1, .max = 65536, .words = "auto",
     .doc = "workers of a rank: up to one per core, as many as are fastest; how many; or how many prefer which work; "
            "what is not given adapts"},
    {"run.threads.tasks", INTEGER, TRLI_REQUIRED, .min = 0, .max = 65536, .doc = "workers that prefer tasks"},
    {"run.threads.operators", INTEGER, TRLI_REQUIRED, .min = 0, .max = 65536,
     .doc = "workers that prefer chunks of the loops inside tasks"},
    {"run.memory", WORD | NUMBER, TRLI_ABOVE, "auto", POSITIVE, .words = "auto",
     .doc = "bytes that a rank may allocate; auto: what the node has, or a cgroup grants, when they are asked for"},
    {"run.devices", WORD | LIST_OF(INTEGER), ONLY_LIST, "auto", .min = 0, .max = 65535,
     .words = TRL_TARGET_LIST(ENUM_WORD), .doc = "a kind of device, or numbers of GPUs" TRL_TARGET_LIST(ENUM_MEANING)},
    {"run.placement", TEXT, 0, "auto",
     .doc = "which executor does which task of a step, where there are devices: auto, finish_time, round_robin, "
            "min_load, devices, random:SEED, or a file, with a `.` or `/` in its name, that `trellis plan DECK "
            "--placement FILE` wrote, relative to the deck"},
    {"run.owners", TEXT, 0, "auto",
     .doc = "which rank has which patches, where there are more patches than ranks: auto: by blocks or the curve, what "
            "costs the ranks less" TRL_OWNERS_LIST(ENUM_MEANING) ", as random:SEED"},
    {"run.shares", WORD | LIST_OF(NUMBER), ONLY_LIST | TRLI_ABOVE, "auto", POSITIVE, .words = "auto even",
     .doc = "of the cells, what each rank gets: auto: alike at first, then as many as it is seen to compute while the "
            "others do; even: alike; or a number for each rank, beside those of the others"},
    {"run.prefetch", BOOLEAN, 0, "true",
     .doc =
         "where there are devices, copy values as soon as they are there; false: when a task waits for nothing else, "
         "to see what prefetch is worth"},
    {"run.fusion", WORD, 0, "full", .words = TRL_FUSION_LIST(ENUM_WORD),
     .doc = "what one kernel computes" TRL_FUSION_LIST(ENUM_MEANING)},
    {"run.balance", WORD | NUMBER, TRLI_ABOVE, "auto", POSITIVE, .words = "auto",
     .doc = "additions in the time of one byte of memory: the larger, the more is computed again instead of stored; "
            "auto: measured"},
    {"run.passes", MAPPING, 0, "{}",
     .doc = "what saves time or memory and can be left out, to see what it is worth; the numbers do not change"},
    TRL_PASS_LIST(PASS_KEY){"run.compile", WORD, 0, "auto", .words = TRL_COMPILE_LIST(ENUM_WORD),
                            .doc = "when kernels are compiled instead of interpreted" TRL_COMPILE_LIST(ENUM_MEANING)},
    {"run.time_blocking", WORD | INTEGER, 0, "auto", .min = 1, .max = 64, .words = "auto",
     .doc = "steps in one pass over memory: what is fastest, or how many at most; 1: one at a time"},
    {"run.nan_check", BOOLEAN, 0, "true", .doc = "stop when a value of the solution is not finite"},

    {"particles", MAPPING, TRLI_RESERVED, .doc = "kept for later versions"},
    {"units", MAPPING, TRLI_RESERVED, .doc = "kept for later versions"},
    {"refinement", MAPPING, TRLI_RESERVED, .doc = "kept for later versions"},
    {"mapping", MAPPING, TRLI_RESERVED, .doc = "kept for later versions"},
};

static const trli_key *const keys_end = keys + sizeof keys / sizeof *keys;

const trli_key *trli_schema_keys(int *n)
{
    *n = (int)(keys_end - keys);
    return keys;
}

const trli_key *trli_schema_root(void)
{
    return keys;
}

const char *trli_schema_name(const trli_key *key)
{
    const char *dot = strrchr(key->path, '.');
    return dot ? dot + 1 : key->path;
}

/* Follow `like` to the key in whose path the children are written; the children of several may be chained. */
static const trli_key *owner_of_children(const trli_key *parent)
{
    while (parent->like) {
        const char *path = parent->like;
        for (parent = keys; strcmp(parent->path, path) != 0;) ++parent;
    }
    return parent;
}

/* The part of a path behind a parent's path if it is one name, else NULL. */
static const char *name_below(const trli_key *parent, const trli_key *key)
{
    size_t length = strlen(parent->path);
    if (strncmp(key->path, parent->path, length) != 0 || !*key->path) return NULL;
    const char *name = key->path + length;
    if (length && *name++ != '.') return NULL;
    return *name && !strchr(name, '.') ? name : NULL;
}

/* Children stand behind their parent and before the next key that is not below it. */
static const trli_key *next_below(const trli_key *parent, const trli_key *key)
{
    size_t length = strlen(parent->path);
    for (++key; key < keys_end && strncmp(key->path, parent->path, length) == 0; ++key)
        if (name_below(parent, key)) return key;
    return NULL;
}

const trli_key *trli_schema_child(const trli_key *parent, const char *name)
{
    const trli_key *any = NULL;
    if (!parent) return NULL;
    parent = owner_of_children(parent);
    for (const trli_key *key = next_below(parent, parent); key; key = next_below(parent, key)) {
        const char *known = trli_schema_name(key);
        if (strcmp(known, "*") == 0)
            any = key;
        else if (strcmp(known, name) == 0)
            return key;
    }
    return any;
}

const trli_key *trli_schema_next(const trli_key *parent, const trli_key *last)
{
    parent = owner_of_children(parent);
    const trli_key *key = next_below(parent, last ? last : parent);
    return key && strcmp(trli_schema_name(key), "*") == 0 ? next_below(parent, key) : key;
}
