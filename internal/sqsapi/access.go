package sqsapi

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"tendril/internal/host/proof"
	"tendril/queue"
)

// authorize refuses a call that the caller has no right to, about one queue or, with "", about none. A caller who may
// not know whether a queue exists does not learn it.
func (x *actionCall) authorize(name string) error {
	arn := ""
	if name != "" {
		arn = x.broker.ARN(name)
	}
	return x.caller.Authorize(x.action, arn, x.broker.Policy(name))
}

// authorizeTarget refuses attributes whose RedrivePolicy sends messages to a queue to which the caller has no right.
func (x *actionCall) authorizeTarget(attributes map[string]string) error {
	target, _ := queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	if target == "" {
		return nil
	}
	return x.authorize(target)
}

// registryToken is the header with the token of the registry.
const registryToken = "X-Tendril-Token"

// errNoToken is for callers of the registry without its token.
var errNoToken = queue.Errorf(queue.CodeAccessDenied, "The registry of this queue is for those who know its token. "+
	"Give the content of the file registry-token, in the data directory of the tendril that serves the queue, as "+
	"--registry-token or TENDRIL_REGISTRY_TOKEN.")

// admitted makes an action one that asks for the registry's token. Where requests are signed, the signature says who
// calls, and the caller needs every right.
func (h *Handler) admitted(a action) action {
	run := a.run
	a.run = func(x *actionCall, request any) (any, error) {
		if h.keys == nil && !h.isToken(x.token) {
			return nil, errNoToken
		}
		return run(x, request)
	}
	return a
}

func (h *Handler) isToken(given string) bool {
	return h.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(h.token)) == 1
}

// Anonymous reports whether the header of a request lacks the credentials that it needs: it is refused whatever its
// body says.
func (h *Handler) Anonymous(r *http.Request) bool {
	if proof.Knows(r, h.token) {
		return false
	}
	if h.keys != nil {
		return !h.keys.Claims(r)
	}
	return strings.HasPrefix(r.Header.Get("X-Amz-Target"), registryPrefix) && !h.isToken(r.Header.Get(registryToken))
}

// overSocket reports whether a request came over a unix socket, which no web page can reach.
func overSocket(r *http.Request) bool {
	_, is := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return is
}
