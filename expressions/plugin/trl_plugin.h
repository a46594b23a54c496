/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plugin contract: how an expression type written in C is described. This header and those that it includes are all
 * a plugin needs; no MPI is needed to compile it. A plugin is a shared library that exports
 * const trl_plugin trl_plugin_entry = {TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "name", types,
 * ntypes}; (declared below, so that it is exported whatever the library's default visibility is).
 */
#ifndef TRL_PLUGIN_H
#define TRL_PLUGIN_H

#include <trl_functions_body.h>
#include <trl_operator.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRL_PLUGIN_ABI 2u

typedef enum trl_param_kind {
    TRL_PARAM_NUMBER,
    TRL_PARAM_INTEGER,
    TRL_PARAM_BOOL,
    TRL_PARAM_TEXT,
    TRL_PARAM_PATH
} trl_param_kind;

/* One row of a parameter table; the table ends with a row whose key is NULL. */
typedef struct trl_param_desc {
    const char *key;
    trl_param_kind kind;
    bool required;
    const char *unit; /* NULL or "": none */
    const char *doc;
    double fallback;  /* default of NUMBER, INTEGER, BOOL when not required */
    double min, max;  /* inclusive range of NUMBER and INTEGER; min == max: any */
    const char *text; /* default of TEXT and PATH */
} trl_param_desc;

/* A parameter's checked value, in the order of the table. */
typedef struct trl_param_value {
    double number;
    const char *text; /* TEXT; PATH: made absolute against the deck's folder */
    trl_place place;  /* where the deck gives it; zero for a default */
} trl_param_value;

enum {
    TRL_EXPR_POINTWISE = 1, /* a value depends on inputs at the same point only: may run on boxes that include ghosts */
    TRL_EXPR_TILED = 2,     /* may run on disjoint sub-boxes at once, from several threads */
    TRL_EXPR_PURE = 4,      /* the same inputs give the same bits; plan and report name expressions without it */
    TRL_EXPR_MODIFIER = 8,  /* changes its target's field at a side; see modifiers below */
    TRL_EXPR_STATIC = 16,   /* depends on nothing that changes with time but what it requires: evaluated once a step,
                             * and once in all where that does not change */
    TRL_EXPR_NEUTRAL = 32   /* device-neutral: evaluate applies operators, by the functions trl_eval_..., and touches no
                             * array; see below */
};

typedef struct trl_deps trl_deps;             /* what advertise_dependents fills */
typedef struct trl_binding trl_binding;       /* what bind_fields and bind_operators read */
typedef struct trl_evaluation trl_evaluation; /* what evaluate of a NEUTRAL type appends to */

/* What setup gets; valid during the call. */
typedef struct trl_setup_args {
    trl_context *ctx;
    const trl_grid *grid;
    const trl_layout *layout;
    const trl_param_value *params; /* in the order of the table */
    trl_place place;               /* of the deck's entry, for trl_fail */
} trl_setup_args;

/* Arguments of evaluate; pointers are valid inside the call only, because time levels rotate. */
typedef struct trl_eval_args {
    size_t size;      /* of this struct, for later extension */
    trl_context *ctx; /* for trl_fail */
    const trl_grid *grid;
    const trl_patch *patch;
    double t, t_step, dt; /* stage time; time at the start of the step; full step */
    int64_t step;
    int stage;                 /* from 0 */
    const trl_array *computed; /* in the order advertised */
    const trl_array *required;
    void *scratch; /* scratch_bytes of this thread */
    int worker;
    int axis, side;             /* modifiers: the side (0 minus, 1 plus) of an axis; else -1 */
    trl_evaluation *evaluation; /* NEUTRAL; else NULL */
} trl_eval_args;

/* ---- CUDA forms of evaluate and stable_dt ----
 *
 * Text in CUDA C++ that computes one point, so that GPUs may do what evaluate does on the host. It is compiled with
 * NVRTC when a run begins that has GPUs, without contraction, and kept in the cache of kernels; no nvcc is needed. The
 * text defines
 *     TRL_BODY void evaluate(const trl_point &p);
 * which sets p.computed(n) from p.required(n), the value at the point, or p.required(n, i, j, k) at an offset that was
 * advertised. n: as advertised, from 0. p.number(n): what set_numbers wrote; p.t, p.t_step, p.dt, p.stage: as in
 * trl_eval_args; p.coordinate(axis): of the point; p.spacing(axis). All computed tags have one location. The result is
 * to have the same bits as evaluate, in any order of points: elementary functions are trl_fn_exp and the like of
 * trl_functions_body.h, the same in C and in CUDA.
 *
 * The form of a MODIFIER sets p.computed(0), the target at a ghost or a point on the side; p.axis and p.side say which,
 * p.layer() is 1, 2, ... of ghosts by their distance from the side, 0 on the side. In the row across the side that the
 * point lies in, p.inside(n, m) is required tag n at the m-th point from the side, from 0, and p.target(m) the target
 * there. It reads nothing that it sets at other points.
 *
 * The form of stable_dt defines
 *     TRL_BODY double stable_dt(const trl_point &p);
 * of which the smallest over the points owned, at the location of the first computed tag, is what stable_dt gives.
 */
typedef struct trl_cuda_form {
    const char *text[4]; /* one after the other; NULL: no more */
    int nnumbers;
    /* REQUIRED with nnumbers > 0. What the text reads of the state: number[nnumbers]. After bind_operators. Main
     * thread. */
    void (*set_numbers)(const void *state, double *number);
} trl_cuda_form;

#define TRL_QUOTE_(text) #text
#define TRL_QUOTE(text) TRL_QUOTE_(text)
#define TRL_TEXT_PLACE "#line " TRL_QUOTE(__LINE__) " \"" __FILE__ "\"\n"
/* Code as text. It has neither directives nor macros of the plugin's. Messages of the compiler name this file, and a
 * line of this use of the macro. */
#define TRL_CUDA_TEXT(...) TRL_TEXT_PLACE #__VA_ARGS__ "\n"
/* Functions that are C and, under a name, text: what evaluate and the CUDA form have in common. Each begins with
 * TRL_BODY. */
#define TRL_SHARED_TEXT(name, ...) __VA_ARGS__ static const char name[] = TRL_TEXT_PLACE #__VA_ARGS__ "\n";

/* An expression type. Zero-initialised members are absent. */
typedef struct trl_expr_type {
    uint32_t abi;  /* TRL_PLUGIN_ABI */
    uint32_t size; /* sizeof(trl_expr_type) */
    const char *name;
    const char *doc;              /* one line */
    const trl_param_desc *params; /* NULL: none */
    unsigned flags;
    size_t state_size;    /* bytes of state per entry in the deck, zeroed before setup */
    size_t scratch_bytes; /* per thread */

    /* OPTIONAL. Fill the state from the parameters; read-only afterwards. Collective, main thread. */
    trl_err (*setup)(void *state, const trl_setup_args *args);
    /* OPTIONAL. Release what setup acquired; called after a setup that failed, too. Main thread. */
    void (*teardown)(void *state);
    /* REQUIRED. Say what is computed and required, with trl_deps_compute and trl_deps_require. Main thread. */
    trl_err (*advertise_dependents)(const void *state, trl_deps *deps);
    /* OPTIONAL. Keep the positions of arrays (trl_binding_computed, trl_binding_required). Main thread, once. */
    trl_err (*bind_fields)(void *state, const trl_binding *binding);
    /* OPTIONAL. Keep operators, spacings and the like (trl_binding_operator, trl_binding_grid). Main thread, once. */
    trl_err (*bind_operators)(void *state, const trl_binding *binding);
    /* REQUIRED. Compute every computed array on box (local indices of args->patch). For a MODIFIER: set the target,
     * computed[0], on box, which lies in the ghost layers of the side, or on the side for a location with points there.
     * box lies in the points of computed[0]; a type whose tags have several locations is called once per patch and
     * computes each array on its own owned points. Worker thread; several at once only if TILED.
     * For a NEUTRAL type: say what each computed tag is. Called when a program is built, once for each stage that needs
     * a tag; box is empty, and times and arrays hold nothing. Main thread. */
    trl_err (*evaluate)(const void *state, const trl_eval_args *args, const trl_box *box);
    /* OPTIONAL. Largest stable dt of this expression from its inputs on a patch's owned points (a lower bound over all
     * patches and ranks is used with dt: {cfl}). Worker thread. */
    trl_err (*stable_dt)(const void *state, const trl_eval_args *args, double *dt);
    /* OPTIONAL. What evaluate does, for GPUs; only of TILED types that are not NEUTRAL. */
    const trl_cuda_form *evaluate_cuda;
    /* OPTIONAL. What stable_dt does, for GPUs; only of types that have it. */
    const trl_cuda_form *stable_dt_cuda;
} trl_expr_type;

/* What a plugin library exports as trl_plugin_entry. */
typedef struct trl_plugin {
    uint32_t abi;       /* TRL_PLUGIN_ABI */
    uint32_t size;      /* sizeof(trl_plugin) */
    uint32_t type_size; /* sizeof(trl_expr_type) */
    const char *name;
    const trl_expr_type *types;
    int ntypes;
} trl_plugin;

extern TRL_API const trl_plugin trl_plugin_entry;

/* NULL for deps, binding or a name is an error of all these: USAGE or PLUGIN, -1, or a NULL grid. */
/* Declare a computed tag by the type's own name ("omega", or "q.x" for a component) and its location. */
TRL_API TRL_NODISCARD trl_err trl_deps_compute(trl_deps *deps, const char *name, trl_location location);
/* Declare a required tag, read at offsets lo..hi from each computed point (NULL: at the point itself). A modifier reads
 * its inputs on the target's interior points next to the side. A NEUTRAL type needs no offsets: they follow from the
 * operators. */
TRL_API TRL_NODISCARD trl_err trl_deps_require(trl_deps *deps, const char *name, trl_location location, const int lo[3],
                                               const int hi[3]);
/* The dimension and grid, for types that depend on it. */
TRL_API const trl_grid *trl_deps_grid(const trl_deps *deps);

/* Positions in args->computed and args->required of a tag by the type's own name; -1 if it was not advertised. */
TRL_API int trl_binding_computed(const trl_binding *binding, const char *name);
TRL_API int trl_binding_required(const trl_binding *binding, const char *name);
TRL_API const trl_grid *trl_binding_grid(const trl_binding *binding);
/* An operator by kind and locations; equal ones are one. It lives as long as the type's state. Fails with USAGE as
 * trl_operator_create does. A type that is not NEUTRAL applies it to arrays by trl_operator_apply_box. */
TRL_API TRL_NODISCARD trl_err trl_binding_operator(const trl_binding *binding, const trl_operator_desc *desc,
                                                   const trl_operator **op);

/* ---- evaluate of NEUTRAL types ----
 *
 * A value is a number at each point of a location; where it lies, and whether it is stored at all, is decided later:
 * what evaluate applied becomes part of the program as formulas do, with the same bits, and runs on the workers or the
 * device where the fields are. All functions: only in evaluate of a NEUTRAL type (USAGE), args as evaluate got them;
 * errors of use are PLUGIN errors that name the entry. Main thread. */
typedef struct trl_eval_value {
    int32_t node, location; /* private; valid in the call of evaluate that made it */
} trl_eval_value;

/* The value of a required tag, by its position (trl_binding_required). */
TRL_API TRL_NODISCARD trl_err trl_eval_required(const trl_eval_args *args, int position, trl_eval_value *value);
/* The same number at all points. */
TRL_API TRL_NODISCARD trl_err trl_eval_number(const trl_eval_args *args, double number, trl_eval_value *value);
/* *out = op(in...); in: [op->ninputs] at the operator's locations. Numbers, times and coordinates are put where they
 * are wanted. */
TRL_API TRL_NODISCARD trl_err trl_eval_apply(const trl_eval_args *args, const trl_operator *op,
                                             const trl_eval_value *in, trl_eval_value *out);
/* *out = function(in...) at each point; in: [n] at one location. function: an operation "+" "-" (of 1 or 2) "*" "/" "^"
 * "<" "<=" "==" "!=" "and" "or" "not" "if", a function of formulas ("exp", "max", ...), or, of 0, what formulas call
 * "t" "dt" "x" "y" "z" "dx" "dy" "dz" "pi". */
TRL_API TRL_NODISCARD trl_err trl_eval_function(const trl_eval_args *args, const char *function, int n,
                                                const trl_eval_value *in, trl_eval_value *out);
/* Make a value the result of a computed tag, by its position (trl_binding_computed); each tag once. */
TRL_API TRL_NODISCARD trl_err trl_eval_set(const trl_eval_args *args, int position, trl_eval_value value);

#ifdef __cplusplus
}
#endif
#endif
