package settings

import (
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestYAMLOfGetConfigKeepsEveryValue(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"sexagesimal number": "12:30:45", "float": "1e3", "infinity": ".inf", "null": "null", "yes": "yes", "octal": "007",
		"date": "2026-11-27", "tab": "a\tb", "control characters": "\x07\x1b[1m", "CR and LF": "a\r\nb",
		"line separator": "a\u2028b", "next line": "a\u0085b", "byte order mark": "\ufeffa", "delete": "a\x7fb",
		"blanks": "  x  ", "comment": "a #b", "map": "a: b", "empty": "", "emoji": "\U0001f642",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := (&getConfigCommand{form: formYAML}).text(map[string]string{"V": value})
			if err != nil {
				t.Fatal(err)
			}
			var read map[string]any
			if err := yaml.Unmarshal([]byte(text), &read); err != nil || read["V"] != value {
				t.Errorf("%s is read as %#v, want %q: %v", text, read["V"], value, err)
			}
			var quoted string
			if err := json.Unmarshal([]byte(text[len("V: "):]), &quoted); err != nil || quoted != value {
				t.Errorf("%s is not quoted as JSON: %v", text, err)
			}
			for _, r := range text {
				if r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\ufeff' {
					t.Errorf("%q holds %U as it is", text, r)
				}
			}
		})
	}
}
