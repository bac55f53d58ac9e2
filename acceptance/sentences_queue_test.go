package acceptance

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/testing/testpeer"
)

func TestSentencesCapacity(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "orders", nil)
	free := make(chan struct{})
	var mu sync.Mutex
	now, most := 0, 0
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-free
		mu.Lock()
		now--
		mu.Unlock()
	})
	q.up(t, app, "--http-connections", "2")
	q.put(t, "a", "b", "c", "d", "e", "f")
	app.await(t, "two are in work", func(all []posted) bool { return len(all) >= 2 })
	time.Sleep(700 * time.Millisecond) // time for unwanted messages
	held := attributes(t.Context(), t, q.Client, q.url)["ApproximateNumberOfMessagesNotVisible"]
	inWork := len(app.all())

	// This makes SQS redeliver the message in flight.
	handle := q.receipts(app.all()[0].body)[0]
	if _, err := q.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.url,
		ReceiptHandle: &handle}); err != nil {
		t.Fatal(err)
	}
	close(free)
	q.awaitEmpty(t, app)
	expect(t, "A9", held, "2")
	for _, id := range []string{"A63", "E2"} {
		row(t, id, func(t *testing.T) {
			if most != 2 || inWork != 2 {
				t.Errorf("%d POSTs were open at once, %d at first, want 2", most, inWork)
			}
		})
	}
	expect(t, "A14", fmt.Sprint(counts(app.all(), app.all()[0].body)), "[1]")
}

func TestSentencesExistingQueue(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "jobs", map[string]string{"MessageRetentionPeriod": "3600", "VisibilityTimeout": "11"})
	dead := createQueue(t, q.Client, "letters", nil)
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"3"}`, attributes(t.Context(), t, q.Client, dead)["QueueArn"])
	if _, err := q.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q.url,
		Attributes: map[string]string{"RedrivePolicy": policy}}); err != nil {
		t.Fatal(err)
	}
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
		if p.body == "bad" {
			w.WriteHeader(500)
		}
	})
	p := q.up(t, app, "--max-retries", "7", "--error-visibility-timeout", "0")
	q.put(t, "bad")
	row(t, "A28", func(t *testing.T) {
		eventually(t, "the message is a dead letter", func() bool {
			return attributes(t.Context(), t, q.Client, dead)["ApproximateNumberOfMessages"] == "1"
		})
		if got := fmt.Sprint(counts(app.all(), "bad")); got != "[1 2 3]" {
			t.Errorf("receive counts %s, and the queue's own policy allows 3", got)
		}
	})
	row(t, "A74", func(t *testing.T) {
		p.await(t, "the conflict", func(e event) bool {
			return e.Msg == "queue attributes affect the settings" && strings.Contains(e.attribute("detail"), "1h")
		})
	})
	row(t, "A71", func(t *testing.T) {
		if got := attributes(t.Context(), t, q.Client, q.url)["MessageRetentionPeriod"]; got != "3600" {
			t.Errorf("the queue's retention became %s", got)
		}
		p.await(t, "what it means", func(e event) bool {
			return e.Msg == "queue attributes affect the settings" && strings.Contains(e.raw, "retention")
		})
	})
	row(t, "A77", func(t *testing.T) {
		bundle := writeBundle(t, map[string]string{"Procfile": "web: python3 app.py\n",
			".ebextensions/alarm.config": "Resources:\n  Busy:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmName: busy\n" +
				"      Namespace: AWS/SQS\n      MetricName: ApproximateNumberOfMessagesVisible\n      Statistic: Average\n" +
				"      Period: 300\n      EvaluationPeriods: 1\n      Threshold: 77\n      ComparisonOperator: GreaterThanThreshold\n"})
		out, code := tendril(t, bundle, []string{"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1"},
			"generate", "alarms", "--queue-url", q.url, "--name", "shop", "--cloudwatch", "on", bundle)
		if code != 0 {
			t.Errorf("exit status %d", code)
		}
		matches(t, out, `"Threshold": 77`)
	})
	row(t, "A81", func(t *testing.T) {
		p.await(t, "the queue is named", func(e event) bool { return e.QueueURL == q.watched || e.QueueURL == q.url })
	})
	row(t, "B19", func(t *testing.T) { // any program can send, such as a form that uses the Query protocol
		answer, err := http.PostForm(q.url, url.Values{"Action": {"SendMessage"}, "MessageBody": {"from a form"}})
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		app.await(t, "it came", func(all []posted) bool { return len(counts(all, "from a form")) == 1 })
	})
}

func TestSentencesFIFO(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "jobs.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) { time.Sleep(20 * time.Millisecond) })
	for _, body := range []string{"1", "2", "3", "4", "5"} {
		send(t, q.Client, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body, MessageGroupId: new("g")})
	}
	q.up(t, app)
	all := app.await(t, "all came", func(all []posted) bool { return len(all) >= 5 })
	row(t, "A59", func(t *testing.T) {
		order := ""
		for _, p := range all {
			order += p.body
		}
		for i := 1; i < len(all); i++ {
			if all[i].at.Sub(all[i-1].at) < 15*time.Millisecond {
				t.Errorf("%s was posted before %s was done", all[i].body, all[i-1].body)
			}
		}
		if order != "12345" {
			t.Errorf("the order is %s", order)
		}
	})
}

func TestSentencesInstanceEnds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	free := make(chan struct{})
	hang := func(w http.ResponseWriter, r *http.Request, p posted) {
		switch p.body {
		case "stuck":
			<-r.Context().Done()
		case "short":
			mu.Lock()
			wait := free
			mu.Unlock()
			<-wait
		}
	}
	t.Run("terminated", func(t *testing.T) {
		t.Parallel()
		q := watchQueue(t, "jobs", nil)
		first, second := newScript(t, hang), newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
		p := q.up(t, first, "--visibility-timeout", "10", "--shutdown-timeout", "5s", "--http-connections", "2")
		q.put(t, "stuck", "short")
		first.await(t, "both are in work", func(all []posted) bool { return len(all) >= 2 })
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.await(t, "it stops", func(e event) bool { return strings.HasPrefix(e.Msg, "draining") })
		time.Sleep(300 * time.Millisecond)
		q.put(t, "late")
		mu.Lock()
		close(free)
		free = make(chan struct{})
		mu.Unlock()
		code := func() int { <-p.exited; return p.cmd.ProcessState.ExitCode() }()
		late := len(counts(first.all(), "late"))
		q.up(t, second)
		all := second.awaitWithin(t, 10*time.Second+waitsFor(), "the others came", func(all []posted) bool {
			return len(all) >= 2
		})
		time.Sleep(100 * time.Millisecond)
		for _, id := range []string{"A55", "A80"} {
			row(t, id, func(t *testing.T) {
				if got := counts(all, "stuck"); len(got) != 1 {
					t.Errorf("the unfinished message came %d times to the other instance", len(got))
				}
			})
		}
		for _, id := range []string{"C2", "C24", "E21"} {
			row(t, id, func(t *testing.T) {
				if got := counts(second.all(), "short"); len(got) != 0 {
					t.Errorf("a job that was finished during the stop came again: %v", got)
				}
			})
		}
		for _, id := range []string{"C3", "C30"} {
			expect(t, id, late, 0)
		}
		row(t, "E22", func(t *testing.T) {
			receives := len(q.receipts("stuck")) + len(q.receipts("short")) + len(q.receipts("late"))
			if posts := len(first.all()) + len(second.all()); posts != receives || code != 3 { // a stuck message delays the exit
				t.Errorf("%d messages were received, and %d posted; exit status %d", receives, posts, code)
			}
		})
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		q := watchQueue(t, "jobs", nil)
		first, second := newScript(t, hang), newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
		p := q.up(t, first, "--visibility-timeout", "3")
		q.put(t, "stuck")
		first.await(t, "it is in work", func(all []posted) bool { return len(all) >= 1 })
		p.kill()
		q.up(t, second, "--visibility-timeout", "3")
		again := second.await(t, "it came again", func(all []posted) bool { return len(all) >= 1 })[0]
		for _, id := range []string{"A56", "D3"} {
			row(t, id, func(t *testing.T) {
				if again.body != "stuck" || again.count != 2 {
					t.Errorf("it came as %q, receive %d", again.body, again.count)
				}
				between(t, "the time until another worker had it", again.sinceFirstReceive(t), 3*time.Second, 30*time.Second)
			})
		}
	})
}

func TestSentencesConnections(t *testing.T) {
	t.Parallel()
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		q := watchQueue(t, "jobs", nil)
		address := fullListener(t)
		began := time.Now()
		p := launch(t, "up", "--queue-url", q.watched, "--target", "http://"+address, "--console", "off", "--connect-timeout", "1")
		q.put(t, "x")
		row(t, "D13", func(t *testing.T) {
			p.await(t, "the connection timed out", func(e event) bool { return strings.Contains(e.raw, "within 1s") })
			between(t, "the time to the timeout", time.Since(began), 950*time.Millisecond, 15*time.Second)
		})
	})
	t.Run("foreign", func(t *testing.T) {
		t.Parallel()
		port := testpeer.FreePort(t)
		p, started, _ := appUp(t, map[string]string{"Procfile": "web: echo here; exec sleep 1000\n"}, "--port", port)
		p.await(t, "the app runs", func(e event) bool { return e.Line == "here" })
		foreign := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		go http.Serve(l, foreign.Config.Handler)
		t.Cleanup(func() { l.Close() })
		sendBody(t, started, "secret")
		time.Sleep(2 * time.Second)
		row(t, "B7", func(t *testing.T) {
			for _, p := range foreign.all() {
				if p.body == "secret" {
					t.Error("a foreign program got a message")
				}
			}
		})
	})
}

func fullListener(t *testing.T) string {
	t.Helper()
	fd, port := testpeer.BoundSocket(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for range 4 { // fills the kernel's accept queue
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { c.Close() })
	}
	return address
}

// The shortest retention period is a minute.
func TestSentencesRetention(t *testing.T) {
	t.Parallel()
	const minute, longer = "60", 90 * time.Second
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		c, url := endpoint(t, "short", map[string]string{"MessageRetentionPeriod": minute})
		began := time.Now()
		send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("old")})
		for deadline := began.Add(longer); !empty(t, c, url)(nil) && time.Now().Before(deadline); {
			time.Sleep(200 * time.Millisecond)
		}
		row(t, "A15", func(t *testing.T) {
			between(t, "the time until the message was gone", time.Since(began), 58*time.Second, longer-time.Second)
		})
	})
	t.Run("daemon", func(t *testing.T) {
		t.Parallel()
		q := watchQueue(t, "long", nil)
		app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) { w.WriteHeader(500) })
		p := q.up(t, app, "--retention-period", minute, "--error-visibility-timeout", "10", "--max-retries", "2")
		sent := time.Now()
		q.put(t, "bad")
		for deadline := sent.Add(longer); !empty(t, q.Client, q.url)(nil) && time.Now().Before(deadline); {
			time.Sleep(200 * time.Millisecond)
		}
		gone := time.Since(sent)
		row(t, "A72", func(t *testing.T) {
			between(t, "the time until the daemon deleted the message", gone, 58*time.Second, longer-time.Second)
			eventually(t, "one deletion, and its line in the log", func() bool {
				isExpiry := func(e event) bool { return strings.Contains(e.Msg, "past its retention") }
				return len(q.made("DeleteMessage")) == 1 && p.count(isExpiry) > 0
			})
		})
		for _, id := range []string{"A30", "A79"} {
			row(t, id, func(t *testing.T) {
				if n := len(app.all()); n < 5 {
					t.Errorf("without a dead-letter queue there were %d attempts in a minute, one each 10 s", n)
				}
			})
		}
	})
}

// Processes and their children are killed after WORKER_SHUTDOWN_DELAY, but not before 10 s.
func TestSentencesStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delay       string
		least, most time.Duration
		rows        []string
	}{
		"small":  {"0", 9500 * time.Millisecond, 25 * time.Second, []string{"C7"}},
		"larger": {"12", 11500 * time.Millisecond, 27 * time.Second, []string{"C5", "C6", "C8", "C9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			signals, mark := filepath.Join(dir, "told"), "SENTENCES_MARK="+dir
			p, _, _ := appUp(t, map[string]string{
				"Procfile": appLine(filepath.Join(dir, "journal"), "1") + "stuck: export " + mark + "; trap 'date >> " + signals +
					"' TERM; (trap '' TERM; exec sleep 1000) & echo begun; while :; do sleep 0.1; done\n",
				".ebextensions/worker.config": "option_settings:\n  aws:elasticbeanstalk:application:environment:\n" +
					"    WORKER_SHUTDOWN_DELAY: \"" + c.delay + "\"\n",
			})
			awaitWeb(t, p)
			p.await(t, "the worker runs", func(e event) bool { return e.Line == "begun" })
			began := time.Now()
			p.terminate(t)
			took, left := time.Since(began), survivors(mark)
			row(t, "C1", func(t *testing.T) {
				if lines, _ := filepath.Glob(signals); len(lines) != 1 {
					t.Error("the worker was not told with TERM")
				}
			})
			for _, id := range c.rows {
				row(t, id, func(t *testing.T) {
					between(t, "the time to the kill", took, c.least, c.most)
					if len(left) > 0 {
						t.Errorf("processes are left: %v", left)
					}
				})
			}
		})
	}
}
