package seals

import (
	"bytes"
	"crypto/ecdh"
)

// suite is HPKE (RFC 9180) with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM: base mode, one shot, no aad.
type suite interface {
	// seal returns the encapsulated key and the ciphertext behind it.
	seal(to *ecdh.PublicKey, info, plain []byte) ([]byte, error)
	// open takes what seal returned.
	open(key *ecdh.PrivateKey, info, sealed []byte) ([]byte, error)
}

const encLength = 32

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
