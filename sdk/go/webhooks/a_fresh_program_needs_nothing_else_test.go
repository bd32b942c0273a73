package webhooks_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const freshModule = `module example.com/receiver

go 1.22

require github.com/holdshort/holdshort/sdk/go v0.0.0

replace github.com/holdshort/holdshort/sdk/go => `

const freshProgram = `package main

import (
	"fmt"

	"github.com/holdshort/holdshort/sdk/go/webhooks"
)

func main() {
	read, err := webhooks.ReadDecision([]byte("{\"requestId\":\"r1\",\"decision\":\"approve\"}"))
	fmt.Println(read.RequestID, read.Decision, err)
}
`

// A dependency that is needed at run time would have to be fetched, and this program may fetch nothing.
func TestAFreshProgramNeedsTheModuleAndNothingElse(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to build a program with")
	}
	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	write(t, filepath.Join(directory, "go.mod"), freshModule+module+"\n")
	write(t, filepath.Join(directory, "main.go"), freshProgram)
	goTool(t, directory, "vet", ".")
	if printed := goTool(t, directory, "run", "."); strings.TrimSpace(printed) != "r1 approved <nil>" {
		t.Errorf("it printed %s", printed)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func goTool(t *testing.T, directory string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
	printed, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, printed)
	}
	return string(printed)
}
