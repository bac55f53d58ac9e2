package deliver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// TLSFiles are paths of PEM files, which are checked for changes before each connection.
type TLSFiles struct {
	// CA contains the trusted certificate authorities; "" means the system's.
	CA string
	// Cert contains the client certificate with its chain, Key its private key. Set both or neither.
	Cert, Key string
}

const expiryWarning = 14 * 24 * time.Hour

const expiryAgain = 24 * time.Hour

type identity struct {
	files TLSFiles
	base  *tls.Config
	event func(CertificateRead)

	mu       sync.Mutex
	current  *tls.Config
	expires  time.Time // of the certificate that expires first
	reported time.Time
	seen     [3]string
}

func openIdentity(files TLSFiles, base *tls.Config, event func(CertificateRead)) (*identity, error) {
	i := &identity{files: files, base: base, event: event}
	if (files.Cert == "") != (files.Key == "") {
		return nil, errors.New("a client certificate needs both its certificate and its private key")
	}
	seen, err := i.read()
	if err != nil {
		return nil, err
	}
	i.seen = seen
	if i.current, i.expires, err = i.parse(); err != nil {
		return nil, err
	}
	return i, nil
}

// config keeps the previous configuration while the files are unreadable or invalid.
func (i *identity) config(now time.Time) *tls.Config {
	i.mu.Lock()
	defer i.mu.Unlock()
	report := func(e CertificateRead) {
		if i.event != nil {
			i.event(e)
		}
	}
	if seen, err := i.read(); err == nil && seen != i.seen { // an unreadable file is probably being replaced
		i.seen = seen
		fresh, expires, err := i.parse()
		report(CertificateRead{Changed: err == nil, Err: err, Expires: expires})
		if err == nil {
			i.current = fresh
			i.expires = expires
			i.reported = time.Time{}
		}
	}

	if !i.expires.IsZero() && i.expires.Sub(now) < expiryWarning && now.Sub(i.reported) >= expiryAgain {
		i.reported = now
		report(CertificateRead{Expires: i.expires, Soon: true})
	}

	return i.current
}

func (i *identity) read() (seen [3]string, err error) {
	for n, path := range []string{i.files.CA, i.files.Cert, i.files.Key} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() { // opening a FIFO would block
			err = errors.New("not a regular file")
		}

		var data []byte
		if err == nil {
			data, err = os.ReadFile(path)
		}

		if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
			err = wrong.Err
		}
		if err != nil {
			return seen, fmt.Errorf("%s: %w", path, err)
		}

		seen[n] = string(data)
	}
	return seen, nil
}

func (i *identity) parse() (*tls.Config, time.Time, error) {
	c := i.base.Clone()
	c.MinVersion = tls.VersionTLS12

	var expires time.Time
	earliest := func(cert *x509.Certificate) {
		if expires.IsZero() || cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}

	if i.files.CA != "" {
		c.RootCAs = x509.NewCertPool()
		n := 0
		for block, rest := pem.Decode([]byte(i.seen[0])); block != nil; block, rest = pem.Decode(rest) {
			cert, err := x509.ParseCertificate(block.Bytes)
			if block.Type != "CERTIFICATE" || err != nil {
				return nil, expires, fmt.Errorf("%s: contains data other than PEM certificates", i.files.CA)
			}
			c.RootCAs.AddCert(cert)
			earliest(cert)
			n++
		}
		if n == 0 {
			return nil, expires, fmt.Errorf("%s: no PEM certificate found", i.files.CA)
		}
	}

	if i.files.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(i.seen[1]), []byte(i.seen[2]))
		if err != nil {
			return nil, expires, fmt.Errorf("%s with the key %s: %w", i.files.Cert, i.files.Key, err)
		}
		earliest(pair.Leaf)
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, expires, nil
}
