package sqsapi

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"tendril/queue"
)

type wireReceived struct {
	Messages []wireMessage `json:",omitempty"`
}

type wireMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string        `json:",omitempty"`
	MD5OfMessageAttributes string                   `json:",omitempty"`
	MessageAttributes      map[string]wireAttribute `json:",omitempty"`
}

type wireAttribute struct {
	StringValue *string `json:",omitempty"`
	BinaryValue *string `json:",omitempty"`
	DataType    string
}

func standardReceived(r *receiveMessageResponse) wireReceived {
	var wire wireReceived
	for _, m := range r.received {
		out := wireMessage{MessageID: m.ID, ReceiptHandle: m.ReceiptHandle, Body: m.Body,
			MD5OfBody: string(appendBodyMD5(nil, m.Body))}
		for _, p := range r.system.of(&m, nil) {
			if out.Attributes == nil {
				out.Attributes = map[string]string{}
			}
			out.Attributes[p.name] = p.value
		}
		selected := selectAttributes(m.Attributes, r.attributes)
		out.MD5OfMessageAttributes = string(appendAttributesMD5(nil, selected))
		for _, a := range selected {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]wireAttribute{}
			}
			value := wireAttribute{DataType: a.Type, StringValue: &a.Value}
			if a.IsBinary() {
				encoded := base64.StdEncoding.EncodeToString([]byte(a.Value))
				value = wireAttribute{DataType: a.Type, BinaryValue: &encoded}
			}
			out.MessageAttributes[a.Name] = value
		}
		wire.Messages = append(wire.Messages, out)
	}
	return wire
}

func checkReceived(t *testing.T, r *receiveMessageResponse) {
	t.Helper()
	checkReceivedXML(t, r)
	standard, err := json.Marshal(standardReceived(r))
	if err != nil {
		t.Fatal(err)
	}
	var got, want wireReceived
	ours := r.appendJSON(nil)
	if err := json.Unmarshal(ours, &got); err != nil {
		t.Fatalf("%s: %v", ours, err)
	}
	if err := json.Unmarshal(standard, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ours %s\nstandard %s", ours, standard)
	}
}

func TestReceiveMessageEncoder(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1767225600123)
	full := queue.Message{
		ID: "8f3c", Body: "a \"body\"\n", ReceiptHandle: "h+/=", ReceiveCount: 3, SentAt: at,
		FirstReceivedAt: at.Add(time.Second),
		SenderID:        "000000000000", GroupID: "g", DedupID: "d", SequenceNumber: "10", TraceHeader: "Root=1",
		DeadLetterSource: "arn:aws:sqs:r:a:q",
		Attributes: []queue.Attribute{{Name: "b", Type: "Binary.x", Value: "\x00\xff"},
			{Name: "n", Type: "Number", Value: "1"}, {Name: "s", Type: "String", Value: "é\t"}},
	}
	tests := []struct {
		name string
		r    receiveMessageResponse
		want string
	}{
		{"nothing received", receiveMessageResponse{}, `{}`},
		{"nothing asked for", receiveMessageResponse{received: []queue.Message{{ID: "i", Body: "b", ReceiptHandle: "h"}}},
			`{"Messages":[{"MessageId":"i","ReceiptHandle":"h","MD5OfBody":"92eb5ffee6ae2fec3ad71c777531578f","Body":"b"}]}`},
		{"two messages", receiveMessageResponse{received: []queue.Message{full, {ID: "i", Body: "b"}},
			system: 1<<len(systemAttributes) - 1, attributes: []string{"All"}}, ""},
		{"some attributes", receiveMessageResponse{received: []queue.Message{full},
			system: systemSetOf([]string{"ApproximateReceiveCount"}), attributes: []string{"n"}}, ""},
		{"attributes that it has not", receiveMessageResponse{received: []queue.Message{full}, attributes: []string{"x"}},
			""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkReceived(t, &test.r)
			if got := string(test.r.appendJSON(nil)); test.want != "" && got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func FuzzReceiveMessageEncoder(f *testing.F) {
	f.Add("id", "handle", "body", "name", "String", "value", uint16(0xffff), int64(1), true)
	f.Add("", "\x00", "\xff\"", "ü", "Binary", "\xfe\x00", uint16(3), int64(-5), false)
	f.Fuzz(func(t *testing.T, id, handle, body, name, kind, value string, system uint16, millis int64, all bool) {
		names := []string{name}
		if all {
			names = []string{"All"}
		}
		m := queue.Message{ID: id, ReceiptHandle: handle, Body: body, SentAt: time.UnixMilli(millis % (1 << 45)),
			ReceiveCount: int(millis),
			SenderID:     kind, GroupID: name, TraceHeader: value,
			Attributes: []queue.Attribute{{Name: name, Type: kind, Value: value}}}
		checkReceived(t, &receiveMessageResponse{received: []queue.Message{m, m}, system: systemSet(system),
			attributes: names})
	})
}

func TestEncodersMatchTheStandardEncoder(t *testing.T) {
	t.Parallel()
	full := accepted{"body", "attributes", "system", "id", "1"}
	least := accepted{MD5OfMessageBody: "body", MessageID: "id"}
	failures := []failure{{ID: "b", SenderFault: true, Code: "c", Message: "\"m\""}}
	for _, response := range []any{
		&full, &least,
		&batchResponse[acceptedEntry]{Successful: []acceptedEntry{{"a", full}, {"b-_", least}}},
		&batchResponse[acceptedEntry]{Successful: []acceptedEntry{{"a", full}}, Failed: failures},
		&batchResponse[acceptedEntry]{Failed: failures},
		&batchResponse[settledEntry]{Successful: []settledEntry{{"a"}, {"b"}}},
		&batchResponse[settledEntry]{Successful: []settledEntry{{"a"}}, Failed: failures},
		&batchResponse[settledEntry]{},
	} {
		got, err := encodeJSON(nil, response)
		want, wantErr := json.Marshal(response)
		if err != nil || wantErr != nil || string(got) != string(want) {
			t.Errorf("got  %s, %v\nwant %s, %v", got, err, want, wantErr)
		}
	}
}
