package console

import (
	"context"
	"maps"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"

	"tendril/api"
	"tendril/internal/host/proof"
)

const instanceQuery = "instance"

func perInstance(routes ...route) []route {
	for i := range routes {
		routes[i].perInstance = true
		routes[i].query = strings.TrimSpace(routes[i].query + " " + instanceQuery)
	}
	return routes
}

func (s *service) readPeer(c *call, id string) (any, error) {
	if refusal := s.permitPeerRead(c, id); refusal != nil {
		return nil, refusal
	}

	query := maps.Clone(c.query)
	query.Del(instanceQuery)
	r := &api.Request{Pattern: c.route.pattern, Query: query}
	for _, wildcard := range c.route.wildcards() {
		r.Names = append(r.Names, *c.pathValue(wildcard))
	}

	if c.follows {
		if c.lastEventID != "" {
			query.Set("after", c.lastEventID)
		}
		return &stream{relay: func(ctx context.Context, each func([]byte) error) error {
			return s.opts.Peers.Follow(ctx, id, r, each)
		}}, nil
	}

	answer := reflect.New(c.route.gives)
	if err := s.opts.Peers.Answer(c.ctx, id, r, answer.Interface()); err != nil {
		return nil, err
	}
	return answer.Elem().Interface(), nil
}

func (s *service) permitPeerRead(c *call, id string) *api.Error {
	switch {
	case s.opts.Peers == nil:
		return api.NotFound("instance "+strconv.Quote(id)+" not found: this process knows no others", "")
	case !c.route.perInstance || c.caller.peer:
		return api.BadRequest(c.route.pattern+" cannot be read from another instance",
			"omit the parameter "+instanceQuery)
	case !c.caller.may(api.ScopeRead): // others must not make this instance send requests
		return api.Unauthorized("reading from another instance needs the scope read",
			"use a token or a link with the scope "+api.ScopeRead)
	}
	return nil
}

// peerConnection is the context key of a flag, which is set once the client has proved that it is another instance.
type peerConnection struct{}

func withPeerFlag(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, peerConnection{}, new(atomic.Bool))
}

// answerProof answers the challenge of a client that knows the console's token, or of another instance, whose later
// requests on this connection need no token.
func (s *Server) answerProof(w http.ResponseWriter, r *http.Request) bool {
	secret := s.opts.Token
	if known := s.peerSecret(r); known != "" {
		secret = known
		if flag, ok := r.Context().Value(peerConnection{}).(*atomic.Bool); ok {
			flag.Store(true)
		}
	}
	return proof.Answer(w, r, secret)
}

func (s *Server) peerSecret(r *http.Request) string {
	if s.opts.Peers == nil || r.TLS == nil && !remoteOf(r).IsLoopback() {
		return ""
	}
	for _, secret := range s.opts.Peers.Secrets() {
		if proof.Knows(r, secret) {
			return secret
		}
	}
	return ""
}

func fromPeer(r *http.Request) bool {
	flag, ok := r.Context().Value(peerConnection{}).(*atomic.Bool)
	return ok && flag.Load()
}
