package aws

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

func TestCodeOfARefusal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status       int
		shape, query string
		want         string
	}{
		{400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", queue.CodeQueueDoesNotExist},
		{400, "", "AWS.SimpleQueueService.NonExistentQueue", queue.CodeQueueDoesNotExist},
		{400, "AWS.SimpleQueueService.NonExistentQueue", "", queue.CodeQueueDoesNotExist},
		{400, "QueueNameExists", "QueueAlreadyExists", queue.CodeQueueNameExists},
		{400, "InvalidParameterValueException", "InvalidParameterValue", queue.CodeInvalidParameterValue},
		{400, "MissingRequiredParameterException", "MissingParameter", queue.CodeMissingRequiredParameter},
		{400, "ReceiptHandleIsInvalid", "", queue.CodeReceiptHandleIsInvalid},
		{400, "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", queue.CodeMessageNotInflight},
		{403, "OverLimit", "OverLimit", queue.CodeOverLimit},
		{403, "RequestThrottled", "RequestThrottled", queue.CodeRequestThrottled},
		{400, "ThrottlingException", "", queue.CodeRequestThrottled},
		{429, "", "", queue.CodeRequestThrottled},
		{400, "ExpiredTokenException", "", queue.CodeAccessDenied},
		{403, "", "", queue.CodeAccessDenied},
		{401, "", "", queue.CodeAccessDenied},
		{403, "InvalidSecurity", "InvalidSecurity", queue.CodeInvalidSecurity},
		{500, "InternalFailure", "", queue.CodeUnreachable},
		{500, "SomethingNew", "", queue.CodeUnreachable},
		{502, "", "", queue.CodeUnreachable},
		{301, "", "", queue.CodeUnreachable},
		{404, "InvalidAddress", "InvalidAddress", queue.CodeInvalidAddress},
		{400, "SomethingNew", "", "SomethingNew"},
	}
	for _, test := range tests {
		r := &refusal{status: test.status, shape: test.shape, query: test.query}
		if got := r.queueCode(); got != test.want {
			t.Errorf("%d %q %q: code %s, want %s", test.status, test.shape, test.query, got, test.want)
		}
	}
}

func TestErrorsOfTheSDK(t *testing.T) {
	t.Parallel()
	gone := &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueUrl",
		Err: &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue",
			Message: "The specified queue does not exist."}}
	named := &smithy.OperationError{Err: &smithy.GenericAPIError{Code: "com.amazonaws.sqs#QueueDoesNotExist",
		Message: "The specified queue does not exist."}}
	down := &smithy.OperationError{Err: &smithyhttp.RequestSendError{Err: errors.New("dial tcp: refused")}}
	old := &smithy.OperationError{Err: &smithy.GenericAPIError{Code: "UnknownOperationException", Message: "UnknownError"}}
	unavailable := &smithyhttp.Response{Response: &http.Response{StatusCode: 503}}
	proxy := &smithy.OperationError{Err: &smithyhttp.ResponseError{Response: unavailable, Err: errors.New("bad JSON")}}
	for _, test := range []struct {
		err  error
		want error
		says string
	}{
		{gone, queue.ErrNoQueue, "queue jobs does not exist at host: check its name, the account and the region"},
		{named, queue.ErrNoQueue, "queue jobs does not exist at host: check its name, the account and the region"},
		{down, queue.ErrUnreachable,
			"host did not respond: dial tcp: refused; check the network, the region and AWS_ENDPOINT_URL_SQS"},
		{old, &queue.Error{Code: "UnknownOperationException"}, "UnknownOperationException"},
		{proxy, queue.ErrUnreachable,
			"queue jobs: host does not respond like SQS (HTTP status 503 Service Unavailable without an explanation): " +
				"check AWS_ENDPOINT_URL_SQS and any proxy in between"},
	} {
		got := explainSQS(t.Context(), "jobs", "host", test.err)
		if !errors.Is(got, test.want) || got.Error() != test.says {
			t.Errorf("got %q, want %q", got, test.says)
		}
	}
}

func TestAdviceForAHost(t *testing.T) {
	t.Parallel()
	const here, distant = "start the server on this machine, such as 'tendril serve', or correct its address",
		"check the network, the region and AWS_ENDPOINT_URL_SQS"
	for host, want := range map[string]string{
		"127.0.0.1:9324": here, "localhost:9324": here, "[::1]:9324": here, "127.0.0.1": here,
		"sqs.us-east-1.amazonaws.com": distant, "10.0.0.7:9324": distant, "SQS in eu-west-1": distant,
	} {
		if got := adviceFor(host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

func TestReadRefusal(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][2]string{
		`{"__type":"com.amazonaws.sqs#OverLimit","message":"too many"}`: {"OverLimit", "too many"},
		`{"__type":"InvalidAction","Message":"no"}`:                     {"InvalidAction", "no"},
		`{}`:            {"", ""},
		``:              {"", ""},
		`<html></html>`: {"", ""},
		`{"__type":"a`:  {"", ""},
	} {
		if shape, message := readRefusal([]byte(body)); shape != want[0] || message != want[1] {
			t.Errorf("%s: %q, %q; want %q", body, shape, message, want)
		}
	}
}

// For a rejected signature, AWS returns the canonical request, which includes the session token.
func TestNoTokenInErrors(t *testing.T) {
	t.Parallel()
	const text = "The request signature we calculated does not match.\n\nThe Canonical String should have been\n" +
		"'POST\n/\nx-amz-security-token:CANARY'"
	q := openCanned(t, answers(func() *http.Response {
		return refuse(403, "SignatureDoesNotMatch", "SignatureDoesNotMatch", text)
	}), nil)
	ours := q.Delete(t.Context(), []string{"r"})[0]
	sdks := explainSQS(t.Context(), "jobs", "host",
		&smithy.OperationError{Err: &smithy.GenericAPIError{Code: "SignatureDoesNotMatch", Message: text}})
	for _, err := range []error{ours, sdks} {
		if !errors.Is(err, queue.ErrDenied) || !strings.Contains(err.Error(), "we calculated does not match") {
			t.Errorf("got %v", err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), "CANARY") {
				t.Errorf("%T holds the token", e)
			}
		}
	}
}
