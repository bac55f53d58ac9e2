package environment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/host/listen"
	"tendril/internal/observe/logging"
	"tendril/queue"
)

func writeCertificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := errors.Join(os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600),
			os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestCommandsReachAConsoleOnEveryAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "127.0.0.1:0", "localhost:0"} {
		for _, encrypted := range []bool{false, true} {
			name := "clear text"
			flags := map[string]string{"console": address, "console-insecure": "true", "target": "http://127.0.0.1:1/"}
			keys := t.TempDir()
			if encrypted {
				name = "TLS"
				flags["console-tls-cert"], flags["console-tls-key"] = writeCertificate(t, keys)
				delete(flags, "console-insecure")
			}
			t.Run(address+" "+name, func(t *testing.T) {
				t.Parallel()
				r := run(t, flags, nil)
				client, err := api.Dial(r.settings.now().DataDir)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				if host := client.Instance.Console; !strings.HasPrefix(host, "127.0.0.1:") {
					t.Errorf("the commands are told to ask %s", host)
				}
				if got := strings.HasPrefix(client.Instance.ConsoleURL(), "https:"); got != encrypted {
					t.Errorf("the commands are told to ask %s", client.Instance.ConsoleURL())
				}
				if st, err := client.Status(t.Context()); err != nil || st.PID != os.Getpid() {
					t.Errorf("the status: %+v, %v", st, err)
				}
				if encrypted {
					writeCertificate(t, keys)
					client.Close()
					if _, err := client.Health(t.Context()); err != nil {
						t.Errorf("the health after the certificate was renewed: %v", err)
					}
					if again, err := api.ReadInstance(r.settings.now().DataDir); err != nil ||
						again.ConsoleCertificate == client.Instance.ConsoleCertificate {
						t.Errorf("the instance file names the certificate from before: %v", err)
					}
				}
				if err := r.end(); err != nil {
					t.Errorf("the end: %v", err)
				}
				if _, err := os.Stat(filepath.Join(r.settings.now().DataDir, api.InstanceFile)); err == nil {
					t.Error("the instance file is still there")
				}
			})
		}
	}
}

func TestListenChecksTheResolvedAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", "[::]:0"} {
		l, err := listen.TCP(address, true)
		if err == nil {
			l.Close()
		}
		err = listenError("listen", err)
		if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "--listen "+address) ||
			!strings.Contains(err.Error(), "use 127.0.0.1:") {
			t.Errorf("%s: %v", address, err)
		}
	}
	l, err := listen.TCP("localhost:0", true)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// The query may contain a secret, and many people can read status, metrics and logs.
func TestQueryOfThePathIsNotShown(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			select {
			case paths <- r.URL.String():
			default:
			}
		}
	}))
	defer app.Close()
	for _, format := range []string{"json", "sqsd"} {
		var out safeBuffer
		r := run(t, map[string]string{"target": app.URL, "http-path": "/jobs?key=hush", "log-format": format,
			"breaker": "50"}, func(e *Environment) {
			e.opts.Logger = logging.New(logging.Options{Out: &out, Format: map[string]logging.Format{"sqsd": logging.SQSD}[format]})
		})
		client, err := api.Dial(r.settings.now().DataDir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Send(t.Context(), "tendril", []queue.Outgoing{{Body: "{}"}}); err != nil {
			t.Fatal(err)
		}
		if got := <-paths; got != "/jobs?key=hush" {
			t.Errorf("posted to %s", got)
		}
		seen := func(what, text string) {
			if strings.Contains(text, "hush") {
				t.Errorf("%s, %s: %s", format, what, text)
			}
		}
		for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/health", "/api/v1/deliveries"} {
			resp, err := http.Get(client.Instance.ConsoleURL() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s answered %d, %v", path, resp.StatusCode, err)
			}
			seen(path, string(body))
		}
		st, err := client.Status(t.Context())
		if err != nil || st.Workers[0].Target != app.URL+"/jobs" {
			t.Errorf("the worker's target: %+v, %v", st.Workers, err)
		}
		client.Close()
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		seen("the log", r.log.String())
		seen("the output", out.String())
	}
}
