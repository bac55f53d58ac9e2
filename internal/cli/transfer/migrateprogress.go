package transfer

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"tendril/internal/cli/base"
	"tendril/internal/migrate"
)

// migrateWatch shows a bar on a terminal, otherwise occasional lines.
type migrateWatch struct {
	c    *base.CLI
	name string

	mu       sync.Mutex
	bar      *progressbar.ProgressBar
	nextLine time.Time
	lastWait string
}

const lineInterval = 10 * time.Second

func newMigrateWatch(c *base.CLI, name string, total int) *migrateWatch {
	return &migrateWatch{c: c, name: name, bar: c.Progress(max(total, 1), name, true),
		nextLine: time.Now().Add(lineInterval)}
}

func (w *migrateWatch) progress(sent, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bar.GetMax() < total {
		w.bar.ChangeMax(total)
	}
	_ = w.bar.Set(min(sent, w.bar.GetMax()))
	isHidden := w.bar.String() == ""
	if now := time.Now(); isHidden && now.After(w.nextLine) {
		w.nextLine = now.Add(lineInterval)
		w.c.PrintErrf("%s: %d of %d messages sent\n", w.name, sent, total)
	}
}

func (w *migrateWatch) waiting(left migrate.Count) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%s: waiting for messages that are in flight (%d) or delayed (%d)", w.name, left.InFlight,
		left.Delayed)
	if line != w.lastWait && left.InFlight+left.Delayed > 0 {
		w.lastWait = line
		w.c.PrintErrln(line)
	}
}

func (w *migrateWatch) end() { _ = w.bar.Finish() }
