"""What receivers answer, and whether a message is tried again: one table for all channels that send over HTTP."""

from __future__ import annotations

from email.utils import formatdate

from tests.out.receiver import Answer

NOW = 1775750000.0
FOR_GOOD, AGAIN = True, False
REFUSALS = {
    "301": (Answer(301, {"Location": "/other"}), FOR_GOOD, "redirects are not followed"),
    "307": (Answer(307, {"Location": "/other"}), FOR_GOOD, "redirects are not followed"),
    "400": (Answer(400), FOR_GOOD, "400 Bad Request"),
    "401": (Answer(401), FOR_GOOD, "401 Unauthorized"),
    "404": (Answer(404), FOR_GOOD, "404 Not Found"),
    "408": (Answer(408), AGAIN, "408 Request Timeout"),
    "410": (Answer(410), FOR_GOOD, "410 Gone"),
    "425": (Answer(425), AGAIN, "425 Too Early"),
    "429": (Answer(429, {"Retry-After": "120"}), AGAIN, "429 Too Many Requests"),
    "500": (Answer(500), AGAIN, "500 Internal Server Error"),
    "503": (Answer(503, {"Retry-After": formatdate(NOW + 90, usegmt=True)}), AGAIN, "503 Service Unavailable"),
    "599": (Answer(599), AGAIN, "answered 599"),
    "silence": (Answer(silent_seconds=1.0), AGAIN, "no answer within 0.3 s"),
    "reset": (Answer(reset=True), AGAIN, "receiver"),
}
ACCEPTED = {"200": Answer(200, body=b"ok"), "202 with a slow body": Answer(202, drip_body=True), "204": Answer(204)}
WAITS = {"429": 120.0, "503": 90.0}
"""Seconds that the receiver asks to wait."""
