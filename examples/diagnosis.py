"""Medical diagnosis: the most probable set of diseases given symptoms, under rules a physician would state.

A symptom stays away with probability (1 - leak) * product of (1 - strength) over the diseases present ("noisy or").
All numbers are made up.
"""

from itertools import product
from math import expm1, log, log1p

from certimap import Model, at_most, fix, implies, solve, table, verify

PRIOR = {"flu": 0.05, "cold": 0.15, "pneumonia": 0.01, "hay fever": 0.10, "asthma": 0.06}
CAUSES = {
    "fever": {"flu": 0.9, "cold": 0.2, "pneumonia": 0.85},
    "cough": {"flu": 0.6, "cold": 0.5, "pneumonia": 0.9, "asthma": 0.5},
    "wheezing": {"pneumonia": 0.3, "asthma": 0.8},
    "sneezing": {"cold": 0.7, "hay fever": 0.9},
    "itching eyes": {"hay fever": 0.8},
}
LEAK = 0.02
SEEN = {"fever": 1, "cough": 1, "wheezing": 1, "sneezing": 0}


def noisy_or(strengths: list[float]) -> dict[tuple[int, ...], float]:
    """Log-probabilities of (symptom, *diseases)."""
    values = {}
    for present in product((0, 1), repeat=len(strengths)):
        absent = log1p(-LEAK) + sum(log1p(-s) for s, p in zip(strengths, present, strict=True) if p)
        values[(0, *present)] = absent
        values[(1, *present)] = log(-expm1(absent))
    return values


def diagnosis(seen: dict[str, int]) -> Model:
    model = Model()
    disease = {name: model.binary(name) for name in PRIOR}
    for name, p in PRIOR.items():
        model.add(table([disease[name]], [log1p(-p), log(p)], name=f"P({name})"))
    for symptom, strengths in CAUSES.items():
        s = model.binary(symptom)
        parents = [disease[name] for name in strengths]
        model.add(table([s, *parents], noisy_or(list(strengths.values())), name=f"P({symptom} | ...)"))
        if symptom in seen:
            model.constrain(fix(s, seen[symptom]).named(f"observed: {symptom} = {seen[symptom]}"))
    model.constrain(at_most(2, list(disease.values())).named("at most two diseases at once"))
    model.constrain(implies(disease["pneumonia"], 1 - disease["cold"]).named("pneumonia is not called a cold"))
    return model


def main() -> None:
    model = diagnosis(SEEN)
    result = solve(model)
    print(result.status.name, f"log p = {result.log_map:.4f}, no answer has more than {result.upper_bound:.4f}")
    print("diseases:", [name for name in PRIOR if result.assignment[name]] or "none")
    print("verified upper bound:", f"{verify(result.certificate, model).upper_bound:.4f}")

    model.constrain(fix(model.variables["flu"], 0), fix(model.variables["pneumonia"], 0))
    result = solve(model)
    print("without flu and pneumonia:", [name for name in PRIOR if result.assignment[name]], f"{result.log_map:.4f}")

    model.constrain(at_most(1, [model.variables[name] for name in ("fever", "cough")]).named("one symptom at most"))
    print(solve(model).conflict)


if __name__ == "__main__":
    main()
