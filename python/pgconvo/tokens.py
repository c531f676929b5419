"""Signed context tokens, for logins in mode `token`.

The tier that knows who is asking signs a token; the tier that sends SQL passes it to
`set_context_token` and can't make one. The signature is HMAC-SHA256 (RFC 2104).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from datetime import timedelta

from .errors import InvalidArgument


def sign_context(
    key_id: str,
    secret: bytes,
    tenant_id: str,
    user_id: str | None = None,
    lifetime: timedelta = timedelta(minutes=5),
) -> str:
    """A token that says who is asking, for `set_context_token`.

    key_id, secret: as in `convo_private.context_key`; the secret has 32 to 64 bytes.
    lifetime: how long the token is valid, to the second.
    Errors: InvalidArgument for a secret, tenant or user that the database would refuse.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", key_id):
        raise InvalidArgument("key_id must have 1 to 63 letters, digits, _ and -")
    if not 32 <= len(secret) <= 64:
        raise InvalidArgument("secret must have 32 to 64 bytes")
    for name, value in (("tenant_id", tenant_id), ("user_id", user_id)):
        if value is not None and not 1 <= len(value) <= 255:
            raise InvalidArgument(f"{name} must have 1 to 255 characters")
    expiry = int(time.time() + lifetime.total_seconds())
    signed = f"v1.{key_id}.{_part(tenant_id)}.{_part(user_id or '')}.{expiry}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).hexdigest()
    return f"{signed}.{signature}"


def _part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
