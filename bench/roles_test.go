package bench

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// BENCH_ROLE makes the test binary act as one of the other processes of a measurement.
func TestMain(m *testing.M) {
	switch os.Getenv("BENCH_ROLE") {
	case "":
		os.Exit(testpeer.Contained(m).Run())
	case "sqs":
		serve(newStandIn(envInt("BENCH_MESSAGES"), envDuration("BENCH_API")))
	case "app":
		serve(&app{think: envDuration("BENCH_THINK")})
	case "sink":
		serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	case "loop":
		fmt.Fprintln(os.Stderr, consumeWithSDK(os.Getenv("BENCH_QUEUE"), os.Getenv("BENCH_URL"), envInt("BENCH_CONNECTIONS")))
		os.Exit(1)
	case "ceiling":
		postLoop(os.Getenv("BENCH_URL"), envInt("BENCH_MESSAGES"), envInt("BENCH_CONNECTIONS"))
	}
}

func envInt(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	return n
}

func envDuration(name string) time.Duration {
	d, err := time.ParseDuration(os.Getenv(name))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	return d
}

// serve prints its loopback address. It ends when the parent process exits, which closes standard input.
func serve(h http.Handler) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go http.Serve(l, h)
	io.Copy(io.Discard, os.Stdin)
}

var body = `{"order":"` + strings.Repeat("x", 188) + `"}`

// Long polls wait once all prepared messages have been returned.
type standIn struct {
	api   time.Duration
	total int64
	next  atomic.Int64
	calls sync.Map
	// first is the time of the first receive, in Unix nanoseconds.
	deleted, first atomic.Int64
	parts          [3]string
	more           chan struct{}
	mu             sync.Mutex
}

func newStandIn(total int, api time.Duration) *standIn {
	s := &standIn{api: api, total: int64(total), more: make(chan struct{})}
	now := time.Now().UnixMilli()
	sum := md5.Sum([]byte(body))
	quoted, _ := json.Marshal(body)
	s.parts[0] = `{"Attributes":{"ApproximateFirstReceiveTimestamp":"` + strconv.FormatInt(now, 10) +
		`","ApproximateReceiveCount":"1","SenderId":"000000000000","SentTimestamp":"` + strconv.FormatInt(now, 10) +
		`"},"Body":` + string(quoted) + `,"MD5OfBody":"` + hex.EncodeToString(sum[:]) + `","MD5OfMessageAttributes":"` +
		attributesMD5() +
		`","MessageAttributes":{"tenant":{"DataType":"String","StringValue":"acme"},"trace":{"DataType":"String","StringValue":"1-5759e988-bd862e3fe1be46a994272793"}},"MessageId":"`
	s.parts[1] = `","ReceiptHandle":"AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a`
	s.parts[2] = `"}`
	return s
}

// The digest covers, for each attribute by name, the length and bytes of the name and of the type, one byte for the
// kind of value, and the length and bytes of the value, as in SQS.
func attributesMD5() string {
	h := md5.New()
	put := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	for _, a := range [][2]string{{"tenant", "acme"}, {"trace", "1-5759e988-bd862e3fe1be46a994272793"}} {
		put(a[0])
		put("String")
		h.Write([]byte{1})
		put(a[1])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s *standIn) count(action string) *atomic.Int64 {
	c, ok := s.calls.Load(action)
	if !ok {
		c, _ = s.calls.LoadOrStore(action, new(atomic.Int64))
	}
	return c.(*atomic.Int64)
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stats":
		stats := map[string]int64{}
		s.calls.Range(func(k, v any) bool { stats[k.(string)] = v.(*atomic.Int64).Load(); return true })
		stats["deleted"], stats["first"] = s.deleted.Load(), s.first.Load()
		json.NewEncoder(w).Encode(stats)
		return
	case "/add":
		n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
		s.mu.Lock()
		atomic.AddInt64(&s.total, n)
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		return
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.count(action).Add(1)
	request, _ := io.ReadAll(r.Body)
	if s.api > 0 {
		time.Sleep(s.api)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
	answer := s.answer(r, action, request)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.Write(answer)
}

func (s *standIn) answer(r *http.Request, action string, request []byte) []byte {
	switch action {
	case "GetQueueUrl":
		return []byte(`{"QueueUrl":"http://` + r.Host + `/000000000000/bench"}`)
	case "GetQueueAttributes":
		return []byte(`{"Attributes":{"QueueArn":"arn:aws:sqs:us-east-1:000000000000:bench","VisibilityTimeout":"300","MessageRetentionPeriod":"345600","RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:bench-dead\",\"maxReceiveCount\":\"10\"}"}}`)
	case "ReceiveMessage":
		s.first.CompareAndSwap(0, time.Now().UnixNano())
		return s.receive(r, request)
	case "DeleteMessage":
		s.deleted.Add(1)
		return []byte(`{}`)
	}
	var in struct{ Entries []struct{ Id string } }
	json.Unmarshal(request, &in)
	if action == "DeleteMessageBatch" {
		s.deleted.Add(int64(len(in.Entries)))
	}
	out := []byte(`{"Successful":[`)
	for i, e := range in.Entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"Id":"`...), e.Id...), `"}`...)
	}
	return append(out, `]}`...)
}

func (s *standIn) receive(r *http.Request, request []byte) []byte {
	var in struct{ MaxNumberOfMessages, WaitTimeSeconds int64 }
	json.Unmarshal(request, &in)
	deadline := time.After(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		s.mu.Lock()
		more := s.more
		s.mu.Unlock()
		if from, to := s.take(max(in.MaxNumberOfMessages, 1)); to > from {
			return s.messages(from, to)
		}
		select {
		case <-deadline:
			return []byte(`{}`)
		case <-more:
		case <-r.Context().Done():
			return []byte(`{}`)
		}
	}
}

func (s *standIn) take(n int64) (from, to int64) {
	for {
		from = s.next.Load()
		to = min(from+n, atomic.LoadInt64(&s.total))
		if to <= from || s.next.CompareAndSwap(from, to) {
			return from, to
		}
	}
}

func (s *standIn) messages(from, to int64) []byte {
	out := make([]byte, 0, (to-from)*1000)
	out = append(out, `{"Messages":[`...)
	for i := from; i < to; i++ {
		if i > from {
			out = append(out, ',')
		}
		out = append(out, s.parts[0]...)
		out = append(out, fmt.Sprintf("%08d-87a3-44ab-83d2-661975830a7d", i)...)
		out = append(out, s.parts[1]...)
		out = strconv.AppendInt(out, i, 10)
		out = append(out, s.parts[2]...)
	}
	return append(out, `]}`...)
}

type app struct {
	think       time.Duration
	n           atomic.Int64
	first, last atomic.Int64
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stats" {
		json.NewEncoder(w).Encode(map[string]int64{"n": a.n.Load(), "first": a.first.Load(), "last": a.last.Load()})
		return
	}
	if r.URL.Path == "/reset" {
		a.n.Store(0)
		a.first.Store(0)
		a.last.Store(0)
		return
	}
	a.first.CompareAndSwap(0, time.Now().UnixNano())
	io.Copy(io.Discard, r.Body)
	if a.think > 0 {
		time.Sleep(a.think)
	}
	a.n.Add(1)
	now := time.Now().UnixNano()
	for {
		old := a.last.Load()
		if old >= now || a.last.CompareAndSwap(old, now) {
			return
		}
	}
}

// postLoop's throughput is the ceiling.
func postLoop(url string, n, c int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c, MaxConnsPerHost: c}}
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range c {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				resp, err := client.Post(url, "application/json", strings.NewReader(body))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}
