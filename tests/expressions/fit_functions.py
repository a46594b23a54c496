#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Finds the polynomials of trl_functions_body.h: minimax approximations by Remez' exchange algorithm in 60 digits.

Needs mpmath (python3-mpmath). Prints each polynomial's coefficients, rounded to double, and the greatest error of the
function that it serves, with the rounded coefficients and exact arithmetic.
"""
from mpmath import asin, atan, cos, cosh, erf, erfc, exp, log, lu_solve, matrix, mp, mpf, pi, polyval, sin, sinh, sqrt

mp.dps = 60


def extrema(error, low, high, wanted):
    """Where the error is greatest between changes of its sign, at `wanted` places in a row."""
    points = 24 * wanted
    found = []
    for i in range(points):
        x = (low + high) / 2 - (high - low) / 2 * cos(pi * (i + mpf(1) / 2) / points)
        value = error(x)
        if found and (found[-1][1] > 0) == (value > 0):
            if abs(value) > abs(found[-1][1]):
                found[-1] = (x, value)
        else:
            found.append((x, value))
    while len(found) > wanted:
        found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
    return found


def remez(target, weight, low, high, n):
    """n coefficients p that make the maximum of |weight*(p - target)| on [low, high] least."""
    nodes = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * (n - i) + 1) / (2 * n + 2)) for i in range(n + 1)]
    for _ in range(8):
        system, right = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            for j in range(n):
                system[i, j] = x**j
            system[i, n] = (-1) ** i / weight(x)
            right[i] = target(x)
        p = list(lu_solve(system, right))[:n]
        found = extrema(lambda x: weight(x) * (polyval(p[::-1], x) - target(x)), low, high, n + 1)
        if len(found) <= n:
            break
        nodes = [x for x, _ in found]
        sizes = [abs(value) for _, value in found]
        if max(sizes) < mpf("1.01") * min(sizes):
            break
    return p


def bound(p, target, weight, low, high):
    samples = [low + (high - low) * (i + mpf(1) / 2) / 2000 for i in range(2000)]
    return max(abs(weight(x) * (polyval([mpf(c) for c in p[::-1]], x) - target(x))) for x in samples)


def fit(name, target, weight, low, high, n, fixed=()):
    """Round all coefficients at once, or one after the other, fitting the rest again (not where x may be 0):
    whichever is better."""
    low, high = mpf(low), mpf(high)
    candidates = [] if fixed else [[float(c) for c in remez(target, weight, low, high, n)]]
    p = list(fixed)
    for j in range(len(p), n if low > 0 else 0):

        def rest(x):
            return (target(x) - polyval([mpf(c) for c in p[::-1]] or [0], x)) / x**j

        p.append(float(remez(rest, lambda x: weight(x) * abs(x) ** j, low, high, n - j)[0]))
    if len(p) == n:
        candidates.append(p)
    best = min(candidates, key=lambda p: bound(p, target, weight, low, high))
    print(f"{name}: {n} coefficients, 2^{float(log(bound(best, target, weight, low, high), 2)):.2f}")
    for c in best:
        print(f"    {c!r}")


def odd(f, z):
    """f(r)/r for an odd f and z = r^2"""
    return f(sqrt(z)) / sqrt(z)


def log_series(z):
    return (odd(lambda s: log((1 + s) / (1 - s)), z) - 2) / z


def scaled_erfc(t):
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * exp(x * x) * erfc(x)


def variable(x):
    return (mpf(x) - 4) / (mpf(x) + 4)


def main():
    e2, quarter = "0.12014", "0.6169"
    fit("cosh", lambda z: (cosh(sqrt(z)) - 1) / z, lambda z: z, "1e-10", e2, 5, (0.5,))
    fit("sinh", lambda z: (odd(sinh, z) - 1) / z, lambda z: z, "1e-12", e2, 5)
    fit("log", log_series, lambda z: z / 2, "1e-10", "0.029438", 7)
    fit("log in pow", lambda z: (log_series(z) - mpf(2) / 3) / z, lambda z: z * z / 2, "1e-8", "0.029438", 8)
    fit("sin", lambda z: (odd(sin, z) - 1) / z, lambda z: z / odd(sin, z), "1e-12", quarter, 6)
    fit("cos", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)), "1e-9", quarter, 6)
    fit("atan", lambda z: (odd(atan, z) - 1) / z, lambda z: z / odd(atan, z), "1e-10", "0.17158", 11)
    fit("asin", lambda z: (odd(asin, z) - 1) / z, lambda z: z / odd(asin, z), "1e-10", "0.25", 13)
    fit("erf", lambda z: odd(erf, z) - 1, lambda z: 1 / odd(erf, z), "1e-10", 1, 12)
    fit("erfc", scaled_erfc, lambda t: 1 / scaled_erfc(t), variable("0.45"), variable("27.4"), 22)
    fit("cbrt", lambda x: x ** (-mpf(1) / 3), lambda x: x ** (mpf(1) / 3), 1, 2, 6)


if __name__ == "__main__":
    main()
