# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What random decks have beside formulas: types of plugins, fields of files, families of two indices, spectra, output
times."""


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


def wall(w, axis):
    """A modifier for the present field, which gives a side the nearest values of an equation; None if no equation that
    the side can read has the field's location."""
    if not w.walled or not w.bounded or w.rated or w.rng.random() < 0.5:
        return None
    where, read = w.bounded[1], w.beside(axis)
    if read not in w.equations or w.fields[read] != where:
        return None
    w.walls.append(f"  wall{len(w.walls)}: {{type: held, inputs: {{input: {read}}}, "
                   f"parameters: {{at: {where}, of: {where}}}}}")
    return f"{{expression: wall{len(w.walls) - 1}}}"


def with_plugins(w, text):
    """The lines of a deck, which end with expressions, with those of modifiers and with their plugins."""
    plugins = w.plugins + ["side_values"] * bool(w.walls or w.coefficients.plugins)
    return ([f"plugins: [{', '.join(plugins)}]"] if plugins else []) + text + w.walls + w.coefficients.lines


def of_two_indices(w, equation):
    """The lines of an equation h{i}_{j} as a family, whose members read others."""
    more = " - 0.1*i*h{3 - i}_{j} + 0.02*j*h{i}_{2 - j}"
    lines = [line[:-1] + more + '"' if line.startswith("    ddt") else line for line in equation]
    return lines + [f"    for: {{i: 1..2, j: 0..{w.rng.choice(['2', 'q - 1'])}}}"]


def products(w, where):
    """A family of expressions with two indices, of which a member can be read."""
    lines = ['  "two{i}_{j}":', f"    formula: \"i*({w.named(where, 1)}) - j*{w.at(where)}\"",
             f"    for: {{i: 1..2, j: {w.rng.choice(['0..1', '1..q'])}}}"]
    w.fields["two2_1"] = where
    return lines


def every(rng, step):
    """When there is output: with steps that grow, not a thousand times."""
    time = "{time: 1.5e-3}" if step else "{time: 0.011}"
    return rng.choice(["{steps: 1}", "{steps: 1}", time, "{at: [1e-3, 0.0021, 0.05]}", "{log: 4}"])


def late(rng, lines):
    """The lines of time and output with keys on which no others depend. They are drawn last, so that what is drawn
    before is the same with and without."""
    time, output, *rest = lines
    for text, more in (("max: 0.", "min: 1e-300, max: 0."), ("max: 1e", "min: 1e-300, max: 1e"),
                       ("\"}", "\", every: {steps: 2}}")):
        if rng.random() < 0.5:
            time = time.replace(text, more)
    if rng.random() < 0.5:
        output = output.replace("dataset: points, ", "dataset: points, every: {steps: 2}, ")
    if rng.random() < 0.3:
        output = output.replace("values: {s0", "solvers: true, values: {s0")
    for more in ("beside_steps: false", "checkpoint: {every: {steps: 2}, keep: 1}", "compression: 1"):
        if rng.random() < 0.2:
            output = output.replace("output: {", f"output: {{{more}, ")
    return [time, output, *rest]
