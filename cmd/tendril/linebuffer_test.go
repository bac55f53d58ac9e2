package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLineBufferGathersAndNeverKeepsALineLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := newLineBuffer(&out)
		written := func() string { // the timer writes from a goroutine of its own
			b.mu.Lock()
			defer b.mu.Unlock()
			return out.String()
		}
		b.Write([]byte("one\n"))
		b.Write([]byte("two\n"))
		if got := written(); got != "" {
			t.Errorf("written at once: %q", got)
		}
		time.Sleep(lineBufferDelay)
		synctest.Wait()
		if got := written(); got != "one\ntwo\n" {
			t.Errorf("after the delay: %q", got)
		}
		b.Write([]byte(strings.Repeat("x", lineBufferSize)))
		if got := len(written()); got != 8+lineBufferSize {
			t.Errorf("a full buffer waits: %d bytes written", got)
		}
		b.Write([]byte("three\n"))
		b.Close()
		b.Write([]byte("four\n"))
		if !strings.HasSuffix(written(), "three\nfour\n") {
			t.Error("lines around Close are missing")
		}
	})
}
