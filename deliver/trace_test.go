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

// traceLines returns the trace headers of m, as h would send them.
func traceLines(h *HTTP, m *queue.Message) []string {
	carried := traceOf(context.Background(), m, h.parent)
	b, _ := h.head.append(nil, m, nil, 0, &carried)
	var found []string
	for line := range strings.SplitSeq(string(b), "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Traceparent", "Tracestate", "Baggage", "X-Amzn-Trace-Id"}, name) {
			found = append(found, line)
		}
	}
	return found
}

func TestTraceHeaders(t *testing.T) {
	t.Parallel()
	all := []queue.Attribute{text("baggage", "user=7"), text("traceparent", aParent), text("tracestate", "a=1,b=2")}
	other := "00-11111111111111111111111111111111-2222222222222222-01"
	for _, test := range []struct {
		name       string
		attributes []queue.Attribute
		xray       string
		hook       func(context.Context, *queue.Message) string
		budget     int
		want       []string
	}{
		{"none", nil, "", nil, 0, nil},
		{"all", all, aRoot, nil, 0,
			[]string{"Traceparent: " + aParent, "X-Amzn-Trace-Id: " + aRoot, "Tracestate: a=1,b=2", "Baggage: user=7"}},
		{"a state alone", all[2:], "", nil, 0, nil},
		{"baggage alone", all[:1], "", nil, 0, []string{"Baggage: user=7"}},
		{"in other letters", []queue.Attribute{text("Traceparent", aParent)}, "", nil, 0, nil},
		{"binary", []queue.Attribute{{Name: "traceparent", Type: "Binary", Value: aParent}}, "", nil, 0, nil},
		{"a broken parent takes its state along", []queue.Attribute{text("traceparent", "x"+aParent), all[2]}, "Root=1",
			nil, 0, nil},
		{"a broken state", []queue.Attribute{all[1], text("tracestate", "a")}, "", nil, 0,
			[]string{"Traceparent: " + aParent}},
		{"our span in its trace", all, "", func(context.Context, *queue.Message) string {
			return aParent[:36] + "1111111111111111-01"
		}, 0,
			[]string{"Traceparent: " + aParent[:36] + "1111111111111111-01", "Tracestate: a=1,b=2", "Baggage: user=7"}},
		{"our span in a trace of its own", all, "", func(context.Context, *queue.Message) string {
			return other
		}, 0, []string{"Traceparent: " + other, "Baggage: user=7"}},
		{"our span where there is none", nil, "", func(context.Context, *queue.Message) string {
			return other
		}, 0, []string{"Traceparent: " + other}},
		{"no span of ours", all, "", func(context.Context, *queue.Message) string {
			return ""
		}, 0, []string{"Traceparent: " + aParent, "Tracestate: a=1,b=2", "Baggage: user=7"}},
		{"a broken span of ours", all[1:], "", func(context.Context, *queue.Message) string {
			return "a\r\nb: c"
		}, 0, []string{"Traceparent: " + aParent, "Tracestate: a=1,b=2"}},
		{"no span at all", all[2:], "", func(context.Context, *queue.Message) string { return "" }, 0, nil},
		{"beyond the budget", all, "", nil, len("Traceparent: \r\n") + parentLength + len("Baggage: user=7\r\n"),
			[]string{"Traceparent: " + aParent, "Baggage: user=7"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHTTP(t, func(o *HTTPOptions) { o.Traceparent, o.HeaderBudget = test.hook, test.budget })
			m := message(test.attributes...)
			m.TraceHeader = test.xray
			if diff := cmp.Diff(test.want, traceLines(h, m)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The attribute headers stay, and share the budget.
func TestTraceIsAnAttributeToo(t *testing.T) {
	t.Parallel()
	m := message(text("traceparent", aParent))
	lines, dropped := rendered(t, newHTTP(t), m)
	if !slices.Contains(lines, "Traceparent: "+aParent) ||
		!slices.Contains(lines, "X-Aws-Sqsd-Attr-Traceparent: "+aParent) || dropped != 0 {
		t.Errorf("%d dropped of %q", dropped, lines)
	}
	h := newHTTP(t, func(o *HTTPOptions) { o.HeaderBudget = 100 })
	if lines, dropped = rendered(t, h, m); !slices.Contains(lines, "Traceparent: "+aParent) || dropped != 1 {
		t.Errorf("%d dropped of %q", dropped, lines)
	}
}

// A trace reaches the app, and the hook sees the delivery's own context.
func TestTraceIsPosted(t *testing.T) {
	t.Parallel()
	type key struct{}
	got := make(chan string, 1)
	h, _ := start(t, func(c *appConn) {
		if p, ok := c.read(); ok {
			got <- p.Header.Get("traceparent")
			c.write(ok200)
		}
	}, func(o *HTTPOptions) {
		o.Traceparent = func(ctx context.Context, _ *queue.Message) string { s, _ := ctx.Value(key{}).(string); return s }
	})
	h.Deliver(context.WithValue(t.Context(), key{}, aParent), message())
	if header := <-got; header != aParent {
		t.Errorf("the app saw %q", header)
	}
}

func TestTraceparents(t *testing.T) {
	t.Parallel()
	for s, valid := range map[string]bool{
		aParent: true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff":            true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":            true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes": true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01what":        false,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-\r\n":       false,
		aParent + "-more": false,
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g": false,
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01": false,
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01": false,
		aParent[:54]: false, "": false,
	} {
		if isTraceparent(s) != valid {
			t.Errorf("%q: valid is %v", s, !valid)
		}
	}
}

func TestOtherTraceHeaders(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, "k"+strings.Repeat("x", i)+"=1")
		}
		return strings.Join(members, ",")
	}
	for _, test := range []struct {
		kind  string
		check func(string) bool
		valid []string
		not   []string
	}{
		{"tracestate", isTracestate,
			[]string{"a=1", "rojo=00f067aa0ba902b7 , congo=t61rcWkgMzE", "fw529a3039@dt=FfAAAA", "1a-2f@3=x y", "a=1,,b=2",
				"a=b c"},
			[]string{"", ",", "a", "a=", "=1", "A=1", "a=1,a=2", "a=b=c", "a=\x01", "a=é", "a b=1",
				"a=" + strings.Repeat("x", 257), many(33),
				"a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("x", 20)}},
		{"baggage", isBaggage,
			[]string{"userId=alice", "userId=alice,server=node%20DF,isProd=false", "a=1;p1;p2=x , b = 2", "a=", "a=b=c"},
			[]string{"", "a", ",a=1", "a=1,", "=1", "a b=1", "a=1 2", "a=\"1\"", "a=\\", "a=é", "a=1;", "a=1;=",
				"a=1\r\nb: c", "a=" + strings.Repeat("x", maxBaggage)}},
		{"X-Ray", isXRay, []string{aRoot, aRoot + ";Parent=53995c3f42cd8ad8;Sampled=1", "Self=1-a;" + aRoot + ";",
			"Root=1-5759E988-BD862E3FE1BE46A994272793;Lineage=1:a:0"},
			[]string{"", "Sampled=1", "Root=1", aRoot + ";" + aRoot, aRoot + "0", aRoot + ";x", aRoot + ";=x",
				aRoot + "; Parent=1", aRoot + "\r\nb: c",
				"Root=2-5759e988-bd862e3fe1be46a994272793", "Root=1-5759e98-8bd862e3fe1be46a994272793",
				"Root=1-5759e98x-bd862e3fe1be46a994272793", aRoot + ";a=" + strings.Repeat("x", maxXRay)}},
	} {
		for _, s := range test.valid {
			if !test.check(s) {
				t.Errorf("%s %q was refused", test.kind, s)
			}
		}
		for _, s := range test.not {
			if test.check(s) {
				t.Errorf("%s %q was accepted", test.kind, s)
			}
		}
	}
}

// FuzzTrace: whatever a message carries, a head has no more lines for it, and what is
// forwarded is what came.
func FuzzTrace(f *testing.F) {
	f.Add(aParent, "a=1", "k=v", aRoot)
	f.Add(aParent+"\r\nEvil: 1", "a=1\n", "k=v\r\n", aRoot+"\r\n")
	h := newHTTP(f)
	f.Fuzz(func(t *testing.T, parent, state, baggage, xray string) {
		m := message(text("baggage", baggage), text("traceparent", parent), text("tracestate", state))
		m.TraceHeader = xray
		for _, line := range traceLines(h, m) {
			_, value, _ := strings.Cut(line, ": ")
			if value == "" || !slices.Contains([]string{parent, strings.Trim(state, " \t"), strings.Trim(baggage, " \t"),
				xray}, value) {
				t.Errorf("line %q", line)
			}
		}
		if t.Failed() {
			return
		}
		if traceOf(t.Context(), m, nil).parent == "" && traceOf(t.Context(), m, nil).state != "" {
			t.Error("a state without its parent")
		}
	})
}
