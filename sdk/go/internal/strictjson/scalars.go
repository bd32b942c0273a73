package strictjson

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

var shortEscapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// text reads a string from its opening quote to behind its closing one.
func (r *reader) text() (string, error) {
	r.at++
	var built []byte
	from := r.at
	for r.at < len(r.raw) {
		switch c := r.raw[r.at]; {
		case c == '"':
			text := append(built, r.raw[from:r.at]...)
			r.at++
			return string(text), nil
		case c < ' ':
			return "", r.noJSON()
		case c == '\\':
			built = append(built, r.raw[from:r.at]...)
			character, err := r.escape()
			if err != nil {
				return "", err
			}
			built, from = utf8.AppendRune(built, character), r.at
		default:
			r.at++
		}
	}
	return "", r.noJSON()
}

func (r *reader) escape() (rune, error) {
	r.at++
	if short, ok := shortEscapes[r.next()]; ok {
		r.at++
		return rune(short), nil
	}
	first, ok := r.fourDigits()
	switch {
	case !ok:
		return 0, r.noJSON()
	case first == 0:
		return 0, r.wrong("a string holds a NUL character; take it out")
	case !utf16.IsSurrogate(first):
		return first, nil
	}
	if r.take('\\') {
		if second, ok := r.fourDigits(); ok {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, r.wrong("a string holds half of a surrogate pair; send both halves or neither")
}

// fourDigits reads what stands behind the backslash of a \uXXXX.
func (r *reader) fourDigits() (rune, bool) {
	if r.next() != 'u' || len(r.raw)-r.at < 5 {
		return 0, false
	}
	var number rune
	for _, digit := range r.raw[r.at+1 : r.at+5] {
		value, ok := hexDigit(digit)
		if !ok {
			return 0, false
		}
		number = number<<4 | value
	}
	r.at += 5
	return number, true
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

func (r *reader) number() (Value, error) {
	from := r.at
	r.take('-')
	if !r.take('0') && !r.digits() {
		return Value{}, r.noJSON()
	}
	if r.take('.') && !r.digits() {
		return Value{}, r.noJSON()
	}
	if r.take('e') || r.take('E') {
		if !r.take('-') {
			r.take('+')
		}
		if !r.digits() {
			return Value{}, r.noJSON()
		}
	}
	raw := r.raw[from:r.at]
	if !fitsDouble(string(raw)) {
		return Value{}, r.wrong("a number is too large or too small for a double; send it as a string")
	}
	return Value{Kind: Number, Raw: raw}, nil
}

func (r *reader) digits() bool {
	from := r.at
	for c := r.next(); '0' <= c && c <= '9'; c = r.next() {
		r.at++
	}
	return r.at > from
}

// fitsDouble refuses what would become an infinity, and what would become zero without being zero.
func fitsDouble(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return value != 0 || strings.Trim(mantissa, "-0.") == ""
}
