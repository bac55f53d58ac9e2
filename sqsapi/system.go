package sqsapi

import (
	"strconv"
	"time"

	"tendril/queue"
)

// systemSet is the set of system attributes that a receive asked for, one bit
// for each.
type systemSet uint16

// The system attributes, in the order in which they are written.
const (
	senderID systemSet = 1 << iota
	sentTimestamp
	receiveCount
	firstReceiveTimestamp
	sequenceNumber
	deduplicationID
	groupID
	traceHeaderValue
	deadLetterSource
	systemEnd
)

// systemNames is never written to.
var systemNames = map[string]systemSet{
	"All":                              systemEnd - 1,
	"SenderId":                         senderID,
	"SentTimestamp":                    sentTimestamp,
	"ApproximateReceiveCount":          receiveCount,
	"ApproximateFirstReceiveTimestamp": firstReceiveTimestamp,
	"SequenceNumber":                   sequenceNumber,
	"MessageDeduplicationId":           deduplicationID,
	"MessageGroupId":                   groupID,
	traceAttribute:                     traceHeaderValue,
	"DeadLetterQueueSourceArn":         deadLetterSource,
}

// systemSetOf unites the names of the old and the new request parameter.
// Names that SQS does not know are ignored, as it does itself.
func systemSetOf(lists ...[]string) systemSet {
	var set systemSet
	for _, names := range lists {
		for _, name := range names {
			set |= systemNames[name]
		}
	}
	return set
}

// pair is a system attribute with its value; numbers are text there, times
// are milliseconds since 1970.
type pair struct{ name, value string }

// of appends the attributes of the set that m has.
func (set systemSet) of(m *queue.Message, dst []pair) []pair {
	add := func(bit systemSet, name, value string) {
		if set&bit != 0 && value != "" {
			dst = append(dst, pair{name, value})
		}
	}
	add(senderID, "SenderId", m.SenderID)
	if set&sentTimestamp != 0 {
		add(sentTimestamp, "SentTimestamp", millis(m.SentAt))
	}
	if set&receiveCount != 0 {
		add(receiveCount, "ApproximateReceiveCount", strconv.Itoa(m.ReceiveCount))
	}
	if set&firstReceiveTimestamp != 0 {
		add(firstReceiveTimestamp, "ApproximateFirstReceiveTimestamp", millis(m.FirstReceivedAt))
	}
	add(sequenceNumber, "SequenceNumber", m.SequenceNumber)
	add(deduplicationID, "MessageDeduplicationId", m.DedupID)
	add(groupID, "MessageGroupId", m.GroupID)
	add(traceHeaderValue, traceAttribute, m.TraceHeader)
	add(deadLetterSource, "DeadLetterQueueSourceArn", m.DeadLetterSource)
	return dst
}

func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
