package deliver

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tendril/queue"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	const (
		done    = "..."
		unknown = "batchItemFailures names a message that was not in the event"
		without = "batchItemFailures has an entry without an itemIdentifier"
		noList  = "batchItemFailures is not a list"
		twice   = "batchItemFailures names a message twice"
		spelt   = "the function's reply misspells batchItemFailures"
		noJSON  = "the function's reply is not JSON"
		noUTF8  = "the function's reply is not UTF-8"
		inBody  = "batchItemFailures is in the reply's body, where Lambda ignores it: return the object itself"
	)
	for _, test := range []struct{ reply, want string }{
		{``, done}, {` `, done}, {`null`, done}, {`{}`, done}, {` { } `, done}, {`[]`, done}, {`[ ]`, done},
		{`"ok"`, done}, {`""`, done}, {`true`, done}, {`false`, done}, {`0`, done}, {`-1.5e3`, done},
		{`{"statusCode":500,"body":"failed"}`, done}, {`{"errorType":"E","errorMessage":"m"}`, done},
		{`{"batchItemFailures":null}`, done}, {`{"batchItemFailures":[]}`, done}, {`{ "batchItemFailures" : [ ] }`, done},
		{`{"a":{"batchItemFailures":[{"itemIdentifier":"a"}]}}`, done},
		{`{"BatchItemFailures":[]}`, done}, {`{"batch_item_failures":null,"batchItemFailures":[]}`, done},
		{`{"statusCode":200,"body":"{\"batchItemFailures\":[]}"}`, done}, {`{"body":"batchItemFailures"}`, done},
		{`{"body":{"batchItemFailures":[]}}`, done}, {`{"isBase64Encoded":true,"body":"batchItemFailures"}`, done},
		{`{"statusCode":200,"body":"{\"batchItemFailures\":[{\"itemIdentifier\":\"a\"}]}"}`, inBody},
		{`{"statusCode":200,"body":"{\"batch_item_failures\":[{\"itemIdentifier\":\"a\"}]}"}`, inBody},
		{`{"body":{"batchItemFailures":[{"itemIdentifier":"a"}]}}`, inBody},
		{`{"isBase64Encoded":true,"body":"` +
			base64.StdEncoding.EncodeToString([]byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`)) + `"}`, inBody},
		{`{"batchItemFailures":[{"itemIdentifier":"b"}]}`, ".F."},
		{` {"batchItemFailures" : [ {"itemIdentifier" : "a"} , {"itemIdentifier":"c"} ], "more":[{"batchItemFailures":1}] } `, "F.F"},
		{`{"batchItemFailures":[{"itemIdentifier":"\u0062","why":{"itemIdentifier":"c"}}]}`, ".F."},
		{`{"\u0062atchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"},{"itemIdentifier":"c"}]}`, "FFF"},
		{`{"batchItemFailures":[{"itemIdentifier":"x"}]}`, unknown},
		{`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"A"}]}`, unknown},
		{`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"a"}]}`, twice},
		{`{"batchItemFailures":[{"itemIdentifier":""}]}`, without},
		{`{"batchItemFailures":[{"itemIdentifier":null}]}`, without},
		{`{"batchItemFailures":[{"itemIdentifier":1}]}`, without},
		{`{"batchItemFailures":[{"itemIdentifier":["a"]}]}`, without},
		{`{"batchItemFailures":[{"itemIdentifier":"a","itemIdentifier":"b"}]}`, without},
		{`{"batchItemFailures":[{"ItemIdentifier":"a"}]}`, without},
		{`{"batchItemFailures":[{"messageId":"a"}]}`, without},
		{`{"batchItemFailures":[{}]}`, without}, {`{"batchItemFailures":[null]}`, without},
		{`{"batchItemFailures":["a"]}`, without},
		{`{"batchItemFailures":[["a"]]}`, without}, {`{"batchItemFailures":[{"itemIdentifier":"a"},"b"]}`, without},
		{`{"batchItemFailures":{}}`, noList}, {`{"batchItemFailures":"a"}`, noList},
		{`{"batchItemFailures":false}`, noList}, {`{"batchItemFailures":0}`, noList},
		{`{"batchItemFailures":{"itemIdentifier":"a"}}`, noList},
		{`{"batchItemFailures":[],"batchItemFailures":[{"itemIdentifier":"a"}]}`,
			"the function's reply has batchItemFailures twice"},
		{`{"batchItemFailures":null,"batchItemFailures":null}`, "the function's reply has batchItemFailures twice"},
		{`{"BatchItemFailures":[{"ItemIdentifier":"a"}]}`, spelt}, {`{"batch_item_failures":[{}]}`, spelt},
		{`{"batch-item-failures":"a"}`, spelt},
		{`{"batchItemFailures":[],"BatchItemFailures":[{}]}`, spelt},
		{`[{"itemIdentifier":"a"}]`, "the function's reply is a list, not an object with batchItemFailures"},
		{`[null]`, "the function's reply is a list, not an object with batchItemFailures"},
		{`"{\"batchItemFailures\":[{\"itemIdentifier\":\"a\"}]}"`,
			"the function's reply is a string that contains batchItemFailures: return the object itself"},
		{`"{\"batch\u0049temFailures\":[]}"`,
			"the function's reply is a string that contains batchItemFailures: return the object itself"},
		{`ok`, noJSON}, {`{`, noJSON}, {`{"batchItemFailures":[{"itemIdentifier":"a"}]`, noJSON}, {`{} {}`, noJSON},
		{`nul`, noJSON},
		{`2026-11-20T12:00:00Z Task timed out after 3.00 seconds`, noJSON}, {"\ufeff{}", noJSON}, {"\x00", noJSON},
		{"\"\xff\"", noUTF8}, {"{\"a\":\"\xc3\x28\"}", noUTF8},
		{"0\v", noJSON}, {"\v", noJSON},
		{strings.Repeat(`{"batchItemFailures":`, 20000) + "1" + strings.Repeat("}", 20000), noJSON},
	} {
		reply := readReply([]byte(test.reply), []string{"a", "b", "c"})
		got := reply.problem + reply.note
		if got == "" {
			got = marks(reply.failed, "a", "b", "c")
		}
		if got != test.want {
			t.Errorf("%.100s: got %q, want %q", test.reply, got, test.want)
		}
	}
}

func marks(failed map[string]bool, ids ...string) (b string) {
	for _, id := range ids {
		if failed[id] {
			b += "F"
		} else {
			b += "."
		}
	}
	return b
}

func TestReplyNamesARepeatedID(t *testing.T) {
	t.Parallel()
	reply := queue.Invocation{Status: 200, Payload: []byte(`{"batchItemFailures":[{"itemIdentifier":"a"}]}`)}
	results := judgeCall(t.Context(), &reply, nil, []string{"a", "b", "a"})
	if results[0].Outcome != queue.Failed || results[1].Outcome != queue.Done || results[2].Outcome != queue.Failed {
		t.Errorf("got %v", results)
	}
}

func FuzzReply(f *testing.F) {
	for _, reply := range []string{``, `null`, `{"batchItemFailures":[{"itemIdentifier":"a"}]}`,
		`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"a"}]}`,
		`{"batchItemFailures":{},"x":[1,"2",null]}`, `"\"{"`, `[1]`, `{"BatchItemFailures":[{"ItemIdentifier":"a"}]}`} {
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		before := slices.Clone(reply)
		read := readReply(reply, []string{"a", "b"})
		if !slices.Equal(before, reply) {
			t.Fatal("the reply was changed")
		}
		if read.problem != "" {
			if read.failed != nil {
				t.Errorf("failed %v and a problem %q", read.failed, read.problem)
			}
			return
		}
		if strings.Trim(string(reply), " \t\r\n") != "" && !json.Valid(reply) {
			t.Errorf("%q counts as done", reply)
		}
		var plain struct {
			Failures []struct {
				ID string `json:"itemIdentifier"`
			} `json:"batchItemFailures"`
		}
		if json.Unmarshal(reply, &plain) != nil {
			return
		}
		for _, one := range plain.Failures {
			if !slices.Contains([]string{"a", "b"}, one.ID) || !read.failed[one.ID] {
				t.Errorf("%q: %q counts as done", reply, one.ID)
			}
		}
	})
}
