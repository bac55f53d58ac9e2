package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// Certificate is a PEM file used for TLS.
type Certificate struct {
	Option, File string
	Expires      time.Time
	Left         time.Duration
}

// InspectCertificate returns the expiry of the certificate in file, with its private key in key. If key is "", file
// contains certificate authorities, and the earliest expiry counts. known is false if the files are unusable.
func InspectCertificate(option, file, key string) (c Certificate, known bool) {
	c = Certificate{Option: option, File: file}
	if key == "" {
		c.Expires, known = earliestExpiry(file)
	} else if pair, err := tls.LoadX509KeyPair(file, key); err == nil {
		c.Expires, known = pair.Leaf.NotAfter, true
	}
	c.Left = time.Until(c.Expires)
	return c, known
}

func earliestExpiry(file string) (expires time.Time, known bool) {
	text, _ := os.ReadFile(file)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, false
		}
		if !known || authority.NotAfter.Before(expires) {
			expires = authority.NotAfter
			known = true
		}
	}
	return expires, known
}

const expiryWarning = 14 * 24 * time.Hour

func (f *findings) judgeCertificate(c *Certificate) {
	const id = "certificate"
	verb := "expires"
	if c.Left <= 0 {
		verb = "expired"
	}
	what := fmt.Sprintf("%s: the certificate in %s %s on %s", c.Option, c.File, verb,
		c.Expires.UTC().Format("2006-01-02 at 15:04 UTC"))
	if c.Left >= expiryWarning {
		f.ok(id, "%s", what)
		return
	}
	f.add(Warning, id, what, "connections that use it fail once it has expired",
		"replace the file with a renewed certificate: it is reloaded when it changes")
}
