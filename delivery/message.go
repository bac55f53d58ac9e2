package delivery

import (
	"context"
	"slices"

	"tendril/queue"
)

// Deliverer hands over the messages of one delivery and sets the result of each.
type Deliverer func(ctx context.Context, batch []*Message)

// Message is a message on its way to the target.
type Message struct {
	// Message is what is handed over. A stage may replace it by a changed copy.
	*queue.Message
	// Result says how the delivery ended.
	Result queue.Result
}

// Target is what messages are handed to: an app or a function. One that has a method
// DeliverBatch, as [deliver.Lambda] has, gets all messages of a delivery at once.
type Target interface {
	// Deliver hands over one message.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the target accepts messages.
	Probe(ctx context.Context) error
}

// prepare calls ready for each message, which sets the result of one that cannot be
// handed over, and returns the others. Behind such a message the later ones of its
// group are held back where the order counts.
func prepare(batch []*Message, fifo bool, ready func(*Message) bool) []*Message {
	var stuck map[string]queue.Result // by group
	return slices.DeleteFunc(slices.Clone(batch), func(m *Message) bool {
		if behind, ok := stuck[m.GroupID]; ok {
			m.Result = behind
			return true
		}
		if ready(m) {
			return false
		}
		if fifo && m.GroupID != "" {
			if stuck == nil {
				stuck = map[string]queue.Result{}
			}
			stuck[m.GroupID] = queue.Result{Outcome: m.Result.Outcome, RetryAfter: m.Result.RetryAfter,
				Reason: "an earlier message of its group is not done", Unsent: true}
		}
		return true
	})
}
