package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func newCertificate(t *testing.T, expires time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func TestInspectCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, parts ...[]byte) string {
		path := filepath.Join(dir, name)
		var text []byte
		for _, part := range parts {
			text = append(text, part...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	now := time.Now().UTC().Truncate(time.Second)
	soon, later := now.Add(time.Hour), now.Add(48*time.Hour)
	cert, key := newCertificate(t, later)
	early, otherKey := newCertificate(t, soon)
	keyFile := file("key", key)
	for name, c := range map[string]struct {
		file, key string
		want      time.Time
	}{
		"a certificate":                     {file("cert", cert), keyFile, later},
		"its chain does not count":          {file("chain", cert, early), keyFile, later},
		"the key of another one":            {file("other", cert), file("other.key", otherKey), time.Time{}},
		"the first of several authorities":  {file("ca", cert, early), "", soon},
		"authorities that cannot be parsed": {file("broken", cert, key), "", time.Time{}},
		"no certificate":                    {file("empty"), "", time.Time{}},
		"no file":                           {filepath.Join(dir, "missing"), "", time.Time{}},
	} {
		got, known := InspectCertificate("tls-cert", c.file, c.key)
		if known == c.want.IsZero() || known && (!got.Expires.Equal(c.want) || got.File != c.file ||
			got.Option != "tls-cert" || time.Until(got.Expires)-got.Left > 0) {
			t.Errorf("%s: %+v, %v; want %v", name, got, known, c.want)
		}
	}
}
