package sqsapi

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"tendril/internal/host/proof"
	"tendril/queue"
)

// authorize checks permission for a queue; name is "" for actions without one. A caller without permission does not
// learn whether the queue exists.
func (x *exchange) authorize(name string) error {
	if x.h.keys == nil && x.h.lacksToken(x.r) {
		return errNoToken
	}

	arn := ""
	if name != "" {
		arn = x.broker.ARN(name)
	}
	return x.caller.Authorize(x.action, arn, x.broker.Policy(name))
}

func (x *exchange) authorizeDeadLetterQueue(attributes map[string]string) error {
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

// lacksToken reports whether r is a registry request without the handler's token.
func (h *Handler) lacksToken(r *http.Request) bool {
	if h.token == "" || !strings.HasPrefix(r.Header.Get("X-Amz-Target"), registryPrefix) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(registryToken)), []byte(h.token)) == 0
}

// Anonymous reports whether a request's headers lack the required credentials, so that it is refused whatever its body
// contains.
func (h *Handler) Anonymous(r *http.Request) bool {
	if proof.Knows(r, h.token) {
		return false
	}
	if h.keys != nil {
		return !h.keys.Claims(r)
	}
	return h.lacksToken(r)
}

// Web pages cannot reach a Unix socket.
func overSocket(r *http.Request) bool {
	_, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return ok
}
