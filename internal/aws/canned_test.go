package aws

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tendril/internal/sqsapi/sqswire"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

const cannedURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testpeer.Contained(m, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=not a secret"))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Body != nil {
			r.Body.Close()
		}
	}()
	return f(r)
}

func reply(status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body))}
}

func refuse(status int, shape, query, message string, header ...string) *http.Response {
	return reply(status, fmt.Sprintf(`{"__type":"com.amazonaws.sqs#%s","message":%q}`, shape, message),
		append(header, "X-Amzn-Query-Error", query+";Sender")...)
}

func openCanned(t testing.TB, transport http.RoundTripper, events *Events) *Queue {
	t.Helper()
	s, err := OpenSQS(context.Background(), &Options{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.roundTripper = transport
	q, err := s.Queue(context.Background(), cannedURL)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func wireMessage(id, body string) string {
	sum := md5.Sum([]byte(body))
	return fmt.Sprintf(`{"MessageId":%q,"ReceiptHandle":"AQEB%s","MD5OfBody":%q,"Body":%q,"Attributes":{"SenderId":"AIDAEXAMPLE",`+
		`"ApproximateFirstReceiveTimestamp":"1700000001002","ApproximateReceiveCount":"2","SentTimestamp":"1700000000001"}}`,
		id, strings.Repeat("x", 200), hex.EncodeToString(sum[:]), body)
}

func cannedTen() (receive, remove []byte) {
	body := strings.Repeat("b", 200)
	sum := md5.Sum([]byte(body))
	var in, out bytes.Buffer
	in.WriteString(`{"Messages":[`)
	out.WriteString(`{"Successful":[`)
	attrs := sqswire.AttributesMD5([]queue.Attribute{{Name: "kind", Type: "String", Value: "thumbnail"},
		{Name: "n", Type: "Number", Value: "12"}})
	for i := range 10 {
		if i > 0 {
			in.WriteByte(',')
			out.WriteByte(',')
		}
		fmt.Fprintf(&in, `{"MessageId":"5fea7756-0ea4-451a-a703-a558b933e27%d","ReceiptHandle":"%s","MD5OfBody":"%x","Body":"%s",`+
			`"Attributes":{"SenderId":"AIDASSYFHUBOBT7F4XT75","ApproximateFirstReceiveTimestamp":"1677112433437","ApproximateReceiveCount":"1","SentTimestamp":"1677112427387"},`+
			`"MD5OfMessageAttributes":"%x","MessageAttributes":{"kind":{"StringValue":"thumbnail","DataType":"String"},"n":{"StringValue":"12","DataType":"Number"}}}`,
			i, strings.Repeat("AQEB", 60), sum, body, attrs)
		fmt.Fprintf(&out, `{"Id":"%d"}`, i)
	}
	in.WriteString("]}")
	out.WriteString("]}")
	return in.Bytes(), out.Bytes()
}

func isCode(err error, code string) bool { return errors.Is(err, &queue.Error{Code: code}) }
