package aws

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

func readAnswer(t *testing.T, answer string) ([]queue.Message, []string, error) {
	t.Helper()
	var corrupt []string
	messages, err := readMessages([]byte(answer), func(id, part string) { corrupt = append(corrupt, id+" "+part) })
	return messages, corrupt, err
}

func TestReadsEveryPartOfAMessage(t *testing.T) {
	t.Parallel()
	got, corrupt, err := readAnswer(t, `{"Messages":[{
		"MessageId":"id-1","ReceiptHandle":"AQEB\/+=","Body":"line\n\"two\" \u00e9 \ud83d\ude00","Unknown":[1,{"x":null}],
		"Attributes":{"SenderId":"AIDA","ApproximateFirstReceiveTimestamp":"1700000001002","ApproximateReceiveCount":"3",
			"SentTimestamp":"1700000000001","MessageGroupId":"g","MessageDeduplicationId":"d","SequenceNumber":"18850000000000000001",
			"AWSTraceHeader":"Root=1-2","DeadLetterQueueSourceArn":"arn:aws:sqs:eu-west-1:1:jobs","SqsManagedSseEnabled":"true"},
		"MessageAttributes":{"z":{"StringValue":"12","DataType":"Number.int"},"a":{"DataType":"Binary","BinaryValue":"AAH\/"},
			"m":{"StringListValues":[],"StringValue":"\"","DataType":"String"}}}]}`)
	want := []queue.Message{{
		ID: "id-1", ReceiptHandle: "AQEB/+=", Body: "line\n\"two\" é 😀", ReceiveCount: 3,
		SentAt: time.UnixMilli(1700000000001), FirstReceivedAt: time.UnixMilli(1700000001002),
		SenderID: "AIDA", GroupID: "g", DedupID: "d", SequenceNumber: "18850000000000000001",
		TraceHeader: "Root=1-2", DeadLetterSource: "arn:aws:sqs:eu-west-1:1:jobs",
		Attributes: []queue.Attribute{
			{Name: "a", Type: "Binary", Value: "\x00\x01\xff"},
			{Name: "m", Type: "String", Value: `"`},
			{Name: "z", Type: "Number.int", Value: "12"},
		},
	}}
	if err != nil || corrupt != nil {
		t.Fatal(err, corrupt)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesKeepNothingOfThePreviousOne(t *testing.T) {
	t.Parallel()
	sums := fmt.Sprintf(`"MD5OfBody":"%x","MD5OfMessageAttributes":"%x"`, md5.Sum([]byte("x")),
		sqswire.AttributesMD5([]queue.Attribute{{Name: "a", Type: "String", Value: "1"}}))
	got, corrupt, err := readAnswer(t, `{"Messages":[{"MessageId":"first","ReceiptHandle":"r","Body":"x",`+sums+`,
		"Attributes":{"SenderId":"AIDA","ApproximateReceiveCount":"3"},
		"MessageAttributes":{"a":{"StringValue":"1","DataType":"String"}}},
		{"MessageId":"second","Body":"y"},
		{"MessageId":"third","Body":"z","MessageAttributes":{"b":{"StringValue":"1","DataType":"String"}},
		"MessageAttributes":{"c":{"StringValue":"2","DataType":"String"}}}]}`)
	want := []queue.Message{
		{ID: "first", ReceiptHandle: "r", Body: "x", SenderID: "AIDA", ReceiveCount: 3,
			Attributes: []queue.Attribute{{Name: "a", Type: "String", Value: "1"}}},
		{ID: "second", Body: "y"},
		{ID: "third", Body: "z", Attributes: []queue.Attribute{{Name: "c", Type: "String", Value: "2"}}},
	}
	if diff := cmp.Diff(want, got); err != nil || corrupt != nil || diff != "" {
		t.Error(err, corrupt, diff)
	}
}

func TestIncompleteMessageIsNotReportedAsCorrupt(t *testing.T) {
	t.Parallel()
	_, corrupt, err := readAnswer(t, `{"Messages":[{"MessageId":"1","MD5OfBody":"`+strings.Repeat("0", 32)+`","Body":"x"`)
	if err == nil || corrupt != nil {
		t.Errorf("%v, corrupt %q", err, corrupt)
	}
}

func TestIncompleteRefusalHasNoCode(t *testing.T) {
	t.Parallel()
	if shape, message := readRefusal([]byte(`{"__type":"x#QueueDoesNotExist","message":"no"`)); shape+message != "" {
		t.Errorf("%q %q", shape, message)
	}
}

func TestEmptyReceives(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{}`, `{"Messages":null}`, `{"Messages":[]}`,
		`{"many":[` + strings.Repeat(`{"a":[]},`, 200) + `{}]}`, ` { "ResponseMetadata" : {"HTTPStatusCode":200} } `} {
		if got, _, err := readAnswer(t, answer); len(got) != 0 || err != nil {
			t.Errorf("%s: got %v, %v", answer, got, err)
		}
	}
}

func TestMessagesDoNotShareTheBuffer(t *testing.T) {
	t.Parallel()
	buf := []byte(`{"Messages":[` + wireMessage("id-1", "first") + `]}`)
	got, err := readMessages(buf, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] = '!'
	}
	if got[0].Body != "first" || got[0].ID != "id-1" || got[0].SenderID != "AIDAEXAMPLE" {
		t.Errorf("the message changed with the buffer: %+v", got[0])
	}
}

func TestCorruptMessagesAreLeftOut(t *testing.T) {
	t.Parallel()
	whole := wireMessage("whole", "body")
	body := strings.Replace(wireMessage("flipped", "body"), `"Body":"body"`, `"Body":"bodY"`, 1)
	attributes := strings.Replace(wireMessage("attrs", "body"), `"Attributes"`,
		`"MD5OfMessageAttributes":"00000000000000000000000000000000","MessageAttributes":{"a":{"DataType":"String","StringValue":"v"}},"Attributes"`, 1)
	got, corrupt, err := readAnswer(t, `{"Messages":[`+body+`,`+whole+`,`+attributes+`]}`)
	if err != nil || len(got) != 1 || got[0].ID != "whole" {
		t.Errorf("got %v, %v; want the whole message only", got, err)
	}
	if want := []string{"flipped body", "attrs attributes"}; !slices.Equal(corrupt, want) {
		t.Errorf("reported %q, want %q", corrupt, want)
	}
}

func TestAttributeDigest(t *testing.T) {
	t.Parallel()
	attrs := []queue.Attribute{{Name: "bin", Type: "Binary.png", Value: "\x00\x01\xff"},
		{Name: "n", Type: "Number.int", Value: "42"}, {Name: "s", Type: "String", Value: "hé"}}
	const digest = "73db1ce9d2ab413244752817131b9ad7"
	if part := damagedPart("", "", attrs, digest); part != "" {
		t.Errorf("digest %s does not match", digest)
	}
	attrs[1].Value = "43"
	if part := damagedPart("", "", attrs, digest); part != "attributes" {
		t.Error("another value has the same digest")
	}
}

func TestBrokenAnswersAreErrors(t *testing.T) {
	t.Parallel()
	whole := `{"Messages":[` + wireMessage("id", "a \\u0041 body") + `]}`
	for n := range len(whole) {
		if _, _, err := readAnswer(t, whole[:n]); err == nil {
			t.Fatalf("cut at %d of %d: no error", n, len(whole))
		}
	}
	for _, answer := range []string{
		`[]`, `"x"`, `{"Messages":{}}`, `{"Messages":[1]}`, `{"Messages":[{"Body":1}]}`, `{"Messages":[{}],}`,
		`{"Messages":[{},]}`,
		`{} {}`, `{"a" 1}`, `{"a":nil}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
		`{"Messages":[{"Attributes":{"ApproximateReceiveCount":"one"}}]}`,
		`{"Messages":[{"MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"?"}}}]}`,
		`{"a":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`, "{\"a\":\x00}", `<html>`,
	} {
		if got, _, err := readAnswer(t, answer); err == nil {
			t.Errorf("%s: no error, got %v", answer, got)
		} else if strings.Contains(err.Error(), "body") {
			t.Errorf("%s: the error quotes the answer: %v", answer, err)
		}
	}
}

func TestReadBatch(t *testing.T) {
	t.Parallel()
	results, err := readBatch([]byte(`{"Successful":[{"Id":"2","MessageId":"m","SequenceNumber":"7","MD5OfMessageBody":"b","MD5OfMessageAttributes":"a"}],
		"Failed":[{"Id":"0","Code":"ReceiptHandleIsInvalid","Message":"no","SenderFault":true},{"Id":"1","Code":"Odd","SenderFault":false},{"Id":"4","Code":"Odd","SenderFault":"true"}]}`), 5)
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(results[0].sent.Err, &queue.Error{Code: queue.CodeReceiptHandleIsInvalid}) ||
		results[0].sent.Err.Error() != "no" {
		t.Errorf("entry 0: %v", results[0].sent.Err)
	}
	if !errors.Is(results[1].sent.Err, queue.ErrUnreachable) {
		t.Errorf("entry 1: %v, want what can be tried again", results[1].sent.Err)
	}
	if r := results[2]; r.sent.Err != nil || !r.answered || r.sent.ID != "m" || r.sent.SequenceNumber != "7" || r.bodySum != "b" ||
		r.attributesSum != "a" {
		t.Errorf("entry 2: %+v", r)
	}
	if !errors.Is(results[4].sent.Err, &queue.Error{Code: "Odd"}) {
		t.Errorf("entry 4: %v, want our own fault under its code", results[4].sent.Err)
	}
	if results[3].answered {
		t.Error("entry 3 was not in the answer")
	}
	for _, answer := range []string{`{"Successful":[{"Id":"4"}]}`, `{"Failed":[{"Id":"x"}]}`,
		`{"Successful":[{"Id":"-1"}]}`, `{"Failed":[{"Id":"0","SenderFault":"yes"}]}`} {
		if _, err := readBatch([]byte(answer), 4); err == nil {
			t.Errorf("%s: no error", answer)
		}
	}
}

func FuzzReadMessages(f *testing.F) {
	f.Add(`{"Messages":[` + wireMessage("id", "body") + `,` + wireMessage("id-2", "") + `]}`)
	f.Add(`{"Messages":[{"Body":"\ud83d\ude00\ud83d \udc00\\\"\/\b\f\n\r\t\u0041","MessageAttributes":{"b":{"DataType":"Binary.x","BinaryValue":"AAH/"},"a":{"DataType":"String","StringValue":"v"},"a":{"DataType":"Number","StringValue":"1"}}}]}`)
	f.Add(`{"Messages":[{"Attributes":{"ApproximateReceiveCount":"2","SentTimestamp":"-1"},"x":[true,false,null,-1.5e+3]}],"Messages":null}`)
	f.Fuzz(func(t *testing.T, answer string) {
		want, wantErr := readSlowly([]byte(answer))
		got, err := readMessages([]byte(answer), func(string, string) {})
		if err == nil && len(got) > len(answer) {
			t.Fatal("more messages than bytes")
		}
		if !utf8.ValidString(answer) || wantErr != nil {
			return
		}
		if err != nil {
			t.Fatalf("encoding/json takes it, the reader does not: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
			t.Fatal(diff)
		}
	})
}

var errSkip = errors.New("not comparable")

func readSlowly(answer []byte) (messages []queue.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errSkip, r)
		}
	}()
	var root map[string]json.RawMessage
	if err := json.Unmarshal(answer, &root); err != nil {
		return nil, err
	}
	if err := comparable(answer); err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if raw := root["Messages"]; raw != nil {
		if err := json.Unmarshal(raw, &raws); err != nil {
			return nil, err
		}
	}
	for _, raw := range raws {
		m, sums, err := slowMessage(raw)
		if err != nil {
			return nil, err
		}
		if damagedPart(m.Body, sums[0], m.Attributes, sums[1]) == "" {
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// comparable returns an error for duplicate members, which encoding/json merges, and for deep nesting.
func comparable(answer []byte) error {
	tokens := json.NewDecoder(bytes.NewReader(answer))
	tokens.UseNumber()
	return walk(tokens, 0)
}

func walk(tokens *json.Decoder, depth int) error {
	token, err := tokens.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == answerLimits.Depth {
		return errSkip
	}
	names := map[json.Token]bool{}
	for tokens.More() {
		if open == '{' {
			name, err := tokens.Token()
			if err != nil {
				return err
			}
			if names[name] {
				return errSkip
			}
			names[name] = true
		}
		if err := walk(tokens, depth+1); err != nil {
			return err
		}
	}
	_, err = tokens.Token()
	return err
}

func slowMessage(raw json.RawMessage) (m queue.Message, sums [2]string, err error) {
	var fields map[string]json.RawMessage
	must(json.Unmarshal(raw, &fields))
	text := func(in map[string]json.RawMessage, name string) string {
		var s string
		if in[name] != nil {
			must(json.Unmarshal(in[name], &s))
		}
		return s
	}
	system := map[string]json.RawMessage{}
	if fields["Attributes"] != nil {
		must(json.Unmarshal(fields["Attributes"], &system))
	}
	number := func(name string) int64 {
		if s := text(system, name); s != "" || string(system[name]) == `""` {
			n, err := strconv.ParseInt(s, 10, 64)
			must(err)
			return n
		}
		return 0
	}
	at := func(name string) time.Time {
		if n := number(name); n != 0 {
			return time.UnixMilli(n)
		}
		return time.Time{}
	}
	m = queue.Message{
		ID: text(fields, "MessageId"), Body: text(fields, "Body"), ReceiptHandle: text(fields, "ReceiptHandle"),
		ReceiveCount: int(number("ApproximateReceiveCount")), SentAt: at("SentTimestamp"),
		FirstReceivedAt: at("ApproximateFirstReceiveTimestamp"),
		SenderID:        text(system, "SenderId"), GroupID: text(system, "MessageGroupId"),
		DedupID:        text(system, "MessageDeduplicationId"),
		SequenceNumber: text(system, "SequenceNumber"), TraceHeader: text(system, "AWSTraceHeader"),
		DeadLetterSource: text(system, "DeadLetterQueueSourceArn"),
	}
	attrs := map[string]map[string]json.RawMessage{}
	if fields["MessageAttributes"] != nil {
		must(json.Unmarshal(fields["MessageAttributes"], &attrs))
	}
	for name, members := range attrs {
		a := queue.Attribute{Name: name, Type: text(members, "DataType"), Value: text(members, "StringValue")}
		if a.IsBinary() {
			value, err := base64.StdEncoding.DecodeString(text(members, "BinaryValue"))
			must(err)
			a.Value = string(value)
		}
		m.Attributes = append(m.Attributes, a)
	}
	slices.SortFunc(m.Attributes, func(x, y queue.Attribute) int { return strings.Compare(x.Name, y.Name) })
	return m, [2]string{text(fields, "MD5OfBody"), text(fields, "MD5OfMessageAttributes")}, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestIDHoldsNoBody(t *testing.T) {
	t.Parallel()
	m := withOwnMemory(&queue.Message{ID: "id", ReceiptHandle: "receipt", Body: strings.Repeat("x", 1<<20)})
	collected := make(chan struct{})
	runtime.AddCleanup(unsafe.StringData(m.Body), func(struct{}) { close(collected) }, struct{}{})
	id := m.ID
	m = queue.Message{}
	for range 100 {
		runtime.GC()
		select {
		case <-collected:
			if id != "id" {
				t.Errorf("the id is %q", id)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the body is still in memory while only the id is kept")
	runtime.KeepAlive(id)
}
