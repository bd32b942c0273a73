"""Sign a decision for the control plane; verify and read one that was received, exactly as the control plane does.

    raw = await request.body()
    secrets = [each.secret for each in parse_secrets(os.environ["HOLDSHORT_WEBHOOK_SECRETS"])]
    verify(request.headers, raw, secrets, now=int(time.time()))
    received = read_decision(raw)

Nothing here opens a connection or needs more than this package's own modules.
"""

from holdshort._decision_words import decision_word
from holdshort._digests import payload_digest
from holdshort._errors import BadRequest, InvalidSignature, StaleSignature
from holdshort._inbound import DecisionReceived, IgnoredEvent, read_decision
from holdshort._secret_settings import SenderSecret, parse_secrets
from holdshort._webhooks import Verified, sign, verify

__all__ = [
    "BadRequest",
    "DecisionReceived",
    "IgnoredEvent",
    "InvalidSignature",
    "SenderSecret",
    "StaleSignature",
    "Verified",
    "decision_word",
    "parse_secrets",
    "payload_digest",
    "read_decision",
    "sign",
    "verify",
]
