package environment

import (
	"testing"

	"tendril/internal/config"
	"tendril/queue"
)

func TestFilterMatchesTheDeliveredBodyAndIgnoresScheduledRuns(t *testing.T) {
	t.Parallel()
	const envelope = `{"Type":"Notification","MessageId":"m","TopicArn":"arn:aws:sns:eu-west-1:1:t",` +
		`"Message":"{\"kind\":\"order\"}","MessageAttributes":{"tenant":{"Type":"String","Value":"a"}}}`
	run := []queue.Attribute{{Name: queue.AttributePath, Type: "String", Value: "/tidy"}}
	for _, tt := range []struct {
		name, pattern string
		sns           bool
		message       queue.Message
		want          bool
	}{
		{"the content", `{"body": {"kind": ["order"]}}`, true, queue.Message{Body: envelope}, true},
		{"another content", `{"body": {"kind": ["refund"]}}`, true, queue.Message{Body: envelope}, false},
		{"without via-sns", `{"body": {"Type": ["Notification"]}}`, false, queue.Message{Body: envelope}, true},
		{"no envelope", `{"body": {"kind": ["order"]}}`, true, queue.Message{Body: `{"kind":"order"}`}, true},
		{"a run", `{"body": ["never"]}`, false, queue.Message{Attributes: run}, true},
		{"no run", `{"body": ["never"]}`, false, queue.Message{}, false},
	} {
		q := queueWith(config.Settings{}, config.QueueSettings{PerQueue: config.PerQueue{Filter: tt.pattern, ViaSNS: tt.sns}})
		if got := q.filter()(&tt.message); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if queueWith(config.Settings{}, config.QueueSettings{}).filter() != nil {
		t.Error("there is a filter without a pattern")
	}
}
