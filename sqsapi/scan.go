package sqsapi

import "tendril/queue"

// The requests that come thousands of times a second have decoders on a
// [scanner]. A bit of seen stands for each parameter.

func (r *sendMessageRequest) scan(s *scanner) bool {
	var in sendMessageRequest
	var seen uint
	for key := range s.object {
		if string(key) == "QueueUrl" {
			s.once(&seen, 1)
			in.QueueURL = s.text()
			continue
		}
		in.outgoing.scan(s, key, &seen)
	}
	return assign(s, r, in)
}

func (r *sendMessageBatchRequest) scan(s *scanner) bool {
	var in sendMessageBatchRequest
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "QueueUrl":
			s.once(&seen, 1)
			in.QueueURL = s.text()
		case "Entries":
			s.once(&seen, 2)
			in.Entries = make([]sendEntry, 0, queue.MaxBatch)
			for range s.array(queue.MaxBatch) {
				in.Entries = append(in.Entries, scanSendEntry(s))
			}
		default:
			s.giveUp()
		}
	}
	return assign(s, r, in)
}

func scanSendEntry(s *scanner) (e sendEntry) {
	var seen uint
	for key := range s.object {
		if string(key) == "Id" {
			s.once(&seen, 1)
			e.ID = s.text()
			continue
		}
		e.outgoing.scan(s, key, &seen)
	}
	return e
}

// scan reads the parameter key of a message to send.
func (o *outgoing) scan(s *scanner, key []byte, seen *uint) {
	switch string(key) {
	case "MessageBody":
		s.once(seen, 1<<1)
		o.MessageBody = s.text()
	case "DelaySeconds":
		s.once(seen, 1<<2)
		o.DelaySeconds = s.integer()
	case "MessageAttributes":
		s.once(seen, 1<<3)
		o.MessageAttributes = scanAttributes(s)
	case "MessageSystemAttributes":
		s.once(seen, 1<<4)
		o.MessageSystemAttributes = scanAttributes(s)
	case "MessageDeduplicationId":
		s.once(seen, 1<<5)
		o.MessageDeduplicationID = s.text()
	case "MessageGroupId":
		s.once(seen, 1<<6)
		o.MessageGroupID = s.text()
	default:
		s.giveUp()
	}
}

// mostAttributes is how many attributes a message may have.
const mostAttributes = 10

func scanAttributes(s *scanner) map[string]attributeValue {
	attributes := make(map[string]attributeValue)
	for key := range s.object {
		name := string(key)
		if _, twice := attributes[name]; twice || len(attributes) == mostAttributes {
			s.giveUp()
		}
		attributes[name] = scanAttribute(s)
	}
	return attributes
}

func scanAttribute(s *scanner) (v attributeValue) {
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "DataType":
			s.once(&seen, 1)
			v.DataType = s.text()
		case "StringValue":
			s.once(&seen, 2)
			text := s.text()
			v.StringValue = &text
		case "BinaryValue":
			s.once(&seen, 4)
			v.BinaryValue = s.binary()
		default:
			s.giveUp()
		}
	}
	return v
}

func (r *receiveMessageRequest) scan(s *scanner) bool {
	var in receiveMessageRequest
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "QueueUrl":
			s.once(&seen, 1)
			in.QueueURL = s.text()
		case "AttributeNames":
			s.once(&seen, 1<<1)
			in.AttributeNames = s.texts()
		case "MessageSystemAttributeNames":
			s.once(&seen, 1<<2)
			in.MessageSystemAttributeNames = s.texts()
		case "MessageAttributeNames":
			s.once(&seen, 1<<3)
			in.MessageAttributeNames = s.texts()
		case "MaxNumberOfMessages":
			s.once(&seen, 1<<4)
			in.MaxNumberOfMessages = s.integer()
		case "VisibilityTimeout":
			s.once(&seen, 1<<5)
			in.VisibilityTimeout = s.integer()
		case "WaitTimeSeconds":
			s.once(&seen, 1<<6)
			in.WaitTimeSeconds = s.integer()
		default: // ReceiveRequestAttemptId is rare
			s.giveUp()
		}
	}
	return assign(s, r, in)
}

func (r *deleteMessageRequest) scan(s *scanner) bool {
	var in deleteMessageRequest
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "QueueUrl":
			s.once(&seen, 1)
			in.QueueURL = s.text()
		case "ReceiptHandle":
			s.once(&seen, 2)
			in.ReceiptHandle = s.text()
		default:
			s.giveUp()
		}
	}
	return assign(s, r, in)
}

func (r *deleteMessageBatchRequest) scan(s *scanner) bool {
	var in deleteMessageBatchRequest
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "QueueUrl":
			s.once(&seen, 1)
			in.QueueURL = s.text()
		case "Entries":
			s.once(&seen, 2)
			in.Entries = make([]deleteEntry, 0, queue.MaxBatch)
			for range s.array(queue.MaxBatch) {
				in.Entries = append(in.Entries, scanDeleteEntry(s))
			}
		default:
			s.giveUp()
		}
	}
	return assign(s, r, in)
}

func scanDeleteEntry(s *scanner) (e deleteEntry) {
	var seen uint
	for key := range s.object {
		switch string(key) {
		case "Id":
			s.once(&seen, 1)
			e.ID = s.text()
		case "ReceiptHandle":
			s.once(&seen, 2)
			e.ReceiptHandle = s.text()
		default:
			s.giveUp()
		}
	}
	return e
}

// assign fills a request with what was scanned, unless the scanner gave up.
func assign[R any](s *scanner, request *R, in R) bool {
	if !s.finished() {
		return false
	}
	*request = in
	return true
}
