package queue

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestErrorsCompareByCode(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("sending to jobs: %w", Errorf(CodeQueueDoesNotExist, "The specified queue does not exist."))
	if !errors.Is(err, ErrNoQueue) {
		t.Errorf("errors.Is(%v, ErrNoQueue) = false", err)
	}
	if errors.Is(err, ErrDenied) {
		t.Errorf("errors.Is(%v, ErrDenied) = true", err)
	}
}

func TestErrorfKeepsTheCause(t *testing.T) {
	t.Parallel()
	err := Errorf(CodeUnreachable, "reading from the queue: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cause lost from %v", err)
	}
	if got, want := err.Error(), "reading from the queue: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := (&Error{Code: CodeOverLimit}).Error(); got != CodeOverLimit {
		t.Errorf("Error() without a message = %q, want the code", got)
	}
}

func TestAttributeKinds(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]bool{
		"String": false, "Number": false, "Number.int": false, "String.Binary": false,
		"Binary": true, "Binary.png": true, "Binaryish": false,
	} {
		if got := (Attribute{Type: typ}).IsBinary(); got != want {
			t.Errorf("Attribute{Type: %q}.IsBinary() = %v, want %v", typ, got, want)
		}
	}
	m := Message{Attributes: []Attribute{{Name: "a", Type: "String", Value: "1"}, {Name: "b", Type: "Number", Value: "2"}}}
	if got := m.Attribute("b"); got != "2" {
		t.Errorf(`Attribute("b") = %q, want "2"`, got)
	}
	if got := m.Attribute("c"); got != "" {
		t.Errorf(`Attribute("c") = %q, want ""`, got)
	}
}

func TestOutcomeZeroValueIsFailed(t *testing.T) {
	t.Parallel()
	var r Result
	if r.Outcome != Failed || r.Outcome.String() != "failed" || Done.String() != "done" ||
		Unreached.String() != "unreached" {
		t.Errorf("outcomes read %v %v %v", r.Outcome, Done, Unreached)
	}
}

func TestParseRedrivePolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct {
		name string
		max  int
	}{
		``:   {"", 0},
		`{}`: {"", 0},
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}`:         {"dead", 3},
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":"10"}`: {"dead.fifo", 10},
		`nonsense`: {"", 0},
	} {
		if name, n := ParseRedrivePolicy(policy); name != want.name || n != want.max {
			t.Errorf("ParseRedrivePolicy(%s) = %q, %d; want %+v", policy, name, n, want)
		}
	}
}

func TestOutcomesAndInstructionsHaveNames(t *testing.T) {
	t.Parallel()
	for o, want := range map[Outcome]string{Failed: "failed", Done: "done", Unreached: "unreached",
		Throttled: "throttled", Postponed: "postponed", -1: "failed", Postponed + 1: "failed"} {
		if got := o.String(); got != want {
			t.Errorf("Outcome(%d) = %q, want %q", int(o), got, want)
		}
	}
	for i, want := range map[Instruction]bool{NoInstruction: false, Retry: false, Drop: false, DeadLetterNow: true,
		TerminalStatus: true} {
		if got := i.DeadLetters(); got != want {
			t.Errorf("Instruction(%d).DeadLetters() = %t", i, got)
		}
	}
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: CodeEmptyBatchRequest, 1: "", MaxBatch: "", MaxBatch + 1: CodeTooManyEntriesInBatchRequest,
	} {
		if got := codeOf(CheckEntries(n, "SendMessageBatchRequestEntry")); got != want {
			t.Errorf("%d entries: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "", MaxMessageSize: "", MaxMessageSize + 1: CodeBatchRequestTooLong} {
		if got := codeOf(CheckBatchSize(n)); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	want := "There should be at least one SendMessageBatchRequestEntry in the request."
	if got := CheckEntries(0, "SendMessageBatchRequestEntry").Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestParseRun(t *testing.T) {
	t.Parallel()
	text := func(name, value string) Attribute { return Attribute{Name: name, Type: "String", Value: value} }
	at := time.Date(2026, 11, 26, 15, 4, 5, 0, time.UTC)
	path, task := text(AttributePath, "/tasks/report"), text(AttributeTask, "report")
	for _, tt := range []struct {
		name       string
		attributes []Attribute
		want       *Run
		named      bool
	}{
		{"an ordinary message", []Attribute{text("color", "red")}, nil, false},
		{"a name without a path", []Attribute{task}, nil, false},
		{"a path that is not text", []Attribute{{AttributePath, "Binary", "/tasks/report"}, task}, nil, false},
		{"an empty path", []Attribute{text(AttributePath, "")}, &Run{}, false},
		{"only a path", []Attribute{path}, &Run{Path: "/tasks/report"}, false},
		{"of the daemon", []Attribute{path, task, text(AttributeTime, "2026-11-26 15:04:05 UTC")},
			&Run{Path: "/tasks/report", Task: "report", Time: "2026-11-26 15:04:05 UTC", ScheduledAt: at}, true},
		{"asked for by a person", []Attribute{text(AttributeRun, "r-1"), path, task,
			text(AttributeTime, "2026-11-26 15:04:05 UTC")}, &Run{Path: "/tasks/report", Task: "report", ID: "r-1",
			Time: "2026-11-26 15:04:05 UTC", ScheduledAt: at}, true},
		{"a time in another layout", []Attribute{path, task, text(AttributeTime, "2026-11-26T15:04:05Z")},
			&Run{Path: "/tasks/report", Task: "report", Time: "2026-11-26T15:04:05Z"}, false},
		{"a time and no task", []Attribute{path, text(AttributeTime, "2026-11-26 15:04:05 UTC")},
			&Run{Path: "/tasks/report", Time: "2026-11-26 15:04:05 UTC", ScheduledAt: at}, false},
	} {
		got := ParseRun(&Message{Attributes: tt.attributes})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
		if got.Named() != tt.named {
			t.Errorf("%s: Named() = %t", tt.name, got.Named())
		}
	}
}
