// Package seals is the seal of one question's answer: HPKE (RFC 9180), base mode, one shot. Only its asker can open it.
package seals

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const block = 64

// Lock is the key pair of one question, kept in memory only. It may be used by several goroutines.
type Lock struct {
	publicKey string
	key       atomic.Pointer[ecdh.PrivateKey]
	suite     suite
}

// NewLock makes a key pair. It fails only where the system has no random bytes to give.
func NewLock() (*Lock, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return lockOf(key, preferred), nil
}

func lockOf(key *ecdh.PrivateKey, by suite) *Lock {
	made := &Lock{publicKey: base64.StdEncoding.EncodeToString(key.PublicKey().Bytes()), suite: by}
	made.key.Store(key)
	return made
}

// PublicKey is what is sent with the question, in base64.
func (l *Lock) PublicKey() string { return l.publicKey }

// Open is the answer that was sealed to this key.
//
// uniqueID is the question's: an answer to another one does not open. enc is the seal's own public key and ct the
// sealed answer, both in base64. What was not sealed to this key and question, or was changed, is an UnreadableAnswer,
// and so is everything after Forget.
func (l *Lock) Open(uniqueID, enc, ct string) (string, error) {
	key := l.key.Load()
	opener, encOK := unbase64(enc)
	sealed, ctOK := unbase64(ct)
	if key == nil || !encOK || !ctOK || len(opener) != encLength {
		return "", errs.ErrUnreadableAnswer.New("")
	}
	padded, err := l.suite.open(key, infoOf(uniqueID), join(opener, sealed))
	// What it was made from stays out of the error.
	if err != nil || len(padded)%block != 0 {
		return "", errs.ErrUnreadableAnswer.New("")
	}
	answer := bytes.TrimRight(padded, "\x00")
	if len(answer) == len(padded) || !utf8.Valid(answer) {
		return "", errs.ErrUnreadableAnswer.New("")
	}
	return string(answer), nil
}

// Forget lets go of the private key; what was sealed to it can never be opened again.
func (l *Lock) Forget() { l.key.Store(nil) }

// Seal is an answer sealed to a question's key: enc and ct in base64. It is what the control plane does, for tests.
//
// publicKey is a Lock's, in base64; one that is none is an error.
func Seal(publicKey, uniqueID, answer string) (enc, ct string, err error) {
	return sealBy(preferred, publicKey, uniqueID, answer)
}

func sealBy(by suite, publicKey, uniqueID, answer string) (enc, ct string, err error) {
	raw, ok := unbase64(publicKey)
	if !ok {
		return "", "", errors.New("holdshort: the public key is no base64")
	}
	to, err := ecdh.X25519().NewPublicKey(raw)
	if err != nil {
		return "", "", err
	}
	padded := append([]byte(answer), make([]byte, block-len(answer)%block)...)
	sealed, err := by.seal(to, infoOf(uniqueID), padded)
	if err != nil {
		return "", "", err
	}
	encode := base64.StdEncoding.EncodeToString
	return encode(sealed[:encLength]), encode(sealed[encLength:]), nil
}

func infoOf(uniqueID string) []byte { return []byte("holdshort human_feedback 1\x00" + uniqueID) }

// unbase64 refuses the line breaks that the standard library ignores.
func unbase64(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil
}
