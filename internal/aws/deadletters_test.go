package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type sentBatch struct {
	URL     string `json:"QueueUrl"`
	Entries []struct {
		ID                string `json:"Id"`
		Body              string `json:"MessageBody"`
		Group             string `json:"MessageGroupId"`
		Dedup             string `json:"MessageDeduplicationId"`
		MessageAttributes map[string]struct{ DataType, StringValue string }
	}
}

func openLetters(t *testing.T, name string, refuse func(*sentBatch) *http.Response) (*DeadLetters, *[]sentBatch) {
	t.Helper()
	var calls []sentBatch
	q := openCanned(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		var batch sentBatch
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			return nil, err
		}
		calls = append(calls, batch)
		if refuse != nil {
			if answer := refuse(&batch); answer != nil {
				return answer, nil
			}
		}
		var done []string
		for _, e := range batch.Entries {
			done = append(done, fmt.Sprintf(`{"Id":%q,"MessageId":"new"}`, e.ID))
		}
		return reply(http.StatusOK, `{"Successful":[`+strings.Join(done, ",")+`]}`), nil
	}), nil)
	q.site.queue, q.url = name, strings.TrimSuffix(q.url, "jobs")+name
	return &DeadLetters{Queue: q, To: func() string { return "dead" }, ARN: "arn:aws:sqs:eu-west-1:123456789012:" + name,
		Instance: "worker-1"}, &calls
}

func lettersOf(bodies ...string) (letters []queue.DeadLetter) {
	for i, body := range bodies {
		m := &queue.Message{ID: fmt.Sprint("m-", i), Body: body, GroupID: "g"}
		letters = append(letters, queue.DeadLetter{Message: m, Failure: queue.Failure{Reason: "status 500",
			Answer: "secret", MessageID: m.ID}})
	}
	return letters
}

func TestDeadLettersAreSentToTheSiblingQueue(t *testing.T) {
	for _, name := range []string{"jobs", "jobs.fifo"} {
		d, calls := openLetters(t, name, nil)
		if errs := d.DeadLetter(t.Context(), lettersOf("a", "b")); errs != nil {
			t.Fatal(errs)
		}
		batch := (*calls)[0]
		e := batch.Entries[1]
		var f queue.Failure
		if err := json.Unmarshal([]byte(e.MessageAttributes[queue.AttributeReason].StringValue), &f); err != nil {
			t.Fatal(err)
		}
		wantDedup := map[string]string{"jobs": "", "jobs.fifo": "m-1"}[name]
		if len(*calls) != 1 || batch.URL != "https://sqs.eu-west-1.amazonaws.com/123456789012/dead" ||
			len(batch.Entries) != 2 || e.Body != "b" || e.Group != "g" || e.Dedup != wantDedup ||
			f.Source != d.ARN || f.Instance != "worker-1" || f.Answer != "secret" || f.Reason != "status 500" {
			t.Errorf("%s: %+v, %+v", name, batch, f)
		}
	}
}

func TestDeadLettersThatAreNotSent(t *testing.T) {
	full := lettersOf("a", "b", "c")
	for i := range 10 {
		full[1].Message.Attributes = append(full[1].Message.Attributes,
			queue.Attribute{Name: fmt.Sprint("a", i), Type: "Number", Value: "1"})
	}
	d, calls := openLetters(t, "jobs", func(b *sentBatch) *http.Response {
		return reply(http.StatusOK, `{"Successful":[{"Id":"0","MessageId":"new"}],"Failed":[{"Id":"1","Code":"InternalError",`+
			`"SenderFault":false,"Message":"try again"}]}`)
	})
	errs := d.DeadLetter(t.Context(), full)
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], errNoRoomForReason) ||
		errs[2] == nil || !strings.Contains(errs[2].Error(), "try again") {
		t.Errorf("%v", errs)
	}
	if len(*calls) != 1 || len((*calls)[0].Entries) != 2 {
		t.Errorf("sent %+v", *calls)
	}
	d, _ = openLetters(t, "jobs", func(*sentBatch) *http.Response {
		return refuse(http.StatusForbidden, "AccessDeniedException", "AccessDenied", "not authorized")
	})
	if errs := d.DeadLetter(t.Context(), lettersOf("a", "b")); len(errs) != 2 || !errors.Is(errs[0], queue.ErrDenied) ||
		!errors.Is(errs[1], queue.ErrDenied) {
		t.Errorf("refused: %v", errs)
	}
	d, calls = openLetters(t, "jobs", nil)
	d.To = func() string { return "" }
	if errs := d.DeadLetter(t.Context(), lettersOf("a")); len(errs) != 1 || !errors.Is(errs[0], errNoDeadLetterQueue) ||
		len(*calls) > 0 {
		t.Errorf("without a dead-letter queue: %v, %d calls", errs, len(*calls))
	}
}

func TestLargeDeadLettersTravelInSeveralCalls(t *testing.T) {
	d, calls := openLetters(t, "jobs", nil)
	d.HideAnswers = true
	large := strings.Repeat("b", 400<<10)
	if errs := d.DeadLetter(t.Context(), lettersOf(large, large, large, "small", large)); errs != nil {
		t.Fatal(errs)
	}
	var sizes []int
	for _, c := range *calls {
		sizes = append(sizes, len(c.Entries))
		for _, e := range c.Entries {
			if strings.Contains(e.MessageAttributes[queue.AttributeReason].StringValue, "secret") {
				t.Error("the answer was not left out")
			}
		}
	}
	if fmt.Sprint(sizes) != "[2 3]" {
		t.Errorf("calls with %v messages, want [2 3]", sizes)
	}
}

func TestDeadLettersOnAForeignServer(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	t.Setenv("AWS_ENDPOINT_URL_SQS", testpeer.Moto(t, "sqs"))
	s, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fifo := map[string]string{"FifoQueue": "true"}
	dead, err := s.Create(t.Context(), "dead.fifo", fifo, nil)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Create(t.Context(), "jobs.fifo", fifo, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &DeadLetters{Queue: jobs, To: func() string { return "dead.fifo" }, ARN: "arn:aws:sqs:us-east-1:1:jobs.fifo"}
	letters := lettersOf("\ta\r\n\u00e9", "b")
	letters[0].Message.Attributes = []queue.Attribute{{Name: "blob", Type: "Binary", Value: "\x00\xff"}}
	letters[0].Failure.Answer = "\x00 \"quoted\" \ufffe <&> \u00e9\U0001f600"
	for range 2 {
		if errs := d.DeadLetter(t.Context(), letters); errs != nil {
			t.Fatal(errs)
		}
	}
	wait := time.Duration(0)
	got, err := dead.Receive(t.Context(), queue.ReceiveRequest{Max: queue.MaxBatch, Wait: &wait})
	if err != nil || len(got) != 2 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	others, f := queue.CutReason(got[0].Attributes)
	if got[0].Body != letters[0].Message.Body || got[0].GroupID != "g" || got[0].DedupID != "m-0" || got[1].Body != "b" ||
		f == nil || f.Answer != "\x00 \"quoted\" \ufffd <&> \u00e9\U0001f600" || f.Source != d.ARN {
		t.Errorf("received %+v, %+v", got, f)
	}
	if diff := cmp.Diff(letters[0].Message.Attributes, others); diff != "" {
		t.Errorf("attributes (-want +got)\n%s", diff)
	}
}
