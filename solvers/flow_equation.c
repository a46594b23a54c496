/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The equation of a flow's pressure, and what its solver is asked besides. */
#include <string.h>

#include "lower_impl.h"
#include "solving_impl.h"

trli_ir_value trli_flow_scaled(trli_instance *in, const trl_simulation *sim, trli_ir_value divergence)
{
    trli_ir *ir = &in->model->ir;
    if (in->model != sim->model) return divergence; /* of a coarser grid only derivatives by the pressure matter */
    return trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, sim->flow->inverse), divergence);
}

static trli_ir_value scaled_size(trli_ir *ir, double factor, trli_ir_value value)
{
    return trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, factor), trli_ir_unary(ir, TRLI_OP_ABS, value));
}

/* Of a density that is a number. */
static trl_err check_density(const trl_simulation *sim, const trli_node *density)
{
    if (density->op != TRLI_OP_CONSTANT || density->number > 0) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &sim->problem->incompressible.density.place,
                    "the density is %.6g: it must be larger than 0", density->number);
}

/* How large the numbers are whose differences are both sides of that equation. */
static trl_err find_size(void *data, trli_instance *in, bool at_zero, trli_ir_value *size)
{
    const trl_simulation *sim = ((const trli_system *)data)->solving->sim;
    const struct trli_flow *flow = sim->flow;
    const double *spacing = sim->layout->grid.spacing;
    trli_ir *ir = &in->model->ir;
    trli_ir_value sum = trli_ir_constant(ir, 0), density;
    double diagonal = 0;
    trl_err err = TRL_OK;
    for (int a = 0; a < flow->n; ++a) {
        const trli_ir_value u = trli_ir_field(ir, in->variable[flow->velocity[a]]);
        sum = trli_ir_binary(ir, TRLI_OP_ADD, sum, scaled_size(ir, 2 / spacing[a], u));
        diagonal += 4 / (spacing[a] * spacing[a]);
    }
    TRL_TRY(trli_lower_at(in, flow->density, sim->problem->parameters, TRL_CELL, &density));
    TRL_TRY(check_density(sim, trli_ir_node(ir, density)));
    sum = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, flow->inverse), sum);
    if (!at_zero) {
        const trli_ir_value p = trli_ir_field(ir, in->variable[flow->pressure]);
        const trli_ir_value of_p = trli_ir_binary(ir, TRLI_OP_DIV, scaled_size(ir, diagonal, p), density);
        sum = trli_ir_binary(ir, TRLI_OP_ADD, sum, of_p);
    }
    *size = sum;
    err = ir->err;
done:
    return err;
}

/* The divergence is all that is left without a pressure, */
static trl_err find_at_zero(void *data, trli_instance *in, trli_ir_value *value)
{
    const trl_simulation *sim = ((const trli_system *)data)->solving->sim;
    const trli_equation *eq = &sim->equation[sim->flow->pressure];
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->equals, eq->deck->names, TRL_CELL, value));
    *value = trli_flow_scaled(in, sim, *value);
done:
    return err;
}

/* where nothing comes in through its conditions, and all cells have one. */
static bool known_at_zero(const trl_simulation *sim)
{
    const trl_equation_entry *pressure = sim->equation[sim->flow->pressure].deck;
    if (pressure->mask.chars) return false;
    for (int s = 0; s < 2 * sim->flow->n; ++s)
        for (int i = 0; i < pressure->boundary[s].npieces; ++i) {
            const trl_bc_piece *piece = &pressure->boundary[s].piece[i];
            const bool plain = piece->kind == TRL_BC_DIRICHLET || piece->kind == TRL_BC_NEUMANN;
            if (!plain || strcmp(piece->value.text->chars, "0") != 0) return false;
        }
    return true;
}

/* How often a step solves for the pressure, but for explicit slopes. */
static int solves_of(const trl_simulation *sim)
{
    const trl_integrator *m = sim->integrator;
    const int again = trli_flow_solves_again(sim), last = !m->last_is_new;
    return (m->stages - 1) * (m->implicit ? trli_flow_passes(sim) : 1) + last + again;
}

trl_err trli_flow_request(const struct trli_solving *so, int n, trli_solve_request *request)
{
    const trl_simulation *sim = so->sim;
    const trl_incompressible_entry *deck = &sim->problem->incompressible;
    if (n > 1)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &deck->place,
                        "the pressure '%s' would have to be solved for together with others (%s), because its density "
                        "or its conditions need them, and they need the velocity",
                        deck->pressure, request->names);
    request->place = deck->place;
    request->size = find_size;
    if (known_at_zero(sim)) request->at_zero = find_at_zero;
    if (so->in_steps) request->from = &sim->equation[sim->flow->pressure].state;
    if (so->in_steps) request->solves = solves_of(sim);
    request->varying = true;
    request->keeps_points = true;
    request->unbalanced = "all sides give the velocity, and what flows in through them and solids is";
    request->than_what = "what flows out, in volume over time,";
    request->scaled_by = &sim->flow->inverse;
    request->balanced_at = &sim->flow->moved_at;
    request->balance = "balance these velocities, or let a side be outflow";
    request->finite = "look for a density that is not larger than 0 everywhere, and for velocities that have grown, as "
                      "where dt is too large";
    request->cut_off =
        "a part of the fluid is cut off from all others, as by solids, and what flows into it is not what "
        "flows out; balance these velocities, or leave a way to a side that is outflow";
    request->missing =
        "the masks of the velocity are 0 everywhere, and leave no point at which to solve for its pressure: "
        "let them be 1 where there is fluid";
    return TRL_OK;
}
