package base

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/pseudoterminal"
)

// Output is replaced in place, errors leave the last output on the screen, and the terminal is restored.
func TestWatchOnATerminal(t *testing.T) {
	p := pseudoterminal.Open(t)
	before := p.Modes()
	n, next := 0, make(chan struct{}) // each refresh waits until the test has seen the previous frame
	c := &CLI{In: p.File, Out: p.File, Err: p.File, Tty: true, TtyIn: true}
	w := &watch{cli: c, format: AsTable, interval: 100 * time.Millisecond, runOnce: func() error {
		if n++; n > 1 {
			<-next
		}
		if n == 3 {
			return fmt.Errorf("look %d failed", n)
		}
		_, err := fmt.Fprintf(c.Out, "block %d\n\x1b[2J\n", n)
		return err
	}}
	ended := make(chan error, 1)
	go func() { ended <- w.draw(t.Context(), p.File, p.File) }()
	for _, output := range []string{"block 1", "block 2\r\n\x1b[2K\\x1b[2J", "No response, retrying: look 3 failed"} {
		p.Await(output)
		select {
		case next <- struct{}{}:
		case err := <-ended:
			t.Fatalf("it ended early: %v", err)
		}
	}
	p.Await("block 4")
	close(next)
	p.Press("\x03")
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(pseudoterminal.Patience):
		t.Fatal("it did not end")
	}
	if after := p.Modes(); after != before {
		t.Errorf("the modes are %+v, were %+v", after, before)
	}
	p.Await(LeaveScreen)
}

func TestWatchFrame(t *testing.T) {
	t.Parallel()
	lines := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		height, scroll int
		want           []string
	}{
		{6, 0, []string{"a", "b", "c", "d", ""}}, {3, 0, []string{"a", "b"}}, {3, 1, []string{"b", "c"}},
		{3, 99, []string{"c", "d"}}, {1, 0, []string{}},
	} {
		f := watchFrame{lines: lines, scroll: c.scroll}
		got := f.Lines(80, c.height)
		if footer := got[len(got)-1]; strings.Contains(footer, "more ↓") != (c.height < 5 && c.scroll < 2) {
			t.Errorf("%+v: the last line is %q", c, footer)
		}
		if !slices.Equal(got[:len(got)-1], c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	f := watchFrame{lines: lines, lost: "\x1b[31mred"}
	if got := f.Lines(40, 3); !strings.HasPrefix(got[2], "0001-01-01 00:00:00Z   No response") ||
		strings.Contains(got[2], "\x1b") {
		t.Errorf("the last line is %q", got[2])
	}
}

func TestWatchStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	c := &CLI{Out: &out, Err: &out}
	w := &watch{cli: c, format: AsTable, interval: time.Hour, runOnce: func() error {
		fmt.Fprintln(c.Out, "block")
		cancel()
		return nil
	}}
	if err := w.print(ctx); err != nil || !strings.HasSuffix(out.String(), "Z\nblock\n") {
		t.Errorf("%v\n%q", err, out.String())
	}
}
