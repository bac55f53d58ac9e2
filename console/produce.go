package console

import (
	"net/http"
	"strconv"
	"time"

	"tendril/queue"
)

// Outgoing is a message on its way into a queue, in the words of [Message].
type Outgoing struct {
	// Body is the text byte for byte.
	Body string `json:"body"`
	// Attributes are the message's own, by name.
	Attributes Attributes `json:"attributes,omitempty"`
	// DelaySeconds hides the message for 0 to 900 s; nil means the queue's own
	// delay.
	DelaySeconds *int `json:"delay_seconds,omitempty"`
	// GroupID and DedupID are for FIFO queues; GroupID may be set for a
	// standard queue too.
	GroupID string `json:"group_id,omitempty"`
	DedupID string `json:"dedup_id,omitempty"`
	// TraceHeader becomes the AWSTraceHeader.
	TraceHeader string `json:"trace_header,omitempty"`
}

// ToQueue returns the message in the words of package queue.
func (o *Outgoing) ToQueue() queue.Outgoing {
	out := queue.Outgoing{
		Body: o.Body, Attributes: o.Attributes,
		GroupID: o.GroupID, DedupID: o.DedupID, TraceHeader: o.TraceHeader,
	}
	if o.DelaySeconds != nil {
		delay := time.Duration(*o.DelaySeconds) * time.Second
		out.Delay = &delay
	}
	return out
}

// fromQueue is the opposite of ToQueue; a delay is rounded up to whole seconds.
func fromQueue(o *queue.Outgoing) Outgoing {
	out := Outgoing{
		Body: o.Body, Attributes: o.Attributes,
		GroupID: o.GroupID, DedupID: o.DedupID, TraceHeader: o.TraceHeader,
	}
	if o.Delay != nil {
		seconds := int((*o.Delay + time.Second - 1) / time.Second)
		out.DelaySeconds = &seconds
	}
	return out
}

// sending is the body of a send, sendings its answer: one for each message, in
// order.
type (
	sending struct {
		Messages []Outgoing `json:"messages"`
	}
	sendings struct {
		Results []sendResult `json:"results"`
	}
	sendResult struct {
		ID             string `json:"id,omitempty"`
		SequenceNumber string `json:"sequence_number,omitempty"`
		Error          string `json:"error,omitempty"`
		Code           string `json:"code,omitempty"`
	}
)

// postMessages sends up to ten messages. It is 200 as soon as the queue took
// the call; entries may be refused one by one.
func (s *Server) postMessages(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	var body sending
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	if n := len(body.Messages); n == 0 || n > queue.MaxBatch {
		return answer{}, refuse(http.StatusBadRequest, "messages holds "+strconv.Itoa(n)+" messages",
			"send 1 to 10 of them at once")
	}
	msgs := make([]queue.Outgoing, len(body.Messages))
	for i := range body.Messages {
		msgs[i] = body.Messages[i].ToQueue()
	}
	sent, err := b.Send(r.Context(), r.PathValue("name"), msgs)
	if err != nil {
		return answer{}, err
	}
	results := make([]sendResult, len(sent))
	for i, one := range sent {
		results[i] = sendResult{ID: one.ID, SequenceNumber: one.SequenceNumber}
		if one.Err != nil {
			refusal := asRefusal(one.Err)
			results[i] = sendResult{Error: refusal.Message, Code: refusal.Code}
		}
	}
	return ok(sendings{results}), nil
}

// creation is the body of creating a queue.
type creation struct {
	Name string `json:"name"`
	// Attributes are SQS attribute names and values.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// created is its answer.
type created struct {
	Name string `json:"name"`
	ARN  string `json:"arn"`
}

func (s *Server) postQueue(r *http.Request) (answer, error) {
	b, err := s.embedded()
	if err != nil {
		return answer{}, err
	}
	var body creation
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	if err := b.CreateQueue(r.Context(), body.Name, body.Attributes, nil); err != nil {
		return answer{}, err
	}
	return ok(created{body.Name, b.ARN(body.Name)}), nil
}
