# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What random decks have beside formulas: types of plugins, fields of files, spectra."""


def applied(w):
    """A flux that a device-neutral type of a plugin applies operators for, and its divergence, in half of the decks. It
    draws no random numbers."""
    if w.written % 2 or w.multistep:
        return [], None
    tags = ", ".join(f"u.{axis}" for axis in w.axes)
    parameters = "parameters: {lambda: p/64}"
    return [
        f"  warm: \"at({w.equations[0]}, cell)\"",
        f"  flux: {{type: fourier_flux, inputs: {{T: warm}}, computes: [{tags}], {parameters}}}"
    ], "div(u)"


def lasting(w):
    """Values that no step changes, of a file, which whoever runs the deck writes, and of a formula with conditions of
    its own, and a term that reads both beside a point, in a third of the decks. It draws no random numbers."""
    if w.written % 3:
        return [], None
    sides = "{" + ", ".join(f"{w.axes[a]}-: {{neumann: 0.3}}, {w.axes[a]}+: {{dirichlet: \"1 + 0.1*{w.axes[a - 1]}\"}}"
                            for a in range(w.dim) if not w.periodic[a]) + "}"
    return [
        f"  held: {{type: file, computes: [held], parameters: {{path: held.nc, dataset: held}}, boundary: {sides}}}",
        f"  kept: {{formula: \"2 + sin(3*x)\", location: cell, boundary: {sides}}}"
    ], f"1e-4*div(held*grad(kept*at({w.equations[0]}, cell)))"


def spectra(w):
    """Of equations whose axes allow it."""
    waves = [axis for axis, wraps in zip(w.axes, w.periodic) if wraps]
    if not waves:
        return ""
    along = w.rng.choice(waves + ["all"] * (len(waves) == w.dim))
    return f", spectra: {{E: {{of: {w.rng.choice(w.equations)}, along: {along}}}}}"
