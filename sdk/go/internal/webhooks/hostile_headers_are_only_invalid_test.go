package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

// parts are the values of honest headers, which the odd ones are made of.
type parts struct{ mac, timed, standard string }

func honestParts(t *testing.T) parts {
	t.Helper()
	return parts{
		mac:      strings.TrimPrefix(signedNow(t, secret, webhooks.SchemeBody).Get("X-Webhook-Signature"), "sha256="),
		timed:    signedNow(t, secret, webhooks.SchemeTimestamped).Get("X-Webhook-Signature"),
		standard: signedNow(t, secret, webhooks.SchemeStandard).Get("Webhook-Signature"),
	}
}

// nine are signatures of the right form that nobody made.
var nine = strings.Repeat(",v1="+strings.Repeat("0", 64), 9)

func lines(signature string) http.Header {
	return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1790000000"}, "Webhook-Signature": {signature}}
}

// held are odd header sets that the control plane takes as proof.
func (p parts) held() map[string]http.Header {
	return map[string]http.Header{
		"space and tabs around":             {"X-Webhook-Signature": {" \tsha256=" + p.mac + "\t "}},
		"tabs between the parts":            {"X-Hax-Signature": {strings.ReplaceAll(p.timed, ",", "\t,\t")}},
		"a part that looks like a digest":   {"X-Hax-Signature": {p.timed + ",x=sha256=1"}},
		"a part without a name":             {"X-Hax-Signature": {"," + p.timed + ",,"}},
		"the tenth signature":               {"X-Hax-Signature": {strings.Replace(p.timed, ",", nine+",", 1)}},
		"a tab between signatures":          lines("v1a,x\t" + p.standard),
		"a thousand that are none before":   lines(strings.Repeat("v1,AAAA ", 1000) + p.standard),
		"signatures in two lines":           two(lines(p.standard), "Webhook-Signature", "v1,AAAA"),
		"two ids, one of them signed":       two(lines(p.standard), "Webhook-Id", "msg_2"),
		"two times, one of them signed":     two(lines(p.standard), "Webhook-Timestamp", "1"),
		"an id that is none":                two(lines(p.standard), "Webhook-Id", "a b"),
		"a time that is none":               two(lines(p.standard), "Webhook-Timestamp", "now"),
		"a name in two spellings":           {"X-HAX-SIGNATURE": {"x"}, "x-hax-signature": {p.timed}},
		"an empty line of the same name":    {"X-Webhook-Signature": {"", p.mac}},
		"beside a signature that is broken": {"X-Webhook-Signature": {"x"}, "X-Hub-Signature-256": {"sha256=" + p.mac}},
	}
}

// refused are those that it takes as none.
func (p parts) refused() map[string]http.Header {
	loose := p.standard[:len(p.standard)-2] + string(p.standard[len(p.standard)-2]+1) + "="
	return map[string]http.Header{
		"a space beyond ASCII":           {"X-Webhook-Signature": {"\u00a0sha256=" + p.mac}},
		"a line feed":                    {"X-Webhook-Signature": {"sha256=" + p.mac + "\n"}},
		"two words for the digest":       {"X-Webhook-Signature": {"sha256=sha256=" + p.mac}},
		"the word in capitals":           {"X-Webhook-Signature": {"SHA256=" + p.mac}},
		"digits beyond ASCII":            {"X-Webhook-Signature": {strings.Repeat("\u0661", 64)}},
		"the eleventh signature":         {"X-Hax-Signature": {strings.Replace(p.timed, ",", nine+",v1="+p.mac+",", 1)}},
		"two times in one value":         {"X-Hax-Signature": {"t=1790000000," + p.timed}},
		"a time with a sign":             {"X-Hax-Signature": {strings.Replace(p.timed, "t=", "t=+", 1)}},
		"a time of thirteen digits":      {"X-Hax-Signature": {strings.Replace(p.timed, "t=", "t=0001", 1)}},
		"a line feed behind the time":    {"X-Hax-Signature": {strings.Replace(p.timed, ",", "\n,", 1)}},
		"base64 with bits behind it":     lines(loose),
		"base64 without its end":         lines(strings.TrimRight(p.standard, "=")),
		"base64 with a line feed within": lines(p.standard[:20] + "\n" + p.standard[20:]),
		"no space between signatures":    lines("v1a,x\u00a0" + p.standard),
		"the version in capitals":        lines(strings.Replace(p.standard, "v1", "V1", 1)),
		"no UTF-8":                       lines("\xff" + p.standard),
		"a signature for another header": {"X-Webhook-Signature": {p.standard}},
	}
}

func two(header http.Header, name, value string) http.Header {
	header[name] = append([]string{value}, header[name]...)
	return header
}

func TestOddHeadersAreJudgedAsTheControlPlaneJudgesThem(t *testing.T) {
	honest := honestParts(t)
	for name, header := range honest.held() {
		if _, err := webhooks.Verify(header, body, []string{secret}, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, header := range honest.refused() {
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
