package sqsapi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"tendril/queue"
)

func codeOf(err error) string {
	if refusal := asQueueError(err); refusal != nil {
		return refusal.Code
	}
	return ""
}

func TestG14QueueURLNamesTheQueueByItsLastTwoSegments(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, want, code string }{
		{"http://localhost:9324/000000000000/jobs", "jobs", ""},
		{"https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo", "jobs.fifo", ""},
		{"http://[::1]:9324/queue/jobs", "jobs", ""},
		{"http://localhost/1/jobs/", "jobs", ""},
		{"/000000000000/jobs", "jobs", ""},
		{"000000000000/jobs", "jobs", ""},
		{"jobs", "jobs", ""},
		{"", "", queue.CodeMissingRequiredParameter},
		{"http://localhost:9324", "", queue.CodeQueueDoesNotExist},
		{"http://localhost:9324/", "", queue.CodeQueueDoesNotExist},
		{"http://localhost:9324/jobs", "", queue.CodeInvalidAddress},
		{"http://localhost:9324//jobs", "", queue.CodeInvalidAddress},
		{"http://localhost:9324/queue/us-east-1/000000000000/jobs", "jobs", ""},
		{"http://localhost:9324/1/jobs/more", "more", ""},
		{"http://localhost:9324/000000000000/jobs%2Efifo", "jobs.fifo", ""},
		{"http://localhost:9324/000000000000/jobs?x=/1/2", "jobs", ""},
		{"http://localhost:9324/000000000000/jobs%", "", queue.CodeInvalidAddress},
		{"http://localhost:9324/1/", "", queue.CodeInvalidAddress},
		{"/jobs", "", queue.CodeInvalidAddress},
		{"/", "", queue.CodeInvalidAddress},
	}
	for _, test := range tests {
		got, err := (&queueRequest{test.url}).queueName()
		if got != test.want || codeOf(err) != test.code {
			t.Errorf("queueName(%q) = %q, %v; want %q, code %q", test.url, got, err, test.want, test.code)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 2500 {
		all = append(all, fmt.Sprintf("q%04d", i))
	}
	read := func(most int) (got []string, pages int) {
		token := ""
		for {
			names, next, err := (&pageRequest{&most, token}).page(all)
			if err != nil {
				t.Fatal(err)
			}
			got, pages = append(got, names...), pages+1
			if next == "" {
				return got, pages
			}
			token = next
		}
	}
	for most, want := range map[int]int{1000: 3, 999: 3, 500: 5, 250: 10} {
		if got, pages := read(most); pages != want || !reflect.DeepEqual(got, all) {
			t.Errorf("pages of %d: %d names in %d pages, want %d in %d", most, len(got), pages, len(all), want)
		}
	}
	if names, next, err := (&pageRequest{}).page(all); len(names) != maxListed || next != "" || err != nil {
		t.Errorf("without a limit: %d names, token %q, %v", len(names), next, err)
	}
}

func TestPageContinuesAfterADeletedQueue(t *testing.T) {
	t.Parallel()
	_, next, err := (&pageRequest{new(1), ""}).page([]string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if names, _, err := (&pageRequest{new(1), next}).page([]string{"aa", "c"}); err != nil || !reflect.DeepEqual(names,
		[]string{"aa"}) {
		t.Errorf("page = %v, %v; want [aa]", names, err)
	}
}

func TestPageRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		most  *int
		token string
		want  string
	}{
		{"no results", new(0), "",
			"Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."},
		{"too many", new(maxListed + 1), "",
			"Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000."},
		{"forged token", new(1), "!", "Invalid or expired next token."},
		{"token alone", nil, "YQ==", "MaxResults is a mandatory parameter when you provide a value for NextToken."},
	}
	for _, test := range tests {
		_, _, err := (&pageRequest{test.most, test.token}).page([]string{"a", "b"})
		if codeOf(err) != queue.CodeInvalidParameterValue || err.Error() != test.want {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestReceiveParameters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   receiveMessageRequest
		want string
	}{
		{"no messages", receiveMessageRequest{MaxNumberOfMessages: new(0)},
			"Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
		{"eleven messages", receiveMessageRequest{MaxNumberOfMessages: new(11)},
			"Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
		{"wait 21 s", receiveMessageRequest{WaitTimeSeconds: new(21)},
			"Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."},
		{"wait -1 s", receiveMessageRequest{WaitTimeSeconds: new(-1)},
			"Value -1 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."},
		{"hidden too long", receiveMessageRequest{VisibilityTimeout: new(43201)},
			"Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."},
		{"number that overflows a duration", receiveMessageRequest{VisibilityTimeout: new(1 << 62)},
			"Value 4611686018427387904 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if " +
				"provided."},
	}
	for _, test := range tests {
		if _, err := test.in.prepare(); codeOf(err) != queue.CodeInvalidParameterValue || err.Error() != test.want {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	got, err := (&receiveMessageRequest{MaxNumberOfMessages: new(10), WaitTimeSeconds: new(0),
		VisibilityTimeout: new(43200), ReceiveRequestAttemptID: "a"}).prepare()
	wait, visibility := time.Duration(0), 12*time.Hour
	if want := (queue.ReceiveRequest{Max: 10, Wait: &wait, Visibility: &visibility, AttemptID: "a"}); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("prepare = %+v, %v; want %+v", got, err, want)
	}
	if got, err := new(receiveMessageRequest).prepare(); err != nil ||
		!reflect.DeepEqual(got, queue.ReceiveRequest{Max: 1}) {
		t.Errorf("prepare of nothing = %+v, %v", got, err)
	}
}

func TestF2SelectAttributes(t *testing.T) {
	t.Parallel()
	have := []queue.Attribute{{Name: "Foo"}, {Name: "bar"}, {Name: "bar.one"}, {Name: "barn"}, {Name: "foo"}}
	tests := []struct {
		ask  []string
		want string
	}{
		{nil, ""},
		{[]string{"All"}, "Foo bar bar.one barn foo"},
		{[]string{".*"}, "Foo bar bar.one barn foo"},
		{[]string{"*"}, "Foo bar bar.one barn foo"},
		{[]string{"bar", "*"}, "Foo bar bar.one barn foo"},
		{[]string{"nothing", "All"}, "Foo bar bar.one barn foo"},
		{[]string{"foo"}, "foo"},
		{[]string{"foo", "bar"}, "bar foo"},
		{[]string{"foo", "foo"}, "foo"},
		{[]string{"bar.*"}, "bar bar.one barn"},
		{[]string{"bar.o.*"}, "bar.one"},
		{[]string{"all"}, ""},
		{[]string{"ba"}, ""},
		{[]string{""}, ""},
	}
	for _, test := range tests {
		var got []string
		for _, a := range selectAttributes(have, test.ask) {
			got = append(got, a.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("asked for %q: got %q, want %q", test.ask, got, test.want)
		}
	}
}

func TestF1SystemAttributes(t *testing.T) {
	t.Parallel()
	m := queue.Message{
		SenderID: "s", SentAt: time.UnixMilli(1001), ReceiveCount: 2, FirstReceivedAt: time.UnixMilli(2002),
		SequenceNumber: "7", DedupID: "d", GroupID: "g", TraceHeader: "t", DeadLetterSource: "arn",
	}
	tests := []struct {
		old, new []string
		want     string
	}{
		{nil, nil, ""},
		{[]string{"All"}, nil,
			"SenderId=s SentTimestamp=1001 ApproximateReceiveCount=2 ApproximateFirstReceiveTimestamp=2002 SequenceNumber=7 " +
				"MessageDeduplicationId=d MessageGroupId=g AWSTraceHeader=t DeadLetterQueueSourceArn=arn"},
		{nil, []string{"All"},
			"SenderId=s SentTimestamp=1001 ApproximateReceiveCount=2 ApproximateFirstReceiveTimestamp=2002 SequenceNumber=7 " +
				"MessageDeduplicationId=d MessageGroupId=g AWSTraceHeader=t DeadLetterQueueSourceArn=arn"},
		{[]string{"SenderId"}, []string{"SentTimestamp", "SenderId"}, "SenderId=s SentTimestamp=1001"},
		{[]string{"Bogus"}, []string{"Unknown", "MessageGroupId"}, "MessageGroupId=g"},
		{nil, []string{"AWSTraceHeader"}, "AWSTraceHeader=t"},
	}
	for _, test := range tests {
		var got []string
		for _, p := range systemSetOf(test.old, test.new).of(&m, nil) {
			got = append(got, p.name+"="+p.value)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("asked for %q and %q: got %q, want %q", test.old, test.new, got, test.want)
		}
	}
	if pairs := systemSetOf([]string{"All"}).of(&queue.Message{}, nil); len(pairs) != 1 ||
		pairs[0].name != "ApproximateReceiveCount" {
		t.Errorf("a message without any has %v", pairs)
	}
}

func TestF6MessageAttributes(t *testing.T) {
	t.Parallel()
	text, empty := "v", ""
	var letters attributeList
	for _, name := range strings.Split("jihgfedcba", "") {
		letters = append(letters, messageAttribute{name: name, DataType: "String", StringValue: &text})
	}
	letters.sort()
	sorted, err := letters.toQueue()
	if err != nil || !slices.IsSortedFunc(sorted, func(a, b queue.Attribute) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		t.Errorf("not sorted: %v, %v", sorted, err)
	}
	got, err := attributesOf(map[string]*messageAttribute{
		"n": {DataType: "Number.int", StringValue: &text},
		"b": {DataType: "Binary.gif", BinaryValue: []byte("x")},
		"e": {DataType: "String", StringValue: &empty},
	}).toQueue()
	want := []queue.Attribute{{Name: "b", Type: "Binary.gif", Value: "x"}, {Name: "e", Type: "String"},
		{Name: "n", Type: "Number.int", Value: "v"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("messageAttributes = %v, %v; want %v", got, err, want)
	}
	// In JSON, an attribute can be null. The broker rejects it, because it has no type.
	null := attributesOf(map[string]*messageAttribute{"a": nil})
	if got, err := null.toQueue(); err != nil || !slices.Equal(got, []queue.Attribute{{Name: "a"}}) {
		t.Errorf("null: %v, %v", got, err)
	}
	if size := batchSize([]sendEntry{{outgoing: outgoing{MessageBody: "bc", MessageAttributes: null}}}); size != 3 {
		t.Errorf("size with null: %d", size)
	}
	tests := []struct {
		name  string
		value messageAttribute
		code  string
		text  string
	}{
		{"text as binary", messageAttribute{DataType: "String", BinaryValue: []byte("x")}, queue.CodeInvalidParameterValue,
			"The message attribute 'a' with type 'String' must use field 'String'."},
		{"binary as text", messageAttribute{DataType: "Binary", StringValue: &text}, queue.CodeInvalidParameterValue,
			"The message attribute 'a' with type 'Binary' must use field 'Binary'."},
		{"both", messageAttribute{DataType: "String", StringValue: &text, BinaryValue: []byte("x")},
			queue.CodeInvalidParameterValue, "The message attribute 'a' with type 'String' must use field 'String'."},
		{"text list", messageAttribute{DataType: "String", StringListValues: []string{"x"}}, queue.CodeUnsupportedOperation,
			"Message attribute list values in SendMessage operation are not supported."},
		{"binary list", messageAttribute{DataType: "Binary", BinaryListValues: [][]byte{{1}}}, queue.CodeUnsupportedOperation,
			"Message attribute list values in SendMessage operation are not supported."},
	}
	for _, test := range tests {
		_, err := attributesOf(map[string]*messageAttribute{"a": &test.value}).toQueue()
		if codeOf(err) != test.code || err.Error() != test.text {
			t.Errorf("%s: %v, want %s %q", test.name, err, test.code, test.text)
		}
	}
}

func TestF3F4TraceHeader(t *testing.T) {
	t.Parallel()
	attribute := func(name, kind, value string) attributeList {
		return attributeList{{name: name, DataType: kind, StringValue: &value}}
	}
	explicit := attribute(traceAttribute, "String", "Root=1-explicit")
	tests := []struct {
		name       string
		attributes attributeList
		header     string
		want       string
		digest     bool
		refused    bool
	}{
		{"none", nil, "", "", false, false},
		{"attribute", explicit, "", "Root=1-explicit", true, false},
		{"HTTP header", nil, "Root=1-header", "Root=1-header", false, false},
		{"attribute over header", explicit, "Root=1-header", "Root=1-explicit", true, false},
		{"header too long is left out", nil, strings.Repeat("x", maxTrace+1), "", false, false},
		{"unknown name", attribute("Other", "String", "x"), "", "", false, true},
		{"number", attribute(traceAttribute, "Number", "1"), "", "", false, true},
		{"empty", attribute(traceAttribute, "String", ""), "", "", false, true},
		{"too long", attribute(traceAttribute, "String", strings.Repeat("x", maxTrace+1)), "", "", false, true},
	}
	for _, test := range tests {
		o := outgoing{MessageBody: "b", MessageSystemAttributes: test.attributes}
		message, answer, err := o.prepare(test.header)
		if refused := codeOf(err) == queue.CodeInvalidParameterValue; refused != test.refused {
			t.Errorf("%s: error %v", test.name, err)
		}
		if message.TraceHeader != test.want || (answer.MD5OfMessageSystemAttributes != "") != test.digest {
			t.Errorf("%s: header %q, digest %q", test.name, message.TraceHeader, answer.MD5OfMessageSystemAttributes)
		}
	}
}

func TestTraceHeaderDoesNotShareTheRequestsMemory(t *testing.T) {
	t.Parallel()
	value := "Root=1-explicit"
	o := outgoing{MessageBody: "b", MessageSystemAttributes: attributeList{{name: traceAttribute, DataType: "String",
		StringValue: &value}}}
	if m, err := o.message(); err != nil || m.TraceHeader != value || unsafe.StringData(m.TraceHeader) == unsafe.StringData(value) {
		t.Errorf("%q, %v", m.TraceHeader, err)
	}
}

func TestLastOfDuplicateMembersMayBeNull(t *testing.T) {
	t.Parallel()
	in := &sendMessageRequest{}
	err := parametersOf(reflect.TypeFor[sendMessageRequest](), "SendMessage").decodeJSON(
		[]byte(`{"MessageBody":"x","DelaySeconds":1,"MessageBody":null,"DelaySeconds":null}`), in)
	if err != nil || in.MessageBody != "" || in.DelaySeconds != nil {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestD6CheckBatch(t *testing.T) {
	t.Parallel()
	ids := func(list ...string) (entries []deleteEntry) {
		for _, id := range list {
			entries = append(entries, deleteEntry{ID: id})
		}
		return entries
	}
	const badID = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 " +
		"letters long."
	twenty := ids(strings.Split(strings.Repeat("x", 20), "")...)
	tests := []struct {
		name    string
		entries []deleteEntry
		code    string
		text    string
	}{
		{"ten", ids("a", "b", "c", "d", "e", "f", "g", "h", "i", strings.Repeat("Z", 80)), "", ""},
		{"every letter", ids("-_azAZ09"), "", ""},
		{"empty", nil, queue.CodeEmptyBatchRequest, "There should be at least one Entry in the request."},
		{"twenty", twenty, queue.CodeTooManyEntriesInBatchRequest,
			"Maximum number of entries per request are 10. You have sent 20."},
		{"repeated", ids("a", "b", "b", "a"), queue.CodeBatchEntryIdsNotDistinct, "Id b repeated."},
		{"no id", ids(""), queue.CodeInvalidBatchEntryID, badID},
		{"space", ids("a b"), queue.CodeInvalidBatchEntryID, badID},
		{"long", ids(strings.Repeat("a", 81)), queue.CodeInvalidBatchEntryID, badID},
		{"umlaut", ids("ä"), queue.CodeInvalidBatchEntryID, badID},
	}
	for _, test := range tests {
		err := checkBatch(test.entries, "Entry")
		if codeOf(err) != test.code || err != nil && err.Error() != test.text {
			t.Errorf("%s: %v, want %s %q", test.name, err, test.code, test.text)
		}
	}
}

func TestD6CheckBatchSize(t *testing.T) {
	t.Parallel()
	entry := func(body int) sendEntry {
		return sendEntry{ID: "a", outgoing: outgoing{
			MessageBody: strings.Repeat("x", body),
			MessageAttributes: attributeList{{name: "b", DataType: "Binary", BinaryValue: []byte("1234")},
				{name: "nm", DataType: "String", StringValue: new("val")}},
			MessageSystemAttributes: attributeList{{name: "AWSTraceHeader", DataType: "String", StringValue: new("val")}},
		}}
	}
	const attributes = 2 + 6 + 3 + 1 + 6 + 4
	if err := queue.CheckBatchSize(batchSize([]sendEntry{entry(maxMessage/2 - attributes),
		entry(maxMessage/2 - attributes)})); err != nil {
		t.Errorf("a batch of exactly the limit: %v", err)
	}
	err := queue.CheckBatchSize(batchSize([]sendEntry{entry(maxMessage/2 - attributes),
		entry(maxMessage/2 - attributes + 1)}))
	if codeOf(err) != queue.CodeBatchRequestTooLong ||
		err.Error() != "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes." {
		t.Errorf("one byte more: %v", err)
	}
}

func TestUnlessAllFailed(t *testing.T) {
	t.Parallel()
	stale := &queue.Error{Code: queue.CodeReceiptHandleIsInvalid}
	tests := []struct {
		name string
		errs []error
		want error
	}{
		{"no errors", nil, nil},
		{"all well", []error{nil, nil}, nil},
		{"one entry", []error{nil, stale}, nil},
		{"every entry its own", []error{stale, stale}, nil},
		{"no queue", []error{queue.ErrNoQueue, queue.ErrNoQueue}, queue.ErrNoQueue},
		{"closed", []error{queue.ErrClosed, queue.ErrClosed}, queue.ErrClosed},
		{"closed half way", []error{nil, queue.ErrClosed}, nil},
		{"something inside", []error{inside(), inside()}, errInside},
	}
	for _, test := range tests {
		if _, got := unlessAllFailed(test.errs); !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

var errInside = errors.New("disk on fire")

func inside() error { return fmt.Errorf("reading: %w", errInside) }
