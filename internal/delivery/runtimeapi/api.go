package runtimeapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"tendril/queue"
)

const (
	headerPatience = 10 * time.Second
	// A function needs one or two connections. Without a limit, any local program could exhaust the file descriptors.
	maxConnections = 16
	// An oversized response is read for up to drainLimit more bytes, so that the function receives the rejection.
	drainLimit = 64 << 20
)

type api struct {
	inst    *instance
	address string
	routes  *http.ServeMux
}

func newAPI(inst *instance, address string) *api {
	a := &api{inst: inst, address: address, routes: http.NewServeMux()}
	a.routes.HandleFunc("GET /2018-06-01/runtime/invocation/next", a.next)
	a.routes.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", a.response)
	a.routes.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", a.functionError)
	a.routes.HandleFunc("POST /2018-06-01/runtime/init/error", a.initError)
	return a
}

// ServeHTTP serves only the function, because any local program and any page in a local browser can reach the port.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != a.address || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || !a.inst.sentBy(r) {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusForbidden, "Forbidden",
			"only the function's own process may use the address in AWS_LAMBDA_RUNTIME_API")
		return
	}
	a.routes.ServeHTTP(w, r)
}

func (a *api) next(w http.ResponseWriter, r *http.Request) {
	pool := a.inst.pool
	request, ok := pool.poll(a.inst)
	if !ok {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "the invocation in progress has no response yet")
		return
	}
	if request.endsInit {
		a.inst.announceReady()
	}

	select {
	case inv := <-request.offer:
		if r.Context().Err() != nil {
			pool.sendBack(a.inst, inv)
			return
		}
		a.write(w, inv)
	case <-r.Context().Done():
		pool.hangUp(a.inst, request.offer)
	case <-a.inst.gone:
	}
}

// write ignores errors: the process then exits or the invocation times out.
func (a *api) write(w http.ResponseWriter, inv *invocation) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(inv.payload)))
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", a.inst.pool.arn)
	h.Set("Lambda-Runtime-Trace-Id", traceHeader(time.Now()))
	_, _ = w.Write(inv.payload)
}

func (a *api) response(w http.ResponseWriter, r *http.Request) {
	pool, id := a.inst.pool, r.PathValue("id")
	if !pool.owesResponse(a.inst, id) {
		refuseID(w)
		return
	}
	if mode := r.Header.Get("Lambda-Runtime-Function-Response-Mode"); mode != "" {
		pool.recordResponse(a.inst, id, failure("Runtime.InvalidResponseModeHeader", id,
			"the function streams its response, which is not supported here: return it as a whole"))
		refuse(w, http.StatusBadRequest, "InvalidFunctionResponseMode",
			"responses cannot be streamed: send the whole response, without the header Lambda-Runtime-Function-Response-Mode")
		return
	}

	body, err := readBody(r)
	switch {
	case errors.Is(err, errBodyTooLarge):
		pool.recordResponse(a.inst, id, failure("Function.ResponseSizeTooLarge", "",
			fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse)))
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
			"Exceeded maximum allowed payload size ("+strconv.Itoa(maxResponse)+" bytes).")
	case err != nil:
		refuseTruncated(w)
	default:
		a.complete(w, id, responseOf(r, body))
	}
}

// responseOf returns a function error if a trailer reports that writing the response failed.
func responseOf(r *http.Request, body []byte) queue.Invocation {
	kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type")
	if kind == "" {
		return success(body)
	}
	text, err := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
	if err != nil {
		text = nil
	}
	return postedError(kind, text)
}

func (a *api) functionError(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !a.inst.pool.owesResponse(a.inst, id) {
		refuseID(w)
		return
	}
	response, err := readError(r)
	if err != nil {
		refuseTruncated(w)
		return
	}
	a.complete(w, id, response)
}

// complete records the response before confirming it, because the function may then exit.
func (a *api) complete(w http.ResponseWriter, id string, response queue.Invocation) {
	if !a.inst.pool.recordResponse(a.inst, id, response) {
		refuseID(w)
		return
	}
	accept(w)
}

func (a *api) initError(w http.ResponseWriter, r *http.Request) {
	response, err := readError(r)
	if err != nil {
		refuseTruncated(w)
		return
	}
	if !a.inst.pool.initReported(a.inst, response) {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "initialization has already finished")
		return
	}
	accept(w)
}

func readError(r *http.Request) (queue.Invocation, error) {
	kind := r.Header.Get("Lambda-Runtime-Function-Error-Type")
	body, err := readBody(r)
	if errors.Is(err, errBodyTooLarge) {
		return postedError(kind, []byte("the function's error is too large to be shown")), nil
	}
	if err != nil {
		return queue.Invocation{}, err
	}
	return postedError(kind, body), nil
}

var errBodyTooLarge = errors.New("the body is too large")

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxResponse {
		_, _ = io.CopyN(io.Discard, r.Body, drainLimit) // the body is rejected in any case
		return nil, errBodyTooLarge
	}
	return body, nil
}

func refuseTruncated(w http.ResponseWriter) {
	refuse(w, http.StatusBadRequest, "TruncatedHTTPRequest", "HTTP request detected as truncated")
}

func refuseID(w http.ResponseWriter) {
	refuse(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`+"\n")
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": text})
}
