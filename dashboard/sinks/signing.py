"""Signatures after the Standard Webhooks specification."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from dashboard.masked import Secret


def signature_headers(secret: Secret, message_id: str, body: bytes, *, at: float) -> dict[str, str]:
    """The headers ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``.

    Raises:
        ValueError: the secret is malformed or too short.
    """
    moment = datetime.fromtimestamp(int(at), UTC)
    signature: str = _signer(secret).sign(message_id, moment, body.decode())
    return {"webhook-id": message_id, "webhook-timestamp": str(int(at)), "webhook-signature": signature}


def can_sign(secret: Secret) -> bool:
    """Whether a secret has the form of the specification."""
    try:
        _signer(secret)
    except ValueError:
        return False
    return True


def _signer(secret: Secret) -> Any:
    """What signs with a secret.

    Raises:
        ValueError: the secret is malformed or too short.
    """
    from standardwebhooks import Webhook

    prefix, _, key = secret.reveal().partition("_")
    try:
        raw = base64.b64decode(key + "=" * (-len(key) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("malformed") from None
    if prefix != "whsec" or len(raw) < 24:
        raise ValueError("malformed")
    return Webhook(raw)
