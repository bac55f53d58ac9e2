package console

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"

	"tendril/api"
)

// Certificate is a listener's TLS certificate, reloaded when its files change. Its methods are safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	events            CertificateEvents

	mu      sync.Mutex
	current *tls.Certificate
	seen    pemFiles
}

type pemFiles struct{ cert, key string }

// CertificateEvents are the callbacks of a [Certificate]; any may be nil. They are called one at a time, during TLS
// handshakes, and must not use the Certificate.
type CertificateEvents struct {
	// Changed receives the fingerprint of a new certificate before any client sees it.
	Changed func(fingerprint string)
	// Rejected receives the reason for rejecting changed files. The current certificate stays in use.
	Rejected func(error)
}

// OpenCertificate reads a certificate chain and its private key, both PEM-encoded.
func OpenCertificate(certFile, keyFile string, events CertificateEvents) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, events: events}
	var err error
	if c.seen, err = c.read(); err != nil {
		return nil, err
	}
	c.current, err = c.parse(c.seen)
	return c, err
}

// TLSConfig returns a server configuration that uses the certificate.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.refresh(), nil
		},
	}
}

// Fingerprint returns the hexadecimal SHA-256 fingerprint of the certificate.
func (c *Certificate) Fingerprint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return api.CertificateFingerprint(c.current.Certificate[0])
}

// refresh keeps the current certificate if the files are unreadable or do not match, as while only one is replaced.
func (c *Certificate) refresh() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := c.read()
	if err != nil || seen == c.seen {
		return c.current
	}

	c.seen = seen
	fresh, err := c.parse(seen)
	if err != nil {
		if c.events.Rejected != nil {
			c.events.Rejected(err)
		}
		return c.current
	}

	if c.events.Changed != nil {
		c.events.Changed(api.CertificateFingerprint(fresh.Certificate[0]))
	}

	c.current = fresh
	return c.current
}

func (c *Certificate) read() (files pemFiles, err error) {
	files.cert, err = readRegular(c.certFile)
	if err == nil {
		files.key, err = readRegular(c.keyFile)
	}
	if err != nil {
		err = fmt.Errorf("reading the certificate: %w", err)
	}
	return files, err
}

// readRegular rejects FIFOs, which would block the handshake, and other irregular files.
func readRegular(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func (c *Certificate) parse(files pemFiles) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(files.cert), []byte(files.key))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s with the key %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, nil
}
