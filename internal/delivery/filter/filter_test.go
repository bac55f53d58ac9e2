package filter

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func parse(t testing.TB, pattern string) *Filter {
	t.Helper()
	f, err := Parse(pattern)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return f
}

func withBody(body string) *queue.Message { return &queue.Message{Body: body} }

// Sources: "Comparison operators for use in event patterns" of EventBridge and "Control which events Lambda sends
// to your function" of AWS Lambda.
func TestBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, pattern string
		yes, no       []string
	}{
		{"equals", `{"k": ["a", "b"]}`, []string{`{"k":"a"}`, ` {"x":{"k":1}, "k" : "b"}`},
			[]string{`{"k":"c"}`, `{"k":"A"}`, `{}`, `{"k":{"a":1}}`, `{"x":{"k":"a"}}`, `{"k":null}`}},
		{"escapes", `{"k\"é": ["a\nb"]}`, []string{`{"k\"é":"a\nb"}`, `{"k\u0022\u00e9":"a\u000ab"}`},
			[]string{`{"k":"a\nb"}`, `{"k\"é":"a\\nb"}`}},
		{"numbers", `{"k": [300]}`, []string{`{"k":300}`, `{"k":300.0}`, `{"k":3e2}`},
			[]string{`{"k":"300"}`, `{"k":301}`}},
		{"long numbers", `{"k": [9007199254740993]}`, []string{`{"k":9007199254740993}`},
			[]string{`{"k":9007199254740992}`}},
		{"zero", `{"k": [0]}`, []string{`{"k":0}`, `{"k":-0}`, `{"k":0.0}`}, []string{`{"k":1}`, `{"k":false}`}},
		{"booleans", `{"k": [true]}`, []string{`{"k":true}`}, []string{`{"k":"true"}`, `{"k":false}`, `{"k":1}`}},
		{"null", `{"k": [null]}`, []string{`{"k":null}`}, []string{`{}`, `{"k":"null"}`, `{"k":""}`}},
		{"empty", `{"k": [""]}`, []string{`{"k":""}`}, []string{`{"k":null}`, `{"k":" "}`, `{}`}},
		{"and", `{"k": ["a"], "l": [1]}`, []string{`{"l":1,"k":"a"}`}, []string{`{"k":"a"}`, `{"k":"a","l":2}`}},
		{"nested", `{"a": {"b": {"c": [1]}}}`, []string{`{"a":{"b":{"c":1}}}`},
			[]string{`{"a":{"c":1}}`, `{"a":1}`, `{"a":[]}`}},
		{"arrays", `{"k": ["a"]}`, []string{`{"k":["b","a"]}`, `{"k":[["a"]]}`},
			[]string{`{"k":[]}`, `{"k":["b"]}`, `{"k":[{"k":"a"}]}`}},
		{"arrays of objects", `{"items": {"id": [1], "n": [2]}}`,
			[]string{`{"items":[{"id":5},{"id":1,"n":2}]}`, `{"items":[[{"id":1,"n":2}]]}`},
			[]string{`{"items":[{"id":1,"n":3},{"id":4,"n":2}]}`, `{"items":[1,2]}`}},
		{"the body is an array", `{"id": [1]}`, []string{`[{"id":1}]`}, []string{`[1]`, `[]`}},
		{"prefix", `{"k": [{"prefix": "us-"}]}`, []string{`{"k":"us-east-1"}`, `{"k":["x","us-"]}`},
			[]string{`{"k":"eu-us-"}`, `{"k":5}`, `{"k":"US-east"}`, `{}`}},
		{"suffix", `{"k": [{"suffix": ".png"}]}`, []string{`{"k":"a.png"}`},
			[]string{`{"k":"a.png.txt"}`, `{"k":"png"}`}},
		{"equals-ignore-case", `{"k": [{"equals-ignore-case": "Élan"}]}`, []string{`{"k":"éLAN"}`},
			[]string{`{"k":"elan"}`}},
		{"anything-but", `{"k": [{"anything-but": "a"}]}`,
			[]string{`{"k":"b"}`, `{"k":5}`, `{"k":null}`, `{"k":["a","b"]}`},
			[]string{`{"k":"a"}`, `{}`, `{"k":{"a":1}}`, `{"k":[]}`}},
		{"anything-but of several", `{"k": [{"anything-but": ["a","b"]}]}`, []string{`{"k":"c"}`},
			[]string{`{"k":"a"}`, `{"k":"b"}`}},
		{"anything-but of numbers", `{"k": [{"anything-but": [100, 200]}]}`, []string{`{"k":101}`, `{"k":"100"}`},
			[]string{`{"k":100.0}`, `{"k":200}`}},
		{"anything-but of a prefix", `{"k": [{"anything-but": {"prefix": "us-"}}]}`,
			[]string{`{"k":"eu-1"}`, `{"k":1}`},
			[]string{`{"k":"us-1"}`, `{}`}},
		{"numeric equal", `{"k": [{"numeric": ["=", 5]}]}`, []string{`{"k":5}`, `{"k":5.0}`},
			[]string{`{"k":"5"}`, `{"k":4}`}},
		{"numeric below", `{"k": [{"numeric": ["<", 10]}]}`, []string{`{"k":-1e3}`, `{"k":9.99}`},
			[]string{`{"k":10}`, `{"k":"9"}`, `{}`}},
		{"numeric at least", `{"k": [{"numeric": [">=", 10]}]}`, []string{`{"k":10}`, `{"k":11}`}, []string{`{"k":9.99}`}},
		{"nested as deep as allowed", strings.Repeat(`{"a": `, maxDepth-2) + `[1]` + strings.Repeat(`}`, maxDepth-2),
			[]string{strings.Repeat(`{"a":`, maxDepth-2) + `1` + strings.Repeat(`}`, maxDepth-2)}, []string{`{"a":1}`}},
		{"numeric range", `{"k": [{"numeric": [">", 0, "<=", 5]}]}`, []string{`{"k":0.001}`, `{"k":5}`},
			[]string{`{"k":0}`, `{"k":5.001}`, `{"k":null}`}},
		{"exists", `{"k": [{"exists": true}]}`, []string{`{"k":null}`, `{"k":""}`, `{"k":[0]}`},
			[]string{`{}`, `{"k":{"a":1}}`, `{"k":[]}`, `{"k":[{}]}`}},
		{"does not exist", `{"k": [{"exists": false}]}`, []string{`{}`, `{"k":{"a":1}}`, `{"k":[]}`},
			[]string{`{"k":null}`, `{"k":0}`}},
		{"does not exist below", `{"a": {"k": [{"exists": false}]}}`, []string{`{}`, `{"a":{}}`, `{"a":1}`, `{"a":{"l":1}}`},
			[]string{`{"a":{"k":1}}`}},
		{"does not exist or equals", `{"k": [{"exists": false}, "a"]}`, []string{`{}`, `{"k":"a"}`},
			[]string{`{"k":"b"}`}},
		{"$or", `{"s": ["x"], "$or": [{"a": [1]}, {"b": [2], "c": [3]}]}`,
			[]string{`{"s":"x","a":1}`, `{"s":"x","b":2,"c":3}`},
			[]string{`{"a":1}`, `{"s":"x","b":2}`, `{"s":"x"}`}},
		{"$or in $or", `{"$or": [{"a": [1], "$or": [{"x": [1]}, {"y": [1]}]}, {"b": {"$or": [{"c": [1]}, {"d": [1]}]}}]}`,
			[]string{`{"a":1,"y":1}`, `{"b":{"d":1}}`}, []string{`{"a":1}`, `{"b":{}}`}},
		{"$or as a field", `{"$or": {"a": [1]}}`, []string{`{"$or":{"a":1}}`}, []string{`{"a":1}`}},
		{"the last of two names", `{"k": ["a"]}`, []string{`{"k":"b","k":"a"}`}, []string{`{"k":"a","k":"b"}`}},
		{"strings that look like structure", `{"k": ["a"]}`, []string{`{"x":"}]\",{\"k\":\"b\"","k":"a"}`},
			[]string{`{"x":"{\"k\":\"a\"}"}`}},
	} {
		f := parse(t, `{"body": `+tt.pattern+`}`)
		for _, body := range tt.yes {
			if !f.Match(withBody(body)) {
				t.Errorf("%s: %s does not match %s", tt.name, body, tt.pattern)
			}
		}
		for _, body := range tt.no {
			if f.Match(withBody(body)) {
				t.Errorf("%s: %s matches %s", tt.name, body, tt.pattern)
			}
		}
	}
}

// Source: the table in Lambda's documentation of filters for SQS.
func TestFormatOfTheBodyMustBeThatOfThePattern(t *testing.T) {
	t.Parallel()
	const asJSON, asText, noBody = `{"body": {"k": [{"exists": false}]}}`, `{"body": [{"anything-but": "x"}]}`,
		`{"messageAttributes": {"k": {"stringValue": [{"exists": false}]}}}`
	for _, tt := range []struct {
		body               string
		json, text, noBody bool
	}{
		{`{}`, true, false, true},
		{"\n\t [1]", true, false, true},
		{`plain`, false, true, true},
		{``, false, true, true},
		{`{"a":`, false, true, true},
		{`{} {}`, false, true, true},
		{`12`, false, true, true},
		{`"text"`, false, true, true},
		{`x`, false, false, true},
	} {
		got := []bool{parse(t, asJSON).Match(withBody(tt.body)), parse(t, asText).Match(withBody(tt.body)),
			parse(t, noBody).Match(withBody(tt.body))}
		if diff := cmp.Diff([]bool{tt.json, tt.text, tt.noBody}, got); diff != "" {
			t.Errorf("%q\n%s", tt.body, diff)
		}
	}
}

func TestMessageAttributes(t *testing.T) {
	t.Parallel()
	m := &queue.Message{Body: `{"n":1}`, Attributes: []queue.Attribute{{Name: "kind", Type: "String", Value: "order"},
		{Name: "size", Type: "Number", Value: "320"}, {Name: "raw", Type: "Binary", Value: "order"}}}
	for pattern, want := range map[string]bool{
		`{"kind": {"stringValue": ["order"]}}`:                                     true,
		`{"kind": {"stringValue": ["order"], "dataType": ["String"]}}`:             true,
		`{"kind": {"stringValue": ["refund"]}}`:                                    false,
		`{"Kind": {"stringValue": ["order"]}}`:                                     false,
		`{"size": {"stringValue": ["320"]}}`:                                       true,
		`{"size": {"stringValue": [320]}}`:                                         true,
		`{"size": {"stringValue": [{"numeric": [">", 300, "<", 400]}]}}`:           true,
		`{"size": {"stringValue": [{"anything-but": 320}]}}`:                       false,
		`{"size": {"stringValue": [{"anything-but": "320"}]}}`:                     false,
		`{"size": {"dataType": [{"prefix": "Num"}]}}`:                              true,
		`{"raw": {"stringValue": ["order"]}}`:                                      false,
		`{"raw": {"stringValue": [{"exists": false}], "dataType": ["Binary"]}}`:    true,
		`{"none": {"stringValue": [{"exists": false}]}}`:                           true,
		`{"none": {"stringValue": [{"exists": true}]}}`:                            false,
		`{"$or": [{"a": {"stringValue": [1]}}, {"size": {"stringValue": [320]}}]}`: true,
	} {
		if got := parse(t, `{"messageAttributes": `+pattern+`}`).Match(m); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
	for pattern, want := range map[string]bool{
		`{"messageAttributes": {"kind": {"stringValue": ["order"]}}, "body": {"n": [1]}}`:                 true,
		`{"messageAttributes": {"kind": {"stringValue": ["order"]}}, "body": {"n": [2]}}`:                 false,
		`{"$or": [{"messageAttributes": {"kind": {"stringValue": ["x"]}}}, {"body": {"n": [1]}}]}`:        true,
		`{"$or": [{"messageAttributes": {"kind": {"stringValue": ["x"]}}}, {"body": {"n": [2]}}]}`:        false,
		`{"Filters": [{"Pattern": "{\"body\": {\"n\": [2]}}"}, {"Pattern": "{\"body\": {\"n\": [1]}}"}]}`: true,
		`{"Filters": [{"Pattern": "{\"body\": {\"n\": [2]}}"}]}`:                                          false,
	} {
		if got := parse(t, pattern).Match(m); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

func TestWrongPatterns(t *testing.T) {
	t.Parallel()
	const numericForm = `1:29: numeric takes a list such as ["=", 5], ["<", 10] or [">", 0, "<=", 5]`
	for pattern, want := range map[string]string{
		``:                                   `1:1: unexpected end of JSON`,
		`{"body": {"k": ["a"]}`:              `1:22: unexpected end of JSON`,
		`{"body": {"k": ["a",]}}`:            `1:21: invalid JSON`,
		`{"body": {"k": ["a"]}} x`:           `1:24: invalid JSON`,
		"{\n  \"body\": {'k': 1}\n}":         `2:12: invalid JSON`,
		`[]`:                                 `1:1: a pattern must be an object, such as {"body": {"kind": ["order"]}}`,
		`{}`:                                 `1:1: an empty object: name a field, such as {"kind": ["order"]}`,
		"{\"body\":\n {\"k\": \"a\"}}":       `2:8: the values of "k" are a list: write ["a"]`,
		`{"body": {"k": 5}}`:                 `1:16: the values of "k" are a list: write [5]`,
		`{"body": {"k": []}}`:                `1:16: "k" has an empty list, which nothing matches`,
		`{"body": {"k": {}}}`:                `1:16: an empty object: name a field, such as {"kind": ["order"]}`,
		`{"body": {"k": [["a"]]}}`:           `1:17: nested list: use one list of values`,
		`{"body": {"k": ["a"], "k": ["b"]}}`: `1:23: duplicate key "k"`,
		`{"kind": ["a"]}`:                    `1:2: unknown key "kind": a pattern may have "body" and "messageAttributes"`,
		`{"$or": [{"body": ["a"]}, {"attributes": {"SenderId": ["x"]}}]}`: `1:28: unknown key "attributes": a pattern may ` +
			`have "body" and "messageAttributes"`,
		`{"body": {"k": [{"wildcard": "a*"}]}}`: `1:18: unknown operator "wildcard": use prefix, suffix, ` +
			`equals-ignore-case, anything-but, numeric, exists`,
		`{"body": {"k": [{}]}}`: `1:17: an object in a list must have one operator: prefix, suffix, equals-ignore-case, ` +
			`anything-but, ` +
			`numeric, exists`,
		`{"body": {"k": [{"prefix": 5}]}}`:              `1:28: prefix takes a non-empty string`,
		`{"body": {"k": [{"suffix": ""}]}}`:             `1:28: suffix takes a non-empty string`,
		`{"body": {"k": [{"exists": "true"}]}}`:         `1:28: exists must be true or false`,
		`{"body": {"k": [{"anything-but": []}]}}`:       `1:34: anything-but has an empty list`,
		`{"body": {"k": [{"anything-but": ["a", 1]}]}}`: `1:40: anything-but takes either strings or numbers`,
		`{"body": {"k": [{"anything-but": null}]}}`:     `1:34: anything-but takes either strings or numbers`,
		`{"body": {"k": [{"anything-but": {"exists": true}}]}}`: `1:35: unknown operator "exists": use prefix, suffix, ` +
			`equals-ignore-case, anything-but, numeric, exists`,
		`{"body": {"k": [{"numeric": 5}]}}`:                numericForm,
		`{"body": {"k": [{"numeric": ["<", 5, ">", 1]}]}}`: numericForm,
		`{"body": {"k": [{"numeric": [">", 5, "<", 5]}]}}`: `1:29: the lower bound of numeric must be less than its upper bound`,
		`{"body": {"k": [{"numeric": ["~", 5]}]}}`:         numericForm,
		`{"body": {"k": [{"numeric": ["> <", -5]}]}}`:      strings.Replace(numericForm, "29", "30", 1),
		`{"body": {"$or": [{"a": [1]}]}}`:                  `1:18: $or has one alternative: use two or more`,
		`{"body": {"k": [1], "$or": [{"prefix": ["a"]}, {"b": [1]}]}}`: `1:30: "prefix" in an alternative of $or is an ` +
			`operator, not a field`,
		`{"messageAttributes": {"k": ["a"]}}`: `1:29: a message attribute must be an object: write {"stringValue": [...]}`,
		`{"messageAttributes": ["a"]}`:        `1:23: messageAttributes must be an object, such as {"kind": {"stringValue": ["order"]}}`,
		`{"messageAttributes": {"k": {"StringValue": ["a"]}}}`: `1:30: unknown key "StringValue": a message attribute has ` +
			`"stringValue" and "dataType"`,
		`{"body": {"$or": []}}`: `1:18: "$or" has an empty list, which nothing matches`,
		`{"messageAttributes": {"$or": [{"k": {"stringValue": ["a"]}}, {"l": {"value": ["a"]}}]}}`: `1:70: unknown key ` +
			`"value": a message attribute has "stringValue" and "dataType"`,
		`{"body": {"k": ` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}}`: `1:47: nested deeper than 32`,
		`{"Filters": [` + strings.Repeat(`{"Pattern": "{\"body\": [\"a\"]}"}, `, maxPatterns) +
			`{"Pattern": "{\"body\": [\"a\"]}"}]}`: `1:13: Filters must be a list of 1 to 10 objects with a Pattern`,
		`{"Filters": []}`: `1:13: Filters must be a list of 1 to 10 objects with a Pattern`,
		`{"Filters": [{"Pattern": {"body": ["a"]}}]}`: `1:14: write {"Pattern": "..."} with the pattern as a string`,
		`{"Filters": [{"Pattern": "{\"body\": 1}"}]}`: `1:26: pattern 1 at 1:10: the values of "body" are a list: ` +
			`write [1]`,
		`{"body": {"k": [1e999]}}`: `1:17: the number is too large`,
		`{"body": ` + strings.Repeat(`{"a":`, 40) + `[1]` + strings.Repeat(`}`, 41): `1:170: nested deeper than 32`,
		strings.Repeat(" ", maxPattern+1):                                           `1:1: the pattern has 65537 bytes, the maximum is 65536`,
	} {
		_, err := Parse(pattern)
		var wrong *patternError
		if !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%.80s\n got %v\nwant %s", pattern, err, want)
		}
	}
}

func TestLargestPatterns(t *testing.T) {
	t.Parallel()
	const one = `{"Pattern": "{\"body\": [\"a\"]}"}`
	parse(t, `{"Filters": [`+strings.Repeat(one+", ", maxPatterns-1)+one+`]}`)
	long := `{"body": ["a"]}`
	parse(t, long+strings.Repeat(" ", maxPattern-len(long)))
}

// FuzzLookUp uses encoding/json as the reference.
func FuzzLookUp(f *testing.F) {
	f.Add(`{"a":[1,{"b":"}"}], "b\u0000":"\"","a":{"c":[]}}`, "a")
	f.Add("{\"\\ud800\":\"\xff\",\"x\":-1.5e3 }", "\ufffd")
	f.Fuzz(func(t *testing.T, body, name string) {
		start := strings.TrimLeft(body, jsonBlanks)
		var want map[string]json.RawMessage
		if !strings.HasPrefix(start, "{") || json.Unmarshal([]byte(start), &want) != nil {
			return
		}
		found, value := want[name], lookUp([]byte(start), name)
		if (found == nil) != (value == nil) || found != nil && string(found) != string(value) {
			t.Fatalf("%q in %q is %q, want %q", name, body, value, found)
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil && len(value) > 0 && value[0] == '[' {
			n := 0
			eachChild(value, func(_, element []byte) {
				if string(element) != string(list[n]) {
					t.Fatalf("element %d of %q is %q", n, value, element)
				}
				n++
			})
			if n != len(list) {
				t.Fatalf("%d elements of %q", n, value)
			}
		}
	})
}

// FuzzParse checks that errors have a position, and that equivalent JSON has the same result.
func FuzzParse(f *testing.F) {
	f.Add(`{"body": {"k": ["a", 1, null, true, {"prefix": "x"}], "$or": [{"a": [{"exists": false}]}, {"b": [2]}]}}`,
		`{"k": ["a", {"k": 1}], "a": {}}`)
	f.Add(`{"Filters": [{"Pattern": "{\"body\": [\"a\"]}"}]}`, `a`)
	f.Add(`{"messageAttributes": {"k": {"stringValue": [{"anything-but": [1, 2]}, {"numeric": ["<", 5]}]}}}`, `[[[]]]`)
	f.Fuzz(func(t *testing.T, pattern, body string) {
		filter, err := Parse(pattern)
		var wrong *patternError
		if err != nil {
			if !errors.As(err, &wrong) || wrong.Line < 1 || wrong.Column < 1 || wrong.Line > strings.Count(pattern, "\n")+1 {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		m := &queue.Message{Body: body, Attributes: []queue.Attribute{{Name: "k", Type: "Number", Value: body}}}
		matched := filter.Match(m)
		if json.Valid([]byte(body)) && json.Valid([]byte(pattern)) {
			again := *m
			again.Body = "\n " + body + " "
			if asText := !strings.HasPrefix(strings.TrimLeft(body, jsonBlanks), "{") &&
				!strings.HasPrefix(strings.TrimLeft(body, jsonBlanks), "["); !asText && filter.Match(&again) != matched {
				t.Fatalf("%q decides about %q by its blanks", pattern, body)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	f := parse(b, `{"body": {"order": {"kind": ["refund", {"prefix": "ord"}]}}}`)
	m := withBody(`{"text":"` + strings.Repeat("x", 200) + `","order":{"id":"x","total":12.5,"kind":"order"},"n":5}`)
	b.ReportAllocs()
	for b.Loop() {
		if !f.Match(m) {
			b.Fatal("no match")
		}
	}
}
