package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/queue"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAttributesRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     api.Attributes
		err      string
	}{
		{"none", `{}`, nil, ""},
		{"text is a String", `{"b":"x","a":""}`,
			api.Attributes{{Name: "a", Type: "String"}, {Name: "b", Type: "String", Value: "x"}}, ""},
		{"a number is a Number", `{"n":3.50}`, api.Attributes{{Name: "n", Type: "Number", Value: "3.50"}}, ""},
		{"a large number stays exact", `{"n":12345678901234567890123}`,
			api.Attributes{{Name: "n", Type: "Number", Value: "12345678901234567890123"}}, ""},
		{"a label", `{"n":{"type":"Number.int","value":"3"}}`, api.Attributes{{Name: "n", Type: "Number.int", Value: "3"}}, ""},
		{"bytes", `{"n":{"type":"Binary","base64":"AP8="}}`, api.Attributes{{Name: "n", Type: "Binary", Value: "\x00\xff"}}, ""},
		{"no object", `[1]`, nil, "attributes must be an object"},
		{"true", `{"n":true}`, nil, `attribute "n" is neither text nor number`},
		{"null", `{"n":null}`, nil, `attribute "n" is neither`},
		{"no type", `{"n":{"value":"3"}}`, nil, "has no type"},
		{"no value", `{"n":{"type":"String"}}`, nil, "needs a value"},
		{"both", `{"n":{"type":"Binary","base64":"AP8=","value":"x"}}`, nil, "needs a value"},
		{"text as bytes", `{"n":{"type":"Binary","value":"x"}}`, nil, "base64 when its type is Binary"},
		{"bad base64", `{"n":{"type":"Binary","base64":"?"}}`, nil, "does not decode"},
		{"a number for a type", `{"n":{"type":3}}`, nil, "is invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got api.Attributes
			err := json.Unmarshal([]byte(c.in), &got)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); c.err == "" && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var attributes api.Attributes
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "n")] {
			typ := rapid.SampledFrom([]string{"String", "Number", "Binary", "String.x", "Binary.png"}).Draw(t, "type")
			a := queue.Attribute{Name: name, Type: typ, Value: rapid.String().Draw(t, "text")}
			if a.IsBinary() {
				a.Value = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
			}
			attributes = append(attributes, a)
		}
		want := api.Message{
			ID: "m1", Body: rapid.String().Draw(t, "body"), Attributes: attributes,
			GroupID: rapid.String().Draw(t, "group"), SentAt: time.UnixMilli(rapid.Int64Range(0, 1e13).Draw(t, "at")).UTC(),
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got api.Message
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

func FuzzAttributes(f *testing.F) {
	for _, seed := range []string{`{"a":"x"}`, `{"a":3}`, `{"a":{"type":"Binary","base64":"AA=="}}`, `{"a":null}`,
		`{"a": [1]}`, `{"":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second api.Attributes
		if json.Unmarshal(data, &first) != nil {
			return
		}
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &second); err != nil {
			t.Fatalf("%v: own output %s", err, again)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("(-first +second)\n%s", diff)
		}
	})
}
