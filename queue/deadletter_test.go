package queue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func attributesOf(n int) (all []Attribute) {
	for i := range n {
		all = append(all, Attribute{Name: fmt.Sprint("a", i), Type: "Number", Value: fmt.Sprint(i)})
	}
	return all
}

func TestOutgoingOfADeadLetter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 15, 4, 5, 0, time.UTC)
	failure := Failure{Reason: "HTTP 500", Status: 500, Answer: "no such order", Attempts: 3, Receives: 3,
		DurationMS: 12, FailedAt: at, Instance: "worker-1", MessageID: "m-1", SentAt: at.Add(-time.Hour),
		Source: "arn:aws:sqs:eu-west-1:123456789012:jobs"}
	binary := Attribute{Name: "blob", Type: "Binary", Value: "\x00\xff"}
	for _, tt := range []struct {
		name    string
		message Message
		failure func(*Failure)
		fifo    bool
		want    func(*Failure)
		refused bool
	}{
		{name: "body, attributes, group of a tenant and trace header stay",
			message: Message{Body: "\tbody\r\n", Attributes: []Attribute{binary}, GroupID: "tenant", TraceHeader: "Root=1-2-3"}},
		{name: "a FIFO queue takes each message once", fifo: true, message: Message{Body: "b", GroupID: "g", DedupID: "d"}},
		{name: "nine attributes leave room", message: Message{Body: "b", Attributes: attributesOf(9)}},
		{name: "ten attributes leave none", message: Message{Body: "b", Attributes: attributesOf(10)}, refused: true},
		{name: "an earlier reason is replaced", message: Message{Body: "b",
			Attributes: append(attributesOf(9), Attribute{AttributeReason, "String", "{}"})}},
		{name: "texts are cut to their bounds", message: Message{Body: "b"},
			failure: func(f *Failure) { f.Answer, f.Reason = strings.Repeat("é", 1000), strings.Repeat("r", 1000) },
			want:    func(f *Failure) { f.Answer, f.Reason = strings.Repeat("é", 512), strings.Repeat("r", 256) }},
		{name: "characters that SQS refuses", message: Message{Body: "b"},
			failure: func(f *Failure) { f.Answer, f.Reason = "a\ufffe\uffff\x00\x1f<&>\u2028b", "\xff" },
			want:    func(f *Failure) { f.Answer, f.Reason = "a\ufffd\ufffd\x00\x1f<&>\u2028b", "\ufffd" }},
		{name: "the answer is cut first", message: Message{Body: strings.Repeat("b", MaxMessageSize-330)},
			failure: func(f *Failure) { f.Answer = strings.Repeat("\x01", 1000) },
			want:    func(f *Failure) { f.Answer = "" }},
		{name: "a part of the answer fits", message: Message{Body: strings.Repeat("b", MaxMessageSize-700)},
			failure: func(f *Failure) { f.Answer = strings.Repeat("x", 1000) },
			want:    func(f *Failure) { f.Answer = "?" }},
		{name: "no room in the largest message", message: Message{Body: strings.Repeat("b", MaxMessageSize-100)},
			refused: true},
		{name: "a time that JSON cannot have", message: Message{Body: "b"}, refused: true,
			failure: func(f *Failure) { f.FailedAt = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		m, f := tt.message, failure
		m.ID = "m-1"
		before := fmt.Sprint(m.Attributes)
		if tt.failure != nil {
			tt.failure(&f)
		}
		out, fits := (&DeadLetter{Message: &m, Failure: f}).Outgoing(tt.fifo)
		if fits == tt.refused {
			t.Errorf("%s: fits = %t", tt.name, fits)
			continue
		}
		if fmt.Sprint(m.Attributes) != before {
			t.Errorf("%s: the message was changed: %v", tt.name, m.Attributes)
		}
		if tt.refused {
			continue
		}
		if out.Size() > MaxMessageSize || len(out.Attributes) > maxAttributes {
			t.Errorf("%s: %d bytes, %d attributes", tt.name, out.Size(), len(out.Attributes))
		}
		others, got := CutReason(out.Attributes)
		want := f
		if tt.want != nil {
			tt.want(&want)
		}
		if want.Answer == "?" {
			if len(got.Answer) < 200 || MaxMessageSize-out.Size() > 8 {
				t.Errorf("%s: %d bytes of the answer, %d are left", tt.name, len(got.Answer), MaxMessageSize-out.Size())
			}
			want.Answer = got.Answer
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
		own, _ := CutReason(m.Attributes)
		if diff := cmp.Diff(own, others); diff != "" {
			t.Errorf("%s: attributes: (-want +got)\n%s", tt.name, diff)
		}
		dedup := ""
		if tt.fifo {
			dedup = m.ID
		}
		if out.Body != m.Body || out.GroupID != m.GroupID || out.TraceHeader != m.TraceHeader || out.DedupID != dedup ||
			out.Delay != nil {
			t.Errorf("%s: sent %+v", tt.name, out)
		}
	}
}

func TestCutReasonOfOthers(t *testing.T) {
	t.Parallel()
	for _, a := range []Attribute{
		{AttributeReason, "String", "because"}, {AttributeReason, "Binary", `{"reason":"x"}`},
		{AttributeReason, "String", `{"status":"many"}`}, {AttributeReason, "String", `[]`},
	} {
		others, f := CutReason([]Attribute{{"a", "String", "1"}, a, {"z", "String", "2"}})
		if f != nil || len(others) != 2 {
			t.Errorf("%v: %v, %+v", a, others, f)
		}
	}
	if others, f := CutReason(attributesOf(2)); f != nil || len(others) != 2 {
		t.Errorf("without one: %v, %+v", others, f)
	}
}

func FuzzReasonIsTextThatSQSTakes(f *testing.F) {
	f.Add("HTTP 500", "no such order", 3)
	f.Add("\xff\xfe", "\ufffe\U0001ffff\x7f\x00", MaxMessageSize)
	f.Fuzz(func(t *testing.T, reason, answer string, body int) {
		m := Message{ID: "m-1", Body: strings.Repeat("b", min(max(body, 1), MaxMessageSize))}
		out, fits := (&DeadLetter{Message: &m, Failure: Failure{Reason: reason, Answer: answer}}).Outgoing(false)
		if !fits {
			if len(m.Body) < MaxMessageSize-4096 {
				t.Fatal("a message with room was refused")
			}
			return
		}
		value := out.Attributes[0].Value
		refused := func(r rune) bool { return r < ' ' || r == '\ufffe' || r == '\uffff' }
		if out.Size() > MaxMessageSize || !utf8.ValidString(value) || strings.ContainsFunc(value, refused) ||
			!json.Valid([]byte(value)) {
			t.Errorf("%d bytes: %q", out.Size(), value)
		}
	})
}
