"""What several tests of the runner compare with."""

import pytest

from gatefit.experiments.record import RunRecord
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from runner_cases import LONG


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunRecord:
    """The long run, undisturbed."""
    with Store.open(tmp_path_factory.mktemp("whole")) as store:
        (record,) = run_all([LONG], store, threads=1)
        return record
