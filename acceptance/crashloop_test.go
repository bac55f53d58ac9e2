package acceptance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"tendril/internal/testing/testpeer"
)

type crashingApp struct {
	*httptest.Server
	victims chan *process

	mu    sync.Mutex
	posts []string
	good  []string
}

func newCrashingApp(t *testing.T) *crashingApp {
	k := &crashingApp{victims: make(chan *process, 1)}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		post := r.Header.Get("X-Aws-Sqsd-Receive-Count") + "/" + r.Header.Get("X-Tendril-Attempt")
		k.mu.Lock()
		if string(body) != "poison" {
			k.good = append(k.good, post)
			k.mu.Unlock()
			return
		}
		k.posts = append(k.posts, post)
		k.mu.Unlock()
		p := <-k.victims
		time.Sleep(20 * time.Millisecond) // like an app that exhausts the machine's memory
		p.kill()
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(k.Close)
	return k
}

// Receives of a message fetched with the poison message do not count.
func TestMessageThatKillsTendrilAtOnceIsDeadLettered(t *testing.T) {
	t.Parallel()
	worker := []string{"--max-retries", "3", "--visibility-timeout", "5", "--error-visibility-timeout", "0", "--console",
		"off", "--http-connections", "1"}
	tests := []struct {
		name, queue, dead string
		remote            bool
	}{
		{"queue and worker in one process", "jobs", "jobs-dead", false},
		{"FIFO queue", "jobs.fifo", "jobs-dead.fifo", false},
		{"queue beside a worker", "jobs", "jobs-dead", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			app, dir, listen := newCrashingApp(t), t.TempDir(), "127.0.0.1:"+testpeer.FreePort(t)
			begin := func() *process {
				args := append([]string{"up", "--data-dir", dir, "--listen", listen, "--queue", test.queue, "--target", app.URL},
					worker...)
				if test.remote {
					args = []string{"serve", "--data-dir", dir, "--listen", listen, "--console", "off", "--log-format", "json"}
				}
				p, _ := start(t, args...)
				return p
			}
			p := begin()
			c := client("http://" + listen)
			if test.remote {
				dead := createQueue(t, c, test.dead, nil)
				policy := `{"maxReceiveCount":3,"deadLetterTargetArn":"` + attributes(t.Context(), t, c, dead)["QueueArn"] + `"}`
				createQueue(t, c, test.queue, map[string]string{"RedrivePolicy": policy})
				startWith(t, []string{"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"}, append([]string{"up", "--backend",
					"sqs", "--endpoint-url", "http://" + listen, "--queue", test.queue, "--target", app.URL, "--data-dir",
					t.TempDir()}, worker...)...)
			}
			url := "http://" + listen + "/000000000000/" + test.queue
			batch := &sqs.SendMessageBatchInput{QueueUrl: &url}
			for _, body := range []string{"poison", "good"} {
				entry := types.SendMessageBatchRequestEntry{Id: &body, MessageBody: &body}
				if test.queue == "jobs.fifo" {
					entry.MessageGroupId, entry.MessageDeduplicationId = aws.String("g"), &body
				}
				batch.Entries = append(batch.Entries, entry)
			}
			app.victims <- p
			if _, err := c.SendMessageBatch(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			for starts := 1; starts <= 3; starts++ {
				<-p.exited
				p = begin()
				if starts < 3 {
					app.victims <- p
				}
			}
			deadURL := "http://" + listen + "/000000000000/" + test.dead
			for range 600 {
				app.mu.Lock()
				posted := len(app.good)
				app.mu.Unlock()
				if posted > 0 && attributes(t.Context(), t, c, deadURL)["ApproximateNumberOfMessages"] == "1" {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			app.mu.Lock()
			defer app.mu.Unlock()
			want := []string{"1/1", "2/2", "3/3"}
			if !slices.Equal(app.posts, want) {
				t.Errorf("posted with the receive counts and attempts %v, want %v", app.posts, want)
			}
			if len(app.good) != 1 || !test.remote && app.good[0] != "1/1" {
				t.Errorf("the message that was fetched beside it was posted with %v, want one post, of a first receive", app.good)
			}
			if n := attributes(t.Context(), t, c, deadURL)["ApproximateNumberOfMessages"]; n != "1" {
				t.Errorf("%s messages in the dead-letter queue, want 1", n)
			}
		})
	}
}
