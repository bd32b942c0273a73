"""Programs in directories of their own that use an SDK as its users get it, and what the control plane sees of them."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdshort import ApprovalFilter, Client, Execution, NotFound, Verdict

from tests.languages import toolchains
from tests.languages.planes import until

END_SECONDS = 15.0

JAVASCRIPT = """\
import { Agent } from "@holdshort/sdk/agent";
import { serve } from "@holdshort/sdk/node";

const agent = new Agent({ nodeId: process.env.NODE });
agent.reasoner("greet", async ({ name }) => {
  const result = await agent.pause({ title: `Greet ${name}?`, expiresInHours: 1 });
  return result.approved ? `Hello ${name}` : "";
});
await serve(agent, { port: Number(process.env.PORT) });
"""

TYPESCRIPT = """\
import { ApprovalClient, type ApprovalResult } from "@holdshort/sdk";
import { Agent } from "@holdshort/sdk/agent";
import { serve } from "@holdshort/sdk/node";
import { verifyWebhook } from "@holdshort/sdk/webhooks";

export const used = [ApprovalClient, Agent, serve, verifyWebhook];
export const approved = (result: ApprovalResult): boolean => result.approved;
"""

GO = """\
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdshort/holdshort/sdk/go/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := agent.New(agent.Config{NodeID: os.Getenv("NODE")})
	if err != nil {
		log.Fatal(err)
	}
	agent.Handle(a, "greet", func(ctx context.Context, in struct{ Name string }) (string, error) {
		result, err := a.Pause(ctx, agent.Question{Title: "Greet " + in.Name + "?", ExpiresInHours: 1})
		if err != nil || !result.Approved() {
			return "", err
		}
		return "Hello " + in.Name, nil
	})
	if err := a.Serve(ctx, "127.0.0.1:"+os.Getenv("PORT")); err != nil {
		log.Fatal(err)
	}
}
"""


@contextmanager
def program(command: Sequence[str], place: Path, **environ: str) -> Iterator[None]:
    """A program for the length of a block; AssertionError with what it said when it does not end well on SIGTERM."""
    said = place / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=toolchains.environ() | environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0, said.read_text()
    except BaseException as error:
        error.add_note(said.read_text())
        raise
    finally:
        process.kill()
        process.wait()


def greeted(url: str, node: str) -> Execution:
    """A run of the program's function that a person lets go on, once it has ended."""
    with Client(url) as client:

        def live() -> bool:
            try:
                return any(each.status == "live" for each in client.get_node(node).instances)
            except NotFound:
                return False

        until(live, bool)
        run = client.execute_async(node, "greet", {"name": "Ann"}).execution_id
        which = ApprovalFilter(status="pending", execution_id=run)
        (question,) = until(lambda: client.list_approvals(which).approvals, bool)
        assert question.title == "Greet Ann?"
        client.decide(question.approval_id, Verdict(decision="approved"))
        return until(lambda: client.get_execution(run), lambda found: found.final)
