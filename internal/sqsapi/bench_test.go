package sqsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tendril/queue"
)

// The benchmarks alternate between our server and one that sends canned replies, so that results do not depend on the
// machine. "%canned" is our request rate relative to that server's, "%canned-cpu" the same for processor time, both
// including the client. Use -cpu 1 to run client and server on one core.

var benchBody = strings.Repeat("x", 200)

const benchAttributes = `"MessageAttributes":{"kind":{"DataType":"String","StringValue":"thumbnail"},"size":{"DataType":"Number","StringValue":"200"}}`

type wire struct {
	client *http.Client
	url    string
}

func newWire(b *testing.B, h http.Handler) *wire {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: h}
	if ours, ok := h.(*Handler); ok {
		server = Server(ours)
	}
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return &wire{&http.Client{Transport: transport}, "http://" + listener.Addr().String() + "/"}
}

func (w *wire) call(b *testing.B, action, body string) []byte {
	r, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", formType)
	if action != "" {
		r.Header.Set("X-Amz-Target", sqsPrefix+action)
		r.Header.Set("Content-Type", jsonType)
	}
	response, err := w.client.Do(r)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Errorf("%s: %d %s %v", action, response.StatusCode, answer, err)
	}
	return answer
}

type canned struct {
	mu      sync.RWMutex
	replies map[string][]byte
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.RLock()
	reply := c.replies[r.Header.Get("X-Amz-Target")[len(sqsPrefix):]]
	c.mu.RUnlock()
	header := w.Header()
	header.Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
	header.Set("Content-Type", jsonType)
	header.Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = w.Write(reply)
}

type bench struct {
	h          *Handler
	ours, fake *wire
	canned     *canned
}

func newBench(b *testing.B) *bench {
	h := newHandler(b, nil)
	mustCall(b, h, "CreateQueue", `{"QueueName":"jobs"}`)
	c := &canned{replies: map[string][]byte{}}
	return &bench{h: h, ours: newWire(b, h), fake: newWire(b, c), canned: c}
}

func (s *bench) call(b *testing.B, action, body string) []byte {
	answer := s.ours.call(b, action, body)
	s.canned.mu.Lock()
	s.canned.replies[action] = answer
	s.canned.mu.Unlock()
	return answer
}

func (s *bench) compare(b *testing.B, prepare func(n int), ours, fake func(n int)) {
	share, cpuShare := inTurns(b, prepare, ours, fake)
	b.ReportMetric(100*share, "%canned")
	b.ReportMetric(100*cpuShare, "%canned-cpu")
}

func inTurns(b *testing.B, prepare func(n int), ours, other func(n int)) (share, cpuShare float64) {
	const turns = 10
	var spent, spentFake, cpu, cpuFake time.Duration
	b.ResetTimer()
	for turn := range turns {
		n := b.N*(turn+1)/turns - b.N*turn/turns
		if n == 0 {
			continue
		}
		b.StopTimer()
		if prepare != nil {
			prepare(n)
		}
		began, used := time.Now(), cpuTime(b)
		b.StartTimer()
		ours(n)
		b.StopTimer()
		spent, cpu = spent+time.Since(began), cpu+cpuTime(b)-used
		began, used = time.Now(), cpuTime(b)
		other(n)
		spentFake, cpuFake = spentFake+time.Since(began), cpuFake+cpuTime(b)-used
	}
	return float64(spentFake) / float64(spent), float64(cpuFake) / float64(cpu)
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (s *bench) fill(b *testing.B, n int) {
	batch := make([]queue.Outgoing, queue.MaxBatch)
	for i := range batch {
		batch[i] = queue.Outgoing{Body: benchBody,
			Attributes: []queue.Attribute{{Name: "kind", Type: "String", Value: "thumbnail"},
				{Name: "size", Type: "Number", Value: "200"}}}
	}
	for n > 0 {
		k := min(n, len(batch))
		if _, err := s.h.broker.Queue("jobs").Send(context.Background(), batch[:k]); err != nil {
			b.Fatal(err)
		}
		n -= k
	}
}

func each(callers, n int, step func()) {
	var wg sync.WaitGroup
	for i := range callers {
		steps := n*(i+1)/callers - n*i/callers
		wg.Go(func() {
			for range steps {
				step()
			}
		})
	}
	wg.Wait()
}

func sendBody() string {
	return `{"QueueUrl":"http://127.0.0.1:9324/000000000000/jobs","MessageBody":"` + benchBody + `",` + benchAttributes +
		`}`
}

func sendTenBody() string {
	var entries []string
	for i := range 10 {
		entries = append(entries, fmt.Sprintf(`{"Id":"%d","MessageBody":"%s",%s}`, i, benchBody, benchAttributes))
	}
	return `{"QueueUrl":"http://127.0.0.1:9324/000000000000/jobs","Entries":[` + strings.Join(entries, ",") + `]}`
}

func BenchmarkSend(b *testing.B) {
	for _, test := range []struct {
		name, action, body string
		callers            int
	}{
		{"single/1", "SendMessage", sendBody(), 1},
		{"single/16", "SendMessage", sendBody(), 16},
		{"ten/1", "SendMessageBatch", sendTenBody(), 1},
		{"ten/16", "SendMessageBatch", sendTenBody(), 16},
	} {
		b.Run(test.name, func(b *testing.B) {
			s := newBench(b)
			s.call(b, test.action, test.body)
			s.compare(b, nil,
				func(n int) { each(test.callers, n, func() { s.ours.call(b, test.action, test.body) }) },
				func(n int) { each(test.callers, n, func() { s.fake.call(b, test.action, test.body) }) })
		})
	}
}

func BenchmarkReceiveDelete(b *testing.B) {
	for _, test := range []struct {
		name              string
		messages, callers int
	}{{"single/1", 1, 1}, {"single/16", 1, 16}, {"ten/1", 10, 1}, {"ten/16", 10, 16}} {
		b.Run(test.name, func(b *testing.B) {
			s := newBench(b)
			s.fill(b, test.messages)
			s.receiveDelete(b, s.call, test.messages)
			s.compare(b,
				func(n int) { s.fill(b, n*test.messages) },
				func(n int) { each(test.callers, n, func() { s.receiveDelete(b, s.ours.call, test.messages) }) },
				func(n int) { each(test.callers, n, func() { s.receiveDelete(b, s.fake.call, test.messages) }) })
		})
	}
}

func (s *bench) receiveDelete(b *testing.B, call func(*testing.B, string, string) []byte, n int) {
	answer := call(b, "ReceiveMessage",
		`{"QueueUrl":"http://127.0.0.1:9324/000000000000/jobs","MaxNumberOfMessages":`+strconv.Itoa(n)+
			`,"AttributeNames":["All"],"MessageAttributeNames":["All"]}`)
	handles := handlesIn(string(answer))
	if len(handles) != n {
		b.Errorf("received %d messages of %d", len(handles), n)
		return
	}
	if n == 1 {
		call(b, "DeleteMessage", `{"QueueUrl":"http://127.0.0.1:9324/000000000000/jobs","ReceiptHandle":"`+handles[0]+`"}`)
		return
	}
	var entries strings.Builder
	for i, handle := range handles {
		if i > 0 {
			entries.WriteByte(',')
		}
		entries.WriteString(`{"Id":"` + strconv.Itoa(i) + `","ReceiptHandle":"` + handle + `"}`)
	}
	call(b, "DeleteMessageBatch",
		`{"QueueUrl":"http://127.0.0.1:9324/000000000000/jobs","Entries":[`+entries.String()+`]}`)
}

func handlesIn(answer string) (handles []string) {
	const key = `"ReceiptHandle":"`
	for {
		_, rest, ok := strings.Cut(answer, key)
		if !ok {
			return handles
		}
		handle, rest, _ := strings.Cut(rest, `"`)
		handles, answer = append(handles, handle), rest
	}
}

// BenchmarkQuery reports the processor time of Query relative to JSON as "xJSON-cpu", including the client's.
func BenchmarkQuery(b *testing.B) {
	for _, test := range []struct{ name, action, body string }{
		{"send/single", "SendMessage", sendBody()},
		{"send/ten", "SendMessageBatch", sendTenBody()},
	} {
		b.Run(test.name, func(b *testing.B) {
			s := newBench(b)
			form := formOfJSON(b, test.action, test.body)
			s.report(b, nil,
				func(n int) { each(16, n, func() { s.ours.call(b, "", form) }) },
				func(n int) { each(16, n, func() { s.ours.call(b, test.action, test.body) }) })
		})
	}
	for _, test := range []struct {
		name     string
		messages int
	}{{"receive-delete/single", 1}, {"receive-delete/ten", 10}} {
		b.Run(test.name, func(b *testing.B) {
			s := newBench(b)
			fill := func(n int) { s.fill(b, 2*n*test.messages) }
			s.report(b, fill,
				func(n int) { each(16, n, func() { s.queryReceiveDelete(b, test.messages) }) },
				func(n int) { each(16, n, func() { s.receiveDelete(b, s.ours.call, test.messages) }) })
		})
	}
}

func (s *bench) report(b *testing.B, prepare func(n int), inQuery, inJSON func(n int)) {
	share, cpuShare := inTurns(b, prepare, inQuery, inJSON)
	b.ReportMetric(1/share, "xJSON")
	b.ReportMetric(1/cpuShare, "xJSON-cpu")
}

func formOfJSON(b *testing.B, action, body string) string {
	request := sqsActions()[action].request()
	if err := decodeByLibrary([]byte(body), request); err != nil {
		b.Fatal(err)
	}
	return "Action=" + action + "&" + encoded(encodeForm(request, action))
}

func (s *bench) queryReceiveDelete(b *testing.B, n int) {
	const to = "&QueueUrl=http%3A%2F%2F127.0.0.1%3A9324%2F000000000000%2Fjobs"
	answer := string(s.ours.call(b, "", "Action=ReceiveMessage&Version=2012-11-05"+to+
		"&AttributeName.1=All&MessageAttributeName.1=All&MaxNumberOfMessages="+strconv.Itoa(n)))
	var form strings.Builder
	count := 0
	for rest := answer; ; count++ {
		var handle string
		var ok bool
		if _, rest, ok = strings.Cut(rest, "<ReceiptHandle>"); !ok {
			break
		}
		handle, rest, _ = strings.Cut(rest, "<")
		prefix := "&"
		if n > 1 {
			prefix = "&DeleteMessageBatchRequestEntry." + strconv.Itoa(count+1) + "."
			form.WriteString(prefix + "Id=" + strconv.Itoa(count))
		}
		form.WriteString(prefix + "ReceiptHandle=" + handle)
	}
	if count != n {
		b.Errorf("received %d messages of %d", count, n)
		return
	}
	action := "Action=DeleteMessage"
	if n > 1 {
		action = "Action=DeleteMessageBatch"
	}
	s.ours.call(b, "", action+to+form.String())
}

func BenchmarkEncode(b *testing.B) {
	r := receiveMessageResponse{system: 1<<len(systemAttributes) - 1, attributes: []string{"All"}}
	for range 10 {
		r.received = append(r.received,
			queue.Message{ID: "8f3c6f0e-0000-4000-8000-000000000000", Body: benchBody, ReceiptHandle: strings.Repeat("h", 64),
				ReceiveCount: 1, SentAt: time.UnixMilli(1), FirstReceivedAt: time.UnixMilli(2), SenderID: "000000000000",
				Attributes: []queue.Attribute{{Name: "kind", Type: "String", Value: "thumbnail"},
					{Name: "size", Type: "Number", Value: "200"}}})
	}
	b.Run("ours", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = r.appendJSON(buf[:0])
		}
	})
	b.Run("XML", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = r.appendXML(buf[:0])
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := encodeJSON(nil, standardReceived(&r)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, test := range []struct{ action, body string }{{"SendMessage", sendBody()},
		{"SendMessageBatch", sendTenBody()}} {
		b.Run("Query/"+test.action, func(b *testing.B) {
			form := formOfJSON(b, test.action, test.body)
			act, parameters := parametersFor(test.action)
			b.ReportAllocs()
			for b.Loop() {
				values, err := parseForm(nil, form)
				if err == nil {
					err = parameters.decode(values, act.request())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, test := range []struct{ action, body string }{{"SendMessage", sendBody()},
		{"SendMessageBatch", sendTenBody()}} {
		b.Run(test.action, func(b *testing.B) {
			body := []byte(test.body)
			act, parameters := parametersFor(test.action)
			b.ReportAllocs()
			for b.Loop() {
				if err := parameters.decodeJSON(body, act.request()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type journal struct {
	canned
	pending chan journaled
}

type journaled struct {
	body []byte
	done chan struct{}
}

func newJournal(b *testing.B) *journal {
	file, err := os.Create(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	// Overwriting does not change the file's metadata.
	if _, err := file.Write(make([]byte, 16<<20)); err != nil {
		b.Fatal(err)
	}
	j := &journal{canned: canned{replies: map[string][]byte{}}, pending: make(chan journaled, 64)}
	ended := make(chan struct{})
	b.Cleanup(func() { close(j.pending); <-ended; _ = file.Close() })
	go func() {
		defer close(ended)
		var at int64
		for first := range j.pending {
			runtime.Gosched()
			data, group := append([]byte(nil), first.body...), []journaled{first}
			for len(j.pending) > 0 {
				next := <-j.pending
				data, group = append(data, next.body...), append(group, next)
			}
			if at+int64(len(data)) > 16<<20 {
				at = 0
			}
			_, err := file.WriteAt(data, at)
			if err = errors.Join(err, file.Sync()); err != nil {
				b.Error(err)
			}
			at += int64(len(data))
			for _, e := range group {
				close(e.done)
			}
		}
	}()
	return j
}

func (j *journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e := journaled{body, make(chan struct{})}
	j.pending <- e
	<-e.done
	r.Body = http.NoBody
	j.canned.ServeHTTP(w, r)
}

// BenchmarkSender compares one caller's sends with the minimum for a durable send over HTTP: the canned server plus
// one sync. O_DSYNC makes a write wait for the disk.
func BenchmarkSender(b *testing.B) {
	s := newBench(b)
	s.call(b, "SendMessage", sendBody())
	file, err := os.OpenFile(filepath.Join(b.TempDir(), "appends"), os.O_CREATE|os.O_WRONLY|syscall.O_DSYNC, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	page := make([]byte, 4096)
	share, cpuShare := inTurns(b, nil,
		func(n int) { each(1, n, func() { s.ours.call(b, "SendMessage", sendBody()) }) },
		func(n int) {
			each(1, n, func() {
				s.fake.call(b, "SendMessage", sendBody())
				if _, err := file.Write(page); err != nil {
					b.Error(err)
				}
			})
		})
	b.ReportMetric(100*share, "%row")
	b.ReportMetric(100*cpuShare, "%row-cpu")
}

// BenchmarkLeast compares the journal with the canned server. No durable server that uses net/http on this machine can
// be faster.
func BenchmarkLeast(b *testing.B) {
	for _, test := range []struct{ name, action, body string }{
		{"single/16", "SendMessage", sendBody()},
		{"ten/16", "SendMessageBatch", sendTenBody()},
	} {
		b.Run(test.name, func(b *testing.B) {
			s, j := newBench(b), newJournal(b)
			s.call(b, test.action, test.body)
			j.replies[test.action] = s.canned.replies[test.action]
			least := newWire(b, j)
			s.compare(b, nil,
				func(n int) { each(16, n, func() { least.call(b, test.action, test.body) }) },
				func(n int) { each(16, n, func() { s.fake.call(b, test.action, test.body) }) })
		})
	}
}
