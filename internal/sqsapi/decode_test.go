package sqsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tendril/queue"
)

func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		body string
		want sendMessageRequest
	}{
		{"empty body", "", sendMessageRequest{}},
		{"white space", " \r\n\t", sendMessageRequest{}},
		{"null", "null", sendMessageRequest{}},
		{"no parameters", "{}", sendMessageRequest{}},
		{"unknown parameters", `{"Future":{"a":[1,{"b":null}]},"QueueUrl":"q"}`, sendMessageRequest{queueRequest: queueRequest{"q"}}},
		{"every parameter", `{"QueueUrl":"q","MessageBody":"b","DelaySeconds":10,"MessageGroupId":"g","MessageDeduplicationId":"d",
			"MessageAttributes":{"s":{"DataType":"String","StringValue":"v"},"b":{"DataType":"Binary","BinaryValue":"AP8="}}}`,
			sendMessageRequest{queueRequest{"q"},
				outgoing{MessageBody: "b", DelaySeconds: new(10), MessageGroupID: new("g"), MessageDeduplicationID: new("d"),
					MessageAttributes: attributeList{
						{name: "b", DataType: "Binary", BinaryValue: []byte{0, 255}},
						{name: "s", DataType: "String", StringValue: new("v")},
					}}}},
		{"escapes", `{"MessageBody":"a\"\\\/\n\u00e9\ud83d\ude00\u0041 {[,]}"}`,
			sendMessageRequest{outgoing: outgoing{MessageBody: "a\"\\/\né😀A {[,]}"}}},
		{"deep enough", `{"x":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`,
			sendMessageRequest{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got sendMessageRequest
			if err := decodeJSON([]byte(test.body), &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("decoded %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestDecodeJSONRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, code, text string }{
		{"no JSON", "QueueUrl=q", codeSerialization, "not valid JSON from byte 1 on"},
		{"cut off", `{"QueueUrl":"q`, codeSerialization, "not valid JSON"},
		{"cut off in an escape", `{"QueueUrl":"q\`, codeSerialization, "not valid JSON"},
		{"cut off in a code point", `{"QueueUrl":"q\u12`, codeSerialization, "not valid JSON"},
		{"two documents", `{}{}`, codeSerialization, "not valid JSON"},
		{"a list", `[]`, codeSerialization, "the whole must be of type object, not array"},
		{"number for text", `{"MessageBody":5}`, codeSerialization, "MessageBody must be of type string, not number"},
		{"text for a number", `{"DelaySeconds":"5"}`, codeSerialization, "DelaySeconds must be of type integer, not string"},
		{"fraction", `{"DelaySeconds":1.5}`, codeSerialization, "DelaySeconds must be of type integer, not number 1.5"},
		{"the longest number that is shown", `{"DelaySeconds":1.` + strings.Repeat("5", 29) + `}`, codeSerialization,
			"not number 1." + strings.Repeat("5", 29) + "."},
		{"a longer number", `{"DelaySeconds":1.` + strings.Repeat("5", 30) + `}`, codeSerialization, "not number."},
		{"list for a map", `{"MessageAttributes":[]}`, codeSerialization,
			"MessageAttributes must be of type object, not array"},
		{"no base64", `{"MessageAttributes":{"a":{"BinaryValue":"%%%"}}}`, codeSerialization,
			"MessageAttributes.a.BinaryValue must be base64."},
		{"no base64 in a list", `{"MessageAttributes":{"a":{"BinaryListValues":["AAAA","A"]}}}`, codeSerialization,
			"MessageAttributes.a.BinaryListValues.1 must be base64."},
		{"Latin-1", "{\"MessageBody\":\"\xe9\"}", codeSerialization, "not valid UTF-8"},
		{"half a surrogate pair", `{"MessageBody":"\ud83d"}`, queue.CodeInvalidMessageContents, "'#xD83D'"},
		{"wrong half first", `{"MessageBody":"\ude00\ud83d"}`, queue.CodeInvalidMessageContents, "'#xDE00'"},
		{"two second halves", `{"MessageBody":"\ude00\ude00"}`, queue.CodeInvalidMessageContents, "'#xDE00'"},
		{"half and a letter", `{"MessageBody":"\ud83d\u0041"}`, queue.CodeInvalidMessageContents, "'#xD83D'"},
		{"too deep", `{"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, codeSerialization,
			"more than 16 levels"},
		{"too deep behind an empty string", `{"MessageBody":"","x":` + strings.Repeat("[", maxDepth) +
			strings.Repeat("]", maxDepth) + `}`, codeSerialization, "more than 16 levels"},
		{"too many values", `{"Entries":[` + strings.Repeat("{},", maxValues) + `{}]}`, codeSerialization,
			"more than 10000 values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := decodeJSON([]byte(test.body), new(sendMessageRequest))
			var refusal *queue.Error
			if !errors.As(err, &refusal) || refusal.Code != test.code || !strings.Contains(refusal.Message, test.text) {
				t.Errorf("decodeJSON = %#v, want code %s with %q", err, test.code, test.text)
			}
		})
	}
}

// Characters in strings do not count, even after an escaped quotation mark.
func TestLimitsIgnoreStrings(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("[", 2*maxDepth), `\"` + strings.Repeat("[", 2*maxDepth),
		`\\\"` + strings.Repeat("{", 2*maxDepth), strings.Repeat(",", maxValues+1)} {
		var request sendMessageRequest
		if err := decodeJSON([]byte(`{"MessageBody":"`+text+`"}`), &request); err != nil {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func TestMostValues(t *testing.T) {
	t.Parallel()
	body := `{"x":[0` + strings.Repeat(",0", maxValues-2) + `]}`
	if err := decodeJSON([]byte(body), new(sendMessageRequest)); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, " \n", " \f", `{}`, `null`, `[{}]`, `{"QueueUrl":"http://localhost/1/q","MessageBody":"hi"}`,
		`{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"b","DelaySeconds":1,"MessageAttributes":{"n":{"DataType":"Binary","BinaryValue":"AA=="}}}]}`,
		`{"QueueUrl":"q","AttributeNames":["All"],"MessageAttributeNames":["a.*"],"MaxNumberOfMessages":10,"WaitTimeSeconds":0}`,
		`{"MessageBody":"\ud83d\ude00\u0000\\\""}`, `{"MessageBody":"\ud83d"}`,
		`{"tags":{"a":"b"},"Attributes":{"DelaySeconds":"1"}}`,
		`{"queu______eurl":"q"}`, `{"queueURL":"q","Message-Body":"b"}`,
		strings.Repeat("[", 20), strings.Repeat(`{"a":`, 20), `"`, `"\`, `"\u`, `"\ud800\u`,
	} {
		f.Add([]byte(seed))
	}
	for _, seed := range decodeCases() {
		f.Add([]byte(seed.body))
	}
	table := sqsActions()
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, action := range table {
			request := action.request()
			err := decodeJSON(body, request)
			checkSameAsLibrary(t, body, action)
			if err != nil {
				var refusal *queue.Error
				if !errors.As(err, &refusal) || refusal.Message == "" {
					t.Fatalf("%s: error %#v is not a refusal with a message", name, err)
				}
				continue
			}
			if !blank(body) && !json.Valid(body) {
				t.Fatalf("%s: accepted %q, which is not JSON", name, body)
			}
			if send, ok := request.(*sendMessageRequest); ok && !utf8.ValidString(send.MessageBody) {
				t.Fatalf("decoded a body that is not UTF-8 from %q", body)
			}
			if batch, ok := request.(*sendMessageBatchRequest); ok && len(batch.Entries) > maxValues {
				t.Fatalf("decoded %d entries", len(batch.Entries))
			}
		}
	})
}

func decodeJSON(body []byte, request any) error {
	return parametersOf(reflect.TypeOf(request).Elem(), "").decodeJSON(body, request)
}

// blank trims the white space of JSON, which is less than bytes.TrimSpace trims.
func blank(body []byte) bool { return len(bytes.Trim(body, " \t\r\n")) == 0 }

func decodeByLibrary(body []byte, request any) error {
	if blank(body) {
		return nil
	}
	return jsonv2.Unmarshal(body, request, jsontext.AllowDuplicateNames(true), jsonv2.MatchCaseInsensitiveNames(true),
		jsonv1.MatchCaseSensitiveDelimiter(true), jsonv1.ParseBytesWithLooseRFC4648(true))
}

func (l *attributeList) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	var object map[string]*messageAttribute
	err := jsonv2.UnmarshalDecode(from, &object)
	*l = attributesOf(object)
	return err
}

func attributesOf(object map[string]*messageAttribute) (l attributeList) {
	if object != nil {
		l = attributeList{}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		a := messageAttribute{}
		if object[name] != nil {
			a = *object[name]
		}
		a.name = name
		l = append(l, a)
	}
	return l
}

type decodeCase struct {
	action, body string
	accepted     bool
}

func decodeCases() []decodeCase {
	const attributes = `{"a":{"DataType":"String","StringValue":"v"},"b":{"BinaryValue":"AP8=","DataType":"Binary.x"}}`
	many := ""
	for i := range 16 {
		many += `"` + strconv.Itoa(i) + `":{},`
	}
	return []decodeCase{
		{"SendMessage", `{"QueueUrl":"q","MessageBody":"b","DelaySeconds":10,"MessageGroupId":"g","MessageDeduplicationId":"d","MessageAttributes":` + attributes + `,"MessageSystemAttributes":` + attributes + `}`, true},
		{"SendMessage", " {\n\t\"QueueUrl\" : \"q\" ,\r\n\"MessageBody\": \"{\\\"json\\\": " +
			"[\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\ud83d\\ude00 é 😀\\\"]}\" } ", true},
		{"SendMessage", `{}`, true},
		{"SendMessage", `{"MessageAttributes":{},"MessageBody":""}`, true},
		{"SendMessage", `{"MessageBody":"x","DelaySeconds":-0}`, true},
		{"SendMessageBatch",
			`{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"b","MessageAttributes":` + attributes + `},{"Id":"b"}]}`, true},
		{"SendMessageBatch", `{"Entries":[]}`, true},
		{"ReceiveMessage", `{"QueueUrl":"q","AttributeNames":["All"],"MessageSystemAttributeNames":[],"MessageAttributeNames":["a.*","b"],"MaxNumberOfMessages":10,"VisibilityTimeout":0,"WaitTimeSeconds":20}`, true},
		{"DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":"h"}`, true},
		{"DeleteMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"a","ReceiptHandle":"h"}]}`, true},

		{"SendMessage", ``, true},
		{"SendMessage", `null`, true},
		{"SendMessage", `{"QueueUrl":null}`, true},
		{"SendMessage", `{"queueurl":"q"}`, true},
		{"SendMessage", `{"Future":1}`, true},
		{"SendMessage", `{"QueueUrl":"q","QueueUrl":"r"}`, true},
		{"SendMessage", `{"MessageBody":"a","MessageBody":"b"}`, true},
		{"SendMessage", `{"\u0051ueueUrl":"q"}`, true},
		{"SendMessage", `{"QueueUrl":"q"}x`, false},
		{"SendMessage", `{"QueueUrl":"q",}`, false},
		{"SendMessage", `{"QueueUrl" "q"}`, false},
		{"SendMessage", `{"QueueUrl":"q"`, false},
		{"SendMessage", `{"QueueUrl":"q\`, false},
		{"SendMessage", `{"QueueUrl":"\u00"}`, false},
		{"SendMessage", `{"QueueUrl":"\ud83d"}`, false},
		{"SendMessage", `{"QueueUrl":"\ude00\ud83d"}`, false},
		{"SendMessage", `{"QueueUrl":"\x"}`, false},
		{"SendMessage", "{\"QueueUrl\":\"\n\"}", false},
		{"SendMessage", "{\"QueueUrl\":\"\\n\n\"}", false},
		{"SendMessage", `{"DelaySeconds":01}`, false},
		{"SendMessage", `{"DelaySeconds":1.0}`, false},
		{"SendMessage", `{"DelaySeconds":1e2}`, false},
		{"SendMessage", `{"DelaySeconds":- 1}`, false},
		{"SendMessage", `{"DelaySeconds":-}`, false},
		{"SendMessage", `{"DelaySeconds":99999999999999999999}`, false},
		{"SendMessage", `{"DelaySeconds":"1"}`, false},
		{"SendMessage", `{"MessageAttributes":{"a":{},"a":{}}}`, true},
		{"SendMessage", `{"MessageAttributes":{` + many + `"":{}}}`, true},
		{"SendMessage", `{"MessageAttributes":{"a":{"DataType":"x","DataType":"y"}}}`, true},
		{"SendMessage", `{"MessageAttributes":{"a":{"BinaryValue":"!"}}}`, false},
		{"SendMessage", `{"MessageAttributes":{"a":{"BinaryValue":"AP\n8="}}}`, true},
		{"SendMessage", `{"MessageAttributes":{"a":{"StringListValues":[]}}}`, true},
		{"SendMessageBatch", `{"Entries":[{},]}`, false},
		{"SendMessageBatch", `{"Entries":[{}{}]}`, false},
		{"SendMessageBatch", `{"Entries":[` + strings.Repeat(`{},`, 10) + `{}]}`, true},
		{"ReceiveMessage", `{"ReceiveRequestAttemptId":"a"}`, true},
		{"ReceiveMessage", `{"AttributeNames":"All"}`, false},
	}
}

// The library is the reference, except for duplicates and requests beyond the limits.
func checkSameAsLibrary(t *testing.T, body []byte, action action) {
	t.Helper()
	ours, library := action.request(), action.request()
	err := decodeJSON(body, ours)
	if err != nil && (strings.Contains(err.Error(), "levels deep") || strings.Contains(err.Error(), "values.")) {
		return
	}
	if wantErr := decodeByLibrary(body, library); (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: %v, the library says %v", body, err, wantErr)
	}
	if err == nil && jsontext.Value(body).IsValid() && !reflect.DeepEqual(ours, library) {
		t.Fatalf("read %q as %+v, the library as %+v", body, ours, library)
	}
}

func TestDecodeMatchesTheLibrary(t *testing.T) {
	t.Parallel()
	table := sqsActions()
	for _, test := range decodeCases() {
		if err := decodeJSON([]byte(test.body), table[test.action].request()); (err == nil) != test.accepted {
			t.Errorf("%s %s: %v, want accepted %v", test.action, test.body, err, test.accepted)
		}
		checkSameAsLibrary(t, []byte(test.body), table[test.action])
	}
}
