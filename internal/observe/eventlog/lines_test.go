package eventlog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	l := NewLines()
	l.tail.last = 0
	for i := range 2 * maxLines {
		l.Add(Line{Text: fmt.Sprint(i)})
	}
	got := l.Read(LineQuery{})
	if len(got) != maxLines || got[0].Text != fmt.Sprint(maxLines) || got[0].ID != maxLines+1 {
		t.Errorf("%d lines, the first is %+v", len(got), got[0])
	}
	for range maxLines {
		l.Add(Line{Text: strings.Repeat("x", 2*maxText)})
	}
	total := 0
	for _, line := range l.Read(LineQuery{}) {
		total += len(line.Text)
	}
	if total > maxLineBytes || total < maxLineBytes/2 {
		t.Errorf("%d bytes are held", total)
	}
}

func TestLinesAreSelected(t *testing.T) {
	t.Parallel()
	l := NewLines()
	l.tail.last = 0
	for _, line := range []Line{
		{Process: Own, Level: slog.LevelInfo, Text: "receiving started"},
		{Process: "web.1", Stream: "stdout", Text: "GET /Orders"},
		{Process: "web.2", Stream: "stderr", Text: "stack trace"},
		{Process: "webhook", Text: "ready"},
		{Process: Own, Level: slog.LevelWarn, Text: "breaker open"},
		{Process: Own, Level: slog.LevelDebug, Text: "stopped"},
	} {
		l.Add(line)
	}
	for name, c := range map[string]struct {
		q    LineQuery
		want string
	}{
		"all but debug": {LineQuery{}, "1 2 3 4 5"},
		"debug":         {LineQuery{Level: slog.LevelDebug}, "1 2 3 4 5 6"},
		"warnings":      {LineQuery{Level: slog.LevelWarn}, "5"},
		"one process":   {LineQuery{Process: "web.2"}, "3"},
		"replicas":      {LineQuery{Process: "web"}, "2 3"},
		"a text":        {LineQuery{Match: "orders"}, "2"},
		"the newest":    {LineQuery{Range: Range{Newest: true, Limit: 2}}, "5 4"},
		"after":         {LineQuery{Range: Range{After: 3, Limit: 1}}, "4"},
	} {
		var got []string
		for _, line := range l.Read(c.q) {
			got = append(got, fmt.Sprint(line.ID))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
