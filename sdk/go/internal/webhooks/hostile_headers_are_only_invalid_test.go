package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

// oddHeaders are header sets that the control plane judges as it is said here; the parts are those of an honest one.
func oddHeaders(mac, timed, standard string) (held, refused map[string]http.Header) {
	loose := standard[:len(standard)-2] + string(standard[len(standard)-2]+1) + "="
	others := strings.Repeat(",v1="+strings.Repeat("0", 64), 9)
	lines := func(signature string) http.Header {
		return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1790000000"}, "Webhook-Signature": {signature}}
	}
	held = map[string]http.Header{
		"space and tabs around":             {"X-Webhook-Signature": {" \tsha256=" + mac + "\t "}},
		"tabs between the parts":            {"X-Hax-Signature": {strings.ReplaceAll(timed, ",", "\t,\t")}},
		"a part that looks like a digest":   {"X-Hax-Signature": {timed + ",x=sha256=1"}},
		"a part without a name":             {"X-Hax-Signature": {"," + timed + ",,"}},
		"the tenth signature":               {"X-Hax-Signature": {strings.Replace(timed, ",", others+",", 1)}},
		"a tab between signatures":          lines("v1a,x\t" + standard),
		"a thousand that are none before":   lines(strings.Repeat("v1,AAAA ", 1000) + standard),
		"signatures in two lines":           two(lines(standard), "Webhook-Signature", "v1,AAAA"),
		"two ids, one of them signed":       two(lines(standard), "Webhook-Id", "msg_2"),
		"two times, one of them signed":     two(lines(standard), "Webhook-Timestamp", "1"),
		"an id that is none":                two(lines(standard), "Webhook-Id", "a b"),
		"a time that is none":               two(lines(standard), "Webhook-Timestamp", "now"),
		"a name in two spellings":           {"X-HAX-SIGNATURE": {"x"}, "x-hax-signature": {timed}},
		"an empty line of the same name":    {"X-Webhook-Signature": {"", mac}},
		"beside a signature that is broken": {"X-Webhook-Signature": {"x"}, "X-Hub-Signature-256": {"sha256=" + mac}},
	}
	refused = map[string]http.Header{
		"a space beyond ASCII":           {"X-Webhook-Signature": {"\u00a0sha256=" + mac}},
		"a line feed":                    {"X-Webhook-Signature": {"sha256=" + mac + "\n"}},
		"two words for the digest":       {"X-Webhook-Signature": {"sha256=sha256=" + mac}},
		"the word in capitals":           {"X-Webhook-Signature": {"SHA256=" + mac}},
		"digits beyond ASCII":            {"X-Webhook-Signature": {strings.Repeat("\u0661", 64)}},
		"the eleventh signature":         {"X-Hax-Signature": {strings.Replace(timed, ",", others+",v1="+mac+",", 1)}},
		"two times in one value":         {"X-Hax-Signature": {"t=1790000000," + timed}},
		"a time with a sign":             {"X-Hax-Signature": {strings.Replace(timed, "t=", "t=+", 1)}},
		"a time of thirteen digits":      {"X-Hax-Signature": {strings.Replace(timed, "t=", "t=0001", 1)}},
		"a line feed behind the time":    {"X-Hax-Signature": {strings.Replace(timed, ",", "\n,", 1)}},
		"base64 with bits behind it":     lines(loose),
		"base64 without its end":         lines(strings.TrimRight(standard, "=")),
		"base64 with a line feed within": lines(standard[:20] + "\n" + standard[20:]),
		"no space between signatures":    lines("v1a,x\u00a0" + standard),
		"the version in capitals":        lines(strings.Replace(standard, "v1", "V1", 1)),
		"no UTF-8":                       lines("\xff" + standard),
		"a signature for another header": {"X-Webhook-Signature": {standard}},
	}
	return held, refused
}

func two(header http.Header, name, value string) http.Header {
	header[name] = append([]string{value}, header[name]...)
	return header
}

func TestOddHeadersAreJudgedAsTheControlPlaneJudgesThem(t *testing.T) {
	mac := strings.TrimPrefix(signedNow(t, secret, webhooks.SchemeBody).Get("X-Webhook-Signature"), "sha256=")
	timed := signedNow(t, secret, webhooks.SchemeTimestamped).Get("X-Webhook-Signature")
	standard := signedNow(t, secret, webhooks.SchemeStandard).Get("Webhook-Signature")
	held, refused := oddHeaders(mac, timed, standard)
	for name, header := range held {
		if _, err := webhooks.Verify(header, body, []string{secret}, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, header := range refused {
		_, err := webhooks.Verify(header, body, []string{secret}, now)
		if got := outcome(t, err); got != "invalid_signature" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A post that claims millions of signatures must not cost a hash for each.
func TestAHugePostIsRefusedWithoutHashingForEachOfItsClaims(t *testing.T) {
	many := make([]string, 2000)
	for i := range many {
		many[i] = "1790000000"
	}
	unsigned := "v1," + strings.Repeat("A", 43) + "= "
	header := http.Header{
		"Webhook-Id": many, "Webhook-Timestamp": many, "Webhook-Signature": {strings.Repeat(unsigned, 2000)},
		"X-Hax-Signature": many,
	}
	_, err := webhooks.Verify(header, body, []string{"1", "2", "3", "4", "5"}, now)
	if got := outcome(t, err); got != "invalid_signature" {
		t.Error(got)
	}
}

func FuzzVerify(f *testing.F) {
	for _, given := range signatureCases(f) {
		header := given.canonical()
		plain := header.Get("X-Webhook-Signature") + header.Get("X-Hub-Signature-256") + header.Get("X-Hax-Signature")
		f.Add(plain, header.Get("webhook-id"), header.Get("webhook-timestamp"), header.Get("webhook-signature"), given.Body)
	}
	for _, scheme := range schemes {
		header := signedNow(f, secret, scheme)
		f.Add(header.Get("X-Webhook-Signature"), header.Get("webhook-id"), header.Get("webhook-timestamp"),
			header.Get("webhook-signature"), body)
	}
	f.Fuzz(func(t *testing.T, plain, id, at, signature string, sent []byte) {
		header := http.Header{
			"X-Hax-Signature": {plain}, "Webhook-Id": {id, id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature},
		}
		verified, err := webhooks.Verify(header, sent, []string{secret}, now)
		if outcome(t, err) != "valid" {
			return
		}
		// Nobody finds a signature by trying: what holds is what was signed here.
		if string(sent) != string(body) {
			t.Fatalf("%q is proven as %v", sent, verified)
		}
		if verified.Scheme == webhooks.SchemeStandard && verified.WebhookID != "msg_1" {
			t.Fatalf("the id %q is proven", verified.WebhookID)
		}
	})
}
