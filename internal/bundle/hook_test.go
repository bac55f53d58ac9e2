package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTextHooksWithoutAnInterpreterRunInAShell(t *testing.T) {
	t.Parallel()
	const file = ".platform/hooks/prebuild/a"
	full := strings.Repeat("#", maxShebang-1) // reading stops after one more byte
	for name, c := range map[string]struct {
		content string
		shell   bool
	}{
		"a script":                        {"echo ä\n", true},
		"an empty file":                   {"", true},
		"a program":                       {"\x7fELF\x02\x01\x01\x00", false},
		"invalid UTF-8":                   {"\xff\xfe", false},
		"invalid UTF-8 and NUL":           {"\xff\x00", false},
		"invalid UTF-8 at the end":        {"echo\xff", false},
		"an incomplete character":         {"echo \xc3", false},
		"a character across the limit":    {full + "ä\n", true},
		"a long character over the limit": {full[:len(full)-2] + "😀\n", true},
		"invalid UTF-8 at the limit":      {full + "\xff\n", false},
		"NUL before the limit":            {full[1:] + "\x00ä\n", false},
		"ASCII across the limit":          {full + full, true},
	} {
		dir := folder(t, map[string]string{"Procfile": "web: x", file: c.content})
		if err := os.Chmod(filepath.Join(dir, file), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := Open(dir)
		if err != nil || len(b.Hooks) != 1 {
			t.Errorf("%s: %v, %+v", name, err, b)
			continue
		}
		if shell := len(b.Hooks[0].Interpreter) > 0; shell != c.shell {
			t.Errorf("%s: run by %q", name, b.Hooks[0].Interpreter)
		}
	}
}
