package webhooks

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	hexPattern  = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	timePattern = regexp.MustCompile(`^[0-9]{1,12}$`)
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	// The last digit before the padding carries four bits only: one text for each signature.
	entryPattern = regexp.MustCompile(`^v1,([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$`)
)

const (
	space      = " \t"
	asciiSpace = " \t\n\r\v\f"
)

// candidate is one signature that was sent: what it claims to sign, and when.
type candidate struct {
	scheme    Scheme
	mac       []byte
	prefix    string
	timed     bool
	seconds   int64
	webhookID string
}

// signatures are the headers that may prove something, each with its values in the order in which they were sent.
type signatures struct {
	ids, times, listed []string
	plain              []string
}

func signaturesOf(header http.Header) signatures {
	found := signatures{
		ids: values(header, "webhook-id"), times: values(header, "webhook-timestamp"),
		listed: values(header, "webhook-signature"),
	}
	// A header has no order among its names here; this one is as good as any, and always the same.
	for _, name := range []string{"x-webhook-signature", "x-hub-signature-256", "x-hax-signature"} {
		found.plain = append(found.plain, values(header, name)...)
	}
	return found
}

// sent reports whether there is any signature at all, good or not.
func (s signatures) sent() bool {
	filled := func(value string) bool { return value != "" }
	return slices.ContainsFunc(s.listed, filled) || slices.ContainsFunc(s.plain, filled)
}

// values takes a name in any case, since a header that was made by hand may not have it as net/http spells it.
func values(header http.Header, name string) []string {
	var spellings []string
	for given := range header {
		if strings.EqualFold(given, name) {
			spellings = append(spellings, given)
		}
	}
	slices.Sort(spellings)
	var found []string
	for _, given := range spellings {
		for _, value := range header[given] {
			found = append(found, strings.Trim(value, space))
		}
	}
	return found
}

// candidates are the first ten, with Standard Webhooks first: where several hold, its id is the one worth remembering.
func (s signatures) candidates() []candidate {
	found := s.standard()
	for _, value := range s.plain {
		if len(found) >= maxSignatures {
			break
		}
		if mac := unhex(strings.TrimPrefix(value, "sha256=")); mac != nil {
			found = append(found, candidate{scheme: SchemeBody, mac: mac})
			continue
		}
		found = append(found, timestamped(value)...)
	}
	return found[:min(len(found), maxSignatures)]
}

// standard are at most ten, of every id and time that was sent with every signature.
func (s signatures) standard() []candidate {
	claims := s.claims()
	var found []candidate
	for _, mac := range s.macs() {
		for _, claim := range claims {
			if len(found) >= maxSignatures {
				return found
			}
			claim.mac = mac
			found = append(found, claim)
		}
	}
	return found
}

// claims are the first ten pairs of an id and a time, without a signature.
func (s signatures) claims() []candidate {
	times := matching(s.times, timePattern)
	var found []candidate
	for _, id := range matching(s.ids, idPattern) {
		for _, at := range times {
			if len(found) >= maxSignatures {
				return found
			}
			found = append(found, candidate{
				scheme: SchemeStandard, prefix: id + "." + at + ".", timed: true, seconds: secondsOf(at), webhookID: id,
			})
		}
	}
	return found
}

// macs are the first ten signatures of the form that Standard Webhooks has, of however many others.
func (s signatures) macs() [][]byte {
	isSpace := func(r rune) bool { return strings.ContainsRune(asciiSpace, r) }
	var found [][]byte
	for _, entry := range strings.FieldsFunc(strings.Join(s.listed, " "), isSpace) {
		encoded := entryPattern.FindStringSubmatch(entry)
		if encoded == nil || len(found) >= maxSignatures {
			continue
		}
		if mac, err := base64.StdEncoding.DecodeString(encoded[1]); err == nil {
			found = append(found, mac)
		}
	}
	return found
}

// timestamped reads `t=<seconds>,v1=<hex>[,v1=<hex>...]` in any order; two times in one value are none.
func timestamped(value string) []candidate {
	var times, macs []string
	for _, part := range strings.Split(value, ",") {
		switch name, text, _ := strings.Cut(strings.Trim(part, space), "="); name {
		case "t":
			times = append(times, text)
		case "v1":
			macs = append(macs, text)
		}
	}
	if len(times) != 1 || !timePattern.MatchString(times[0]) {
		return nil
	}
	var found []candidate
	for _, text := range macs {
		if mac := unhex(text); mac != nil {
			found = append(found, candidate{
				scheme: SchemeTimestamped, mac: mac, prefix: times[0] + ".", timed: true, seconds: secondsOf(times[0]),
			})
		}
	}
	return found
}

func isID(text string) bool { return idPattern.MatchString(text) }

func matching(texts []string, pattern *regexp.Regexp) []string {
	var found []string
	for _, text := range texts {
		if pattern.MatchString(text) {
			found = append(found, text)
		}
	}
	return found
}

// unhex is nil for what is not 64 hex digits.
func unhex(digits string) []byte {
	if !hexPattern.MatchString(digits) {
		return nil
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return raw
}

// secondsOf reads what timePattern has matched, so it always fits.
func secondsOf(digits string) int64 {
	seconds, _ := strconv.ParseInt(digits, 10, 64)
	return seconds
}
