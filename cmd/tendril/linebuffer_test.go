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
		b.Write([]byte("one\n"))
		b.Write([]byte("two\n"))
		if out.Len() != 0 {
			t.Errorf("written at once: %q", out.String())
		}
		time.Sleep(lineBufferDelay)
		synctest.Wait()
		if got := out.String(); got != "one\ntwo\n" {
			t.Errorf("after the delay: %q", got)
		}
		b.Write([]byte(strings.Repeat("x", lineBufferSize)))
		if out.Len() != 8+lineBufferSize {
			t.Errorf("a full buffer waits: %d bytes written", out.Len())
		}
		b.Write([]byte("three\n"))
		b.Close()
		b.Write([]byte("four\n"))
		if !strings.HasSuffix(out.String(), "three\nfour\n") {
			t.Error("lines around Close are missing")
		}
	})
}
