package digests_test

import (
	"bytes"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/digests"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

func TestEveryVectorHasItsCanonicalFormAndDigest(t *testing.T) {
	var file struct {
		Cases []struct{ Raw, Canonical, SHA256 string }
	}
	vectors.Load(t, "payload_digests", &file)
	for _, given := range file.Cases {
		canonical, err := digests.Canonical([]byte(given.Raw))
		if err != nil || string(canonical) != given.Canonical {
			t.Errorf("%q became %q, %v", given.Raw, canonical, err)
		}
		digest, err := digests.PayloadDigest([]byte(given.Raw))
		if err != nil || digest != given.SHA256 {
			t.Errorf("%q has the digest %s, %v", given.Raw, digest, err)
		}
	}
	vectors.Ran(t, "payload_digests", len(file.Cases), 16)
}

func TestACanonicalFormIsItsOwnCanonicalForm(t *testing.T) {
	raw := []byte(" {\"b\":\"\\u001F\\u007f\\u2028<&>\\ud83d\\udc4d\",\"\\uffff\":[ ],\"\\ud800\\udc00\":{ },\"a\":-0.10E+1}")
	once, err := digests.Canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	expected := "{\"a\":-0.10E+1,\"b\":\"\\u001f\x7f\u2028<&>👍\",\"\uffff\":[],\"\U00010000\":{}}"
	if string(once) != expected {
		t.Errorf("it became %s", once)
	}
	twice, err := digests.Canonical(once)
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("it became %s the second time, %v", twice, err)
	}
}

func TestWhatIsNoStrictJSONHasNoDigest(t *testing.T) {
	for _, raw := range []string{"", `{"a":1,"a":2}`, `"\ud83d"`, `1e999`, "\xff"} {
		if digest, err := digests.PayloadDigest([]byte(raw)); err == nil || digest != "" {
			t.Errorf("%q has the digest %s", raw, digest)
		}
	}
}
