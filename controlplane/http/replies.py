"""What an agent answered us is shown to its own node and to administrators; everybody else is told how long it was."""

from msgspec import structs

from controlplane.domain.dispatching import with_reply
from controlplane.edge.deps import AnyRequest, principal_of
from controlplane.storage.executions import Run


def heard(request: AnyRequest, run: Run) -> Run:
    """A run as the caller may see it: with the agent's reply to its last dispatch in its errors, or without."""
    reply = run.agent_reply
    if reply is None or not principal_of(request).hears(run.node_id):
        return run
    return structs.replace(run, error=with_reply(run.error, reply), last_error=with_reply(run.last_error, reply))
