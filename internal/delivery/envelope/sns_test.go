package envelope

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func notificationWith(more string) string {
	return `{"Type":"Notification","MessageId":"pub-1","TopicArn":"arn:aws:sns:eu-west-1:1:t","Message":"inner \u00e4","Timestamp":"2026-11-03T00:00:00.000Z",
		"SignatureVersion":"1","Signature":"x==","SigningCertURL":"https://example.com/c.pem","UnsubscribeURL":"https://example.com/u"` + more + `}`
}

func text(attributes []queue.Attribute) string {
	var parts []string
	for _, a := range attributes {
		parts = append(parts, fmt.Sprintf("%s:%s=%s", a.Name, a.Type, a.Value))
	}
	return strings.Join(parts, " ")
}

const source = "sns-message-id:String=pub-1 sns-topic-arn:String=arn:aws:sns:eu-west-1:1:t"

func TestSNS(t *testing.T) {
	t.Parallel()
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf(`"a%02d":{"Type":"String","Value":"v"}`, i)
	}
	for name, c := range map[string]struct {
		body  string
		outer []queue.Attribute
		want  string
	}{
		"bare":   {notificationWith(""), nil, source},
		"spaced": {" \r\n\t" + notificationWith(""), nil, source},
		"subject": {notificationWith(`,"Subject":"hi there"`), nil,
			"sns-message-id:String=pub-1 sns-subject:String=hi there sns-topic-arn:String=arn:aws:sns:eu-west-1:1:t"},
		"no subject": {notificationWith(`,"Subject":null`), nil, source},
		"attributes": {notificationWith(`,"MessageAttributes":{"z":{"Type":"Number","Value":"7"},"b":{"Type":"Binary","Value":"AP8="},
			"l":{"Type":"String.Array","Value":"[1]"}}`), nil, "b:Binary=\x00\xff l:String.Array=[1] " + source + " z:Number=7"},
		"same name as in the outer message": {notificationWith(
			`,"MessageAttributes":{"x":{"Type":"String","Value":"inner"},"y":{"Type":"String","Value":"inner"}}`),
			[]queue.Attribute{{Name: "X", Type: "String", Value: "outer"}}, "X:String=outer " + source + " y:String=inner"},
		"invalid names and values": {notificationWith(`,"MessageAttributes":{"a":{"Type":"Binary","Value":"?"},"b":{"Type":"Odd","Value":"1"},"b c":{"Type":"String","Value":"1"},
			"":{"Type":"String","Value":"1"},"AWS.x":{"Type":"String","Value":"1"},".x":{"Type":"String","Value":"1"},"x..y":{"Type":"String","Value":"1"},
			"beanstalk.sqsd.path":{"Type":"String","Value":"/admin"},"Beanstalk.SQSD.task_name":{"Type":"String","Value":"1"}}`), nil, source},
		"names of this package": {notificationWith(
			`,"MessageAttributes":{"SNS-Topic-Arn":{"Type":"String","Value":"arn:evil"},"sns-subject":{"Type":"String","Value":"evil"}}`),
			[]queue.Attribute{{Name: "sns-message-id", Type: "String", Value: "evil"}}, source},
		"more than ten": {notificationWith(`,"MessageAttributes":{` + strings.Join(many, ",") + `}`),
			[]queue.Attribute{{Name: "o", Type: "String", Value: "v"}},
			"a00:String=v a01:String=v a02:String=v a03:String=v a04:String=v a05:String=v a06:String=v a07:String=v " +
				"a08:String=v o:String=v " + source},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := queue.Message{ID: "id", Body: c.body, Attributes: c.outer, ReceiptHandle: "r", ReceiveCount: 3,
				SentAt: time.Unix(1, 0), GroupID: "g", TraceHeader: "t"}
			given := m
			given.Attributes = append([]queue.Attribute(nil), m.Attributes...)
			inner, kind := SNS(&m)
			if kind != wrapped || inner.Body != "inner ä" {
				t.Fatalf("%v, body %q", kind, inner.Body)
			}
			if got := text(inner.Attributes); got != c.want {
				t.Errorf("attributes\n%q, want\n%q", got, c.want)
			}
			if !cmp.Equal(m, given) {
				t.Errorf("the message was changed: %s", cmp.Diff(given, m))
			}
			inner.Body, inner.Attributes = m.Body, m.Attributes
			if !cmp.Equal(inner, m) {
				t.Errorf("other fields: %s", cmp.Diff(m, inner))
			}
		})
	}
}

func TestOtherBodiesAreUnchanged(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string {
		return strings.Replace(notificationWith(""), old, replacement, 1)
	}
	for body, want := range map[string]Kind{
		"":                                             plain,
		"plain text":                                   plain,
		`{"order":1}`:                                  plain,
		`"TopicArn"`:                                   plain,
		`[` + notificationWith("") + `]`:               plain,
		notificationWith("") + "{}":                    plain,
		with(`"Type"`, `"type"`):                       plain,
		with(`"Notification"`, `"notification"`):       plain,
		with(`"Notification"`, `7`):                    plain,
		with(`arn:aws`, `urn:aws`):                     plain,
		with(`"Message"`, `"Text"`):                    plain,
		with(`"inner \u00e4"`, `{"an":"object"}`):      plain,
		with(`"inner \u00e4"`, `null`):                 plain,
		with(`"pub-1"`, `""`):                          plain,
		notificationWith(`,"MessageAttributes":["x"]`): plain,
		strings.Replace(notificationWith(`,"SubscribeURL":"https://example.com/s","Token":"t"`), `"Notification"`,
			`"SubscriptionConfirmation"`, 1): Confirmation,
		with(`"Notification"`, `"UnsubscribeConfirmation"`): Confirmation,
	} {
		m := queue.Message{Body: body, Attributes: []queue.Attribute{{Name: "a", Type: "String", Value: "1"}}}
		inner, kind := SNS(&m)
		if kind != want || !cmp.Equal(inner, m) {
			t.Errorf("%v for %s, want %v and the message itself", kind, body, want)
		}
	}
}

func FuzzSNS(f *testing.F) {
	f.Add(notificationWith(
		`,"Subject":"s","MessageAttributes":{"z":{"Type":"Number","Value":"7"},"b":{"Type":"Binary","Value":"AP8="}}`))
	f.Add(`{"TopicArn":{},"Type":"Notification"}`)
	f.Add(`{"TopicArn":"arn:","Type":"Notification","MessageId":"1","Message":"","MessageAttributes":{"a":null}}`)
	f.Fuzz(func(t *testing.T, body string) {
		outer := []queue.Attribute{{Name: "o", Type: "String", Value: "1"}, {Name: "z", Type: "String", Value: "2"}}
		m := queue.Message{ID: "id", Body: body, Attributes: outer}
		inner, kind := SNS(&m)
		if m.Body != body || text(m.Attributes) != "o:String=1 z:String=2" || inner.ID != "id" {
			t.Error("the message was changed")
		}
		if kind != wrapped {
			if inner.Body != body {
				t.Errorf("%v, but the body differs", kind)
			}
			return
		}
		if !json.Valid([]byte(strings.TrimSpace(body))) {
			t.Error("an envelope that is not JSON")
		}
		if n := len(inner.Attributes); n > maxAttributes+3 || inner.Attribute("o") != "1" || inner.Attribute("z") != "2" ||
			inner.Attribute(topicAttribute) == "" {
			t.Errorf("attributes %s", text(inner.Attributes))
		}
		for i, a := range inner.Attributes {
			if !validName(a.Name) || i > 0 && inner.Attributes[i-1].Name >= a.Name {
				t.Errorf("attribute %q in %s", a.Name, text(inner.Attributes))
			}
		}
	})
}

func TestNamesOfAttributes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "azAZ09_-.b": true, strings.Repeat("n", 256): true,
		"": false, strings.Repeat("n", 257): false, ".a": false, "a.": false, "a..b": false, "aws.x": false,
		"Amazon.x": false, "a/b": false, "a:b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "ä": false,
	} {
		if got := validName(name); got != want {
			t.Errorf("%q is valid: %v, want %v", name, got, want)
		}
	}
}
