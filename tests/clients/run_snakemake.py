"""Snakemake with its cluster-generic executor: a small graph of rules as jobs, then one that
fails."""

import subprocess
import sys
from pathlib import Path

STATUS = """\
#!/bin/sh
# What Snakemake's documentation suggests for PBS: the state, and the exit status of what has ended.
text=$(qstat -x -f -w "$1") || { echo failed; exit 0; }
case "$text" in
*"job_state = F"*) case "$text" in *"Exit_status = 0"*) echo success ;; *) echo failed ;; esac ;;
*) echo running ;;
esac
"""

RULES = """\
rule all:
    input: "total.txt"

rule part:
    output: "part-{number}.txt"
    threads: 2
    resources: mem_mb=400
    shell: "echo {wildcards.number} $PBS_JOBID > {output}"

rule join:
    input: expand("part-{number}.txt", number=range(3))
    output: "total.txt"
    shell: "cat {input} > {output}"

rule broken:
    output: "never.txt"
    shell: "echo begun > begun.txt; exit 3"
"""

SUBMIT = (
    "qsub -V -N {rule} -l select=1:ncpus={threads}:mem={resources.mem_mb}mb -l walltime=60 "
    "-j "
    "oe -o logs/"
)


def snakemake(target: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--executor",
        "cluster-generic",
        "--cluster-generic-submit-cmd",
        SUBMIT,
        "--cluster-generic-status-cmd",
        "./status.sh",
        "--cluster-generic-cancel-cmd",
        "qdel",
        "--jobs",
        "4",
        "--default-resources",
        "mem_mb=400",
        "--latency-wait",
        "10",
        "--seconds-between-status-checks",
        "1",
        "--snakefile",
        "Snakefile",
        target,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def main() -> None:
    Path("logs").mkdir()
    Path("Snakefile").write_text(RULES)
    Path("status.sh").write_text(STATUS)
    Path("status.sh").chmod(0o755)
    done = snakemake("all")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = Path("total.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2"], lines
    assert len({line.split()[1] for line in lines}) == 3, lines
    table = subprocess.run(["qstat", "-x"], check=True, capture_output=True, text=True).stdout
    assert (table.count(" part "), table.count(" join ")) == (3, 1), table
    failed = snakemake("broken")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "Error in rule broken" in failed.stdout + failed.stderr
    assert Path("begun.txt").exists()
    assert not Path("never.txt").exists()
    assert subprocess.run(["qstat"], check=True, capture_output=True, text=True).stdout == ""
    print("done", table)


if __name__ == "__main__":
    main()
