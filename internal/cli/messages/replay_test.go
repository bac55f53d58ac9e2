package messages

import (
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/queue"
)

func TestURLsToReplayTo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, base, path string }{
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", ""},
		{"http://127.0.0.1:8080/", "http://127.0.0.1:8080", "/"},
		{"https://app.example/jobs?k=1%2F", "https://app.example", "/jobs?k=1%2F"},
		{"http://app.example?k=1", "http://app.example", "/?k=1"},
		{"http://app.example/a%2Fb", "http://app.example", "/a%2Fb"},
		{"unix:///run/app.sock", "unix:///run/app.sock", ""},
	} {
		if base, path, err := splitURL(tt.text); base != tt.base || path != tt.path || err != nil {
			t.Errorf("%s: %q, %q, %v", tt.text, base, path, err)
		}
	}
	for _, wrong := range []string{"", "app.example/jobs", "http://%zz"} {
		if _, _, err := splitURL(wrong); base.ExitCode(err) != base.ExitUsage {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestAMessageIsDeliveredFromItsOwnQueue(t *testing.T) {
	t.Parallel()
	p := &replay{client: &api.Client{Instance: api.Instance{Queues: []api.InstanceQueue{
		{Name: "first", DeadLetterQueue: "first-dead"}, {Name: "second", DeadLetterQueue: "graves"}}}}}
	for _, tt := range []struct {
		m    api.Message
		want string
	}{
		{api.Message{}, ""},
		{api.Message{Queue: "second"}, "second"},
		{api.Message{Queue: "graves"}, "second"},
		{api.Message{Queue: "graves", DeadLetterSource: "arn:aws:sqs:us-east-1:000000000000:first"}, "first"},
		{api.Message{Queue: "elsewhere", DeadLetterSource: "arn:aws:sqs:us-east-1:000000000000:gone"}, ""},
	} {
		if got := p.queueOf(&tt.m); got != tt.want {
			t.Errorf("%+v is delivered from %s, want %s", tt.m, got, tt.want)
		}
	}
	p.queue = "second"
	if got := p.queueOf(&api.Message{}); got != "second" {
		t.Errorf("with --queue second: %s", got)
	}
	p = &replay{client: &api.Client{Instance: api.Instance{Queues: []api.InstanceQueue{{Name: "only"}}}}}
	if got := p.queueOf(&api.Message{}); got != "only" {
		t.Errorf("of the only queue: %s", got)
	}
	if got := (&replay{}).queueOf(&api.Message{Queue: "exported"}); got != "exported" {
		t.Errorf("without an environment: %s", got)
	}
}

func TestAReplayHasWhatTheLastDeliveryHad(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	m := deliveredAs(&api.Message{ID: "m1", ReceiveCount: 3, Attempts: make([]api.Attempt, 2), SentAt: at})
	if m.ID != "m1" || m.ReceiveCount != 3 || m.Attempt != 2 || !m.SentAt.Equal(at) {
		t.Errorf("of a message in a queue: %+v", m)
	}
	if m = deliveredAs(&api.Message{Body: "x"}); m.ID != noID || m.ReceiveCount != 1 || m.Attempt != 1 {
		t.Errorf("of a body alone: %+v", m)
	}
	dead := api.Message{ID: "new", ReceiveCount: 1, Attributes: []queue.Attribute{{Name: "kind", Type: "String",
		Value: "x"}, {Name: queue.AttributeReason, Type: "String",
		Value: `{"reason":"HTTP 500","attempts":4,"receives":5,"message_id":"old","source":"arn:q"}`}}}
	if m = deliveredAs(&dead); m.ID != "old" || m.ReceiveCount != 5 || m.Attempt != 4 || len(m.Attributes) != 1 {
		t.Errorf("of a dead letter on Amazon SQS: %+v", m)
	}
}
