package httplimit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

func post(b *Bodies, r *http.Request, leave <-chan struct{}) (read int, err error) {
	b.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var data []byte
		data, err = io.ReadAll(r.Body)
		read = len(data)
		<-leave
	})).ServeHTTP(httptest.NewRecorder(), r)
	return read, err
}

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
			if n, err := post(b, request(smallBody, announced), now); n != smallBody || err != nil {
				t.Errorf("a small body beside them: %d, %v", n, err)
			}
			time.Sleep(maxWait - time.Second)
			close(leave)
			for range 4 {
				if err := <-done; err != nil {
					t.Errorf("a body that waited for less than %s: %v", maxWait, err)
				}
			}
		})
	}
}

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
		if n != smallBody+1 || !errors.Is(err, queue.ErrThrottled) || time.Since(began) != maxWait {
			t.Errorf("read %d in %s: %v", n, time.Since(began), err)
		}
		close(leave)
		<-done
		if n, err := post(b, request(1<<20, true), now); n != 1<<20 || err != nil {
			t.Errorf("with room again: %d, %v", n, err)
		}
	})
}

func TestReservationIsTheLargestPossibleBody(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	close(leave)
	for _, c := range []struct {
		length    int
		announced bool
		want      int64
	}{{smallBody, true, 0}, {smallBody, false, 0}, {smallBody + 1, true, smallBody + 1}, {smallBody + 1, false, 1 << 20},
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

// pipes is a listener for in-memory connections, whose deadlines use synctest's clock.
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p.accepted
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func newBodyServer(t *testing.T, bodies *Bodies) (upload func(length, part int, pause time.Duration) int) {
	t.Helper()
	l := pipes{make(chan net.Conn)}
	server := &http.Server{Handler: bodies.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})), ReadTimeout: 2 * time.Minute}
	go server.Serve(l)
	t.Cleanup(func() { close(l.accepted); server.Close() })

	return func(length, part int, pause time.Duration) int {
		conn, accepted := net.Pipe()
		defer conn.Close()
		answered := make(chan struct{})
		defer close(answered)
		l.accepted <- accepted
		go func() {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
			for sent := 0; sent < length; sent += part {
				if _, err := conn.Write(make([]byte, min(part, length-sent))); err != nil {
					return
				}
				select {
				case <-answered:
				case <-time.After(pause):
				}
			}
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
}

func TestSlowUploadsGiveWayToOthers(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]struct {
		length, part int
		pause        time.Duration
	}{
		"stalled after a part": {1 << 20, 64 << 10, time.Hour},
		"a byte at a time":     {1 << 20, 8 << 10, time.Second},
		"as small as others":   {90 << 10, 80 << 10, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				upload := newBodyServer(t, NewBodies(4<<20, 1<<20))
				for range 200 {
					go upload(slow.length, slow.part, slow.pause)
				}
				synctest.Wait()
				for range 5 {
					began := time.Now()
					if status := upload(100<<10, 100<<10, 0); status != http.StatusOK || time.Since(began) > maxWait/2 {
						t.Errorf("answered %d after %s", status, time.Since(began))
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestSlowUploadIsServedWhileThereIsMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		upload := newBodyServer(t, NewBodies(1<<20, 1<<20))
		began := time.Now()
		if status := upload(1<<20, 16<<10, time.Second); status != http.StatusOK || time.Since(began) < time.Minute {
			t.Errorf("answered %d after %s", status, time.Since(began))
		}
	})
}

func TestSmallerBodiesDoNotKeepOutLargerOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		upload := newBodyServer(t, NewBodies(8<<20, 1<<20))
		var done atomic.Bool
		for range 60 {
			go func() {
				for !done.Load() {
					upload(1<<20-100, 64<<10, time.Hour)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		if status := upload(1<<20, 1<<20, 0); status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
		done.Store(true)
		time.Sleep(time.Hour)
	})
}

func TestMemoryIsGrantedToResponsesThenToSmallBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(100, 100)
		if err := b.reserve(t.Context(), 50, time.Now()); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(name string, bytes int64, due time.Duration) {
			go func() {
				if b.reserve(t.Context(), bytes, time.Now().Add(due)) == nil {
					order = append(order, name)
					b.Release(bytes)
				}
			}()
			synctest.Wait()
		}
		wait("large", 100, 90)
		wait("medium", 100, 60)
		wait("response", 100, 0)
		wait("small", 10, 10)
		b.Release(50)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := strings.Join(order, " "); got != "response small medium large" {
			t.Errorf("granted in the order %s", got)
		}
	})
}
