package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func serveTLS(dir, address string, app http.Handler) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	own := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(10 * 24 * time.Hour), DNSNames: []string{"localhost"}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, own, own, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	certificate, pool := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	at := func(name string) string { return filepath.Join(dir, name) }
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	err = errors.Join(err, os.WriteFile(at("ca.crt"), certificate, 0o600),
		os.WriteFile(at("client.crt"), certificate, 0o600), os.WriteFile(at("client.key"), private, 0o600))
	if err != nil {
		return err
	}
	server := http.Server{Addr: address, Handler: app, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}}
	fmt.Println("testapp listens with TLS on", address)
	return server.ListenAndServeTLS(at("client.crt"), at("client.key"))
}
