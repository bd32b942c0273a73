package seals

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

type vectorFile struct {
	PrivateKey []byte `json:"private_key"`
	PublicKey  string `json:"public_key"`
	Opens      []sealed
	Refused    []sealed
}

type sealed struct {
	UniqueID string `json:"unique_id"`
	Answer   string
	Enc      string
	CT       string
}

// suites are the module's own and, where there is one, the standard library's.
func suites() map[string]suite {
	return map[string]suite{"own": ownSuite{}, fmt.Sprintf("%T", preferred): preferred}
}

func given(t testing.TB) (vectorFile, *ecdh.PrivateKey) {
	t.Helper()
	var file vectorFile
	vectors.Load(t, "feedback_sealing", &file)
	key, err := ecdh.X25519().NewPrivateKey(file.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return file, key
}

func isUnreadable(answer string, err error) bool {
	return answer == "" && errors.Is(err, errs.ErrUnreadableAnswer)
}

func TestEveryVectorOpensOrIsRefused(t *testing.T) {
	file, key := given(t)
	for name, each := range suites() {
		lock := lockOf(key, each)
		if lock.PublicKey() != file.PublicKey {
			t.Errorf("%s: the public key is %s", name, lock.PublicKey())
		}
		for _, one := range file.Opens {
			if answer, err := lock.Open(one.UniqueID, one.Enc, one.CT); err != nil || answer != one.Answer {
				t.Errorf("%s: %s opens as %q, %v", name, one.UniqueID, answer, err)
			}
		}
		for _, one := range file.Refused {
			if answer, err := lock.Open(one.UniqueID, one.Enc, one.CT); !isUnreadable(answer, err) {
				t.Errorf("%s: %s opens as %q, %v", name, one.UniqueID, answer, err)
			}
		}
	}
	vectors.Ran(t, "feedback_sealing", len(file.Opens)+len(file.Refused), 8)
}

func TestWhatIsSealedHereOpensHere(t *testing.T) {
	_, key := given(t)
	for sealer, sealing := range suites() {
		for opener, opening := range suites() {
			lock := lockOf(key, opening)
			for _, answer := range []string{"a", strings.Repeat("x", 63), strings.Repeat("x", 64), "שלום 👍"} {
				enc, ct, err := sealBy(sealing, lock.PublicKey(), "otp-1", answer)
				if err != nil {
					t.Fatal(err)
				}
				if raw, _ := unbase64(ct); (len(raw)-16)%64 != 0 {
					t.Errorf("the length of %q shows", answer)
				}
				if got, err := lock.Open("otp-1", enc, ct); err != nil || got != answer {
					t.Errorf("%s to %s: %q opens as %q, %v", sealer, opener, answer, got, err)
				}
				if got, err := lock.Open("otp-2", enc, ct); !isUnreadable(got, err) {
					t.Errorf("it opens under another id")
				}
			}
		}
	}
}

func TestAnotherKeyOpensNothing(t *testing.T) {
	lock, other := newLock(t), newLock(t)
	enc, ct, err := Seal(lock.PublicKey(), "otp-1", "482913")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Open("otp-1", enc, ct); !isUnreadable(got, err) {
		t.Errorf("another key opens it as %q, %v", got, err)
	}
}

func TestAForgottenKeyOpensNothing(t *testing.T) {
	lock := newLock(t)
	enc, ct, err := Seal(lock.PublicKey(), "otp-1", "482913")
	if err != nil {
		t.Fatal(err)
	}
	lock.Forget()
	if got, err := lock.Open("otp-1", enc, ct); !isUnreadable(got, err) {
		t.Errorf("it opens as %q, %v", got, err)
	}
}

func TestHostileSealsAreOnlyUnreadable(t *testing.T) {
	file, key := given(t)
	good := file.Opens[0]
	zero := base64.StdEncoding.EncodeToString(make([]byte, 32))
	hostile := [][2]string{
		{"", ""}, {good.Enc, ""}, {"", good.CT}, {"!", "!"}, {good.Enc + "\n", good.CT}, {good.Enc, good.CT + "\r\n"},
		{good.Enc[:43], good.CT}, {good.Enc, strings.TrimRight(good.CT, "=")}, {good.CT, good.Enc}, {zero, good.CT},
		{base64.StdEncoding.EncodeToString(make([]byte, 31)), good.CT}, {good.Enc, zero},
		{base64.StdEncoding.EncodeToString(make([]byte, 33)), good.CT}, {"é", "\xff"},
	}
	for name, each := range suites() {
		lock := lockOf(key, each)
		for _, seal := range hostile {
			if got, err := lock.Open(good.UniqueID, seal[0], seal[1]); !isUnreadable(got, err) {
				t.Errorf("%s: %q opens as %q, %v", name, seal, got, err)
			}
		}
		flipped(t, name, lock, good)
	}
}

// flipped changes every byte of a good seal, one at a time.
func flipped(t *testing.T, name string, lock *Lock, good sealed) {
	t.Helper()
	enc, _ := unbase64(good.Enc)
	ct, _ := unbase64(good.CT)
	whole := join(enc, ct)
	for i := range whole {
		changed := join(whole)
		changed[i] ^= 1
		encode := base64.StdEncoding.EncodeToString
		got, err := lock.Open(good.UniqueID, encode(changed[:encLength]), encode(changed[encLength:]))
		if !isUnreadable(got, err) {
			t.Errorf("%s: with byte %d changed it opens as %q, %v", name, i, got, err)
		}
	}
}

func TestWhatIsNotPaddedAsAgreedIsUnreadable(t *testing.T) {
	_, key := given(t)
	for name, each := range suites() {
		lock := lockOf(key, each)
		for _, plain := range []string{"", "x", strings.Repeat("x", 64), strings.Repeat("x", 62) + "\x00",
			"\xff" + strings.Repeat("\x00", 63), strings.Repeat("x", 64) + "\x00"} {
			raw, err := each.seal(key.PublicKey(), infoOf("otp-1"), []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			encode := base64.StdEncoding.EncodeToString
			got, err := lock.Open("otp-1", encode(raw[:encLength]), encode(raw[encLength:]))
			if !isUnreadable(got, err) {
				t.Errorf("%s: %q opens as %q, %v", name, plain, got, err)
			}
		}
	}
}

func TestNothingIsSealedToWhatIsNoKey(t *testing.T) {
	for _, key := range []string{"", "!", "AAAA", base64.StdEncoding.EncodeToString(make([]byte, 32)), "\n"} {
		if _, _, err := Seal(key, "otp-1", "482913"); err == nil {
			t.Errorf("%q takes an answer", key)
		}
	}
}

// The published vector of RFC 9180, A.1.1, has another AEAD, and the same KEM and KDF: its shared secret must come out.
func TestTheSharedSecretIsThatOfTheRFC(t *testing.T) {
	skR := unhex(t, "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
	enc := unhex(t, "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431")
	expected := "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc"
	key, err := ecdh.X25519().NewPrivateKey(skR)
	if err != nil {
		t.Fatal(err)
	}
	from, err := ecdh.X25519().NewPublicKey(enc)
	if err != nil {
		t.Fatal(err)
	}
	dh, err := key.ECDH(from)
	if err != nil {
		t.Fatal(err)
	}
	got := hex.EncodeToString(sharedSecret(dh, join(enc, key.PublicKey().Bytes())))
	if got != expected {
		t.Errorf("it is %s", got)
	}
}

func unhex(t *testing.T, digits string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func newLock(t *testing.T) *Lock {
	t.Helper()
	lock, err := NewLock()
	if err != nil {
		t.Fatal(err)
	}
	return lock
}
