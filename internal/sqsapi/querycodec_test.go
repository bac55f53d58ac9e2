package sqsapi

import (
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func encodeForm(request any, action string) (values []formValue) {
	appendForm(&values, "", reflect.ValueOf(request).Elem(), action)
	return values
}

func appendForm(values *[]formValue, prefix string, v reflect.Value, action string) {
	add := func(name, value string) { *values = append(*values, formValue{name: name, value: value}) }
	for _, field := range wireFieldsOf(v.Type(), action) {
		name := prefix + field.query
		numbered := func(i int) string { return name + "." + strconv.Itoa(i+1) }
		switch value := v.FieldByIndex(field.index).Interface().(type) {
		case string:
			add(name, value)
		case *string:
			if value != nil {
				add(name, *value)
			}
		case *int:
			if value != nil {
				add(name, strconv.Itoa(*value))
			}
		case []byte:
			if value != nil {
				add(name, base64.StdEncoding.EncodeToString(value))
			}
		case []string:
			for i := range value {
				add(numbered(i), value[i])
			}
		case [][]byte:
			for i := range value {
				add(numbered(i), base64.StdEncoding.EncodeToString(value[i]))
			}
		case map[string]string:
			for i, key := range slices.Sorted(maps.Keys(value)) {
				add(numbered(i)+"."+field.key, key)
				add(numbered(i)+".Value", value[key])
			}
		case attributeList:
			for i := range value {
				add(numbered(i)+".Name", value[i].name)
				appendForm(values, numbered(i)+".Value.", reflect.ValueOf(value[i]), action)
			}
		default:
			for i := range v.FieldByIndex(field.index).Len() {
				appendForm(values, numbered(i)+".", v.FieldByIndex(field.index).Index(i), action)
			}
		}
	}
}

func encoded(values []formValue) string {
	var form []string
	for _, v := range values {
		form = append(form, url.QueryEscape(v.name)+"="+url.QueryEscape(v.value))
	}
	return strings.Join(form, "&")
}

// asJSON encodes missing lists as empty ones.
func asJSON(t *testing.T, request any) string {
	t.Helper()
	text, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryTextParameterCanBeSet(t *testing.T) {
	t.Parallel()
	var check func(typ reflect.Type, name string)
	check = func(typ reflect.Type, name string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for _, field := range wireFieldsOf(typ, "") {
			if !isText(field.typ) {
				check(field.typ, name+"."+field.name)
				continue
			}
			v := reflect.New(field.typ).Elem()
			if err := setText(v, "1234"); err != nil || v.IsZero() {
				t.Errorf("%s.%s: not set (%v)", name, field.name, err)
			}
		}
	}
	for name, act := range sqsActions() {
		check(reflect.TypeOf(act.request()), name)
	}
}

func TestA8BothProtocolsFillTheSameRequest(t *testing.T) {
	t.Parallel()
	for _, test := range decodeCases() {
		if !test.accepted {
			continue
		}
		act, parameters := parametersFor(test.action)
		request := act.request()
		if err := decodeByLibrary([]byte(test.body), request); err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, act, parameters, test.action, request)
	}
}

func checkRoundTrip(t *testing.T, act action, parameters parameters, name string, request any) {
	t.Helper()
	want := asJSON(t, request)
	forward := encodeForm(request, name)
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	for _, values := range [][]formValue{forward, backward} {
		form := encoded(values)
		parsed, err := parseForm(nil, form)
		again := act.request()
		if err == nil {
			err = parameters.decode(parsed, again)
		}
		if got := asJSON(t, again); err != nil || got != want {
			t.Fatalf("%s %q is read as\n%s, %v, want\n%s", name, form, got, err, want)
		}
	}
	again := act.request()
	if err := decodeByLibrary([]byte(want), again); err != nil || asJSON(t, again) != want {
		t.Fatalf("%s %s is read as %s, %v", name, want, asJSON(t, again), err)
	}
	checkSameAsLibrary(t, []byte(want), act)
}

func FuzzDecodeQuery(f *testing.F) {
	for _, seed := range []string{
		"", "Action=SendMessage&MessageBody=a", "&=&a&%", "QueueUrl=q&AttributeName.1=All&AttributeName.2=x",
		"SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=n&" +
			"SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=Binary&" +
			"SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryValue=AP8%3D",
		"DeleteMessageBatchRequestEntry.2.Id=b&DeleteMessageBatchRequestEntry.1.Id=a", "Attribute.Name=a&Attribute.Value=b",
		"Tag.1.Key=a&Tag.1.Value=b&Tag.2.Key=a", "AttributeName.01=a&AttributeName.1=b", "MessageAttribute.1.Name=a&" +
			"MessageAttribute.1.Value.StringListValue.1=x&MessageAttribute.1.Value.BinaryListValue.2=AA%3D%3D", "TagKey.=a",
		"TagKey.1.1=a&TagKey..1=b&TagKey.999999999=c&TagKey.9999999999=d", "DelaySeconds=-5&VisibilityTimeout=x",
	} {
		f.Add(seed)
	}
	table := sqsActions()
	for name, act := range table {
		act.describe(name)
		table[name] = act
	}
	f.Fuzz(func(t *testing.T, form string) {
		values, err := parseForm(nil, form)
		if err != nil {
			checkIsRefusal(t, err)
			return
		}
		for name, act := range table {
			request := act.request()
			if err := act.parameters.decode(slices.Clone(values), request); err != nil {
				checkIsRefusal(t, err)
				continue
			}
			checkRoundTrip(t, act, act.parameters, name, request)
		}
	})
}

func checkIsRefusal(t *testing.T, err error) {
	t.Helper()
	if refusal := asQueueError(err); refusal == nil || refusal.Message == "" || refusal.Code != codeSerialization {
		t.Fatalf("error %#v is no refusal with a message", err)
	}
}

type xmlReceived struct {
	Messages []struct {
		MessageID              string `xml:"MessageId"`
		ReceiptHandle          string
		MD5OfBody              string
		Body                   string
		Attributes             []xmlPair `xml:"Attribute"`
		MD5OfMessageAttributes string
		MessageAttributes      []struct {
			Name  string
			Value wireAttribute
		} `xml:"MessageAttribute"`
	} `xml:"Message"`
}

type xmlPair struct{ Name, Value string }

func checkReceivedXML(t *testing.T, r *receiveMessageResponse) {
	t.Helper()
	text := slices.Concat([]byte("<r>"), r.appendXML(nil), []byte("</r>"))
	var read xmlReceived
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var got wireReceived
	for _, m := range read.Messages {
		out := wireMessage{MessageID: m.MessageID, ReceiptHandle: m.ReceiptHandle, MD5OfBody: m.MD5OfBody, Body: m.Body,
			MD5OfMessageAttributes: m.MD5OfMessageAttributes}
		for _, p := range m.Attributes {
			if out.Attributes == nil {
				out.Attributes = map[string]string{}
			}
			out.Attributes[p.Name] = p.Value
		}
		for _, a := range m.MessageAttributes {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]wireAttribute{}
			}
			out.MessageAttributes[a.Name] = a.Value
		}
		got.Messages = append(got.Messages, out)
	}
	want := standardReceived(r)
	for i := range want.Messages {
		want.Messages[i].clean()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as\n%+v, want\n%+v", text, got, want)
	}
}

func (m *wireMessage) clean() {
	for _, text := range []*string{&m.MessageID, &m.ReceiptHandle, &m.Body} {
		*text = replaceNoXML(*text)
	}
	attributes := map[string]wireAttribute{}
	for name, a := range m.MessageAttributes {
		if a.StringValue != nil {
			a.StringValue = new(replaceNoXML(*a.StringValue))
		}
		attributes[replaceNoXML(name)] = wireAttribute{a.StringValue, a.BinaryValue, replaceNoXML(a.DataType)}
	}
	if len(attributes) > 0 {
		m.MessageAttributes = attributes
	}
	for name, value := range m.Attributes {
		m.Attributes[name] = replaceNoXML(value)
	}
}
