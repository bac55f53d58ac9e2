package base

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tendril/internal/host/terminal"
)

type watch struct {
	cli      *CLI
	format   Format
	interval time.Duration
	runOnce  func() error
}

// AddWatch adds the flags --watch and --interval to a command that prints one value, and wraps its RunE.
func AddWatch(c *CLI, cmd *cobra.Command) {
	once := cmd.RunE
	watched := cmd.Flags().BoolP("watch", "w", false, "Refresh the output until interrupted.")
	interval := cmd.Flags().Duration("interval", time.Second, "Time between refreshes with --watch (100ms-1h).")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*watched {
			return once(cmd, args)
		}
		if err := CheckInterval(*interval); err != nil {
			return err
		}
		w := &watch{c, formatOf(cmd), *interval, func() error { return once(cmd, args) }}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		if in, out, can := c.CanDraw(); can {
			return w.draw(ctx, in, out)
		}
		return w.print(ctx)
	}
}

// CheckInterval validates --interval.
func CheckInterval(interval time.Duration) error {
	if interval < 100*time.Millisecond || interval > time.Hour {
		return Usagef("--interval %s is out of range", interval).Hint("use 100ms to 1h")
	}
	return nil
}

func (w *watch) print(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		switch w.format {
		case AsTable:
			w.cli.Println(Stamp(time.Now()))
		case AsYAML:
			fmt.Fprintln(w.cli.DataOut(), "---")
		}

		err := w.runOnce()
		w.cli.End()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}

		if w.format == AsTable {
			if _, err := fmt.Fprintln(w.cli.Out); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *watch) captureLines() ([]string, error) {
	out, messages := w.cli.Out, w.cli.Err
	defer func() { w.cli.Out, w.cli.Err = out, messages }()

	var text bytes.Buffer
	w.cli.Out = &terminal.Writer{To: &text, Colors: w.cli.Color()}
	w.cli.Err = w.cli.Out
	err := w.runOnce()
	w.cli.End()
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n"), err
}

func (w *watch) draw(ctx context.Context, in, out *os.File) error {
	lines, err := w.captureLines()
	if err != nil {
		return err
	}
	frame := &watchFrame{lines: lines, at: time.Now()}
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	return ShowScreen(ctx, in, out, frame, tick.C, func(time.Time) { w.refresh(frame) })
}

// refresh keeps the last output after an error.
func (w *watch) refresh(frame *watchFrame) {
	lines, err := w.captureLines()
	if err != nil {
		frame.lost = err.Error()
		return
	}
	*frame = watchFrame{lines: lines, at: time.Now(), scroll: frame.scroll}
}

type watchFrame struct {
	lines  []string
	at     time.Time
	lost   string // the error since then, or ""
	scroll int
}

func (f *watchFrame) Lines(width, height int) []string {
	shown, below := Window(f.lines, height-1, &f.scroll)
	footer := Stamp(f.at) + "   q quit   ↑ ↓ scroll"
	if f.lost != "" {
		footer = Stamp(f.at) + "   No response, retrying: " + f.lost
	}
	if below > 0 {
		footer += fmt.Sprintf("   %d more ↓", below)
	}
	return append(shown, CutWidth(Plain(footer), width))
}

func (f *watchFrame) Press(key string, height int) (quit bool) {
	f.scroll = Scrolled(f.scroll, key, max(height-2, 1))
	return key == "q" || key == "Q" || key == KeyInterrupt
}

// Window returns the visible lines, padded to room, and the number of lines below. It limits scroll.
func Window[L any](lines []L, room int, scroll *int) (visible []L, below int) {
	room = max(room, 0)
	*scroll = max(min(*scroll, len(lines)-room), 0)
	visible = slices.Clone(lines[*scroll:min(*scroll+room, len(lines))])
	visible = append(visible, make([]L, room-len(visible))...)
	return visible, len(lines) - *scroll - room
}

// Scrolled returns the scroll position after a key; see [Window].
func Scrolled(scroll int, key string, page int) int {
	switch key {
	case KeyUp, "k":
		scroll--
	case KeyDown, "j":
		scroll++
	case KeyPageUp:
		scroll -= page
	case KeyPageDown, " ":
		scroll += page
	case KeyHome:
		scroll = 0
	case KeyEnd:
		scroll = 1 << 30
	}
	return max(scroll, 0)
}
