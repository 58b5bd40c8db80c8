"""`kube-synergy simulate`: figures on stdout, files whole or not at all, one line for bad input."""

import csv
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.simulator.simulation import CLUSTER, PROFILES
from synergy_cli.main import main
from synergy_simulator.report.figures import figures
from synergy_simulator.report.intervals import Interval
from synergy_simulator.report.metrics import Metrics

KEYS = (
    "jobs measured avg_jct_s median_jct_s p95_jct_s p99_jct_s makespan_s avg_queue_s avg_ftf p95_ftf worst_ftf "
    "gpu_utilization cpu_utilization memory_utilization preemptions cost slo_violations rounds "
    "plan_mean_ms plan_p99_ms wall_s"
)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    rows = [f"j{index},{index * 10},1,{'hungry' if index % 2 else 'frugal'},500" for index in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,steps", *rows]))
    (tmp_path / "p.json").write_text(json.dumps(PROFILES))
    (tmp_path / "c.yaml").write_text(CLUSTER)
    return tmp_path


def _run(folder: Path, *more: str) -> Result:
    files = ("--trace", folder / "t.csv", "--profiles", folder / "p.json", "--cluster", folder / "c.yaml")
    return CliRunner().invoke(main, ["simulate", *map(str, files), *more])


def test_json_has_the_fields_of_the_contract_and_nothing_else(inputs: Path) -> None:
    result = _run(inputs, "--policy", "srtf", "--mechanism", "tune", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert " ".join(report) == KEYS
    assert (report["jobs"], report["measured"]) == (6, 6)
    assert 0 < report["avg_jct_s"] <= report["makespan_s"]
    assert 0 < report["gpu_utilization"] <= 1


def test_a_simulation_says_that_it_takes_preemption_as_free(inputs: Path) -> None:
    free = _run(inputs, "--policy", "las", "--json")
    assert "assumes that a preemption costs nothing" in free.stderr
    assert len(json.loads(free.stdout)), "stdout stays one object"
    for told in (("--policy", "las", "--preemption-overhead", "90"), ("--policy", "fifo")):
        assert "assumes" not in _run(inputs, *told).stderr


def test_the_table_is_for_reading(inputs: Path) -> None:
    result = _run(inputs)
    assert "average JCT, min" in result.stdout
    assert "2d-las on tune" in result.stdout


@pytest.mark.parametrize(
    ("longest", "unit", "shown"), [(36000.0, "h", "0.50"), (600.0, "min", "30.00"), (5, "s", "1800.00")]
)
def test_times_are_in_a_unit_that_fits_the_longest_run(longest: float, unit: str, shown: str) -> None:
    values = {field.name: 0 for field in fields(Metrics)}
    short, long = (Metrics(**{**values, "avg_jct_s": 1800.0, "makespan_s": end}) for end in (1.0, longest))
    assert dict(figures([short, long]))[f"average JCT, {unit}"] == [shown, shown]


def test_two_outputs_do_not_overwrite_each_other(inputs: Path) -> None:
    out = inputs / "out"
    result = _run(inputs, "--per-job", str(out), "--report", str(inputs / "." / "out"))
    assert result.exit_code == 2
    assert "--report: " in result.stderr
    assert not out.exists()


def test_a_line_per_job(inputs: Path) -> None:
    out = inputs / "jobs.csv"
    assert _run(inputs, "--per-job", str(out), "--json").exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["job_id", "arrival_s", "start_s", "finish_s", "jct_s", "queue_s", "gpu_s", "preemptions"]
    assert [row["job_id"] for row in rows] == [f"j{index}" for index in range(6)]
    for row in rows:
        assert float(row["finish_s"]) - float(row["arrival_s"]) == pytest.approx(float(row["jct_s"]))


def test_options_change_what_they_say(inputs: Path) -> None:
    plain = json.loads(_run(inputs, "--json").stdout)
    window = json.loads(_run(inputs, "--json", "--measure", "1:3", "--until-measured-done").stdout)
    assert (window["measured"], window["jobs"]) == (2, 6)
    assert window["makespan_s"] < plain["makespan_s"]
    slow = json.loads(_run(inputs, "--json", "--profiling-overhead", "100").stdout)
    assert slow["avg_jct_s"] > plain["avg_jct_s"] + 99
    late = json.loads(_run(inputs, "--json", "--no-fill", "--round", "1000").stdout)
    assert late["avg_jct_s"] > plain["avg_jct_s"]
    assert json.loads(_run(inputs, "--json", "--jobs", "0:2").stdout)["jobs"] == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--policy", "x"), "--policy: 'x' is not there; choose one of "),
        (("--mechanism", "x"), "--mechanism: 'x' is not there; choose one of "),
        (("--measure", "4:9"), "--measure: 4:9 goes past the 6 jobs of the trace"),
        (("--measure", "4"), "Invalid value for '--measure': must be two counts A:B with A below B, is '4'"),
        (("--measure", "4:4"), "Invalid value for '--measure': must be two counts A:B with A below B, is '4:4'"),
        (("--jobs", "0:7"), "--jobs: 0:7 goes past the 6 jobs of the trace"),
        (("--until-measured-done",), "--until-measured-done: needs --measure A:B"),
        (("--sharing", "--policy", "fifo"), "--sharing: no job of the trace has a usage of the GPU; give --usage"),
        (("--sharing", "--policy", "srtf"), "--sharing: srtf has no such variant"),
        (
            ("--sharing",),
            "--sharing: 2d-las has no such variant; leave it out, or choose another policy, for example --policy max-",
        ),
        (("--policy", "las", "--agnostic"), "--agnostic: las has no such variant"),
        (("--policy", "las", "--placement-sensitive"), "--placement-sensitive: las has no such variant"),
        (
            ("--policy", "makespan", "--placement-sensitive"),
            "--placement-sensitive: no input says what a job keeps of its speed on many nodes; add the column",
        ),
        (("--unconsolidated",), "--unconsolidated: --profiles has no speeds of types that end in _unconsolidated"),
        (("--measured-types", "2", "--colocation", "auto"), "--measured-types: jobs that share a GPU need all"),
        (("--measured-types", "0"), "Invalid value for '--measured-types': 0 is not in the range x>=1"),
        (("--tenant", "a=1"), "--tenant: 2d-las knows no tenants; leave it out or use --policy hierarchical"),
        (("--tenant", "a"), "Invalid value for '--tenant': must be NAME=WEIGHT"),
        (("--tenant", "a=-1"), "Invalid value for '--tenant': must be NAME=WEIGHT"),
        (("--tenant", "a=1:las"), "Invalid value for '--tenant': must be NAME=WEIGHT"),
        (("--tenant", "a=1", "--tenant", "a=2"), "Invalid value for '--tenant': a is there 2 times"),
        (("--round", "0"), "Invalid value for '--round'"),
        (("--start-overhead", "-1"), "Invalid value for '--start-overhead'"),
        (("--preemption-overhead", "-1"), "Invalid value for '--preemption-overhead'"),
        (("--preemption-overhead", "nan"), "Invalid value for '--preemption-overhead': nan is not a number of seconds"),
        (("--profiling-overhead", "inf"), "Invalid value for '--profiling-overhead': inf is not a number of seconds"),
        (("--round", "1e300"), "Invalid value for '--round': 1e300 is not a number of seconds"),
        (("--queue-thresholds", "5,3"), "--queue-thresholds[1]: 3 is not above 5; sort the thresholds"),
        (("--queue-thresholds", "x"), "--queue-thresholds: must be GPU-seconds A,B,.. that ascend, or none; 'x' is no"),
        (("--promote-knob", "-1"), "--promote-knob: must be above 0, is -1.0; leave it out to promote no job"),
        (
            ("--promote-knob", "2", "--queue-thresholds", "none"),
            "--promote-knob: without queues no job is promoted; leave it out or give --queue-thresholds",
        ),
        (("--pack-limit", "nan"), "Invalid value for '--pack-limit': nan is not a finite number"),
        (("--pack-limit", "40"), "Invalid value for '--pack-limit': 40.0 is not in the range 0<=x<=1"),
        (("--storage-bandwidth", "1e9"), "--storage-bandwidth: no job of the trace has checkpoint_bytes; add that col"),
        (("--storage-bandwidth", "0"), "Invalid value for '--storage-bandwidth': 0.0 is not in the range x>=1"),
        (("--link-bandwidth", "1e9"), "--link-bandwidth: no job of the trace has model_bytes; add that column"),
        (("--preemption-payback", "nan"), "Invalid value for '--preemption-payback': nan is not a finite number"),
        (("--preemption-payback", "-1"), "Invalid value for '--preemption-payback'"),
        (("--service-distribution", "/no/file"), "--service-distribution: cannot read /no/file"),
        (("--split", "1,2"), "Invalid value for '--split': must be three numbers"),
        (("--per-job", "/no/such/folder/out.csv"), "--per-job: there is no folder /no/such/folder; make it first"),
        (("--per-job", "/"), "--per-job: / is a folder; give the name of a file"),
        (("--trace", "/no/trace"), "/no/trace: cannot be read: No such file or directory; give the path of a file"),
    ],
)
def test_bad_options_are_one_line(inputs: Path, arguments: tuple[str, ...], line: str) -> None:
    result = _run(inputs, *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {line}")
    assert len(result.stderr.splitlines()) == 1


def test_policies_by_cost_need_the_price_of_every_pool(inputs: Path) -> None:
    priced = _run(inputs, "--policy", "min-cost", "--json")
    assert json.loads(priced.stdout)["cost"] > 0
    cluster = (inputs / "c.yaml").read_text()
    (inputs / "c.yaml").write_text(cluster.replace(", cost_per_hour: 2", ""))
    result = _run(inputs, "--policy", "min-cost", "--json")
    assert result.exit_code == 2
    assert "lacks cost_per_hour; min-cost needs the price of every GPU" in result.stderr


def test_bad_input_names_line_and_field_and_writes_nothing(inputs: Path) -> None:
    with (inputs / "t.csv").open("a") as file:
        file.write("\nj7,-5,1,hungry,5")
    before = set(inputs.iterdir())
    result = _run(inputs, "--per-job", str(inputs / "jobs.csv"), "--json")
    assert result.exit_code == 2
    assert result.stderr == f"error: {inputs}/t.csv, line 8, arrival_s: must be at least 0, is -5\n"
    assert set(inputs.iterdir()) == before


def test_an_old_file_stays_when_the_input_is_bad(inputs: Path) -> None:
    out = inputs / "jobs.csv"
    out.write_text("old")
    (inputs / "p.json").write_text("{")
    assert _run(inputs, "--per-job", str(out)).exit_code == 2
    assert out.read_text() == "old"


def _compare(folder: Path, *more: str) -> Result:
    files = ("--trace", folder / "t.csv", "--profiles", folder / "p.json", "--cluster", folder / "c.yaml")
    return CliRunner().invoke(main, ["compare", *map(str, files), "--processes", "1", *more])


def test_compare_has_a_run_for_each_policy_and_mechanism(inputs: Path) -> None:
    out = inputs / "report.html"
    result = _compare(
        inputs, "--policies", "fifo,las", "--mechanisms", "tune,proportional", "--report", str(out), "--json"
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    asked = [("fifo", "tune"), ("fifo", "proportional"), ("las", "tune"), ("las", "proportional")]
    assert [(run["policy"], run["mechanism"]) for run in report["runs"]] == asked
    alone = json.loads(_run(inputs, "--policy", "las", "--mechanism", "tune", "--json").stdout)
    assert report["runs"][2]["avg_jct_s"] == alone["avg_jct_s"]
    assert report["runs"][0]["avg_jct_s"] < report["runs"][1]["avg_jct_s"]
    assert out.read_text().count("las on tune") >= 2


def test_several_seeds_give_means_and_intervals(inputs: Path) -> None:
    out = inputs / "report.html"
    few = ("--policies", "fifo", "--mechanisms", "tune")
    text, jcts = (inputs / "t.csv").read_text(), []
    for seed in range(3):
        (inputs / "t.csv").write_text(text.replace(",500", f",{500 + 200 * seed}"))
        (inputs / f"t-{seed}.csv").write_text((inputs / "t.csv").read_text())
        jcts.append(json.loads(_compare(inputs, *few, "--json").stdout)["runs"][0]["avg_jct_s"])
    several = (*few, "--trace", str(inputs / "t-{seed}.csv"), "--seeds", "0:3")
    result = _compare(inputs, *several, "--report", str(out), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (run,) = report["runs"]
    assert report["seeds"] == [0, 1, 2]
    assert run["avg_jct_s"] == pytest.approx(sum(jcts) / 3)
    assert run["ci95"]["avg_jct_s"] == pytest.approx(Interval.of(jcts).half)
    assert run["ci95"]["jobs"] == 0
    assert "Figures and lines are means of 3 seeds." in out.read_text()
    assert re.search(r"average JCT, min +\d+\.\d\d ± \d+\.\d\d", _compare(inputs, *several).stdout)


def test_seeds_of_a_trace_of_which_nothing_is_drawn_are_refused(inputs: Path) -> None:
    result = _compare(inputs, "--seeds", "0:3")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --seeds: nothing of this trace is drawn, so every seed gives the same")


def test_what_no_input_sets_has_no_line(inputs: Path) -> None:
    text = _run(inputs).stdout
    assert "SLO" not in text
    assert "cost" in text
    (inputs / "c.yaml").write_text(re.sub(r",? *cost_per_hour: *[\d.]+", "", CLUSTER))
    assert "cost" not in _run(inputs).stdout
    rows = ["job_id,arrival_s,gpus,model,steps,slo_s", "a,0,1,frugal,500,1", "b,0,1,frugal,500,"]
    (inputs / "t.csv").write_text("\n".join(rows))
    assert re.search("missed SLOs +1 of 1", _run(inputs).stdout)


def test_compare_is_a_table_for_reading(inputs: Path) -> None:
    lines = _compare(inputs, "--policies", "fifo", "--mechanisms", "tune").stdout.splitlines()
    assert lines[0].split() == ["fifo", "on", "tune"]
    assert lines[3].startswith("average JCT, min")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--policies", "fifo,x"), "--policies: 'x' is not there"),
        (("--mechanisms", "x"), "--mechanisms: 'x' is not there"),
        (("--policies", ","), "Invalid value for '--policies': must be names with commas"),
        (("--policies", "fifo,fifo"), "Invalid value for '--policies': must be names with commas"),
        (("--report", "/no/folder/x.html"), "--report: there is no folder /no/folder"),
        (("--policies", "fifo,srft"), "--policies: 'srft' is not there; did you mean 'srtf'? choose one of 2d-gittins"),
        (("--seeds", "0:1"), "Invalid value for '--seeds': needs at least two seeds for an interval, is '0:1'"),
        (("--seeds", "3"), "Invalid value for '--seeds': must be two counts A:B"),
        (("--seeds", "0:2", "--seed", "1"), "--seeds: takes the place of --seed; give one of them"),
    ],
)
def test_bad_options_of_compare_are_one_line(inputs: Path, arguments: tuple[str, ...], line: str) -> None:
    result = _compare(inputs, *arguments, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {line}")
    assert len(result.stderr.splitlines()) == 1


def test_a_report_of_one_run(inputs: Path) -> None:
    out = inputs / "report.html"
    assert _run(inputs, "--report", str(out), "--json").exit_code == 0
    assert "2d-las on tune" in out.read_text()


def test_a_generated_trace_is_simulated_with_the_built_in_profiles(inputs: Path) -> None:
    out = inputs / "made.csv"
    arguments = ["trace", str(out), "--jobs", "12", "--load", "6", "--gpus", "philly", "--seed", "5"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "job_id,arrival_s,gpus,model,duration_s"
    assert len(lines) == 13
    (inputs / "t.csv").write_text(out.read_text())
    cluster = CLUSTER.replace("nodes: 1", "nodes: 8")
    (inputs / "c.yaml").write_text(cluster)
    result = _run(inputs, "--profiles", "built-in", "--json")
    assert json.loads(result.stdout)["measured"] == 12


def test_the_jobs_of_tiresias_testbed_are_drawn_with_what_preempting_and_spreading_costs(inputs: Path) -> None:
    out = inputs / "t.csv"
    arguments = ["trace", str(out), "--jobs", "30", "--load", "120", "--mix", "tiresias-testbed"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    head, *lines = out.read_text().splitlines()
    assert head == "job_id,arrival_s,gpus,model,duration_s,skew,model_bytes,spread_speed,checkpoint_bytes"
    assert len(lines) == 30
    nodes = CLUSTER.replace("nodes: 1", "nodes: 8").replace("gpus_per_node: 2", "gpus_per_node: 4")
    (inputs / "c.yaml").write_text(nodes)
    files = ["--trace", str(out), "--cluster", str(inputs / "c.yaml"), "--policy", "2d-las", "--round", "10", "--json"]

    def average(*more: str) -> float:
        result = CliRunner().invoke(main, ["simulate", *files, *more])
        assert result.exit_code == 0, result.output
        return float(json.loads(result.stdout)["avg_jct_s"])

    short = ("--queue-thresholds", "300", "--preemption-payback", "0")
    slow_storage = average(*short, "--storage-bandwidth", "1e6")
    assert slow_storage > average(*short), "checkpoints of 27 to 548 MB take minutes at 1 MB/s"
    assert average("--pack-limit", "1") > average("--pack-limit", "0.4"), "who is slow when spread is spread"
    link = CliRunner().invoke(main, ["simulate", *files, "--link-bandwidth", "1e9"])
    assert "--link-bandwidth: needs --profiles, which tell how many steps a second send" in link.stderr


def test_a_link_slows_down_who_sends_much_from_many_nodes(inputs: Path) -> None:
    """Two nodes of three GPUs have one left each; a planner that knows the link keeps a node for it: it spreads
    the others."""
    rows = ["a,0,2,frugal,500,1", "b,0,2,frugal,500,1", "wide,0,2,frugal,100,10000000000"]
    (inputs / "t.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,steps,model_bytes", *rows]))
    nodes = CLUSTER.replace("nodes: 1", "nodes: 2").replace("gpus_per_node: 2", "gpus_per_node: 3")
    (inputs / "c.yaml").write_text(nodes.replace("cpus_per_node: 6", "cpus_per_node: 9"))

    def end_of_wide(*more: str) -> float:
        out = inputs / "jobs.csv"
        result = _run(inputs, "--per-job", str(out), "--mechanism", "proportional", "--json", *more)
        assert result.exit_code == 0, result.output
        (line,) = [line for line in out.read_text().splitlines() if line.startswith("wide,")]
        return float(line.split(",")[3])

    assert end_of_wide() == pytest.approx(100.0)
    # ten gigabytes over 1 GB/s take 10 s for each step of 1 s, of which two thirds of a second are free
    assert end_of_wide("--link-bandwidth", "1e9") == pytest.approx(100.0 * (1.0 + 10.0 - 2.0 / 3.0), rel=1e-3)
    assert end_of_wide("--link-bandwidth", "1e9", "--pack-limit", "0.5") == pytest.approx(100.0)


def test_a_policy_that_sees_what_spreading_costs_moves_jobs_together(inputs: Path) -> None:
    """The speeds of the Gavel authors' table: with its GPUs on two nodes the job of two is a tenth as fast."""
    rows = ["a,0,1,m,2000", "b,0,1,m,100", "c,0,1,m,2000", "d,0,1,m,100", "wide,150,2,m,1000"]
    (inputs / "t.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,steps", *rows]))
    table = {name: {f"('m', {gpus})": {"null": 1.0} for gpus in (1, 2)} for name in ("v100", "v100_unconsolidated")}
    table["v100_unconsolidated"]["('m', 2)"] = {"null": 0.1}
    (inputs / "p.json").write_text(json.dumps(table))
    (inputs / "c.yaml").write_text(CLUSTER.replace("nodes: 1", "nodes: 2"))
    how = ("--policy", "max-min-fairness", "--mechanism", "proportional", "--round", "100", "--json")

    def makespan(*more: str) -> float:
        result = _run(inputs, *how, *more)
        assert result.exit_code == 0, result.output
        return float(json.loads(result.stdout)["makespan_s"])

    assert makespan() == pytest.approx(2000.0)
    assert makespan("--unconsolidated") == pytest.approx(150.0 + 1000.0 / 0.1)
    assert makespan("--unconsolidated", "--placement-sensitive") == pytest.approx(2000.0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--jobs", "3"), "--load: jobs of tiresias-testbed arrive one after the other; give jobs per hour"),
        (("--jobs", "481", "--load", "9"), "--jobs: tiresias-testbed has 480 jobs; ask for as many at the most"),
        (("--jobs", "3", "--load", "9", "--gpus", "philly"), "--gpus: tiresias-testbed has GPU counts and models of"),
    ],
)
def test_what_the_testbed_s_jobs_do_not_have_is_refused(inputs: Path, options: tuple[str, ...], line: str) -> None:
    out = inputs / "made.csv"
    result = CliRunner().invoke(main, ["trace", str(out), "--mix", "tiresias-testbed", *options])
    assert (result.exit_code, out.exists()) == (2, False)
    assert line in result.stderr


def test_a_trace_goes_into_a_folder_that_is_there(inputs: Path) -> None:
    result = CliRunner().invoke(main, ["trace", "/no/folder/t.csv", "--jobs", "1"])
    assert result.exit_code == 2
    assert result.stderr == "error: OUT.csv: there is no folder /no/folder; make it first\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("10\n\nten\n", ":3: 'ten' is no number; give GPU-seconds"),
        ("\n", " holds no number; give one a line"),
        ("10\n\n-5\n", ":3: must be above 0 and finite, is -5.0"),
        ("nan\n", ":1: must be above 0 and finite, is nan"),
        ("10\n0\n", ":2: must be above 0 and finite, is 0.0"),
    ],
)
def test_a_bad_distribution_is_named(inputs: Path, text: str, line: str) -> None:
    known = inputs / "services.txt"
    known.write_text(text)
    result = _run(inputs, "--policy", "2d-gittins", "--service-distribution", str(known), "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert line in result.stderr


def test_gittins_goes_by_the_services_of_finished_jobs(inputs: Path) -> None:
    known = inputs / "services.txt"
    known.write_text("60\n600\n7200\n")
    options = ("--policy", "2d-gittins", "--service-distribution", str(known), "--promote-knob", "8")
    result = _run(inputs, *options, "--queue-thresholds", "100,3600", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["avg_jct_s"] > 0


@pytest.mark.parametrize("load", ["nan", "inf", "1e-300", "0", "-1", "1e9"])
def test_a_trace_of_an_impossible_load_is_not_written(inputs: Path, load: str) -> None:
    out = inputs / "made.csv"
    result = CliRunner().invoke(main, ["trace", str(out), "--jobs", "3", "--load", load])
    assert result.exit_code == 2
    assert "--load" in result.output
    assert not out.exists()


def test_with_few_types_measured_it_says_how_far_the_estimates_were_off(tmp_path: Path) -> None:
    pool = "{{name: {0}, gpu_type: {0}, nodes: 1, gpus_per_node: 1, cpus_per_node: 3, memory_gib_per_node: 60}}"
    speeds = {"K80": 1.0, "P100": 2.0, "V100": 4.0}
    models = {
        f"m{number}": {t: {"1": {"cpus": [1], "memory_gib": [1], "steps_per_s": [[s]]}} for t, s in speeds.items()}
        for number in range(6)
    }
    rows = [f"j{number},0,1,m{number},{3000 + 500 * number}" for number in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,steps", *rows]))
    (tmp_path / "p.json").write_text(json.dumps({"models": models}))
    (tmp_path / "c.yaml").write_text("\n".join(["pools:", *(f"  - {pool.format(gpu_type)}" for gpu_type in speeds)]))
    few = ("--policy", "max-min-fairness", "--mechanism", "proportional", "--measured-types", "2")
    result = _run(tmp_path, *few, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["estimate_error"] == pytest.approx(0.0, abs=1e-9)
    assert "estimates off by" in _run(tmp_path, *few).stdout
    assert "estimate_error" not in json.loads(_run(tmp_path, *few[:4], "--json").stdout)
    several = ("--policies", "max-min-fairness,isolated", "--mechanisms", "proportional")
    runs = json.loads(_compare(tmp_path, *several, *few[4:], "--json").stdout)["runs"]
    assert [run["estimate_error"] for run in runs] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert "estimates off by" in _compare(tmp_path, *several, *few[4:], "--report", str(tmp_path / "r.html")).stdout
    assert "<td>estimates off by</td><td>0% in the mean of" in (tmp_path / "r.html").read_text()
    plain = _compare(tmp_path, *several)
    assert "estimates" not in plain.stdout
    assert "a plan, ms" in plain.stdout
