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
	// CA has the trusted certificate authorities; "" means the system's.
	CA string
	// Cert has the client certificate with its chain, Key its private key: both or neither.
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
	expires  time.Time
	reported time.Time
	texts    pemTexts // of the latest files, even if invalid
}

type pemTexts struct{ ca, cert, key string }

func openIdentity(files TLSFiles, base *tls.Config, event func(CertificateRead)) (*identity, error) {
	i := &identity{files: files, base: base, event: event}
	if (files.Cert == "") != (files.Key == "") {
		return nil, errors.New("a client certificate needs both its certificate and its private key")
	}
	var err error
	if i.texts, err = files.read(); err == nil {
		i.current, i.expires, err = i.parse(i.texts)
	}
	return i, err
}

// currentConfig rereads the files. While they are unreadable or invalid, it keeps the previous configuration.
func (i *identity) currentConfig(now time.Time) *tls.Config {
	i.mu.Lock()
	defer i.mu.Unlock()
	if texts, err := i.files.read(); err == nil && texts != i.texts { // an unreadable file is probably being replaced
		i.use(texts)
	}
	if !i.expires.IsZero() && i.expires.Sub(now) < expiryWarning && now.Sub(i.reported) >= expiryAgain {
		i.reported = now
		i.report(CertificateRead{Expires: i.expires, Soon: true})
	}
	return i.current
}

func (i *identity) use(texts pemTexts) {
	i.texts = texts
	config, expires, err := i.parse(texts)
	i.report(CertificateRead{Changed: err == nil, Err: err, Expires: expires})
	if err == nil {
		i.current = config
		i.expires = expires
		i.reported = time.Time{}
	}
}

func (i *identity) report(e CertificateRead) {
	if i.event != nil {
		i.event(e)
	}
}

func (f *TLSFiles) read() (texts pemTexts, err error) {
	for _, file := range []struct {
		path string
		text *string
	}{{f.CA, &texts.ca}, {f.Cert, &texts.cert}, {f.Key, &texts.key}} {
		if file.path == "" {
			continue
		}
		data, err := readRegular(file.path)
		if wrong, ok := errors.AsType[*fs.PathError](err); ok {
			err = wrong.Err
		}
		if err != nil {
			return texts, fmt.Errorf("%s: %w", file.path, err)
		}
		*file.text = string(data)
	}
	return texts, nil
}

func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a FIFO would block
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(path)
}

// parse returns the configuration and the earliest expiry of a certificate.
func (i *identity) parse(texts pemTexts) (*tls.Config, time.Time, error) {
	c := i.base.Clone()
	var certificates []*x509.Certificate
	if i.files.CA != "" {
		authorities, err := parseAuthorities(texts.ca)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("%s: %w", i.files.CA, err)
		}
		c.RootCAs = x509.NewCertPool()
		for _, authority := range authorities {
			c.RootCAs.AddCert(authority)
		}
		certificates = authorities
	}

	if i.files.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(texts.cert), []byte(texts.key))
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("%s with the key %s: %w", i.files.Cert, i.files.Key, err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		certificates = append(certificates, pair.Leaf)
	}

	var expires time.Time
	for _, certificate := range certificates {
		if expires.IsZero() || certificate.NotAfter.Before(expires) {
			expires = certificate.NotAfter
		}
	}
	return c, expires, nil
}

func parseAuthorities(text string) (authorities []*x509.Certificate, err error) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			return nil, errors.New("contains data other than PEM certificates")
		}
		authorities = append(authorities, certificate)
	}
	if len(authorities) == 0 {
		return nil, errors.New("no PEM certificate found")
	}
	return authorities, nil
}
