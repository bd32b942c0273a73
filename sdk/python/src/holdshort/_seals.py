"""The seal of one question's answer: HPKE (RFC 9180), base mode, one shot. Only its asker can open it."""

from base64 import b64decode, b64encode
from functools import cache
from typing import Any

from holdshort._feedback_errors import UnreadableAnswer

_INFO = b"holdshort human_feedback 1\0"
_BLOCK = 64
_ENC = 32


class Lock:
    """The key pair of one question, kept in memory only; `public_key` is what is sent, in base64.

    Args:
        private_key: 32 raw bytes; new ones when absent.
    """

    def __init__(self, private_key: bytes | None = None) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415  # costs 20 ms

        made = X25519PrivateKey.from_private_bytes(private_key) if private_key else X25519PrivateKey.generate()
        self._key: X25519PrivateKey | None = made
        self.public_key = b64encode(made.public_key().public_bytes_raw()).decode()

    def open(self, unique_id: str, enc: str, ct: str) -> str:
        """The answer that was sealed to this key.

        Args:
            unique_id: of the question; an answer to another one does not open.
            enc: the seal's own public key, in base64.
            ct: the sealed answer, in base64.

        Raises:
            UnreadableAnswer: it was not sealed to this key and question, or it was changed.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # imported with the key

        try:
            sealed = b64decode(enc, validate=True) + b64decode(ct, validate=True)
            padded: bytes = _suite().decrypt(sealed, self._key, info=_INFO + unique_id.encode())
            answer = padded.rstrip(b"\0")
            if len(padded) % _BLOCK or len(answer) == len(padded):
                raise UnreadableAnswer
            return answer.decode()
        except (InvalidTag, ValueError, TypeError):
            # What it was made from stays out of the traceback.
            raise UnreadableAnswer from None

    def forget(self) -> None:
        """Let go of the private key; what was sealed to it can never be opened again."""
        self._key = None


def seal(public_key: str, unique_id: str, answer: str) -> tuple[str, str]:
    """An answer sealed to a question's key: `enc` and `ct` in base64. What the control plane does, for tests.

    Raises:
        ValueError: the key is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415  # costs 20 ms

    to = X25519PublicKey.from_public_bytes(b64decode(public_key, validate=True))
    plain = answer.encode()
    padded = plain + b"\0" * (_BLOCK - len(plain) % _BLOCK)
    sealed = _suite().encrypt(padded, to, info=_INFO + unique_id.encode())
    return b64encode(sealed[:_ENC]).decode(), b64encode(sealed[_ENC:]).decode()


@cache
def _suite() -> Any:
    from cryptography.hazmat.primitives import hpke  # noqa: PLC0415  # costs 20 ms

    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
