"""Ask a circuit: which columns can ever matter, why this answer, what would change it? Answers are proofs.

python examples/ask_questions.py        MONK's first problem: "head and body are alike, or the jacket is red"
"""

import itertools

import pandas as pd

from gatefit import LogicGateClassifier, verify

values = {
    "head": ["round", "square", "octagon"],
    "body": ["round", "square", "octagon"],
    "smiling": ["yes", "no"],
    "holding": ["sword", "balloon", "flag"],
    "jacket": ["red", "yellow", "green", "blue"],
    "tie": ["yes", "no"],
}
robots = pd.DataFrame(itertools.product(*values.values()), columns=list(values))
monk = ((robots["head"] == robots["body"]) | (robots["jacket"] == "red")).map({True: "monk", False: "stranger"})

model = LogicGateClassifier(width=60, depth=2, steps=1500, random_state=0).fit(robots, monk)
circuit = model.circuit_
print(f"{len(circuit.gates)} gates, accuracy {model.score(robots, monk):.2f}")

for column in values:
    match verify.never_matters(circuit, column):
        case verify.Proved():
            print(f"{column}: can never matter, proved")
        case verify.Counterexample() as pair:
            print(f"{column}: matters, {pair.changed}")

robot = robots.iloc[0]
print("why:", verify.explain(circuit, robot))
print("one change:", verify.robust(circuit, robot, changes=1))
print("what would:", verify.closest(circuit, robot))
print("how many:", verify.share(circuit, "monk", samples=100_000))
