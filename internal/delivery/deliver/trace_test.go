package deliver

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

const (
	aParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	aRoot   = "Root=1-5759e988-bd862e3fe1be46a994272793"
)

func traced(o *Options) {
	o.Trace = func(_ context.Context, m *queue.Message) TraceContext {
		return TraceContext{Traceparent: m.Attribute("traceparent")}
	}
}

func TestTraceHeaders(t *testing.T) {
	t.Parallel()
	all := TraceContext{Traceparent: aParent, XRay: aRoot, Tracestate: "a=1,b=2", Baggage: "user=7"}
	for _, test := range []struct {
		name  string
		trace TraceContext
		room  int
		want  []string
	}{
		{"none", TraceContext{}, 1000, nil},
		{"all", all, 1000, []string{"Traceparent: " + aParent, "X-Amzn-Trace-Id: " + aRoot, "Tracestate: a=1,b=2",
			"Baggage: user=7"}},
		{"beyond the budget", all, len("Traceparent: \r\n") + len(aParent) + len("Baggage: user=7\r\n"),
			[]string{"Traceparent: " + aParent, "Baggage: user=7"}},
		{"what no header can carry", TraceContext{Traceparent: "a\r\nb: c", Baggage: "user=7"}, 1000,
			[]string{"Baggage: user=7"}},
	} {
		var got []string
		for line := range strings.Lines(string(test.trace.append(nil, test.room))) {
			got = append(got, strings.TrimSuffix(line, "\r\n"))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestTraceIsAnAttributeToo(t *testing.T) {
	t.Parallel()
	m := message(text("traceparent", aParent))
	lines, dropped := rendered(t, newHTTP(t, traced), m)
	if !slices.Contains(lines, "Traceparent: "+aParent) ||
		!slices.Contains(lines, "X-Aws-Sqsd-Attr-Traceparent: "+aParent) || dropped != 0 {
		t.Errorf("%d dropped of %q", dropped, lines)
	}
	h := newHTTP(t, traced, func(o *Options) { o.HeaderBudget = 100 })
	if lines, dropped = rendered(t, h, m); !slices.Contains(lines, "Traceparent: "+aParent) || dropped != 1 {
		t.Errorf("%d dropped of %q", dropped, lines)
	}
}

func TestTraceIsPosted(t *testing.T) {
	t.Parallel()
	type key struct{}
	got := make(chan string, 1)
	h, _ := start(t, func(c *appConn) {
		if p, ok := c.read(); ok {
			got <- p.Header.Get("traceparent")
			c.write(ok200)
		}
	}, func(o *Options) {
		o.Trace = func(ctx context.Context, _ *queue.Message) TraceContext {
			s, _ := ctx.Value(key{}).(string)
			return TraceContext{Traceparent: s}
		}
	})
	h.Deliver(context.WithValue(t.Context(), key{}, aParent), message())
	if header := <-got; header != aParent {
		t.Errorf("the app saw %q", header)
	}
}

func FuzzTrace(f *testing.F) {
	f.Add(aParent, "a=1", "k=v", aRoot)
	f.Add(aParent+"\r\nEvil: 1", "a=1\n", "k=v\r\n", aRoot+"\r\n")
	f.Fuzz(func(t *testing.T, parent, state, baggage, xray string) {
		c := TraceContext{Traceparent: parent, Tracestate: state, Baggage: baggage, XRay: xray}
		for line := range strings.Lines(string(c.append(nil, 8<<10))) {
			_, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ": ")
			if value == "" || !slices.Contains([]string{parent, state, baggage, xray}, value) {
				t.Errorf("line %q", line)
			}
		}
	})
}
