package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"tendril/queue"
)

func TestParseXRay(t *testing.T) {
	t.Parallel()
	const id, span = "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
	for header, want := range map[string]string{
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1":                      "sampled",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0":                      "known",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=?":                      "known",
		"Sampled=1; Parent=53995c3f42cd8ad8; Root=1-5759e988-bd862e3fe1be46a994272793":                    "sampled",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a:0;Self=1-x": "sampled",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1":                                              "",
		"Root=1-5759E988-BD862E3FE1BE46A994272793;Parent=53995C3F42CD8AD8;Sampled=1":                      "sampled",
		"Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8":                                "",
		"Root=1-5759e988bbd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8":                                "",
		"Root=1-5759e988-bd862e3fe1be46a99427279;Parent=53995c3f42cd8ad8":                                 "",
		"Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8":                                "",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0000000000000000":                                "",
		"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=x":                                               "",
		"": "", ";;;": "", "Root": "",
	} {
		sc, ok := spanOfXRay(header)
		switch {
		case want == "" && ok:
			t.Errorf("%q was taken for %v", header, sc)
		case want != "" && (!ok || sc.TraceID().String() != id || sc.SpanID().String() != span ||
			sc.IsSampled() != (want == "sampled")):
			t.Errorf("%q is %v, %v", header, sc, ok)
		}
	}
}

func TestParseXRayOfEveryContext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c trace.SpanContextConfig
		copy(c.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		copy(c.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
		c.TraceFlags, c.Remote = c.TraceFlags.WithSampled(rapid.Bool().Draw(t, "sampled")), true
		want := trace.NewSpanContext(c)
		got, ok := spanOfXRay(formatXRay(want))
		if ok != want.IsValid() || ok && !got.Equal(want) {
			t.Fatalf("%v became %v, %v", want, got, ok)
		}
	})
}

func FuzzParseXRay(f *testing.F) {
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
	f.Add("Root=;Parent=;;=")
	f.Fuzz(func(t *testing.T, header string) {
		sc, ok := spanOfXRay(header)
		if ok != sc.IsValid() {
			t.Fatalf("%q is %v, %v", header, sc, ok)
		}
		if !ok {
			return
		}
		if again, _ := spanOfXRay(formatXRay(sc)); !again.Equal(sc) {
			t.Fatalf("%q is %v, and then %v", header, sc, again)
		}
	})
}

func spanOfXRay(header string) (sc trace.SpanContext, ok bool) {
	sc = creationContext(&queue.Message{TraceHeader: header})
	return sc, sc.IsValid()
}

func formatXRay(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	id, sampled := sc.TraceID().String(), "0"
	if sc.IsSampled() {
		sampled = "1"
	}
	return "Root=1-" + id[:8] + "-" + id[8:] + ";Parent=" + sc.SpanID().String() + ";Sampled=" + sampled
}
