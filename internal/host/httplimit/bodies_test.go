package httplimit

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func request(length int, announced bool) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", length)))
	if !announced {
		r.ContentLength = -1
	}
	return r
}

// post passes a request to a handler that reads the body and then blocks until leave is closed.
func post(b *Bodies, r *http.Request, leave <-chan struct{}) (read int, err error) {
	b.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var data []byte
		data, err = io.ReadAll(r.Body)
		read = len(data)
		<-leave
	})).ServeHTTP(httptest.NewRecorder(), r)
	return read, err
}

// Small bodies do not wait for memory. Waiting bodies continue as soon as memory is free.
func TestLargeBodiesWaitForRoom(t *testing.T) {
	t.Parallel()
	now := make(chan struct{})
	close(now)
	for _, announced := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBodies(3<<20, 1<<20)
			leave, done := make(chan struct{}), make(chan error, 10)
			for range 4 {
				go func() {
					_, err := post(b, request(1<<20, announced), leave)
					done <- err
				}()
			}
			synctest.Wait()
			if n, err := post(b, request(small, announced), now); n != small || err != nil {
				t.Errorf("a small body beside them: %d, %v", n, err)
			}
			time.Sleep(patience - time.Second)
			close(leave)
			for range 4 {
				if err := <-done; err != nil {
					t.Errorf("a body that waited for less than %s: %v", patience, err)
				}
			}
		})
	}
}

// A rejected body does not keep memory from other bodies.
func TestBodyWithoutRoomIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(1<<20, 1<<20)
		now, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		close(now)
		go func() { post(b, request(1<<20, true), leave); close(done) }()
		synctest.Wait()
		began := time.Now()
		n, err := post(b, request(1<<20, true), now)
		if n != small+1 || !errors.Is(err, queue.ErrThrottled) || time.Since(began) != patience {
			t.Errorf("read %d in %s: %v", n, time.Since(began), err)
		}
		close(leave)
		<-done
		if n, err := post(b, request(1<<20, true), now); n != 1<<20 || err != nil {
			t.Errorf("with room again: %d, %v", n, err)
		}
	})
}

// A body of unknown length reserves the maximum length.
func TestRoomIsWhatABodyCanNeed(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	close(leave)
	for _, c := range []struct {
		length    int
		announced bool
		want      int64
	}{{small, true, 0}, {small, false, 0}, {small + 1, true, small + 1}, {small + 1, false, 1 << 20},
		{2 << 20, true, 1 << 20}} {
		b := NewBodies(1<<20, 1<<20)
		var claimed int64
		b.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if large, ok := r.Body.(*body); ok {
				claimed = large.claimed
			}
		})).ServeHTTP(httptest.NewRecorder(), request(c.length, c.announced))
		if claimed != c.want {
			t.Errorf("%+v: claimed %d", c, claimed)
		}
	}
}
