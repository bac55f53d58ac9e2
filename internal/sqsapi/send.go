package sqsapi

import (
	"time"

	"tendril/queue"
)

type outgoing struct {
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       attributeList `query:"MessageAttribute,Name"`
	MessageSystemAttributes attributeList `query:"MessageSystemAttribute,Name"`
	MessageDeduplicationID  *string       `json:"MessageDeduplicationId,omitzero"`
	MessageGroupID          *string       `json:"MessageGroupId,omitzero"`
}

type sendMessageRequest struct {
	queueRequest
	outgoing
}

// accepted contains digests, which clients verify.
type accepted struct {
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	MessageID                    string `json:"MessageId"`
	SequenceNumber               string `json:",omitempty"`
}

type sendMessageBatchRequest struct {
	queueRequest
	Entries []sendEntry `query:"*RequestEntry"`
}

type sendEntry struct {
	ID string `json:"Id"`
	outgoing
}

func (e *sendEntry) entryID() string { return e.ID }

type acceptedEntry struct {
	ID string `json:"Id"`
	accepted
}

func sendMessage(x *exchange, in *sendMessageRequest) (*accepted, error) {
	message, answer, err := in.prepare(x.traceHeader())
	if err != nil {
		return nil, err
	}
	sent, err := x.broker.Queue(x.queue).Send(x.ctx, []queue.Outgoing{message})
	if err != nil {
		return nil, err
	}
	answer.MessageID, answer.SequenceNumber = sent[0].ID, sent[0].SequenceNumber
	return &answer, sent[0].Err
}

func sendMessageBatch(x *exchange, in *sendMessageBatchRequest) (*batchResponse[acceptedEntry], error) {
	if err := checkBatch(in.Entries, "SendMessageBatchRequestEntry"); err != nil {
		return nil, err
	}
	if err := queue.CheckBatchSize(batchSize(in.Entries)); err != nil {
		return nil, err
	}

	trace := x.traceHeader()
	prepare := func(e *sendEntry) (message queue.Outgoing, answer acceptedEntry, err error) {
		answer.ID = e.ID
		message, answer.accepted, err = e.prepare(trace)
		return message, answer, err
	}
	return runBatch(x, in.Entries, prepare, func(messages []queue.Outgoing, answers []acceptedEntry) ([]error, error) {
		sent, err := x.broker.Queue(x.queue).Send(x.ctx, messages)
		errs := make([]error, len(sent))
		for i, s := range sent {
			answers[i].MessageID = s.ID
			answers[i].SequenceNumber = s.SequenceNumber
			errs[i] = s.Err
		}
		return errs, err
	})
}

// batchSize excludes system attributes.
func batchSize(entries []sendEntry) (size int) {
	for i := range entries {
		size += len(entries[i].MessageBody)
		for j := range entries[i].MessageAttributes {
			a, _ := entries[i].MessageAttributes[j].toQueue() // prepare reports the error later
			size += len(a.Name) + len(a.Type) + len(a.Value)
		}
	}
	return size
}

// prepare returns the message, and a response with its digests.
func (o *outgoing) prepare(requestTrace string) (message queue.Outgoing, answer accepted, err error) {
	if message, err = o.message(); err != nil {
		return message, answer, err
	}
	if message.TraceHeader == "" && len(requestTrace) <= maxTrace {
		message.TraceHeader = requestTrace
	}

	system, err := o.MessageSystemAttributes.toQueue()
	return message, accepted{
		MD5OfMessageBody:             digestOf(appendBodyMD5, o.MessageBody),
		MD5OfMessageAttributes:       digestOf(appendAttributesMD5, message.Attributes),
		MD5OfMessageSystemAttributes: digestOf(appendAttributesMD5, system),
	}, err
}

func (o *outgoing) message() (m queue.Outgoing, err error) {
	if o.MessageBody == "" {
		return m, missing("MessageBody")
	}
	m.Body = o.MessageBody
	if m.Attributes, err = o.MessageAttributes.toQueue(); err != nil {
		return m, err
	}
	if m.TraceHeader, err = o.MessageSystemAttributes.traceHeader(); err != nil {
		return m, err
	}
	if m.GroupID, err = notEmpty(o.MessageGroupID, "MessageGroupId"); err != nil {
		return m, err
	}
	if m.DedupID, err = notEmpty(o.MessageDeduplicationID, "MessageDeduplicationId"); err != nil {
		return m, err
	}
	m.Delay, err = seconds(o.DelaySeconds, "DelaySeconds", 900, "DelaySeconds must be >= 0 and <= 900.")
	return m, err
}

func notEmpty(text *string, parameter string) (string, error) {
	switch {
	case text == nil:
		return "", nil
	case *text == "":
		return "", invalid("", parameter, parameter+
			" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	return *text, nil
}

func seconds(n *int, parameter string, most int, reason string) (*time.Duration, error) {
	if n == nil {
		return nil, nil
	}
	if *n < 0 || *n > most {
		return nil, invalid(*n, parameter, reason)
	}
	return new(time.Duration(*n) * time.Second), nil
}
