// Package vectors reads the cases of sdk/conformance, on which every implementation must agree. Only tests use it.
package vectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Load decodes one file of sdk/conformance into a pointer; family is its name without ".json".
func Load(t testing.TB, family string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(directory(t), family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", family, err)
	}
}

// Ran fails the test when another number of cases ran than there must be, and tells the count when all have passed.
func Ran(t *testing.T, family string, ran, expected int) {
	t.Helper()
	if ran != expected {
		t.Errorf("%s: %d cases ran, and there are %d", family, ran, expected)
	}
	if !t.Failed() {
		fmt.Printf("holdshort-vectors: {\"language\":\"go\",\"family\":%q,\"ran\":%d}\n", family, ran)
	}
}

// directory finds the vectors beside the module, wherever in it the test is.
func directory(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		found := filepath.Join(at, "conformance")
		if _, err := os.Stat(filepath.Join(found, "signatures.json")); err == nil {
			return found
		}
		above := filepath.Dir(at)
		if above == at {
			t.Skip("the vectors are not here: they stand beside the module in its repository")
		}
		at = above
	}
}
