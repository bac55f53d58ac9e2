package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/queue"
)

// service answers both HTTP requests and pages, so that both have the same permissions.
type service struct {
	opts    *Options
	auditor auditor
	routes  map[string]*route
}

type call struct {
	ctx    context.Context
	route  *route
	caller caller
	body   body

	method, path string
	name, id     string
	query        url.Values
	// follows means that the caller wants a stream. The stream starts after lastEventID, if set.
	follows     bool
	lastEventID string
}

// pathValue returns the field for a wildcard of the route's pattern.
func (c *call) pathValue(wildcard string) *string {
	if wildcard == "id" {
		return &c.id
	}
	return &c.name
}

type body interface {
	// accept checks the request's headers and, for a slow route, extends its deadlines.
	accept(*route) error
	read(into any) error
}

func (s *service) answer(c *call) (any, *api.Error) {
	answer, err := s.handle(c)
	var refusal *api.Error
	if err != nil {
		refusal = c.refusal(err)
	}
	// Programs send too many messages to record them all.
	if c.route.kind.acts() && (c.route.kind != produce || !c.caller.bearer) {
		s.recordAct(c, refusal, answer)
	}
	if refusal != nil {
		return nil, refusal
	}

	if c.route.kind == bodies {
		answer = s.hideOrRecordBodies(c, answer)
	}
	if !c.caller.may(api.ScopeRead) {
		answer = withoutDetails(answer)
	}
	return answer, nil
}

func (s *service) hideOrRecordBodies(c *call, answer any) any {
	hidden, hasBodies := withoutBodies(answer)
	if !hasBodies {
		return answer
	}
	if s.opts.Access.HideBodies && !c.wantsBodies() {
		return hidden
	}
	s.recordRead(c, answer)
	return answer
}

func (s *service) handle(c *call) (any, error) {
	if refusal := s.permit(c); refusal != nil {
		return nil, refusal
	}
	if err := c.body.accept(c.route); err != nil {
		return nil, err
	}
	if id := c.query.Get(instanceQuery); id != "" && (s.opts.Peers == nil || id != s.opts.Peers.ID()) {
		return s.readPeer(c, id)
	}
	return c.route.handle(c)
}

func (c *call) refusal(err error) *api.Error {
	refusal := *asRefusal(err)
	var own *api.Error
	if !errors.As(err, &own) && refusal.Code == queue.CodeQueueDoesNotExist && c.name != "" && strings.Contains(c.route.pattern, "/queues/{name}") {
		refusal.Message = "queue " + strconv.Quote(c.name) + " not found"
	}
	refusal.RequestID = c.caller.requestID
	return &refusal
}

func (c *call) wantsBodies() bool { return c.query.Get("body") == "1" }

// NewInProcessClient returns a client for pages of this process. It has the permissions of the request from.
func NewInProcessClient(s *Server, from *http.Request) *api.Client {
	return api.NewClient(api.Instance{PID: os.Getpid(), Console: from.Host}, inProcess{s, from})
}

type inProcess struct {
	server *Server
	from   *http.Request
}

// Answer authenticates each request, because the session may end while its page is open.
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
		*c.pathValue(wildcard) = r.Names[i]
	}

	answer, refusal := p.server.service.answer(c)
	if refusal != nil {
		return refusal
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(answer))
	return nil
}

type typedBody struct{ value any }

func (typedBody) accept(*route) error { return nil }

func (b typedBody) read(into any) error {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(b.value))
	return nil
}
