package terminal

import (
	"os/exec"
	"strings"
	"testing"
)

func TestShellWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jobs.fifo":          "jobs.fifo",
		"http://h:1/a?b=c&d": `'http://h:1/a?b=c&d'`,
		"":                   "''",
		"two words":          "'two words'",
		"it's":               `'it'\''s'`,
		"$(id) `id` \\ !":    "'$(id) `id` \\ !'",
		"~":                  "'~'",
		"=ls":                "'=ls'",
		"é 漢":                "'é 漢'",
		"\nfirst":            `$'\nfirst'`,
		"a\rb":               `$'a\rb'`,
		"it's\r\n\\n":        `$'it\'s\r\n\\n'`,
		"tab\t0":             `$'tab\0110'`,
		"\x1b[2J":            `$'\033[2J'`,
		"\u202e'":            `$'\342\200\256\''`,
		"\xff1":              `$'\3771'`,
	} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q became %s, want %s", text, got, want)
		}
	}
}

func FuzzShellWordIsReadBack(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash")
	}
	for _, text := range append(hostile, "@/etc/passwd", "--file=/etc/passwd", "it's", "\n", "a\rb\r\n", `\`, "!!", "$HOME") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") || len(text) > 100_000 {
			t.Skip("no argument of a program")
		}
		word := ShellWord(text)
		if Plain(word, false) != word {
			t.Errorf("%q became %q, which is not printable", text, word)
		}
		out, err := exec.Command(bash, "--norc", "-c", "printf %s "+word).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %s, which is %q (%v)", text, word, out, err)
		}
	})
}
