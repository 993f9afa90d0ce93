"""What one bit of an encoder says about one feature, and how it reads in print.

feature > value        a threshold           "age > 37.5"
feature = value        a category            "workclass = Private"
feature is missing     a missing value       "age missing"
feature                a bit already         "is_member"
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

Category: TypeAlias = str | int | float | bool


class Rule(NamedTuple):
    """The test that makes one bit true: ``x[feature] test value``."""

    feature: int
    test: Literal[">", "=", "missing", "bit"]
    value: Category | None = None


def rule_names(rules: Sequence[Rule], feature_names: Sequence[str]) -> tuple[str, ...]:
    """One readable name per rule; numbers are shortened to ten digits unless two names would then be the same."""
    names = tuple(_name(rule, feature_names[rule.feature], exact=False) for rule in rules)
    if len(set(names)) < len(names):
        names = tuple(_name(rule, feature_names[rule.feature], exact=True) for rule in rules)
    return names


def _name(rule: Rule, feature: str, *, exact: bool) -> str:
    if rule.test == "bit":
        return feature
    if rule.test == "missing":
        return f"{feature} missing"
    if exact:
        return f"{feature} {rule.test} {rule.value!r}"
    value = f"{rule.value:.10g}" if isinstance(rule.value, float) else str(rule.value)
    return f"{feature} {rule.test} {value}"
