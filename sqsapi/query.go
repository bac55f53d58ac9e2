package sqsapi

import (
	"mime"
	"net/http"
	"strconv"

	"tendril/queue"
)

// queryRefusal is for clients of the older protocol: they parse XML.
const queryRefusal = `<?xml version="1.0"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>` +
	`<Code>AWS.SimpleQueueService.UnsupportedOperation</Code>` +
	`<Message>This endpoint serves the AWS JSON 1.0 protocol and not the Query protocol. ` +
	`Use an AWS SDK released since November 2023, or send POST / with the headers ` +
	`"X-Amz-Target: AmazonSQS.ACTION" and "Content-Type: application/x-amz-json-1.0".</Message>` +
	`<Detail/></Error><RequestId>`

// refuseQuery answers a request that is not of the JSON protocol.
func (x *exchange) refuseQuery() {
	if !isQuery(x.r) {
		body := []byte("<UnknownOperationException/>\n")
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		x.answer(http.StatusNotFound, "text/xml", body, Answer{Code: codeUnknownOperation})
		return
	}
	body := []byte(queryRefusal + x.id + "</RequestId></ErrorResponse>\n")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.answer(http.StatusBadRequest, "text/xml", body, Answer{Code: queue.CodeUnsupportedOperation})
}

// isQuery reports whether a request is of the Query protocol: an Action in
// the URL, or a form.
func isQuery(r *http.Request) bool {
	if r.URL.Query().Get("Action") != "" {
		return true
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/x-www-form-urlencoded"
}
