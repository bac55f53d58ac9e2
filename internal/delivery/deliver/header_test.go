package deliver

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func rendered(t testing.TB, h *Client, m *queue.Message) (lines []string, dropped int) {
	t.Helper()
	run, err := runOf(m)
	if err != nil {
		t.Fatal(err)
	}
	body := m.Body
	if run != nil {
		body = ""
	}
	b, dropped := h.head.append(nil, m, run, body, tracePointer(h, m))
	whole, ok := strings.CutSuffix(string(b), "\r\n\r\n")
	if !ok {
		t.Fatalf("no blank line at the end of %q", b)
	}
	return strings.Split(whole, "\r\n"), dropped
}

func tracePointer(h *Client, m *queue.Message) *TraceContext {
	if h.trace == nil {
		return &TraceContext{}
	}
	carried := h.trace(context.Background(), m)
	return &carried
}

func attributeLines(lines []string) []string {
	var found []string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, attributePrefix); ok {
			found = append(found, rest)
		}
	}
	return found
}

func TestOrdinaryHead(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, func(o *Options) { o.Path = "/worker?a=b" })
	m := message(text("fooBar", "x"), queue.Attribute{Name: "n", Type: "Number.int", Value: "7"},
		queue.Attribute{Name: "b", Type: "Binary.png", Value: "\x00"})
	m.Attempt = 2
	got, _ := rendered(t, h, m)
	want := []string{
		"POST /worker?a=b HTTP/1.1",
		"Host: localhost:5000",
		"User-Agent: aws-sqsd/3.0 tendril/1.0",
		"Content-Type: application/json",
		"X-Aws-Sqsd-Queue: jobs",
		"X-Aws-Sqsd-Path: /worker?a=b",
		"X-Aws-Sqsd-Msgid: 059f36b4-87a3-44ab-83d2-661975830a7d",
		"X-Aws-Sqsd-Receive-Count: 3",
		"X-Tendril-Attempt: 2",
		"X-Aws-Sqsd-First-Received-At: 2026-11-20T13:00:01Z",
		"X-Aws-Sqsd-Sent-At: 2026-11-20T12:00:00Z",
		"X-Aws-Sqsd-Sender-Id: 123456789012",
		"X-Aws-Sqsd-Attr-Foobar: x",
		"X-Aws-Sqsd-Attr-N: 7",
		"Content-Length: 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPeriodicHead(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, func(o *Options) { o.Path, o.KeepAlive = "/worker", -1 })
	m := message(text(queue.AttributePath, "/backup?full"), text(queue.AttributeTask, "back\nup"),
		text(queue.AttributeTime, "2017-03-22 23:10:00 UTC"), text("a", "b"))
	m.SentAt, m.FirstReceivedAt, m.SenderID = time.Time{}, time.Time{}, ""
	got, _ := rendered(t, h, m)
	want := []string{
		"POST /backup?full HTTP/1.1",
		"Host: localhost:5000",
		"User-Agent: aws-sqsd/3.0 tendril/1.0",
		"Content-Type: application/json",
		"X-Aws-Sqsd-Queue: jobs",
		"Connection: close",
		"X-Aws-Sqsd-Path: /backup?full",
		"X-Aws-Sqsd-Taskname: back%0Aup",
		"X-Aws-Sqsd-Scheduled-At: 2017-03-22T23:10:00Z",
		"X-Aws-Sqsd-Msgid: 059f36b4-87a3-44ab-83d2-661975830a7d",
		"X-Aws-Sqsd-Receive-Count: 3",
		"X-Aws-Sqsd-Sender-Id: ",
		"X-Aws-Sqsd-Attr-A: b",
		"Content-Length: 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestConnectionIsKeptUnlessTheSettingIsNegative(t *testing.T) {
	t.Parallel()
	for keepAlive, want := range map[time.Duration]bool{0: false, time.Second: false, -1: true} {
		h := newRequestHead(&target{}, &Options{KeepAlive: keepAlive}, nil)
		if got := strings.Contains(h.ordinary, "Connection: close"); got != want {
			t.Errorf("keep-alive %v: the connection is closed: %v, want %v", keepAlive, got, want)
		}
	}
}

func TestHeaderThatCannotCarryItsValueIsEscaped(t *testing.T) {
	t.Parallel()
	if got, want := string(appendEscaped(nil, "a\x00 !~\x7f\x80%")), "a%00%20!~%7F%80%25"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 4000)
	for _, test := range []struct {
		name       string
		attributes []queue.Attribute
		want       []string
	}{
		{"none", nil, nil},
		{"canonical case", []queue.Attribute{text("message-digest", "1"), text("a_b.c", "2"), text("X-Y", "3")},
			[]string{"Message-Digest: 1", "A_b.c: 2", "X-Y: 3"}},
		{"canonical case of the first and the last letter", []queue.Attribute{text("aAzZ", "1"), text("zZaA", "2")},
			[]string{"Aazz: 1", "Zzaa: 2"}},
		{"called as our own are begun", []queue.Attribute{text(queue.RunPrefix, "1"), text("a", "2")}, []string{"A: 2"}},
		{"called dropped, and first", []queue.Attribute{text("dropped", "mine"), text("a", "1")},
			[]string{"A: 1", "Dropped: 1"}},
		{"called dropped and first, and one is", []queue.Attribute{text("dropped", "0"), text("a", "\n")},
			[]string{"Dropped: 2"}},
		{"empty value", []queue.Attribute{text("a", "")}, []string{"A: "}},
		{"tab and blanks inside", []queue.Attribute{text("a", "1\t 2")}, []string{"A: 1\t 2"}},
		{"blanks at the ends", []queue.Attribute{text("a", "  x  "), text("b", "\t"), text("c", "y")},
			[]string{"A: x", "B: ", "C: y", "Dropped: 2"}},
		{"UTF-8 as it is", []queue.Attribute{text("a", "é 漢 😀")}, []string{"A: é 漢 😀"}},
		{"invalid UTF-8", []queue.Attribute{text("a", "\xe9"), text("b", "1")}, []string{"B: 1", "Dropped: 1"}},
		{"line feed", []queue.Attribute{text("a", "1\nEvil: 1"), text("b", "2")}, []string{"B: 2", "Dropped: 1"}},
		{"other control bytes", []queue.Attribute{text("a", "\r"), text("b", "\x00"), text("c", "\x7f"), text("d", "\x1b")},
			[]string{"Dropped: 4"}},
		{"names no header has",
			[]queue.Attribute{text("a b", "1"), text("a:b", "2"), text("é", "3"), text("", "4"), text("a\n", "5")},
			[]string{"Dropped: 5"}},
		{"case twins", []queue.Attribute{text("Foo", "1"), text("foo", "2"), text("fOO", "3")},
			[]string{"Foo: 1", "Dropped: 2"}},
		{"a second one does not step in", []queue.Attribute{text("Foo", "\n"), text("foo", "2")}, []string{"Dropped: 2"}},
		{"a binary attribute of the same name does not count",
			[]queue.Attribute{{Name: "Foo", Type: "Binary", Value: "1"}, text("foo", "2")},
			[]string{"Foo: 2"}},
		{"our own", []queue.Attribute{text("beanstalk.sqsd.x", "1"), text("Beanstalk.SQSD.path", "/"),
			text("beanstalk.sqsd", "2")}, []string{"Beanstalk.sqsd: 2"}},
		{"unknown type", []queue.Attribute{{Name: "a", Type: "List", Value: "1"}}, nil},
		{"budget", []queue.Attribute{text("a", long), text("b", long), text("c", long), text("d", "small")},
			[]string{"A: " + long, "B: " + long, "D: small", "Dropped: 1"}},
		{"beyond the budget", []queue.Attribute{text("a", strings.Repeat("v", 100<<10))}, []string{"Dropped: 1"}},
		{"called dropped", []queue.Attribute{text("DROPPED", "7")}, []string{"Dropped: 1"}},
		{"called dropped, and one is", []queue.Attribute{text("a", "\n"), text("dropped", "0")}, []string{"Dropped: 2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines, dropped := rendered(t, newHTTP(t), message(test.attributes...))
			got := attributeLines(lines)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if reported := slices.Contains(got, "Dropped: "+strconv.Itoa(dropped)); reported != (dropped > 0) {
				t.Errorf("%d were dropped, the app was reported %q", dropped, got)
			}
		})
	}
}

func TestBudgetIsExact(t *testing.T) {
	t.Parallel()
	for _, over := range []int{0, 1} {
		h := newHTTP(t, func(o *Options) { o.HeaderBudget = 100 - over })
		value := strings.Repeat("v", 100-len("X-Aws-Sqsd-Attr-A: \r\n"))
		if _, dropped := rendered(t, h, message(text("a", value))); dropped != over {
			t.Errorf("a header of 100 bytes in a budget of %d: %d dropped", 100-over, dropped)
		}
	}
}

func TestCoreHeadersCannotBreakOut(t *testing.T) {
	t.Parallel()
	m := message()
	m.ID, m.SenderID = "1\r\nEvil: 1", strings.Repeat("x", 3*queue.MaxPath)
	lines, _ := rendered(t, newHTTP(t), m)
	if !slices.Contains(lines, "X-Aws-Sqsd-Msgid: 1%0D%0AEvil:%201") {
		t.Errorf("message id: %q", lines)
	}
	if !slices.Contains(lines, "X-Aws-Sqsd-Sender-Id: "+strings.Repeat("x", queue.MaxPath)) {
		t.Error("the sender's id was not cut")
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("a", "String", "1", "b", "Number", "2", "beanstalk.sqsd.path", "String", "/x?y")
	f.Add("Foo", "String", "x\r\ny: z", "foo", "String.x", "é", "Dropped", "Number", "9")
	f.Add("traceparent", "String", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate", "String",
		"a=1", "baggage", "String", "k=v;p , l=w")
	f.Add("beanstalk.sqsd.task_name", "String", "a\nb", "beanstalk.sqsd.path", "String", "/ü", "x", "Binary", "\x00")
	h := newHTTP(f, traced, func(o *Options) { o.HeaderBudget = 64 })
	f.Fuzz(func(t *testing.T, n1, t1, v1, n2, t2, v2, n3, t3, v3 string) {
		m := message(queue.Attribute{Name: n1, Type: t1, Value: v1}, queue.Attribute{Name: n2, Type: t2, Value: v2},
			queue.Attribute{Name: n3, Type: t3, Value: v3})
		m.ID, m.SenderID = v1, v2
		run, err := runOf(m)
		if err != nil {
			return
		}
		b, dropped := h.head.append(nil, m, run, "", tracePointer(h, m))
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(b))))
		if err != nil {
			t.Fatalf("net/http does not read %q: %v", b, err)
		}
		if r.Host != "localhost:5000" || r.Method != "POST" || r.ContentLength != 0 {
			t.Errorf("host %q, method %q, length %d", r.Host, r.Method, r.ContentLength)
		}
		checkHeaderSet(t, r.Header, m, run)
		if lines := strings.Count(string(b), "\n"); lines != len(r.Header)+3 { // plus request line, Host and blank line
			t.Errorf("%d lines for %d headers: %q", lines, len(r.Header), b)
		}
		checkNothingLost(t, r.Header, m, dropped)
	})
}

func checkHeaderSet(t *testing.T, got http.Header, m *queue.Message, run *scheduledRun) {
	core := []string{"User-Agent", "Content-Type", "Content-Length", "X-Aws-Sqsd-Queue", "X-Aws-Sqsd-Path",
		"X-Aws-Sqsd-Msgid",
		"X-Aws-Sqsd-Receive-Count", "X-Aws-Sqsd-First-Received-At", "X-Aws-Sqsd-Sent-At", "X-Aws-Sqsd-Sender-Id"}
	if run != nil && run.Task != "" {
		core = append(core, "X-Aws-Sqsd-Taskname")
	}
	if run != nil && scheduledAt(run.Time) != "" {
		core = append(core, "X-Aws-Sqsd-Scheduled-At")
	}
	for _, name := range core {
		if len(got[name]) != 1 {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	for name, values := range got {
		if slices.Contains(core, name) {
			continue
		}
		if slices.Contains([]string{"Traceparent", "Tracestate", "Baggage"}, name) && len(values) == 1 {
			if values[0] != strings.Trim(m.Attribute(strings.ToLower(name)), " \t") {
				t.Errorf("header %q: %q", name, values)
			}
			continue
		}
		of, isAttribute := strings.CutPrefix(name, attributePrefix)
		known := of == droppedName || slices.ContainsFunc(m.Attributes, func(a queue.Attribute) bool {
			return isForwarded(&a) && strings.EqualFold(a.Name, of) && strings.Trim(a.Value, " \t") == values[0]
		})
		if !isAttribute || !known || len(values) != 1 {
			t.Errorf("header %q: %q", name, values)
		}
	}
}

func checkNothingLost(t *testing.T, got http.Header, m *queue.Message, dropped int) {
	forwarded, arrived := 0, 0
	for i := range m.Attributes {
		a := &m.Attributes[i]
		if !isForwarded(a) {
			continue
		}
		forwarded++
		_, has := got[http.CanonicalHeaderKey(attributePrefix+a.Name)]
		if has && !isRepeated(m.Attributes[:i], a.Name) && !strings.EqualFold(a.Name, droppedName) &&
			strings.Trim(a.Value, " \t") != a.Value {
			arrived-- // trimmed, so sent and counted
		}
	}
	for name := range got {
		if strings.HasPrefix(name, attributePrefix) {
			arrived++
		}
	}
	if dropped > 0 {
		arrived--
		if reported := got.Get(attributePrefix + droppedName); reported != strconv.Itoa(dropped) {
			t.Errorf("%d dropped, %q reported", dropped, reported)
		}
	}
	if forwarded != arrived+dropped {
		t.Errorf("%d attributes to forward, %d arrived and %d dropped", forwarded, arrived, dropped)
	}
}
