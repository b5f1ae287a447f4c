"""Random models, small enough for brute force, with everything the language has; shared by several test areas."""

from __future__ import annotations

import numpy as np

from certimap import (
    Block,
    Model,
    ModelError,
    all_of,
    any_of,
    at_least,
    at_most,
    cannot_link,
    exactly,
    fix,
    gated,
    gaussian,
    implies,
    laplace,
    linear,
    logistic,
    must_link,
    parity,
    polynomial,
    potts,
    ridge,
    soft,
    student_t,
    table,
)

INF = np.inf


# ---------------------------------------------------------------------------------------------------------- discrete
def discrete_model(rng, *, private=None, max_states=4000):
    """Tables of arity 1 to 4 with -inf, Potts, parity, costs, hard and soft constraints, blocks; may be infeasible."""
    m = Model()
    variables = _discrete_variables(m, rng, max_states)
    for _ in range(rng.integers(2, 8)):
        arity = int(rng.choice([1, 1, 2, 2, 2, 3, 4]))
        if arity <= len(variables):
            m.add(_random_table(rng, _pick(rng, variables, arity)))
    for a, b in _pairs(rng, variables, rng.integers(0, 4)):
        if a.states == b.states:
            m.add(potts(a, b, float(rng.normal())))
    binaries = [v for v in variables if list(v.states) == [0, 1] and v.name.startswith("b")]
    if len(binaries) >= 2 and rng.random() < 0.4:
        m.add(parity(binaries, odd=bool(rng.integers(2))))
    if rng.random() < 0.5:
        m.add(linear([(_indicator(rng, v), float(rng.normal())) for v in variables], float(rng.normal())))
    for _ in range(rng.integers(0, 5)):
        _constrain(m, rng, variables)
    if rng.random() < 0.5:
        _group_tables(m, rng, variables)
    if private if private is not None else rng.random() < 0.4:
        _add_private_block(m, rng, variables)
    return m


def _discrete_variables(m, rng, max_states):
    variables, states = [], 1
    for k in range(rng.integers(3, 8)):
        match rng.integers(4):
            case 0:
                new = m.binary(f"b{k}")
            case 1:
                low = int(rng.integers(-2, 2))
                new = m.integer(f"i{k}", low, low + int(rng.integers(1, 4)))
            case _:
                new = m.categorical(f"c{k}", int(rng.integers(2, 5)))
        variables.append(new)
        states *= len(new.states)
        if states * 4 > max_states:
            break
    return variables


def _random_table(rng, scope, excluded=None):
    values = 2.0 * rng.normal(size=[len(v.states) for v in scope])
    share = rng.choice([0.0, 0.0, 0.2, 0.5]) if excluded is None else excluded
    values[rng.random(values.shape) < share] = -INF
    if not np.isfinite(values).any():
        values.flat[rng.integers(values.size)] = 0.0
    if rng.random() < 0.15:  # ties and degenerate linear programs
        values = np.round(values)
    return table(list(scope), values)


def _pick(rng, variables, count):
    return [variables[k] for k in rng.choice(len(variables), count, replace=False)]


def _pairs(rng, variables, count):
    return [_pick(rng, variables, 2) for _ in range(count)] if len(variables) > 1 else []


def _indicator(rng, variable):
    return variable.is_(int(rng.choice(variable.states)))


def _random_constraint(rng, variables):
    a, b = _pick(rng, variables, 2)
    indicators = [_indicator(rng, v) for v in variables]
    numeric = [v for v in variables if not v.name.startswith("c")]
    kind = int(rng.integers(10))
    if kind == 0:
        return must_link(a, b)
    if kind == 1:
        return cannot_link(a, b)
    if kind == 2:
        return implies(_indicator(rng, a), _indicator(rng, b))
    if kind == 3:
        return fix(a, int(rng.choice(a.states)))
    if kind in (4, 5, 6):
        verb = (at_most, at_least, exactly)[kind - 4]
        return verb(int(rng.integers(0, len(variables))), indicators)
    if kind == 7 and len(variables) > 2:
        return (all_of, any_of)[int(rng.integers(2))](indicators[0], indicators[1:3])
    if kind == 8 and numeric:
        return linear([(v, float(rng.normal())) for v in numeric]) <= float(rng.normal())
    return linear([(x, float(np.round(rng.normal(), 2))) for x in indicators]) >= float(np.round(rng.normal(), 2))


def _constrain(m, rng, variables):
    constraint = _random_constraint(rng, variables)
    if rng.random() < 0.35:
        m.add(soft(constraint, float(3.0 * rng.random())))
        return
    try:
        m.constrain(constraint)
    except ModelError as error:
        assert "can never hold" in str(error)


def _group_tables(m, rng, variables):
    scope = _pick(rng, variables, 2)
    m.add(Block([_random_table(rng, scope, 0.2), _random_table(rng, scope[:1], 0.0)]))


def _add_private_block(m, rng, variables):
    hidden = m.categorical("hidden", int(rng.integers(2, 4)))
    near = _pick(rng, variables, 2)
    m.add(Block([_random_table(rng, [near[0], hidden]), _random_table(rng, [hidden, near[1]])], private=[hidden]))


# ------------------------------------------------------------------------------------------------------------- mixed
def mixed_model(rng):
    """Two or three reals (or a simplex) under ridges of every kind, gates, a few binaries, rows on the reals."""
    m = Model()
    reals = [m.real(f"x{k}", float(-1 - rng.random()), float(1 + rng.random())) for k in range(rng.integers(1, 4))]
    inputs = [1.0 * x for x in reals]
    if rng.random() < 0.3:
        p = m.simplex("p", int(rng.integers(2, 4)), 0.05)
        inputs += [p[k] for k in range(p.domain.size)]
    gates = list(m.binary("z", shape=int(rng.integers(1, 4))))
    label = m.categorical("c", 3) if rng.random() < 0.5 else None
    indicators = [1.0 * z for z in gates] + ([label.is_(s) for s in range(3)] if label is not None else [])
    for _ in range(rng.integers(2, 5)):
        m.add(ridge(_direction(rng, inputs), _function(rng)))
    for _ in range(rng.integers(1, 4)):
        m.add(gated(indicators[rng.integers(len(indicators))], _direction(rng, inputs), _function(rng)))
    m.add(linear([(x, float(rng.normal())) for x in (*inputs[:2], *indicators)]))
    if rng.random() < 0.5:
        m.add(_random_table(rng, gates[:2], 0.2))
    if rng.random() < 0.6:
        direction = _direction(rng, inputs)
        low, high = direction.bounds()
        m.constrain(direction <= low + rng.random() * (high - low))
    if rng.random() < 0.5:  # a gate bounds a real, as in sparse regression
        m.constrain(reals[0] - 2.0 * gates[0] <= 0.0, reals[0] + 2.0 * gates[0] >= 0.0)
    if rng.random() < 0.4:
        m.constrain(at_most(1, gates))
    if rng.random() < 0.2:  # often infeasible, together with the others
        total = linear(inputs)
        m.constrain(total >= total.bounds()[1] - 0.5 * rng.random())
    return m


def _direction(rng, inputs):
    chosen = rng.choice(len(inputs), min(len(inputs), int(rng.integers(1, 3))), replace=False)
    return sum((float(np.round(rng.normal(), 3) or 1.0) * inputs[k] for k in chosen), linear([], float(rng.normal())))


def _function(rng):
    match rng.integers(5):
        case 0:
            return gaussian(float(rng.normal()), float(0.3 + rng.random()))
        case 1:
            return laplace(float(rng.normal()), float(0.3 + rng.random()))
        case 2:
            return logistic(int(rng.choice([-1, 1])))
        case 3:
            return student_t(float(rng.normal()), float(0.3 + rng.random()), 3.0)
        case _:
            return polynomial([0.0, *(float(c) for c in 0.7 * rng.normal(size=3)), -0.1])
