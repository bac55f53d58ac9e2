package eventlog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSentencesHaveASubject(t *testing.T) {
	act := func(action, subject, messages string) Event {
		return Event{Kind: "act", Text: "console action", Fields: map[string]string{"who": "owner", "method": "POST",
			"path": "/api/v1/x", "status": "200", "action": action, "subject": subject, "messages": messages}}
	}
	rejected := act("queue paused", "payments", "")
	rejected.Text, rejected.Fields["reason"] = rejectedText, "this needs act"
	for _, c := range []struct {
		event Event
		want  string
	}{
		{act("queue paused", "payments", ""), "owner paused queue payments"},
		{act("all queues paused", "", ""), "owner paused all queues"},
		{act("queue purged", "payments", "7"), "owner purged queue payments (7 messages)"},
		{act("messages sent", "payments", "1"), "owner sent 1 message to payments"},
		{act("messages moved", "payments-dead", "3"), "owner moved 3 messages from payments-dead"},
		{act("redrive started", "payments-dead", "76"), "owner started a redrive in payments-dead (76 messages)"},
		{act("bodies read", "payments", "50"), "owner read bodies in payments (50 messages)"},
		{act("message read, with request and response", "5a90", "1"), "owner read message 5a90 with request and response"},
		{act("message edited and sent again", "5a90", "1"), "owner edited message 5a90 and sent again"},
		{act("app deployed", "", ""), "owner deployed the app"},
		{act("login link created", "", ""), "owner created a login link"},
		{act("task run enqueued", "cleanup", ""), "owner enqueued a run of task cleanup"},
		{rejected, "owner: queue payments not paused: this needs act"},
		{Event{Kind: "pause", Text: "queue paused", Fields: map[string]string{"queue": "jobs", "reason": "incident 12"}},
			"queue jobs paused: incident 12"},
		{Event{Kind: "dead-letter", Text: "messages dead-lettered", Fields: map[string]string{"queue": "jobs",
			"messages": "2"}}, "2 messages dead-lettered from jobs"},
		{Event{Kind: "health", Text: "health changed", Fields: map[string]string{"was": "Ok", "status": "Severe",
			"reason": "The app is down."}}, "health changed from Ok to Severe: The app is down."},
		{Event{Kind: "deploy", Text: "deployment started", Fields: map[string]string{"version": "5"}},
			"deployment of version 5 started"},
		{Event{Kind: "deploy", Text: "new version is serving", Fields: map[string]string{"version": "5"}},
			"version 5 is serving"},
		{Event{Kind: "start", Text: "environment started"}, "environment started"},
	} {
		if got, rest := c.event.Sentence(); got != c.want || len(rest) > 0 {
			t.Errorf("the sentence is %q, which leaves out %v, want %q", got, rest, c.want)
		}
	}
}

func TestSentenceLeavesOutWhatItDoesNotExpress(t *testing.T) {
	for _, c := range []struct{ fields, rest map[string]string }{
		{map[string]string{"queue": "jobs", "err": "denied"}, map[string]string{}},
		{map[string]string{"queue": "jobs", "reason": "denied", "err": "AccessDenied", "hint": "allow it"},
			map[string]string{"err": "AccessDenied", "hint": "allow it"}},
	} {
		e := Event{Kind: "pause", Text: "queue paused", Fields: c.fields}
		text, rest := e.Sentence()
		if diff := cmp.Diff(c.rest, rest); diff != "" || text != "queue jobs paused: denied" {
			t.Errorf("%q, fields (-want +got):\n%s", text, diff)
		}
	}
}

func TestAnActionAndItsEffectAreOneEntry(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pause := func(id int64, queue string, late time.Duration) Event {
		return Event{ID: id, At: at.Add(late), Kind: "pause", Text: "queue paused",
			Fields: map[string]string{"queue": queue, "reason": "incident 12"}}
	}
	act := func(id int64, action, subject string) Event {
		return Event{ID: id, At: at, Kind: "act", Text: "console action", Fields: map[string]string{"who": "owner",
			"action": action, "subject": subject}}
	}
	for _, c := range []struct {
		name   string
		events []Event
		want   []string
	}{
		{"one queue", []Event{act(2, "queue paused", "a"), pause(1, "a", 0)}, []string{"owner paused queue a: incident 12"}},
		{"all queues", []Event{act(3, "all queues paused", ""), pause(2, "b", 0), pause(1, "a", 0)},
			[]string{"owner paused all queues: incident 12"}},
		{"another queue", []Event{act(2, "queue paused", "a"), pause(1, "b", 0)},
			[]string{"owner paused queue a", "queue b paused: incident 12"}},
		{"long before", []Event{act(2, "queue paused", "a"), pause(1, "a", -time.Minute)},
			[]string{"owner paused queue a", "queue a paused: incident 12"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range OnePerAction(c.events) {
				text, _ := e.Sentence()
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("sentences (-want +got):\n%s", diff)
			}
		})
	}
}
