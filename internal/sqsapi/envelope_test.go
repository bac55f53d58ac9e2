package sqsapi

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"tendril/broker"
	"tendril/queue"
)

// The expected values are from Amazon's model and recorded responses, except for the codes that Amazon's model lacks.
func TestA1A2A3ErrorTable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		shape, query string
		status       int
	}{
		{"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400},
		{"QueueNameExists", "QueueAlreadyExists", 400},
		{"QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", 400},
		{"PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", 403},
		{"OverLimit", "OverLimit", 403},
		{"EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", 400},
		{"TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400},
		{"BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400},
		{"BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", 400},
		{"InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", 400},
		{"MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", 400},
		{"UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", 400},
		{"ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400},
		{"InvalidIdFormat", "InvalidIdFormat", 400},
		{"InvalidMessageContents", "InvalidMessageContents", 400},
		{"InvalidAttributeName", "InvalidAttributeName", 400},
		{"InvalidAttributeValue", "InvalidAttributeValue", 400},
		{"InvalidParameterValueException", "InvalidParameterValue", 400},
		{"MissingRequiredParameterException", "MissingParameter", 400},
		{"ResourceNotFoundException", "ResourceNotFoundException", 404},
		{"InvalidAddress", "InvalidAddress", 404},
		{"InvalidSecurity", "InvalidSecurity", 403},
		{"RequestThrottled", "RequestThrottled", 403},
		{"KmsAccessDenied", "KMS.AccessDeniedException", 400},
		{"SignatureDoesNotMatch", "SignatureDoesNotMatch", 403},
		{"KmsDisabled", "KMS.DisabledException", 400},
		{"KmsInvalidKeyUsage", "KMS.InvalidKeyUsageException", 400},
		{"KmsInvalidState", "KMS.InvalidStateException", 400},
		{"KmsNotFound", "KMS.NotFoundException", 400},
		{"KmsThrottled", "KMS.ThrottlingException", 400},
		{"KmsOptInRequired", "KMS.OptInRequired", 403},
		{"AccessDenied", "AccessDenied", 403},
		{"StorageFull", "StorageFull", 507},
		{"StorageFailed", "ServiceUnavailable", 503},
		{"Closed", "ServiceUnavailable", 503},
		{"Unreachable", "ServiceUnavailable", 503},
		{"StaleTerm", "StaleTerm", 409},
	}
	left := maps.Clone(faults)
	for _, code := range []string{codeUnknownOperation, codeSerialization, codeTooLarge, codeMethodNotAllowed,
		codeEncoding, codeInternal} {
		delete(left, code) // before an action runs; see TestA1A5A8Envelope
	}
	for _, test := range tests {
		w := httptest.NewRecorder()
		x := exchange{h: &Handler{}, w: w, form: awsJSON{}, id: "id"}
		x.fail(queue.Errorf(test.shape, "Why \"%s\".", test.shape))
		side := "Sender"
		if test.status >= 500 {
			side = "Receiver"
		}
		if w.Code != test.status || w.Header().Get("X-Amzn-Query-Error") != test.query+";"+side {
			t.Errorf("%s: status %d, query error %q; want %d, %q", test.shape, w.Code, w.Header().Get("X-Amzn-Query-Error"),
				test.status, test.query)
		}
		var body map[string]string
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		text := `Why "` + test.shape + `".`
		if test.shape == "QueueDoesNotExist" {
			text = "The specified queue does not exist."
		}
		if len(body) != 2 || body["__type"] != "com.amazonaws.sqs#"+test.shape || body["message"] != text {
			t.Errorf("%s: %v", test.shape, body)
		}
		delete(left, test.shape)
	}
	for code := range left {
		t.Errorf("%s is in the table and not in this test", code)
	}
}

func TestUnexpectedErrorsStayInside(t *testing.T) {
	t.Parallel()
	var action, id string
	var failure error
	w := httptest.NewRecorder()
	x := exchange{h: &Handler{failed: func(a, requestID string, err error) {
		action, id, failure = a, requestID, err
	}}, w: w, form: awsJSON{}, id: "request-7", action: "SendMessage"}
	cause := errors.New("open /var/lib/secret: permission denied")
	x.fail(cause)
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "request-7") {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	if failure != cause || action != "SendMessage" || id != "request-7" {
		t.Errorf("reported %s %s %v", action, id, failure)
	}
}

var requestID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func TestA1A5A8Envelope(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	tests := []struct {
		name, method, url, target, contentType, body string
		status                                       int
		wantType, want                               string
	}{
		{"JSON", "POST", "/", "AmazonSQS.ListQueues", jsonType, "{}", 200, jsonType, "{}"},
		{"JSON without a body", "POST", "/", "AmazonSQS.ListQueues", jsonType, "", 200, jsonType, "{}"},
		{"JSON, type of another tool", "POST", "/", "AmazonSQS.ListQueues", "application/json", "{}", 200, jsonType, "{}"},
		{"JSON to a queue's path", "POST", "/000000000000/jobs", "AmazonSQS.ListQueues", jsonType, "{}", 200, jsonType, "{}"},
		{"unknown action", "POST", "/", "AmazonSQS.Explode", jsonType, "{}", 400, jsonType,
			`{"__type":"com.amazonaws.sqs#UnknownOperationException","message":"The operation \"AmazonSQS.Explode\" is not served by this endpoint."}`},
		{"another service", "POST", "/", "DynamoDB_20120810.ListTables", jsonType, "{}", 400, jsonType,
			`UnknownOperationException`},
		{"JSON by GET", "GET", "/", "AmazonSQS.ListQueues", jsonType, "", 405, jsonType,
			`requires the method POST, not \"GET\"`},
		{"Query by form", "POST", "/", "", "application/x-www-form-urlencoded; charset=utf-8", "Action=ListQueues", 200,
			"text/xml", "<ListQueuesResult/>"},
		{"Query without a content type", "POST", "/", "", "", "Action=ListQueues", 200, "text/xml", "<ListQueuesResult/>"},
		{"Query by URL", "GET", "/000000000000/jobs?Action=PurgeQueue", "", "", "", 400, "text/xml",
			"<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"},
		{"Query by URL and form", "POST", "/?Action=ListQueues", "", "application/x-www-form-urlencoded", "MaxResults=0", 400,
			"text/xml", "Value for parameter MaxResults is invalid."},
		{"Query by another method", "PUT", "/?Action=ListQueues", "", "", "", 405, "text/xml", "not &quot;PUT&quot;."},
		{"Query, action of the registry", "POST", "/?Action=Paused", "", "", "", 400, "text/xml",
			"<Code>InvalidAction</Code>"},
		{"Query, large", "POST", "/", "", "application/x-www-form-urlencoded", "Action=" + strings.Repeat(" ", MaxBody), 413,
			"text/xml", "larger than 6553600 bytes"},
		{"no action", "GET", "/", "", "", "", 404, "text/xml", "<UnknownOperationException"},
		{"no action to a queue", "POST", "/000000000000/jobs", "", "text/plain", "hello", 404, "text/xml",
			"<UnknownOperationException"},
		{"as large as allowed, announced", "POST", "/", "AmazonSQS.ListQueues", jsonType, strings.Repeat(" ", MaxBody), 200,
			jsonType, "{}"},
		{"too large, announced", "POST", "/", "AmazonSQS.SendMessage", jsonType, strings.Repeat(" ", MaxBody+1), 413,
			jsonType, "larger than 6553600 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(test.method, test.url, strings.NewReader(test.body))
			r.Host = "localhost"
			if test.target != "" {
				r.Header.Set("X-Amz-Target", test.target)
			}
			r.Header.Set("Content-Type", test.contentType)
			w := serve(h, r)
			if w.Code != test.status || w.Header().Get("Content-Type") != test.wantType ||
				!strings.Contains(w.Body.String(), test.want) {
				t.Errorf("answer %d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if allow := w.Header().Get("Allow"); strings.Contains(allow, "POST") != (test.status == 405) {
				t.Errorf("Allow %q", allow)
			}
			if id := w.Header().Get("X-Amzn-Requestid"); !requestID.MatchString(id) {
				t.Errorf("request id %q", id)
			}
		})
	}
}

func TestLargeBodiesAreNotRead(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for announced, most := range map[int64]int{MaxBody + 1: 0, 1 << 40: 0, -1: 2 * MaxBody} {
		r := newRequest(t.Context(), "SendMessage", "")
		endless := &spaces{}
		r.Body, r.ContentLength = io.NopCloser(endless), announced
		w := serve(h, r)
		if w.Code != http.StatusRequestEntityTooLarge || endless.read > most {
			t.Errorf("length %d: status %d, read %d bytes", announced, w.Code, endless.read)
		}
	}
}

type spaces struct{ read int }

func (s *spaces) Read(p []byte) (int, error) {
	s.read += len(p)
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

// Quadratic decoding would take minutes.
func TestLargestMessageInItsLongestForm(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	mustCall(t, h, "CreateQueue", `{"QueueName":"jobs"}`)
	mustCall(t, h, "SendMessage",
		`{"QueueUrl":"http://localhost:9324/000000000000/jobs","MessageBody":"`+strings.Repeat(`\u003c`, maxMessage)+`"}`)
	w := call(h, "SendMessage", `{"QueueUrl":"jobs","MessageBody":"`+strings.Repeat(`\u003c`, maxMessage)+`x"}`)
	want := "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
	if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("one byte more: %d %s", w.Code, w.Body)
	}
}

func TestEncodedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for _, c := range []struct {
		name, target, body, encoding string
		status                       int
	}{
		{"JSON, gzip", "AmazonSQS.ListQueues", "{}", "gzip", http.StatusUnsupportedMediaType},
		{"JSON, identity", "AmazonSQS.ListQueues", "{}", "identity", http.StatusOK},
		{"Query, gzip", "", "Action=ListQueues", "gzip", http.StatusUnsupportedMediaType},
		{"Query, none", "", "Action=ListQueues", "", http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("POST", "/", strings.NewReader(c.body))
			r.Host = "localhost"
			if c.target != "" {
				r.Header.Set("X-Amz-Target", c.target)
			}
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			w := serve(h, r)
			if w.Code != c.status {
				t.Errorf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
		})
	}
}

func TestA6QueueURLCarriesTheHostThatWasCalled(t *testing.T) {
	t.Parallel()
	h := New(newBroker(t, &broker.Options{AccountID: "123456789012"}), nil)
	for _, host := range []string{"localhost:9324", "127.0.0.1:1234", "[::1]:9324", "localhost"} {
		r := newRequest(t.Context(), "CreateQueue", `{"QueueName":"jobs"}`)
		r.Host = host
		w := serve(h, r)
		if want := `{"QueueUrl":"http://` + host + `/123456789012/jobs"}`; w.Body.String() != want {
			t.Errorf("got %s, want %s", w.Body, want)
		}
	}
	r := newRequest(t.Context(), "GetQueueUrl", `{"QueueName":"jobs"}`)
	r.TLS = &tls.ConnectionState{}
	w := serve(h, r)
	if want := `{"QueueUrl":"https://localhost:9324/123456789012/jobs"}`; w.Body.String() != want {
		t.Errorf("over TLS got %s, want %s", w.Body, want)
	}
}

func FuzzServe(f *testing.F) {
	h := newHandler(f, nil)
	h.Stop()
	for _, name := range []string{"jobs", "steps.fifo"} {
		body := `{"QueueName":"` + name + `"}`
		if strings.HasSuffix(name, ".fifo") {
			body = `{"QueueName":"steps.fifo","Attributes":{"FifoQueue":"true"}}`
		}
		mustCall(f, h, "CreateQueue", body)
	}
	for action := range sqsActions() {
		f.Add(action, `{"QueueUrl":"jobs","MessageBody":"x","ReceiptHandle":"h","VisibilityTimeout":1}`)
		f.Add(action, `{"QueueUrl":"steps.fifo","MessageBody":"x","MessageGroupId":"g","MessageDeduplicationId":"d","Entries":[{"Id":"a","MessageBody":"x"}]}`)
		f.Add(action, `{"QueueName":"jobs","QueueUrl":"jobs","AttributeNames":["All"],"Attributes":{"DelaySeconds":"1"},"Tags":{"a":"b"},"TagKeys":["a"]}`)
	}
	f.Fuzz(func(t *testing.T, action, body string) {
		w := call(h, action, body)
		if w.Code >= 500 {
			t.Errorf("%s %s: status %d %s", action, body, w.Code, w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: answered %s", action, body, w.Body)
		}
	})
}
