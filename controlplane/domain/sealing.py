"""Sealing: a person's answer is put under a question's public key, and only whoever asked can open it.

HPKE (RFC 9180) in base mode and one shot: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, no aad. The id of the
question is bound to it, and the padding hides how long the answer is.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from msgspec import Struct

from controlplane.domain.errors import FieldFault, HoldshortError

KEY_BYTES = 32
BLOCK_BYTES = 64

_INFO = b"holdshort human_feedback 1\0"
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
# Of nobody: what has no secret in common with it has none with anybody.
_PROBE = X25519PrivateKey.from_private_bytes(b"holdshort looks at a public key.")


class SealBroken(HoldshortError):
    """A sealed answer does not open: it was changed, or belongs to another question or key."""

    code = "seal_broken"


class Sealed(Struct, frozen=True):
    """An answer that only whoever asked can open: the key of this one sealing, and the ciphertext."""

    enc: bytes
    ct: bytes

    def __repr__(self) -> str:
        """Nothing of what it holds."""
        return "Sealed()"


class Opener:
    """A key pair for one question, in memory only.

    Args:
        entropy: 32 random bytes.
    """

    def __init__(self, entropy: bytes) -> None:
        """The private key is the entropy itself."""
        self._private = X25519PrivateKey.from_private_bytes(entropy)

    @property
    def public_key(self) -> bytes:
        """What an answer is sealed to: 32 raw bytes."""
        return self._private.public_key().public_bytes_raw()

    def open(self, sealed: Sealed, unique_id: str) -> str:
        """The answer to a question as it was given.

        Raises:
            SealBroken: it was changed, cut short, or sealed for another question or key.
        """
        try:
            plain = _SUITE.decrypt(sealed.enc + sealed.ct, self._private, info=_info(unique_id))
            return plain.rstrip(b"\0").decode()
        except (InvalidTag, ValueError):
            raise SealBroken from None


def check_public_key(raw: bytes) -> bytes:
    """Return a public key unchanged.

    Raises:
        FieldFault: it is none that something can be sealed to, such as one of a few points known to everybody.
    """
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(raw))
    except ValueError:
        raise FieldFault("public_key", "must be base64 of the 32 raw bytes of an X25519 public key") from None
    return raw


def seal(answer: str, public_key: bytes, unique_id: str) -> Sealed:
    """Seal an answer for whoever has the private key.

    Args:
        answer: what a person said; it holds no NUL.
        public_key: as `check_public_key` lets through.
        unique_id: the question that it answers.
    """
    sealed = _SUITE.encrypt(_padded(answer), X25519PublicKey.from_public_bytes(public_key), info=_info(unique_id))
    return Sealed(sealed[:KEY_BYTES], sealed[KEY_BYTES:])


def _padded(answer: str) -> bytes:
    raw = answer.encode()
    return raw + b"\0" * (BLOCK_BYTES - len(raw) % BLOCK_BYTES)


def _info(unique_id: str) -> bytes:
    return _INFO + unique_id.encode()
