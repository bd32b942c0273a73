package webhooks_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

func TestEverySettingIsReadAsInEveryLanguage(t *testing.T) {
	var file struct {
		Variable string
		Cases    []struct {
			Value   string
			Secrets [][2]string
			Error   string
		}
	}
	vectors.Load(t, "secret_settings", &file)
	if file.Variable != webhooks.SecretsSetting {
		t.Errorf("the variable is %s", file.Variable)
	}
	for _, given := range file.Cases {
		found, err := webhooks.ParseSecrets(given.Value)
		if !breaks(err, given.Error) {
			t.Errorf("%q: %v", given.Value, err)
		}
		var pairs [][2]string
		for _, each := range found {
			pairs = append(pairs, [2]string{each.Sender, each.Secret})
		}
		if fmt.Sprint(pairs) != fmt.Sprint(given.Secrets) {
			t.Errorf("%q was read as %v", given.Value, pairs)
		}
	}
	vectors.Ran(t, "secret_settings", len(file.Cases), 9)
}

func breaks(err error, rule string) bool {
	if rule == "" {
		return err == nil
	}
	var found *errs.Error
	return errors.As(err, &found) && errors.Is(err, errs.ErrInvalidField) && found.Code == "invalid_field" &&
		strings.HasSuffix(found.Message, rule)
}

func TestAnEntryThatIsNoneIsRefusedWithoutShowingASecret(t *testing.T) {
	for setting, rule := range map[string]string{
		" ": "empty entry", "hush,,b": "empty entry", "whsec_": "empty secret", "a:whsec_": "empty secret",
		"a: \u00a0": "empty secret", "hush\xff": "a secret is not UTF-8 text", "a:hush\xff": "a secret is not UTF-8 text",
		"hush,\x1f": "empty entry",
	} {
		found, err := webhooks.ParseSecrets(setting)
		if !breaks(err, rule) || found != nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", setting, err)
		}
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	found, err := webhooks.ParseSecrets("legal:hush-hush-hush-16,hush-hush-hush-17")
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	fmt.Fprintf(&printed, "%v %+v %s %#v", found, found, found, found)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("read", "secret", found[0])
	if strings.Contains(printed.String(), "hush") || !strings.Contains(printed.String(), "legal") {
		t.Error(printed.String())
	}
}
