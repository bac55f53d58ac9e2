package base

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"tendril/queue"
)

func TestHintForALargeMessage(t *testing.T) {
	t.Parallel()
	for message, hinted := range map[string]bool{
		"One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.": true,
		"Message (user) attribute name must be shorter than 256 Bytes":                         false,
	} {
		if hint := messageHint(queue.CodeInvalidParameterValue, message); hint != "" != hinted {
			t.Errorf("%s: hint %q", message, hint)
		}
	}
}

func TestHintNamesTheFileThatInitWrites(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"app.py": "a Procfile", "bootstrap": "a tendril.yaml", "readme": ""} {
		if hint := initHint(fstest.MapFS{file: {}}); !strings.Contains(hint, want) || (hint == "") != (want == "") {
			t.Errorf("%s: hint %q", file, hint)
		}
	}
}

func TestReaderGoneIsRemovedFromErrors(t *testing.T) {
	t.Parallel()
	gone, other := Written(fmt.Errorf("write: %w", syscall.EPIPE)), errors.New("not given back")
	for _, err := range []error{nil, gone, errors.Join(gone, nil), errors.Join(errors.Join(gone), gone)} {
		if said := WithoutReaderGone(err); said != nil {
			t.Errorf("%v: said %v", err, said)
		}
	}
	both := errors.Join(errors.Join(gone, other), gone)
	if said := WithoutReaderGone(both); said == nil || said.Error() != other.Error() ||
		ExitCode(both) != ExitSignal+int(syscall.SIGPIPE) {
		t.Errorf("said %v, status %d", said, ExitCode(both))
	}
	if said := WithoutReaderGone(fmt.Errorf("%w: %w", other, other)); said.Error() != "not given back: not given back" {
		t.Errorf("a wrapped error was taken apart: %v", said)
	}
	if said := WithoutReaderGone(other); said != other || Written(other) != other || Written(nil) != nil {
		t.Errorf("said %v", said)
	}
}

func TestAdviceIsCutOffTheText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"--listen 127.0.0.1:1: the port is in use; stop the process that listens on it, or use another port (0 selects a free one)": {
			"--listen 127.0.0.1:1: the port is in use",
			"stop the process that listens on it, or use another port (0 selects a free one)"},
		"app has no Procfile with a process: write one with the line \"web: COMMAND\"": {
			"app has no Procfile with a process", "write one with the line \"web: COMMAND\""},
		"program \"x\" not found in PATH \"/bin\": install it, or use its full path": {
			"program \"x\" not found in PATH \"/bin\"", "install it, or use its full path"},
		"\"a b\" is not a queue; or give a URL":                 {"\"a b\" is not a queue", "give a URL"},
		"reading: use of closed network connection":             {"reading: use of closed network connection", ""},
		"deadline: soon is not a duration; allowed: 0s":         {"deadline: soon is not a duration; allowed: 0s", ""},
		"the deployment failed; the previous version serves on": {"the deployment failed; the previous version serves on", ""},
	} {
		if wrong, advice := cutAdvice(text); wrong != want[0] || advice != want[1] {
			t.Errorf("%q is %q and %q", text, wrong, advice)
		}
	}
}

func TestFilesOfOtherUsersHaveAHint(t *testing.T) {
	t.Parallel()
	denied := &fs.PathError{Op: "open", Path: "console-tokens.json", Err: syscall.EACCES}
	err := Explained(fmt.Errorf("reading tokens: %w", denied))
	if hints := HintsOf(err); ExitCode(err) != ExitFailed || len(hints) != 1 || !strings.Contains(hints[0], "user that owns") {
		t.Errorf("%v has the hints %q", err, hints)
	}
}
