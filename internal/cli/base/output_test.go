package base

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"tendril/internal/host/terminal"
)

func TestPlainIsSafeForATerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"héllo 世界":    "héllo 世界",
		"\x1b[31mred": `\x1b[31mred`,
		"a\nb\tc":     "a\nb\tc",
		"a\r\x00\x7f": `a\r\x00\x7f`,
		"\xff\xfe":    `\xff\xfe`,
		"\u202eevil":  `\u202eevil`,
		"\u009b31m":   `\u009b31m`,
		"\ufffd":      "\ufffd",
	} {
		if got := terminal.Plain(in, true); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Plain("a\nb"); got != `a\nb` {
		t.Errorf("on one line: %q", got)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"0123456789", "0123456789"},
		{"0123456789x", "012345678… (11 B)"},
		{"ééééééééééé", "ééééééééé… (22 B)"},
		{"\x1b\x1b\x1b", "\\x1b\\x1b\\… (3 B)"},
		{strings.Repeat("x", 3<<20), "xxxxxxxxx… (3.0 MiB)"},
		{strings.Repeat("x", 2000), "xxxxxxxxx… (2.0 KiB)"},
	} {
		if got := Preview(c.in, 10); got != c.want {
			t.Errorf("preview(%.20q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m",
		59*time.Minute + 59*time.Second: "59m",
		time.Hour:                       "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 1000 * time.Hour: "41d",
	} {
		if got := Age(d); got != want {
			t.Errorf("age(%v) = %s, want %s", d, got, want)
		}
	}
	if Since(time.Time{}) != "-" || Moment(time.Time{}) != "" || cmp.Or("", "-") != "-" {
		t.Error("nothing is not shown as nothing")
	}
	if got := Moment(time.Now().Add(90 * time.Minute)); !strings.Contains(got, "in 1h") {
		t.Errorf("a moment to come: %s", got)
	}
}

func TestFormatFlag(t *testing.T) {
	t.Parallel()
	var f Format
	for _, name := range []string{"table", "json", "yaml", "name"} {
		if err := f.Set(name); err != nil || f.String() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Set("toml"); err == nil || !strings.Contains(err.Error(), "table, json, yaml or name") {
		t.Errorf("toml: %v", err)
	}
}

func TestPlural(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Plural(1, "message"): "1 message",
		Plural(0, "message"): "0 messages",
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
