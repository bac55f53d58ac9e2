package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/api"
)

type certificateFiles struct{ cert, key string }

func newCertificateFiles(t *testing.T) certificateFiles {
	t.Helper()
	dir := t.TempDir()
	f := certificateFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	f.renew(t)
	return f
}

func (f certificateFiles) renew(t *testing.T) {
	t.Helper()
	cert, key := newCertificate(t)
	replace(t, f.cert, cert)
	replace(t, f.key, key)
}

func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func newCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// The certificate is expired and for another name, because clients check only its fingerprint.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "elsewhere"},
		NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func TestClientTrustsTheInstancesCertificateAlone(t *testing.T) {
	t.Parallel()
	files, dir := newCertificateFiles(t), t.TempDir()
	claim(t, dir)
	server := New(&Options{Token: testToken})
	srv := httptest.NewUnstartedServer(server)
	t.Cleanup(srv.Close)
	instance := api.Instance{PID: os.Getpid(), Environment: "photos", Console: srv.Listener.Addr().String()}
	var rejected []error
	certificate, err := OpenCertificate(files.cert, files.key, CertificateEvents{
		Changed: func(fingerprint string) {
			instance.ConsoleCertificate = fingerprint
			if err := instance.Write(dir); err != nil {
				t.Error(err)
			}
		},
		Rejected: func(err error) { rejected = append(rejected, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Listener = tls.NewListener(srv.Listener, certificate.TLSConfig())
	srv.Start()
	instance.ConsoleCertificate = certificate.Fingerprint()
	if err := instance.Write(dir); err != nil {
		t.Fatal(err)
	}
	client := func() *api.Client {
		c, err := api.Dial(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	early := client()
	if err := live(t.Context(), early); err != nil {
		t.Errorf("with the certificate of the instance: %v", err)
	}

	other, _ := newCertificate(t)
	replace(t, files.cert, other)
	for range 2 {
		early.Close()
		if err := live(t.Context(), early); err != nil {
			t.Errorf("between two files of a renewal: %v", err)
		}
	}
	if len(rejected) != 1 || !strings.Contains(rejected[0].Error(), files.cert) {
		t.Errorf("files that do not belong together: %v", rejected)
	}

	first := instance.ConsoleCertificate
	files.renew(t)
	early.Close()
	for name, c := range map[string]*api.Client{"before": early, "after": client()} {
		if err := live(t.Context(), c); err != nil {
			t.Errorf("dialled %s the renewal: %v", name, err)
		}
	}
	if instance.ConsoleCertificate == first || len(rejected) != 1 {
		t.Errorf("the renewal was not noticed: %v", rejected)
	}

	instance.ConsoleCertificate = first
	if err := instance.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := live(t.Context(), client()); err == nil ||
		!strings.Contains(err.Error(), "its certificate is not the one in "+dir) {
		t.Errorf("another certificate than the instance's: %v", err)
	}
	instance.ConsoleCertificate = ""
	if err := instance.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := live(t.Context(), client()); err == nil {
		t.Error("a console that speaks TLS answers plain HTTP")
	}
}

func TestCertificateThatCannotBeReadNamesItsFile(t *testing.T) {
	t.Parallel()
	files := newCertificateFiles(t)
	for _, f := range []certificateFiles{{files.cert + "x", files.key}, {files.cert, files.key + "x"},
		{files.key, files.cert}} {
		if _, err := OpenCertificate(f.cert, f.key, CertificateEvents{}); err == nil ||
			!strings.Contains(err.Error(), filepath.Dir(f.cert)) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

func TestCertificateIsReadFromRegularFiles(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "tls.key")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCertificate(fifo, fifo, CertificateEvents{}); err == nil ||
		!strings.Contains(err.Error(), fifo+" is not a regular file") {
		t.Errorf("%v", err)
	}
}
