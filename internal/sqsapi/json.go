package sqsapi

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/internal/sqsapi/sqswire"
)

const (
	jsonType  = "application/x-amz-json-1.0"
	sqsPrefix = "AmazonSQS."
)

// appender encodes itself faster than the standard encoder.
type appender interface{ appendJSON(dst []byte) []byte }

// appendMembers escapes nothing: digests and IDs have only safe characters.
func (a *accepted) appendMembers(dst []byte) []byte {
	dst = appendStrings(dst, `"MD5OfMessageBody":"`, a.MD5OfMessageBody)
	if a.MD5OfMessageAttributes != "" {
		dst = appendStrings(dst, `","MD5OfMessageAttributes":"`, a.MD5OfMessageAttributes)
	}
	if a.MD5OfMessageSystemAttributes != "" {
		dst = appendStrings(dst, `","MD5OfMessageSystemAttributes":"`, a.MD5OfMessageSystemAttributes)
	}
	dst = appendStrings(dst, `","MessageId":"`, a.MessageID)
	if a.SequenceNumber != "" {
		dst = appendStrings(dst, `","SequenceNumber":"`, a.SequenceNumber)
	}
	return append(dst, '"')
}

func appendStrings(dst []byte, texts ...string) []byte {
	for _, text := range texts {
		dst = append(dst, text...)
	}
	return dst
}

func appendBatch[Answer any](dst []byte, answers []Answer, each func(*Answer, []byte) []byte) []byte {
	dst = append(dst, `{"Successful":[`...)
	for i := range answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(&answers[i], dst)
	}
	return append(dst, "]}"...)
}

func (e *acceptedEntry) appendJSON(dst []byte) []byte {
	dst = append(sqswire.AppendString(append(dst, `{"Id":`...), e.ID), ',')
	return append(e.appendMembers(dst), '}')
}

func (e *settledEntry) appendJSON(dst []byte) []byte {
	return append(sqswire.AppendString(append(dst, `{"Id":`...), e.ID), '}')
}

func (a *accepted) appendJSON(dst []byte) []byte {
	return append(a.appendMembers(append(dst, '{')), '}')
}

func encodeJSON(dst []byte, response any) ([]byte, error) {
	switch r := response.(type) {
	case nil:
		return dst, nil
	case appender:
		return r.appendJSON(dst), nil
	case *batchResponse[acceptedEntry]:
		if len(r.Failed) == 0 && len(r.Successful) > 0 {
			return appendBatch(dst, r.Successful, (*acceptedEntry).appendJSON), nil
		}
	case *batchResponse[settledEntry]:
		if len(r.Failed) == 0 && len(r.Successful) > 0 {
			return appendBatch(dst, r.Successful, (*settledEntry).appendJSON), nil
		}
	}

	out := bytes.NewBuffer(dst)
	err := json.MarshalWrite(out, response, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return out.Bytes(), err
}

func quote(s string) string { return strconv.QuoteToASCII(shorten(s)) }
