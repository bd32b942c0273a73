package seals

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

const (
	kemID  = 0x0020
	kdfID  = 0x0001
	aeadID = 0x0002
)

var (
	kemSuite  = join([]byte("KEM"), number(kemID))
	hpkeSuite = join([]byte("HPKE"), number(kemID), number(kdfID), number(aeadID))
)

// ownSuite is written after RFC 9180 for the versions of Go without crypto/hpke. The names are those of the RFC.
type ownSuite struct{}

func (ownSuite) seal(to *ecdh.PublicKey, info, plain []byte) ([]byte, error) {
	once, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	enc := once.PublicKey().Bytes()
	dh, err := once.ECDH(to)
	if err != nil {
		return nil, err
	}
	aead, nonce, err := keySchedule(sharedSecret(dh, join(enc, to.Bytes())), info)
	if err != nil {
		return nil, err
	}
	return aead.Seal(enc, nonce, plain, nil), nil
}

func (ownSuite) open(key *ecdh.PrivateKey, info, sealed []byte) ([]byte, error) {
	if len(sealed) < encLength {
		return nil, errors.New("the seal is too short")
	}
	enc, ct := sealed[:encLength], sealed[encLength:]
	from, err := ecdh.X25519().NewPublicKey(enc)
	if err != nil {
		return nil, err
	}
	// A point of low order gives a secret that anybody knows; ECDH refuses it.
	dh, err := key.ECDH(from)
	if err != nil {
		return nil, err
	}
	aead, nonce, err := keySchedule(sharedSecret(dh, join(enc, key.PublicKey().Bytes())), info)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nonce, ct, nil)
}

// sharedSecret is ExtractAndExpand of section 4.1.
func sharedSecret(dh, kemContext []byte) []byte {
	prk := labeledExtract(kemSuite, nil, "eae_prk", dh)
	return labeledExpand(kemSuite, prk, "shared_secret", kemContext, sha256.Size)
}

// keySchedule is that of section 5.1 in base mode. The nonce is the first one's, as nothing is sealed twice.
func keySchedule(shared, info []byte) (cipher.AEAD, []byte, error) {
	const base = 0
	pskIDHash := labeledExtract(hpkeSuite, nil, "psk_id_hash", nil)
	infoHash := labeledExtract(hpkeSuite, nil, "info_hash", info)
	context := join([]byte{base}, pskIDHash, infoHash)
	secret := labeledExtract(hpkeSuite, shared, "secret", nil)
	block, err := aes.NewCipher(labeledExpand(hpkeSuite, secret, "key", context, 32))
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, nil, err
	}
	return aead, labeledExpand(hpkeSuite, secret, "base_nonce", context, aead.NonceSize()), nil
}

func labeledExtract(suite, salt []byte, label string, ikm []byte) []byte {
	// A salt of zeros and none at all are the same key to HMAC.
	return mac(salt, join([]byte("HPKE-v1"), suite, []byte(label), ikm))
}

// labeledExpand makes at most one block, which is as much as this suite asks for.
func labeledExpand(suite, prk []byte, label string, info []byte, length int) []byte {
	labeled := join(number(uint16(length)), []byte("HPKE-v1"), suite, []byte(label), info)
	return mac(prk, join(labeled, []byte{1}))[:length]
}

func mac(key, text []byte) []byte {
	made := hmac.New(sha256.New, key)
	made.Write(text)
	return made.Sum(nil)
}

func number(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }
