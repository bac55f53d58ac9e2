package sqsapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"tendril/internal/host/httplimit"
)

type stalled struct {
	io.Reader
	closed, waits chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		s.waits <- struct{}{}
		<-s.closed
	}
	return n, err
}

func (s *stalled) Close() error { return nil }

// No buffer of the announced length may be allocated before memory is reserved.
func TestBodiesWaitingForMemoryCostLittle(t *testing.T) {
	const length, many = 6 << 20, 50
	h := newHandler(t, nil)
	server := httplimit.NewBodies(length, MaxBody).Handler(h)
	closed, waits := make(chan struct{}), make(chan struct{}, many)
	var requests sync.WaitGroup
	defer requests.Wait()
	defer close(closed)
	post := func(body string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body = &stalled{strings.NewReader(body), closed, waits}
		r.ContentLength, r.Host = length, "localhost"
		r.Header.Set("X-Amz-Target", sqsPrefix+"SendMessage")
		requests.Go(func() { server.ServeHTTP(httptest.NewRecorder(), r) })
	}
	post(strings.Repeat("x", 100<<10))
	<-waits
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range many {
		post(strings.Repeat("x", 4<<10)) // one more byte would require memory
	}
	for range many {
		<-waits
	}
	runtime.ReadMemStats(&after)
	// The race detector allocates too; a buffer of the announced length would take 6 MB.
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > 2<<20 {
		t.Errorf("%d kB were allocated for each body that is not there", each>>10)
	}
}

func TestBuffersAreAsLargeAsAnnounced(t *testing.T) {
	t.Parallel()
	const length = 3 << 20
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", length)))
	x := &exchange{w: httptest.NewRecorder(), r: r}
	var in bytes.Buffer
	if err := x.readBody(&in); err != nil || in.Len() != length {
		t.Fatalf("read %d bytes, %v", in.Len(), err)
	}
	if in.Cap() > length+trustedBytes {
		t.Errorf("a buffer of %d bytes for a body of %d", in.Cap(), length)
	}
}
