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
	// success gets a nil response for an action without output.
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
	dst = appendStrings(dst, `{"__type":"com.amazonaws.sqs#`, refusal.Code, `","message":`)
	dst = sqswire.AppendString(dst, textOf(refusal))
	return append(dst, '}')
}

type xmlAppender interface{ appendXML(dst []byte) []byte }

func (xmlQuery) contentType() string { return xmlType }

func (xmlQuery) success(dst []byte, x *exchange, act *action, response any) ([]byte, error) {
	dst = appendStrings(dst, xmlStart, x.action, "Response", xmlNamespace)
	if response != nil {
		dst = appendStrings(dst, "<", x.action, "Result>")
		start := len(dst)
		if r, ok := response.(xmlAppender); ok {
			dst = r.appendXML(dst)
		} else {
			dst = act.answer.appendXML(dst, reflect.ValueOf(response).Elem())
		}
		if len(dst) == start {
			dst = append(dst[:start-1], "/>"...)
		} else {
			dst = appendStrings(dst, "</", x.action, "Result>")
		}
	}

	dst = appendStrings(dst, "<ResponseMetadata><RequestId>", x.id, "</RequestId></ResponseMetadata>")
	return appendStrings(dst, "</", x.action, "Response>\n"), nil
}

func (xmlQuery) failure(dst []byte, x *exchange, refusal *queue.Error) []byte {
	f := faultOf(refusal.Code)
	dst = appendStrings(dst, xmlStart, "ErrorResponse", xmlNamespace, "<Error>")
	dst = appendElement(dst, "Type", f.side())
	dst = appendElement(dst, "Code", f.query)
	dst = appendElement(dst, "Message", queryTextOf(refusal))
	dst = append(dst, "<Detail/></Error>"...)
	dst = appendElement(dst, "RequestId", x.id)
	return append(dst, "</ErrorResponse>\n"...)
}

func (jsonQuery) contentType() string { return "application/json" }

// As in SQS, success writes absent members as null, and two lists have other names than in AWS JSON 1.0.
func (jsonQuery) success(dst []byte, x *exchange, act *action, response any) ([]byte, error) {
	members := map[string]any{"ResponseMetadata": requestMetadata{x.id}}
	if response != nil {
		text, err := encodeJSON(nil, response)
		if err != nil {
			return nil, err
		}
		var result map[string]any
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, err
		}
		members[x.action+"Result"] = act.answer.legacyMembers(result)
	}

	out := bytes.NewBuffer(dst)
	err := json.MarshalWrite(out, map[string]any{x.action + "Response": members}, json.Deterministic(true),
		jsontext.AllowInvalidUTF8(true))
	return out.Bytes(), err
}

type requestMetadata struct {
	RequestID string `json:"RequestId"`
}

func (all wireFields) legacyMembers(response map[string]any) map[string]any {
	members := map[string]any{}
	for i := range all {
		f := &all[i]
		members[f.json] = f.legacyValue(response[f.json])
	}

	for name, legacyName := range map[string]string{"Messages": "messages", "QueueUrls": "queueUrls"} {
		if value, ok := members[name]; ok {
			delete(members, name)
			members[legacyName] = value
		}
	}
	return members
}

func (f *wireField) legacyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		pairs := []any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			pairs = append(pairs, map[string]any{f.key: key, "Value": value[key]})
		}
		return pairs
	case []any:
		for i := range value {
			if part, ok := value[i].(map[string]any); ok {
				value[i] = f.of.legacyMembers(part)
			}
		}
	}
	return value
}

func (jsonQuery) failure(dst []byte, x *exchange, refusal *queue.Error) []byte {
	f := faultOf(refusal.Code)
	dst = appendStrings(dst, `{"Error":{"Code":"`, f.query, `","Message":`)
	dst = sqswire.AppendString(dst, queryTextOf(refusal))
	return appendStrings(dst, `,"Type":"`, f.side(), `"},"RequestId":"`, x.id, `"}`)
}
