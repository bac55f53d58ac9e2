package base

import (
	"errors"
	"fmt"
	"io"
	"regexp"
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

// Exit statuses.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2 // arguments or settings
	ExitLate        = 3 // the drain did not finish in time
	ExitUnreachable = 4 // the queue or target is unreachable or denies access
	exitApp         = 5 // the app was never ready, or failed too often
	ExitNotFound    = 6 // for example a queue, function, message or running environment
	ExitConflict    = 7 // something is in use, such as a port, or in the wrong state
	ExitSignal      = 128
)

// ExitError is an error with an exit status and hints.
type ExitError struct {
	Code  int
	err   error
	Hints []string
}

// errReaderGone ends the command without a message, like SIGPIPE.
var errReaderGone = &ExitError{Code: ExitSignal + int(syscall.SIGPIPE),
	err: errors.New("output closed by its reader")}

// WithoutReaderGone removes errReaderGone, also from joined errors. It returns nil if no other error remains.
func WithoutReaderGone(err error) error {
	if err == errReaderGone {
		return nil
	}
	if !errors.Is(err, errReaderGone) {
		return err
	}
	joined := joinedErrors(err)
	if joined == nil {
		return err
	}
	var rest []error
	for _, one := range joined {
		rest = append(rest, WithoutReaderGone(one))
	}
	return errors.Join(rest...)
}

// joinedErrors returns nil if err is not the result of [errors.Join].
func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return nil // fmt.Errorf adds text
	}
	return joined.Unwrap()
}

// Fail returns an error with an exit status and hints.
func Fail(code int, err error, hints ...string) error {
	return &ExitError{Code: code, err: err, Hints: hints}
}

func (e *ExitError) Error() string { return e.err.Error() }

func (e *ExitError) Unwrap() error { return e.err }

// ExitCode returns the exit status for an error, or 0 for nil.
func ExitCode(err error) int {
	var coded *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &coded):
		return coded.Code
	case ProblemsOf(err) != nil:
		return ExitUsage
	case errors.Is(err, environment.ErrQueue) && errors.Is(err, queue.ErrNoQueue),
		errors.Is(err, environment.ErrTarget) && errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}):
		return ExitNotFound
	}

	for _, known := range []struct {
		err  error
		code int
	}{
		{environment.ErrSettings, ExitUsage}, {environment.ErrConflict, ExitConflict},
		{environment.ErrQueue, ExitUnreachable}, {environment.ErrTarget, ExitUnreachable},
		{environment.ErrAppFailed, exitApp}, {environment.ErrLate, ExitLate}, {environment.ErrCutShort, ExitLate},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}

	return ExitFailed
}

// ProblemsOf returns the problems of an error about settings, tasks or alarms, and nil for other errors.
func ProblemsOf(err error) []yamlfile.Problem {
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

// Notice is a problem with hints.
type Notice struct {
	Text  string   `json:"text"`
	Hints []string `json:"hints,omitempty"`
}

// NoticeOf converts a problem. Advice at the end of its text becomes a hint.
func NoticeOf(p yamlfile.Problem) (n Notice) {
	text, advice := cutAdvice(p.String())
	n.Text = text
	n.addHints(advice, p.Hint)
	return n
}

func (n *Notice) addHints(hints ...string) {
	for _, hint := range hints {
		if hint != "" {
			n.Hints = append(n.Hints, hint)
		}
	}
}

// NoticesOf returns the problems in an error, one per printed line.
func NoticesOf(err error) (all []Notice) {
	if err == nil {
		return nil
	}

	if joined := joinedErrors(err); joined != nil {
		for _, one := range joined {
			all = append(all, NoticesOf(one)...)
		}
		return all
	}

	if problems := ProblemsOf(err); problems != nil {
		for _, p := range problems {
			all = append(all, NoticeOf(p))
		}
		return all
	}

	var apiError *api.Error
	if errors.As(err, &apiError) {
		for _, d := range apiError.Details {
			all = append(all, NoticeOf(yamlfile.Problem{Text: d.Text, Hint: d.Hint}))
		}
	}

	all = appendLines(all, err.Error())
	if len(all) > 0 {
		all[len(all)-1].addHints(HintsOf(err)...)
	}
	return all
}

func appendLines(all []Notice, text string) []Notice {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		hint, indented := strings.CutPrefix(line, "  ")
		if indented && len(all) > 0 {
			all[len(all)-1].addHints(hint)
			continue
		}
		all = append(all, NoticeOf(yamlfile.Problem{Text: line}))
	}
	return all
}

// PrintError prints each problem with its hints.
func PrintError(w io.Writer, err error) {
	for _, n := range NoticesOf(err) {
		PrintLine(w, n.Text, n.Hints...)
	}
}

var adviceInText = regexp.MustCompile(`(?:; (?:or )?(?:stop|choose|type|name|write|use|give|remove|set|start|run|add|` +
	`correct) |: (?:write one|name the folder|stop that|install it|use an?)[ ,])`)

func cutAdvice(text string) (wrong, advice string) {
	at := adviceInText.FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[0]], strings.TrimPrefix(text[at[0]+len("; "):], "or ")
}

// PrintLine prints one of tendril's own messages, followed by hints.
func PrintLine(w io.Writer, line string, hints ...string) {
	fmt.Fprintf(w, "tendril: %s\n", line)
	for _, hint := range hints {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
}

// HintsOf returns the hints of an error.
func HintsOf(err error) []string {
	var coded *ExitError
	if errors.As(err, &coded) {
		return coded.Hints
	}
	return nil
}

// Written returns the error of a write, or errReaderGone if the reader has closed the pipe.
func Written(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errReaderGone
	}
	return err
}

// Usagef returns an error about invalid arguments or settings.
func Usagef(format string, args ...any) *ExitError {
	return &ExitError{Code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// NotFoundf returns an error about something that does not exist.
func NotFoundf(format string, args ...any) *ExitError {
	return &ExitError{Code: ExitNotFound, err: fmt.Errorf(format, args...)}
}

// Conflictf returns an error about something that is in use or in the wrong state.
func Conflictf(format string, args ...any) *ExitError {
	return &ExitError{Code: ExitConflict, err: fmt.Errorf(format, args...)}
}

// Failedf returns an error with the status ExitFailed.
func Failedf(format string, args ...any) *ExitError {
	return &ExitError{Code: ExitFailed, err: fmt.Errorf(format, args...)}
}

// Interrupted returns an error with the exit status of SIGINT.
func Interrupted(text string, hints ...string) error {
	return Fail(ExitSignal+int(syscall.SIGINT), errors.New(text), hints...)
}

// Hint adds hints. Empty hints are not printed.
func (e *ExitError) Hint(hints ...string) *ExitError {
	e.Hints = append(e.Hints, hints...)
	return e
}
