# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random mock devices and random placements on them. Settings that begin with TRL_ are variables of the environment."""

GROUPS = [
    "", "", "speed=0.5", "speed=4", "launch=5us", "latency=20us", "rate=500M", "latency=5us,rate=2G,speed=2",
    "clock=virtual", "clock=virtual,speed=8,latency=10us,rate=10G", "bytes=32k", "bytes=200k,speed=3", "bytes=64M"
]


def mocks(rng, count):
    """A value of TRL_MOCK_DEVICES: so many devices, of one kind or of several."""
    groups, left = [], count
    while left:
        here = rng.randint(1, left) if rng.random() < 0.4 else left
        settings = rng.choice(GROUPS)
        groups.append(f"{here}:{settings}" if settings else str(here))
        left -= here
    return ";".join(groups)


def at_random(rng):
    return f"random:{rng.randrange(1 << 31)}"


def placement(rng):
    """A rule, half of them random placements."""
    others = ["auto", "finish_time", "round_robin", "min_load", "devices"]
    return at_random(rng) if rng.random() < 0.5 else rng.choice(others)


def choose(rng, count=None, rule=None):
    """Settings of a run on mock devices."""
    rule, count = rule or placement(rng), count or rng.choice([1, 2, 4])
    chosen = [f"TRL_MOCK_DEVICES={mocks(rng, count)}"]
    chosen.append(rng.choice(["run.placement=", "TRL_PLACEMENT="]) + rule)
    return chosen + rng.choice([[], [], ["run.devices=auto"]]) + rng.choice([[], [], ["run.prefetch=false"]])


def environment(settings):
    """The variables among settings."""
    return dict(setting.split("=", 1) for setting in settings if setting.startswith(("TRL_", "TRELLIS_")))
