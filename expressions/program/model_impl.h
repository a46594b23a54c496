/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The model: symbols, fields, scalars and the programs compiled from them. What the graph compiler's files share. */
#ifndef TRLI_MODEL_IMPL_H
#define TRLI_MODEL_IMPL_H

#include <stdio.h>

#include <trl_entry.h>
#include <trl_field_manager.h>
#include <trl_graph.h>

#include "balance_impl.h"
#include "interpreter_impl.h"
#include "names_table_impl.h"
#include "native_impl.h"

typedef struct trli_model trli_model;
typedef struct trli_program trli_program;
typedef struct trli_instance trli_instance;

/* ---- symbols ---- */

typedef enum trli_symbol_kind {
    TRLI_SYMBOL_VARIABLE, /* an equation's unknown: supplied from outside, per instance */
    TRLI_SYMBOL_FORMULA,  /* an entry with a formula */
    TRLI_SYMBOL_OUTPUT    /* a tag computed by a plugin entry */
} trli_symbol_kind;

typedef struct trli_symbol {
    const char *name;
    trli_symbol_kind kind;
    int index;  /* variable, or entry */
    int output; /* OUTPUT: which of the entry's tags */
    trl_place place;
} trli_symbol;

/* A variable of the problem, as the solver declares it. */
typedef struct trli_variable {
    const char *name;
    trl_location location;
    const trl_scope *names;
    const trl_bc_side *boundary; /* [6] */
    trl_formula *initial, *mask; /* mask: NULL: none */
    const trl_formula *ddt;      /* shown in the dependency graph; lowered by the solver */
    trl_place place;
    int direction; /* 0: an unknown of its own; else the tangent along a direction */
    int of;        /* of this variable; it has that one's boundary, names and mask, and no formulas */
} trli_variable;

/* A direction of differentiation, numbered from 1: what changes is a parameter, or the variables that have a tangent along it, or both. */
typedef struct trli_direction {
    const char *name; /* the parameter's, or one for messages */
    int scalar;       /* that holds the parameter, or -1 */
} trli_direction;

/* A tag of a plugin entry, as its advertise_dependents declared it. */
typedef struct trli_advertised {
    const char *own_name; /* the type's name */
    const char *tag;      /* the deck's name */
    trl_location location;
    trl_offsets reach; /* required tags: offsets read */
    int symbol;        /* required tags: resolved */
    int component;     /* required tags: of a vector, or -1 */
} trli_advertised;

/* An entry of `expressions`, parsed or set up. */
typedef struct trli_entry {
    const trl_expression_entry *deck;
    int nformulas; /* components; 0: operand */
    trl_formula **formula;
    void *state;
    bool state_ready;
    int ncomputed, nrequired;
    trli_advertised *computed, *required;
    bool has_boundary;
    bool used;
} trli_entry;

/* ---- fields ---- */

typedef struct trli_boundary_source { /* whose conditions fill a field's ghosts */
    const trl_bc_side *side;          /* [6], or NULL */
    const trl_scope *names;
    const char *name; /* of the equation or expression, for messages */
    trl_place place;
} trli_boundary_source;

typedef struct trli_field {
    const char *name;
    trl_location location;
    bool persistent; /* has a slot of its own */
    bool exchanged;  /* ghosts come from owners and boundary conditions, not from computing on a larger box */
    trli_boundary_source boundary;
    int8_t fixed_planes[6]; /* planes at a side that no kernel computes: a Dirichlet condition sets them */
    int slot;
    trl_lidx ghost_lo[3], ghost_hi[3]; /* allocated */
    const char
        *why; /* of an intermediate: the reason why it is stored, instead of being a part of its readers' kernels */
    int direction, primal; /* direction not 0: its conditions are the derivatives of those of field primal */
} trli_field;

/* ---- programs ---- */

/* What readers need of a field beyond its owned points. inner: at sides shared with other patches (and periodic ones);
 * side: at the domain's sides. */
typedef struct trli_demand {
    bool live;   /* read at all, or a root */
    bool beyond; /* side is set */
    trl_footprint inner;
    trl_offsets side;
    trl_footprint corner; /* the same as parts: which ghosts beyond several sides are read together */
    bool further[3];      /* beyond the plus side of an axis some reader has points farther out than beyond a patch */
} trli_demand;

typedef enum trli_op_kind {
    TRLI_STEP_KERNEL,
    TRLI_STEP_PLUGIN,
    TRLI_STEP_FILL,
    TRLI_STEP_PLANES,
    TRLI_STEP_REDUCE,
    TRLI_STEP_SCALAR
} trli_step_kind;

typedef enum trli_reduce_kind { TRLI_REDUCE_SUM, TRLI_REDUCE_MIN, TRLI_REDUCE_MAX, TRLI_REDUCE_POINT } trli_reduce_kind;

/* A kernel on a slab of ghost layers or a plane of points: the condition of one layer at one side. Or the images of points inside that are
 * beyond a periodic side, where one patch has both sides of the axis. */
typedef struct trli_slab {
    int field; /* its target */
    int axis, side;
    int layer; /* 1, 2, ...; 0: the plane of points on the side */
    trli_value value;
    bool image; /* there is no kernel */
    trli_kernel *kernel;
    trli_native_fn native; /* compiled, or NULL: interpreted */
    bool of_row;           /* a kernel that reads it from the row beside it could compute it from that row */
    bool within;           /* the compiled kernel of its step does: it needs no ghosts in memory */
    int read_as;           /* with of_row: the input of its step that it is a layer of */
    int entry;             /* a modifier plugin instead of a kernel: index of the entry, else -1 */
    int ninputs, *input;   /* fields read, in the kernel's or plugin's order */
    trl_lidx tangential_lo[3], tangential_hi[3]; /* ghosts included along the other axes, at inner sides */
    trl_lidx corner_lo[3], corner_hi[3];         /* and beyond the sides of earlier axes */
} trli_slab;

/* The lowered pieces of one side, in the frame of the side: combined into one value per layer when depths are known. */
typedef struct trli_piece {
    trl_bc_kind kind;
    trli_value where;      /* TRLI_NO_VALUE: always */
    trli_value a, b, c;    /* robin a, b, c; otherwise the value in a */
    trli_value da, db, dc; /* their derivatives on the side of a tangent; TRLI_NO_VALUE: zero */
    int modifier;          /* entry of a modifier plugin, or -1 */
    int *inputs;           /* fields it requires; owned by the instance's model */
    trl_place place;
} trli_piece;

typedef struct trli_side {
    int npieces;
    trli_piece *piece;
    bool tangent; /* the condition is the derivative of that of field primal */
    int primal;
} trli_side;

/* The points of a field on one side. */
typedef struct trli_plane {
    int of; /* index among a step's fields */
    int8_t axis, side;
} trli_plane;

/* A kernel at one of its points. A value that is needed at n offsets is computed n times; one that varies neither along x nor, in more
 * than one dimension, along y is computed outside of the loop over points and counts nothing. */
typedef struct trli_work {
    double flops;         /* + - * / sqrt, comparisons and choices 1 each, functions by a table (cost.c) */
    double additions;     /* the same by the time that they take, with loads and stores */
    int inputs, outputs;  /* fields, 8 bytes each */
    int values, samples;  /* computed values; at all their offsets */
    int call, plane, row; /* of those, once for a call, a plane and a row (or for its points, along x) */
} trli_work;

typedef struct trli_step {
    trli_step_kind kind;
    const char *label;
    bool live;
    /* KERNEL: values to fields. REDUCE, SCALAR: one value to a scalar. */
    int nout;
    int *field;
    trli_value *value;
    bool check;    /* KERNEL, PLANES: the outputs must be finite */
    int *variable; /* with check: the variable of each output */
    trli_kernel *kernel;
    bool strains_caches;        /* KERNEL: the fields that it reads and stores do */
    trli_native_fn native;      /* KERNEL: compiled, or NULL: interpreted */
    trli_work work;             /* KERNEL, once analysed */
    struct trli_tuning *tuning; /* of a kernel that may be compiled; NULL: it is not */
    int *input;                 /* fields read, in the kernel's or plugin's order */
    int ninputs;
    /* REDUCE, SCALAR */
    int scalar;
    trli_reduce_kind reduce;
    trl_location location;
    trl_gidx point[3];
    bool weighted;          /* SUM: points on a non-periodic side count half */
    bool inside;            /* leave out points whose inputs lie beyond a side */
    int8_t fixed_planes[6]; /* planes at a side that are left out */
    /* PLUGIN */
    int entry;
    int time_scalar, stage;
    /* FILL, PLANES; KERNEL: those at the ends of rows, each set before its row is computed */
    int nslabs;
    trli_slab *slab;
    /* FILL, PLANES */
    trli_side (*sides)[6]; /* [nout] */
    bool again;            /* KERNEL, PLUGIN: what another step computed, on more points, if some reader needs them */
    struct trli_demand
        *extent;        /* KERNEL, PLUGIN: of such another step, what its own readers need; NULL: the field's demand */
    bool exchange_only; /* FILL: of ghosts that are points of the domain */
    int nplanes;        /* PLANES: the sides that it sets, in that order */
    trli_plane *plane;
    int nexchanged;
    int *exchanged;                    /* fields in the exchange's order */
    trl_footprint *exchanged_reach;    /* [nexchanged]: which of their ghosts */
    struct trl_exchange *exchange;     /* once there are tasks */
    trl_array *exchange_array;         /* [nexchanged][local patch], set before each exchange */
    const trl_array **exchange_arrays; /* [nexchanged]: its rows */
} trli_step;

/* A named value that its readers' kernels compute, or that is stored where that costs less (cost_impl.h). */
typedef struct trli_candidate {
    const char *name;
    trli_value value;
    trl_location location;
    int position; /* of a step that could store it */
    int uses;     /* offsets at which kernels need it */
    int inputs;   /* fields it reads */
    double additions;
    bool weighed, stored;
} trli_candidate;

struct trli_program {
    trli_model *model;
    const char *name;
    bool once;      /* it is run one time */
    bool arranging; /* what is appended will be put in another order */
    trli_step *step;
    int nsteps, capacity;
    trli_demand *demand;               /* [model->nfields at analysis] */
    int nroots, *root, roots_capacity; /* fields that must hold values at the end */
    int nscalar_roots, *scalar_root, scalar_roots_capacity;
    int *stored_field; /* by value: field that holds it in this program, -1: none */
    int stored_count;
    int ncandidates, candidates_capacity;
    trli_candidate *candidate;
    trl_graph *graph;
    struct trli_task_data *task_data;
    int64_t bytes_moved; /* read and written by kernels per execution on this rank */
    int64_t comm_bytes, comm_messages;
};

/* ---- operand values of the formula language ---- */

/* Scalars that every model has. */
enum { TRLI_SCALAR_STEP_TIME, TRLI_SCALAR_DT, TRLI_SCALARS_FIXED };

#define TRLI_ANYWHERE (-1) /* no location: numbers, coordinates, t, reductions */

typedef struct trli_operand {
    int components; /* 0: a scalar; else one per axis of the grid */
    int location[3];
    trli_value value[3];
} trli_operand;

/* ---- instances: the expressions evaluated from one set of the variables' values, at one time ---- */

typedef enum trli_memo_state { TRLI_MEMO_EMPTY, TRLI_MEMO_BUSY, TRLI_MEMO_DONE, TRLI_MEMO_FAILED } trli_memo_state;

typedef struct trli_memo {
    trli_memo_state state;
    trli_operand operand;
} trli_memo;

/* Parts of formulas. */
typedef struct trli_marks {
    int n, capacity;
    const trl_ast **node;
} trli_marks;

struct trli_instance {
    trli_model *model;
    trli_program *program;
    const trli_instance *old; /* instance of old(f) and evaluate: step; NULL: this one */
    int time_scalar;
    int stage;
    int *variable;                /* [nvariables] the field of each, or -1 */
    trli_memo *formula;           /* [nentries] */
    trli_memo *variable_formula;  /* [nvariables] initial program: their values are formulas */
    int **plugin_field;           /* [nentries] fields of each computed tag, NULL: not yet */
    int conditions_from;          /* the step from which on there are those of conditions; -1: none yet */
    bool filled;                  /* the ghosts of its variables are set by a step of its own */
    bool inline_only;             /* boundary values: named formulas are never stored */
    bool initial;                 /* the variables' values are their initial formulas */
    struct trli_instance *begins; /* the variables' values are those of this instance, in fields; NULL: variable[] */
    struct trli_instance *sides;  /* the same instance for boundary values, made at first use */
    const trli_marks *marks;      /* NULL, or which parts of formulas are lowered in instance `apart` */
    struct trli_instance *apart;  /* the same instance, with the variables' values read apart */
    bool reads_apart;
    struct trli_tangent **tangent; /* [ntangents] by direction, made at first use */
    int ntangents;
};

/* ---- the model ---- */

typedef struct trli_slot {
    int64_t *values; /* [nlocal] room */
    void **base;     /* [nlocal] memory, of a block of the manager */
    bool persistent;
} trli_slot;

struct trli_model {
    trl_context *ctx;
    const trl_layout *layout;
    trl_registry *registry;
    trli_ir ir;
    trli_walk walk;
    trl_fusion fusion;
    trl_compile compile;
    trli_compiler *compiler;  /* NULL: never */
    bool compiling;           /* some kernels are still to come */
    double first_run;         /* s; 0: not yet */
    unsigned disabled_passes; /* TRL_PASS_... */
    trli_balance balance;
    trli_balance
        deciding; /* what the cost model decides by: the measured figures, or run.balance and nothing of this machine */
    bool streaming; /* the fields of a step outgrow the caches */
    const trl_scope *parameters;
    int ndirections;
    trli_direction *direction;    /* [ndirections], the first is number 1 */
    int64_t expanded;             /* what the sums and products of formulas that were visited expand to */
    struct trli_defined *defined; /* values of parameters that may depend on those of directions */
    int ndefined, defined_capacity;
    int nentries;
    trli_entry *entry;
    int nvariables;
    trli_variable *variable;
    int nsymbols, symbols_capacity;
    trli_symbol *symbol;
    trli_table names; /* name -> symbol */
    int nstencils;
    trl_operator **stencil; /* [nstencils] the problem's own */
    int *order;             /* [nentries] entries, dependencies first */
    int *dep_start;         /* [nentries + 1] entries that an entry depends on: dep[dep_start[e]] ... */
    int *dep;
    int ndeps, deps_capacity;
    int nfields, fields_capacity;
    trli_field *field;
    trl_array *geometry; /* [field][local patch]: shape, at relative to the slot's base */
    ptrdiff_t *origin;   /* [field][local patch]: offset of point (0,0,0) from the slot's base */
    int nscalars, scalars_capacity;
    double *scalar;
    int nslots;
    trli_slot *slot;
    trl_field_manager *memory; /* of slots and scratch */
    int64_t planned_bytes;     /* what it will give */
    int nprograms;
    trli_program **program;
    trl_workers *workers;
    int nworkers;
    void **scratch; /* [nworkers] */
    size_t scratch_bytes;
    int64_t step_number;
    struct trli_nonfinite *nonfinite;
    const struct trli_under_way *under_way; /* the innermost lowering of a named value */
    void **owned;                           /* small blocks that live as long as the model: names, lists of fields */
    int nowned, owned_capacity;
};

/* The first value that was not finite, in the order of variables and global points. */
typedef struct trli_nonfinite {
    bool found;
    int variable;
    trl_gidx point[3];
    double value;
} trli_nonfinite;

/* -- symbols.c, tree.c -- */

/* Make a model of the entries and variables of a problem: parse, set plugin entries up, resolve names, order, check
 * for cycles, missing and duplicate producers. Everything stays valid as long as the description it was made from. */
typedef struct trli_model_request {
    const trl_layout *layout;
    const trl_scope *parameters;
    trl_fusion fusion;
    trl_compile compile;
    double balance;           /* additions in the time of a byte; 0: measured */
    unsigned disabled_passes; /* TRL_PASS_... */
    int nentries;
    const trl_expression_entry *entries;
    int nvariables;
    const trli_variable *variables; /* copied; masks are owned by the caller */
    int nstencils;
    const trl_stencil_entry *stencils;
    trl_workers *workers;
} trli_model_request;
TRL_NODISCARD trl_err trli_model_create(trl_context *ctx, const trli_model_request *request, trli_model **model);
void trli_model_destroy(trli_model **model);

TRL_NODISCARD trl_err trli_symbols_build(trli_model *model);
/* Append a variable, before the first instance. A name that is taken is an INPUT error. */
TRL_NODISCARD trl_err trli_variable_add(trli_model *model, const trli_variable *variable);
const trli_symbol *trli_symbol_find(const trli_model *model, const char *name);
/* A stencil of the problem's own, or NULL. */
const trl_operator *trli_stencil_find(const trli_model *model, const char *name);
/* INPUT error: nobody computes the tag; proposes the nearest name. */
trl_err trli_symbol_missing(trli_model *model, const trl_place *place, const char *name);
/* Order the entries by their dependencies; a cycle is an INPUT error with its path. */
TRL_NODISCARD trl_err trli_tree_order(trli_model *model);
/* Call visit for every symbol that a formula refers to (indices expanded, branches of index-only ifs chosen). What sums and products
 * expand to is counted, and limited in a model; not so where formulas are visited again. */
typedef trl_err (*trli_visit)(void *data, const trl_text *text, const trl_ast *node, const char *name);
TRL_NODISCARD trl_err trli_visit_symbols(trli_model *model, const trl_formula *formula, const trl_scope *names,
                                         trli_visit visit, void *data);
TRL_NODISCARD trl_err trli_visit_again(trli_model *model, const trl_formula *formula, const trl_scope *names,
                                       trli_visit visit, void *data);
/* The integer range of a family node (sum, prod). operations: counts those of sums within it, or NULL. */
TRL_NODISCARD trl_err trli_family_range(trl_context *ctx, const trl_text *text, const trl_ast *node,
                                        const trl_scope *names, int64_t *operations, long *lo, long *hi);
/* Whether an expression is made of numbers, indices and parameters only, so that it is decided when the formula is
 * expanded. */
bool trli_decided(const trl_ast *node, const trl_scope *names);
/* Mark the entries that a formula mentions as used; then, once, what those need through others. */
TRL_NODISCARD trl_err trli_tree_mark_used(trli_model *model, const trl_formula *formula, const trl_scope *names);
void trli_tree_spread_used(trli_model *model);
TRL_NODISCARD trl_err trli_tree_write_dot(const trli_model *model, FILE *out);

/* -- model.c -- */
int trli_model_add_field(trli_model *model, const char *name,
                         trl_location location);            /* -1: no memory, recorded in model->ir.err */
int trli_model_add_scalar(trli_model *model, double value); /* likewise */
/* Zeroed memory that lives as long as the model; NULL without memory, recorded in model->ir.err. */
void *trli_model_keep(trli_model *model, size_t bytes);
const char *trli_model_name(trli_model *model, const char *format, ...) TRL_PRINTF(2, 3);
/* Points of a location on this rank; row: of the longest row along x, or NULL. */
int64_t trli_model_points(const trli_model *model, trl_location location, trl_lidx *row);
/* Whether so many values fill more than half of the last-level cache, which others share: ways that spare it are tried then.
 * In builds for testing, all do. */
bool trli_strains_caches(const trl_context *ctx, int64_t values);
/* The array of a field on a local patch, as the slot table stands now. */
trl_array trli_model_array(const trli_model *model, int field, int local_patch);
/* Exchange the memory of two persistent fields of one shape: time levels rotate. */
void trli_model_swap(trli_model *model, int field_a, int field_b);
/* Allocate the slots of all analysed programs, bind exchanges and build the task graphs. Collective: yes. */
TRL_NODISCARD trl_err trli_model_freeze(trli_model *model);

/* -- kernels.c -- */
/* Ask for compiled kernels, once all steps are known. With `always`, wait for them; INPUT error if there is no way. */
TRL_NODISCARD trl_err trli_kernels_request(trli_model *model);
/* Between runs of programs: take in kernels that are ready. */
void trli_kernels_poll(trli_model *model);

/* The source of all kernels of a program, for readers. */
TRL_NODISCARD trl_err trli_kernels_write(trli_program *program, unsigned device, FILE *out);

/* -- ir_text.c -- */
/* The values of all kernels of a program, one operation a line, with the number of offsets that each is needed at. Fails with MEMORY, IO. */
TRL_NODISCARD trl_err trli_ir_write(trli_program *program, FILE *out);

/* -- instance.c -- */
TRL_NODISCARD trl_err trli_instance_create(trli_model *model, trli_program *program, int time_scalar, int stage,
                                           const trli_instance *old, trli_instance **instance);
void trli_instance_destroy(trli_instance **instance);
/* The instance that boundary values are lowered in: shares fields and plugins' results, stores nothing. */
TRL_NODISCARD trl_err trli_instance_sides(trli_instance *instance, trli_instance **sides);
/* The instance that old(f) is lowered in. */
TRL_NODISCARD trl_err trli_instance_old(trli_instance *instance, trli_instance **old);
/* An instance that shares fields and plugins' results with another and stores nothing. The variables that marked parts of formulas read,
 * also through named expressions, are read apart in it (trli_ir_field_no_cse). marks: sorted, valid as long as the instance is. */
TRL_NODISCARD trl_err trli_instance_marked(const trli_instance *instance, const trli_marks *marks,
                                           trli_instance **marked);
void trli_instance_marked_destroy(trli_instance **marked);
/* Mark a part of a formula; put them in the order in which they are found. */
TRL_NODISCARD trl_err trli_marks_add(trli_model *model, trli_marks *marks, const trl_ast *node);
void trli_marks_sort(trli_marks *marks);
bool trli_marks_have(const trli_marks *marks, const trl_ast *node);
/* Lower every entry that is used, dependencies first, so that later lowering recurses no deeper than one formula. */
TRL_NODISCARD trl_err trli_instance_prepare(trli_instance *instance);

/* -- sides.c -- */
/* Append the fill of the variables' ghosts with their boundary conditions; the first step of an instance. */
TRL_NODISCARD trl_err trli_instance_fill(trli_instance *instance);
/* Append the fill of one field's ghosts. */
TRL_NODISCARD trl_err trli_instance_fill_field(trli_instance *instance, int field);
/* Append what sets points on sides of the variables' fields, after all that their conditions read; check: to finite values. Conditions that
 * need each other's points are an INPUT error that names the cycle. */
TRL_NODISCARD trl_err trli_instance_planes(trli_instance *instance, bool check);

/* -- lower.c -- */
/* Lower a formula in an instance. names: indices, local and global parameters. */
TRL_NODISCARD trl_err trli_lower(trli_instance *instance, const trl_formula *formula, const trl_scope *names,
                                 trli_operand *operand);
/* Lower where one location is wanted: values without location are placed there, others must be there. */
TRL_NODISCARD trl_err trli_lower_at(trli_instance *instance, const trl_formula *formula, const trl_scope *names,
                                    trl_location location, trli_value *value);
/* The value of a symbol. */
TRL_NODISCARD trl_err trli_lower_symbol(trli_instance *instance, const trli_symbol *symbol, const trl_text *text,
                                        const trl_ast *node, trli_operand *operand);

/* -- tangent.c -- */
/* Declare a direction, before anything is lowered. name: of a global parameter, which becomes a scalar of the model, or any other. */
TRL_NODISCARD trl_err trli_direction_add(trli_model *model, const char *name, int *direction);
/* The variable that is the tangent of a variable along a direction, or -1. */
int trli_tangent_variable(const trli_model *model, int direction, int variable);
/* The derivative of a value lowered in an instance along a direction: by its parameter, and times the variables' tangents in the
 * instance (a Jacobian-vector product). What plugins compute has none: INPUT error. Reductions and stored values have theirs
 * appended to the program. *tangent = TRLI_NO_VALUE: zero. */
TRL_NODISCARD trl_err trli_tangent(trli_instance *instance, int direction, trli_value value, trli_value *tangent);
void trli_tangents_free(trli_instance *instance);

/* -- program.c -- */
TRL_NODISCARD trl_err trli_program_create(trli_model *model, const char *name,
                                          trli_program **program); /* owned by the model */
/* Append a kernel that stores values to fields of one location. The arrays are copied. check: variables, or NULL. */
TRL_NODISCARD trl_err trli_program_add_kernel(trli_program *program, const char *label, int n, const int *field,
                                              const trli_value *value, const int *variable);
/* The field that holds a value at a location in this program; appends its kernel on first use. why: see trli_field. */
TRL_NODISCARD trl_err trli_program_store(trli_program *program, const char *name, const char *why, trli_value value,
                                         trl_location location, const trli_boundary_source *boundary, int *field);
/* Offer to store a named value at this place, which is decided when all of its readers are known. */
TRL_NODISCARD trl_err trli_program_add_candidate(trli_program *program, const char *name, trli_value value,
                                                 trl_location location);
/* The scalar that a reduction of a value over the points of a location gives; *scalar is its handle. */
TRL_NODISCARD trl_err trli_program_reduce(trli_program *program, const char *label, trli_value value,
                                          trl_location location, trli_reduce_kind kind, bool weighted,
                                          const trl_gidx *point, int *scalar);
/* The step that writes the field or scalar that a node reads, or NULL; *which: its output. */
const trli_step *trli_program_producer(const trli_program *program, const trli_node *n, int *which);
/* The scalar that holds a value which varies nowhere. */
TRL_NODISCARD trl_err trli_program_scalar(trli_program *program, const char *label, trli_value value, int *scalar);
/* Reserve the next step, zeroed; NULL and a recorded error without memory. */
trli_step *trli_program_append(trli_program *program, trli_step_kind kind, const char *label);
TRL_NODISCARD trl_err trli_program_add_root(trli_program *program, int field);
TRL_NODISCARD trl_err trli_program_add_scalar_root(trli_program *program, int scalar);
void trli_program_destroy(trli_program **program);
/* Free what a step owns. */
void trli_step_free(trli_step *step);

/* -- plugin_step.c -- */
TRL_NODISCARD trl_err trli_entry_setup(trli_model *model, trli_entry *entry);
void trli_entry_free(trli_entry *entry);
/* Resolve the tags that plugin entries require. */
TRL_NODISCARD trl_err trli_entry_resolve(trli_model *model, trli_entry *entry);
/* The fields that hold what a plugin entry requires, in an instance; stores formulas where needed. */
TRL_NODISCARD trl_err trli_plugin_inputs(trli_instance *instance, int entry, int **fields);
/* Append a plugin entry's evaluation in an instance; its computed fields are then in instance->plugin_field. */
TRL_NODISCARD trl_err trli_plugin_add(trli_instance *instance, int entry);

/* The scalar that holds the smallest stable_dt of a plugin entry over all patches. */
TRL_NODISCARD trl_err trli_plugin_stable_dt(trli_instance *instance, int entry, int *scalar);

/* -- boundary.c -- */
/* Lower the conditions of a field's sides in an instance, in the frame of each side. */
TRL_NODISCARD trl_err trli_boundary_lower(trli_instance *instance, int field, trli_side sides[6]);
/* Those of one side, numbered 2*axis + which. */
TRL_NODISCARD trl_err trli_boundary_lower_side(trli_instance *instance, int field, int s, trli_side *side);
/* One piece's value at the points on a side of a location whose axis bit is set there: for advective fluxes on
 * Dirichlet faces. */
TRL_NODISCARD trl_err trli_boundary_face_value(trli_instance *instance, const trli_boundary_source *boundary, int axis,
                                               int side, trl_location face, trli_value inside, trli_value *value);
/* The value of a ghost layer (1, 2, ...) or of the plane on the side (layer 0). */
TRL_NODISCARD trl_err trli_boundary_layer(trli_model *model, int field, const trli_side *side, int axis, int which,
                                          int layer, trli_value *value);
/* Whether the side's points are set by a Dirichlet condition everywhere. */
bool trli_boundary_fixes_side(const trl_bc_side *side);
/* Whether a tangent's conditions are all zero: the derivatives of conditions that do not change along its direction. */
bool trli_boundary_is_zero(const trli_side sides[6]);

/* -- analyse.c, fold.c, slots.c, slots_memory.c, tasks.c, execute.c -- */
/* Live steps, footprints, boxes and boundary slabs of a program; every problem with a missing side is reported. */
TRL_NODISCARD trl_err trli_program_analyse(trli_program *program);
/* Let kernels set the ends of their rows themselves where nobody else needs them; part of the analysis. */
TRL_NODISCARD trl_err trli_program_fold(trli_program *program);
/* Whether some of these ghosts are those of other patches, or images beyond a periodic side. */
bool trli_needs_exchange(const trl_layout *layout, const trl_footprint *reach);
/* Box on a local patch that a step, a kernel or a plugin, computes result o on. */
trl_box trli_step_box(const trli_program *program, const trli_step *s, int o, int local_patch);
TRL_NODISCARD trl_err trli_slots_plan(trli_model *model);
TRL_NODISCARD trl_err trli_slots_allocate(trli_model *model);
TRL_NODISCARD trl_err trli_tasks_build(trli_program *program);
void trli_tasks_free(trli_program *program);
TRL_NODISCARD trl_err trli_program_run(trli_program *program);

#endif
