// Package digests makes the digest of a payload: the same for the same content however it is spaced, ordered or escaped.
package digests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/holdshort/holdshort/sdk/go/internal/strictjson"
)

var shortEscapes = map[byte]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

// PayloadDigest is the SHA-256 of the canonical form, as 64 lower-case hex digits.
//
// raw is one JSON value as received. What is not strict JSON is refused as strictjson.Parse does.
func PayloadDigest(raw []byte) (string, error) {
	canonical, err := Canonical(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// Canonical is the canonical form of one JSON value: names sorted by code point, no white space, numbers as written,
// strings in UTF-8 with only the escapes that JSON requires. It fails as PayloadDigest does.
func Canonical(raw []byte) ([]byte, error) {
	value, err := strictjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	return appended(nil, value), nil
}

// Same reports whether two values have one canonical form.
func Same(a, b *strictjson.Value) bool { return slices.Equal(appended(nil, a), appended(nil, b)) }

// appended recurses as deep as the value is, which the parser bounds.
func appended(to []byte, value *strictjson.Value) []byte {
	switch value.Kind {
	case strictjson.Object:
		return appendedObject(to, value.Members)
	case strictjson.Array:
		return appendedArray(to, value.Items)
	case strictjson.String:
		return appendedText(to, value.Text)
	default:
		return append(to, value.Raw...)
	}
}

func appendedObject(to []byte, members []strictjson.Member) []byte {
	sorted := slices.Clone(members)
	// Bytes of UTF-8 sort as the code points do.
	slices.SortFunc(sorted, func(a, b strictjson.Member) int { return strings.Compare(a.Name, b.Name) })
	to = append(to, '{')
	for i := range sorted {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendedText(to, sorted[i].Name), ':')
		to = appended(to, &sorted[i].Value)
	}
	return append(to, '}')
}

func appendedArray(to []byte, items []strictjson.Value) []byte {
	to = append(to, '[')
	for i := range items {
		if i > 0 {
			to = append(to, ',')
		}
		to = appended(to, &items[i])
	}
	return append(to, ']')
}

func appendedText(to []byte, text string) []byte {
	to = append(to, '"')
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch short, ok := shortEscapes[c]; {
		case ok:
			to = append(to, short...)
		case c < ' ':
			to = fmt.Appendf(to, `\u%04x`, c)
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
