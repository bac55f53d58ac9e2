package environment

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"tendril/internal/access"
	"tendril/internal/archives"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/tasks"
	"tendril/internal/host/httplimit"
	"tendril/internal/host/listen"
	"tendril/internal/sqsapi"
)

const anyLoopback = "127.0.0.1:0"

func (q *queues) serveBroker(context.Context) error {
	if q.broker == nil {
		return nil
	}
	keys, err := q.openKeys()
	if err != nil {
		return err
	}
	l, err := q.listenEndpoint()
	if err != nil {
		return err
	}
	token, err := q.createAndShareToken()
	if err != nil {
		return errors.Join(err, l.Close())
	}

	shares := sharesOf(q.opts.Memory)
	bodies := httplimit.NewBodies(shares.endpoint, sqsapi.MaxBody)
	opts := &sqsapi.Options{Keys: keys, RegistryToken: token,
		Archives: archives.ServedFolder(filepath.Join(q.settings.now().DataDir, servedFolder)),
		Failed: func(action, requestID string, err error) {
			q.endpointLog().Error("request failed", "action", action, "request_id", requestID, "err", err)
		}}
	if q.opts.Memory > 0 {
		opts.Memory = bodies
	}
	handler := sqsapi.New(q.broker, opts)

	most, _ := connectionShares(openFiles(), deliveryDescriptors(q.settings.now()))
	limits := httplimit.Limits{Connections: min(most, shares.connections), Bodies: bodies, Anonymous: handler.Anonymous}
	q.life.serve(q.opts.Logger, "the queue endpoint", sqsapi.Server(handler), l, limits, handler.Stop)
	return nil
}

func (q *queues) endpointLog() *slog.Logger { return q.opts.log("the queue endpoint") }

func (q *queues) createAndShareToken() (token string, err error) {
	s := q.settings.now()
	token = s.RegistryToken
	if token == "" {
		if token, err = tasks.Token(s.DataDir); err != nil {
			return "", err
		}
	}
	path, err := tasks.ShareToken(q.opts.stateFolder(), q.endpoint, token)
	if err != nil {
		q.opts.log("registry").Debug("registry token not shared with other environments of this user",
			"err", err)
	} else if path != "" {
		q.life.onStop("the registry's token", func(context.Context) error { return os.Remove(path) })
	}
	return token, nil
}

func (q *queues) openKeys() (*access.Keyring, error) {
	s := q.settings.now()
	if s.Credentials == "" {
		return nil, nil
	}
	keys, err := access.Open(s.Credentials, func(err error) {
		q.endpointLog().Error("credentials not replaced", "err", err)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: --credentials: %w", ErrSettings, err)
	}
	q.appKeys = keys.Grant("app")
	return keys, nil
}

func (q *queues) listenEndpoint() (net.Listener, error) {
	all, err := q.openListeners()
	if err != nil {
		return nil, errors.Join(err, listen.CloseAll(all))
	}
	return listen.Merge(all), nil
}

// openListeners adds a loopback address for the app if it cannot use --listen because of TLS, a socket or a non-local
// address. After an error, it returns the listeners opened so far.
func (q *queues) openListeners() (all []net.Listener, err error) {
	s := q.settings.now()
	address, socket := s.ListenOn()
	needsOwn := address == "" || s.TLSCert != ""
	if address != "" {
		l, err := listen.TCP(address, s.Credentials == "")
		if err != nil {
			return all, listenError("listen", err)
		}
		bound := listen.Address(l).Addr()
		needsOwn = needsOwn || !bound.IsLoopback() && !bound.IsUnspecified()
		q.endpoint = scheme(s) + listen.Local(l)
		if l, err = q.encrypt(l); err != nil {
			return all, err
		}
		all = append(all, l)
	}

	if socket != "" {
		l, err := listen.Unix(socket)
		if err != nil {
			return all, listenError("listen", err)
		}
		all = append(all, l)
		q.endpoint = cmp.Or(q.endpoint, "http://localhost") // over a Unix socket any host name works
	}

	q.appEndpoint = q.endpoint
	if needsOwn && (q.opts.HasApp() || slices.ContainsFunc(s.Queues, runsHere)) {
		l, err := listen.TCP(anyLoopback, true)
		if err != nil {
			return all, listenError("listen", err)
		}
		q.appEndpoint = "http://" + listen.Local(l)
		all = append(all, l)
	}
	return all, nil
}

func scheme(s *config.Settings) string {
	if s.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

func (q *queues) encrypt(l net.Listener) (net.Listener, error) {
	s := q.settings.now()
	if s.TLSCert == "" {
		if !listen.Address(l).Addr().IsLoopback() {
			q.endpointLog().Warn("queue endpoint is not encrypted", "address", l.Addr().String(),
				"hint", "messages can be read on this network: add --tls-cert and --tls-key")
		}
		return l, nil
	}

	certificate, err := openCertificate("tls-cert", s.TLSCert, s.TLSKey, q.endpointLog(), func(string) {
		q.endpointLog().Info("certificate replaced")
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, certificate.TLSConfig()), nil
}

func openCertificate(option, cert, key string, log *slog.Logger, changed func(fingerprint string),
) (*console.Certificate, error) {
	certificate, err := console.OpenCertificate(cert, key, console.CertificateEvents{Changed: changed,
		Rejected: func(err error) { log.Error("certificate not replaced", "err", err) }})
	if err != nil {
		return nil, fmt.Errorf("%w: --%s: %w", ErrSettings, option, err)
	}
	return certificate, nil
}
