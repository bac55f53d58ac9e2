package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"

	"tendril/alarms"
	"tendril/config"
	"tendril/console"
	"tendril/environment"
	"tendril/periodic"
	"tendril/queue"
	"tendril/yamlfile"
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

// printError writes one line for each thing that is wrong, and its hint below.
func printError(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && err.Error() == errors.Join(joined.Unwrap()...).Error() {
		for _, one := range joined.Unwrap() {
			printError(w, one)
		}
		return
	}
	if problems := problemsOf(err); problems != nil {
		for _, p := range problems {
			printLine(w, p.String(), p.Hint)
		}
		return
	}
	var said *console.Error
	if errors.As(err, &said) {
		for _, d := range said.Details {
			printLine(w, d.Text, d.Hint)
		}
	}
	var hints []string
	if coded := (*exitError)(nil); errors.As(err, &coded) {
		hints = coded.hints
	}
	lines := strings.Split(strings.TrimSuffix(err.Error(), "\n"), "\n")
	for i, line := range lines {
		switch hint, indented := strings.CutPrefix(line, "  "); {
		case indented: // as problems of files are written
			printHints(w, hint)
		case i == len(lines)-1:
			printLine(w, line, hints...)
			return
		default:
			printLine(w, line)
		}
	}
	printHints(w, hints...)
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
	line, advice := cutAdvice(line)
	fmt.Fprintf(w, "tendril: %s\n", line)
	printHints(w, advice)
	printHints(w, hints...)
}

func printHints(w io.Writer, hints ...string) {
	for _, hint := range hints {
		if hint != "" {
			fmt.Fprintf(w, "hint: %s\n", hint)
		}
	}
}
