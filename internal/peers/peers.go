package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/instances"
)

const (
	answerTimeout = api.PeerPatience + time.Second
	retryAfter    = 10 * time.Second
)

// Options configure [Peers]. Only Key is optional.
type Options struct {
	Environment, ID, Host string
	// Key authenticates instances to each other. Without a key, no instance is contacted.
	Key  instances.FleetKey
	List func(context.Context) ([]instances.Instance, error)
	Log  *slog.Logger
}

// Peers reads from other instances. It is safe for concurrent use.
type Peers struct {
	opts Options

	mu    sync.Mutex
	known map[string]*peer
}

type peer struct {
	conn     *api.Peer
	instance api.Instance
	// err is the last request's failure, or nil. Until retryAt, requests return it without being sent.
	err     error
	retryAt time.Time
}

// New returns a Peers, without contacting any instance.
func New(opts Options) *Peers { return &Peers{opts: opts, known: map[string]*peer{}} }

// ID returns this instance's ID.
func (p *Peers) ID() string { return p.opts.ID }

// Secrets returns the secrets with which other instances prove themselves to this one.
func (p *Peers) Secrets() []string { return p.opts.Key.PeerSecrets(p.opts.Environment, p.opts.ID) }

// Close closes idle connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.known {
		one.conn.Close()
	}
}

// Answer sends a request to an instance and decodes the response into result. Unless ctx ends, errors are of type
// [*api.Error].
func (p *Peers) Answer(ctx context.Context, id string, r *api.Request, result any) error {
	return p.request(ctx, id, func(conn *api.Peer) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return conn.Answer(ctx, r, result)
	})
}

// Follow calls each for every line of a stream from an instance, until the stream or ctx ends, or each returns an
// error, which Follow returns. Other errors are as for [Peers.Answer].
func (p *Peers) Follow(ctx context.Context, id string, r *api.Request, each func(line []byte) error) error {
	var stopped error // from each, so not a failure of the instance
	err := p.request(ctx, id, func(conn *api.Peer) error {
		err := conn.Follow(ctx, r, func(line []byte) error {
			stopped = each(line)
			return stopped
		})
		if stopped != nil {
			return nil
		}
		return err
	})
	return cmp.Or(stopped, err)
}

func (p *Peers) request(ctx context.Context, id string, send func(*api.Peer) error) error {
	all, err := p.opts.List(ctx)
	if err != nil {
		return api.NewError(http.StatusBadGateway, "reading the records of other instances failed: "+err.Error(), "")
	}
	record, err := find(all, id)
	if err != nil {
		return err
	}
	if why := p.NoDetails(record); why != "" {
		return api.NewError(http.StatusConflict, "no details of this instance: "+why, "")
	}
	to, err := p.connect(record, all)
	if err != nil {
		return err
	}

	err = send(to.conn)
	switch {
	case ctx.Err() != nil:
		return err
	case err == nil || isOtherAPIError(err):
		p.recordResult(to, record, nil)
		return err
	}
	failed := describe(record, err)
	p.recordResult(to, record, failed)
	return failed.err
}

// isOtherAPIError reports whether the instance responded with an error other than 401 or 403.
func isOtherAPIError(err error) bool {
	answer, ok := errors.AsType[*api.Error](err)
	return ok && answer.Status != http.StatusUnauthorized && answer.Status != http.StatusForbidden
}

func find(all []instances.Instance, id string) (*instances.Instance, error) {
	i := slices.IndexFunc(all, func(one instances.Instance) bool { return one.ID == id })
	if i < 0 {
		return nil, api.NewError(http.StatusNotFound,
			fmt.Sprintf("instance %q not found: it may have stopped or restarted", id),
			"'tendril instances' lists the instances")
	}
	return &all[i], nil
}

// NoDetails returns why an instance cannot be contacted, or "".
func (p *Peers) NoDetails(i *instances.Instance) string {
	switch {
	case p.opts.Key == "":
		return "instances read from each other only with a fleet key (--fleet-key-file)"
	case i.Refused != nil:
		return "its record is not authenticated"
	case !i.Reachable():
		return fmt.Sprintf("it has not reported for %s", i.Age.Round(time.Second))
	case i.Host == "":
		return "it has no fleet key, or runs an earlier version of tendril"
	case i.Console == "":
		return "its console is off"
	}

	at, err := netip.ParseAddrPort(i.Console)
	ip, sameHost := at.Addr().Unmap(), i.Host == p.opts.Host
	switch {
	case err != nil || at.Port() == 0 || ip.IsUnspecified() || ip.IsMulticast():
		return fmt.Sprintf("the address of its console is invalid: %q", i.Console)
	case ip.IsLoopback() && !sameHost:
		return "its console listens on loopback only: set --console to another address, with a certificate"
	case ip.IsLinkLocalUnicast() && !sameHost:
		return "its console has a link-local address: set --console to another address"
	case i.Certificate == "" && !ip.IsLoopback():
		return "its console does not use TLS: set --console-tls-cert and --console-tls-key"
	}
	return ""
}

// connect returns the connection to an instance or, until its retryAt, the last error. Adding an instance removes those
// not in current.
func (p *Peers) connect(i *instances.Instance, current []instances.Instance) (*peer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.known[i.ID]
	if one == nil || one.instance.Console != i.Console || one.instance.ConsoleCertificate != i.Certificate {
		instance := api.Instance{Environment: p.opts.Environment, Console: i.Console, ConsoleCertificate: i.Certificate}
		secret := p.opts.Key.PeerSecrets(p.opts.Environment, i.ID)[0]
		one = &peer{conn: api.NewPeer(instance, secret), instance: instance}
		p.forgetStopped(current)
		p.known[i.ID] = one
	}
	if one.err != nil && time.Now().Before(one.retryAt) {
		return nil, one.err
	}
	return one, nil
}

// forgetStopped must be called with mu held.
func (p *Peers) forgetStopped(current []instances.Instance) {
	for id, one := range p.known {
		if !slices.ContainsFunc(current, func(i instances.Instance) bool { return i.ID == id }) {
			one.conn.Close()
			delete(p.known, id)
		}
	}
}

// recordResult blocks requests until retryAt after a failure; failed is nil if the instance responded. Only the first
// of consecutive failures is logged.
func (p *Peers) recordResult(to *peer, i *instances.Instance, failed *failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed == nil {
		to.err = nil
		return
	}
	if to.err == nil {
		p.logFailure(i, failed)
	}
	to.err = failed.err
	to.retryAt = time.Now().Add(retryAfter)
}

func (p *Peers) logFailure(i *instances.Instance, failed *failure) {
	log := p.opts.Log.With("instance", i.Name, "address", i.Console, "err", failed.cause)
	switch failed.problem {
	case noResponse:
		log.Warn("instance does not respond")
	case otherService:
		log.Warn("another service responds at the address of an instance")
	case refused:
		log.Warn("instance refused the request")
	case invalidResponse:
		log.Warn("instance sent an invalid response")
	}
}

type failure struct {
	problem problem
	cause   error
	err     *api.Error // for the caller
}

// problem is the start of an error, followed by the instance's address.
type problem string

const (
	noResponse      problem = "cannot reach the instance at"
	otherService    problem = "another service responds at the instance's address"
	refused         problem = "request refused by the instance at"
	invalidResponse problem = "invalid response from the instance at"
)

func describe(i *instances.Instance, err error) *failure {
	f := &failure{problem: noResponse, cause: causeOf(err)}
	_, isAnswer := errors.AsType[*api.Error](f.cause)
	switch {
	case api.Unproved(f.cause):
		f.problem = otherService
	case isAnswer:
		f.problem = refused
	case isInvalid(f.cause):
		f.problem = invalidResponse
	}
	f.err = api.NewError(http.StatusBadGateway, fmt.Sprintf("%s %s: %v", f.problem, i.Console, f.cause), "")
	return f
}

func isInvalid(err error) bool {
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	return isSyntax || isType
}

func causeOf(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no response within %s", answerTimeout)
	}
	return err
}
