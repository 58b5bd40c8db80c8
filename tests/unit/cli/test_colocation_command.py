"""`kube-synergy colocation`: tables in, a model and predictions out; one line for bad input."""

import csv
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from support import papers
from support.counters import FOLDER, GPU, text
from synergy_api.parts.sharing import GPUUsage
from synergy_cli.colocation.tables import measurements_of, read_pairs, read_singles
from synergy_cli.main import main
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.evaluation import judged, score
from synergy_core.colocation.predictors.sums import fit_sums

SINGLE = "model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem"
PAIR = (
    "model1,dataset1,gpu_num1,batchsize1,amp1,speed1,model2,dataset2,gpu_num2,batchsize2,amp2,speed2,"
    "gpu_util,gmem_util,gmem"
)
JOBS = {"Net18": 60, "Net50": 90, "VGG": 40, "PPO": 10, "LSTM": 75}


def _fraction(own: int, partner: int) -> float:
    return 1.0 - 0.4 * own * partner / 10_000


def _tables(folder: Path, *, speeds: bool = True) -> tuple[str, str]:
    single, pairs = folder / "S.csv", folder / "P.csv"
    single.write_text("\n".join([SINGLE, *(f"{name},D,32,0,100,{util},20,2000" for name, util in JOBS.items())]))
    lines = [PAIR]
    for a, one in JOBS.items():
        for b, other in JOBS.items():
            first, second = (f"{_fraction(one, other):.4f}", f"{_fraction(other, one):.4f}") if speeds else ("", "")
            lines.append(f"{a},D,1,32,0,{first},{b},D,1,32,0,{second},80,30,4000")
    pairs.write_text("\n".join(lines))
    return str(single), str(pairs)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["colocation", *arguments])


def _fit(folder: Path) -> tuple[str, str, str]:
    single, pairs = _tables(folder)
    model = str(folder / "MODEL.json")
    assert _run("fit", "--single", single, "--pairs", pairs, "--out", model).exit_code == 0
    return model, single, pairs


def test_a_fitted_model_predicts_the_pairs_in_their_order(tmp_path: Path) -> None:
    model, single, pairs = _fit(tmp_path)
    out = tmp_path / "OUT.csv"
    done = _run("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", str(out), "--json")
    answer = json.loads(done.stdout)
    assert answer["pairs"] == 25
    assert answer["mae"] < 0.01
    assert answer["share_accuracy"] > 0.9
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["predicted_speed1", "predicted_speed2", "share"]
    expected = [_fraction(a, b) for a in JOBS.values() for b in JOBS.values()]
    assert [float(row["predicted_speed1"]) for row in rows] == pytest.approx(expected, abs=0.03)
    for row in rows:
        keeps = min(float(row["predicted_speed1"]), float(row["predicted_speed2"])) >= 0.85
        assert row["share"] == str(int(keeps))


def test_a_model_fitted_for_the_estimator_tells_what_was_measured(tmp_path: Path) -> None:
    single, pairs = _tables(tmp_path)
    model, out = str(tmp_path / "MODEL.json"), str(tmp_path / "OUT.csv")
    assert _run("fit", "--single", single, "--pairs", pairs, "--out", model, "--estimator").exit_code == 0
    arguments = ("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", out, "--json")
    assert json.loads(_run(*arguments).stdout)["mae"] < 1e-6
    assert json.loads(_run(*arguments, "--predictor", "sums").stdout)["mae"] > 1e-3


def test_without_the_truth_there_are_predictions_and_no_judgement(tmp_path: Path) -> None:
    model, single, _ = _fit(tmp_path)
    folder = tmp_path / "asked"
    folder.mkdir()
    _, pairs = _tables(folder, speeds=False)
    out = str(tmp_path / "OUT.csv")
    done = _run("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", out, "--json")
    assert json.loads(done.stdout) == {"pairs": 25, "mae": None, "share_accuracy": None}
    narrow = Path(pairs)
    header = PAIR.split(",")
    keep = [header.index(name) for name in header if name not in ("speed1", "speed2")]
    narrow.write_text("\n".join(",".join(line.split(",")[i] for i in keep) for line in narrow.read_text().splitlines()))
    again = _run("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", out, "--json")
    assert json.loads(again.stdout) == json.loads(done.stdout)


def test_the_thesis_predictor_is_there_as_well(tmp_path: Path) -> None:
    model, single, pairs = _fit(tmp_path)
    out = tmp_path / "OUT.csv"
    asked = ("--model", model, "--single", single, "--pairs", pairs, "--out", str(out), "--predictor", "sums")
    assert _run("predict", *asked).exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert all(row["predicted_speed1"] == row["predicted_speed2"] for row in rows)


def test_the_evaluation_tells_errors_and_draws_the_calibration(tmp_path: Path) -> None:
    single, pairs = _tables(tmp_path)
    report = tmp_path / "report.html"
    done = _run("evaluate", "--single", single, "--pairs", pairs, "--report", str(report), "--json")
    answer = json.loads(done.stdout)
    assert set(answer["scores"]) == {"sums", "effects"}
    assert answer["scores"]["effects"]["mae"] < answer["scores"]["sums"]["mae"]
    assert list(answer["after"]) == ["0", "1", "2", "3"]
    assert 'class="plot"' in report.read_text()
    assert "commoner answer" in _run("evaluate", "--single", single, "--pairs", pairs).stdout


def _change(path: str, line: int, old: str, new: str) -> None:
    lines = Path(path).read_text().splitlines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    Path(path).write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("table", "line", "old", "new", "message"),
    [
        ("S", 1, "gpu_util", "spam", "S.csv, line 1, gpu_util: column is missing"),
        ("S", 1, "gmem_util,gmem", "gmem_util,gmem,spam", "S.csv, line 1, spam: unknown column"),
        ("S", 3, ",90,", ",190,", "S.csv, line 3, gpu_util: must be at most 100 percent, is 190"),
        ("S", 3, ",100,", ",fast,", "S.csv, line 3, speed: must be a number, is 'fast'"),
        ("S", 3, "Net50", "Net18", "S.csv, line 3, model: Net18 D 32 0 occurs twice"),
        ("S", 2, ",32,0,", ",32,yes,", "S.csv, line 2, amp: must be 0 or 1"),
        ("P", 4, "Net18,D,1,32", "Net19,D,1,32", "P.csv, line 4, model1: the table of single jobs has no Net19 on D"),
        ("P", 4, "VGG,D,1,32,0,", "VGG,D,1,32,0,-", "P.csv, line 4, speed2: must be above 0"),
        ("P", 1, ",speed2", ",speed3", "P.csv, line 1, speed2: column is missing"),
        ("P", 5, ",4000", "", "P.csv, line 5: has 14 values for 15 columns"),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    tmp_path: Path, *, table: str, line: int, old: str, new: str, message: str
) -> None:
    single, pairs = _tables(tmp_path)
    _change(single if table == "S" else pairs, line, old, new)
    done = _run("fit", "--single", single, "--pairs", pairs, "--out", str(tmp_path / "M.json"))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "M.json").exists()


def test_a_pair_that_has_one_speed_only_is_refused(tmp_path: Path) -> None:
    model, single, pairs = _fit(tmp_path)
    _change(pairs, 2, f",{_fraction(60, 60):.4f},Net18", ",,Net18")
    done = _run("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", str(tmp_path / "O.csv"))
    assert done.exit_code == 2
    assert "line 2, speed1: is empty, and the other job's is there" in done.stderr


def test_too_few_pairs_and_families_are_refused(tmp_path: Path) -> None:
    single, pairs = _tables(tmp_path)
    Path(pairs).write_text("\n".join(Path(pairs).read_text().splitlines()[:3]))
    done = _run("fit", "--single", single, "--pairs", pairs, "--out", str(tmp_path / "M.json"))
    assert (done.exit_code, "2 pairs are too few" in done.stderr) == (2, True)
    done = _run("evaluate", "--single", single, "--pairs", pairs)
    assert (done.exit_code, "are too few" in done.stderr) == (2, True)


def test_a_bad_model_file_is_refused(tmp_path: Path) -> None:
    model, single, pairs = _fit(tmp_path)
    out = str(tmp_path / "O.csv")
    Path(model).write_text('{"format": 1}')
    done = _run("predict", "--model", model, "--single", single, "--pairs", pairs, "--out", out)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {model}: ")
    assert "missing; add it" in done.stderr
    missing = _run("predict", "--model", str(tmp_path / "no"), "--single", single, "--pairs", pairs, "--out", out)
    assert (missing.exit_code, "--model: cannot read" in missing.stderr) == (2, True)


@pytest.mark.papers
def test_on_the_public_measurements_unseen_families_are_told_better_than_by_the_sums() -> None:
    data = papers.found("colocation")
    if data is None:
        pytest.skip("the public measurements are not beside the project (PAPERS_DATA names their folder)")
    pairs = read_pairs(data / "pairs.csv", read_singles(data / "single.csv"), measured=True)
    measured = measurements_of(pairs)
    sums, ours = (score(judged(measured, fit)) for fit in (fit_sums, fit_effects))
    assert (ours.mae < 0.068, sums.mae > 0.08) == (True, True)
    assert ours.share_accuracy > sums.share_accuracy + 0.07
    assert ours.mean_accuracy > 0.87


def test_a_file_of_the_exporter_becomes_a_usage(tmp_path: Path) -> None:
    one = text("dcgm.prom")
    file = tmp_path / "two.prom"
    file.write_text(one + one.replace("0.412500", "0.212500").replace(" 5120", " 6144"))
    told = json.loads(_run("usage", "--dcgm", str(file), "--gpu", GPU, "--gpu-type", "A100", "--json").stdout)
    assert told["usage"] == {
        "gpuType": "A100", "compute": 0.3125, "bandwidth": 0.225, "source": "Counters", "utilization": 0.97,
        "memoryUtilization": 0.44, "memory": str(6144 << 20),
    }  # fmt: skip
    assert told["occupancy"] == 0.1875
    assert told["notes"] == [f"mean of 2 readings of {GPU}"]
    GPUUsage.model_validate(told["usage"])


@pytest.mark.parametrize("name", ["kernels-raw.csv", "kernels-details.csv"])
def test_a_file_of_nsight_compute_becomes_a_usage(name: str) -> None:
    done = _run("usage", "--nsight", str(FOLDER / name), "--utilization", "50", "--memory", "3Gi", "--gpu-type", "V100")
    assert done.stdout.splitlines() == [
        "- {gpuType: V100, compute: 0.2375, bandwidth: 0.1, source: Counters, utilization: 0.5, memory: 3Gi}",
        "occupancy 12.8%",
        "thesis, section 4.2, over 3 kernels: M 8e+07, C 1.338e+08 (percent x ns)",
    ]
    GPUUsage.model_validate(yaml.safe_load(done.stdout.splitlines()[0])[0])


def test_bounds_are_told_for_what_they_are(tmp_path: Path) -> None:
    whole = _run("usage", "--nsight", str(FOLDER / "kernels-raw.csv")).stdout
    assert "compute: 0.475" in whole
    assert "upper bounds: give --utilization" in whole
    assert "the entry still needs the job's memory: give --memory" in whole
    (tmp_path / "k.csv").write_text(
        '"ID","gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active",'
        '"dram__throughput.avg.pct_of_peak_sustained_elapsed"\n"0","5","50","25"\n'
    )
    assert "collect sm__cycles_active" in _run("usage", "--nsight", str(tmp_path / "k.csv")).stdout
    lines = [line for line in text("dcgm.prom").splitlines() if "GPU_UTIL" not in line and "# HELP" not in line]
    (tmp_path / "d.prom").write_text("\n".join(lines))
    assert "no DCGM_FI_DEV_GPU_UTIL" in _run("usage", "--dcgm", str(tmp_path / "d.prom"), "--gpu", GPU).stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give one of --nsight FILE and --dcgm FILE"),
        (["--nsight", "x", "--dcgm", "y"], "give one of --nsight FILE and --dcgm FILE"),
        (["--nsight", "nowhere"], "--nsight: cannot read nowhere"),
        (["--nsight", "PROM"], 'no line begins with "ID"'),
        (["--nsight", "x", "--gpu", "GPU-1"], "--gpu: an output of Nsight Compute does not name the GPU"),
        (["--nsight", "CSV", "--utilization", "nan"], "--utilization"),
        (["--nsight", "CSV", "--memory", "much"], "--memory: 'much' is not a Kubernetes quantity"),
        (["--nsight", "CSV", "--memory", "0"], "--memory: '0' is not above 0"),
        (["--dcgm", "CSV"], "no GPU has DCGM_FI_PROF_SM_ACTIVE"),
        (["--dcgm", "PROM"], "has 2 GPUs"),
        (["--dcgm", "PROM", "--gpu", "GPU-9"], "no figures of the GPU GPU-9; it has GPU-1"),
        (["--dcgm", "PROM", "--utilization", "5"], "--utilization: --dcgm has DCGM_FI_DEV_GPU_UTIL"),
    ],
)
def test_files_that_tell_no_usage_are_refused(arguments: list[str], problem: str) -> None:
    names = {"PROM": str(FOLDER / "dcgm.prom"), "CSV": str(FOLDER / "kernels-raw.csv")}
    done = _run("usage", *(names.get(word, word) for word in arguments))
    assert done.exit_code != 0
    assert problem in done.stderr


def test_a_model_is_fitted_to_counters_if_the_table_has_them(tmp_path: Path) -> None:
    single, pairs = _tables(tmp_path)
    out = str(tmp_path / "MODEL.json")
    refused = _run("fit", "--single", single, "--pairs", pairs, "--out", out, "--counters")
    assert refused.exit_code != 0
    assert "sm_active" in refused.stderr
    lines = Path(single).read_text().splitlines()
    counted = [f"{line},{util / 2},5" for line, util in zip(lines[1:], JOBS.values(), strict=True)]
    Path(single).write_text("\n".join([f"{lines[0]},sm_active,dram_active", *counted]))
    assert _run("fit", "--single", single, "--pairs", pairs, "--out", out, "--counters").exit_code == 0
    assert json.loads(Path(out).read_text())["counters"] is True
    told = str(tmp_path / "OUT.csv")
    done = _run("predict", "--model", out, "--single", single, "--pairs", pairs, "--out", told, "--json")
    assert json.loads(done.stdout)["mae"] < 0.02
