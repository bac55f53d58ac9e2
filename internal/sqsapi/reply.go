package sqsapi

import (
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

type replyForm interface {
	contentType() string
	// success gets a nil response if the action has no output.
	success(dst []byte, x *exchange, act *action, response any) ([]byte, error)
	failure(dst []byte, x *exchange, refusal *queue.Error) []byte
}

// awsJSON is AWS JSON 1.0. The Query protocol replies in XML, or in JSON to "Accept: application/json".
type (
	awsJSON   struct{}
	xmlQuery  struct{}
	jsonQuery struct{}
)

func formOf(r *http.Request) replyForm {
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		return awsJSON{}
	case strings.TrimSpace(r.Header.Get("Accept")) == jsonQuery{}.contentType():
		return jsonQuery{}
	}
	return xmlQuery{}
}

func (awsJSON) contentType() string { return jsonType }

func (awsJSON) success(dst []byte, _ *exchange, _ *action, response any) ([]byte, error) {
	return encodeJSON(dst, response)
}

func (awsJSON) failure(dst []byte, x *exchange, refusal *queue.Error) []byte {
	f := faultOf(refusal.Code)
	x.w.Header().Set("X-Amzn-Query-Error", f.query+";"+f.side())
	dst = append(append(dst, `{"__type":"com.amazonaws.sqs#`...), refusal.Code...)
	dst = append(dst, `","message":`...)
	dst = sqswire.AppendString(dst, textOf(refusal))
	return append(dst, '}')
}

type xmlAppender interface{ appendXML(dst []byte) []byte }

func (xmlQuery) contentType() string { return xmlType }

func (xmlQuery) success(dst []byte, x *exchange, act *action, response any) ([]byte, error) {
	dst = append(append(append(dst, xmlStart...), x.action...), "Response"+xmlNamespace...)
	if response != nil {
		dst = append(append(append(dst, '<'), x.action...), "Result>"...)
		start := len(dst)
		if r, ok := response.(xmlAppender); ok {
			dst = r.appendXML(dst)
		} else {
			dst = act.answer.append(dst, reflect.ValueOf(response).Elem())
		}
		if len(dst) == start {
			dst = append(dst[:start-1], "/>"...)
		} else {
			dst = append(append(append(dst, "</"...), x.action...), "Result>"...)
		}
	}

	dst = append(append(append(dst, "<ResponseMetadata><RequestId>"...), x.id...), "</RequestId></ResponseMetadata></"...)
	return append(append(dst, x.action...), "Response>\n"...), nil
}

func (xmlQuery) failure(dst []byte, x *exchange, refusal *queue.Error) []byte {
	f := faultOf(refusal.Code)
	dst = append(append(dst, xmlStart...), "ErrorResponse"+xmlNamespace+"<Error>"...)
	dst = appendElement(dst, "Type", f.side())
	dst = appendElement(dst, "Code", f.query)
	dst = appendElement(dst, "Message", queryTextOf(refusal))
	dst = append(dst, "<Detail/></Error>"...)
	dst = appendElement(dst, "RequestId", x.id)
	return append(dst, "</ErrorResponse>\n"...)
}

func (jsonQuery) contentType() string { return "application/json" }

// As in Amazon's gateways to SQS, success writes absent members as null, and two lists have other names than in AWS
// JSON 1.0.
func (jsonQuery) success(dst []byte, x *exchange, act *action, response any) ([]byte, error) {
	whole := map[string]any{"ResponseMetadata": requestMetadata{x.id}}
	if response != nil {
		text, err := encodeJSON(nil, response)
		if err != nil {
			return nil, err
		}
		var result map[string]any
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, err
		}
		whole[x.action+"Result"] = act.answer.legacy(result)
	}

	out := bytes.NewBuffer(dst)
	err := json.MarshalWrite(out, map[string]any{x.action + "Response": whole}, json.Deterministic(true),
		jsontext.AllowInvalidUTF8(true))
	return out.Bytes(), err
}

type requestMetadata struct {
	RequestID string `json:"RequestId"`
}

func (all elements) legacy(response map[string]any) map[string]any {
	legacy := map[string]any{}
	for i := range all {
		e := &all[i]
		value := response[e.json]
		switch value := value.(type) {
		case map[string]any:
			pairs := []any{}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				pairs = append(pairs, map[string]any{e.key: key, "Value": value[key]})
			}
			legacy[e.json] = pairs
			continue
		case []any:
			for i := range value {
				if part, ok := value[i].(map[string]any); ok {
					value[i] = e.of.legacy(part)
				}
			}
		}
		legacy[e.json] = value
	}

	for name, other := range map[string]string{"Messages": "messages", "QueueUrls": "queueUrls"} {
		if value, ok := legacy[name]; ok {
			delete(legacy, name)
			legacy[other] = value
		}
	}
	return legacy
}

func (jsonQuery) failure(dst []byte, x *exchange, refusal *queue.Error) []byte {
	f := faultOf(refusal.Code)
	dst = append(append(dst, `{"Error":{"Code":"`...), f.query...)
	dst = append(dst, `","Message":`...)
	dst = sqswire.AppendString(dst, queryTextOf(refusal))
	dst = append(append(dst, `,"Type":"`...), f.side()...)
	dst = append(append(dst, `"},"RequestId":"`...), x.id...)
	return append(dst, "\"}"...)
}
