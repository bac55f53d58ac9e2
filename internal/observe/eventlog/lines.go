package eventlog

import (
	"log/slog"
	"strings"
	"time"
)

// What [Lines] holds at most.
const (
	maxLines     = 4000
	maxLineBytes = 2 << 20 // the texts together
	maxText      = 16 << 10
)

// Own is the name of tendril itself among the processes of a [Line].
const Own = "tendril"

// Line is one line that tendril or a process of the app wrote.
type Line struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	// Process is [Own], or the name of a process of the app, such as "web-2". Stream is its "stdout" or "stderr"; "" of
	// tendril.
	Process string     `json:"process"`
	Stream  string     `json:"stream,omitempty"`
	Level   slog.Level `json:"level"` // Info for what processes wrote
	Text    string     `json:"text"`  // without control characters
}

func (l Line) id() int64 { return l.ID }
func (l Line) size() int { return len(l.Text) }

// LineQuery selects lines. The zero value selects all of level Info and above, oldest first.
type LineQuery struct {
	Range
	Process string     // "" for all; "web" selects its replicas "web-2" and "web-3" too
	Level   slog.Level // the lowest level
	Match   string     // is contained in the text, in any case; "" for no filter
}

// Matches reports whether a line is selected, whatever its id.
func (q *LineQuery) Matches(l *Line) bool {
	return (q.Process == "" || IsOf(l.Process, q.Process)) && l.Level >= q.Level &&
		(q.Match == "" || strings.Contains(strings.ToLower(l.Text), strings.ToLower(q.Match)))
}

// IsOf reports whether a process is the one of that name, or a replica of it, such as "web-2" of "web".
func IsOf(process, name string) bool {
	rest, found := strings.CutPrefix(process, name)
	return found && (rest == "" || len(rest) > 1 && (rest[0] == '-' || rest[0] == '.') &&
		strings.Trim(rest[1:], "0123456789") == "")
}

// Lines holds the last lines in memory. It is safe for concurrent use.
type Lines struct{ tail tail[Line] }

// NewLines returns an empty memory of lines. Their ids begin with the time in milliseconds, so that they grow over
// restarts, and nobody who follows misses a line.
func NewLines() *Lines {
	return &Lines{tail[Line]{most: maxLines, maxBytes: maxLineBytes, last: time.Now().UnixMilli()}}
}

// Add appends a line and gives it its id. A text that is too long is cut.
func (l *Lines) Add(line Line) {
	if len(line.Text) > maxText {
		line.Text = strings.ToValidUTF8(line.Text[:maxText], "") + "..."
	}
	l.tail.add(func(id int64) Line { line.ID = id; return line })
}

// Read returns the lines that q selects.
func (l *Lines) Read(q LineQuery) []Line {
	entries, _ := l.tail.held()
	s := selector[Line]{Range: q.Range, matches: q.Matches}
	for _, e := range entries {
		if !s.take(e) {
			break
		}
	}
	return s.result()
}

// Changed returns a channel that is closed when the next line comes.
func (l *Lines) Changed() <-chan struct{} { return l.tail.wait() }
