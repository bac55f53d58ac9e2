package sqsapi

import (
	"cmp"
	"context"
	"net/url"
	"reflect"
	"strings"

	"tendril/broker"
	"tendril/internal/access"
	"tendril/queue"
)

// action is one action, independent of the protocol that carries it. A protocol decodes into
// what request returns, passes it to run, and encodes what run returns.
type action struct {
	// request returns a pointer to an empty request of the action's type.
	request func() any
	// run takes a filled request of that type. A nil response means that the
	// action has no output. Its errors are [*queue.Error], except for
	// failures inside the process.
	run func(x *actionCall, request any) (response any, err error)
	// ofAccount: the action is not valid at the URL of a queue.
	ofAccount bool

	// The two types, as both protocols read the one and the Query protocol writes the other.
	responseType reflect.Type
	parameters   parameters
	answer       elements
}

// describe completes an action of that name.
func (a *action) describe(name string) {
	a.parameters = parametersOf(reflect.TypeOf(a.request()).Elem(), name)
	t := a.responseType
	if r, ok := reflect.New(t).Interface().(interface{ onTheWire() any }); ok {
		t = reflect.TypeOf(r.onTheWire())
	}
	a.answer = elementsOf(t, name)
}

// ofAccount makes an action one that is not valid at the URL of a queue.
func ofAccount(a action) action {
	a.ofAccount = true
	return a
}

// actionCall is what an action may know of the request beside its parameters.
type actionCall struct {
	ctx    context.Context
	broker *broker.Broker
	queue  string // the queue that the request names; "" for an action that is about none
	// base is the scheme and host that the client used, "http://HOST": older SDKs send
	// their next request to the host of a queue's URL.
	base, account string
	// trace is the X-Amzn-Trace-Id header; "" when absent.
	trace string
	// caller is who calls, and action what.
	caller *access.Caller
	action string
	// token is the header with the registry's token; "" when absent.
	token string
	// stopped is closed once no receive may wait.
	stopped <-chan struct{}
	room    answerRoom
}

// queueURL returns the URL of a queue under the host that the client used.
func (x *actionCall) queueURL(name string) string { return x.base + "/" + x.account + "/" + name }

// queueURLs never returns nil.
func (x *actionCall) queueURLs(names []string) []string {
	urls := make([]string, len(names))
	for i, name := range names {
		urls[i] = x.queueURL(name)
	}
	return urls
}

// exists returns an error unless there is a queue of that name.
func (x *actionCall) exists(name string) error {
	_, err := x.broker.Tags(name)
	return err
}

// nothing is the response of an action without output.
type nothing struct{}

// typed makes an action of a function. If the request names a queue, the function is called with it.
func typed[Request, Response any](f func(*actionCall, *Request) (*Response, error)) action {
	return action{
		request: func() any { return new(Request) },
		run: func(x *actionCall, request any) (_ any, err error) {
			if about, ok := request.(interface{ queueName() (string, error) }); ok {
				if x.queue, err = about.queueName(); err != nil {
					return nil, err
				}
			}
			name := x.queue
			if about, ok := request.(interface{ about() string }); ok {
				name = about.about()
			}
			if err := x.authorize(name); err != nil {
				return nil, err
			}
			response, err := f(x, request.(*Request))
			if err != nil || response == nil {
				return nil, err
			}
			return response, nil
		},
		responseType: reflect.TypeFor[Response](),
	}
}

// counter is a response that knows how many messages it is about.
type counter interface{ messages() int }

// queueRequest is a request about one queue, alone or as a part of a larger one.
type queueRequest struct {
	QueueURL string `json:"QueueUrl"`
}

// setPath sets the queue that the path of a request names, unless a parameter does.
func (r *queueRequest) setPath(path string) { r.QueueURL = cmp.Or(r.QueueURL, path) }

// namedQueue is the part of a request that names a queue, which need not exist, rather than its URL.
type namedQueue struct{ QueueName string }

func (r *namedQueue) about() string { return r.QueueName }

// queueName returns the queue that a QueueUrl names by its last two segments. Any scheme, host, prefix and account are
// accepted, since the name alone identifies a queue of one broker and programs keep URLs of other endpoints; so is a
// bare name. A query is ignored.
func (r *queueRequest) queueName() (string, error) {
	if r.QueueURL == "" {
		return "", missing("QueueUrl")
	}
	path, _, _ := strings.Cut(r.QueueURL, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok {
		if _, path, _ = strings.Cut(rest, "/"); path == "" {
			return "", queue.ErrNoQueue
		}
	} else if !strings.Contains(path, "/") {
		return path, nil
	}

	path = strings.TrimSuffix(path, "/")
	end := strings.LastIndexByte(path, '/')
	if end < 0 {
		return "", notAnAddress(r.QueueURL)
	}
	account := path[strings.LastIndexByte(path[:end], '/')+1 : end]
	name, err := url.PathUnescape(path[end+1:])
	if account == "" || name == "" || err != nil {
		return "", notAnAddress(r.QueueURL)
	}
	return name, nil
}

func notAnAddress(url string) *queue.Error {
	return queue.Errorf(queue.CodeInvalidAddress, "The address %s is not valid for this endpoint.", url)
}
