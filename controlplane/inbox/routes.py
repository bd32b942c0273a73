"""Every page of the inbox, and whom each is for: the one table that says who gets in.

A row's handlers name their whole path (`/inbox/...`). A handler that a script calls by itself says so with
`opt={"script": True}`: it is answered with problem documents instead of pages.
"""

from litestar.handlers import HTTPRouteHandler

from controlplane.domain.access import Access
from controlplane.inbox import (
    approval,
    decision,
    deliveries,
    events,
    executions,
    feedback,
    lists,
    nodes,
    sign_in,
    static_files,
    status,
)
from controlplane.inbox.guard import ROOM

# What each page is for; `inbox.guard` refuses one that stands in none of these.
TABLE: dict[Access, list[HTTPRouteHandler]] = {
    # Before anybody is signed in.
    Access.PUBLIC: [sign_in.root, sign_in.show_sign_in, sign_in.sign_in, static_files.static_file],
    # Whoever is signed in.
    Access.INBOX: [
        sign_in.sign_out,
        lists.list_approvals,
        approval.show_approval,
        executions.list_executions,
        executions.show_execution,
        nodes.list_nodes,
        status.show_status,
        events.stream,
        events.look_again,
    ],
    # What a person decides and answers.
    Access.REVIEW: [decision.decide, feedback.show_question, feedback.answer_question],
    Access.ADMIN: [deliveries.list_deliveries, deliveries.redrive],
}
for _access, _handlers in TABLE.items():
    for _handler in _handlers:
        _handler.opt |= {"access": _access, ROOM: True}

PAGES: list[HTTPRouteHandler] = [handler for handlers in TABLE.values() for handler in handlers]
