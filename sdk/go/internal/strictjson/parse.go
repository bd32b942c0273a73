// Package strictjson reads JSON that every parser reads alike, and refuses the rest.
//
// RFC 8259 leaves open what a name given twice, half a surrogate pair or a number beyond a double means, and
// encoding/json takes all of them. Here they are refused, so that what was signed and shown is what was read.
package strictjson

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// MaxDepth is how many objects and arrays may stand inside each other.
const MaxDepth = 64

// Parse reads one JSON value: UTF-8 without a byte order mark, and nothing but space around it.
//
// It fails with a BadRequest of the code invalid_body, whose message says why and where, and repeats nothing of what
// was sent.
func Parse(raw []byte) (*Value, error) {
	if !utf8.Valid(raw) {
		return nil, invalid("the body is not UTF-8")
	}
	if tooDeep(raw) {
		return nil, invalid(fmt.Sprintf("objects and arrays stand more than %d deep in each other", MaxDepth))
	}
	reader := &reader{raw: raw}
	reader.space()
	value, err := reader.value()
	if err != nil {
		return nil, err
	}
	reader.space()
	if reader.at < len(raw) {
		return nil, reader.noJSON()
	}
	return &value, nil
}

// tooDeep counts brackets outside strings before anything is decoded, so that what comes after may be recursive.
func tooDeep(raw []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

type reader struct {
	raw []byte
	at  int
}

func (r *reader) value() (Value, error) {
	switch from := r.at; r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		text, err := r.text()
		return Value{Kind: String, Raw: r.raw[from:r.at], Text: text}, err
	case 't':
		return r.literal("true", Bool)
	case 'f':
		return r.literal("false", Bool)
	case 'n':
		return r.literal("null", Null)
	default:
		return r.number()
	}
}

func (r *reader) object() (Value, error) {
	from, seen := r.at, map[string]bool{}
	found := Value{Kind: Object}
	err := r.list('}', func() error {
		name, err := r.name()
		if err != nil {
			return err
		}
		if seen[name] {
			return r.wrong("an object holds the same name twice")
		}
		seen[name] = true
		value, err := r.value()
		found.Members = append(found.Members, Member{Name: name, Value: value})
		return err
	})
	found.Raw = r.raw[from:r.at]
	return found, err
}

func (r *reader) array() (Value, error) {
	from, found := r.at, Value{Kind: Array}
	err := r.list(']', func() error {
		value, err := r.value()
		found.Items = append(found.Items, value)
		return err
	})
	found.Raw = r.raw[from:r.at]
	return found, err
}

// list reads what stands between two brackets: nothing, or parts with commas between them.
func (r *reader) list(end byte, part func() error) error {
	r.at++
	r.space()
	if r.take(end) {
		return nil
	}
	for {
		if err := part(); err != nil {
			return err
		}
		r.space()
		if r.take(end) {
			return nil
		}
		if !r.take(',') {
			return r.noJSON()
		}
		r.space()
	}
}

func (r *reader) name() (string, error) {
	if r.next() != '"' {
		return "", r.noJSON()
	}
	name, err := r.text()
	if err != nil {
		return "", err
	}
	r.space()
	if !r.take(':') {
		return "", r.noJSON()
	}
	r.space()
	return name, nil
}

func (r *reader) literal(word string, kind Kind) (Value, error) {
	from := r.at
	if !bytes.HasPrefix(r.raw[from:], []byte(word)) {
		return Value{}, r.noJSON()
	}
	r.at += len(word)
	return Value{Kind: kind, Raw: r.raw[from:r.at]}, nil
}

// next is the byte that comes next, 0 at the end: it begins nothing.
func (r *reader) next() byte {
	if r.at < len(r.raw) {
		return r.raw[r.at]
	}
	return 0
}

func (r *reader) take(wanted byte) bool {
	if r.next() != wanted {
		return false
	}
	r.at++
	return true
}

func (r *reader) space() {
	for r.at < len(r.raw) {
		switch r.raw[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) noJSON() error { return r.wrong("the body is not JSON") }

// wrong says where reading stopped, with columns in characters.
func (r *reader) wrong(what string) error {
	before := r.raw[:r.at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return invalid(fmt.Sprintf("%s (line %d, column %d)", what, line, column))
}

func invalid(message string) error {
	refused := errs.ErrBadRequest.New(message)
	refused.Code = "invalid_body"
	return refused
}
