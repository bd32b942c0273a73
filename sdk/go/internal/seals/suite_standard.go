//go:build go1.26

package seals

import (
	"crypto/ecdh"
	"crypto/hpke"
)

// preferred is the standard library's, where it has one.
var preferred suite = standardSuite{}

type standardSuite struct{}

func (standardSuite) seal(to *ecdh.PublicKey, info, plain []byte) ([]byte, error) {
	key, err := hpke.NewDHKEMPublicKey(to)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), info, plain)
}

func (standardSuite) open(key *ecdh.PrivateKey, info, sealed []byte) ([]byte, error) {
	own, err := hpke.NewDHKEMPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return hpke.Open(own, hpke.HKDFSHA256(), hpke.AES256GCM(), info, sealed)
}
