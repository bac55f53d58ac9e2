package envelope

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func TestPointer(t *testing.T) {
	t.Parallel()
	const v2 = `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k/ä"}]`
	for body, want := range map[string]bool{
		v2: true,
		strings.Replace(v2, "software.amazon.payloadoffloading.PayloadS3Pointer",
			"com.amazon.sqs.javamessaging.MessageS3Pointer", 1): true,
		strings.Replace(v2, "software", "shaded.software", 1):   true,
		" \n" + strings.ReplaceAll(v2, ",", " , ") + "\n":       true,
		strings.Replace(v2, `"s3Key"`, `"more":[1],"s3Key"`, 1): true,
		"":                                   false,
		"[]":                                 false,
		`["x"]`:                              false,
		`{"s3BucketName":"b"}`:               false,
		v2 + "x":                             false,
		strings.Replace(v2, `}]`, `},1]`, 1): false,
		strings.Replace(v2, "PayloadS3Pointer", "Payload", 1):              false,
		strings.Replace(v2, "software.amazon.payloadoffloading.", "", 1):   false,
		strings.Replace(v2, "s3Key", "s3key", 1):                           false,
		strings.Replace(v2, `"k/ä"`, `7`, 1):                               false,
		strings.Replace(v2, `"k/ä"`, `""`, 1):                              false,
		strings.Replace(v2, `"b"`, `""`, 1):                                false,
		strings.Replace(v2, "k/ä", strings.Repeat("k", 1025), 1):           false,
		strings.Replace(v2, `"b"`, `"`+strings.Repeat("b", 256)+`"`, 1):    false,
		strings.Replace(v2, "}", strings.Repeat(" ", 9000)+"}", 1):         false,
		`[{"s3BucketName":"b","s3Key":"k"},"software.x.PayloadS3Pointer"]`: false,
	} {
		bucket, key, ok := parsePointer(body)
		if ok != want || ok && (bucket != "b" || key != "k/ä") || !ok && bucket+key != "" {
			t.Errorf("%q %q %v for %.100s, want %v", bucket, key, ok, body, want)
		}
	}
}

func TestKeysThatLeaveTheBucket(t *testing.T) {
	t.Parallel()
	for key, leaves := range map[string]bool{
		"../other/k": true, "a/../../other/k": true, "a/..": true, "..": true, ".": true, "./k": true, "/../other/k": true,
		"a/./k":      true,
		`..\other\k`: true, "%2e%2e/other/k": true, "%2E./other/k": true, "..%2fother%2Fk": true, "%252e%252e/other/k": true,
		"%25252e%25252e%25252fother": true, "a/..;x/k": true, "..%5cother": true,
		"k": false, "2026/11/k": false, "..k": false, "k..": false, "a/...": false, "a/.hidden": false, "50%": false,
		"%zz/k": false, "k%2": false, ".%2e": true, "a/%2e": true, "a//k": false, "/k": false,
		"%2f%2fk": false, "a.b/c..d": false, "😀/ä": false,
	} {
		fetched := false
		o := &Opener{Buckets: []string{"b"}, Fetcher: fetchFunc(func(string) { fetched = true })}
		m := &queue.Message{Body: pointerTo("b", key),
			Attributes: []queue.Attribute{{Name: "ExtendedPayloadSize", Type: "Number", Value: "1"}}}
		inner, err := o.Open(t.Context(), m)
		opened := inner.Body != m.Body
		if leaves != errors.Is(err, errBadKey) || fetched == leaves || opened == leaves {
			t.Errorf("%q: fetched %v, opened %v, %v", key, fetched, opened, err)
		}
	}
}

type fetchFunc func(key string)

func (f fetchFunc) Fetch(_ context.Context, _, key string, _ int64) ([]byte, error) {
	f(key)
	return nil, nil
}

func TestPointerAsLongAsAllowed(t *testing.T) {
	t.Parallel()
	bucket, key := strings.Repeat("b", maxBucket), strings.Repeat("k", maxKey)
	body := pointerTo(bucket, key)
	body += strings.Repeat(" ", maxBody-len(body))
	if b, k, ok := parsePointer(body); !ok || b != bucket || k != key {
		t.Errorf("got bucket %q, key %q, %v", b, k, ok)
	}
	if _, _, ok := parsePointer(body + " "); ok {
		t.Error("a longer one is accepted")
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(pointerTo("b", "k"))
	f.Add(`["a.MessageS3Pointer",{"s3BucketName":"\ud800","s3Key":"\u0000"}]`)
	f.Fuzz(func(t *testing.T, body string) {
		bucket, key, ok := parsePointer(body)
		if !ok {
			return
		}
		if bucket == "" || key == "" || len(bucket) > maxBucket || len(key) > maxKey ||
			len(body) < len(`["..S3Pointer",{}]`) {
			t.Errorf("%q %q", bucket, key)
		}
		if b, k, ok := parsePointer(pointerTo(bucket, key)); !ok || b != bucket || k != key {
			t.Errorf("encoded and parsed again: %q %q", b, k)
		}
	})
}

func pointerTo(bucket, key string) string {
	text, _ := json.Marshal([]any{"software.amazon.payloadoffloading.PayloadS3Pointer",
		map[string]string{"s3BucketName": bucket, "s3Key": key}})
	return string(text)
}

type fakeS3 struct {
	objects      map[string]string
	fetched      []string
	ignoresLimit bool
}

var errNoObject = errors.New("object not found")

func (s *fakeS3) Fetch(_ context.Context, bucket, key string, limit int64) ([]byte, error) {
	s.fetched = append(s.fetched, bucket+"/"+key)
	text, ok := s.objects[bucket+"/"+key]
	switch {
	case !ok:
		return nil, errNoObject
	case int64(len(text)) > limit && !s.ignoresLimit:
		return nil, ErrTooLarge
	}
	return []byte(text), nil
}

func TestOpen(t *testing.T) {
	t.Parallel()
	mark := func(name, size string) []queue.Attribute {
		return []queue.Attribute{{Name: "Aa", Type: "String", Value: "1"}, {Name: name, Type: "Number", Value: size},
			{Name: "z", Type: "String", Value: "2"}}
	}
	full := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		body       string
		attributes []queue.Attribute
		noLimit    bool
		want       string
		err        error
		text       string
		fetches    int
	}{
		"pointer":              {pointerTo("mine", "k"), mark("ExtendedPayloadSize", "5"), false, "hello", nil, "", 1},
		"older client":         {pointerTo("mine", "k"), mark("SQSLargePayloadSize", "5"), false, "hello", nil, "", 1},
		"size is not a number": {pointerTo("mine", "k"), mark("ExtendedPayloadSize", "five"), false, "hello", nil, "", 1},
		"another bucket": {pointerTo("theirs", "k"), mark("ExtendedPayloadSize", "5"), false, "", errNotAllowed,
			`"theirs", and only these are allowed: other, mine`, 0},
		"in another case": {pointerTo("Mine", "k"), mark("ExtendedPayloadSize", "5"), false, "", errNotAllowed,
			`"Mine"`, 0},
		"missing": {pointerTo("mine", "secret-key"), mark("ExtendedPayloadSize", "5"), false, "",
			errNoObject, "fetching the payload from S3 bucket mine", 1},
		"as large as allowed": {pointerTo("mine", "full"), mark("ExtendedPayloadSize", "100"), false, full, nil, "", 1},
		"announced too large": {pointerTo("mine", "k"), mark("ExtendedPayloadSize", "101"), false, "", ErrTooLarge,
			"101 bytes", 0},
		"too large": {pointerTo("mine", "large"), mark("ExtendedPayloadSize", "5"), false, "", ErrTooLarge,
			"fetching", 1},
		"too large, limit ignored": {pointerTo("mine", "large"), mark("ExtendedPayloadSize", "5"), true, "", ErrTooLarge,
			"more than 100 bytes", 1},
		"not a pointer": {"secret body", mark("ExtendedPayloadSize", "5"), false, "", ErrNoPointer,
			"ExtendedPayloadSize", 0},
		"not marked": {pointerTo("mine", "k"), mark("extendedpayloadsize", "5"), false,
			pointerTo("mine", "k"), nil, "", 0},
		"plain": {"secret body", nil, false, "secret body", nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeS3{objects: map[string]string{"mine/k": "hello", "mine/full": full, "mine/large": full + "x",
				"theirs/k": "evil"}, ignoresLimit: c.noLimit}
			o := &Opener{Fetcher: s, Buckets: []string{"other", "mine"}, Limit: 100}
			m := queue.Message{ID: "id", Body: c.body, Attributes: c.attributes, ReceiptHandle: "r"}
			given := m
			given.Attributes = append([]queue.Attribute(nil), m.Attributes...)
			inner, err := o.Open(t.Context(), &m)
			opened := inner.Body != m.Body
			if !cmp.Equal(m, given) || len(s.fetched) != c.fetches {
				t.Errorf("changed: %s; fetched %v", cmp.Diff(given, m), s.fetched)
			}
			if c.want == "" {
				if opened || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) ||
					strings.Contains(err.Error(), "secret") {
					t.Errorf("%v, %v, want %v with %q", opened, err, c.err, c.text)
				}
				return
			}
			if err != nil || inner.Body != c.want || inner.ID != "id" || inner.ReceiptHandle != "r" ||
				opened != (c.fetches == 1) {
				t.Errorf("%+v, %v, %v", inner, opened, err)
			}
			if opened && text(inner.Attributes) != "Aa:String=1 z:String=2" || !opened && !cmp.Equal(inner, m) {
				t.Errorf("attributes %s", text(inner.Attributes))
			}
		})
	}
}

func TestNothingIsFetchedWithoutAllowedBuckets(t *testing.T) {
	t.Parallel()
	s := &fakeS3{objects: map[string]string{"b/k": "x"}}
	m := queue.Message{Body: pointerTo("b", "k"),
		Attributes: []queue.Attribute{{Name: "ExtendedPayloadSize", Type: "Number", Value: "1"}}}
	if _, err := (&Opener{Fetcher: s}).Open(t.Context(), &m); !errors.Is(err, errNotAllowed) ||
		!strings.Contains(err.Error(), "no bucket is allowed") || s.fetched != nil {
		t.Error(err, s.fetched)
	}
	if inner, err := (&Opener{Fetcher: s, Buckets: []string{"b"}}).Open(t.Context(), &m); inner.Body != "x" || err != nil {
		t.Error(inner, err)
	}
}
