package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sharedPrefix  = "whsec_" // shared secret
	privatePrefix = "whsk_"  // ed25519 private key
	// A shared secret's size in bytes, from Standard Webhooks 1.0.0.
	shortestSecret = 24
	longestSecret  = 64
	largestKept    = 64 << 10 // content buffers beyond it are not reused
)

// CheckKey returns an error if the key is invalid. The error does not contain the key.
func CheckKey(text string) error {
	_, err := parseKey(text)
	return err
}

type key struct {
	shared  []byte
	private ed25519.PrivateKey
}

func parseKey(text string) (key, error) {
	encoded, isShared := strings.CutPrefix(text, sharedPrefix)
	if !isShared {
		var isPrivate bool
		if encoded, isPrivate = strings.CutPrefix(text, privatePrefix); !isPrivate {
			return key{}, errors.New("does not start with whsec_ or whsk_")
		}
	}

	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return key{}, errors.New("is not base64 after its prefix")
	}
	if !isShared {
		return parsePrivate(raw)
	}
	if len(raw) < shortestSecret || len(raw) > longestSecret {
		return key{}, fmt.Errorf("has %d bytes instead of %d to %d", len(raw), shortestSecret, longestSecret)
	}
	return key{shared: raw}, nil
}

func parsePrivate(raw []byte) (key, error) {
	if len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize {
		return key{}, fmt.Errorf("has %d bytes, but a private ed25519 key has %d", len(raw), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	if len(raw) == ed25519.PrivateKeySize && !private.Equal(ed25519.PrivateKey(raw)) {
		return key{}, errors.New("has the public part of another key")
	}
	return key{private: private}, nil
}

// Signer signs with one or more keys. It is safe for concurrent use.
type Signer struct {
	keys []key
	work sync.Pool // of *workspace
}

type workspace struct {
	content []byte
	sum     []byte
	macs    []hash.Hash // one per key; nil for private keys
}

// NewSigner returns a signer, or nil without keys.
func NewSigner(keys []string) (*Signer, error) {
	if len(keys) == 0 {
		return nil, nil
	}

	s := &Signer{}
	for i, text := range keys {
		k, err := parseKey(text)
		if err != nil {
			return nil, fmt.Errorf("signing key %d %w", i+1, err)
		}
		s.keys = append(s.keys, k)
	}

	s.work.New = func() any {
		w := &workspace{macs: make([]hash.Hash, len(s.keys))}
		for i, k := range s.keys {
			if k.shared != nil {
				w.macs[i] = hmac.New(sha256.New, k.shared)
			}
		}
		return w
	}
	return s, nil
}

// AppendHeaders appends an attempt's three header lines. id becomes webhook-id.
func (s *Signer) AppendHeaders(b []byte, id, body string, at time.Time) []byte {
	w := s.work.Get().(*workspace)
	w.content = append(w.content[:0], id...)
	w.content = append(w.content, '.')
	w.content = strconv.AppendInt(w.content, at.Unix(), 10)
	w.content = append(w.content, '.')
	w.content = append(w.content, body...)

	b = append(b, "webhook-id: "...)
	b = append(b, id...)
	b = append(b, "\r\nwebhook-timestamp: "...)
	b = strconv.AppendInt(b, at.Unix(), 10)
	b = append(b, "\r\nwebhook-signature:"...)
	for i := range s.keys {
		b = append(b, ' ')
		b = s.keys[i].append(b, w, i)
	}

	if cap(w.content) > largestKept {
		w.content = nil
	}
	s.work.Put(w)
	return append(b, "\r\n"...)
}

func (k *key) append(b []byte, w *workspace, index int) []byte {
	if k.private != nil {
		return base64.StdEncoding.AppendEncode(append(b, "v1a,"...), ed25519.Sign(k.private, w.content))
	}
	mac := w.macs[index]
	mac.Reset()
	mac.Write(w.content)
	w.sum = mac.Sum(w.sum[:0])
	return base64.StdEncoding.AppendEncode(append(b, "v1,"...), w.sum)
}
