"""The paper's claims against our outcomes: what was found of each, by which runs, and whose failure it is if any.

claim      -> checks of experiments (by label and id), statements computed from the codebook, named tests
verdict    -> of each check the paper's scale if its runs exist, else the small scale; extra: labels decide nothing
whose      -> computed: the error of our runs (noise), runs that are too small or missing (scale); else an opinion
paragraph  -> the verdict, then every check's own numbers; nothing is typed in but the paper's statement and opinions
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gatefit.paper.catalogue.builder import NO_RUNS
from gatefit.paper.outcome import Check, Finding, Outcome, command

Verdict = Literal[
    "confirmed", "by definition", "partly confirmed", "level", "inconclusive", "not confirmed", "not testable here"
]
VERDICTS: Final[tuple[Verdict, ...]] = (
    "confirmed",
    "by definition",
    "partly confirmed",
    "level",
    "inconclusive",
    "not confirmed",
    "not testable here",
)
Whose = Literal["paper", "our reading", "scale", "noise"]
WHOSE: Final[tuple[Whose, ...]] = ("paper", "our reading", "scale", "noise")
COMPUTED: Final = "computed"
"""In place of a scale, where no run is needed."""
PAPER: Final = "paper"


class Cited:
    """The checks of ``label`` with these ids; all of them for no ids."""

    def __init__(self, label: str, *ids: str) -> None:
        self.label, self.ids = label, ids

    def __repr__(self) -> str:
        return f"Cited({', '.join(map(repr, (self.label, *self.ids)))})"

    @property
    def beside(self) -> bool:
        """Whether the label stands beside the paper's: what it says is shown, but decides nothing."""
        return self.label.startswith("extra:")

    def among(self, checks: Sequence[Check]) -> list[Check]:
        """The checks that are meant."""
        return [check for check in checks if not self.ids or check.id in self.ids]


@dataclass(frozen=True)
class Opinion:
    """What we think of a failure that cannot be computed: whose it is, and why we think so."""

    whose: Whose
    reason: str
    about: tuple[str, ...] = ()
    """Ids of the checks that it is about; all for none."""


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
    opinion: Opinion | None = None
    """Whose failure it is, should a check fail."""


@dataclass(frozen=True)
class Evidence:
    """One line below a claim."""

    source: str
    """The label and scale of a check, or what else it is."""
    finding: Finding | None
    """None of what is no check."""
    text: str
    label: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, the verdict in a sentence, by which runs, whose failure, and the evidence."""

    claim: Claim
    verdict: Verdict
    sentence: str
    evidence: tuple[Evidence, ...]
    where: tuple[str, ...] = ()
    """The scales or runs that decide, in words."""
    whose: tuple[Whose, ...] = ()
    opinion: bool = False
    """Whether a part of ``whose`` is the claim's opinion, not computed."""


@dataclass(frozen=True)
class _Decided:
    """A check that says something, and what it rests on."""

    scale: str
    finding: Finding
    id: str = ""
    where: str = ""
    partial: bool = False

    @property
    def words(self) -> str:
        if self.where:
            return f"by {self.where}"
        return {COMPUTED: "by computation", PAPER: "at the paper's scale"}.get(self.scale, f"at {self.scale} scale")


def judge(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> Judged:
    """Weigh a claim; ``outcomes`` holds those of each label, the paper's scale first."""
    evidence: list[Evidence] = []
    decided: list[_Decided] = []
    untested = 0
    if claim.computed is not None:
        holds, words = claim.computed()
        finding: Finding = "holds" if holds else "fails"
        evidence.append(Evidence("computed", finding, words))
        decided.append(_Decided(COMPUTED, finding))
    for cited in claim.checks:
        found = _by_id(cited, outcomes)
        for checks in found.values():
            said = [(scale, check) for scale, check in checks if check.finding != "open"]
            if said and not cited.beside:
                scale, first = said[0]
                decided.append(_Decided(scale, first.finding, first.id, first.where, first.partial))
            evidence += _lines(cited.label, said or checks[:1])
        if not cited.beside:
            untested += sum(all(c.finding == "open" for _, c in checks) for checks in found.values()) or not found
    if claim.tests:
        evidence.append(Evidence("tests", None, ", ".join(f"`{name}`" for name in claim.tests)))
    partial = any(each.partial for each in decided)
    verdict = _verdict([each.finding for each in decided], bool(claim.correction) or partial or untested > 0)
    whose, opinion = _whose(claim, verdict, decided, untested)
    if not decided:
        return Judged(claim, verdict, _untestable(claim, outcomes), tuple(evidence), (), whose, opinion)
    where = tuple(dict.fromkeys(each.words for each in decided))
    sentence = _sentence(verdict, decided, where, untested, partial)
    return Judged(claim, verdict, sentence, tuple(evidence), where, whose, opinion)


def _untestable(claim: Claim, outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Why nothing can be said, and what would let it be: the smallest scale that has runs to make."""
    sentence = "Not testable here: the runs that would say are not finished"
    for cited in claim.checks:
        waiting = [outcome for outcome in outcomes.get(cited.label, ()) if outcome.missing]
        if waiting:
            count = len(waiting[-1].missing)
            return (
                f"{sentence}; `{command(cited.label, waiting[-1].scale)}` makes {count} run{'' if count == 1 else 's'}."
            )
    return f"{sentence}."


def _by_id(cited: Cited, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, list[tuple[str, Check]]]:
    """What is said at each scale, by the id of the check."""
    found: dict[str, list[tuple[str, Check]]] = {}
    for outcome in outcomes.get(cited.label, ()):
        scale = outcome.scale if outcome.used or outcome.missing else COMPUTED
        for check in cited.among(outcome.checks):
            if (scale, check) not in found.setdefault(check.id, []):
                found[check.id].append((scale, check))
    return found


def _lines(label: str, said: Sequence[tuple[str, Check]]) -> list[Evidence]:
    """One line a check; scales that share their runs, and so their words, share a line."""
    lines: dict[Check, list[str]] = {}
    for scale, check in said:
        lines.setdefault(check, []).append(scale)
    return [
        Evidence(
            f"{label}, {check.where or _scales(scales)}",
            check.finding,
            f"{check.claim}: {_shortened(check)}" if check.evidence else check.claim,
            label,
        )
        for check, scales in lines.items()
    ]


def _scales(scales: Sequence[str]) -> str:
    return COMPUTED if list(scales) == [COMPUTED] else f"{' and '.join(scales)} scale"


def _shortened(check: Check) -> str:
    """The evidence; of a check that is open, only what is known, not a list of everything that is not."""
    if check.finding != "open":
        return check.evidence
    parts = check.evidence.split("; ")
    known = [part for part in parts if NO_RUNS not in part and "no runs" not in part]
    without = len(parts) - len(known)
    return "; ".join(
        [*known, *([f"{without} of {len(parts)} parts without runs" if known else "no runs"] if without else [])]
    )


def _verdict(found: Sequence[Finding], incomplete: bool) -> Verdict:
    """What holds by definition confirms nothing, and what is level refutes nothing."""
    if not found:
        return "not testable here"
    telling = [finding for finding in found if finding != "by definition"]
    if not telling:
        return "by definition"
    if "holds" in telling:
        return "partly confirmed" if incomplete or set(telling) != {"holds"} else "confirmed"
    if "fails" in telling:
        return "not confirmed"
    return "level" if set(telling) == {"level"} else "inconclusive"


def _whose(
    claim: Claim, verdict: Verdict, decided: Sequence[_Decided], untested: int
) -> tuple[tuple[Whose, ...], bool]:
    """Whose failure it is that a claim is not confirmed, as far as that can be computed; and whether it is opinion."""
    if verdict in ("confirmed", "by definition"):
        return (), False
    whose: set[Whose] = {"paper"} if claim.correction else set()
    opinion = False
    for each in decided:
        if each.finding in ("level", "inconclusive"):
            whose.add("noise")
        elif each.finding == "fails" and (about := claim.opinion) and (not about.about or each.id in about.about):
            whose.add(about.whose)
            opinion = True
        elif each.finding == "fails":
            whose |= _computed_blame(each)
        if each.partial:
            whose.add("scale")
    if untested:
        whose.add("scale")
    return tuple(each for each in WHOSE if each in whose), opinion


def _computed_blame(failed: _Decided) -> set[Whose]:
    """A computation leaves the paper, small or narrow runs leave the scale, the paper's own scale leaves two."""
    if failed.scale == COMPUTED:
        return {"paper"}
    return {"paper", "our reading"} if failed.scale == PAPER and not failed.where else {"scale"}


def _sentence(verdict: Verdict, decided: Sequence[_Decided], where: Sequence[str], untested: int, partial: bool) -> str:
    """The verdict, at which scale, and how much of the claim it covers."""
    sentence = f"{verdict[0].upper()}{verdict[1:]}"
    if not (verdict == "by definition" and where == ("by computation",)):
        sentence += f" {' and '.join(where)}"
    limits = []
    counts = Counter(each.finding for each in decided)
    telling = len(decided) - counts["by definition"]
    if 0 < counts["holds"] < telling:
        limits.append(f"{counts['holds']} of {telling} parts hold")
    beside: tuple[Finding, ...] = ("level", "inconclusive", "by definition")
    for finding in beside:
        if 0 < counts[finding] < len(decided):
            limits.append(f"{counts[finding]} {'is' if counts[finding] == 1 else 'are'} {finding}")
    if untested:
        limits.append(f"{untested} part{'' if untested == 1 else 's'} could not be tested")
    if partial:
        limits.append("data sets without runs are left out")
    return sentence + (f": {', '.join(limits)}." if limits else ".")
