"""The webhooks of a review service, made with `hax-sdk`: its own event model, signed by its own function.

Reads lines of JSON `{type, data, secret}` and writes for each `{body, signature}`. The package has a client and the
receiving half of webhooks; the sending half is its `sign_payload`, "for testing". So what it signs is put through the
half that receives before it is sent.
"""

import json
import sys
from datetime import UTC, datetime
from typing import Any

from hax import WebhookEvent, parse_event, verify_signature
from hax.webhooks import sign_payload


def made(line: dict[str, Any]) -> dict[str, str]:
    now = datetime.now(UTC).isoformat()
    event = WebhookEvent(type=line["type"], timestamp=now, data=line["data"]).model_dump(mode="json")
    signature = sign_payload(event, line["secret"])
    body = json.dumps(event, separators=(",", ":"))
    assert verify_signature(body.encode(), signature, line["secret"])
    assert parse_event(body).request_id == line["data"]["id"]
    return {"body": body, "signature": signature}


if __name__ == "__main__":
    for each in sys.stdin:
        print(json.dumps(made(json.loads(each))), flush=True)
