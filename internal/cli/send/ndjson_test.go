package send

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/queue"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	ten := 10 * time.Second
	for _, c := range []struct {
		name, line string
		want       queue.Outgoing
	}{
		{"an object without a body is the body", `{"order": 42}`, queue.Outgoing{Body: `{"order": 42}`}},
		{"so is any other value", `[1, 2]`, queue.Outgoing{Body: `[1, 2]`}},
		{"text keeps its quotes", `"hello"`, queue.Outgoing{Body: `"hello"`}},
		{"a body of text", `{"body":"héllo\n"}`, queue.Outgoing{Body: "héllo\n"}},
		{"a body of JSON is kept as written", `{"body":{"order": 42.0}}`, queue.Outgoing{Body: `{"order": 42.0}`}},
		{"everything", `{"body":"x","attributes":{"b":3,"a":"t"},"delay_seconds":10,"group_id":"g","dedup_id":"d","trace_header":"Root=1"}`,
			queue.Outgoing{Body: "x",
				Attributes: []queue.Attribute{{Name: "a", Type: "String", Value: "t"}, {Name: "b", Type: "Number", Value: "3"}},
				Delay:      &ten, GroupID: "g", DedupID: "d", TraceHeader: "Root=1"}},
		{"a time", `{"body":"x","not_before":"2026-12-24T18:00:00Z"}`,
			queue.Outgoing{Body: "x", NotBefore: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)}},
		{"what an export tells is passed over",
			`{"id":"m1","queue":"jobs-dead","state":"visible","receive_count":3,"sent_at":"2026-01-02T03:04:05Z","body":"x"}`,
			queue.Outgoing{Body: "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseLine([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	for line, want := range map[string]string{
		`{"body":"x","atributes":{}}`:          "atributes",
		`{"body":"x","attributes":{"n":true}}`: `attribute "n"`,
		`{"body":"x","delay_seconds":"soon"}`:  "delay_seconds",
		`{"order":`:                            "invalid JSON",
		`order 42`:                             "invalid JSON",
		"\"\xff\"":                             "invalid UTF-8",
	} {
		if _, err := parseLine([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestReadLines(t *testing.T) {
	t.Parallel()
	read := func(text string, raw bool) (bodies []string, numbers []int, err error) {
		for l, err := range messagesIn(strings.NewReader(text), raw) {
			if err != nil {
				return bodies, numbers, err
			}
			bodies, numbers = append(bodies, l.msg.Body), append(numbers, l.number)
		}
		return bodies, numbers, nil
	}
	bodies, numbers, err := read("1\n\n  \n\"two\"\r\n{\"body\":\"three\"}", false)
	if diff := cmp.Diff([]string{"1", `"two"`, "three"}, bodies); diff != "" || err != nil || numbers[1] != 4 ||
		numbers[2] != 5 {
		t.Errorf("lines %v, %v: (-want +got)\n%s", numbers, err, diff)
	}
	bodies, _, err = read("{\"body\":\"x\"}\nplain text \n", true)
	if diff := cmp.Diff([]string{`{"body":"x"}`, "plain text "}, bodies); diff != "" || err != nil {
		t.Errorf("raw lines, %v: (-want +got)\n%s", err, diff)
	}
	bodies, _, err = read("1\nnonsense\n3\n", false)
	if len(bodies) != 1 || err == nil || !strings.Contains(err.Error(), "line 2") || base.ExitCode(err) != base.ExitUsage ||
		len(base.HintsOf(err)) == 0 {
		t.Errorf("a bad line: %v, %v", bodies, err)
	}
	if _, _, err = read(strings.Repeat("x", MaxLine+1), true); err == nil ||
		!strings.Contains(err.Error(), "longer than 8.0 MiB") {
		t.Errorf("an endless line: %v", err)
	}
	for _, err := range messagesIn(failingReader{}, true) {
		if !errors.Is(err, errBroken) {
			t.Errorf("a broken input: %v", err)
		}
	}
}

var errBroken = errors.New("broken")

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errBroken }

func TestExportIsSentAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := api.Message{
			ID: "m1", Queue: "jobs-dead", Body: rapid.StringN(1, 50, -1).Draw(t, "body"), ReceiveCount: 3,
			SentAt: time.UnixMilli(1).UTC(),
			Attributes: api.Attributes{
				{Name: "b", Type: "Binary", Value: string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))},
				{Name: "n", Type: "Number", Value: rapid.StringMatching(`-?[0-9]{1,30}`).Draw(t, "number")},
			},
			GroupID: rapid.StringN(0, 5, -1).Draw(t, "group"),
		}
		var text bytes.Buffer
		if err := base.PrintLineJSON(&text, &m); err != nil {
			t.Fatal(err)
		}
		got, err := parseLine(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		want := queue.Outgoing{Body: m.Body, Attributes: m.Attributes, GroupID: m.GroupID}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{`{"body":"x"}`, `{"body":{"a":1},"attributes":{"n":3}}`, `[]`, `{"body":null}`,
		`{"Body":"x"}`, "\xff", `{"body":1,"delay_seconds":-1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseLine(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is not JSON and was taken as %+v", text, m)
		}
		var keys map[string]json.RawMessage
		isObject := json.Unmarshal(text, &keys) == nil
		if _, named := keys["body"]; !(isObject && named) && m.Body != string(text) {
			t.Fatalf("%q became the body %q", text, m.Body)
		}
	})
}
