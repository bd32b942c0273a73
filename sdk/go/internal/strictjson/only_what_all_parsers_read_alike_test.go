package strictjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/strictjson"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

var accepted = []string{
	`null`, `true`, ` false `, `0`, `-0`, `1.10`, `1e3`, `-1E-3`, `1e308`, `5e-324`, `0e999`, `-0.000e-999`,
	`9007199254740993`, `""`, `"\u00e9"`, `"\ud83d\udc4d"`, `"\"\\\/\b\f\n\r\t"`, `"\\u0000"`, `"\\ud83d"`, `"]]]"`,
	"\"\u2028\x7f\"", `[]`, `[ ]`, `{}`, `{ }`, "\t[1 ,\r\n2]\n", `{"a":{"a":1},"A":2}`, `{"":0}`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), `"` + strings.Repeat("[", 99) + `"`,
}

var refused = map[string]string{
	"nothing":                             ``,
	"only space":                          ` `,
	"a byte order mark":                   "\ufeff1",
	"no UTF-8":                            "\"\xff\"",
	"UTF-8 of half a pair":                "\"\xed\xa0\x80\"",
	"UTF-8 that is too long":              "\"\xc0\xaf\"",
	"a name twice":                        `{"a":1,"a":1}`,
	"a name twice, escaped":               `{"a":1,"\u0061":1}`,
	"a name twice, deep inside":           `[{"x":{"a":1,"b":2,"a":3}}]`,
	"NUL":                                 `"\u0000"`,
	"NUL in a name":                       `{"\u0000":1}`,
	"NUL as it is":                        "\"\x00\"",
	"a line feed as it is":                "\"\n\"",
	"the first half of a pair":            `"\ud83d"`,
	"the second half of a pair":           `"\udc4d"`,
	"halves in the wrong order":           `"\udc4d\ud83d"`,
	"two first halves before a second":    `"\ud83d\ud83d\udc4d"`,
	"a half and another escape":           `"\ud83d\n"`,
	"a half and a plain character":        `"\ud83dx"`,
	"a half in a name":                    `{"\ud83d":1}`,
	"a number beyond a double":            `1e309`,
	"a whole number beyond a double":      "1" + strings.Repeat("0", 309),
	"a number that becomes zero":          `1e-400`,
	"a fraction that becomes zero":        `0.` + strings.Repeat("0", 400) + `1`,
	"NaN":                                 `NaN`,
	"Infinity":                            `-Infinity`,
	"a leading zero":                      `01`,
	"a sign":                              `+1`,
	"a point without digits":              `1.`,
	"a point without digits before":       `.5`,
	"an exponent without digits":          `1e+`,
	"only a sign":                         `-`,
	"half an escape":                      `"\u12"`,
	"an unknown escape":                   `"\x41"`,
	"an escape at the end":                `"\`,
	"no closing quote":                    `"a`,
	"single quotes":                       `'a'`,
	"a comma at the end of an array":      `[1,]`,
	"a comma at the end of an object":     `{"a":1,}`,
	"no comma":                            `[1 2]`,
	"no colon":                            `{"a" 1}`,
	"a name without quotes":               `{a:1}`,
	"no value":                            `{"a":}`,
	"no end":                              `{"a":[`,
	"the wrong end":                       `[1}`,
	"a comment":                           `/**/1`,
	"two values":                          `1 2`,
	"a space beyond ASCII":                "\u00a01",
	"half a word":                         `tru`,
	"a word in capitals":                  `True`,
	"65 arrays":                           strings.Repeat("[", 65) + strings.Repeat("]", 65),
	"65 objects":                          strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
	"a million arrays that nobody closes": strings.Repeat("[", 1_000_000),
}

func TestWhatAllParsersReadAlikeIsReadAsTheyDo(t *testing.T) {
	for _, raw := range accepted {
		value, err := strictjson.Parse([]byte(raw))
		if err != nil {
			t.Errorf("%.40q: %v", raw, err)
			continue
		}
		agrees(t, []byte(raw), value)
	}
}

func TestWhatParsersReadInDifferentWaysIsRefused(t *testing.T) {
	for name, raw := range refused {
		_, err := strictjson.Parse([]byte(raw))
		if !isInvalidBody(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARefusalSaysWhereAndRepeatsNothing(t *testing.T) {
	_, err := strictjson.Parse([]byte("{\"é\": 1,\n \"hush\": hush}"))
	if err == nil || !strings.Contains(err.Error(), "line 2, column 10") || strings.Contains(err.Error(), "hush") {
		t.Errorf("it says %v", err)
	}
}

func TestNullCountsAsAbsent(t *testing.T) {
	value, err := strictjson.Parse([]byte(`{"a":null,"b":{"c":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	if value.Get("a") != nil || value.Get("x") != nil || value.Get("x").Get("y") != nil {
		t.Error("something was found where nothing is")
	}
	if got := value.Get("b").Get("c"); got == nil || string(got.Raw) != "false" {
		t.Errorf("false was read as %v", got)
	}
}

func isInvalidBody(err error) bool {
	var found *errs.Error
	return errors.As(err, &found) && found.Code == "invalid_body" && errors.Is(err, errs.ErrBadRequest)
}

// agrees holds what was read against what the standard library reads in the same bytes.
func agrees(t *testing.T, raw []byte, value *strictjson.Value) {
	t.Helper()
	var theirs any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&theirs); err != nil || !json.Valid(raw) {
		t.Fatalf("%.60q is no JSON to encoding/json: %v", raw, err)
	}
	if ours := plain(value); !reflect.DeepEqual(ours, theirs) {
		t.Fatalf("%.60q was read as %#v, and is %#v", raw, ours, theirs)
	}
}

func plain(value *strictjson.Value) any {
	switch value.Kind {
	case strictjson.Null:
		return nil
	case strictjson.Bool:
		return string(value.Raw) == "true"
	case strictjson.Number:
		return json.Number(value.Raw)
	case strictjson.String:
		return value.Text
	case strictjson.Array:
		items := make([]any, 0, len(value.Items))
		for i := range value.Items {
			items = append(items, plain(&value.Items[i]))
		}
		return items
	}
	members := map[string]any{}
	for i := range value.Members {
		members[value.Members[i].Name] = plain(&value.Members[i].Value)
	}
	return members
}

func FuzzStrictJSON(f *testing.F) {
	for _, raw := range accepted {
		f.Add([]byte(raw))
	}
	for _, raw := range refused {
		f.Add([]byte(raw[:min(len(raw), 1000)]))
	}
	var digests struct{ Cases []struct{ Raw string } }
	vectors.Load(f, "payload_digests", &digests)
	for _, given := range digests.Cases {
		f.Add([]byte(given.Raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := strictjson.Parse(raw)
		if err != nil {
			if !isInvalidBody(err) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		agrees(t, raw, value)
	})
}
