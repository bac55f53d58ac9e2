package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/queue"
)

// service is everything that an environment shows and does for callers of the API. Requests over HTTP and pages both
// come in by answer, which decides whether the caller may, so that the two cannot differ.
type service struct {
	opts    *Options
	log     *slog.Logger
	auditor auditor
	routes  map[string]*route // by their patterns
}

// call is one use of a route.
type call struct {
	ctx    context.Context
	route  *route
	caller caller
	body   body

	method, path string // as the log shows them
	name, id     string // of the path; "" where it has none
	query        url.Values
	// follows asks for a stream, which starts after lastEventID where that is not "".
	follows     bool
	lastEventID string
}

// body is what a caller sends.
type body interface {
	// accept refuses a request whose form its route does not take.
	accept(*route) error
	// read stores the fields in into, a pointer to the route's type.
	read(into any) error
}

// answer answers a call with a value of the route's type or a [*stream], or refuses it.
func (s *service) answer(c *call) (any, *api.Error) {
	answer, err := s.handle(c)
	if _, ok := answer.(*stream); ok && err == nil {
		return answer, nil
	}
	var refusal *api.Error
	if err != nil {
		refusal = c.refusal(err)
	}

	if c.route.kind == bodies {
		hidden, ok := withoutBodies(answer)
		if ok && s.opts.Access.HideBodies && !c.wantsBodies() {
			answer = hidden
		} else if ok && refusal == nil {
			s.recordRead(c, answer)
		}
	}
	// Programs send too many messages to log each call.
	if c.route.kind.acts() && (c.route.kind != produce || !c.caller.bearer) {
		s.record(c, refusal, answer)
	}

	if refusal != nil {
		return nil, refusal
	}
	if !c.caller.may(api.ScopeRead) {
		answer = public(answer)
	}
	return answer, nil
}

// handle calls the route's handler for a caller who may use it.
func (s *service) handle(c *call) (any, error) {
	if refusal := s.permit(c); refusal != nil {
		return nil, refusal
	}
	if err := c.body.accept(c.route); err != nil {
		return nil, err
	}
	if need := c.route.need; need != nil && !need.has() {
		return nil, api.NewError(http.StatusConflict, need.message, need.hint)
	}
	return c.route.handle(c)
}

// refusal is an error of the call as its caller gets it, with the id of the request.
func (c *call) refusal(err error) *api.Error {
	refusal := *asRefusal(err)
	if refusal.Code == queue.CodeQueueDoesNotExist && c.name != "" && strings.Contains(c.route.pattern, "/queues/{name}") {
		refusal.Message = "there is no queue " + strconv.Quote(c.name)
	}
	refusal.RequestID = c.caller.requestID
	return &refusal
}

// wantsBodies reports whether a call asks for bodies where they are hidden.
func (c *call) wantsBodies() bool { return c.query.Get("body") == "1" }

// NewInProcessClient returns a client for pages of this process, which may see and do as much as the sender of the
// request from: its cookie, authorization, host and address count.
func NewInProcessClient(s *Server, from *http.Request) *api.Client {
	return api.NewClient(api.Instance{PID: os.Getpid(), Console: from.Host}, inProcess{s, from})
}

// inProcess is the [api.Transport] of a page: it calls the service.
type inProcess struct {
	server *Server
	from   *http.Request
}

// Answer calls the service. The sender is identified anew each time, since a session may end while its page is open.
func (p inProcess) Answer(ctx context.Context, r *api.Request, into any) error {
	if refusal := p.server.admit(p.from); refusal != nil {
		return refusal
	}
	c := p.server.newCall(ctx, p.from)
	c.route = p.server.service.routes[r.Pattern]
	c.method, _, _ = strings.Cut(r.Pattern, " ")
	c.path = r.Path(func(name string) string { return name })
	c.query = r.Query
	c.body = typedBody{r.Body}
	for i, wildcard := range c.route.wildcards() {
		switch wildcard {
		case "name":
			c.name = r.Names[i]
		case "id":
			c.id = r.Names[i]
		}
	}

	answer, refusal := p.server.service.answer(c)
	if refusal != nil {
		return refusal
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(answer))
	return nil
}

// typedBody is the body of a call in this process; its value is nil for none.
type typedBody struct{ value any }

func (typedBody) accept(*route) error { return nil }

func (b typedBody) read(into any) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(b.value))
	return nil
}
