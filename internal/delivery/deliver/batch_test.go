package deliver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

// lettersOf returns one letter per result: D for done, F for failed, U for unreached.
func lettersOf(results []queue.Result) (s string) {
	for _, r := range results {
		s += strings.ToUpper(r.Outcome.String()[:1])
	}
	return s
}

func TestAppGetsSeveralMessages(t *testing.T) {
	t.Parallel()
	long := `{"batchItemFailures":[]` + strings.Repeat(" ", maxResponseBody) + "}"
	terminal, _ := ParseStatusSet("400")
	for _, tt := range []struct{ name, answer, want, reason string }{
		{"nothing", answerWith("200", "", ""), "DDD", ""},
		{"a word", answerWith("200", "", "OK"), "DDD", ""},
		{"another object", answerWith("200", "", `{"ok":true}`), "DDD", ""},
		{"none failed", answerWith("200", "", `{"batchItemFailures":[]}`), "DDD", ""},
		{"one failed", answerWith("200", "", `{"batchItemFailures":[{"itemIdentifier":"b"}]}`), "DFD",
			"reported in batchItemFailures"},
		{"an unknown one failed", answerWith("200", "", `{"batchItemFailures":[{"itemIdentifier":"z"}]}`), "FFF",
			"batchItemFailures names a message that was not in the batch"},
		{"an empty id", answerWith("200", "", `{"batchItemFailures":[{"itemIdentifier":""}]}`), "FFF",
			"batchItemFailures has an entry without an itemIdentifier"},
		{"broken JSON", answerWith("200", "", `{"batchItemFailures":[{"itemIdentifier":"b"}]`), "FFF",
			"the response is not JSON"},
		{"a success that is too long to be read", answerWith("200", "", long), "FFF", "response to a batch longer than 64 KiB"},
		{"cut off", "HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{", "FFF", "response was cut off"},
		{"no success", answerWith("500", "", `{"batchItemFailures":[]}`), "FFF", "HTTP 500"},
		{"a terminal status", answerWith("400", "", ""), "FFF", "HTTP 400"},
		{"dropped", answerWith("500", "Tendril-Outcome: drop\r\n", ""), "DDD", "HTTP 500 (app says drop)"},
	} {
		var got post
		h, a := start(t, func(c *appConn) {
			if p, ok := c.read(); ok {
				got = p
				c.write(tt.answer)
			}
		}, func(o *Options) {
			o.QueueARN, o.MimeType, o.TerminalCodes = jobsARN, "text/plain", terminal
		})
		ms := messages("a", "b", "c")
		ms[1].Attributes = []queue.Attribute{text("kind", "thumbnail")}
		results := h.DeliverBatch(context.Background(), ms)
		reason := ""
		for _, r := range results {
			reason += strings.TrimPrefix(r.Reason, reason)
			if r.Instruction.DeadLetters() {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
		if lettersOf(results) != tt.want || reason != tt.reason {
			t.Errorf("%s: got %s, %q; want %s, %q", tt.name, lettersOf(results), reason, tt.want, tt.reason)
		}
		a.wantCounts(t, 1, 1)
		var event events.SQSEvent
		if err := json.Unmarshal([]byte(got.body), &event); err != nil || len(event.Records) != 3 ||
			event.Records[1].MessageId != "b" || *event.Records[1].MessageAttributes["kind"].StringValue != "thumbnail" ||
			event.Records[2].Body != `{"n":1}` || event.Records[2].EventSourceARN != jobsARN {
			t.Errorf("%s: posted %s, %v", tt.name, got.body, err)
		}
		header := got.Header.Clone()
		if diff := cmp.Diff(http.Header{"Content-Type": {"application/json"}, "User-Agent": {"aws-sqsd/3.0 tendril/1.0"},
			"X-Aws-Sqsd-Queue": {"jobs"}, "X-Aws-Sqsd-Path": {"/"}, "X-Tendril-Batch-Size": {"3"},
			"Content-Length": {strconv.Itoa(len(got.body))}}, header); diff != "" {
			t.Errorf("%s: headers (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestBatchOfOne(t *testing.T) {
	t.Parallel()
	terminal, _ := ParseStatusSet("400")
	h, _ := start(t, alwaysAnswer(answerWith("400", "", "")), func(o *Options) {
		o.QueueARN, o.TerminalCodes = jobsARN, terminal
	})
	if r := h.DeliverBatch(context.Background(), messages("a")); r[0].Instruction != queue.TerminalStatus {
		t.Errorf("%+v", r)
	}
}

func TestRunsAreNotBatched(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, arn string
		given     []string // @ marks scheduled runs
		fails     string
		posts     []string
		want      string
	}{
		{"a run in between", jobsARN, []string{"a", "b", "@r", "c", "d"}, "", []string{"a b", "@r", "c d"}, "DDDDD"},
		{"runs alone", jobsARN, []string{"@r", "@s"}, "@r", []string{"@r", "@s"}, "FD"},
		{"a group behind a failure", jobsARN + ".fifo", []string{"g/a", "h/b", "g/@r", "g/c", "h/d"}, "a",
			[]string{"a b", "d"}, "FDFFD"},
		{"a group behind a run that failed", jobsARN + ".fifo", []string{"g/@r", "g/a", "h/b"}, "@r",
			[]string{"@r", "b"}, "FFD"},
		{"tenants are no groups", jobsARN, []string{"g/a", "g/@r", "g/c"}, "a", []string{"a", "@r", "c"}, "FDD"},
		{"no batches", "", []string{"a", "b"}, "", []string{"a", "b"}, "DD"},
	} {
		var mu sync.Mutex
		var posts []string
		h, _ := start(t, func(c *appConn) {
			for p, ok := c.read(); ok; p, ok = c.read() {
				id, failures := p.Header.Get("X-Aws-Sqsd-Msgid"), ""
				var event events.SQSEvent
				if json.Unmarshal([]byte(p.body), &event) == nil && len(event.Records) > 0 {
					var ids []string
					for _, r := range event.Records {
						ids = append(ids, r.MessageId)
						if r.MessageId == tt.fails {
							failures = `{"batchItemFailures":[{"itemIdentifier":"` + r.MessageId + `"}]}`
						}
					}
					id = strings.Join(ids, " ")
				}
				mu.Lock()
				posts = append(posts, id)
				mu.Unlock()
				status := "200"
				if id == tt.fails && failures == "" {
					status = "500"
				}
				c.write(answerWith(status, "", failures))
			}
		}, func(o *Options) { o.QueueARN = tt.arn })
		ms := messages(tt.given...)
		for _, m := range ms {
			if strings.HasPrefix(m.ID, "@") {
				m.Run = &queue.Run{Path: "/task", Task: "task"}
			}
		}
		results := h.DeliverBatch(context.Background(), ms)
		if diff := cmp.Diff(tt.posts, posts); diff != "" || lettersOf(results) != tt.want {
			t.Errorf("%s: %s, want %s; posts (-want +got)\n%s", tt.name, lettersOf(results), tt.want, diff)
		}
		posted := strings.Fields(strings.Join(posts, " "))
		for i, r := range results {
			if isPosted := slices.Contains(posted, ms[i].ID); r.Unsent == isPosted {
				t.Errorf("%s: message %s was posted: %t, and its result says unsent: %t", tt.name, ms[i].ID, isPosted, r.Unsent)
			}
		}
	}
}

func TestUnreachedBatch(t *testing.T) {
	t.Parallel()
	var parts int
	results := InParts(messages("a", "@b", "c", "d"), false, func(m *queue.Message) bool { return m.ID[0] == '@' },
		func(part []*queue.Message) []queue.Result {
			parts++
			return make([]queue.Result, len(part))
		})
	if parts != 3 || lettersOf(results) != "FFFF" {
		t.Errorf("%d parts, %s", parts, lettersOf(results))
	}
	parts = 0
	results = InParts(messages("a", "@b", "c", "d"), false, func(m *queue.Message) bool { return m.ID[0] == '@' },
		func([]*queue.Message) []queue.Result {
			parts++
			return []queue.Result{{Outcome: queue.Unreached, Reason: "connection refused", Duration: 5}}
		})
	if parts != 1 || lettersOf(results) != "UUUU" || results[0].Duration != 5 || results[3].Duration != 0 {
		t.Errorf("%d parts, %+v", parts, results)
	}
}

func TestBatchNeedsAnARN(t *testing.T) {
	t.Parallel()
	if _, err := NewClient(&Options{Target: "http://localhost:1/", QueueARN: "jobs"}); err == nil {
		t.Error("accepted")
	}
}

func TestExchangeOfABatchIsRecorded(t *testing.T) {
	t.Parallel()
	var got []*Exchange
	h, _ := start(t, alwaysAnswer(answerWith("200", "", `{"batchItemFailures":[]}`)), func(o *Options) {
		o.QueueARN = jobsARN
		o.Events.Record = func(m *queue.Message) func(*Exchange) {
			if m.ID != "b" {
				return nil
			}
			return func(x *Exchange) { got = append(got, x) }
		}
	})
	for _, ms := range [][]*queue.Message{messages("a", "b"), messages("a", "c")} {
		if results := h.DeliverBatch(context.Background(), ms); lettersOf(results) != "DD" {
			t.Errorf("%+v", results)
		}
	}
	if len(got) != 1 || !strings.Contains(got[0].Body, `"messageId":"b"`) ||
		got[0].AnswerBody != `{"batchItemFailures":[]}` {
		t.Errorf("recorded %+v", got)
	}
}
