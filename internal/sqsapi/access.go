package sqsapi

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"tendril/internal/host/proof"
	"tendril/queue"
)

// name is "" for actions without a queue. A caller without permission does not learn whether the queue exists.
func (x *actionCall) authorize(name string) error {
	arn := ""
	if name != "" {
		arn = x.broker.ARN(name)
	}
	return x.caller.Authorize(x.action, arn, x.broker.Policy(name))
}

func (x *actionCall) authorizeTarget(attributes map[string]string) error {
	target, _ := queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	if target == "" {
		return nil
	}
	return x.authorize(target)
}

const registryToken = "X-Tendril-Token"

var errNoToken = queue.Errorf(queue.CodeAccessDenied, "The registry of this queue requires its token. Set "+
	"TENDRIL_REGISTRY_TOKEN to the content of the file registry-token in the data directory of the tendril that "+
	"serves the queue.")

// admitted returns an action that requires the registry's token, unless requests must be signed.
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

// Anonymous reports whether a request's headers lack the required credentials. Such a request is refused, whatever
// its body contains.
func (h *Handler) Anonymous(r *http.Request) bool {
	if proof.Knows(r, h.token) {
		return false
	}
	if h.keys != nil {
		return !h.keys.Claims(r)
	}
	return strings.HasPrefix(r.Header.Get("X-Amz-Target"), registryPrefix) && !h.isToken(r.Header.Get(registryToken))
}

// Web pages cannot reach a Unix socket.
func overSocket(r *http.Request) bool {
	_, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return ok
}
