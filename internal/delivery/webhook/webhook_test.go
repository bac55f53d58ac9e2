package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	publishedSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	publishedPrivate = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	publishedID      = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	publishedBody    = `{"test": 2432232314}`
	publishedShared  = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	publishedPair    = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
)

func newSigner(t testing.TB, keys ...string) *Signer {
	t.Helper()
	s, err := NewSigner(keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func headers(s *Signer, id, body string, at time.Time) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(s.AppendHeaders(nil, id, body, at)), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestPublishedExamples(t *testing.T) {
	t.Parallel()
	at := time.Unix(1614265330, 999)
	for _, tt := range []struct {
		keys []string
		want string
	}{
		{[]string{publishedSecret}, publishedShared},
		{[]string{publishedPrivate}, publishedPair},
		{[]string{publishedPrivate, publishedSecret}, publishedPair + " " + publishedShared},
	} {
		got := string(newSigner(t, tt.keys...).AppendHeaders([]byte("X: y\r\n"), publishedID, publishedBody, at))
		want := "X: y\r\nwebhook-id: " + publishedID + "\r\nwebhook-timestamp: 1614265330\r\nwebhook-signature: " + tt.want +
			"\r\n"
		if got != want {
			t.Errorf("%d keys\n got %q\nwant %q", len(tt.keys), got, want)
		}
	}
}

func TestPublishedLibraryAcceptsSignatures(t *testing.T) {
	t.Parallel()
	const older = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	now := time.Now()
	for _, body := range []string{"", "x", publishedBody, strings.Repeat("ä\x00", 200_000)} {
		sent := headers(newSigner(t, publishedSecret, older), publishedID, body, now)
		for _, secret := range []string{publishedSecret, older} {
			receiver, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := receiver.Verify([]byte(body), sent); err != nil {
				t.Errorf("a body of %d bytes: %v", len(body), err)
			}
			if receiver.Verify([]byte(body+" "), sent) == nil {
				t.Errorf("a changed body of %d bytes is accepted", len(body))
			}
			other := sent.Clone()
			other.Set("webhook-id", "msg_other")
			if receiver.Verify([]byte(body), other) == nil {
				t.Error("another id is accepted")
			}
		}
	}
	receiver, err := standardwebhooks.NewWebhook(older)
	if err != nil {
		t.Fatal(err)
	}
	if receiver.Verify(nil, headers(newSigner(t, publishedSecret), publishedID, "", now)) == nil {
		t.Error("a key that was removed is accepted")
	}
}

func TestPrivateKeyWithItsPublicPart(t *testing.T) {
	t.Parallel()
	seed, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publishedPrivate, privatePrefix))
	if err != nil {
		t.Fatal(err)
	}
	whole := ed25519.NewKeyFromSeed(seed)
	s := newSigner(t, privatePrefix+base64.StdEncoding.EncodeToString(whole))
	got := headers(s, publishedID, publishedBody, time.Unix(1614265330, 0)).Get("webhook-signature")
	if got != publishedPair {
		t.Error(got)
	}
	whole[40] ^= 1
	if err := CheckKey(privatePrefix + base64.StdEncoding.EncodeToString(whole)); err == nil {
		t.Error("a pair of two keys is accepted")
	}
}

func TestRefusedKeysAreNotRepeated(t *testing.T) {
	t.Parallel()
	bytes := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, tt := range []struct{ key, want string }{
		{"", "does not start with whsec_ or whsk_"},
		{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not start with whsec_ or whsk_"},
		{"whpk_" + bytes(32), "does not start with whsec_ or whsk_"},
		{"whsec_not*base64", "is not base64 after its prefix"},
		{"whsec_" + bytes(23), "has 23 bytes instead of 24 to 64"},
		{"whsec_" + bytes(65), "has 65 bytes instead of 24 to 64"},
		{"whsk_" + bytes(31), "has 31 bytes, but a private ed25519 key has 32"},
	} {
		if err := CheckKey(tt.key); err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v, want %q", tt.key, err, tt.want)
		}
	}
	for _, good := range []string{"whsec_" + bytes(24), "whsec_" + bytes(64), "whsk_" + bytes(32),
		"whsec_" + strings.TrimRight(bytes(25), "=")} {
		if err := CheckKey(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	_, err := NewSigner([]string{publishedSecret, "whsec_secret*"})
	if want := "signing key 2 is not base64 after its prefix"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if s, err := NewSigner(nil); s != nil || err != nil {
		t.Errorf("without keys: %v, %v", s, err)
	}
}

func TestSignerServesManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSigner(t, publishedSecret, publishedPrivate)
	at := time.Unix(1614265330, 0)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 100 {
				got := headers(s, publishedID, publishedBody, at).Get("webhook-signature")
				if got != publishedShared+" "+publishedPair {
					t.Error(got)
					return
				}
			}
		})
	}
	running.Wait()
}

func BenchmarkSign(b *testing.B) {
	s, body := newSigner(b, publishedSecret), strings.Repeat("x", 200)
	out := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		out = s.AppendHeaders(out[:0], publishedID, body, time.Unix(1614265330, 0))
	}
}

func TestBufferOfALargeBodyIsNotKept(t *testing.T) {
	t.Parallel()
	s := newSigner(t, publishedSecret)
	s.AppendHeaders(nil, publishedID, strings.Repeat("x", 1<<20), time.Now())
	for range 10 {
		if kept := cap(s.work.Get().(*workspace).content); kept > largestKept {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
}
