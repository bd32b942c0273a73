"""Every target with its share of a long run, and what even a short one must meet."""

from tests.fuzz import calling, headers, keeping, reading, signing
from tests.fuzz.outcomes import Target

_SIGNING = frozenset(
    ("accepted body", "accepted timestamped", "accepted standard", "invalid_signature", "stale_signature")
)

TARGETS = (
    Target(
        "signatures",
        signing.try_verify,
        share=16,
        meets=_SIGNING | {"missing_signature"},
    ),
    Target(
        "signatures-sdk",
        signing.try_both,
        share=12,
        meets=_SIGNING | {"missing_signature"},
    ),
    Target(
        "decisions",
        reading.try_decision,
        share=14,
        meets=frozenset({"approved", "another decision", "ignored", "invalid_body", "decision_missing"}),
    ),
    Target(
        "json",
        reading.try_json,
        share=12,
        meets=frozenset({"taken", "refused"}),
    ),
    Target(
        "digests",
        reading.try_digest,
        share=6,
        meets=frozenset({"digested", "refused"}),
    ),
    Target(
        "bodies",
        reading.try_body,
        share=6,
        meets=frozenset({"taken", "invalid_body", "invalid_field"}),
    ),
    Target(
        "urls",
        calling.try_url,
        share=14,
        meets=frozenset({"allowed", "refused", "a name", "no host", "no URL"}),
    ),
    Target(
        "addresses",
        calling.try_answers,
        share=8,
        meets=frozenset({"allowed", "refused"}),
    ),
    Target(
        "allow-lists",
        calling.try_allow_list,
        share=4,
        meets=frozenset({"taken", "refused"}),
    ),
    Target(
        "keys",
        keeping.try_key,
        share=8,
        meets=frozenset({"ours", "no key", "a key of nobody"}),
    ),
    Target(
        "sealed",
        keeping.try_vault,
        share=5,
        meets=frozenset({"opened", "unreadable"}),
    ),
    Target(
        "settings",
        keeping.try_settings,
        share=4,
        meets=frozenset({"loaded", "faults"}),
    ),
    Target(
        "webhook-secrets",
        keeping.try_webhook_secrets,
        share=4,
        meets=frozenset({"read", "refused"}),
    ),
    Target(
        "cursors",
        keeping.try_cursor,
        share=6,
        meets=frozenset(
            {
                "a place in a list, none in the stream",
                "no place in a list, one in the stream",
                "no place in a list, none in the stream",
            }
        ),
    ),
    Target(
        "ids",
        keeping.try_id,
        share=5,
        meets=frozenset({"taken and taken", "refused and taken", "taken and refused", "refused and refused"}),
    ),
    Target(
        "request-headers",
        headers.try_headers,
        share=5,
        meets=frozenset({"no fence", "a fence", "invalid_field"}),
    ),
    Target(
        "callbacks-sdk",
        keeping.try_callback,
        share=8,
        meets=frozenset({"ended, approved", "ended, and not approved", "invalid_signature", "invalid_body"}),
    ),
)
BY_NAME = {target.name: target for target in TARGETS}
