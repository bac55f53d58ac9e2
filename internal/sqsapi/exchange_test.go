package sqsapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The files in testdata/exchanges contain a request and its reply, byte for byte: of each action in each protocol, and
// errors. Each file is replayed with its own broker in virtual time, and has three parts:
//
//	=== before
//	CreateQueue {"QueueName":"jobs"}        preparing requests
//	=== request
//	POST / HTTP/1.1                         the request without its Content-Length
//	=== reply
//	200                                     status, headers and body
//
// Placeholders of the same length replace IDs and receipt handles.
func TestA1A8Exchanges(t *testing.T) {
	t.Parallel()
	for _, file := range exchangeFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			replayFile(t, file, exchanged)
		})
	}
}

func exchangeFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/exchanges/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges: %v", err)
	}
	return files
}

func TestA1A8EveryActionHasAnExchange(t *testing.T) {
	t.Parallel()
	files := exchangeFiles(t)
	for _, action := range slices.Sorted(maps.Keys(sqsActions())) {
		for protocol, sign := range map[string]string{"json": "X-Amz-Target: AmazonSQS." + action + "\n",
			"query": "Action=" + action} {
			file := "testdata/exchanges/" + action + "." + protocol + ".txt"
			text, err := os.ReadFile(file)
			if !slices.Contains(files, file) || err != nil || !strings.Contains(string(text), sign) {
				t.Errorf("%s is missing or has no %q: %v", file, sign, err)
			}
		}
	}
}

func exchanged(t *testing.T, file string) string {
	t.Helper()
	head, rest, ok := strings.Cut(file, "=== request\n")
	before, found := strings.CutPrefix(head, "=== before\n")
	request, _, replied := strings.Cut(rest, "=== reply\n")
	if !ok || !found || !replied {
		t.Fatal("a part is missing")
	}
	var s stable
	verbatim := func(value string) string { return value }
	h := newHandler(t, nil)
	for line := range strings.Lines(before) {
		action, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.replace(mustCall(t, h, action, s.fill(body, verbatim)))
		synctest.Wait()
	}
	escape := verbatim
	if strings.Contains(request, "Content-Type: "+formType) {
		escape = url.QueryEscape
	}
	w := serve(h, rawRequest(t, s.fill(request, escape)))
	reply := fmt.Sprintf("%d\n", w.Code)
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		reply += name + ": " + strings.Join(w.Header()[name], ", ") + "\n"
	}
	reply += "\n" + w.Body.String()
	return head + "=== request\n" + request + "=== reply\n" + s.replace(reply) + "\n"
}

func rawRequest(t *testing.T, text string) *http.Request {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	lines := strings.Split(head, "\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 {
		t.Fatalf("%q is no request line", lines[0])
	}
	r := httptest.NewRequest(parts[0], parts[1], strings.NewReader(body))
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	return r
}

var volatile = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|` +
	`(ReceiptHandle|TaskHandle)(":"|>)([^"<]+)`)

// stable replaces volatile text with placeholders of the same length.
type stable struct{ values, names []string }

func (s *stable) replace(text string) string {
	for _, m := range volatile.FindAllStringSubmatch(text, -1) {
		value, fill := m[0], "0"
		if m[3] != "" {
			value, fill = m[3], m[1][:1]
		}
		if slices.Contains(s.values, value) {
			continue
		}
		name := []byte(strings.Repeat(fill, len(value)))
		if fill == "0" {
			copy(name, "00000000-0000-4000-8000-000000000000")
		}
		copy(name[len(name)-2:], fmt.Sprintf("%02d", len(s.values)))
		s.values, s.names = append(s.values, value), append(s.names, string(name))
	}
	for i := range s.values {
		text = strings.ReplaceAll(text, s.values[i], s.names[i])
	}
	return text
}

// fill replaces <0> with the first value, <1> with the second, and so on.
func (s *stable) fill(text string, escape func(string) string) string {
	for i := range s.values {
		text = strings.ReplaceAll(text, fmt.Sprintf("<%d>", i), escape(s.values[i]))
	}
	return text
}

func TestA4EmptyListsAreAbsent(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	const onQueue = "/000000000000/jobs?Action="
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	for _, test := range []struct{ action, json, want, query, wantXML string }{
		{"ReceiveMessage", `{"QueueUrl":"jobs"}`, `{}`, onQueue, "<ReceiveMessageResult/>"},
		{"ListQueues", `{"QueueNamePrefix":"x"}`, `{}`, "/?QueueNamePrefix=x&Action=", "<ListQueuesResult/>"},
		{"ListQueueTags", `{"QueueUrl":"jobs"}`, `{}`, onQueue, "<ListQueueTagsResult/>"},
		{"GetQueueAttributes", `{"QueueUrl":"jobs"}`, `{}`, onQueue, "<GetQueueAttributesResult/>"},
		{"DeleteMessageBatch", `{"QueueUrl":"jobs","Entries":[{"Id":"a","ReceiptHandle":""}]}`,
			`{"Failed":[{"Id":"a","SenderFault":true,"Code":"InvalidParameterValue",` +
				`"Message":"The request must contain the parameter ReceiptHandle."}]}`,
			"/000000000000/jobs?DeleteMessageBatchRequestEntry.1.Id=a&Action=",
			"<DeleteMessageBatchResult><BatchResultErrorEntry><Id>a</Id>"},
	} {
		if got := mustCall(t, h, test.action, test.json); got != test.want {
			t.Errorf("%s answers %s, want %s", test.action, got, test.want)
		}
		if got := query(t, h, test.query+test.action, "").Body.String(); !strings.Contains(got, test.wantXML) {
			t.Errorf("%s answers %s, want %s", test.action, got, test.wantXML)
		}
	}
}

// Attributes are strings. Times are integers: seconds for queues, milliseconds for messages.
func TestA7NumbersAndTimesOfAttributes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, nil)
		time.Sleep(1234 * time.Millisecond)
		mustCall(t, h, "CreateQueue", `{"QueueName":"jobs","Attributes":{"DelaySeconds":"0"}}`)
		mustCall(t, h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"x"}`)
		answers := mustCall(t, h, "GetQueueAttributes", `{"QueueUrl":"jobs","AttributeNames":["All"]}`) +
			mustCall(t, h, "ReceiveMessage", `{"QueueUrl":"jobs","AttributeNames":["All"]}`)
		for _, want := range []string{`"CreatedTimestamp":"946684801"`, `"LastModifiedTimestamp":"946684801"`,
			`"ApproximateNumberOfMessages":"1"`, `"VisibilityTimeout":"30"`, `"SentTimestamp":"946684801234"`,
			`"ApproximateFirstReceiveTimestamp":"946684801234"`, `"ApproximateReceiveCount":"1"`} {
			if !strings.Contains(answers, want) {
				t.Errorf("%s is missing in %s", want, answers)
			}
		}
	})
}
