import json

import pytest

from tests.app import served
from tests.cli.processes import run
from tests.postgres import Database
from tests.postgres import run as await_

Shell = dict[str, str]


@pytest.fixture
def shell(database: Database) -> Shell:
    return {"HOLDSHORT_DATABASE_URL": database.url}


def made(shell: Shell, *arguments: str) -> dict[str, object]:
    done = run("keys", "create", *arguments, "--json", **shell)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def history(database: Database, type_: str) -> list[dict[str, object]]:
    async def read() -> list[dict[str, object]]:
        connection = await database.connect()
        try:
            rows = await connection.fetch("SELECT node_id, actor_name, data FROM history WHERE type = $1", type_)
        finally:
            await connection.close()
        return [{**json.loads(row["data"]), "node": row["node_id"], "actor": row["actor_name"]} for row in rows]

    return await_(read())


def test_a_key_is_made_with_an_allowance_of_its_own(shell: Shell, database: Database):
    allow = ["--allow", "10.1.0.0/16:8001", "--allow", "agent.internal, [fd00::1]:9"]
    key = made(shell, "agents", "--scope", "agent", "--node", "worker", *allow)
    entries = ["10.1.0.0/16:8001", "agent.internal", "[fd00::1]:9"]
    assert key["allow"] == entries
    listed = json.loads(run("keys", "list", "--json", **shell).stdout)["keys"]
    assert [each["allow"] for each in listed] == [entries]
    assert "agent.internal" in run("keys", "list", **shell).stdout
    (fact,) = history(database, "key.created")
    assert (fact["allow"], fact["node"]) == (entries, "worker")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--allow", "10.1.0.0/16"], "bound to a node"),
        (["--node", "w", "--allow", "10.0.0.0/7"], "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW"),
        (["--node", "w", "--allow", "fc00::/7"], "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW"),
        (["--node", "w", "--allow", "169.254.169.254"], "is never called"),
        (["--node", "w", "--allow", "10.1.0.1/16"], "bits beyond its prefix"),
        (["--node", "w", "--allow", "http://10.1.2.3"], "not a URL"),
        (["--node", "w", "--allow", ""], "is empty"),
        (["--node", "w", "--allow", "10.1.2.3,"], "entry 2 is empty"),
    ],
)
def test_an_allowance_that_is_wrong_or_wide_makes_no_key(shell: Shell, arguments: list[str], said: str):
    done = run("keys", "create", "agents", "--scope", "agent", *arguments, **shell)
    assert done.returncode == 1
    assert said in done.stderr
    assert json.loads(run("keys", "list", "--json", **shell).stdout) == {"keys": []}


def test_a_wide_allowance_takes_the_dangerous_setting(shell: Shell):
    shell["HOLDSHORT_DANGEROUS_CALLBACK_ALLOW"] = "on"
    key = made(shell, "agents", "--scope", "agent", "--node", "w", "--allow", "0.0.0.0/1")
    assert key["allow"] == ["0.0.0.0/1"]


def test_a_persons_key_says_where_to_sign_in(shell: Shell):
    create = ("keys", "create", "ann", "--scope", "review")
    assert "sign in with it at http://<the server>/inbox." in run(*create, **shell).stdout
    shell["HOLDSHORT_PUBLIC_URL"] = "https://ops.example/holdshort/"
    assert "sign in with it at https://ops.example/holdshort/inbox." in run(*create, **shell).stdout
    assert "sign in" not in run("keys", "create", "agents", "--scope", "agent", **shell).stdout


def test_a_node_is_moved_and_says_whose_it_is(shell: Shell, database: Database):
    first = made(shell, "first", "--scope", "agent")
    second = made(shell, "second", "--scope", "agent", "--node", "worker")
    other = made(shell, "other", "--scope", "agent", "--node", "elsewhere")
    ended = made(shell, "ended", "--scope", "agent")
    desk = made(shell, "desk", "--scope", "review")
    assert run("keys", "revoke", str(ended["key_id"]), **shell).returncode == 0

    def move(to: object, node: str = "worker") -> tuple[int, str]:
        done = run("nodes", "move", node, "--to", str(to), **shell)
        return done.returncode, done.stdout + done.stderr

    assert move(first["key_id"])[0] == 1
    await_(registered(database, str(first["key"]), second, shell))
    for key in (other, ended, desk):
        code, said = move(key["key_id"])
        assert (code, "an agent may use for worker" in said) == (1, True)
    assert move("none")[0] == 1
    code, said = move(second["key_id"])
    assert (code, str(second["key_id"]) in said) == (0, True)
    assert move(second["key_id"])[0] == 0
    assert history(database, "node.moved") == [
        {"from": first["key_id"], "to": second["key_id"], "node": "worker", "actor": "operator"}
    ]
    await_(shown(database, str(second["key"]), str(first["key"]), str(second["key_id"])))


async def registered(database: Database, text: str, second: dict[str, object], shell: Shell) -> None:
    node = {"node_id": "worker", "base_url": "http://192.0.2.1", "reasoners": []}
    async with served(database, open_mode=False) as api:
        node["base_url"] = "http://8.8.8.8"
        reply = await api.client.post("/api/v1/nodes/register", json=node, headers={"X-API-Key": text})
        assert reply.status_code == 201, reply.text
        refused = await api.client.post("/api/v1/nodes/register", json=node, headers={"X-API-Key": str(second["key"])})
        assert (refused.status_code, refused.json()["error"]) == (403, "node_owned")
        assert "holdshort nodes move" in refused.json()["message"]


async def shown(database: Database, new: str, old: str, owner: str) -> None:
    """The new owner has the node and sees that; the one before has lost it."""
    node = {"node_id": "worker", "base_url": "http://8.8.8.8", "reasoners": []}
    async with served(database, open_mode=False) as api:
        found = (await api.client.get("/api/v1/nodes", headers={"X-API-Key": new})).json()["nodes"]
        assert [(each["node_id"], each["owner"]) for each in found] == [("worker", owner)]
        one = (await api.client.get("/api/v1/nodes/worker", headers={"X-API-Key": new})).json()
        assert one["owner"] == owner
        for path in ("/nodes/register", "/nodes/worker/heartbeat", "/nodes/worker/shutdown"):
            body = node if path.endswith("register") else {}
            reply = await api.client.post(f"/api/v1{path}", json=body, headers={"X-API-Key": old})
            assert (reply.status_code, reply.json()["error"]) == (403, "node_owned"), path
        assert (await api.client.get("/api/v1/nodes", headers={"X-API-Key": old})).json()["nodes"] == []


def test_nodes_are_listed_and_shown_as_before_there_was_a_command(shell: Shell):
    for arguments in ((), ("list",), ("--limit", "3")):
        done = run("nodes", *arguments, HOLDSHORT_URL="http://127.0.0.1:9", **shell)
        assert (done.returncode, "cannot be reached" in done.stderr) == (1, True)
    assert "move" in run("nodes", "--help", **shell).stdout
    wrong = run("nodes", "list", "..", HOLDSHORT_URL="http://127.0.0.1:9", **shell)
    assert wrong.returncode == 2
