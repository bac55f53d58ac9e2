package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
)

func TestWarningsHaveAHintOrNone(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string][]any{
		"":        {"component", "config", "problem", "mind this"},
		"do that": {"component", "config", "problem", "mind this", "hint", "do that"},
	} {
		if diff := cmp.Diff(want, attributesOf("config", bundle.Problem{Text: "mind this", Hint: hint})); diff != "" {
			t.Errorf("%q: %s", hint, diff)
		}
	}
}
