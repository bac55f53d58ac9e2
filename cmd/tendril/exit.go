package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"tendril/api"
	"tendril/internal/cloud/alarms"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
	"tendril/internal/cron/periodic"
	"tendril/internal/environment"
	"tendril/queue"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1 // anything else that went wrong
	exitUsage       = 2 // wrong arguments or settings
	exitLate        = 3 // drained late: work was handed back
	exitUnreachable = 4 // the queue cannot be reached, or refuses access
	exitApp         = 5 // the app was never ready, or failed too often
	exitNotFound    = 6 // no such queue, function, message, or running environment
	exitConflict    = 7 // a port or the data directory is in use
	exitSignal      = 128
)

// exitError is an error with an exit status and, for the person, hints that say what to type instead.
type exitError struct {
	code  int
	err   error
	hints []string
}

// errReaderGone ends a command without a word, as SIGPIPE ends others.
var errReaderGone = &exitError{code: exitSignal + int(syscall.SIGPIPE),
	err: errors.New("the reader of the output is gone")}

// worthSaying is what an error has to say but for errReaderGone; nil for nothing.
func worthSaying(err error) error {
	var rest []error
	switch joined, ok := err.(interface{ Unwrap() []error }); {
	case err == errReaderGone:
		return nil
	case ok && errors.Is(err, errReaderGone):
		for _, one := range joined.Unwrap() {
			rest = append(rest, worthSaying(one))
		}
		return errors.Join(rest...)
	}
	return err
}

func fail(code int, err error, hints ...string) error {
	return &exitError{code: code, err: err, hints: hints}
}

// Error returns the cause's text, without the hints.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// exitCode finds the status for an error of any origin; 0 for nil.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case problemsOf(err) != nil:
		return exitUsage
	case errors.Is(err, environment.ErrQueue) && errors.Is(err, queue.ErrNoQueue),
		errors.Is(err, environment.ErrTarget) && errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}):
		return exitNotFound
	}
	for _, known := range []struct {
		err  error
		code int
	}{
		{environment.ErrSettings, exitUsage}, {environment.ErrConflict, exitConflict},
		{environment.ErrQueue, exitUnreachable}, {environment.ErrTarget, exitUnreachable},
		{environment.ErrAppFailed, exitApp}, {environment.ErrLate, exitLate}, {environment.ErrCutShort, exitLate},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return exitFailed
}

// problemsOf are the problems of settings, or of a file of periodic tasks or alarms; nil for any other error.
func problemsOf(err error) []yamlfile.Problem {
	var settings *config.Error
	var tasks *periodic.Error
	var alarm *alarms.Error
	switch {
	case errors.As(err, &settings):
		return settings.Problems
	case errors.As(err, &tasks):
		return tasks.Problems
	case errors.As(err, &alarm):
		return alarm.Problems
	}
	return nil
}

// notice is one thing that is wrong, and what to type instead.
type notice struct {
	Text  string   `json:"text"`
	Hints []string `json:"hints,omitempty"`
}

func noticeOf(p yamlfile.Problem) (n notice) {
	text, advice := cutAdvice(p.String())
	n.Text = text
	for _, hint := range []string{advice, p.Hint} {
		if hint != "" {
			n.Hints = append(n.Hints, hint)
		}
	}
	return n
}

// noticesOf are the things that are wrong, one for each line that is printed; none for nil.
func noticesOf(err error) (all []notice) {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && err.Error() == errors.Join(joined.Unwrap()...).Error() {
		for _, one := range joined.Unwrap() {
			all = append(all, noticesOf(one)...)
		}
		return all
	}
	if problems := problemsOf(err); problems != nil {
		for _, p := range problems {
			all = append(all, noticeOf(p))
		}
		return all
	}
	var said *api.Error
	if errors.As(err, &said) {
		for _, d := range said.Details {
			all = append(all, noticeOf(yamlfile.Problem{Text: d.Text, Hint: d.Hint}))
		}
	}
	var hints []string
	if coded := (*exitError)(nil); errors.As(err, &coded) {
		hints = coded.hints
	}
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSuffix(line, "\n")
		hint, indented := strings.CutPrefix(line, "  ") // as problems of files are written
		if indented && len(all) > 0 {
			all[len(all)-1].Hints = append(all[len(all)-1].Hints, hint)
			continue
		}
		all = append(all, noticeOf(yamlfile.Problem{Text: line}))
	}
	hints = slices.DeleteFunc(slices.Clone(hints), func(hint string) bool { return hint == "" })
	if len(all) > 0 {
		all[len(all)-1].Hints = append(all[len(all)-1].Hints, hints...)
	}
	return all
}

// printError writes one line for each thing that is wrong, and its hints below.
func printError(w io.Writer, err error) {
	for _, n := range noticesOf(err) {
		printLine(w, n.Text, n.Hints...)
	}
}

// adviceInText finds where the text of an error goes on with what to do, which packages write behind what is wrong.
var adviceInText = regexp.MustCompile(`(?:; (?:or )?(?:stop|choose|type|name|write|use|give|remove|set|start|run|add|` +
	`correct) |: (?:write one|name the folder|stop that|install it)[ ,])`)

// cutAdvice divides the text of an error into what is wrong and what to do, "" where it does not say.
func cutAdvice(text string) (wrong, advice string) {
	at := adviceInText.FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[0]], strings.TrimPrefix(text[at[0]+len("; "):], "or ")
}

func printLine(w io.Writer, line string, hints ...string) {
	fmt.Fprintf(w, "tendril: %s\n", line)
	for _, hint := range hints {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}
