package eventlog

import (
	"log/slog"
	"strings"
	"time"
)

const (
	maxLines     = 4000
	maxLineBytes = 2 << 20
	maxText      = 16 << 10
)

// Own is the Process of tendril's own lines.
const Own = "tendril"

// Line is a line of output from tendril or the app.
type Line struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	// Process is [Own], or an app process such as "web-2" with the Stream "stdout" or "stderr".
	Process  string     `json:"process"`
	Stream   string     `json:"stream,omitempty"`
	Level    slog.Level `json:"level"`
	Text     string     `json:"text"` // without control characters
	Instance string     `json:"instance,omitempty"`
}

func (l Line) id() int64 { return l.ID }
func (l Line) size() int { return len(l.Text) }

// LineQuery selects lines. The zero value selects level Info and above, oldest first.
type LineQuery struct {
	Range
	Process string // "web" includes its replicas "web-2" and "web-3"
	Level   slog.Level
	Match   string // substring, ignoring case
	Until   time.Time
}

// Matches reports whether q selects a line, ignoring its Range.
func (q *LineQuery) Matches(l *Line) bool {
	return (q.Process == "" || IsOf(l.Process, q.Process)) && l.Level >= q.Level && (q.Until.IsZero() || l.At.Before(q.Until)) &&
		(q.Match == "" || strings.Contains(strings.ToLower(l.Text), strings.ToLower(q.Match)))
}

// IsOf reports whether process is name or one of its replicas.
func IsOf(process, name string) bool {
	rest, found := strings.CutPrefix(process, name)
	return found && (rest == "" || len(rest) > 1 && (rest[0] == '-' || rest[0] == '.') &&
		strings.Trim(rest[1:], "0123456789") == "")
}

// Lines holds the latest log lines in memory. It is safe for concurrent use.
type Lines struct{ tail tail[Line] }

// NewLines returns empty Lines. IDs start at the Unix time in milliseconds, so that they increase across restarts.
func NewLines() *Lines {
	return &Lines{tail[Line]{maxEntries: maxLines, maxBytes: maxLineBytes, last: time.Now().UnixMilli()}}
}

// Add appends a line with the next ID. Long text is truncated.
func (l *Lines) Add(line Line) {
	if len(line.Text) > maxText {
		line.Text = strings.ToValidUTF8(line.Text[:maxText], "") + "..."
	}
	l.tail.add(func(id int64) Line { line.ID = id; return line })
}

// Read returns the lines selected by q.
func (l *Lines) Read(q LineQuery) []Line {
	entries, _ := l.tail.snapshot()
	s := selector[Line]{Range: q.Range, matches: q.Matches}
	s.offerAll(entries)
	return s.result()
}

// LastID returns the newest line's ID or, without lines, a number below the first ID.
func (l *Lines) LastID() int64 { return l.tail.lastID() }

// Changed returns a channel that is closed when the next line is added.
func (l *Lines) Changed() <-chan struct{} { return l.tail.wait() }
