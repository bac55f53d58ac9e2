package sqsapi

import (
	"context"
	"encoding/base64"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

type receiveMessageRequest struct {
	queueRequest
	AttributeNames              []string `query:"AttributeName"`
	MessageSystemAttributeNames []string `query:"MessageSystemAttributeName"`
	MessageAttributeNames       []string `query:"MessageAttributeName"`
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	ReceiveRequestAttemptID     string `json:"ReceiveRequestAttemptId"`
}

type receiveMessageResponse struct {
	received   []queue.Message
	system     systemSet
	attributes []string
}

type receivedMessages struct {
	Messages []struct {
		MessageID              string `json:"MessageId"`
		ReceiptHandle          string
		MD5OfBody              string
		Body                   string
		Attributes             map[string]string `query:"Attribute,Name"`
		MD5OfMessageAttributes string
		MessageAttributes      map[string]messageAttribute `query:"MessageAttribute,Name"`
	} `query:"Message"`
}

func (r *receiveMessageResponse) onTheWire() any { return receivedMessages{} }

func receiveMessage(x *exchange, in *receiveMessageRequest) (*receiveMessageResponse, error) {
	request, err := in.prepare()
	if err != nil {
		return nil, err
	}
	request.Stop = x.h.stopped.Done()
	if x.room.memory != nil {
		request.Room = &x.room
	}
	messages, err := x.broker.Queue(x.queue).Receive(x.ctx, request)
	return in.response(messages), err
}

// Memory limits the memory of receives. Acquire waits until enough is available.
type Memory interface {
	Acquire(ctx context.Context, bytes int64) error
	Release(bytes int64)
}

const (
	// copies of a response are in memory: the messages, the encoded text and the smaller buffer that it outgrew.
	copies          = 3
	maxAnswerMemory = copies * (queue.ReceiveBytes + maxMessage)
)

type answerRoom struct {
	memory Memory // nil if unlimited
	held   int64
}

func (a *answerRoom) Acquire(ctx context.Context) error {
	if err := a.memory.Acquire(ctx, maxAnswerMemory); err != nil {
		return err
	}
	a.held = maxAnswerMemory
	return nil
}

func (a *answerRoom) Keep(bytes int64) {
	if unused := a.held - copies*bytes; unused > 0 {
		a.memory.Release(unused)
		a.held -= unused
	}
}

func (a *answerRoom) release() {
	if a.held > 0 {
		a.Keep(0)
	}
}

// Inlining response would put its frame on the stack of each waiting long poll.
//
//go:noinline
func (in *receiveMessageRequest) response(messages []queue.Message) *receiveMessageResponse {
	return &receiveMessageResponse{messages, systemSetOf(in.AttributeNames, in.MessageSystemAttributeNames),
		in.MessageAttributeNames}
}

func (in *receiveMessageRequest) prepare() (queue.ReceiveRequest, error) {
	request := queue.ReceiveRequest{Max: 1, AttemptID: in.ReceiveRequestAttemptID}
	if n := in.MaxNumberOfMessages; n != nil {
		if *n < 1 || *n > queue.MaxBatch {
			return request, invalid(*n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
		}
		request.Max = *n
	}
	var err error
	if request.Visibility, err = seconds(in.VisibilityTimeout, "VisibilityTimeout", maxVisibility,
		"Must be >= 0 and <= 43200, if provided."); err != nil {
		return request, err
	}
	request.Wait, err = seconds(in.WaitTimeSeconds, "WaitTimeSeconds", 20, "Must be >= 0 and <= 20, if provided.")
	return request, err
}

// appendJSON is several times faster than the standard encoder; this response is the largest and most frequent.
func (r *receiveMessageResponse) appendJSON(dst []byte) []byte {
	if len(r.received) == 0 {
		return append(dst, "{}"...)
	}

	dst = append(dst, `{"Messages":[`...)
	var scratch [len(systemAttributes)]pair
	for i := range r.received {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := &r.received[i]
		dst = append(dst, `{"MessageId":`...)
		dst = sqswire.AppendString(dst, m.ID)
		dst = append(dst, `,"ReceiptHandle":`...)
		dst = sqswire.AppendString(dst, m.ReceiptHandle)
		dst = append(dst, `,"MD5OfBody":"`...)
		dst = appendBodyMD5(dst, m.Body)
		dst = append(dst, `","Body":`...)
		dst = sqswire.AppendString(dst, m.Body)
		dst = appendPairs(dst, r.system.of(m, scratch[:0]))
		dst = appendAttributes(dst, selectAttributes(m.Attributes, r.attributes))
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func appendPairs(dst []byte, pairs []pair) []byte {
	if len(pairs) == 0 {
		return dst
	}
	dst = append(dst, `,"Attributes":`...)
	separator := byte('{')
	for _, p := range pairs {
		dst = append(dst, separator, '"')
		dst = append(dst, p.name...)
		dst = append(dst, '"', ':')
		dst = sqswire.AppendString(dst, p.value)
		separator = ','
	}
	return append(dst, '}')
}

func appendAttributes(dst []byte, attributes []queue.Attribute) []byte {
	if len(attributes) == 0 {
		return dst
	}

	dst = append(dst, `,"MD5OfMessageAttributes":"`...)
	dst = appendAttributesMD5(dst, attributes)
	dst = append(dst, `","MessageAttributes":`...)
	separator := byte('{')
	for i := range attributes {
		a := &attributes[i]
		dst = append(dst, separator)
		dst = sqswire.AppendString(dst, a.Name)
		if a.IsBinary() {
			dst = append(dst, `:{"BinaryValue":`...)
			dst = append(base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(a.Value)), '"')
		} else {
			dst = append(dst, `:{"StringValue":`...)
			dst = sqswire.AppendString(dst, a.Value)
		}
		dst = append(dst, `,"DataType":`...)
		dst = sqswire.AppendString(dst, a.Type)
		dst = append(dst, '}')
		separator = ','
	}
	return append(dst, '}')
}

func (r *receiveMessageResponse) appendXML(dst []byte) []byte {
	var scratch [len(systemAttributes)]pair
	for i := range r.received {
		m := &r.received[i]
		dst = append(dst, "<Message>"...)
		dst = appendElement(dst, "MessageId", m.ID)
		dst = appendElement(dst, "ReceiptHandle", m.ReceiptHandle)
		dst = append(dst, "<MD5OfBody>"...)
		dst = appendBodyMD5(dst, m.Body)
		dst = append(dst, "</MD5OfBody>"...)
		dst = appendElement(dst, "Body", m.Body)
		for _, p := range r.system.of(m, scratch[:0]) {
			dst = appendKeyValue(dst, "Attribute", "Name", p.name, p.value)
		}

		if attributes := selectAttributes(m.Attributes, r.attributes); len(attributes) > 0 {
			dst = append(dst, "<MD5OfMessageAttributes>"...)
			dst = appendAttributesMD5(dst, attributes)
			dst = append(dst, "</MD5OfMessageAttributes>"...)
			for i := range attributes {
				dst = appendXMLAttribute(dst, &attributes[i])
			}
		}
		dst = append(dst, "</Message>"...)
	}
	return dst
}

func appendXMLAttribute(dst []byte, a *queue.Attribute) []byte {
	dst = append(dst, "<MessageAttribute>"...)
	dst = appendElement(dst, "Name", a.Name)
	if a.IsBinary() {
		dst = append(dst, "<Value><BinaryValue>"...)
		dst = append(base64.StdEncoding.AppendEncode(dst, []byte(a.Value)), "</BinaryValue>"...)
	} else {
		dst = append(dst, "<Value>"...)
		dst = appendElement(dst, "StringValue", a.Value)
	}
	dst = appendElement(dst, "DataType", a.Type)
	return append(dst, "</Value></MessageAttribute>"...)
}
