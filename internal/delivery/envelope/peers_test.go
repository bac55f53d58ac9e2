package envelope

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type received struct {
	Kind, Body, Topic, Key, Object string
	Attributes                     map[string]struct{ Type, Value string }
}

func (r *received) message() *queue.Message {
	m := &queue.Message{Body: r.Body}
	for name, a := range r.Attributes {
		m.Attributes = append(m.Attributes, queue.Attribute{Name: name, Type: a.Type, Value: a.Value})
	}
	slices.SortFunc(m.Attributes, func(a, b queue.Attribute) int { return cmp.Compare(a.Name, b.Name) })
	return m
}

func TestMessagesOfForeignImplementations(t *testing.T) {
	t.Parallel()
	var counts struct{ notifications, raw, pointers int }
	for _, r := range peers(t) {
		m := r.message()
		switch r.Kind {
		case "notification":
			counts.notifications++
			inner, kind := SNS(m)
			if kind != wrapped || inner.Body != `{"total": "3 €"}` || inner.Attribute(topicAttribute) != r.Topic ||
				inner.Attribute(subjectAttribute) != "new order" ||
				inner.Attribute("tenant") != "acme" || inner.Attribute("n") != "7" || inner.Attribute("raw") != "\x00\xff" {
				t.Errorf("%v %q %s", kind, inner.Body, text(inner.Attributes))
			}
		case "raw":
			counts.raw++
			inner, kind := SNS(m)
			if kind != plain || inner.Body != `{"total": "3 €"}` || inner.Attribute("tenant") != "acme" {
				t.Errorf("%v %q %s", kind, inner.Body, text(inner.Attributes))
			}
		case "pointer":
			counts.pointers++
			o := Opener{Fetcher: &fakeS3{objects: map[string]string{"payloads/" + r.Key: r.Object}},
				Buckets: []string{"payloads"}}
			inner, err := o.Open(t.Context(), m)
			if err != nil || inner.Body != "a large one, more or less" ||
				text(inner.Attributes) != "tenant:String=acme" {
				t.Errorf("%q %s, %v; the pointer was %s with %s", inner.Body, text(inner.Attributes), err, m.Body,
					text(m.Attributes))
			}
		}
	}
	if counts.notifications != 1 || counts.raw != 1 || counts.pointers != 2 {
		t.Errorf("peers sent %+v", counts)
	}
}

func peers(t *testing.T) (all []received) {
	t.Helper()
	python := testpeer.Python(t, "moto[sqs,sns,s3] amazon-sqs-extended-client", "moto.sns", "moto.s3", "moto.sqs",
		"boto3", "sqs_extended_client")
	cmd := exec.Command(python, "testdata/peers.py")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var r received
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
