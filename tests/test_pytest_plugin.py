"""The pytest plugin, by pytester: fixtures, marker, scopes, what it costs, and what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "qbatch.pytest_plugin"
pytest_plugins = "pytester"


@pytest.fixture
def begin(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def outcome(pytester: pytest.Pytester, *arguments: str, **wanted: int) -> str:
    done = pytester.runpytest_subprocess(
        "-p", PLUGIN, "-p", "no:cacheprovider", "--strict-markers", *arguments
    )
    done.assert_outcomes(**wanted)
    return str(done.stdout)


def test_the_server_of_a_test(begin: pytest.Pytester, tmp_path: Path) -> None:
    begin.makepyfile(
        """
        import subprocess
        import pytest
        from qbatch.wire.errors import Refusal

        SEEN = []

        def test_jobs_run_and_fail_on_demand(qbatch_server, tmp_path, monkeypatch):
            monkeypatch.chdir(tmp_path)
            SEEN.append(qbatch_server.socket)
            job = qbatch_server.submit("echo $PBS_JOBNAME; exit 3", name="mine", output="out")
            assert qbatch_server.wait(job).exit_status == 3
            assert (tmp_path / "out").read_text() == "mine\\n"
            assert qbatch_server.job(job).name == "mine"
            with pytest.raises(KeyError):
                qbatch_server.job("77")
            qbatch_server.fault("submit-refused", count=1, message="not now")
            with pytest.raises(Refusal, match="not now"):
                qbatch_server.submit("true")
            long = qbatch_server.submit(argv=("sleep", "100"))
            assert qbatch_server.wait(long, until="start").state == "R"
            with pytest.raises(TimeoutError, match="state R"):
                qbatch_server.wait(long, timeout=0.2)
            assert qbatch_server.hosts("n1", action="down")["n1"].state == "down"
            assert len(qbatch_server.hosts()) == 4
            done = subprocess.run(["qstat"], env=qbatch_server.environment, capture_output=True, text=True)
            assert long in done.stdout

        def test_each_has_its_own(qbatch_server):
            assert qbatch_server.socket not in SEEN
            assert qbatch_server.submit() == "1.qbatch"

        @pytest.mark.qbatch(config='server = "other"', executor="emulated", time="x3600", policy="fcfs", torque=True)
        def test_marker_and_commands(qbatch_commands):
            line = "echo 'sleep 1800' | qsub -W block=true; qstat 1"
            done = subprocess.run(line, shell=True, capture_output=True, text=True)
            assert "1.other" in done.stdout and " C batch" in done.stdout, done
        """
    )
    outcome(begin, passed=3)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("qbatch-")]


def test_a_session_shares_servers_by_configuration(begin: pytest.Pytester, tmp_path: Path) -> None:
    begin.makeini("[pytest]\nqbatch_scope = session\n")
    begin.makepyfile(
        """
        import os
        import pytest

        def test_one(qbatch_server):
            assert qbatch_server.submit() == "1.qbatch"
            qbatch_server.fault("submit-refused")

        def test_two(qbatch_server):
            assert qbatch_server.submit() == "2.qbatch"

        @pytest.mark.qbatch(executor="emulated")
        def test_three(qbatch_commands):
            assert os.environ["QBATCH_SOCKET"] == qbatch_commands.socket
            assert qbatch_commands.submit() == "1.qbatch"

        def test_four():
            assert "QBATCH_SOCKET" not in os.environ
        """
    )
    outcome(begin, passed=4)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("qbatch-")]


def test_a_wrong_marker_or_configuration_is_an_error(begin: pytest.Pytester) -> None:
    begin.makepyfile(
        """
        import pytest

        @pytest.mark.qbatch(colour="red")
        def test_marker(qbatch_server): pass

        @pytest.mark.qbatch(config="colour = 'red'")
        def test_configuration(qbatch_server): pass
        """
    )
    text = outcome(begin, errors=2)
    assert "known are config, executor" in text
    assert "key 'colour'" in text


def test_the_import_is_cheap() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import qbatch.pytest_plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "['qbatch', 'qbatch.distribution', 'qbatch.pytest_plugin']"
