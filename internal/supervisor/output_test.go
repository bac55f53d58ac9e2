package supervisor

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type sinkLog struct {
	mu    sync.Mutex
	lines []string
	stall chan struct{}
}

func (s *sinkLog) take(stream string, line []byte) {
	if s.stall != nil {
		<-s.stall
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, stream+": "+string(line))
}

func testOutput(t *testing.T, sink *sinkLog, o Options) (*output, *[]LinesDropped) {
	t.Helper()
	reports := new([]LinesDropped)
	o.Events.LinesDropped = func(e LinesDropped) { *reports = append(*reports, e) }
	o = o.withDefaults()
	return newOutput("web", sink.take, &o), reports
}

func TestOutputSplitsLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		writes []string
		want   []string
	}{
		{"one line", []string{"hello\n"}, []string{"hello"}},
		{"several in one write", []string{"a\nb\n\nc\n"}, []string{"a", "b", "", "c"}},
		{"one in several writes", []string{"he", "llo", "\nwor", "ld\n"}, []string{"hello", "world"}},
		{"no end of line at the end", []string{"a\nlast"}, []string{"a", "last"}},
		{"end of line of another system", []string{"a\r\nb\r", "\n"}, []string{"a", "b"}},
		{"control characters", []string{"\x1b[2Jgone\n"}, []string{`\x1b[2Jgone`}},
		{"exactly the longest", []string{"12345678\n"}, []string{"12345678"}},
		{"too long", []string{"123456789\nok\n"}, []string{"12345678 ... (1 bytes cut)", "ok"}},
		{"much too long", []string{strings.Repeat("x", 20), strings.Repeat("y", 20), "\nok"},
			[]string{"xxxxxxxx ... (32 bytes cut)", "ok"}},
		{"nothing", []string{""}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sink sinkLog
			out, _ := testOutput(t, &sink, Options{MaxLine: 8})
			w := out.stream("stdout")
			for _, text := range tt.writes {
				if n, err := io.WriteString(w, text); n != len(text) || err != nil {
					t.Errorf("write = %d, %v", n, err)
				}
			}
			w.Close()
			out.close()
			<-out.drained
			var want []string
			for _, line := range tt.want {
				want = append(want, "stdout: "+line)
			}
			if diff := cmp.Diff(want, sink.lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputDoesNotDependOnTheWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\n\r")), 0, 60, -1).Draw(t, "text")
		lines := func(cuts bool) []string {
			var got []string
			w := &lineWriter{max: 5, emit: func(l outputLine) { got = append(got, fmt.Sprintf("%s+%d", l.text, l.cut)) }}
			for rest := text; rest != ""; {
				n := len(rest)
				if cuts {
					n = rapid.IntRange(1, len(rest)).Draw(t, "write")
				}
				w.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			w.Close()
			return got
		}
		if diff := cmp.Diff(lines(false), lines(true)); diff != "" {
			t.Fatalf("lines of %q in one write and in many:\n%s", text, diff)
		}
	})
}

func TestOutputThinsAFlood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var sink sinkLog
		out, reports := testOutput(t, &sink, Options{LinesPerSecond: 10})
		w := out.stream("stderr")
		for i := range 150 {
			fmt.Fprintf(w, "burst %d\n", i)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		fmt.Fprintln(w, "calm")
		out.close()
		if len(sink.lines) != 51 || sink.lines[49] != "stderr: burst 49" || sink.lines[50] != "stderr: calm" {
			t.Errorf("%d lines, want the burst of 50 and the calm one", len(sink.lines))
		}
		want := []LinesDropped{{"web", "stderr", 1, 1, true}, {"web", "stderr", 99, 100, true}}
		if diff := cmp.Diff(want, *reports); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestOutputOutlivesAStalledSink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := sinkLog{stall: make(chan struct{})}
		out, reports := testOutput(t, &sink, Options{})
		w := out.stream("stdout")
		began := time.Now()
		const lines = outputSlots + 1 + 100
		for i := range lines {
			fmt.Fprintf(w, "line %d\n", i)
			synctest.Wait()
		}
		if took := time.Since(began); took != stallPatience {
			t.Errorf("the writes took %s, want one wait of %s", took, stallPatience)
		}
		close(sink.stall)
		synctest.Wait()
		fmt.Fprintln(w, "after")
		out.close()
		if got := len(sink.lines); got != outputSlots+2 || sink.lines[got-1] != "stdout: after" {
			t.Errorf("%d lines arrived, want what was buffered and the one after", got)
		}
		if last := (*reports)[len(*reports)-1]; last.Total != 100 || last.TooFast {
			t.Errorf("reported %d lost lines, want 100", last.Total)
		}
	})
}

func TestLongLinesFillTheBufferEarlier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := sinkLog{stall: make(chan struct{})}
		out, reports := testOutput(t, &sink, Options{MaxLine: 2 * slotBytes * outputSlots})
		w := out.stream("stdout")
		fmt.Fprintln(w, "the sink has this line")
		synctest.Wait()
		began := time.Now()
		const fit = 16
		for range 100 {
			fmt.Fprintln(w, strings.Repeat("x", outputSlots/fit*slotBytes-1))
			synctest.Wait()
		}
		if took := time.Since(began); took != stallPatience {
			t.Errorf("the writes took %s, want one wait of %s", took, stallPatience)
		}
		close(sink.stall)
		synctest.Wait()
		fmt.Fprintln(w, strings.Repeat("x", 2*slotBytes*outputSlots))
		out.close()
		if got := len(sink.lines); got != 1+fit+1 || (*reports)[len(*reports)-1].Total != 100-fit {
			t.Errorf("%d lines arrived, reports %+v; want %d long ones kept, and the longest one later", got, *reports, fit)
		}
	})
}

func TestShortLinesThatFitDoNotEndAStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := sinkLog{stall: make(chan struct{})}
		out, _ := testOutput(t, &sink, Options{MaxLine: slotBytes * outputSlots})
		w := out.stream("stdout")
		fmt.Fprintln(w, "the sink has this line")
		synctest.Wait()
		began := time.Now()
		for range 20 {
			fmt.Fprintln(w, strings.Repeat("x", outputSlots/2*slotBytes))
			fmt.Fprintln(w, "short")
		}
		if took := time.Since(began); took != stallPatience {
			t.Errorf("the writes took %s, want one wait of %s", took, stallPatience)
		}
		close(sink.stall)
		out.close()
	})
}

func TestOutputCloseDoesNotWaitForever(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := sinkLog{stall: make(chan struct{})}
		out, _ := testOutput(t, &sink, Options{})
		fmt.Fprintln(out.stream("stdout"), "stuck")
		began := time.Now()
		out.close()
		if took := time.Since(began); took != sinkPatience {
			t.Errorf("close took %s, want %s", took, sinkPatience)
		}
		close(sink.stall)
	})
}
