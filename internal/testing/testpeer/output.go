package testpeer

import (
	"strings"
	"sync"
)

const mostLines = 40

// Output collects the output of a process.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends p to the output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// All returns the whole output.
func (o *Output) All() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// String returns the last forty lines.
func (o *Output) String() string { return LastLines(o.All()) }

// LastLines returns the last forty lines of a text.
func LastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-mostLines):], "\n")
}
