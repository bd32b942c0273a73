from pathlib import Path

import pytest

from controlplane import settings
from controlplane.domain import allow_list
from controlplane.settings import SETTINGS, Settings, SettingsFault, load


def test_nothing_set_gives_the_defaults_of_the_table():
    found = load({}, root=True)
    assert found == Settings(home=Path("/var/lib/holdshort"))
    shown = {row.name.removeprefix("HOLDSHORT_").lower(): row.default for row in SETTINGS}
    for name in ("pool_size", "parked_seconds", "max_waits", "unnamed_webhooks", "log_format", "log_level"):
        assert shown[name] == str(getattr(found, name))
    assert float(shown["default_expires_hours"]) == found.default_expires_hours
    assert (shown["listen"], found.listen) == ("on", True)


def test_every_field_has_a_row_and_every_row_a_field():
    read = [name for name in Settings.__struct_fields__ if name not in {"open_mode", "processes"}]
    assert [row.name for row in SETTINGS] == [f"HOLDSHORT_{name.upper()}" for name in read]


def test_no_variable_opens_the_server_to_everybody():
    everything = {row.name: "on" for row in SETTINGS} | {"HOLDSHORT_OPEN_MODE": "on"}
    with pytest.raises(SettingsFault):
        load(everything)
    assert not load({"HOLDSHORT_OPEN_MODE": "on", "HOLDSHORT_OPEN": "true", "OPEN_MODE": "1"}).open_mode


def test_an_allow_list_is_read_with_what_allows_its_width():
    allow = "agent:8001, 10.1.0.0/16, [fd12::/48]:8001"
    assert load({"HOLDSHORT_CALLBACK_ALLOW": allow}).callback_allow == allow_list.parse(allow)
    wide = {"HOLDSHORT_CALLBACK_ALLOW": "0.0.0.0/0"}
    with pytest.raises(SettingsFault, match="needs HOLDSHORT_DANGEROUS_CALLBACK_ALLOW=on"):
        load(wide)
    assert load(wide | {"HOLDSHORT_DANGEROUS_CALLBACK_ALLOW": "on"}).callback_allow


def test_every_fault_is_reported_at_once():
    wrong = {
        "HOLDSHORT_DATABASE_URL": "mysql://root:hunter22@db/x",
        "HOLDSHORT_POOL_SIZE": "none",
        "HOLDSHORT_WEBHOOK_SECRETS": "good-enough-secret,,",
        "HOLDSHORT_CALLBACK_ALLOW": "agent,169.254.169.254,http://u:hunter22@agent",
        "HOLDSHORT_LISTEN": "maybe",
    }
    with pytest.raises(SettingsFault) as caught:
        load(wrong)
    assert [fault.partition(":")[0] for fault in caught.value.faults] == [
        "HOLDSHORT_DATABASE_URL",
        "HOLDSHORT_POOL_SIZE",
        "HOLDSHORT_WEBHOOK_SECRETS",
        "HOLDSHORT_CALLBACK_ALLOW",
        "HOLDSHORT_LISTEN",
    ]
    assert "hunter22" not in str(caught.value)
    assert "good-enough-secret" not in str(caught.value)


@pytest.mark.parametrize("spelling", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_each_spelling_of_a_database_url_means_the_same(spelling: str):
    assert load({"HOLDSHORT_DATABASE_URL": f"{spelling}://u:p@h/d"}).database_url == "postgresql://u:p@h/d"


@pytest.mark.parametrize(
    "rest", ["/d?host=/run/postgresql", "h", "u:p@[::1]:5432/d", "u:p:q/r@a:1/d", "u:p%40@h/d?sslmode=require"]
)
def test_a_database_url_may_name_its_server_in_every_way_of_libpq(rest: str):
    assert load({"HOLDSHORT_DATABASE_URL": f"postgresql://{rest}"}).database_url == f"postgresql://{rest}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql://"),
        ("DATABASE_URL", "h/d"),
        ("DATABASE_URL", "postgresql://u:p@h:port/d"),
        ("DATABASE_URL", "postgresql://u:p@h:123456/d"),
        ("POOL_SIZE", "0"),
        ("POOL_SIZE", "1001"),
        ("POOL_SIZE", "-1"),
        ("POOL_SIZE", "1e2"),
        ("POOL_SIZE", "\u0661"),
        ("DEFAULT_EXPIRES_HOURS", "0"),
        ("DEFAULT_EXPIRES_HOURS", "8761"),
        ("DEFAULT_EXPIRES_HOURS", "nan"),
        ("DEFAULT_EXPIRES_HOURS", "inf"),
        ("PARKED_SECONDS", "0"),
        ("MAX_WAITS", "many"),
        ("NODE_CONCURRENCY", "0"),
        ("NODE_QUEUE", "none"),
        ("START_WITHIN_HOURS", "0"),
        ("UNNAMED_WEBHOOKS", "oldest"),
        ("DATABASE_URL", "postgresql://\nu:hunter22@h/d"),
        ("DATABASE_URL", "postgresql://u:hunter\n22@h/d"),
        ("DATABASE_URL", "postgresql://u:hunter\u202822@h/d"),
        ("DIRECT_DATABASE_URL", "postgresql://u:hunter22@h/d?a=b\x00"),
        ("PUBLIC_URL", "https://x\n.example"),
        ("PUBLIC_URL", "https://x/\ty"),
        ("PUBLIC_URL", "ftp://x"),
        ("PUBLIC_URL", "https://u:p@x"),
        ("PUBLIC_URL", "https://x/?q"),
        ("HOME", "relative/path"),
        ("HOME", "~nobody-has-this-name/data"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "loud"),
        ("LOG_LEVEL", " "),
        ("WEBHOOK_SECRETS", " "),
        ("CALLBACK_ALLOW", " "),
        ("CALLBACK_ALLOW", "agent:0"),
        ("DANGEROUS_CALLBACK_ALLOW", "perhaps"),
        ("AUDIT_HEADS", "heads"),
        ("AUDIT_HEADS", "ftp://x/heads"),
        ("AUDIT_HEADS", "https://u:p@x/heads"),
    ],
)
def test_a_wrong_value_stops_the_start(name: str, value: str):
    with pytest.raises(SettingsFault, match=f"HOLDSHORT_{name}: ") as fault:
        load({f"HOLDSHORT_{name}": value})
    assert "hunter" not in str(fault.value)


def test_an_empty_value_counts_as_unset_and_other_variables_are_left_alone():
    assert load({"HOLDSHORT_POOL_SIZE": "", "HOLDSHORT_URL": "http://elsewhere", "POOL_SIZE": "x"}).pool_size == 10


def test_no_secret_is_in_repr():
    found = load(
        {
            "HOLDSHORT_DATABASE_URL": "postgresql://u:hunter22@h/d?password=hunter22",
            "HOLDSHORT_DIRECT_DATABASE_URL": "postgresql://u:hunter22/@h/d",
            "HOLDSHORT_WEBHOOK_SECRETS": "hunter22,crm:hunter22",
            "HOLDSHORT_AUDIT_HEADS": "https://heads.example/hunter22?token=hunter22",
        }
    )
    assert "hunter22" not in repr(found)
    assert "hunter22" not in repr(found.__rich_repr__())
    assert "pool_size=10" in repr(found)


def test_the_table_is_markdown_with_a_row_for_each_setting():
    lines = settings.markdown_table().splitlines()
    assert len(lines) == len(SETTINGS) + 2
    assert all(line.count("|") == 4 for line in lines)
