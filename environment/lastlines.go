package environment

import (
	"slices"
	"strings"
	"sync"
)

const (
	// maxLastLines is how many of the last lines of what failed are shown.
	maxLastLines = 20
	// maxLastLine is where each of them is cut, in bytes.
	maxLastLine = 1000
)

// lastLines keeps the last lines that a program wrote. The zero value is empty.
type lastLines struct {
	mu   sync.Mutex
	kept []string
}

// add takes one line.
func (l *lastLines) add(line string) {
	if len(line) > maxLastLine {
		line = strings.ToValidUTF8(line[:maxLastLine], "") + " ..."
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept = append(l.kept, strings.Clone(line)); len(l.kept) > maxLastLines {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
}

// lines returns them, the oldest first.
func (l *lastLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
