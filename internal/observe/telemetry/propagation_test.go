package telemetry

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

const (
	aParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	aRoot   = "Root=1-5759e988-bd862e3fe1be46a994272793"
)

func text(name, value string) queue.Attribute {
	return queue.Attribute{Name: name, Type: "String", Value: value}
}

func TestPropagatedHeaders(t *testing.T) {
	t.Parallel()
	all := []queue.Attribute{text("baggage", "user=7"), text("traceparent", aParent), text("tracestate", "a=1,b=2")}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2},
		TraceFlags: trace.FlagsSampled})
	const ours = "00-00000000000000000000000000000001-0000000000000002-01"
	for _, test := range []struct {
		name       string
		attributes []queue.Attribute
		xray       string
		span       trace.SpanContext
		want       deliver.TraceContext
	}{
		{name: "none"},
		{"all", all, aRoot, trace.SpanContext{},
			deliver.TraceContext{Traceparent: aParent, XRay: aRoot, Tracestate: "a=1,b=2", Baggage: "user=7"}},
		{name: "a state alone", attributes: all[2:]},
		{"baggage alone", all[:1], "", trace.SpanContext{}, deliver.TraceContext{Baggage: "user=7"}},
		{name: "in other letters", attributes: []queue.Attribute{text("Traceparent", aParent)}},
		{name: "binary", attributes: []queue.Attribute{{Name: "traceparent", Type: "Binary", Value: aParent}}},
		{"a broken parent takes its state along", []queue.Attribute{text("traceparent", "x"+aParent), all[2]}, "Root=1",
			trace.SpanContext{}, deliver.TraceContext{}},
		{"a broken state", []queue.Attribute{all[1], text("tracestate", "a")}, "", trace.SpanContext{},
			deliver.TraceContext{Traceparent: aParent}},
		{"our span", all, "", span, deliver.TraceContext{Traceparent: ours, Baggage: "user=7"}},
		{"our span where there is none", nil, "", span, deliver.TraceContext{Traceparent: ours}},
	} {
		ctx := trace.ContextWithSpanContext(t.Context(), test.span)
		m := &queue.Message{Attributes: test.attributes, TraceHeader: test.xray}
		if diff := cmp.Diff(test.want, Propagate(ctx, m)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestOnlyValidTraceparentsArePropagated(t *testing.T) {
	t.Parallel()
	for s, valid := range map[string]bool{
		aParent: true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03":            true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff":            false,
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
		m := &queue.Message{Attributes: []queue.Attribute{text("traceparent", s)}}
		if got := Propagate(t.Context(), m).Traceparent; (got != "" && got == s) != valid {
			t.Errorf("%q: valid is %v", s, !valid)
		}
	}
}

func TestOnlyValidTraceHeadersArePropagated(t *testing.T) {
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
		read  func(string) string
		valid []string
		not   []string
	}{
		{"tracestate", func(s string) string {
			m := &queue.Message{Attributes: []queue.Attribute{text("traceparent", aParent), text("tracestate", s)}}
			return Propagate(context.Background(), m).Tracestate
		},
			[]string{"a=1", "rojo=00f067aa0ba902b7 , congo=t61rcWkgMzE", "fw529a3039@dt=FfAAAA", "1a-2f@dt=x y", "a=1,,b=2",
				"a=b c"},
			[]string{"", ",", "a", "a=", "=1", "A=1", "a=1,a=2", "a=b=c", "a=\x01", "a=é", "a b=1",
				"a=" + strings.Repeat("x", 257), many(33),
				"a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("x", 20)}},
		{"baggage", func(s string) string {
			m := &queue.Message{Attributes: []queue.Attribute{text("baggage", s)}}
			return Propagate(context.Background(), m).Baggage
		},
			[]string{"userId=alice", "userId=alice,server=node%20DF,isProd=false", "a=1;p1;p2=x , b = 2", "a=", "a=b=c"},
			[]string{"", "a", ",a=1", "a=1,", "=1", "a b=1", "a=1 2", "a=\"1\"", "a=\\", "a=é", "a=1;=",
				"a=1\r\nb: c", "a=" + strings.Repeat("x", 8<<10)}},
		{"X-Ray", func(s string) string {
			return Propagate(context.Background(), &queue.Message{TraceHeader: s}).XRay
		},
			[]string{aRoot, aRoot + ";Parent=53995c3f42cd8ad8;Sampled=1", "Self=1-a;" + aRoot + ";",
				"Root=1-5759E988-BD862E3FE1BE46A994272793;Lineage=1:a:0"},
			[]string{"", "Sampled=1", "Root=1", aRoot + ";" + aRoot, aRoot + "0", aRoot + ";x", aRoot + ";=x",
				aRoot + "; Parent=1", aRoot + "\r\nb: c",
				"Root=2-5759e988-bd862e3fe1be46a994272793", "Root=1-5759e98-8bd862e3fe1be46a994272793",
				"Root=1-5759e98x-bd862e3fe1be46a994272793", aRoot + ";a=" + strings.Repeat("x", maxXRay)}},
	} {
		for _, s := range test.valid {
			if test.read(s) == "" {
				t.Errorf("%s %q was refused", test.kind, s)
			}
		}
		for _, s := range test.not {
			if test.read(s) != "" {
				t.Errorf("%s %q was accepted", test.kind, s)
			}
		}
	}
}
