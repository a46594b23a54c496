/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary conditions: what fields hold on and beyond the sides of the domain. */
#ifndef TRL_BOUNDARY_H
#define TRL_BOUNDARY_H

#include <trl_mask.h>
#include <trl_operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Layer m of the ghosts, with interior values f_1, f_2, ... next to the side, f_0 on it for a location with points
 * there, spacing h. trl_boundary_body.h holds the rules. */
typedef enum trl_bc_kind {
    TRL_BC_DIRICHLET,  /* f = value: ghost 2 value - f_m, and f_0 = value */
    TRL_BC_NEUMANN,    /* df/dn = value, n outward: ghost f_m + (distance to the ghost) value */
    TRL_BC_ROBIN,      /* value f + b df/dn = c; with the number 0 for b dirichlet c/value */
    TRL_BC_OUTFLOW,    /* ghost f_1, or f_0 */
    TRL_BC_EXPRESSION, /* ghosts and f_0 are the value */
    TRL_BC_OPERATOR,   /* drivers only: an operator has the value at the side, see trl_bc */
    TRL_BC_MODIFIER    /* drivers only: a function sets the ghosts, see trl_bc */
} trl_bc_kind;

/* A value at the points of a side. A function is called with the point on the side (of ghosts beside the domain and of
 * neighbours, too) and the time of the fill. A field is at the conditioned one's location, but for the bit of the
 * side's axis: with that bit its values on the side are meant, without it its nearest interior values. Neither: the
 * number. */
typedef struct trl_bc_value {
    double number;
    trl_point_fn function;
    void *data; /* of the function */
    trl_field *field;
} trl_bc_value;

/* What a modifier is called with, once per patch and side for all layers of ghosts and, for a location with points on
 * the side, once from trl_boundary_set_sides for these points. */
typedef struct trl_bc_call {
    const trl_layout *layout;
    int patch;      /* local patch */
    int axis, side; /* side: 0 minus, 1 plus */
    bool on_side;   /* the box is of the points on the side */
    double t;
    const trl_array *
        target; /* may be read within the valid points and the points on and next to the side, and written in the box */
    trl_box box;
} trl_bc_call;
typedef trl_err (*trl_bc_modify_fn)(void *data, const trl_bc_call *call);

/* A field that a modifier reads: at these offsets from the point of its own that is on the side, else next to it. */
typedef struct trl_bc_dependency {
    trl_field *field;
    trl_offsets reads;
} trl_bc_dependency;

/* One piece of a side's condition: holds where `where` does, within the mask, or everywhere. */
typedef struct trl_bc {
    trl_bc_kind kind;
    trl_bc_value value, b, c; /* b, c: robin */
    trl_point_fn where;       /* asked at the point on the side; or NULL */
    void *where_data;
    const trl_mask *
        mask; /* at the field's location with the axis' bit set, with as many layers as the field has ghosts; or NULL */
    /* OPERATOR: reads along the axis of the side only, from the field's location. Its result is `value` on the side;
     * where it has no point there, or reads no ghost there, at its nearest point that reads one. The outermost ghost
     * that it reads is solved for. The other layers follow the rule of dirichlet, or neumann where the operator is a
     * derivative, with the same meaning. */
    const trl_operator *op;
    /* MODIFIER: alone on its side. Dependencies are copied. */
    trl_bc_modify_fn modify;
    void *modify_data;
    int ndependencies;
    const trl_bc_dependency *dependency;
} trl_bc;

/* The conditions of one field, or of several at one location. What they point to outlives them. */
typedef struct trl_boundary trl_boundary;
/* The layout outlives it. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_boundary_create(const trl_layout *layout, trl_location location,
                                                  trl_boundary **boundary);
TRL_API void trl_boundary_destroy(trl_boundary **boundary);
/* Append a piece to the side (0 minus, 1 plus) of an axis: at each point the first piece that holds is used, and the
 * last one must hold everywhere. Fails with USAGE for a side that is periodic or missing, a piece behind one that holds
 * everywhere, a modifier beside another piece, and for values, masks and operators of locations that do not fit; the
 * message names the side. */
TRL_API TRL_NODISCARD trl_err trl_boundary_add(trl_boundary *boundary, int axis, int side, const trl_bc *piece);

/* Set points on the sides, where a dirichlet, expression or modifier piece holds: after initial values, and after each
 * stage with t the time of the values just computed. On a point of several sides the last of x, y, z wins. Then only
 * the owned points of the field are valid; without such points nothing changes. Functions of the conditions are called
 * by the workers of the loop, patch by patch. Fails with USAGE if the field is of another layout or location, or its
 * owned points or fields that are read are not valid. Allocates nothing. Collective: no. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_boundary_set_sides(const trl_boundary *boundary, trl_loop *loop, trl_field *field,
                                                     double t);
/* Set the ghosts beyond all sides that have a condition, x first, then y, then z, later axes including the earlier
 * ghosts; after an exchange, since ghosts beside neighbours get theirs here, too. The valid points grow by the layers
 * that are set: all that the field has, fewer where the grid has no interior values for them. Otherwise as
 * trl_boundary_set_sides. */
TRL_API TRL_NODISCARD trl_err trl_boundary_fill(const trl_boundary *boundary, trl_loop *loop, trl_field *field,
                                                double t);

#ifdef __cplusplus
}
#endif
#endif
