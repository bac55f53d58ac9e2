package sqsapi

import (
	"cmp"
	"net/url"
	"reflect"
	"strings"

	"tendril/queue"
)

// action is one action of the API. Each protocol decodes a request into the value from request, passes it to run, and
// encodes the response.
type action struct {
	request func() any
	run     func(x *exchange, request any) (response any, err error)
	// ofAccount actions are not valid at a queue's URL.
	ofAccount bool

	// describe sets parameters, for the request, and answer, for a response of type responseType.
	responseType reflect.Type
	parameters   parameters
	answer       wireFields
}

func (a *action) describe(name string) {
	a.parameters = parametersOf(reflect.TypeOf(a.request()).Elem(), name)
	t := a.responseType
	if r, ok := reflect.New(t).Interface().(interface{ onTheWire() any }); ok {
		t = reflect.TypeOf(r.onTheWire())
	}
	a.answer = wireFieldsOf(t, name)
}

func ofAccount(a action) action {
	a.ofAccount = true
	return a
}

type nothing struct{}

func newAction[Request, Response any](f func(*exchange, *Request) (*Response, error)) action {
	required := requiredFields(reflect.TypeFor[Request]())
	return action{
		request: func() any { return new(Request) },
		run: func(x *exchange, request any) (any, error) {
			if err := x.admit(request, required); err != nil {
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

// admit sets x.queue if the request names one, and checks permission and required parameters.
func (x *exchange) admit(request any, required wireFields) (err error) {
	if about, ok := request.(interface{ queueName() (string, error) }); ok {
		if x.queue, err = about.queueName(); err != nil {
			return err
		}
	}
	if err := x.authorize(x.queue); err != nil {
		return err
	}
	return checkRequired(required, request)
}

type queueRequest struct {
	QueueURL string `json:"QueueUrl"`
}

func (r *queueRequest) setPath(path string) { r.QueueURL = cmp.Or(r.QueueURL, path) }

// namedQueue names a queue that need not exist.
type namedQueue struct {
	QueueName string `required:"true"`
}

func (r *namedQueue) queueName() (string, error) { return r.QueueName, nil }

// queueName returns the last segment of QueueUrl, which follows an account, or a bare name. The rest is ignored,
// because clients keep URLs of other endpoints.
func (r *queueRequest) queueName() (string, error) {
	if r.QueueURL == "" {
		return "", missing("QueueUrl")
	}
	path, _, _ := strings.Cut(r.QueueURL, "?")
	if _, hostAndPath, isURL := strings.Cut(path, "://"); isURL {
		_, path, _ = strings.Cut(hostAndPath, "/")
		if path == "" {
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
