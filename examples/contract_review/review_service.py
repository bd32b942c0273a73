"""A review service of somebody else: it shows what waits for a person, and sends what they decide as signed webhooks.

It needs nothing but Python, and shares nothing with the control plane but an address and a secret.
"""

import hashlib
import hmac
import html
import json
import os
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote

CONTROL_PLANE = os.environ.get("HOLDSHORT_URL", "http://127.0.0.1:8080").rstrip("/") + "/api/v1"
SECRET = os.environ.get("WEBHOOK_SECRET", "")
PORT = int(os.environ.get("PORT", "8090"))
DECISIONS = {"approve": "approved", "reject": "rejected", "request-changes": "request_changes"}
LARGEST_BODY = 64 * 1024

Reply = tuple[int, Any]
sent: dict[str, tuple[bytes, dict[str, str]]] = {}


def call(path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
    """The control plane's status and document; 502 when it cannot be reached."""
    request = urllib.request.Request(CONTROL_PLANE + path, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)
    except (OSError, ValueError) as fault:
        return 502, {"error": "no_control_plane", "message": str(fault)}


def signed(body: bytes, now: int) -> dict[str, str]:
    """The headers that prove who sends these bytes, and when."""
    mac = hmac.new(SECRET.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Webhook-Signature": f"t={now},v1={mac}"}


def open_reviews() -> list[dict[str, Any]]:
    """What waits for a person, the soonest deadline first."""
    status, page = call("/approvals?status=pending&order=deadline")
    return list(page["approvals"]) if status == 200 else []


def decide(approval_id: str, decision: str, feedback: str) -> Reply:
    """Sign and send a decision; it names the run and the round, so that it can never answer another question."""
    status, asked = call(f"/approvals/{quote(approval_id, safe='')}")
    if status != 200:
        return status, asked
    answer = {
        "requestId": asked["approval_request_id"],
        "executionId": asked["execution_id"],
        "round": asked["round"],
        "decision": decision,
        "feedback": feedback,
    }
    body = json.dumps(answer).encode()
    sent[approval_id] = (body, signed(body, int(time.time())))
    return send_again(approval_id)


def send_again(approval_id: str) -> Reply:
    """Send the last webhook about a review, byte for byte: what every sender does when an answer got lost."""
    if approval_id not in sent:
        return 404, {"error": "nothing_sent", "message": "decide this review first"}
    return call("/webhooks/approval-response", *sent[approval_id])


class Handler(BaseHTTPRequestHandler):
    """GET / and GET /reviews only look; POST /reviews/{id}/{approve, reject, request-changes, resend} acts."""

    def do_GET(self) -> None:
        """Show what waits: a page with buttons, or JSON."""
        if self.path == "/":
            self.answer(200, page(open_reviews()), "text/html; charset=utf-8")
        elif self.path == "/reviews":
            self.answer(200, json.dumps(open_reviews(), indent=2))
        else:
            self.answer(404, '{"error": "not_found"}')

    def do_POST(self) -> None:
        """Decide, and say what the control plane said."""
        length = self.headers.get("content-length", "0")
        size = int(length) if length.isdecimal() else LARGEST_BODY + 1
        if size > LARGEST_BODY or self.from_elsewhere():
            self.answer(400, '{"error": "refused"}')
            return
        status, document = self.act(self.rfile.read(size).decode(errors="replace"))
        self.answer(status, json.dumps(document))

    def act(self, text: str) -> Reply:
        """Carry out the path's last word."""
        _, _, rest = self.path.partition("/reviews/")
        approval_id, _, action = rest.partition("/")
        if action == "resend":
            return send_again(approval_id)
        if action not in DECISIONS:
            return 404, {"error": "not_found", "message": "POST /reviews/{id}/approve"}
        feedback = parse_qs(text).get("feedback", [""])[0] if "=" in text else text
        return decide(approval_id, DECISIONS[action], feedback)

    def from_elsewhere(self) -> bool:
        """Whether another site's page sends this through somebody's browser."""
        origin = self.headers.get("origin")
        return origin is not None and origin != f"http://{self.headers.get('host')}"

    def answer(self, status: int, text: str, kind: str = "application/json") -> None:
        """Send a reply."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's own word
        """One line a request."""
        print(format % args, flush=True)


def page(reviews: list[dict[str, Any]]) -> str:
    """The reviews with a button for each decision."""
    cards = "".join(card(review) for review in reviews) or "<p>Nothing waits.</p>"
    return f'<!doctype html><meta charset="utf-8"><title>Reviews</title><h1>Open reviews</h1>{cards}'


def card(review: dict[str, Any]) -> str:
    """One review."""
    title, payload = review["title"] or review["approval_request_id"], json.dumps(review["payload"], indent=2)
    at = f"/reviews/{quote(review['approval_id'])}"
    buttons = "".join(f'<button formaction="{at}/{action}">{action}</button> ' for action in DECISIONS)
    form = f'<form method="post"><input name="feedback" placeholder="feedback"> {buttons}</form>'
    return f"<h2>{html.escape(title)}</h2><pre>{html.escape(payload)}</pre>{form}"


if __name__ == "__main__":
    if not SECRET:
        raise SystemExit("set WEBHOOK_SECRET to a secret that the control plane knows (HOLDSHORT_WEBHOOK_SECRETS)")
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
