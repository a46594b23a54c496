# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What random decks may be refused for: whoever draws them does not know these of a deck beforehand. Any other message
of a refused deck is a mistake in the deck's generator, or in what refuses it."""
import re

ALLOWED = (
    # an axis of one cell or of few
    r"needs \d+ ghost layers on [xyz][+-], and a patch there has only \d+ points? inside of the side",
    r"patches: stencils reach \d+ points of '[\w:]+' along [xyz], but the thinnest of the \d+ patches there has",
    r"stencils reach \d+ points of '[\w:]+' along [xyz], whose period has \d+",
    r"there is no multigrid for '.*', because the grid has few cells",
    # a field that is read beyond sides, where its conditions read what is solved for
    r"there is no multigrid for '[\w, ]+', because (coefficients of the operator are no formulas|"
    r"the operator contains a sum or an extreme over all points)",
    # rates of conditions of equations of second order
    r"a condition of an equation with ddt2 reads '\w+', whose own rate is not known where the condition's is needed",
    r"is needed beyond [xyz][+-], and its equation's condition there has no known time derivative",
    # a point source that a condition comes to through a named value
    r"point_source\(s, p\) is a source inside of the domain, and this is read by a boundary condition",
    # likewise noise, in a bound of dt
    r"'[\w.]+' contains noise: noise\(seed\) is new in each step and belongs to `ddt`",
    # a speed that the drawn formulas make NaN, or infinite (the least value where a mask leaves out all points), a
    # least dt that is too large, couplings that a method makes grow
    r"the stable dt (is NaN at step \d+|= 0 no longer changes t)",
    r"the stable dt \S+ fell below min \S+ at step \d+",
    r"\w+ has no stable step for .*: use ssprk3 or rk4",
    # a method of a library that this build is without
    r"this build has no SUNDIALS, whose CVODE \w+ is",
    r"'[\w, ]+' cannot be solved by factors, because (this build has no SuiteSparse|its equations read)",
    # a solver that has no products of bdf
    r"bdf needs '[\w, ]+' for products with the Jacobian, which steps in pseudo-time do not solve for",
    # types of plugins, which may do anything, of a field whose conditions read what is solved for
    r"solving for '[\w, ]+' needs the derivative of '\w+', and what type '\w+' computes has none",
    r"solving for '[\w, ]+' needs the derivative of this condition of '\w+', and a modifier has none",
    r"(adams|bdf) goes back to rates of several steps, and these rates depend on the step",
)


def unexpected(message):
    """The first error of a refused run that is none of these; "" if all are."""
    errors = re.findall(r"^\S+\.yaml:\d+:\d+: (?!warning: )(.*)", message, re.MULTILINE) or [message]
    return next((error for error in errors if not any(re.search(known, error) for known in ALLOWED)), "")
