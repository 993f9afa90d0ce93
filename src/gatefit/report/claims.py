"""The paper's claims against our outcomes: confirmed, not confirmed, or not testable here, and why.

claim      -> checks of experiments (by label and words), statements computed from the codebook, named tests
verdict    -> of each check the paper's scale if its runs exist, else the small scale; extra: labels decide nothing
paragraph  -> the verdict, then every check's own numbers; nothing is typed in but the paper's statement
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gatefit.experiments.catalogue.sheet import NO_RUNS, NOT_HERE
from gatefit.experiments.outcome import Check, Outcome
from gatefit.report.provenance import command

Verdict = Literal["confirmed", "partly confirmed", "not confirmed", "not testable here"]
VERDICTS: Final[tuple[Verdict, ...]] = ("confirmed", "partly confirmed", "not confirmed", "not testable here")
COMPUTED: Final = "computed"
"""In place of a scale, where no run is needed."""


@dataclass(frozen=True)
class Cited:
    """The checks of ``label`` whose claim contains ``words``, whatever the case; all of them for no words."""

    label: str
    words: str = ""

    @property
    def beside(self) -> bool:
        """Whether the label stands beside the paper's: what it says is shown, but decides nothing."""
        return self.label.startswith("extra:")

    def among(self, checks: Sequence[Check]) -> list[Check]:
        """The checks that are meant."""
        return [check for check in checks if self.words.lower() in check.claim.lower()]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what bears on it."""

    place: str
    """Where the paper makes it."""
    statement: str
    checks: tuple[Cited, ...] = ()
    computed: Callable[[], tuple[bool, str]] | None = None
    tests: tuple[str, ...] = ()
    """Names in tests/test_propositions.py."""
    remark: str = ""
    """What a reader must know to read the verdict rightly; no number of ours."""
    correction: str = ""
    """What the paper says that is not so, where the rest of the claim holds."""


@dataclass(frozen=True)
class Evidence:
    """One line below a claim."""

    source: str
    """The label and scale of a check, or what else it is."""
    holds: bool | None
    text: str


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the verdict in a sentence, and the evidence."""

    claim: Claim
    verdict: Verdict
    sentence: str
    evidence: tuple[Evidence, ...]


def judge(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> Judged:
    """Weigh a claim; ``outcomes`` holds those of each label, the paper's scale first."""
    evidence: list[Evidence] = []
    decided: list[tuple[str, bool]] = []
    untested = 0
    partial = False
    if claim.computed is not None:
        holds, words = claim.computed()
        evidence.append(Evidence("computed", holds, words))
        decided.append((COMPUTED, holds))
    for cited in claim.checks:
        found = _by_claim(cited, outcomes)
        for checks in found.values():
            said = [(scale, check) for scale, check in checks if check.holds is not None]
            if said and not cited.beside:
                decided.append((said[0][0], said[0][1].holds is True))
                partial |= NOT_HERE in said[0][1].evidence
            evidence += _lines(cited.label, said or checks[:1])
        if not cited.beside:
            untested += sum(all(check.holds is None for _, check in checks) for checks in found.values()) or not found
    if claim.tests:
        evidence.append(Evidence("tests", None, ", ".join(f"`{name}`" for name in claim.tests)))
    verdict = _verdict([holds for _, holds in decided], bool(claim.correction) or partial or untested > 0)
    if not decided:
        return Judged(claim, verdict, _untestable(claim, outcomes), tuple(evidence))
    return Judged(claim, verdict, _sentence(verdict, decided, untested, partial), tuple(evidence))


def _untestable(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Why nothing can be said, and what would let it be: the smallest scale that has runs to make."""
    sentence = "Not testable here: the runs that would say are not finished"
    for cited in claim.checks:
        waiting = [outcome for outcome in outcomes.get(cited.label, ()) if outcome.missing]
        if waiting:
            count = len(waiting[-1].missing)
            return f"{sentence}; `{command(waiting[-1])}` makes {count} run{'' if count == 1 else 's'}."
    return f"{sentence}."


def _by_claim(cited: Cited, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, list[tuple[str, Check]]]:
    """What is said at each scale, by the words of the check."""
    found: dict[str, list[tuple[str, Check]]] = {}
    for outcome in outcomes.get(cited.label, ()):
        scale = outcome.scale if outcome.used or outcome.missing else COMPUTED
        for check in cited.among(outcome.checks):
            if (scale, check) not in found.setdefault(check.claim, []):
                found[check.claim].append((scale, check))
    return found


def _lines(label: str, said: Sequence[tuple[str, Check]]) -> list[Evidence]:
    """One line a check; scales that share their runs, and so their words, share a line."""
    lines: dict[Check, list[str]] = {}
    for scale, check in said:
        lines.setdefault(check, []).append(scale)
    return [
        Evidence(
            f"{label}, {' and '.join(scales)}{'' if scales == [COMPUTED] else ' scale'}",
            check.holds,
            f"{check.claim}: {_shortened(check)}" if check.evidence else check.claim,
        )
        for check, scales in lines.items()
    ]


def _shortened(check: Check) -> str:
    """The evidence; of a check that is open, only what is known, not a list of everything that is not."""
    if check.holds is not None:
        return check.evidence
    parts = check.evidence.split("; ")
    known = [part for part in parts if NO_RUNS not in part and "no runs" not in part]
    without = len(parts) - len(known)
    return "; ".join(
        [*known, *([f"{without} of {len(parts)} parts without runs" if known else "no runs"] if without else [])]
    )


def _verdict(decided: Sequence[bool], incomplete: bool) -> Verdict:
    if not decided:
        return "not testable here"
    if all(decided):
        return "partly confirmed" if incomplete else "confirmed"
    return "partly confirmed" if any(decided) else "not confirmed"


def _sentence(verdict: Verdict, decided: Sequence[tuple[str, bool]], untested: int, partial: bool) -> str:
    """The verdict, at which scale, and how much of the claim it covers."""
    words = {COMPUTED: "by computation", "paper": "at the paper's scale"}
    scales = list(dict.fromkeys(scale for scale, _ in decided))
    where = " and ".join(words.get(scale, f"at {scale} scale") for scale in scales)
    sentence = f"{verdict[0].upper()}{verdict[1:]} {where}"
    true, count = sum(holds for _, holds in decided), len(decided)
    limits = []
    if 0 < true < count:
        limits.append(f"{true} of {count} parts hold")
    if untested:
        limits.append(f"{untested} part{'' if untested == 1 else 's'} could not be tested")
    if partial:
        limits.append("data sets that are not part of the scale are left out")
    return sentence + (f": {', '.join(limits)}." if limits else ".")
