"""Which runs judge what happens inside a network: the longest that there are.

    the paper's scale    where every method has a finished run of the paper's width and steps
    the paper's length   else MNIST with the paper's narrowest layers and all of its steps, at the paper's scale alone
    the scale's own      else

A network of a few thousand steps has not committed yet; one of fewer gates has. So length counts for more than width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import Draft
from gatefit.paper.scales import DATASET_NAMES, SETTINGS, WIDTHS

NARROWEST: Final = WIDTHS["paper"][0]
LENGTH: Final = SETTINGS["paper"]["mnist"].steps
WHERE: Final = f"{DATASET_NAMES['mnist']}, {NARROWEST:,} gates a layer, {LENGTH:,} steps"


@dataclass(frozen=True)
class JudgingRuns:
    """A data set and the changes to its setting, for ``Draft.records`` and its like."""

    dataset: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    """In words, where they are not the scale's own."""

    def records(self, draft: Draft, method: str) -> list[RunRecord]:
        """The finished runs of a method."""
        return draft.records(self.dataset, method, **self.changes)

    def name(self, draft: Draft) -> str:
        """What a caption calls them."""
        return self.where or draft.name(self.dataset)


def judging_runs(draft: Draft, dataset: str, methods: Sequence[str]) -> JudgingRuns:
    """The runs that judge a label of ``dataset`` at this scale; both kinds are asked for, so that both are planned."""
    own = JudgingRuns(dataset)
    if draft.scale != "paper":
        return own
    narrow = JudgingRuns("mnist", {"width": NARROWEST}, WHERE)
    here, there = ([bool(each.records(draft, m)) for m in methods] for each in (own, narrow))
    return narrow if all(there) and not all(here) else own
