package deliver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/queue"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.issue(t, "authority", time.Now().Add(365*24*time.Hour))
	return a
}

// issue returns a certificate signed by the authority. The first one is the authority's own, which is self-signed.
func (a *authority) issue(t testing.TB, name string, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, DNSNames: []string{name}, IsCA: a.cert == nil,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func write(t testing.TB, f TLSFiles, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writePEM(f.Cert, "CERTIFICATE", cert.Raw), writePEM(f.Key, "PRIVATE KEY", der)); err != nil {
		t.Fatal(err)
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// mutual starts a server that requires client certificates issued by a. client holds the name in the last one.
func mutual(t testing.TB, a *authority, name string, most uint16) (url string, f TLSFiles, client *atomic.Value) {
	t.Helper()
	dir := t.TempDir()
	f = TLSFiles{filepath.Join(dir, "ca.crt"), filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")}
	if err := writePEM(f.CA, "CERTIFICATE", a.cert.Raw); err != nil {
		t.Fatal(err)
	}
	cert, key := a.issue(t, name, time.Now().Add(time.Hour))
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	client = &atomic.Value{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		client.Store(r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: most,
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1), f, client
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		url, files, client := mutual(t, a, "localhost", version)
		cert, key := a.issue(t, "first", time.Now().Add(30*24*time.Hour))
		write(t, files, cert, key)
		var events []CertificateRead
		h := newHTTP(t, func(o *Options) {
			o.Target, o.TLS, o.KeepAlive = url, files, -1
			o.Events.CertificateRead = func(c CertificateRead) { events = append(events, c) }
		})
		want(t, deliver(h, message()), queue.Done, 200, "")
		if client.Load() != "first" || len(events) != 0 {
			t.Errorf("the server saw %v; %+v", client.Load(), events)
		}
		if err := h.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		cert, key = a.issue(t, "second", time.Now().Add(13*24*time.Hour))
		write(t, files, cert, key)
		for range 2 {
			want(t, deliver(h, message()), queue.Done, 200, "")
		}
		if client.Load() != "second" || len(events) != 2 || !events[0].Changed || !events[1].Soon ||
			!events[1].Expires.Equal(cert.NotAfter) {
			t.Errorf("the server saw %v; %+v", client.Load(), events)
		}
		if err := os.WriteFile(files.Cert, []byte("half a"), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, deliver(h, message()), queue.Done, 200, "")
		last := events[len(events)-1]
		if last.Err == nil || !strings.HasPrefix(last.Err.Error(), files.Cert+" with the key ") {
			t.Errorf("a broken file: %+v", last)
		}
		h.transport.dialer.files.currentConfig(time.Now().Add(25 * time.Hour))
		if last := events[len(events)-1]; !last.Soon {
			t.Errorf("a day later: %+v", events)
		}
	}
}

func TestRefusedCertificateIsNoAttempt(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		url, files, client := mutual(t, a, "localhost", version)
		for i, change := range []func(*TLSFiles){
			func(f *TLSFiles) { f.Cert, f.Key = "", "" },
			func(f *TLSFiles) {
				cert, key := newAuthority(t).issue(t, "unknown", time.Now().Add(time.Hour))
				write(t, *f, cert, key)
			},
			func(f *TLSFiles) {
				cert, key := a.issue(t, "late", time.Now().Add(-time.Minute))
				write(t, *f, cert, key)
			},
		} {
			f := files
			change(&f)
			h := newHTTP(t, func(o *Options) {
				o.Target = url
				o.TLS = f
				o.dial = dialPatiently
			})
			reason := refusedReason
			if i == 0 && version == tls.VersionTLS12 { // TLS 1.2 alerts give no reason
				reason = "TLS handshake failed"
			}
			want(t, deliver(h, message()), queue.Unreached, 0, reason)
			if err := h.Probe(t.Context()); err == nil || err.Error() != reason {
				t.Errorf("version %x: the probe says %v", version, err)
			}
		}
		if client.Load() != nil {
			t.Errorf("the app was reached by %v", client.Load())
		}
	}
}

// dialPatiently returns a connection on which a probe waits for a refusal without a time limit.
func dialPatiently(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return patientConn{conn}, err
}

type patientConn struct{ net.Conn }

func (patientConn) SetReadDeadline(time.Time) error { return nil }

func TestTargetMustHaveItsName(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	url, files, _ := mutual(t, a, "another", tls.VersionTLS13)
	cert, key := a.issue(t, "client", time.Now().Add(time.Hour))
	write(t, files, cert, key)
	h := newHTTP(t, func(o *Options) { o.Target, o.TLS = url, files })
	want(t, deliver(h, message()), queue.Unreached, 0, "certificate not trusted")
	url, files, _ = mutual(t, a, "localhost", tls.VersionTLS11)
	write(t, files, cert, key)
	h = newHTTP(t, func(o *Options) { o.Target, o.TLS = url, files })
	if r := h.Deliver(context.Background(), message()); r.Outcome != queue.Unreached {
		t.Errorf("TLS 1.1: %+v", r)
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	_, good, _ := mutual(t, a, "localhost", tls.VersionTLS13)
	cert, key := a.issue(t, "client", time.Now().Add(time.Hour))
	write(t, good, cert, key)
	other := TLSFiles{"", good.Cert + "2", good.Key + "2"}
	write(t, other, a.cert, a.key)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files TLSFiles
		want  string
	}{
		{TLSFiles{CA: "/nowhere/ca"}, "/nowhere/ca: no such file or directory"},
		{TLSFiles{CA: t.TempDir()}, ": not a regular file"},
		{TLSFiles{CA: text}, text + ": no PEM certificate found"},
		{TLSFiles{CA: good.Key}, good.Key + ": contains data other than PEM certificates"},
		{TLSFiles{Cert: good.Cert}, "a client certificate needs both its certificate and its private key"},
		{TLSFiles{Cert: good.Cert, Key: other.Key}, good.Cert + " with the key " + other.Key + ": "},
		{TLSFiles{Cert: text, Key: good.Key}, text + " with the key " + good.Key + ": "},
	} {
		_, err := NewClient(&Options{Target: "https://localhost", TLS: tt.files})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.files, err, tt.want)
		}
	}
}
