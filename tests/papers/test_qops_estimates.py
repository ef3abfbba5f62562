"""Users' estimates as bounds: predictions by hand, a broken promise by hand, and small runs of every bound."""

import numpy as np
import pytest

from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.papers import qops_estimates as estimates
from qbatch.papers.qops_estimates import BY_ESTIMATE, BY_RUN, EXACT, PREDICTED, USERS, EstimateCase, simulate_bounds
from qbatch.papers.qops_runs import DUPLICATION, Trace
from qbatch.papers.qops_study import QopsSource, QopsStudy
from qbatch.papers.record import HOLDS
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.workloads import generate_log

OWN = Trace("generated", "generated", 128)


def test_a_prediction_is_the_mean_of_the_last_two_that_ended_capped_by_the_estimate() -> None:
    log = generate_log(jobs=6, procs=8, load=0.5, seed=1)
    work = prepare(log, one_host(8))
    second = MICROSECONDS
    work = work.changed(
        user=np.array([1, 1, 2, 1, 1, 1]),
        submit=np.array([0, 1, 2, 50, 60, 1000]) * second,
        run=np.array([10, 20, 5, 40, 30, 7]) * second,
        estimate=np.array([100, 100, 100, 100, 12, 100]) * second,
    )
    end = np.array([30, 21, 7, 500, 90, 1007]) * second
    # Row 3: rows 0 and 1 have ended; row 4 the same, capped at 12 s; row 5: the last two to end are 4 (at 90 s) and 3 (at 500 s).
    assert (estimates.predictions(work, end) // second).tolist() == [100, 100, 100, 15, 12, 35]


def test_a_job_that_outlives_its_bound_breaks_the_promise_of_the_one_behind_it() -> None:
    log = generate_log(jobs=2, procs=4, load=0.5, seed=1)
    second = MICROSECONDS
    work = prepare(log, one_host(4)).changed(
        submit=np.array([0, 1]) * second, procs=np.array([4, 4]), run=np.array([100, 10]) * second,
        estimate=np.array([50, 10]) * second, deadline=np.array([200, 70]) * second,
    )  # fmt: skip
    found = estimates.bound_figures(run(work, one_host(4), load_policy("qops"), driver="engine"), work)
    assert (found.admitted, found.late, found.refused) == (2, 1, 0.0)
    assert (found.late_s, found.late_most_s) == (40.0, 40.0), "it ends at 110 s in place of 70 s"


@pytest.fixture(scope="module")
def found() -> list[estimates.QopsEstimateFigures]:
    study = QopsStudy((QopsSource(OWN, 2, (DUPLICATION,)),), jobs=60)
    return estimates.run_estimates(study, workers=1)


def test_upper_bounds_break_nothing_and_predictions_are_outlived(found: list[estimates.QopsEstimateFigures]) -> None:
    assert [one.case for one in found] == [EstimateCase(OWN, 1000, 60, 1), EstimateCase(OWN, 1060, 60, 2)]
    for one in found:
        assert set(one.runs) == {BY_RUN, BY_ESTIMATE}
        for runs in one.runs.values():
            assert [runs[bound].late for bound in (EXACT, USERS, estimates.ALL_USED)] == [0, 0, 0]
            assert runs[PREDICTED].admitted > 0
        assert 0 < one.outlived < 1
        assert one.runs[BY_RUN][USERS].refused > one.runs[BY_RUN][EXACT].refused
    assert simulate_bounds(found[0].case) == found[0]


def test_the_table_and_the_questions_tell_every_bound(found: list[estimates.QopsEstimateFigures]) -> None:
    table = estimates.estimates_table(found)
    assert [(row["deadlines"], row["bound"]) for row in table.rows] == [
        (rule, bound) for rule in (BY_RUN, BY_ESTIMATE) for bound in (EXACT, USERS, estimates.ALL_USED, PREDICTED)
    ]
    assert "jobs that outlive the prediction: generated" in table.notes[0]
    claims = {one.name: one for one in estimates.estimates_claims(found)}
    assert claims["generated.estimates.upper-bounds-keep"].verdict == HOLDS
    assert len(claims) == 5
