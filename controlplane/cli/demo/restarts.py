"""What `holdshort demo --auto` does to its agent and sees then; no run is lost, and nothing is done twice."""

import time
from collections.abc import Sequence

from controlplane.cli.demo.faults import NotSeen, check
from controlplane.cli.demo.programs import POLL_SECONDS, SEE_SECONDS, STOP_SECONDS, Program
from controlplane.cli.demo.stage import CONTRACT, Stage
from controlplane.cli.demo.steps import OPEN_HOURS, Tell, ask, check_outcome, decide, sign_off

SLOW_SECONDS = 1.0
BUSY_SECONDS = 0.4
RUNS_A_RESTART = 6
STEPS_OF_A_RUN = ["read", "analyse", "file"]
WORDS = "While you were away."


def agent_killed(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the agent in a run that it was called for directly: wait_for_resume and a second call go on."""
    run, arguments = f"{stage.name}-called", {"document": CONTRACT, "hours": OPEN_HOURS}
    stage.call("review_contract", run, arguments)
    question = stage.database.approval(run, "analysis", "pending").approval
    took = _approve_while_dead(stage, run, question.approval_id)
    tell("kill -9; approved meanwhile, PostgreSQL has the decision", took)
    stage.agent.start()
    stage.agent.wait_until_ready()
    found = stage.call("look_up", f"{run}-look-up", {"execution_id": run, "question": "analysis"})
    result = found.result()
    took = time.monotonic() - found.begun
    wanted = {"status": "approved", "feedback": WORDS, "round": 1}
    check(result == wanted, f"wait_for_resume to return {wanted}", result)
    tell("started again: wait_for_resume returned the decision", took)
    again = stage.call("review_contract", run, arguments)
    stage.agent.wrote(f"analysis: approved {WORDS}", again.begun)
    took = sign_off(stage, run)
    check(again.result()["status"] == "approved", "the second call's result `approved`", again.result())
    rounds = stage.database.approval(run, "analysis", "approved").approval.round
    check(rounds == 1, "the analysis to be asked once", f"{rounds} rounds")
    tell("called again under its id, the run went on where it was, and asked nothing twice", took)


def killed_between_steps(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the agent behind the first step of a run: started again, it goes on there; nobody calls it."""
    started = stage.execute("between", document=CONTRACT, hours=OPEN_HOURS, seconds=SLOW_SECONDS)
    dead, run = stage.agent.pid, started.execution_id
    stage.agent.wrote("step analyse", started.begun)
    stage.agent.kill()
    done = stage.database.steps(run)
    check(done == ["read"], "the first step, and no other, in PostgreSQL", done)
    tell(f"kill -9 of process {dead}; PostgreSQL has the first step's result", time.monotonic() - started.begun)
    begun = time.monotonic()
    stage.agent.start()
    question = stage.database.approval(run, "analysis", "pending").approval
    new = stage.agent.pid
    _check_done_by(stage.agent, started.begun, read=[dead], analyse=[dead, new])
    tell(f"started again as {new} and given the run: `read` not done again, `analyse`, cut off, anew", _since(begun))
    decide(stage, question.approval_id, "approve", "", "analysis: approved")
    tell("approved and signed off; PostgreSQL has the run's result", sign_off(stage, run))


def killed_in_a_pause(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the agent in a pause, decided meanwhile: started again, the run ends by itself; nobody calls it."""
    asked = ask(stage, "in-a-pause")
    dead = stage.agent.pid
    took = _approve_while_dead(stage, asked.run, asked.approval_id)
    tell(f"kill -9 of process {dead}; approved meanwhile, PostgreSQL has the decision", took)
    begun = time.monotonic()
    stage.agent.start()
    new = stage.agent.pid
    stage.agent.wrote(rf"\[{new}\] analysis: approved {WORDS}", begun)
    tell(f"started again as {new} and given the run: its pause returned the decision", _since(begun))
    took = sign_off(stage, asked.run)
    _check_done_by(stage.agent, asked.begun, read=[dead], analyse=[dead], file=[new])
    fence = stage.database.run(asked.run).fence
    check(fence == 2, "two dispatches of the run", fence)
    tell(f"signed off, ended: `read` and `analyse` once, by {dead}, `file` once, by {new}", took)


def rolling_restart(stage: Stage, tell: Tell) -> None:
    """Two agents restarted one after the other by SIGTERM, with runs at work and waiting: none fails or is repeated."""
    begun = time.monotonic()
    stage.second_agent.start()
    stage.second_agent.wait_until_ready()
    stage.database.instance(stage.node, stage.urls.second_agent)
    tell("a second instance of the agent is there", _since(begun))
    runs: list[str] = []
    for agent, url in ((stage.agent, stage.urls.agent), (stage.second_agent, stage.urls.second_agent)):
        runs += _start_some(stage, len(runs))
        took = _end(stage, agent, url, runs)
        tell(f"SIGTERM to {agent.name}: what it did it finished, what waited it handed back", took)
        restarted = time.monotonic()
        _approve_what_waits(stage)
        agent.start()
        agent.wait_until_ready()
        stage.database.instance(stage.node, url)
        tell(f"{agent.name} is back; what waited was approved meanwhile", _since(restarted))
    ending = time.monotonic()
    _approve_until_ended(stage, runs)
    for run in runs:
        check_outcome(stage, run, "succeeded", "approved")
        done = stage.database.steps(run)
        check(done == STEPS_OF_A_RUN, f"the steps {STEPS_OF_A_RUN} of {run}", done)
    for step in STEPS_OF_A_RUN:
        doers = _doers((stage.agent, stage.second_agent), step, begun, least=len(runs))
        check(len(doers) == len(runs), f"{len(runs)} times `{step}`", len(doers))
    tell(f"all {len(runs)} runs succeeded, and each of their steps was done once", _since(ending))


def _approve_while_dead(stage: Stage, run: str, approval_id: str) -> float:
    """Kill the agent and have the review service approve; the seconds until PostgreSQL has it."""
    begun = time.monotonic()
    stage.agent.kill()
    answer = stage.review(approval_id, "approve", WORDS).json()
    check(answer.get("status") == "processed", "the decision to be taken while the agent is dead", answer)
    stage.database.approval(run, "analysis", "approved")
    return _since(begun)


def _start_some(stage: Stage, number: int) -> list[str]:
    """Start runs and wait until both instances have some of them, and each of them is in hand."""
    some = [
        stage.execute(f"rolling-{each}", document=CONTRACT, hours=OPEN_HOURS, seconds=BUSY_SECONDS).execution_id
        for each in range(number, number + RUNS_A_RESTART)
    ]
    holders = {stage.database.taken(run).instance_id for run in some}
    check(len(holders) == 2, "two instances that share the runs", f"{len(holders)}")
    return some


def _end(stage: Stage, agent: Program, url: str, runs: Sequence[str]) -> float:
    """SIGTERM; the seconds until the agent has ended by itself, and has none of these runs any more."""
    begun = time.monotonic()
    instance_id = stage.database.instance(stage.node, url)
    agent.end()
    agent.wait_until_gone(STOP_SECONDS)
    took = _since(begun)
    check(took < STOP_SECONDS, f"{agent.name} to end by itself", f"{took:.1f} s")
    left = [run for run in map(stage.database.run, runs) if run.instance_id == instance_id and not run.final]
    check(not left, f"no run in the hands of {agent.name}", [f"{run.execution_id} {run.status}" for run in left])
    return took


def _approve_until_ended(stage: Stage, runs: Sequence[str]) -> None:
    deadline = time.monotonic() + SEE_SECONDS
    while not all(stage.database.run(run).final for run in runs):
        if time.monotonic() > deadline:
            raise NotSeen(f"expected an end of all runs; found {[stage.database.run(run).status for run in runs]}")
        _approve_what_waits(stage)


def _approve_what_waits(stage: Stage) -> None:
    for approval_id in stage.waiting():
        answer = stage.review(approval_id, "approve").json()
        check(answer.get("status") == "processed", "`processed` for approve", answer)


def _check_done_by(agent: Program, since: float, **doers: list[int]) -> None:
    """Go on only if each of these steps was begun by these processes, in this order, and by nobody else.

    Raises:
        NotSeen: it was not.
    """
    for step, wanted in doers.items():
        found = _doers((agent,), step, since, least=len(wanted))
        check(found == wanted, f"`{step}` by the processes {wanted}", found)


def _doers(agents: Sequence[Program], step: str, since: float, *, least: int) -> list[int]:
    """The processes that began a step, once for each time; what a program wrote is read a moment after it happened."""
    deadline = time.monotonic() + SEE_SECONDS
    while True:
        lines = [line.text for agent in agents for line in agent.written(rf"^\[\d+\] step {step}$", since)]
        if len(lines) >= least or time.monotonic() > deadline:
            return [int(line[1 : line.index("]")]) for line in lines]
        time.sleep(POLL_SECONDS)


def _since(begun: float) -> float:
    return time.monotonic() - begun
