package sqsapi

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"tendril/queue"
)

func TestPartsOfAnAttributeMayBeScattered(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	w := query(t, h, "/", "Action=SendMessage&QueueUrl=jobs&MessageBody=x&MessageAttribute.1.Value.DataType=String&"+
		"MessageAttribute.1.Name=a&MessageAttribute.1.Value.StringValue=y")
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	got := mustCall(t, h, "ReceiveMessage", `{"QueueUrl":"jobs","MessageAttributeNames":["All"]}`)
	if !strings.Contains(got, `"MessageAttributes":{"a":{"StringValue":"y","DataType":"String"}}`) &&
		!strings.Contains(got, `"MessageAttributes":{"a":{"DataType":"String","StringValue":"y"}}`) {
		t.Errorf("received %s", got)
	}
}

func query(t testing.TB, h http.Handler, target, form string) *httptest.ResponseRecorder {
	t.Helper()
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
	r.Host = "localhost:9324"
	if form != "" {
		r.Header.Set("Content-Type", formType)
	}
	return serve(h, r)
}

func parametersFor(name string) (action, parameters) {
	act := sqsActions()[name]
	act.describe(name)
	return act, act.parameters
}

func decodeForm(t *testing.T, name, form string) (any, error) {
	t.Helper()
	values, err := parseForm(nil, form)
	if err != nil {
		return nil, err
	}
	act, parameters := parametersFor(name)
	request := act.request()
	return request, parameters.decode(values, request)
}

func TestA8DecodeQuery(t *testing.T) {
	t.Parallel()
	attribute := "MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=v"
	want := attributeList{{name: "n", DataType: "String", StringValue: new("v")}}
	tests := []struct {
		name, action, form string
		want               any
	}{
		{"nothing", "SendMessage", "", &sendMessageRequest{}},
		{"other parameters", "SendMessage", "&&Action=SendMessage&Version=1&x&Future.1.y=2&QueueUrl.1=z&=",
			&sendMessageRequest{}},
		{"a message", "SendMessage", "QueueUrl=q&MessageBody=a+%3Cb%3E%0a&DelaySeconds=5&" + attribute,
			&sendMessageRequest{queueRequest{"q"},
				outgoing{MessageBody: "a <b>\n", DelaySeconds: new(5), MessageAttributes: want}}},
		{"spaces without other escapes", "SendMessage", "QueueUrl=a+b&MessageBody=+c",
			&sendMessageRequest{queueRequest{"a b"}, outgoing{MessageBody: " c"}}},
		{"an empty number", "SendMessage", "DelaySeconds=", &sendMessageRequest{}},
		{"the last counts", "SendMessage", "MessageBody=a&MessageBody=b",
			&sendMessageRequest{outgoing: outgoing{MessageBody: "b"}}},
		{"binary and list values", "SendMessage", "MessageAttribute.1.Name=b&MessageAttribute.1.Value.BinaryValue=AP8%3D&" +
			"MessageAttribute.1.Value.StringListValue.1=x&MessageAttribute.1.Value.BinaryListValue.1=AA%3D%3D",
			&sendMessageRequest{outgoing: outgoing{MessageAttributes: attributeList{{name: "b",
				BinaryValue: []byte{0, 255}, StringListValues: []string{"x"}, BinaryListValues: [][]byte{{0}}}}}}},
		{"an attribute without a value", "SendMessage", "MessageAttribute.1.Name=n",
			&sendMessageRequest{outgoing: outgoing{MessageAttributes: attributeList{{name: "n"}}}}},
		{"an unknown part behind a value", "SendMessage", attribute + "&MessageAttribute.1.Zone=z",
			&sendMessageRequest{outgoing: outgoing{MessageAttributes: want}}},
		{"an empty batch", "DeleteMessageBatch", "DeleteMessageBatchRequestEntry=", &deleteMessageBatchRequest{}},
		{"a batch", "SendMessageBatch", "SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1." +
			strings.ReplaceAll(attribute, "&", "&SendMessageBatchRequestEntry.1.") + "&SendMessageBatchRequestEntry.2.Id=b",
			&sendMessageBatchRequest{Entries: []sendEntry{
				{ID: "a", outgoing: outgoing{MessageAttributes: want}}, {ID: "b"}}}},
		{"an entry without a number", "DeleteMessageBatch", "DeleteMessageBatchRequestEntry.Id=a&" +
			"DeleteMessageBatchRequestEntry.ReceiptHandle=h&DeleteMessageBatchRequestEntry.Future=x",
			&deleteMessageBatchRequest{Entries: []deleteEntry{{"a", "h"}}}},
		{"numbers with gaps", "DeleteMessageBatch",
			"DeleteMessageBatchRequestEntry.3.Id=a&DeleteMessageBatchRequestEntry.999999999.Id=b",
			&deleteMessageBatchRequest{Entries: []deleteEntry{{ID: "a"}, {ID: "b"}}}},
		{"entries in the order of text", "DeleteMessageBatch",
			"DeleteMessageBatchRequestEntry.1.Id=a&DeleteMessageBatchRequestEntry.10.Id=c&DeleteMessageBatchRequestEntry.2.Id=b",
			&deleteMessageBatchRequest{Entries: []deleteEntry{{ID: "a"}, {ID: "b"}, {ID: "c"}}}},
		{"scattered entries", "DeleteMessageBatch", "DeleteMessageBatchRequestEntry.2.Id=b&QueueUrl=q&" +
			"DeleteMessageBatchRequestEntry.1.ReceiptHandle=h&DeleteMessageBatchRequestEntry.2.ReceiptHandle=i&" +
			"DeleteMessageBatchRequestEntry.1.Id=a",
			&deleteMessageBatchRequest{queueRequest{"q"}, []deleteEntry{{"a", "h"}, {"b", "i"}}}},
		{"lists of text", "ReceiveMessage", "AttributeName.1=All&MessageAttributeName.1=a.*&MessageAttributeName.2=b&" +
			"MessageSystemAttributeName.1=SenderId&MaxNumberOfMessages=10",
			&receiveMessageRequest{AttributeNames: []string{"All"}, MessageAttributeNames: []string{"a.*", "b"},
				MessageSystemAttributeNames: []string{"SenderId"}, MaxNumberOfMessages: new(10)}},
		{"a list by its name in JSON", "ReceiveMessage", "AttributeNames.1=All&AttributeNames.2=x",
			&receiveMessageRequest{AttributeNames: []string{"All", "x"}}},
		{"lists without numbers", "ReceiveMessage", "AttributeName=SenderId&AttributeName=SentTimestamp&MessageAttributeName=",
			&receiveMessageRequest{AttributeNames: []string{"SenderId", "SentTimestamp"}}},
		{"lists of no list", "ReceiveMessage", "AttributeName.x=All&AttributeName.x.1=All&AttributeName.1=SenderId",
			&receiveMessageRequest{AttributeNames: []string{"SenderId"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeForm(t, test.action, test.form)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("decoded %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

// Numbers come first, by value; shorter names before longer ones.
func TestSortedParameters(t *testing.T) {
	t.Parallel()
	sorted := []string{"A", "A.", "A.1", "A.1.Id", "A.2", "A.10", "A.10.1", "A.10.Id", "A.Id", "A.b", "B", "B.1", "a"}
	for i, first := range sorted {
		for _, second := range sorted[i+1:] {
			want := []formValue{{name: first, value: "1"}, {name: first, value: "2"}, {name: second}}
			for _, values := range [][]formValue{slices.Clone(want), {want[0], want[2], want[1]}, {want[2], want[0], want[1]}} {
				if sortValues(values); !slices.Equal(values, want) {
					t.Errorf("sorted %+v, want %+v", values, want)
				}
			}
		}
	}
}

// A stored body must not keep the form in memory.
func TestValuesOfAFormAreCopies(t *testing.T) {
	t.Parallel()
	form := "MessageBody=abc&QueueUrl=%61bc"
	values, err := parseForm(nil, form)
	if err != nil || len(values) != 2 {
		t.Fatalf("parsed %+v, %v", values, err)
	}
	start := uintptr(unsafe.Pointer(unsafe.StringData(form)))
	for _, v := range values {
		at := uintptr(unsafe.Pointer(unsafe.StringData(v.value)))
		if v.value != "abc" || start <= at && at < start+uintptr(len(form)) {
			t.Errorf("%s is %q, at %x; the form is at %x", v.name, v.value, at, start)
		}
	}
}

func TestABatchIsReadIntoOneArray(t *testing.T) {
	t.Parallel()
	form := ""
	for i := range queue.MaxBatch {
		form += fmt.Sprintf("&DeleteMessageBatchRequestEntry.%d.Id=a", i+1)
	}
	request, err := decodeForm(t, "DeleteMessageBatch", form)
	if err != nil {
		t.Fatal(err)
	}
	entries := request.(*deleteMessageBatchRequest).Entries
	if len(entries) != queue.MaxBatch || cap(entries) >= 2*queue.MaxBatch {
		t.Errorf("%d entries in an array of %d", len(entries), cap(entries))
	}
}

// Errors quote at most 80 bytes of input.
func TestUntrustedTextIsShortened(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("x", 80)
	for text, want := range map[string]string{"": "", "x": "x", most: most, most + "x": most + "…",
		most[:79] + "é": most[:79] + "…"} {
		if got := shorten(text); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"": `""`, most: `"` + most + `"`, most + "x": `"` + most + `\u2026"`,
		"\n\xff": `"\n\xff"`, "\xff" + most: `"\xff` + most[:79] + `\u2026"`} {
		if got := quote(text); got != want {
			t.Errorf("quote(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestA8DecodeQueryRefuses(t *testing.T) {
	t.Parallel()
	entry := "SendMessageBatchRequestEntry."
	tests := []struct{ name, form, text string }{
		{"cut off", "MessageBody=%", "MessageBody has an invalid escape sequence"},
		{"no escape in a name", "%zz=1", "a name has an invalid escape sequence"},
		{"Latin-1", "MessageBody=%E9", "not valid UTF-8"},
		{"Latin-1, unescaped", "MessageBody=\xe9", "not valid UTF-8"},
		{"half a surrogate pair", "MessageBody=%ED%A0%BD", "not valid UTF-8"},
		{"no number", entry + "1.DelaySeconds=soon", entry + `1.DelaySeconds must be of type integer, not "soon"`},
		{"a fraction", entry + "1.DelaySeconds=1.5", `must be of type integer, not "1.5"`},
		{"a large number", entry + "1.DelaySeconds=99999999999999999999", "must be of type integer"},
		{"no base64", entry + "1.MessageAttribute.1.Value.BinaryValue=%25%25", "BinaryValue must be base64"},
		{"no base64 in a list", entry + "1.MessageAttribute.1.Value.BinaryListValue.1=%25",
			"BinaryListValue.1 must be base64"},
		{"one number twice", entry + "1.Id=a&" + entry + "01.Id=b", "two elements of a list have the same number"},
		{"many values", strings.Repeat("a=&", maxValues+1), "more than 10000 values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeForm(t, "SendMessageBatch", test.form)
			var refusal *queue.Error
			if !errors.As(err, &refusal) || refusal.Code != codeSerialization || !strings.Contains(refusal.Message, test.text) {
				t.Errorf("decode = %#v, want code %s with %q", err, codeSerialization, test.text)
			}
		})
	}
}

// A QueueUrl parameter overrides the path.
func TestA8WaysToNameAQueue(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for _, name := range []string{"jobs", "mail"} {
		mustCall(t, h, "CreateQueue", `{"QueueName":"`+name+`","Attributes":{"DelaySeconds":"`+strconv.Itoa(len(name))+`"}}`)
	}
	mustCall(t, h, "SetQueueAttributes", `{"QueueUrl":"mail","Attributes":{"DelaySeconds":"9"}}`)
	const get = "Action=GetQueueAttributes&AttributeName.1=DelaySeconds"
	mail := "QueueUrl=" + url.QueryEscape("http://localhost:9324/000000000000/mail")
	for _, test := range []struct{ target, form, delay string }{
		{"/000000000000/jobs?" + get, "", "4"},
		{"/000000000000/jobs?Version=2012-11-05&" + get, "", "4"},
		{"/000000000000/jobs/?" + get, "", "4"},
		{"/000000000000/jobs", get, "4"},
		{"/000000000000/jobs?" + get + "&" + mail, "", "9"},
		{"/000000000000/jobs", get + "&" + mail, "9"},
		{"/?" + get + "&" + mail, "", "9"},
		{"/?X-Amz-Signature=x&X-Amz-Credential=y&" + mail, get, "9"},
		{"/", mail + "&" + get, "9"},
	} {
		w := query(t, h, test.target, test.form)
		if want := "<Name>DelaySeconds</Name><Value>" + test.delay + "</Value>"; w.Code != 200 ||
			!strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s; want %s", test.target, test.form, w.Code, w.Body, want)
		}
	}
	for target, code := range map[string]string{
		"/?" + get:                                    "MissingParameter",
		"/jobs?" + get:                                "InvalidAddress",
		"/000000000000/other?" + get:                  "AWS.SimpleQueueService.NonExistentQueue",
		"/000000000000/jobs?Action=ListQueues":        "InvalidAction",
		"/000000000000/jobs?Action=getqueueurl":       "InvalidAction",
		"/?Action=GetQueueUrl&QueueName=other":        "AWS.SimpleQueueService.NonExistentQueue",
		"/?Action=" + strings.Repeat("%3Cx%3E", 1000): "InvalidAction",
	} {
		w := query(t, h, target, "")
		if !strings.Contains(w.Body.String(), "<Code>"+code+"</Code>") || w.Body.Len() > 600 {
			t.Errorf("%s: %d %s; want %s", target, w.Code, w.Body, code)
		}
	}
}

func TestXMLText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"plain é 😀\t\n":              "plain é 😀\t\n",
		`<a href="x">&amp;'</a>`:     `&lt;a href=&quot;x&quot;&gt;&amp;amp;'&lt;/a&gt;`,
		"a\r\nb":                     "a&#xD;\nb",
		"\x00\x1f\ufffe\uffff\ufffd": "\ufffd\ufffd\ufffd\ufffd\ufffd",
		"\xe9\xed\xa0\xbd":           "\ufffd\ufffd\ufffd\ufffd",
	} {
		if got := string(appendXMLText(nil, text)); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}

func FuzzXMLText(f *testing.F) {
	for _, seed := range []string{"", "a<b>&\"'\r\n\t", "é😀\x00\ufffe", "\xff]]>", "&#13;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal(appendElement(nil, "t", text), &got); err != nil {
			t.Fatalf("%q is written %q: %v", text, appendElement(nil, "t", text), err)
		}
		if want := replaceNoXML(text); got.Text != want {
			t.Errorf("%q is read %q, want %q", text, got.Text, want)
		}
	})
}

func replaceNoXML(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
			return '\ufffd'
		}
		return r
	}, string([]rune(s)))
}

func FuzzServeQuery(f *testing.F) {
	h := newHandler(f, nil)
	h.Stop()
	mustCall(f, h, "CreateQueue", `{"QueueName":"jobs"}`)
	for action := range sqsActions() {
		f.Add(action, "QueueUrl=jobs&MessageBody=x&ReceiptHandle=h&VisibilityTimeout=1&QueueName=jobs&Label=l&TagKey.1=a")
		f.Add(action, "QueueUrl=jobs&"+action+"RequestEntry.1.Id=a&"+action+"RequestEntry.1.MessageBody=b&Tag.1.Key=\x01")
		f.Add(action, "AttributeName=All&Attribute.Name=DelaySeconds&Attribute.Value=1&MaxResults=1&SourceArn=%FF")
	}
	f.Fuzz(func(t *testing.T, action, form string) {
		w := query(t, h, "/000000000000/jobs?Action="+url.QueryEscape(action), form)
		if w.Code >= 500 {
			t.Errorf("%s %s: status %d %s", action, form, w.Code, w.Body)
		}
		if err := xml.Unmarshal(w.Body.Bytes(), new(struct{})); err != nil {
			t.Errorf("%s %s: %v in %s", action, form, err, w.Body)
		}
	})
}
