"""The long form: it comes to a million inputs, ends in time, and tells of every fault how to see it again."""

import json
import time
from pathlib import Path

import pytest

from tests.fuzz import running
from tests.fuzz.running import Job, main, plan, report
from tests.fuzz.targets import BY_NAME

FAULT = {"kind": "false accept", "place": "a.py:1", "message": "FalseAccept: x", "count": 3, "inputs": ["00ff"]}


def asked(*arguments: str) -> running.argparse.Namespace:
    return running._parsed(["--seed", "7", *arguments])


def test_it_comes_to_a_million_inputs_and_leaves_no_target_out() -> None:
    jobs, _ = plan(running.INPUTS, 7, set())
    assert sum(job.inputs for job in jobs if job.name != "api") >= 1_000_000
    assert {job.name for job in jobs} == {*BY_NAME, "api", "connections"}
    assert {job.engine for job in jobs} >= {"seeded", "structured", "served"}


def test_without_atheris_the_rest_makes_up_for_it_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running.importlib.util, "find_spec", lambda _: None)
    jobs, missing = plan(running.INPUTS, 7, set())
    assert "guided" not in {job.engine for job in jobs}
    assert sum(job.inputs for job in jobs if job.name != "api") >= 1_000_000
    for environ, code in (("", 0), ("true", 1)):
        monkeypatch.setenv("CI", environ)
        assert report([], asked(), 1.0, missing) == code
    assert "atheris is not installed" in capsys.readouterr().out


def test_a_job_runs_in_a_process_of_its_own() -> None:
    job = Job("seeded", "ids", 600, seed=7)
    job.run(time.monotonic() + 60)
    assert (job.error, job.told["done"], job.told["inputs"], job.faults) == ("", True, 600, [])
    assert report([job], asked(), 1.0, "") == 0


def test_a_job_that_breaks_down_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job("seeded", "no such target", 600, seed=7)
    job.run(time.monotonic() + 60)
    assert report([job], asked(), 1.0, "") == 1
    assert "KeyError: 'no such target'" in capsys.readouterr().out


def test_too_few_inputs_are_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job("seeded", "ids", 600, seed=7, told={"done": True, "inputs": 599, "seconds": 1.0})
    assert report([job], asked(), 1.0, "") == 1
    assert "cut short after 20 minutes (--minutes): ids (seeded)" in capsys.readouterr().out


def test_a_fault_is_told_kept_and_can_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "CACHE", tmp_path)
    told = {"done": True, "inputs": 600, "seconds": 1.0, "faults": [FAULT]}
    job = Job("seeded", "ids", 600, seed=7, told=told)
    assert report([job], asked(), 1.0, "") == 1
    out = capsys.readouterr().out
    assert "python -m tests.fuzz --again ids 00ff" in out
    assert json.loads((tmp_path / "failures-7.json").read_text())[0]["inputs"] == ["00ff"]
    assert main(["--again", "ids", "00ff"]) == 0
    assert "ids: taken and taken" in capsys.readouterr().out


def test_answers_of_the_api_are_counted_by_themselves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "CACHE", tmp_path)
    fault = FAULT | {"kind": "uncaught", "count": 2}
    told = {"done": True, "inputs": 600, "seconds": 1.0, "words": {"2xx": 598, "5xx": 2}, "faults": [fault]}
    assert report([Job("served", "api", 600, seed=7, told=told)], asked(), 1.0, "") == 1
    assert "api: 600 requests, 2 answers of 500 and more, 2 that are not described" in capsys.readouterr().out


def test_the_result_is_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job("seeded", "ids", 600, seed=7, told={"done": True, "inputs": 600, "seconds": 1.0})
    assert report([job], asked("--json"), 1.0, "") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["seed"], result["total"]["inputs"]) == (True, 7, 600)
    assert (result["total"]["uncaught"], result["total"]["false accepts"]) == (0, 0)
