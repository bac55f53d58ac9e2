package base

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type sink struct {
	mu  sync.Mutex
	out strings.Builder
}

func (s *sink) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(lines)
}

func (s *sink) String() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func TestLineBufferGathersAndNeverKeepsALineLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out sink
		b := newLineBuffer(&out, lineBufferDelay, reportPlain)
		b.Write([]byte("one\n"))
		b.Write([]byte("two\n"))
		if got := out.String(); got != "" {
			t.Errorf("written at once: %q", got)
		}
		time.Sleep(lineBufferDelay)
		if got := out.String(); got != "one\ntwo\n" {
			t.Errorf("after the delay: %q", got)
		}
		b.Write([]byte(strings.Repeat("x", lineBufferBatch-1) + "\n"))
		if got := len(out.String()); got != 8+lineBufferBatch {
			t.Errorf("a full buffer waits: %d bytes written", got)
		}
		b.Write([]byte("three\n"))
		<-b.Close()
		b.Write([]byte("four\n"))
		if !strings.HasSuffix(out.String(), "three\nfour\n") {
			t.Error("lines around Close are missing")
		}
	})
}

func TestLineBufferWithoutDelayWritesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out sink
		b := newLineBuffer(&out, 0, reportPlain)
		for _, line := range []string{"one\n", "two\n"} {
			b.Write([]byte(line))
			if got := out.String(); !strings.HasSuffix(got, line) {
				t.Errorf("%q waits; written: %q", line, got)
			}
		}
	})
}

type stalled struct {
	sink
	reading chan struct{}
	writes  atomic.Int32
}

func (s *stalled) Write(lines []byte) (int, error) {
	<-s.reading
	s.writes.Add(1)
	return s.sink.Write(lines)
}

func TestLineBufferDoesNotWaitForAReader(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, lineBufferDelay} {
		synctest.Test(t, func(t *testing.T) {
			s := &stalled{reading: make(chan struct{})}
			b := newLineBuffer(s, delay, reportPlain)
			began := time.Now()
			line := func(i int) string { return fmt.Sprintf("%07d %s\n", i, strings.Repeat("x", 91)) }
			const sent = 2 * lineBufferLimit / 100
			for i := range sent {
				b.Write([]byte(line(i)))
			}
			if time.Since(began) != 0 || s.String() != "" {
				t.Fatal("it waited, or the reader reads")
			}
			close(s.reading)
			const kept = lineBufferLimit / 100
			lines := strings.SplitAfter(s.String(), "\n")
			for i := range kept {
				if lines[i] != line(i) {
					t.Fatalf("line %d is %q", i, lines[i])
				}
			}
			if want := fmt.Sprintf("dropped, output not read  lines=%d\n", sent-kept); len(lines) != kept+2 ||
				!strings.Contains(lines[kept], want) {
				t.Errorf("after those kept comes %q and %d more, want %q", lines[kept], len(lines)-kept-2, want)
			}
			if n, most := int(s.writes.Load()), lineBufferLimit/lineBufferBatch+4; n > most {
				t.Errorf("%d writes, want at most %d", n, most)
			}
			b.Write([]byte("again\n"))
			<-b.Close()
			if got := s.String(); !strings.HasSuffix(got, "\nagain\n") || strings.Count(got, "lines dropped") != 1 {
				t.Errorf("afterwards: %.200q", got[kept*100:])
			}
		})
	}
}

func TestLineBufferKeepsTheOrderOfManyWriters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newLineBuffer(&out, lineBufferDelay, reportPlain)
	const writers, each = 8, 2000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				fmt.Fprintf(b, "%d %d\n", w, i)
			}
		})
	}
	all.Wait()
	<-b.Close()
	next := map[int]int{}
	for line := range strings.Lines(out.String()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("%q, want line %d of this writer: %v", line, next[w], err)
		}
		next[w]++
	}
	for w := range writers {
		if next[w] != each {
			t.Errorf("%d lines of writer %d, want %d", next[w], w, each)
		}
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestEndsDoNotWaitForReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reading := make(chan struct{})
		never := func() io.Writer { return &stalled{reading: reading} }
		var reported sink
		for _, tt := range []struct {
			name     string
			out, err io.Writer
			want     time.Duration
		}{
			{"both read", new(bytes.Buffer), new(bytes.Buffer), 0},
			{"gone", gone{}, gone{}, 0},
			{"one does not read", never(), &reported, lineBufferPatience},
			{"none reads", never(), never(), lineBufferPatience},
		} {
			c := &CLI{buffers: []*lineBuffer{newLineBuffer(tt.out, lineBufferDelay, reportJSON),
				newLineBuffer(tt.err, 0, reportPlain)}}
			for _, b := range c.buffers {
				fmt.Fprintln(b, "the last line")
			}
			began := time.Now()
			c.CloseBuffers()
			if took := time.Since(began); took != tt.want {
				t.Errorf("%s: it took %v, want %v", tt.name, took, tt.want)
			}
			if out, ok := tt.out.(*bytes.Buffer); ok && out.String() != "the last line\n" {
				t.Errorf("%s: %q was written", tt.name, out)
			}
		}
		if reported.String() != "the last line\n" {
			t.Errorf("the reader beside one that does not read got %q", reported.String())
		}
		close(reading)
	})
}

type slow struct{ bytes.Buffer }

func (s *slow) Write(lines []byte) (int, error) {
	time.Sleep(lineBufferPatience / 10)
	return s.Buffer.Write(lines)
}

func TestTheLastLinesOfAThirdEnvironmentAreWritten(t *testing.T) {
	OutliveReader() // outside the bubble, because it starts a goroutine of the process
	for _, text := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out, err slow
			c := &CLI{Out: &out, Err: &err}
			for _, run := range []string{"first", "second", "third"} {
				c.Buffer(text)
				fmt.Fprintln(c.Out, run, "line")
				fmt.Fprintln(c.Err, run, "error")
				if run != "third" {
					time.Sleep(time.Second)
				}
			}
			c.CloseBuffers()
			if o, e := out.String(), err.String(); o != "first line\nsecond line\nthird line\n" ||
				e != "first error\nsecond error\nthird error\n" {
				t.Errorf("text %t: %q and %q were written", text, o, e)
			}
		})
	}
}

func TestLeftOutLinesAreReportedInTheFormatOfTheOthers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reportJSON(&out, 3)
	var line struct {
		Level, Msg, Component string
		Lines                 int
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "WARN" || line.Component != "output" ||
		line.Lines != 3 ||
		line.Msg != "log lines dropped, output not read" || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q: %v", &out, err)
	}
	out.Reset()
	reportPlain(&out, 1)
	if got := out.String(); !strings.HasSuffix(got, " ! log lines dropped, output not read  lines=1\n") {
		t.Errorf("%q", got)
	}
}

func TestSameFile(t *testing.T) {
	t.Parallel()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	dir := t.TempDir()
	one, again, other := open(filepath.Join(dir, "one")), open(filepath.Join(dir, "one")),
		open(filepath.Join(dir, "other"))
	if !sameFile(one, again) || sameFile(one, other) || sameFile(one, new(bytes.Buffer)) {
		t.Error("files are taken for one another")
	}
}
