package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress returns a bar that counts to total on a person's terminal, or a
// counter when total is less than 0. Where nobody watches, or shown is false,
// it prints nothing.
func (c *cli) progress(total int, what string, shown bool) *progressbar.ProgressBar {
	w := behind(c.err) // it moves the cursor
	if f, ok := w.(*os.File); !shown || !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(w != io.Discard),
	)
}
