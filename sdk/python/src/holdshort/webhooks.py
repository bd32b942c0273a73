"""Sign a decision for the control plane, or verify one that was received."""

from holdshort._errors import InvalidSignature, StaleSignature
from holdshort._webhooks import Verified, sign, verify

__all__ = ["InvalidSignature", "StaleSignature", "Verified", "sign", "verify"]
