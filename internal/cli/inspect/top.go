package inspect

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/host/terminal"
	"tendril/internal/observe/series"
)

// NewTop returns the command 'tendril top'.
func NewTop(c *base.CLI) *cobra.Command {
	interval := time.Second
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the environment in the terminal: health, queues, app, scheduled runs, problems",
		Long: `Shows the overview of the console and refreshes it: health with its causes, queues, processes of
the app, the next scheduled runs, and recent causes of failed deliveries.

Keys: q quits, p pauses or resumes every queue after a confirmation, the arrows scroll.`,
		Example: "  tendril top\n  tendril top --interval 5s\n  tendril top --once",
		Args:    cobra.NoArgs,
	}

	cmd.Flags().DurationVar(&interval, "interval", interval, "Time between refreshes (100ms-1h, default 1s).")
	cmd.Flags().BoolVar(&once, "once", false, "Print one frame and exit.")
	base.AddDataDir(cmd)
	cmd.RunE = base.Verb(func(ctx context.Context, _ []string) error {
		if err := base.CheckInterval(interval); err != nil {
			return err
		}
		client, err := c.Dial(cmd)
		if err != nil {
			return err
		}
		if once {
			return printTop(ctx, c, client)
		}
		in, out, can := c.CanDraw()
		if !can {
			return base.Usagef("this is not an interactive terminal").Hint("add --once to print one frame")
		}
		w := &topWatch{interval: interval, client: client, frame: topFrame{color: c.Color()},
			dial: func() (*api.Client, error) { return c.Dial(cmd) }}
		return w.run(ctx, in, out)
	})

	return cmd
}

func printTop(ctx context.Context, c *base.CLI, client *api.Client) error {
	look := observe(ctx, client)
	if look.err != nil {
		return look.err
	}

	out := &terminal.Writer{To: base.Unescaped(c.Out), Colors: c.Color()}
	f := topFrame{now: time.Now(), status: look.status, curves: look.curves, color: c.Color()}
	for _, l := range f.lines(frameWidth(c), 0) {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}

func frameWidth(c *base.CLI) int {
	if file, ok := base.Unescaped(c.Out).(*os.File); ok && c.Tty {
		width, _ := (&base.ScreenTerminal{Out: file}).Size()
		return width
	}
	if columns, err := strconv.Atoi(c.Env("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	return 80
}

type observation struct {
	client *api.Client
	status api.Status
	curves series.Curves
	err    error
}

const topTimeout = 10 * time.Second

func observe(ctx context.Context, client *api.Client) observation {
	ctx, cancel := context.WithTimeout(ctx, topTimeout)
	defer cancel()
	look := observation{client: client}
	if look.status, look.err = client.Status(ctx); look.err == nil {
		look.curves, _ = client.Series(ctx, "15m")
	}
	return look
}

type topWatch struct {
	interval time.Duration
	client   *api.Client
	dial     func() (*api.Client, error)
	frame    topFrame
	pending  topAct // the action that awaits confirmation, if any
	start    func(topAct)
}

type topAct func(context.Context, *api.Client) string

func (w *topWatch) run(ctx context.Context, in, out *os.File) error {
	look := observe(ctx, w.client)
	if look.err != nil {
		return look.err
	}
	w.update(look)

	showing, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan func())
	send := func(update func()) {
		select {
		case updates <- update:
		case <-showing.Done():
		}
	}
	w.start = func(act topAct) {
		client := w.client
		go func() {
			result := act(showing, client)
			send(func() { w.frame.footer = result })
		}()
	}
	go w.sendObservations(showing, send)
	err := base.ShowScreen(ctx, in, out, w, updates, func(update func()) { update() })
	return cmp.Or(err, ctx.Err())
}

func (w *topWatch) Lines(width, height int) []string {
	w.frame.now = time.Now()
	return w.frame.lines(width, height)
}

func (w *topWatch) Press(key string, height int) (quit bool) {
	act, quit := w.handleKey(key, height)
	if act != nil {
		w.frame.footer = "…"
		w.start(act)
	}
	return quit
}

// sendObservations reconnects if the environment does not answer, because it may have restarted.
func (w *topWatch) sendObservations(ctx context.Context, send func(update func())) {
	client := w.client
	defer func() { client.Close() }()
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		look := observe(ctx, client)
		if look.err != nil {
			if other, err := w.dial(); err == nil {
				client.Close()
				client = other
				look = observe(ctx, client)
			}
		}
		send(func() { w.update(look) })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *topWatch) update(look observation) {
	w.client = look.client
	if look.err != nil {
		w.frame.lost = "No response, retrying: " + look.err.Error()
		return
	}
	w.frame.lost = ""
	w.frame.status = look.status
	w.frame.curves = look.curves
}

func (w *topWatch) handleKey(key string, height int) (act topAct, quit bool) {
	w.frame.footer = ""
	if pending := w.pending; pending != nil {
		w.pending = nil
		if key == "y" || key == "Y" {
			return pending, false
		}
		return nil, key == base.KeyInterrupt
	}

	switch key {
	case "q", "Q", base.KeyInterrupt:
		return nil, true
	case "p":
		w.askPauseOrResume()
	default:
		w.frame.scroll = base.Scrolled(w.frame.scroll, key, max(height-topFixedLines, 1))
	}

	return nil, false
}

const topFixedLines = 5 // head, footer, and one of overlap between pages

func (w *topWatch) askPauseOrResume() {
	switch {
	case len(w.frame.status.Workers) == 0:
		w.frame.footer = "This process does not receive from queues."
	case w.frame.paused() > 0:
		w.frame.footer = "Resume all queues? y/n"
		w.pending = changesAll((*api.Client).Resume, "All queues resumed.")
	default:
		w.frame.footer = "Pause all queues? Messages in flight will finish. y/n"
		w.pending = changesAll((*api.Client).Pause, "All queues paused.")
	}
}

func changesAll(change func(*api.Client, context.Context, string, api.Reason) (api.Paused, error),
	success string) topAct {
	return func(ctx context.Context, c *api.Client) string {
		ctx, cancel := context.WithTimeout(ctx, topTimeout)
		defer cancel()
		if _, err := change(c, ctx, "", api.Reason{Reason: "tendril top"}); err != nil {
			return "Failed: " + err.Error()
		}
		return success
	}
}
