package proof

import (
	"bufio"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const header = "X-Tendril-Challenge"

const refused = "refused"

const patience = 10 * time.Second

// Error means that a server, which has received only the challenge, did not prove that it knows the secret.
type Error struct {
	Address string
	// Other means that the server has a different secret.
	Other bool
	cause error
}

// Error describes the failure.
func (e *Error) Error() string {
	switch {
	case e.Other:
		return "the server at " + e.Address + " has a different token"
	case e.cause != nil:
		return fmt.Sprintf("the server at %s does not prove that it knows the token: %v", e.Address, e.cause)
	}
	return "the server at " + e.Address + " does not prove that it knows the token"
}

// Unwrap returns the reason why the challenge received no response, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Require returns a copy of t that uses a connection only once the server has proved that it knows the secret.
func Require(t *http.Transport, secret string) *http.Transport {
	t = t.Clone()
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}

	t.Proxy = nil // a proxy would respond instead of the server
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return prove(ctx, conn, secret)
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		encrypted := tls.Client(conn, t.TLSClientConfig)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return prove(ctx, encrypted, secret)
	}

	return t
}

func prove(ctx context.Context, conn net.Conn, secret string) (net.Conn, error) {
	if err := challenge(ctx, conn, secret); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func challenge(ctx context.Context, conn net.Conn, secret string) error {
	address := canonicalAddress(conn.RemoteAddr())
	bound := address
	if encrypted, ok := conn.(*tls.Conn); ok {
		state := encrypted.ConnectionState()
		bound = channelBinding(&state)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })

	nonce := rand.Text()
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set(header, nonce+"."+mac(secret, "client", nonce, bound))
	answer, err := exchange(conn, request)
	if !stop() {
		err = cmp.Or(context.Cause(ctx), err)
	}

	switch {
	case err != nil:
		return &Error{Address: address, cause: err}
	case answer == refused:
		return &Error{Address: address, Other: true}
	case !hmac.Equal([]byte(answer), []byte(mac(secret, "server", nonce, bound))):
		return &Error{Address: address}
	}
	return nil
}

// exchange returns the server's proof, or "" if it does not support challenges.
func exchange(conn net.Conn, request *http.Request) (string, error) {
	if err := request.Write(conn); err != nil {
		return "", err
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	proof := answer.Header.Get(header)
	if proof != refused && (answer.StatusCode != http.StatusNoContent || answer.Close || reader.Buffered() > 0) {
		return "", nil
	}
	return proof, nil
}

// Answer responds to a challenge. It returns false for other requests.
func Answer(w http.ResponseWriter, r *http.Request, secret string) bool {
	given := r.Header.Get(header)
	if given == "" {
		return false
	}
	if !Knows(r, secret) {
		w.Header().Set(header, refused)
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	nonce, _, _ := strings.Cut(given, ".")
	w.Header().Set(header, mac(secret, "server", nonce, binding(r)))
	w.Header().Del("Connection") // even if the server is full, because the actual request follows on this connection
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Knows reports whether a request is a challenge from a client that knows the secret. No client knows the secret "".
func Knows(r *http.Request, secret string) bool {
	nonce, given, _ := strings.Cut(r.Header.Get(header), ".")
	return nonce != "" && secret != "" && hmac.Equal([]byte(given), []byte(mac(secret, "client", nonce, binding(r))))
}

func mac(secret, who, nonce, bound string) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "tendril %s 1\n%s\n%s", who, nonce, bound)
	return hex.EncodeToString(h.Sum(nil))
}

// channelBinding exports keying material that both ends of a TLS connection share, but not a proxy between them
// (RFC 9266). If there is none, the result is random, so that no proof is valid.
func channelBinding(state *tls.ConnectionState) string {
	material, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, sha256.Size)
	if err != nil {
		return rand.Text()
	}
	return hex.EncodeToString(material)
}

func binding(r *http.Request) string {
	if r.TLS != nil {
		return channelBinding(r.TLS)
	}
	address, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if address == nil {
		return ""
	}
	return canonicalAddress(address)
}

// canonicalAddress formats an address identically at both ends of a connection.
func canonicalAddress(address net.Addr) string {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()).String()
}
